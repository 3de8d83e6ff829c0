import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { Server, sleep, until } from '../lib/server.mjs';
import { finish, list, metric } from './support.mjs';

/** What has not begun ends with its caller: nobody has the id of what would be made. */
describe('callers that leave before their sandbox is made', () => {
  const COUNT = 100;
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
  });
  after(() => finish(server));

  /** Sends a request and resets the connection a moment later. */
  const sendAndReset = (path, body, ms) => new Promise((resolve) => {
    const { hostname, port } = new URL(server.url);
    const text = JSON.stringify(body);
    const socket = net.connect(port, hostname, () => {
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
      setTimeout(() => socket.resetAndDestroy(), ms);
    });
    socket.on('error', () => {});
    socket.on('close', resolve);
  });
  const storm = (path, body) => Promise.all(Array.from({ length: COUNT }, () => sendAndReset(path, body, 20)));
  /** On a busy machine some are answered before their client resets; those are its to delete. */
  const deleteAnswered = async (but = []) => {
    const others = async () => (await list(server)).filter((box) => !but.includes(box.id));
    await until('nothing is being made or ended', async () => (await others()).every((box) => box.status === 'idle'), 60000);
    const answered = await others();
    for (const box of answered) await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    return answered.length;
  };
  const countBoots = async (t, path, but) => {
    const before = await metric(server, 'boots_total');
    await storm(path, {});
    const answered = await deleteAnswered(but);
    const boots = (await metric(server, 'boots_total')) - before - answered;
    t.diagnostic(`${answered} of ${COUNT} were answered; ${boots} of the others were booted`);
    assert.ok(boots <= COUNT / 2, `${boots} of ${COUNT} were booted for nobody`);
  };

  it('creates: most are not booted, and none is left', async (t) => {
    await countBoots(t, '/v1/sandboxes', []);
    await sleep(200);
    assert.equal(await metric(server, 'sandboxes'), 0);
  });

  it('forks: most are not begun, and none is left', async (t) => {
    const box = await server.create();
    await countBoots(t, `/v1/sandboxes/${box.id}/fork`, [box.id]);
    assert.equal((await server.exec(box.id, ['true'])).exitCode, 0);
  });
});
