// The server's own TLS: --tls-cert and --tls-key.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync, renameSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import https from 'node:https';
import net from 'node:net';
import tls from 'node:tls';
import { makeCertificate } from '../lib/certificate.mjs';
import { BUNKER, Server, dataDirectory, sleep, until } from '../lib/server.mjs';

let server, dir, id;

const path = (name) => join(dir, name);
const certificate = () => readFileSync(path('current.pem'));

function install(name) {
  for (const kind of ['pem', 'key']) {
    writeFileSync(path(`next.${kind}`), readFileSync(path(`${name}.${kind}`)));
    renameSync(path(`next.${kind}`), path(`current.${kind}`));
  }
}

/** One request by TLS, on a connection of its own unless an agent is given. */
function request(method, target, body, { headers = {}, ca = certificate(), agent = false, onResponse } = {}) {
  return new Promise((resolve, reject) => {
    const req = https.request(
      { host: '127.0.0.1', port: server.port, method, path: target, ca, agent, headers: { authorization: `Bearer ${server.key}`, ...headers } },
      async (res) => {
        if (onResponse) return resolve(onResponse(res));
        const parts = [];
        res.on('error', reject);
        for await (const part of res) parts.push(part);
        resolve({ status: res.statusCode, body: Buffer.concat(parts) });
      },
    );
    req.on('error', reject);
    req.end(body);
  });
}

const commonName = () =>
  new Promise((resolve, reject) => {
    const socket = tls.connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    });
    socket.on('error', reject);
  });

const handshake = (options) =>
  new Promise((resolve) => {
    const socket = tls.connect({ host: '127.0.0.1', port: server.port, ca: certificate(), ...options }, () => {
      resolve({ protocol: socket.getProtocol(), alpn: socket.alpnProtocol });
      socket.destroy();
    });
    socket.on('error', (error) => resolve({ error: error.code ?? error.message }));
  });

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'bunker-tls-'));
  makeCertificate(dir, 'first');
  makeCertificate(dir, 'second');
  install('first');
  server = await Server.start({ args: ['--tls-cert', path('current.pem'), '--tls-key', path('current.key')] });
  id = (await server.create()).id;
});

after(async () => {
  await server?.destroy();
  rmSync(dir, { recursive: true, force: true });
});

test('says https where it listens', () => {
  assert.match(server.log.text, /listening on https:\/\/127\.0\.0\.1:\d+/);
});

