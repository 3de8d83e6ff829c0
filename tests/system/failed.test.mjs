// A sandbox that has failed: its processes are gone, whoever its init is; its disk is there. It can be resumed and deleted, and it
// expires like any other.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { FRAME, frame, hostile } from '../lib/hostile.mjs';
import { Server, until } from '../lib/server.mjs';
import { assertRefused, finish, hostPids, initPid } from './support.mjs';

let server;
before(async () => (server = await Server.start({ args: ['--pool', '0'] })));
after(() => finish(server, { killed: true }));

const get = async (id) => (await server.request('GET', `/v1/sandboxes/${id}`)).json;
const hasFailed = (id) => until('it has failed', async () => (await get(id)).status === 'failed');

async function failed(settings) {
  const box = await server.create(settings);
  await server.exec(box.id, 'echo kept > /home/user/file; sync');
  process.kill(initPid(server, box.id), 'SIGKILL');
  await hasFailed(box.id);
  return box;
}

describe('a sandbox that has failed', () => {
  it('is resumed on its disk, and deleted', async () => {
    const { id } = await failed();
    const { statusReason, pausedAt, bootId } = await get(id);
    assert.ok(statusReason && pausedAt);
    assertRefused(await server.request('POST', `/v1/sandboxes/${id}/pause`, {}), 409, 'not_running');
    const { status, json } = await server.request('POST', `/v1/sandboxes/${id}/resume`);
    assert.deepEqual([status, json.status, json.statusReason, json.pausedAt], [200, 'idle', undefined, undefined]);
    assert.notEqual(json.bootId, bootId);
    assert.equal((await server.exec(id, 'cat file')).stdout, 'kept\n');
    process.kill(initPid(server, id), 'SIGKILL');
    await hasFailed(id);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
    assert.equal((await server.request('GET', `/v1/sandboxes/${id}`)).status, 404);
  });

  const times = {
    'its lease is up': { settings: { timeout: { lease: '3s' } }, endedBy: 'lease' },
    'it has failed as long as it may be paused': { settings: { timeout: { paused: '1s' } }, endedBy: 'paused' },
    'it has failed as long as it may be idle': { settings: { timeout: { idle: '2s' } }, endedBy: 'idle' },
    'it may be paused, also if its other times would only pause it': { settings: { timeout: { lease: '3s', idle: '2s', paused: '4s' }, onLease: 'pause', onIdle: 'suspend' }, endedBy: 'paused' },
  };
  for (const [when, { settings, endedBy }] of Object.entries(times))
    it(`ends when ${when}`, async () => {
      const { id } = await failed(settings);
      assert.ok((await get(id)).terminatesAt);
      await until('it is gone', async () => (await get(id)).status === 'terminated');
      assert.equal((await get(id)).endedBy, endedBy);
    });

  it('ends in its time also across a restart of the server', async () => {
    const { id } = await failed({ timeout: { paused: '4s' } });
    const { pausedAt } = await get(id);
    await server.crash();
    await server.launch();
    assert.equal((await get(id)).pausedAt, pausedAt);
    await until('it is gone', async () => (await get(id)).status === 'terminated');
  });

  it('stays when its times would only pause it', async () => {
    const { id } = await failed({ timeout: { lease: '2s' }, onLease: 'pause' });
    const { expiresAt, terminatesAt } = await get(id);
    assert.deepEqual([expiresAt, terminatesAt], [undefined, undefined]);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
  });

  it('has no processes left, although its init talks nonsense and lives', async () => {
    const { id } = await server.create();
    await server.request('POST', `/v1/sandboxes/${id}/processes`, { command: 'setsid sleep 1000 & sleep 1000' });
    await until('they run', () => hostPids(server, id).length >= 3);
    // The true init and what it started live on; the front hears another one.
    const { restore } = await hostile(server, id, { attach: async (c) => { await c.greet(); await c.send(frame(999)); } });
    try {
      await hasFailed(id);
      await until('every process has ended', () => hostPids(server, id).length === 0);
    } finally {
      restore();
    }
    assert.equal((await server.request('POST', `/v1/sandboxes/${id}/resume`)).json.status, 'idle');
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
  });
});
