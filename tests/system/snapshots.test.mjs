// Snapshots: disks that new sandboxes begin with; and forks.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Server, safeReaddir, sleep, until } from '../lib/server.mjs';
import { assertRefused, finish, killServer } from './support.mjs';

const isRoot = process.getuid() === 0;
const KEY_A = 'bnk_aaaaaaaaaaaaaaaaaaaaaaaa';
const KEY_B = 'bnk_bbbbbbbbbbbbbbbbbbbbbbbb';

for (const [pool, args] of [['in a btrfs pool', []], ['in plain directories', ['--disk-pool', 'directory']]])
  describe(`snapshots ${pool}`, { skip: !isRoot && 'needs root', timeout: 120000 }, () => {
    let server, box;
    const snap = (id, body = {}) => server.request('POST', `/v1/sandboxes/${id}/snapshots`, body);
    const get = (ref) => server.request('GET', `/v1/snapshots/${encodeURIComponent(ref)}`);
    before(async () => {
      server = await Server.start({ args: ['--pool', '1', ...args] });
      box = await server.create();
      await server.exec(box.id, 'echo one > f; mkdir empty; ln -s f l; chmod 711 f; sudo rm /etc/hostname; seq 100 | xargs -I{} touch n{}');
    });
    after(() => finish(server));

    it('are made of a running sandbox, with name, tag, description, size and number of files', async () => {
      const made = await snap(box.id, { name: 'work', description: 'as it was' });
      assert.equal(made.status, 201, made.text);
      assert.match(made.json.id, /^[a-z0-9]{20}$/);
      assert.deepEqual([made.json.name, made.json.tag, made.json.description, made.json.status, made.json.parent, made.json.sandboxId, made.json.template], ['work', 'latest', 'as it was', 'ready', '', box.id, 'base']);
      const counted = await until('it is counted', async () => {
        const { json } = await get('work');
        return 'fileCount' in json && json;
      });
      assert.ok(counted.fileCount >= 102 && counted.fileCount < 140, `${counted.fileCount} files`);
      assert.ok(counted.sizeBytes > 0);
    });

    it('are what new sandboxes begin with, by id, name, name:tag or a tag that only one has', async () => {
      const { id } = (await get('work')).json;
      await server.exec(box.id, 'echo two > f');
      assert.equal((await snap(box.id, { name: 'work', tag: 'v2' })).status, 201);
      for (const [ref, expected] of [[id, 'one'], ['work', 'one'], ['work:latest', 'one'], ['work:v2', 'two'], ['v2', 'two']]) {
        const made = await server.create({ snapshot: ref });
        assert.equal((await server.exec(made.id, 'cat f')).stdout, `${expected}\n`, ref);
        assert.equal(made.snapshot, ref === 'work:v2' || ref === 'v2' ? (await get('v2')).json.id : id);
        await server.request('DELETE', `/v1/sandboxes/${made.id}`);
      }
      const made = await server.create({ snapshot: 'work' });
      assert.equal((await server.exec(made.id, 'stat -c %a f; readlink l; ls -d empty; ls /etc/hostname 2>&1; ls n* | wc -l; whoami')).stdout, "711\nf\nempty\nls: cannot access '/etc/hostname': No such file or directory\n100\nuser\n");
      await server.exec(made.id, 'rm -rf *');
      assert.equal((await server.exec(box.id, 'cat f')).stdout, 'two\n', 'nobody else notices');
      const again = await server.create({ snapshot: 'work' });
      assert.equal((await server.exec(again.id, 'cat f')).stdout, 'one\n');
      for (const { id: other } of [made, again]) await server.request('DELETE', `/v1/sandboxes/${other}`);
    });

    it('lose a tag to the next of that name', async () => {
      const first = (await get('work:v2')).json;
      const second = (await snap(box.id, { name: 'work', tag: 'v2' })).json;
      assert.equal((await get('work:v2')).json.id, second.id);
      assert.equal((await get(first.id)).json.tag, '');
      const moved = await server.request('PATCH', `/v1/snapshots/${first.id}`, { tag: 'v2' });
      assert.equal(moved.json.tag, 'v2');
      assert.equal((await get(second.id)).json.tag, '');
      const untagged = await server.request('PATCH', `/v1/snapshots/${first.id}`, { tag: null });
      assert.equal(untagged.json.tag, '');
      assertRefused(await get('work:v2'), 404, 'not_found');
    });

    it('are listed with filters and page by page', async () => {
      const all = (await server.request('GET', '/v1/snapshots')).json.snapshots;
      assert.equal(all.length, 3);
      const first = (await server.request('GET', '/v1/snapshots?limit=2')).json;
      const rest = (await server.request('GET', `/v1/snapshots?limit=2&cursor=${first.nextCursor}`)).json;
      assert.deepEqual([...first.snapshots, ...rest.snapshots].map((s) => s.id), all.map((s) => s.id));
      assert.equal('nextCursor' in rest, false);
      assert.equal((await server.request('GET', '/v1/snapshots?tag=latest')).json.snapshots.length, 1);
      assert.equal((await server.request('GET', '/v1/snapshots?name=other')).json.snapshots.length, 0);
      assert.equal((await server.request('GET', `/v1/snapshots?sandbox=${box.id}`)).json.snapshots.length, 3);
      assertRefused(await server.request('GET', '/v1/snapshots?colour=red'), 400, 'unknown_field', 'colour');
    });

    it('are not deleted while a sandbox stands on them', async () => {
      const on = await server.create({ snapshot: 'work' });
      assertRefused(await server.request('DELETE', '/v1/snapshots/work'), 409, 'in_use');
      assert.equal((await server.exec(on.id, 'cat f')).stdout, 'one\n');
      await server.request('DELETE', `/v1/sandboxes/${on.id}`);
      const before = safeReaddir(server.disks('snapshots')).length;
      assert.equal((await server.request('DELETE', '/v1/snapshots/work')).status, 204);
      assertRefused(await get('work:latest'), 404, 'not_found');
      await until('its disk is gone', () => safeReaddir(server.disks('snapshots')).length === before - 1);
    });

    it('know what they were made from, to the root, and keep deleted links', async () => {
      const root = (await snap(box.id, { name: 'root' })).json;
      let from = root;
      const chain = [root.id];
      for (let i = 0; i < 3; i++) {
        const on = await server.create({ snapshot: from.id });
        await server.exec(on.id, `echo ${i} > level`);
        from = (await snap(on.id, { name: `level-${i}` })).json;
        chain.unshift(from.id);
        await server.request('DELETE', `/v1/sandboxes/${on.id}`);
      }
      assert.equal((await server.request('DELETE', '/v1/snapshots/level-0')).status, 204);
      const { lineage } = (await server.request('GET', '/v1/snapshots/level-2/lineage')).json;
      assert.deepEqual(lineage.map((s) => s.id), chain);
      assert.deepEqual(lineage.map((s) => s.status), ['ready', 'ready', 'deleted', 'ready']);
      const deep = await server.create({ snapshot: 'level-2' });
      assert.equal((await server.exec(deep.id, 'cat level f')).stdout, '2\ntwo\n');
      await server.request('DELETE', `/v1/sandboxes/${deep.id}`);
      for (const name of ['level-2', 'level-1', 'root']) assert.equal((await server.request('DELETE', `/v1/snapshots/${name}`)).status, 204);
      assert.equal((await server.request('GET', '/v1/snapshots')).json.snapshots.filter((s) => s.name.startsWith('level')).length, 0);
    });

    it('refuse what makes no sense', async () => {
      assertRefused(await snap(box.id, { name: 'a b' }), 400, 'invalid_field', 'name');
      assertRefused(await snap(box.id, { name: '../x' }), 400, 'invalid_field', 'name');
      assertRefused(await snap(box.id, { name: 'a', tag: 'x/y' }), 400, 'invalid_field', 'tag');
      assertRefused(await server.request('POST', '/v1/sandboxes', { snapshot: 'nowhere' }), 404, 'not_found', 'snapshot');
      const { id } = (await snap(box.id)).json;
      assertRefused(await server.request('POST', '/v1/sandboxes', { snapshot: id, template: 'base' }), 400, 'invalid_field', 'template');
      assertRefused(await server.request('PATCH', `/v1/snapshots/${id}`, {}), 400, 'missing_field', 'tag');
      assertRefused(await server.request('PATCH', `/v1/snapshots/${id}`, { tag: 7 }), 400, 'invalid_field', 'tag');
      assertRefused(await server.request('PATCH', `/v1/snapshots/${id}`, { tag: 'a b' }), 400, 'invalid_field', 'tag');
      assert.equal((await get(id)).json.tag, '');
    });

    it('survive a kill -9 of everything; what was not acknowledged leaves nothing', async () => {
      const kept = (await snap(box.id, { name: 'kept' })).json;
      const making = [1, 2, 3].map(() => snap(box.id).catch(() => undefined));
      await sleep(4);
      await killServer(server);
      await Promise.all(making);
      await server.launch();
      const known = (await server.request('GET', '/v1/snapshots')).json.snapshots;
      assert.ok(known.some((s) => s.id === kept.id && s.status === 'ready'));
      await until('rows and disks are the same', () => safeReaddir(server.disks('snapshots')).filter((name) => name.length === 20).length === known.length);
      const made = await server.create({ snapshot: 'kept' });
      assert.equal((await server.exec(made.id, 'cat f')).stdout, 'two\n');
    });

    it('fork a sandbox into many, with its files but without its processes', async () => {
      await server.exec(box.id, 'echo forked > f; sleep 500 >/dev/null 2>&1 &');
      const answer = await server.request('POST', `/v1/sandboxes/${box.id}/fork`, { count: 5 });
      assert.equal(answer.status, 201, answer.text);
      const forks = answer.json.sandboxes;
      assert.equal(new Set(forks.map((s) => s.id)).size, 5);
      for (const fork of forks) {
        assert.equal(fork.parent, box.id);
        assert.equal(fork.status, 'idle');
        const out = await server.exec(fork.id, 'cat f; pgrep sleep; echo $$ > f');
        assert.equal(out.stdout, 'forked\n');
      }
      assert.equal((await server.exec(box.id, 'cat f; pgrep -c sleep')).stdout, 'forked\n1\n');
      await server.request('POST', `/v1/sandboxes/${forks[0].id}/pause`, { memory: false });
      const second = await server.request('POST', `/v1/sandboxes/${forks[0].id}/fork`);
      assert.equal(second.json.sandboxes.length, 1, 'of a suspended one, too');
      assert.match((await server.exec(second.json.sandboxes[0].id, 'cat f')).stdout, /^\d+\n$/);
      for (const fork of [...forks, ...second.json.sandboxes]) await server.request('DELETE', `/v1/sandboxes/${fork.id}`);
      for (const count of [0, 101, -1, 1.5, '3']) assertRefused(await server.request('POST', `/v1/sandboxes/${box.id}/fork`, { count }), 400, 'invalid_field', 'count');
      await until('the copy in between is gone', async () => safeReaddir(server.disks('snapshots')).length === (await server.request('GET', '/v1/snapshots')).json.snapshots.length);
    });

    it('forks whose client has gone are destroyed: nobody has their ids', async () => {
      const all = async () => (await server.request('GET', '/v1/sandboxes?limit=500')).json.sandboxes.map((s) => s.id).sort();
      const before = await all();
      for (const path of [`/v1/sandboxes/${box.id}/fork`, `/sandboxes/${box.id}/fork`])
        for (const ms of [0, 5, 20]) {
          const going = new AbortController();
          const answer = fetch(server.url + path, { method: 'POST', signal: going.signal, headers: { 'x-api-key': server.key, authorization: `Bearer ${server.key}`, 'content-type': 'application/json' }, body: '{"count":2}' }).then((r) => r.json());
          const early = answer.catch(() => []); // it may be quicker than its client's going
          await sleep(ms);
          going.abort();
          const made = await early;
          for (const one of made.sandboxes ?? made) await server.request('DELETE', `/v1/sandboxes/${one.id ?? one.sandbox.sandboxID}`);
        }
      await server.request('POST', `/v1/sandboxes/${box.id}/discard`); // waits for its turn behind them
      await until('only those of before are left', async () => JSON.stringify(await all()) === JSON.stringify(before));
    });
  });

