// Volume: made, found, mounted, and worked on without a sandbox, as users of E2B's SDK do it.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { AuthenticationError, Sandbox, SandboxError, Volume, VolumeError, VolumeFileType, VolumeNotFoundError, VolumePathNotFoundError } from 'e2b';
import { safeReaddir } from '../../lib/server.mjs';
import { failure, optionsFor, startServer, until } from './support.mjs';

const OTHER = 'bnk_00000000000000000000000000000000000000ff';
const LIMIT = 48 << 20;
const server = await startServer({ args: ['--pool', '0', '--disk', `${LIMIT}`, '--api-key', `other=${OTHER}`] });
const NOBODY = 'a'.repeat(20);

/** Sockets of running inits: of the sandboxes that users see, and of those that they do not. */
const inits = () => safeReaddir(join(server.data, 'run')).filter((name) => name.endsWith('.sock') && name !== 'egress.sock');
const safeRead = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has gone meanwhile
  }
};
const content = (volume, path, { method = 'GET', token = volume.token, ...init } = {}) =>
  fetch(`${server.url}/volumecontent/${volume.volumeId}/${path}`, { method, headers: token ? { authorization: `Bearer ${token}` } : {}, ...init });

let made = 0;
/** A volume for one test, destroyed behind it. */
async function withVolume(work) {
  const volume = await Volume.create(`volume-${++made}`);
  try {
    await work(volume);
  } finally {
    await Volume.destroy(volume.volumeId);
  }
}

describe('Volume', () => {
  it('is created, listed, found and destroyed', async () => {
    const volume = await Volume.create('first');
    assert.match(volume.volumeId, /^[a-z0-9]{20}$/);
    assert.equal(volume.name, 'first');
    assert.ok(volume.token.length > 40);
    assert.deepEqual(await Volume.list(), [{ volumeId: volume.volumeId, name: 'first' }]);
    const info = await Volume.getInfo(volume.volumeId);
    assert.deepEqual([info.volumeId, info.name, info.token], [volume.volumeId, 'first', volume.token]);
    const again = await Volume.connect(volume.volumeId);
    assert.deepEqual([again.volumeId, again.name, again.token], [volume.volumeId, 'first', volume.token]);
    assert.equal((await server.request('GET', '/v1/volumes')).json.volumes[0].id, volume.volumeId, 'the native API has the same');
    assert.equal(await Volume.destroy(volume.volumeId), true);
    assert.equal(await Volume.destroy(volume.volumeId), false);
    assert.deepEqual(await Volume.list(), []);
  });

  it('is refused by name and status', async () => {
    await withVolume(async (volume) => {
      const taken = await failure(Volume.create(volume.name));
      assert.ok(taken instanceof VolumeError, String(taken));
      assert.match(taken.message, /^409: .*exists already/);
      assert.match((await failure(Volume.create('no/slash'))).message, /^400: /);
      assert.match((await failure(Volume.create('x'.repeat(64)))).message, /^400: /);
    });
    for (const call of [() => Volume.getInfo(NOBODY), () => Volume.connect(NOBODY), () => Volume.connect('no-such-name')])
      assert.ok((await failure(call())) instanceof VolumeNotFoundError, String(call));
  });

  it('is its tenant\'s alone', async () => {
    await withVolume(async (volume) => {
      const other = optionsFor(server, OTHER);
      assert.deepEqual(await Volume.list(other), []);
      assert.ok((await failure(Volume.getInfo(volume.volumeId, other))) instanceof VolumeNotFoundError);
      assert.equal(await Volume.destroy(volume.volumeId, other), false);
      const mounted = await failure(Sandbox.create({ ...other, volumeMounts: { '/data': volume } }));
      assert.equal(mounted.statusCode, 404, mounted.message);
      assert.ok((await failure(Volume.list({ apiKey: 'e2b_0000' }))) instanceof AuthenticationError);
    });
  });

  it('opens its content to its own token, and to nothing else', async () => {
    await withVolume(async (volume) => {
      await withVolume(async (second) => {
        await volume.writeFile('/secret', 'x');
        for (const token of [second.token, `${volume.token.slice(0, -1)}${volume.token.endsWith('0') ? 1 : 0}`, process.env.E2B_API_KEY, 'x', ''])
          assert.equal((await content(volume, 'file?path=/secret', { token })).status, 401, token);
        const error = await failure(volume.readFile('/secret', { token: second.token }));
        assert.ok(error instanceof AuthenticationError, String(error));
        const sandbox = await Sandbox.create();
        assert.equal((await content(volume, 'file?path=/secret', { token: sandbox.envdAccessToken })).status, 401, 'of another kind');
        await sandbox.kill();
        assert.equal((await fetch(`${server.url}/volumes`, { headers: { authorization: `Bearer ${volume.token}` } })).status, 401, 'no key either');
      });
    });
  });
});

