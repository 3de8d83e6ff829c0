// What happened before costs nothing now: with a hundred thousand ended sandboxes in the database, lists are as quick as with
// a hundred, and nobody who creates waits for somebody who reads, or for what is forgotten.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyRow } from '../lib/past.mjs';
import { Server, until } from '../lib/server.mjs';
import { finish, remove } from './support.mjs';

const ROWS = 100000;
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

let server;
before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
});
after(() => finish(server));

async function timed(call) {
  const start = performance.now();
  const value = await call();
  return [performance.now() - start, value];
}

async function get(path) {
  const answer = await server.request('GET', path);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

async function medianOf(path, rounds = 15) {
  const times = [];
  for (let i = 0; i < rounds; i++) times.push((await timed(() => get(path)))[0]);
  return median(times);
}

describe('a hundred thousand sandboxes that have ended', { timeout: 200000 }, () => {
  const pages = ['/v1/sandboxes?status=deleted&limit=100', '/v1/sandboxes?status=terminated&limit=100', '/v1/sandboxes?status=deleted&name=rare'];
  const few = {};
  before(async () => {
    const model = await server.create();
    await remove(server, model.id);
    await remove(server, (await server.create({ name: 'rare' })).id);
    copyRow(server.data, 'sandboxes', model.id, 100);
    for (const page of pages) few[page] = await medianOf(page);
    copyRow(server.data, 'sandboxes', model.id, ROWS - 100, { first: 100 });
  });

  it('are listed a page at a time as quickly as a hundred', async (t) => {
    for (const page of pages) {
      const many = await medianOf(page);
      t.diagnostic(`${page}: ${few[page].toFixed(1)} ms with 100 rows, ${many.toFixed(1)} ms with ${ROWS}`);
      assert.ok(many < 4 * few[page] + 10, `${page} took ${many} ms, and ${few[page]} ms with 100 rows`);
    }
  });

  it('are all told, each once, in both directions', async () => {
    const seen = new Set();
    let cursor = '';
    for (let i = 0; i < 5; i++) {
      const page = await get(`/v1/sandboxes?status=deleted&limit=1000${cursor && `&cursor=${cursor}`}`);
      for (const { id } of page.sandboxes) {
        assert.ok(!seen.has(id), `${id} is there twice`);
        seen.add(id);
      }
      cursor = page.nextCursor;
    }
    assert.equal(seen.size, 5000);
    const newest = await get('/agentuity/sandbox?status=deleted&limit=100');
    assert.equal(newest.data.total, ROWS + 2);
    const times = newest.data.sandboxes.map((s) => Date.parse(s.createdAt));
    assert.deepEqual(times, times.toSorted((a, b) => b - a), 'the newest come first');
    const oldest = await get('/agentuity/sandbox?status=deleted&limit=100&direction=asc&offset=50000');
    assert.ok(oldest.data.sandboxes.every((s) => Date.parse(s.createdAt) < times.at(-1)));
  });

  it('a create does not wait while somebody reads them all', async (t) => {
    const quiet = [], busy = [];
    const make = async (times) => {
      const [ms, box] = await timed(() => server.create());
      times.push(ms);
      await remove(server, box.id);
    };
    for (let i = 0; i < 9; i++) await make(quiet);
    let reading = true, reads = 0, longest = 0;
    const reader = (async () => {
      while (reading) {
        const [ms] = await timed(() => get('/agentuity/sandbox?status=deleted&sort=name'));
        longest = Math.max(longest, ms);
        reads++;
      }
    })();
    for (let i = 0; i < 9; i++) await make(busy);
    reading = false;
    await reader;
    t.diagnostic(`create ${median(quiet).toFixed(1)} ms, beside ${reads} sorted lists of up to ${longest.toFixed(0)} ms ${median(busy).toFixed(1)} ms`);
    assert.ok(median(busy) < Math.max(2 * median(quiet) + 20, longest / 4), `a create took ${median(busy)} ms, and ${median(quiet)} ms when nobody read`);
  });
});

describe('a hundred thousand rows whose time is over', { timeout: 300000 }, () => {
  const spooled = 1000;
  const spool = () => readdirSync(join(server.data, 'front/spool'));
  let model, run;
  before(async () => {
    const box = await server.create();
    run = (await server.exec(box.id, 'true')).executionId;
    model = box.id;
    await remove(server, box.id);
    await server.crash();
    copyRow(server.data, 'sandboxes', model, ROWS, { first: 1e6, ended_ms: 'n' });
    copyRow(server.data, 'executions', run, ROWS, { first: 1e6, started_ms: 'n' });
    for (let i = 0; i < spooled; i++) writeFileSync(join(server.data, 'front/spool', `p${String(1e6 + i).padStart(19, '0')}.${i % 2}`), 'old');
  });

  it('are forgotten while creates go on, with their spool files', async (t) => {
    const left = async () => (await server.request('GET', `/v1/executions/p${String(1e6 + ROWS - 1).padStart(19, '0')}`)).status === 200;
    await server.launch();
    const times = [];
    while (await left()) {
      const [ms, box] = await timed(() => server.create());
      times.push(ms);
      await remove(server, box.id);
    }
    times.sort((a, b) => a - b);
    t.diagnostic(`${times.length} creates meanwhile: median ${median(times).toFixed(1)} ms, at most ${times.at(-1).toFixed(0)} ms`);
    assert.ok(times.length >= 10, `expiry left room for ${times.length} creates only`);
    assert.ok(times.at(-1) < 1500, `a create waited ${times.at(-1)} ms`);
    await until('the spool is empty', () => spool().length === 0);
    assert.equal((await get(`/v1/executions/${run}`)).status, 'completed', 'what is younger stays');
  });
});

describe('a read after a write', { timeout: 60000 }, () => {
  it('sees it, however close they come', async () => {
    const box = await server.create();
    for (let i = 0; i < 30; i++) {
      const { executionId } = await server.exec(box.id, 'true');
      assert.equal((await get(`/v1/executions/${executionId}`)).status, 'completed');
      const listed = await get('/v1/executions?limit=1');
      assert.equal(listed.executions[0].id, executionId);
    }
    await server.request('POST', `/v1/sandboxes/${box.id}/pause`);
    assert.ok((await get(`/v1/sandboxes/${box.id}/events`)).events.some((e) => e.type.endsWith('paused')));
    await remove(server, box.id);
    assert.equal((await get(`/v1/sandboxes/${box.id}?includeDeleted=true`)).status, 'deleted');
  });
});
