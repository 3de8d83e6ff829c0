// Code contexts by the native API: runs, their events, their order, their ends; what survives.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Server, sleep, until } from '../lib/server.mjs';
import { assertRefused, finish, hostPids, remove } from './support.mjs';

let server, box;
const path = (rest = '') => `/v1/sandboxes/${box.id}/contexts${rest}`;

before(async () => {
  server = await Server.start();
  box = await server.create({ template: 'code-interpreter-v1', env: { FROM_SANDBOX: 'yes' } });
});
after(() => finish(server, { killed: true }));

async function* runEvents(context, code, options = {}) {
  const stream = await server.stream(path(`/${context}/execute`), { code, ...options });
  assert.equal(stream.status, 200);
  yield* stream.events;
}

/** All that a run says: { count, stdout, stderr, results, error }. */
async function run(context, code, options) {
  const out = { stdout: '', stderr: '', results: [] };
  let ended = false;
  for await (const event of runEvents(context, code, options)) {
    assert.ok(!ended, 'nothing comes after the end');
    if (event.type === 'start') out.count = event.count;
    else if (event.type === 'stdout' || event.type === 'stderr') out[event.type] += event.data;
    else if (event.type === 'result') out.results.push(event);
    else if (event.type === 'error') out.error = event;
    else if (event.type === 'end') ended = true;
    else assert.equal(event.type, 'keepalive');
  }
  assert.ok(ended, 'a run ends with its end');
  return out;
}

const text = (out) => out.results.find((r) => r.main)?.formats['text/plain'];

async function make(body) {
  const answer = await server.request('POST', path(), body);
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}

test('a context remembers, in every language', { timeout: 60000 }, async () => {
  for (const [language, define, ask] of [
    ['python', 'x = 6 * 7', 'x'],
    ['javascript', 'const x = 6 * 7', 'x'],
  ]) {
    assert.deepEqual((await run(language, define)).results, []);
    const out = await run(language, ask);
    assert.equal(text(out), '42');
    assert.equal(out.count, 2);
  }
  await run('bash', 'x=42; f() { echo "f $x"; }; declare -A map=([k]=v); cd /tmp');
  assert.equal((await run('bash', 'f; echo ${map[k]}; pwd')).stdout, 'f 42\nv\n/tmp\n');
});

test('a run sees the sandbox\'s variables, and its own for as long as it lasts', { timeout: 60000 }, async () => {
  const ask = { python: 'import os; print(os.environ.get("FROM_SANDBOX"), os.environ.get("A"))', javascript: 'console.log(process.env.FROM_SANDBOX, process.env.A)', bash: 'echo $FROM_SANDBOX $A' };
  for (const [language, code] of Object.entries(ask)) {
    assert.equal((await run(language, code, { env: { A: 'b "c" $d\n' } })).stdout.trim(), 'yes b "c" $d', language);
    assert.match((await run(language, code)).stdout, /^yes( None| undefined)?\n$/, language);
  }
});

test('output comes as it is written, from programs and threads, too', { timeout: 60000 }, async () => {
  const seen = [];
  const begin = Date.now();
  const code = 'import subprocess, sys, time\nprint("one")\ntime.sleep(0.5)\nsubprocess.run("echo two; echo err >&2", shell=True)\ntime.sleep(0.5)\nprint("three", end="")';
  for await (const event of runEvents('python', code)) if (event.data) seen.push([event.type, event.data, Date.now() - begin]);
  assert.deepEqual(seen.map(([type, data]) => [type, data]), [['stdout', 'one\n'], ['stdout', 'two\n'], ['stderr', 'err\n'], ['stdout', 'three']]);
  assert.ok(seen[0][2] < 450, `the first line took ${seen[0][2]} ms`);
  assert.ok(seen[3][2] - seen[0][2] > 800, 'the last came a second later');
});

test('what is printed before a result comes before it', { timeout: 60000 }, async () => {
  const order = [];
  for await (const event of runEvents('python', 'for i in range(50):\n  print(i)\n  display(i)')) if (event.type === 'stdout' || event.type === 'result') order.push(event.data?.trim() ?? event.formats['text/plain']);
  assert.deepEqual(order.join(' '), Array.from({ length: 50 }, (_, i) => `${i} ${i}`).join(' '));
});