describe('volumeMounts', () => {
  it('share files between sandboxes that are there at once, and with the content calls', async () => {
    await withVolume(async (volume) => {
      const writer = await Sandbox.create({ volumeMounts: { '/mnt/data': volume } });
      const reader = await Sandbox.create({ volumeMounts: { '/home/user/in': volume.name } });
      assert.deepEqual((await writer.getInfo()).volumeMounts, [{ name: volume.name, path: '/mnt/data' }]);
      const listed = await Sandbox.list({ query: {} }).nextItems();
      assert.deepEqual(listed.find((s) => s.sandboxId === reader.sandboxId).volumeMounts, [{ name: volume.name, path: '/home/user/in' }]);
      await writer.files.write('/mnt/data/hello.txt', 'written by the writer');
      assert.equal(await reader.files.read('in/hello.txt'), 'written by the writer');
      assert.equal(await volume.readFile('/hello.txt'), 'written by the writer');
      await volume.writeFile('from-outside', 'written by nobody');
      assert.equal((await reader.commands.run('cat in/from-outside && echo more >> in/from-outside')).stdout, 'written by nobody', 'it is user\'s');
      const busy = await failure(Volume.destroy(volume.volumeId));
      assert.ok(busy instanceof VolumeError, String(busy));
      assert.match(busy.message, /^409: 2 sandboxes have this volume/);
      const [fork] = await reader.fork();
      assert.equal(await fork.files.read('in/hello.txt'), 'written by the writer', 'a fork has the same volume');
      const seen = [];
      const watch = await fork.files.watchDir('in', (event) => seen.push(event.name));
      await volume.writeFile('/news', 'x');
      await until('the change is seen inside', () => seen.includes('news'), 20000);
      await watch.stop();
      await Promise.all([writer.kill(), reader.kill(), fork.kill()]);
      const later = await Sandbox.create({ volumeMounts: { '/mnt/data': volume } });
      assert.equal(await later.files.read('/mnt/data/from-outside'), 'written by nobodymore\n', 'it outlives them');
      await later.kill();
    });
  });

  it('say what is wrong with them', async () => {
    await withVolume(async (volume) => {
      const refused = async (volumeMounts, status, message) => {
        const error = await failure(Sandbox.create({ volumeMounts }));
        assert.ok(error instanceof SandboxError, String(error));
        assert.equal(error.statusCode, status, error.message);
        assert.match(error.message, message);
      };
      await refused({ '/data': 'nobody' }, 404, /there is no volume 'nobody'/);
      await refused({ '/proc/x': volume }, 400, /path must be absolute/);
      await refused({ '../x': volume }, 400, /path must be absolute/);
      await refused(Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`/v${i}`, volume])), 400, /volumeMounts/);
      assert.equal((await server.request('GET', '/v1/sandboxes')).json.sandboxes.length, 0);
    });
  });
});

