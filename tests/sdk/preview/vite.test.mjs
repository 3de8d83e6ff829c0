// A dev server with hot reload in a sandbox, seen through a preview by a real browser.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import puppeteer from 'puppeteer-core';
import { Server, until } from '../../lib/server.mjs';

const BROWSER = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync);
const MODULES = new URL('node_modules', import.meta.url).pathname;
const [major, minor] = process.versions.node.split('.').map(Number);
const MISSING = !BROWSER ? 'needs Chromium: tools/install-deps test-long' : major < 20 || (major === 20 && minor < 19) ? 'Vite needs Node 20.19' : false;
const PORT = 5173;

const INDEX = '<!doctype html><title>vite</title><p id="text"></p><script type="module" src="/main.js"></script>';
const module = (text) => `export const text = ${JSON.stringify(text)};
const show = (value) => (document.querySelector('#text').textContent = value);
show(text);
import.meta.hot.accept((next) => show(next.text));`;

describe('hot reload', { timeout: 120000, skip: MISSING }, () => {
  let server, browser, box;

  const write = (path, content) => server.request('PUT', `/v1/sandboxes/${box.id}/files?path=${encodeURIComponent(path)}`, Buffer.from(content), { headers: { 'content-type': 'application/octet-stream' } });

  before(async () => {
    server = await Server.start({ args: ['--pool', '0'] });
    box = await server.create({ resources: { memory: '1Gi' } });
    assert.equal((await server.exec(box.id, 'mkdir -p app/node_modules')).exitCode, 0);
    for (const name of readdirSync(MODULES).filter((name) => !name.startsWith('.') && !name.includes('puppeteer'))) {
      const copied = server.cli(['cp', '-q', `${MODULES}/${name}`, `${box.id}:app/node_modules/`]);
      assert.equal(copied.status, 0, copied.stderr);
    }
    await write('app/index.html', INDEX);
    await write('app/main.js', module('first'));
    const started = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: `cd app && exec node node_modules/vite/bin/vite.js --host 127.0.0.1 --port ${PORT}` });
    assert.equal(started.status, 201, started.text);
    await until('vite listens', async () => (await server.request('GET', `/v1/sandboxes/${box.id}/ports`)).json.ports.some((p) => p.port === PORT), 60000);
    browser = await puppeteer.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu'] });
  });
  after(async () => {
    await browser?.close();
    await server?.destroy();
  });

  const textOf = (page) => page.$eval('#text', (element) => element.textContent);

  /** Opens the URL, changes the module inside, and sees the change come without another load. */
  async function edited(url, from, to) {
    const page = await browser.newPage();
    const failures = [];
    page.on('pageerror', (error) => failures.push(error.message));
    const answer = await page.goto(url, { waitUntil: 'networkidle2' });
    assert.equal(answer.status(), 200);
    await until('the page is there', async () => (await textOf(page)) === from);
    await page.evaluate(() => (window.loadedOnce = true));
    await write('app/main.js', module(to));
    await until('the change has come', async () => (await textOf(page)) === to);
    assert.equal(await page.evaluate(() => window.loadedOnce), true, 'the page was not loaded again');
    assert.deepEqual(failures, []);
    await page.close();
  }

  it('comes through a preview that a token opens, by its cookie', async () => {
    const token = JSON.parse(server.cli(['port', box.id, String(PORT), '--token', '10m', '--json']).stdout);
    await edited(token.url, 'first', 'second');
  });

  it('comes through a public one', async () => {
    const url = server.cli(['port', box.id, String(PORT), '--public']).stdout.trim();
    await edited(url, 'second', 'third');
  });
});
