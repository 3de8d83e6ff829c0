// F: cgroups, and processes that do not want to die.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { cgroupRoots, sleep } from '../lib/server.mjs';
import { hostPids, startCommand } from '../system/support.mjs';
import { Socket } from '../lib/websocket.mjs';
import { Arena, random } from './arena.mjs';

describe('F cgroups', () => {
  let arena;
  let box;
  let mounts;
  let proc;
  const BOMBS = '/home/user/attempts/bombs';

  before(async () => {
    arena = await Arena.open({ programs: ['mounts', 'proc', 'bombs'] });
    box = await arena.sandbox();
    mounts = await arena.trial(box, 'mounts');
    proc = await arena.trial(box, 'proc');
  });
  after(() => arena?.close());

  it('F70 release_agent is out of reach', (t) => mounts.check(t, 70));
  it('F71 a process cannot leave its cgroup', (t) => proc.check(t, 71));
  it('F72 devices cannot be allowed', (t) => proc.check(t, 72));
  it('F73 limits cannot be raised', (t) => proc.check(t, 73));

  it('F74 the cgroup namespace hides what is above', async () => {
    for (const user of ['user', 'root']) {
      const r = await arena.server.exec(box.id, { command: 'cat /proc/self/cgroup /proc/1/cgroup', user });
      for (const line of r.stdout.trim().split('\n')) assert.match(line, /^\d+:[^:]*:\/(init|box)?(\/?e\d+)?$/);
    }
    const running = arena.server.exec(box.id, { command: ['sleep', '5'], timeout: '5s' });
    assert.ok(directoriesOf(box.id).length > 0, 'the control: the host has no cgroup of that name');
    await running;
  });

  /** Runs a bomb until it has said its word; resolves with the mark by which the host finds it. */
  async function start(sandbox, bomb, user) {
    const mark = `f75-${random(6)}`;
    const stream = await arena.server.stream(`/v1/sandboxes/${sandbox.id}/exec`, {
      command: ['bash', '-c', `exec -a ${mark} ${BOMBS} ${bomb}`],
      user,
      timeout: '60s',
    });
    for await (const event of stream.events) if (event.type === 'stdout') break;
    assert.ok(processesWith(mark).length > 10, 'the control: there are no such processes');
    return mark;
  }

  async function removeWithin(sandbox, ms) {
    const from = Date.now();
    assert.equal((await arena.remove(sandbox)).status, 204);
    assert.ok(Date.now() - from < ms, `deleting took ${Date.now() - from} ms`);
  }

  for (const [bomb, what] of [['stopped', 'stopped processes'], ['vfork-wait', 'processes that wait in the kernel']])
    for (const user of ['user', 'root'])
      it(`F75 ${what} die with the sandbox (${user})`, async () => {
        const victim = await arena.sandbox();
        const mark = await start(victim, bomb, user);
        await removeWithin(victim, 2000);
        assert.deepEqual(processesWith(mark), []);
      });

  it('F75 frozen processes die with the sandbox', async () => {
    const victim = await arena.sandbox();
    const mark = await start(victim, 'stopped', 'user');
    const frozen = directoriesOf(victim.id).filter((path) => existsSync(join(path, 'cgroup.freeze')));
    assert.ok(frozen.length > 0, 'the control: nothing can be frozen here');
    for (const path of frozen) writeFileSync(join(path, 'cgroup.freeze'), '1');
    await removeWithin(victim, 2000);
    assert.deepEqual(processesWith(mark), []);
  });

  it('F75 processes without CPU time die with the sandbox', async () => {
    const victim = await arena.sandbox({ resources: { cpu: '10m' } });
    const r = await arena.server.exec(victim.id, { command: 'for i in $(seq 30); do sleep 1000 & done', timeout: '60s' });
    assert.equal(r.exitCode, 0);
    await removeWithin(victim, 5000);
  });

  it('F75 while one sandbox takes long to die, others are made', async (t) => {
    const victim = await arena.sandbox({ resources: { pids: 700, cpu: '2', memory: '700Mi' } });
    const mark = await start(victim, 'slow-to-die', 'user');
    const timed = async (action) => {
      const from = Date.now();
      await action();
      return Date.now() - from;
    };
    let left;
    const removing = timed(() => arena.remove(victim)).then((ms) => {
      left = livingWith(mark).length;
      return ms;
    });
    await sleep(30);
    // One that is not in the pool, so that the warden has to boot it.
    let other;
    const making = await timed(async () => (other = await arena.server.create({ resources: { pids: 100 } })));
    const fresh = await timed(async () => {
      for (let i = 0; i < 10; i++) await arena.remove(await arena.server.create({}));
    });
    t.diagnostic(`deleting took ${await removing} ms, making one with other limits meanwhile ${making} ms, ten more ${fresh} ms`);
    await arena.remove(other);
    assert.ok(making < 1000, `making a sandbox took ${making} ms`);
    assert.equal(left, 0, 'processes that lived when the sandbox was said to be deleted');
  });

  for (const user of ['user', 'root'])
    it(`F75 who stops processes as they are born cannot hold up the answer to an exec with a timeout (${user})`, async () => {
      const victim = await arena.sandbox({ resources: { cpu: '2' } });
      const running = arena.run(victim, 'bombs', ['stop-newcomers'], { user, timeout: '60s' }).catch(() => {});
      await sleep(200);
      let slow = 0;
      const end = Date.now() + 5000;
      for (let i = 0; Date.now() < end && !slow; i++) {
        const answer = arena.server.request('POST', `/v1/sandboxes/${victim.id}/exec`, { command: ['true'], timeout: '500ms' });
        const first = await Promise.race([answer, sleep(8000).then(() => 'none')]);
        if (first === 'none') slow = i + 1;
        answer.catch(() => {});
      }
      await removeWithin(victim, 2000);
      await running;
      assert.equal(slow, 0, `the ${slow}th command with a timeout of 500 ms was not answered in 8 s`);
    });

  /** Seconds of processor time that the processes of a sandbox, and it as a whole, have had. */
  function timeOf(id) {
    const dir = directoriesOf(id).find((path) => existsSync(join(path, 'cgroup.kill')));
    const used = (path) => Number(/^usage_usec (\d+)/m.exec(readFileSync(join(path, 'cpu.stat'), 'utf8'))[1]) / 1e6;
    const inside = existsSync(join(dir, 'box')) ? join(dir, 'box') : dir;
    const groups = readdirSync(inside).filter((name) => /^e\d+$/.test(name));
    return { all: used(dir), groups: new Map(groups.map((name) => [name, used(join(inside, name))])) };
  }

  /** Runs busy processes, and floods beside them, for so many seconds; resolves with the cores that were used. */
  async function cores(cpu, seconds, flood) {
    const victim = await arena.sandbox({ resources: { cpu, pids: 500 } });
    for (let i = 0; i < 8; i++) await arena.server.request('POST', `/v1/sandboxes/${victim.id}/processes`, { command: 'while :; do :; done' });
    let going = true;
    const before_ = timeOf(victim.id);
    const from = performance.now();
    const floods = [];
    for (let i = 0; flood && i < 8; i++)
      for (const path of ['exec', 'fs/grep'])
        floods.push((async () => {
          const body = path === 'exec' ? { command: 'echo x; cat /etc/passwd' } : { path: '/usr/share', pattern: '(a|b|c)*d(e|f)*g', limit: 10 };
          while (going) {
            const answer = await arena.server.request('POST', `/v1/sandboxes/${victim.id}/${path}`, body);
            // A command may find no time to begin on a slow machine.
            assert.ok(answer.status === 200 || answer.json.error.code === 'resource_exhausted', answer.text);
          }
        })());
    await sleep(seconds * 1000);
    const elapsed = (performance.now() - from) / 1000;
    const after_ = timeOf(victim.id);
    going = false;
    await Promise.all(floods);
    await arena.remove(victim);
    let inside = 0;
    for (const [name, used] of after_.groups) inside += used - (before_.groups.get(name) ?? 0);
    return { inside: inside / elapsed, all: (after_.all - before_.all) / elapsed };
  }

  it('F170 busy processes under floods of commands and file work have no more than their processor time', async (t) => {
    const control = await cores('2', 2, false);
    t.diagnostic(`without a limit worth the name: ${control.inside.toFixed(2)} cores`);
    assert.ok(control.inside > 0.15, 'the control: there is not that much to be had');
    const used = await cores('100m', 10, true);
    t.diagnostic(`100m: ${used.inside.toFixed(2)} cores inside, ${used.all.toFixed(2)} with init and its workers`);
    assert.ok(used.inside < 0.2, `processes inside had ${used.inside.toFixed(2)} cores`);
    assert.ok(used.all < 1.25, `with init and its workers they had ${used.all.toFixed(2)} cores`);
  });

  it('F170 a command, a process, a terminal and an interpreter are under the quota, and only init and its workers are not', async () => {
    const { server } = arena;
    const own = await arena.sandbox();
    const running = [await startCommand(server, own.id, { command: 'sleep 30 & sleep 30' })];
    for (const body of [{ command: ['sleep', '30'], user: 'root' }, { command: 'sleep 30', pty: { rows: 5, columns: 5 } }])
      assert.equal((await server.request('POST', `/v1/sandboxes/${own.id}/processes`, body)).status, 201);
    assert.equal((await server.request('POST', `/v1/sandboxes/${own.id}/contexts/python/execute`, { code: '1' })).status, 200);
    const watch = await Socket.open(server, `/v1/sandboxes/${own.id}/fs/watch?path=/home/user`);
    assert.ok(await watch.next(), 'it does not watch');
    const names = {};
    for (const pid of hostPids(server, own.id)) {
      const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n').map((line) => line.split(':'));
      const [, , path] = groups.find(([, names]) => names.split(',').includes('cpu')) ?? groups.find(([number]) => number === '0');
      const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
      (names[/\/box(\/e\d+)?$/.test(path) ? 'inside' : 'outside'] ??= []).push(name);
    }
    assert.deepEqual(names.outside.sort(), ['bunker-files', 'bunker-init']);
    assert.ok(names.inside.length >= 5 && names.inside.some((name) => name.startsWith('python')), names.inside.join());
    watch.tcp.destroy();
    for (const one of running) one.stream.close();
    await arena.remove(own);
  });

  for (const user of ['user', 'root'])
    it(`F170 nobody inside gets hold of a file worker, which is outside the quota (${user})`, async () => {
      const code = `
import ctypes, os, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
def attempts(pid):
    fd = os.pidfd_open(pid)
    yield libc.ptrace(0x4206, pid, None, None)
    yield libc.syscall(438, fd, 0, 0)
    try: os.close(os.open(f'/proc/{pid}/mem', os.O_RDWR)); yield 0
    except OSError: yield -1
child = subprocess.Popen(['sleep', '9'])
time.sleep(0.2)
print(*[r >= 0 for r in attempts(child.pid)])
for pid in subprocess.run(['pgrep', '-x', 'bunker-files'], capture_output=True, text=True).stdout.split():
    print(*[r >= 0 for r in attempts(int(pid))])
child.kill()`;
      const watch = await Socket.open(arena.server, `/v1/sandboxes/${box.id}/fs/watch?path=/tmp&user=${user}`);
      assert.ok(await watch.next(), 'it does not watch');
      const r = await arena.server.exec(box.id, { command: ['python3', '-c', code], user });
      watch.tcp.destroy();
      const [control, ...workers] = r.stdout.trim().split('\n');
      assert.equal(control, 'True True True', `the control: ${r.stdout}${r.stderr}`);
      assert.ok(workers.length > 0, 'the control: there is no worker');
      for (const worker of workers) assert.equal(worker, 'False False False');
    });

  it('F the canaries are unharmed', () => arena.canaries.assertUnharmed());
});

function processesWith(mark) {
  return spawnSync('pgrep', ['-f', mark], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean);
}

/** The same without those that are dead and only wait to be reaped. */
function livingWith(mark) {
  const text = spawnSync('ps', ['-eo', 'stat,args'], { encoding: 'utf8' }).stdout;
  return text.split('\n').filter((line) => line.includes(mark) && !line.startsWith('Z'));
}

/** The directories of one sandbox, in all hierarchies of the host. */
function directoriesOf(id) {
  return cgroupRoots().flatMap((root) =>
    readdirSync(root)
      .filter((name) => name.startsWith('bunker-'))
      .map((name) => join(root, name, id))
      .filter((path) => existsSync(path)),
  );
}
