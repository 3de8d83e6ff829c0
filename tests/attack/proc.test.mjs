// C: /proc, /sys, and what can be learnt or changed there.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { BUNKER, childrenOf, commandName, sleep } from '../lib/server.mjs';
import { Arena, runOnHost } from './arena.mjs';

describe('C proc and sys', () => {
  let arena;
  let box;
  let neighbour;
  let proc;
  let limits;
  const digest = () => createHash('sha256').update(readFileSync(BUNKER)).digest('hex');
  const binary = digest();

  before(async () => {
    arena = await Arena.open({ programs: ['proc', 'limits'] });
    box = await arena.sandbox();
    neighbour = await arena.sandbox();
    proc = await arena.trial(box, 'proc');
    limits = await arena.trial(box, 'limits');
  });
  after(() => arena?.close());

  it('C28 init cannot be looked into, and the canary process is not there', (t) => proc.check(t, 28));

  it('C28 of all paths of the host init holds open that of its cgroup at most', () => {
    // One that is being booted for the pool is still a copy of the warden.
    for (const pid of initsOf(arena.server).filter((init) => commandName(init) === 'bunker-init')) {
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
      const paths = open.filter((path) => path.startsWith('/') && path !== '/dev/null' && !path.startsWith('/memfd'));
      // On v1 also the file by which a process joins the cgroup with the quota.
      const cgroups = paths.filter((path) => !/bunker-\w+\/\w{20}\/box\/tasks$/.test(path));
      assert.ok(cgroups.length <= 1, `init has ${paths.join(', ')}`);
      for (const path of cgroups) assert.ok(/bunker-\w+\/\w{20}$/.test(path) || path === '/', `init has ${path}`);
    }
  });

  it("C28 the server's secret, its key and the canary are nowhere inside", async () => {
    const wanted = [arena.secret, arena.server.key, arena.server.data, arena.canaries.mark];
    // In two pieces, so that the search does not find itself.
    const code = `
import os, sys
wanted = [(a + b).encode() for a, b in ${JSON.stringify(wanted.map((w) => [w.slice(0, 6), w.slice(6)]))}]
found = []
def look(path):
    try:
        with open(path, 'rb') as f:
            data = f.read(4 << 20)
    except OSError:
        return
    found.extend(path + ' has ' + str(i) for i, w in enumerate(wanted) if w in data)
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline', 'status', 'mountinfo', 'mounts', 'cgroup', 'maps', 'net/unix', 'stat'):
        look('/proc/' + pid + '/' + name)
for top in ('/etc', '/home', '/tmp', '/var', '/run', '/root', '/dev/shm', '/opt', '/srv', '/mnt', '/media'):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path): look(path)
for key, value in os.environ.items():
    if any(w.decode() in value for w in wanted): found.append('env ' + key)
print('\\n'.join(found))`;
    for (const user of ['user', 'root']) {
      const r = await arena.server.exec(box.id, { command: ['python3', '-c', code], user, timeout: '60s' });
      assert.equal(r.exitCode, 0, r.stderr);
      assert.equal(r.stdout.trim(), '', `found as ${user}`);
    }
    const planted = await arena.server.exec(box.id, {
      command: ['python3', '-c', code],
      env: { PLANTED: arena.secret },
    });
    assert.match(planted.stdout, /env PLANTED/, 'the control: the search does not find what is there');
    const warden = readFileSync(`/proc/${arena.server.wardenPid}/environ`, 'utf8');
    assert.ok(warden.includes(arena.secret), 'the control: the server does not have the secret');
  });

  it("C29 init's program cannot be written", (t) => proc.check(t, 29));

  it('C29 the server is what it was, and init runs from memory that is sealed', async () => {
    assert.equal(digest(), binary);
    const inits = initsOf(arena.server);
    assert.ok(inits.length > 0);
    for (const pid of inits) assert.match(readlinkSync(`/proc/${pid}/exe`), /^\/memfd:bunker-init/);
    // What is sealed against writing cannot be opened for it, not even by root of the host.
    const r = await runOnHost('sh', ['-c', `exec 3<>/proc/${inits[0]}/exe`]);
    assert.notEqual(r.code, 0, 'root could open the program of a living init for writing');
  });

  it('C30 nothing of the kernel can be set', (t) => proc.check(t, 30));
  it('C31 what tells about the kernel is masked or absent', (t) => proc.check(t, 31));

  it("C31 the kernel's command line is the host's secret", async () => {
    assert.ok(readFileSync('/proc/cmdline', 'utf8').trim(), 'the control: outside there is one');
    const r = await arena.server.exec(box.id, { command: 'cat /proc/cmdline', user: 'root' });
    assert.deepEqual([r.exitCode, r.stdout], [0, '\n']);
  });

  it('C32 mountinfo tells nothing of the host and of others', async () => {
    const others = [arena.server.data, '/var/lib/bunker', neighbour.id, box.id, '/boxes/', '/sys/fs/cgroup', ...hostDevices()];
    for (const user of ['user', 'root']) {
      const r = await arena.server.exec(box.id, { command: 'cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats /etc/mtab', user });
      assert.ok(r.stdout.includes('overlay'), 'the control: there is nothing to read');
      for (const text of others) assert.ok(!r.stdout.includes(text), `it names ${text}:\n${r.stdout}`);
    }
    const warden = readFileSync(`/proc/${arena.server.wardenPid}/mountinfo`, 'utf8');
    assert.ok(others.some((text) => warden.includes(text)), 'the control: nobody has such a line');
  });

  it('C33 the network is our own', (t) => proc.check(t, 33));
  it('C34 a crash leaves no core', (t) => proc.check(t, 34));
  it('C35 the kernel cannot be told to spare a process', (t) => limits.check(t, 35));

  it('C36 the processes to be seen are those of the sandbox', async () => {
    const r = await arena.server.exec(box.id, { command: ['ps', '-eo', 'pid,args'], user: 'root' });
    const lines = r.stdout.trim().split('\n').slice(1);
    assert.ok(lines.length <= 3, r.stdout); // init, ps, and what a shell may add
    for (const line of lines) assert.match(line, /^\s*\d+ (bunker-init|ps |sh )/);
  });

  it('C36 kill(-1) reaches the sandbox and nobody else', async () => {
    const sleeping = (sandbox) => arena.server.exec(sandbox.id, { command: ['sleep', '20'], timeout: '30s' });
    const own = sleeping(box);
    const others = sleeping(neighbour);
    await sleep(200);
    const kill = await arena.server.exec(box.id, { command: 'kill -9 -1; sleep 0.2; echo alive', user: 'root' });
    assert.equal(kill.stdout, 'alive\n');
    assert.equal((await own).signal, 'SIGKILL', 'the control: not even the sandbox was reached');
    arena.canaries.assertUnharmed();
    const r = await arena.server.exec(neighbour.id, { command: ['pgrep', 'sleep'] });
    assert.equal(r.exitCode, 0, "the neighbour's process is dead");
    await arena.server.exec(neighbour.id, { command: ['pkill', 'sleep'] });
    await others;
    assert.equal((await arena.server.exec(box.id, ['true'])).exitCode, 0, 'init is dead');
    assert.equal((await arena.server.request('GET', '/health')).status, 200);
  });

  it('C the canaries are unharmed', () => arena.canaries.assertUnharmed());
});

/** The block devices that the host has mounted. */
function hostDevices() {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n');
  return [...new Set(lines.map((line) => line.split(' - ')[1].split(' ')[1]).filter((source) => source.startsWith('/dev/')))];
}

/** Init is the child of the warden that is alone in its pid namespace. */
function initsOf(server) {
  return childrenOf(server.wardenPid).filter((pid) => {
    try {
      return /^NSpid:\s+\d+\s+1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  });
}
