// What a key has open when it ends: all of it is cut within a second, by whatever protocol it came, and nobody else notices.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Server, until } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { finish } from './support.mjs';

const LIMIT_MS = 1000;

function envelope(message) {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}

describe('K182 what a key has open', { timeout: 120000 }, () => {
  let server, box, ticking;
  let made = 0;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
    box = await server.create({});
    ticking = (await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'while echo tick; do sleep 0.05; done' })).json;
  });
  after(() => finish(server));

  const create = async (options) => (await server.request('POST', '/v1/keys', { name: `k${made++}`, ...options })).json;
  const allowed = async (key) => (await server.request('GET', '/v1/sandboxes', undefined, { key })).status;

  /** A request that stays open: { what, bytes, status, endedAt, text, close }. */
  function hold(what, method, path, headers, body, { unfinished = false } = {}) {
    const h = { what, bytes: 0, text: '' };
    const over = () => (h.endedAt ??= performance.now());
    const req = http.request(path.startsWith('http') ? path : server.url + path, { method, headers, agent: false }, (res) => {
      h.status = res.statusCode;
      res.on('data', (part) => ((h.bytes += part.length), (h.text += part.toString('latin1').slice(0, 300))));
      res.on('end', () => ((h.orderly = true), over()));
      res.on('error', over);
      res.on('close', over);
    });
    req.on('error', over);
    h.close = () => req.destroy();
    if (body) req.write(body);
    if (!unfinished) req.end();
    return h;
  }

  async function holdSocket(path, key) {
    const h = { what: 'a WebSocket', bytes: 0, status: 101 };
    const socket = await Socket.open(server, path, { key });
    socket.tcp.on('data', (part) => (h.bytes += part.length));
    socket.tcp.on('close', () => (h.endedAt ??= performance.now()));
    h.close = () => socket.tcp.destroy();
    return h;
  }

  /** One of everything that stays open. `quiet` ones have no answer until they end. */
  async function openAll(key) {
    const at = `/v1/sandboxes/${box.id}`;
    const auth = { authorization: `Bearer ${key}` };
    const json = (body) => [{ ...auth, 'content-type': 'application/json', 'content-length': Buffer.byteLength(JSON.stringify(body)) }, JSON.stringify(body)];
    const stream = (body, accept) => (([headers, text]) => [{ ...headers, accept }, text])(json(body));
    const token = (await server.request('GET', `/sandboxes/${box.id}`, undefined, { key })).json.envdAccessToken;
    const own = await server.create({}); // an Agentuity command wants its sandbox for itself
    const executed = (await server.request('POST', `/agentuity/sandbox/sbx_${own.id}/execute`, { command: ['sh', '-c', 'while echo tick; do sleep 0.05; done'] }, { key })).json.data;
    const loop = 'while echo tick; do sleep 0.05; done';
    const connect = { 'e2b-sandbox-id': box.id, 'x-access-token': token, 'content-type': 'application/connect+json', 'connect-protocol-version': '1' };
    const start = envelope({ process: { cmd: '/bin/sh', args: ['-c', loop] }, stdin: false });
    const live = [
      hold('an exec as NDJSON', 'POST', `${at}/exec`, ...stream({ command: loop }, 'application/x-ndjson')),
      hold('an exec as SSE', 'POST', `${at}/exec`, ...stream({ command: loop }, 'text/event-stream')),
      hold('the output of a process', 'GET', `${at}/processes/${ticking.id}/output?follow=true`, { ...auth, accept: 'text/event-stream' }),
      await holdSocket(`${at}/processes/${ticking.id}/output`, key),
      hold('an E2B command', 'POST', '/process.Process/Start', { ...connect, 'content-length': start.length }, start),
      hold('an Agentuity stream', 'GET', executed.stdoutStreamUrl, {}),
    ];
    const quiet = [
      hold('a watch', 'GET', `${at}/fs/watch?path=/home/user`, { ...auth, accept: 'text/event-stream' }),
      hold('events', 'GET', `${at}/events?follow=true`, { ...auth, accept: 'text/event-stream' }),
      hold('an exec that is waited for', 'POST', `${at}/exec`, ...json({ command: 'sleep 600' })),
      hold('an upload', 'PUT', `${at}/files/home/user/big-${key.slice(-6)}`, { ...auth, 'content-length': 1 << 20 }, 'x'.repeat(1000), { unfinished: true }),
      hold('a body that has not come', 'POST', `${at}/exec`, { ...json({})[0], 'content-length': 1000 }, '{', { unfinished: true }),
    ];
    await until('all that tell something tell it', () => live.every((h) => h.bytes > 0 && [200, 101].includes(h.status)), 5000).catch(() => {
      throw new Error(live.map((h) => `${h.what}: ${h.status} ${h.bytes}`).join('; '));
    });
    await until('those that wait are there', async () => (await server.request('GET', `${at}/processes?all=true`)).status === 200 && quiet.slice(0, 2).every((h) => h.status === 200), 5000);
    return { live, quiet, all: [...live, ...quiet] };
  }

  async function assertCut(open, since, why) {
    await until(`${why}: all are cut`, () => open.all.every((h) => h.endedAt), 5000).catch(() => {
      throw new Error(`${why}: still open: ${open.all.filter((h) => !h.endedAt).map((h) => h.what).join(', ')}`);
    });
    const times = open.all.map((h) => h.endedAt - since);
    console.log(`# ${why}: ${open.all.length} cut after ${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)} ms`);
    for (const h of open.all) assert.ok(h.endedAt - since < LIMIT_MS, `${h.what} was cut after ${h.endedAt - since} ms`);
    for (const h of open.live) assert.ok(!h.orderly, `${h.what} has an end that looks like one`);
    for (const h of open.quiet.slice(2)) {
      assert.equal(h.status, 401, `${h.what}: ${h.status} ${h.text}`);
      assert.match(h.text, /unauthorized/);
    }
  }

  async function assertGoesOn(open) {
    const before_ = open.live.map((h) => h.bytes);
    await until('the others tell more', () => open.live.every((h, i) => h.bytes > before_[i] + 20), 5000);
    assert.deepEqual(open.all.filter((h) => h.endedAt).map((h) => h.what), [], 'these ended as well');
  }

  it('is cut when it is revoked, and other keys go on', async () => {
    const key = await create();
    const other = await create();
    const open = await openAll(key.key);
    const theirs = await openAll(other.key);
    const since = performance.now();
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
    assert.equal(await allowed(key.key), 401);
    await assertCut(open, since, 'revoked');
    await assertGoesOn(theirs);
    const { processes } = (await server.request('GET', `/v1/sandboxes/${box.id}/processes`)).json;
    assert.ok(processes.length > 0);
    for (const h of theirs.all) h.close();
    assert.equal((await server.request('DELETE', `/v1/keys/${other.id}`)).status, 204);
  });

  it('is cut when its time is over', async () => {
    const key = await create({ expiresIn: '4s' });
    const open = await openAll(key.key);
    const end = Date.parse(key.expiresAt) - Date.now();
    assert.ok(end > 0, 'opening took longer than the key lives');
    const since = performance.now() + end;
    await until('it has ended', () => open.all.every((h) => h.endedAt), 10000);
    for (const h of open.all) assert.ok(h.endedAt >= since - 50, `${h.what} ended ${since - h.endedAt} ms too early`);
    await assertCut(open, since, 'expired');
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
  });

  it('is cut when it is rotated without grace', async () => {
    const key = await create();
    const open = await openAll(key.key);
    const since = performance.now();
    const rotated = (await server.request('POST', `/v1/keys/${key.id}/rotate`)).json;
    await assertCut(open, since, 'rotated');
    assert.deepEqual([rotated.id, rotated.name, rotated.scope, rotated.tenant], [key.id, key.name, key.scope, key.tenant]);
    assert.notEqual(rotated.key, key.key);
    assert.ok(rotated.rotatedAt && !rotated.previousUntil);
    assert.equal(await allowed(key.key), 401);
    assert.equal(await allowed(rotated.key), 200);
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
  });

  it('is cut at the end of the grace after a rotation, and what the new one has goes on', async () => {
    const key = await create();
    const open = await openAll(key.key);
    const rotated = (await server.request('POST', `/v1/keys/${key.id}/rotate`, { grace: '4s' })).json;
    const newer = await openAll(rotated.key);
    assert.deepEqual([await allowed(key.key), await allowed(rotated.key)], [200, 200]);
    const end = Date.parse(rotated.previousUntil) - Date.now();
    assert.ok(end > 0, 'opening took longer than the grace');
    await assertGoesOn(open);
    const since = performance.now() + Date.parse(rotated.previousUntil) - Date.now();
    await until('the old one has ended', () => open.all.every((h) => h.endedAt), 10000);
    await assertCut(open, since, 'grace');
    assert.equal(await allowed(key.key), 401);
    await assertGoesOn(newer);
    assert.equal((await server.request('GET', `/v1/keys/${key.id}`)).json.previousUntil, undefined);
    const again = performance.now();
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
    await assertCut(newer, again, 'revoked after a rotation');
  });

  it('is cut visibly for a client of HTTP/1.0, too', async () => {
    const key = await create();
    const body = JSON.stringify({ command: 'while echo tick; do sleep 0.05; done' });
    const socket = net.connect(server.port, '127.0.0.1');
    const seen = { bytes: 0 };
    socket.on('data', (part) => (seen.bytes += part.length));
    socket.on('error', (error) => (seen.error = error.code));
    socket.on('end', () => (seen.orderly = true));
    socket.write(`POST /v1/sandboxes/${box.id}/exec HTTP/1.0\r\nHost: localhost\r\nX-API-Key: ${key.key}\r\nAccept: application/x-ndjson\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await until('it tells something', () => seen.bytes > 300);
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
    await until('it is cut', () => seen.error || seen.orderly);
    assert.deepEqual([seen.error, seen.orderly], ['ECONNRESET', undefined]);
  });

  it('a grace and an end outlast kill -9 of the server', async () => {
    const graced = await create();
    const rotated = (await server.request('POST', `/v1/keys/${graced.id}/rotate`, { grace: '6s' })).json;
    const gone = (await server.request('POST', `/v1/keys/${(await create({ name: 'gone' })).id}/rotate`)).json;
    assert.equal((await server.request('DELETE', `/v1/keys/${gone.id}`)).status, 204);
    const short = await create({ expiresIn: '6s' });
    const token = (await server.request('GET', `/sandboxes/${box.id}`, undefined, { key: graced.key })).json.envdAccessToken;
    const inside = async () => (await server.request('GET', '/envs', undefined, { key: '', headers: { 'e2b-sandbox-id': box.id, 'x-access-token': token } })).status;
    await server.crash();
    await server.launch();
    assert.equal(await allowed(gone.key), 401);
    assert.deepEqual([await allowed(graced.key), await allowed(rotated.key), await allowed(short.key), await inside()], [200, 200, 200, 200]);
    const open = [hold('old', 'GET', `/v1/sandboxes/${box.id}/fs/watch?path=/home/user`, { authorization: `Bearer ${graced.key}` }), hold('short', 'GET', `/v1/sandboxes/${box.id}/fs/watch?path=/home/user`, { authorization: `Bearer ${short.key}` })];
    await until('both are open', () => open.every((h) => h.status === 200));
    await until('both are cut', () => open.every((h) => h.endedAt), 15000);
    assert.deepEqual([await allowed(graced.key), await allowed(rotated.key), await allowed(short.key), await inside()], [401, 200, 401, 401]);
    for (const { id } of [graced, short]) assert.equal((await server.request('DELETE', `/v1/keys/${id}`)).status, 204);
  });

  it('a key that has expired can be rotated into a new life', async () => {
    const key = await create({ expiresIn: '1s' });
    await until('it has expired', async () => (await allowed(key.key)) === 401);
    const refused = await server.request('POST', `/v1/keys/${key.id}/rotate`);
    assert.deepEqual([refused.status, refused.json.error.field], [400, 'expiresIn']);
    const rotated = (await server.request('POST', `/v1/keys/${key.id}/rotate`, { expiresIn: '1h', grace: '1h' })).json;
    assert.deepEqual([await allowed(key.key), await allowed(rotated.key)], [200, 200]);
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
    assert.deepEqual([await allowed(key.key), await allowed(rotated.key)], [401, 401]);
  });

  it('tokens and addresses that a key was given end with it', async () => {
    const key = await create();
    const { envdAccessToken: token } = (await server.request('GET', `/sandboxes/${box.id}`, undefined, { key: key.key })).json;
    const { envdAccessToken: others } = (await server.request('GET', `/sandboxes/${box.id}`)).json;
    const volume = (await server.request('POST', '/volumes', { name: 'held' }, { key: key.key })).json;
    const own = await server.create({});
    const executed = (await server.request('POST', `/agentuity/sandbox/sbx_${own.id}/execute`, { command: ['echo', 'out'] }, { key: key.key })).json.data;
    const { templateID } = (await server.request('POST', '/v3/templates', { name: 'held' }, { key: key.key })).json;
    const { url } = (await server.request('GET', `/templates/${templateID}/files/${'a'.repeat(64)}`, undefined, { key: key.key })).json;
    const envs = async (t) => (await server.request('GET', '/envs', undefined, { key: '', headers: { 'e2b-sandbox-id': box.id, 'x-access-token': t } })).status;
    const tries = async () => [
      await envs(token),
      (await server.request('GET', `/volumecontent/${volume.volumeID}/dir?path=/`, undefined, { key: volume.token })).status,
      (await fetch(executed.stdoutStreamUrl)).status,
      (await fetch(url, { method: 'PUT', body: 'no tar' })).status,
    ];
    assert.deepEqual((await tries()).map((status) => status === 401), [false, false, false, false]);
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
    assert.deepEqual(await tries(), [401, 401, 401, 401]);
    assert.equal(await envs(others), 200);
  });
});
