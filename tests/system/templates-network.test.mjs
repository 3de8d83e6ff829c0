// Images from a registry, and builds that may use the host's network: against servers on loopback that this test starts.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { gzipSync } from 'node:zlib';
import { BUNKER, Server, until } from '../lib/server.mjs';
import { file, ociLayout, tar, tinyRoot } from '../lib/images.mjs';
import { assertRefused, finish, remove, LONG } from './support.mjs';

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
  server = await Server.start({ args: ['--build-network', 'host', '--pool', '0'] });
  const answer = await server.request('POST', '/v1/templates/imports?name=tiny', tar(tinyRoot()), { headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 201, answer.text);
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

test('with_the_hosts_network_a_step_reaches_what_the_host_does', { timeout: 30000 }, async () => {
  const answer = await server.request('POST', '/v1/templates/builds', {
    name: 'online',
    from: 'tiny',
    steps: [{ run: `wget -q -O /health http://127.0.0.1:${server.port}/health; cat /etc/resolv.conf > /seen` }],
  });
  const build = await until('it has ended', async () => {
    const { json } = await server.request('GET', `/v1/templates/builds/${answer.json.id}`);
    return ['ready', 'failed'].includes(json.status) && json;
  });
  assert.equal(build.status, 'ready', build.reason);
  const sandbox = await server.create({ template: 'online' });
  const seen = await server.exec(sandbox.id, 'cat /health; cat /etc/resolv.conf; cat /seen');
  assert.equal(seen.stdout.replace(/^.*}/, ''), readFileSync('/etc/resolv.conf', 'utf8'), "the host's resolver is lent to the build and not to the sandbox");
  const offline = await server.exec(sandbox.id, `wget -T 2 -q -O- http://127.0.0.1:${server.port}/health || echo none`);
  assert.match(offline.stdout, /none/, 'sandboxes of the template have no network');
  await remove(server, sandbox.id);
});

test('with_the_hosts_network_its_abstract_sockets_stay_closed', { timeout: 30000 }, async (t) => {
  const doctor = JSON.parse(server.cli(['doctor', '--json']).stdout);
  const landlock = Number(/version (\d+)/.exec(JSON.stringify(doctor))?.[1] ?? 0);
  if (landlock < 6) return t.skip('the kernel has no Landlock 6');
  const name = `bunker-abstract-${process.pid}`;
  const connect = (to) => `import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0${to}')`;
  const listener = spawn('python3', ['-uc', `import socket, time; l = socket.socket(socket.AF_UNIX); l.bind('\\0${name}'); l.listen(); print('ready'); time.sleep(600)`], { stdio: ['ignore', 'pipe', 'ignore'] });
  await new Promise((resolve) => listener.stdout.on('data', resolve));
  try {
    const outside = await new Promise((resolve) => spawn('python3', ['-c', connect(name)], { stdio: 'ignore' }).on('close', resolve));
    assert.equal(outside, 0, 'the control: whoever is outside gets in');
    const own = `import socket; l = socket.socket(socket.AF_UNIX); l.bind('\\0own-${process.pid}'); l.listen(); ${connect(`own-${process.pid}`)}`;
    const answer = await server.request('POST', '/v1/templates/builds', {
      name: 'closed',
      steps: [{ run: `python3 -c "${connect(name)}" 2> /seen; echo $? >> /seen; python3 -c "${own}"; echo $? >> /seen; cat /etc/resolv.conf > /names; grep resolv /proc/self/mountinfo >> /seen` }],
    });
    const build = await until('it has ended', async () => {
      const { json } = await server.request('GET', `/v1/templates/builds/${answer.json.id}`);
      return ['ready', 'failed'].includes(json.status) && json;
    });
    assert.equal(build.status, 'ready', build.reason);
    const box = await server.create({ template: 'closed' });
    const seen = (await server.exec(box.id, 'cat /seen')).stdout;
    assert.match(seen, /PermissionError.*\n1\n0\n/s, 'its own are open');
    assert.match(seen, / - tmpfs /, "the host's file itself is not there");
    assert.equal((await server.exec(box.id, 'cat /names')).stdout, readFileSync('/etc/resolv.conf', 'utf8'));
    await remove(server, box.id);
  } finally {
    listener.kill();
  }
});

