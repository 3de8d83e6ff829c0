// alone: the host answers in milliseconds or it does not.
// E: resources. Whatever a sandbox takes, the host, the server and the neighbours go on.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { sleep, until } from '../lib/server.mjs';
import { Arena, LONG, compile, random, runOnHost, showTimes, summary } from './arena.mjs';

const HEALTH_MS = 100;
const EXEC_MS = 500;
const FRONT_MB = 64;

const processesWith = (mark) => spawnSync('pgrep', ['-f', mark], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean);

/** Pages that TCP and UDP hold, on the whole host: what they take is not where a process could be seen to have it. */
function socketMemory() {
  const text = readFileSync('/proc/net/sockstat', 'utf8');
  return [...text.matchAll(/^(?:TCP|UDP):.* mem (\d+)/gm)].reduce((sum, m) => sum + Number(m[1]) * 4096, 0);
}

describe('E resources', () => {
  let arena;
  let bystander;
  const inside = (name) => `/home/user/attempts/${name}`;

  before(async () => {
    arena = await Arena.open({ args: ['--pool', '0'], programs: ['bombs', 'hogs', 'limits'] });
    bystander = await arena.sandbox();
  });
  after(() => arena?.close());

  /** Runs a bomb in a sandbox of its own while the probes go on; calls watch() at its height. */
  async function explode(t, bomb, resources, watch = () => {}) {
    const box = await arena.sandbox({ resources });
    try {
      const probe = arena.probe(bystander);
      const run = arena.run(box, 'bombs', [bomb], { timeout: '1500ms' }).catch((error) => ({ status: error.message }));
      await sleep(1200);
      const seen = await watch(box);
      const result = await run;
      const times = await probe.stop();
      t.diagnostic(`${bomb}: ${result.status}; health ${showTimes(times.health)}; exec ${showTimes(times.exec)}`);
      assert.ok(times.health.count > 0 && times.health.median < HEALTH_MS, `health took ${times.health.median} ms`);
      assert.ok(times.exec.count > 0 && times.exec.median < EXEC_MS, `exec elsewhere took ${times.exec.median} ms`);
      const status = (await arena.server.request('GET', `/v1/sandboxes/${box.id}`)).json;
      return { result, seen, status };
    } finally {
      const from = Date.now();
      assert.equal((await arena.remove(box)).status, 204, 'it could not be deleted');
      assert.ok(Date.now() - from < 5000, `deleting took ${Date.now() - from} ms`);
    }
  }

  for (const bomb of ['fork', 'thread', 'vfork', 'zombie'])
    it(`E57 a ${bomb} bomb`, async (t) => {
      const { result, status } = await explode(t, bomb, { pids: 200, memory: '128Mi' });
      assert.match(result.status, /timeout|completed|failed/);
      assert.notEqual(status.status, 'failed', status.statusReason);
    });

  it('E57 after a fork bomb has timed out nothing of it is left', async () => {
    const box = await arena.sandbox({ resources: { pids: 200 } });
    const r = await arena.run(box, 'bombs', ['fork'], { timeout: '500ms' });
    assert.equal(r.status, 'timeout');
    await until('the bomb is gone', async () => {
      const answer = await arena.server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: ['pgrep', '-c', 'bombs'] });
      return answer.status === 200 && answer.json.stdout.trim() === '0';
    });
    await arena.remove(box);
  });

  it('E57 a sandbox cannot be given all the process numbers of the host', async () => {
    const most = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
    const pids = Math.min(most, 32768);
    const r = await arena.server.request('POST', '/v1/sandboxes', { resources: { pids } });
    if (r.status === 201) await arena.remove(r.json);
    if (pids < most / 2) return;
    assert.equal(r.status, 400, `${pids} of the host's ${most} were given to one sandbox`);
  });

  for (const bomb of ['touch', 'tmpfs', 'memfd', 'pipes', 'unix', 'dentries', 'epoll', 'page-tables', 'mlock'])
    it(`E58 a memory bomb: ${bomb}`, async (t) => {
      // /dev/shm alone may hold 64 MiB, and what is in it stays when its writer is killed.
      const memory = bomb === 'tmpfs' ? '128Mi' : '64Mi';
      const { result, status } = await explode(t, bomb, { pids: 64, memory });
      if (bomb === 'mlock') assert.ok(Number(result.stdout) <= 8 << 20, `${result.stdout} bytes were locked`);
      assert.notEqual(status.status, 'failed', `the whole sandbox died of it: ${status.statusReason}`);
    });

  for (const bomb of ['tcp', 'udp'])
    it(`E58 a memory bomb: ${bomb} buffers count against the limit`, async (t) => {
      const limit = 64 << 20;
      const from = socketMemory();
      const { seen } = await explode(t, bomb, { pids: 64, memory: String(limit) }, () => socketMemory() - from);
      t.diagnostic(`${bomb}: the host's sockets held ${(seen / (1 << 20)).toFixed(0)} MiB more`);
      assert.ok(seen < limit + (16 << 20), `a sandbox of 64 MiB holds ${(seen / (1 << 20)).toFixed(0)} MiB in sockets`);
    });

  for (const kind of ['inotify', 'signals', 'timers', 'queues', 'aio', 'terminals'])
    it(`E58 a sandbox that takes all ${kind} it can get leaves some for the host and for others`, async (t) => {
      const one = async () => ({
        host: (await runOnHost(compile('hogs'), [kind, 'one'])).stdout.trim(),
        neighbour: (await arena.run(bystander, 'hogs', [kind, 'one'])).stdout.trim(),
      });
      const before_ = await one();
      // Inside, refusing them altogether is fine.
      assert.match(before_.host, /^1 /, 'the control: there is none to begin with');
      const box = await arena.sandbox({ resources: { openFiles: 16384 } });
      try {
        const stream = await arena.server.stream(`/v1/sandboxes/${box.id}/exec`, {
          command: [inside('hogs'), kind, 'take'],
          timeout: '30s',
        });
        let taken = '';
        for await (const event of stream.events)
          if (event.type === 'stdout') {
            taken = event.data.trim();
            break;
          }
        t.diagnostic(`taken: ${taken}`);
        assert.deepEqual(await one(), before_);
        stream.close();
      } finally {
        await arena.remove(box);
      }
    });

  it('E59 four sandboxes at full speed', async (t) => {
    const boxes = await Promise.all([1, 2, 3, 4].map(() => arena.sandbox()));
    const probe = arena.probe(bystander);
    const runs = boxes.map((box) => arena.run(box, 'bombs', ['spin'], { timeout: '3s' }));
    await Promise.all(runs);
    const times = await probe.stop();
    t.diagnostic(`health ${showTimes(times.health)}; exec ${showTimes(times.exec)}`);
    assert.ok(times.health.median < HEALTH_MS, `health took ${times.health.median} ms`);
    await Promise.all(boxes.map((box) => arena.remove(box)));
  });

  /** Answers to `count` calls, one after the other, in milliseconds. */
  async function timed(count, call) {
    const times = [];
    for (let i = 0; i < count; i++) {
      const from = performance.now();
      await call();
      times.push(performance.now() - from);
    }
    return summary(times);
  }

  it('E59 a sandbox that burns its processor time goes on answering', async (t) => {
    const busy = async (cpu) => {
      const box = await arena.sandbox({ resources: { cpu } });
      for (let i = 0; i < 2; i++) await arena.server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'while :; do :; done' });
      return box;
    };
    const one = await busy('1');
    const exec = await timed(200, () => arena.server.exec(one.id, ['true']));
    const none = await busy('10m');
    const read = await timed(50, () => arena.server.request('GET', `/v1/sandboxes/${none.id}/files?path=/etc/hostname`));
    t.diagnostic(`exec with one core: ${showTimes(exec)}; reading a file with a hundredth of one: ${showTimes(read)}`);
    assert.ok(exec.median < 30, `exec took ${exec.median} ms`);
    assert.ok(read.median < 30, `reading took ${read.median} ms: file workers wait for the sandbox's time`);
    await Promise.all([one, none].map((box) => arena.remove(box)));
  });

  /** The front's memory at its highest while action runs. */
  async function frontPeak(action) {
    writeFileSync(`/proc/${arena.server.frontPid}/clear_refs`, '5');
    await action();
    return arena.frontMemory().peak;
  }

  const MEGABYTES = 256;
  const floods = {
    stdout: `yes | head -c ${MEGABYTES << 20}`,
    stderr: `yes | head -c ${MEGABYTES << 20} >&2`,
    'bytes that grow when they are encoded': `head -c ${MEGABYTES << 20} /dev/zero`,
    'both streams of them': `head -c ${MEGABYTES << 19} /dev/zero & head -c ${MEGABYTES << 19} /dev/zero >&2; wait`,
  };
  for (const [name, command] of Object.entries(floods))
    it(`E61 a flood of ${MEGABYTES} MB, ${name}, nobody reading along`, async (t) => {
      let result;
      const peak = await frontPeak(async () => (result = await arena.server.exec(bystander.id, { command, timeout: '60s' })));
      t.diagnostic(`front at its highest: ${peak.toFixed(1)} MB; it took ${result.durationMs} ms`);
      assert.equal(result.exitCode, 0);
      assert.equal(result.outputTruncated, true);
      assert.ok(peak < FRONT_MB, `the front took ${peak.toFixed(1)} MB`);
    });

  it('E61 eight floods at once', async (t) => {
    const command = 'head -c 8388608 /dev/zero & head -c 8388608 /dev/zero >&2; wait';
    const peak = await frontPeak(() => Promise.all([...Array(8)].map(() => arena.server.exec(bystander.id, command))));
    t.diagnostic(`front at its highest: ${peak.toFixed(1)} MB`);
    assert.ok(peak < 4 * FRONT_MB, `the front took ${peak.toFixed(1)} MB`);
  });

  it('E61 a stream that nobody reads stops the process, not the server', async (t) => {
    const peak = await frontPeak(async () => {
      const stream = await arena.server.stream(`/v1/sandboxes/${bystander.id}/exec`, { command: 'yes', timeout: '20s' });
      stream.response.pause();
      await sleep(2000);
      const health = await arena.server.request('GET', '/health');
      assert.equal(health.status, 200);
      stream.close();
    });
    t.diagnostic(`front at its highest: ${peak.toFixed(1)} MB`);
    assert.ok(peak < FRONT_MB, `the front took ${peak.toFixed(1)} MB`);
    await arena.server.exec(bystander.id, { command: 'pkill -x yes; true' });
  });

  it('E61 a slow reader of a stream gets every byte, and the server stays small', async (t) => {
    const total = 24 << 20;
    let received = 0;
    const peak = await frontPeak(async () => {
      const stream = await arena.server.stream(`/v1/sandboxes/${bystander.id}/exec`, { command: `yes | head -c ${total}`, timeout: '60s' });
      for await (const event of stream.events) {
        if (event.type !== 'stdout') continue;
        assert.equal(event.offset, received);
        received += event.data.length;
        await sleep(2);
      }
    });
    t.diagnostic(`front at its highest: ${peak.toFixed(1)} MB`);
    assert.equal(received, total);
    assert.ok(peak < FRONT_MB, `the front took ${peak.toFixed(1)} MB`);
  });

  it('E61 two million writes of one byte', async (t) => {
    const rounds = LONG ? 10 : 1;
    const peak = await frontPeak(async () => {
      for (let i = 0; i < rounds; i++) {
        const r = await arena.run(bystander, 'bombs', ['single-bytes'], { timeout: '60s' });
        assert.equal(r.exitCode, 0);
        assert.equal(r.stdout.length + r.stderr.length, 1000000);
      }
    });
    t.diagnostic(`front at its highest: ${peak.toFixed(1)} MB`);
    assert.ok(peak < FRONT_MB, `the front took ${peak.toFixed(1)} MB`);
  });

  it('E62 a process in the background that holds stdout does not hold the answer', async () => {
    const box = await arena.sandbox();
    const mark = `held-${random(6)}`;
    const from = Date.now();
    const r = await arena.server.exec(box.id, { command: ['bash', '-c', `exec -a ${mark} ${inside('bombs')} holds-stdout`], timeout: '20s' });
    assert.ok(Date.now() - from < 10000, `the answer took ${Date.now() - from} ms`);
    assert.equal(r.exitCode, 0);
    assert.ok(r.stdout.startsWith('from the main process\n'));
    assert.equal(processesWith(mark).length, 1, 'the control: there is no process in the background');
    await sleep(300);
    assert.equal(processesWith(mark).length, 1, 'it died of writing to a pipe that somebody should read');
    await arena.remove(box);
    await until('it is gone', () => processesWith(mark).length === 0, 2000);
  });

  it('E63 a daemon that left its session and ignores signals goes with the sandbox', async () => {
    const box = await arena.sandbox();
    const mark = `daemon-${random(6)}`;
    const r = await arena.server.exec(box.id, { command: ['bash', '-c', `exec -a ${mark} ${inside('bombs')} daemon`], timeout: '20s' });
    assert.equal(r.exitCode, 0);
    assert.equal(processesWith(mark).length, 1, 'the control: there is no daemon');
    const pid = Number(processesWith(mark)[0]);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.kill(pid, signal);
    assert.equal(processesWith(mark).length, 1, 'the control: it heeds signals');
    await arena.remove(box);
    assert.equal(processesWith(mark).length, 0, 'it outlived its sandbox');
  });

  it('E63 a daemon goes with the execution that ran out of time', async () => {
    const box = await arena.sandbox();
    const mark = `daemon-${random(6)}`;
    const r = await arena.server.exec(box.id, {
      command: ['bash', '-c', `exec -a ${mark} ${inside('bombs')} daemon-and-wait`],
      timeout: '1s',
    });
    assert.equal(r.status, 'timeout');
    await until('it is gone', () => processesWith(mark).length === 0, 2000);
    assert.equal((await arena.server.exec(box.id, ['true'])).exitCode, 0, 'the sandbox went with it');
    await arena.remove(box);
  });

  it('E64 priorities and limits cannot be raised', async (t) => (await arena.trial(bystander, 'limits')).check(t, 64));

  it('E64 a sandbox does not inherit the priority and the score of the server', async () => {
    const warden = arena.server.wardenPid;
    const score = `/proc/${warden}/oom_score_adj`;
    const before_ = readFileSync(score, 'utf8');
    let box;
    try {
      setPriority(warden, 3);
      writeFileSync(score, '100');
      box = await arena.sandbox();
      const state = async (sandbox) => (await arena.server.exec(sandbox.id, 'nice; cat /proc/self/oom_score_adj')).stdout;
      assert.equal(await state(box), await state(bystander));
    } finally {
      setPriority(warden, 0);
      writeFileSync(score, before_);
      if (box) await arena.remove(box);
    }
  });

  it('E the canaries are unharmed', () => arena.canaries.assertUnharmed());
});