describe('snapshots of tenants', { skip: !isRoot && 'needs root', timeout: 60000 }, () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0', '--max-sandboxes', '4', '--api-key', `a=${KEY_A}`, '--api-key', `b=${KEY_B}`] });
  });
  after(() => finish(server));
  const as = (key) => (method, path, body) => server.request(method, path, body, { key });

  it('are as good as absent for others', async () => {
    const a = as(KEY_A), b = as(KEY_B);
    const box = (await a('POST', '/v1/sandboxes', {})).json;
    const made = (await a('POST', `/v1/sandboxes/${box.id}/snapshots`, { name: 'secret' })).json;
    const mark = (await a('POST', `/v1/sandboxes/${box.id}/checkpoints`, { name: 'mark' })).json;
    const absent = 'zzzzzzzzzzzzzzzzzzzz';
    for (const [method, path, body] of [
      ['GET', '/v1/snapshots/ID'], ['GET', '/v1/snapshots/ID/lineage'], ['PATCH', '/v1/snapshots/ID', { tag: 'x' }], ['DELETE', '/v1/snapshots/ID'],
      ['POST', '/v1/sandboxes', { snapshot: 'ID' }],
    ]) {
      const fill = (id) => [method, path.replace('ID', id), body && JSON.parse(JSON.stringify(body).replace('ID', id))];
      const theirs = await b(...fill(made.id)), none = await b(...fill(absent));
      assert.equal(theirs.status, 404);
      assert.equal(theirs.text.replace(made.id, absent), none.text);
    }
    for (const [method, path] of [['POST', '/fork'], ['GET', '/checkpoints'], ['GET', `/checkpoints/${mark.id}`], ['POST', `/checkpoints/${mark.id}/restore`], ['DELETE', `/checkpoints/${mark.id}`], ['POST', '/discard'], ['POST', '/snapshots']])
      assert.equal((await b(method, `/v1/sandboxes/${box.id}${path}`, method === 'POST' && path === '/snapshots' ? {} : undefined)).status, 404, path);
    assert.equal((await b('GET', '/v1/snapshots')).json.snapshots.length, 0);
    assert.equal((await a('GET', '/v1/snapshots')).json.snapshots.length, 1);
    await b('POST', '/v1/sandboxes', {}).then((r) => b('POST', `/v1/sandboxes/${r.json.id}/snapshots`, { name: 'secret' }));
    assert.equal((await a('GET', '/v1/snapshots/secret')).json.id, made.id, 'names are of one tenant');
  });

  it('are forked within the quota, all or none', async () => {
    const a = as(KEY_A);
    const box = (await a('GET', '/v1/sandboxes')).json.sandboxes[0];
    assertRefused(await a('POST', `/v1/sandboxes/${box.id}/fork`, { count: 9 }), 429, 'quota_exceeded');
    await until('none is left', async () => (await a('GET', '/v1/sandboxes')).json.sandboxes.length === 1);
    assert.equal((await a('POST', `/v1/sandboxes/${box.id}/fork`, { count: 3 })).json.sandboxes.length, 3);
  });
});
