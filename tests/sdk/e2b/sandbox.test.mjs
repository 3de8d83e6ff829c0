// Sandbox itself: creating, finding, timing and ending, as users of E2B's SDK do it.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { connect } from 'node:net';
import { AuthenticationError, E2B, NotFoundError, RateLimitError, Sandbox, SandboxError, SandboxNotFoundError, Secret, SecretError, ServiceBusyError, TimeoutError } from 'e2b';
import { Server, failure, optionsFor, startServer, until } from './support.mjs';

const OTHER = 'bnk_00000000000000000000000000000000000000ff';
const server = await startServer({ args: ['--api-key', `other=${OTHER}`] });
const NOBODY = 'a'.repeat(20);

async function all(paginator) {
  const items = [];
  while (paginator.hasNext) items.push(...(await paginator.nextItems()));
  return items;
}

describe('Sandbox.create', () => {
  it('gives a sandbox with what was asked for', async () => {
    const before = Date.now();
    const sandbox = await Sandbox.create('base', { metadata: { app: 'x y', 'k&e=y': 'žluť' }, envs: { A: 'b' }, timeoutMs: 120000, allowInternetAccess: false });
    assert.match(sandbox.sandboxId, /^[a-z0-9]{20}$/);
    const info = await sandbox.getInfo();
    assert.equal(info.sandboxId, sandbox.sandboxId);
    assert.equal(info.templateId, 'base');
    assert.equal(info.name, 'base');
    assert.equal(info.state, 'running');
    assert.deepEqual(info.metadata, { app: 'x y', 'k&e=y': 'žluť' });
    assert.deepEqual(info.lifecycle, { onTimeout: 'kill', autoResume: false });
    assert.ok(Math.abs(info.startedAt - before) < 5000);
    assert.ok(Math.abs(info.endAt - info.startedAt - 120000) < 2000, `${info.endAt - info.startedAt}`);
    assert.ok(info.cpuCount >= 1 && info.memoryMB >= 128);
    assert.match(info.envdVersion, /^\d+\.\d+\.\d+$/);
    assert.deepEqual(await Sandbox.getInfo(sandbox.sandboxId), info);
    assert.deepEqual(await Sandbox.getFullInfo(sandbox.sandboxId), info);
    assert.equal(await sandbox.isRunning(), true);
    assert.equal((await sandbox.commands.run('echo $A')).stdout, 'b\n');
    await sandbox.kill();
  });

  it('lives for five minutes if nothing else is said', async () => {
    const sandbox = await Sandbox.create();
    const info = await sandbox.getInfo();
    assert.ok(Math.abs(info.endAt - info.startedAt - 300000) < 2000);
    await sandbox.kill();
  });

  it('names hosts for ports', async () => {
    const sandbox = await Sandbox.create();
    assert.equal(sandbox.getHost(3000), `3000-${sandbox.sandboxId}.localhost:${server.port}`);
    assert.match(sandbox.getMcpUrl(), new RegExp(`^https://50005-${sandbox.sandboxId}\\.localhost`));
    assert.equal(sandbox.sandboxDomain, `localhost:${server.port}`);
    await sandbox.kill();
  });

  it('works below /e2b, with a client, and by options alone', async () => {
    const sandbox = await Sandbox.create({ ...optionsFor(server), apiUrl: `${server.url}/e2b` });
    assert.equal((await sandbox.commands.run('echo 1')).stdout, '1\n');
    assert.equal(await sandbox.kill(), true);
    const client = new E2B(optionsFor(server));
    const other = await client.Sandbox.create();
    assert.equal(await other.kill(), true);
  });

  it('20 at once all succeed', { timeout: 60000 }, async () => {
    const sandboxes = await Promise.all(Array.from({ length: 20 }, () => Sandbox.create()));
    const outputs = await Promise.all(sandboxes.map((sandbox) => sandbox.commands.run('echo $E2B_SANDBOX_ID')));
    assert.deepEqual(
      outputs.map((one) => one.stdout.trim()),
      sandboxes.map((sandbox) => sandbox.sandboxId),
    );
    assert.equal(new Set(sandboxes.map((sandbox) => sandbox.sandboxId)).size, 20);
    await Promise.all(sandboxes.map((sandbox) => sandbox.kill()));
  });

  it('refuses what it cannot do, by name', async () => {
    const cases = [
      [{ network: { rules: { 'example.org': [{ transform: { headers: {}, query: {} } }] } } }, /network\.rules/],
      [{ network: { egressProxy: { address: 'x:1' } } }, /network\.egressProxy/],
      [{ network: { httpsPorts: [443] } }, /httpsPorts/],
      [{ iam: { tokens: { aws: { audience: 'a', tokenType: 'JWT-SVID' } } } }, /"iam"/],
    ];
    for (const [options, message] of cases) {
      const error = await failure(Sandbox.create('base', options));
      assert.ok(error instanceof SandboxError);
      assert.equal(error.statusCode, 501, error.message);
      assert.match(error.message, message);
    }
    assert.match((await failure(Sandbox.create('base', { mcp: { echo: {} } }))).message, /mcp/);
    const secrets = [() => Secret.create('name', 'value'), () => Secret.list(), () => Secret.getInfo('x'), () => Secret.exists('x'), () => Secret.update('x', 'y'), () => Secret.destroy('x')];
    for (const call of secrets) {
      const error = await failure(Promise.resolve(call()).then((answer) => answer.nextItems?.() ?? answer));
      assert.ok(error instanceof SecretError, `${call}: ${error}`);
      assert.match(error.message, /501.*secrets/, String(call));
    }
    const running = await all(Sandbox.list());
    assert.deepEqual(running, [], 'and nothing was made');
  });

  it('says when there are enough of them', { timeout: 60000 }, async () => {
    const small = await Server.start({ args: ['--max-sandboxes', '1', '--pool', '0'] });
    try {
      await Sandbox.create(optionsFor(small));
      assert.ok((await failure(Sandbox.create(optionsFor(small)))) instanceof RateLimitError);
    } finally {
      await small.destroy();
    }
  });

  it('says when too many talk to the server at once', { timeout: 60000 }, async () => {
    const small = await Server.start({ args: ['--max-connections', '2', '--pool', '0'] });
    const sockets = [];
    try {
      // Streams that a key has opened: whoever shows none would give way.
      const { id } = await small.create();
      small.renewAgent();
      for (let i = 0; i < 2; i++) {
        const socket = connect(small.port, '127.0.0.1');
        sockets.push(socket);
        socket.write(`GET /v1/sandboxes/${id}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${small.key}\r\n\r\n`);
        await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
      }
      const busy = async () => {
        const error = await failure(Sandbox.list(optionsFor(small)).nextItems());
        return error instanceof ServiceBusyError;
      };
      await until('it is busy', () => busy().catch(() => false));
    } finally {
      for (const socket of sockets) socket.destroy();
      await small.destroy();
    }
  });

  it('says which template is missing, and which key is wrong', async () => {
    const missing = await failure(Sandbox.create('no-such-template'));
    assert.ok(missing instanceof SandboxError);
    assert.equal(missing.statusCode, 404);
    assert.match(missing.message, /no-such-template|template/);
    const wrong = await failure(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }));
    assert.ok(wrong instanceof AuthenticationError);
    assert.ok((await failure(Sandbox.create({ timeoutMs: -1000 }))) instanceof SandboxError);
  });
});

