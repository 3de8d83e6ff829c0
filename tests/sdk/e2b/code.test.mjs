// @e2b/code-interpreter, as its users call it: runCode with its options and callbacks, contexts, errors.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { NotFoundError, Sandbox, SandboxError, TimeoutError, InvalidArgumentError } from '@e2b/code-interpreter';
import { failure, sleep, startServer } from './support.mjs';

const server = await startServer();
const sandbox = await Sandbox.create({ envs: { FROM_CREATE: 'c', BOTH: 'create' }, timeoutMs: 600000 });
// The SDK forgets to stop the clock of a request that was refused, and the test would wait for it.
const QUICK = { requestTimeoutMs: 1000 };

describe('runCode', () => {
  it('gives the value of the last expression, and remembers', { timeout: 20000 }, async () => {
    const first = await sandbox.runCode('x = 1\nx += 1; x');
    assert.equal(first.text, '2');
    assert.equal(first.executionCount, 1);
    assert.equal(first.results[0].isMainResult, true);
    assert.deepEqual(first.logs, { stdout: [], stderr: [] });
    assert.equal(first.error, undefined);
    const second = await sandbox.runCode('x + 40');
    assert.equal(second.text, '42');
    assert.equal(second.executionCount, 2);
    assert.equal((await sandbox.runCode("'text'")).text, 'text', 'without the quotes of its repr');
  });

  it('streams output, results and errors to callbacks', { timeout: 20000 }, async () => {
    const calls = [];
    const execution = await sandbox.runCode(
      'import os, sys, time\nprint(1)\nwhile not os.path.exists("/tmp/seen"): time.sleep(0.01)\nprint("warn", file=sys.stderr)\ndisplay("shown")\n1 / 0',
      {
        onStdout: (m) => {
          calls.push(['stdout', m.line, m.error]);
          return sandbox.files.write('/tmp/seen', ''); // Only who gets it as it happens can say so.
        },
        onStderr: (m) => calls.push(['stderr', m.line, m.error]),
        onResult: (r) => calls.push(['result', r.text]),
        onError: (e) => calls.push(['error', e.name]),
      },
    );
    assert.deepEqual(calls, [['stdout', '1\n', false], ['stderr', 'warn\n', true], ['result', 'shown'], ['error', 'ZeroDivisionError']]);
    assert.deepEqual(execution.logs, { stdout: ['1\n'], stderr: ['warn\n'] });
    assert.equal(execution.error.name, 'ZeroDivisionError');
    assert.equal(execution.error.value, 'division by zero');
    assert.match(execution.error.traceback, /line 6\n[^]*----> 6 1 \/ 0[^]*ZeroDivisionError: division by zero$/);
    assert.equal(execution.text, undefined, 'what is displayed is not the result');
    assert.equal(JSON.parse(JSON.stringify(execution)).error.name, 'ZeroDivisionError');
  });

  it('takes languages by their names', { timeout: 30000 }, async () => {
    for (const language of ['js', 'javascript']) assert.deepEqual((await sandbox.runCode('console.log("Hello World!")', { language })).logs.stdout, ['Hello World!\n']);
    assert.equal((await sandbox.runCode('async function main() { return "Hello" }\nawait main()', { language: 'js' })).text, 'Hello');
    await sandbox.runCode('const z = 1', { language: 'js' });
    assert.equal((await sandbox.runCode('const z = 2; z', { language: 'javascript' })).text, '2');
    assert.equal((await sandbox.runCode('import { join } from "node:path"\njoin("a", "b")', { language: 'js' })).text, 'a/b');
    assert.equal((await sandbox.runCode('process.cwd()', { language: 'js' })).text, '/home/user');
    assert.equal((await sandbox.runCode('[1, 2].map((x) => x * 2)', { language: 'ts' })).text, '[ 2, 4 ]');
    assert.deepEqual((await sandbox.runCode('echo "Hello, World!"', { language: 'bash' })).logs.stdout, ['Hello, World!\n']);
    const shown = await sandbox.runCode('({ [Symbol.for("Jupyter.display")]() { return { "text/plain": "Hi", "text/html": "<h1>Hi</h1>" } } })', { language: 'js' });
    assert.equal(shown.results[0].html, '<h1>Hi</h1>');
    assert.equal(shown.results[0].text, 'Hi');
  });

  it('says of other languages that they are not there', { timeout: 20000 }, async () => {
    for (const language of ['r', 'java', 'cobol']) {
      const { error } = await sandbox.runCode('1', { language });
      assert.equal(error.name, 'LanguageNotAvailable');
      assert.match(error.value, new RegExp(`'${language}' is not available`));
    }
  });

  it('TypeScript runs where its types can be stripped, and says so where they cannot', { timeout: 20000 }, async () => {
    const code = 'function subtract(x: number, y: number): number {\n  return x - y;\n}\n\nsubtract(1, 2)';
    const plain = await sandbox.runCode(code, { language: 'ts' });
    if (!plain.error) return assert.equal(plain.text, '-1');
    assert.equal(plain.error.name, 'SyntaxError');
    assert.match(plain.logs.stderr.join(''), /looks like TypeScript, and runs as JavaScript/);
    // A stand-in for the package, to see that it is asked.
    await sandbox.files.write('node_modules/typescript/index.js', 'exports.transpileModule = (code) => ({ outputText: code.replace(/: number/g, "") })');
    assert.equal((await sandbox.runCode(code, { language: 'ts' })).text, '-1');
  });

  it('has the envs of the sandbox, and those of one run', { timeout: 20000 }, async () => {
    const codes = { python: 'import os; print(os.environ.get("FROM_CREATE"), os.environ.get("BOTH"), os.environ.get("RUN", "-"))', javascript: 'console.log(process.env.FROM_CREATE, process.env.BOTH, process.env.RUN ?? "-")', bash: 'echo $FROM_CREATE $BOTH ${RUN:--}' };
    for (const [language, code] of Object.entries(codes)) {
      assert.deepEqual((await sandbox.runCode(code, { language, envs: { BOTH: 'run', RUN: 'r ü' } })).logs.stdout, ['c run r ü\n'], language);
      assert.deepEqual((await sandbox.runCode(code, { language })).logs.stdout, ['c create -\n'], language);
    }
    assert.equal((await sandbox.runCode('import os; os.environ["E2B_SANDBOX_ID"]')).text, sandbox.sandboxId);
  });

  it('keeps every character, wherever it is cut', { timeout: 20000 }, async () => {
    const word = 'äß€😀日本';
    const { logs, text } = await sandbox.runCode(`s = ${JSON.stringify(word)}\nfor i in range(5000): print(s)\nlen(s)`);
    assert.equal(logs.stdout.join(''), `${word}\n`.repeat(5000));
    assert.equal(text, String([...word].length));
  });

  it('ends at its timeout, and the next run works', { timeout: 30000 }, async () => {
    await sandbox.runCode('kept = 1');
    const started = Date.now();
    const error = await failure(sandbox.runCode('import time; time.sleep(300)', { timeoutMs: 1000 }));
    assert.ok(error instanceof TimeoutError, String(error));
    assert.match(error.message, /Execution timed out/);
    assert.equal((await sandbox.runCode('kept', { timeoutMs: 10000 })).text, '1');
    assert.ok(Date.now() - started < 15000);
  });

  it('interrupts programs that the code started, too', { timeout: 30000 }, async () => {
    await failure(sandbox.runCode('import subprocess; subprocess.run(["sleep", "4711"])', { timeoutMs: 700 }));
    assert.equal((await sandbox.runCode('1')).text, '1');
    assert.equal((await sandbox.commands.run('pgrep -f "[s]leep 4711" || true')).stdout, '');
  });

  it('lives through a silence by keepalives', { timeout: 30000 }, async () => {
    const { logs } = await sandbox.runCode('import time; time.sleep(7); print("done")', { timeoutMs: 20000 });
    assert.deepEqual(logs.stdout, ['done\n']);
  });

  it('is told that its sandbox was killed', { timeout: 20000 }, async () => {
    const doomed = await Sandbox.create();
    const running = failure(doomed.runCode('import time; print(1, flush=True); time.sleep(60)'));
    await sleep(600);
    await doomed.kill();
    const error = await running;
    assert.ok(error instanceof TimeoutError, String(error));
    assert.match(error.message, /killed while the request was in progress/);
    const later = await failure(doomed.runCode('1', QUICK));
    assert.ok(later instanceof TimeoutError, String(later));
    assert.match(later.message, /^The sandbox was not found: This error is likely due to sandbox timeout/);
  });

  it('takes context or language, not both', { timeout: 20000 }, async () => {
    const context = await sandbox.createCodeContext();
    assert.ok((await failure(sandbox.runCode('1', { context, language: 'python' }))) instanceof InvalidArgumentError);
    const answer = await fetch(`${server.url}/execute`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49999', 'x-access-token': sandbox.envdAccessToken },
      body: JSON.stringify({ code: '1', context_id: context.id, language: 'python' }),
    });
    assert.equal(answer.status, 400);
    await sandbox.removeCodeContext(context);
  });

  it('needs the sandbox\'s token', { timeout: 20000 }, async () => {
    const call = (headers) => fetch(`${server.url}/execute`, { method: 'POST', headers: { 'content-type': 'application/json', 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49999', ...headers }, body: '{"code":"1"}' });
    assert.equal((await call({})).status, 401);
    assert.equal((await call({ 'x-access-token': 'x' })).status, 401);
    assert.equal((await call({ 'x-access-token': sandbox.envdAccessToken })).status, 200);
    const listing = await fetch(`${server.url}/contexts`, { headers: { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49999', 'x-access-token': 'x' } });
    assert.equal(listing.status, 401, 'a token that is sent must be right');
  });
});

describe('contexts', () => {
  it('are made, listed, used, restarted and removed', { timeout: 30000 }, async () => {
    const context = await sandbox.createCodeContext({ language: 'python', cwd: '/tmp' });
    assert.deepEqual(Object.keys(context).sort(), ['cwd', 'id', 'language']);
    assert.equal(context.language, 'python');
    assert.equal(context.cwd, '/tmp');
    const listed = await sandbox.listCodeContexts();
    assert.deepEqual(listed.at(-1), context);
    assert.ok(listed.some((c) => c.language === 'javascript') && listed.some((c) => c.language === 'python' && c.cwd === '/home/user'));
    assert.equal((await sandbox.runCode('import os; own = 1; os.getcwd()', { context })).text, '/tmp');
    assert.equal((await sandbox.runCode('own')).error.name, 'NameError', 'the default context does not know it');
    await sandbox.restartCodeContext(context);
    assert.equal((await sandbox.runCode('own', { context })).error.name, 'NameError');
    await sandbox.restartCodeContext(context.id);
    await sandbox.removeCodeContext(context.id);
    assert.ok(!(await sandbox.listCodeContexts()).some((c) => c.id === context.id));
    for (const call of [sandbox.removeCodeContext(context), sandbox.restartCodeContext(context), sandbox.runCode('1', { context, ...QUICK })]) {
      const error = await failure(call);
      assert.ok(error instanceof NotFoundError, String(error));
      assert.equal(error.message, `Context ${context.id} not found`);
    }
  });

  it('run as root, as E2B\'s do, and begin where commands do', { timeout: 30000 }, async () => {
    const who = 'import os\nopen("/opt/by-code", "w").write("x")\nf"{os.getuid()} {os.getcwd()} {os.environ[\'HOME\']}"';
    assert.equal((await sandbox.runCode(who)).text, '0 /home/user /root');
    assert.equal((await sandbox.runCode('process.getuid()', { language: 'js' })).text, '0');
    assert.equal((await sandbox.runCode('id -u', { language: 'bash' })).logs.stdout.join(''), '0\n');
    const context = await sandbox.createCodeContext({ cwd: '/root' });
    assert.equal(context.cwd, '/root');
    assert.equal((await sandbox.runCode('import os; os.getuid(), os.getcwd()', { context })).text, "(0, '/root')");
    await sandbox.removeCodeContext(context);
  });

  it('begin in the home, by default in Python', { timeout: 20000 }, async () => {
    const context = await sandbox.createCodeContext();
    assert.deepEqual([context.language, context.cwd], ['python', '/home/user']);
    const bash = await sandbox.createCodeContext({ language: 'bash', cwd: '/' });
    assert.deepEqual((await sandbox.runCode('pwd', { context: bash })).logs.stdout, ['/\n']);
    await sandbox.removeCodeContext(context);
    await sandbox.removeCodeContext(bash);
  });

  it('work side by side', { timeout: 30000 }, async () => {
    const contexts = await Promise.all([1, 2, 3].map(() => sandbox.createCodeContext()));
    const meet = (i) => `import glob, time; open('/tmp/side-${i}', 'w').close()\nwhile len(glob.glob('/tmp/side-*')) < 3: time.sleep(0.01)\n${i}`;
    const texts = await Promise.all(contexts.map((context, i) => sandbox.runCode(meet(i), { context })));
    assert.deepEqual(texts.map((t) => t.text), ['0', '1', '2']);
    for (const context of contexts) await sandbox.removeCodeContext(context);
  });

  it('are refused with a reason', { timeout: 20000 }, async () => {
    const language = await failure(sandbox.createCodeContext({ language: 'r' }));
    assert.ok(language instanceof NotFoundError, String(language));
    assert.match(language.message, /'r' is not available; there are python, javascript/);
    assert.ok((await failure(sandbox.createCodeContext({ cwd: '/no/such/place' }))) instanceof SandboxError);
  });

  it('report an interpreter that was killed, and go on with a new one', { timeout: 30000 }, async () => {
    const { error, logs } = await sandbox.runCode('import os, signal\nprint("before", flush=True)\nos.kill(os.getpid(), signal.SIGKILL)');
    assert.deepEqual(logs.stdout, ['before\n']);
    assert.equal(error.name, 'UnexpectedEndOfExecution');
    assert.match(error.value, /ended by signal 9/);
    assert.equal((await sandbox.runCode('1')).text, '1');
  });

  it('say when the memory was not enough', { timeout: 30000 }, async () => {
    const { error } = await sandbox.runCode('b = []\nwhile True: b.append(bytearray(50_000_000))');
    assert.equal(error.name, 'UnexpectedEndOfExecution');
    assert.match(error.value, /ran out of memory/);
    assert.equal((await sandbox.runCode('1')).text, '1');
  });

  it('are found again after a pause, with what they know', { timeout: 30000 }, async () => {
    const paused = await Sandbox.create();
    await paused.runCode('x = 42');
    await paused.pause();
    const again = await Sandbox.connect(paused.sandboxId);
    assert.equal((await again.runCode('x')).text, '42');
    await again.kill();
  });
});
