// The kinds of hosts: limits on v2, on v1, and hybrid. What this machine is not is skipped, with the reason.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { BUNKER } from '../lib/server.mjs';

const unified = existsSync('/sys/fs/cgroup/unified/cgroup.procs');
const pure = existsSync('/sys/fs/cgroup/cgroup.controllers');

function doctor(command, args) {
  const result = spawnSync(command, [...args, 'doctor', '--json', '--data', '/tmp/bunker-test-cgroups'], { encoding: 'utf8' });
  const checks = JSON.parse(result.stdout).checks;
  return (name) => checks.find((check) => check.name === name);
}

describe('a sandbox boots, with its limits', () => {
  it('on a hybrid host', { skip: !unified && 'this host has no /sys/fs/cgroup/unified' }, () => {
    const check = doctor(BUNKER, []);
    assert.match(check('cgroups').detail, /^hybrid/);
    assert.equal(check('sandbox').ok, true, check('sandbox').detail);
  });

  it('where only v1 is mounted', { skip: !unified && 'this host has no v1 hierarchies beside v2' }, () => {
    const check = doctor('unshare', ['-m', 'sh', '-c', 'umount /sys/fs/cgroup/unified && exec "$0" "$@"', BUNKER]);
    assert.match(check('cgroups').detail, /^v1/);
    assert.equal(check('sandbox').ok, true, check('sandbox').detail);
  });

  it('where everything is on v2', { skip: !pure && 'the controllers of this host are on v1; a v2 host is needed to try it' }, () => {
    assert.match(readFileSync('/sys/fs/cgroup/cgroup.controllers', 'utf8'), /memory/);
    const check = doctor(BUNKER, []);
    assert.match(check('cgroups').detail, /^v2/);
    assert.equal(check('sandbox').ok, true, check('sandbox').detail);
  });
});
