// What clients may try against the server's TLS. Runs in a network namespace of its own, whose loopback device has a second,
// public-looking address: a connection from there is not one from loopback.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import tls from 'node:tls';
import { makeCertificate } from '../lib/certificate.mjs';
import { Server, until } from '../lib/server.mjs';
import { enterNamespace } from '../network/world.mjs';

enterNamespace(import.meta.url);

const OUTSIDE = '5.5.5.1';
let dir, server;

before(async () => {
  for (const args of [['link', 'set', 'lo', 'up'], ['addr', 'add', `${OUTSIDE}/32`, 'dev', 'lo']]) assert.equal(spawnSync('ip', args).status, 0);
  dir = mkdtempSync(join(tmpdir(), 'bunker-tls-'));
  makeCertificate(dir, 'rsa', { key: ['rsa:2048'] });
  server = await Server.start({ args: ['--tls-cert', join(dir, 'rsa.pem'), '--tls-key', join(dir, 'rsa.key')], listen: '0.0.0.0:0' });
});

after(async () => {
  await server?.destroy();
  rmSync(dir, { recursive: true, force: true });
});

const connect = (options) =>
  new Promise((resolve) => {
    const socket = tls.connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false, ...options }, () => {
      resolve({ protocol: socket.getProtocol(), cipher: socket.getCipher().name });
      socket.destroy();
    });
    socket.on('error', (error) => resolve({ error: error.code ?? error.message }));
  });

const plain = (host) =>
  new Promise((resolve, reject) => {
    const req = http.request({ host, port: server.port, path: '/health', localAddress: host, agent: false }, (res) => {
      let text = '';
      res.on('data', (part) => (text += part)).on('end', () => resolve({ status: res.statusCode, text }));
    });
    req.on('error', reject).end();
  });

test('K125 refuses versions before 1.2, and ciphers that are weak', async () => {
  assert.equal((await connect({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' })).protocol, 'TLSv1.2'); // the control
  for (const version of ['TLSv1', 'TLSv1.1'])
    assert.ok((await connect({ minVersion: version, maxVersion: version, ciphers: 'ALL@SECLEVEL=0' })).error, version);
  for (const cipher of ['NULL-SHA256', 'AECDH-AES256-SHA', 'ADH-AES128-SHA256', 'PSK-AES128-CBC-SHA'])
    assert.ok((await connect({ maxVersion: 'TLSv1.2', ciphers: `${cipher}:@SECLEVEL=0` })).error, cipher);
});

test('K125 neither renegotiates nor compresses', async () => {
  const client = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${server.port}`, '-tls1_2', '-comp']);
  let said = '';
  for (const stream of [client.stdout, client.stderr]) stream.on('data', (part) => (said += part));
  await until('the handshake is done', () => /Verify return code/.test(said));
  assert.match(said, /Compression: NONE/);
  client.stdin.write('R\n');
  await until('it was refused', () => /no renegotiation|handshake failure|alert/.test(said));
  client.kill();
  assert.equal((await plain('127.0.0.1')).status, 200);
});

test('K125 answers plain HTTP to loopback, and to nobody else', async () => {
  assert.equal((await plain('127.0.0.1')).status, 200); // the control
  const answer = await plain(OUTSIDE);
  assert.equal(answer.status, 400);
  assert.match(answer.text, /use https/);
  assert.doesNotMatch(answer.text, /"status":"ok"/);
  assert.ok((await connect({ host: OUTSIDE, localAddress: OUTSIDE })).protocol);
});

test('K125 serves others while one client begins handshakes without an end', async () => {
  const took = async () => {
    const began = process.hrtime.bigint();
    assert.equal((await plain('127.0.0.1')).status, 200);
    return Number(process.hrtime.bigint() - began) / 1e6;
  };
  let flooding = true, handshakes = 0;
  const flood = Array.from({ length: 8 }, async () => {
    while (flooding) {
      await connect({ maxVersion: 'TLSv1.2' });
      handshakes++;
    }
  });
  const times = [];
  for (let i = 0; i < 50; i++) times.push(await took());
  flooding = false;
  await Promise.all(flood);
  assert.ok(handshakes > 8, `${handshakes} handshakes`); // the control
  times.sort((a, b) => a - b);
  assert.ok(times[25] < 1000, `half of the requests took more than ${times[25]} ms`);
});
