// Previews: what listens on a port of a sandbox, by a host of its own and by a path.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Server, until } from '../lib/server.mjs';

const APP = readFileSync(new URL('../lib/app.py', import.meta.url), 'utf8');
let server, box, open;

/** Starts the web server of tests/lib/app.py in a sandbox, and waits until it listens. */
async function serve(id, port, address = '127.0.0.1') {
  const started = await server.request('POST', `/v1/sandboxes/${id}/processes`, { command: ['python3', '-c', APP, String(port), address] });
  assert.equal(started.status, 201, started.text);
  await until('it listens', async () => (await get(id, port, '/')).status === 200);
}

before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
  [box, open] = await Promise.all([server.create(), server.create({ previews: 'public' })]);
  await Promise.all([serve(box.id, 3000), serve(open.id, 3000)]);
});
after(() => server?.destroy());

/** One request to a preview; by its host unless `path` is set. */
function send(id, port, target, { method = 'GET', headers = {}, body, key = server.key, path = false, agent } = {}) {
  const all = { ...(path ? {} : { host: `${port}-${id}.localhost` }), ...headers };
  if (key) all.authorization ??= `Bearer ${key}`;
  return new Promise((resolve, reject) => {
    const req = http.request(server.url + (path ? `/p/${id}/${port}${target}` : target), { method, headers: all, agent }, (res) => {
      const parts = [];
      res.on('data', (part) => parts.push(part));
      res.on('error', reject);
      res.on('end', () => {
        const bytes = Buffer.concat(parts);
        let json;
        try {
          json = JSON.parse(bytes.toString());
        } catch {
          json = undefined;
        }
        resolve({ status: res.statusCode, headers: res.headers, bytes, text: bytes.toString(), json });
      });
    });
    req.on('error', reject);
    if (body && typeof body.pipe === 'function') body.pipe(req);
    else req.end(body);
  });
}
const get = (id, port, target, options) => send(id, port, target, options);