describe('Sandbox.list', () => {
  it('filters and pages, newest first or last', { timeout: 30000 }, async () => {
    const made = [];
    for (const [app, n] of [['x y', '1'], ['x y', '2'], ['a&b=c%', '3'], ['x y', '4'], ['plain', '5']])
      made.push(await Sandbox.create({ metadata: { app, n } }));
    const ids = made.map((sandbox) => sandbox.sandboxId);
    const of = async (options) => (await all(Sandbox.list(options))).map((one) => one.sandboxId);
    assert.deepEqual(await of({}), [...ids].reverse());
    assert.deepEqual(await of({ order: 'asc' }), ids);
    assert.deepEqual(await of({ limit: 2 }), [...ids].reverse());
    assert.deepEqual(await of({ limit: 2, order: 'asc' }), ids);
    assert.deepEqual(await of({ query: { metadata: { app: 'x y' } }, limit: 1, order: 'asc' }), [ids[0], ids[1], ids[3]]);
    assert.deepEqual(await of({ query: { metadata: { app: 'x y', n: '2' } } }), [ids[1]]);
    assert.deepEqual(await of({ query: { metadata: { app: 'a&b=c%' } } }), [ids[2]]);
    assert.deepEqual(await of({ query: { metadata: { app: 'none' } } }), []);
    assert.deepEqual(await of({ query: { template: 'base' }, limit: 100 }), [...ids].reverse());
    assert.deepEqual(await of({ query: { template: 'unknown' } }), []);
    assert.deepEqual(await of({ query: { startedAfter: new Date(Date.now() + 3600000) } }), []);
    assert.deepEqual(await of({ query: { startedAfter: new Date(0) }, order: 'asc' }), ids);
    const { startedAt } = await made[2].getInfo();
    assert.deepEqual((await of({ query: { startedAfter: startedAt }, order: 'asc' })).includes(ids[2]), true, 'at that moment, or after it');
    assert.equal((await of({ query: { startedAfter: new Date(startedAt.getTime() + 1) } })).includes(ids[2]), false);
    await made[1].pause();
    assert.deepEqual(await of({ query: { state: ['paused'] } }), [ids[1]]);
    assert.equal((await of({ query: { state: ['running'] } })).length, 4);
    assert.equal((await of({ query: { state: ['running', 'paused'] } })).length, 5);
    const page = await fetch(`${server.url}/v2/sandboxes?limit=1`, { headers: { 'x-api-key': process.env.E2B_API_KEY } });
    assert.deepEqual([page.headers.get('x-total-running'), (await page.json()).length, page.headers.get('x-next-token') !== null], ['4', 1, true]);
    const paginator = Sandbox.list({ limit: 5 });
    assert.equal((await paginator.nextItems()).length, 5);
    assert.equal(paginator.hasNext, false);
    assert.match((await failure(paginator.nextItems())).message, /No more items/);
    assert.deepEqual(await of({ ...optionsFor(server, OTHER) }), []);
    await Promise.all(made.map((sandbox) => sandbox.kill()));
  });
});

