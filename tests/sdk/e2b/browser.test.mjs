// What a browser asks and needs before it lets a page use the SDK (CORS): every request goes to another origin, with headers that are not simple.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { Sandbox } from 'e2b';
import { Server, startServer } from './support.mjs';

const server = await startServer({ args: ['--pool', '0'] });
const sandbox = await Sandbox.create();
const ORIGIN = 'https://page.example';
const API = 'content-type, x-api-key, lang, package_version';
const ENVD = 'connect-protocol-version, content-type, e2b-sandbox-id, e2b-sandbox-port, x-access-token';

/** As a browser sends it: without the headers that it asks for. */
function send(url, method, headers) {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname, search } = new URL(url);
    const request = http.request({ hostname, port, path: pathname + search, method, headers, agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers }));
    });
    request.on('error', reject);
    request.end();
  });
}
const preflight = (at, method, path, wanted, more = {}) =>
  send(at.url + path, 'OPTIONS', { origin: ORIGIN, 'access-control-request-method': method, 'access-control-request-headers': wanted, ...more });

function assertAllowed(answer, method, wanted) {
  assert.ok(answer.status >= 200 && answer.status < 300, `${answer.status}`);
  assert.equal(answer.headers['access-control-allow-origin'], '*');
  assert.ok(answer.headers['access-control-allow-methods'].split(', ').includes(method), answer.headers['access-control-allow-methods']);
  assert.equal(answer.headers['access-control-allow-headers'], wanted, 'each by its name: * does not cover Authorization');
  assert.equal(answer.headers['access-control-allow-credentials'], undefined, 'never with cookies');
}

describe('a page', () => {
  const id = sandbox.sandboxId;
  for (const [method, path, wanted] of [
    ['POST', '/v2/sandboxes', API],
    ['GET', '/v2/sandboxes', API],
    ['DELETE', `/sandboxes/${id}`, API],
    ['POST', `/e2b/sandboxes/${id}/timeout`, API],
    ['POST', '/volumes', API],
    ['PUT', `/volumecontent/${id}/file?path=/x`, 'authorization, content-type'],
    ['POST', '/process.Process/Start', ENVD],
    ['POST', '/filesystem.Filesystem/Stat', ENVD],
    ['GET', '/files?path=x', ENVD],
    ['POST', '/files?path=x', 'x-access-token'],
    ['POST', '/execute', ENVD],
    ['POST', '/contexts', 'content-type, e2b-sandbox-id, e2b-sandbox-port'],
  ])
    it(`may ${method} ${path.replace(id, '{id}')}`, async () => {
      assertAllowed(await preflight(server, method, path, wanted), method, wanted);
    });

  it('may call a sandbox by its host name', async () => {
    assertAllowed(await preflight(server, 'POST', '/process.Process/List', ENVD, { host: `49983-${id}.localhost` }), 'POST', ENVD);
  });

  it('may read the answers, also those that say no', async () => {
    const key = { 'x-api-key': process.env.E2B_API_KEY };
    for (const [path, headers, status] of [
      ['/v2/sandboxes', key, 200],
      ['/v2/sandboxes', { 'x-api-key': 'e2b_00' }, 401],
      [`/sandboxes/${'a'.repeat(20)}`, key, 404],
      ['/files?path=.bashrc', { 'e2b-sandbox-id': id, 'x-access-token': sandbox.envdAccessToken }, 200],
      ['/files?path=nope', { 'e2b-sandbox-id': id, 'x-access-token': sandbox.envdAccessToken }, 404],
    ]) {
      const answer = await send(server.url + path, 'GET', { origin: ORIGIN, ...headers });
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin'], answer.headers['access-control-expose-headers']], [status, '*', '*'], path);
    }
    assert.equal((await send(`${server.url}/v2/sandboxes`, 'GET', key)).headers['access-control-allow-origin'], undefined, 'nobody asked');
  });

  it('may not call the native API, which is none of the SDK\'s', async () => {
    assert.equal((await preflight(server, 'POST', '/v1/sandboxes', API)).headers['access-control-allow-origin'], undefined);
  });

  it('may not call a server that asks for no key', { timeout: 60000 }, async () => {
    const open = await Server.start({ args: ['--no-auth', '--pool', '0'] });
    try {
      assert.equal((await preflight(open, 'POST', '/v2/sandboxes', API)).headers['access-control-allow-origin'], undefined);
      assert.equal((await send(`${open.url}/v2/sandboxes`, 'GET', { origin: ORIGIN })).headers['access-control-allow-origin'], undefined);
    } finally {
      await open.destroy();
    }
  });
});