test('characters are not torn apart, and what is no text is replaced', { timeout: 60000 }, async () => {
  const out = await run('python', 'import os, time\nfor b in "\u00e4\u20ac\u{1f600}".encode():\n  os.write(1, bytes([b])); time.sleep(0.02)\nos.write(1, b"\\xff|")');
  assert.equal(out.stdout, 'ä€😀\ufffd|');
});

test('errors have name, value and traceback', { timeout: 60000 }, async () => {
  const cases = {
    python: ['def f():\n  return 1 / 0\nf()', 'ZeroDivisionError', 'division by zero', /Cell In\[\d+\], line 2, in f/],
    javascript: ['null.x', 'TypeError', "Cannot read properties of null (reading 'x')", /TypeError/],
    bash: ['(exit 7)', 'ExitCode', '7', /status 7/],
  };
  for (const [language, [code, name, value, trace]] of Object.entries(cases)) {
    const { error } = await run(language, code);
    assert.equal(error.name, name);
    assert.equal(error.value, value);
    assert.match(error.traceback, trace);
  }
});

test('contexts are their own worlds and work side by side', { timeout: 60000 }, async () => {
  const [a, b] = await Promise.all([make({ language: 'python', cwd: '/tmp' }), make({ language: 'python' })]);
  assert.equal(a.cwd, '/tmp');
  assert.equal(b.cwd, '/home/user');
  const meet = (me) => `import glob, os, time; me = "${me}"; open("/tmp/met-" + me, "w").close()\nwhile len(glob.glob("/tmp/met-*")) < 2: time.sleep(0.01)\nos.getcwd()`;
  const [x, y] = await Promise.all([a, b].map((c) => run(c.id, meet(c.id))));
  assert.deepEqual([text(x), text(y)], ["'/tmp'", "'/home/user'"]);
  assert.equal(text(await run(a.id, 'me')), `'${a.id}'`);
  for (const c of [a, b]) assert.equal((await server.request('DELETE', path(`/${c.id}`))).status, 204);
  assertRefused(await server.request('GET', path(`/${a.id}`)), 404, 'not_found');
});

test('runs of one context wait for each other, in their order', { timeout: 60000 }, async () => {
  await run('python', 'order = []');
  await Promise.all([1, 2, 3, 4].map(async (n) => { await sleep(n * 30); await run('python', `import time; time.sleep(0.15); order.append(${n})`); }));
  assert.equal(text(await run('python', 'order')), '[1, 2, 3, 4]');
});

test('a client that leaves interrupts its run, and nothing is lost', { timeout: 60000 }, async () => {
  const sleepers = { python: 'import time; kept = 1; time.sleep(300)', javascript: 'globalThis.kept = 1; for (;;);', bash: 'kept=1; sleep 300; echo after' };
  const asks = { python: 'print(kept)', javascript: 'console.log(kept)', bash: 'echo $kept' };
  for (const [language, code] of Object.entries(sleepers)) {
    const stream = await server.stream(path(`/${language}/execute`), { code });
    assert.equal((await stream.events.next()).value.type, 'start');
    await sleep(200);
    stream.close();
    const begin = Date.now();
    assert.equal((await run(language, asks[language])).stdout, '1\n', language);
    assert.ok(Date.now() - begin < 15000, `${language} came back after ${Date.now() - begin} ms`);
  }
});

test('interrupt, timeout and restart end a run with their own errors', { timeout: 60000 }, async () => {
  const answers = [];
  for (const action of ['interrupt', 'restart']) {
    const running = run('python', 'import time; state = 1; time.sleep(300)');
    await until('it runs', async () => (await server.request('GET', path('/python'))).json.status === 'running');
    await sleep(100);
    answers.push((await server.request('POST', path(`/python/${action}`))).status);
    assert.equal((await running).error.name, { interrupt: 'KeyboardInterrupt', restart: 'ContextRestarting' }[action]);
  }
  assert.deepEqual(answers, [200, 204]);
  assert.equal((await run('python', 'state')).error.name, 'NameError');
  assert.equal((await run('python', 'import time; time.sleep(300)', { timeout: '300ms' })).error.name, 'TimeoutError');
  assert.equal(text(await run('python', '1')), '1');
  assert.deepEqual((await server.request('POST', path('/python/interrupt'))).json, { interrupted: false });
});