describe('time', () => {
  it('is a lease that can be moved both ways', async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 60000 });
    const left = async () => (await sandbox.getInfo()).endAt - Date.now();
    await sandbox.setTimeout(600000);
    assert.ok(Math.abs((await left()) - 600000) < 3000);
    await Sandbox.setTimeout(sandbox.sandboxId, 100000);
    assert.ok(Math.abs((await left()) - 100000) < 3000);
    await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 30000 });
    assert.ok(Math.abs((await left()) - 100000) < 3000, 'connecting never takes time away');
    await sandbox.connect({ timeoutMs: 200000 });
    assert.ok(Math.abs((await left()) - 200000) < 3000);
    await sandbox.setTimeout(1000);
    await until('its time is up', async () => !(await sandbox.isRunning()), 5000);
    assert.ok((await failure(sandbox.getInfo())) instanceof SandboxNotFoundError);
    assert.ok((await failure(sandbox.setTimeout(1000))) instanceof SandboxNotFoundError);
  });

  it('is up now when none is left', async () => {
    const [killed, negative, paused] = await Promise.all([Sandbox.create(), Sandbox.create(), Sandbox.create({ lifecycle: { onTimeout: 'pause' } })]);
    await Promise.all([killed.setTimeout(0), negative.setTimeout(-1000), paused.setTimeout(0)]);
    await until('two are gone', async () => !(await killed.isRunning()) && !(await negative.isRunning()), 5000);
    await until('the third one is paused', async () => (await paused.getInfo()).state === 'paused', 5000);
    await paused.connect({ timeoutMs: 60000 });
    assert.equal((await paused.getInfo()).state, 'running');
    const bodies = await Promise.all(['{}', '{"timeout":"0"}', '{"timeout":99999999999}'].map(async (body) =>
      (await fetch(`${server.url}/sandboxes/${paused.sandboxId}/timeout`, { method: 'POST', body, headers: { 'x-api-key': process.env.E2B_API_KEY } })).status));
    assert.deepEqual(bodies, [400, 400, 400]);
    await paused.kill();
  });

  it('does not care whether a sandbox is busy', async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 1000 });
    const error = await failure(sandbox.commands.run('sleep 100'));
    assert.ok(error instanceof TimeoutError, String(error));
    assert.match(error.message, /end of life/);
  });
});

