// A: namespaces and privileges.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { initPid } from '../system/support.mjs';
import { Arena, compile, random } from './arena.mjs';

const KEPT = 0x4fbn; // chown dac_override fowner fsetid kill setgid setuid net_bind_service

describe('A namespaces and privileges', () => {
  let arena;
  let box;
  let namespaces;
  let privileges;

  before(async () => {
    arena = await Arena.open({ programs: ['namespaces', 'privileges', 'setuid'] });
    box = await arena.sandbox();
    namespaces = await arena.trial(box, 'namespaces');
    privileges = await arena.trial(box, 'privileges');
  });
  after(() => arena?.close());

  it('A1 unshare and clone of every namespace are refused', (t) => namespaces.check(t, 1));
  it('A2 clone3 is refused, with and without namespaces', (t) => namespaces.check(t, 2));
  it('A3 setns is refused, also to a descriptor that was passed', (t) => namespaces.check(t, 3));

  it('A4 a setuid program gives root of the sandbox and nothing else', async () => {
    const planted = '/tmp/planted';
    const plant = await arena.server.exec(box.id, {
      command: `cp /home/user/attempts/setuid ${planted} && chown root:root ${planted} && chmod 4755 ${planted}`,
      user: 'root',
    });
    assert.equal(plant.exitCode, 0, plant.stderr);
    const r = await arena.server.exec(box.id, { command: [planted], env: arena.canaries.settings });
    const seen = JSON.parse(r.stdout);
    assert.equal(seen.euid, 0, 'sudo would not work');
    const [inner, outer, count] = seen.uid_map.trim().split(/\s+/).map(Number);
    assert.equal(inner, 0);
    assert.equal(count, 65536);
    assert.ok(outer >= 65536 && Number.isInteger(outer / 128), `root inside is uid ${outer} of the host`);
    assert.equal(BigInt(`0x${seen.effective}`) & ~KEPT, 0n, `effective capabilities ${seen.effective}`);
    assert.equal(seen.canary, 'ENOENT');
    assert.equal(seen.memory_of_init, 'EACCES');
    arena.canaries.assertUnharmed();
  });

  it('A4 what is setuid inside is out of reach for every user of the host', () => {
    const path = arena.server.disks('boxes', box.id, 'root/tmp/planted');
    assert.ok(readFileSync(path).length > 0, 'the file is not where the test looks for it');
    for (const uid of [65534, 1000]) {
      const r = spawnSync(path, { uid, gid: uid, encoding: 'utf8' });
      assert.equal(r.error?.code, 'EACCES', `uid ${uid} could start it`);
    }
  });

  it('A4 the control: on a host the same program is root without a map', () => {
    const r = spawnSync(compile('setuid'), { encoding: 'utf8', env: arena.canaries.settings });
    const seen = JSON.parse(r.stdout);
    assert.equal(seen.euid, 0);
    assert.notEqual(BigInt(`0x${seen.effective}`) & ~KEPT, 0n);
    assert.equal(seen.canary, 'read');
  });

  it('A4 root inside is an unprivileged uid on the host', async () => {
    const mark = `sleep 73${process.pid}`;
    const running = arena.server.exec(box.id, { command: mark, user: 'root', timeout: '5s' });
    const pids = await waitForProcess(mark);
    for (const pid of pids) {
      const uids = /^Uid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1].split(/\s+/).map(Number);
      assert.ok(uids.every((uid) => uid >= 65536), `uids ${uids}`);
    }
    await arena.server.exec(box.id, { command: `pkill -f '^${mark}'`, user: 'root' });
    await running;
  });

  it('A5 file capabilities cannot be given', (t) => privileges.check(t, 5));
  it('A6 capabilities cannot be raised, and the bounding set is what the design names', (t) => privileges.check(t, 6));

  it('A6 the capabilities of user and root, bit by bit', async () => {
    for (const [user, effective] of [['user', 0n], ['root', KEPT]]) {
      const r = await arena.server.exec(box.id, { command: ['cat', '/proc/self/status'], user });
      const mask = (name) => BigInt(`0x${new RegExp(`^${name}:\\s+(\\w+)$`, 'm').exec(r.stdout)[1]}`);
      assert.equal(mask('CapBnd'), KEPT, `CapBnd of ${user}`);
      assert.equal(mask('CapEff'), effective, `CapEff of ${user}`);
      assert.equal(mask('CapPrm'), effective, `CapPrm of ${user}`);
      assert.equal(mask('CapInh'), 0n, `CapInh of ${user}`);
      assert.equal(mask('CapAmb'), 0n, `CapAmb of ${user}`);
    }
  });

  it('A7 files cannot be opened by handle', (t) => privileges.check(t, 7));
  it('A8 chroot in chroot leads nowhere', (t) => privileges.check(t, 8));
  it('A9 pivot_root is refused', (t) => privileges.check(t, 9));

  // The host's root takes the sandbox's root away, in a copy of its mounts, and goes to what is below.
  it('A9 below its root there is an empty mount', async () => {
    const look = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, DETACH, SYS_pidfd_open = 0x20000, 2, 434
def must(r):
    if r < 0: sys.exit(os.strerror(ctypes.get_errno()))
    return r
self = must(libc.syscall(SYS_pidfd_open, os.getpid(), 0))
init = os.open('/proc/' + sys.argv[1] + '/ns/mnt', os.O_RDONLY)
must(libc.setns(init, NEWNS)); must(libc.unshare(NEWNS))
print(sorted(os.listdir('/'))); must(libc.umount2(b'/', DETACH)); must(libc.setns(self, NEWNS))
print(os.listdir('/'))
try: os.mkdir('/x')
except OSError as e: print(e.strerror)
`;
    const init = initPid(arena.server, box.id);
    const r = spawnSync('python3', ['-c', look, String(init)], { encoding: 'utf8' });
    assert.equal(r.status, 0, r.stderr);
    const [inside, below, write] = r.stdout.trim().split('\n');
    assert.match(inside, /'home'.*'usr'/);
    assert.deepEqual([below, write], ['[]', 'Read-only file system']);
  });

  it('A10 a process starts with descriptors 0, 1, 2 and no way up', (t) => privileges.check(t, 10));

  // Init holds descriptors that the sandbox must not get: its cgroup, which was opened on the host.
  const waysOut = ['/proc/1/cwd', '/proc/1/root', '/proc/1/fd/3', '/proc/1/fd/4', '/proc/self/fd/3', '/proc/self/fd/4', '/proc/self/fd/7'];
  const up = '/..'.repeat(8);

  for (const user of ['user', 'root']) {
    it(`A10 a working directory that leads out is refused (${user})`, async () => {
      const entered = [];
      for (const cwd of waysOut) {
        const r = await arena.server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: ['ls'], cwd, user });
        if (r.status !== 400 || r.json.error.code !== 'invalid_field') entered.push(`${cwd}: ${r.status}`);
      }
      assert.deepEqual(entered, []);
    });

    it(`A10 a symlink as working directory or program does not lead out (${user})`, async () => {
      const look = `cat .${up}${arena.canaries.file} .${up}/proc/${arena.canaries.process.pid}/cmdline; true`;
      const escapes = [];
      for (const way of waysOut) {
        const trap = `/tmp/trap-${random(4)}`;
        await arena.server.exec(box.id, ['ln', '-s', way, trap]);
        for (const body of [
          { command: look, cwd: trap, user },
          { command: [`${trap}${up}/bin/sh`, '-c', `cd ${trap}; ${look}`], user },
        ]) {
          const r = await arena.server.request('POST', `/v1/sandboxes/${box.id}/exec`, body);
          if (r.text.includes(arena.canaries.mark)) escapes.push(`${way}: ${JSON.stringify(body)}`);
        }
      }
      assert.deepEqual(escapes, []);
    });

    it(`A10 a file's path does not lead out (${user})`, async () => {
      const target = mkdtempSync('/tmp/bunker-canary-');
      try {
        chmodSync(target, 0o777);
        for (const way of waysOut) {
          const trap = `/tmp/trap-${random(4)}`;
          await arena.server.exec(box.id, ['ln', '-s', `${way}${up}${target}`, trap]);
          const files = [{ path: `${trap}/planted`, content: 'planted' }];
          await arena.server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: ['true'], user, files });
          assert.equal(existsSync(join(target, 'planted')), false, `written to the host through ${way}`);
        }
      } finally {
        rmSync(target, { recursive: true });
      }
    });
  }

  it('A10 the database of users is read inside, wherever its links lead', async () => {
    const other = await arena.sandbox();
    const probe = mkdtempSync('/tmp/bunker-canary-');
    try {
      chmodSync(probe, 0o755);
      writeFileSync(join(probe, 'passwd'), `canary:x:0:0::/${arena.canaries.mark}:/bin/sh\n`);
      for (const way of waysOut) {
        await arena.server.exec(other.id, { command: `ln -sf ${way}${up}${probe}/passwd /etc/passwd`, user: '0' });
        const r = await arena.server.request('POST', `/v1/sandboxes/${other.id}/exec`, { command: ['env'], user: 'canary' });
        assert.ok(!r.text.includes(arena.canaries.mark), `init read a file of the host through ${way}`);
      }
    } finally {
      rmSync(probe, { recursive: true });
      await arena.remove(other);
    }
  });

  it('A10 a process starts with no signal blocked or ignored', async () => {
    for (const user of ['user', 'root']) {
      const r = await arena.server.exec(box.id, { command: ['cat', '/proc/self/status'], user });
      for (const name of ['SigBlk', 'SigIgn'])
        assert.equal(new RegExp(`^${name}:\\s+(\\w+)$`, 'm').exec(r.stdout)[1], '0000000000000000', `${name} of ${user}`);
    }
  });

  it('A11 seccomp is in force from the first instruction', (t) => privileges.check(t, 11));
  it('A12 personality is refused', (t) => privileges.check(t, 12));
  it('A13 uid_map, gid_map and setgroups cannot be written', (t) => namespaces.check(t, 13));

  it('A14 the hostname cannot be changed, and that of the host is what it was', (t) => {
    namespaces.check(t, 14);
    assert.notEqual(hostname(), arena.canaries.settings.CANARY_HOSTNAME);
  });

  it('A the canaries are unharmed', () => arena.canaries.assertUnharmed());
});

async function waitForProcess(mark) {
  const find = () =>
    spawnSync('pgrep', ['-f', `^${mark}`], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean).map(Number);
  for (let i = 0; i < 100; i++) {
    const pids = find();
    if (pids.length) return pids;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`no process ${mark}`);
}
