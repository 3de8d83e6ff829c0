// E153 and E154: descriptors and places for connections. Whoever takes many, with a key or without, takes none from others.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import net from 'node:net';
import { Server, dataDirectory, until } from '../lib/server.mjs';
import { finish } from '../system/support.mjs';

const HEAVY = `bnk_${'a'.repeat(40)}`;

/** Opens connections, sends `bytes` on each, and tells when they are open. */
async function open(t, server, count, bytes = '') {
  const sockets = Array.from({ length: count }, () => net.connect(server.port, '127.0.0.1'));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.on('error', () => {});
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))));
  if (bytes) for (const socket of sockets) socket.write(bytes);
  return sockets;
}

/** An answer on a connection of its own. */
const answered = (server, key, path = '/v1/sandboxes') =>
  new Promise((resolve, reject) => {
    const socket = net.connect(server.port, '127.0.0.1', () => socket.end(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`));
    let text = '';
    socket.on('data', (data) => (text += data));
    socket.on('error', reject);
    socket.on('close', () => resolve(Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1])));
  });

describe('places for connections', { timeout: 60000 }, () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0', '--max-connections', '100'] });
  });
  after(() => finish(server));

  it('E154_silent_connections_keep_nobody_out', async (t) => {
    await open(t, server, 400);
    for (let i = 0; i < 20; i++) assert.equal(await answered(server, server.key), 200);
  });

  it('E154_half_heads_keep_nobody_out', async (t) => {
    await open(t, server, 400, `GET /health HTTP/1.1\r\nX-Long: ${'x'.repeat(20000)}`);
    for (let i = 0; i < 20; i++) assert.equal(await answered(server, server.key), 200);
  });

  it('E154_a_connection_without_a_byte_is_closed_after_ten_seconds', async (t) => {
    const began = Date.now();
    const [silent] = await open(t, server, 1);
    const [used] = await open(t, server, 1, `GET /health HTTP/1.1\r\nHost: x\r\n\r\n`);
    silent.resume();
    used.resume();
    await new Promise((resolve) => silent.once('close', resolve));
    assert.ok(Date.now() - began > 9000 && Date.now() - began < 20000, `${Date.now() - began} ms`);
    assert.equal(used.closed, false, 'control: one that had an answer may wait for the next request');
  });

  it('E154_connections_with_a_key_stay_when_strangers_come', async (t) => {
    const [known] = await open(t, server, 1);
    const ask = () =>
      new Promise((resolve) => {
        known.once('data', (data) => resolve(String(data).split(' ')[1]));
        known.write(`GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\n\r\n`);
      });
    assert.equal(await ask(), '200');
    await open(t, server, 300);
    assert.equal(await ask(), '200', 'the same connection goes on');
  });
});

describe('many connections of one address', { timeout: 60000 }, () => {
  // In a network of its own, where the addresses are not those of loopback.
  const ADDRESSES = ['10.77.0.1', '10.77.0.2', '10.77.0.3'];
  let server;
  before(async () => {
    const setup = `ip link set lo up; ${ADDRESSES.map((a) => `ip addr add ${a}/32 dev lo`).join('; ')}; exec "$@"`;
    server = Object.assign(new Server(), { data: dataDirectory(), args: ['--pool', '0', '--max-connections-per-address', '20'], wrapper: ['unshare', '-n', 'bash', '-c', setup, '-'], env: process.env, listen: `${ADDRESSES[0]}:2468` });
    await server.launch();
  });
  after(() => finish(server));

  /** The statuses of one answer on each of `count` connections that stay open. */
  function statuses(from, count) {
    const code = `const net = require('node:net');
      const ask = () => new Promise((resolve) => {
        const socket = net.connect({ host: '${ADDRESSES[0]}', port: 2468, localAddress: '${from}' });
        const over = (status) => resolve(status);
        socket.on('error', () => over('closed'));
        socket.on('close', () => over('closed'));
        socket.on('data', (data) => over(String(data).split(' ')[1]));
        socket.write('GET /v1/sandboxes HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer ${server.key}\\r\\n\\r\\n');
      });
      (async () => {
        const all = [];
        for (let i = 0; i < ${count}; i++) all.push(await ask());
        console.log(JSON.stringify(all));
        process.exit(0);
      })();`;
    const child = spawn('nsenter', [`--net=/proc/${server.child.pid}/ns/net`, process.execPath, '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
    return new Promise((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (data) => (text += data));
      child.on('exit', (status) => (status === 0 ? resolve(JSON.parse(text)) : reject(new Error(`the client ended: ${status}`))));
    });
  }

  it('E154_one_address_gets_its_share_and_the_next_its_own', async () => {
    const many = await statuses(ADDRESSES[1], 30);
    assert.deepEqual(many.slice(0, 20), Array(20).fill('200'), 'control: twenty are served');
    assert.deepEqual(many.slice(20), Array(10).fill('503'));
    assert.deepEqual(await statuses(ADDRESSES[2], 20), Array(20).fill('200'));
    await until('those that were closed do not count', async () => (await statuses(ADDRESSES[1], 1))[0] === '200');
  });
});

describe('few descriptors', { timeout: 120000 }, () => {
  const LIMIT = 400;
  let server;
  before(async () => {
    server = await Server.start({
      args: ['--pool', '0', '--open-files', '64', '--max-open-files', '64', '--api-key', `heavy=${HEAVY}`],
      wrapper: ['bash', '-c', `ulimit -n ${LIMIT}; exec "$@"`, '-'],
    });
  });
  after(() => finish(server));

  const heavy = (method, path, body) => server.request(method, path, body, { key: HEAVY });
  const descriptors = () => readdirSync(`/proc/${server.frontPid}/fd`).length;

  it('E153_processes_with_long_output_hold_no_descriptors', async () => {
    const boxes = [];
    for (let i = 0; i < 2; i++) boxes.push((await heavy('POST', '/v1/sandboxes', {})).json.id);
    for (let i = 0; i < 200; i++) {
      const r = await heavy('POST', `/v1/sandboxes/${boxes[i % 2]}/processes`, { command: 'seq 20000; seq 20000 >&2; exec sleep 1000' });
      assert.equal(r.status, 201, r.text);
    }
    const spooled = () => readdirSync(`${server.data}/front/spool`).length;
    await until('all have written', () => spooled() === 400, 30000);
    assert.ok(descriptors() < 200, `${descriptors()} descriptors`);
    assert.equal(await answered(server, server.key), 200, 'others can connect');
    const own = await server.create();
    assert.equal((await server.exec(own.id, 'seq 20000 | tail -n 1')).stdout, '20000\n');
    for (const id of boxes) assert.equal((await heavy('DELETE', `/v1/sandboxes/${id}`)).status, 204);
    await server.request('DELETE', `/v1/sandboxes/${own.id}`);
  });

  it('E153_a_tenant_that_uses_up_its_descriptors_is_told_and_others_are_served', async (t) => {
    const box = (await heavy('POST', '/v1/sandboxes', {})).json.id;
    const refused = [];
    const watches = [];
    t.after(() => watches.forEach((socket) => socket.destroy()));
    // Each keeps a file worker, and with it a descriptor, for as long as its client listens.
    for (let i = 0; i < 120 && refused.length < 5; i++) {
      const socket = net.connect(server.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(`GET /v1/sandboxes/${box}/fs/watch?path=/tmp HTTP/1.1\r\nHost: x\r\nAccept: application/x-ndjson\r\nAuthorization: Bearer ${HEAVY}\r\n\r\n`);
      const text = await new Promise((resolve) => socket.once('data', (data) => resolve(String(data))));
      watches.push(socket);
      if (!/^HTTP\/1.1 200/.test(text)) refused.push(text);
    }
    assert.ok(watches.length > 40, `control: it had ${watches.length - refused.length} before`);
    assert.ok(refused.length === 5, 'it is refused in the end');
    for (const text of refused) assert.match(text, /^HTTP\/1.1 429[^]*quota_exceeded[^]*descriptors/);
    assert.equal((await heavy('POST', '/v1/sandboxes', {})).json.error.code, 'quota_exceeded');
    assert.equal(await answered(server, server.key), 200);
    const own = await server.create({ files: [{ path: 'x', content: 'y' }] });
    assert.equal((await server.exec(own.id, 'cat x')).stdout, 'y');
    await server.request('DELETE', `/v1/sandboxes/${own.id}`);
    assert.equal((await heavy('DELETE', `/v1/sandboxes/${box}`)).status, 204, 'and it can delete');
    await until('it may have sandboxes again', async () => (await heavy('POST', '/v1/sandboxes', {})).status === 201);
  });
});
