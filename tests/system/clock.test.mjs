// A wall clock that is set, and a machine that was suspended: sandboxes live as long as they were given, by a clock that nobody sets.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { fastClock } from '../lib/clock.mjs';
import { Server, until } from '../lib/server.mjs';
import { execution, exists, finish, remove, startCommand } from './support.mjs';

const RATE = 10;
const MINUTE = 60, HOUR = 3600;

describe('the clock', { timeout: 120000 }, () => {
  let server, clock;
  before(async () => {
    clock = fastClock(RATE);
    server = await Server.start({ args: ['--pool', '0'], env: clock.env });
  });
  after(async () => {
    await finish(server);
    clock.done();
  });

  const get = async (id) => (await server.request('GET', `/v1/sandboxes/${id}`)).json;
  /** The server's wall clock, by an answer. */
  const serverNow = async (id) => Date.parse((await execution(server, (await server.exec(id, 'true')).executionId)).startedAt);

  /** Sets the clock, and returns when the server has looked at it, and at what may be overdue. */
  async function set(seconds) {
    const told = () => server.log.text.split('the clock was set').length;
    const before = told();
    clock.step(seconds);
    await until('the server notices', () => told() > before);
    await server.request('GET', '/v1/sandboxes');
  }

  it('set ahead ends neither a sandbox whose command runs nor a lease', async () => {
    const box = await server.create({ timeout: { lease: '10m' } });
    const run = await startCommand(server, box.id, { command: 'sleep 50', timeout: '60s' });
    await set(5 * MINUTE);
    assert.equal((await get(box.id)).status, 'running');
    await set(6 * MINUTE);
    const seen = await get(box.id);
    assert.equal(seen.status, 'running', JSON.stringify(seen));
    const left = Date.parse(seen.leaseEndsAt) - (await serverNow(box.id));
    assert.ok(left > 8 * MINUTE * 1000 && left <= 10 * MINUTE * 1000, `the lease has ${left} ms left`);
    run.stream.close();
    await remove(server, box.id);
  });

  it('set back does not make a lease longer', async () => {
    const box = await server.create({ timeout: { lease: '5s' } });
    const kept = await server.create({ timeout: { lease: '10m' } });
    await set(-HOUR);
    await until('its time is up', async () => !(await exists(server, box.id)));
    const left = Date.parse((await get(kept.id)).leaseEndsAt) - (await serverNow(kept.id));
    assert.ok(left > 0 && left <= 10 * MINUTE * 1000, `the lease has ${left} ms left`);

    await server.crash();
    await server.launch();
    const later = Date.parse((await get(kept.id)).leaseEndsAt) - (await serverNow(kept.id));
    // The clock of a process that is started runs ahead from that moment on, so that it is behind the one before.
    assert.ok(later > 0 && later <= 12 * MINUTE * 1000, `after a restart the lease has ${later} ms left`);
    await remove(server, kept.id);
  });

  it('a suspended machine counts for leases, and not for the time of commands', async () => {
    const leased = await server.create({ timeout: { lease: '10m' } });
    const box = await server.create();
    const run = await startCommand(server, box.id, { command: 'sleep 50', timeout: '60s' });
    clock.suspend(HOUR);
    await until('the lease is looked at', async () => !(await exists(server, leased.id)));
    assert.equal((await get(box.id)).status, 'running');
    run.stream.close();
    await remove(server, box.id);
  });
});
