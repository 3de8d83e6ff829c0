// Commands in the background: started, found, read from any byte, written to, signalled, waited for, ended.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Server, sleep, until } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { finish } from './support.mjs';

const lines = (text) => text.trim().split('\n').map((line) => JSON.parse(line));

describe('processes', { timeout: 120000 }, () => {
  let server;
  let box;
  before(async () => {
    server = await Server.start({ args: ['--output-limit', '64Ki'] });
    box = await server.create();
  });
  after(() => finish(server));

  const call = async (method, path, body, options) => await server.request(method, `/v1/sandboxes/${box.id}${path}`, body, options);
  const start = async (options) => {
    const r = await call('POST', '/processes', typeof options === 'string' ? { command: options } : options);
    assert.equal(r.status, 201, r.text);
    return r.json;
  };
  const get = async (p, query = '') => (await call('GET', `/processes/${p}${query}`)).json;
  const ended = async (p) => await get(p, '?wait=20s');
  const bytes = async (p, query = '') => (await call('GET', `/processes/${p}/output?stream=stdout${query}`)).text;
  const write = async (p, data, query = '') => await call('POST', `/processes/${p}/stdin${query}`, data, { headers: { 'content-type': 'application/octet-stream' } });

  describe('start', () => {
    it('answers while the command runs, with what was started', async () => {
      const p = await start({ command: ['sleep', '100'], name: 'nap', cwd: '/tmp', user: 'root' });
      assert.deepEqual([p.status, p.kind, p.name, p.cwd, p.user, p.pty], ['running', 'process', 'nap', '/tmp', 'root', false]);
      assert.deepEqual(p.command, ['sleep', '100']);
      assert.ok(p.pid > 1);
      assert.equal((await call('DELETE', `/processes/${p.id}`)).status, 204);
      const end = await get(p.id);
      assert.deepEqual([end.status, end.exitCode, end.signal], ['cancelled', 137, 'SIGKILL']);
    });

    it('of a program that does not exist is one that has ended', async () => {
      const p = await start({ command: ['no-such-program'] });
      assert.deepEqual([p.status, p.exitCode], ['failed', 127]);
      assert.match((await call('GET', `/processes/${p.id}/output?stream=stderr`)).text, /no-such-program/);
    });

    it('of a user or directory that does not exist is refused, and nothing is left', async () => {
      for (const [field, value] of [['user', 'nobody-here'], ['cwd', '/no/such']]) {
        const r = await call('POST', '/processes', { command: 'true', [field]: value });
        assert.deepEqual([r.status, r.json.error.field], [400, field]);
      }
    });

    it('refuses what makes no sense', async () => {
      for (const [body, field] of [
        [{ command: 'true', name: '42' }, 'name'],
        [{ command: 'true', name: 'a/b' }, 'name'],
        [{ command: 'true', pty: 'yes' }, 'pty'],
        [{ command: 'true', pty: { rows: 0 } }, 'pty.rows'],
        [{ command: 'true', pty: { rows: 1001 } }, 'pty.rows'],
        [{ command: 'true', openStdin: 1 }, 'openStdin'],
        [{ command: [] }, 'command'],
      ]) {
        const r = await call('POST', '/processes', body);
        assert.deepEqual([r.status, r.json.error.field], [400, field], JSON.stringify(body));
      }
    });
  });

  describe('limits', () => {
    it('are told by name', async () => {
      const p = await start('sleep 100');
      const refused = async (method, path, body, field) => {
        const r = await call(method, path, body);
        assert.deepEqual([r.status, r.json.error.field], [400, field], `${method} ${path} ${JSON.stringify(body)}`);
      };
      await refused('POST', '/processes', { command: 'true', name: 'x'.repeat(64) }, 'name');
      await refused('POST', `/processes/${p.id}/resize`, { rows: 1001, columns: 10 }, 'rows');
      await refused('GET', `/processes/${p.id}?wait=601s`, undefined, 'wait');
      await refused('POST', '/code', { language: 'python', code: 'x'.repeat((4 << 20) + 1) }, 'code');
      await refused('POST', '/code', { language: 'python', code: '1', timeoutSeconds: 86401 }, 'timeoutSeconds');
      const job = (await call('POST', '/jobs', { command: 'sleep 100' })).json;
      await refused('POST', `/jobs/${job.id}/stop`, { grace: '601s' }, 'grace');
      await call('POST', `/jobs/${job.id}/stop`, { force: true });
      const ws = await Socket.open(server, `/v1/sandboxes/${box.id}/processes/${p.id}/output`);
      ws.send('x'.repeat((128 << 10) + 1));
      assert.equal((await ws.rest()).closed.code, 1009);
      const cut = (await call('POST', '/code', { language: 'shell', code: 'head -c 1500000 /dev/zero | tr "\\0" x' })).json;
      assert.deepEqual([cut.stdout.length, cut.outputTruncated], [Math.min(1 << 20, 64 << 10), true]);
      await call('DELETE', `/processes/${p.id}`);
    });

    it('of commands at once are those of the server', async () => {
      const small = await Server.start({ args: ['--max-executions', '2', '--pool', '0'] });
      try {
        const other = await small.create();
        const go = () => small.request('POST', `/v1/sandboxes/${other.id}/processes`, { command: 'sleep 100' });
        assert.deepEqual([(await go()).status, (await go()).status], [201, 201]);
        const third = await go();
        assert.deepEqual([third.status, third.json.error.code], [429, 'quota_exceeded']);
      } finally {
        await finish(small);
      }
    });
  });

  describe('find', () => {
    it('by id, pid and name, and only in the own sandbox', async () => {
      const p = await start({ command: 'sleep 100', name: 'findme' });
      for (const key of [p.id, p.pid, 'findme']) assert.equal((await get(key)).id, p.id);
      const other = await server.create();
      for (const key of [p.id, 'findme', 99999]) assert.equal((await server.request('GET', `/v1/sandboxes/${other.id}/processes/${key}`)).status, 404);
      await server.request('DELETE', `/v1/sandboxes/${other.id}`);
      assert.deepEqual((await call('GET', '/processes?name=findme')).json.processes.map((x) => x.id), [p.id]);
      assert.deepEqual((await call('GET', '/processes?name=other')).json.processes, []);
      await call('DELETE', `/processes/${p.id}`);
      assert.equal((await get('findme')).id, p.id, 'also when it has ended');
    });

    it('lists those that run, and page by page those that have ended, the newest first', async () => {
      const started = [];
      for (let i = 0; i < 5; i++) started.push((await start(`exit ${i}`)).id);
      for (const id of started) await ended(id);
      await until('all are in the store', async () => (await call('GET', '/processes?status=ended&limit=5')).json.processes.length === 5);
      const seen = [];
      let cursor = '';
      do {
        const page = (await call('GET', `/processes?status=ended&limit=2${cursor}`)).json;
        assert.ok(page.processes.length <= 2);
        seen.push(...page.processes.map((p) => p.id));
        cursor = page.nextCursor ? `&cursor=${page.nextCursor}` : '';
      } while (cursor);
      assert.deepEqual(seen.slice(0, 5), [...started].reverse());
      assert.equal(new Set(seen).size, seen.length);
      for (const query of ['status=x', 'status=ended&limit=0', 'status=ended&limit=501', 'status=ended&cursor=x']) assert.equal((await call('GET', `/processes?${query}`)).status, 400);
    });
  });

  describe('inspect', () => {
    it('tells what the whole tree uses', async () => {
      const p = await start({ command: ['python3', '-c', 'import os,time\nx = bytearray(60 << 20)\nos.chdir("/tmp")\nif os.fork() == 0:\n  t = time.process_time()\n  while time.process_time() - t < 0.3: pass\nprint("ready", flush=True)\ntime.sleep(100)'] });
      const i = await until('the child has computed', async () => {
        const now = await get(p.id);
        return now.cpuMs > 290 && now.currentDirectory === '/tmp' ? now : null;
      });
      assert.equal(i.state, 'sleeping');
      assert.equal(i.processes, 2);
      assert.ok(i.memory > 60 << 20, `memory ${i.memory}`);
      assert.ok(i.peakMemory > 60 << 20 && i.peakMemory < 200 << 20, `peak ${i.peakMemory}`);
      await call('POST', `/processes/${p.id}/signal`, { signal: 'STOP' });
      await until('it is stopped', async () => (await get(p.id)).state === 'stopped');
      await call('DELETE', `/processes/${p.id}`);
      const end = await get(p.id);
      assert.ok(end.cpuMs > 290 && end.peakMemory > 60 << 20, JSON.stringify(end));
    });
  });

  describe('signals', () => {
    it('go to the main process, or to the tree', async () => {
      const command = ['bash', '-c', 'trap "echo main" USR1; (trap "echo child" USR1; echo up; while :; do sleep 0.05; done) & echo up; while :; do sleep 0.05; done'];
      const p = await start({ command });
      await until('both are up', async () => (await bytes(p.id, '&follow=false')) === 'up\nup\n');
      assert.equal((await call('POST', `/processes/${p.id}/signal`, { signal: 'USR1' })).status, 204);
      await until('the main process has it', async () => (await bytes(p.id, '&follow=false')).includes('main'));
      await sleep(150);
      assert.ok(!(await bytes(p.id, '&follow=false')).includes('child'));
      await call('POST', `/processes/${p.id}/signal`, { signal: 'SIGUSR1', tree: true });
      await until('the child has it', async () => (await bytes(p.id, '&follow=false')).includes('child'));
      await call('DELETE', `/processes/${p.id}`);
      assert.deepEqual((await call('POST', `/processes/${p.id}/signal`, { signal: 'TERM' })).json.error.code, 'not_running');
    });

    it('are known by name only', async () => {
      const p = await start('sleep 100');
      for (const signal of ['', 'NOPE', '9', 'term']) assert.equal((await call('POST', `/processes/${p.id}/signal`, { signal })).status, 400, signal);
      await call('DELETE', `/processes/${p.id}`);
    });
  });

  describe('output', () => {
    it('can be read from any byte, by several at once, then goes on live', async () => {
      const p = await start({ command: 'echo 0123456789; read x; echo end', openStdin: true });
      await until('it has written', async () => (await bytes(p.id, '&follow=false')) === '0123456789\n');
      assert.equal(await bytes(p.id, '&follow=false&offset=4'), '456789\n');
      assert.equal(await bytes(p.id, '&follow=false&offset=-3'), '89\n');
      const readers = [0, 3, 11, 13].map((offset) => bytes(p.id, `&offset=${offset}`));
      await sleep(50);
      await write(p.id, 'x\n');
      assert.deepEqual(await Promise.all(readers), ['0123456789\nend\n', '3456789\nend\n', 'end\n', 'd\n']);
      assert.equal(await bytes(p.id, '&offset=12'), 'nd\n', 'also afterwards');
      for (const query of ['offset=16', 'offset=x', 'offset=', 'follow=x']) assert.equal((await call('GET', `/processes/${p.id}/output?stream=stdout&${query}`)).status, 400, query);
    });

    it('comes as events, with both streams', async () => {
      const p = await start('echo out; echo err >&2; exit 5');
      await ended(p.id);
      const r = await call('GET', `/processes/${p.id}/output`);
      const events = lines(r.text);
      assert.deepEqual(events.map((e) => e.type), ['start', 'stdout', 'stderr', 'exit']);
      assert.equal(events[3].exitCode, 5);
      const sse = await call('GET', `/processes/${p.id}/output`, undefined, { headers: { accept: 'text/event-stream' } });
      const other = await call('GET', `/processes/${p.id}/output?stream=stdout`, undefined, { headers: { connection: 'Upgrade', upgrade: 'h2c' } });
      assert.deepEqual([other.status, other.text], [200, 'out\n'], 'an upgrade to something else is passed over');
      assert.match(sse.text, /^event: start\ndata: \{.*\}\n\nevent: stdout\n/);
    });

    it('beyond what is kept is marked as missing', async () => {
      const p = await start('head -c 100000 /dev/zero | tr "\\0" x; echo tail');
      const end = await ended(p.id);
      assert.deepEqual([end.stdout.length, end.stdout.kept, end.outputTruncated], [100005, 65536, true]);
      const events = lines((await call('GET', `/processes/${p.id}/output`)).text);
      assert.deepEqual(events.at(-2), { type: 'truncated', stream: 'stdout', from: 65536, to: 100005 });
      assert.equal(events.filter((e) => e.type === 'stdout').map((e) => e.data).join('').length, 65536);
      await assert.rejects(bytes(p.id), 'bytes end as an answer that was cut short');
      const head = await call('GET', `/processes/${p.id}/output?stream=stderr`);
      assert.equal(head.headers['x-output-length'], '0');
    });

    it('that nobody reads does not stop the process', async () => {
      const p = await start('head -c 50000000 /dev/zero; echo done >&2');
      const end = await ended(p.id);
      assert.deepEqual([end.status, end.stdout.length, end.stdout.kept], ['completed', 50000000, 65536]);
    });

    it('ends with the main process, whoever holds the pipe', async () => {
      const p = await start('(sleep 8; echo late) & echo early');
      const began = Date.now();
      const end = await ended(p.id);
      assert.ok(Date.now() - began < 7500);
      assert.equal(end.status, 'completed');
      assert.equal(await bytes(p.id), 'early\n');
    });

    it('that is closed early does not end the process', async () => {
      const p = await start('exec >&- 2>&-; sleep 0.5; exit 3');
      await sleep(200);
      assert.equal((await get(p.id)).status, 'running');
      assert.equal((await ended(p.id)).exitCode, 3);
    });
  });

  describe('stdin', () => {
    it('is written in pieces, and what is repeated is not written twice', async () => {
      const p = await start({ command: ['cat'], openStdin: true, stdin: 'a' });
      assert.deepEqual((await write(p.id, 'bcd')).json, { offset: 4, open: true });
      assert.deepEqual((await write(p.id, 'cdef', '?offset=2')).json, { offset: 6, open: true });
      assert.deepEqual((await write(p.id, 'ab', '?offset=0')).json, { offset: 6, open: true });
      const gap = await write(p.id, 'x', '?offset=7');
      assert.deepEqual([gap.status, gap.json.error.field], [400, 'offset']);
      assert.deepEqual((await write(p.id, '', '?close=true')).json, { offset: 6, open: false });
      await ended(p.id);
      assert.equal(await bytes(p.id), 'abcdef');
    });

    it('of megabytes is taken as fast as the process reads', async () => {
      const p = await start({ command: 'sleep 0.3; md5sum', openStdin: true });
      const data = Buffer.alloc(5_000_000, 'bunker');
      assert.deepEqual((await write(p.id, data, '?close=true')).json, { offset: 5_000_000, open: false });
      await ended(p.id);
      const { createHash } = await import('node:crypto');
      assert.equal((await bytes(p.id)).slice(0, 32), createHash('md5').update(data).digest('hex'));
    });

    it('that is closed, or never was there, is an error', async () => {
      const none = await start('sleep 100');
      assert.equal((await write(none.id, 'x')).json.error.code, 'stdin_closed');
      await call('DELETE', `/processes/${none.id}`);
      assert.equal((await write(none.id, 'x')).json.error.code, 'not_running');
      const deaf = await start({ command: 'exec <&-; echo deaf; sleep 100', openStdin: true });
      await until('it is deaf', async () => (await bytes(deaf.id, '&follow=false')) === 'deaf\n');
      assert.equal((await write(deaf.id, 'x')).json.error.code, 'stdin_closed');
      await call('DELETE', `/processes/${deaf.id}`);
      const slow = await start({ command: 'sleep 0.5', openStdin: true });
      assert.equal((await write(slow.id, Buffer.alloc(2_000_000))).json.error.code, 'stdin_closed', 'it ended before it read all of that');
    });
  });

  describe('by WebSocket', () => {
    const open = async (p, query = '') => await Socket.open(server, `/v1/sandboxes/${box.id}/processes/${p}/output${query}`);

    it('gives the output from a byte on, takes stdin, and ends with the exit', async () => {
      const p = await start({ command: 'echo hello; cat; echo err >&2; exit 4', openStdin: true });
      const ws = await open(p.id);
      assert.equal((await ws.next()).text.type, 'start');
      assert.equal(await ws.readUntil('hello\n'), 'hello\n');
      ws.send('typed\n');
      assert.equal(await ws.readUntil('typed\n'), 'typed\n');
      const second = await open(p.id, '?stream=stdout&offset=6');
      ws.send({ type: 'end' });
      const { texts, data, closed } = await ws.rest();
      assert.equal(data.toString(), 'err\n');
      assert.deepEqual(texts[0], { type: 'data', stream: 'stderr', offset: 0 });
      assert.deepEqual([texts.at(-1).type, texts.at(-1).exitCode, closed.code], ['exit', 4, 1000]);
      assert.equal((await second.rest()).data.toString(), 'typed\n');
      assert.equal((await (await open(p.id)).rest()).data.toString(), 'hello\ntyped\nerr\n', 'also of one that has ended');
    });

    it('answers what it does not understand with an error, and goes on', async () => {
      const p = await start({ command: 'sleep 100' });
      const ws = await open(p.id);
      await ws.next();
      for (const [message, code] of [[{ type: 'x' }, 'invalid_field'], [{ type: 'resize', rows: 5, columns: 5 }, 'invalid_field'], [{ type: 'signal', signal: 'NO' }, 'invalid_field'], [{ no: 1 }, 'unknown_field'], ['input', 'stdin_closed']]) {
        ws.send(message);
        assert.deepEqual((({ type, code: c }) => [type, c])((await ws.next()).text), ['error', code]);
      }
      ws.send({ type: 'signal', signal: 'TERM' });
      assert.equal((await ws.rest()).texts.at(-1).signal, 'SIGTERM');
    });

    it('needs a key and a process', async () => {
      const p = await start('sleep 100');
      await assert.rejects(Socket.open(server, `/v1/sandboxes/${box.id}/processes/${p.id}/output`, { key: 'bnk_0' }), { status: 401 });
      await assert.rejects(open('no-such-process'), { status: 404 });
      await call('DELETE', `/processes/${p.id}`);
    });

    it('a client that goes away leaves the process alone', async () => {
      const p = await start('echo here; sleep 1; echo still; exit 2');
      const ws = await open(p.id);
      await ws.readUntil('here');
      ws.destroy();
      assert.equal((await ended(p.id)).exitCode, 2);
    });
  });

  describe('jobs', () => {
    const job = async (options) => (await call('POST', '/jobs', options)).json;

    it('have a status that says how they went', async () => {
      const ok = await job({ command: 'exit 0' });
      const bad = await job({ command: 'exit 1' });
      const late = await job({ command: 'sleep 100', timeout: '200ms' });
      const run = await job({ command: 'sleep 100', name: 'runner' });
      assert.equal(run.status, 'running');
      for (const [j, status] of [[ok, 'completed'], [bad, 'failed'], [late, 'failed']]) assert.equal((await call('GET', `/jobs/${j.id}?wait=10s`)).json.status, status);
      assert.deepEqual([(await call('POST', '/jobs', { command: 'true', name: 'runner' })).json.error.code], ['name_taken']);
      assert.equal((await call('GET', '/jobs')).json.jobs[0].id, run.id, 'those that run come first');
      assert.equal((await call('POST', '/jobs/runner/stop', { force: true })).json.status, 'cancelled');
      assert.equal((await call('GET', '/jobs/runner')).json.status, 'cancelled');
      const p = await start('true');
      assert.equal((await call('GET', `/jobs/${p.id}`)).status, 404, 'a process is no job');
    });

    it('are stopped with everything they started, gently and then not', async () => {
      const nice = await job({ command: 'trap "echo bye; exit 0" TERM; sleep 100 & wait' });
      await until('it is up', async () => (await get(nice.id)).processes === 2);
      const stopped = (await call('POST', `/jobs/${nice.id}/stop`)).json;
      assert.deepEqual([stopped.status, stopped.exitCode], ['cancelled', 0]);
      assert.equal((await call('GET', `/jobs/${nice.id}/output?stream=stdout`)).text, 'bye\n');
      const marker = `77${Date.now() % 1e6}`;
      const stubborn = await job({ command: `trap "" TERM; (trap "" TERM; sleep ${marker}) & kill -STOP $$; sleep ${marker}` });
      await until('it has stopped itself', async () => (await get(stubborn.id)).state === 'stopped');
      const killed = (await call('POST', `/jobs/${stubborn.id}/stop`, { grace: '300ms' })).json;
      assert.deepEqual([killed.status, killed.signal], ['cancelled', 'SIGKILL']);
      await until('nothing of it is left', async () => (await server.exec(box.id, `pgrep -f '[s]leep ${marker}' || echo none`)).stdout === 'none\n');
    });

    it('that exit at once leave children the time of the grace', async () => {
      const marker = `88${Date.now() % 1e6}`;
      const j = await job({ command: `(trap "" TERM; sleep ${marker}) & sleep 0.1; trap "exit 0" TERM; sleep 100 & wait` });
      await until('it is up', async () => (await get(j.id)).processes >= 3);
      await call('POST', `/jobs/${j.id}/stop`, { grace: '1s' });
      assert.match((await server.exec(box.id, `pgrep -f '[s]leep ${marker}' >/dev/null && echo there`)).stdout, /there/);
      await until('the child is gone after the grace', async () => (await server.exec(box.id, `pgrep -f '[s]leep ${marker}' || echo none`)).stdout === 'none\n', 5000);
    });
  });

  describe('code', () => {
    const code = async (options) => await call('POST', '/code', options);

    it('is run by its interpreter as it is, without a shell', async () => {
      const text = `import sys\nprint("$HOME \`id\` 'q' \\"d\\" \\\\ é")\nsys.stdout.flush()\nprint("e", file=sys.stderr)\nsys.exit(3)`;
      const r = (await code({ language: 'python', code: text })).json;
      assert.deepEqual([r.stdout, r.stderr, r.exitCode, r.timedOut], ['$HOME `id` \'q\' "d" \\ é\n', 'e\n', 3, false]);
      assert.equal(r.output, r.stdout + r.stderr);
      assert.equal((await code({ language: 'node', code: 'console.log(`${6 * 7}`)' })).json.stdout, '42\n');
      assert.equal((await code({ language: 'shell', code: 'echo "$((6 * 7))"; exit 9' })).json.exitCode, 9);
    });

    it('may be long', async () => {
      for (const [language, line, comment] of [['python', 'print("long")', '#'], ['node', 'console.log("long")', '//'], ['shell', 'echo long', '#']]) {
        const r = (await code({ language, code: `${`${comment} ${'x'.repeat(98)}\n`.repeat(5000)}${line}\n` })).json;
        assert.equal(r.stdout, 'long\n', language);
      }
    });

    it('is ended after its time', async () => {
      const r = (await code({ language: 'python', code: 'print(1, flush=True)\nwhile True: pass', timeoutSeconds: 1 })).json;
      assert.deepEqual([r.timedOut, r.exitCode, r.stdout], [true, 124, '1\n']);
    });

    it('for which there is no interpreter is a clear error', async () => {
      await server.exec(box.id, { command: 'mkdir -p /tmp/empty', user: 'root' });
      const r = await code({ language: 'python', code: '1', env: { PATH: '/tmp/empty' } });
      assert.deepEqual([r.status, r.json.error.code, r.json.error.field], [400, 'interpreter_not_found', 'language']);
      assert.equal((await code({ language: 'cobol', code: '1' })).status, 400);
      assert.equal((await code({ language: 'python', code: '1', timeoutSeconds: 0 })).status, 400);
    });
  });

  describe('the environment of a sandbox', () => {
    it('is set and unset, kept, and seen by what starts afterwards', async () => {
      const printed = async () => (await server.exec(box.id, 'echo "$A-$B-${C-unset}"')).stdout;
      const old = await start({ command: 'read x; echo "$A"', openStdin: true });
      assert.deepEqual((await call('PATCH', '/env', { A: '1', B: 'two words', C: '' })).json, { A: '1', B: 'two words', C: '' });
      assert.equal(await printed(), '1-two words-\n');
      assert.deepEqual((await call('PATCH', '/env', { A: '3', C: null, NOT_THERE: null })).json, { B: 'two words', A: '3' });
      await server.stop();
      await server.launch();
      assert.deepEqual((await call('GET', '/env')).json, { B: 'two words', A: '3' });
      assert.equal(await printed(), '3-two words-unset\n');
      assert.equal((await server.exec(box.id, { command: 'echo $A', env: { A: 'mine' } })).stdout, 'mine\n');
      await write(old.id, 'x\n');
      await ended(old.id);
      assert.equal(await bytes(old.id), '\n', 'what ran already has its own, also across a restart with its open stdin');
    });

    it('refuses what is no environment, and changes nothing', async () => {
      const was = (await call('GET', '/env')).json;
      for (const body of [{ A: 1 }, { 'A=B': 'x' }, { '': 'x' }, { A: ['x'] }, { GOOD: 'x', '1BAD': 'x' }]) assert.equal((await call('PATCH', '/env', body)).status, 400, JSON.stringify(body));
      assert.equal((await call('PATCH', '/env', { BIG: 'x'.repeat(300000) })).status, 400);
      assert.deepEqual((await call('GET', '/env')).json, was);
    });
  });

  it('can be read when their sandbox is gone', async () => {
    const other = await server.create();
    const r = await server.request('POST', `/v1/sandboxes/${other.id}/processes`, { command: 'echo kept; sleep 100', name: 'gone' });
    await until('it has written', async () => (await server.request('GET', `/v1/executions/${r.json.id}/output?stream=stdout&follow=false`)).text === 'kept\n');
    await server.request('DELETE', `/v1/sandboxes/${other.id}`);
    assert.equal((await server.request('GET', `/v1/executions/${r.json.id}/output?stream=stdout`)).text, 'kept\n');
    assert.equal((await server.request('GET', `/v1/executions?sandbox=${other.id}`)).json.executions[0].status, 'cancelled');
    assert.equal((await server.request('GET', `/v1/sandboxes/${other.id}/processes/gone`)).json.status, 'cancelled');
  });
});
