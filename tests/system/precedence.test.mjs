import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Server } from '../lib/server.mjs';
import { finish } from './support.mjs';

/**
 * Which error a request with several faults gets: first the key, then the sandbox, then the body.
 * A sandbox that is not there is 404 whatever the body says, so that a client which retries on 404
 * does not depend on what it sent.
 */
describe('error precedence', () => {
  let server;
  let box;
  before(async () => {
    server = await Server.start();
    box = await server.create();
  });
  after(() => finish(server));

  const missing = 'a'.repeat(20);
  const routes = [
    ['POST', 'exec'], ['POST', 'processes'], ['POST', 'jobs'],
    ['POST', 'processes/1/signal'], ['POST', 'processes/1/resize'], ['POST', 'jobs/x/stop'], ['PATCH', ''],
    ['PATCH', 'env'], ['POST', 'pause'], ['POST', 'resume'],
    ['POST', 'checkpoints'], ['POST', 'snapshots'], ['POST', 'fork'], ['POST', 'contexts'],
    ['POST', 'contexts/python/execute'], ['POST', 'code'],
    ['POST', 'fs/write'], ['POST', 'fs/mkdir'], ['POST', 'fs/move'], ['POST', 'fs/grep'],
  ];
  const bodies = { 'no JSON': '{', 'an unknown field': '{"nonsense":1}' };
  const at = (id, rest) => `/v1/sandboxes/${id}${rest && `/${rest}`}`;
  const send = (method, path, body) => server.request(method, path, body, { headers: { 'content-type': 'application/json' } });

  for (const [method, rest] of routes)
    for (const [what, body] of Object.entries(bodies))
      it(`${method} ${rest || 'the sandbox'} with ${what}: 404 without the sandbox, 400 with it`, async () => {
        const absent = await send(method, at(missing, rest), body);
        assert.equal(absent.status, 404, absent.text);
        const present = await send(method, at(box.id, rest), body);
        assert.equal(present.status, 400, present.text);
      });

  const queries = ['events?limit=0', 'metrics?start=x', 'fs/watch?path=.&recursive=x', 'fs/tar?path=.&compression=x',
    'diff?format=nonsense', 'diff?checkpoint=a&snapshot=b', 'export?nonsense=1', 'export?path=relative'];
  for (const query of queries)
    it(`GET ${query}: 404 without the sandbox, 400 with it`, async () => {
      const absent = await server.request('GET', at(missing, query));
      assert.equal(absent.status, 404, absent.text);
      const present = await server.request('GET', at(box.id, query));
      assert.equal(present.status, 400, present.text);
    });

  it('GET events of a sandbox that has ended: its records are there, so the query counts', async () => {
    const ended = await server.create();
    await server.request('DELETE', at(ended.id, ''));
    const answer = await server.request('GET', at(ended.id, 'events?limit=0'));
    assert.equal(answer.status, 400, answer.text);
  });

  it('a snapshot that is not there is 404 whatever the body or the query says', async () => {
    const { id } = (await server.request('POST', at(box.id, 'snapshots'), {})).json;
    for (const body of ['{', '{"nonsense":1}', '{}', '{"tag":1}']) {
      assert.equal((await send('PATCH', `/v1/snapshots/${missing}`, body)).status, 404, body);
      assert.equal((await send('PATCH', `/v1/snapshots/${id}`, body)).status, 400, body);
    }
    assert.equal((await server.request('GET', `/v1/snapshots/${missing}/export?format=nonsense`)).status, 404);
    assert.equal((await server.request('GET', `/v1/snapshots/${id}/export?format=nonsense`)).status, 400);
  });

  it('a volume that is not there is 404 whatever is asked of its content', async () => {
    const { volumeID, token } = (await server.request('POST', '/volumes', { name: 'short-lived' })).json;
    const ask = async () => (await fetch(`${server.url}/volumecontent/${volumeID}/path`, { headers: { authorization: `Bearer ${token}` } })).status;
    assert.equal(await ask(), 400, 'without a path');
    assert.equal((await server.request('DELETE', `/volumes/${volumeID}`)).status, 204);
    assert.equal(await ask(), 404);
  });
});
