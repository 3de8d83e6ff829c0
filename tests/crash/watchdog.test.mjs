// A front whose loop does not turn is replaced; one that was stopped is not.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Faults } from './faults.mjs';
import { Server, sleep, until } from '../lib/server.mjs';

const SANITIZED = process.env.BUNKER?.includes('asan');
let server, faults, box;
before(async () => {
  faults = new Faults();
  server = await Server.start({ args: ['--pool', '0', '--watchdog', '2s'], env: { BUNKER_FAULTS: faults.path } });
  box = await server.create();
});
after(async () => {
  await server?.destroy();
  faults?.close();
});

const killed = () => (server.log.text.match(/the front did not answer and was killed/g) ?? []).length;
const answers = () => server.request('GET', '/health').then((r) => r.status === 200, () => false);

test('a front that spins is killed and replaced, the log says so, and sandboxes go on', { timeout: 60000, skip: !SANITIZED && 'only sanitized builds have fault points' }, async () => {
  const started = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'while :; do date +%s%N >/tmp/alive; sleep 0.1; done' });
  assert.equal(started.status, 201, started.text);
  const front = server.frontPid;
  faults.arm('front', -1);
  const lost = server.exec(box.id, 'true').then(() => 'answered', () => 'lost');
  await until('the front is another', () => server.frontPid && server.frontPid !== front, 30000);
  assert.equal(await lost, 'lost');
  assert.ok(faults.fired('front'));
  server.renewAgent();
  await until('it answers', answers);
  assert.equal(killed(), 1, server.log.text);
  const at = (await server.exec(box.id, 'cat /tmp/alive; sleep 0.5; cat /tmp/alive')).stdout.trim().split('\n');
  assert.notEqual(at[0], at[1], 'the process inside goes on');
});

test('a front that is stopped for longer is left alone, and so is a busy one', { timeout: 60000 }, async () => {
  const front = server.frontPid, before = killed();
  process.kill(front, 'SIGSTOP');
  await sleep(5000);
  process.kill(front, 'SIGCONT');
  assert.ok(await answers());
  const end = Date.now() + 4000;
  await Promise.all(Array.from({ length: 4 }, async () => {
    while (Date.now() < end) await server.exec(box.id, 'head -c 2000000 /dev/zero');
  }));
  assert.equal(server.frontPid, front);
  assert.equal(killed(), before);
});
