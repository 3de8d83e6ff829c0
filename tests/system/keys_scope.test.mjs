// The scope of a key, at every route of every API: what it opens, what it does not, and what it gives away.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { listRoutes } from '../lib/routes.mjs';
import { Server, until } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { assertRefused, finish } from './support.mjs';

const PORTS = { 1: 49983, 2: 49999 };
const routes = listRoutes().filter((r) => r.dialect !== 'preview');
const named = (list) => list.map((r) => `${r.method} ${r.pattern} ${r.scope}`);

describe('K181 the scope of a key', { timeout: 120000 }, () => {
  let server, box, volume, read, use, process_;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
    const create = async (scope) => (await server.request('POST', '/v1/keys', { name: scope, scope })).json.key;
    read = await create('read');
    use = await create('use');
    box = await server.create({ files: [{ path: '/home/user/f', content: 'content' }] });
    volume = (await server.request('POST', '/v1/volumes', { name: 'v' })).json;
    process_ = (await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'echo begun; cat', openStdin: true })).json;
  });
  after(() => finish(server));

  /** The status and, of an error, the body: answers without an end are not waited for. */
  const ask = (method, path, headers, body) =>
    new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const all = { ...headers, ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }) };
      const req = http.request(server.url + path, { method, headers: all, agent: false }, (res) => {
        let text = '';
        res.on('data', (part) => (text += part));
        res.on('error', () => {});
        const done = () => (resolve({ status: res.statusCode, text }), req.destroy());
        if (res.statusCode < 400) done();
        else res.on('end', done);
      });
      req.on('error', reject);
      req.end(payload);
    });
  const fill = (pattern) =>
    pattern.replace(/\{([^}]+)\}/g, (_, name) => ({ id: box.id, volume: volume.id, process: process_.id, 'path*': 'home/user/f' })[name] ?? 'none');
  const withBody = (route) => (['POST', 'PUT', 'PATCH'].includes(route.method) && !route.bodyless && !route.streams ? {} : undefined);

  it('is by the method, with these exceptions', () => {
    const usual = (r) => (r.scope === 'read') === (r.method === 'GET');
    assert.deepEqual(named(routes.filter((r) => !usual(r) && r.scope !== 'admin')), [
      'GET /v1/sandboxes/{id}/ports/{port}/connect use',
      'POST /v1/sandboxes/{id}/fs/find read',
      'POST /v1/sandboxes/{id}/fs/grep read',
      'GET /e2b/templates/{id}/files/{hash} use',
      'POST /process.Process/Connect read',
      'POST /process.Process/List read',
      'POST /filesystem.Filesystem/Stat read',
      'POST /filesystem.Filesystem/ListDir read',
      'POST /filesystem.Filesystem/WatchDir read',
      'POST /filesystem.Filesystem/CreateWatcher read',
      'POST /filesystem.Filesystem/GetWatcherEvents read',
      'POST /filesystem.Filesystem/RemoveWatcher read',
    ]);
    assert.deepEqual(named(routes.filter((r) => r.scope === 'admin')), [
      'POST /v1/keys admin', 'GET /v1/keys admin', 'GET /v1/keys/{key} admin', 'POST /v1/keys/{key}/rotate admin', 'DELETE /v1/keys/{key} admin',
      'PUT /v1/secrets/{name} admin', 'DELETE /v1/secrets/{name} admin',
    ]);
  });

  it('is asked for by every route that takes a key', async () => {
    const keyed = routes.filter((r) => !r.open && r.claim === 0 && !/volumecontent|\/templates\/uploads|^\/files/.test(r.pattern));
    assert.ok(keyed.length > 150);
    const rank = { read: 0, use: 1, admin: 2 };
    for (const route of keyed) {
      const path = fill(route.pattern);
      for (const [scope, key] of [['read', read], ['use', use]]) {
        // What the key may do is not done here: the rest of the tests is about that.
        if (scope === 'use' && rank[route.scope] <= rank.use) continue;
        const r = await ask(route.method, path, { 'x-api-key': key }, withBody(route));
        const what = `${scope}: ${route.method} ${path}: ${r.status} ${r.text}`;
        if (rank[route.scope] > rank[scope]) {
          assert.equal(r.status, 403, what);
          assert.match(r.text, /scope_missing/, what);
        } else assert.ok(r.status !== 403 && r.status !== 401, what);
      }
    }
    assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.status !== undefined, true);
    assert.equal((await server.request('GET', '/v1/sandboxes')).json.sandboxes.length, 1, 'nothing was made or deleted');
  });

  it('comes with the tokens that E2B\'s control plane gives to its key', async () => {
    const tokenOf = async (key) => JSON.parse((await server.request('GET', `/sandboxes/${box.id}`, undefined, { key })).text).envdAccessToken;
    const tokens = { read: await tokenOf(read), use: await tokenOf(use) };
    assert.notEqual(tokens.read, tokens.use);
    assert.equal(tokens.read, await tokenOf(read), 'the same for the same key');
    const inside = routes.filter((r) => r.claim in PORTS && r.pattern !== '/health');
    assert.ok(inside.length > 15);
    for (const route of inside) {
      const headers = { 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': String(PORTS[route.claim]), 'x-access-token': tokens.read };
      const r = await ask(route.method, fill(route.pattern) + (route.pattern === '/files' ? '?path=/home/user/f' : ''), headers, withBody(route));
      const what = `${route.method} ${route.pattern}: ${r.status} ${r.text}`;
      if (route.scope === 'read') assert.ok(r.status !== 403 && r.status !== 401, what);
      else assert.equal(r.status, 403, what);
    }
    const file = await ask('GET', '/files?path=/home/user/f', { 'e2b-sandbox-id': box.id, 'x-access-token': tokens.read });
    assert.equal(file.status, 200);
    const started = await ask('POST', '/process.Process/Start', { 'e2b-sandbox-id': box.id, 'x-access-token': tokens.read }, {});
    assert.equal(JSON.parse(started.text).code, 'permission_denied', started.text);
  });

  it('comes with the tokens of E2B\'s volumes', async () => {
    const tokenOf = async (key) => JSON.parse((await server.request('GET', `/volumes/${volume.id}`, undefined, { key })).text).token;
    for (const [key, status] of [[read, 403], [use, 201]]) {
      const authorization = `Bearer ${await tokenOf(key)}`;
      const looked = await ask('GET', `/volumecontent/${volume.id}/dir?path=/`, { authorization });
      assert.equal(looked.status, 200, looked.text);
      const made = await ask('POST', `/volumecontent/${volume.id}/dir?path=/d`, { authorization });
      assert.equal(made.status, status, made.text);
    }
  });

  it('lets a reader follow a process by WebSocket, and say nothing', async () => {
    const path = `/v1/sandboxes/${box.id}/processes/${process_.id}/output`;
    const socket = await Socket.open(server, path, { key: read });
    const texts = () => socket.messages.filter((m) => m.text).map((m) => m.text);
    const bytes = () => Buffer.concat(socket.messages.filter((m) => m.data).map((m) => m.data)).toString();
    await until('it shows the output', () => bytes() === 'begun\n');
    socket.send(Buffer.from('typed by a reader\n'));
    socket.send({ type: 'signal', signal: 'KILL' });
    await until('both are refused', () => texts().filter((t) => t.type === 'error').length === 2);
    for (const t of texts().filter((m) => m.type === 'error')) assert.equal(t.code, 'scope_missing');
    const writer = await Socket.open(server, path, { key: use });
    writer.send(Buffer.from('typed\n'));
    await until('the control: whoever may use it can type', () => bytes() === 'begun\ntyped\n');
    writer.tcp.destroy();
    socket.tcp.destroy();
  });

  it('lets a reader GET from a port, and nothing else', async () => {
    // Nothing listens there: what is not refused is passed on, in vain.
    for (const [key, method, status] of [[read, 'GET', 502], [read, 'HEAD', 502], [read, 'POST', 403], [read, 'DELETE', 403], [use, 'POST', 502]])
      assert.equal((await ask(method, `/p/${box.id}/8080/`, { 'x-api-key': key })).status, status, `${method} ${key === read ? 'read' : 'use'}`);
  });

  it('lets a reader of Agentuity look, and change nothing', async () => {
    const asReader = (method, path, body) => server.request(method, `/agentuity${path}`, body, { key: read });
    assert.equal((await asReader('GET', '/sandbox')).json.success, true);
    assert.equal((await asReader('GET', `/sandbox/sbx_${box.id}`)).json.success, true);
    const refused = await asReader('POST', `/sandbox/sbx_${box.id}/execute`, { command: ['touch', '/tmp/x'] });
    assert.deepEqual([refused.status, refused.json.success, refused.json.code], [403, false, 'scope_missing']);
    assert.equal((await asReader('DELETE', `/sandbox/sbx_${box.id}`)).status, 403);
    const executed = (await server.request('POST', `/agentuity/sandbox/sbx_${box.id}/execute`, { command: ['echo', 'out'] })).json.data;
    const shown = (await until('it has ended', async () => {
      const { json } = await asReader('GET', `/sandbox/execution/${executed.executionId}`);
      return json.data.status === 'completed' && json;
    })).data;
    assert.notEqual(shown.stdoutStreamUrl, executed.stdoutStreamUrl, 'an address belongs to a key');
    assert.equal(await (await fetch(shown.stdoutStreamUrl)).text(), 'out\n');
  });

  it('is told before the body is read, and after the key', async () => {
    const r = await server.request('POST', `/v1/sandboxes/${box.id}/exec`, '{not json', { key: read });
    assertRefused(r, 403, 'scope_missing');
    assertRefused(await server.request('POST', '/v1/run', '{not json', { key: 'bnk_0123456789abcdef0123' }), 401, 'unauthorized');
  });
});