describe('content', () => {
  it('is written and read as text, bytes, blob and stream', async () => {
    await withVolume(async (volume) => {
      const entry = await volume.writeFile('/a.txt', 'žluť');
      assert.deepEqual([entry.name, entry.path, entry.type, entry.size, entry.uid, entry.gid, entry.mode], ['a.txt', '/a.txt', VolumeFileType.FILE, 6, 1000, 1000, 0o644]);
      for (const time of [entry.atime, entry.mtime, entry.ctime]) assert.ok(Math.abs(time - Date.now()) < 60000);
      assert.equal(await volume.readFile('a.txt'), 'žluť', 'a path begins at the root');
      assert.deepEqual(await volume.readFile('/a.txt', { format: 'bytes' }), new Uint8Array(Buffer.from('žluť')));
      assert.equal(await (await volume.readFile('/a.txt', { format: 'blob' })).text(), 'žluť');
      assert.equal(await new Response(await volume.readFile('/a.txt', { format: 'stream' })).text(), 'žluť');
      await volume.writeFile('/b', new Blob(['blob']));
      await volume.writeFile('/c', new Uint8Array([0, 255, 1]).buffer);
      await volume.writeFile('/d', new Blob(['streamed']).stream());
      assert.deepEqual([await volume.readFile('/b'), [...(await volume.readFile('/c', { format: 'bytes' }))], await volume.readFile('/d')], ['blob', [0, 255, 1], 'streamed']);
      await volume.writeFile('/empty', '');
      assert.equal(await volume.readFile('/empty'), '');
      assert.equal((await volume.readFile('/empty', { format: 'bytes' })).length, 0);
    });
  });

  it('is overwritten by force alone', async () => {
    await withVolume(async (volume) => {
      await volume.writeFile('/f', 'one', { uid: 7, gid: 8, mode: 0o600 });
      const error = await failure(volume.writeFile('/f', 'two'));
      assert.ok(error instanceof VolumeError && !(error instanceof VolumePathNotFoundError), String(error));
      assert.match(error.message, /^409: path '\/f' already exists/);
      assert.equal(await volume.readFile('/f'), 'one');
      const { uid, gid, mode } = await volume.getInfo('/f');
      assert.deepEqual([uid, gid, mode], [7, 8, 0o600]);
      assert.equal((await volume.writeFile('/f', 'two!', { force: true })).size, 4);
      assert.equal(await volume.readFile('/f'), 'two!');
      assert.ok((await failure(volume.writeFile('/no/such/file', 'x'))) instanceof VolumePathNotFoundError);
      await volume.writeFile('/no/such/file', 'x', { force: true });
      assert.equal(await volume.readFile('/no/such/file'), 'x');
      assert.match((await failure(volume.writeFile('/no', 'x', { force: true }))).message, /^400: /, 'a directory');
    });
  });

  it('has directories', async () => {
    await withVolume(async (volume) => {
      const dir = await volume.makeDir('/d', { uid: 1, gid: 2, mode: 0o750 });
      assert.deepEqual([dir.name, dir.path, dir.type, dir.uid, dir.gid, dir.mode], ['d', '/d', 'directory', 1, 2, 0o750]);
      assert.match((await failure(volume.makeDir('/d'))).message, /^409: /);
      assert.equal((await volume.makeDir('/d', { force: true })).uid, 1, 'it stays as it is');
      assert.ok((await failure(volume.makeDir('/x/y'))) instanceof VolumePathNotFoundError);
      await volume.makeDir('/x/y/z', { force: true });
      await volume.writeFile('/x/file', '12345');
      assert.match((await failure(volume.makeDir('/x/file', { force: true }))).message, /^409: /);
      const names = async (...args) => (await volume.list(...args)).map((e) => e.path);
      assert.deepEqual(await names('/'), ['/d', '/x']);
      assert.deepEqual(await names('/', { depth: 2 }), ['/d', '/x', '/x/file', '/x/y']);
      assert.deepEqual(await names('/', { depth: 9 }), ['/d', '/x', '/x/file', '/x/y', '/x/y/z']);
      assert.equal((await volume.list('/x'))[0].size, 5);
      assert.deepEqual(await names('/x/y/z'), []);
      assert.ok((await failure(volume.list('/nope'))) instanceof VolumePathNotFoundError);
      assert.match((await failure(volume.list('/x/file'))).message, /^400: /);
      assert.match((await failure(volume.readFile('/x'))).message, /^400: .*is a directory/);
      const root = await volume.getInfo('/');
      assert.deepEqual([root.path, root.type, root.uid], ['/', 'directory', 1000]);
    });
  });

  it('has metadata', async () => {
    await withVolume(async (volume) => {
      await volume.writeFile('/f', 'x');
      assert.equal((await volume.updateMetadata('/f', {})).mode, 0o644);
      assert.equal((await volume.updateMetadata('/f', { mode: 0o755 })).mode, 0o755);
      assert.deepEqual(await volume.updateMetadata('/f', { gid: 3 }).then((e) => [e.uid, e.gid]), [1000, 3]);
      assert.deepEqual(await volume.updateMetadata('/f', { uid: 4, gid: 5, mode: 0o600 }).then((e) => [e.uid, e.gid, e.mode]), [4, 5, 0o600]);
      assert.deepEqual(await volume.getInfo('/f').then((e) => [e.uid, e.gid, e.mode]), [4, 5, 0o600]);
      for (const bad of [{ uid: 65536 }, { mode: 0o10000 }, { gid: -1 }]) assert.match((await failure(volume.updateMetadata('/f', bad))).message, /^400: /, JSON.stringify(bad));
      assert.match((await failure(volume.writeFile('/g', 'x', { uid: 70000 }))).message, /^400: "uid"/);
      assert.equal(await volume.exists('/g'), false, 'nothing was written');
      assert.ok((await failure(volume.updateMetadata('/nope', { mode: 0o600 }))) instanceof VolumePathNotFoundError);
    });
  });

  it('is removed with all that is below', async () => {
    await withVolume(async (volume) => {
      await volume.writeFile('/d/e/f', 'x', { force: true });
      assert.equal(await volume.exists('/d/e/f'), true);
      await volume.remove('/d');
      assert.equal(await volume.exists('/d'), false);
      assert.ok((await failure(volume.remove('/d'))) instanceof VolumePathNotFoundError);
      for (const root of ['/', '', '/x/..', '../..']) assert.match((await failure(volume.remove(root))).message, /^400: .*root/);
    });
  });

  it('streams a large file both ways', async () => {
    await withVolume(async (volume) => {
      const block = Buffer.alloc(1 << 20, 'volume');
      const hash = createHash('sha256');
      let left = 32;
      const body = new ReadableStream({
        pull(controller) {
          if (left-- === 0) return controller.close();
          hash.update(block);
          controller.enqueue(new Uint8Array(block));
        },
      });
      assert.equal((await volume.writeFile('/big', body)).size, 32 << 20);
      const seen = createHash('sha256');
      for await (const part of await volume.readFile('/big', { format: 'stream' })) seen.update(part);
      assert.equal(seen.digest('hex'), hash.digest('hex'));
      const part = await content(volume, 'file?path=/big', { headers: { authorization: `Bearer ${volume.token}`, range: 'bytes=6-11' } });
      assert.deepEqual([part.status, await part.text()], [206, 'volume']);
    });
  });

  it('ends at the volume\'s limit', { skip: process.getuid() !== 0 }, async (t) => {
    await withVolume(async (volume) => {
      if (!(await server.request('GET', `/v1/volumes/${volume.volumeId}`)).json.size) return t.skip('this host has no quotas');
      const error = await failure(volume.writeFile('/too-big', new Uint8Array(LIMIT + (8 << 20)).buffer));
      assert.ok(error instanceof VolumeError, String(error));
      assert.match(error.message, /^507: /);
      await volume.remove('/too-big');
      await volume.writeFile('/small', 'fits');
    });
  });
});

