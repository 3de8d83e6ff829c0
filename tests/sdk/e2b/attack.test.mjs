// What somebody tries who has a sandbox of their own, or only the address of the server.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { createHash } from 'node:crypto';
import { Sandbox } from 'e2b';
import { optionsFor, startServer } from './support.mjs';

const OTHER = 'bnk_00000000000000000000000000000000000000ff';
const server = await startServer({ args: ['--api-key', `other=${OTHER}`] });
const victim = await Sandbox.create({ timeoutMs: 600000 });
const mine = await Sandbox.create({ ...optionsFor(server, OTHER), timeoutMs: 600000 });
const V = victim.sandboxId;
const M = mine.sandboxId;
const token = { [V]: victim.envdAccessToken, [M]: mine.envdAccessToken };

function request(method, path, headers = {}, body) {
  return new Promise((resolve, reject) => {
    const req = http.request(server.url + path, { method, headers, agent: false }, (res) => {
      const parts = [];
      res.on('data', (part) => parts.push(part));
      res.on('end', () => {
        const text = Buffer.concat(parts).toString('latin1');
        let json;
        try {
          json = JSON.parse(text);
        } catch {
          json = undefined;
        }
        resolve({ status: res.statusCode, headers: res.headers, text, json });
      });
      res.on('error', reject);
    });
    req.on('error', reject);
    req.end(body);
  });
}

function envelope(message, flags = 0, length) {
  const json = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(length ?? json.length, 1);
  return Buffer.concat([head, json]);
}

const unary = { 'content-type': 'application/json' };
const stream = { 'content-type': 'application/connect+json' };
const echo = { process: { cmd: '/bin/echo', args: ['pwned'] }, stdin: false };

describe('the control plane', () => {
  const routes = [
    ['GET', `/sandboxes/${V}`],
    ['DELETE', `/sandboxes/${V}`],
    ['POST', `/sandboxes/${V}/connect`, '{}'],
    ['POST', `/v2/sandboxes/${V}/connect`, '{}'],
    ['POST', `/sandboxes/${V}/resume`, '{}'],
    ['POST', `/sandboxes/${V}/pause`, '{}'],
    ['POST', `/sandboxes/${V}/timeout`, '{"timeout":1}'],
    ['POST', `/sandboxes/${V}/refreshes`, '{"duration":1}'],
    ['POST', `/sandboxes/${V}/snapshots`, '{}'],
    ['POST', `/sandboxes/${V}/fork`, '{}'],
    ['GET', `/sandboxes/${V}/metrics`],
    ['GET', `/sandboxes/${V}/logs`],
    ['GET', `/v2/sandboxes/${V}/logs`],
    ['PUT', `/sandboxes/${V}/network`, '{}'],
  ];
  for (const [method, path, body] of routes)
    for (const prefix of ['', '/e2b'])
      it(`${method} ${prefix}${path.replace(V, '{id}')} is nobody’s but its tenant’s`, async () => {
        const headers = body ? { 'content-type': 'application/json' } : {};
        const foreign = await request(method, prefix + path, { ...headers, 'x-api-key': OTHER }, body);
        assert.deepEqual([foreign.status, foreign.json.code], [404, 404], foreign.text);
        for (const key of [undefined, 'e2b_', `e2b_${'0'.repeat(40)}`, victim.envdAccessToken]) {
          const none = await request(method, prefix + path, { ...headers, ...(key === undefined ? {} : { 'x-api-key': key }) }, body);
          assert.deepEqual([none.status, none.json.code], [401, 401], none.text);
        }
        assert.equal(await victim.isRunning(), true);
      });

  it('lists nothing of others', async () => {
    const listed = await request('GET', '/v2/sandboxes?limit=100', { 'x-api-key': OTHER });
    assert.deepEqual(
      listed.json.map((one) => one.sandboxID),
      [M],
    );
    assert.equal(listed.text.includes(V), false);
  });

  it('refuses what is no object, too deep, too large or not what it says', async () => {
    const create = (body) => request('POST', '/v2/sandboxes', { 'x-api-key': OTHER, 'content-type': 'application/json' }, body);
    for (const body of ['[]', 'null', '"x"', '{', '{"templateID":1}', '{"templateID":""}', '{}', `${'['.repeat(100)}`, '{"templateID":"base","timeout":"x"}'])
      assert.equal((await create(body)).status, 400, body);
    for (const timeout of [0, -1, 1e12, 1.5]) assert.equal((await create(JSON.stringify({ templateID: 'base', timeout }))).status, 400);
    assert.equal((await create(JSON.stringify({ templateID: 'base', envVars: { 'a=b': 'x' } }))).status, 400);
    assert.equal((await create(JSON.stringify({ templateID: '../../etc' }))).status, 404);
    assert.equal((await create(Buffer.alloc(5 << 20, 0x20))).status, 413);
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'state=dead', 'order=up', 'nextToken=1', 'nextToken=9-../../x', 'startedAfter=yesterday', 'metadata=novalue'])
      assert.equal((await request('GET', `/v2/sandboxes?${query}`, { 'x-api-key': OTHER })).status, 400, query);
  });
});

