// Commands of Agentuity's SDK: execute, run, jobs, and the addresses of what they write.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { SandboxClient } from '@agentuity/server';
import { fastClock } from '../../lib/clock.mjs';
import { failure, fetchText, sleep, startServer, until } from './support.mjs';

const OTHER = 'bnk_0123456789abcdef0123456789abcdef';
const server = await startServer({ args: ['--output-limit', '64Ki', '--pool', '0', '--api-key', `other=${OTHER}`] });
const client = new SandboxClient();
const sh = (script) => ['sh', '-c', script];

const collect = () => {
  const stream = new PassThrough();
  const parts = [];
  stream.on('data', (part) => parts.push(part));
  return { stream, text: () => Buffer.concat(parts).toString() };
};

/** Whether a process of the sandbox has this in its command line. */
const runs = async (id, marker) => {
  const probe = await server.exec(id.slice(4), { command: `pgrep -f '${marker[0]}${'[' + marker[1] + ']'}${marker.slice(2)}' || true` });
  return probe.stdout.trim() !== '';
};

describe('execute', () => {
  it('answers with how it ended, and its output can be had again and again', async () => {
    const sandbox = await client.create();
    const result = await sandbox.execute({
      command: sh('cat in.txt; echo wrong >&2; exit 3'),
      files: [{ path: 'in.txt', content: Buffer.from('input\n') }],
    });
    assert.match(result.executionId, /^exe_[a-z0-9]{20}$/);
    assert.deepEqual([result.status, result.exitCode], ['completed', 3]);
    assert.ok(result.durationMs >= 0);
    for (let i = 0; i < 2; i++) {
      assert.equal(await fetchText(result.stdoutStreamUrl), 'input\n');
      assert.equal(await fetchText(result.stderrStreamUrl), 'wrong\n');
    }
    const info = await client.getExecution(result.executionId);
    assert.deepEqual([info.sandboxId, info.status, info.exitCode, info.type], [sandbox.id, 'completed', 3, 'exec']);
    assert.deepEqual(info.command, sh('cat in.txt; echo wrong >&2; exit 3'));
    await sandbox.destroy();
    assert.equal(await fetchText(result.stdoutStreamUrl), 'input\n', 'also when the sandbox is gone');
    assert.equal((await client.getExecution(result.executionId)).exitCode, 3);
    const { executions } = await client.listExecutions(sandbox.id);
    assert.deepEqual(executions.map((x) => x.executionId), [result.executionId]);
  });

  it('pipes what is written while it is written', async () => {
    const sandbox = await client.create();
    const out = collect(), err = collect();
    const running = sandbox.execute({ command: sh('echo one; echo bad >&2; sleep 0.5; echo two'), pipe: { stdout: out.stream, stderr: err.stream } });
    await until('the first line is there before the end', () => out.text() === 'one\n');
    assert.equal((await running).exitCode, 0);
    assert.equal(out.text(), 'one\ntwo\n');
    assert.equal(err.text(), 'bad\n');
    await sandbox.destroy();
  });

  it('ends by its timeout, and says why it failed', async () => {
    const sandbox = await client.create({ timeout: { execution: '10m' } });
    const result = await sandbox.execute({ command: ['sleep', '100'], timeout: '300ms' });
    assert.equal(result.status, 'timeout');
    assert.match((await client.getExecution(result.executionId)).error, /longer/);
    const reasons = [[['/no/such/program'], /could not be started/], [sh('kill -9 $$'), /signal/]];
    for (const [command, reason] of reasons) {
      const { executionId, status } = await sandbox.execute({ command });
      assert.equal(status, 'failed');
      assert.match((await client.getExecution(executionId)).error, reason);
    }
    await sandbox.destroy();
  });

  it('is one at a time: the next one is told that the sandbox is busy', async () => {
    const sandbox = await client.create();
    const running = sandbox.execute({ command: ['sleep', '0.7'] });
    await until('it runs', async () => (await sandbox.get()).status === 'running');
    assert.equal((await failure(sandbox.execute({ command: ['true'] })))._tag, 'SandboxBusyError');
    const job = await client.createJob(sandbox.id, { command: ['true'] });
    await until('a job is none of its business', async () => (await job.get()).status === 'completed');
    assert.equal((await running).exitCode, 0);
    assert.equal((await sandbox.execute({ command: ['true'] })).exitCode, 0);
    await sandbox.destroy();
  });

  it('waits for a sandbox that is being made', { timeout: 20000 }, async () => {
    for (let i = 0; i < 5; i++) {
      const creating = client.create({ name: `early-${i}` });
      const { sandboxId } = await until('it is listed', async () => (await client.list({ name: `early-${i}` })).sandboxes[0]);
      const early = await client.connect(sandboxId);
      const result = await early.execute({ command: ['pwd'] });
      assert.equal(result.exitCode, 0);
      assert.equal(await fetchText(result.stdoutStreamUrl), '/home/agentuity\n');
      await (await creating).destroy();
    }
  });

  it('says when output was cut, and gives what was kept', async () => {
    const sandbox = await client.create();
    const result = await sandbox.execute({ command: sh('head -c 300000 /dev/zero | tr "\\0" x') });
    const info = await client.getExecution(result.executionId);
    assert.equal(info.outputTruncated, true);
    assert.equal((await fetchText(result.stdoutStreamUrl)).length, 65536);
    await sandbox.destroy();
  });

  it('gives a slow reader every byte while it runs, beyond what is kept', async () => {
    const sandbox = await client.create();
    const out = collect();
    await sandbox.execute({ command: sh('sleep 0.3; head -c 3000000 /dev/zero | tr "\\0" x'), pipe: { stdout: out.stream } });
    assert.equal(out.text().length, 3000000);
    await sandbox.destroy();
  });

  it('leaves out an address that nobody wants', async () => {
    const sandbox = await client.create();
    const result = await sandbox.execute({ command: ['echo', 'x'], stream: { stdout: 'ignore' } });
    assert.equal(result.stdoutStreamUrl, undefined);
    assert.ok(result.stderrStreamUrl);
    await sandbox.destroy();
  });

  it('refuses bad input', async () => {
    const sandbox = await client.create();
    for (const body of [{}, { command: [] }, { command: 'ls' }, { command: [''] }, { command: [7] }, { command: ['ls'], timeout: 'soon' }]) {
      const { status, json } = await server.request('POST', `/agentuity/sandbox/${sandbox.id}/execute`, body);
      assert.equal(status, 400, JSON.stringify(body));
      assert.equal(json.success, false);
    }
    assert.equal((await sandbox.get()).executions, 0);
    await sandbox.destroy();
    assert.equal((await failure(sandbox.execute({ command: ['true'] })))._tag, 'SandboxNotFoundError');
    assert.equal((await failure(client.getExecution('exe_00000000000000000000')))._tag, 'ExecutionNotFoundError');
  });
});