describe('a preview', () => {
  test('passes method, path, query, fields and body on, both ways', async () => {
    for (const path of [false, true]) {
      const r = await send(box.id, 3000, '/a%20b/c?x=1&y=%2F', { method: 'POST', body: 'hello', headers: { 'x-mine': 'yes', 'content-type': 'text/x' }, path });
      assert.equal(r.status, 200, r.text);
      assert.deepEqual([r.json.method, r.json.path, r.json.body], ['POST', '/a%20b/c?x=1&y=%2F', 'hello']);
      assert.equal(r.json.headers['x-mine'], 'yes');
      assert.equal(r.json.headers['content-type'], 'text/x');
      assert.equal(r.headers['content-type'], 'application/json');
    }
  });

  test('takes methods that the API does not know, HEAD and OPTIONS', async () => {
    assert.equal((await send(box.id, 3000, '/', { method: 'PROPFIND' })).json.method, 'PROPFIND');
    assert.equal((await send(box.id, 3000, '/', { method: 'OPTIONS' })).json.method, 'OPTIONS');
    const head = await send(box.id, 3000, '/', { method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.ok(Number(head.headers['content-length']) > 0);
    assert.equal(head.bytes.length, 0);
  });

  test('streams large bodies both ways', async () => {
    const big = Buffer.alloc(8 << 20, 'abcdefgh');
    const digest = createHash('sha256').update(big).digest('hex');
    assert.equal((await send(box.id, 3000, '/upload', { method: 'PUT', body: big, headers: { 'content-length': big.length } })).text, `${big.length} ${digest}`);
    const chunked = await send(box.id, 3000, '/upload', { method: 'PUT', body: big, headers: { 'transfer-encoding': 'chunked' } });
    assert.equal(chunked.text, `${big.length} ${digest}`);
    const down = await get(box.id, 3000, '/big?n=20000000');
    assert.equal(down.bytes.length, 20000000);
  });

  test('gives events when they happen', async () => {
    const times = [];
    await new Promise((resolve, reject) => {
      http.get(server.url + '/sse', { headers: { host: `3000-${open.id}.localhost` } }, (res) => {
        res.on('data', (part) => times.push([Date.now(), part.toString()]));
        res.on('end', resolve);
        res.on('error', reject);
      }).on('error', reject);
    });
    assert.deepEqual(times.map(([, text]) => text), ['data: 0\n\n', 'data: 1\n\n', 'data: 2\n\n']);
    assert.ok(times[2][0] - times[0][0] > 300, 'one by one');
  });

  test('upgrades, and then passes bytes as they are', async () => {
    const socket = net.connect(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (data) => (text += data));
    const ended = new Promise((resolve) => socket.on('close', resolve));
    socket.write(`GET /ws HTTP/1.1\r\nHost: 3000-${open.id}.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await until('it is upgraded', () => text.includes('\r\n\r\n'));
    assert.match(text, /^HTTP\/1\.1 101 /);
    assert.match(text, /X-App: yes/);
    socket.write('hello');
    await until('it is echoed', () => text.endsWith('HELLO'));
    socket.end();
    await ended;
    assert.ok(text.endsWith('HELLObye'), text);
  });

  test('keeps the connection of a client', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 3; i++) assert.equal((await get(box.id, 3000, '/', { agent })).status, 200);
    assert.equal(Object.values(agent.freeSockets).flat().length, 1);
    agent.destroy();
  });

  test('reaches a server that listens on ::1 only', async () => {
    await serve(box.id, 3006, '::1');
    assert.equal((await get(box.id, 3006, '/six')).json.path, '/six');
  });

  test('cuts an answer short that is cut short inside', async () => {
    await assert.rejects(get(box.id, 3000, '/cut'), /aborted|socket hang up|ECONNRESET/);
  });

  test('refuses what is no HTTP with 502', async () => {
    const r = await get(box.id, 3000, '/nonsense');
    assert.deepEqual([r.status, r.json.error.code], [502, 'bad_gateway']);
  });

  test('of a closed port is 502, for a browser a page that asks again', async () => {
    const r = await get(box.id, 3999, '/');
    assert.deepEqual([r.status, r.json.error.code, r.json.port, r.json.code], [502, 'port_closed', 3999, 502]);
    const page = await get(box.id, 3999, '/', { headers: { accept: 'text/html' } });
    assert.equal(page.status, 502);
    assert.match(page.text, /http-equiv=refresh/);
  });

  test('leaves the files of the path form without cookies, in a sandbox of the browser', async () => {
    const r = await get(box.id, 3000, '/', { path: true, headers: { cookie: 'session=secret' } });
    assert.equal(r.json.headers.cookie, undefined);
    assert.equal(r.headers['set-cookie'], undefined);
    assert.match(r.headers['content-security-policy'], /^sandbox /);
    assert.ok(!r.headers['content-security-policy'].includes('allow-same-origin'));
  });

  test('has cookies of its own host only', async () => {
    const r = await get(box.id, 3000, '/', { headers: { cookie: 'a=1; bunker_preview=x; b=2' } });
    assert.equal(r.json.headers.cookie, 'a=1; b=2');
    assert.deepEqual(r.headers['set-cookie'], ['a=b; Path=/']);
  });

  test('adds the slash that relative links need', async () => {
    const r = await server.request('GET', `/p/${box.id}/3000?x=1`);
    assert.deepEqual([r.status, r.headers.location], [308, `/p/${box.id}/3000/?x=1`]);
  });
});

describe('who may see a port', () => {
  test('whoever has a key, and the port does not get it', async () => {
    const r = await get(box.id, 3000, '/');
    assert.equal(r.status, 200);
    assert.equal(r.json.headers.authorization, undefined);
    const own = await get(open.id, 3000, '/', { headers: { authorization: 'Bearer of-the-app' } });
    assert.equal(own.json.headers.authorization, 'Bearer of-the-app');
  });

  test('nobody without one, and the same for sandboxes that do not exist', async () => {
    const there = await get(box.id, 3000, '/', { key: '' });
    const missing = await get('abcdefghij0123456789', 3000, '/', { key: '' });
    assert.equal(there.status, 401);
    assert.equal(missing.status, 401);
    assert.equal(there.json.error.message, missing.json.error.message);
    assert.equal((await get('abcdefghij0123456789', 3000, '/')).status, 404);
  });

  test('everyone, if its previews are public; that can be changed', async () => {
    assert.equal((await get(open.id, 3000, '/', { key: '' })).status, 200);
    assert.equal((await server.request('PATCH', `/v1/sandboxes/${open.id}`, { previews: 'private' })).status, 200);
    assert.equal((await get(open.id, 3000, '/', { key: '' })).status, 401);
    assert.equal((await server.request('PATCH', `/v1/sandboxes/${open.id}`, { previews: 'public' })).status, 200);
    const bad = await server.request('PATCH', `/v1/sandboxes/${open.id}`, { previews: 'all' });
    assert.deepEqual([bad.status, bad.json.error.field], [400, 'previews']);
  });

  test('the server inside is told the host that was set', async () => {
    assert.equal((await get(open.id, 3000, '/')).json.headers.host, `3000-${open.id}.localhost`);
    await server.request('PATCH', `/v1/sandboxes/${open.id}`, { previewHost: 'app.example:${PORT}' });
    assert.equal((await get(open.id, 3000, '/')).json.headers.host, 'app.example:3000');
    const bad = await server.request('PATCH', `/v1/sandboxes/${open.id}`, { previewHost: 'a b\r\nc' });
    assert.equal(bad.status, 400);
    await server.request('PATCH', `/v1/sandboxes/${open.id}`, { previewHost: '' });
  });
});

describe('one port', () => {
  const open = (port, body) => server.request('PUT', `/v1/sandboxes/${box.id}/ports/${port}`, body);

  test('is opened to everyone, and closed', async () => {
    const r = await open(3000, { public: true });
    assert.deepEqual([r.status, r.json], [200, { port: 3000, public: true, url: `http://3000-${box.id}.localhost:${server.port}/` }]);
    assert.equal((await get(box.id, 3000, '/', { key: '' })).status, 200);
    assert.equal((await get(box.id, 3006, '/', { key: '' })).status, 401, 'no other is');
    assert.equal((await open(3000, { public: true })).status, 200);
    assert.equal((await open(3000, { public: false })).status, 200);
    assert.equal((await get(box.id, 3000, '/', { key: '' })).status, 401);
  });

  test('is shown to a browser with a token, which keeps it in a cookie', async () => {
    const r = await server.request('POST', `/v1/sandboxes/${box.id}/ports/3000/tokens`, { expires: '10m' });
    assert.equal(r.status, 201, r.text);
    const target = new URL(r.json.url).search;
    const first = await get(box.id, 3000, `/a${target}&x=1`, { key: '', headers: { accept: 'text/html' } });
    assert.deepEqual([first.status, first.headers.location], [303, '/a?x=1']);
    const cookie = first.headers['set-cookie'][0].split(';')[0];
    assert.match(first.headers['set-cookie'][0], /HttpOnly/);
    const second = await get(box.id, 3000, '/a?x=1', { key: '', headers: { cookie } });
    assert.deepEqual([second.status, second.json.path, second.json.headers.cookie], [200, '/a?x=1', undefined]);
    const program = await get(box.id, 3000, `/b${target}`, { key: '' });
    assert.deepEqual([program.status, program.json.path], [200, '/b'], 'a program is not sent round');
    const forged = await get(box.id, 3000, '/a?bunker_token=x%3B+Domain%3Dlocalhost', { key: '', headers: { accept: 'text/html' } });
    assert.deepEqual([forged.status, forged.headers['set-cookie']], [401, undefined], 'a token that is none is not kept');
    assert.ok(Math.abs(Date.parse(r.json.expiresAt) - Date.now() - 600000) < 60000);
  });

  test('refuses what makes no sense', async () => {
    for (const [port, body, field] of [[0, { public: true }, 'port'], [65536, { public: true }, 'port'], ['x', { public: true }, 'port'], [80, {}, 'public'], [80, { public: 1 }, 'public']]) {
      const r = await open(port, body);
      assert.deepEqual([r.status, r.json.error.field], [400, field]);
    }
    assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/ports/80/tokens`, { expires: '1y' })).status, 400);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${box.id}/ports/80/tokens/nothing`)).status, 404);
    assert.equal((await server.request('PUT', `/v1/sandboxes/${'a'.repeat(20)}/ports/x`, {})).status, 404, 'a missing sandbox first');
  });

  test('has no more than 64 grants in a sandbox', async () => {
    const s = await server.create();
    const made = [];
    for (let i = 0; i < 64; i++) made.push((await server.request('PUT', `/v1/sandboxes/${s.id}/ports/${1000 + i}`, { public: true })).status);
    assert.deepEqual([...new Set(made)], [200]);
    assert.equal((await server.request('PUT', `/v1/sandboxes/${s.id}/ports/999`, { public: true })).status, 429);
    assert.equal((await server.request('PUT', `/v1/sandboxes/${s.id}/ports/1000`, { public: true })).status, 200, 'one that is there is no new one');
  });
});

