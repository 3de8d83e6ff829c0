// L: init, the server's agent inside, and what reaches it. E61, E62, E65 for processes and terminals in the background.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sleep, until } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { hostPids, initPid, isAlive, killServer, startTime } from '../system/support.mjs';
import { Arena, LONG, compile, random, showTimes } from './arena.mjs';

const HEALTH_MS = 100;
/** In MB; a sanitizer keeps what was freed for a while. */
const frontLimit = (arena) => (readFileSync(`/proc/${arena.server.frontPid}/maps`, 'utf8').includes('libasan') ? 500 : 96);

describe('L the agent inside', { timeout: 240000 }, () => {
  let arena;
  let box;
  let bystander;
  let trial;
  before(async () => {
    arena = await Arena.open({ args: ['--pool', '0', '--output-limit', '1Mi'], programs: ['agent', 'bombs'] });
    bystander = await arena.sandbox();
    box = await arena.sandbox({ resources: { pids: 700 } });
    trial = await arena.trial(box, 'agent');
  });
  after(() => arena?.close());

  const start = async (options, sandbox = box) => {
    const r = await arena.server.request('POST', `/v1/sandboxes/${sandbox.id}/processes`, options);
    assert.equal(r.status, 201, r.text);
    return r.json;
  };
  const get = async (p, query = '') => (await arena.server.request('GET', `/v1/sandboxes/${p.sandboxId}/processes/${p.id}${query}`)).json;
  const kill = (p) => arena.server.request('DELETE', `/v1/sandboxes/${p.sandboxId}/processes/${p.id}`);

  it('L126 init can be neither killed nor stopped nor traced from inside', async (t) => {
    trial.check(t, 126);
    assert.equal((await arena.server.exec(box.id, ['true'])).exitCode, 0, 'and goes on working');
  });

  it('L126 whoever stops or kills what works for the server with his own rights harms only his own request', async (t) => {
    // File work runs with the user's rights, so the user can reach it; the next request has another.
    const p = await start({ command: 'for i in $(seq 30); do pkill -KILL -x bunker-files; sleep 0.01; pkill -STOP -x bunker-files; sleep 0.01; done; pkill -KILL -x bunker-files; true' });
    let harmed = 0;
    while ((await get(p)).status === 'running') {
      const r = await arena.server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: ['true'], files: [{ path: '/tmp/written', content: 'x' }], timeout: '10s' });
      if (r.status !== 200) harmed++;
    }
    t.diagnostic(`${harmed} requests were harmed`);
    for (let i = 0; i < 5; i++) {
      const r = await arena.server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: ['cat', '/tmp/written'], files: [{ path: '/tmp/written', content: `round ${i}` }], timeout: '10s' });
      assert.equal(r.json.stdout, `round ${i}`, r.text);
    }
  });

  it('L127 the socket of init is nowhere to be found inside', (t) => trial.check(t, 127));

  it('L127 init outlives nonsense of every kind at its socket, and its processes with it', async () => {
    const p = await start({ command: 'echo begun; read x; echo "got $x"; exit 5', openStdin: true });
    await until('it has written', async () => (await get(p)).stdout.length === 6);
    const pid = initPid(arena.server, box.id);
    const born = startTime(pid);
    const path = join(arena.server.data, 'run', `${box.id}.sock`);
    await killServer(arena.server);
    const header = (size, type, stream, tag, offset) => {
      const h = Buffer.alloc(24);
      h.writeUInt32LE(size >>> 0, 0);
      h.writeUInt16LE(type, 4);
      h.writeUInt16LE(stream, 6);
      h.writeBigUInt64LE(BigInt.asUintN(64, tag), 8);
      h.writeBigUInt64LE(BigInt.asUintN(64, offset), 16);
      return h;
    };
    const nonsense = [
      () => randomBytes(1 + Math.floor(Math.random() * 5000)),
      () => header(0xffffffff, 1, 0, 1n, 0n),
      () => Buffer.concat([header(64, 1, 0, 1n, 0n), randomBytes(64)]),
      () => Buffer.concat([header(512 * 1024, 1, 0, 1n, 0n), Buffer.alloc(512 * 1024)]),
      () => Buffer.concat(Array.from({ length: 300 }, () => header(0, 1 + Math.floor(Math.random() * 12), Math.floor(Math.random() * 2), BigInt(Math.floor(Math.random() * 4)), randomBytes(8).readBigUInt64LE()))),
      () => header(10, 2, 0, 7n, 1n << 63n).subarray(0, Math.floor(Math.random() * 24)),
      () => Buffer.concat([header(65537, 2, 0, 7n, 0n), Buffer.alloc(65537)]),
    ];
    const seen = { refused: 0 };
    for (let i = 0; i < (LONG ? 3000 : 300); i++)
      await new Promise((resolve) => {
        const socket = net.connect(path);
        let tags = [];
        socket.on('data', (data) => {
          // Replay what it says itself, with the tags it knows.
          for (let at = 0; at + 24 <= data.length && tags.length < 4; at += 24 + data.readUInt32LE(at)) if (data.readUInt16LE(at + 4) === 65) tags.push(data.readBigUInt64LE(at + 8));
          for (const tag of tags.splice(0)) {
            socket.write(header(0, 4, 0, tag, (1n << 62n) + 5n)); // an ACK for what was never written
            socket.write(header(0, 2, 1, tag, 99n)); // stdin out of order
            socket.write(header(0, 64, 0, tag, 0n)); // a frame that only init sends
          }
        });
        socket.on('error', () => resolve());
        socket.on('close', () => (seen.refused++, resolve()));
        socket.write(nonsense[i % nonsense.length]());
        setTimeout(() => socket.destroy(), 5 + Math.random() * 10);
      });
    assert.ok(isAlive(pid) && startTime(pid) === born, 'init is the one it was');
    await arena.server.launch();
    const now = await get(p);
    assert.deepEqual([now.status, now.pid], ['running', p.pid]);
    await arena.server.request('POST', `/v1/sandboxes/${box.id}/processes/${p.id}/stdin`, 'it\n', { headers: { 'content-type': 'application/octet-stream' } });
    assert.equal((await get(p, '?wait=10s')).exitCode, 5);
    assert.equal((await arena.server.request('GET', `/v1/executions/${p.id}/output?stream=stdout`)).text, 'begun\ngot it\n');
    assert.equal(hostPids(arena.server, box.id).length >= 1, true);
  });

  it('L128 a workload that replaces the shell, libc and the loader has replaced nothing of ours', async () => {
    const own = await arena.sandbox();
    const wreck = 'cd /; for f in $(readlink -f /bin/sh /bin/bash /bin/cat /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/libc.so.6 2>/dev/null); do set -- "$@" "$f"; done; python3 - "$@" <<E\nimport os, sys\nfor path in sys.argv[1:]:\n    os.unlink(path)\n    open(path, "w").write("#!/tmp/evil\\n")\n    os.chmod(path, 0o755)\nE\n';
    await arena.server.exec(own.id, { command: wreck, user: 'root' });
    const dynamic = await arena.server.exec(own.id, ['ls']);
    assert.notEqual(dynamic.exitCode, 0, 'the control: nothing was replaced');
    // What does not need them works as ever: processes, terminals, files, signals.
    const r = await arena.run(own, 'bombs', ['holds-stdout'], { timeout: '10s' });
    assert.match(r.stdout, /^from the main process/);
    const p = await start({ command: ['/home/user/attempts/bombs', 'holds-stdout'], pty: true }, own);
    assert.equal((await get(p, '?wait=10s')).status, 'completed');
    const files = await arena.server.request('POST', `/v1/sandboxes/${own.id}/exec`, { command: ['/home/user/attempts/agent', 'usage'], files: [{ path: '/tmp/still', content: 'x' }] });
    assert.deepEqual([files.status, files.json.exitCode], [200, 2]);
    const gone = await arena.remove(own);
    assert.equal(gone.status, 204);
  });

  it('L129 neither the environment nor the arguments nor the memory of init hold a key or the server\'s secret', async () => {
    const pid = initPid(arena.server, box.id);
    const warden = arena.server.wardenPid;
    assert.ok(readFileSync(`/proc/${warden}/environ`, 'latin1').includes(arena.secret), 'the control: the server has it');
    for (const file of ['environ', 'cmdline']) {
      const text = readFileSync(`/proc/${pid}/${file}`, 'latin1');
      assert.ok(!text.includes(arena.secret) && !text.includes(arena.server.key), file);
    }
    const search = `
import re, sys
def holds(pid, needle):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            start, end, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (....)", line).groups()
            if rights[0] != "r" or "[v" in line or int(end, 16) - int(start, 16) > 64 << 20: continue
            try:
                memory.seek(int(start, 16))
                if needle in memory.read(int(end, 16) - int(start, 16)): return True
            except OSError: pass
    return False
print(*[holds(pid, needle.encode()) for pid in sys.argv[1:3] for needle in sys.argv[3:]])
`;
    const r = spawnSync('python3', ['-c', search, String(warden), String(pid), arena.secret, arena.server.key], { encoding: 'utf8' });
    const [secretInWarden, , secretInInit, keyInInit] = r.stdout.trim().split(' ');
    assert.deepEqual([secretInWarden, secretInInit, keyInInit], ['True', 'False', 'False'], r.stderr);
    const names = readdirSync(`/proc/${pid}/fd`).length;
    assert.ok(names < 64, `${names} descriptors`);
  });

  it('E61 processes in the background that flood, with nobody reading, go on, and the server stays small', async (t) => {
    const megabytes = LONG ? 10240 : 600;
    const probe = arena.probe(bystander);
    const before = arena.frontMemory().now;
    const floods = await Promise.all([
      start({ command: `head -c ${megabytes << 20} /dev/zero` }),
      start({ command: `head -c ${megabytes << 19} /dev/zero >&2` }),
      start({ command: 'yes', pty: true }),
      start({ command: ['/home/user/attempts/bombs', 'single-bytes'] }),
    ]);
    for (const p of [floods[0], floods[1], floods[3]]) assert.equal((await get(p, '?wait=120s')).status, 'completed');
    assert.ok((await get(floods[2])).stdout.length > 10 << 20, 'a terminal goes on, too');
    await kill(floods[2]);
    const times = await probe.stop();
    t.diagnostic(`front ${before.toFixed(1)} → ${arena.frontMemory().now.toFixed(1)} MB; health ${showTimes(times.health)}; exec ${showTimes(times.exec)}`);
    assert.ok(arena.frontMemory().now < before + frontLimit(arena), `the front took ${arena.frontMemory().now} MB`);
    assert.ok(times.health.median < HEALTH_MS, `health took ${times.health.median} ms`);
  });

  it('E61 a viewer that does not read holds up the process that floods, beyond what is kept, and nothing else', async () => {
    const p = await start({ command: 'head -c 50000000 /dev/zero' });
    const other = await start({ command: 'head -c 50000000 /dev/zero' });
    const ws = await Socket.open(arena.server, `/v1/sandboxes/${box.id}/processes/${p.id}/output`);
    ws.pause();
    assert.equal((await get(other, '?wait=60s')).status, 'completed');
    await sleep(300);
    const before = (await get(p)).stdout.length;
    await sleep(500);
    const now = await get(p);
    if (now.status === 'running') assert.equal(now.stdout.length, before, 'it waits for its viewer');
    ws.resume();
    const { data } = await ws.rest();
    assert.ok(data.length > 1 << 20);
    assert.equal((await get(p, '?wait=60s')).status, 'completed');
  });

  it('E62 what holds the output of a process that has ended does not hold its end, and is reaped with the sandbox', async () => {
    const own = await arena.sandbox();
    const mark = `held-${random(6)}`;
    for (const pty of [false, true]) {
      const p = await start({ command: ['bash', '-c', `exec -a ${mark} /home/user/attempts/bombs holds-stdout`], pty }, own);
      const end = await get(p, '?wait=5s');
      assert.deepEqual([end.status, end.exitCode], ['completed', 0]);
    }
    const alive = () => spawnSync('pgrep', ['-f', mark], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean).length;
    assert.ok(alive() >= 1, 'the control: there is nothing in the background');
    await arena.remove(own);
    await until('it is gone', () => alive() === 0, 3000);
  });

  it('E65 a sandbox has as many terminals as it may, and the host keeps its own', async (t) => {
    trial.check(t, 65);
    const mine = spawnSync(compile('agent'), ['control'], { encoding: 'utf8' });
    assert.match(mine.stdout, /^65 terminals ESCAPED/m);
  });

  it('E65 terminals that flood and are resized all the time leave the server as it was', async (t) => {
    const probe = arena.probe(bystander);
    const terminals = await Promise.all(Array.from({ length: 20 }, () => start({ command: 'yes bunker', pty: { rows: 10, columns: 10 } })));
    const sockets = await Promise.all(terminals.slice(0, 8).map((p) => Socket.open(arena.server, `/v1/sandboxes/${box.id}/processes/${p.id}/output?offset=-1000`)));
    let bytes = 0;
    const readers = sockets.map(async (ws, i) => {
      for (let m, n = 0; (m = await ws.next()); ) if (m.data && ((bytes += m.data.length), ++n % 50 === 0 && i % 2)) await sleep(5);
    });
    for (let i = 0; i < (LONG ? 10000 : 1500); i++) {
      for (const ws of sockets) ws.send({ type: 'resize', rows: 1 + (i % 200), columns: 1 + ((i * 7) % 300) });
      if (i % 20 === 0) await sleep(5);
    }
    await Promise.all(terminals.map(kill));
    for (const ws of sockets) ws.resume();
    await Promise.all(readers);
    const times = await probe.stop();
    t.diagnostic(`${(bytes / 1e6).toFixed(0)} MB; front ${arena.frontMemory().now.toFixed(1)} MB; health ${showTimes(times.health)}; exec ${showTimes(times.exec)}`);
    assert.ok(times.health.median < HEALTH_MS);
    assert.ok(sockets.every((ws) => ws.closed.code === 1000), JSON.stringify(sockets.map((ws) => ws.closed)));
    assert.equal((await arena.server.exec(box.id, ['true'])).exitCode, 0);
  });
});