describe('abort', () => {
  it('of execute really ends the command, with everything it started', { timeout: 20000 }, async () => {
    const sandbox = await client.create();
    const abort = new AbortController();
    const running = sandbox.execute({ command: sh('sleep 4711 & sleep 4712'), signal: abort.signal });
    await until('it runs', async () => (await sandbox.get()).status === 'running');
    await until('its child runs, too', () => runs(sandbox.id, 'sleep 4711'));
    abort.abort();
    const error = await failure(running);
    assert.ok(error._tag === 'APIErrorResponse' || error.name === 'AbortError', String(error));
    await until('it is cancelled', async () => (await client.listExecutions(sandbox.id)).executions.some((x) => x.status === 'cancelled'), 5000);
    assert.equal(await runs(sandbox.id, 'sleep 471'), false);
    assert.equal((await sandbox.execute({ command: ['true'] })).exitCode, 0, 'and the sandbox is free again');
    await sandbox.destroy();
  });

  it('is not meant when another still waits', { timeout: 20000 }, async () => {
    const sandbox = await client.create();
    const abort = new AbortController();
    const running = sandbox.execute({ command: ['sleep', '3'], signal: abort.signal });
    await until('it runs', async () => (await sandbox.get()).status === 'running');
    const { executionId } = (await client.listExecutions(sandbox.id)).executions[0];
    const other = client.getExecution(executionId, '30s');
    await sleep(100);
    abort.abort();
    await failure(running);
    assert.equal((await other).status, 'completed');
    await sandbox.destroy();
  });

  it('does not touch jobs, nor what somebody else started', { timeout: 20000 }, async () => {
    const sandbox = await client.create();
    const job = await client.createJob(sandbox.id, { command: ['sleep', '100'] });
    const native = await server.request('POST', `/v1/sandboxes/${sandbox.id.slice(4)}/processes`, { command: ['sleep', '100'] });
    assert.equal(native.status, 201);
    await sleep(1500);
    assert.equal((await job.get()).status, 'running');
    const process = await server.request('GET', `/v1/sandboxes/${sandbox.id.slice(4)}/processes/${native.json.id}`);
    assert.equal(process.json.status, 'running');
    await sandbox.destroy();
  });

  it('is not what a restart of the server means, though it drops every connection', { timeout: 30000 }, async () => {
    const sandbox = await client.create();
    const started = await server.request('POST', `/agentuity/sandbox/${sandbox.id}/execute`, { command: sh('echo early; sleep 4; echo late') });
    const { executionId, stdoutStreamUrl } = started.json.data;
    const dropped = Promise.allSettled([
      client.getExecution(executionId, '60s'), // the SDK tries again by itself
      fetchText(stdoutStreamUrl),
      server.request('GET', `/agentuity/sandbox/${sandbox.id}?waitForStatus=failed&waitMs=60000`),
    ]);
    await sleep(200);
    const { code } = await server.stop();
    assert.equal(code, 0, server.log.text);
    await server.launch();
    assert.deepEqual((await dropped).slice(1).map((d) => d.status), ['rejected', 'rejected']);
    const ended = await client.getExecution(executionId, '20s');
    assert.deepEqual([ended.status, ended.exitCode], ['completed', 0]);
    assert.equal(await fetchText(stdoutStreamUrl), 'early\nlate\n');
    await sandbox.destroy();
  });

  it('is meant when nobody comes back after a crash, and only then', { timeout: 90000 }, async () => {
    const sandboxes = await Promise.all([1, 2, 3].map(() => client.create()));
    const execute = async (sandbox, script) =>
      (await server.request('POST', `/agentuity/sandbox/${sandbox.id}/execute`, { command: sh(script) })).json.data;
    const job = await client.createJob(sandboxes[2].id, { command: ['sleep', '1000'] });
    const [left, kept] = [await execute(sandboxes[0], 'sleep 4713 & sleep 4714'), await execute(sandboxes[1], 'sleep 1000')];
    // Both are waited for when the server dies; to one of them somebody comes back.
    const waiting = [left, kept].map((x) => server.request('GET', `/agentuity/sandbox/execution/${x.executionId}?wait=5m`).catch(() => undefined));
    await until('both run', async () => (await runs(sandboxes[0].id, 'sleep 4713')) && (await sandboxes[1].get()).status === 'running');
    await server.crash();
    await Promise.all(waiting);
    const clock = fastClock(20);
    Object.assign(server.env, clock.env);
    try {
      await server.launch();
      const again = server.request('GET', `/agentuity/sandbox/execution/${kept.executionId}?wait=5m`);
      await until('the one is cancelled', async () => (await client.getExecution(left.executionId)).status === 'cancelled', 60000);
      assert.equal(await runs(sandboxes[0].id, 'sleep 471'), false, 'with everything it started');
      assert.equal((await client.getExecution(kept.executionId)).status, 'running');
      assert.equal((await job.get()).status, 'running');
      await sandboxes[1].destroy();
      assert.equal((await again).json.data.status, 'cancelled');
    } finally {
      await server.stop();
      for (const name of Object.keys(clock.env)) delete server.env[name];
      clock.done();
      await server.launch();
    }
    for (const sandbox of [sandboxes[0], sandboxes[2]]) await sandbox.destroy();
  });

  it('of run ends the sandbox', { timeout: 20000 }, async () => {
    const abort = new AbortController();
    const running = client.run({ command: { exec: ['sleep', '100'] } }, { signal: abort.signal });
    await until('it is there', async () => (await client.list({ mode: 'oneshot' })).total === 1);
    abort.abort();
    assert.equal((await failure(running))._tag, 'ExecutionCancelledError');
    await until('it is gone', async () => (await client.list()).total === 0);
  });
});

