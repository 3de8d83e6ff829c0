import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BUNKER, Server, dataDirectory } from '../lib/server.mjs';
import { assertRefused, finish, startBeside } from './support.mjs';

const KEY_A = 'bnk_0123456789abcdef0123456789abcdef01234567';
const KEY_B = 'bnk_fedcba9876543210fedcba9876543210fedcba98';

describe('authentication', () => {
  let server;
  let body;
  before(async () => {
    server = await Server.start();
    body = server.key.slice(4);
  });
  after(() => finish(server));
  const ask = (headers, path = '/v1/sandboxes') => server.request('GET', path, undefined, { headers, key: '' });

  it('takes the key of the file also when the server died before it had stored it', async () => {
    const data = dataDirectory();
    writeFileSync(join(data, 'api-key'), `${KEY_A}\n`, { mode: 0o600 });
    const other = await Server.start({ data, args: ['--pool', '0'] });
    assert.equal(other.key, KEY_A);
    assert.equal((await other.request('GET', '/v1/sandboxes')).status, 200);
    await other.stop();
    writeFileSync(join(data, 'api-key'), ''); // it died while it wrote
    await other.launch();
    assert.match(other.key, /^bnk_[0-9a-f]{40}$/);
    assert.equal((await other.request('GET', '/v1/sandboxes')).status, 200);
    await finish(other);
  });

  it('is asked for everywhere but at /health', async () => {
    const id = 'a'.repeat(20);
    const routes = [
      ['GET', '/v1/sandboxes'], ['POST', '/v1/sandboxes'], ['GET', `/v1/sandboxes/${id}`], ['DELETE', `/v1/sandboxes/${id}`],
      ['POST', `/v1/sandboxes/${id}/exec`], ['POST', '/v1/run'], ['GET', `/v1/executions/${id}`], ['GET', '/v1/templates'], ['GET', '/metrics'],
    ];
    for (const [method, path] of routes) assertRefused(await server.request(method, path, undefined, { key: '' }), 401, 'unauthorized');
    assert.equal((await ask({}, '/health')).status, 200);
  });

  it('comes before anything else is looked at', async () => {
    assertRefused(await server.request('POST', '/v1/run', '{not json', { key: '' }), 401, 'unauthorized');
    assertRefused(await server.request('POST', '/v1/run', Buffer.alloc(1 << 20), { key: 'bnk_wrong' }), 401, 'unauthorized');
  });

  it('takes a bearer token or X-API-Key', async () => {
    assert.equal((await ask({ authorization: `Bearer ${server.key}` })).status, 200);
    assert.equal((await ask({ authorization: `bearer ${server.key}` })).status, 200);
    assert.equal((await ask({ 'x-api-key': server.key })).status, 200);
  });

  it('takes the same key under the prefixes bnk_ and e2b_', async () => {
    assert.match(server.key, /^bnk_[0-9a-f]{40}$/);
    assert.equal((await ask({ 'x-api-key': `e2b_${body}` })).status, 200);
    assert.equal((await ask({ authorization: `Bearer e2b_${body}` })).status, 200);
  });

  it('refuses every other key', async () => {
    const flipped = body.slice(0, -1) + (body.endsWith('0') ? '1' : '0');
    const wrong = [
      '', 'x', `bnk_${flipped}`, `bnk_${body.slice(0, -1)}`, `bnk_${body}0`, `bnk_${body.toUpperCase()}x`, `abc_${body}`, `bnk_bnk_${body}`,
      `bnk_${'0'.repeat(40)}`, 'bnk_', 'a'.repeat(5000), `bnk_${body} `.repeat(2), "' OR 1=1 --",
    ];
    for (const key of wrong) {
      assertRefused(await ask({ authorization: `Bearer ${key}` }), 401, 'unauthorized');
      assertRefused(await ask({ 'x-api-key': key }), 401, 'unauthorized');
    }
    assertRefused(await ask({ authorization: `Basic ${Buffer.from(`user:${server.key}`).toString('base64')}` }), 401, 'unauthorized');
    assertRefused(await ask({ authorization: server.key }), 401, 'unauthorized');
  });

  it('says nothing about the key that was tried', async () => {
    const answer = await ask({ 'x-api-key': 'bnk_my-secret-typo-0000' });
    assert.equal(answer.text.includes('secret'), false);
    assert.equal(server.log.text.includes('my-secret-typo'), false);
  });

  describe('the first key', () => {
    it('is printed once, at the first start', async () => {
      const other = await startBeside(server);
      try {
        assert.equal(other.log.text.split(other.key).length, 2, 'once');
        await other.stop();
        await other.launch();
        assert.equal(other.log.text.includes(other.key.slice(4)), false);
        assert.doesNotMatch(other.log.text, /bnk_/);
        assert.equal((await other.request('GET', '/v1/sandboxes')).status, 200, 'and still works');
      } finally {
        await finish(other);
      }
    });

    it('is stored hashed: no file of the server has it, but the one for the CLI', () => {
      const holding = [];
      const search = (dir) => {
        for (const entry of readdirSync(dir, { withFileTypes: true })) {
          const path = join(dir, entry.name);
          if (entry.isDirectory()) search(path);
          else if (entry.isFile() && readFileSync(path).includes(body)) holding.push(path);
        }
      };
      for (const name of readdirSync(server.data))
        if (!['disks', 'disks.btrfs', 'stage', 'run'].includes(name)) {
          const path = join(server.data, name);
          if (statSync(path).isDirectory()) search(path);
          else if (readFileSync(path).includes(body)) holding.push(path);
        }
      assert.deepEqual(holding, [join(server.data, 'api-key')]);
      const db = readFileSync(join(server.data, 'front', 'bunker.db'));
      assert.equal(db.includes(Buffer.from(body, 'hex')), false, 'nor as bytes');
    });

    it('is for root alone', () => {
      const { mode, uid } = statSync(join(server.data, 'api-key'));
      assert.equal(mode & 0o777, 0o600);
      assert.equal(uid, 0);
      assert.equal(statSync(join(server.data, 'front')).mode & 0o077, 0, 'the database is closed to others');
    });
  });

  describe('tenants', () => {
    let shared;
    const as = (key) => (method, path, data) => shared.request(method, path, data, { key });
    const a = as(KEY_A);
    const b = as(KEY_B);
    before(async () => {
      shared = await startBeside(server, { args: ['--api-key', `alice=${KEY_A}`, '--api-key', `bob=${KEY_B}`] });
    });
    after(() => finish(shared));

    it('see only their own sandboxes', async () => {
      const mine = (await a('POST', '/v1/sandboxes', { name: 'same' })).json;
      const theirs = await b('POST', '/v1/sandboxes', { name: 'same' });
      assert.equal(theirs.status, 201, 'a name is taken within one tenant only');
      assert.deepEqual((await a('GET', '/v1/sandboxes')).json.sandboxes.map((s) => s.id), [mine.id]);
      assert.deepEqual((await b('GET', '/v1/sandboxes')).json.sandboxes.map((s) => s.id), [theirs.json.id]);
      assert.deepEqual((await b('GET', '/v1/sandboxes?name=same')).json.sandboxes.map((s) => s.id), [theirs.json.id]);
    });

    it('get for the id of another exactly what they get for one that does not exist', async () => {
      const { id } = (await a('POST', '/v1/sandboxes', {})).json;
      const { executionId } = (await a('POST', `/v1/sandboxes/${id}/exec`, { command: 'echo secret' })).json;
      const none = 'z'.repeat(20);
      const calls = [
        (x) => ['GET', `/v1/sandboxes/${x}`],
        (x) => ['DELETE', `/v1/sandboxes/${x}`],
        (x) => ['POST', `/v1/sandboxes/${x}/exec`, { command: 'true' }],
        (x) => ['POST', `/v1/sandboxes/${x}/exec`, { command: 5 }],
      ];
      const strip = ({ status, text, headers }) => [status, text, Object.keys(headers).sort()];
      for (const call of calls) assert.deepEqual(strip(await b(...call(id))), strip(await b(...call(none))));
      for (const query of ['', '?wait=1s'])
        assert.deepEqual(strip(await b('GET', `/v1/executions/${executionId}${query}`)), strip(await b('GET', `/v1/executions/${none}${query}`)));
      assert.equal((await a('GET', `/v1/executions/${executionId}`)).json.stdout, 'secret\n');
      assert.equal((await a('GET', `/v1/sandboxes/${id}`)).status, 200, 'and nothing happened to it');
    });

    it('cannot reach a running command of another', async () => {
      const { id } = (await a('POST', '/v1/sandboxes', {})).json;
      shared.key = KEY_A;
      const stream = await shared.stream(`/v1/sandboxes/${id}/exec`, { command: 'sleep 3' });
      const { value } = await stream.events.next();
      assert.equal((await a('GET', `/v1/executions/${value.executionId}`)).status, 200);
      assertRefused(await b('GET', `/v1/executions/${value.executionId}`), 404, 'not_found');
      assertRefused(await b('GET', `/v1/executions/${value.executionId}?wait=5s`), 404, 'not_found');
      stream.close();
    });

    it('keep their sandboxes when the server restarts', async () => {
      const before = (await a('GET', '/v1/sandboxes')).json.sandboxes.map((s) => s.id);
      assert.ok(before.length > 0);
      await shared.stop();
      await shared.launch();
      assert.deepEqual((await a('GET', '/v1/sandboxes')).json.sandboxes.map((s) => s.id), before);
      assertRefused(await b('GET', `/v1/sandboxes/${before[0]}`), 404, 'not_found');
    });
  });

  describe('a key given at start', () => {
    it('works while it is given, and the CLI on the machine finds one that works, before and after', async () => {
      const other = await startBeside(server, { args: ['--api-key', KEY_A] });
      try {
        assert.equal((await other.request('GET', '/v1/sandboxes', undefined, { key: KEY_A })).status, 200);
        assert.equal((await other.request('GET', '/v1/sandboxes', undefined, { key: KEY_A.replace('bnk_', 'e2b_') })).status, 200);
        assert.equal(other.log.text.includes(KEY_A), false, 'it is not printed');
        assert.equal(other.cli(['ls', '-q']).status, 0);
        await other.stop();
        other.args = [];
        await other.launch();
        assertRefused(await other.request('GET', '/v1/sandboxes', undefined, { key: KEY_A }), 401, 'unauthorized');
        const ls = other.cli(['ls', '-q']);
        assert.equal(ls.status, 0, `the CLI has no key any more: ${ls.stderr}`);
      } finally {
        await finish(other);
      }
    });

    it('must be long enough, and a start with a bad one says so', () => {
      for (const key of ['short', 'bnk_tooshort', 'bnk_0123456789abcdef ', `t=${'x'.repeat(200)}`]) {
        const r = spawnSync(BUNKER, ['serve', '--listen', '127.0.0.1:0', '--data', server.data + '-never', '--api-key', key], { encoding: 'utf8', timeout: 20000 });
        spawnSync('rm', ['-rf', server.data + '-never']);
        assert.notEqual(r.status, 0);
        assert.equal(r.signal, null, 'it ends by itself');
        assert.match(r.stderr, /key must have/);
        assert.doesNotMatch(r.stderr, /listening/);
      }
    });
  });

  describe('--no-auth', () => {
    it('asks for nothing on loopback', async () => {
      const open = await startBeside(server, { args: ['--no-auth'] });
      try {
        for (const headers of [{}, { authorization: 'Bearer whatever' }, { 'x-api-key': 'x' }])
          assert.equal((await open.request('GET', '/v1/sandboxes', undefined, { headers, key: '' })).status, 200);
        const r = await open.request('POST', '/v1/run', { command: 'echo open' }, { key: '' });
        assert.equal(r.json.stdout, 'open\n');
      } finally {
        await finish(open);
      }
    });

    it('is refused on any other address', () => {
      for (const listen of ['0.0.0.0:0', '[::]:0']) {
        const r = spawnSync(BUNKER, ['serve', '--listen', listen, '--data', server.data + '-never', '--no-auth'], { encoding: 'utf8', timeout: 20000 });
        assert.equal(r.status, 2, listen);
        assert.equal(r.signal, null, 'it ends by itself');
        assert.match(r.stderr, /--no-auth.*loopback/);
        assert.doesNotMatch(r.stderr, /listening/);
      }
    });
  });
});
