// Sandboxes of Agentuity's SDK: made, looked at, listed, paused, ended.
import { describe, it } from 'node:test';
import http from 'node:http';
import assert from 'node:assert/strict';
import { SandboxClient } from '@agentuity/server';
import { file as archived, tar, tinyRoot } from '../../lib/images.mjs';
import { initPid } from '../../system/support.mjs';
import { environment, failure, fetchText, startServer, text, until } from './support.mjs';

const OTHER = 'bnk_0123456789abcdef0123456789abcdef';
const server = await startServer({ args: ['--api-key', `other=${OTHER}`, '--build-network', 'none'] });
const client = new SandboxClient();
const b64 = (string) => Buffer.from(string);

describe('bunker env agentuity', () => {
  it('prints what points the SDK here', () => {
    const printed = JSON.parse(server.cli(['env', 'agentuity', '--json']).stdout);
    for (const [name, value] of Object.entries(environment(server))) assert.equal(printed[name], value);
    assert.equal(printed.AGENTUITY_CLI_API_KEY, server.key);
  });
});

describe('create', () => {
  it('gives a sandbox whose home is /home/agentuity, with files, variables and limits', async () => {
    const sandbox = await client.create({
      name: 'first',
      description: 'one of many',
      projectId: 'proj_1',
      env: { COLOUR: 'green' },
      resources: { memory: '1Gi', cpu: '1000m', disk: '2Gi' },
      timeout: { idle: '10m', execution: '30s', paused: '24h' },
      files: [{ path: 'src/a.txt', content: b64('content of a') }],
      metadata: { owner: { team: 7 } },
    });
    assert.match(sandbox.id, /^sbx_[a-z0-9]{20}$/);
    assert.equal(sandbox.status, 'idle');
    const info = await sandbox.get();
    assert.deepEqual(
      [info.name, info.description, info.status, info.mode, info.executions, info.networkEnabled],
      ['first', 'one of many', 'idle', 'interactive', 0, false],
    );
    assert.deepEqual(info.resources, { memory: '1Gi', cpu: '1000m', disk: '2Gi' });
    assert.deepEqual(info.timeout, { idle: '10m0s', execution: '30s', paused: '24h0m0s' });
    assert.deepEqual(info.metadata, { owner: { team: 7 } });
    assert.deepEqual(info.project, { id: 'proj_1', name: 'proj_1' });
    assert.deepEqual(info.runtime, { id: 'srt_base', name: 'base' });
    const result = await sandbox.execute({ command: ['sh', '-c', 'pwd; echo $HOME; echo $COLOUR; cat src/a.txt; id -un'] });
    assert.equal(result.exitCode, 0);
    assert.equal(await fetchText(result.stdoutStreamUrl), '/home/agentuity\n/home/agentuity\ngreen\ncontent of auser\n');
    assert.equal((await client.get(sandbox.id)).executions, 1);
    await sandbox.destroy();
  });

  it('has a network if that was asked for', async () => {
    const sandbox = await client.create({ network: { enabled: true } });
    assert.equal((await sandbox.get()).networkEnabled, true);
    assert.deepEqual((await server.request('GET', `/v1/sandboxes/${sandbox.id.slice(4)}/network`)).json, { mode: 'open' });
    await sandbox.destroy();
  });

  it('shows the port that was named to everyone, at its url', async () => {
    const sandbox = await client.create({ network: { enabled: true, port: 3000 } });
    const info = await sandbox.get();
    assert.equal(info.networkPort, 3000);
    assert.match(info.url, new RegExp(`^http://3000-${sandbox.id.slice(4)}\\.localhost:`));
    await sandbox.execute({ command: ['sh', '-c', 'echo shown >index.html; setsid python3 -m http.server 3000 >/dev/null 2>&1 &'] });
    const { host, port } = new URL(info.url);
    const seen = () => new Promise((resolve) => http.get({ host: '127.0.0.1', port, path: '/index.html', headers: { host } }, (res) => res.setEncoding('utf8').on('data', resolve)).on('error', () => resolve('')));
    await until('it is seen without a key', async () => (await seen()) === 'shown\n');
    await sandbox.destroy();
  });

  it('runs a command that it is given', async () => {
    const sandbox = await client.create({ command: { exec: ['sh', '-c', 'echo begun; sleep 0.2'] } });
    assert.equal(await fetchText(sandbox.stdoutStreamUrl), 'begun\n');
    assert.equal(await fetchText(sandbox.stderrStreamUrl), '');
    await until('it is idle again', async () => (await sandbox.get()).status === 'idle');
    await sandbox.destroy();
  });

  it('refuses what it cannot give, and makes nothing', async () => {
    const refused = [
      [{ runtime: 'python:3.14' }, 404, /python:3\.14/],
      [{ runtimeId: 'srt_nothing' }, 404, /nothing/],
      [{ scopes: ['services:read'] }, 501, /scopes/],
      [{ dependencies: ['jq'] }, 409, /no network/],
      [{ dependencies: ['jq; reboot'] }, 400, /dependencies/],
      [{ resources: { memory: 'much' } }, 400, /resources\.memory/],
      [{ timeout: { idle: '-5s' } }, 400, /timeout\.idle/],
      [{ command: { exec: ['true'] }, stream: { stdout: 'stream_of_mine' } }, 501, /stream\.stdout/],
      [{ command: { exec: ['true'] }, stream: { stdin: 'stream_of_nobody' } }, 400, /no such stream/],
    ];
    for (const [options, status, message] of refused) {
      const error = await failure(client.create(options));
      assert.equal(error._tag, 'APIErrorResponse', String(error));
      assert.equal(error.status, status, String(error));
      assert.match(error.message, message);
    }
    await until('nothing is left', async () => (await client.list()).total === 0);
  });
});

