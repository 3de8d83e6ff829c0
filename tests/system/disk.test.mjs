// Disks: the pool they are in, their limits, and what a dead keeper leaves.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BUNKER, Server, childrenOf, commandName, dataDirectory, safeReaddir, until } from '../lib/server.mjs';
import { assertRefused, finish, killServer } from './support.mjs';

const isRoot = process.getuid() === 0;
const loops = (data) => spawnSync('losetup', ['-a'], { encoding: 'utf8' }).stdout.split('\n').filter((line) => line.includes(data));
const named = (server, name) => childrenOf(server.wardenPid).find((pid) => commandName(pid) === name);

describe('disks', { skip: !isRoot && 'needs root', timeout: 120000 }, () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '2'] });
  });
  after(() => finish(server));

  it('are in a sparse file with a btrfs, on one loop device that nobody else sees', () => {
    assert.equal(loops(server.data).length, 1);
    const image = statSync(join(server.data, 'disks.btrfs'));
    assert.ok(image.size >= 1 << 30);
    assert.ok(image.blocks * 512 < image.size / 4, 'it takes only what is written');
    assert.deepEqual(safeReaddir(join(server.data, 'disks')), [], 'the mount is in the namespace of the warden');
    assert.ok(safeReaddir(server.disks('boxes')).length >= 1);
  });

  it('end at their limit with an error inside, and nothing happens outside', async () => {
    const box = await server.create({ resources: { disk: '64Mi' } });
    const other = await server.create();
    const filled = await server.exec(box.id, 'dd if=/dev/zero of=big bs=1M count=200 2>&1; stat -c %s big');
    assert.match(filled.stdout, /Disk quota exceeded/);
    const size = Number(filled.stdout.trim().split('\n').pop());
    assert.ok(size > (56 << 20) && size <= 64 << 20, `it got ${size}`);
    for (const length of [4000, 300000, 8000000]) {
      const write = await server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: 'true', files: [{ path: '/tmp/f', content: 'x'.repeat(length) }] });
      assertRefused(write, 507, 'no_space', 'files[0]');
    }
    assert.equal((await server.exec(other.id, 'dd if=/dev/zero of=big bs=1M count=200 2>&1 && rm big')).exitCode, 0);
    assert.equal((await server.exec(box.id, 'rm big && dd if=/dev/zero of=big bs=1M count=32 2>&1')).exitCode, 0, 'what is removed can be used again');
  });

  it('count small files and their names, too', async () => {
    const box = await server.create({ resources: { disk: '16Mi' } });
    const out = await server.exec(box.id, 'mkdir d && cd d && i=0; while true > $i-$(printf %0200d 7) 2>/dev/null; do i=$((i+1)); [ $i -gt 60000 ] && break; done; echo $i');
    const made = Number(out.stdout);
    assert.ok(made > 1000 && made < 60000, `${made} files`);
  });

  it('have no limit above the maximum', async () => {
    const answer = await server.request('POST', '/v1/sandboxes', { resources: { disk: '2Ti' } });
    assertRefused(answer, 400, 'invalid_field', 'resources.disk');
    assertRefused(await server.request('POST', '/v1/sandboxes', { resources: { disk: '1Ki' } }), 400, 'invalid_field', 'resources.disk');
  });

  it('are made again by a new keeper when the old one is killed', async () => {
    const keeper = named(server, 'bunker-keeper');
    process.kill(keeper, 'SIGKILL');
    const boxes = await Promise.all([1, 2, 3, 4, 5].map(() => server.create({ resources: { disk: '32Mi' } })));
    assert.equal(boxes.length, 5);
    const successor = await until('there is another', () => named(server, 'bunker-keeper'));
    assert.notEqual(successor, keeper);
    assert.equal((await server.exec(boxes[0].id, 'dd if=/dev/zero of=big bs=1M count=99 2>/dev/null; echo $?')).stdout, '1\n');
    server.log.text = server.log.text.replace(/.*one of the disks' processes died.*\n/g, '');
  });

  it('are swept again by a new sweeper when the old one is killed', async () => {
    const box = await server.create();
    process.kill(named(server, 'bunker-sweeper'), 'SIGKILL');
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    await until('the trash is empty', () => named(server, 'bunker-sweeper') && safeReaddir(server.disks('trash')).length === 0);
    server.log.text = server.log.text.replace(/.*one of the disks' processes died.*\n/g, '');
  });

  it('keep their files and their one loop device when the server is killed and started again', async () => {
    const box = await server.create();
    await server.exec(box.id, 'echo kept > note');
    await killServer(server);
    assert.equal(loops(server.data).length, 1, 'the sandboxes stand on it');
    await server.launch();
    assert.equal(loops(server.data).length, 1);
    assert.equal((await server.exec(box.id, 'cat note')).stdout, 'kept\n');
  });

  it('leave no loop device when the server and its sandboxes are gone', async () => {
    const other = await Server.start({ args: ['--pool', '1'] });
    await other.create();
    await finish(other);
    await until('the loop device is gone', () => loops(other.data).length === 0);
  });
});

describe('disks in plain directories', { skip: !isRoot && 'needs root', timeout: 60000 }, () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '1', '--disk-pool', 'directory'] });
  });
  after(() => finish(server));

  it('cannot be limited, and say so', async () => {
    const box = await server.create();
    assert.equal('disk' in box.resources, false);
    const answer = await server.request('POST', '/v1/sandboxes', { resources: { disk: '1Gi' } });
    assertRefused(answer, 503, 'unavailable', 'resources.disk');
    assert.equal(loops(server.data).length, 0);
  });

  it('stay there once they are there', async () => {
    const box = await server.create();
    await server.exec(box.id, 'echo kept > note');
    await killServer(server);
    server.args = ['--pool', '1'];
    await server.launch();
    assert.equal((await server.exec(box.id, 'cat note')).stdout, 'kept\n');
    assert.equal(existsSync(join(server.data, 'disks.btrfs')), false);
  });
});

describe('a server that must have a pool', { skip: !isRoot && 'needs root', timeout: 60000 }, () => {
  it('does not start on a pool file that cannot be mounted, and leaves it alone', () => {
    const data = dataDirectory();
    const image = join(data, 'disks.btrfs');
    spawnSync('dd', ['if=/dev/urandom', `of=${image}`, 'bs=1M', 'count=4']);
    const before = readFileSync(image);
    const run = spawnSync(BUNKER, ['serve', '--data', data, '--listen', '127.0.0.1:0'], { encoding: 'utf8', timeout: 20000 });
    assert.equal(run.status, 1, run.stderr);
    assert.match(run.stderr, /cannot mount the pool file/);
    assert.ok(readFileSync(image).equals(before));
    assert.equal(loops(data).length, 0);
    rmSync(data, { recursive: true, force: true });
  });

  it('refuses a kind of pool that does not exist', () => {
    const run = spawnSync(BUNKER, ['serve', '--disk-pool', 'tape'], { encoding: 'utf8', timeout: 20000 });
    assert.equal(run.status, 2);
    assert.match(run.stderr, /auto, loop or directory/);
  });
});
