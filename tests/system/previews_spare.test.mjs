// Connections to a port that carry several requests, and the sockets that are in stock for new ones.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server, until } from '../lib/server.mjs';

const APP = readFileSync(new URL('../lib/spare.py', import.meta.url), 'utf8');
const EVERY = [3000, 3001, 3002, 3003, 3004, 3005];
let server, box;

async function serve(id, ...args) {
  const started = await server.request('POST', `/v1/sandboxes/${id}/processes`, { command: ['python3', '-c', APP, ...args.map(String)] });
  assert.equal(started.status, 201, started.text);
  await until('it listens', async () => (await send(id, args.findLast(Number), '/')).status === 200);
  return started.json.pid;
}

/** Status and text of an answer to a request on a connection of its own, "cut" in place of what does not end. */
function send(id, port, path, { method = 'GET', body } = {}) {
  return new Promise((resolve) => {
    const headers = { host: `${port}-${id}.localhost`, ...(body ? { 'content-length': body.length } : {}) };
    const req = http.request(server.url + path, { method, headers, agent: false }, (res) => {
      let text = '';
      res.on('data', (part) => (text += part));
      res.on('error', () => resolve({ status: res.statusCode, text: 'cut' }));
      res.on('end', () => resolve({ status: res.statusCode, text, connection: Number(text.split(' ')[0]) }));
    });
    req.on('error', () => resolve({ status: 0, text: 'cut' }));
    req.end(body);
  });
}
const get = async (path, port = 3000) => {
  const r = await send(box.id, port, path);
  assert.equal(r.status, 200, `${path}: ${r.text}`);
  return r.connection;
};
const log = async () => (await send(box.id, 3000, '/log')).text.split('\n');

before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
  box = await server.create({ previews: 'public' });
  await serve(box.id, ...EVERY);
});
after(() => server?.destroy());

