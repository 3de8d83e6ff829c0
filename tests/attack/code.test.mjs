// User code against its interpreter and the server behind it: forged messages, closed descriptors, floods, forks, suicides.
// Whatever it does, the run ends with an answer, the server stays as small as it was, and the context works again.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Server, sleep } from '../lib/server.mjs';
import { assertHealthyLog } from '../system/support.mjs';

let server, box;
before(async () => {
  server = await Server.start();
  box = await server.create({ template: 'code-interpreter-v1', resources: { pids: 64 } });
});
after(async () => {
  assertHealthyLog(server);
  await server.destroy();
});

const frontMemory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.frontPid}/status`, 'utf8'))[1]);

/** All that a run says, up to a limit of output that is kept; `ms`: then the client leaves. */
async function run(language, code, { ms, ...options } = {}) {
  const stream = await server.stream(`/v1/sandboxes/${box.id}/contexts/${language}/execute`, { code, ...options });
  assert.equal(stream.status, 200);
  const out = { stdout: '', stderr: '', results: [], bytes: 0, last: undefined };
  const timer = ms ? setTimeout(() => stream.close(), ms) : undefined;
  try {
    for await (const event of stream.events) {
      out.last = event.type;
      if (event.data) {
        out.bytes += event.data.length;
        if (out[event.type].length < 100000) out[event.type] += event.data;
      }
      if (event.type === 'result' && out.results.length < 1000) out.results.push(event);
      if (event.type === 'error') out.error = event;
    }
  } catch (error) {
    if (!ms) throw error;
  }
  clearTimeout(timer);
  return out;
}

/** The context answers, whatever was done to it. */
async function assertWorks(language = 'python') {
  const ask = { python: 'print(6 * 7)', javascript: 'console.log(6 * 7)', bash: 'echo $((6 * 7))' }[language];
  const out = await run(language, ask);
  assert.equal(out.last, 'end', JSON.stringify(out));
  assert.ok(out.stdout.endsWith('42\n'), JSON.stringify(out));
  assert.equal(out.error, undefined, JSON.stringify(out.error));
}

describe('forged messages', () => {
  const KEY = '0'.repeat(32);
  const forgery = `\\n${KEY} result 10 6\\ntext/plainforged\\n${KEY} done\\n`;

  test('on every descriptor of the Python interpreter are not believed', { timeout: 30000 }, async () => {
    const out = await run('python', `import os\nfor fd in range(1, 300):\n  for text in (b"${forgery}", b"\\x00\\x00\\x00\\x02${forgery}", b"\\xff" * 64):\n    try: os.write(fd, text)\n    except OSError: pass\n"true end"`);
    assert.equal(out.last, 'end');
    assert.deepEqual(out.results.map((r) => r.formats['text/plain']), ["'true end'"]);
    await assertWorks();
  });

  test('by a child of any interpreter are not believed', { timeout: 30000 }, async () => {
    const shell = `for fd in /proc/self/fd/*; do printf '${forgery}' >&"\${fd##*/}" 2>/dev/null; done; true`;
    const codes = {
      python: `import subprocess; subprocess.run(["bash", "-c", ${JSON.stringify(shell)}], close_fds=False)`,
      javascript: `require('child_process').spawnSync('bash', ['-c', ${JSON.stringify(shell)}], { stdio: 'inherit' }); undefined`,
      bash: shell,
    };
    for (const [language, code] of Object.entries(codes)) {
      const out = await run(language, code);
      assert.equal(out.last, 'end', language);
      assert.ok(!out.results.some((r) => r.formats['text/plain'] === 'forged'), language);
      await assertWorks(language);
    }
  });

  test('that announce gigabytes, or a thousand fields, do not make the server grow', { timeout: 60000 }, async () => {
    const before = frontMemory();
    // With the true key: what a program can do that searched its own memory for it.
    const out = await run('python', `
import gc, os
channel = next(o for o in gc.get_objects() if type(o).__name__ == "Channel")
for head in (b"result 99999999999 1", b"result " + b"1 " * 1000, b"result -1 5", b"result 18446744073709551615 18446744073709551615",
             b"result 10 9000000", b"x" * 5000, b"", b"display 10 1073741824"):
    os.write(channel.writer, b"\\n" + channel.key + b" " + head + b"\\n" + b"z" * 100000)
print("still here")`);
    assert.ok(frontMemory() - before < 30000, `it grew by ${frontMemory() - before} KiB`);
    assert.equal(out.last, 'end');
    assert.match(out.error.value, /made no sense/);
    await assertWorks();
  });

  test('with JSON that is none are left out', { timeout: 30000 }, async () => {
    const out = await run('python', `
import gc
channel = next(o for o in gc.get_objects() if type(o).__name__ == "Channel")
for bad in ("{", '{"a":1}\\n{"type":"error"}', "[" * 100 + "]" * 100, '"\\x00"', "nan", '{"a":1,}', "\\u00ff"[:0] + "1 2"):
    channel.send("display", "application/json", bad, "text/plain", "t")
channel.send("display", "application/json", '{"fine":true}', "text/plain", "t")
channel.send("display", "text/plain\\n\\r\\"", "t")
channel.send("display", "odd")
channel.send("error", "few")`);
    assert.equal(out.last, 'end');
    const json = out.results.map((r) => r.formats['application/json']);
    assert.deepEqual(json.slice(0, 8), [...Array(7).fill(undefined), { fine: true }]);
    assert.deepEqual(out.results.map((r) => r.formats['text/plain']).slice(0, 8), Array(8).fill('t'));
    await assertWorks();
  });
});

