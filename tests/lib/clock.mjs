// A server whose time passes faster, or jumps, for tests of what takes minutes and of clocks that are set.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Options for Server.start; `rate` seconds of the server pass in one of ours. step() sets its wall clock, suspend() is a machine
 * that was suspended, both by so many seconds. Call done() at the end.
 */
export function fastClock(rate) {
  const directory = mkdtempSync('/tmp/bunker-clock-');
  const library = join(directory, 'clock.so');
  const source = new URL('clock.c', import.meta.url).pathname;
  const r = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'], { encoding: 'utf8' });
  if (r.status !== 0) throw new Error(r.stderr);
  const sanitizer = `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`;
  const steps = join(directory, 'steps');
  const moved = [0, 0];
  const move = (index, seconds) => {
    moved[index] += seconds;
    const bytes = Buffer.alloc(16);
    moved.forEach((s, i) => bytes.writeBigInt64LE(BigInt(s) * 1000000000n, i * 8));
    writeFileSync(steps, bytes, { flag: 'r+' });
  };
  writeFileSync(steps, Buffer.alloc(16));
  return {
    env: { LD_PRELOAD: library, BUNKER_TEST_CLOCK: String(rate), BUNKER_TEST_STEPS: steps, ASAN_OPTIONS: sanitizer },
    step: (seconds) => move(0, seconds),
    suspend: (seconds) => move(1, seconds),
    done: () => rmSync(directory, { recursive: true, force: true }),
  };
}
