// Data directories that were copied or moved: a copy never finds, and never ends, what the original has alive.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Server, dataDirectory } from '../lib/server.mjs';
import { finish } from './support.mjs';

const status = async (server, id) => (await server.request('GET', `/v1/sandboxes/${id}`)).json.status;
const nameOf = (data) => readFileSync(join(data, 'instance'), 'utf8').trim().split(' ')[1];

/** The copy starts, its sandboxes are there without their memory, and they can be used. */
async function useCopy(data, running, paused) {
  const copy = await Server.start({ data, args: ['--pool', '1'] });
  try {
    assert.equal(await status(copy, running.id), 'failed');
    assert.equal(await status(copy, paused.id), 'suspended');
    for (const { id } of [running, paused]) {
      assert.equal((await copy.request('POST', `/v1/sandboxes/${id}/resume`)).status, 200);
      assert.equal((await copy.exec(id, 'cat ~/mark; echo changed > ~/mark')).stdout, `${id}\n`);
    }
  } finally {
    await copy.destroy();
  }
}

describe('a data directory that was copied', { timeout: 200000 }, () => {
  let server, running, paused, first, second;
  before(async () => {
    server = await Server.start({ args: ['--pool', '1'] });
  });
  after(async () => {
    await finish(server);
    for (const data of [first, second]) if (data) rmSync(data, { recursive: true, force: true });
  });

  const begin = async () => {
    const box = await server.create();
    await server.exec(box.id, `echo ${box.id} > ~/mark; sync`);
    return { id: box.id, pid: (await server.exec(box.id, '(sleep 1000 >/dev/null 2>&1 & echo $!)')).stdout.trim() };
  };
  const assertAlive = async ({ id, pid }) =>
    assert.equal((await server.exec(id, `cat ~/mark; kill -0 ${pid} && echo alive`)).stdout, `${id}\nalive\n`);

  it('leaves the sandboxes of a server alone that is stopped', async () => {
    running = await begin();
    paused = await begin();
    assert.equal((await server.request('POST', `/v1/sandboxes/${paused.id}/pause`)).status, 200);
    await server.stop();
    first = dataDirectory();
    second = dataDirectory();
    for (const to of [first, second]) execFileSync('sh', ['-c', `sync; cp -a --sparse=always ${server.data}/. ${to}/`]);
    await useCopy(first, running, paused);
    await server.launch();
    await assertAlive(running);
    assert.equal(await status(server, paused.id), 'paused');
  });

  it('leaves the sandboxes of a server alone that runs', async () => {
    await useCopy(second, running, paused);
    assert.equal((await server.request('POST', `/v1/sandboxes/${paused.id}/resume`)).status, 200);
    await assertAlive(running);
    await assertAlive(paused);
  });

  it('keeps its name where it was moved to, and all disks', async () => {
    const name = nameOf(server.data);
    for (const { id } of [running, paused])
      assert.equal((await server.request('POST', `/v1/sandboxes/${id}/pause`, { memory: false })).status, 200);
    await server.stop();
    renameSync(server.data, `${server.data}-moved`);
    server.data += '-moved';
    await server.launch();
    assert.equal(nameOf(server.data), name);
    for (const { id } of [running, paused]) {
      assert.equal((await server.request('POST', `/v1/sandboxes/${id}/resume`)).status, 200);
      assert.equal((await server.exec(id, 'cat ~/mark')).stdout, `${id}\n`);
    }
  });
});