describe('run', () => {
  it('gives output and exit code, and leaves nothing', async () => {
    const out = collect(), err = collect();
    const result = await client.run(
      { command: { exec: sh('echo "$WHO"; cat f; echo bad >&2; exit 7'), files: [{ path: 'f', content: Buffer.from('file\n') }] }, env: { WHO: 'me' } },
      { stdout: out.stream, stderr: err.stream },
    );
    assert.deepEqual([result.exitCode, result.stdout, result.stderr], [7, 'me\nfile\n', 'bad\n']);
    assert.deepEqual([out.text(), err.text()], ['me\nfile\n', 'bad\n']);
    await until('it is gone', async () => (await client.list()).total === 0);
    const info = await client.get(result.sandboxId);
    assert.deepEqual([info.status, info.mode, info.exitCode], ['terminated', 'oneshot', 7], 'it can be looked at');
    assert.deepEqual(info.command.exec.slice(0, 2), ['sh', '-c']);
    assert.deepEqual([await fetchText(info.stdoutStreamUrl), await fetchText(info.stderrStreamUrl)], ['me\nfile\n', 'bad\n']);
    const status = await server.request('GET', `/agentuity/sandbox/status/${result.sandboxId}`);
    assert.deepEqual(status.json.data, { sandboxId: result.sandboxId, status: 'terminated', exitCode: 7 });
    const error = await failure(client.writeFiles(result.sandboxId, [{ path: 'x', content: Buffer.from('') }]));
    assert.match(error.message, /terminated/);
    assert.equal((await failure(client.pause(result.sandboxId)))._tag, 'SandboxTerminatedError');
  });

  it('feeds stdin as it comes', { timeout: 20000 }, async () => {
    const stdin = new PassThrough();
    const out = collect();
    const running = client.run({ command: { exec: sh('while read line; do echo "got $line"; done; echo end') } }, { stdin, stdout: out.stream });
    stdin.write('first\n');
    await until('it is answered', () => out.text() === 'got first\n');
    stdin.end('second\n');
    const result = await running;
    assert.deepEqual([result.exitCode, result.stdout], [0, 'got first\ngot second\nend\n']);
  });

  it('feeds megabytes to one that reads slowly', { timeout: 30000 }, async () => {
    const block = Buffer.alloc(1 << 20, 'x');
    const stdin = Readable.from((function* () {
      for (let i = 0; i < 8; i++) yield block;
    })());
    const result = await client.run({ command: { exec: sh('sleep 0.3; wc -c') } }, { stdin });
    assert.equal(result.stdout.trim(), String(8 << 20));
  });

  it('ends when the command does not read its stdin', { timeout: 20000 }, async () => {
    const stdin = new PassThrough();
    stdin.write('nobody reads this');
    const result = await client.run({ command: { exec: ['echo', 'done'] } }, { stdin });
    assert.equal(result.stdout, 'done\n');
    stdin.destroy();
  });

  it('has a number of streams for stdin, of its own tenant, each of them for one command', async () => {
    const announce = (key) => server.request('POST', '/agentuity/input', { name: 'x' }, { key });
    const made = [];
    let refused;
    for (let i = 0; i < 101 && !refused; i++) {
      const answer = await announce(server.key);
      if (answer.status === 201) made.push(answer.json.id);
      else refused = answer;
    }
    assert.equal(refused?.status, 429);
    assert.ok(made.length <= 100 && made.length > 90, `${made.length}`);
    const use = (id, key) => server.request('POST', '/agentuity/sandbox', { command: { exec: ['cat'], mode: 'oneshot' }, stream: { stdin: id } }, { key });
    assert.equal((await announce(OTHER)).status, 201, 'not of all');
    assert.equal((await use(made[0], OTHER)).status, 400, 'another tenant cannot have it');
    assert.equal((await server.request('PUT', `/agentuity/input/${made[0]}`, Buffer.from('x'), { key: OTHER })).status, 404);
    for (const id of made) {
      // Fed before there is a command: it waits.
      const fed = server.request('PUT', `/agentuity/input/${id}`, Buffer.from(id));
      const created = await use(id);
      assert.equal(created.status, 201, created.text);
      assert.equal((await fed).status, 200);
      assert.equal(await fetchText(created.json.data.stdoutStreamUrl), id);
      if (id === made[2]) break;
    }
    assert.equal((await use(made[0])).status, 400, 'once');
  });

  it('says what is not there', async () => {
    const result = await client.run({ command: { exec: ['/no/such/program'] } });
    assert.equal(result.exitCode, 127);
  });
});

