// The operator's certificates: trusted in every sandbox and build, wherever programs look for them, and nowhere twice.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUNKER, Server, dataDirectory, until } from '../lib/server.mjs';
import { Authority } from '../lib/authority.mjs';
import { dir, file, symlink, tar, tinyRoot } from '../lib/images.mjs';
import { finish, remove } from './support.mjs';

const BUNDLE = '/etc/ssl/certs/ca-certificates.crt';
const THEIRS = '-----BEGIN CERTIFICATE-----\nof the image\n-----END CERTIFICATE-----\n';
let server, ca, other, leaf;

before(async () => {
  ca = new Authority('Site CA');
  other = new Authority('Other CA');
  leaf = ca.sign('web.test').cert;
  server = await Server.start({ args: ['--sandbox-ca', ca.file, '--pool', '1'] });
});

after(async () => {
  try {
    await finish(server);
  } finally {
    ca.end();
    other.end();
  }
});

const changes = async (id) => (await server.request('GET', `/v1/sandboxes/${id}/diff`)).text;
const read = async (id, path) => (await server.exec(id, ['cat', path])).stdout;
const count = (text, part) => text.split(part).length - 1;

/** Whether OpenSSL inside trusts the leaf by `option`. */
async function verifies(id, option) {
  assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/files/tmp/leaf.pem`, leaf, { headers: { 'content-type': 'application/octet-stream' } })).status, 200);
  return (await server.exec(id, `openssl verify ${option} /tmp/leaf.pem`)).exitCode === 0;
}

async function importImage(name, entries) {
  const answer = await server.request('POST', `/v1/templates/imports?name=${name}`, tar(entries), { headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 201, answer.text);
}

test('base_trusts_it_by_bundle_and_by_directory_and_a_diff_shows_nothing', { timeout: 30000 }, async () => {
  for (let i = 0; i < 2; i++) {
    const box = await server.create();
    assert.match(await changes(box.id), /^\s*$|"changes":\s*\[\]/);
    assert.equal(await verifies(box.id, `-no-CApath -no-CAstore -CAfile ${BUNDLE}`), true);
    assert.equal(await verifies(box.id, '-no-CAfile -no-CAstore -CApath /etc/ssl/certs'), true);
    assert.equal(await verifies(box.id, '-no-CAfile -no-CApath -no-CAstore'), false, 'the control: without a store nothing is trusted');
    assert.equal(count(await read(box.id, BUNDLE), 'certificates that this server adds'), 1);
    await remove(server, box.id);
  }
});

test('variables_name_it_unless_the_client_sets_them', { timeout: 30000 }, async () => {
  const box = await server.create({ env: { SSL_CERT_FILE: '/sandbox' } });
  const env = async (options) => Object.fromEntries((await server.exec(box.id, { command: ['env'], ...options })).stdout.trim().split('\n').map((line) => line.split('=')));
  const plain = await env({});
  assert.equal(plain.NODE_EXTRA_CA_CERTS, '/etc/ssl/bunker-ca.pem');
  assert.equal(plain.REQUESTS_CA_BUNDLE, BUNDLE);
  assert.equal(plain.SSL_CERT_FILE, '/sandbox');
  assert.equal((await env({ env: { NODE_EXTRA_CA_CERTS: '/own' } })).NODE_EXTRA_CA_CERTS, '/own');
  assert.ok((await read(box.id, '/etc/ssl/bunker-ca.pem')).includes(ca.pem));
  await remove(server, box.id);
});

test('it_is_there_after_update_ca_certificates', { timeout: 60000, skip: spawnSync('which', ['update-ca-certificates']).status !== 0 && 'needs ca-certificates' }, async () => {
  const box = await server.create({ user: 'root' });
  const done = await server.exec(box.id, 'update-ca-certificates --fresh');
  assert.equal(done.exitCode, 0, done.stderr);
  assert.equal(await verifies(box.id, `-no-CApath -no-CAstore -CAfile ${BUNDLE}`), true);
  assert.equal(await verifies(box.id, '-no-CAfile -no-CAstore -CApath /etc/ssl/certs'), true);
  assert.equal(count(await read(box.id, BUNDLE), 'certificates that this server adds'), 1);
  await remove(server, box.id);
});

test('an_image_gets_it_beside_its_own_when_it_is_imported', { timeout: 30000 }, async () => {
  await importImage('bare', tinyRoot());
  await importImage('fedora', [...tinyRoot(), dir('etc/pki'), dir('etc/pki/tls'), dir('etc/pki/tls/certs'), dir('etc/real'), file('etc/real/bundle.pem', THEIRS), symlink('etc/pki/tls/certs/ca-bundle.crt', '../../../real/bundle.pem'), dir('etc/ssl'), symlink('etc/ssl/certs', '../pki/tls/certs')]);
  const bare = await server.create({ template: 'bare' });
  assert.equal(count(await read(bare.id, BUNDLE), ca.pem), 1);
  assert.ok((await read(bare.id, `/etc/ssl/certs/${ca.hash}.0`)).includes(ca.pem));
  assert.match(await changes(bare.id), /^\s*$|"changes":\s*\[\]/);
  const fedora = await server.create({ template: 'fedora' });
  for (const path of ['/etc/real/bundle.pem', '/etc/pki/tls/certs/ca-bundle.crt', BUNDLE]) {
    const text = await read(fedora.id, path);
    assert.ok(text.startsWith(THEIRS), path);
    assert.equal(count(text, ca.pem), 1, path);
  }
  assert.equal((await server.exec(fedora.id, 'readlink /etc/pki/tls/certs/ca-bundle.crt')).stdout, '../../../real/bundle.pem\n');
  await remove(server, bare.id);
  await remove(server, fedora.id);
});

test('a_build_trusts_it_and_passes_it_on', { timeout: 30000 }, async () => {
  const answer = await server.request('POST', '/v1/templates/builds', { name: 'built', from: 'bare', steps: [{ run: `cat ${BUNDLE} > /seen; env > /env; rm -r /etc/ssl` }] });
  const build = await until('it has ended', async () => {
    const { json } = await server.request('GET', `/v1/templates/builds/${answer.json.id}`);
    return ['ready', 'failed'].includes(json.status) && json;
  });
  assert.equal(build.status, 'ready', build.reason);
  const box = await server.create({ template: 'built' });
  assert.equal(count(await read(box.id, '/seen'), ca.pem), 1);
  assert.match(await read(box.id, '/env'), /^NODE_EXTRA_CA_CERTS=/m);
  assert.equal(count(await read(box.id, BUNDLE), ca.pem), 1, 'what a step removed is there again');
  await remove(server, box.id);
});

test('another_one_replaces_it_at_the_next_boot', { timeout: 60000 }, async () => {
  const base = await server.create({ user: 'root' });
  const image = await server.create({ template: 'bare', user: 'root' });
  await server.exec(base.id, `echo own >> ${BUNDLE}`);
  for (const box of [base, image]) assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/pause`, { memory: false })).status, 200);
  await server.stop();
  server.args[1] = other.file;
  await server.launch();
  for (const box of [base, image]) assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/resume`, {})).status, 200);
  const text = await read(image.id, BUNDLE);
  assert.equal(count(text, other.pem), 1);
  assert.equal(count(text, ca.pem), 0);
  assert.equal((await server.exec(image.id, `ls /etc/ssl/certs`)).stdout.trim().split('\n').length, 3, 'the bundle, the new one and its link');
  assert.equal(count(await read(base.id, '/etc/ssl/bunker-ca.pem'), other.pem), 1);
  for (const box of [base, image]) await remove(server, box.id);
});

test('what_an_agent_made_of_its_stores_stops_no_boot', { timeout: 30000 }, async () => {
  const box = await server.create({ template: 'bare', user: 'root' });
  await server.exec(box.id, 'rm -r /etc/ssl; mkdir -p /etc/ssl; echo no > /etc/ssl/certs');
  assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/pause`, { memory: false })).status, 200);
  assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/resume`, {})).status, 200);
  assert.equal(await read(box.id, '/etc/ssl/certs'), 'no\n');
  assert.match(server.log.text, /certificates could not be added/);
  await remove(server, box.id);
});

function refusal(content) {
  const data = dataDirectory();
  const path = join(ca.dir, 'given.pem');
  writeFileSync(path, content);
  try {
    return spawnSync(BUNKER, ['serve', '--listen', '127.0.0.1:0', '--data', data, '--sandbox-ca', path], { encoding: 'utf8', timeout: 10000 });
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

test('a_file_that_is_not_only_certificates_is_refused_at_start', { timeout: 30000 }, () => {
  for (const [content, expected] of [
    [ca.pem + readFileSync(ca.keyFile, 'utf8'), /holds a private key/],
    ['nothing', /holds no certificate/],
    [ca.pem + ca.pem.replace(/\n[A-Za-z0-9+/]{10}/, '\n'), /holds something that is no certificate/],
    [ca.pem.repeat(60), /longer than 24576 bytes together/],
  ]) {
    const done = refusal(content);
    assert.equal(done.status, 2, done.stderr);
    assert.match(done.stderr, expected);
  }
  const missing = spawnSync(BUNKER, ['serve', '--sandbox-ca', '/does/not/exist'], { encoding: 'utf8', timeout: 10000 });
  assert.match(missing.stderr, /--sandbox-ca: cannot read \/does\/not\/exist/);
});

test('without_any_nothing_is_touched', { timeout: 30000 }, async () => {
  const plain = await Server.start({ args: ['--sandbox-ca', '', '--pool', '0'] });
  try {
    const box = await plain.create();
    const seen = await plain.exec(box.id, 'env; ls /etc/ssl/bunker-ca.pem');
    assert.doesNotMatch(seen.stdout, /NODE_EXTRA_CA_CERTS|SSL_CERT_FILE/);
    assert.notEqual(seen.exitCode, 0);
  } finally {
    await finish(plain);
  }
});