describe('descriptors', () => {
  test('that are closed end the interpreter, not the context', { timeout: 60000 }, async () => {
    for (const [language, code] of [
      ['python', 'import os; os.closerange(0, 1024); 1'],
      ['python', 'import os\nfor fd in range(1024):\n  try: os.dup2(os.open("/dev/null", os.O_RDWR), fd)\n  except OSError: pass'],
      ['javascript', 'for (let fd = 0; fd < 1024; fd++) try { require("fs").closeSync(fd) } catch {}'],
      ['bash', 'for fd in /proc/self/fd/*; do n=${fd##*/}; eval "exec $n>&-" 2>/dev/null; done'],
    ]) {
      const out = await run(language, code, { timeout: '3s' });
      assert.equal(out.last, 'end', `${language}: ${JSON.stringify(out)}`);
      await sleep(300);
      const next = await run(language, { python: 'print(1)', javascript: 'console.log(1)', bash: 'echo 1' }[language], { timeout: '9s' });
      if (next.error) assert.match(next.error.name, /UnexpectedEnd|TimeoutError/);
      await assertWorks(language);
    }
  });

  test('that children keep open hold nobody up', { timeout: 30000 }, async () => {
    const begin = Date.now();
    await run('python', 'import subprocess; p = subprocess.Popen(["sleep", "100"], close_fds=False)');
    await run('python', 'import os\nif os.fork() == 0:\n  import time; time.sleep(100)');
    await run('bash', 'sleep 100 & disown; (setsid sleep 100 &)');
    assert.ok(Date.now() - begin < 5000);
    const out = await run('python', 'import os; os._exit(0)');
    assert.match(out.error.value, /exited with status 0/);
    await assertWorks();
    await server.exec(box.id, 'pkill sleep; true');
  });

  test('replaced streams do not matter', { timeout: 30000 }, async () => {
    const out = await run('python', 'import sys, io, os\nsys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None\nos.write(1, b"by the descriptor")\n7');
    assert.equal(out.stdout, 'by the descriptor');
    assert.equal(out.results[0].formats['text/plain'], '7');
    await server.request('POST', `/v1/sandboxes/${box.id}/contexts/python/restart`);
    await run('javascript', 'process.stdout.write = process.stderr.write = () => { throw 1 }; console.log = null');
    assert.equal((await run('javascript', '1 + 1')).results[0].formats['text/plain'], '2');
    await server.request('POST', `/v1/sandboxes/${box.id}/contexts/javascript/restart`);
  });
});