describe('hostile content', () => {
  it('leads nowhere, by paths or by links', async () => {
    await withVolume(async (volume) => {
      await volume.makeDir('/sub');
      await volume.writeFile('/inside', 'inside');
      assert.equal(await volume.readFile('/../../inside'), 'inside', 'above the root is the root');
      assert.equal((await volume.getInfo('sub/../../../inside')).path, '/inside');
      const sandbox = await Sandbox.create({ volumeMounts: { '/v': volume } });
      await sandbox.commands.run(
        'cd /v && ln -s /etc/passwd abs && ln -s ../../../../etc up && ln -s /proc/self/root procs && ln -s loop loop && ln -s sub dir && ln -s /inside good && mkfifo fifo && echo deep > sub/deep',
      );
      await sandbox.kill();
      for (const path of ['/etc/passwd', '../etc/passwd', '/abs', '/up/passwd', '/procs/etc/passwd', '/volume/inside', '/proc/self/environ'])
        assert.ok((await failure(volume.readFile(path))) instanceof VolumePathNotFoundError, path);
      assert.equal(await volume.readFile('/good'), 'inside', 'a link is seen from the volume\'s root');
      assert.equal(await volume.readFile('/dir/deep'), 'deep\n');
      const link = await volume.getInfo('/abs');
      assert.deepEqual([link.type, link.target], ['symlink', '/etc/passwd']);
      assert.ok((await failure(volume.writeFile('/up/evil', 'x'))) instanceof VolumePathNotFoundError);
      assert.match((await failure(volume.readFile('/loop'))).message, /^400: /);
      assert.match((await failure(volume.readFile('/fifo'))).message, /^400: .*not a regular file/, 'nothing waits for a writer');
      assert.equal((await volume.getInfo('/fifo')).type, 'unknown');
      await volume.remove('/dir');
      assert.equal(await volume.readFile('/sub/deep'), 'deep\n', 'a link is removed, not what it leads to');
    });
  });

  it('gets a clear answer to what makes no sense', async () => {
    await withVolume(async (volume) => {
      const status = async (...args) => (await content(volume, ...args)).status;
      assert.equal(await status('path'), 400, 'no path');
      assert.equal(await status(`path?path=/${'x'.repeat(5000)}`), 400);
      assert.equal(await status('path?path=/%00'), 400);
      assert.equal(await status('dir?path=/&depth=x'), 400);
      assert.equal(await status('dir?path=/x&force=perhaps', { method: 'POST' }), 400);
      assert.equal(await status('file?path=/x', { method: 'PUT', body: 'text' }), 415);
      assert.equal(await status('nothing?path=/'), 404);
      assert.equal(await status('file?path=/x', { method: 'POST' }), 405);
      assert.deepEqual(await volume.list('/'), []);
    });
  });
});