/** A flat apt repository with one package, and an npm registry with one, both on loopback. */
async function startPackages() {
  const root = join(work, 'hello');
  mkdirSync(join(root, 'DEBIAN'), { recursive: true });
  mkdirSync(join(root, 'opt'));
  writeFileSync(join(root, 'DEBIAN/control'), 'Package: bunker-hello\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: a test\n');
  writeFileSync(join(root, 'opt/hello'), 'installed by apt\n');
  const deb = join(work, 'repo/bunker-hello.deb');
  mkdirSync(join(work, 'repo'));
  assert.equal(spawnSync('dpkg-deb', ['--root-owner-group', '-b', root, deb]).status, 0);
  const bytes = readFileSync(deb);
  const { createHash } = await import('node:crypto');
  const packages = `Package: bunker-hello\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nFilename: ./bunker-hello.deb\nSize: ${bytes.length}\nSHA256: ${createHash('sha256').update(bytes).digest('hex')}\nDescription: a test\n\n`;
  const tarball = gzipSync(tar([file('package/package.json', '{"name":"bunker-hello","version":"1.0.0","bin":{"npm-hello":"cli.js"}}'), file('package/cli.js', '#!/usr/bin/env node\nconsole.log("installed by npm");\n', { mode: 0o755 })]));
  const served = { '/./Packages': packages, '/Packages': packages, '/./bunker-hello.deb': bytes, '/bunker-hello.deb': bytes, '/bunker-hello.tgz': tarball };
  const counts = {};
  const web = http.createServer((req, res) => {
    counts[req.url] = (counts[req.url] ?? 0) + 1;
    if (req.url === '/bunker-hello') {
      const { port } = web.address();
      res.end(
        JSON.stringify({
          name: 'bunker-hello',
          'dist-tags': { latest: '1.0.0' },
          versions: { '1.0.0': { name: 'bunker-hello', version: '1.0.0', bin: { 'npm-hello': 'cli.js' }, dist: { tarball: `http://127.0.0.1:${port}/bunker-hello.tgz`, shasum: createHash('sha1').update(tarball).digest('hex') } } },
        }),
      );
      return;
    }
    const body = served[req.url];
    res.statusCode = body ? 200 : 404;
    res.end(body ?? '');
  });
  await new Promise((resolve) => web.listen(0, '127.0.0.1', resolve));
  return { web, counts, url: `http://127.0.0.1:${web.address().port}` };
}

test('dependencies_and_packages_are_installed_once_and_kept', { timeout: 120000 }, async () => {
  const { web, counts, url } = await startPackages();
  try {
    // A template on which apt and npm know where to look.
    const made = await server.request('POST', '/v1/templates/builds', {
      name: 'sources',
      steps: [{ run: `rm -rf /etc/apt/sources.list.d; mkdir -p /etc/apt; echo 'deb [trusted=yes] ${url} ./' > /etc/apt/sources.list; npm config --global set registry ${url}/ || true` }],
    });
    await until('it is ready', async () => (await server.request('GET', `/v1/templates/builds/${made.json.id}`)).json.status === 'ready', 30000);
    const apt = await server.create({ template: 'sources', dependencies: ['bunker-hello'] });
    assert.equal((await server.exec(apt.id, 'cat /opt/hello')).stdout, 'installed by apt\n');
    const asked = counts['/./bunker-hello.deb'] ?? counts['/bunker-hello.deb'];
    const again = await server.create({ template: 'sources', dependencies: ['bunker-hello'] });
    assert.equal((await server.exec(again.id, 'cat /opt/hello')).stdout, 'installed by apt\n');
    assert.equal(counts['/./bunker-hello.deb'] ?? counts['/bunker-hello.deb'], asked, 'the second one was not installed anew');
    const plain = await server.create({ template: 'sources' });
    assert.notEqual((await server.exec(plain.id, 'cat /opt/hello')).exitCode, 0);
    if (has('npm')) {
      const npm = await server.create({ template: 'sources', packages: ['bunker-hello@1.0.0'] });
      assert.equal((await server.exec(npm.id, 'npm-hello')).stdout, 'installed by npm\n');
      await remove(server, npm.id);
    }
    const bad = await server.request('POST', '/v1/sandboxes', { template: 'sources', dependencies: ['no-such-package'], name: 'bad' });
    assertRefused(bad, 422, 'build_failed');
    assert.match(bad.json.error.message, /no-such-package/);
    assert.equal((await server.request('GET', '/v1/sandboxes?name=bad')).json.sandboxes.length, 0);
    for (const name of ['--evil', '-o', 'a b', 'x;y', '../x'])
      assertRefused(await server.request('POST', '/v1/sandboxes', { dependencies: [name] }), 400, 'invalid_field', 'dependencies');
    assert.equal(ok(['run', '-t', 'sources', '--dependency', 'bunker-hello', '-c', 'cat /opt/hello']), 'installed by apt\n');
    for (const box of [apt, again, plain]) await remove(server, box.id);
  } finally {
    web.close();
    web.closeAllConnections();
  }
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
