// K184: E2B's contexts of code. By its protocol a sandbox's id opens them; a server that was told to asks for the sandbox's token.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Server } from '../lib/server.mjs';
import { finish } from '../system/support.mjs';

const PORT = 49999;

for (const asks of [true, false])
  describe(`contexts ${asks ? 'that need a token' : 'as at E2B'}`, { timeout: 60000 }, () => {
    let server, box, other;
    before(async () => {
      server = await Server.start({ args: ['--pool', '0', ...(asks ? ['--context-tokens'] : [])] });
      const make = async () => (await server.request('POST', '/sandboxes', { templateID: 'base' }, { key: '', headers: { 'x-api-key': server.key } })).json;
      [box, other] = [await make(), await make()];
    });
    after(() => finish(server));

    const call = (method, path, body, headers = {}) =>
      server.request(method, path, body, { key: '', headers: { 'e2b-sandbox-id': box.sandboxID, 'e2b-sandbox-port': String(PORT), ...headers } });
    const token = (of) => ({ 'x-access-token': of.envdAccessToken });

    it(`K184_an_id_alone_${asks ? 'opens_no' : 'opens'}_contexts`, async () => {
      const made = await call('POST', '/contexts', { language: 'bash' }, token(box));
      assert.equal(made.status, 200, made.text);
      const wanted = asks ? 401 : 200;
      const tries = [['GET', '/contexts'], ['POST', '/contexts', { language: 'bash' }], ['POST', `/contexts/${made.json.id}/restart`], ['DELETE', `/contexts/${made.json.id}`]];
      for (const [method, path, body] of tries) assert.equal((await call(method, path, body)).status, wanted, `${method} ${path}`);
      for (const [method, path, body] of tries) {
        assert.equal((await call(method, path, body, { 'x-access-token': 'guess' })).status, 401, `${method} ${path} with a guess`);
        assert.equal((await call(method, path, body, token(other))).status, 401, `${method} ${path} with another's token`);
      }
      assert.equal((await call('GET', '/health')).status, 200, 'whether it runs is open in any case');
      if (!asks) return;
      const list = await call('GET', '/contexts', undefined, token(box));
      assert.ok(list.json.some((context) => context.id === made.json.id), 'control: with the token they are there');
      assert.equal((await call('DELETE', `/contexts/${made.json.id}`, undefined, token(box))).status, 200);
    });
  });
