import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Server, commandName, sleep, until } from '../lib/server.mjs';
import { assertRefused, execution, finish, hostPids, initPid, metric, remove, sha256, startBeside, startCommand, unifiedDir } from './support.mjs';

describe('exec', () => {
  let server;
  let box;
  const exec = (body) => server.exec(box.id, body);
  const post = (body) => server.request('POST', `/v1/sandboxes/${box.id}/exec`, body);
  const fresh = async () => {
    box = await server.create({ env: { FROM_SANDBOX: 'sandbox', BOTH: 'sandbox' } });
  };
  before(async () => {
    server = await Server.start();
    await fresh();
  });
  after(() => finish(server));

  it('answers with the shape that clients rely on', async () => {
    const r = await exec(['sh', '-c', 'echo out; echo err >&2; exit 3']);
    assert.match(r.executionId, /^[a-z0-9]{20}$/);
    assert.equal(r.sandboxId, box.id);
    assert.equal(r.status, 'completed');
    assert.equal(r.exitCode, 3);
    assert.equal('signal' in r, false);
    assert.equal(r.timedOut, false);
    assert.equal(r.stdout, 'out\n');
    assert.equal(r.stderr, 'err\n');
    assert.equal(r.outputTruncated, false);
    assert.ok(r.durationMs > 0.1 && r.durationMs < 10000, `with the time that starting it takes: ${r.durationMs}`);
  });

  it('is not lost when the sandbox stands still between clone and exec for longer than a process may take', async () => {
    // With next to no processor time a child is on its way for long enough to be caught there.
    const slow = await server.create({ resources: { cpu: '50m' } });
    for (let i = 0; i < 2; i++) await server.request('POST', `/v1/sandboxes/${slow.id}/processes`, { command: 'while :; do :; done' });
    const freeze = join(unifiedDir(server, slow.id), 'cgroup.freeze');
    const init = initPid(server, slow.id);
    const onItsWay = () => hostPids(server, slow.id).some((pid) => pid !== init && commandName(pid) === 'bunker-init');
    let caught = false;
    for (let i = 0; i < 20 && !caught; i++) {
      const answer = server.request('POST', `/v1/sandboxes/${slow.id}/exec`, { command: ['true'], timeout: '60s' });
      let answered = false;
      answer.then(() => (answered = true));
      await until('the child is there, or has been', () => onItsWay() || answered, 40000);
      writeFileSync(freeze, '1');
      await until('it stands still', () => readFileSync(join(freeze, '../cgroup.events'), 'utf8').includes('frozen 1'));
      caught = onItsWay();
      if (caught) await sleep(2600);
      writeFileSync(freeze, '0');
      const { status, text } = await answer;
      assert.equal(status, 200, text);
    }
    assert.ok(caught, 'no child was caught between clone and exec');
    await remove(server, slow.id);
  });

  describe('command', () => {
    before(fresh);

    it('as a list is argv as it is: no shell looks at it', async () => {
      const odd = ['$HOME', '*', 'a b', '', "quote'", '"', '\\', 'ü🦫', '-n', '\t\n'];
      const r = await exec(['printf', '[%s]', ...odd]);
      assert.equal(r.stdout, odd.map((arg) => `[${arg}]`).join(''));
    });

    it('as a string is a line for the shell', async () => {
      const r = await exec('cd /; echo "$(pwd) $((6 * 7))" | tr 4 5; false || exit 9');
      assert.equal(r.stdout, '/ 52\n');
      assert.equal(r.exitCode, 9);
    });

    it('is looked up in the PATH that it will have', async () => {
      const r = await exec({
        command: ['hello'],
        env: { PATH: '/tmp/bin:/usr/bin:/bin' },
        files: [{ path: '/tmp/bin/hello', content: '#!/bin/sh\necho found', mode: '755' }],
      });
      assert.equal(r.stdout, 'found\n');
    });

    it('that does not exist is exit status 127, with a reason on stderr', async () => {
      for (const name of ['no-such-program', '/no/such/program', '/etc/passwd/x']) {
        const r = await exec([name]);
        assert.equal(r.exitCode, 127, name);
        assert.equal(r.status, 'failed');
        assert.match(r.stderr, new RegExp(name));
        assert.equal(r.stdout, '');
      }
    });

    it('that cannot be executed is exit status 126', async () => {
      for (const name of ['/etc/passwd', '/tmp', '/etc/shadow']) {
        const r = await exec([name]);
        assert.equal(r.exitCode, 126, name);
        assert.match(r.stderr, new RegExp(name));
      }
    });

    it('with an argument longer than the kernel takes is a result, not a fault', async () => {
      const r = await exec(['true', 'x'.repeat(200 * 1024)]);
      assert.equal(r.exitCode, 126);
      assert.match(r.stderr, /too long/i);
    });

    it('may have arguments of 100 KiB, and thousands of them', async () => {
      const big = 'y'.repeat(100 * 1024);
      assert.equal((await exec(['sh', '-c', 'printf %s "$1" | wc -c', 'sh', big])).stdout, `${big.length}\n`);
      const many = Array.from({ length: 3900 }, (_, i) => String(i));
      assert.equal((await exec(['sh', '-c', 'echo $#', 'sh', ...many])).stdout, '3900\n');
    });

    it('with too many or too long arguments is refused', async () => {
      assertRefused(await post({ command: Array(4001).fill('x') }), 400, 'invalid_field', 'command');
      assertRefused(await post({ command: ['true', ...Array(6).fill('x'.repeat(100 * 1024))] }), 400, 'invalid_field', 'command');
      const env = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`V${i}`, 'x'.repeat(60000)]));
      const answer = await post({ command: 'true', env });
      assert.equal(answer.status, 400, answer.text);
      assert.equal((await exec('echo still here')).stdout, 'still here\n');
    });
  });

  describe('surroundings', () => {
    before(fresh);

    it('let the environment of the call win over the sandbox, and that over the defaults', async () => {
      const r = await exec({
        command: 'echo $FROM_SANDBOX $BOTH $FROM_CALL $HOME $USER',
        env: { BOTH: 'call', FROM_CALL: 'call', HOME: '/tmp' },
      });
      assert.equal(r.stdout, 'sandbox call call /tmp user\n');
      assert.equal((await exec('echo $BOTH${FROM_CALL-}')).stdout, 'sandbox\n', 'it was for that call only');
    });

    it('have nothing of the server in the environment', async () => {
      const names = (await exec('env -0')).stdout.split('\0').map((v) => v.split('=')[0]).filter(Boolean).sort();
      const ours = ['CARGO_NET_RETRY', 'LANG', 'PIP_BREAK_SYSTEM_PACKAGES', 'PIP_RETRIES', 'npm_config_fetch_retries'];
      assert.deepEqual(names, ['BOTH', 'FROM_SANDBOX', 'HOME', 'LOGNAME', 'PATH', 'PWD', 'SHELL', 'USER', ...ours].sort());
    });

    it('start in the directory that was asked for', async () => {
      assert.equal((await exec({ command: ['pwd'], cwd: '/usr/lib' })).stdout, '/usr/lib\n');
    });

    it('refuse a directory that is not there, is a file, or is closed to the user', async () => {
      for (const cwd of ['/nowhere', '/etc/passwd', '/root'])
        assertRefused(await post({ command: 'true', cwd }), 400, 'invalid_field', 'cwd');
    });

    it('run as the user of the sandbox, as root, or as any number', async () => {
      assert.equal((await exec('id')).stdout, 'uid=1000(user) gid=1000(user) groups=1000(user),27(sudo),100(users)\n');
      assert.equal((await exec({ command: 'id -u; id -g; echo $HOME; pwd', user: 'root' })).stdout, '0\n0\n/root\n/root\n');
      assert.equal((await exec({ command: 'id -un', user: '0' })).stdout, 'root\n');
      assert.equal((await exec({ command: 'id -un; id -Gn', user: '1000' })).stdout, 'user\nuser sudo users\n');
      assert.equal((await exec({ command: 'id -u; id -g; id -G', user: '4242' })).stdout, '4242\n4242\n4242\n');
    });

    it('refuse a user who does not exist in the sandbox', async () => {
      for (const user of ['nobody-knows', 'USER', '65536', '4294967295'])
        assertRefused(await post({ command: 'true', user }), 400, 'invalid_field', 'user');
    });

    it('know the users that were added inside', async () => {
      await exec({ command: 'echo "late:x:2000:2000::/tmp:/bin/sh" >> /etc/passwd', user: 'root' });
      assert.equal((await exec({ command: 'id -un; pwd', user: 'late' })).stdout, 'late\n/tmp\n');
    });

    it('hold files that the call brings, owned by its user', async () => {
      const r = await exec({
        command: 'cat /tmp/brought/a b; stat -c %U /tmp/brought/a b',
        cwd: '/root',
        user: 'root',
        files: [
          { path: '/tmp/brought/a', content: 'A' },
          { path: '/root/b', content: Buffer.from('B\n').toString('base64'), encoding: 'base64' },
        ],
      });
      assert.equal(r.stdout, 'AB\nroot\nroot\n');
    });

    it('do not run the command when a file cannot be written', async () => {
      const answer = await post({ command: 'touch /tmp/it-ran', files: [{ path: '/proc/nope/x', content: '' }] });
      assert.ok(answer.status >= 400 && answer.status < 500, answer.text);
      assert.equal(answer.json.error.field, 'files[0]');
      assert.equal((await exec('ls /tmp/it-ran')).exitCode, 2);
    });

    it('have no signal blocked or ignored', async () => {
      const { stdout } = await exec(['grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status']);
      assert.equal(stdout, 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
    });

    it('have three descriptors, a session of their own and no terminal', async () => {
      assert.equal((await exec(['ls', '/proc/self/fd'])).stdout, '0\n1\n2\n3\n', 'the last is the directory itself');
      const [sid, pid, tty] = (await exec('ps -o sid= -p $$ | tr -d " "; echo $$; tty')).stdout.split('\n');
      assert.equal(sid, pid, 'it leads its session');
      assert.equal(tty, 'not a tty');
    });

    it('leave no zombie behind', async () => {
      await exec('for i in 1 2 3 4 5 6 7 8; do (setsid sleep 0.05 &) ; done; sleep 0.2');
      const { stdout } = await exec('cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z " ; true');
      assert.equal(stdout, '0\n');
    });
  });

  describe('stdin', () => {
    before(fresh);

    it('is at its end at once when there is none', async () => {
      assert.equal((await exec({ command: 'wc -c', timeout: '5s' })).stdout, '0\n');
      assert.equal((await exec({ command: 'wc -c', stdin: '', timeout: '5s' })).stdout, '0\n');
    });

    it('is text, or any bytes as base64', async () => {
      assert.equal((await exec({ command: ['cat'], stdin: 'ü 🦫\nend' })).stdout, 'ü 🦫\nend');
      const bytes = randomBytes(100000);
      const r = await exec({ command: ['sha256sum'], stdin: bytes.toString('base64'), stdinEncoding: 'base64' });
      assert.equal(r.stdout, `${sha256(bytes)}  -\n`);
    });

    it('of 8 MB arrives whole and in order, also when it is read slowly', async () => {
      const bytes = randomBytes(8_000_000);
      const stdin = bytes.toString('base64');
      const fast = await exec({ command: ['sha256sum'], stdin, stdinEncoding: 'base64' });
      assert.equal(fast.stdout, `${sha256(bytes)}  -\n`);
      const slow = await exec({ command: 'sleep 0.5; (head -c 100000; sleep 0.3; cat) | sha256sum', stdin, stdinEncoding: 'base64' });
      assert.equal(slow.stdout, `${sha256(bytes)}  -\n`);
    });

    it('that nobody reads does not hold up the command', async () => {
      const stdin = 'x'.repeat(4_000_000);
      assert.equal((await exec({ command: 'echo ignored', stdin, timeout: '10s' })).stdout, 'ignored\n');
      assert.equal((await exec({ command: 'head -c 3; exec <&-; sleep 0.2; echo .', stdin, timeout: '10s' })).stdout, 'xxx.\n');
    });

    it('and output of megabytes flow at the same time', async () => {
      const bytes = randomBytes(4_000_000);
      const r = await exec({ command: ['cat'], stdin: bytes.toString('base64'), stdinEncoding: 'base64', encoding: 'base64' });
      assert.equal(sha256(Buffer.from(r.stdout, 'base64')), sha256(bytes));
    });
  });

  describe('end', () => {
    before(fresh);

    it('passes every exit status on', async () => {
      for (const code of [0, 1, 2, 77, 128, 255]) assert.equal((await exec(`exit ${code}`)).exitCode, code);
    });

    it('by a signal is 128+n with the name of the signal', async () => {
      for (const [name, number] of [['TERM', 15], ['KILL', 9], ['SEGV', 11], ['USR1', 10], ['HUP', 1], ['PIPE', 13]]) {
        const r = await exec(['sh', '-c', `echo before; kill -${name} $$; sleep 5`]);
        assert.equal(r.exitCode, 128 + number, name);
        assert.equal(r.signal, `SIG${name}`);
        assert.equal(r.status, 'failed');
        assert.equal(r.timedOut, false);
        assert.equal(r.stdout, 'before\n');
      }
    });

    it('of what a pipe tells to stop is quiet', async () => {
      const r = await exec('yes | head -1');
      assert.equal(r.stdout, 'y\n');
      assert.equal(r.stderr, '');
    });

    it('does not wait for a background process that holds the output, and lets it live', async () => {
      const began = Date.now();
      const r = await exec('(sleep 3; touch /tmp/outlived; echo late; sleep 1000) & echo "$!"');
      assert.ok(Date.now() - began < 2900, 'it was answered at once');
      const pid = r.stdout.trim();
      assert.match(pid, /^\d+$/);
      await until('the background process did its work', async () => (await exec('test -e /tmp/outlived')).exitCode === 0);
      assert.equal((await exec(`kill -0 ${pid} && kill ${pid}`)).exitCode, 0, 'it lives on after writing to the closed output');
    });

    it('has all output of the command itself, however short before the end it came', async () => {
      for (let i = 0; i < 20; i++) assert.equal((await exec('head -c 150000 /dev/zero | tr "\\0" a')).stdout.length, 150000);
    });

    it('is known after the output was closed early', async () => {
      const r = await exec('echo first; exec >&- 2>&-; sleep 0.3; exit 7');
      assert.equal(r.stdout, 'first\n');
      assert.equal(r.exitCode, 7);
    });
  });

  describe('timeout', () => {
    before(fresh);

    it('kills the command, reports 124 and keeps what it wrote', async () => {
      const began = Date.now();
      const r = await exec({ command: 'echo early; trap "" TERM INT HUP; while :; do sleep 1; done', timeout: '400ms' });
      assert.equal(r.timedOut, true);
      assert.equal(r.exitCode, 124);
      assert.equal(r.status, 'timeout');
      assert.equal(r.stdout, 'early\n');
      assert.ok(r.durationMs >= 400 && r.durationMs < 15000, `took ${r.durationMs}`);
      assert.ok(Date.now() - began < 20000);
    });

    it('kills what it double-forked into sessions of their own, too', async () => {
      const script = 'for i in 1 2 3; do (setsid sh -c "trap \\"\\" TERM HUP; echo \\$\\$ >> /tmp/forked; exec sleep 1000" & ) ; done; sleep 1000';
      const r = await exec({ command: ['sh', '-c', script], timeout: '700ms' });
      assert.equal(r.exitCode, 124);
      const alive = () => exec('test $(wc -l < /tmp/forked) = 3 || exit 9; for p in $(cat /tmp/forked); do kill -0 $p 2>/dev/null && echo $p; done; true');
      assert.equal((await alive()).exitCode, 0, 'the test started its three');
      // The signal went to all at once; each is gone when the kernel and init are done with it.
      await until('all are dead', async () => (await alive()).stdout === '', 5000);
    });

    it('leaves other commands of the sandbox alone', async () => {
      const other = exec('sleep 1; echo untouched');
      await exec({ command: 'sleep 30', timeout: '200ms' });
      assert.equal((await other).stdout, 'untouched\n');
    });

    it('that is long enough changes nothing', async () => {
      const r = await exec({ command: 'sleep 0.2; echo in time', timeout: '1h30m' });
      assert.equal(r.stdout, 'in time\n');
      assert.equal(r.timedOut, false);
    });

    it('again and again does not harm the commands that follow', async () => {
      for (let i = 0; i < 12; i++) {
        const late = await exec({ command: ['sleep', '9'], timeout: '50ms' });
        assert.deepEqual([late.timedOut, late.exitCode], [true, 124], `round ${i}: ${late.status} ${late.signal}`);
        const next = await exec('exit 77');
        assert.deepEqual([next.status, next.exitCode], ['completed', 77], `round ${i}: ${next.status} ${next.signal}`);
      }
    });

    it('counts, and is in the metrics', async () => {
      const before = await metric(server, 'execution_timeouts_total');
      await exec({ command: 'sleep 5', timeout: '50ms' });
      assert.equal(await metric(server, 'execution_timeouts_total'), before + 1);
    });
  });

  describe('out of memory', () => {
    const hog = "python3 -c 'x = bytearray(400 << 20)'";
    let small;
    before(async () => {
      small = await server.create({ resources: { memory: '96Mi' } });
    });
    after(() => remove(server, small.id));

    it('is reported as such', async () => {
      const before = await metric(server, 'oom_kills_total');
      const r = await server.exec(small.id, ['python3', '-c', 'x = bytearray(400 << 20)']);
      assert.equal(r.oomKilled, true);
      assert.equal(r.exitCode, 137);
      assert.equal(r.signal, 'SIGKILL');
      assert.equal(r.status, 'failed');
      assert.equal(r.timedOut, false);
      assert.equal(await metric(server, 'oom_kills_total'), before + 1);
      const stored = await execution(server, r.executionId);
      assert.equal(stored.oomKilled, true);
    });

    it('is seen through a shell', async () => {
      assert.equal((await server.exec(small.id, `${hog}; exit $?`)).oomKilled, true);
    });

    it('does not end the sandbox', async () => {
      assert.equal((await server.exec(small.id, 'echo fine')).stdout, 'fine\n');
    });

    it('is not blamed for a kill by somebody else', async () => {
      assert.equal((await server.exec(small.id, 'kill -9 $$')).oomKilled, false);
    });

    it('of a child that the command coped with is not blamed on a later kill', async () => {
      assert.equal((await server.exec(small.id, `${hog}; echo coped`)).stdout, 'coped\n');
      const r = await server.exec(small.id, 'kill -9 $$');
      assert.equal(r.exitCode, 137);
      assert.equal(r.oomKilled, false);
    });
  });

  describe('output', () => {
    before(fresh);

    it('keeps 8 MiB of each stream, and says when there was more', async () => {
      const limit = 8 << 20;
      const whole = await exec(`head -c ${limit} /dev/zero | tr "\\0" w`);
      assert.equal(whole.stdout.length, limit);
      assert.equal(whole.outputTruncated, false);
      const cut = await exec(`head -c ${limit + 1} /dev/zero | tr "\\0" c`);
      assert.equal(cut.stdout.length, limit);
      assert.equal(cut.outputTruncated, true);
      assert.equal(cut.exitCode, 0, 'the command does not notice');
    });

    it('that is not UTF-8 survives as base64, and is readable as text', async () => {
      const command = ['printf', 'ok \\377\\376 \\303\\050 \\360\\237\\246\\253 \\000 end'];
      const raw = await exec({ command, encoding: 'base64' });
      assert.equal(raw.encoding, 'base64');
      const bytes = Buffer.from([...Buffer.from('ok '), 0xff, 0xfe, 0x20, 0xc3, 0x28, 0x20, ...Buffer.from('🦫'), 0x20, 0, ...Buffer.from(' end')]);
      assert.deepEqual(Buffer.from(raw.stdout, 'base64'), bytes);
      const text = await exec({ command });
      assert.equal(text.encoding, 'utf8');
      assert.equal(text.stdout, 'ok \ufffd\ufffd \ufffd( 🦫 \0 end');
      const stored = await execution(server, text.executionId, '?encoding=base64');
      assert.deepEqual(Buffer.from(stored.stdout, 'base64'), bytes);
    });

    it('of control characters, quotes and separators comes through JSON unchanged', async () => {
      const odd = Array.from({ length: 127 }, (_, i) => String.fromCharCode(i + 1)).join('') + '\u2028\u2029é"\\';
      assert.equal((await exec({ command: ['cat'], stdin: odd })).stdout, odd);
    });

    it('on both streams at once is complete', async () => {
      const r = await exec('for i in 1 2 3 4 5 6 7 8; do head -c 300000 /dev/zero | tr "\\0" o; head -c 300000 /dev/zero | tr "\\0" e >&2; done');
      assert.equal(r.stdout, 'o'.repeat(2400000));
      assert.equal(r.stderr, 'e'.repeat(2400000));
    });
  });

  describe('with a small limit of output', () => {
    let other;
    let id;
    before(async () => {
      other = await startBeside(server, { args: ['--output-limit', '64Ki'] });
      id = (await other.create()).id;
    });
    after(() => finish(other));

    it('keeps the beginning of each stream for itself', async () => {
      const r = await other.exec(id, 'seq 1 100000; echo short >&2; exit 4');
      const all = Array.from({ length: 100000 }, (_, i) => `${i + 1}\n`).join('');
      assert.equal(r.stdout, all.slice(0, 65536));
      assert.equal(r.stderr, 'short\n');
      assert.equal(r.outputTruncated, true);
      assert.equal(r.exitCode, 4);
      const stored = await execution(other, r.executionId);
      assert.equal(stored.stdout, r.stdout);
      assert.equal(stored.outputTruncated, true);
    });

    it('does not hold up a command that writes much more', async () => {
      const r = await other.exec(id, { command: 'head -c 50000000 /dev/zero; echo done >&2', timeout: '60s' });
      assert.equal(r.stderr, 'done\n');
      assert.equal(r.stdout.length, 65536);
    });

    it('gives everything to a stream all the same', async () => {
      const { stream } = await startCommand(other, id, { command: 'seq 1 100000', encoding: 'base64' });
      const parts = [];
      let exit;
      for await (const event of stream.events) event.type === 'exit' ? (exit = event) : parts.push(Buffer.from(event.data, 'base64'));
      assert.equal(Buffer.concat(parts).toString(), Array.from({ length: 100000 }, (_, i) => `${i + 1}\n`).join(''));
      assert.equal(exit.outputTruncated, true, 'what is kept was cut');
    });
  });

  describe('many at once', () => {
    before(fresh);

    it('of 50 get their own answers', async () => {
      const results = await Promise.all(Array.from({ length: 50 }, (_, i) => exec({ command: `sleep 0.0${i % 10}; echo ${i}; exit ${i}` })));
      results.forEach((r, i) => {
        assert.equal(r.stdout, `${i}\n`);
        assert.equal(r.exitCode, i);
      });
      assert.equal(new Set(results.map((r) => r.executionId)).size, 50);
      assert.equal(await metric(server, 'executions_running'), 0);
    });

    it('with large input and output stay apart', async () => {
      const inputs = Array.from({ length: 24 }, () => randomBytes(600_000));
      const results = await Promise.all(
        inputs.map((bytes) => exec({ command: ['cat'], stdin: bytes.toString('base64'), stdinEncoding: 'base64', encoding: 'base64' })),
      );
      results.forEach((r, i) => assert.equal(sha256(Buffer.from(r.stdout, 'base64')), sha256(inputs[i])));
    });

    it('with large environments do not overwhelm the sandbox', async () => {
      const env = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`BIG${i}`, 'e'.repeat(60000)]));
      const { id } = await server.create();
      const one = () => server.request('POST', `/v1/sandboxes/${id}/exec`, { command: 'echo ${#BIG5}', env });
      const answers = await Promise.all(Array.from({ length: 120 }, one));
      const after = await server.request('GET', `/v1/sandboxes/${id}`);
      assert.equal(after.json.status, 'idle', after.json.statusReason);
      for (const answer of answers) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.json.stdout, '60000\n');
      }
    });

    it('beyond the limit of the server are refused with 429, and the rest is not disturbed', async () => {
      const other = await startBeside(server, { args: ['--max-executions', '3'] });
      try {
        const { id } = await other.create();
        const running = Array.from({ length: 3 }, () => other.exec(id, 'sleep 1; echo ran'));
        await until('three run', async () => (await metric(other, 'executions_running')) === 3);
        assertRefused(await other.request('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' }), 429, 'quota_exceeded');
        for (const r of await Promise.all(running)) assert.equal(r.stdout, 'ran\n');
        assert.equal((await other.exec(id, 'true')).exitCode, 0);
      } finally {
        await finish(other);
      }
    });
  });

  describe('results by execution id', () => {
    before(fresh);

    it('are what the call had answered', async () => {
      const r = await exec('echo once; echo more >&2; exit 5');
      assert.deepEqual(await execution(server, r.executionId), r);
    });

    it('outlive the sandbox', async () => {
      const other = await server.create();
      const r = await server.exec(other.id, 'echo remembered');
      await remove(server, other.id);
      assert.equal((await execution(server, r.executionId)).stdout, 'remembered\n');
    });

    it('tell what there is while the command runs, and the rest when one waits', async () => {
      const { id, stream } = await startCommand(server, box.id, { command: 'echo one; sleep 1; echo two; exit 6' });
      stream.close();
      await until('the first line is there', async () => (await execution(server, id)).stdout === 'one\n');
      const now = await execution(server, id);
      assert.equal(now.status, 'running');
      assert.equal('exitCode' in now, false);
      const short = await execution(server, id, '?wait=100ms');
      assert.equal(short.status, 'running');
      const done = await execution(server, id, '?wait=20s');
      assert.equal(done.status, 'completed');
      assert.equal(done.exitCode, 6);
      assert.equal(done.stdout, 'one\ntwo\n');
    });

    it('can be awaited by many', async () => {
      const { id, stream } = await startCommand(server, box.id, { command: 'sleep 0.5; echo shared' });
      stream.close();
      const all = await Promise.all(Array.from({ length: 10 }, () => execution(server, id, '?wait=10s')));
      for (const r of all) assert.equal(r.stdout, 'shared\n');
    });

    it('survive a client that stops waiting', async () => {
      const { id, stream } = await startCommand(server, box.id, { command: 'sleep 1; echo kept' });
      stream.close();
      const impatient = server.stream(`/v1/executions/${id}?wait=10s`, {}).catch(() => {});
      await sleep(100);
      await impatient;
      assert.equal((await execution(server, id, '?wait=10s')).stdout, 'kept\n');
    });

    it('refuse ids that never were and waits that are none', async () => {
      assertRefused(await server.request('GET', `/v1/executions/${'a'.repeat(20)}`), 404, 'not_found');
      assertRefused(await server.request('GET', '/v1/executions/nonsense'), 404, 'not_found');
      const { executionId } = await exec('true');
      for (const wait of ['soon', '-1s', '1', '11m', ''])
        assertRefused(await server.request('GET', `/v1/executions/${executionId}?wait=${wait}`), 400, 'invalid_field', 'wait');
      assertRefused(await server.request('GET', `/v1/executions/${executionId}?encoding=hex`), 400, 'invalid_field', 'encoding');
    });
  });
});
