// What the server does when there is no room: on the disk, for descriptors, in memory. Clean errors, and work as before when there
// is room again.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { Server, sleep, until } from '../lib/server.mjs';
import { exists, finish, remove, residentKib } from '../system/support.mjs';

const clean = (answer) => {
  assert.ok([200, 201, 204, 400, 409, 429, 500, 503, 507].includes(answer.status), answer.text);
  if (answer.status >= 400) assert.match(answer.json?.error?.code ?? '', /^(no_space|resource_exhausted|unavailable|boot_failed|internal|quota_exceeded)$/, answer.text);
  return answer;
};

describe('a pool of disks that is full', { timeout: 120000 }, () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0', '--disk-pool', 'loop', '--disk-pool-size', '256Mi', '--max-disk-pool-size', '256Mi', '--disk', '200Mi'] });
  });
  after(() => finish(server));

  it('is felt inside as no space, gives clean errors outside, and works again when there is room', async () => {
    const keeper = await server.create();
    await server.exec(keeper.id, 'echo precious > ~/mark; sync');
    const greedy = [await server.create(), await server.create(), await server.create()];
    for (const box of greedy) {
      const r = await server.exec(box.id, { command: 'head -c 190000000 /dev/urandom > /tmp/fill; sync; ls -l /tmp/fill | cut -d" " -f5', timeout: '60s' });
      assert.ok(r.exitCode === 0 || /space|quota/i.test(r.stderr), JSON.stringify(r));
    }
    const more = await server.exec(greedy[2].id, 'head -c 100000000 /dev/urandom > /tmp/more; echo $?');
    assert.notEqual(more.stdout.trim(), '0', 'the pool is full');

    const made = [];
    for (let i = 0; i < 3; i++) {
      const answer = clean(await server.request('POST', '/v1/sandboxes', { files: [{ path: 'x', content: 'y' }] }));
      if (answer.status === 201) made.push(answer.json.id);
    }
    for (const id of made) await remove(server, id);
    clean(await server.request('POST', `/v1/sandboxes/${greedy[0].id}/pause`, { memory: false }));
    assert.equal((await server.exec(keeper.id, 'cat ~/mark')).stdout, 'precious\n', 'others can still be used');

    for (const box of greedy) await remove(server, box.id);
    await until('there is room again', async () => {
      const answer = await server.request('POST', '/v1/sandboxes', { files: [{ path: 'x', content: 'y'.repeat(1000000) }] });
      if (answer.status !== 201) return false;
      const r = await server.exec(answer.json.id, 'head -c 30000000 /dev/urandom > /tmp/f && wc -c < ~/x');
      await remove(server, answer.json.id);
      return r.stdout === '1000000\n';
    }, 30000);
    await remove(server, keeper.id);
  });
});

describe('no more descriptors', { timeout: 60000 }, () => {
  let server;
  const limit = 140;
  before(async () => {
    server = await Server.start({
      args: ['--pool', '1', '--open-files', '64', '--max-open-files', '64'],
      wrapper: ['bash', '-c', `ulimit -n ${limit}; exec "$@"`, '-'],
    });
  });
  after(() => finish(server));

  it('connections and creates are refused or wait, and everything works when there are some again', async () => {
    const box = await server.create();
    const sockets = [];
    for (let i = 0; i < limit + 40; i++) {
      const socket = net.connect(server.port, '127.0.0.1');
      socket.on('error', () => {});
      sockets.push(socket);
    }
    await sleep(500);
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => Promise.race([server.request('POST', '/v1/sandboxes', {}), sleep(1500)])));
    for (const o of outcomes) if (o.status === 'fulfilled' && o.value) clean(o.value);
    for (const socket of sockets) socket.destroy();
    server.renewAgent();
    await until('it answers again', async () => (await server.request('GET', '/health').catch(() => undefined))?.status === 200);
    assert.equal((await server.exec(box.id, 'echo works')).stdout, 'works\n');
    for (const { id } of (await server.request('GET', '/v1/sandboxes')).json.sandboxes) await server.request('DELETE', `/v1/sandboxes/${id}`);
    assert.equal((await server.run('echo again')).stdout, 'again\n');
  });

  it('more sandboxes than it has descriptors for are refused cleanly', async () => {
    const made = [];
    let refused;
    for (let i = 0; i < limit && !refused; i++) {
      const answer = clean(await server.request('POST', '/v1/sandboxes', { resources: { memory: '32Mi' } }));
      if (answer.status === 201) made.push(answer.json.id);
      else refused = answer;
    }
    assert.ok(refused, 'there is an end to it');
    assert.equal((await server.exec(made[0], 'echo still')).stdout, 'still\n');
    for (const id of made) await remove(server, id);
    assert.equal((await server.run('echo again')).stdout, 'again\n');
  });
});

