import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { Server, safeReaddir, sleep, until } from '../lib/server.mjs';
import {
  LONG, assertRefused, clear, execution, exists, finish, hostPids, initPid, isAlive, killServer, list, metric, remove, sandboxesInKernel,
  startBeside, startCommand, startTime,
} from './support.mjs';

/** Prints `lines` numbered lines, with a pause every `every` of them. */
const counter = (lines, every, pause, stream = 'stdout') => [
  'python3',
  '-c',
  `
import sys, time
out = sys.${stream}
for i in range(${lines}):
    out.write('line %08d of a long output, byte by byte\\n' % i)
    if i % ${every} == 0:
        out.flush()
        time.sleep(${pause})
`,
];
const counted = (lines) => Array.from({ length: lines }, (_, i) => `line ${String(i).padStart(8, '0')} of a long output, byte by byte\n`).join('');

const sameText = (actual, expected) => {
  if (actual === expected) return;
  let at = 0;
  while (actual[at] === expected[at]) at++;
  assert.fail(`${actual.length} instead of ${expected.length} bytes; different from byte ${at}: ${JSON.stringify(actual.slice(at, at + 80))}`);
};

describe('restart', () => {
  let server;
  before(async () => {
    server = await Server.start();
  });
  after(() => finish(server, { killed: true }));
  const tidy = async () => {
    if (server.child.exitCode !== null || server.child.signalCode !== null) await restart();
    await clear(server);
  };
  afterEach(tidy);

  const sameResult = async ({ startedAt, ...answered }) => {
    const { startedAt: when, ...now } = await execution(server, answered.executionId);
    assert.deepEqual(now, answered);
    assert.ok(Math.abs(Date.parse(when) - Date.parse(startedAt)) < 1000);
  };
  const restart = async (args = []) => {
    server.args = args;
    http.globalAgent.destroy(); // Connections to the dead server are not to be used again.
    await server.launch();
  };
  const killFront = async () => {
    const old = server.frontPid;
    process.kill(old, 'SIGKILL');
    server.agent.destroy();
    http.globalAgent.destroy();
    await until('the warden has started a new front', () => server.frontPid && server.frontPid !== old);
    await until('it answers', () => server.request('GET', '/health').then((a) => a.status === 200, () => false));
  };
  it('a process of a sandbox that was paused, and is deleted after a restart, has an end', async () => {
    const box = await server.create();
    const { json } = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'sleep 300' });
    await server.request('POST', `/v1/sandboxes/${box.id}/pause`);
    await killFront();
    await remove(server, box.id);
    const end = await execution(server, json.id);
    assert.equal(end.status, 'cancelled');
    assert.equal(end.exitCode, 137);
  });

  const deaths = {
    'kill -9 of both': async () => {
      await killServer(server);
      await restart();
    },
    'kill -9 of the front': killFront,
    'kill -9 of the warden': async () => {
      await killServer(server, { both: false });
      await restart();
    },
    SIGTERM: async () => {
      await server.stop();
      await restart();
    },
  };

  for (const [name, die] of Object.entries(deaths))
    describe(`after ${name}`, () => {
      /* A warden gives up when its front dies again and again; each test here is a new start for it. */
      if (die === killFront) beforeEach(deaths.SIGTERM);
      afterEach(tidy);

      it('sandboxes are the same: ids, options, processes and files', async () => {
        const made = await server.create({
          name: 'survivor', description: 'd', project: 'p', metadata: { deep: { er: [1] } }, env: { KEPT: 'yes' }, workdir: '/var/tmp', user: 'root',
          resources: { memory: '200Mi', cpu: '300m', pids: 77, openFiles: 99 }, timeout: { idle: '1h', execution: '5s' },
        });
        await server.exec(made.id, 'echo content > /usr/kept; (setsid sleep 1000 >/dev/null 2>&1 &)');
        const view = async () => {
          const { lastActiveAt, expiresAt, terminatesAt, startupMs, ...rest } = (await server.request('GET', `/v1/sandboxes/${made.id}`)).json;
          return rest;
        };
        const before = await view();
        const pids = hostPids(server, made.id).map((pid) => [pid, startTime(pid)]);
        assert.ok(pids.length >= 2);
        await die();
        assert.deepEqual(await view(), before);
        assert.deepEqual(hostPids(server, made.id).map((pid) => [pid, startTime(pid)]), pids);
        const r = await server.exec(made.id, 'id -u; pwd; echo $KEPT; cat /usr/kept; ulimit -n');
        assert.equal(r.stdout, '0\n/var/tmp\nyes\ncontent\n99\n');
        assertRefused(await server.request('POST', '/v1/sandboxes', { name: 'survivor' }), 409, 'name_taken', 'name');
      });

      it('a command that was running goes on, and its whole output can be fetched', async () => {
        const { id: box } = await server.create();
        /* SIGTERM waits two seconds for answers under way. */
        const seconds = name === 'SIGTERM' ? 3.5 : 1.5;
        const { id, pid, stream } = await startCommand(server, box, { command: `echo before $$; sleep ${seconds}; echo after $$; echo e >&2; exit 9` });
        stream.response.on('error', () => {});
        const host = hostPids(server, box).slice(1).map((p) => [p, startTime(p)]);
        await sleep(200);
        await die();
        const now = await execution(server, id);
        assert.equal(now.status, 'running');
        assert.deepEqual(hostPids(server, box).slice(1).filter((p) => p === host[0][0]).map((p) => [p, startTime(p)]), [host[0]]);
        assert.equal((await server.request('GET', `/v1/sandboxes/${box}`)).json.status, 'running');
        const r = await execution(server, id, '?wait=20s');
        assert.deepEqual([r.status, r.exitCode, r.stdout, r.stderr], ['completed', 9, `before ${pid}\nafter ${pid}\n`, 'e\n']);
        assert.ok(r.durationMs > seconds * 1000 - 100 && r.durationMs < 10000, `${r.durationMs}`);
        assert.equal((await server.request('GET', `/v1/sandboxes/${box}`)).json.executions, 1);
      });

      it('output of 5 MB that was being written is complete, nothing twice', async () => {
        const { id: box } = await server.create({ resources: { cpu: 2 } });
        const lines = 110000;
        const { id, stream } = await startCommand(server, box, { command: counter(lines, 5000, 0.06) });
        stream.response.on('error', () => {});
        stream.response.resume();
        await sleep(500);
        await die();
        const r = await execution(server, id, '?wait=60s');
        assert.equal(r.status, 'completed');
        sameText(r.stdout, counted(lines));
        assert.equal(r.outputTruncated, false);
      });

      it('results that had been answered are still there', async () => {
        const { id: box } = await server.create();
        const results = [];
        for (let i = 0; i < 15; i++) results.push(await server.exec(box, `echo ${i}; seq 1 ${i * 1500}; exit ${i}`));
        await die();
        for (const r of results) await sameResult(r);
        await until('all are counted', async () => (await server.request('GET', `/v1/sandboxes/${box}`)).json.executions === 15);
      });

      it('what was acknowledged last is kept: creations and deletions', async () => {
        const doomed = await Promise.all(Array.from({ length: 5 }, () => server.create()));
        const [made, deleted] = await Promise.all([
          Promise.all(Array.from({ length: 5 }, (_, i) => server.create({ metadata: { i } }))),
          Promise.all(doomed.map((box) => server.request('DELETE', `/v1/sandboxes/${box.id}`))),
        ]);
        for (const { status } of deleted) assert.equal(status, 204);
        await die();
        assert.deepEqual((await list(server)).map((b) => b.id).sort(), made.map((b) => b.id).sort());
        for (const box of made) assert.equal((await server.exec(box.id, 'echo ok')).stdout, 'ok\n');
      });

      it('nothing of the dead server is left over: pool, cgroups, disks, sockets', async () => {
        const { id } = await server.create();
        // What the test before has deleted is removed behind the answer; it must not be taken for an orphan.
        await until('only this one and a pool are there', async () => {
          const pooled = await metric(server, 'sandboxes_pooled');
          return pooled >= 3 && sandboxesInKernel(server).length === pooled + 1;
        });
        const orphans = sandboxesInKernel(server).filter((other) => other !== id);
        assert.ok(orphans.length >= 3);
        const processes = orphans.flatMap((other) => hostPids(server, other));
        await die();
        await until('the orphans are gone', () => sandboxesInKernel(server).every((other) => !orphans.includes(other)), 5000);
        await until('so are their processes', () => processes.every((pid) => !isAlive(pid)), 3000);
        const left = () => [server.disks('boxes'), join(server.data, 'run')].flatMap(safeReaddir).filter((file) => orphans.includes(file.slice(0, 20)));
        await until('their disks and sockets are gone', () => left().length === 0, 3000);
        await until('the trash is empty', () => safeReaddir(server.disks('trash')).length === 0, 5000);
        assert.equal(await exists(server, id), true);
      });
    });

  it('leaves no process that holds the port or the data, whatever the moment of a kill -9', async () => {
    const strays = [];
    for (let i = 0; i < 25; i++) {
      const creating = Array.from({ length: 3 }, () => server.request('POST', '/v1/sandboxes', {}).catch(() => {}));
      await sleep(Math.random() * 25);
      strays.push(...(await killServer(server)));
      await Promise.all(creating);
      await restart();
    }
    assert.deepEqual(strays, []);
  });

  it('many deaths in a row during one command lose nothing', async () => {
    const { id: box } = await server.create({ resources: { cpu: 2 } });
    const lines = 100000;
    const { id, stream } = await startCommand(server, box, { command: counter(lines, 2500, 0.08, 'stderr') });
    stream.response.on('error', () => {});
    stream.response.resume();
    for (let i = 0; i < 4; i++) {
      await sleep(350);
      await deaths[['kill -9 of the front', 'kill -9 of both'][i % 2]]();
    }
    const r = await execution(server, id, '?wait=60s');
    sameText(r.stderr, counted(lines));
  });

  it('a short output is not lost, and one that nobody was reading neither', async () => {
    const { id: box } = await server.create();
    const { id, stream } = await startCommand(server, box, { command: 'printf abc; sleep 1; printf def; sleep 0.5; printf ghi' });
    stream.close();
    await sleep(200);
    await killServer(server);
    await sleep(1600);
    await restart();
    const r = await execution(server, id, '?wait=10s');
    assert.deepEqual([r.stdout, r.exitCode], ['abcdefghi', 0]);
  });

  it('a command that ends while no server runs has its result', async () => {
    const { id: box } = await server.create();
    const { id, stream } = await startCommand(server, box, { command: 'sleep 0.6; seq 1 3000; kill -USR1 $$' });
    stream.response.on('error', () => {});
    await killServer(server);
    await sleep(1200);
    await restart();
    const r = await execution(server, id, '?wait=10s');
    assert.equal(r.stdout, Array.from({ length: 3000 }, (_, i) => `${i + 1}\n`).join(''));
    assert.deepEqual([r.exitCode, r.signal], [138, 'SIGUSR1']);
  });

  it('a timeout holds while no server runs', async () => {
    const { id: box } = await server.create();
    const { id, stream } = await startCommand(server, box, { command: 'echo x; sleep 30', timeout: '800ms' });
    stream.response.on('error', () => {});
    await killServer(server);
    await sleep(1200);
    await restart();
    const r = await execution(server, id, '?wait=10s');
    assert.deepEqual([r.timedOut, r.exitCode, r.stdout], [true, 124, 'x\n']);
    assert.ok(r.durationMs >= 800 && r.durationMs < 15000, `it was killed after ${r.durationMs} ms`);
  });

  it('a command that writes much while no server runs waits, and goes on afterwards', async () => {
    const { id: box } = await server.create();
    const { id, stream } = await startCommand(server, box, { command: counter(60000, 10000, 0.2) });
    stream.response.on('error', () => {});
    await killServer(server);
    await sleep(1500);
    await restart();
    sameText((await execution(server, id, '?wait=30s')).stdout, counted(60000));
  });

  it('an open stream breaks off instead of ending as if complete', async () => {
    const { id: box } = await server.create();
    const { stream } = await startCommand(server, box, { command: 'sleep 2' });
    const reading = (async () => {
      for await (const event of stream.events) if (event.type === 'exit') return 'exit';
      return 'a clean end';
    })().catch(() => 'broken');
    await killFront();
    assert.equal(await reading, 'broken');
  });

  it('an exec that waits for its answer is cut off by SIGTERM after a while, and goes on', async () => {
    const { id: box } = await server.create();
    const cut = server.exec(box, 'sleep 4; echo went on > /tmp/proof').then(() => 'answered', () => 'cut off');
    await until('it runs', async () => (await metric(server, 'executions_running')) === 1);
    const began = Date.now();
    await server.stop();
    assert.ok(Date.now() - began < 6000);
    assert.equal(await cut, 'cut off');
    await restart();
    await until('it went on', async () => (await server.exec(box, 'cat /tmp/proof')).stdout === 'went on\n');
  });

  it('--drain takes the sandboxes down with the server', async () => {
    const other = await startBeside(server, { args: ['--drain'] });
    try {
      const box = await other.create();
      await other.exec(box.id, '(setsid sleep 1000 >/dev/null 2>&1 &)');
      const pids = hostPids(other, box.id);
      const running = other.exec(box.id, 'sleep 60').catch(() => 'cut off');
      await until('it runs', async () => (await metric(other, 'executions_running')) === 1);
      assert.deepEqual(await other.stop(), { code: 0, signal: null });
      await running;
      assert.deepEqual(other.leftovers(), []);
      assert.deepEqual(pids.filter(isAlive), []);
      await other.launch();
      assert.deepEqual(await list(other), []);
    } finally {
      await finish(other);
    }
  });

  describe('a run that a crash interrupts', () => {
    afterEach(tidy);

    it('still finishes, its result can be fetched, and its sandbox is then removed', async () => {
      const stream = await server.stream('/v1/run', { command: 'echo one; sleep 1.2; echo two; exit 4' });
      const { value } = await stream.events.next();
      stream.response.on('error', () => {});
      stream.response.resume();
      await sleep(100);
      await killServer(server);
      await restart();
      assert.equal(await exists(server, value.sandboxId), true);
      const r = await execution(server, value.executionId, '?wait=20s');
      assert.deepEqual([r.stdout, r.exitCode], ['one\ntwo\n', 4]);
      await until('its sandbox is gone', async () => !(await exists(server, value.sandboxId)));
      await until('nothing of it is in the kernel', () => !sandboxesInKernel(server).includes(value.sandboxId));
    });

    it('and that ends while no server runs leaves no sandbox', async () => {
      const stream = await server.stream('/v1/run', { command: 'echo one; sleep 0.5; echo two' });
      const { value } = await stream.events.next();
      stream.response.on('error', () => {});
      stream.response.resume();
      await killServer(server);
      await sleep(900);
      await restart();
      const r = await execution(server, value.executionId, '?wait=20s');
      assert.equal(r.stdout, 'one\ntwo\n');
      await until('its sandbox is gone', async () => !(await exists(server, value.sandboxId)));
    });

    it('survives SIGTERM like any command', async () => {
      const stream = await server.stream('/v1/run', { command: 'sleep 3.5; echo finished' });
      const { value } = await stream.events.next();
      stream.response.on('error', () => {});
      stream.response.resume();
      await server.stop();
      await restart();
      assert.equal((await execution(server, value.executionId, '?wait=20s')).stdout, 'finished\n');
      await until('its sandbox is gone', async () => !(await exists(server, value.sandboxId)));
    });
  });

  describe('a sandbox whose init was killed', () => {
    afterEach(tidy);

    const isFailed = async (id) => (await server.request('GET', `/v1/sandboxes/${id}`)).json.status === 'failed';

    it('is failed and says why, its commands are failed, and it can be deleted', async () => {
      const { id } = await server.create({ name: 'fallen' });
      const { id: running, stream } = await startCommand(server, id, { command: 'echo there; sleep 60' });
      await sleep(100);
      process.kill(initPid(server, id), 'SIGKILL');
      await until('it is failed', () => isFailed(id), 3000);
      const box = (await server.request('GET', `/v1/sandboxes/${id}`)).json;
      assert.ok(box.statusReason.length > 0);
      let last;
      for await (const event of stream.events) last = event;
      assert.deepEqual([last.type, last.status], ['exit', 'failed']);
      assert.equal((await execution(server, running)).stdout, 'there\n');
      assertRefused(await server.request('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' }), 409, 'not_running');
      assert.deepEqual((await list(server, '?status=failed')).map((b) => b.id), [id]);
      await remove(server, id);
      assert.equal((await server.create({ name: 'fallen' })).name, 'fallen');
    });

    it('is still failed after a restart, and can be deleted then', async () => {
      const { id } = await server.create();
      process.kill(initPid(server, id), 'SIGKILL');
      await until('it is failed', () => isFailed(id), 3000);
      await killServer(server);
      await restart();
      assert.equal(await isFailed(id), true);
      await remove(server, id);
      await until('nothing of it is in the kernel', () => !sandboxesInKernel(server).includes(id));
    });

    it('while no server ran is found failed, and can be deleted', async () => {
      const { id } = await server.create();
      const pid = initPid(server, id);
      await killServer(server);
      process.kill(pid, 'SIGKILL');
      await restart();
      assert.equal(await isFailed(id), true);
      assert.ok((await server.request('GET', `/v1/sandboxes/${id}`)).json.statusReason.length > 0);
      await remove(server, id);
      assert.equal(await exists(server, id), false);
    });

    it('while no server ran has its commands reported as failed, not forgotten', async () => {
      const { id } = await server.create();
      const { id: running, stream } = await startCommand(server, id, { command: 'sleep 60' });
      stream.response.on('error', () => {});
      const pid = initPid(server, id);
      await sleep(300); // its record is committed behind the answer
      await killServer(server);
      process.kill(pid, 'SIGKILL');
      await restart();
      assert.equal((await execution(server, running)).status, 'failed');
    });

    it('while no server ran has its processes and jobs reported as failed, with the output that was on disk', async () => {
      const { id } = await server.create();
      const post = async (kind, body) => (await server.request('POST', `/v1/sandboxes/${id}/${kind}`, body)).json;
      const process_ = await post('processes', { command: 'head -c 100000 /dev/zero | tr "\\0" x; sleep 60', name: 'lost' });
      const job = await post('jobs', { command: 'sleep 60' });
      await until('it is on disk', async () => (await server.request('GET', `/v1/sandboxes/${id}/processes/lost`)).json.stdout.kept === 100000);
      const pid = initPid(server, id);
      await killServer(server);
      process.kill(pid, 'SIGKILL');
      await restart();
      const lost = (await server.request('GET', `/v1/sandboxes/${id}/processes/lost`)).json;
      assert.deepEqual([lost.id, lost.status, lost.exitCode, lost.stdout.kept], [process_.id, 'failed', 137, 100000]);
      assert.equal((await server.request('GET', `/v1/executions/${process_.id}/output?stream=stdout`)).text, 'x'.repeat(100000));
      assert.equal((await server.request('GET', `/v1/sandboxes/${id}/jobs/${job.id}`)).json.status, 'failed');
    });
  });

  it('does not take time that the server was down for idleness', async () => {
    const { id } = await server.create({ timeout: { idle: '1200ms' } });
    await killServer(server);
    await sleep(1500);
    await restart();
    assert.equal(await exists(server, id), true);
    await until('it expires all the same', async () => !(await exists(server, id)), 4000);
  });

  it('does not blame a kill on an old lack of memory', async () => {
    const { id } = await server.create({ resources: { memory: '96Mi' } });
    assert.equal((await server.exec(id, ['python3', '-c', 'x = bytearray(300 << 20)'])).oomKilled, true);
    await killServer(server);
    await restart();
    assert.equal((await server.exec(id, 'kill -9 $$')).oomKilled, false);
  });

  it('with a small limit of output keeps the beginning of it', async () => {
    await server.stop();
    await restart(['--output-limit', '16Ki']);
    const { id: box } = await server.create();
    const { id, stream } = await startCommand(server, box, { command: 'seq 1 10000; sleep 1; seq 10001 20000' });
    stream.close();
    await sleep(400);
    await killServer(server);
    await restart(['--output-limit', '16Ki']);
    const r = await execution(server, id, '?wait=20s');
    sameText(r.stdout, Array.from({ length: 20000 }, (_, i) => `${i + 1}\n`).join('').slice(0, 16384));
    assert.equal(r.outputTruncated, true);
    await clear(server);
    await server.stop();
    await restart();
  });

  it('with another limit of output never leaves out a piece in the middle', async () => {
    await server.stop();
    await restart(['--output-limit', '64Ki']);
    const { id: box } = await server.create();
    const { id, stream } = await startCommand(server, box, { command: 'seq 1 50000; sleep 1; seq 50001 60000' });
    stream.close();
    await sleep(500);
    await killServer(server);
    await restart();
    const r = await execution(server, id, '?wait=20s');
    const all = Array.from({ length: 60000 }, (_, i) => `${i + 1}\n`).join('');
    sameText(r.stdout, all.slice(0, r.stdout.length));
    assert.equal(r.outputTruncated, true);
  });

  it('does not leave a command waiting for the rest of its input', async () => {
    const { id: box } = await server.create();
    const { id, stream } = await startCommand(server, box, { command: 'head -c 1000 >/dev/null; sleep 1; cat >/dev/null; echo ended', stdin: 'x'.repeat(4_000_000) });
    stream.response.on('error', () => {});
    await sleep(200);
    await killServer(server);
    await restart();
    assert.notEqual((await execution(server, id, '?wait=5s')).status, 'running');
  });

  it('does not make half of an input look like the whole of it', async () => {
    const { id: box } = await server.create();
    const stdin = 'x'.repeat(4_000_000);
    const { id, stream } = await startCommand(server, box, { command: 'head -c 1000 >/dev/null; sleep 1; wc -c', stdin });
    stream.response.on('error', () => {});
    await sleep(200);
    await killServer(server);
    await restart();
    const r = await execution(server, id, '?wait=4s');
    assert.ok(r.stdout === '3999000\n' || !['completed', 'running'].includes(r.status), `it is ${r.status} after ${r.stdout.trim()} of 3999000 bytes`);
  });

  it('starts with a database that has no write-ahead log, and refuses one from the future', async () => {
    const other = await startBeside(server);
    let refused;
    try {
      await other.stop();
      const db = join(other.data, 'front', 'bunker.db');
      const sql = (text) => spawnSync('python3', ['-c', `import sqlite3, sys\nc = sqlite3.connect(sys.argv[1]); print(c.execute(sys.argv[2]).fetchall()); c.commit()`, db, text], { encoding: 'utf8' });
      const version = Number(/\d+/.exec(sql('PRAGMA user_version').stdout)[0]);
      assert.ok(version >= 1, 'the schema has a version from the first one on');
      sql(`PRAGMA user_version = ${version + 1}`);
      refused = await other.launch().then(() => 'it started', (e) => e.message);
      sql(`PRAGMA user_version = ${version}`);
      spawnSync('chown', ['--reference', join(other.data, 'front'), db, `${db}-wal`, `${db}-shm`]);
    } finally {
      await finish(other);
    }
    assert.match(refused, /made by a newer bunker/);
  });

  describe('in the middle of everything', () => {
    for (let round = 0; round < (LONG ? 20 : 3); round++)
      it(`loses nothing that was acknowledged and leaks nothing, round ${round + 1}`, async () => {
        const acknowledged = { made: new Set(), deleted: new Set(), results: [] };
        let stop = false;
        const worker = async (n) => {
          while (!stop) {
            const made = await server.request('POST', '/v1/sandboxes', { metadata: { n } });
            if (made.status !== 201) continue;
            acknowledged.made.add(made.json.id);
            acknowledged.results.push(await server.exec(made.json.id, `echo ${n}; head -c ${n * 9000} /dev/zero | tr "\\0" z`));
            if (n % 2) continue;
            acknowledged.made.delete(made.json.id);
            const gone = await server.request('DELETE', `/v1/sandboxes/${made.json.id}`);
            if (gone.status === 204) acknowledged.deleted.add(made.json.id);
          }
        };
        const workers = Array.from({ length: 6 }, (_, n) => worker(n).catch(() => {}));
        await sleep(200 + Math.random() * 300);
        stop = true;
        await killServer(server);
        await Promise.all(workers);
        await restart();
        const ids = new Set((await list(server, '?limit=1000')).map((b) => b.id));
        for (const id of acknowledged.made) assert.ok(ids.has(id), `${id} was acknowledged and is lost`);
        for (const id of acknowledged.deleted) assert.ok(!ids.has(id), `${id} was deleted and is back`);
        for (const r of acknowledged.results) await sameResult(r);
        await clear(server);
        const known = async () => (await metric(server, 'sandboxes')) + (await metric(server, 'sandboxes_pooled'));
        await until('the kernel has what the server knows, and no more', async () => {
          const inKernel = sandboxesInKernel(server).length;
          return inKernel === (await known()) && safeReaddir(server.disks('boxes')).length === inKernel;
        }, 8000);
        assert.equal(readFileSync('/proc/self/mountinfo', 'utf8').includes(server.data), false);
      });
  });
});
