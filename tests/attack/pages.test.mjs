// K180: a page of somebody's site, open in the browser of a user whose server runs without keys. It can send what a form or
// fetch() can send to loopback; what the browser adds (Origin, Sec-Fetch-Site, Host) is all that tells it from the user.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { listRoutes } from '../lib/routes.mjs';
import { startBeside } from '../system/support.mjs';
import { Arena } from './arena.mjs';

describe('K180 pages of other sites', { timeout: 120000 }, () => {
  let arena, server, keyed, box, token;
  before(async () => {
    arena = await Arena.open({ args: ['--pool', '0', '--no-auth'] });
    server = arena.server;
    box = await server.create({});
    token = (await server.request('GET', `/sandboxes/${box.id}`)).json.envdAccessToken;
    keyed = await startBeside(server, { args: ['--pool', '0'] });
  });
  after(async () => {
    await keyed?.destroy();
    await arena?.close();
  });

  /** One request as bytes: what http clients would add or correct stays as it is. */
  const raw = (to, method, path, headers, { version = '1.1', body = '' } = {}) =>
    new Promise((resolve, reject) => {
      const socket = net.connect(to.port, '127.0.0.1');
      let text = '';
      socket.setTimeout(3000, () => socket.destroy());
      const done = () => resolve({ status: Number(text.slice(9, 12)), text });
      socket.on('data', (part) => {
        text += part.toString('latin1');
        if (text.includes('\r\n\r\n')) socket.destroy();
      });
      socket.on('error', reject);
      socket.on('close', done);
      const lines = Object.entries({ connection: 'close', ...(body && { 'content-length': body.length }), ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`${method} ${path} HTTP/${version}\r\n${lines.join('')}\r\n${body}`);
    });
  const here = (to = server) => ({ host: `127.0.0.1:${to.port}` });

  const pages = {
    'a page of another site': { origin: 'https://evil.example' },
    'a page that hides its origin': { origin: 'null' },
    'a page that is called almost as we are': { origin: 'http://localhost.evil.example' },
    'a page of a name that begins with an address': { origin: 'http://127.0.0.1.evil.example:2468' },
    'a page with a user in its origin': { origin: 'http://localhost@evil.example' },
    'a page of a sandbox, below localhost': { origin: `http://8080-${'k'.repeat(20)}.localhost:2468` },
    'an extension': { origin: 'chrome-extension://abcdef' },
    'an image, a form or a navigation': { 'sec-fetch-site': 'cross-site' },
    'a page without an origin that the browser calls foreign': { 'sec-fetch-site': 'Cross-Site', 'sec-fetch-mode': 'no-cors' },
    'a name that leads here': { host: 'evil.example' },
    'a name that leads here, with a port': { host: 'evil.example:2468' },
    "a sandbox's name at another domain": { host: '49999-kkkkkkkkkkkkkkkkkkkk.evil.example' },
  };

  /** By a name of a sandbox one reaches nothing but that. */
  const isRefused = (r, headers) => r.status === 401 || (r.status === 404 && headers.host?.startsWith('49999'));

  const fill = (pattern) => pattern.replace(/\{([^}]+)\}/g, (_, name) => (name === 'id' ? box.id : name === 'rest**' ? 'x' : 'none'));
  for (const [what, headers] of Object.entries(pages))
    it(`K180 ${what} is refused at every route`, async () => {
      for (const route of listRoutes().filter((r) => r.dialect !== 'preview')) {
        const own = route.claim ? { 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': { 1: 49983, 2: 49999, 4: 8080 }[route.claim], 'x-access-token': token } : {};
        const r = await raw(server, route.method === 'ANY' ? 'GET' : route.method, fill(route.pattern), { ...here(), ...own, ...headers });
        assert.ok(isRefused(r, headers), `${route.method} ${route.pattern}: ${r.text.slice(0, 400)}`);
      }
    });

  it('K180 a page runs no command in the sandbox', async () => {
    const body = JSON.stringify({ command: ['sh', '-c', 'id > /tmp/pwned'] });
    const send = (headers) => raw(server, 'POST', `/agentuity/sandbox/sbx_${box.id}/execute`, { ...here(), 'content-type': 'text/plain', ...headers }, { body });
    for (const headers of Object.values(pages)) await send(headers);
    assert.equal((await server.exec(box.id, 'cat /tmp/pwned')).exitCode, 1);
    // The control: without what a browser adds the very request works.
    assert.equal((await send({})).status, 200);
    const found = await server.exec(box.id, { command: 'for i in $(seq 100); do [ -s /tmp/pwned ] && break; sleep 0.05; done; cat /tmp/pwned' });
    assert.match(found.stdout, /uid=/);
  });

  it('K180 a request of HTTP/1.0 cannot leave out the name', async () => {
    assert.equal((await raw(server, 'GET', '/v1/sandboxes', {}, { version: '1.0' })).status, 401);
    assert.equal((await raw(server, 'GET', '/v1/sandboxes', here(), { version: '1.0' })).status, 200, 'the control');
  });

  it('K180 a WebSocket of a page is not opened', async () => {
    const { id } = (await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'sleep 100' })).json;
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
    const open = (headers) => raw(server, 'GET', `/v1/sandboxes/${box.id}/processes/${id}/output`, { ...here(), ...upgrade, ...headers });
    for (const headers of Object.values(pages)) assert.ok(isRefused(await open(headers), headers));
    assert.equal((await open({ origin: 'http://localhost:3000' })).status, 101, 'the control');
  });

  it('K180 the control: pages and programs of this machine are answered', async () => {
    for (const headers of [
      {}, { origin: 'http://localhost:3000' }, { origin: 'http://127.0.0.1' }, { origin: 'http://[::1]:8080' }, { origin: 'https://LOCALHOST' },
      { 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }, { 'sec-fetch-site': 'same-site' }, { host: 'localhost' }, { host: '[::1]:2468' }, { host: 'app.localhost:2468' },
    ])
      assert.equal((await raw(server, 'GET', '/v1/sandboxes', { ...here(), ...headers })).status, 200, JSON.stringify(headers));
    assert.equal((await raw(server, 'GET', '/envs', { host: `49983-${box.id}.localhost:2468`, 'x-access-token': token })).status, 200);
  });

  it('K180 the control: with keys a page must know one, and then it is answered', async () => {
    for (const headers of Object.values(pages)) {
      if (headers.host?.startsWith('49999')) continue; // it is for a sandbox
      assert.equal((await raw(keyed, 'GET', '/v1/sandboxes', { ...here(keyed), ...headers })).status, 401);
      assert.equal((await raw(keyed, 'GET', '/v1/sandboxes', { ...here(keyed), ...headers, 'x-api-key': keyed.key })).status, 200);
    }
  });
});