test('speaks TLS 1.2 and 1.3, nothing older', async () => {
  assert.equal((await handshake({ maxVersion: 'TLSv1.2' })).protocol, 'TLSv1.2');
  assert.equal((await handshake({ minVersion: 'TLSv1.3' })).protocol, 'TLSv1.3');
  const old = await handshake({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
  assert.ok(old.error, JSON.stringify(old));
});

test('agrees on http/1.1 and on nothing else', async () => {
  assert.equal((await handshake({ ALPNProtocols: ['h2', 'http/1.1'] })).alpn, 'http/1.1');
  assert.equal((await handshake({})).alpn, false);
  assert.ok((await handshake({ ALPNProtocols: ['h2'] })).error);
});

test('serves plain HTTP to loopback on the same port', async () => {
  assert.equal((await server.request('GET', '/health')).status, 200);
});

test('carries requests on one connection, one after the other', async () => {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set();
  for (let i = 0; i < 20; i++)
    await request('GET', '/health', undefined, {
      agent,
      onResponse: async (res) => {
        ports.add(res.socket.localPort);
        for await (const part of res) assert.ok(part.length);
      },
    });
  agent.destroy();
  assert.equal(ports.size, 1);
});

test('carries 20 MiB up and down unchanged', async () => {
  const data = randomBytes(20 << 20);
  const target = `/v1/sandboxes/${id}/files/home/user/big`;
  const put = await request('PUT', target, data);
  assert.ok(put.status < 300, String(put.body));
  const answer = await request('GET', target);
  assert.equal(answer.status, 200);
  assert.equal(createHash('sha256').update(answer.body).digest('hex'), createHash('sha256').update(data).digest('hex'));
});

test('waits for a client that reads slowly, and loses nothing', async () => {
  const target = `/v1/sandboxes/${id}/files/home/user/big`;
  const res = await request('GET', target, undefined, { onResponse: (r) => r });
  const hash = createHash('sha256');
  let length = 0, pauses = 0;
  for await (const part of res) {
    hash.update(part);
    length += part.length;
    if (length > pauses * (5 << 20)) {
      pauses++;
      await sleep(150);
    }
  }
  assert.equal(length, 20 << 20);
  const inside = await server.exec(id, 'sha256sum /home/user/big');
  assert.equal(hash.digest('hex'), inside.stdout.split(' ')[0]);
});

test('asks for a body that is expected to be asked for', async () => {
  const answer = await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${server.key}`, expect: '100-continue', 'content-type': 'application/json' };
    const req = https.request({ host: '127.0.0.1', port: server.port, ca: certificate(), method: 'POST', path: `/v1/sandboxes/${id}/exec`, headers }, (res) => {
      res.resume();
      res.on('end', () => resolve({ status: res.statusCode, asked }));
    });
    let asked = false;
    req.on('continue', () => {
      asked = true;
      req.end('{"command": "true"}');
    });
    req.on('error', reject);
    req.flushHeaders();
  });
  assert.deepEqual(answer, { status: 200, asked: true });
});

test('streams output as it comes', async () => {
  const headers = { accept: 'application/x-ndjson', 'content-type': 'application/json' };
  const body = JSON.stringify({ command: 'echo one; sleep 1; echo two' });
  const times = await request('POST', `/v1/sandboxes/${id}/exec`, body, {
    headers,
    onResponse: async (res) => {
      const seen = {};
      for await (const part of res) for (const word of ['one', 'two']) if (String(part).includes(word)) seen[word] ??= Date.now();
      return seen;
    },
  });
  assert.ok(times.two - times.one > 700, JSON.stringify(times));
});

test('says https where it says an address of its own', async () => {
  const ask = async (by) => JSON.parse((await by('POST', `/v1/sandboxes/${id}/ports/8000/tokens`)).text).url;
  const secure = (method, target) => request(method, target, '{}', { headers: { 'content-type': 'application/json' } }).then(({ body }) => ({ text: String(body) }));
  assert.match(await ask(secure), /^https:\/\/8000-/);
  assert.match(await ask((method, target) => server.request(method, target, {})), /^http:\/\/8000-/);
});

test('is used by the command line, which checks the certificate', () => {
  const url = `https://localhost:${server.port}`;
  const trusted = server.cli(['exec', id, '--', 'echo', 'hi'], { env: { BUNKER_URL: url, SSL_CERT_FILE: path('current.pem') } });
  assert.equal(trusted.stdout, 'hi\n', trusted.stderr);
  const big = server.cli(['exec', id, '--', 'sha256sum'], { input: 'x'.repeat(3 << 20), env: { BUNKER_URL: url, SSL_CERT_FILE: path('current.pem') } });
  assert.equal(big.status, 0, big.stderr);
  const stranger = server.cli(['ls'], { env: { BUNKER_URL: url, SSL_CERT_FILE: path('second.pem') } });
  assert.notEqual(stranger.status, 0);
  assert.match(stranger.stderr, /TLS with localhost:\d+ failed: self.signed certificate/);
});

test('carries terminals and forwarded input of the command line', () => {
  const env = { BUNKER_URL: `https://127.0.0.1:${server.port}`, SSL_CERT_FILE: path('current.pem') };
  const copied = server.cli(['exec', '-i', id, '--', 'md5sum'], { input: 'y'.repeat(1 << 20), env });
  assert.match(copied.stdout, new RegExp(createHash('md5').update('y'.repeat(1 << 20)).digest('hex')), copied.stderr);
});

test('drops a client that stops in the middle of the handshake', { timeout: 30000 }, async () => {
  const socket = net.connect(server.port, '127.0.0.1');
  socket.write(Buffer.from([0x16, 3, 1, 2, 0]));
  const began = Date.now();
  await new Promise((resolve) => socket.on('close', resolve).on('error', () => {}).resume());
  assert.ok(Date.now() - began < 20000);
  assert.equal((await request('GET', '/health')).status, 200);
});

test('drops what begins like TLS and is none', async () => {
  for (let i = 0; i < 50; i++)
    await new Promise((resolve) => {
      const socket = net.connect(server.port, '127.0.0.1', () => socket.end(Buffer.concat([Buffer.from([0x16]), randomBytes(200)])));
      socket.on('close', resolve).on('error', () => {}).resume();
    });
  assert.equal((await request('GET', '/health')).status, 200);
});

test('uses new files at once, and connections that are open go on', async () => {
  assert.equal(await commonName(), 'first');
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  const ca = certificate();
  assert.equal((await request('GET', '/health', undefined, { agent, ca })).status, 200);
  install('second');
  await until('the new certificate is used', async () => (await commonName()) === 'second');
  assert.equal((await request('GET', '/health', undefined, { agent, ca })).status, 200);
  agent.destroy();
});

test('keeps the certificate that works when the new one does not, and says so', async () => {
  const before = await commonName();
  writeFileSync(path('current.pem'), 'no certificate\n');
  process.kill(server.child.pid, 'SIGHUP');
  await until('it is told', () => /the new certificate cannot be used; the old one stays/.test(server.log.text));
  assert.equal(await commonName(), before);
  install('first');
  await until('the next one is used', async () => (await commonName()) === 'first');
});

test('keeps its certificate when the front dies', async () => {
  const front = server.frontPid;
  process.kill(front, 'SIGKILL');
  server.renewAgent();
  await until('another front serves', async () => server.frontPid && server.frontPid !== front && (await commonName().catch(() => '')) === 'first');
});

test('does not start with a key of another certificate, or with half of both', () => {
  const data = dataDirectory();
  const run = (...args) => spawnSync(BUNKER, ['serve', '--listen', '127.0.0.1:0', '--data', data, ...args], { encoding: 'utf8', timeout: 20000 });
  const wrong = run('--tls-cert', path('first.pem'), '--tls-key', path('second.key'));
  assert.equal(wrong.status, 2, wrong.stderr);
  assert.match(wrong.stderr, /key/);
  const half = run('--tls-cert', path('first.pem'));
  assert.equal(half.status, 2);
  assert.match(half.stderr, /--tls-cert and --tls-key need each other/);
  rmSync(data, { recursive: true, force: true });
});