describe('a sandbox and its previews', () => {
  test('a paused one is woken if it asked for that, else 409', async () => {
    const s = await server.create({ previews: 'public', autoResume: true });
    await serve(s.id, 3000);
    assert.equal((await server.request('POST', `/v1/sandboxes/${s.id}/pause`, {})).status, 200);
    assert.equal((await get(s.id, 3000, '/awake', { key: '' })).json.path, '/awake');
    await server.request('PATCH', `/v1/sandboxes/${s.id}`, { autoResume: false });
    await server.request('POST', `/v1/sandboxes/${s.id}/pause`, {});
    assert.equal((await get(s.id, 3000, '/')).status, 409);
    await server.request('DELETE', `/v1/sandboxes/${s.id}`);
    assert.equal((await get(s.id, 3000, '/')).status, 404);
  });

  test('a death of the front does not matter to the next request', async () => {
    process.kill(server.frontPid, 'SIGKILL');
    server.renewAgent();
    await until('it answers again', () => get(box.id, 3000, '/').then((r) => r.status === 200, () => false));
  });

  test('a client that leaves in the middle leaves nothing behind', async () => {
    const before = (await server.exec(box.id, 'ls /proc/1/fd | wc -l')).stdout;
    await Promise.all(Array.from({ length: 40 }, (_, i) => new Promise((resolve) => {
      const socket = net.connect(server.port, '127.0.0.1', () => {
        socket.write(`GET /big?n=50000000 HTTP/1.1\r\nHost: 3000-${open.id}.localhost\r\n\r\n`);
        setTimeout(() => socket.destroy(), i * 5);
      });
      socket.on('close', resolve);
      socket.on('error', () => {});
    })));
    assert.equal((await get(open.id, 3000, '/')).status, 200);
    assert.equal((await server.exec(box.id, 'ls /proc/1/fd | wc -l')).stdout, before);
  });
});

