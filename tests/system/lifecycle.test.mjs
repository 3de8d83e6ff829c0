// The life cycle: pause and resume with and without memory, leases and idleness, waking by calls, changes, races, crashes.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Server, sleep, until } from '../lib/server.mjs';
import { LONG, assertRefused, exists, finish, hostPids, initPid, remove } from './support.mjs';

const bootId = 'cat /proc/sys/kernel/random/boot_id';

describe('the life cycle', { timeout: 120000 }, () => {
  let server;
  before(async () => (server = await Server.start({ args: ['--pool', '2'] })));
  after(() => finish(server, { killed: true }));

  const act = (id, path, body) => server.request('POST', `/v1/sandboxes/${id}/${path}`, body);
  const pause = (id, body) => act(id, 'pause', body);
  const resume = (id, body) => act(id, 'resume', body);
  const get = async (id) => (await server.request('GET', `/v1/sandboxes/${id}`)).json;
  const status = async (id) => (await get(id)).status;
  const change = (id, body) => server.request('PATCH', `/v1/sandboxes/${id}`, body);
  const events = async (id, query = '') => (await server.request('GET', `/v1/sandboxes/${id}/events${query}`)).json.events;
  const types = async (id) => (await events(id, '?limit=1000')).map((e) => e.type);

  describe('a pause with memory', () => {
    it('stops every process where it is, and a resume lets it go on there', async () => {
      const box = await server.create();
      await server.exec(box.id, 'cd; (while :; do echo x >> ticks; sleep 0.02; done) >/dev/null 2>&1 &');
      await until('it ticks', async () => (await server.exec(box.id, 'wc -l < ~/ticks 2>/dev/null || echo 0')).stdout > 3);
      const answer = await pause(box.id);
      assert.equal(answer.status, 200, answer.text);
      const pids = hostPids(server, box.id);
      assert.equal(answer.json.status, 'paused');
      assert.ok(answer.json.pausedAt);
      const states = () => pids.map((pid) => readFileSync(`/proc/${pid}/wchan`, 'utf8'));
      const before = pids.map((pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).join());
      await sleep(300);
      assert.deepEqual(pids.map((pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).join()), before, `no cpu time passes: ${states()}`);
      assert.equal((await resume(box.id)).json.status, 'idle');
      const count = async () => Number((await server.exec(box.id, 'wc -l < ~/ticks')).stdout);
      const one = await count();
      await until('it ticks again', async () => (await count()) > one);
      const init = initPid(server, box.id);
      assert.ok(pids.includes(init), 'the same processes');
      assert.equal((await server.exec(box.id, bootId)).stdout.trim(), box.bootId);
      await remove(server, box.id);
    });

    it('does not count for the timeout of a command', async () => {
      const box = await server.create();
      const running = server.exec(box.id, { command: 'for i in 1 2 3 4 5; do echo $i; sleep 0.1; done', timeout: '1200ms' });
      await sleep(150);
      await pause(box.id);
      await sleep(1500);
      await resume(box.id);
      const result = await running;
      assert.equal(result.status, 'completed');
      assert.equal(result.stdout, '1\n2\n3\n4\n5\n');
      const slow = server.exec(box.id, { command: 'sleep 30', timeout: '500ms' });
      await sleep(100);
      await pause(box.id);
      await sleep(200);
      await resume(box.id);
      assert.equal((await slow).status, 'timeout', 'what is left of a timeout goes on');
      await remove(server, box.id);
    });

    it('keeps a stream open, and not one byte is missing or doubled', async () => {
      const box = await server.create();
      const stream = await server.stream(`/v1/sandboxes/${box.id}/exec`, { command: 'for i in $(seq 2000); do echo $i; done; sleep 0.3; seq 2001 3000' });
      let text = '';
      let pausing;
      for await (const event of stream.events) {
        if (event.type === 'stdout') text += event.data;
        pausing ??= pause(box.id).then(() => sleep(100)).then(() => resume(box.id));
      }
      await pausing;
      assert.equal(text, Array.from({ length: 3000 }, (_, i) => `${i + 1}\n`).join(''));
      await remove(server, box.id);
    });

    it('gives the page cache back to the host', async () => {
      const box = await server.create();
      await server.exec(box.id, 'head -c 80000000 /dev/zero > /tmp/file; sync; cat /tmp/file > /dev/null');
      const usage = async () => (await server.request('GET', `/v1/sandboxes/${box.id}/usage`)).json.memoryBytes;
      assert.ok((await usage()) > 60e6, `it has a page cache: ${await usage()}`);
      await pause(box.id);
      await until('most of it is back', async () => (await usage()) < 30e6, 5000);
      assert.equal((await server.exec(box.id, 'true').catch((e) => e.message)).includes('409'), true);
      await remove(server, box.id);
    });

    it('takes a few milliseconds, and so does a resume', async () => {
      const box = await server.create();
      const times = { pause: [], resume: [] };
      for (let i = 0; i < 21; i++)
        for (const what of ['pause', 'resume']) {
          const start = performance.now();
          assert.equal((await act(box.id, what)).status, 200);
          times[what].push(performance.now() - start);
        }
      for (const [what, all] of Object.entries(times)) {
        const fastest = Math.min(...all); // of the slower ones others on this machine may be the reason
        assert.ok(fastest < 50, `${what} took ${fastest} ms`);
      }
      await remove(server, box.id);
    });
  });

  describe('a pause without memory', () => {
    it('ends the processes and keeps the disk; a resume is a boot with another id', async () => {
      const box = await server.create({ env: { KEPT: 'yes' } });
      await server.exec(box.id, 'echo content > ~/file; (sleep 1000 >/dev/null 2>&1 &)');
      await server.exec(box.id, { command: 'echo more > /usr/local/other', user: 'root' });
      const running = server.exec(box.id, 'sleep 1000');
      await sleep(50);
      const answer = await pause(box.id, { memory: false });
      assert.equal(answer.json.status, 'suspended', answer.text);
      assert.equal((await running).status, 'cancelled');
      assert.throws(() => hostPids(server, box.id), /has no cgroup/, 'nothing of it is left in the kernel');
      const again = await resume(box.id);
      assert.equal(again.json.status, 'idle', again.text);
      assert.notEqual(again.json.bootId, box.bootId);
      const r = await server.exec(box.id, `cat ~/file /usr/local/other; echo $KEPT; pgrep -c sleep; ${bootId}`);
      assert.equal(r.stdout, `content\nmore\nyes\n0\n${again.json.bootId}\n`);
      await remove(server, box.id);
    });

    it('ten times over loses no file', async () => {
      const box = await server.create({ autoResume: true });
      for (let i = 0; i < 10; i++) {
        await server.exec(box.id, `echo ${i} >> ~/log; ln -sf ${i} ~/link; mkdir -p ~/d/${i}`);
        assert.equal((await pause(box.id, { memory: i % 2 === 0 })).status, 200);
      }
      const r = await server.exec(box.id, 'cat ~/log; readlink ~/link; ls ~/d | wc -l');
      assert.equal(r.stdout, '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n9\n10\n');
      await remove(server, box.id);
    });

    it('of one that is paused with memory ends what was kept', async () => {
      const box = await server.create();
      await pause(box.id);
      assert.equal((await pause(box.id, { memory: false })).json.status, 'suspended');
      assert.equal((await pause(box.id)).json.status, 'suspended', 'there is no memory left to keep');
      assert.equal((await resume(box.id)).json.status, 'idle');
      await pause(box.id);
      const rebooted = await resume(box.id, { memory: false });
      assert.notEqual(rebooted.json.bootId, box.bootId);
      await remove(server, box.id);
    });
  });

  describe('bad requests', () => {
    it('are refused and change nothing', async () => {
      const box = await server.create();
      assertRefused(await pause('a'.repeat(20)), 404, 'not_found');
      assertRefused(await pause(box.id, { memory: 'no' }), 400, 'invalid_field', 'memory');
      assertRefused(await pause(box.id, { what: 1 }), 400, 'unknown_field', 'what');
      assertRefused(await change(box.id, { onIdle: 'explode' }), 400, 'invalid_field', 'onIdle');
      assertRefused(await change(box.id, { env: { A: 1 } }), 400, 'invalid_field', 'env');
      assertRefused(await change(box.id, { env: { '1A': 'x' } }), 400, 'invalid_field', 'env');
      assertRefused(await change(box.id, { timeout: { lease: '-1s' } }), 400, 'invalid_field', 'timeout.lease');
      assertRefused(await change(box.id, { autoResume: 'x' }), 400, 'invalid_field', 'autoResume');
      assertRefused(await server.request('POST', '/v1/sandboxes', { onLease: 'x' }), 400, 'invalid_field', 'onLease');
      assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}/events?direction=x`), 400, 'invalid_field', 'direction');
      assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}/events?limit=0`), 400, 'invalid_field', 'limit');
      assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}/events?limit=1001`), 400, 'invalid_field', 'limit');
      assertRefused(await server.request('GET', `/v1/sandboxes/${'b'.repeat(20)}/events?cursor=7`), 404, 'not_found');
      assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}x/events`), 404, 'not_found');
      assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}/metrics?start=x`), 400, 'invalid_field', 'start');
      assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}?includeDeleted=1`), 400, 'invalid_field', 'includeDeleted');
      const { lastActiveAt, ...before } = box;
      const { lastActiveAt: ignored, ...now } = await get(box.id);
      assert.deepEqual(now, before);
      await remove(server, box.id);
    });

    it('a paused sandbox that does not wake by itself refuses calls', async () => {
      const box = await server.create();
      for (const memory of [true, false]) {
        await pause(box.id, { memory });
        assertRefused(await act(box.id, 'exec', { command: 'true' }), 409, 'paused');
        assertRefused(await act(box.id, 'exec', { command: 'true', files: [{ path: 'x', content: 'y' }] }), 409, 'paused');
      }
      await remove(server, box.id);
    });
  });

  describe('waking by calls', () => {
    for (const memory of [true, false])
      it(`a hundred calls at once on one that is ${memory ? 'paused' : 'suspended'}: one resume, and all succeed`, async () => {
        const box = await server.create({ autoResume: true });
        await pause(box.id, { memory });
        const results = await Promise.all(
          Array.from({ length: 100 }, (_, i) =>
            i % 10 ? server.exec(box.id, `echo ${i}`) : server.exec(box.id, { command: `cat f${i}`, files: [{ path: `f${i}`, content: `${i}\n` }] }),
          ),
        );
        results.forEach((r, i) => assert.equal(r.stdout, `${i}\n`));
        assert.equal((await types(box.id)).filter((t) => t === 'resumed').length, 1);
        const resumed = (await events(box.id)).find((e) => e.type === 'resumed');
        assert.equal(resumed.cause, 'call');
        await remove(server, box.id);
      });

    it('a call that comes while the pause is under way is not lost', async () => {
      const isRunning = async (id) => (await server.request('GET', `/v1/sandboxes/${id}/processes`)).json.processes.some((p) => p.status === 'running');
      const box = await server.create({ autoResume: true });
      for (let i = 0; i < (LONG ? 100 : 20); i++) {
        const memory = i % 2 === 0;
        const pausing = pause(box.id, { memory });
        if (i % 3) await sleep((i % 5) * 0.4);
        let r;
        const calling = server.exec(box.id, `echo ${i}`).then((answer) => (r = answer));
        assert.equal((await pausing).status, 200);
        /* One that runs already when the pause comes stands still with the sandbox. One that waits must not wait for ever. */
        await until('it is answered, or was quicker', async () => r || ((await status(box.id)) === 'paused' && (await isRunning(box.id))));
        if (!r) await act(box.id, 'resume');
        await calling;
        assert.ok(r.stdout === `${i}\n` || r.status === 'cancelled', JSON.stringify(r));
      }
      await remove(server, box.id);
    });
  });

  describe('times', () => {
    it('idleness pauses, the next call wakes, and a paused one ends after its own time', async () => {
      const box = await server.create({ autoResume: true, onIdle: 'pause', timeout: { idle: '300ms', paused: '700ms' } });
      assert.ok(box.expiresAt);
      assert.equal(box.terminatesAt, undefined, 'idleness does not end it');
      await until('it is paused', async () => (await status(box.id)) === 'paused', 3000);
      const paused = await get(box.id);
      assert.equal(Date.parse(paused.terminatesAt) - Date.parse(paused.pausedAt), 700);
      assert.equal((await server.exec(box.id, 'echo awake')).stdout, 'awake\n');
      await until('it has ended', async () => (await status(box.id)) === 'terminated', 5000);
      const all = (await events(box.id)).map((e) => `${e.type} ${e.cause}`);
      assert.deepEqual(all, ['created request', 'started request', 'paused idle', 'resumed call', 'paused idle', 'terminated paused']);
      assert.equal((await get(box.id)).endedBy, 'paused');
      assertRefused(await act(box.id, 'exec', { command: 'true' }), 404, 'not_found');
    });

    it('a lease ends whatever runs, and can be made longer or shorter', async () => {
      const box = await server.create({ timeout: { lease: '400ms' } });
      assert.ok(Date.parse(box.leaseEndsAt) - Date.now() <= 400);
      const longer = await change(box.id, { timeout: { lease: '1h' } });
      assert.ok(Date.parse(longer.json.leaseEndsAt) - Date.now() > 3500000, longer.text);
      const running = server.exec(box.id, 'sleep 100');
      await sleep(500);
      assert.equal(await status(box.id), 'running');
      await change(box.id, { timeout: { lease: '100ms' } });
      assert.equal((await running).status, 'cancelled');
      await until('it has ended', async () => (await status(box.id)) === 'terminated');
      assert.equal((await get(box.id)).endedBy, 'lease');
    });

    it('a lease may pause or suspend, and a resume begins it anew', async () => {
      for (const [onLease, state] of [['pause', 'paused'], ['suspend', 'suspended']]) {
        const box = await server.create({ onLease, timeout: { lease: '300ms' } });
        await until(`it is ${state}`, async () => (await status(box.id)) === state, 3000);
        const again = (await resume(box.id)).json;
        assert.ok(Date.parse(again.leaseEndsAt) > Date.now() + 100, JSON.stringify(again));
        await until(`it is ${state} again`, async () => (await status(box.id)) === state, 3000);
        await change(box.id, { timeout: { lease: '0s' } });
        assert.equal((await resume(box.id)).json.leaseEndsAt, undefined);
        await sleep(400);
        assert.equal(await status(box.id), 'idle');
        await remove(server, box.id);
      }
    });
  });

  describe('changes', () => {
    it('are seen at once, by the next command and after a crash', async () => {
      const box = await server.create({ name: 'before', env: { A: '1', B: '2' }, metadata: { a: 1 } });
      const answer = await change(box.id, { name: 'after', description: 'd', env: { A: null, C: '3', B: 'two' }, metadata: { b: [2] }, timeout: { idle: '1h', execution: '7s' }, autoResume: true, onIdle: 'suspend' });
      assert.equal(answer.status, 200, answer.text);
      assert.equal((await server.exec(box.id, 'echo "$A-$B-$C"')).stdout, '-two-3\n');
      const other = await server.create({ name: 'before' });
      assertRefused(await change(other.id, { name: 'after' }), 409, 'name_taken', 'name');
      await server.crash();
      await server.launch();
      const now = await get(box.id);
      assert.deepEqual([now.name, now.description, now.env, now.metadata, now.timeout, now.autoResume, now.onIdle],
        ['after', 'd', { B: 'two', C: '3' }, { b: [2] }, { idle: '1h', execution: '7s' }, true, 'suspend']);
      await remove(server, box.id);
      await remove(server, other.id);
    });
  });

  describe('events', () => {
    it('are listed in either direction, by pages, and are kept after the end', async () => {
      const box = await server.create();
      for (let i = 0; i < 5; i++) {
        await pause(box.id);
        await resume(box.id);
      }
      await remove(server, box.id);
      assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}`), 404, 'not_found');
      assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}?includeDeleted=true`)).json.status, 'deleted');
      const numbers = [];
      for (let cursor = ''; ; ) {
        const page = (await server.request('GET', `/v1/sandboxes/${box.id}/events?limit=4${cursor}`)).json;
        numbers.push(...page.events.map((e) => e.number));
        if (!page.nextCursor) break;
        cursor = `&cursor=${page.nextCursor}`;
      }
      assert.deepEqual(numbers, Array.from({ length: 13 }, (_, i) => i + 1));
      const backwards = await events(box.id, '?direction=desc&limit=3');
      assert.deepEqual(backwards.map((e) => [e.number, e.type]), [[13, 'deleted'], [12, 'resumed'], [11, 'paused']]);
      const older = await events(box.id, '?direction=desc&limit=3&cursor=11');
      assert.deepEqual(older.map((e) => e.number), [10, 9, 8]);
      const started = (await events(box.id, '?limit=2'))[1];
      assert.equal(started.details.bootId, box.bootId);
    });

    it('are somebody else\'s secret', async () => {
      const box = await server.create();
      const other = await Server.start({ args: ['--api-key', 'red=bnk_0123456789abcdef0123'] });
      try {
        const red = { key: 'bnk_0123456789abcdef0123' };
        const mine = await other.create();
        for (const path of ['events', 'usage', 'metrics'])
          assertRefused(await other.request('GET', `/v1/sandboxes/${mine.id}/${path}`, undefined, red), 404, 'not_found');
        for (const path of ['pause', 'resume'])
          assertRefused(await other.request('POST', `/v1/sandboxes/${mine.id}/${path}`, undefined, red), 404, 'not_found');
        assertRefused(await other.request('PATCH', `/v1/sandboxes/${mine.id}`, { name: 'x' }, red), 404, 'not_found');
        await other.request('DELETE', `/v1/sandboxes/${mine.id}`);
        assertRefused(await other.request('GET', `/v1/sandboxes/${mine.id}?includeDeleted=true`, undefined, red), 404, 'not_found');
      } finally {
        await finish(other);
      }
      await remove(server, box.id);
    });

    it('are streamed as they come, until the end, as NDJSON and SSE', async () => {
      const box = await server.create();
      const follow = async (accept, headers = {}) => {
        const response = await fetch(`${server.url}/v1/sandboxes/${box.id}/events`, { headers: { authorization: `Bearer ${server.key}`, accept, ...headers } });
        assert.equal(response.status, 200);
        return response.text();
      };
      const lines = follow('application/x-ndjson');
      const sse = follow('text/event-stream', { 'last-event-id': '2' });
      await sleep(50);
      await pause(box.id);
      await resume(box.id, { memory: false });
      await remove(server, box.id);
      const seen = (await lines).trim().split('\n').map((l) => JSON.parse(l));
      assert.deepEqual(seen.map((e) => e.type), ['created', 'started', 'paused', 'started', 'resumed', 'deleted']);
      assert.deepEqual([...(await sse).matchAll(/^id: (\d+)\nevent: (\w+)\n/gm)].map((m) => `${m[1]} ${m[2]}`), ['3 paused', '4 started', '5 resumed', '6 deleted']);
      const late = (await follow('application/x-ndjson')).trim().split('\n').map((l) => JSON.parse(l).number);
      assert.deepEqual(late, [1, 2, 3, 4, 5, 6], 'of one that is gone everything, and then the end');
    });

    it('tell of memory that ran out, and why a sandbox failed', async () => {
      const box = await server.create({ resources: { memory: '64Mi' } });
      const r = await server.exec(box.id, 'head -c 200m /dev/zero | tail');
      await until('it is told', async () => (await types(box.id)).includes('oom'));
      const oom = (await events(box.id)).find((e) => e.type === 'oom');
      assert.equal(oom.details.executionId, r.executionId);
      process.kill(hostPids(server, box.id).sort((a, b) => a - b)[0], 'SIGKILL');
      await until('it has failed', async () => (await status(box.id)) === 'failed');
      const failed = (await events(box.id)).find((e) => e.type === 'failed');
      assert.match(failed.details.reason, /init/);
      assert.equal((await resume(box.id)).json.status, 'idle', 'a failed one can be booted again');
      assert.equal((await server.exec(box.id, 'echo back')).stdout, 'back\n');
      await remove(server, box.id);
    });
  });

  describe('usage', () => {
    it('counts cpu time over boots, and is kept after the end', async () => {
      const box = await server.create();
      const usage = async () => (await server.request('GET', `/v1/sandboxes/${box.id}/usage`)).json;
      const burn = 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done';
      const spent = (await server.exec(box.id, `${burn}; cat /proc/self/stat /proc/$$/stat | tail -n 1 | cut -d" " -f14`)).stdout * 10;
      const first = await usage();
      assert.ok(spent > 0 && first.cpuTimeMs >= spent && first.cpuTimeMs < spent + 5000, JSON.stringify([spent, first]));
      assert.ok(first.memoryBytes > 0 && first.pids >= 1);
      await pause(box.id, { memory: false });
      const suspended = await usage();
      assert.ok(suspended.cpuTimeMs >= first.cpuTimeMs && suspended.memoryBytes === 0, JSON.stringify(suspended));
      await resume(box.id);
      await server.exec(box.id, burn);
      const second = await usage();
      assert.ok(second.cpuTimeMs >= first.cpuTimeMs + spent / 2, JSON.stringify([spent, first, second]));
      await remove(server, box.id);
      await until('the account is closed', async () => (await usage()).cpuTimeMs >= second.cpuTimeMs);
      assert.ok((await usage()).endedAt);
      const { samples } = (await server.request('GET', `/v1/sandboxes/${(await server.create()).id}/metrics?start=0&end=1`)).json;
      assert.deepEqual(samples, []);
    });
  });

  describe('the command line', () => {
    const cli = (...args) => {
      const r = server.cli(args);
      assert.equal(r.status, 0, `bunker ${args.join(' ')}: ${r.stderr}`);
      return r.stdout;
    };

    it('makes, pauses, wakes, resumes, extends, tells and measures', async () => {
      const id = cli('create', '--name', 'cli', '--idle-timeout', '1h', '--on-idle', 'pause', '--lease', '2h', '--on-lease', 'suspend', '--paused-timeout', '24h', '--auto-resume').trim();
      const made = await get(id);
      assert.deepEqual([made.timeout, made.onIdle, made.onLease, made.autoResume], [{ idle: '1h', paused: '24h', lease: '2h' }, 'pause', 'suspend', true]);
      assert.match(cli('pause', 'cli'), new RegExp(`^${id} paused, ends at 20`));
      assert.equal(cli('exec', 'cli', '--', 'echo', 'woken'), 'woken\n');
      assert.match(cli('pause', '--disk-only', 'cli'), /suspended/);
      assert.match(cli('resume', 'cli'), /idle/);
      assert.equal(JSON.parse(cli('resume', '--reboot', '--json', 'cli')).status, 'idle', 'what is awake stays so');
      assert.equal(JSON.parse(cli('extend', '--json', 'cli', '3h')).timeout.lease, '3h');
      assert.match(cli('usage', 'cli'), /cpu time\s+[\d.]+ s/);
      const lines = cli('events', 'cli').trim().split('\n').map((l) => l.split(/\s+/).slice(1, 3).join(' '));
      assert.deepEqual(lines, ['created request', 'started request', 'paused request', 'resumed call', 'suspended request', 'started request', 'resumed request', 'updated request']);
      cli('rm', 'cli');
      assert.match(cli('events', '--follow', id), /deleted\s+request/);
      assert.ok('cpuTimeMs' in JSON.parse(cli('usage', '--json', id)));
      const wrong = server.cli(['extend', 'cli']);
      assert.equal(wrong.status, 2);
      assert.equal(server.cli(['pause', 'nobody']).status, 1);
    });
  });

  describe('races', () => {
    it('pause, resume, exec and delete in every order leave no sandbox in between', async () => {
      const allowed = new Set([200, 204, 404, 409]);
      for (let round = 0; round < (LONG ? 60 : 12); round++) {
        const box = await server.create({ autoResume: round % 2 === 0 });
        const calls = [];
        for (let i = 0; i < 24; i++) {
          const kind = (i * 7 + round * 3) % 6;
          calls.push(
            kind === 0 ? pause(box.id)
            : kind === 1 ? pause(box.id, { memory: false })
            : kind === 2 ? resume(box.id, { memory: round % 3 !== 0 })
            : kind === 3 ? change(box.id, { metadata: { i } })
            : act(box.id, 'exec', { command: 'true' }),
          );
          if (i === 16 && round % 4 === 3) calls.push(server.request('DELETE', `/v1/sandboxes/${box.id}`));
        }
        for (const answer of await Promise.all(calls)) assert.ok(allowed.has(answer.status), answer.text);
        if (await exists(server, box.id)) {
          assert.equal((await resume(box.id)).json.status, 'idle');
          assert.equal((await server.exec(box.id, 'echo fine')).stdout, 'fine\n');
          await remove(server, box.id);
        }
      }
    });

    it('delete works in every state', async () => {
      for (const prepare of [
        async () => {}, (id) => pause(id), (id) => pause(id, { memory: false }),
        (id) => void pause(id), (id) => void pause(id, { memory: false }),
        async (id) => (await pause(id), void resume(id)), async (id) => (await pause(id, { memory: false }), void resume(id)),
      ]) {
        const box = await server.create();
        await prepare(box.id);
        await remove(server, box.id);
        assert.equal(await exists(server, box.id), false);
      }
    });
  });

  describe('crashes', () => {
    const die = {
      'kill -9 of both': async () => (await server.crash(), server.launch()),
      'kill -9 of the front': async () => {
        const front = server.frontPid;
        process.kill(front, 'SIGKILL');
        await until('there is another front', () => server.frontPid && server.frontPid !== front);
        server.renewAgent();
      },
    };
    for (const [name, crash] of Object.entries(die))
      it(`${name}: paused stays paused, suspended stays suspended, and both go on`, async () => {
        const box = await server.create({ autoResume: true });
        const running = server.stream(`/v1/sandboxes/${box.id}/exec`, { command: 'for i in 1 2 3 4 5 6; do echo $i >> ~/out; sleep 0.1; done', timeout: '5s' });
        await sleep(150);
        await pause(box.id);
        const other = await server.create();
        await server.exec(other.id, 'echo kept > ~/file');
        await pause(other.id, { memory: false });
        const pids = hostPids(server, box.id);
        await crash();
        await (await running).close();
        assert.equal(await status(box.id), 'paused');
        assert.equal(await status(other.id), 'suspended');
        assert.deepEqual(hostPids(server, box.id), pids);
        await sleep(200);
        assert.equal((await server.exec(box.id, 'sleep 0.8; cat ~/out')).stdout, '1\n2\n3\n4\n5\n6\n');
        assertRefused(await act(other.id, 'exec', { command: 'true' }), 409, 'paused');
        assert.equal((await resume(other.id)).json.status, 'idle');
        assert.equal((await server.exec(other.id, 'cat ~/file')).stdout, 'kept\n');
        await remove(server, box.id);
        await remove(server, other.id);
      });

    it('a reboot: what was suspended or paused is suspended, what ran has failed, and all of it can be booted', async () => {
      const [suspended, paused, ran] = await Promise.all([server.create(), server.create(), server.create()]);
      for (const box of [suspended, paused, ran]) await server.exec(box.id, `echo ${box.id} > ~/file; sync`);
      await pause(suspended.id, { memory: false });
      await pause(paused.id);
      const pids = [paused, ran].flatMap((box) => hostPids(server, box.id));
      await server.crash();
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      await sleep(50);
      await server.launch();
      assert.equal(await status(suspended.id), 'suspended');
      assert.equal(await status(paused.id), 'suspended');
      assert.equal(await status(ran.id), 'failed');
      for (const box of [suspended, paused, ran]) {
        const again = await resume(box.id);
        assert.equal(again.json.status, 'idle', again.text);
        assert.notEqual(again.json.bootId, box.bootId);
        assert.equal((await server.exec(box.id, 'cat ~/file')).stdout, `${box.id}\n`);
        await remove(server, box.id);
      }
    });
  });
});