describe('jobs', () => {
  it('run, are listed, write, end and are stopped', async () => {
    const sandbox = await client.create();
    const quick = await client.createJob(sandbox.id, { command: sh('echo out; echo err >&2; exit 4') });
    assert.match(quick.id, /^job_[a-z0-9]{20}$/);
    const ended = await until('it has ended', async () => {
      const job = await quick.get();
      return job.status === 'completed' && job;
    });
    assert.deepEqual([ended.exitCode, ended.sandboxId, ended.command[0]], [4, sandbox.id, 'sh']);
    assert.equal(await fetchText(ended.stdoutStreamUrl), 'out\n');
    assert.equal(await fetchText(ended.stderrStreamUrl), 'err\n');
    const long = await client.createJob(sandbox.id, { command: ['sleep', '100'] });
    const again = await client.getJob(sandbox.id, long.id);
    await until('it runs', async () => (await again.get()).status === 'running');
    const { jobs } = await client.listJobs(sandbox.id);
    assert.deepEqual(jobs.map((j) => j.jobId), [long.id, quick.id]);
    assert.equal((await client.listJobs(sandbox.id, 1)).jobs.length, 1);
    assert.equal((await again.stop()).status, 'cancelled');
    const stubborn = await client.createJob(sandbox.id, { command: sh('trap "" TERM; while true; do sleep 0.1; done') });
    await sleep(200);
    const killed = await stubborn.stop(true);
    assert.deepEqual([killed.status, killed.exitCode], ['cancelled', 137]);
    assert.equal((await failure(client.getJob(sandbox.id, 'job_00000000000000000000'))).status, 404);
    await sandbox.destroy();
  });
});

