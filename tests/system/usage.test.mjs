// What is asked of the kernel about sandboxes that do nothing, and what is known of them all the same.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { fastClock } from '../lib/clock.mjs';
import { Server, sleep, until } from '../lib/server.mjs';
import { finish } from './support.mjs';

const RATE = 20;
const COUNT = 30;

describe('usage of idle sandboxes', { timeout: 120000 }, () => {
  let server, clock, boxes;
  before(async () => {
    clock = fastClock(RATE);
    server = await Server.start({ env: clock.env, args: ['--pool', '0'] });
    boxes = await Promise.all(Array.from({ length: COUNT }, () => server.create()));
    await sleep(1500); // 30 s of theirs: two samples say that they are idle
  });
  after(async () => {
    if (server) await finish(server);
    clock.done();
  });
  const samples = async (id) => (await server.request('GET', `/v1/sandboxes/${id}/metrics`)).json.samples;
  const wakeups = () => Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${server.wardenPid}/status`, 'utf8'))[1]);

  it('is asked for once a minute', async () => {
    const first = wakeups();
    await sleep(6000); // two minutes: 24 rounds of 5 s, two of 60
    const asked = (wakeups() - first) / COUNT;
    assert.ok(asked < 7, `the warden was asked ${asked} times for each`);
  });

  it('is known at every moment, up to now', async () => {
    const found = await samples(boxes[0].id);
    const times = found.map((s) => Date.parse(s.time));
    for (let i = 1; i < times.length; i++) assert.ok(times[i] - times[i - 1] < 12000, `${times[i] - times[i - 1]} ms between two samples`);
    assert.ok(times.at(-1) - times[0] > 100000, JSON.stringify(found.at(-1)));
    for (let i = 1; i < found.length; i++) assert.ok(found[i].cpuTimeMs >= found[i - 1].cpuTimeMs);
  });

  it('is asked for often again when something begins', async () => {
    const count = (await samples(boxes[1].id)).length;
    await server.exec(boxes[1].id, 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done');
    const last = await until('a sample shows it', async () => {
      const found = await samples(boxes[1].id);
      return found.length > count && found.at(-1).cpuTimeMs > found[0].cpuTimeMs + 50 && found;
    });
    const rise = last.findIndex((s) => s.cpuTimeMs > last[0].cpuTimeMs + 50);
    assert.ok(rise > last.length - 6, 'its cpu time is told when it was used, not spread over the idle time before');
  });
});