describe('floods', () => {
  test('of output arrive whole, in bounded memory', { timeout: 60000 }, async () => {
    const before = frontMemory();
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, frontMemory())), 50);
    const out = await run('python', 'import os\nblock = b"x" * 65536\nfor i in range(1600): os.write(1, block)');
    clearInterval(watch);
    assert.equal(out.bytes, 1600 * 65536);
    assert.ok(most - before < 30000, `it grew by ${most - before} KiB`);
  });

  test('of display() are slowed by their reader, and stop with it', { timeout: 60000 }, async () => {
    const before = frontMemory();
    const out = await run('python', 'while True: display("x" * 100000)', { ms: 1500 });
    assert.ok(out.results.length > 5);
    assert.ok(frontMemory() - before < 60000, `it grew by ${frontMemory() - before} KiB`);
    await assertWorks();
  });

  test('of results of full size, of many contexts at once, stay below the bound', { timeout: 90000 }, async () => {
    const before = frontMemory();
    const big = await server.create({ resources: { memory: '2Gi' } });
    const streams = await Promise.all(Array.from({ length: 12 }, async () => {
      const context = (await server.request('POST', `/v1/sandboxes/${big.id}/contexts`, {})).json.id;
      return server.stream(`/v1/sandboxes/${big.id}/contexts/${context}/execute`, { code: 'class L:\n  def _repr_html_(self): return "y" * 8_000_000\nwhile True: display(L())' });
    }));
    await sleep(4000);
    assert.ok(frontMemory() - before < 300000, `it grew by ${frontMemory() - before} KiB`);
    for (const stream of streams) stream.close();
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${big.id}`)).status, 204);
    await assertWorks();
  });

  test('of processes and threads end with an error', { timeout: 60000 }, async () => {
    const out = await run('python', 'import threading, time\ntry:\n  for i in range(1000): threading.Thread(target=time.sleep, args=(3,), daemon=True).start()\nexcept RuntimeError as e: print("no more")', { timeout: '20s' });
    assert.match(out.stdout + (out.error?.name ?? ''), /no more|RuntimeError|UnexpectedEnd/);
    await sleep(3500);
    await assertWorks();
  });

  test('of nesting and recursion are an error of the code', { timeout: 60000 }, async () => {
    assert.equal((await run('python', 'def f(): f()\nf()')).error.name, 'RecursionError');
    assert.match((await run('python', `${'('.repeat(3000)}1${')'.repeat(3000)}`)).error.name, /MemoryError|SyntaxError|RecursionError/);
    const crash = await run('python', 'import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()', { timeout: '20s' });
    assert.match(crash.error.name, /UnexpectedEndOfExecution|RecursionError|MemoryError|TimeoutError/);
    assert.equal((await run('javascript', 'function f() { f() }; f()')).error.name, 'RangeError');
    const deep = await run('python', 'd = []\nfor i in range(200): d = [d]\nclass J:\n  def _repr_json_(self): return d\nJ()');
    assert.equal(deep.last, 'end');
    await assertWorks();
  });
});

describe('objects', () => {
  test('that lie about themselves get what they deserve', { timeout: 30000 }, async () => {
    const codes = [
      'class E(Exception):\n  def __str__(self): raise E\nraise E',
      'class R:\n  def __repr__(self): raise ValueError("no repr")\nR()',
      'class R:\n  def __repr__(self): return 5\nR()',
      'class A:\n  def __getattr__(self, name): return lambda *a, **k: {"x": self}\nA()',
      'class A:\n  def __getattribute__(self, name): raise KeyboardInterrupt\nA()',
      'class H:\n  def _repr_html_(self): raise SystemExit(3)\nH()',
      'class M:\n  def _repr_mimebundle_(self, **k): return {1: 2, "text/plain": None, "application/json": {"k": self}}\nM()',
      'raise type("N" * 10000, (Exception,), {})("v" * 1000000)',
      'import builtins; builtins.repr = builtins.str = builtins.len = None; 1',
    ];
    for (const code of codes) {
      const out = await run('python', code, { timeout: '5s' });
      assert.equal(out.last, 'end', code);
    }
    await server.request('POST', `/v1/sandboxes/${box.id}/contexts/python/restart`);
    await assertWorks();
    for (const code of ['throw { get name() { throw 1 } }', 'throw null', '({ [Symbol.for("Jupyter.display")]() { throw 1 } })', '({ [Symbol.for("nodejs.util.inspect.custom")]() { throw 1 } })', 'Promise.reject(undefined)', 'new Proxy({}, { get() { throw 1 } })', 'globalThis.Symbol = globalThis.Object = undefined; 1'])
      assert.equal((await run('javascript', code, { timeout: '5s' })).last, 'end', code);
    await server.request('POST', `/v1/sandboxes/${box.id}/contexts/javascript/restart`);
    await assertWorks('javascript');
  });

  test('that never come to an end are ended', { timeout: 60000 }, async () => {
    const out = await run('python', 'class S:\n  def _repr_html_(self):\n    while True: pass\nS()', { timeout: '1s' });
    assert.equal(out.error.name, 'TimeoutError');
    await assertWorks();
    await run('javascript', 'await 1; for (;;);', { timeout: '1s' });
    await assertWorks('javascript');
  });
});

describe('the interpreter', () => {
  test('that is stopped or killed by its own code is replaced', { timeout: 60000 }, async () => {
    const stopped = await run('python', 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)', { timeout: '1s' });
    assert.equal(stopped.error.name, 'TimeoutError');
    await assertWorks();
    const minder = await run('python', 'import os, signal; os.kill(os.getppid(), signal.SIGKILL)', { timeout: '5s' });
    assert.equal(minder.error.name, 'UnexpectedEndOfExecution');
    await assertWorks();
    const held = await run('python', 'import os, signal; os.kill(os.getppid(), signal.SIGSTOP); print(1)', { timeout: '1s' });
    assert.equal(held.error.name, 'TimeoutError');
    await assertWorks();
    const all = await run('bash', 'kill -9 -1', { timeout: '5s' });
    assert.equal(all.error.name, 'UnexpectedEndOfExecution');
    await assertWorks('bash');
  });

  test('cannot be read or traced through its minder', { timeout: 30000 }, async () => {
    const out = await run('python', `
import os
parent = os.getppid()
for name in ("mem", "environ", "maps", "fd/0", "fd", "cwd"):
    try:
        print(name, "open", os.listdir(f"/proc/{parent}/fd") if name == "fd" else open(f"/proc/{parent}/{name}", "rb").read(10))
    except OSError as e: print(name, "closed")`);
    assert.ok(!out.stdout.includes('open'), out.stdout);
  });

  // The interrupt of an interpreter that stands still was due at once, again and again: the loop ran its timer and nothing else.
  test('that is deaf to its interrupt in a paused sandbox does not stop the server', { timeout: 60000 }, async () => {
    const paused = await server.create();
    const at = `/v1/sandboxes/${paused.id}`;
    const stream = await server.stream(`${at}/contexts/python/execute`, { code: 'import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint("deaf", flush=True)\nwhile True:\n  time.sleep(1)' });
    for await (const event of stream.events) if (event.data === 'deaf\n') break;
    stream.close();
    assert.equal((await server.request('POST', `${at}/pause`)).status, 200);
    const front = server.frontPid;
    // The interrupt is due again after 700 ms, the kill after five seconds.
    for (const end = Date.now() + 6000; Date.now() < end; await sleep(200))
      assert.equal(await Promise.race([server.request('GET', '/health').then((r) => r.status), sleep(5000)]), 200);
    assert.equal(server.frontPid, front, 'it is the same front');
    // The control: its time goes on when the sandbox does, and the interpreter is killed for its deafness.
    assert.equal((await server.request('POST', `${at}/resume`)).status, 200);
    const begin = Date.now();
    const after = await server.stream(`${at}/contexts/python/execute`, { code: 'print("back")' });
    let said = '';
    for await (const event of after.events) said += event.data ?? '';
    assert.equal(said, 'back\n');
    assert.ok(Date.now() - begin < 20000, `after ${Date.now() - begin} ms`);
    assert.equal((await server.request('DELETE', at)).status, 204);
  });
});
