// Which uids a server and its sandboxes have: chunks of 255 blocks, one server's each.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { Server, dataDirectory, until } from '../lib/server.mjs';
import { cgroupsOf, finish, remove, sandboxesInKernel } from './support.mjs';

const BLOCK = 65536;
const CHUNK = 256 * BLOCK;

const frontUid = (server) => statSync(join(server.data, 'front')).uid;
const boxUid = (server, id) => Math.max(...cgroupsOf(server).map((dir) => statSync(join(dir, id)).uid));
const chunksOf = (server) => new Set(sandboxesInKernel(server).map((id) => Math.floor(boxUid(server, id) / CHUNK)));

/** Holds the lock of a chunk as another server would, until it is killed. */
async function holdChunk(chunk) {
  const program = `import fcntl, sys, time
f = open('/run/bunker/uids', 'r+')
fcntl.lockf(f, fcntl.LOCK_EX, 1, ${chunk})
print('held', flush=True)
time.sleep(60)`;
  const child = spawn('python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

describe('the uids of servers on one host', { timeout: 300000 }, () => {
  const servers = [];
  const start = async (options = {}) => {
    servers.push(await Server.start({ ...options, args: ['--pool', '0', '--disk-pool', 'directory', ...(options.args ?? [])] }));
    return servers.at(-1);
  };
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => finish(server)));
  });

  it('are of different chunks, for more servers than version 0.2 could have', async () => {
    await Promise.all(Array.from({ length: 14 }, () => start()));
    assert.equal(new Set(servers.map((server) => Math.floor(frontUid(server) / CHUNK))).size, 14);
  });

  it('are not given to others while sandboxes live on without their server', async () => {
    const first = await start();
    const box = await first.create();
    await first.crash();
    const second = await start();
    const other = await second.create();
    assert.notEqual(Math.floor(boxUid(second, other.id) / CHUNK), Math.floor(boxUid(first, box.id) / CHUNK));
    await first.launch();
    assert.equal((await first.exec(box.id, 'echo lives')).stdout, 'lives\n');
  });

  it('are others when they were given away, and the sandboxes and the database are kept', async () => {
    const server = await start();
    const box = await server.create();
    await server.exec(box.id, 'echo kept > ~/mark; seq 20000');
    await server.request('POST', `/v1/sandboxes/${box.id}/pause`, { memory: false });
    const before = frontUid(server);
    await server.stop();
    const holder = await holdChunk(Math.floor(before / CHUNK));
    try {
      await server.launch();
      assert.notEqual(Math.floor(frontUid(server) / CHUNK), Math.floor(before / CHUNK));
      assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/resume`)).status, 200);
      assert.equal((await server.exec(box.id, 'cat ~/mark')).stdout, 'kept\n');
    } finally {
      holder.kill();
    }
  });

  it('are more than a chunk when there are more sandboxes, each its own, also after a crash', async () => {
    const server = await start({ args: ['--max-sandboxes', '400'] });
    const create = async (count) => {
      for (let made = 0; made < count; made += 10) await Promise.all(Array.from({ length: 10 }, () => server.create()));
    };
    await create(260);
    const uids = sandboxesInKernel(server).map((id) => boxUid(server, id));
    assert.equal(new Set(uids).size, 260);
    assert.ok(!uids.includes(frontUid(server) - BLOCK + 1), 'a sandbox has the block of the front');
    const before = chunksOf(server);
    assert.equal(before.size, 2);
    await server.crash();
    await server.launch();
    await create(10);
    assert.deepEqual(chunksOf(server), before);
    assert.equal(new Set(sandboxesInKernel(server).map((id) => boxUid(server, id))).size, 270);
  });

  it('of sandboxes that are destroyed among many are free when nothing is asked for', async () => {
    const server = await start({ args: ['--max-sandboxes', '600'] });
    const made = [];
    while (made.length < 510) made.push(...(await Promise.all(Array.from({ length: 10 }, () => server.create()))));
    const gone = made.splice(0, 30).map(({ id }) => id);
    for (const id of gone) await remove(server, id);
    await until('their cgroups are removed', () => !sandboxesInKernel(server).some((id) => gone.includes(id)));
    const kept = new Set(made.map(({ id }) => boxUid(server, id)));
    const again = await Promise.all(Array.from({ length: 30 }, () => server.create()));
    assert.ok(again.every(({ id }) => !kept.has(boxUid(server, id))), 'two sandboxes have the same uids');
    assert.equal((await server.exec(again[0].id, 'echo lives')).stdout, 'lives\n');
  });

  it('a server of version 0.2 keeps its name and its cgroups', async () => {
    const data = dataDirectory();
    const name = `${process.pid}`.padStart(8, 'x');
    writeFileSync(join(data, 'instance'), `12 ${name}\n`);
    const server = await start({ data });
    const box = await server.create();
    assert.ok(cgroupsOf(server).every((dir) => dir.endsWith(`/bunker-12-${name}`)));
    assert.ok(boxUid(server, box.id) > 0);
    await server.crash();
    const front = 13 * 4096 * BLOCK - 1; // of range 12
    chownSync(join(data, 'run', `${box.id}.sock`), front, front);
    await server.launch();
    assert.equal((await server.exec(box.id, 'echo lives')).stdout, 'lives\n');
    assert.match(readFileSync(join(data, 'instance'), 'utf8'), new RegExp(`^[0-9a-f]+:[0-9a-f]+ 12-${name}\n$`));
  });
});
