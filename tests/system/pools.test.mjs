// What disks are on: a pool file that grows, a btrfs of the host, file systems with and without shared copies.
import { afterEach, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Server, safeReaddir, until } from '../lib/server.mjs';
import { assertRefused, finish } from './support.mjs';

const isRoot = process.getuid() === 0;
const sh = (command) => execFileSync('sh', ['-c', command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const kernelHas = (type) => spawnSync('sh', ['-c', `grep -qw ${type} /proc/filesystems || modprobe ${type}`]).status === 0;
const loops = (path) => sh('losetup -a').split('\n').filter((line) => line.includes(path));

/** A file system of its own kind, in a file, for a server's data. */
function mountNew(make, size = '1G') {
  const place = mkdtempSync(join(process.env.BUNKER_TEST_TMP ?? '/tmp', 'bunker-fs-'));
  sh(`chmod 711 ${place}; truncate -s ${size} ${place}/image; ${make} ${place}/image; mkdir ${place}/fs; mount -o loop ${place}/image ${place}/fs; chmod 711 ${place}/fs`);
  return place;
}

const unmount = async (place) => {
  await until('nobody uses it any more', () => spawnSync('umount', [join(place, 'fs')]).status === 0);
  rmSync(place, { recursive: true });
};

/** Copies in all directions: a checkpoint and its restore, a fork, a snapshot and what is made of it. */
async function copiesWork(server) {
  const box = await server.create();
  const path = `/v1/sandboxes/${box.id}`;
  const post = async (where, body, status = 201) => {
    const answer = await server.request('POST', where, body);
    assert.equal(answer.status, status, answer.text);
    return answer.json;
  };
  const marks = async (id) => (await server.exec(id, 'cat mark; sha256sum -c --quiet sums && echo whole')).stdout;
  await server.exec(box.id, 'echo one > mark; head -c 3000000 /dev/urandom > blob; sha256sum blob > sums');
  await post(`${path}/checkpoints`, { name: 'one' });
  await server.exec(box.id, 'echo two > mark; echo x >> blob');
  const { sandboxes: [fork] } = await post(`${path}/fork`, { count: 1 });
  const snapshot = await post(`${path}/snapshots`, { name: 'two' });
  await post(`${path}/checkpoints/one/restore`, undefined, 200);
  assert.equal(await marks(box.id), 'one\nwhole\n');
  assert.equal((await server.exec(fork.id, 'cat mark')).stdout, 'two\n');
  const made = await server.create({ snapshot: snapshot.id });
  assert.equal((await server.exec(made.id, 'cat mark')).stdout, 'two\n');
  await server.crash();
  await server.launch();
  assert.equal(await marks(box.id), 'one\nwhole\n');
  for (const id of [box.id, fork.id, made.id]) assert.equal((await server.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
  assert.equal((await server.request('DELETE', `/v1/snapshots/${snapshot.id}`)).status, 204);
  const left = () => ['boxes', 'checkpoints', 'snapshots', 'trash'].flatMap((kind) => safeReaddir(server.disks(kind)));
  await until('nothing is left', () => left().length === 0);
}

describe('pools', { skip: !isRoot && 'needs root', timeout: 120000 }, () => {
  let server, place;
  const start = async (options) => (server = await Server.start({ ...options, args: ['--pool', '0', ...(options.args ?? [])] }));
  afterEach(async () => {
    const [ended, used] = [server, place];
    server = place = undefined;
    try {
      if (ended) await finish(ended);
    } finally {
      if (used) await unmount(used);
    }
  });

  it('grow while the server runs, and what was there before stays', async () => {
    await start({ args: ['--disk-pool', 'loop', '--disk-pool-size', '256Mi', '--max-disk-pool-size', '1200Mi', '--disk', '800Mi'] });
    const box = await server.create();
    await server.exec(box.id, 'echo kept > mark');
    await until('the file has grown', () => statSync(join(server.data, 'disks.btrfs')).size === 1200 << 20, 30000);
    const filled = await until('there is room', async () => {
      const r = await server.exec(box.id, 'fallocate -l 600M big && cat mark && stat -c %s big');
      return r.exitCode === 0 && r.stdout;
    });
    assert.equal(filled, `kept\n${600 << 20}\n`);
    await server.crash();
    await server.launch();
    assert.equal((await server.exec(box.id, 'cat mark; stat -c %s big')).stdout, filled);
    assert.equal(loops(server.data).length, 1);
  });

  it('are the data directory itself, where that is on btrfs', { skip: !has('mkfs.btrfs') && 'there is no mkfs.btrfs' }, async () => {
    place = mountNew('mkfs.btrfs -q');
    await start({ data: join(place, 'fs', 'data') });
    assert.equal(existsSync(join(server.data, 'disks.btrfs')), false);
    assert.equal(loops(server.data).length, 0, 'no loop device of ours');
    assertRefused(await server.request('POST', '/v1/sandboxes', { resources: { disk: '64Mi' } }), 503, 'unavailable', 'resources.disk');
    await copiesWork(server);
    await server.stop();
    sh(`btrfs quota enable --simple ${place}/fs 2>/dev/null || btrfs quota enable ${place}/fs`);
    await server.launch();
    const box = await server.create({ resources: { disk: '64Mi' } });
    const filled = await server.exec(box.id, 'head -c 100000000 /dev/zero > big; sync; stat -c %s big');
    assert.match(filled.stderr, /quota/i);
    assert.ok(Number(filled.stdout) <= 64 << 20, filled.stdout);
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    await until('its subvolume is gone', () => sh(`btrfs subvolume list ${place}/fs`).trim() === '');
  });

  const noXfs = (!has('mkfs.xfs') && 'there is no mkfs.xfs (apt-get install xfsprogs)') || (!kernelHas('xfs') && 'this kernel has no XFS');
  it('share what copies have in common, where the file system can', { skip: noXfs }, async () => {
    place = mountNew('mkfs.xfs -q -m reflink=1');
    await start({ data: join(place, 'fs', 'data'), args: ['--disk-pool', 'directory'] });
    const used = () => Number(sh(`sync -f ${place}/fs; df --output=used -B1 ${place}/fs | tail -n 1`));
    const box = await server.create();
    await server.exec(box.id, 'head -c 60000000 /dev/urandom > big; sync');
    const before = used();
    for (const name of ['a', 'b', 'c']) assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/checkpoints`, { name })).status, 201);
    assert.ok(used() - before < 30000000, `three copies of 60 MB took ${used() - before} bytes`);
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    await copiesWork(server);
  });

  it('are copied byte by byte, where it cannot', { skip: !has('mkfs.ext4') && 'there is no mkfs.ext4' }, async () => {
    place = mountNew('mkfs.ext4 -q -O ^has_journal');
    await start({ data: join(place, 'fs', 'data'), args: ['--disk-pool', 'directory'] });
    await copiesWork(server);
  });
});
