// Behind a proxy that rewrites Host: the addresses that the server tells lead back through it.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, afterEach, before, describe, it } from 'node:test';
import { startProxy } from '../lib/proxy.mjs';
import { Server } from '../lib/server.mjs';
import { finish, startBeside } from './support.mjs';

/** One request to an address, with the server's key unless it has none to give. */
const ask = (url, { method = 'GET', body, headers = {} } = {}) =>
  new Promise((resolve, reject) => {
    const req = http.request(url, { method, agent: false, headers: { ...(body && { 'content-type': 'application/json' }), ...headers } }, (res) => {
      let text = '';
      res.on('data', (part) => (text += part));
      res.on('end', () => resolve({ status: res.statusCode, text, json: text.startsWith('{') ? JSON.parse(text) : undefined }));
    });
    req.on('error', reject);
    req.end(body && JSON.stringify(body));
  });

describe('behind a proxy that rewrites Host', { timeout: 120000 }, () => {
  let server, proxy;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
  });
  after(() => finish(server));
  afterEach(() => proxy?.close());

  const key = (s) => ({ authorization: `Bearer ${s.key}` });
  /** Where the output of a command can be read, as Agentuity's API tells it. */
  const streamUrl = async (at, s = server, headers = {}) => {
    const box = await s.create();
    const r = await ask(`${at}/agentuity/sandbox/sbx_${box.id}/execute`, { method: 'POST', body: { command: ['echo', 'hi'] }, headers: { ...key(s), ...headers } });
    const execution = (r.json.data ?? r.json).executionId;
    const info = await ask(`${at}/agentuity/sandbox/execution/${execution}?wait=5s`, { headers: { ...key(s), ...headers } });
    assert.equal(info.status, 200, info.text);
    return (info.json.data ?? info.json).stdoutStreamUrl;
  };
  const uploadUrl = async (at, s = server, headers = {}) => {
    const name = `t${Math.random().toString(36).slice(2)}`;
    const made = await ask(`${at}/v3/templates`, { method: 'POST', body: { name }, headers: { 'x-api-key': s.key, ...headers } });
    assert.equal(made.status, 202, made.text);
    const r = await ask(`${at}/templates/${made.json.templateID}/files/${'ab'.repeat(32)}`, { headers: { 'x-api-key': s.key, ...headers } });
    assert.equal(r.status, 201, r.text);
    return r.json.url;
  };
  const previewUrl = async (at, s = server, headers = {}) => {
    const box = await s.create();
    return (await ask(`${at}/v1/sandboxes/${box.id}/ports/8000`, { headers: { ...key(s), ...headers } })).json.url.replace(box.id, 'ID');
  };

  it('addresses are those of X-Forwarded-Host, and can be used', async () => {
    proxy = await startProxy(server, { headers: (req) => ({ 'x-forwarded-host': req.headers.host }) });
    const url = await streamUrl(proxy.url);
    assert.ok(url.startsWith(`${proxy.url}/agentuity/`), url);
    assert.equal((await ask(url)).text, 'hi\n');
    assert.ok((await uploadUrl(proxy.url)).startsWith(`${proxy.url}/templates/uploads/`));
  });

  it('a prefix and a scheme are kept', async () => {
    proxy = await startProxy(server, { prefix: '/boxes', headers: (req) => ({ 'x-forwarded-host': req.headers.host, 'x-forwarded-prefix': '/boxes/' }) });
    const url = await streamUrl(proxy.url);
    assert.ok(url.startsWith(`${proxy.url}/agentuity/`), url);
    assert.equal((await ask(url)).text, 'hi\n');
    const secure = { 'x-forwarded-host': 'bunker.example.com', 'x-forwarded-proto': 'https' };
    assert.match(await streamUrl(server.url, server, secure), /^https:\/\/bunker\.example\.com\/agentuity\//);
    assert.match(await uploadUrl(server.url, server, secure), /^https:\/\/bunker\.example\.com\/templates\//);
    assert.equal(await previewUrl(server.url, server, secure), 'https://8000-ID.localhost/');
    assert.equal(await previewUrl(server.url, server, { ...secure, 'x-forwarded-host': 'bunker.example.com:8443' }), 'https://8000-ID.localhost:8443/');
    assert.equal(await previewUrl(server.url), `http://8000-ID.localhost:${server.port}/`);
  });

  it('Forwarded is read, as the standard writes it', async () => {
    for (const [value, base] of [
      ['host=a.example.com;proto=https', 'https://a.example.com'],
      ['for=192.0.2.1; Proto="https"; Host="b.example.com:8443"', 'https://b.example.com:8443'],
      ['for="[2001:db8::1]:4711";host="[2001:db8::2]:80", host=evil.example.com;proto=https', 'http://[2001:db8::2]:80'],
    ])
      assert.ok((await streamUrl(server.url, server, { forwarded: value })).startsWith(`${base}/agentuity/`), value);
    assert.ok((await streamUrl(server.url, server, { 'x-forwarded-host': 'one.example.com , two.example.com' })).startsWith('http://one.example.com/'), 'of several proxies, the first');
  });

  it('what makes no sense counts as not said', async () => {
    for (const headers of [
      { 'x-forwarded-host': 'a b' },
      { 'x-forwarded-host': 'evil.example.com/path?' },
      { 'x-forwarded-host': 'x'.repeat(300) },
      { 'x-forwarded-host': '"<script>"' },
      { 'x-forwarded-proto': 'javascript' },
      { 'x-forwarded-prefix': '//evil.example.com' },
      { 'x-forwarded-prefix': 'evil' },
      { forwarded: 'host=";proto=' },
      { forwarded: ';;;==,,' },
      { forwarded: 'host' },
    ])
      assert.ok((await streamUrl(server.url, server, headers)).startsWith(`${server.url}/agentuity/`), JSON.stringify(headers));
  });

  it('only those are believed whom the operator trusts', async () => {
    const strict = await startBeside(server, { args: ['--pool', '0', '--trusted-proxy', '127.0.0.2,198.51.100.0/24'] });
    try {
      const said = { headers: (req) => ({ 'x-forwarded-host': req.headers.host }) };
      proxy = await startProxy(strict, said);
      assert.ok((await streamUrl(proxy.url, strict)).startsWith('http://inside.invalid:1/'));
      proxy.close();
      proxy = await startProxy(strict, { ...said, from: '127.0.0.2' });
      assert.ok((await streamUrl(proxy.url, strict)).startsWith(proxy.url));
    } finally {
      await finish(strict);
    }
  });

  it('--public-url is told where no proxy says anything', async () => {
    const named = await startBeside(server, { args: ['--pool', '0', '--public-url', 'https://bunker.example.com:8443/boxes/', '--domain', 'boxes.example.com'] });
    try {
      assert.ok((await streamUrl(named.url, named)).startsWith('https://bunker.example.com:8443/boxes/agentuity/'));
      assert.ok((await uploadUrl(named.url, named)).startsWith('https://bunker.example.com:8443/boxes/templates/uploads/'));
      assert.equal(await previewUrl(named.url, named), 'https://8000-ID.boxes.example.com:8443/');
      const e2b = await ask(`${named.url}/sandboxes`, { method: 'POST', body: { templateID: 'base' }, headers: { 'x-api-key': named.key } });
      assert.equal(e2b.json.domain, 'boxes.example.com:8443');
      assert.ok((await streamUrl(named.url, named, { 'x-forwarded-host': 'other.example.com' })).startsWith('http://other.example.com/'), 'a proxy knows better');
    } finally {
      await finish(named);
    }
  });

  it('options that make no sense are refused with a sentence', async () => {
    for (const [args, words] of [
      [['--public-url', 'bunker.example.com'], /--public-url is a URL such as/],
      [['--public-url', 'ftp://x'], /--public-url is a URL/],
      [['--public-url', 'https://user@x'], /--public-url is a URL/],
      [['--trusted-proxy', '10.0.0.0/33'], /--trusted-proxy is none or at most 32 ranges/],
      [['--trusted-proxy', 'proxy.example.com'], /--trusted-proxy is none/],
      [['--trusted-proxy', Array(33).fill('10.0.0.1').join(',')], /at most 32/],
    ])
      await assert.rejects(startBeside(server, { args }), words);
  });
});