describe('kill', () => {
  it('tells whether there was anything to kill', async () => {
    const sandbox = await Sandbox.create();
    assert.equal(await Sandbox.kill(sandbox.sandboxId), true);
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false);
    assert.equal(await sandbox.kill(), false);
    assert.equal(await Sandbox.kill(NOBODY), false);
    assert.equal(await sandbox.isRunning(), false);
    for (const call of [
      () => sandbox.getInfo(),
      () => sandbox.setTimeout(1000),
      () => sandbox.pause(),
      () => sandbox.connect(),
      () => Sandbox.connect(NOBODY),
      () => sandbox.updateNetwork({}),
    ])
      assert.ok((await failure(call())) instanceof SandboxNotFoundError, String(call));
    assert.ok((await failure(Sandbox.getInfo(NOBODY))) instanceof NotFoundError);
  });
});

describe('connect', () => {
  it('finds a sandbox by its id, with its processes and files', async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 60000 });
    await sandbox.commands.run('echo kept > note');
    const again = await Sandbox.connect(sandbox.sandboxId);
    assert.equal(again.sandboxId, sandbox.sandboxId);
    assert.equal(again.envdAccessToken, sandbox.envdAccessToken);
    assert.equal((await again.commands.run('cat note')).stdout, 'kept\n');
    await again.kill();
    assert.equal(await sandbox.isRunning(), false);
  });
});

describe('getHost', () => {
  /** As users do it: fetch `http://${getHost(port)}`; by name only browsers and curl reach *.localhost, so the address is ours and the name in Host. */
  function visit(sandbox, port, headers = {}) {
    return new Promise((resolve, reject) => {
      const req = http.get(`${server.url}/from-outside`, { headers: { host: sandbox.getHost(port), ...headers } }, (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part) => (text += part));
        res.on('end', () => resolve({ status: res.statusCode, text, json: text.startsWith('{') ? JSON.parse(text) : undefined }));
      });
      req.on('error', reject);
    });
  }
  const APP = 'import http.server as h\nclass H(h.BaseHTTPRequestHandler):\n def do_GET(s):\n  b=(s.path+" "+s.headers["host"]+" "+str(s.headers["e2b-traffic-access-token"])).encode();s.send_response(200);s.send_header("content-length",str(len(b)));s.end_headers();s.wfile.write(b)\nh.HTTPServer(("127.0.0.1",3000),H).serve_forever()\n';
  async function serve(options) {
    const sandbox = await Sandbox.create(options);
    await sandbox.files.write('app.py', APP);
    await sandbox.commands.run('python3 app.py', { background: true });
    await until('it listens', async () => (await sandbox.commands.run('python3 -c "import socket; socket.create_connection((\'127.0.0.1\', 3000))"').catch(() => null)) !== null);
    return sandbox;
  }

  it('is a preview that everyone may see, and says when nothing listens', async () => {
    const sandbox = await serve({});
    const seen = await visit(sandbox, 3000);
    assert.deepEqual([seen.status, seen.text], [200, `/from-outside ${sandbox.getHost(3000)} None`]);
    const closed = await visit(sandbox, 3001);
    assert.equal(closed.status, 502);
    assert.deepEqual([closed.json.sandboxId, closed.json.message, closed.json.port, closed.json.code], [sandbox.sandboxId, 'The sandbox is running but port is not open', 3001, 502]);
    await sandbox.kill();
  });

  it('needs the traffic token if public traffic is not allowed, and hides the host', async () => {
    const sandbox = await serve({ network: { allowPublicTraffic: false, maskRequestHost: 'app.example:${PORT}' } });
    assert.ok(sandbox.trafficAccessToken);
    const refused = await visit(sandbox, 3000);
    assert.deepEqual([refused.status, refused.json.code], [403, 403]);
    assert.match(refused.json.message, /e2b-traffic-access-token/);
    const seen = await visit(sandbox, 3000, { 'e2b-traffic-access-token': sandbox.trafficAccessToken });
    assert.deepEqual([seen.status, seen.text], [200, '/from-outside app.example:3000 None']);
    const other = await Sandbox.create({ network: { allowPublicTraffic: false } });
    assert.equal((await visit(sandbox, 3000, { 'e2b-traffic-access-token': other.trafficAccessToken })).status, 403);
    await Promise.all([sandbox.kill(), other.kill()]);
  });
});