test('an interpreter that does not react is killed, and the next run has a new one', { timeout: 60000 }, async () => {
  await run('python', 'state = 1');
  const stream = await server.stream(path('/python/execute'), { code: 'import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n  time.sleep(1)' });
  await stream.events.next();
  await sleep(300);
  stream.close();
  const begin = Date.now();
  const out = await run('python', 'state');
  assert.equal(out.error?.name, 'NameError');
  assert.ok(Date.now() - begin > 4000 && Date.now() - begin < 20000, `after ${Date.now() - begin} ms`);
});

test('an interpreter that dies is reported, and replaced', { timeout: 60000 }, async () => {
  const died = await run('python', 'import os\nprint("last words", flush=True)\nos._exit(3)');
  assert.equal(died.stdout, 'last words\n');
  assert.equal(died.error.name, 'UnexpectedEndOfExecution');
  assert.match(died.error.value, /exited with status 3/);
  assert.equal(text(await run('python', '1 + 1')), '2');
  assert.match((await run('python', 'import os, signal; os.kill(os.getpid(), signal.SIGSEGV)')).error.value, /signal 11/);
  assert.match((await run('javascript', 'process.exit(4)')).error.value, /exited with status 4/);
  assert.match((await run('bash', 'exit 5')).error.value, /exited with status 5/);
  await run('python', 'import os, threading; threading.Timer(0.1, lambda: os._exit(6)).start()');
  await until('it is gone', async () => (await server.request('GET', path('/python'))).json.status === 'stopped');
  const next = await run('python', '1');
  assert.match(next.stderr, /had ended since the last run \(python exited with status 6\)/);
  assert.equal(text(next), '1');
});

test('bad requests are refused, and change nothing', { timeout: 60000 }, async () => {
  const before = (await server.request('GET', path())).json.contexts.length;
  assertRefused(await server.request('POST', path(), { language: 'r' }), 400, 'invalid_field', 'language');
  assertRefused(await server.request('POST', path(), { cwd: '/no/such/place' }), 400, 'invalid_field', 'cwd');
  assertRefused(await server.request('POST', path(), { shell: true }), 400, 'unknown_field', 'shell');
  assertRefused(await server.request('POST', path('/nope/execute'), { code: '1' }), 404, 'not_found');
  assertRefused(await server.request('POST', path('/python/execute'), {}), 400, 'missing_field', 'code');
  assertRefused(await server.request('POST', path('/python/execute'), { code: 'x'.repeat((1 << 20) + 1) }), 400, 'invalid_field', 'code');
  assertRefused(await server.request('POST', path('/python/execute'), { code: '1', env: { 'a=b': 'c' } }), 400, 'invalid_field', 'env');
  assertRefused(await server.request('POST', path('/python/execute'), { code: '1', timeout: '25h' }), 400, 'invalid_field', 'timeout');
  assert.equal((await server.request('GET', path())).json.contexts.length, before);
});

test('there is a limit to contexts and to runs that wait', { timeout: 90000 }, async () => {
  const small = await server.create({ template: 'code-interpreter-v1' });
  const at = (rest = '') => `/v1/sandboxes/${small.id}/contexts${rest}`;
  for (let i = 0; i < 16; i++) assert.equal((await server.request('POST', at(), { language: 'bash' })).status, 201);
  assertRefused(await server.request('POST', at(), { language: 'bash' }), 429, 'quota_exceeded');
  assertRefused(await server.request('POST', at('/python/execute'), { code: '1' }), 429, 'quota_exceeded');
  const { contexts } = (await server.request('GET', at())).json;
  const streams = [];
  for (let i = 0; i < 32; i++) streams.push(await server.stream(at(`/${contexts[0].id}/execute`), { code: 'sleep 30' }));
  assertRefused(await server.request('POST', at(`/${contexts[0].id}/execute`), { code: 'true' }), 429, 'quota_exceeded');
  for (const stream of streams) stream.close();
  await remove(server, small.id);
});

