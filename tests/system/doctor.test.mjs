import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BUNKER, cgroupRoots, safeReaddir } from '../lib/server.mjs';

describe('bunker doctor', () => {
  let dir;
  before(() => {
    dir = mkdtempSync('/tmp/bunker-test-doctor-');
    chmodSync(dir, 0o755); // What has no privilege must get through.
  });
  after(() => rmSync(dir, { recursive: true }));
  const doctor = (args = [], prefix = []) => {
    const [program, ...rest] = [...prefix, BUNKER, 'doctor', '--data', join(dir, 'data'), ...args];
    return spawnSync(program, rest, { encoding: 'utf8', timeout: 60000, env: { PATH: process.env.PATH } });
  };
  const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const cgroups = () => cgroupRoots().flatMap((root) => safeReaddir(root).filter((name) => name.startsWith('bunker-')).map((name) => join(root, name)));

  it('says which layers are active, boots a sandbox to know, and ends with 0 on this host', () => {
    const r = doctor();
    assert.equal(r.status, 0, r.stdout + r.stderr);
    for (const layer of ['root', 'kernel', 'seccomp', 'landlock', 'cgroups', 'sandbox']) assert.match(r.stdout, new RegExp(`^(ok|absent) +${layer}\\b`, 'm'));
    assert.doesNotMatch(r.stdout, /MISSING/);
  });

  it('tells the cgroup mode, and overlay and idmap support', () => {
    const { stdout } = doctor();
    const v2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
    const hybrid = existsSync('/sys/fs/cgroup/unified/cgroup.controllers');
    assert.match(stdout, v2 ? /cgroups +.*v2/ : hybrid ? /cgroups +.*hybrid/i : /cgroups +.*v1/);
    assert.match(stdout, /overlay/i);
    assert.match(stdout, /idmap/i);
  });

  it('prints the same as JSON', () => {
    const { checks } = JSON.parse(doctor(['--json']).stdout);
    for (const check of checks) {
      assert.equal(typeof check.name, 'string');
      assert.equal(typeof check.ok, 'boolean');
      assert.equal(typeof check.required, 'boolean');
      assert.equal(typeof check.detail, 'string');
      if (!check.ok) assert.ok(check.advice.length > 0, 'what is missing comes with advice');
    }
    assert.ok(checks.find((c) => c.name === 'sandbox').ok);
  });

  it('leaves nothing behind', () => {
    const before = cgroups();
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length;
    doctor();
    assert.deepEqual(readdirSync(dir), []);
    assert.deepEqual(cgroups().filter((path) => !before.includes(path) && safeReaddir(path).length === 0), []);
    assert.equal(readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length, mounts);
  });

  it('says what to do when it is not root, and ends with 1', () => {
    const r = doctor([], unprivileged);
    assert.equal(r.status, 1, r.stderr);
    assert.match(r.stdout, /^MISSING +root +uid 65534$/m);
    assert.match(r.stdout, /-> .*sudo bunker doctor/);
    const { checks } = JSON.parse(doctor(['--json'], unprivileged).stdout);
    const root = checks.find((c) => c.name === 'root');
    assert.deepEqual([root.ok, root.required], [false, true]);
  });

  it('says which place it cannot use', () => {
    const r = spawnSync(BUNKER, ['doctor', '--data', '/proc/nowhere/data'], { encoding: 'utf8' });
    assert.equal(r.status, 1);
    assert.match(r.stdout, /MISSING +data directory +\/proc\/nowhere/);
    assert.match(r.stdout, /-> .*--data/);
  });

  it('asks the file system of a data directory that exists', () => {
    const nowhere = spawnSync(BUNKER, ['doctor', '--data', '/proc'], { encoding: 'utf8' });
    assert.match(nowhere.stdout, /MISSING +data directory +\/proc\//);
    mkdirSync(join(dir, 'data'), { mode: 0o711 });
    assert.equal(doctor().status, 0);
    assert.deepEqual(readdirSync(join(dir, 'data')), []);
    rmdirSync(join(dir, 'data'));
  });

  it('works beside a running server', () => {
    const first = doctor();
    const second = doctor();
    assert.deepEqual([first.status, second.status], [0, 0]);
  });

  it('says which servers have the uids when all of them are taken', () => {
    // With a /run of its own, so that no other server of this host is stopped by it.
    const script = `mount -t tmpfs none /run && mkdir /run/bunker && exec python3 -c '
import fcntl, subprocess, sys
held = open("/run/bunker/uids", "w")
fcntl.lockf(held, fcntl.LOCK_EX)
sys.exit(subprocess.call(sys.argv[1:]))' "$@"`;
    const before = cgroups();
    const r = doctor([], ['unshare', '-m', 'sh', '-c', script, 'sh']);
    assert.equal(r.status, 1, r.stdout + r.stderr);
    assert.match(r.stdout, /^MISSING +uids +all 239 chunks of 255 blocks of uids are taken/m);
    assert.match(r.stdout, /-> .*--drain.*instance/);
    assert.deepEqual(cgroups().filter((path) => !before.includes(path) && safeReaddir(path).length === 0), []);
  });

  it('refuses options that it does not have', () => {
    const r = doctor(['--nonsense']);
    assert.equal(r.status, 2);
    assert.match(r.stdout + r.stderr, /bunker doctor/);
  });
});
