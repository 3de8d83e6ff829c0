// What takes minutes, on a server whose minutes are seconds.
import { after, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Sandbox, TimeoutError } from 'e2b';
import { fastClock } from '../../lib/clock.mjs';
import { failure, sleep, startServer, until } from './support.mjs';

const RATE = 60; // a minute of the server is a second of ours
const clock = fastClock(RATE);
await startServer({ env: clock.env });
after(() => clock.done());

describe('a background command', () => {
  it('is reached by its pid after five minutes, and what was missed is replayed', { timeout: 30000 }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 3600000 });
    const handle = await sandbox.commands.run('i=0; while true; do echo $i; i=$((i+1)); sleep 0.2; done', { background: true });
    // The stream's own deadline of a minute ends the stream, but not the command.
    const error = await failure(handle.wait());
    assert.ok(error instanceof TimeoutError, String(error));
    const seen = handle.stdout.trim().split('\n').length;
    await sleep((5 * 60000) / RATE - 1000);
    const again = await sandbox.commands.connect(handle.pid, { timeoutMs: 0 });
    await until('output goes on', () => again.stdout.split('\n').length > 15);
    const numbers = (handle.stdout + again.stdout).trim().split('\n').map(Number);
    assert.deepEqual(numbers, Array.from({ length: numbers.length }, (_, i) => i), 'without a hole, without a double');
    assert.ok(seen > 1 && numbers.length > seen);
    assert.equal(await sandbox.commands.kill(handle.pid), true);
    await sandbox.kill();
  });

  it('gets a sign of life in its stream when it says nothing', { timeout: 30000 }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 3600000 });
    const json = Buffer.from(JSON.stringify({ process: { cmd: '/bin/sleep', args: ['100'] } }));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(json.length, 1);
    const response = await fetch(`${process.env.E2B_SANDBOX_URL}/process.Process/Start`, {
      method: 'POST',
      headers: {
        'content-type': 'application/connect+json',
        'keepalive-ping-interval': '50',
        'e2b-sandbox-id': sandbox.sandboxId,
        'x-access-token': sandbox.envdAccessToken,
      },
      body: Buffer.concat([head, json]),
    });
    const reader = response.body.getReader();
    const started = Date.now();
    let text = '';
    while (text.split('"keepalive"').length < 3) text += Buffer.from((await reader.read()).value).toString('latin1');
    const passed = (Date.now() - started) * RATE;
    assert.ok(passed > 90000 && passed < 300000, `two came after ${passed} ms`);
    await reader.cancel();
    await sandbox.kill();
  });
});
