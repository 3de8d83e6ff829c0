// A client that does not read holds back the process whose output it asked for, and nothing else: exits, kills and
// deadlines are told when they happen, and what it was promised is still there when it reads on.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { fastClock } from '../lib/clock.mjs';
import { Server, childrenOf, commandName, sleep, until } from '../lib/server.mjs';
import { assertRefused, finish } from './support.mjs';

/** Writes lines that are their number, for ever; after SIGUSR1 it exits with status 3. */
const lines = '$SIG{USR1} = sub { POSIX::_exit(3) }; for ($i = 0; ; $i++) { printf "%015d\\n", $i }';
const FLOOD = ['perl', '-MPOSIX', '-e', lines];
/** The same, once somebody has written to its stdin: whoever reads it from the first byte on misses none. */
const WAITING_FLOOD = ['perl', '-MPOSIX', '-e', `<STDIN>; ${lines}`];

/** The bytes are those of FLOOD, from the first one on. */
function assertNumbered(bytes, what) {
  for (let at = 0; at + 16 <= bytes.length; at += 16) {
    if (Number(bytes.latin1Slice(at, at + 15)) !== at / 16) assert.fail(`${what}: wrong bytes at ${at}: ${bytes.latin1Slice(at, at + 32)}`);
  }
}

describe('a client that does not read', { timeout: 200000 }, () => {
  let server;
  let box;
  before(async () => {
    server = await Server.start({ args: ['--output-limit', '128Ki'] });
    box = await server.create();
  });
  after(() => finish(server, { killed: true }));

  const get = async (id, sandbox = box) => (await server.request('GET', `/v1/sandboxes/${sandbox.id}/processes/${id}`)).json;
  const running = async () => (await server.request('GET', `/v1/sandboxes/${box.id}/processes`)).json.processes.map((p) => p.id);
  /** The process waits for its reader: it has written nothing for a while. */
  const stalls = async (id, sandbox) => {
    let length = -1;
    await until('the process waits', async () => {
      const before = length;
      length = (await get(id, sandbox)).stdout.length;
      if (length === before && length > 1 << 20) return true;
      await sleep(300);
      return false;
    }, 60000);
  };
  /** The stdout of a process as a response that is not read; rest() reads it all. */
  const open = (id) =>
    new Promise((resolve, reject) => {
      const headers = { 'X-API-Key': server.key };
      const req = http.get(`${server.url}/v1/executions/${id}/output?stream=stdout`, { agent: false, headers }, (res) => {
        res.pause();
        res.on('error', () => {});
        resolve({
          close: () => req.destroy(),
          rest: async () => {
            const parts = [];
            for await (const part of res) parts.push(part);
            assert.ok(res.complete, 'the stream ends in order');
            return Buffer.concat(parts);
          },
        });
      });
      req.on('error', reject);
    });
  /** A process that waits for its reader, and the reader. */
  const flood = async ({ sandbox = box, ...more } = {}) => {
    const r = await server.request('POST', `/v1/sandboxes/${sandbox.id}/processes`, { command: WAITING_FLOOD, openStdin: true, ...more });
    assert.equal(r.status, 201, r.text);
    const reader = await open(r.json.id);
    const input = await server.request('POST', `/v1/sandboxes/${sandbox.id}/processes/${r.json.id}/stdin`, 'go\n', { headers: { 'content-type': 'application/octet-stream' } });
    assert.ok(input.status < 300, input.text);
    await stalls(r.json.id, sandbox);
    return { p: r.json, reader };
  };
  const kill = async (p) => {
    const begun = Date.now();
    const r = await server.request('DELETE', `/v1/sandboxes/${box.id}/processes/${p.id}`);
    assert.equal(r.status, 204, r.text);
    assert.ok(Date.now() - begun < 5000, `the kill took ${Date.now() - begun} ms`);
  };
  const isServing = async () => {
    assert.equal((await server.exec(box.id, 'echo fine')).stdout, 'fine\n');
    assert.match((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.status, /^(idle|running)$/);
  };

  it('does not keep a kill waiting, and gets the rest of what was written', async () => {
    const { p, reader } = await flood();
    await kill(p);
    assert.ok(!(await running()).includes(p.id), 'it is in no list any more');
    const dead = await get(p.id);
    assert.deepEqual([dead.status, dead.signal, dead.exitCode], ['cancelled', 'SIGKILL', 137]);
    const signal = await server.request('POST', `/v1/sandboxes/${box.id}/processes/${p.id}/signal`, { signal: 'TERM' });
    assertRefused(signal, 409, 'not_running');
    assertRefused(await server.request('POST', `/v1/sandboxes/${box.id}/processes/${p.pid}/signal`, { signal: 'TERM' }), 404, 'not_found');
    await isServing();
    const bytes = await reader.rest();
    assert.equal(bytes.length, dead.stdout.length);
    assertNumbered(bytes, 'the late reader');
    assert.equal((await get(p.id)).stdout.length, bytes.length);
  });

  it('does not keep an exit from who waits for it', async () => {
    const { p, reader } = await flood();
    const result = server.request('GET', `/v1/executions/${p.id}?wait=60s`);
    await server.exec(box.id, `kill -USR1 ${p.pid}`);
    const answer = (await result).json;
    assert.deepEqual([answer.status, answer.exitCode], ['completed', 3]);
    assert.equal(answer.outputTruncated, true);
    assert.equal(answer.stdout.length, 128 << 10);
    const bytes = await reader.rest();
    assertNumbered(bytes, 'the late reader');
    assert.equal(bytes.length, (await get(p.id)).stdout.length);
  });

  it('hears of a deadline behind all that was written, in the answer to an exec', async () => {
    const stream = await server.stream(`/v1/sandboxes/${box.id}/exec`, { command: FLOOD, timeout: '3s' });
    const begun = Date.now();
    const known = await until('it is there', async () => (await running())[0]);
    await until('it has ended', async () => (await get(known)).status !== 'running', 30000);
    assert.ok(Date.now() - begun < 15000);
    assert.deepEqual(await running(), []);
    const dead = await get(known);
    assert.deepEqual([dead.status, dead.timedOut, dead.exitCode], ['timeout', true, 124]);
    await isServing();
    const parts = [];
    const types = [];
    let exit;
    for await (const event of stream.events) {
      if (event.type === 'stdout') parts.push(Buffer.from(event.data, 'latin1'));
      else types.push(event.type);
      if (event.type === 'exit') exit = event;
    }
    assert.deepEqual(types, ['start', 'exit'], 'nothing was left out');
    assert.deepEqual([exit.timedOut, exit.exitCode], [true, 124]);
    const bytes = Buffer.concat(parts);
    assert.equal(bytes.length, dead.stdout.length);
    assertNumbered(bytes, 'the late reader');
  });

  it('that leaves afterwards leaves nothing behind', async () => {
    const { p, reader } = await flood();
    await kill(p);
    reader.close();
    const dead = await get(p.id);
    assert.deepEqual([dead.status, dead.stdout.kept], ['cancelled', 128 << 10]);
    assert.ok(dead.stdout.length > 1 << 20);
    await isServing();
  });

  it('keeps what is on a terminal, too', async () => {
    const { p, reader } = await flood({ pty: true, openStdin: undefined });
    await kill(p);
    const dead = await get(p.id);
    assert.equal(dead.status, 'cancelled');
    assert.equal((await reader.rest()).length, dead.stdout.length);
  });

  it('gets a broken stream if the sandbox goes before it has read', async () => {
    const other = await server.create();
    const { p, reader } = await flood({ sandbox: other });
    await server.request('DELETE', `/v1/sandboxes/${other.id}/processes/${p.id}`);
    await server.request('DELETE', `/v1/sandboxes/${other.id}`);
    await assert.rejects(reader.rest());
  });

  it('and a new front: the dead process is dead, what was kept can be read, the sandbox goes on', async () => {
    const [{ p: killed, reader }, { p: alive, reader: other }] = [await flood(), await flood()];
    await kill(killed);
    const before = await get(killed.id);
    const front = server.frontPid;
    process.kill(front, 'SIGKILL');
    await until('there is another front', () => server.frontPid && server.frontPid !== front);
    server.renewAgent();
    await until('it answers', () => isServing().then(() => true, () => false), 20000);
    assert.deepEqual(await running(), [alive.id]);
    const after = await get(killed.id);
    for (const field of ['status', 'signal', 'exitCode']) assert.equal(after[field], before[field], field);
    const moved = Math.abs(Date.parse(after.endedAt) - Date.parse(before.endedAt));
    assert.ok(moved < 1000, `endedAt moved by ${moved} ms: front and init look at the clock one after the other`);
    assert.equal(after.stdout.length, before.stdout.length);
    const kept = (await server.request('GET', `/v1/executions/${killed.id}`)).json.stdout;
    assert.equal(kept.length, 128 << 10);
    assertNumbered(Buffer.from(kept), 'what was kept');
    await kill(alive);
    assert.deepEqual(await running(), []);
    for (const r of [reader, other]) await assert.rejects(r.rest());
  });
});

describe('half a minute after a deadline', { timeout: 100000 }, () => {
  const RATE = 10;
  let clock;
  let server;
  before(async () => {
    clock = fastClock(RATE);
    server = await Server.start({ env: clock.env });
  });
  after(async () => {
    await finish(server);
    clock.done();
  });

  it('a sandbox lives whose client does not read', async () => {
    const box = await server.create();
    const stream = await server.stream(`/v1/sandboxes/${box.id}/exec`, { command: FLOOD, timeout: '2s' });
    await sleep(2000 + 40000 / RATE);
    const { status } = (await server.request('GET', `/v1/sandboxes/${box.id}`)).json;
    stream.close();
    assert.match(status, /^(idle|running)$/);
    assert.equal((await server.exec(box.id, 'echo fine')).stdout, 'fine\n');
  });

  it('a sandbox has failed whose init does not answer', async () => {
    const box = await server.create();
    const bystander = await server.create();
    const before = new Set(inits(server));
    assert.ok(before.size >= 2);
    const pid = [...before].find((init) => readFileSync(`/proc/${init}/cgroup`, 'utf8').includes(box.id));
    assert.ok(pid, 'its init is found');
    const result = server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: 'sleep 100', timeout: '1s' });
    await sleep(500);
    process.kill(pid, 'SIGSTOP');
    try {
      const failed = await until('it has failed', async () => {
        const { json } = await server.request('GET', `/v1/sandboxes/${box.id}`);
        return json.status === 'failed' && json;
      }, 60000);
      assert.match(JSON.stringify(failed), /its init does not answer/);
      await result;
    } finally {
      try {
        process.kill(pid, 'SIGCONT');
      } catch {
        // it was killed
      }
    }
    assert.equal((await server.exec(bystander.id, 'echo fine')).stdout, 'fine\n');
  });
});

/** The pids of all inits of a server, in the host's numbers. */
function inits(server) {
  return childrenOf(server.wardenPid).filter((pid) => commandName(pid) === 'bunker-init');
}
