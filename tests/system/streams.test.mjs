// alone: it needs the processors for itself.
// Output is exact: of any length, for readers of any speed, at any offset, and across the death of the server.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { Server, sleep, until } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { LONG, finish, killServer, residentKib, sha256 } from './support.mjs';

/** What `perl -e PROGRAM` writes: lines that are their number, so that every byte is known by its place. */
const numbered = (lines) => {
  const whole = Buffer.alloc(lines * 16);
  for (let i = 0; i < lines; i++) whole.write(`${String(i).padStart(15, '0')}\n`, i * 16, 'latin1');
  return whole;
};
const isSanitized = (pid) => readFileSync(`/proc/${pid}/maps`, 'utf8').includes('libasan');
const random = (max) => Math.floor(Math.random() * max);

describe('streams', { timeout: 300000 }, () => {
  let server;
  let box;
  const agent = new http.Agent({ keepAlive: false, maxSockets: Infinity });
  before(async () => {
    server = await Server.start({ args: ['--output-limit', '256Mi'] });
    box = await server.create({ resources: { pids: 2000, memory: '4Gi' } });
  });
  after(() => finish(server, { killed: true }));

  const start = async (options) => {
    const r = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, options);
    assert.equal(r.status, 201, r.text);
    return r.json;
  };
  const ended = async (p) => (await server.request('GET', `/v1/sandboxes/${box.id}/processes/${p.id}?wait=120s`)).json;

  /** Bytes from an offset on, given to take(); resolves at the end, rejects when the connection breaks. */
  const read = (p, offset, take, { stream = 'stdout', query = '' } = {}) =>
    new Promise((resolve, reject) => {
      const req = http.get(`${server.url}/v1/executions/${p.id}/output?stream=${stream}&offset=${offset}${query}`, { agent, headers: { 'X-API-Key': server.key } }, (res) => {
        if (res.statusCode !== 200) {
          res.resume();
          reject(Object.assign(new Error(`status ${res.statusCode}`), { status: res.statusCode }));
          return;
        }
        res.on('data', (data) => take(data, res));
        res.on('end', () => (res.complete ? resolve() : reject(new Error('cut short'))));
        res.on('error', reject);
        res.on('aborted', () => reject(new Error('aborted')));
      });
      req.on('error', reject);
    });

  it('of 100 MB are the same for fast, slow and hesitant readers', async () => {
    const size = LONG ? 100_000_000 : 40_000_000;
    const command = `head -c ${size} /dev/zero | openssl enc -aes-128-ctr -nosalt -pass pass:bunker 2>/dev/null | tee /tmp/big; sha256sum < /tmp/big >&2; rm /tmp/big`;
    const p = await start({ command });
    const readers = [0, 0, 1, 2, 3].map(async (kind, i) => {
      const parts = [];
      const offset = i === 1 ? random(size) : 0;
      await read(p, offset, (data, res) => {
        parts.push(data);
        const wait = [0, 0, 1, random(20), random(100) === 0 ? 300 : 0][kind + 1];
        if (kind && wait) {
          res.pause();
          setTimeout(() => res.resume(), kind === 1 ? wait : wait / 4);
        }
      });
      return { offset, data: Buffer.concat(parts) };
    });
    const all = await Promise.all(readers);
    assert.equal((await ended(p)).stdout.length, size);
    let hash = '';
    await read(p, 0, (data) => (hash += data), { stream: 'stderr' });
    for (const { data } of all.filter((r) => r.offset === 0)) {
      assert.equal(data.length, size);
      assert.equal(sha256(data), hash.slice(0, 64));
    }
    const part = all[1];
    assert.equal(sha256(part.data), sha256(all[0].data.subarray(part.offset)));
    const most = isSanitized(server.frontPid) ? 400 : 64; // a sanitizer keeps what was freed for a while
    assert.ok(residentKib(server.frontPid) < most * 1024, `the front has ${residentKib(server.frontPid)} KiB`);
  });

  it('come to readers that come and go all the time, from whatever byte they ask for', async () => {
    const lines = 200_000;
    const expected = numbered(lines);
    const p = await start({ command: ['perl', '-e', `$|=1; for $i (0..${lines - 1}) { printf "%015d\\n", $i; select(undef, undef, undef, 0.001) unless $i % 400 }`] });
    let attachments = 0;
    const storm = Array.from({ length: 40 }, async () => {
      for (let offset = 0; offset < expected.length; ) {
        if (random(3) === 0) offset = random(Math.min(expected.length, offset + 50_000));
        let budget = random(8) ? 1 + random(300_000) : Infinity;
        let at = offset;
        attachments++;
        const take = (data) => {
          assert.ok(data.equals(expected.subarray(at, at + data.length)), `wrong bytes at ${at}`);
          at += data.length;
          budget -= data.length;
        };
        if (random(4) === 0) {
          const ws = await Socket.open(server, `/v1/sandboxes/${box.id}/processes/${p.id}/output?stream=stdout&offset=${offset}`);
          for (let m; budget > 0 && (m = await ws.next()); ) if (m.data) take(m.data);
          ws.destroy();
        } else {
          await read(p, offset, (data, res) => {
            take(data);
            if (budget <= 0) res.destroy();
          }).catch((error) => {
            if (budget > 0) throw error;
          });
        }
        offset = at;
      }
    });
    await Promise.all(storm);
    assert.equal((await ended(p)).stdout.length, expected.length);
    assert.ok(attachments > 150, `only ${attachments} attachments`);
  });

  it('200 of them go on after kill -9 of the server: nothing is missing, nothing comes twice', async () => {
    const lines = 6000;
    const expected = numbered(lines);
    const program = `$|=1; for $i (0..${lines - 1}) { printf "%015d\\n", $i; printf STDERR "%015d\\n", $i if $i < 500; select(undef, undef, undef, 0.02) unless $i % 40 }`;
    const processes = [];
    for (let i = 0; i < 200; i += 20) processes.push(...(await Promise.all(Array.from({ length: 20 }, () => start({ command: ['perl', '-e', program] })))));
    let breaks = 0;
    const follow = async (p, stream, whole) => {
      for (let at = 0; ; ) {
        const from = at;
        try {
          await read(p, at, (data) => {
            assert.ok(data.equals(whole.subarray(at, at + data.length)), `wrong bytes at ${at}, from ${from}`);
            at += data.length;
          }, { stream });
          assert.equal(at, whole.length);
          return;
        } catch (error) {
          if (error.code === 'ERR_ASSERTION' || (error.status && error.status !== 503)) throw error;
          breaks++;
          await sleep(20 + random(80));
        }
      }
    };
    const followed = Promise.all(processes.flatMap((p, i) => [follow(p, 'stdout', expected), ...(i % 10 ? [] : [follow(p, 'stderr', expected.subarray(0, 8000))])]));
    for (let i = 0; i < 3; i++) {
      await sleep(500);
      if (i === 1) {
        process.kill(server.frontPid, 'SIGKILL'); // the warden starts another
      } else {
        await killServer(server);
        await server.launch();
      }
    }
    await followed;
    assert.ok(breaks >= 200, `only ${breaks} streams were broken`);
    const all = (await server.request('GET', `/v1/sandboxes/${box.id}/processes`)).json.processes;
    assert.deepEqual(all, [], 'all have ended');
    for (const p of [processes[0], processes[199]]) {
      const end = await ended(p);
      assert.deepEqual([end.status, end.stdout.length, end.outputTruncated], ['completed', expected.length, false]);
    }
  });

  it('stdin goes on where it was after kill -9, by its offset', async () => {
    const p = await start({ command: 'sleep 1; exec sha256sum', openStdin: true });
    const data = numbered(300_000);
    let at = 0;
    let kills = 0;
    const write = async () => {
      const piece = data.subarray(at, at + 200_000 + random(300_000));
      const close = at + piece.length === data.length;
      const r = await server.request('POST', `/v1/sandboxes/${box.id}/processes/${p.id}/stdin?offset=${at}&close=${close}`, piece, { headers: { 'content-type': 'application/octet-stream' } });
      if (r.status === 503) return;
      if (r.status === 409 && close) return void (at = data.length); // the answer to the last piece was lost
      assert.equal(r.status, 200, r.text);
      assert.ok(r.json.offset >= at + piece.length);
      at = r.json.offset;
    };
    while (at < data.length) {
      if (kills < 3 && (kills === 0 || random(6) === 0)) {
        const lost = write().catch(() => {});
        // The first time the process does not read yet, so that bytes wait for it on the way.
        await sleep(kills++ ? random(4) : 200);
        await killServer(server);
        await lost;
        await server.launch();
        // What the process has got is known, whatever became of the answer.
        const now = (await server.request('GET', `/v1/sandboxes/${box.id}/processes/${p.id}`)).json;
        if (now.status !== 'running') break; // the last piece was the one under way
        const got = now.stdin.offset;
        assert.ok(got >= at, `${at} bytes were acknowledged, and ${got} have arrived`);
        at = random(2) ? got : at; // both are right: what is repeated is passed over
      }
      await write();
    }
    await ended(p);
    let sum = '';
    await read(p, 0, (bytes) => (sum += bytes));
    assert.equal(sum.slice(0, 64), sha256(data));
  });

  it('arrive within a millisecond or two of being written', async (t) => {
    const p = await start({ command: ['cat'], openStdin: true });
    const ws = await Socket.open(server, `/v1/sandboxes/${box.id}/processes/${p.id}/output`);
    await ws.next();
    const times = [];
    for (let i = 0; i < 200; i++) {
      const began = process.hrtime.bigint();
      ws.send(`${i}\n`);
      for (let m; (m = await ws.next()) && !m.data; );
      times.push(Number(process.hrtime.bigint() - began) / 1e6);
      if (i % 50 === 0) await sleep(10);
    }
    times.sort((a, b) => a - b);
    t.diagnostic(`there and back through cat: median ${times[100].toFixed(2)} ms, p90 ${times[180].toFixed(2)} ms`);
    assert.ok(times[100] < 10, `median ${times[100]} ms`);
    ws.destroy();
    await server.request('DELETE', `/v1/sandboxes/${box.id}/processes/${p.id}`);
  });
});
