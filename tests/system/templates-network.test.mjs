// Images from a registry on loopback that this test starts, and from mmdebstrap.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { BUNKER, Server, until } from '../lib/server.mjs';
import { file, ociLayout, tar, tinyRoot } from '../lib/images.mjs';
import { finish, LONG } from './support.mjs';

let server, work, registry, port;
const CREDS = 'agent:secret';

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

const has = (program) => spawnSync('which', [program]).status === 0;

async function startRegistry() {
  port = await freePort();
  const [name, password] = CREDS.split(':');
  const hash = spawnSync('perl', ['-e', 'print crypt($ARGV[0], q($2b$05$abcdefghijklmnopqrstuu))', password], { encoding: 'utf8' }).stdout;
  writeFileSync(join(work, 'htpasswd'), `${name}:${hash.replace('$2b$', '$2y$')}\n`);
  writeFileSync(
    join(work, 'registry.yml'),
    `version: 0.1\nstorage: {filesystem: {rootdirectory: ${join(work, 'registry')}}}\nhttp: {addr: '127.0.0.1:${port}'}\nauth: {htpasswd: {realm: test, path: ${join(work, 'htpasswd')}}}\n`,
  );
  registry = spawn('docker-registry', ['serve', join(work, 'registry.yml')], { stdio: 'ignore' });
  await until('the registry answers', async () => {
    try {
      return (await fetch(`http://127.0.0.1:${port}/v2/`)).status === 401;
    } catch {
      return false;
    }
  });
}

function push(name, layers) {
  const image = ociLayout(layers, { config: { Env: ['FROM_REGISTRY=yes'] } });
  const path = join(work, `push-${name.replace(/\W/g, '-')}`);
  mkdirSync(path);
  assert.equal(spawnSync('tar', ['-x', '-C', path], { input: tar(image.entries) }).status, 0);
  const result = spawnSync('skopeo', ['copy', '--quiet', '--dest-creds', CREDS, '--dest-tls-verify=false', `oci:${path}:latest`, `docker://127.0.0.1:${port}/${name}`], { encoding: 'utf8' });
  assert.equal(result.status, 0, result.stderr);
  return image;
}

before(async () => {
  work = mkdtempSync(join(tmpdir(), 'bunker-network-'));
  server = await Server.start({ args: ['--pool', '0'] });
});
after(async () => {
  if (registry && registry.exitCode === null) registry.kill();
  rmSync(work, { recursive: true, force: true });
  await finish(server);
});

function ok(args) {
  const result = server.cli(args);
  assert.equal(result.status, 0, result.stderr);
  return result.stdout;
}

test('an_image_comes_from_a_registry_with_credentials_and_a_digest', { skip: (!has('docker-registry') || !has('skopeo')) && 'needs docker-registry and skopeo', timeout: 60000 }, async () => {
  await startRegistry();
  const image = push('team/tiny:1', [tar([...tinyRoot(), file('where', 'registry')])]);
  const source = `docker://127.0.0.1:${port}/team/tiny:1`;
  const without = server.cli(['template', 'import', '--insecure', source, 'fetched']);
  assert.equal(without.status, 1);
  assert.match(without.stderr, /unauthorized|authentication required/i);
  ok(['template', 'import', '--insecure', '--creds', CREDS, '--digest', image.digest, source, 'fetched:1']);
  assert.equal(ok(['run', '-t', 'fetched:1', '-c', 'cat /where; echo $FROM_REGISTRY']), 'registryyes\n');
  assert.equal(JSON.parse(ok(['template', 'info', 'fetched'])).builds[0].digest, image.digest);
  const other = server.cli(['template', 'import', '--insecure', '--creds', CREDS, '--digest', `sha256:${'1'.repeat(64)}`, source, 'fetched']);
  assert.match(other.stderr, /digest_mismatch/);
  const pinned = `docker://127.0.0.1:${port}/team/tiny@${image.digest}`;
  ok(['template', 'import', '--insecure', '--creds', CREDS, pinned, 'fetched:pinned']);
  assert.match(server.cli(['template', 'import', '--insecure', '--creds', CREDS, `docker://127.0.0.1:${port}/none:1`, 'x']).stderr, /skopeo ended with status/);
});

/** mmdebstrap takes minutes, more than the CLI of other tests may. */
function debian(...args) {
  const env = { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data };
  const made = spawnSync(BUNKER, ['template', 'debian', ...args], { encoding: 'utf8', env, timeout: 900000 });
  assert.equal(made.status, 0, made.stderr);
}

test('a_clean_debian_by_mmdebstrap', { skip: (!LONG && 'needs BUNKER_LONG=1') || (!has('mmdebstrap') && 'needs mmdebstrap'), timeout: 1000000 }, () => {
  debian('small', '--variant', 'essential', '--include', 'busybox');
  assert.match(ok(['run', '-t', 'small', '-c', 'cat /etc/debian_version; busybox true && id -un']), /^12\.\d+\nuser\n$/);
});

test('the_recipes_give_what_they_promise', { skip: (!LONG && 'needs BUNKER_LONG=1') || (!has('mmdebstrap') && 'needs mmdebstrap'), timeout: 3000000 }, () => {
  const checks = {
    python: 'python3 -c "import sys; print(sys.version_info >= (3, 11))" && python --version && pip --version && sudo id -u',
    node: 'node -e "console.log(1 + 1)" && npm --version && sudo id -u',
    'data-science': 'python3 -c "import pandas, numpy, matplotlib, scipy, sklearn; print(pandas.DataFrame({\'a\': [1]}).a.sum())"',
  };
  for (const [name, line] of Object.entries(checks)) {
    debian(name);
    ok(['run', '-t', name, '-c', line]);
  }
});
