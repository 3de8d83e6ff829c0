// An init or file worker that was taken over sends more than it may: output without waiting for ACKs, content beyond the length it promised.
// Its sandbox fails; the front does not grow, and others are served.
import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { FRAME, RECORD, content, entry, frame, hostile, record, started } from '../lib/hostile.mjs';
import { Server, until } from '../lib/server.mjs';
import { residentKib } from '../system/support.mjs';

const MIB = 2 ** 20;
const ENOUGH = 400 * MIB;
const GROWTH = 100; // MiB
let server, other;
before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
  other = await server.create();
});
after(() => server?.destroy());

/** Sends until the front has hung up, or has taken far too much. */
async function pour(channel, piece) {
  for (let sent = 0; sent < ENOUGH && !channel.socket.destroyed; sent += piece(sent).length) await Promise.race([channel.send(piece(sent)), channel.closed]);
}

async function check(what, attacker, box, ask) {
  const before = residentKib(server.frontPid), front = server.frontPid;
  let highest = before, over = false;
  const watch = (async () => {
    while (!over) {
      highest = Math.max(highest, residentKib(front));
      assert.equal((await server.exec(other.id, 'echo fine')).stdout, 'fine\n', 'control: another sandbox is served');
    }
  })();
  const end = await ask();
  try {
    await until('its sandbox has failed', async () => (await server.request('GET', `/v1/sandboxes/${box.id}`)).json.status === 'failed', 60000);
  } finally {
    over = true;
    end?.();
    attacker.restore();
  }
  await watch;
  assert.equal(server.frontPid, front, 'the front is the same');
  assert.ok((highest - before) >> 10 < GROWTH, `${(highest - before) >> 10} MiB for ${what}`);
}

it('output that waits for no ACK, to a client that does not read, ends its sandbox', { timeout: 120000 }, async () => {
  const box = await server.create();
  const attacker = await hostile(server, box.id, {
    attach: async (c) => {
      await c.greet();
      const { tag } = await c.frameOf(FRAME.START);
      await c.send(frame(FRAME.STARTED, { tag }, started()));
      const bytes = Buffer.alloc(64 * 1024, 'x');
      let offset = 0n;
      await pour(c, (sent) => frame(FRAME.OUTPUT, { tag, offset: (offset = BigInt(sent - (sent / (bytes.length + 24)) * 24)) }, bytes));
    },
  });
  await check('output', attacker, box, async () => {
    const stream = await server.stream(`/v1/sandboxes/${box.id}/exec`, { command: 'yes' });
    stream.response.on('error', () => {});
    stream.response.pause();
    return () => stream.close();
  });
});

it('content without end behind a length of ten bytes ends its sandbox', { timeout: 120000 }, async () => {
  const box = await server.create();
  const attacker = await hostile(server, box.id, {
    worker: async (c) => {
      await c.send(frame(FRAME.STARTED, {}, started()));
      await c.record();
      await c.send(record(RECORD.ENTRY, entry('/x', { size: 10 })), record(RECORD.CONTENT, content(10)));
      const data = record(RECORD.DATA, Buffer.alloc(64 * 1024, 'x'));
      await pour(c, () => data);
    },
  });
  await check('a file', attacker, box, async () => {
    server.request('GET', `/v1/sandboxes/${box.id}/files?path=/x`).catch(() => {});
  });
});