describe('quotas', { timeout: 60000 }, () => {
  let server;
  const red = { key: 'bnk_0123456789abcdef0123' };
  before(async () => (server = await Server.start({
    args: ['--pool', '2', '--api-key', `red=${red.key}`, '--quota', 'red=sandboxes:10', '--quota', 'sandboxes:50,memory:2Gi,cpu:3,disk:40Gi'],
  })));
  after(() => finish(server));
  const create = (body, options) => server.request('POST', '/v1/sandboxes', body, options);
  const quota = async (options) => (await server.request('GET', '/v1/quota', undefined, options)).json;

  it('200 creates at once with a quota of 10 give exactly 10', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, () => create({}, red)));
    const made = answers.filter((a) => a.status === 201).map((a) => a.json.id);
    assert.equal(made.length, 10);
    for (const a of answers) if (a.status !== 201) assertRefused(a, 429, 'quota_exceeded');
    assert.deepEqual((await quota(red)).sandboxes, { used: 10, limit: 10 });
    await Promise.all(made.map((id) => server.request('DELETE', `/v1/sandboxes/${id}`, undefined, red)));
    assert.equal((await quota(red)).sandboxes.used, 0);
  });

  it('sums of memory, cpu and disk are exact, too', async () => {
    for (const [resources, fit] of [[{ memory: '300Mi', cpu: '10m' }, 4], [{ memory: '64Mi', cpu: '700m' }, 4]]) {
      const answers = await Promise.all(Array.from({ length: 40 }, () => create({ resources })));
      const made = answers.filter((a) => a.status === 201).map((a) => a.json.id);
      const expected = resources.memory === '300Mi' ? 6 : fit;
      assert.ok(made.length === Math.min(expected, 4), `${made.length} were made`); // a disk of 10Gi each: 4 fit
      await Promise.all(made.map((id) => remove(server, id)));
    }
    assert.deepEqual((await quota()).memory, { used: '0', limit: '2Gi' });
  });

  it('a suspended one gives its memory back, and needs room to come back', async () => {
    const big = { resources: { memory: '1536Mi' } };
    const first = (await create(big)).json;
    assertRefused(await create(big), 429, 'quota_exceeded');
    await server.request('POST', `/v1/sandboxes/${first.id}/pause`);
    assertRefused(await create(big), 429, 'quota_exceeded');
    await server.request('POST', `/v1/sandboxes/${first.id}/pause`, { memory: false });
    const second = await create(big);
    assert.equal(second.status, 201, second.text);
    assertRefused(await server.request('POST', `/v1/sandboxes/${first.id}/resume`), 429, 'quota_exceeded');
    assert.equal((await server.request('GET', `/v1/sandboxes/${first.id}`)).json.status, 'suspended');
    await remove(server, second.json.id);
    assert.equal((await server.request('POST', `/v1/sandboxes/${first.id}/resume`)).status, 200);
    await remove(server, first.id);
  });

  it('a call that would wake one for which there is no room is refused, and nothing dies of it', async () => {
    const big = { resources: { memory: '1536Mi' } };
    const asleep = (await create({ ...big, autoResume: true })).json;
    await server.request('POST', `/v1/sandboxes/${asleep.id}/pause`, { memory: false });
    const other = (await create(big)).json;
    const front = server.frontPid;
    assertRefused(await server.request('POST', `/v1/sandboxes/${asleep.id}/exec`, { command: 'true' }), 429, 'quota_exceeded');
    assertRefused(await server.request('GET', `/v1/sandboxes/${asleep.id}/files/etc/hosts`), 429, 'quota_exceeded');
    assert.equal(server.frontPid, front);
    await remove(server, other.id);
    const woken = await server.request('POST', `/v1/sandboxes/${asleep.id}/exec`, { command: 'echo up' });
    assert.equal(woken.json?.stdout, 'up\n', woken.text);
    await remove(server, asleep.id);
  });

  it('commands in a row at the quota are not refused', async () => {
    const fill = (await Promise.all(Array.from({ length: 9 }, () => create({}, red)))).map((a) => a.json.id);
    for (let i = 0; i < 10; i++) {
      const answer = await server.request('POST', '/v1/run', { command: 'true' }, red);
      assert.equal(answer.status, 200, answer.text);
    }
    await Promise.all(fill.map((id) => server.request('DELETE', `/v1/sandboxes/${id}`, undefined, red)));
  });
});
