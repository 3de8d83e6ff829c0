// What the database remembers: sandboxes that have ended, executions, events. Rows of any allowed size can be written and read, and a
// read that fails is told apart from one that finds nothing.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Server } from '../lib/server.mjs';
import { assertRefused, finish } from './support.mjs';

let server;
before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
});
after(() => finish(server));

const metadata = (kilobytes) => Object.fromEntries(Array.from({ length: kilobytes }, (_, i) => [`k${i}`, 'x'.repeat(1000)]));
const sql = (text) =>
  execFileSync('python3', ['-c', 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1], timeout=20); d.executescript(sys.argv[2]); d.close()',
    join(server.data, 'front/bunker.db'), text]);

describe('large rows', { timeout: 120000 }, () => {
  it('a sandbox with as much metadata as is allowed can be changed and deleted', async () => {
    const box = await server.create({ metadata: metadata(60) });
    const changed = await server.request('PATCH', `/v1/sandboxes/${box.id}`, { description: 'changed' });
    assert.equal(changed.status, 200, changed.text);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${box.id}`)).status, 204);
    const past = await server.request('GET', `/v1/sandboxes/${box.id}?deleted=true`);
    assert.ok(past.status === 404 || past.json.status === 'deleted', past.text);
  });

  it('a list that is sorted over some MiB is complete', async () => {
    const ids = [];
    for (let i = 0; i < 60; i++) ids.push((await server.create({ name: `past-${i}`, metadata: metadata(38) })).id);
    for (const id of ids) assert.equal((await server.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
    const listed = await server.request('GET', '/v1/sandboxes?status=deleted&limit=100');
    assert.equal(listed.status, 200);
    const found = new Set(listed.json.sandboxes.map((s) => s.id));
    assert.deepEqual(ids.filter((id) => !found.has(id)), []);
  });
});

describe('a database that cannot be read', { timeout: 60000 }, () => {
  it('is an error, never an empty answer', async () => {
    const box = await server.create();
    const { executionId } = await server.exec(box.id, 'echo kept');
    const paths = {
      sandboxes: ['/v1/sandboxes?status=deleted', '/v1/sandboxes?status=terminated', '/v1/sandboxes/aaaaaaaaaaaaaaaaaaaa/events'],
      executions: ['/v1/executions', `/v1/sandboxes/${box.id}/processes?status=ended`, `/v1/executions/${executionId}`, '/v1/executions/aaaaaaaaaaaaaaaaaaaa'],
      events: [`/v1/sandboxes/${box.id}/events`],
    };
    const before = {};
    for (const path of Object.values(paths).flat()) before[path] = (await server.request('GET', path)).status;
    for (const [table, affected] of Object.entries(paths)) {
      sql(`ALTER TABLE ${table} RENAME TO hidden`);
      const answers = [];
      for (const path of affected) answers.push([path, await server.request('GET', path)]);
      sql(`ALTER TABLE hidden RENAME TO ${table}`);
      for (const [path, answer] of answers) {
        assert.equal(answer.status, 500, `${path}: ${answer.text}`);
        assert.equal(answer.json.error.code, 'internal', path);
        assert.match(answer.json.error.message, /could not be read/, path);
      }
    }
    for (const path of Object.values(paths).flat()) assert.equal((await server.request('GET', path)).status, before[path], path);
    assert.equal((await server.request('GET', `/v1/executions/${executionId}`)).json.stdout, 'kept\n');
    assertRefused(await server.request('GET', '/v1/executions/aaaaaaaaaaaaaaaaaaaa'), 404, 'not_found');
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${box.id}`)).status, 204);
  });
});
