// kill -9 of the front, the warden, the keeper or all of them at every step of every operation: after a restart nothing that was
// acknowledged is lost, nothing is left over, every sandbox can be used or has ended, and delete works.
//
// BUNKER_LONG=1: a thousand rounds. BUNKER_CRASH_SEED=N shifts which steps are tried; BUNKER_CRASH_ONLY="STEP/ROLE/N" repeats one.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { sleep } from '../lib/server.mjs';
import { LONG, assertHealthyLog, isAlive } from '../system/support.mjs';
import { steps } from './steps.mjs';
import { Hung, World } from './world.mjs';

const ROLES = ['front', 'warden', 'keeper', 'all'];
const BUDGET_MS = LONG ? Infinity : 35000;
const ROUNDS = LONG ? 1000 : Infinity;
const seed = Number(process.env.BUNKER_CRASH_SEED ?? 0);
const armed = (role) => (role === 'all' ? 'front' : role);

describe('a death at any step', { timeout: LONG ? 3600000 : 150000 }, () => {
  let w, supported;
  const points = {};
  before(async () => {
    w = await World.start();
    supported = (await w.faults.count(() => w.request('GET', '/v1/sandboxes').then(() => w.create()))).front > 0;
    await w.useAndDeleteAll();
    await w.settled();
  });
  after(async () => {
    assertHealthyLog(w.server, { killed: true });
    await w.end();
  });

  /** How many steps an operation takes; it is done once without a death for that. */
  async function measure(name) {
    const step = steps[name];
    const ctx = await step.prepare(w);
    let value;
    points[name] = await w.faults.count(async () => (value = await step.act(w, ctx)));
    await step.check(w, ctx, { value });
    await w.useAndDeleteAll();
    await w.settled();
  }

  async function round(name, role, n) {
    const step = steps[name];
    const ctx = await step.prepare(w);
    const victim = w.pid(armed(role));
    w.faults.arm(armed(role), n);
    let ack;
    try {
      ack = { value: await step.act(w, ctx) };
    } catch (e) {
      if (e instanceof Hung || e instanceof assert.AssertionError === false && !isCutOff(e)) throw e;
      if (e instanceof assert.AssertionError && !w.faults.fired(armed(role))) throw e;
    }
    await sleep(10); // what comes behind the answer counts, too
    const fired = w.faults.fired(armed(role));
    w.faults.disarm();
    await sleep(5);
    const died = fired || !isAlive(victim);
    /* The keeper works in children: one of those may have been the one that died. */
    const child = died && role === 'keeper' && (await sleep(50), isAlive(victim));
    if (died && !child) await w.recover(victim, { everybody: role === 'all' });
    await step.check(w, ctx, ack);
    await w.useAndDeleteAll();
    await w.settled();
    return died;
  }

  const isCutOff = (e) => ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(e.code) || /cut short|socket hang up|aborted/.test(e.message);

  /* Spread evenly over the steps, whenever one stops. */
  const nth = (k, count) => 1 + Math.floor(((seed * 0.37 + (k + 0.5) * 0.6180339887) % 1) * count);

  it('loses nothing that was acknowledged and leaves nothing behind', async (t) => {
    if (!supported) return t.skip('this build has no fault points: it is a release');
    if (process.env.BUNKER_CRASH_ONLY) {
      const [name, role, n] = process.env.BUNKER_CRASH_ONLY.split('/');
      await round(name, role, Number(n));
      return;
    }
    for (const name of Object.keys(steps)) await measure(name);
    const before = w.census();
    const pairs = Object.keys(steps).flatMap((name) => ROLES.map((role) => [name, role])).filter(([name, role]) => points[name][armed(role)] > 0);
    const end = Date.now() + BUDGET_MS;
    let rounds = 0, deaths = 0;
    for (; rounds < ROUNDS && Date.now() < end; rounds++) {
      const [name, role] = pairs[(rounds * 7 + seed) % pairs.length];
      const n = nth(Math.floor(rounds / pairs.length) * 3 + (rounds % 3), points[name][armed(role)]);
      try {
        deaths += await round(name, role, n);
      } catch (e) {
        e.message = `BUNKER_CRASH_ONLY="${name}/${role}/${n}" (round ${rounds}): ${e.message}\n${w.server.log.text.slice(-2000)}`;
        throw e;
      }
    }
    t.diagnostic(`${rounds} rounds, ${deaths} deaths, steps: ${JSON.stringify(points)}`);
    assert.ok(deaths > rounds / 2, `only ${deaths} deaths in ${rounds} rounds`);
    const now = w.census();
    for (const what of ['mounts', 'loops', 'frozen']) assert.ok(now[what] <= before[what] + 1, `${what}: ${before[what]} became ${now[what]}`);
    for (const what of ['front', 'warden', 'keeper']) assert.ok(now[what] <= before[what] + 8, `descriptors of the ${what}: ${before[what]} became ${now[what]}`);
  });
});
