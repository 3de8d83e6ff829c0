import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { Server, until } from '../lib/server.mjs';
import { assertRefused, clear, finish, list, startBeside, startCommand } from './support.mjs';

const fillWithForks = `
import os, time
n = 0
try:
    for i in range(100):
        if os.fork() == 0:
            time.sleep(2)
            os._exit(0)
        n += 1
except OSError as e:
    print(n, e.errno, flush=True)
time.sleep(2)
`;

describe('limits', () => {
  let server;
  before(async () => {
    server = await Server.start();
  });
  after(() => finish(server));

  for (const kind of ['a prepared', 'a cold-booted'])
    describe(`of ${kind} sandbox`, () => {
      let host;
      before(async () => {
        host = kind === 'a prepared' ? server : await startBeside(server, { args: ['--pool', '0'] });
      });
      afterEach(() => clear(host));
      after(async () => {
        if (host !== server) await finish(host);
      });

      it('hold its memory, all processes together', async () => {
        const { id } = await host.create({ resources: { memory: '128Mi' } });
        const grab = (mib) => ['python3', '-c', `x = bytearray(${mib} << 20); import time; print('got it', flush=True); time.sleep(${mib < 90 ? 2 : 0})`];
        assert.equal((await host.exec(id, grab(90))).stdout, 'got it\n');
        const [a, b] = await Promise.all([host.exec(id, grab(80)), host.exec(id, grab(80))]);
        assert.equal([a, b].filter((r) => r.oomKilled).length, 1, 'twice 80 MiB do not fit into 128');
      });

      it('hold its processes and threads', async () => {
        const { id } = await host.create({ resources: { pids: 24 } });
        const { stream } = await startCommand(host, id, { command: ['python3', '-c', fillWithForks] });
        const r = { stdout: (await stream.events.next()).value.data };
        const [n, errno] = r.stdout.trim().split(' ').map(Number);
        assert.ok(n >= 18 && n < 24, `${n} forks worked`);
        assert.equal(errno, 11);
        const refused = await host.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['true'] });
        assertRefused(refused, 503, 'resource_exhausted');
        const tryAgain = () => host.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['true'] });
        await until('there is room again', async () => (await tryAgain()).status === 200);
        stream.close();
      });

      it('hold its CPU', async () => {
        const { id } = await host.create({ resources: { cpu: '200m' } });
        const r = await host.exec(id, [
          'python3',
          '-c',
          'import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint(time.process_time())',
        ]);
        const used = Number(r.stdout);
        assert.ok(used < 0.7, `a fifth of a core for 2 s gave ${used} s of CPU`);
        assert.ok(used > 0.1, `a fifth of a core for 2 s gave only ${used} s of CPU`);
      });

      it('hold its open files, also for its root', async () => {
        const { id } = await host.create({ resources: { openFiles: 64 } });
        const r = await host.exec(id, {
          user: 'root',
          command: [
            'python3',
            '-c',
            `
import os, resource
print(resource.getrlimit(resource.RLIMIT_NOFILE))
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (65, 65))
    print('raised')
except (ValueError, OSError):
    print('kept')
fds = []
try:
    while True: fds.append(os.open('/dev/null', 0))
except OSError as e:
    print(fds[-1], e.errno)
`,
          ],
        });
        assert.equal(r.stdout, '(64, 64)\nkept\n63 24\n');
      });
    });

  it('default to 1 GiB, one core and 512 processes', async () => {
    const box = await server.create();
    assert.deepEqual([box.resources.memory, box.resources.cpu, box.resources.pids], ['1Gi', '1000m', 512]);
    const r = await server.exec(box.id, ['python3', '-c', 'x = bytearray(1200 << 20)']);
    assert.equal(r.oomKilled, true);
    await clear(server);
  });

  it('give no sandbox more than one core by default', async () => {
    const { id } = await server.create();
    const spin = 'import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\nprint(time.process_time())';
    const results = await Promise.all([1, 2, 3].map(() => server.exec(id, ['python3', '-c', spin])));
    const used = results.reduce((sum, r) => sum + Number(r.stdout), 0);
    assert.ok(used < 1.95, `three busy processes used ${used} s of CPU in 1.5 s`);
    await clear(server);
  });

  it('bound /dev/shm', async () => {
    const { id } = await server.create();
    const r = await server.exec(id, 'head -c 200000000 /dev/zero > /dev/shm/x; echo $?; stat -c %s /dev/shm/x');
    const [status, size] = r.stdout.trim().split('\n').map(Number);
    assert.notEqual(status, 0);
    assert.ok(size <= 128 << 20, `${size} bytes fit`);
    await clear(server);
  });

  it('allow no core files', async () => {
    const { id } = await server.create();
    assert.equal((await server.exec(id, 'ulimit -c; ulimit -Hc')).stdout, '0\n0\n');
    await clear(server);
  });

  it('let a fork bomb neither out nor the server down', async () => {
    const { id } = await server.create({ resources: { pids: 64 } });
    const bomb = server.exec(id, { command: 'f() { f | f & }; (f) & while :; do :; done', timeout: '2s' });
    const other = await server.create();
    for (let i = 0; i < 10; i++) assert.equal((await server.exec(other.id, 'echo well')).stdout, 'well\n');
    assert.equal((await bomb).timedOut, true);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
    await clear(server);
  });

  it('that fill the memory with files of /dev/shm do not cost the sandbox', async () => {
    const { id } = await server.create({ resources: { memory: '32Mi' } });
    await server.exec(id, { command: 'head -c 60000000 /dev/zero > /dev/shm/full; true', timeout: '10s' });
    await server.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['true'], timeout: '5s' });
    const box = (await server.request('GET', `/v1/sandboxes/${id}`)).json;
    assert.notEqual(box.status, 'failed', box.statusReason);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
  });

  describe('of the server', () => {
    let small;
    before(async () => {
      small = await startBeside(server, {
        args: [
          ...['--memory', '64Mi', '--cpu', '250m', '--pids', '20', '--open-files', '100'],
          ...['--max-memory', '128Mi', '--max-cpu', '1', '--max-pids', '30', '--max-open-files', '200'],
        ],
      });
    });
    after(() => finish(small));
    afterEach(() => clear(small));

    it('are the defaults it was started with', async () => {
      const box = await small.create();
      assert.deepEqual(box.resources, { memory: '64Mi', cpu: '250m', pids: 20, openFiles: 100, disk: '10Gi' });
      assert.equal((await small.exec(box.id, 'ulimit -n')).stdout, '100\n');
      assert.equal((await small.exec(box.id, ['python3', '-c', 'x = bytearray(100 << 20)'])).oomKilled, true);
    });

    it('can be asked for up to the maxima', async () => {
      const box = await small.create({ resources: { memory: '128Mi', cpu: 1, pids: 30, openFiles: 200 } });
      assert.deepEqual(box.resources, { memory: '128Mi', cpu: '1000m', pids: 30, openFiles: 200, disk: '10Gi' });
    });

    for (const [field, value] of [['memory', '129Mi'], ['cpu', '1001m'], ['pids', 31], ['openFiles', 201]])
      it(`refuse ${field} above the maximum, and make nothing`, async () => {
        const body = { resources: { [field]: value } };
        assertRefused(await small.request('POST', '/v1/sandboxes', body), 400, 'invalid_field', `resources.${field}`);
        assertRefused(await small.request('POST', '/v1/run', { ...body, command: 'true' }), 400, 'invalid_field', `resources.${field}`);
        assert.deepEqual(await list(small), []);
      });
  });
});
