// K183: signed URLs that name no sandbox. Whoever has no key can make the server try every token, and gets only so much of its time for that.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { Server, until } from '../lib/server.mjs';
import { finish } from '../system/support.mjs';

const SANDBOXES = 40;
const REQUESTS = 4000;

describe('signed URLs', { timeout: 120000 }, () => {
  let server, box, agent;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
    agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    for (let i = 0; i < SANDBOXES; i += 8) await Promise.all(Array.from({ length: 8 }, () => server.create()));
    const made = await server.request('POST', '/sandboxes', { templateID: 'base' }, { key: '', headers: { 'x-api-key': server.key } });
    assert.equal(made.status, 201, made.text);
    box = made.json;
  });
  after(async () => {
    agent.destroy();
    await finish(server);
  });

  const sign = (path, token) => `v1_${createHash('sha256').update(`${path}:read::${token}`).digest('base64').replace(/=+$/, '')}`;
  const get = (path, token, headers = {}) =>
    new Promise((resolve, reject) => {
      const query = new URLSearchParams({ path, signature: sign(path, token) });
      http.get(`${server.url}/files?${query}`, { agent, headers }, (answer) => {
        answer.resume();
        answer.on('end', () => resolve({ status: answer.statusCode, again: answer.headers['retry-after'] }));
      }).on('error', reject);
    });

  it('K183_signatures_of_nobody_get_no_more_than_their_share_of_the_servers_time', async () => {
    assert.equal((await get('/etc/passwd', 'guess')).status, 401, 'control: one is searched for');
    assert.equal((await get('/etc/passwd', box.envdAccessToken)).status, 200, 'control: a good one is found');
    const count = {};
    const flood = Array.from({ length: 8 }, async (_, k) => {
      for (let i = k; i < REQUESTS; i += 8) {
        const { status, again } = await get(`/tmp/${i}`, 'guess');
        count[status] = (count[status] ?? 0) + 1;
        if (status === 503) assert.equal(again, '1');
      }
    });
    await until('the budget is used up', async () => count[503] > 0, 60000);
    assert.equal((await get('/etc/hostname', box.envdAccessToken)).status, 200, 'one that was found lately is still found, by any path');
    assert.equal((await get('/tmp/x', 'guess', { 'e2b-sandbox-id': box.sandboxID })).status, 401, 'and one that names its sandbox is never refused for it');
    await Promise.all(flood);
    assert.ok(count[503] > REQUESTS / 8, JSON.stringify(count));
    await until('after a while it is searched again', async () => (await get('/tmp/y', 'guess')).status === 401, 20000);
  });
});
