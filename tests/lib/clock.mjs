// A server whose time passes faster, for tests of what takes minutes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Options for Server.start; `rate` seconds of the server pass in one of ours. Call done() at the end. */
export function fastClock(rate) {
  const directory = mkdtempSync('/tmp/bunker-clock-');
  const library = join(directory, 'clock.so');
  const source = new URL('clock.c', import.meta.url).pathname;
  const r = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'], { encoding: 'utf8' });
  if (r.status !== 0) throw new Error(r.stderr);
  const sanitizer = `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`;
  return {
    env: { LD_PRELOAD: library, BUNKER_TEST_CLOCK: String(rate), ASAN_OPTIONS: sanitizer },
    done: () => rmSync(directory, { recursive: true, force: true }),
  };
}