test('without keys, a name that somebody else could have made is not answered', async () => {
  const other = await Server.start({ args: ['--pool', '0', '--no-auth'] });
  try {
    const s = await other.create();
    await other.request('POST', `/v1/sandboxes/${s.id}/processes`, { command: ['python3', '-c', APP, '3000'] });
    const ask = (host) =>
      new Promise((resolve, reject) => {
        http.get(`${other.url}/`, { headers: { host } }, (res) => resolve(res.resume().statusCode)).on('error', reject);
      });
    await until('it listens', async () => (await ask(`3000-${s.id}.localhost`)) === 200);
    assert.equal(await ask(`3000-${s.id}.evil.example`), 401);
    assert.equal(await ask(`3000-${s.id}.notlocalhost`), 401);
  } finally {
    await other.destroy();
  }
});

describe('what listens', () => {
  const ports = async (id) => {
    const r = await server.request('GET', `/v1/sandboxes/${id}/ports`);
    assert.equal(r.status, 200, r.text);
    return r.json.ports;
  };
  const start = (id, program, args, user) => server.request('POST', `/v1/sandboxes/${id}/processes`, { command: ['python3', '-c', program, ...args], user });
  const LISTEN = 'import socket, sys, time\ns = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)\ns.bind((sys.argv[1], int(sys.argv[2])))\ns.listen()\ntime.sleep(600)';

  test('is listed with its address, process, URL and whether it is public', async () => {
    const { id } = await server.create();
    assert.deepEqual(await ports(id), []);
    assert.equal((await start(id, LISTEN, ['127.0.0.1', '7003'])).status, 201);
    assert.equal((await start(id, LISTEN, ['::1', '7001'])).status, 201);
    assert.equal((await start(id, LISTEN, ['0.0.0.0', '7002'], 'root')).status, 201);
    await until('all three listen', async () => (await ports(id)).length === 3);
    assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/ports/7002`, { public: true })).status, 200);
    const list = await ports(id);
    assert.deepEqual(list.map((p) => [p.port, p.address, p.public]), [[7001, '::1', false], [7002, '0.0.0.0', true], [7003, '127.0.0.1', false]]);
    const { stdout } = (await server.request('POST', `/v1/sandboxes/${id}/exec`, { command: 'pgrep -f "time.sleep.600" | sort -n', user: 'root' })).json;
    assert.deepEqual(list.map((p) => p.pid).sort((a, b) => a - b), stdout.trim().split('\n').map(Number).filter((pid) => list.some((p) => p.pid === pid)));
    for (const p of list) {
      assert.ok(p.pid > 1, 'its process was found, whoever it belongs to');
      assert.match(p.command, /^python3 -c import socket/);
      assert.match(p.url, new RegExp(`^http://${p.port}-${id}\\.`));
    }
    const one = await server.request('GET', `/v1/sandboxes/${id}/ports/7002`);
    assert.deepEqual([one.json.port, one.json.public, one.json.url], [7002, true, list[1].url]);
    for (const port of ['0', '65536', 'x']) assert.equal((await server.request('GET', `/v1/sandboxes/${id}/ports/${port}`)).status, 400);
    await server.request('POST', `/v1/sandboxes/${id}/pause`);
    assert.equal((await server.request('GET', `/v1/sandboxes/${id}/ports`)).status, 409, 'nothing is guessed of one that sleeps');
  });

  test('is shown, opened and given away by the command line', async () => {
    const { id } = await server.create();
    await serve(id, 3000);
    assert.match(server.cli(['port', id]).stdout, /^PORT +ADDRESS +PUBLIC +PID +COMMAND +URL\n3000 +127\.0\.0\.1 +no +\d+ +python3 .* http:/);
    const url = server.cli(['port', id, '3000']).stdout.trim();
    assert.equal(new URL(url).host.split(':')[0], `3000-${id}.localhost`);
    assert.equal((await get(id, 3000, '/', { key: null })).status, 401);
    assert.equal(server.cli(['port', id, '3000', '--public']).status, 0);
    assert.equal((await get(id, 3000, '/', { key: null })).status, 200);
    assert.equal(server.cli(['port', id, '3000', '--private']).status, 0);
    assert.equal((await get(id, 3000, '/', { key: null })).status, 401);
    const token = JSON.parse(server.cli(['port', id, '3000', '--token', '10m', '--json']).stdout);
    const shown = () => get(id, 3000, '/', { key: null, headers: { 'x-bunker-preview-token': token.token } });
    assert.equal((await shown()).status, 200);
    assert.equal(server.cli(['port', id, '3000', '--revoke', token.id]).status, 0);
    assert.equal((await shown()).status, 401);
    for (const wrong of [['0'], ['x'], ['--public'], ['3000', '--public', '--private'], ['3000', '--forward', 'x']]) {
      const r = server.cli(['port', id, ...wrong]);
      assert.equal(r.status, 2, `${wrong}: ${r.stderr}`);
    }
  });
});