describe('no more memory', { timeout: 60000 }, () => {
  let server;
  const cgroup = `/sys/fs/cgroup/memory/bunker-test-memory-${process.pid}`;
  before(async () => {
    server = await Server.start({ args: ['--pool', '1'] });
    mkdirSync(cgroup);
  });
  after(async () => {
    await finish(server, { killed: true });
    await until('the cgroup is empty', () => { try { rmdirSync(cgroup); return true; } catch { return false; } }, 5000);
  });

  it('the front dies of it, comes back, and the sandboxes have not noticed', async (t) => {
    const box = await server.create();
    await server.exec(box.id, 'echo precious > ~/mark');
    const running = await server.exec(box.id, '(sleep 1000 >/dev/null 2>&1 & echo $!)');
    const front = server.frontPid;
    writeFileSync(join(cgroup, 'memory.limit_in_bytes'), String((residentKib(front) + 24 * 1024) * 1024));
    writeFileSync(join(cgroup, 'cgroup.procs'), String(front));
    writeFileSync(join(cgroup, 'memory.force_empty'), '0');
    const body = JSON.stringify({ command: 'cat', stdin: 'x'.repeat(30 << 20) });
    await Promise.allSettled(Array.from({ length: 8 }, () => server.request('POST', `/v1/sandboxes/${box.id}/exec`, body)));
    await until('there is another front', () => server.frontPid && server.frontPid !== front, 10000).catch(() => t.diagnostic('it had room enough'));
    server.renewAgent();
    await until('it answers', async () => (await server.request('GET', '/health').catch(() => undefined))?.status === 200);
    assert.ok(await exists(server, box.id));
    assert.equal((await server.exec(box.id, `cat ~/mark; kill -0 ${running.stdout.trim()} && echo alive`)).stdout, 'precious\nalive\n');
    await remove(server, box.id);
  });
});

describe('a host whose disk is full', { timeout: 120000 }, () => {
  let server, place;
  const sh = (command) => execFileSync('sh', ['-c', command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  before(async () => {
    place = mkdtempSync(join(process.env.BUNKER_TEST_TMP ?? '/tmp', 'bunker-small-'));
    sh(`truncate -s 1000M ${place}/image; mkfs.ext4 -q -O ^has_journal ${place}/image; mkdir ${place}/fs; mount -o loop ${place}/image ${place}/fs; chmod 711 ${place} ${place}/fs`);
    server = await Server.start({ data: join(place, 'fs', 'data'), args: ['--pool', '1', '--disk-pool', 'loop', '--disk-pool-size', '256Mi', '--max-disk-pool-size', '256Mi', '--disk', '100Mi'] });
  });
  after(async () => {
    try {
      if (server) await finish(server);
    } finally {
      sh(`umount ${place}/fs; rm -rf ${place}`);
    }
  });

  it('nothing is acknowledged that could not be stored, and all is well when there is room again', async () => {
    const box = await server.create();
    await server.exec(box.id, 'echo precious > ~/mark; sync');
    sh(`dd if=/dev/zero of=${place}/fs/filler bs=1M 2>/dev/null || true; dd if=/dev/zero of=${place}/fs/filler2 bs=4k 2>/dev/null || true`);
    const answers = [];
    for (let i = 0; i < 40; i++)
      answers.push(clean(await server.request('POST', '/v1/sandboxes', { metadata: { filler: 'x'.repeat(60000) } })));
    const acknowledged = answers.filter((a) => a.status === 201).map((a) => a.json.id);
    assert.ok(acknowledged.length < 40, 'the database is full');
    const runs = [];
    for (let i = 0; i < 5; i++) runs.push(await server.request('POST', '/v1/run', { command: 'head -c 30000 /dev/zero | base64' }));
    const paused = await server.request('POST', `/v1/sandboxes/${box.id}/pause`);
    const reading = await server.request('GET', `/v1/sandboxes/${box.id}`);
    assert.equal(reading.status, 200, 'reading needs no room');
    assert.equal(reading.json.status, paused.status === 200 ? 'paused' : 'idle', paused.text);

    const late = acknowledged.length > 1 ? acknowledged.pop() : undefined;
    const leaving = late && server.request('DELETE', `/v1/sandboxes/${late}`); // answered now, or when there is room

    await sleep(300);
    sh(`rm -f ${place}/fs/filler ${place}/fs/filler2`);
    if (late) assert.equal((await leaving).status, 204);
    for (const id of acknowledged) assert.ok(await exists(server, id), 'what was acknowledged is there');
    await server.request('POST', `/v1/sandboxes/${box.id}/resume`);
    assert.equal((await server.exec(box.id, 'cat ~/mark')).stdout, 'precious\n');
    assert.equal((await server.run('echo again')).stdout, 'again\n');
    for (const id of [...acknowledged, box.id]) await remove(server, id);
    await until('no sandbox of a run is left', async () => (await server.request('GET', '/v1/sandboxes')).json.sandboxes.length === 0, 15000);
    await server.crash();
    await server.launch();
    assert.deepEqual((await server.request('GET', '/v1/sandboxes')).json.sandboxes, []);
  });
});
