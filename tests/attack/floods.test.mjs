// E150 and on: one tenant sends or keeps more than its share. The others must not notice, and the host must not fill.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { Server, sleep, until } from '../lib/server.mjs';
import { sha256, tarHeader } from '../lib/images.mjs';
import { finish } from '../system/support.mjs';

const HEAVY = `bnk_${'a'.repeat(40)}`;
// What a busy machine may take to answer /health; a loop that works for one tenant takes seconds.
const PATIENCE_MS = 1000;

let server;
before(async () => {
  server = await Server.start({ args: ['--api-key', `heavy=${HEAVY}`, '--disk', '2Gi', '--max-disk', '2Gi'] });
});
after(() => finish(server));

const heavy = (method, path, body, headers = {}) => server.request(method, path, body, { key: HEAVY, headers });

/** The slowest answer to /health while `work` is under way, in milliseconds, and what came of it. */
async function slowestHealth(work) {
  let over = false;
  let slowest = 0;
  const result = work.finally(() => (over = true));
  for (let n = 0; !over || n < 10; n++) {
    const begin = performance.now();
    assert.equal((await server.request('GET', '/health')).status, 200);
    slowest = Math.max(slowest, performance.now() - begin);
    await sleep(2);
  }
  return { slowest, result: await result };
}

const unhindered = (slowest) => assert.ok(slowest < PATIENCE_MS, `/health took ${Math.round(slowest)} ms`);

test('E150 control: /health answers within the bound when nothing is under way', async () => {
  unhindered((await slowestHealth(sleep(500))).slowest);
});

test('E150_an_import_that_expands_a_thousandfold_stops_nobody', { timeout: 120000 }, async () => {
  const size = 960 << 20;
  const zeros = gzipSync(Buffer.alloc(64 << 20));
  const bomb = Buffer.concat([gzipSync(tarHeader({ name: 'usr/bomb', size })), ...Array(15).fill(zeros)]);
  assert.ok(bomb.length < 1.5 * 2 ** 20);
  const { slowest, result } = await slowestHealth(heavy('POST', '/v1/templates/imports?name=bomb', bomb, { 'content-type': 'application/gzip' }));
  assert.equal(result.status, 201, result.text);
  assert.ok(result.json.size >= size, 'the bomb went off');
  unhindered(slowest);
});

test('E150_a_gzip_body_of_E2B_that_expands_a_thousandfold_stops_nobody', { timeout: 120000 }, async () => {
  const size = 512 << 20;
  const made = await heavy('POST', '/sandboxes', { templateID: 'base' }, { 'x-api-key': HEAVY });
  assert.equal(made.status, 201, made.text);
  const headers = { 'e2b-sandbox-id': made.json.sandboxID, 'x-access-token': made.json.envdAccessToken, 'content-type': 'application/octet-stream' };
  const put = (body, encoding) => heavy('POST', '/files?path=bomb', body, { ...headers, 'content-encoding': encoding });
  const bomb = gzipSync(Buffer.alloc(size));
  const { slowest, result } = await slowestHealth(put(bomb, 'gzip'));
  assert.equal(result.status, 200, result.text);
  assert.equal((await heavy('POST', `/v1/sandboxes/${made.json.sandboxID}/exec`, { command: 'stat -c %s ~/bomb' })).json.stdout, `${size}\n`);
  unhindered(slowest);
  for (const [body, why] of [['plain', 'not compressed'], [gzipSync('cut').subarray(0, 15), 'cut'], [Buffer.concat([gzipSync('a'), Buffer.from('tail')]), 'broken'], ['', '']]) {
    const answer = await put(body, 'gzip');
    assert.equal(answer.status, 400, answer.text);
    assert.ok(answer.text.includes(why), answer.text);
  }
  await heavy('DELETE', `/v1/sandboxes/${made.json.sandboxID}`);
});

/** A request head for an archive of `size` bytes, of which none comes, and the status that it is answered with: 100, or `wanted`. */
function announce(t, size, wanted = 100) {
  const socket = connect(server.port, '127.0.0.1');
  t.after(() => socket.destroy());
  const hash = randomBytes(32).toString('hex');
  socket.write(`PUT /v1/templates/contexts/${hash} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${HEAVY}\r\nContent-Length: ${size}\r\nExpect: 100-continue\r\n\r\n`);
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
      const status = Number([...text.matchAll(/^HTTP\/1.1 (\d+)/gm)].at(-1)?.[1]);
      if (status === wanted || status > 100) resolve({ socket, status, text });
    });
  });
}