describe('a connection to a port', () => {
  test('carries the next request, whoever sends it', async () => {
    const first = await get('/');
    for (const path of ['/', '/chunks', '/']) assert.equal(await get(path), first, path);
  });

  test('carries none when its answer leaves in doubt where it ends', async () => {
    for (const path of ['/ends', '/says-close', '/old', '/more']) {
      const first = await get(path);
      assert.notEqual(await get('/'), first, path);
    }
  });

  test('carries no request with a body, and none after one', async () => {
    const first = await get('/');
    const posted = await send(box.id, 3000, '/', { method: 'POST', body: 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n' });
    assert.notEqual(posted.connection, first);
    assert.notEqual(await get('/'), posted.connection);
    assert.ok(!(await log()).some((line) => line.includes('smuggled')));
  });

  test('that the port has closed in between is not used', async () => {
    const first = await get('/closes');
    await until('it has ended', async () => (await log()).includes(`end ${first}`));
    assert.notEqual(await get('/'), first);
  });

  test('that the port closes instead of answering makes the request go by another one, once', async () => {
    const first = await get('/then-none');
    const second = await get('/again');
    assert.notEqual(second, first);
    assert.deepEqual((await log()).filter((line) => line.includes('/again')), [`GET /again ${first}`, `GET /again ${second}`]);
  });

  test('that answers by half is no reason to ask again', async () => {
    await get('/then-half');
    const r = await send(box.id, 3000, '/half');
    assert.equal(r.status, 502, r.text);
    assert.equal((await log()).filter((line) => line.includes('/half')).length, 1);
  });

  test('that would be closed takes no request that changes something', async () => {
    await get('/then-none');
    const r = await send(box.id, 3000, '/change', { method: 'POST' });
    assert.equal(r.status, 200);
    assert.equal((await log()).filter((line) => line.includes('/change')).length, 1);
  });

  test('never carries what came after an answer to the next client', async () => {
    for (let i = 0; i < 20; i++) {
      const texts = [(await send(box.id, 3000, '/more')).text, (await send(box.id, 3000, '/')).text];
      assert.ok(!texts.includes('forged'), texts.join());
    }
  });

  test('is followed by an upgrade on one of its own', async () => {
    await get('/');
    const socket = net.connect(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (data) => (text += data));
    socket.write(`GET /ws HTTP/1.1\r\nHost: 3000-${box.id}.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await until('it is upgraded', () => text.includes('\r\n\r\n'));
    socket.write('hello');
    await until('it is echoed', () => text.endsWith('HELLO'));
    assert.equal(await get('/'), await get('/'), 'and others are kept beside it');
    socket.destroy();
  });

  test('is closed after some seconds, and there are at most four in a sandbox', async () => {
    for (const port of EVERY) await get('/', port);
    const open = async () => (await server.exec(box.id, "grep -c ' 01 ' /proc/net/tcp")).stdout.trim();
    assert.equal(await open(), '8', 'both ends of four');
    await until('they are closed', async () => (await open()) === '0', 8000);
  });
});

describe('a server that serves one connection after the other', () => {
  let one;
  before(async () => {
    one = await server.create({ previews: 'public' });
    await serve(one.id, '--one', 3000);
  });

  test('is not kept busy by a connection on which nothing comes', async () => {
    for (let i = 0; i < 3; i++) {
      assert.equal((await send(one.id, 3000, '/')).status, 200);
      const began = Date.now();
      assert.equal((await send(one.id, 3000, '/', { method: 'POST', body: 'x' })).status, 200);
      assert.ok(Date.now() - began < 2000, 'the connection that was kept went first');
    }
  });

  test('comes to the request that waits', async () => {
    const began = Date.now();
    const all = await Promise.all(Array.from({ length: 4 }, () => send(one.id, 3000, '/slow')));
    assert.deepEqual(all.map((r) => r.status), [200, 200, 200, 200]);
    assert.ok(Date.now() - began < 3500, `${Date.now() - began} ms`);
  });
});

describe('sockets in stock, and connections that are kept', () => {
  test('do not outlive a pause', async () => {
    const s = await server.create({ previews: 'public', autoResume: true });
    await serve(s.id, 3000);
    const first = (await send(s.id, 3000, '/')).connection;
    for (const keepMemory of [true, false]) {
      await send(s.id, 3000, '/');
      assert.equal((await server.request('POST', `/v1/sandboxes/${s.id}/pause`, { memory: keepMemory })).status, 200);
      if (keepMemory) {
        const r = await send(s.id, 3000, '/');
        assert.equal(r.status, 200, r.text);
        assert.notEqual(r.connection, first);
      } else {
        assert.equal((await server.request('POST', `/v1/sandboxes/${s.id}/resume`, {})).status, 200);
        const r = await send(s.id, 3000, '/');
        assert.ok([200, 502].includes(r.status), r.text);
      }
    }
    await server.request('DELETE', `/v1/sandboxes/${s.id}`);
    assert.equal((await send(s.id, 3000, '/')).status, 401);
  });

  test('serve many at once, and a server that has been started anew', async () => {
    const s = await server.create({ previews: 'public' });
    const pid = await serve(s.id, 3000);
    const all = await Promise.all(Array.from({ length: 60 }, () => send(s.id, 3000, '/')));
    assert.deepEqual([...new Set(all.map((r) => r.status))], [200]);
    assert.equal((await server.exec(s.id, `kill -9 ${pid}`)).exitCode, 0);
    await until('the port is closed', async () => (await send(s.id, 3000, '/')).status === 502);
    await serve(s.id, 3000);
    assert.equal((await send(s.id, 3000, '/')).status, 200);
  });

  test('are gone with their sandbox', async () => {
    const sockets = () => readdirSync(`/proc/${server.frontPid}/fd`).length;
    await sleep(5000); // what the tests above left
    const before = sockets();
    for (let i = 0; i < 3; i++) {
      const s = await server.create({ previews: 'public' });
      await serve(s.id, ...EVERY);
      for (const port of EVERY) assert.equal((await send(s.id, port, '/')).status, 200);
      assert.ok(sockets() > before + 4);
      await server.request('DELETE', `/v1/sandboxes/${s.id}`);
    }
    await until('all are closed', () => sockets() <= before);
  });

  test('are found anew after a death of the front', async () => {
    await get('/');
    process.kill(server.frontPid, 'SIGKILL');
    server.renewAgent();
    await until('it answers again', () => send(box.id, 3000, '/').then((r) => r.status === 200, () => false));
    assert.equal(await get('/'), await get('/'));
  });
});