describe('envd', () => {
  const calls = [
    ['POST', '/process.Process/List', unary, '{}'],
    ['POST', '/process.Process/Start', stream, envelope(echo)],
    ['POST', '/process.Process/Connect', stream, envelope({ process: { pid: 1 } })],
    ['POST', '/process.Process/SendInput', unary, '{"process":{"pid":1},"input":{"stdin":""}}'],
    ['POST', '/process.Process/StreamInput', stream, envelope({ start: { process: { pid: 1 } } })],
    ['POST', '/process.Process/SendSignal', unary, '{"process":{"pid":1},"signal":9}'],
    ['POST', '/process.Process/CloseStdin', unary, '{"process":{"pid":1}}'],
    ['POST', '/process.Process/Update', unary, '{"process":{"pid":1}}'],
    ['POST', '/filesystem.Filesystem/Stat', unary, '{"path":"/etc/shadow"}'],
    ['POST', '/filesystem.Filesystem/ListDir', unary, '{"path":"/"}'],
    ['POST', '/filesystem.Filesystem/MakeDir', unary, '{"path":"/tmp/x"}'],
    ['POST', '/filesystem.Filesystem/Move', unary, '{"source":"/tmp","destination":"/x"}'],
    ['POST', '/filesystem.Filesystem/Remove', unary, '{"path":"/tmp"}'],
    ['POST', '/filesystem.Filesystem/WatchDir', stream, envelope({ path: '/' })],
    ['POST', '/filesystem.Filesystem/CreateWatcher', unary, '{"path":"/"}'],
    ['POST', '/filesystem.Filesystem/GetWatcherEvents', unary, '{"watcherId":"x"}'],
    ['POST', '/filesystem.Filesystem/RemoveWatcher', unary, '{"watcherId":"x"}'],
    ['GET', '/files?path=/etc/passwd', {}, undefined],
    ['POST', '/files?path=/tmp/x', { 'content-type': 'application/octet-stream' }, 'x'],
    ['GET', '/envs', {}, undefined],
    ['GET', '/metrics', {}, undefined],
  ];
  for (const [method, path, headers, body] of calls)
    it(`${path.split('?')[0]} (${method}) wants the token of this very sandbox`, async () => {
      const forged = [
        undefined,
        '',
        token[M],
        V + token[M].slice(20),
        token[V].slice(0, -1),
        `${token[V]}0`,
        token[V].toUpperCase(),
        `${'a'.repeat(20)}${'0'.repeat(48)}`,
        server.key,
        OTHER,
      ];
      for (const text of forged) {
        const all = { ...headers, 'e2b-sandbox-id': V, 'e2b-sandbox-port': '49983' };
        if (text !== undefined) all['x-access-token'] = text;
        const answer = await request(method, path, all, body);
        assert.equal(answer.status, 401, `${text}: ${answer.status} ${answer.text}`);
        assert.equal(answer.json.code, 401);
        assert.equal(answer.text.includes('pwned'), false);
      }
      // An API key opens the control plane, and nothing inside.
      assert.equal((await request(method, path, { ...headers, 'e2b-sandbox-id': V, 'x-api-key': server.key }, body)).status, 401);
    });

  it('is not reached by names that are none', async () => {
    for (const name of ['', 'x', '../x', 'A'.repeat(20), `${V}x`, V.slice(1), 'a'.repeat(5000), `${V} `, 'nope']) {
      const answer = await request('GET', '/health', { 'e2b-sandbox-id': name });
      assert.ok(answer.status === 502 || answer.status === 400 || (answer.status === 204 && name.trim() === V), `${name}: ${answer.status}`);
    }
    assert.equal((await request('GET', '/health', { 'e2b-sandbox-id': `${V}-client` })).status, 204, 'as E2B once had them');
    for (const port of ['0', '70000', '-1', 'x', '49983x', '1e4']) {
      const answer = await request('POST', '/process.Process/Start', { ...stream, 'e2b-sandbox-id': V, 'e2b-sandbox-port': port, 'x-access-token': token[V] }, envelope(echo));
      assert.equal(answer.text.includes('pwned'), false);
      assert.notEqual(answer.status, 200);
    }
  });

  it('believes the host name before the headers', async () => {
    const host = (id, port = 49983) => ({ host: `${port}-${id}.localhost` });
    assert.equal((await request('GET', '/health', host(V))).status, 204);
    const crossed = await request('POST', '/process.Process/Start', { ...stream, ...host(M), 'e2b-sandbox-id': V, 'x-access-token': token[V] }, envelope(echo));
    assert.equal(crossed.status, 401);
    const other = await request('POST', '/process.Process/Start', { ...stream, ...host(V, 3000), 'x-access-token': token[V] }, envelope(echo));
    assert.equal(other.status, 502, 'a port of a sandbox is not its envd');
    for (const name of [`49983-${V}`, `49983-${V}x.localhost`, `x49983-${V}.localhost`, `49983-${V.toUpperCase()}.localhost`, `49983-.${V}`, `49983-${V}:80`, `099999-${V}.x`])
      assert.notEqual((await request('GET', '/health', { host: name })).status, 204, name);
    // A page in somebody's preview must not reach the control plane by the same name.
    assert.notEqual((await request('GET', '/v2/sandboxes', { ...host(V), 'x-api-key': server.key })).status, 200);
  });

  it('answers the dead and the never born alike', async () => {
    const dead = await Sandbox.create();
    await dead.kill();
    for (const id of [dead.sandboxId, 'a'.repeat(20)]) {
      const answer = await request('POST', '/process.Process/List', { ...unary, 'e2b-sandbox-id': id, 'x-access-token': dead.envdAccessToken }, '{}');
      assert.deepEqual([answer.status, answer.json], [502, { sandboxId: id, message: 'The sandbox was not found', code: 502 }]);
    }
  });
});