describe('a connection', () => {
  const ECHO = 'import socketserver\nclass H(socketserver.BaseRequestHandler):\n  def handle(self):\n    self.request.sendall(b"hello\\n")\n    n = 0\n    while True:\n      d = self.request.recv(65536)\n      if not d: break\n      n += len(d)\n    self.request.sendall(b"%d\\n" % n)\nsocketserver.ThreadingTCPServer(("127.0.0.1", 6000), H).serve_forever()';
  let id;
  before(async () => {
    ({ id } = await server.create());
    assert.equal((await server.request('POST', `/v1/sandboxes/${id}/processes`, { command: ['python3', '-c', ECHO] })).status, 201);
    await until('it listens', async () => (await server.request('GET', `/v1/sandboxes/${id}/ports`)).json.ports.length === 1);
  });

  /** What comes back after `bytes` were sent and this side was closed. */
  const talk = (port, bytes) =>
    new Promise((resolve, reject) => {
      const socket = net.connect(port, '127.0.0.1', () => socket.end(bytes));
      let text = '';
      socket.setEncoding('latin1');
      socket.on('data', (part) => (text += part));
      socket.on('error', reject);
      socket.on('close', () => resolve(text));
    });
  const head = (port, { key = server.key, box = id } = {}) =>
    `GET /v1/sandboxes/${box}/ports/${port}/connect HTTP/1.1\r\nHost: localhost\r\n${key ? `Authorization: Bearer ${key}\r\n` : ''}Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n`;

  test('passes bytes of any protocol, and the end of each direction', async () => {
    const answer = await talk(new URL(server.url).port, head(6000) + 'x'.repeat(300000));
    assert.match(answer, /^HTTP\/1\.1 101 /);
    assert.ok(answer.endsWith('\r\n\r\nhello\n300000\n'), answer.slice(-200));
  });

  test('is refused without a right, a listener or an upgrade', async () => {
    const statusOf = (...args) =>
      new Promise((resolve, reject) => {
        const socket = net.connect(new URL(server.url).port, '127.0.0.1', () => socket.write(head(...args)));
        socket.on('error', reject);
        socket.once('data', (part) => {
          socket.destroy();
          resolve(Number(part.toString().slice(9, 12)));
        });
      });
    assert.equal(await statusOf(6000), 101, 'control');
    assert.equal(await statusOf(6000, { key: null }), 401);
    assert.equal(await statusOf(6000, { box: 'a'.repeat(20) }), 404);
    assert.equal(await statusOf(6001), 502);
    const read = (await server.request('POST', '/v1/keys', { name: `r${Date.now()}`, scope: 'read' })).json.key;
    assert.equal(await statusOf(6000, { key: read }), 403);
    assert.equal((await server.request('GET', `/v1/sandboxes/${id}/ports/6000/connect`)).status, 426);
  });

  test('comes through a local port by bunker port --forward, many at once', async () => {
    const child = server.cliStart(['port', id, '6000', '--forward', '0']);
    try {
      let said = '';
      child.stdout.on('data', (part) => (said += part));
      await until('it listens', () => /^127\.0\.0\.1:(\d+) -> 6000\n$/.test(said));
      const local = Number(/:(\d+) /.exec(said)[1]);
      const sizes = [0, 1, 70000, 1000000];
      const answers = await Promise.all(sizes.map((n) => talk(local, 'y'.repeat(n))));
      assert.deepEqual(answers, sizes.map((n) => `hello\n${n}\n`));
    } finally {
      child.kill('SIGTERM');
    }
    const [status] = await new Promise((resolve) => child.on('exit', (...how) => resolve(how)));
    assert.equal(status, 0);
  });
});
