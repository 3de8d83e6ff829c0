// An init that was taken over names processes to a new front that it was never given: of other tenants, of other sandboxes, of the
// past. Only what a front has signed for this sandbox is adopted; an init that names anything else has failed.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, it } from 'node:test';
import { FRAME, claim, frame, hostile, started } from '../lib/hostile.mjs';
import { Server, until } from '../lib/server.mjs';

const RECORDS_MAX = 2048;
const other = `bnk_${randomBytes(20).toString('hex')}`;
let server, victim, running, ended;
before(async () => {
  server = await Server.start({ args: ['--pool', '0', '--api-key', `other=${other}`] });
  const as = (method, path, body) => server.request(method, path, body, { key: other });
  victim = (await as('POST', '/v1/sandboxes', {})).json;
  ended = (await as('POST', `/v1/sandboxes/${victim.id}/exec`, { command: 'head -c 60000 /dev/zero | tr "\\0" S' })).json.executionId;
  running = (await as('POST', `/v1/sandboxes/${victim.id}/processes`, { command: 'head -c 60000 /dev/zero | tr "\\0" S; sleep 1000' })).json.id;
  assert.ok(ended && running);
});
after(() => server?.destroy());

const statusOf = async (id) => (await server.request('GET', `/v1/sandboxes/${id}`)).json.status;
const naming = (tag, execution, more = {}) => frame(FRAME.PROCESS, { tag }, claim({ execution, ...more }));

/** Sandboxes fail one after the other: more than five quick restarts would end the server. */
async function withInit(attach, check) {
  const box = await server.create();
  const attacker = await hostile(server, box.id, { attach });
  try {
    await check(box, attacker);
  } finally {
    attacker.restore();
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
  }
}

it('another tenant\'s processes are not had by naming them, and stay as they are', { timeout: 60000 }, async () => {
  const evil = (c) => c.greet(naming(11n, running, { acked: [60000, 0] }), naming(12n, ended)).then(() => c.send(frame(FRAME.OUTPUT, { tag: 11n, offset: 60000 }, Buffer.from('EVIL'))));
  await withInit(evil, async (box) => {
    await until('it has failed', async () => (await statusOf(box.id)) === 'failed');
    for (const x of [running, ended]) {
      assert.equal((await server.request('GET', `/v1/executions/${x}`)).status, 404);
      const own = await server.request('GET', `/v1/executions/${x}`, undefined, { key: other });
      assert.equal(own.status, 200);
      assert.equal(own.json.stdout, 'S'.repeat(60000));
    }
    assert.equal((await server.request('GET', `/v1/executions/${running}`, undefined, { key: other })).json.status, 'running');
  });
});

it('a process that it was given is adopted; the same in another sandbox, or too many, are not', { timeout: 120000 }, async () => {
  const given = {};
  let say = []; // RECORDs of the next greeting
  const attach = async (c) => {
    await c.greet(...say);
    const start = await c.frameOf(FRAME.START);
    given.tag = start.tag;
    given.execution = start.payload.subarray(0, 20).toString();
    await c.send(frame(FRAME.STARTED, { tag: start.tag }, started()));
  };
  const restart = async () => {
    const front = server.frontPid;
    process.kill(front, 'SIGKILL');
    await until('there is another front', () => server.frontPid && server.frontPid !== front);
    server.renewAgent();
    await until('it answers', () => server.request('GET', '/health').then((a) => a.status === 200, () => false));
  };
  await withInit(attach, async (box) => {
    const x = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'sleep 1000' });
    assert.equal(x.status, 201, x.text);
    assert.equal(x.json.id, given.execution);
    // The control: what was signed for it is believed, however often it is said.
    say = Array(RECORDS_MAX).fill(naming(given.tag, given.execution));
    await restart();
    const adopted = await server.request('GET', `/v1/executions/${given.execution}`);
    assert.equal(adopted.json?.status, 'running', adopted.text);
    assert.notEqual(await statusOf(box.id), 'failed');
    await withInit((c) => c.greet(naming(given.tag, given.execution)), async (thief) => {
      await until('the thief has failed', async () => (await statusOf(thief.id)) === 'failed');
      assert.notEqual(await statusOf(box.id), 'failed');
    });
    say.push(say[0]);
    await restart();
    await until('it has failed', async () => (await statusOf(box.id)) === 'failed');
  });
});
