// Builds reach what sandboxes may: the internet by default, less where they or the operator say so, and never this host.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { until } from '../lib/server.mjs';
import { tar, tinyRoot } from '../lib/images.mjs';
import { assertRefused, finish, remove } from '../system/support.mjs';
import { World, enterNamespace } from './world.mjs';
import { MANAGERS, Mirrors } from './mirrors.mjs';

enterNamespace(import.meta.url);

let mirrors, world, server, own;

before(async () => {
  mirrors = new Mirrors();
  world = await World.make(mirrors.world);
  own = http.createServer((req, res) => res.end('the host\n')); // what must not be reached
  await new Promise((resolve) => own.listen(8099, '::', resolve));
  server = await world.start({ args: [...mirrors.args, '--pool', '0'] });
});

after(async () => {
  own.close();
  own.closeAllConnections();
  try {
    await finish(server);
  } finally {
    world.end();
    mirrors.end();
  }
});

async function build(of, body) {
  const made = await of.request('POST', '/v1/templates/builds', body);
  assert.equal(made.status, 202, made.text);
  return until('it has ended', async () => {
    const { json } = await of.request('GET', `/v1/templates/builds/${made.json.id}`);
    return ['ready', 'failed'].includes(json.status) && json;
  }, 60000);
}

const FETCH = 'curl -sSf https://pypi.org/simple/bunker-hello/ > /fetched';

test('a_build_reaches_the_internet_and_never_this_host', { timeout: 60000 }, async () => {
  const made = await build(server, { name: 'online', steps: [{ run: `${FETCH}; for to in 127.0.0.1 5.5.5.1; do curl -s -m 5 http://$to:8099/ >> /host; done; true` }] });
  assert.equal(made.status, 'ready', made.reason);
  const box = await server.create({ template: 'online' });
  assert.match((await server.exec(box.id, 'cat /fetched')).stdout, /bunker_hello/);
  assert.equal((await server.exec(box.id, 'cat /host')).stdout, '', 'the host is closed');
  assert.deepEqual(box.network, { mode: 'none' }, 'its sandboxes have no network of the build');
  await remove(server, box.id);
});

test('an_images_build_resolves_names', { timeout: 60000 }, async () => {
  const imported = await server.request('POST', '/v1/templates/imports?name=tiny', tar(tinyRoot()), { headers: { 'content-type': 'application/x-tar' } });
  assert.equal(imported.status, 201, imported.text);
  const made = await build(server, { name: 'tiny-online', from: 'tiny', steps: [{ run: 'wget -q -O /fetched http://pypi.org/simple/bunker-hello/' }] });
  assert.equal(made.status, 'ready', made.reason);
});

test('a_build_may_ask_for_less', { timeout: 60000 }, async () => {
  const none = await build(server, { name: 'less', network: { mode: 'none' }, noCache: true, steps: [{ run: FETCH }] });
  assert.equal(none.status, 'failed');
  assert.match(none.reason, /exit status 6 \(this build has no network\)/);
  const listed = (allow) => build(server, { name: 'less', network: { mode: 'allow', allow }, noCache: true, steps: [{ run: FETCH }] });
  assert.equal((await listed(['preset:pypi'])).status, 'ready');
  const other = await listed(['preset:npm']);
  assert.equal(other.status, 'failed');
  assert.doesNotMatch(other.reason, /no network/, 'it has one');
  for (const [network, field] of [[{ mode: 'wide' }, 'network.mode'], [{ mode: 'allow', allow: ['a b'] }, 'network.allow'], [{ mode: 'open', allow: ['a'] }, 'network.allow'], [{ mode: 'allow', allow: ['10.0.0.0/8'] }, 'network.allow'], ['open', 'network']])
    assertRefused(await server.request('POST', '/v1/templates/builds', { name: 'less', network, steps: [] }), 400, 'invalid_field', field);
});

test('the_command_line_says_what_a_build_may_reach', { timeout: 60000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'bunker-build-'));
  try {
    writeFileSync(join(dir, 'Dockerfile'), `FROM base\nRUN ${FETCH}\n`);
    const cli = (...args) => server.cli(['template', 'build', '-t', 'typed', '--no-cache', ...args, dir]);
    assert.equal(cli('--allow', 'preset:npm,preset:pypi').status, 0);
    assert.match(cli('--network', 'none').stderr, /this build has no network/);
    assert.equal(cli('--network', 'deny', '--deny', 'pypi.org').status, 1);
    assert.match(cli('--network', 'wide').stderr, /network\.mode/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('dependencies_and_packages_are_installed_once_and_kept', { timeout: 180000 }, async () => {
  const sources = await build(server, { name: 'sources', steps: [{ run: MANAGERS.apt.install.replace(/; apt-get.*/, '') }] });
  assert.equal(sources.status, 'ready', sources.reason);
  const apt = await server.create({ template: 'sources', dependencies: ['bunker-hello'] });
  assert.equal((await server.exec(apt.id, 'cat /opt/hello')).stdout, 'installed by apt\n');
  await world.asked();
  const again = await server.create({ template: 'sources', dependencies: ['bunker-hello'] });
  assert.equal((await server.exec(again.id, 'cat /opt/hello')).stdout, 'installed by apt\n');
  assert.deepEqual((await world.asked()).filter((q) => q.name === 'deb.debian.org'), [], 'the second one was not installed anew');
  const plain = await server.create({ template: 'sources' });
  assert.notEqual((await server.exec(plain.id, 'cat /opt/hello')).exitCode, 0);
  if (spawnSync('which', ['npm']).status === 0) {
    const npm = await server.create({ packages: ['bunker-hello@1.0.0'] });
    assert.equal((await server.exec(npm.id, 'npm-hello')).stdout, 'installed by npm\n');
    await remove(server, npm.id);
  }
  const bad = await server.request('POST', '/v1/sandboxes', { template: 'sources', dependencies: ['no-such-package'], name: 'bad' });
  assertRefused(bad, 422, 'build_failed');
  assert.match(bad.json.error.message, /no-such-package/);
  assert.equal((await server.request('GET', '/v1/sandboxes?name=bad')).json.sandboxes.length, 0);
  for (const name of ['--evil', '-o', 'a b', 'x;y', '../x'])
    assertRefused(await server.request('POST', '/v1/sandboxes', { dependencies: [name] }), 400, 'invalid_field', 'dependencies');
  for (const box of [apt, again, plain]) await remove(server, box.id);
});

test('with_build_network_none_no_build_has_one', { timeout: 60000 }, async () => {
  const closed = await world.start({ args: [...mirrors.args, '--build-network', 'none', '--pool', '0'] });
  try {
    const made = await build(closed, { name: 'offline', steps: [{ run: FETCH }] });
    assert.match(made.reason, /this build has no network/);
    assertRefused(await closed.request('POST', '/v1/templates/builds', { name: 'wants', network: { mode: 'open' }, steps: [] }), 503, 'unavailable', 'network.mode');
    assertRefused(await closed.request('POST', '/v1/sandboxes', { dependencies: ['jq'] }), 503, 'unavailable', 'dependencies');
  } finally {
    await finish(closed);
  }
  const gone = spawnSync(process.env.BUNKER ?? 'build/bunker', ['serve', '--build-network', 'host'], { encoding: 'utf8' });
  assert.equal(gone.status, 2);
  assert.match(gone.stderr, /--build-network host is gone: builds have a network of their own/);
});