describe('addresses of streams', () => {
  it('cannot be guessed, nor made from others', async () => {
    const sandbox = await client.create();
    const mine = await sandbox.execute({ command: ['echo', 'mine'] });
    const other = await sandbox.execute({ command: ['echo', 'other'] });
    const split = (url) => {
      const { pathname } = new URL(url);
      const name = pathname.split('/').pop();
      return { id: name.slice(0, 20), mac: name.slice(20, -2) };
    };
    const [a, b] = [split(mine.stdoutStreamUrl), split(other.stdoutStreamUrl)];
    assert.equal(`exe_${a.id}`, mine.executionId);
    assert.notEqual(a.mac, b.mac);
    const flipped = (a.mac[0] === '0' ? '1' : '0') + a.mac.slice(1);
    for (const name of [`${a.id}.0`, `${a.id}${b.mac}.0`, `${a.id}${flipped}.0`, `${a.id}${a.mac}`, `${a.id}${a.mac}.2`, `${a.id}${a.mac}.00`,
      `${a.id}${a.mac.slice(0, -1)}.0`, `${a.id}${a.mac}0.0`, `exe_${a.id}${a.mac}.0`, '.0', '.', 'x'.repeat(3000)]) {
      const answer = await fetch(`${server.url}/agentuity/stream/${name}`);
      assert.equal(answer.status, 404, name);
      assert.equal((await answer.json()).success, false);
    }
    // A token of something else is none of a stream.
    const e2b = await server.request('POST', '/sandboxes', { templateID: 'base' });
    const token = e2b.json?.envdAccessToken;
    if (token) assert.equal((await fetch(`${server.url}/agentuity/stream/${token}.0`)).status, 404);
    await server.request('DELETE', `/sandboxes/${e2b.json?.sandboxID}`);
    await sandbox.destroy();
  });

  it('survive the server', { timeout: 30000 }, async () => {
    const sandbox = await client.create();
    const result = await sandbox.execute({ command: ['echo', 'kept'] });
    await server.stop();
    await server.launch();
    assert.equal(await fetchText(result.stdoutStreamUrl), 'kept\n');
    await sandbox.destroy();
  });
});

describe('waiting for a status', () => {
  it('is answered as soon as it is there', { timeout: 20000 }, async () => {
    const sandbox = await client.create();
    const waiting = server.request('GET', `/agentuity/sandbox/${sandbox.id}?waitForStatus=running,suspended&waitMs=10000`);
    await sleep(100);
    const begin = Date.now();
    await sandbox.pause();
    assert.equal((await waiting).json.data.status, 'suspended');
    assert.ok(Date.now() - begin < 5000);
    const late = await server.request('GET', `/agentuity/sandbox/status/${sandbox.id}?waitForStatus=idle&waitMs=200`);
    assert.equal(late.json.data.status, 'suspended', 'or when the time is up');
    const end = server.request('GET', `/agentuity/sandbox/status/${sandbox.id}?waitForStatus=idle&waitMs=60000`);
    await sleep(50);
    await sandbox.destroy();
    assert.equal((await end).json.data.status, 'deleted', 'or when nothing else can come');
  });
});