describe('signatures', () => {
  const sign = (path, operation, user, secret, expires) =>
    `v1_${createHash('sha256')
      .update([path, operation, user, secret, ...(expires === undefined ? [] : [expires])].join(':'))
      .digest('base64')
      .replace(/=+$/, '')}`;
  const get = (query) => request('GET', `/files?${new URLSearchParams(query)}`);

  it('open nothing but what they were made for', async () => {
    const good = sign('/etc/hostname', 'read', '', token[V]);
    const refused = [
      { path: '/etc/passwd', signature: good },
      { path: '/etc/hostname', username: 'root', signature: good },
      { path: '/etc/hostname', signature: sign('/etc/hostname', 'write', '', token[V]) },
      { path: '/etc/hostname', signature: sign('/etc/hostname', 'read', '', 'guess') },
      { path: '/etc/hostname', signature: sign('/etc/hostname', 'read', '', token[V].slice(20)) },
      { path: '/etc/hostname', signature: `${good}=` },
      { path: '/etc/hostname', signature: good.slice(0, -1) },
      { path: '/etc/hostname', signature: good.toLowerCase() },
      { path: '/etc/hostname', signature: '' },
      { path: '/etc/hostname' },
      { path: '/etc/hostname', signature: good, signature_expiration: '99999999999' },
    ];
    for (const query of refused) assert.equal((await get(query)).status, 401, JSON.stringify(query));
  });

  it('bind the user: nobody adds another one', async () => {
    const query = (username) => new URLSearchParams({ path: 'signed-by-whom', ...(username && { username }), signature: sign('signed-by-whom', 'write', username ?? '', token[V]) });
    const root = { authorization: `Basic ${Buffer.from('root:').toString('base64')}`, 'content-type': 'application/octet-stream' };
    const write = async (username) => (await (await fetch(`${server.url}/files?${query(username)}`, { method: 'POST', headers: root, body: 'x' })).json())[0]?.path;
    assert.equal(await write(), '/home/user/signed-by-whom');
    assert.equal(await write('root'), '/root/signed-by-whom', 'the control: signed for root');
  });

  it('end when they say so, and cannot be given more time', async () => {
    const past = String(Math.floor(Date.now() / 1000) - 10);
    const signature = sign('/etc/hostname', 'read', '', token[V], past);
    const late = await get({ path: '/etc/hostname', signature, signature_expiration: past });
    assert.deepEqual([late.status, late.json.message], [401, 'signature is already expired']);
    assert.equal((await get({ path: '/etc/hostname', signature })).status, 401);
    assert.equal((await get({ path: '/etc/hostname', signature, signature_expiration: `${Number(past) + 3600}` })).status, 401);
    for (const odd of ['', 'x', '1e99', '99999999999999999999999'])
      assert.equal((await get({ path: '/p', signature: sign('/p', 'read', '', token[V], odd), signature_expiration: odd })).status, 401, odd);
  });
});

