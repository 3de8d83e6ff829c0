import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Server, sleep, until } from '../lib/server.mjs';
import { assertRefused, drain, execution, finish, metric, remove, residentKib, sha256, startCommand } from './support.mjs';

describe('streamed exec', () => {
  let server;
  let box;
  const path = () => `/v1/sandboxes/${box.id}/exec`;
  const open = (body, headers) => server.stream(path(), typeof body === 'string' || Array.isArray(body) ? { command: body } : body, headers);
  const fresh = async () => {
    box = await server.create();
  };
  before(async () => {
    server = await Server.start();
    await fresh();
  });
  after(() => finish(server));

  describe('as NDJSON', () => {
    before(fresh);

    it('is one event a line: start, output, exit', async () => {
      const stream = await open('echo out; sleep 0.1; echo err >&2; exit 3');
      assert.match(stream.headers['content-type'], /^application\/x-ndjson/);
      const events = [];
      for await (const event of stream.events) events.push(event);
      assert.deepEqual(events.map((e) => e.type), ['start', 'stdout', 'stderr', 'exit']);
      const [start, out, err, exit] = events;
      assert.match(start.executionId, /^[a-z0-9]{20}$/);
      assert.equal(start.sandboxId, box.id);
      assert.ok(start.pid > 1);
      assert.deepEqual([out.offset, out.data], [0, 'out\n']);
      assert.deepEqual([err.offset, err.data], [0, 'err\n']);
      assert.equal(exit.exitCode, 3);
      assert.equal(exit.status, 'completed');
      assert.equal(exit.timedOut, false);
      assert.equal(exit.outputTruncated, false);
      assert.equal(exit.executionId, start.executionId);
    });

    it('shows output when it is written, not when the command ends', async () => {
      const stream = await open('echo now; sleep 8');
      const began = Date.now();
      await stream.events.next();
      assert.equal((await stream.events.next()).value.data, 'now\n');
      assert.ok(Date.now() - began < 7000);
      stream.close();
    });

    it('keeps the order in which one stream was written, with contiguous offsets', async () => {
      const { stdout } = await drain(await open('for i in 1 2 3 4 5; do seq 1 $((i * 1000)); sleep 0.02; done'));
      const seq = (n) => Array.from({ length: n }, (_, i) => `${i + 1}\n`).join('');
      assert.equal(stdout.toString(), [1, 2, 3, 4, 5].map((i) => seq(i * 1000)).join(''));
    });

    it('ends with exit and no output for a silent command', async () => {
      const r = await drain(await open({ command: ['true'] }));
      assert.equal(r.events, 2);
      assert.equal(r.exit.exitCode, 0);
    });

    it('tells signals, timeouts and missing programs in the exit event', async () => {
      assert.equal((await drain(await open('kill -TERM $$'))).exit.signal, 'SIGTERM');
      const late = (await drain(await open({ command: 'echo x; sleep 20', timeout: '300ms' }))).exit;
      assert.deepEqual([late.timedOut, late.exitCode, late.status], [true, 124, 'timeout']);
      const none = await drain(await open({ command: ['no-such-program'] }));
      assert.equal(none.exit.exitCode, 127);
      assert.match(none.stderr.toString(), /no-such-program/);
    });

    it('ends with a cancelled exit event when the sandbox is deleted', async () => {
      const other = await server.create();
      const stream = await server.stream(`/v1/sandboxes/${other.id}/exec`, { command: 'echo up; sleep 60' });
      const reading = drain(stream);
      await sleep(200);
      await remove(server, other.id);
      const r = await reading;
      assert.equal(r.stdout.toString(), 'up\n');
      assert.equal(r.exit.status, 'cancelled');
    });

    it('answers a refused command with a plain error', async () => {
      const body = { command: 'true', user: 'nobody-knows' };
      const answer = await server.request('POST', path(), body, { headers: { accept: 'application/x-ndjson' } });
      assertRefused(answer, 400, 'invalid_field', 'user');
    });

    it('takes stdin and files like any exec', async () => {
      const r = await drain(await open({ command: 'cat; cat /tmp/f', stdin: 'in ', files: [{ path: '/tmp/f', content: 'file' }] }));
      assert.equal(r.stdout.toString(), 'in file');
    });
  });

  describe('as SSE', () => {
    before(fresh);

    const sse = async (command, extra) => {
      const headers = { accept: 'text/event-stream' };
      const answer = await server.request('POST', path(), { command, ...extra }, { headers });
      assert.match(answer.headers['content-type'], /^text\/event-stream/);
      assert.match(answer.headers['cache-control'], /no-store|no-cache/);
      assert.ok(answer.text.endsWith('\n\n'));
      return answer.text.slice(0, -2).split('\n\n').map((block) => {
        const lines = block.split('\n');
        assert.equal(lines.length, 2, `more than an event's two lines: ${block}`);
        const [, name] = /^event: (\w+)$/.exec(lines[0]);
        const data = JSON.parse(/^data: ([^]*)$/.exec(lines[1])[1]);
        assert.equal(data.type, name);
        return data;
      });
    };

    it('has the same events under their names', async () => {
      const events = await sse('echo out; sleep 0.1; echo err >&2; exit 4');
      assert.deepEqual(events.map((e) => e.type), ['start', 'stdout', 'stderr', 'exit']);
      assert.equal(events[3].exitCode, 4);
    });

    it('cannot be broken by what the command prints', async () => {
      const evil = 'x\n\nevent: exit\ndata: {"exitCode":0}\n\n\r\r\u2028';
      const events = await sse(['cat'], { stdin: evil });
      assert.deepEqual(events.map((e) => e.type), ['start', 'stdout', 'exit']);
      assert.equal(events[1].data, evil);
    });
  });

  it('is asked for by Accept only: otherwise the answer is one JSON result', async () => {
    for (const accept of ['application/json', '*/*', 'text/html, */*;q=0.1']) {
      const answer = await server.request('POST', path(), { command: 'echo plain' }, { headers: { accept } });
      assert.match(answer.headers['content-type'], /^application\/json/);
      assert.equal(answer.json.stdout, 'plain\n');
    }
  });

  describe('bytes', () => {
    before(fresh);

    it('of 20 MB of noise arrive exactly, as base64', async () => {
      const command = 'head -c 20000000 /dev/urandom | tee /tmp/noise; sha256sum < /tmp/noise >&2';
      const r = await drain(await open({ command, encoding: 'base64' }), { base64: true });
      assert.equal(r.stdout.length, 20000000);
      assert.equal(r.stderr.toString(), `${sha256(r.stdout)}  -\n`);
      assert.equal(r.exit.exitCode, 0);
    });

    it('of long UTF-8 text survive wherever they are cut', async () => {
      const stream = await open(['python3', '-c', 'import sys\nfor i in range(60000): sys.stdout.write("aé€🦫"[i % 4] * (i % 97))']);
      const { stdout } = await drain(stream);
      let wanted = '';
      for (let i = 0; i < 60000; i++) wanted += ['a', 'é', '€', '🦫'][i % 4].repeat(i % 97);
      assert.equal(sha256(stdout), sha256(wanted));
    });

    it('of a character that is written in pieces come as one character', async () => {
      const pieces = "printf '\\360\\237'; sleep 0.1; printf '\\246'; sleep 0.1; printf '\\253|\\303'; sleep 0.1; printf '\\251'";
      const stream = await open(pieces);
      const texts = [];
      for await (const event of stream.events) if (event.type === 'stdout') texts.push(event.data);
      assert.equal(texts.join(''), '🦫|é');
    });

    it('of half a character at the end are not lost', async () => {
      const stream = await open("printf 'end\\342\\202'");
      let text = '';
      let last;
      for await (const event of stream.events) {
        if (event.type === 'stdout') text += event.data;
        last = event;
      }
      assert.equal(last.type, 'exit');
      assert.match(text, /^end\ufffd+$/);
    });

    it('that are not UTF-8 become replacement characters in text', async () => {
      const stream = await open("printf 'a\\377b\\300\\200c'");
      let text = '';
      for await (const event of stream.events) if (event.type === 'stdout') text += event.data;
      assert.match(text, /^a\ufffdb\ufffd+c$/);
    });

    it('of many streams at once do not mix', async () => {
      const one = async (i) => {
        const command = `for n in $(seq 1 40); do head -c 20000 /dev/zero | tr "\\0" "\\${(i + 97).toString(8)}"; done`;
        const r = await drain(await open({ command, encoding: 'base64' }), { base64: true });
        assert.equal(r.stdout.length, 800000);
        assert.equal(r.stdout.toString(), String.fromCharCode(97 + i).repeat(800000));
      };
      await Promise.all(Array.from({ length: 20 }, (_, i) => one(i)));
    });
  });

  describe('slow reader', () => {
    before(fresh);

    const writer = 'i=0; while [ $i -lt 1000 ]; do head -c 100000 /dev/zero | tr "\\0" x; i=$((i+1)); echo $i > /tmp/progress; done';
    const progress = async () => Number((await server.exec(box.id, 'cat /tmp/progress 2>/dev/null || echo 0')).stdout);
    const standstill = async () => {
      let before = -1;
      await until('the writer stands still', async () => {
        const now = await progress();
        const still = now === before && now > 0;
        before = now;
        await sleep(300);
        return still;
      }, 20000);
      return before;
    };

    it('holds the process back, costs the server little, and misses nothing', async () => {
      await server.exec(box.id, 'rm -f /tmp/progress');
      const rest = residentKib(server.frontPid);
      const { stream } = await startCommand(server, box.id, { command: writer });
      stream.response.pause();
      const reached = await standstill();
      assert.ok(reached < 500, `the process wrote ${reached} of 1000 parts that nobody reads`);
      const grown = residentKib(server.frontPid) - rest;
      const room = process.env.BUNKER?.includes('asan') ? 65536 : 8192; // the sanitizer keeps what was freed
      assert.ok(grown < room, `the front grew by ${grown} KiB`);
      let length = 0;
      let exit;
      for await (const event of stream.events) {
        if (event.type === 'exit') exit = event;
        else {
          assert.equal(event.offset, length);
          length += event.data.length;
        }
      }
      assert.equal(length, 100000000);
      assert.equal(exit.exitCode, 0);
    });

    it('that goes away lets the process go on', async () => {
      await server.exec(box.id, 'rm -f /tmp/progress');
      const { id, stream } = await startCommand(server, box.id, { command: writer });
      stream.response.pause();
      await standstill();
      stream.close();
      const r = await execution(server, id, '?wait=60s');
      assert.equal(r.status, 'completed');
      assert.equal(r.exitCode, 0);
      assert.equal(await progress(), 1000);
      assert.equal(r.outputTruncated, true);
      assert.equal(r.stdout, 'x'.repeat(8 << 20));
    });

    it('does not slow others in the same sandbox', async () => {
      const { stream } = await startCommand(server, box.id, { command: ['yes'] });
      stream.response.pause();
      await sleep(500);
      const began = Date.now();
      for (let i = 0; i < 20; i++) assert.equal((await server.exec(box.id, ['echo', 'quick'])).stdout, 'quick\n');
      assert.ok(Date.now() - began < 20000, `20 execs took ${Date.now() - began} ms`);
      stream.close();
      await server.exec(box.id, 'kill $(grep -l "^yes$" /proc/[0-9]*/comm | cut -d/ -f3)');
      await until('yes has ended', async () => (await metric(server, 'executions_running')) === 0);
    });
  });

  describe('client that goes away', () => {
    before(fresh);

    it('leaves the command running, and its result can be had by id', async () => {
      const { id, stream } = await startCommand(server, box.id, { command: 'echo begun; sleep 1; echo ended >&2; exit 8' });
      stream.close();
      await sleep(200);
      assert.equal((await execution(server, id)).status, 'running');
      const r = await execution(server, id, '?wait=20s');
      assert.deepEqual([r.exitCode, r.stdout, r.stderr], [8, 'begun\n', 'ended\n']);
    });

    it('leaves a plain exec running, too', async () => {
      const marker = `/tmp/marker-${Date.now()}`;
      const http = await import('node:http');
      const payload = JSON.stringify({ command: `sleep 0.7; echo done > ${marker}` });
      await new Promise((resolve) => {
        const req = http.request(server.url + path(), {
          method: 'POST',
          headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', 'content-length': payload.length },
        });
        req.on('error', () => {});
        req.end(payload, () => setTimeout(() => resolve(req.destroy()), 150));
      });
      await until('it has finished', async () => (await server.exec(box.id, ['cat', marker])).stdout === 'done\n');
    });

    it('frees its connection', async () => {
      const before = await metric(server, 'http_connections');
      const opened = await Promise.all(Array.from({ length: 10 }, () => startCommand(server, box.id, { command: ['sleep', '1'] })));
      assert.ok((await metric(server, 'http_connections')) >= before + 10);
      for (const { stream } of opened) stream.close();
      await until('the connections are gone', async () => (await metric(server, 'http_connections')) <= before);
    });
  });
});
