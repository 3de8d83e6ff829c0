// Mirrors of package registries under their real names: one small package each, made here, served as files by internet.mjs.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tmpdir } from 'node:os';
import { gzipSync } from 'node:zlib';
import { Authority } from '../lib/authority.mjs';
import { file, tar } from '../lib/images.mjs';

export const HOSTS = ['registry.npmjs.org', 'pypi.org', 'files.pythonhosted.org', 'deb.debian.org', 'github.com', 'proxy.golang.org', 'index.crates.io', 'static.crates.io'];
/** Where they are: an address that is not global, as on a site with mirrors of its own. */
export const ADDRESS = '203.0.113.77', RANGE = '203.0.113.0/24';

const hash = (kind, bytes, encoding = 'hex') => createHash(kind).update(bytes).digest(encoding);

function run(cwd, ...args) {
  const done = spawnSync(args[0], args.slice(1), { cwd, encoding: 'utf8', env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' } });
  if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.stderr}`);
}

export class Mirrors {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), 'bunker-mirrors-'));
    this.scratch = join(this.dir, '.scratch');
    mkdirSync(this.scratch);
    this.authority = new Authority('Mirrors CA');
    this.npm();
    this.pypi();
    this.debian();
    this.git();
    this.go();
    this.crates();
  }

  /** What World.make wants to know. */
  get world() {
    return { names: Object.fromEntries(HOSTS.map((host) => [host, [{ type: 'A', data: ADDRESS }]])), tls: this.authority.sign(...HOSTS), mirrors: this.dir };
  }

  /** The options of a server on this site. */
  get args() {
    return ['--sandbox-ca', this.authority.file, '--public-networks', RANGE];
  }

  put(host, path, content) {
    const at = join(this.dir, host, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, content);
  }

  npm() {
    const manifest = { name: 'bunker-hello', version: '1.0.0', bin: { 'npm-hello': 'cli.js' } };
    const tarball = gzipSync(tar([file('package/package.json', JSON.stringify(manifest)), file('package/cli.js', '#!/usr/bin/env node\nconsole.log("installed by npm");\n', { mode: 0o755 })]));
    const dist = { tarball: 'https://registry.npmjs.org/bunker-hello/-/bunker-hello-1.0.0.tgz', shasum: hash('sha1', tarball), integrity: `sha512-${hash('sha512', tarball, 'base64')}` };
    this.put('registry.npmjs.org', 'bunker-hello/index', JSON.stringify({ name: 'bunker-hello', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { ...manifest, dist } } }));
    this.put('registry.npmjs.org', 'bunker-hello/-/bunker-hello-1.0.0.tgz', tarball);
  }

  pypi() {
    const wheel = join(this.scratch, 'bunker_hello-1.0-py3-none-any.whl');
    const info = 'bunker_hello-1.0.dist-info';
    run(this.scratch, 'python3', '-c', `
import zipfile
with zipfile.ZipFile('${wheel}', 'w') as z:
    z.writestr('bunker_hello.py', 'print("installed by pip")\\n')
    z.writestr('${info}/METADATA', 'Metadata-Version: 2.1\\nName: bunker-hello\\nVersion: 1.0\\n')
    z.writestr('${info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('${info}/RECORD', 'bunker_hello.py,,\\n${info}/METADATA,,\\n${info}/WHEEL,,\\n${info}/RECORD,,\\n')`);
    const bytes = readFileSync(wheel);
    const name = 'packages/bunker_hello-1.0-py3-none-any.whl';
    this.put('files.pythonhosted.org', name, bytes);
    this.put('pypi.org', 'simple/bunker-hello/index', `<!DOCTYPE html><a href="https://files.pythonhosted.org/${name}#sha256=${hash('sha256', bytes)}">bunker_hello-1.0-py3-none-any.whl</a>`);
  }

  /** A flat repository, which is trusted by its entry in the list of sources. */
  debian() {
    const root = join(this.scratch, 'deb');
    mkdirSync(join(root, 'DEBIAN'), { recursive: true });
    mkdirSync(join(root, 'opt'));
    const control = 'Package: bunker-hello\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: a test\n';
    writeFileSync(join(root, 'DEBIAN/control'), control);
    writeFileSync(join(root, 'opt/hello'), 'installed by apt\n');
    const deb = join(this.scratch, 'hello.deb');
    run(this.scratch, 'dpkg-deb', '--root-owner-group', '-b', root, deb);
    const bytes = readFileSync(deb);
    this.put('deb.debian.org', 'flat/hello.deb', bytes);
    this.put('deb.debian.org', 'flat/Packages', `${control}Filename: ./hello.deb\nSize: ${bytes.length}\nSHA256: ${hash('sha256', bytes)}\n\n`);
  }

  git() {
    const work = join(this.scratch, 'work'), bare = join(this.dir, 'github.com/bunker/hello.git');
    mkdirSync(work);
    mkdirSync(dirname(bare), { recursive: true });
    writeFileSync(join(work, 'hello.txt'), 'cloned by git\n');
    run(work, 'git', 'init', '-q', '-b', 'main');
    run(work, 'git', 'add', '.');
    run(work, 'git', '-c', 'user.name=t', '-c', 'user.email=t@example.org', 'commit', '-q', '-m', 'first');
    run(work, 'git', 'clone', '-q', '--bare', work, bare);
    run(bare, 'git', 'update-server-info');
  }

  go() {
    const module = 'example.com/hello', at = `${module}/@v`;
    const zip = join(this.scratch, 'go.zip');
    const mod = `module ${module}\n\ngo 1.20\n`;
    run(this.scratch, 'python3', '-c', `
import zipfile
with zipfile.ZipFile('${zip}', 'w') as z:
    z.writestr('${module}@v1.0.0/go.mod', ${JSON.stringify(mod)})
    z.writestr('${module}@v1.0.0/hello.go', 'package hello\\n\\nconst Text = "fetched by go"\\n')`);
    this.put('proxy.golang.org', `${at}/list`, 'v1.0.0\n');
    this.put('proxy.golang.org', `${at}/v1.0.0.info`, '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}');
    this.put('proxy.golang.org', `${at}/v1.0.0.mod`, mod);
    this.put('proxy.golang.org', `${at}/v1.0.0.zip`, readFileSync(zip));
  }

  crates() {
    const manifest = '[package]\nname = "bunker-hello"\nversion = "1.0.0"\nedition = "2021"\n';
    const crate = gzipSync(tar([file('bunker-hello-1.0.0/Cargo.toml', manifest), file('bunker-hello-1.0.0/src/lib.rs', 'pub const TEXT: &str = "fetched by cargo";\n')]));
    this.put('static.crates.io', 'crates/bunker-hello/1.0.0/download', crate);
    this.put('index.crates.io', 'config.json', JSON.stringify({ dl: 'https://static.crates.io/crates/{crate}/{version}/download' }));
    this.put('index.crates.io', 'bu/nk/bunker-hello', `${JSON.stringify({ name: 'bunker-hello', vers: '1.0.0', deps: [], cksum: hash('sha256', crate), features: {}, yanked: false })}\n`);
  }

  end() {
    this.authority.end();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** What a user types, by manager: how it is installed, what then shows that it is there, and which hosts it takes. */
export const MANAGERS = {
  npm: { install: 'mkdir -p /tmp/n && cd /tmp/n && npm install --no-audit --no-fund bunker-hello', shows: '/tmp/n/node_modules/.bin/npm-hello', says: 'installed by npm\n', preset: 'preset:npm', needs: 'npm' },
  pip: { install: 'pip install --target /tmp/p bunker-hello', shows: 'PYTHONPATH=/tmp/p python3 -c "import bunker_hello"', says: 'installed by pip\n', preset: 'preset:pypi', needs: 'pip' },
  apt: {
    install: "rm -f /etc/apt/sources.list.d/*; echo 'deb [trusted=yes] https://deb.debian.org/flat ./' > /etc/apt/sources.list; apt-get -q update && apt-get -q -y install bunker-hello",
    shows: 'cat /opt/hello', says: 'installed by apt\n', preset: 'preset:debian', needs: 'apt-get',
  },
  git: { install: 'git clone -q https://github.com/bunker/hello.git /tmp/g', shows: 'cat /tmp/g/hello.txt', says: 'cloned by git\n', preset: 'preset:github', needs: 'git' },
  go: {
    install: 'mkdir -p /tmp/go && cd /tmp/go && export HOME=/tmp PATH=$PATH:/usr/local/go/bin GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-modcacherw && go mod init x && go mod download example.com/hello@v1.0.0',
    shows: 'cat /tmp/go/pkg/mod/example.com/hello@v1.0.0/hello.go | grep -o "fetched by go"', says: 'fetched by go\n', preset: 'preset:go', needs: '/usr/local/go/bin/go',
  },
  cargo: {
    install: 'mkdir -p /tmp/c/src && cd /tmp/c && export CARGO_HOME=/tmp/cargo PATH=$PATH:/tmp && printf \'[package]\\nname = "x"\\nversion = "0.1.0"\\nedition = "2021"\\n[dependencies]\\nbunker-hello = "1"\\n\' > Cargo.toml && touch src/lib.rs && cargo vendor -q /tmp/vendored',
    shows: 'grep -ho "fetched by cargo" /tmp/vendored/bunker-hello/src/lib.rs', says: 'fetched by cargo\n', preset: 'preset:crates', needs: 'cargo',
  },
};