describe('messages', () => {
  const start = (body, headers = {}) => request('POST', '/process.Process/Start', { ...stream, 'e2b-sandbox-id': V, 'x-access-token': token[V], ...headers }, body);
  const list = (body, headers = {}) => request('POST', '/process.Process/List', { ...unary, 'e2b-sandbox-id': V, 'x-access-token': token[V], ...headers }, body);

  it('in broken envelopes end the call, with a reason and nothing started', async () => {
    const broken = [
      Buffer.alloc(0),
      Buffer.from([0, 0, 0]),
      envelope(echo, 1),
      envelope(echo, 2),
      envelope(echo, 0x80),
      envelope(echo, 0, 5),
      envelope(echo, 0, 0xffffffff),
      Buffer.concat([envelope(echo), envelope(echo)]),
      Buffer.concat([envelope(echo), Buffer.from('x')]),
      envelope('{'),
      envelope('[]'),
      envelope('"x"'),
      envelope(`{"process":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`),
      envelope({}),
      envelope({ process: {} }),
      envelope({ process: { cmd: '' } }),
      envelope({ process: { cmd: 'a\0b' } }),
      envelope({ process: { cmd: '/bin/echo', args: [1] } }),
      envelope({ process: { cmd: '/bin/echo', args: 'x' } }),
      envelope({ process: { cmd: '/bin/echo', envs: { 'A=B': 'x' } } }),
      envelope({ process: { cmd: '/bin/echo', cwd: '~root' } }),
      envelope({ process: { cmd: '/bin/echo' }, pty: { size: { cols: 0, rows: 100000 } } }),
      envelope({ process: { cmd: '/no/such/program' } }),
    ];
    for (const body of broken) {
      const answer = await start(body);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers['content-type'], 'application/connect+json');
      assert.equal(answer.text.charCodeAt(0), 2, `${body}: ${answer.text}`);
      const { error } = JSON.parse(answer.text.slice(5));
      assert.equal(error.code, 'invalid_argument', `${body}: ${answer.text}`);
      assert.ok(error.message.length > 5);
    }
  });

  it('that are too large are refused', async () => {
    assert.match((await start(Buffer.alloc(5 << 20))).text, /invalid_argument/);
    assert.match((await list(Buffer.alloc(5 << 20))).text, /invalid_argument/);
  });

  it('of the wrong kind are refused', async () => {
    assert.equal((await start(envelope(echo), { 'content-type': 'application/json' })).status, 400);
    assert.equal((await start(envelope(echo), { 'content-type': 'application/connect+proto' })).status, 400);
    assert.equal((await list('{}', { 'content-type': 'application/proto' })).status, 400);
    assert.equal((await list('{}', { 'content-encoding': 'gzip' })).status, 400);
    assert.deepEqual((await list('[]')).json.code, 'invalid_argument');
    for (const timeout of ['-1', 'x', '1.5', '99999999999', '']) {
      const answer = await start(envelope(echo), { 'connect-timeout-ms': timeout });
      assert.match(answer.text, /invalid_argument/, timeout);
    }
  });

  it('stop a stream of input that breaks off or lies', async () => {
    const sleeper = await victim.commands.run('cat > /dev/null', { background: true, stdin: true });
    const input = (body) => request('POST', '/process.Process/StreamInput', { ...stream, 'e2b-sandbox-id': V, 'x-access-token': token[V] }, body);
    const begin = envelope({ start: { process: { pid: sleeper.pid } } });
    const data = envelope({ data: { input: { stdin: 'YWJj' } } });
    assert.match((await input(Buffer.concat([begin, data, envelope({ keepalive: {} })]))).text, /^\0\0\0\0\u0002\{\}\u0002/);
    for (const body of [data, Buffer.concat([begin, begin]), Buffer.concat([begin, data.subarray(0, 7)]), Buffer.concat([begin, envelope({ data: {} })]), Buffer.concat([begin, envelope('{}', 0, 0x7fffffff)]), Buffer.concat([begin, envelope({ data: { input: { stdin: '!' } } })])])
      assert.match((await input(body)).text, /^\u0002[\s\S]*"error"/, body.toString('latin1'));
    assert.match((await input(envelope({ start: { process: { pid: 99999 } } }))).text, /not_found/);
    await sleeper.kill();
  });

  it('that never end do not hold up others', { timeout: 20000 }, async () => {
    const sockets = Array.from({ length: 50 }, () => {
      const socket = net.connect(server.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(
        `POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: ${V}\r\nX-Access-Token: ${token[V]}\r\nContent-Type: application/connect+json\r\nContent-Length: 1000000\r\n\r\n`,
      );
      return socket;
    });
    assert.equal((await victim.commands.run('echo fine')).stdout, 'fine\n');
    for (const socket of sockets) socket.destroy();
  });
});

describe('inside', () => {
  it('nothing of the token is to be found', async () => {
    const secret = token[V].slice(20);
    const found = await victim.commands.run(`env | grep -c ${secret} ; cat /proc/1/environ 2>/dev/null | grep -c ${secret}; true`, { user: 'root' });
    assert.equal(found.stdout.replace(/[0\n]/g, ''), '');
  });
});
