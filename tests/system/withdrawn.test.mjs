import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { Server, sleep, until } from '../lib/server.mjs';
import { finish, list, metric, serverProcesses } from './support.mjs';

/** What has not begun ends with its caller: nobody has the id of what would be made. */
describe('callers that leave before their operation has begun', () => {
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

  it('snapshots and checkpoints: those that wait for their turn are not made, and a pause is', async (t) => {
    const box = await server.create();
    const at = `/v1/sandboxes/${box.id}`;
    const [keeper] = serverProcesses(server).find(([, name]) => name === 'bunker-keeper');
    process.kill(keeper, 'SIGSTOP');
    t.after(() => process.kill(keeper, 'SIGCONT'));
    const open = await metric(server, 'http_connections');
    const first = server.request('POST', `${at}/snapshots`, { name: 'first' });
    await sleep(300); // it has its turn, and waits for the keeper
    const left = ['a', 'b', 'c'].flatMap((name) => [
      sendAndReset(`${at}/snapshots`, { name }, 100), sendAndReset(`${at}/checkpoints`, { name }, 100),
    ]);
    await Promise.all([...left, sendAndReset(`${at}/pause`, { memory: true }, 100)]);
    await until('their connections are gone', async () => (await metric(server, 'http_connections')) <= open + 2, 10000);
    process.kill(keeper, 'SIGCONT');
    assert.equal((await first).status, 201);
    await until('it is paused', async () => (await server.request('GET', at)).json.status === 'paused', 10000);
    const { json: made } = await server.request('GET', '/v1/snapshots');
    assert.deepEqual(made.snapshots.map((snapshot) => snapshot.name), ['first']);
    const { json: restorePoints } = await server.request('GET', `${at}/checkpoints`);
    assert.deepEqual(restorePoints.checkpoints, []);
    await server.request('DELETE', at);
  });
});
