// Real package managers in sandboxes, against mirrors under the registries' real names: by open and by the preset that is theirs, on a
// site whose mirrors have addresses that are not global and certificates of the site's own CA.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { finish, remove } from '../system/support.mjs';
import { World, enterNamespace } from './world.mjs';
import { MANAGERS, Mirrors } from './mirrors.mjs';

enterNamespace(import.meta.url);

let mirrors, world, server;

before(async () => {
  mirrors = new Mirrors();
  world = await World.make(mirrors.world);
  server = await world.start({ args: mirrors.args });
});

after(async () => {
  try {
    await finish(server);
  } finally {
    world.end();
    mirrors.end();
  }
});

/** rustup's cargo is not in /usr: the program itself is put into the sandbox. */
function cargoProgram() {
  const found = spawnSync('rustup', ['which', 'cargo'], { encoding: 'utf8' });
  return found.status === 0 ? found.stdout.trim() : undefined;
}

async function sandbox(name, network) {
  const box = await server.create({ user: 'root', network });
  if (name === 'cargo') {
    const put = await server.request('PUT', `/v1/sandboxes/${box.id}/files/tmp/cargo-program?mode=0755`, readFileSync(cargoProgram()), { headers: { 'content-type': 'application/octet-stream' } });
    assert.equal(put.status, 200, put.text);
    const version = spawnSync('rustc', ['-vV'], { encoding: 'utf8' }).stdout; // all that fetching wants of a compiler
    await server.exec(box.id, `mkdir -p /tmp/bin && ln -s /tmp/cargo-program /tmp/bin/cargo && printf '#!/bin/sh\ncat <<END\n${version}END\n' > /tmp/bin/rustc && chmod 755 /tmp/bin/rustc`);
  }
  return box.id;
}

async function installs(name, network) {
  const { install, shows, says } = MANAGERS[name];
  const id = await sandbox(name, network);
  const done = await server.exec(id, `export PATH=$PATH:/tmp/bin; ${install}`);
  assert.equal(done.exitCode, 0, `${done.stdout}${done.stderr}`);
  assert.equal((await server.exec(id, shows)).stdout, says);
  await remove(server, id);
}

const missing = (name) => {
  if (name === 'cargo') return !cargoProgram() && 'needs cargo by rustup';
  return spawnSync('which', [MANAGERS[name].needs]).status !== 0 && `needs ${MANAGERS[name].needs}`;
};

for (const name of Object.keys(MANAGERS)) {
  test(`${name}_works_in_mode_open`, { skip: missing(name), timeout: 120000 }, () => installs(name, { mode: 'open' }));
  test(`${name}_works_with_its_preset`, { skip: missing(name), timeout: 120000 }, () => installs(name, { mode: 'allow', allow: [MANAGERS[name].preset] }));
}

/** What they say of a host that may not be reached. */
const COMPLAINTS = { npm: /ENOTFOUND|EAI_AGAIN/, pip: /Name or service not known|Temporary failure|No matching distribution/, apt: /Could not resolve/, git: /Could not resolve host/, go: /no such host/, cargo: /[Cc]ould not resolve/ };

for (const name of Object.keys(MANAGERS)) {
  test(`${name}_fails_soon_and_says_so_when_its_host_is_not_allowed`, { skip: missing(name), timeout: 120000 }, async () => {
    const id = await sandbox(name, { mode: 'allow', allow: ['web.test'] });
    const began = Date.now();
    const done = await server.exec(id, `export PATH=$PATH:/tmp/bin; ${MANAGERS[name].install}`);
    assert.notEqual(done.exitCode, 0);
    assert.match(done.stdout + done.stderr, COMPLAINTS[name]);
    assert.ok(Date.now() - began < 45000, `it took ${Date.now() - began} ms`);
    const { json } = await server.request('GET', `/v1/sandboxes/${id}/events`);
    assert.ok(json.events.some((event) => event.type === 'denied'), 'an event tells what was denied');
    await remove(server, id);
  });
}

test('without_a_network_they_give_up_at_once', { timeout: 120000 }, async () => {
  for (const name of ['npm', 'pip', 'apt', 'git', 'go'].filter((n) => !missing(n))) {
    const id = await sandbox(name, { mode: 'none' });
    const began = Date.now();
    const done = await server.exec(id, MANAGERS[name].install);
    assert.notEqual(done.exitCode, 0);
    assert.ok(Date.now() - began < 15000, `${name} took ${Date.now() - began} ms`);
    await remove(server, id);
  }
});

test('pip_installs_into_the_system_for_everyone', { timeout: 60000, skip: missing('pip') }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  for (const user of ['root', 'user']) {
    const done = await server.exec(box.id, { command: 'pip install bunker-hello && python3 -c "import bunker_hello"', user });
    assert.equal(done.exitCode, 0, done.stderr);
    assert.match(done.stdout, /installed by pip\n$/);
  }
  assert.equal((await server.exec(box.id, 'echo $LANG')).stdout, 'C.UTF-8\n');
  await remove(server, box.id);
});

test('without_the_sites_ca_they_refuse_the_mirrors', { timeout: 120000 }, async () => {
  const other = await world.start({ args: ['--public-networks', mirrors.args[3], '--pool', '0'] });
  try {
    const box = await other.create({ user: 'root', network: { mode: 'open' } });
    const done = await other.exec(box.id, `${MANAGERS.git.install} 2>&1; npm_config_fetch_retries=0 npm view --registry https://registry.npmjs.org bunker-hello 2>&1`);
    assert.match(done.stdout, /certificate/i);
    assert.notEqual(done.exitCode, 0);
  } finally {
    await finish(other);
  }
});