const archive = (bytes, key = HEAVY) => server.request('PUT', `/v1/templates/contexts/${sha256(bytes)}`, bytes, { key, headers: { 'content-type': 'application/x-tar' } });

test('E151_archives_on_their_way_count_by_what_they_announce', async (t) => {
  const size = 2 * 2 ** 30;
  const begun = [];
  for (let i = 0; i < 4; i++) begun.push(await announce(t, size));
  assert.deepEqual(begun.map(({ status }) => status), [100, 100, 100, 100], 'control: eight GiB are allowed');
  const fifth = await announce(t, 1, 429);
  assert.equal(fifth.status, 429, fifth.text);
  assert.equal((await archive(Buffer.from('x'))).json?.error.code, 'quota_exceeded');
  assert.equal((await archive(Buffer.from('x'), server.key)).status, 204, 'control: another tenant has its own');
  for (const { socket } of begun) socket.destroy();
  await until('what was given up does not count', async () => (await archive(Buffer.from('x'))).status === 204);
});

test('E151_an_archive_of_unknown_length_counts_as_it_grows', async (t) => {
  for (let i = 0; i < 3; i++) await announce(t, 2 * 2 ** 30);
  await announce(t, 2 * 2 ** 30 - (96 << 20));
  // 96 MiB are left: a body in chunks may have them, and not more.
  const chunked = (mib) =>
    new Promise((resolve, reject) => {
      const req = http.request(`${server.url}/v1/templates/contexts/${'0'.repeat(64)}`, { method: 'PUT', headers: { authorization: `Bearer ${HEAVY}` } }, (res) => {
        res.resume();
        res.on('end', () => resolve(res.statusCode));
      });
      req.on('error', (error) => error.code === 'EPIPE' || error.code === 'ECONNRESET' || reject(error));
      Readable.from(Array(mib).fill(Buffer.alloc(1 << 20))).pipe(req);
    });
  assert.equal(await chunked(8), 400, 'control: it is taken, and its hash is wrong');
  assert.equal(await chunked(128), 429);
});

/** What the front's loop and its other threads have used, in ticks. */
function processorTime() {
  const ticks = (path) => readFileSync(path, 'utf8').replace(/^.*\) /, '').split(' ').slice(11, 13).reduce((sum, n) => sum + Number(n), 0);
  const loop = ticks(`/proc/${server.frontPid}/task/${server.frontPid}/stat`);
  return { loop, others: ticks(`/proc/${server.frontPid}/stat`) - loop };
}

test('E151_archives_that_come_fast_are_hashed_and_written_by_threads', { timeout: 120000 }, async () => {
  // By processes of their own: what this one does would delay its own questions.
  const upload = `const { createHash, randomBytes } = require('node:crypto');
    const bytes = Buffer.alloc(300 << 20, randomBytes(1 << 20));
    const url = '${server.url}/v1/templates/contexts/' + createHash('sha256').update(bytes).digest('hex');
    const headers = { authorization: 'Bearer ${HEAVY}', 'content-type': 'application/x-tar' };
    process.stdin.once('data', () => fetch(url, { method: 'PUT', body: bytes, headers }).then((r) => process.exit(r.status === 204 ? 0 : 1)));
    console.log('ready');`;
  const uploads = [1, 2].map(() => spawn(process.execPath, ['-e', upload], { stdio: ['pipe', 'pipe', 'inherit'] }));
  await Promise.all(uploads.map((child) => new Promise((resolve) => child.stdout.once('data', resolve))));
  const all = Promise.all(uploads.map((child) => new Promise((resolve) => child.on('exit', resolve))));
  for (const child of uploads) child.stdin.write('go');
  const before = processorTime();
  const { slowest, result } = await slowestHealth(all);
  const spent = processorTime();
  assert.deepEqual(result, [0, 0]);
  unhindered(slowest);
  // To hash and write 600 MiB takes longer than to receive them.
  assert.ok(spent.others - before.others > spent.loop - before.loop, JSON.stringify([before, spent]));
});
