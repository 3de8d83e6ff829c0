// D: the system calls.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { Arena, LONG, parseLines, random } from './arena.mjs';

describe('D system calls', () => {
  let arena;
  let box;
  let neighbour;
  let syscalls;
  let processes;
  let foreign;

  before(async () => {
    arena = await Arena.open({ programs: ['syscalls', 'processes', 'foreign', 'fuzz'] });
    box = await arena.sandbox();
    neighbour = await arena.sandbox();
    syscalls = await arena.trial(box, 'syscalls');
    processes = await arena.trial(box, 'processes');
    foreign = await arena.trial(box, 'foreign');
  });
  after(() => arena?.close());

  it('D37 bpf is refused', (t) => syscalls.check(t, 37));
  it('D38 perf_event_open is refused', (t) => syscalls.check(t, 38));
  it('D39 userfaultfd is refused', (t) => syscalls.check(t, 39));
  it('D40 io_uring is refused', (t) => syscalls.check(t, 40));
  it('D41 keyrings are refused', (t) => syscalls.check(t, 41));
  it('D42 ptrace works on a child and on nobody else', (t) => processes.check(t, 42));
  it('D43 memory and descriptors of others are out of reach', (t) => processes.check(t, 43));

  it("D43 a neighbour's process is out of reach by its number on the host", async () => {
    const mark = `sleep 74${process.pid}`;
    const running = arena.server.exec(neighbour.id, { command: mark.split(' '), timeout: '20s' });
    let pid = '';
    for (let i = 0; i < 100 && !pid; i++) {
      pid = spawnSync('pgrep', ['-f', `^${mark}`], { encoding: 'utf8' }).stdout.trim().split('\n')[0];
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.match(pid, /^\d+$/);
    for (const user of ['user', 'root']) {
      const lines = await arena.inside(box, 'processes', user, { CANARY_PID: pid });
      const aimed = lines.filter((l) => l.name.includes('canary'));
      assert.ok(aimed.length >= 5);
      assert.deepEqual(aimed.filter((l) => l.outcome !== 'BLOCKED'), []);
    }
    const alive = await arena.server.exec(neighbour.id, ['pkill', 'sleep']);
    assert.equal(alive.exitCode, 0, "the neighbour's process is dead");
    await running;
  });

  it('D44 modules and other kernels are refused', (t) => syscalls.check(t, 44));
  it('D45 the clock, the log, swap, quotas, ports and reboot are refused', (t) => syscalls.check(t, 45));
  it('D46 socket families are those of the list', (t) => syscalls.check(t, 46));

  it('D47 foreign system calls end the process', (t) => {
    foreign.check(t, 47);
    const killed = [...foreign.of(47, 'user'), ...foreign.of(47, 'root')];
    assert.deepEqual(killed.filter((l) => l.detail !== 'killed by SIGSYS'), []);
  });

  it('D48 terminals take no input from below, and interfaces of the host are unseen', (t) => syscalls.check(t, 48));
  it('D49 a program that runs from memory is as confined as any', (t) => processes.check(t, 49));
  it('D50 pages of read-only files cannot be changed by pipes and mappings', (t) => processes.check(t, 50));
  it('D51 prctl of memory maps and core scheduling are refused', (t) => syscalls.check(t, 51));
  it('D52 memory policies are refused', (t) => syscalls.check(t, 52));
  it('D53 file handles cannot be asked for', (t) => syscalls.check(t, 53));
  it('D54 fanotify is refused', (t) => syscalls.check(t, 54));
  it('D55 a program may confine itself further, and not less', (t) => syscalls.check(t, 55));

  // control: none, because random calls by root of a host could do anything.
  it('D56 unknown system calls answer ENOSYS, and the host does not stumble', { timeout: 15 * 60 * 1000 }, async (t) => {
    // Not "Call Trace": the report of a process killed for its memory has one. Not "traps:": those are the fuzzer's own.
    const trouble = /BUG:|WARNING:|Oops|general protection fault,|kernel panic|unable to handle|refcount_t|UBSAN|KASAN/i;
    const log = () => spawnSync('dmesg', [], { encoding: 'utf8', maxBuffer: 64 << 20 });
    const before_ = log();
    if (before_.status !== 0) t.diagnostic('the log of the host cannot be read');
    const seconds = LONG ? 300 : 2;
    for (const user of ['user', 'root']) {
      const seed = random(8);
      const range = LONG ? ['0', '600'] : ['450', '600'];
      const r = await arena.run(box, 'fuzz', [String(seconds), seed, ...range], { user, timeout: '10m' });
      const lines = parseLines(r.stdout);
      t.diagnostic(`${user}, seed ${seed}: ${lines.map((l) => l.detail)}`);
      assert.deepEqual(lines.map((l) => l.outcome), ['BLOCKED'], `${r.stdout}${r.stderr}`);
    }
    const last = before_.stdout.trim().split('\n').pop();
    const lines = log().stdout.split('\n');
    const fresh = lines.slice(lines.lastIndexOf(last) + 1);
    assert.deepEqual(fresh.filter((line) => trouble.test(line)), []);
    assert.equal((await arena.server.exec(box.id, ['true'])).exitCode, 0);
  });

  it('D the canaries are unharmed', () => arena.canaries.assertUnharmed());
});
