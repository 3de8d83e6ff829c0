import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { Server, sleep, until } from '../lib/server.mjs';
import { assertRefused, drain, execution, exists, finish, list, metric, sandboxesInKernel } from './support.mjs';

describe('run', () => {
  let server;
  const post = (body) => server.request('POST', '/v1/run', body);
  const nothingLeft = () => until('no sandbox is left', async () => (await metric(server, 'sandboxes')) === 0, 5000);
  before(async () => {
    server = await Server.start();
  });
  after(() => finish(server));

  it('makes a sandbox, runs one command, answers, and destroys the sandbox', async () => {
    const r = await server.run('echo hello; echo oops >&2; exit 3');
    assert.deepEqual([r.status, r.exitCode, r.stdout, r.stderr], ['completed', 3, 'hello\n', 'oops\n']);
    assert.match(r.executionId, /^[a-z0-9]{20}$/);
    assert.match(r.sandboxId, /^[a-z0-9]{20}$/);
    assert.equal(r.timedOut, false);
    assert.equal(r.outputTruncated, false);
    assert.ok(r.durationMs > 0);
    await until('its sandbox is gone', async () => !(await exists(server, r.sandboxId)));
    await until('nothing of it is in the kernel', () => !sandboxesInKernel(server).includes(r.sandboxId));
    await nothingLeft();
  });

  it('takes every option of create and of exec', async () => {
    const r = await server.run({
      command: ['sh', '-c', 'id -un; pwd; echo $V; cat in/put; cat; ulimit -n; nproc >/dev/null; ls -l in/put | cut -c1-10'],
      template: 'base',
      name: 'one-shot',
      description: 'd',
      project: 'p',
      metadata: { a: 1 },
      resources: { memory: '128Mi', cpu: '500m', pids: 50, openFiles: 77 },
      env: { V: 'variable' },
      files: [{ path: 'in/put', content: 'ZmlsZQo=', encoding: 'base64', mode: '0640' }],
      user: 'root',
      workdir: '/opt',
      stdin: 'from stdin\n',
      timeout: { execution: '20s', idle: '1h' },
    });
    assert.equal(r.stdout, 'root\n/opt\nvariable\nfile\nfrom stdin\n77\n-rw-r-----\n', r.stderr);
    await nothingLeft();
  });

  it('takes cwd for the command, and its timeout as a plain duration', async () => {
    const r = await server.run({ command: 'pwd; sleep 20', cwd: '/usr', timeout: '400ms' });
    assert.deepEqual([r.stdout, r.timedOut, r.exitCode], ['/usr\n', true, 124]);
    const base64 = await server.run({ command: "printf '\\377'", encoding: 'base64' });
    assert.equal(base64.stdout, '/w==');
    await nothingLeft();
  });

  it('is shown with its options while it runs', async () => {
    const running = server.run({ command: 'sleep 0.5', name: 'visible', project: 'shown', metadata: { k: 'v' } });
    const [box] = await until('it is listed', async () => {
      const found = await list(server, '?name=visible&status=running');
      return found.length && found;
    });
    assert.deepEqual([box.project, box.metadata], ['shown', { k: 'v' }]);
    await running;
    await nothingLeft();
  });

  it('can be asked for by execution id afterwards', async () => {
    const r = await server.run('echo kept; exit 2');
    await nothingLeft();
    const stored = await execution(server, r.executionId);
    assert.deepEqual([stored.stdout, stored.exitCode, stored.sandboxId], ['kept\n', 2, r.sandboxId]);
  });

  it('never sees what another run left', async () => {
    await server.run({ command: 'echo x > /tmp/left; echo x > /usr/left; echo x > /root/left', user: 'root' });
    const r = await server.run({ command: 'ls /tmp/left /usr/left /root/left 2>/dev/null | wc -l', user: 'root' });
    assert.equal(r.stdout, '0\n');
  });

  it('ends what it left in the background', async () => {
    const r = await server.run('setsid sleep 1000 >/dev/null 2>&1 & echo started');
    assert.equal(r.stdout, 'started\n');
    await until('nothing of it is in the kernel', () => !sandboxesInKernel(server).includes(r.sandboxId));
  });

  it('leaves nothing when it is refused', async () => {
    const before = await metric(server, 'sandboxes_created_total');
    assertRefused(await post({ command: 'true', template: 'nope' }), 404, 'template_not_found', 'template');
    assertRefused(await post({}), 400, 'missing_field', 'command');
    assert.equal(await metric(server, 'sandboxes_created_total'), before);
    assertRefused(await post({ command: 'true', user: 'nobody-knows' }), 400, 'invalid_field', 'user');
    assertRefused(await post({ command: 'true', cwd: '/nowhere' }), 400, 'invalid_field', 'cwd');
    assertRefused(await post({ command: 'true', files: [{ path: '/etc/nope/x', content: '' }] }), 403, 'permission_denied', 'files[0]');
    await nothingLeft();
  });

  it('reports a program that is missing like exec does', async () => {
    const r = await server.run(['no-such-program']);
    assert.equal(r.exitCode, 127);
    await nothingLeft();
  });

  it('streams as NDJSON and as SSE', async () => {
    const r = await drain(await server.stream('/v1/run', { command: 'seq 1 20000; exit 5' }));
    assert.equal(r.stdout.toString(), Array.from({ length: 20000 }, (_, i) => `${i + 1}\n`).join(''));
    assert.equal(r.exit.exitCode, 5);
    const sse = await server.request('POST', '/v1/run', { command: 'echo hi' }, { headers: { accept: 'text/event-stream' } });
    assert.match(sse.text, /^event: start\ndata: .*\n\nevent: stdout\ndata: .*"hi\\n".*\n\nevent: exit\ndata: .*\n\n$/);
    await nothingLeft();
  });

  it('is destroyed when the client goes away: a stream', async () => {
    const stream = await server.stream('/v1/run', { command: 'sleep 60' });
    const { value } = await stream.events.next();
    assert.equal(await exists(server, value.sandboxId), true);
    stream.close();
    await until('its sandbox is gone', async () => !(await exists(server, value.sandboxId)), 3000);
    const r = await execution(server, value.executionId, '?wait=5s');
    assert.equal(r.status, 'cancelled');
  });

  const abandon = (after) =>
    new Promise((resolve) => {
      const payload = JSON.stringify({ command: 'sleep 60', resources: { memory: '64Mi' } });
      const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', 'content-length': payload.length };
      const req = http.request(`${server.url}/v1/run`, { method: 'POST', headers });
      req.on('error', () => {});
      req.on('close', resolve);
      req.end(payload, () => setTimeout(() => req.destroy(), after));
    });

  it('is destroyed when the client goes away: a plain answer', async () => {
    await abandon(300);
    await nothingLeft();
  });

  it('is destroyed when the client goes away at any moment', async () => {
    const times = Array.from({ length: 30 }, (_, i) => i / 3);
    await Promise.all(times.map(abandon));
    await nothingLeft();
    assert.equal((await server.run('echo alive')).stdout, 'alive\n');
    await nothingLeft();
  });

  it('works 30 times at once', async () => {
    const results = await Promise.all(Array.from({ length: 30 }, (_, i) => server.run(`echo ${i} > /tmp/f; sleep 0.1; cat /tmp/f`)));
    results.forEach((r, i) => assert.equal(r.stdout, `${i}\n`));
    assert.equal(new Set(results.map((r) => r.sandboxId)).size, 30);
    await nothingLeft();
  });

  it('holds its name only as long as it lives', async () => {
    const first = server.run({ command: 'sleep 0.7', name: 'mine' });
    await until('it is listed', async () => (await list(server, '?name=mine')).length === 1);
    assertRefused(await post({ command: 'true', name: 'mine' }), 409, 'name_taken', 'name');
    await first;
    await nothingLeft();
    assert.equal((await server.run({ command: 'echo again', name: 'mine' })).stdout, 'again\n');
    await sleep(0);
  });
});
