// What E2B's JavaScript SDK does not call, but others do: Python's synchronous SDK, the CLI, the code interpreter.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Sandbox, SandboxNotFoundError } from 'e2b';
import { FRAME, RECORD, frame, hostile, pack, record, started } from '../../lib/hostile.mjs';
import { failure, sleep, startServer, until } from './support.mjs';

const server = await startServer();
const sandbox = await Sandbox.create({ envs: { MINE: 'yes' }, timeoutMs: 600000 });
const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49983', 'x-access-token': sandbox.envdAccessToken };

async function call(method, message, more = {}) {
  const response = await fetch(`${server.url}/${method}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', ...more },
    body: JSON.stringify(message),
  });
  return { status: response.status, json: await response.json() };
}

function envelope(message) {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}

const get = async (path, more = headers) => {
  const response = await fetch(server.url + path, { headers: more });
  return { status: response.status, json: response.status === 204 ? undefined : await response.json(), headers: response.headers };
};

describe('errors', () => {
  it('of envd have a code and a message, and nothing else', async () => {
    const missing = await get('/files?path=nope');
    assert.deepEqual([missing.status, missing.json], [404, { code: 404, message: missing.json.message }]);
    const foreign = await get('/files?path=nope', { 'e2b-sandbox-id': sandbox.sandboxId });
    assert.deepEqual([foreign.status, foreign.json], [401, { code: 401, message: foreign.json.message }]);
  });
});

describe('watchers that are polled', () => {
  it('have told what was written before the poll', { timeout: 60000 }, async () => {
    await sandbox.files.makeDir('at-once');
    const { json } = await watcher('CreateWatcher', { path: 'at-once' });
    for (let i = 0; i < 100; i++) {
      if (i % 2) await sandbox.files.write(`at-once/${i}`, 'x');
      else await sandbox.commands.run(`mv at-once/${i - 1} at-once/${i} 2>/dev/null || touch at-once/${i}`);
      const names = (await events(json.watcherId)).map((event) => event.name);
      assert.ok(names.includes(`${i}`), `${i}: ${names}`);
    }
    // Polls at the same time share what is asked, and each event is in one answer.
    const [all] = await Promise.all([sandbox.files.write(Array.from({ length: 50 }, (_, i) => ({ path: `at-once/many-${i}`, data: '' }))), ...Array.from({ length: 8 }, () => events(json.watcherId))]);
    assert.equal(all.length, 50);
    assert.equal((await sandbox.commands.run('rm -r at-once; mkdir at-once')).exitCode, 0);
    const last = (await events(json.watcherId)).map((event) => event.type);
    assert.ok(last.includes('EVENT_TYPE_REMOVE'), String(last));
    assert.equal((await watcher('GetWatcherEvents', { watcherId: json.watcherId })).json.code, 'not_found', 'the directory is another one');
    await watcher('RemoveWatcher', { watcherId: json.watcherId });
  });

  it('are asked at each poll, and not waited for without end', { timeout: 60000 }, async () => {
    const EVENT = (name) => record(RECORD.EVENT, pack('u32', 0, 'u32', 0, 'u32', name.length, 'u32', 0, name));
    let answers = true;
    let asked = 0;
    const own = await Sandbox.create(); // no worker waits in it
    const of = (name, message) => call(`filesystem.Filesystem/${name}`, message, { 'e2b-sandbox-id': own.sandboxId, 'x-access-token': own.envdAccessToken });
    const { restore, failures } = await hostile(server, own.sandboxId, {
      restart: false,
      worker: async (channel) => {
        await channel.send(frame(FRAME.STARTED, {}, started()));
        await channel.record();
        await channel.send(record(RECORD.READY));
        for (;;) {
          assert.equal((await channel.record()).type, RECORD.SYNC);
          asked++;
          if (!answers) return;
          await channel.send(EVENT(`event-${asked}`), record(RECORD.SYNCED));
        }
      },
    });
    try {
      const { watcherId } = (await of('CreateWatcher', { path: '/home' })).json;
      const names = async () => (await of('GetWatcherEvents', { watcherId })).json.events.map((event) => event.name);
      for (let i = 1; i < 4; i++) assert.deepEqual(await names(), [`event-${i}`]);
      answers = false;
      assert.deepEqual(await names(), []);
      assert.equal(asked, 4);
      await of('RemoveWatcher', { watcherId });
      assert.deepEqual(failures, []);
    } finally {
      restore();
      await own.kill();
    }
  });

  const watcher = (name, message) => call(`filesystem.Filesystem/${name}`, message);
  const events = async (id) => (await watcher('GetWatcherEvents', { watcherId: id })).json.events;

  it('collect what happens until it is asked for', async () => {
    await sandbox.files.makeDir('polled');
    const { json } = await watcher('CreateWatcher', { path: 'polled', recursive: true });
    assert.ok(json.watcherId);
    assert.deepEqual(await events(json.watcherId), []);
    await sandbox.files.write('polled/a', '1');
    await sandbox.files.rename('polled/a', 'polled/b');
    const all = [];
    await until('everything was told', async () => {
      all.push(...(await events(json.watcherId)).map((event) => `${event.type} ${event.name}`));
      return all.includes('EVENT_TYPE_CREATE b');
    });
    assert.ok(all.includes('EVENT_TYPE_CREATE a') && all.includes('EVENT_TYPE_RENAME a'), all.join());
    assert.deepEqual(await events(json.watcherId), [], 'once');
    assert.equal((await watcher('RemoveWatcher', { watcherId: json.watcherId })).status, 200);
    for (const name of ['RemoveWatcher', 'GetWatcherEvents'])
      assert.deepEqual((await watcher(name, { watcherId: json.watcherId })).json.code, 'not_found');
  });

  it('describe files if asked to, and are the sandbox’s own', async () => {
    const { json } = await watcher('CreateWatcher', { path: '/home/user/polled', includeEntry: true });
    await sandbox.files.write('polled/described', 'four');
    await sleep(100);
    const written = await until('it was written', async () => (await events(json.watcherId)).find((event) => event.entry?.size === '4'));
    assert.equal(written.entry.path, '/home/user/polled/described');
    const other = await Sandbox.create();
    const foreign = await call('filesystem.Filesystem/GetWatcherEvents', { watcherId: json.watcherId }, { 'e2b-sandbox-id': other.sandboxId, 'x-access-token': other.envdAccessToken });
    assert.equal(foreign.json.code, 'not_found');
    await other.kill();
  });

  it('have limits', async () => {
    assert.equal((await watcher('CreateWatcher', { path: 'nope' })).json.code, 'not_found');
    const made = [];
    for (;;) {
      const answer = await watcher('CreateWatcher', { path: '/tmp' });
      if (answer.status !== 200) {
        assert.equal(answer.json.code, 'resource_exhausted');
        break;
      }
      made.push(answer.json.watcherId);
      assert.ok(made.length <= 16);
    }
    for (let i = 0; i < 3; i++) await sandbox.commands.run('cd /tmp && for i in $(seq 3000); do : > flood-$i; done; rm -f flood-*');
    await sleep(300);
    const flooded = await watcher('GetWatcherEvents', { watcherId: made[0] });
    assert.equal(flooded.json.code, 'resource_exhausted');
    assert.equal((await watcher('GetWatcherEvents', { watcherId: made[0] })).status, 200, 'and goes on from there');
    for (const id of made) await watcher('RemoveWatcher', { watcherId: id });
  });
});

describe('envd', () => {
  it('tells health, environment and use', async () => {
    assert.equal((await get('/health')).status, 204);
    assert.equal((await get('/health', { 'x-access-token': sandbox.envdAccessToken })).status, 204, 'as old SDKs ask');
    const envs = await get('/envs');
    assert.deepEqual(envs.json, { E2B_SANDBOX: 'true', E2B_SANDBOX_ID: sandbox.sandboxId, E2B_TEMPLATE_ID: 'base', MINE: 'yes' });
    assert.equal(envs.headers.get('cache-control'), 'no-store');
    const { json } = await get('/metrics');
    assert.ok(json.ts > 1e9 && json.cpu_count >= 1 && json.mem_total > 1 << 20 && json.mem_used > 0 && json.disk_total > 0, JSON.stringify(json));
  });

  it('takes a stream of input, as much as comes', async () => {
    const cat = await sandbox.commands.run('wc -c; echo end', { background: true, stdin: true });
    const chunk = Buffer.alloc(48 << 10, 'x').toString('base64');
    const messages = [{ start: { process: { pid: cat.pid } } }, ...Array(20).fill({ data: { input: { stdin: chunk } } }), { keepalive: {} }];
    const response = await fetch(`${server.url}/process.Process/StreamInput`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/connect+json' },
      body: Buffer.concat(messages.map(envelope)),
    });
    const answer = Buffer.from(await response.arrayBuffer());
    assert.deepEqual([response.status, answer], [200, Buffer.concat([envelope({}), Buffer.from('\x02\0\0\0\x02{}')])]);
    await sandbox.commands.closeStdin(cat.pid);
    assert.equal((await cat.wait()).stdout, `${20 * (48 << 10)}\nend\n`);
  });

  it('names a process by its tag, and signals only it', async () => {
    const body = envelope({ process: { cmd: '/bin/sleep', args: ['100'] }, tag: 'my-tag' });
    const response = await fetch(`${server.url}/process.Process/Start`, { method: 'POST', headers: { ...headers, 'content-type': 'application/connect+json' }, body });
    const reader = response.body.getReader();
    await reader.read();
    const listed = (await call('process.Process/List', {})).json.processes;
    assert.deepEqual(listed.map((one) => one.tag), ['my-tag']);
    assert.equal((await call('process.Process/SendSignal', { process: { tag: 'my-tag' }, signal: 'SIGNAL_SIGTERM' })).status, 200);
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += Buffer.from(value).toString('latin1');
    }
    assert.match(text, /"exitCode":-1,"status":"signal: terminated","error":"signal: terminated"/);
    assert.equal((await call('process.Process/SendSignal', { process: { tag: 'my-tag' }, signal: 15 })).json.code, 'not_found');
    assert.equal((await call('process.Process/SendSignal', { process: { pid: 1 }, signal: 'SIGNAL_SIGHUP' })).json.code, 'invalid_argument');
  });
});

describe('logs and metrics', () => {
  const key = { 'x-api-key': process.env.E2B_API_KEY };

  it('tell what happened to a sandbox, also when it is gone', async () => {
    const doomed = await Sandbox.create();
    await doomed.pause();
    await doomed.connect();
    await doomed.kill();
    const { json } = await get(`/v2/sandboxes/${doomed.sandboxId}/logs`, key);
    const messages = json.logs.map((one) => one.message);
    for (const word of ['created', 'paused', 'resumed', 'deleted']) assert.ok(messages.some((one) => one.includes(word)), `${word}: ${messages}`);
    const old = await get(`/sandboxes/${doomed.sandboxId}/logs?limit=2`, key);
    assert.equal(old.json.logs.length, 2);
    const line = JSON.parse(old.json.logs[0].line);
    assert.deepEqual([line.level, line.message, line.cause], ['info', 'sandbox created, by request', 'request'], 'the CLI takes lines apart');
    assert.equal(old.json.logEntries[0].level, 'info');
    const first = new Date(old.json.logs[0].timestamp).getTime();
    const since = await get(`/sandboxes/${doomed.sandboxId}/logs?start=${first + 1}`, key);
    assert.ok(since.json.logs.length > 0 && since.json.logs.every((one) => new Date(one.timestamp) > first), since.text);
    const until = await get(`/v2/sandboxes/${doomed.sandboxId}/logs?cursor=${first}&direction=backward`, key);
    assert.ok(until.json.logs.length > 0 && until.json.logs.every((one) => new Date(one.timestamp) <= first), until.text);
    const count = async (query) => (await get(`/v2/sandboxes/${doomed.sandboxId}/logs?${query}`, key)).json.logs.length;
    assert.deepEqual([await count('level=debug'), await count('level=info'), await count('level=warn'), await count('level=error')], [messages.length, messages.length, 0, 0]);
    for (const bad of ['level=loud', 'cursor=now', 'direction=up', 'limit=0'])
      assert.equal((await get(`/v2/sandboxes/${doomed.sandboxId}/logs?${bad}`, key)).json.code, 400, bad);
    const back = await get(`/v2/sandboxes/${doomed.sandboxId}/logs?direction=backward&limit=1`, key);
    assert.match(back.json.logs[0].message, /deleted/);
    const searched = await get(`/v2/sandboxes/${doomed.sandboxId}/logs?search=paused`, key);
    assert.equal(searched.json.logs.length, 1);
    assert.equal((await get(`/v2/sandboxes/${'a'.repeat(20)}/logs`, key)).json.code, 404);
  });

  it('measure', async () => {
    const metrics = await sandbox.getMetrics();
    assert.ok(metrics.length >= 1);
    const last = metrics.at(-1);
    assert.ok(Math.abs(last.timestamp - Date.now()) < 5000);
    assert.ok(last.cpuCount >= 1 && last.memTotal > 1 << 20 && last.memUsed > 0 && last.diskTotal > 0 && last.cpuUsedPct >= 0);
    assert.deepEqual(await Sandbox.getMetrics(sandbox.sandboxId, { start: new Date(0), end: new Date(1000) }), []);
    assert.ok((await sandbox.getMetrics({ start: new Date(Date.now() - 60000), end: new Date(Date.now() + 60000) })).length >= 1);
    const doomed = await Sandbox.create();
    await doomed.kill();
    assert.deepEqual(await Sandbox.getMetrics(doomed.sandboxId), [], 'of one that was killed there is nothing, and no error');
    assert.ok((await failure(Sandbox.getMetrics('a'.repeat(20)))) instanceof SandboxNotFoundError);
    assert.ok('sandboxes' in (await get(`/sandboxes/metrics?sandbox_ids=${sandbox.sandboxId},nope`, key)).json);
  });
});
