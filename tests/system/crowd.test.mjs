// A sandbox costs the same however many others there are: what the kernel does for all of them at once is asked for as seldom as possible.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { Server, childrenOf, until } from '../lib/server.mjs';
import { cgroupsOf, finish, initPid, list, metric, remove, sandboxesInKernel } from './support.mjs';

let server;
before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
});
after(() => finish(server, { killed: true }));

const boxes = (count) => Promise.all(Array.from({ length: count }, () => server.create()));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const state = (pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').match(/\) (\S)/)[1];

describe('one of many sandboxes', { timeout: 120000 }, () => {
  it('has uids that the kernel looks for in a row of its own', async () => {
    const made = await boxes(8);
    const uids = made.map(({ id }) => Math.max(...cgroupsOf(server).map((dir) => statSync(join(dir, id)).uid)));
    assert.equal(new Set(uids.map((uid) => ((uid >>> 7) + uid) % 128)).size, 8, `uids ${uids}`);
    await Promise.all(made.map(({ id }) => remove(server, id)));
  });

  // Each write of a quota walks through all cgroups of the host.
  it('has no quota around its own where the host has no more cores', async (t) => {
    const cores = cpus().length;
    const dir = cgroupsOf(server).find((path) => existsSync(join(path, 'cpu.cfs_quota_us')));
    if (!dir) return t.skip('the controller of processor time is on v2');
    const quotas = async (host, cpu) => {
      const { id } = await host.create({ resources: { cpu } });
      const own = cgroupsOf(host).map((path) => join(path, id)).find((path) => existsSync(join(path, 'cpu.cfs_quota_us')));
      const quota = (path) => ['quota', 'period'].map((name) => Number(readFileSync(join(own, path, `cpu.cfs_${name}_us`), 'utf8')));
      const found = [quota('box'), quota('.')];
      await remove(host, id);
      return found;
    };
    const around = (millicores) => [millicores < 1000 * cores ? millicores * 100 : -1, 100000];
    assert.deepEqual(await quotas(server, '1000m'), [[20000, 20000], around(2000)]);
    assert.deepEqual(await quotas(server, '500m'), [[10000, 20000], around(1500)]);
    assert.deepEqual(await quotas(server, '50m'), [[5000, 100000], around(1050)]);
    // One that is pooled is given other limits while it lives, larger and smaller ones.
    const pooled = await Server.start({ args: ['--pool', '1', '--cpu', '100m'] });
    try {
      const limited = 1100 < 1000 * cores;
      const wait = () => until('one is pooled', async () => (await metric(pooled, 'sandboxes_pooled')) === 1);
      await wait();
      assert.deepEqual(await quotas(pooled, '1500m'), [[30000, 20000], limited ? [250000, 100000] : around(2500)]);
      await wait();
      assert.deepEqual(await quotas(pooled, '50m'), [[5000, 100000], around(1050)]);
    } finally {
      await finish(pooled);
    }
  });

  // Only on v1 can a cgroup be renamed.
  it('has the processor cgroup of one that is gone, with its own quota', async (t) => {
    const dir = cgroupsOf(server).find((path) => existsSync(join(path, 'cpu.cfs_quota_us')));
    if (!dir) return t.skip('the controller of processor time is on v2');
    const spares = () => readdirSync(dir).filter((name) => name.startsWith('spare-'));
    const inode = (name) => statSync(join(dir, name)).ino;
    const quota = (name) => ['quota', 'period'].map((file) => Number(readFileSync(join(dir, name, 'box', `cpu.cfs_${file}_us`), 'utf8')));
    const first = await server.create({ resources: { cpu: '500m' } });
    const before = new Set([inode(first.id), ...spares().map(inode)]);
    await remove(server, first.id);
    await until('it is kept', () => spares().length > 0);
    const second = await server.create({ resources: { cpu: '50m' } });
    assert.ok(before.has(inode(second.id)), 'a new one was made');
    assert.deepEqual(quota(second.id), [5000, 100000]);
    assert.deepEqual((await server.exec(second.id, 'echo fine')).stdout, 'fine\n');
    await remove(server, second.id);
    const many = await boxes(20);
    await Promise.all(many.map(({ id }) => remove(server, id)));
    await until('nothing else is left', () => sandboxesInKernel(server).length === 0);
    assert.ok(spares().length <= 16, `${spares().length} are kept`);
    await server.stop();
    assert.ok(!existsSync(dir), 'a server without sandboxes leaves cgroups');
    await server.launch();
  });

  // Unmounting commits the pool, for which everybody waits who makes a disk.
  it('is unmounted with others that are deleted at about the same time', async (t) => {
    const commits = () => {
      const stats = readdirSync('/sys/fs/btrfs').map((name) => join('/sys/fs/btrfs', name, 'commit_stats')).filter(existsSync);
      return new Map(stats.map((path) => [path, Number(readFileSync(path, 'utf8').match(/commits (\d+)/)[1])]));
    };
    const pool = new Set(commits().keys());
    const own = await Server.start({ args: ['--pool', '0'] });
    try {
      const added = [...commits().keys()].filter((path) => !pool.has(path));
      if (added.length !== 1) return t.skip('the pool is no btrfs of its own, or another server has just begun');
      const made = await Promise.all(Array.from({ length: 12 }, () => own.create()));
      await pause(1500);
      const before = commits().get(added[0]);
      for (const { id } of made) {
        await remove(own, id);
        await pause(30);
      }
      await until('their disks are gone', () => readdirSync(own.disks('trash')).length === 0);
      await pause(1500);
      const count = commits().get(added[0]) - before;
      t.diagnostic(`${count} commits for 12 sandboxes`);
      assert.ok(count <= 6, `${count} commits for 12 sandboxes`);
    } finally {
      await finish(own);
    }
  });

  // The kernel names one of them.
  it('is buried with all others that die in the same moment', async () => {
    const made = await boxes(24);
    const inits = made.map(({ id }) => initPid(server, id));
    for (const pid of inits) process.kill(pid, 'SIGKILL');
    await until('none of them is left', () => !childrenOf(server.wardenPid).some((pid) => inits.includes(pid) || state(pid) === 'Z'));
    await Promise.all(made.map(({ id }) => remove(server, id)));
    await until('nothing of them is in the kernel', () => sandboxesInKernel(server).length === 0);
  });

  it('is looked at once when the server starts again, and not thawed when it does not stand', async (t) => {
    const calls = async () => {
      await server.crash();
      await server.launch();
      await until('all answer', async () => (await list(server)).every((box) => box.status === 'idle'));
      const text = readFileSync(`/proc/${server.wardenPid}/io`, 'utf8');
      return ['syscr', 'syscw'].map((name) => Number(text.match(`${name}: (\\d+)`)[1]));
    };
    await boxes(2);
    const few = await calls();
    await boxes(20);
    const many = await calls();
    assert.equal(sandboxesInKernel(server).length, 22);
    const [reads, writes] = many.map((count, i) => (count - few[i]) / 20);
    t.diagnostic(`${reads} reads and ${writes} writes for each sandbox`);
    assert.ok(writes < 0.5, `the warden wrote ${writes} times for each sandbox`);
    assert.ok(reads < 8, `the warden read ${reads} times for each sandbox`);
  });
});
