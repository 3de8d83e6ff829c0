// Secrets: kept sealed, never shown, each tenant's own; and the header rules and variables that name them.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Server } from '../lib/server.mjs';
import { assertRefused, finish, remove } from './support.mjs';

const HEADER = 'authorization';
const rule = (value, host = 'api.x.test', name = HEADER) => ({ host, headers: { [name]: value } });

/** The files below a directory that have these bytes in them, as they are or in base64. */
const holding = (dir, text) =>
  readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) return holding(path, text);
    const bytes = readFileSync(path);
    return bytes.includes(text) || bytes.includes(Buffer.from(text).toString('base64').slice(0, -3)) ? [path] : [];
  });

describe('I96 secrets', { timeout: 120000 }, () => {
  let server, other;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
    other = (await server.request('POST', '/v1/keys', { name: 'other', tenant: 'other', scope: 'admin' })).json.key;
  });
  after(() => finish(server));
  const put = (name, value, options) => server.request('PUT', `/v1/secrets/${name}`, { value }, options);
  const get = (name, options) => server.request('GET', `/v1/secrets/${name}`, undefined, options);
  const drop = (name, options) => server.request('DELETE', `/v1/secrets/${name}`, undefined, options);
  const list = async (options) => (await server.request('GET', '/v1/secrets', undefined, options)).json.secrets;

  describe('are objects', () => {
    it('that are made, given another value, listed and deleted', async () => {
      const made = await put('API_KEY', 'sk-1');
      assert.equal(made.status, 200, made.text);
      assert.deepEqual(Object.keys(made.json), ['name', 'createdAt', 'updatedAt', 'sandboxes', 'readable']);
      assert.deepEqual([made.json.name, made.json.sandboxes, made.json.readable], ['API_KEY', 0, true]);
      const again = (await put('API_KEY', 'sk-2')).json;
      assert.equal(again.createdAt, made.json.createdAt);
      assert.ok(again.updatedAt >= made.json.updatedAt);
      await put('_a-1', 'x');
      assert.deepEqual((await get('API_KEY')).json, again);
      assert.deepEqual((await list()).map((s) => s.name), ['API_KEY', '_a-1']);
      for (const name of ['API_KEY', '_a-1']) assert.equal((await drop(name)).status, 204);
      assert.deepEqual(await list(), []);
      assertRefused(await get('API_KEY'), 404, 'not_found');
      assertRefused(await drop('API_KEY'), 404, 'not_found');
    });

    it('with names and values that are checked', async () => {
      for (const name of ['1a', '-a', 'a.b', 'a%20b', 'x'.repeat(65)]) {
        assertRefused(await put(name, 'v'), 400, 'invalid_field', 'name');
        assertRefused(await get(name), 400, 'invalid_field', 'name');
      }
      for (const value of ['', 'a\nb', 'a\rb', 'a\u0001', 'x'.repeat(16385)]) assertRefused(await put('a', value), 400, 'invalid_field', 'value');
      assertRefused(await put('a', undefined), 400, 'missing_field', 'value');
      assertRefused(await server.request('PUT', '/v1/secrets/a', { value: 'v', more: 1 }), 400, 'unknown_field', 'more');
      for (const value of ['x'.repeat(16384), 'ü\t!']) assert.equal((await put('x'.repeat(64), value)).status, 200);
      await drop('x'.repeat(64));
      assert.deepEqual(await list(), []);
    });

    it('at most 1,000 of them for a tenant', async () => {
      for (let i = 0; i < 1000; i += 50)
        await Promise.all(Array.from({ length: 50 }, async (_, j) => assert.equal((await put(`s${i + j}`, 'v')).status, 200)));
      assertRefused(await put('one_more', 'v'), 429, 'quota_exceeded');
      assert.equal((await put('s7', 'another value')).status, 200);
      assert.equal((await put('theirs', 'v', { key: other })).status, 200);
      for (let i = 0; i < 1000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => drop(`s${i + j}`)));
      await drop('theirs', { key: other });
    });

    it('that are changed by admins alone, and seen by everyone of the tenant', async () => {
      await put('mine', 'v');
      for (const scope of ['read', 'use']) {
        const { key } = (await server.request('POST', '/v1/keys', { name: scope, scope })).json;
        assertRefused(await put('mine', 'w', { key }), 403, 'scope_missing');
        assertRefused(await drop('mine', { key }), 403, 'scope_missing');
        assert.equal((await get('mine', { key })).status, 200);
      }
      assertRefused(await get('mine', { key: other }), 404, 'not_found');
      assertRefused(await drop('mine', { key: other }), 404, 'not_found');
      assert.deepEqual(await list({ key: other }), []);
      await drop('mine');
    });
  });

  it('are nowhere in readable form: not on the disk, in the log, in an answer, an event, an export', async () => {
    const value = `canary-${randomBytes(16).toString('hex')}`;
    const answers = [await put('CANARY', value), await get('CANARY'), await server.request('GET', '/v1/secrets')];
    const sandbox = await server.create({ env: { KEY: '${secret:CANARY}' }, network: { mode: 'none', rules: [rule('Bearer ${secret:CANARY}')] } });
    const path = `/v1/sandboxes/${sandbox.id}`;
    for (const what of ['', '/network', '/events', '/env', '/export']) answers.push(await server.request('GET', path + what));
    answers.push(await server.exec(sandbox.id, { command: 'env; cat /proc/*/environ' }).then((r) => ({ text: JSON.stringify(r) })));
    const snapshot = await server.request('POST', `${path}/snapshots`, { name: 'canary' });
    answers.push(snapshot, await server.request('GET', `/v1/snapshots/${snapshot.json.id}/export`));
    answers.push(await server.request('PUT', `${path}/network`, { mode: 'none', rules: [rule('${secret:CANARY}', 'bad host')] }));
    for (const a of answers) assert.ok(!a.text.includes(value), a.text.slice(0, 400));
    assert.ok(!server.log.text.includes(value));
    await server.crash();
    await server.launch();
    assert.deepEqual(holding(join(server.data, 'front'), value), []);
    assert.ok(readFileSync(join(server.data, 'front', 'bunker.db')).length > 0);
    await remove(server, sandbox.id);
    await drop('CANARY');
  });

  describe('named by rules', () => {
    let box;
    before(async () => {
      await put('TOKEN', 'tok');
      box = await server.create({ network: { mode: 'none', rules: [rule('Bearer ${secret:TOKEN}')] } });
    });
    after(async () => {
      await remove(server, box.id);
      await drop('TOKEN');
    });
    const setRules = (rules) => server.request('PUT', `/v1/sandboxes/${box.id}/network`, { mode: 'none', rules });

    it('are shown by name', async () => {
      assert.deepEqual(box.network, { mode: 'none', rules: [rule('Bearer ${secret:TOKEN}')] });
      const rules = [{ host: '*.X.test', headers: { 'X-One': '1', 'x-two': 'a: b, ${PATH} ${secret:TOKEN}${secret:TOKEN}' } }, rule('', 'b.test')];
      const answer = await setRules(rules);
      assert.deepEqual(answer.json, { mode: 'none', rules });
      assert.deepEqual((await server.request('GET', `/v1/sandboxes/${box.id}/network`)).json, { mode: 'none', rules });
    });

    it('are not deleted while they are', async () => {
      await setRules([rule('Bearer ${secret:TOKEN}')]);
      assert.equal((await get('TOKEN')).json.sandboxes, 1);
      assertRefused(await drop('TOKEN'), 409, 'in_use');
      assert.equal((await put('TOKEN', 'another')).status, 200);
      await server.crash();
      await server.launch();
      assert.equal((await get('TOKEN')).json.sandboxes, 1);
      await setRules([]);
      assert.deepEqual((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.network, { mode: 'none' });
      assert.equal((await drop('TOKEN')).status, 204);
      await put('TOKEN', 'tok');
    });

    it('go with a fork', async () => {
      await setRules([rule('Bearer ${secret:TOKEN}')]);
      const [fork] = (await server.request('POST', `/v1/sandboxes/${box.id}/fork`, {})).json.sandboxes;
      assert.deepEqual(fork.network.rules, [rule('Bearer ${secret:TOKEN}')]);
      assert.equal((await get('TOKEN')).json.sandboxes, 2);
      await remove(server, fork.id);
      assert.equal((await get('TOKEN')).json.sandboxes, 1);
    });

    const headers = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'v']));
    const hosts = (count) => Array.from({ length: count }, (_, i) => rule('v', `h${i}.test`));
    for (const [what, rules, field] of [
      ['a secret that is not there', [rule('${secret:NONE}')]],
      ['a malformed name of a secret', [rule('${secret:}')]],
      ['an open name of a secret', [rule('${secret:TOKEN')]],
      ['four secrets in a value', [rule('${secret:TOKEN}'.repeat(4))]],
      ['Host', [rule('v', 'a.test', 'Host')]],
      ['Content-Length', [rule('v', 'a.test', 'content-length')]],
      ['Transfer-Encoding', [rule('v', 'a.test', 'TRANSFER-ENCODING')]],
      ['Connection', [rule('v', 'a.test', 'connection')]],
      ['Upgrade', [rule('v', 'a.test', 'upgrade')]],
      ['CR LF in a value', [rule('v\r\nhost: evil')]],
      ['LF in a name', [rule('v', 'a.test', 'a\nb')]],
      ['a space in a name', [rule('v', 'a.test', 'a b')], 'network.rules[0].headers'],
      ['a colon in a name', [rule('v', 'a.test', 'a:b')], 'network.rules[0].headers'],
      ['an empty name', [rule('v', 'a.test', '')], 'network.rules[0].headers'],
      ['a port', [rule('v', 'a.test:443')]],
      ['an address', [rule('v', '192.0.2.1')]],
      ['a space in a host', [rule('v', 'a b.test')], 'network.rules[0].host'],
      ['a wildcard in the middle', [rule('v', 'a.*.test')]],
      ['a host twice', [rule('v'), rule('v', 'b.test'), rule('w', 'API.x.test', 'x-b')]],
      ['a header twice', [{ host: 'a.test', headers: { a: '1', A: '2' } }]],
      ['no headers', [{ host: 'a.test', headers: {} }], 'network.rules[0].headers'],
      ['21 headers', [{ host: 'a.test', headers: headers(21) }]],
      ['101 hosts', hosts(101), 'network.rules'],
      ['a value of 4,097 bytes', [rule('x'.repeat(4097))]],
      ['a name of 129 bytes', [rule('v', 'a.test', 'x'.repeat(129))]],
      ['no object', ['a.test'], 'network.rules'],
      ['no text', [{ host: 'a.test', headers: { a: 1 } }], 'network.rules[0].headers.a'],
    ])
      it(`are refused with ${what}`, async () => {
        const before_ = (await server.request('GET', `/v1/sandboxes/${box.id}/network`)).json;
        // What is wrong with the body itself is named as the body has it.
        assertRefused(await setRules(rules), 400, 'invalid_field', field?.replace('network.', '') ?? 'network.rules');
        assertRefused(await server.request('POST', '/v1/sandboxes', { network: { mode: 'none', rules } }), 400, 'invalid_field', field ?? 'network.rules');
        assert.deepEqual((await server.request('GET', `/v1/sandboxes/${box.id}/network`)).json, before_);
      });

    it('are taken up to the limits', async () => {
      assert.equal((await setRules(hosts(100))).status, 200);
      assert.equal((await setRules([{ host: 'a.test', headers: headers(20) }])).status, 200);
      assert.equal((await setRules([rule('x'.repeat(4096), 'a.test', 'x'.repeat(128))])).status, 200);
    });

    it('are refused when their values make them too large, then or later', async () => {
      await put('BIG', 'x');
      const many = Array.from({ length: 40 }, (_, i) => rule('${secret:BIG}', `h${i}.test`));
      assert.equal((await setRules(many)).status, 200);
      assertRefused(await put('BIG', 'x'.repeat(16384)), 400, 'invalid_field', 'value');
      await setRules([]);
      assert.equal((await put('BIG', 'x'.repeat(16384))).status, 200);
      assertRefused(await setRules(many), 400, 'invalid_field', 'network.rules');
      assertRefused(await setRules([rule('Bearer ${secret:BIG}')]), 400, 'invalid_field', 'network.rules');
      assert.equal((await setRules([rule('${secret:BIG}')])).status, 200);
      await setRules([]);
      await drop('BIG');
    });

    it("are those of the sandbox's tenant", async () => {
      await put('THEIRS', 'v', { key: other });
      assertRefused(await setRules([rule('${secret:THEIRS}')]), 400, 'invalid_field', 'network.rules');
      assert.equal((await drop('THEIRS', { key: other })).status, 204);
    });
  });

  describe('named by variables', () => {
    const env = async (id) => (await server.exec(id, { command: 'echo "$KEY|$BOTH"' })).stdout.trim();
    before(() => put('VAR', 'the-value'));
    after(() => drop('VAR'));

    it('are opaque inside, the same after a restart, a resume and in a fork', async () => {
      const box = await server.create({ env: { KEY: '${secret:VAR}', BOTH: 'a ${secret:VAR} b', PLAIN: '${HOME}' } });
      assert.match(box.env.KEY, /^bnkph_[a-z0-9]{20}$/);
      const seen = await env(box.id);
      assert.equal(seen, `${box.env.KEY}|a ${box.env.KEY} b`);
      assert.equal(box.env.PLAIN, '${HOME}');
      await server.crash();
      await server.launch();
      assert.equal(await env(box.id), seen);
      await server.request('POST', `/v1/sandboxes/${box.id}/pause`, { memory: false });
      await server.request('POST', `/v1/sandboxes/${box.id}/resume`, {});
      assert.equal(await env(box.id), seen);
      const [fork] = (await server.request('POST', `/v1/sandboxes/${box.id}/fork`, {})).json.sandboxes;
      assert.equal(await env(fork.id), seen);
      const another = await server.create({ env: { KEY: '${secret:VAR}' } });
      assert.notEqual(another.env.KEY, box.env.KEY, 'another sandbox has another one');
      await server.request('PATCH', `/v1/sandboxes/${another.id}`, { env: { BOTH: '${secret:VAR}' } });
      assert.equal(await env(another.id), `${another.env.KEY}|${another.env.KEY}`);
      for (const { id } of [box, fork, another]) await remove(server, id);
    });

    it('must be there', async () => {
      assertRefused(await server.request('POST', '/v1/sandboxes', { env: { KEY: '${secret:NONE}' } }), 400, 'invalid_field', 'env');
      assertRefused(await server.request('POST', '/v1/sandboxes', { env: { KEY: '${secret:a b}' } }), 400, 'invalid_field', 'env');
    });
  });

  describe('under another key', () => {
    const file = () => join(server.data, 'secret-key');

    it('are not lost: they say so, none is taken beside them, and the old key brings them back', async () => {
      await put('KEPT', 'v');
      assert.equal(statSync(file()).mode & 0o777, 0o600);
      assert.match(readFileSync(file(), 'utf8'), /^[0-9a-f]{64}\n$/);
      await server.stop();
      renameSync(file(), `${file()}.old`);
      await server.launch();
      assert.match(server.log.text, /stored secrets cannot be opened/);
      assert.equal((await get('KEPT')).json.readable, false);
      const refused = assertRefused(await put('NEW', 'v'), 503, 'unavailable');
      assertRefused(await put('KEPT', 'v'), 503, 'unavailable');
      assertRefused(await server.request('POST', '/v1/sandboxes', { network: { mode: 'none', rules: [rule('${secret:KEPT}')] } }), 503, 'unavailable', 'network.rules');
      await server.stop();
      renameSync(`${file()}.old`, file());
      await server.launch();
      assert.equal((await get('KEPT')).json.readable, true);
      assert.equal((await put('NEW', 'v')).status, 200, refused);
      for (const name of ['KEPT', 'NEW']) await drop(name);
    });

    it('can be deleted, and then others are taken', async () => {
      await put('GONE', 'v');
      await server.stop();
      renameSync(file(), `${file()}.old`);
      await server.launch();
      assert.equal((await drop('GONE')).status, 204);
      assert.equal((await put('NEW', 'v')).status, 200);
      await drop('NEW');
    });

    it('that is no key, or is not there, are refused, and no key is overwritten', async () => {
      await server.stop();
      const good = readFileSync(file());
      writeFileSync(file(), 'not a key\n');
      await server.launch();
      assert.match(server.log.text, /the key for secrets cannot be had/);
      assertRefused(await put('A', 'v'), 503, 'unavailable');
      assert.equal(readFileSync(file(), 'utf8'), 'not a key\n');
      await server.stop();
      writeFileSync(file(), good);
      await server.launch();
      assert.equal((await put('A', 'v')).status, 200);
      await drop('A');
    });
  });

  it('take their key from a file of the operator', async () => {
    const path = join(server.data, 'operators-key');
    writeFileSync(path, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 });
    const own = await Server.start({ args: ['--pool', '0', '--secret-key-file', path] });
    try {
      assert.equal((await own.request('PUT', '/v1/secrets/A', { value: 'v' })).status, 200);
      assert.equal(existsSync(join(own.data, 'secret-key')), false);
      assert.match(own.log.text, /^((?!cannot be had).)*$/s);
    } finally {
      await finish(own);
    }
  });
});
