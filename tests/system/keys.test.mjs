// API keys: made, listed, used within their scope, rotated, taken back; and what they had open when they end.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Server, until } from '../lib/server.mjs';
import { assertRefused, finish, startBeside } from './support.mjs';

describe('API keys', () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
  });
  after(() => finish(server));
  const as = (key) => (method, path, body) => server.request(method, path, body, { key });
  let made = 0;
  const create = async (options = {}, by = server.key) => {
    const answer = await server.request('POST', '/v1/keys', { name: `k${made++}`, ...options }, { key: by });
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  };
  const revoke = async (key) => assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
  const allowed = async (key) => (await server.request('GET', '/v1/sandboxes', undefined, { key })).status;

  describe('are objects', () => {
    it('that are made, listed, looked at and taken back', async () => {
      const key = await create({ name: 'ci', scope: 'read' });
      assert.match(key.key, /^bnk_[0-9a-f]{40}$/);
      assert.deepEqual(Object.keys(key), ['id', 'name', 'tenant', 'scope', 'origin', 'createdAt', 'key']);
      assert.deepEqual([key.name, key.tenant, key.scope, key.origin], ['ci', 'default', 'read', 'created']);
      assert.equal(await allowed(key.key), 200);
      assert.equal(await allowed(key.key.replace('bnk_', 'e2b_')), 200);
      const { key: text, ...rest } = key;
      const one = (await server.request('GET', `/v1/keys/${key.id}`)).json;
      assert.ok(one.lastUsedAt >= key.createdAt);
      assert.deepEqual({ ...one, lastUsedAt: undefined }, { ...rest, lastUsedAt: undefined }, 'without its text');
      assert.equal((await server.request('GET', '/v1/keys/ci')).json.id, key.id, 'by its name as well');
      const list = await server.request('GET', '/v1/keys');
      assert.deepEqual(list.json.keys.map((k) => [k.name, k.origin]), [['local', 'local'], ['ci', 'created']]);
      assert.ok(!list.text.includes(text.slice(4)));
      await revoke(key);
      assert.equal(await allowed(key.key), 401);
      assertRefused(await server.request('GET', `/v1/keys/${key.id}`), 404, 'not_found');
      assertRefused(await server.request('DELETE', `/v1/keys/${key.id}`), 404, 'not_found');
    });

    it('whose text is nowhere but in the answer that made it', async () => {
      const { key } = await create();
      await allowed(key);
      const holding = (dir) =>
        readdirSync(dir).flatMap((name) => {
          const path = join(dir, name);
          if (statSync(path).isDirectory()) return holding(path);
          const bytes = readFileSync(path);
          return bytes.includes(key.slice(4)) || bytes.includes(Buffer.from(key.slice(4), 'hex')) ? [path] : [];
        });
      assert.deepEqual(holding(join(server.data, 'front')), []);
      assert.ok(!server.log.text.includes(key.slice(4)));
    });

    it('that the database learns of at once, whatever dies', async () => {
      const kept = await create();
      const gone = await create();
      await revoke(gone);
      await server.crash();
      await server.launch();
      assert.equal(await allowed(kept.key), 200);
      assert.equal(await allowed(gone.key), 401);
      const list = (await server.request('GET', '/v1/keys')).json.keys;
      assert.deepEqual(list.filter((k) => [kept.id, gone.id].includes(k.id)).map((k) => k.id), [kept.id]);
      await revoke(kept);
    });

    it('whose last use is kept to the minute, without a write for each', async () => {
      const key = await create();
      const written = () => statSync(join(server.data, 'front', 'bunker.db-wal')).mtimeMs;
      const before_ = written();
      for (let i = 0; i < 50; i++) await allowed(key.key);
      assert.equal(written(), before_, 'fifty requests have not written');
      const { lastUsedAt } = (await server.request('GET', `/v1/keys/${key.id}`)).json;
      assert.ok(Date.now() - Date.parse(lastUsedAt) < 60000);
      await server.stop();
      await server.launch();
      assert.equal((await server.request('GET', `/v1/keys/${key.id}`)).json.lastUsedAt, lastUsedAt, 'and it is there after a restart');
      await revoke(key);
    });

    it('with an end, after which they are refused', async () => {
      const key = await create({ expiresIn: '1s' });
      assert.equal(Date.parse(key.expiresAt) - Date.parse(key.createdAt), 1000);
      assert.equal(await allowed(key.key), 200);
      await until('it has expired', async () => (await allowed(key.key)) === 401);
      assert.match((await as(key.key)('GET', '/v1/sandboxes')).json.error.message, /expired/);
      assert.equal((await server.request('GET', `/v1/keys/${key.id}`)).status, 200, 'it is still listed');
      await server.stop();
      await server.launch();
      assert.equal(await allowed(key.key), 401);
      await revoke(key);
    });

    it('that are revoked once, however many ask', async () => {
      const key = await create();
      const answers = await Promise.all(Array.from({ length: 8 }, () => server.request('DELETE', `/v1/keys/${key.id}`)));
      assert.deepEqual(answers.map((a) => a.status).sort(), [204, ...Array(7).fill(404)]);
    });

    it('that can revoke themselves, and hear of it', async () => {
      const admin = await create({ scope: 'admin' });
      assert.equal((await as(admin.key)('DELETE', `/v1/keys/${admin.id}`)).status, 204);
      assert.equal(await allowed(admin.key), 401);
    });
  });

  describe('bad input', () => {
    const make = (body) => server.request('POST', '/v1/keys', body);
    it('is refused by name', async () => {
      for (const [body, code, field] of [
        [{}, 'missing_field', 'name'], [{ name: '' }, 'invalid_field', 'name'], [{ name: 5 }, 'invalid_field', 'name'],
        [{ name: 'x'.repeat(64) }, 'invalid_field', 'name'], [{ name: 'a b' }, 'invalid_field', 'name'], [{ name: '../x' }, 'invalid_field', 'name'],
        [{ name: "x'; DROP TABLE api_keys; --" }, 'invalid_field', 'name'], [{ name: '\u001b[31m' }, 'invalid_field', 'name'], [{ name: 'ü' }, 'invalid_field', 'name'],
        [{ name: 'a'.repeat(20) }, 'invalid_field', 'name'],
        [{ name: 'n', scope: 'root' }, 'invalid_field', 'scope'], [{ name: 'n', scope: ['read'] }, 'invalid_field', 'scope'],
        [{ name: 'n', tenant: 'a/b' }, 'invalid_field', 'tenant'], [{ name: 'n', tenant: 'x'.repeat(64) }, 'invalid_field', 'tenant'],
        [{ name: 'n', expiresIn: '0s' }, 'invalid_field', 'expiresIn'], [{ name: 'n', expiresIn: '-1h' }, 'invalid_field', 'expiresIn'],
        [{ name: 'n', expiresIn: '87601h' }, 'invalid_field', 'expiresIn'], [{ name: 'n', expiresIn: 'soon' }, 'invalid_field', 'expiresIn'],
        [{ name: 'n', key: 'bnk_mine' }, 'unknown_field', 'key'], [{ name: 'n', id: 'x' }, 'unknown_field', 'id'], [{ name: 'n', origin: 'local' }, 'unknown_field', 'origin'],
        [{ name: 'n', hash: 'x' }, 'unknown_field', 'hash'],
      ])
        assertRefused(await make(body), 400, code, field);
      assertRefused(await make('{'), 400, 'invalid_json');
      assert.equal((await server.request('GET', '/v1/keys')).json.keys.filter((k) => k.name === 'n').length, 0, 'nothing was made');
    });

    it('is refused in names that nobody has, whatever their bytes', async () => {
      for (const name of ['nobody', 'a'.repeat(20), '%00', '%ff%fe', '%2e%2e%2f', 'x'.repeat(4000), '%27%20OR%201=1', '*'])
        for (const [method, path] of [['GET', ''], ['DELETE', ''], ['POST', '/rotate']]) {
          const r = await server.request(method, `/v1/keys/${name}${path}`);
          assert.ok(r.status === 404 || r.status === 400, `${method} ${name}: ${r.status}`);
        }
      assertRefused(await server.request('POST', '/v1/keys/nobody/rotate', { grace: '169h' }), 400, 'invalid_field', 'grace');
      assertRefused(await server.request('POST', '/v1/keys/nobody/rotate', { scope: 'admin' }), 400, 'unknown_field', 'scope');
    });

    it('names are taken once in a tenant', async () => {
      const key = await create({ name: 'once' });
      assertRefused(await make({ name: 'once' }), 409, 'name_taken', 'name');
      assertRefused(await make({ name: 'local' }), 409, 'name_taken', 'name');
      const other = await create({ name: 'once', tenant: 'other' });
      const both = await Promise.all([make({ name: 'twice' }), make({ name: 'twice' })]);
      assert.deepEqual(both.map((r) => r.status).sort(), [201, 409]);
      await revoke(both.find((r) => r.status === 201).json);
      await revoke(key);
      await revoke(other);
    });
  });

  it('a tenant has at most a hundred, and those that have expired make room', async () => {
    const keys = [await create({ tenant: 'many', expiresIn: '1s' })];
    for (let i = 1; i < 100; i++) keys.push(await create({ tenant: 'many' }));
    await until('the first has expired', async () => (await allowed(keys[0].key)) === 401);
    keys.push(await create({ tenant: 'many' }));
    assertRefused(await server.request('GET', `/v1/keys/${keys.shift().id}`), 404, 'not_found');
    assertRefused(await server.request('POST', '/v1/keys', { name: 'more', tenant: 'many' }), 429, 'quota_exceeded');
    assert.equal((await server.request('GET', '/v1/keys?tenant=many')).json.keys.length, 100);
    await revoke(await create()); // others have room
    for (const key of keys) await revoke(key);
    assert.equal((await server.request('GET', '/v1/keys?tenant=many')).json.keys.length, 0);
  });

  describe('tenants', () => {
    it('have the keys of their own, and the server\'s admins those of all', async () => {
      const alice = await create({ name: 'head', tenant: 'alice', scope: 'admin' });
      const bob = await create({ name: 'head', tenant: 'bob', scope: 'admin' });
      const asAlice = as(alice.key);
      const made = (await asAlice('POST', '/v1/keys', { name: 'worker', scope: 'admin' })).json;
      assert.equal(made.tenant, 'alice');
      assert.deepEqual((await asAlice('GET', '/v1/keys')).json.keys.map((k) => k.name), ['head', 'worker']);
      assert.deepEqual((await asAlice('GET', '/v1/keys?tenant=alice')).json.keys.length, 2);
      assert.deepEqual((await asAlice('GET', '/v1/keys?tenant=bob')).json.keys, []);
      assert.deepEqual((await asAlice('GET', '/v1/keys?tenant=default')).json.keys, []);
      for (const [method, path] of [['GET', ''], ['DELETE', ''], ['POST', '/rotate']])
        for (const id of [bob.id, (await server.request('GET', '/v1/keys/local')).json.id])
          assertRefused(await asAlice(method, `/v1/keys/${id}${path}`), 404, 'not_found');
      assertRefused(await asAlice('POST', '/v1/keys', { name: 'x', tenant: 'bob' }), 403, 'scope_missing', 'tenant');
      assertRefused(await asAlice('POST', '/v1/keys', { name: 'x', tenant: 'default', scope: 'admin' }), 403, 'scope_missing', 'tenant');
      assert.equal(await allowed(bob.key), 200);
      assert.deepEqual((await server.request('GET', '/v1/keys?tenant=alice')).json.keys.map((k) => k.id), [alice.id, made.id]);
      assert.equal((await server.request('GET', `/v1/keys/${made.id}`)).status, 200);
      assertRefused(await server.request('GET', '/v1/keys/worker'), 404, 'not_found');
      for (const key of [made, alice, bob]) await revoke(key);
    });
  });

  describe('the local key and those of options', () => {
    it('are listed, and cannot be changed here', async () => {
      const other = await startBeside(server, { args: ['--pool', '0', '--api-key', `bnk_${'a'.repeat(40)}`, '--api-key', `carol=bnk_${'c'.repeat(40)}`] });
      try {
        const { keys } = (await other.request('GET', '/v1/keys')).json;
        assert.deepEqual(
          keys.map((k) => [k.tenant, k.scope, k.origin]).sort(),
          [['carol', 'use', 'option'], ['default', 'admin', 'local'], ['default', 'admin', 'option']],
        );
        for (const { id, origin } of keys)
          for (const [method, path] of [['DELETE', ''], ['POST', '/rotate']]) {
            const r = await other.request(method, `/v1/keys/${id}${path}`);
            assertRefused(r, 400, 'not_supported');
            assert.match(r.json.error.message, origin === 'local' ? /remove the file api-key .* restart/ : /--api-key/);
          }
        assert.equal((await other.request('GET', '/v1/keys', undefined, { key: `bnk_${'a'.repeat(40)}` })).status, 200);
        assertRefused(await other.request('GET', '/v1/keys', undefined, { key: `bnk_${'c'.repeat(40)}` }), 403, 'scope_missing');
      } finally {
        await finish(other);
      }
    });

    it('a new local key ends the old one', async () => {
      const other = await startBeside(server, { args: ['--pool', '0'] });
      try {
        const old = other.key;
        const { id } = (await other.request('GET', '/v1/keys/local')).json;
        await other.stop();
        rmSync(join(other.data, 'api-key'));
        await other.launch();
        assert.notEqual(other.key, old);
        assertRefused(await other.request('GET', '/v1/sandboxes', undefined, { key: old }), 401, 'unauthorized');
        const local = (await other.request('GET', '/v1/keys')).json.keys;
        assert.deepEqual(local.map((k) => k.id), [id], 'it is the same key with another text');
        assert.ok(local[0].rotatedAt);
        assert.equal(other.cli(['ls', '-q']).status, 0);
      } finally {
        await finish(other);
      }
    });
  });

  describe('bunker key', () => {
    it('makes, lists, rotates and revokes', async () => {
      const made = server.cli(['key', 'create', 'cli', '--scope', 'read', '--tenant', 'dave', '--expires', '48h']);
      assert.equal(made.status, 0, made.stderr);
      const key = made.stdout.trim();
      assert.match(key, /^bnk_[0-9a-f]{40}$/);
      assert.match(made.stderr, /shown once.*tenant dave, scope read/);
      assert.equal(await allowed(key), 200);
      const { keys } = JSON.parse(server.cli(['key', 'ls', '--tenant', 'dave', '--json']).stdout);
      assert.deepEqual(keys.map((k) => [k.name, k.scope, k.tenant]), [['cli', 'read', 'dave']]);
      const table = server.cli(['key', 'ls']).stdout;
      assert.match(table, /^NAME +ID +TENANT +SCOPE +ORIGIN +AGE +USED +EXPIRES\n/);
      assert.match(table, /cli +[a-z0-9]{20} +dave +read +created +\d+s +\d+s +in 47h/);
      assert.match(table, /local +[a-z0-9]{20} +default +admin +local +\S+ +\d+\S+ +never/);
      const rotated = server.cli(['key', 'rotate', keys[0].id, '--grace', '1h']);
      assert.notEqual(rotated.stdout.trim(), key);
      assert.equal(await allowed(rotated.stdout.trim()), 200);
      assert.equal(server.cli(['key', 'revoke', keys[0].id]).status, 0);
      assert.equal(await allowed(rotated.stdout.trim()), 401);
      const again = server.cli(['key', 'revoke', keys[0].id]);
      assert.notEqual(again.status, 0);
      assert.match(again.stderr, /no such API key/);
      assert.match(server.cli(['key', 'rotate', 'local']).stderr, /remove the file api-key/);
    });
  });
});