test('an idle interpreter does not keep a sandbox from being idle, and a run does', { timeout: 60000 }, async () => {
  const idle = await server.create({ timeout: { idle: '1s' } });
  const at = `/v1/sandboxes/${idle.id}/contexts/python/execute`;
  const stream = await server.stream(at, { code: 'import time; time.sleep(2.5)' });
  let last;
  for await (const event of stream.events) last = event;
  assert.equal(last.type, 'end', 'the run was not cut short');
  await until('it is gone', async () => (await server.request('GET', `/v1/sandboxes/${idle.id}`)).status === 404 || (await server.request('GET', `/v1/sandboxes/${idle.id}`)).json.status === 'terminated', 5000);
});

test('the sandbox\'s end ends its runs, and the stream is cut', { timeout: 60000 }, async () => {
  const doomed = await server.create();
  const stream = await server.stream(`/v1/sandboxes/${doomed.id}/contexts/python/execute`, { code: 'import time; time.sleep(60)' });
  assert.equal((await stream.events.next()).value.type, 'start');
  await remove(server, doomed.id);
  await assert.rejects(async () => { for await (const event of stream.events) assert.notEqual(event.type, 'end'); });
});

test('code of a megabyte arrives whole', { timeout: 60000 }, async () => {
  const code = `s = """${'x'.repeat((1 << 20) - 100)}"""\nlen(s)`;
  assert.equal(text(await run('python', code)), String((1 << 20) - 100));
  assert.equal((await run('bash', `s='${"y'\\''z\n".repeat(20000)}'; echo \${#s}`)).stdout, `${4 * 20000}\n`);
});

test('without IPython there is still display, its classes, and the shell', { timeout: 60000 }, async () => {
  const plain = await server.create();
  await server.exec(plain.id, { command: 'rm -rf /usr/lib/python3/dist-packages/IPython', user: 'root' });
  const ask = async (code) => {
    const out = { stdout: '', results: [] };
    for await (const e of (await server.stream(`/v1/sandboxes/${plain.id}/contexts/python/execute`, { code })).events) {
      if (e.type === 'stdout') out.stdout += e.data;
      if (e.type === 'result') out.results.push(e.formats);
      if (e.type === 'error') out.error = e;
    }
    return out;
  };
  assert.equal((await ask('!echo from a shell\nprint(_exit_code)')).stdout, 'from a shell\n0\n');
  const { results } = await ask('from IPython.display import display, HTML, Markdown, Image, JSON, Math, SVG\ndisplay(HTML("<b>"), Markdown("# m"))\ndisplay(Image(data=b"\\x89PNG"), JSON([1]), SVG("<svg/>"))\nMath("x")');
  assert.deepEqual(results.map((r) => Object.keys(r).find((m) => m !== 'text/plain')), ['text/html', 'text/markdown', 'image/png', 'application/json', 'image/svg+xml', 'text/latex']);
  assert.equal((await ask('%timeit 1')).error.name, 'SyntaxError');
  assert.equal((await ask('get_ipython() is None')).results[0]['text/plain'], 'True');
  assert.equal((await ask('import asyncio; await asyncio.sleep(0); 5')).results[0]['text/plain'], '5');
  await remove(server, plain.id);
});

test('without its interpreter a context is refused, and says why', { timeout: 60000 }, async () => {
  const bare = await server.create();
  await server.exec(bare.id, { command: 'rm -f /usr/bin/python3 /usr/bin/node', user: 'root' });
  const refused = await server.request('POST', `/v1/sandboxes/${bare.id}/contexts`, { language: 'python' });
  assertRefused(refused, 400, 'invalid_field', 'language');
  assert.match(refused.json.error.message, /no program 'python3' in the sandbox/);
  const events = [];
  for await (const e of (await server.stream(`/v1/sandboxes/${bare.id}/contexts/js/execute`, { code: '1' })).events) events.push(e);
  assert.equal(events[0].name, 'UnexpectedEndOfExecution');
  assert.match(events[0].value, /no program 'node'/);
  await remove(server, bare.id);
});