describe('the sandbox behind content calls', () => {
  it('is one for all of them, is seen by nobody, and goes by itself', async () => {
    await withVolume(async (volume) => {
      await until('nobody is there', () => inits().length === 0, 20000);
      const written = await Promise.all(Array.from({ length: 30 }, (_, i) => volume.writeFile(`/f${i}`, `${i}`)));
      assert.equal(written.length, 30);
      assert.equal(inits().length, 1);
      assert.deepEqual(await Sandbox.list().nextItems(), []);
      assert.deepEqual((await server.request('GET', '/v1/sandboxes')).json.sandboxes, []);
      const [id] = inits()[0].split('.');
      assert.equal((await server.request('GET', `/v1/sandboxes/${id}`)).status, 404);
      assert.equal((await server.request('GET', `/v1/volumes/${volume.volumeId}`)).json.sandboxes, 0);
      await until('it goes by itself', () => inits().length === 0, 30000);
      assert.equal(await volume.readFile('/f7'), '7', 'and comes back');
    });
  });

  it('does not keep a volume from being destroyed, whatever is under way', async () => {
    const volume = await Volume.create('busy');
    let enqueue;
    const endless = new ReadableStream({
      start(controller) {
        enqueue = () => controller.enqueue(new Uint8Array(1024));
      },
    });
    enqueue();
    const upload = failure(volume.writeFile('/endless', endless));
    await until('the file is there', () => volume.exists('/endless'), 20000);
    assert.equal(await Volume.destroy(volume.volumeId), true);
    assert.ok((await upload) instanceof Error);
    assert.ok((await failure(volume.readFile('/endless'))) instanceof VolumePathNotFoundError, 'its token opens nothing');
    await until('its disk is gone', () => safeReaddir(server.disks('volumes')).length === 0, 20000);
  });

  it('is replaced when it was killed', async () => {
    await withVolume(async (volume) => {
      await volume.writeFile('/f', 'kept');
      const [id] = inits()[0].split('.');
      const inside = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && safeRead(`/proc/${pid}/cgroup`).includes(id));
      assert.ok(inside.length > 0);
      for (const pid of inside) {
        try {
          process.kill(Number(pid), 'SIGKILL');
        } catch (error) {
          assert.equal(error.code, 'ESRCH', 'it went with its init');
        }
      }
      await until('another one has taken over', () => volume.readFile('/f').then((text) => text === 'kept', () => false), 20000);
    });
  });

  it('ends with the server, and with a crash of it', async () => {
    const volume = await Volume.create('crashed');
    await volume.writeFile('/f', 'kept');
    await server.crash();
    await server.launch();
    assert.equal(await volume.readFile('/f'), 'kept', 'the token is the same');
    assert.equal(inits().length, 1, 'what the crash left is gone');
    assert.equal(await Volume.destroy(volume.volumeId), true);
  });
});