describe('connect and list', () => {
  it('finds one again, filters, sorts and pages', async () => {
    const made = [];
    for (const [name, projectId] of [['b', 'p1'], ['a', 'p1'], ['c', 'p2']]) made.push(await client.create({ name, projectId }));
    const names = async (params) => (await client.list(params)).sandboxes.map((s) => s.name);
    assert.deepEqual(await names(), ['c', 'a', 'b'], 'the newest first');
    assert.deepEqual(await names({ sort: 'name', direction: 'asc' }), ['a', 'b', 'c']);
    assert.deepEqual(await names({ sort: 'name', direction: 'desc', limit: 1, offset: 1 }), ['b']);
    assert.deepEqual(await names({ projectId: 'p1', sort: 'created', direction: 'asc' }), ['b', 'a']);
    assert.deepEqual(await names({ name: 'c' }), ['c']);
    assert.deepEqual(await names({ mode: 'oneshot' }), []);
    assert.deepEqual(await names({ status: 'suspended' }), []);
    assert.equal((await client.list({ limit: 1 })).total, 3);
    assert.equal((await failure(client.list({ limit: 1000 }))).status, 400);
    const again = await client.connect(made[0].id);
    assert.equal(again.id, made[0].id);
    assert.equal((await again.execute({ command: ['true'] })).exitCode, 0);
    const bare = await client.connect(made[0].id.slice('sbx_'.length));
    assert.equal((await bare.get()).sandboxId, made[0].id, 'the bare id will do');
    for (const sandbox of made) await client.destroy(sandbox.id);
    assert.equal((await failure(client.connect(made[0].id)))._tag, 'SandboxNotFoundError');
  });

  it('lists what has ended when it is asked for it, with what it has used', { timeout: 60000 }, async () => {
    const stranger = new SandboxClient({ apiKey: OTHER });
    const theirs = await stranger.create({ name: 'past-x', projectId: 'past' });
    await theirs.destroy();
    const made = [];
    for (const name of ['past-b', 'past-a', 'past-c']) {
      const sandbox = await client.create({ name, projectId: 'past' });
      if (name === 'past-a') await sandbox.execute({ command: ['sh', '-c', 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'] });
      await sandbox.destroy();
      made.push(sandbox.id);
    }
    const run = await client.run({ projectId: 'past', command: { exec: ['true'] } });
    const past = async (params) => client.list({ projectId: 'past', ...params });
    const ids = async (params) => (await past(params)).sandboxes.map((s) => s.sandboxId);
    await until('not otherwise', async () => (await ids({})).length === 0);
    assert.deepEqual(await ids({ deletedOnly: true }), [made[2], made[1], made[0]], 'the newest first');
    assert.deepEqual(await ids({ status: 'deleted', sort: 'created', direction: 'asc' }), made);
    assert.deepEqual(await ids({ deletedOnly: true, sort: 'name', direction: 'asc' }), [made[1], made[0], made[2]]);
    assert.deepEqual(await ids({ deletedOnly: true, sort: 'name', direction: 'desc', limit: 1, offset: 1 }), [made[0]]);
    assert.deepEqual(await ids({ deletedOnly: true, sort: 'execution_count', limit: 1 }), [made[1]]);
    assert.deepEqual(await ids({ deletedOnly: true, name: 'past-c' }), [made[2]]);
    assert.deepEqual(await ids({ deletedOnly: true, mode: 'oneshot' }), []);
    assert.equal((await past({ deletedOnly: true, offset: 50 })).total, 3, 'also beyond the last page');
    await until('the run is among those that ended by themselves', async () => (await ids({ status: 'terminated' })).length === 1);
    assert.deepEqual(await ids({ status: 'terminated', mode: 'oneshot' }), [run.sandboxId]);
    assert.equal((await failure(past({ deletedOnly: true, status: 'idle' }))).status, 400);
    const info = await until('its usage is told', async () => {
      const { json } = await server.request('GET', `/agentuity/sandbox/${made[1]}?includeDeleted=true`);
      return json.data.cpuTimeMs > 0 && json.data;
    });
    assert.deepEqual([info.status, info.networkEgressBytes, info.networkEnabled], ['deleted', 0, false]);
    assert.ok(info.memoryByteSec > 0);
    assert.equal((await failure(client.get(made[1])))._tag, 'SandboxNotFoundError', 'one that was deleted is shown on request only');
    const cli = await server.request('GET', '/agentuity/cli/sandbox?status=deleted&projectId=past&limit=2');
    assert.deepEqual([cli.json.data.total, cli.json.data.sandboxes.length, cli.json.data.sandboxes[0].status], [3, 2, 'deleted']);
  });

  it('is the same sandbox in the native API', async () => {
    const sandbox = await client.create({ name: 'shared' });
    const native = await server.request('GET', `/v1/sandboxes/${sandbox.id.slice(4)}`);
    assert.equal(native.json.name, 'shared');
    const made = await server.create({ name: 'native' });
    const info = await client.get(made.id);
    assert.equal(info.name, 'native');
    await sandbox.destroy();
    await client.destroy(`sbx_${made.id}`);
  });
});

describe('files', () => {
  it('are written, read, listed and removed', async () => {
    const sandbox = await client.create();
    const bytes = Buffer.from(Array.from({ length: 70000 }, (_, i) => i % 256));
    assert.equal(await sandbox.writeFiles([{ path: 'one.txt', content: b64('one') }, { path: 'deep/er/two.bin', content: bytes }]), 2);
    assert.equal(await client.writeFiles(sandbox.id, [{ path: '/tmp/three', content: b64('3') }]), 1);
    assert.equal(await text(await sandbox.readFile('one.txt')), 'one');
    assert.deepEqual(Buffer.from(await new Response(await client.readFile(sandbox.id, 'deep/er/two.bin')).arrayBuffer()), bytes);
    assert.equal(await text(await sandbox.readFile('/home/agentuity/one.txt')), 'one');
    await sandbox.execute({ command: ['ln', '-s', 'one.txt', 'link'] });
    const files = await sandbox.listFiles();
    assert.deepEqual(
      files.map((f) => [f.path, f.isDir, f.mode, f.isSymlink ?? false, f.linkTarget]).sort(),
      [['deep', true, '0755', false, undefined], ['link', false, '0777', true, 'one.txt'], ['one.txt', false, '0644', false, undefined]],
    );
    assert.equal(files.find((f) => f.path === 'one.txt').size, 3);
    assert.ok(Math.abs(new Date(files.find((f) => f.path === 'one.txt').modTime) - Date.now()) < 60000);
    assert.deepEqual((await sandbox.listFiles('deep')).map((f) => f.path), ['er']);
    await sandbox.mkDir('new');
    await sandbox.mkDir('a/b/c', true);
    assert.match((await failure(sandbox.mkDir('x/y/z'))).message, /x\/y\/z|No such/);
    assert.deepEqual(await sandbox.rmFile('one.txt'), { found: true });
    assert.deepEqual(await sandbox.rmFile('one.txt'), { found: false });
    assert.match((await failure(sandbox.rmFile('a'))).message, /directory/);
    assert.match((await failure(sandbox.rmDir('a'))).message, /not empty/i);
    assert.match((await failure(sandbox.rmDir('deep/er/two.bin'))).message, /not a directory/);
    assert.deepEqual(await sandbox.rmDir('a', true), { found: true });
    assert.deepEqual(await sandbox.rmDir('a', true), { found: false });
    const missing = await failure(sandbox.readFile('one.txt'));
    assert.equal(missing._tag, 'SandboxResponseError');
    assert.match(missing.message, /Failed to read file "one.txt": 404/);
    assert.ok(missing.sessionId, 'a request can be found in the log');
    await sandbox.destroy();
  });
});

describe('env', () => {
  it('is set and taken out for what starts from now on', async () => {
    const sandbox = await client.create({ env: { KEEP: '1', DROP: '2' } });
    const env = await sandbox.setEnv({ DROP: null, NEW: 'with = and "quotes"' });
    assert.deepEqual(env, { HOME: '/home/agentuity', KEEP: '1', NEW: 'with = and "quotes"' });
    const result = await sandbox.execute({ command: ['sh', '-c', 'echo "$KEEP|$DROP|$NEW"'] });
    assert.equal(await fetchText(result.stdoutStreamUrl), '1||with = and "quotes"\n');
    assert.equal((await failure(sandbox.setEnv({ 'NO=': 'x' }))).status, 400);
    await sandbox.destroy();
  });
});

describe('pause and resume', () => {
  it('keeps the files, says until when, and wakes by itself', async () => {
    const sandbox = await client.create({ timeout: { paused: '1h' } });
    await sandbox.writeFiles([{ path: 'kept', content: b64('still here') }]);
    const paused = await sandbox.pause();
    assert.equal(paused.sandboxId, sandbox.id);
    assert.equal(paused.status, 'suspended');
    const left = new Date(paused.terminatesAt) - Date.now();
    assert.ok(left > 3500000 && left <= 3600000, `${left}`);
    assert.equal((await sandbox.get()).status, 'suspended');
    await sandbox.resume();
    assert.equal((await sandbox.get()).status, 'idle');
    assert.equal(await text(await sandbox.readFile('kept')), 'still here');
    await client.pause(sandbox.id);
    const answer = await server.request('POST', `/agentuity/sandbox/${sandbox.id}/execute`, { command: ['cat', 'kept'] });
    assert.equal(answer.json.autoResumed, true);
    await client.resume(sandbox.id);
    assert.equal(await fetchText(answer.json.data.stdoutStreamUrl), 'still here');
    await sandbox.destroy();
    for (const call of [client.pause(sandbox.id), client.resume(sandbox.id)])
      assert.equal((await failure(call))._tag, 'SandboxNotFoundError');
  });

  it('has no end without a timeout for it', async () => {
    const sandbox = await client.create({ timeout: { paused: '0s' } });
    assert.equal((await sandbox.pause()).terminatesAt, undefined);
    await sandbox.destroy();
  });
});

describe('the end by idleness', () => {
  it('is told, and what has ended can still be looked at', { timeout: 20000 }, async () => {
    const sandbox = await client.create({ timeout: { idle: '1s' } });
    const ended = await server.request('GET', `/agentuity/sandbox/${sandbox.id}?waitForStatus=terminated&waitMs=15000`);
    assert.equal(ended.json.data.status, 'terminated');
    assert.equal((await sandbox.get()).status, 'terminated');
    assert.equal((await failure(sandbox.execute({ command: ['true'] })))._tag, 'SandboxTerminatedError');
    const last = (await client.listEvents(sandbox.id, { direction: 'desc', limit: 1 })).events[0];
    assert.deepEqual([last.type, last.event.cause], ['lifecycle:terminated', 'idle']);
  });
});

describe('events', () => {
  it('tell what happened, also after the end', async () => {
    const sandbox = await client.create();
    await sandbox.pause();
    await sandbox.destroy();
    const { events } = await client.listEvents(sandbox.id);
    assert.deepEqual(events.map((e) => e.type), ['create', 'lifecycle:started', 'lifecycle:suspended', 'destroy']);
    assert.equal(events[2].event.cause, 'request');
    assert.equal(events[0].sandboxId, sandbox.id);
    const newest = await client.listEvents(sandbox.id, { limit: 1, direction: 'desc' });
    assert.deepEqual(newest.events, [events[3]]);
    assert.equal((await failure(client.listEvents('sbx_00000000000000000000')))._tag, 'SandboxNotFoundError');
  });
});

describe('runtimes', () => {
  it('are the templates, and create takes their names and ids', async () => {
    const { runtimes, total } = await client.listRuntimes();
    assert.ok(total >= 1 && runtimes.some((r) => r.name === 'base' && r.id === 'srt_base'));
    for (const options of [{ runtime: 'base' }, { runtimeId: 'srt_base' }]) {
      const sandbox = await client.create(options);
      assert.equal((await sandbox.get()).runtime.name, 'base');
      await sandbox.destroy();
    }
    assert.deepEqual((await client.listRuntimes({ limit: 1, offset: total })).runtimes, []);
  });
});

describe('a runtime of one\'s own', () => {
  const imported = async (query, entries) => {
    const answer = await server.request('POST', `/v1/templates/imports?${query}`, tar([...tinyRoot(), ...entries]), {
      headers: { 'content-type': 'application/x-tar' },
    });
    assert.equal(answer.status, 201, answer.text);
  };

  it('is the version that was asked for, or none', { timeout: 60000 }, async () => {
    await imported('name=python:3.12', [archived('etc/version', '3.12')]);
    await imported('name=python:3.13', [archived('etc/version', '3.13')]);
    const { runtimes } = await client.listRuntimes();
    assert.deepEqual(runtimes.map((r) => r.name).filter((name) => name.startsWith('python:')), ['python:3.12', 'python:3.13']);
    for (const options of [{ runtime: 'python:3.12' }, { runtimeId: 'srt_python:3.12' }]) {
      const sandbox = await client.create({ ...options, files: [{ path: 'mine', content: b64('written') }] });
      assert.equal(await text(await sandbox.readFile('/etc/version')), '3.12');
      assert.equal(await text(await sandbox.readFile('/home/agentuity/mine')), 'written');
      await sandbox.destroy();
    }
    for (const runtime of ['python:3.14', 'python:3', 'python:3.1', 'pytho']) assert.equal((await failure(client.create({ runtime }))).status, 404, runtime);
    const stranger = new SandboxClient({ apiKey: OTHER });
    assert.equal((await failure(stranger.create({ runtime: 'python:3.12' }))).status, 404);
    assert.ok(!(await stranger.listRuntimes()).runtimes.some((r) => r.name.startsWith('python')));
  });
});

describe('another tenant', () => {
  it('has nothing of this one, by no route', async () => {
    const sandbox = await client.create();
    const job = await client.createJob(sandbox.id, { command: ['sleep', '100'] });
    const done = await sandbox.execute({ command: ['echo', 'secret'] });
    const stranger = new SandboxClient({ apiKey: OTHER });
    const theirs = await stranger.connect((await stranger.create()).id);
    const calls = {
      get: () => stranger.get(sandbox.id),
      destroy: () => stranger.destroy(sandbox.id),
      pause: () => stranger.pause(sandbox.id),
      resume: () => stranger.resume(sandbox.id),
      writeFiles: () => stranger.writeFiles(sandbox.id, [{ path: 'x', content: b64('') }]),
      readFile: () => stranger.readFile(sandbox.id, '/etc/hostname'),
      createJob: () => stranger.createJob(sandbox.id, { command: ['true'] }),
      getJob: () => stranger.getJob(sandbox.id, job.id),
      getOwnJob: () => stranger.getJob(theirs.id, job.id),
      listJobs: () => stranger.listJobs(sandbox.id),
      listEvents: () => stranger.listEvents(sandbox.id),
      getExecution: () => stranger.getExecution(done.executionId),
    };
    for (const [name, call] of Object.entries(calls)) {
      const error = await failure(call());
      assert.match(`${error._tag} ${error.status} ${error.message}`, /NotFound|404|no such/, `${name}: ${error}`);
    }
    assert.deepEqual((await stranger.listExecutions(sandbox.id)).executions, []);
    const raw = [
      ['POST', `/sandbox/${sandbox.id}/execute`, { command: ['true'] }],
      ['PATCH', `/sandbox/env/${sandbox.id}`, { env: {} }],
      ['GET', `/sandbox/status/${sandbox.id}?waitForStatus=terminated&waitMs=50`],
      ['GET', `/fs/list/${sandbox.id}`],
      ['POST', `/fs/mkdir/${sandbox.id}`, { path: 'x' }],
      ['POST', `/fs/rm/${sandbox.id}`, { path: 'x' }],
      ['POST', `/fs/rmdir/${sandbox.id}`, { path: 'x' }],
      ['GET', `/cli/sandbox/${sandbox.id}`],
      ['DELETE', `/sandbox/sandboxes/${sandbox.id}/jobs/${job.id}?force=true`],
    ];
    for (const [method, path, body] of raw) {
      const { json } = await server.request(method, `/agentuity${path}`, body, { key: OTHER });
      assert.equal(json.success, false, `${method} ${path}`);
      assert.match(json.message, /no such/, `${method} ${path}`);
    }
    assert.equal((await job.get()).status, 'running');
    assert.deepEqual((await stranger.list()).sandboxes.map((s) => s.sandboxId), [theirs.id]);
    await theirs.destroy();
    await sandbox.destroy();
  });

  it('is nobody without a key', async () => {
    const nobody = new SandboxClient({ apiKey: 'bnk_ffffffffffffffffffffffffffffffff' });
    assert.equal((await failure(nobody.list())).status, 401);
  });
});

describe('the paths with a date, of older SDKs', () => {
  it('work the same', async () => {
    const dated = (area, rest) => `/agentuity/${area}/2025-03-17${rest}`;
    const made = await server.request('POST', dated('sandbox', ''), {});
    const id = made.json.data.sandboxId;
    assert.equal((await server.request('POST', dated('fs', `/${id}`), { files: [{ path: 'x', content: 'eA==' }] })).json.data.filesWritten, 1);
    assert.equal((await server.request('GET', dated('fs', `/${id}?path=x`))).text, 'x');
    assert.equal((await server.request('PATCH', `/agentuity/sandbox/env/2025-03-17/${id}`, { env: { A: 'b' } })).json.data.env.A, 'b');
    assert.equal((await server.request('GET', dated('sandbox', `/status/${id}`))).json.data.status, 'idle');
    assert.equal((await server.request('DELETE', dated('sandbox', `/${id}`))).json.success, true);
  });
});

describe('a sandbox whose processes were lost', () => {
  it('is failed, resumed on its disk, and destroyed', async () => {
    const sandbox = await client.create();
    const lose = async () => {
      process.kill(initPid(server, sandbox.id.slice(4)), 'SIGKILL');
      await until('that is known', async () => (await client.get(sandbox.id)).status === 'failed');
    };
    assert.equal((await sandbox.execute({ command: ['sh', '-c', 'echo data > file; sync'] })).exitCode, 0);
    await lose();
    assert.ok((await client.list({ status: 'failed' })).sandboxes.some((box) => box.sandboxId === sandbox.id));
    await sandbox.resume();
    assert.equal((await client.get(sandbox.id)).status, 'idle');
    await lose();
    const result = await sandbox.execute({ command: ['cat', 'file'] });
    assert.equal(await fetchText(result.stdoutStreamUrl), 'data\n', 'an execute resumes it, too');
    await lose();
    await sandbox.destroy();
    assert.ok(await failure(client.get(sandbox.id)));
  });
});