test('a slow reader slows the code, and the server does not grow', { timeout: 60000 }, async () => {
  const memory = async () => Number(/VmRSS:\s+(\d+)/.exec((await import('node:fs')).readFileSync(`/proc/${server.frontPid}/status`, 'utf8'))[1]);
  const before = await memory();
  const stream = await server.stream(path('/python/execute'), { code: 'for i in range(100): print("x" * 1_000_000)' });
  await sleep(1500);
  assert.ok((await memory()) - before < 20000, `it grew by ${(await memory()) - before} KiB`);
  let bytes = 0;
  for await (const event of stream.events) bytes += event.data?.length ?? 0;
  assert.equal(bytes, 100 * 1_000_001);
});

test('interpreters and what they know survive the server', { timeout: 90000 }, async () => {
  const { id } = await make({ language: 'python', cwd: '/tmp' });
  await run(id, 'survivor = 42');
  await run('bash', 'survivor=43');
  await run('javascript', 'let survivor = 44');
  const stream = await server.stream(path(`/${id}/execute`), { code: 'import time\nfor i in range(3000):\n  print("x" * 100); time.sleep(0.01)' });
  await stream.events.next();
  process.kill(server.frontPid, 'SIGKILL');
  await assert.rejects(async () => { for await (const _ of stream.events); });
  await until('the front is back', async () => { try { return (await server.request('GET', '/health')).status === 200; } catch { return false; } });
  assert.ok((await server.request('GET', path())).json.contexts.some((c) => c.id === id && c.cwd === '/tmp'));
  const again = await run(id, 'survivor');
  assert.equal(text(again), '42', JSON.stringify(again));
  assert.equal((await run('bash', 'echo $survivor')).stdout, '43\n');
  assert.equal(text(await run('javascript', 'survivor')), '44');
  const pids = hostPids(server, box.id).length;
  await server.crash();
  await server.launch();
  assert.equal(text(await run(id, 'survivor')), '42');
  assert.equal(hostPids(server, box.id).length, pids, 'no interpreter was started twice');
  assert.equal((await server.request('DELETE', path(`/${id}`))).status, 204);
  await server.crash();
  await server.launch();
  assertRefused(await server.request('GET', path(`/${id}`)), 404, 'not_found');
});

test('a context runs as whom it was made for, also after a restart; the default ones as the sandbox\'s user', { timeout: 60000 }, async () => {
  const whoami = 'import os; os.getuid(), os.getcwd()';
  const { status, json } = await server.request('POST', path(), { language: 'python', user: 'root' });
  assert.deepEqual([status, json.user, json.cwd], [201, 'root', '/home/user']);
  assert.equal(text(await run(json.id, whoami)), "(0, '/home/user')");
  assert.equal(text(await run('python', whoami)), "(1000, '/home/user')");
  await server.crash();
  await server.launch();
  assert.equal((await server.request('GET', path(`/${json.id}`))).json.user, 'root');
  assert.equal((await server.request('POST', path(`/${json.id}/restart`))).status, 204);
  assert.equal(text(await run(json.id, whoami)), "(0, '/home/user')");
  assert.equal((await server.request('DELETE', path(`/${json.id}`))).status, 204);
  assertRefused(await server.request('POST', path(), { user: 'nobody-here' }), 400, 'invalid_field', 'user');
  assertRefused(await server.request('POST', path(), { user: '' }), 400, 'invalid_field', 'user');
});

test('a server that is stopped leaves interpreters alone; a suspension leaves contexts', { timeout: 60000 }, async () => {
  await run('python', 'kept = 42');
  const stream = await server.stream(path('/python/execute'), { code: 'import time; time.sleep(100)' });
  await stream.events.next();
  const cut = assert.rejects(async () => { for await (const _ of stream.events); });
  await server.stop();
  await cut;
  await server.launch();
  assert.equal(text(await run('python', 'kept')), '42');
  assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/pause`, { memory: false })).status, 200);
  assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/resume`)).status, 200);
  const { contexts } = (await server.request('GET', path())).json;
  assert.ok(contexts.some((c) => c.language === 'python' && c.default && c.status === 'stopped'));
  assert.equal((await run('python', 'kept')).error.name, 'NameError');
});
