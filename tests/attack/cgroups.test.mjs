// F: cgroups, and processes that do not want to die.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { cgroupRoots, sleep } from '../lib/server.mjs';
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
      for (const line of r.stdout.trim().split('\n')) assert.match(line, /^\d+:[^:]*:\/(e\d+)?$/);
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
