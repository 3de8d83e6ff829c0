// sandbox.commands, as users of E2B's SDK call it.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import {
  AuthenticationError,
  CommandExitError,
  InvalidArgumentError,
  NotFoundError,
  Sandbox,
  SandboxError,
  SandboxNotFoundError,
  TimeoutError,
} from 'e2b';
import { failure, sleep, until, startServer } from './support.mjs';

await startServer();
const sandbox = await Sandbox.create({ envs: { FROM_CREATE: 'c', BOTH: 'create' }, timeoutMs: 600000 });
const run = (command, options) => sandbox.commands.run(command, options);
const isAlive = async (pid) => (await run(`kill -0 ${pid} 2>/dev/null && echo yes || echo no`, { user: 'root' })).stdout === 'yes\n';

describe('commands.run', () => {
  it('gives output, errors and exit code', async () => {
    const result = await run('echo out; echo err >&2');
    assert.deepEqual({ ...result }, { exitCode: 0, error: undefined, stdout: 'out\n', stderr: 'err\n' });
  });

  it('calls back as output comes', async () => {
    const seen = [];
    const result = await run('echo 1; sleep 0.2; echo 2 >&2; sleep 0.2; echo 3', {
      onStdout: (text) => seen.push(['out', text]),
      onStderr: (text) => seen.push(['err', text]),
    });
    assert.deepEqual(seen, [
      ['out', '1\n'],
      ['err', '2\n'],
      ['out', '3\n'],
    ]);
    assert.equal(result.stdout, '1\n3\n');
  });

  it('throws CommandExitError with everything that is known', async () => {
    const error = await failure(run('echo a; echo b >&2; exit 7'));
    assert.ok(error instanceof CommandExitError && error instanceof SandboxError);
    assert.deepEqual([error.exitCode, error.stdout, error.stderr, error.error, error.message], [7, 'a\n', 'b\n', 'exit status 7', 'exit status 7']);
  });

  it('says which signal ended a command', async () => {
    const error = await failure(run('kill -9 $$'));
    assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed']);
    assert.equal((await failure(run('kill -SEGV $$'))).error, 'signal: segmentation fault');
  });

  it('says that memory ran out', async () => {
    const error = await failure(run(`exec python3 -c 'x = b"x" * (3 << 30)'`));
    assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed (the sandbox ran out of memory)']);
  });

  it('has envs of the sandbox, of the command, and E2B’s own', async () => {
    const result = await run('echo $FROM_CREATE $BOTH $OWN $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID $HOME $USER', {
      envs: { BOTH: 'command', OWN: 'o w n' },
    });
    assert.equal(result.stdout, `c command o w n true ${sandbox.sandboxId} base /home/user user\n`);
  });

  it('runs where it is told to, relative to the home', async () => {
    await run('mkdir -p /home/user/sub/dir');
    assert.equal((await run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n');
    assert.equal((await run('pwd', { cwd: 'sub/dir' })).stdout, '/home/user/sub/dir\n');
    assert.equal((await run('pwd', { cwd: '~/sub' })).stdout, '/home/user/sub\n');
    assert.equal((await run('pwd', { cwd: '~' })).stdout, '/home/user\n');
    const error = await failure(run('pwd', { cwd: '/nope' }));
    assert.ok(error instanceof InvalidArgumentError);
    assert.match(error.message, /cwd '\/nope' does not exist/);
  });

  it('runs as another user, and knows sudo', async () => {
    assert.equal((await run('id -un; echo $HOME', { user: 'root' })).stdout, 'root\n/root\n');
    assert.equal((await run('sudo -n id -un')).stdout, 'root\n');
    const error = await failure(run('true', { user: 'nobody-knows' }));
    assert.ok(error instanceof AuthenticationError);
    assert.match(error.message, /invalid username: 'nobody-knows'/);
  });

  it('carries what is not ASCII, and a lot of it', async () => {
    assert.equal((await run('echo -n "žluťoučký 🐎"')).stdout, 'žluťoučký 🐎');
    const big = await run(`python3 -c "print('ž' * 1500000, end='')"`);
    assert.equal(big.stdout.length, 1500000);
    assert.match(big.stdout, /^ž+$/);
  });

  it('takes quotes, newlines and dollars as they are', async () => {
    assert.equal((await run(`printf '%s|' "a'b" 'c"d' '$HOME' 'x\ny'`)).stdout, `a'b|c"d|$HOME|x\ny|`);
  });
});

describe('commands in the background', () => {
  it('come back at once, and can be waited for', async () => {
    const handle = await run('sleep 0.3; echo done', { background: true });
    assert.equal(handle.constructor.name, 'CommandHandle');
    assert.equal(handle.exitCode, undefined);
    assert.ok(handle.pid > 1);
    const result = await handle.wait();
    assert.deepEqual([result.exitCode, result.stdout, handle.exitCode, handle.stdout], [0, 'done\n', 0, 'done\n']);
  });

  it('are listed while they run', async () => {
    const envs = { GREETING: 'hello = there', EMPTY: '' };
    const handle = await run('sleep 50', { background: true, cwd: '/tmp', envs });
    const listed = (await sandbox.commands.list()).find((one) => one.pid === handle.pid);
    assert.deepEqual(listed, { pid: handle.pid, cmd: '/bin/bash', args: ['-l', '-c', 'sleep 50'], envs, cwd: '/tmp' });
    assert.equal(await handle.kill(), true);
    await until('it is no longer listed', async () => !(await sandbox.commands.list()).some((one) => one.pid === handle.pid));
  });

  it('are killed with everything they started, double-forked or not', async () => {
    const handle = await run('(setsid sleep 777 & setsid sh -c "sleep 778 & wait" &) ; sleep 779', { background: true });
    await until('all three sleep', async () => (await run('cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -o "sleep 77[789]" | sort -u | wc -l')).stdout === '3\n');
    assert.equal(await sandbox.commands.kill(handle.pid), true);
    const error = await failure(handle.wait());
    assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed']);
    await until('none is left', async () => (await run('cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -o "sleep 77[789]" | sort -u | wc -l')).stdout === '0\n');
    assert.equal(await isAlive(handle.pid), false);
    assert.equal(await sandbox.commands.kill(handle.pid), false, 'a second kill finds nothing');
  });

  it('get stdin, and its end', async () => {
    const handle = await run('cat; echo end', { background: true, stdin: true });
    await handle.sendStdin('one\n');
    await sandbox.commands.sendStdin(handle.pid, new TextEncoder().encode('two\n'));
    await until('both have come back', () => handle.stdout === 'one\ntwo\n');
    await handle.closeStdin();
    await handle.closeStdin().catch(() => {});
    assert.equal((await handle.wait()).stdout, 'one\ntwo\nend\n');
    assert.ok((await failure(sandbox.commands.sendStdin(handle.pid, 'x'))) instanceof NotFoundError);
    assert.ok((await failure(sandbox.commands.closeStdin(handle.pid))) instanceof NotFoundError);
  });

  it('take a lot of stdin without loss', { timeout: 30000 }, async () => {
    const handle = await run('sleep 0.5; sha256sum', { background: true, stdin: true });
    const part = 'x'.repeat(1 << 20);
    for (let i = 0; i < 3; i++) await handle.sendStdin(part);
    await handle.closeStdin();
    const { createHash } = await import('node:crypto');
    const sum = createHash('sha256').update(part.repeat(3)).digest('hex');
    assert.equal((await handle.wait()).stdout, `${sum}  -\n`);
  });

  it('without stdin refuse it', async () => {
    const handle = await run('sleep 20', { background: true });
    const error = await failure(handle.sendStdin('x'));
    assert.match(error.message, /stdin not enabled or closed/);
    await handle.kill();
  });

  it('live on when nobody listens', async () => {
    const handle = await run('sleep 0.5; echo $$ > /tmp/lived-on; sleep 30', { background: true });
    await handle.disconnect();
    await until('it went on', async () => (await run('cat /tmp/lived-on 2>/dev/null || true')).stdout === `${handle.pid}\n`);
    assert.equal(await sandbox.commands.kill(handle.pid), true);
  });
});

describe('commands.connect', () => {
  it('replays what was missed, and only that', async () => {
    const handle = await run('echo first; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo second; sleep 0.3; echo third', { background: true });
    await until('the first line is there', () => handle.stdout === 'first\n');
    await sleep(300); // what came within a quarter of a second before the disconnect comes again
    await handle.disconnect();
    await run('touch /tmp/go');
    await sleep(150);
    const seen = [];
    const again = await sandbox.commands.connect(handle.pid, { onStdout: (text) => seen.push(text) });
    assert.equal(again.pid, handle.pid);
    const result = await again.wait();
    assert.deepEqual([result.stdout, seen.join('')], ['second\nthird\n', 'second\nthird\n']);
  });

  it('several at once all get what comes', async () => {
    const handle = await run('read x; echo $x', { background: true, stdin: true });
    const others = await Promise.all([sandbox.commands.connect(handle.pid), sandbox.commands.connect(handle.pid)]);
    await others[0].sendStdin('hello\n');
    for (const one of [handle, ...others]) assert.equal((await one.wait()).stdout, 'hello\n');
  });

  it('still tells the end of what has ended', async () => {
    const handle = await run('echo out; echo err >&2; exit 4', { background: true });
    await handle.wait().catch(() => {});
    await sleep(100);
    const error = await failure((await sandbox.commands.connect(handle.pid)).wait());
    assert.ok(error instanceof CommandExitError);
    assert.deepEqual([error.exitCode, error.stdout, error.stderr], [4, 'out\n', 'err\n']);
  });

  it('works after large output', { timeout: 60000 }, async () => {
    const handle = await run('head -c 20000000 /dev/zero | tr "\\0" x; echo; echo finished; sleep 1; echo live', { background: true });
    await handle.disconnect();
    await sleep(500);
    const again = await sandbox.commands.connect(handle.pid);
    const result = await again.wait();
    assert.match(result.stdout, /live\n$/);
    assert.ok(result.stdout.length > 4000000, `${result.stdout.length} bytes were replayed`);
  });

  it('tells again what was on its way to a client that left', async () => {
    const handle = await run('echo first; sleep 1000', { background: true });
    await until('the first line is there', () => handle.stdout === 'first\n');
    await handle.disconnect();
    const again = await sandbox.commands.connect(handle.pid);
    await until('it is there again', () => again.stdout === 'first\n');
    await again.kill();
  });

  it('loses no line, however often the client leaves in the middle', { timeout: 120000 }, async () => {
    const handle = await run('i=0; while [ $i -lt 4000 ]; do echo line-$i; i=$((i+1)); [ $((i % 7)) = 0 ] && sleep 0.01; done; sleep 1000', { background: true });
    const texts = [];
    let current = handle;
    for (let i = 0; !texts.at(-1)?.includes('line-3999\n'); i++) {
      await sleep([0, 3, 20, 60, 150, 400][i % 6]);
      await current.disconnect();
      texts.push(current.stdout);
      current = await sandbox.commands.connect(handle.pid);
    }
    await current.disconnect();
    assert.ok(texts.length > 20, `${texts.length} streams`);
    // A stream may begin with what the ones before have seen, but never behind it, and has no hole of its own.
    let all = '';
    const whole = Array.from({ length: 4000 }, (_, i) => `line-${i}\n`).join('');
    for (const [i, text] of texts.entries()) {
      const at = text === '' ? all.length : [...Array(all.length + 1).keys()].find((n) => whole.startsWith(text, n));
      assert.ok(at !== undefined && at <= all.length, `stream ${i} begins behind byte ${all.length}: ${JSON.stringify(text.slice(0, 40))}`);
      all = whole.slice(0, Math.max(all.length, at + text.length));
    }
    assert.equal(all, whole);
    await sandbox.commands.kill(handle.pid);
  });

  it('leaves no hole when the client left in the middle of a flood', { timeout: 60000 }, async () => {
    const handle = await run('seq 1 1000000; sleep 20', { background: true });
    await until('something has come', () => handle.stdout.length > 100000);
    await handle.disconnect();
    await until('all of it was printed', async () => (await run('pgrep -x seq || true')).stdout === '');
    const seen = Number(handle.stdout.trim().split('\n').at(-2));
    const again = await sandbox.commands.connect(handle.pid);
    await until('the rest has come', () => again.stdout.endsWith('\n1000000\n'), 30000);
    const rest = again.stdout.split('\n').slice(1, -1).map(Number);
    assert.ok(rest[0] <= seen + 2, `${rest[0]} follows ${seen}`);
    assert.ok(rest.every((number, i) => number === rest[0] + i));
    await sandbox.commands.kill(handle.pid);
  });

  it('refuses a process that never was', async () => {
    assert.ok((await failure(sandbox.commands.connect(999999))) instanceof NotFoundError);
  });
});

describe('deadlines', () => {
  it('end the command with its whole tree', async () => {
    const command = '(setsid sh -c "sleep 555 & sleep 556" &) ; sleep 557';
    const error = await failure(run(command, { timeoutMs: 500 }));
    assert.ok(error instanceof TimeoutError);
    assert.match(error.message, /timeoutMs/);
    await until('nothing of it is left', async () => (await run('cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -o "sleep 55[567]" | wc -l')).stdout === '0\n');
  });

  it('of the server end the stream of a client that has none', async () => {
    // As the SDK would, but without enforcing it.
    const started = performance.now();
    const response = await fetch(`${process.env.E2B_SANDBOX_URL}/process.Process/Start`, {
      method: 'POST',
      headers: {
        'content-type': 'application/connect+json',
        'connect-timeout-ms': '400',
        'e2b-sandbox-id': sandbox.sandboxId,
        'x-access-token': sandbox.envdAccessToken,
      },
      body: envelope({ process: { cmd: '/bin/sleep', args: ['30'] } }),
    });
    const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
    assert.match(text, /"deadline_exceeded"/);
    assert.ok(performance.now() - started < 5000);
  });

  it('can be switched off', async () => {
    assert.equal((await run('sleep 0.2; echo ok', { timeoutMs: 0 })).stdout, 'ok\n');
  });
});

describe('a sandbox that is killed', () => {
  it('resets its streams, which the SDK calls by its name', async () => {
    const doomed = await Sandbox.create();
    const handle = await doomed.commands.run('sleep 100', { background: true });
    const waiting = failure(handle.wait());
    await doomed.kill();
    const error = await waiting;
    assert.ok(error instanceof TimeoutError);
    assert.match(error.message, /killed or reached its end of life/);
    assert.ok((await failure(doomed.commands.run('true'))) instanceof SandboxNotFoundError);
    assert.ok((await failure(doomed.commands.list())) instanceof TimeoutError);
  });
});

function envelope(message) {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}
