// A name where an id could stand, in every API; and what the server says about itself.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readFileSync } from 'node:fs';
import { Server } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { assertRefused, finish } from './support.mjs';

describe('a name in a path', { timeout: 60000 }, () => {
  let server, box, other;
  const get = async (path, options) => await server.request('GET', path, undefined, options);
  before(async () => {
    server = await Server.start();
    box = await server.create({ name: 'work' });
    other = (await server.request('POST', '/v1/keys', { name: 'other', tenant: 'other', scope: 'use' })).json.key;
  });
  after(() => finish(server));

  it('stands for the id: to look, run, read, watch, list and change', async () => {
    assert.equal((await get('/v1/sandboxes/work')).json.id, box.id);
    const r = await server.exec('work', 'echo $((6 * 7))');
    assert.deepEqual([r.stdout, r.sandboxId], ['42\n', box.id]);
    assert.equal((await server.request('PUT', '/v1/sandboxes/work/files?path=f', 'content')).status, 200);
    assert.equal((await get('/v1/sandboxes/work/files?path=f')).text, 'content');
    const started = (await server.request('POST', '/v1/sandboxes/work/processes', { command: 'cat', openStdin: true, name: 'reader' })).json;
    assert.deepEqual((await get('/v1/sandboxes/work/processes')).json.processes.map((p) => p.id), [started.id]);
    const socket = await Socket.open(server, '/v1/sandboxes/work/processes/reader/output');
    assert.equal((await socket.next()).text.id, started.id);
    socket.tcp.destroy();
    assert.deepEqual((await get('/v1/executions?sandbox=work')).json.executions.map((e) => e.sandboxId), [box.id]);
    assert.equal((await get('/v1/disks?sandbox=work')).status, 200);
    assert.equal((await server.request('PATCH', '/v1/sandboxes/work', { description: 'by name' })).json.description, 'by name');
    assert.match((await get('/v1/sandboxes/work/ports/8000')).json.url, new RegExp(box.id), 'addresses that are told have the id');
  });

  it('stands for the id in Agentuity’s and E2B’s APIs', async () => {
    const a = await get('/agentuity/sandbox/work');
    assert.equal(a.json.data?.sandboxId ?? a.json.sandboxId, `sbx_${box.id}`, a.text);
    const e = await get('/e2b/sandboxes/work', { headers: { 'x-api-key': server.key } });
    assert.match(e.json.sandboxID, new RegExp(`^${box.id}`), e.text);
  });

  it('is its tenant’s own', async () => {
    assertRefused(await get('/v1/sandboxes/work', { key: other }), 404, 'not_found');
    const own = (await server.request('POST', '/v1/sandboxes', { name: 'work' }, { key: other })).json;
    assert.equal((await get('/v1/sandboxes/work', { key: other })).json.id, own.id);
    assert.equal((await get('/v1/sandboxes/work')).json.id, box.id);
    const alike = (await server.request('POST', '/v1/sandboxes', { name: box.id }, { key: other })).json;
    assert.equal((await get(`/v1/sandboxes/${box.id}`, { key: other })).json.id, alike.id, 'an id of somebody else hides no name');
  });

  it('does not win over an id', async () => {
    const decoy = await server.create({ name: box.id });
    assert.equal((await get(`/v1/sandboxes/${box.id}`)).json.id, box.id);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${decoy.id}`)).status, 204);
    assert.equal((await get(`/v1/sandboxes/${box.id}`)).json.id, box.id);
  });

  it('ends with its sandbox', async () => {
    const brief = await server.create({ name: 'brief' });
    assert.equal((await server.request('DELETE', '/v1/sandboxes/brief')).status, 204);
    assertRefused(await get('/v1/sandboxes/brief'), 404, 'not_found');
    assertRefused(await server.request('POST', '/v1/sandboxes/brief/exec', { command: 'true' }), 404, 'not_found');
    assert.equal((await get(`/v1/sandboxes/${brief.id}?includeDeleted=true`)).status, 200);
  });

  it('may be anything that a path can have: what is none is not found', async () => {
    for (const name of ['nothing', '%00', '..', 'a'.repeat(300), '%ff%fe']) {
      const r = await get(`/v1/sandboxes/${name}/processes`);
      assert.ok([400, 404].includes(r.status), `${name}: ${r.text}`);
    }
  });
});

describe('the server', { timeout: 60000 }, () => {
  let server;
  before(async () => {
    server = await Server.start();
  });
  after(() => finish(server));

  it('says at / what it is, to everybody', async () => {
    const r = await server.request('GET', '/', undefined, { key: '' });
    assert.equal(r.status, 200);
    assert.equal(r.json.name, 'bunker');
    assert.equal(r.json.description, '/openapi.yaml');
    assert.equal((await server.request('GET', r.json.health, undefined, { key: '' })).json.version, r.json.version);
  });

  it('has the description of its API, for those with a key', async () => {
    const r = await server.request('GET', '/openapi.yaml');
    assert.equal(r.headers['content-type'], 'application/yaml');
    assert.equal(r.text, readFileSync(new URL('../../api/openapi.yaml', import.meta.url), 'utf8'));
    assertRefused(await server.request('GET', '/openapi.yaml', undefined, { key: '' }), 401, 'unauthorized');
  });
});
