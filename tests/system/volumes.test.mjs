// Volumes: named directories with a limit, mounted into one sandbox or many.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Server, safeReaddir, until } from '../lib/server.mjs';
import { assertRefused, finish, killServer } from './support.mjs';

const isRoot = process.getuid() === 0;
const KEY_B = 'bnk_bbbbbbbbbbbbbbbbbbbbbbbb';

for (const [pool, args] of [['in a btrfs pool', []], ['in plain directories', ['--disk-pool', 'directory']]])
  describe(`volumes ${pool}`, { skip: !isRoot && 'needs root', timeout: 120000 }, () => {
    const limited = pool.includes('btrfs');
    let server;
    const make = (body) => server.request('POST', '/v1/volumes', body);
    const withVolume = (path, more = {}) => server.create({ volumes: [{ volume: 'shared', path, ...more }] });
    const drop = (...boxes) => Promise.all(boxes.map((box) => server.request('DELETE', `/v1/sandboxes/${box.id}`)));
    before(async () => {
      server = await Server.start({ args: ['--pool', '1', '--api-key', `b=${KEY_B}`, ...args] });
    });
    after(() => finish(server));

    it('are made, listed and found by id and name', async () => {
      const made = await make({ name: 'shared', ...(limited && { size: '32Mi' }) });
      assert.equal(made.status, 201, made.text);
      assert.deepEqual([made.json.name, made.json.status, made.json.sandboxes, made.json.size], ['shared', 'ready', 0, limited ? '32Mi' : undefined]);
      assert.deepEqual((await server.request('GET', '/v1/volumes')).json.volumes, [made.json]);
      for (const ref of ['shared', made.json.id]) assert.deepEqual((await server.request('GET', `/v1/volumes/${ref}`)).json, made.json);
    });

    it('share their files between sandboxes, whoever has them', async () => {
      const a = await withVolume('/data'), b = await withVolume('/home/user/deep/er');
      assert.deepEqual(a.volumes, [{ volume: (await server.request('GET', '/v1/volumes/shared')).json.id, path: '/data', readOnly: false }]);
      assert.equal((await server.exec(a.id, 'echo hello > /data/f && mkdir /data/d && ls -ld /data | cut -d" " -f3')).stdout, 'user\n');
      assert.equal((await server.exec(b.id, 'cat deep/er/f; echo more >> deep/er/f; stat -c "%U %u" deep/er/f; stat -c "%U" deep')).stdout, 'hello\nuser 1000\nroot\n');
      assert.equal((await server.exec(a.id, 'cat /data/f')).stdout, 'hello\nmore\n');
      assert.equal((await server.exec(a.id, { command: 'echo root > /data/r && stat -c %u /data/r', user: 'root' })).stdout, '0\n');
      assert.equal((await server.request('GET', '/v1/volumes/shared')).json.sandboxes, 2);
      await drop(a, b);
      const c = await withVolume('/opt/later');
      assert.equal((await server.exec(c.id, 'cat /opt/later/f')).stdout, 'hello\nmore\n', 'they outlive their sandboxes');
      await drop(c);
    });

    it('can be mounted read-only', async () => {
      const box = await withVolume('/data', { readOnly: true });
      const out = await server.exec(box.id, { command: 'cat /data/f; echo x > /data/x; rm /data/f; chmod 777 /data', user: 'root' });
      assert.equal(out.stdout, 'hello\nmore\n');
      assert.equal(out.stderr.match(/Read-only file system/g).length, 3, out.stderr);
      await drop(box);
    });

    it('end at their own limit', { skip: !limited && 'a pool of directories has no limits' }, async () => {
      const box = await withVolume('/data');
      const out = await server.exec(box.id, 'dd if=/dev/zero of=/data/big bs=1M count=100 2>&1; dd if=/dev/zero of=own bs=1M count=100 2>&1; rm /data/big');
      assert.equal(out.stdout.match(/Disk quota exceeded/g).length, 1, out.stdout);
      await drop(box);
    });

    it('come back with a pause, a restore and a fork', async () => {
      const box = await withVolume('/data');
      const path = `/v1/sandboxes/${box.id}`;
      await server.request('POST', `${path}/pause`, { memory: false });
      await server.request('POST', `${path}/resume`);
      assert.equal((await server.exec(box.id, 'head -1 /data/f')).stdout, 'hello\n');
      await server.request('POST', `${path}/checkpoints`, { name: 'c' });
      await server.exec(box.id, 'echo after > /data/after');
      await server.request('POST', `${path}/checkpoints/c/restore`);
      assert.equal((await server.exec(box.id, 'cat /data/after')).stdout, 'after\n', 'a volume is not part of a checkpoint');
      const fork = (await server.request('POST', `${path}/fork`)).json.sandboxes[0];
      assert.equal((await server.exec(fork.id, 'cat /data/after')).stdout, 'after\n');
      assert.deepEqual((await server.request('GET', `${path}/diff`)).json.changes.map((c) => c.path), ['/data']);
      await drop(box, fork);
    });

    it('survive a kill -9 of everything, with their mounts', async () => {
      const box = await withVolume('/data');
      await killServer(server);
      await server.launch();
      assert.equal((await server.exec(box.id, 'head -1 /data/f; echo still > /data/still')).stdout, 'hello\n');
      assert.equal((await server.request('GET', '/v1/volumes/shared')).json.sandboxes, 1);
      assertRefused(await server.request('DELETE', '/v1/volumes/shared'), 409, 'in_use');
      await drop(box);
    });

    it('cannot be led elsewhere by what a disk holds', async () => {
      const host = mkdtempSync('/tmp/bunker-volume-');
      writeFileSync(`${host}/canary`, 'host');
      const box = await withVolume('/mnt/v');
      const path = `/v1/sandboxes/${box.id}`;
      for (const trick of ['umount /mnt/v 2>/dev/null; rm -rf /mnt; ln -s /proc /mnt', 'rm -rf /mnt; mkdir /mnt; ln -s /etc /mnt/v', 'rm -rf /mnt; echo file > /mnt']) {
        await server.request('POST', `${path}/pause`, { memory: false });
        const helper = await server.request('POST', `${path}/snapshots`, { name: 'trick' });
        const twin = await server.create({ snapshot: helper.json.id });
        await server.exec(twin.id, { command: trick, user: 'root' });
        const tricky = (await server.request('POST', `/v1/sandboxes/${twin.id}/snapshots`, {})).json;
        const answer = await server.request('POST', '/v1/sandboxes', { snapshot: tricky.id, volumes: [{ volume: 'shared', path: '/mnt/v' }] });
        assertRefused(answer, 500, 'boot_failed');
        assert.match(answer.json.error.message, /mounting the volumes failed/);
        await drop(twin);
        for (const s of [helper.json.id, tricky.id]) assert.equal((await server.request('DELETE', `/v1/snapshots/${s}`)).status, 204);
      }
      server.log.text = server.log.text.replace(/.*(boot failed|request failed).*\n/g, '');
      rmSync(host, { recursive: true });
      await drop(box);
    });

    it('get no subvolumes from inside, which no limit would know', { skip: !limited && 'a pool of directories has no limits' }, async () => {
      const box = await withVolume('/data');
      const create = `import fcntl, os, struct
fd = os.open('/data', os.O_RDONLY)
for request in (0x5000940e, 0x50009401, 0x50009418):
    try:
        fcntl.ioctl(fd, request, bytearray(struct.pack('q4088s', 0, b'sub')))
        print('made')
    except OSError as e:
        print(e.errno)
a = os.open('/data/f', os.O_RDONLY); b = os.open('/data/clone', os.O_RDWR | os.O_CREAT)
fcntl.ioctl(b, 0x40049409, a)
print(os.path.getsize('/data/clone'))`;
      const out = await server.exec(box.id, { command: ['python3', '-c', create], user: 'root' });
      assert.equal(out.stdout, '1\n1\n1\n11\n', out.stderr);
      await drop(box);
    });

    it('refuse what makes no sense', async () => {
      assertRefused(await make({ name: 'shared' }), 409, 'name_taken', 'name');
      assertRefused(await make({ name: 'a b' }), 400, 'invalid_field', 'name');
      assertRefused(await make({ name: '../x' }), 400, 'invalid_field', 'name');
      assertRefused(await make({}), 400, 'missing_field', 'name');
      if (limited) assertRefused(await make({ name: 'big', size: '2Ti' }), 400, 'invalid_field', 'size');
      else assertRefused(await make({ name: 'big', size: '1Gi' }), 503, 'unavailable', 'size');
      const refused = async (volumes, status, code, field) => assertRefused(await server.request('POST', '/v1/sandboxes', { volumes }), status, code, field);
      for (const path of ['data', '/', '/a/../b', '/a//b', '/a/', '/./a', '/proc/x', '/dev', '/sys/fs', '/a b', '/a\n', `/${'x'.repeat(130)}`]) await refused([{ volume: 'shared', path }], 400, 'invalid_field', 'volumes[0]');
      await refused([{ volume: 'none', path: '/a' }], 404, 'not_found', 'volumes[0]');
      await refused([{ volume: 'shared' }], 400, 'missing_field', 'volumes[0].path');
      await refused([{ volume: 'shared', path: '/a' }, { volume: 'shared', path: '/a' }], 400, 'invalid_field', 'volumes[1]');
      await refused(Array.from({ length: 9 }, (_, i) => ({ volume: 'shared', path: `/v${i}` })), 400, 'invalid_field', 'volumes');
    });

    it('are as good as absent for others', async () => {
      const b = (method, path, body) => server.request(method, path, body, { key: KEY_B });
      const { id } = (await server.request('GET', '/v1/volumes/shared')).json;
      for (const ref of ['shared', id]) {
        assert.equal((await b('GET', `/v1/volumes/${ref}`)).status, 404);
        assert.equal((await b('DELETE', `/v1/volumes/${ref}`)).status, 404);
        assertRefused(await b('POST', '/v1/sandboxes', { volumes: [{ volume: ref, path: '/a' }] }), 404, 'not_found', 'volumes[0]');
      }
      assert.deepEqual((await b('GET', '/v1/volumes')).json.volumes, []);
    });

    it('are deleted with their files', async () => {
      assert.equal((await server.request('DELETE', '/v1/volumes/shared')).status, 204);
      assertRefused(await server.request('GET', '/v1/volumes/shared'), 404, 'not_found');
      await until('its disk is gone', () => safeReaddir(server.disks('volumes')).length === 0);
    });
  });
