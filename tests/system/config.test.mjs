import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BUNKER, Server } from '../lib/server.mjs';
import { finish, startBeside } from './support.mjs';

describe('configuration', () => {
  let server;
  let dir;
  before(async () => {
    server = await Server.start();
    dir = mkdtempSync('/tmp/bunker-test-config-');
    chmodSync(dir, 0o755);
  });
  after(async () => {
    rmSync(dir, { recursive: true });
    await finish(server);
  });

  const config = (text) => {
    const path = join(dir, `config-${Math.random().toString(36).slice(2)}`);
    writeFileSync(path, text);
    return path;
  };
  const resources = async (options) => {
    const other = await startBeside(server, options);
    try {
      return (await other.create()).resources;
    } finally {
      await finish(other);
    }
  };
  /** A start that is refused: its end, and what it says. */
  const refused = (args, env = {}) =>
    spawnSync(BUNKER, ['serve', '--listen', '127.0.0.1:0', '--data', join(dir, 'never'), ...args], {
      encoding: 'utf8',
      timeout: 20000,
      env: { PATH: process.env.PATH, ...env },
    });

  describe('sources', () => {
    it('are options, then the environment, then the file, then what is built in', async () => {
      const file = config('memory = 100Mi\ncpu = 100m\npids = 100\n');
      const got = await resources({
        args: ['--config', file, '--memory', '300Mi'],
        env: { BUNKER_MEMORY: '200Mi', BUNKER_CPU: '200m' },
      });
      assert.deepEqual(got, { memory: '300Mi', cpu: '200m', pids: 100, openFiles: 4096, disk: '10Gi' });
    });

    it('can be the file alone, with comments, blanks and empty lines', async () => {
      const file = config('# a comment\n\n   memory=128Mi   \n\tcpu\t=\t0.5\n# pids = 5\nopen-files = 77');
      assert.deepEqual(await resources({ args: ['--config', file] }), { memory: '128Mi', cpu: '500m', pids: 512, openFiles: 77, disk: '10Gi' });
    });

    it('can name the file in the environment', async () => {
      const file = config('pids = 44\n');
      assert.equal((await resources({ env: { BUNKER_CONFIG: file } })).pids, 44);
    });

    it('take --name=value like --name value', async () => {
      assert.equal((await resources({ args: ['--pids=45'] })).pids, 45);
    });

    it('take flags as words in the environment and the file', async () => {
      for (const options of [{ env: { BUNKER_NO_AUTH: 'true' } }, { args: ['--config', config('no-auth = yes\n')] }]) {
        const other = await startBeside(server, options);
        try {
          assert.equal((await other.request('GET', '/v1/sandboxes', undefined, { key: '' })).status, 200);
        } finally {
          await finish(other);
        }
      }
    });

    it('let a flag be taken back by a stronger source', async () => {
      const other = await startBeside(server, { args: ['--no-auth=false'], env: { BUNKER_NO_AUTH: 'true' } });
      try {
        assert.equal((await other.request('GET', '/v1/sandboxes', undefined, { key: '' })).status, 401);
      } finally {
        await finish(other);
      }
    });

    it('give keys from every source', async () => {
      const file = config('api-key = filetenant=bnk_ffffffffffffffff\n');
      const other = await startBeside(server, { args: ['--config', file, '--api-key', 'bnk_aaaaaaaaaaaaaaaa'], env: { BUNKER_API_KEY: 'bnk_eeeeeeeeeeeeeeee' } });
      try {
        for (const key of ['bnk_ffffffffffffffff', 'bnk_aaaaaaaaaaaaaaaa', 'bnk_eeeeeeeeeeeeeeee'])
          assert.equal((await other.request('GET', '/v1/sandboxes', undefined, { key })).status, 200, key);
      } finally {
        await finish(other);
      }
    });
  });

  describe('a bad value ends the start with status 2 and a sentence that names the option', () => {
    const numbers = [
      ['memory', ['lots', '-1Gi', '0', '1Ki', '']], ['cpu', ['x', '0', '-1', '1m']], ['pids', ['0', '1', 'many', '1.5', '99999999']],
      ['open-files', ['0', 'x']], ['max-memory', ['x', '0']], ['max-cpu', ['x']], ['max-pids', ['x']], ['max-open-files', ['x']],
      ['max-sandboxes', ['0', '-1', 'x', '1000000']], ['max-executions', ['0', 'x']], ['max-connections', ['0', 'x']],
      ['output-limit', ['0', 'x', '100']], ['retention', ['0', 'x', '-1s', '5']], ['pool', ['-1', 'x', '99999']],
    ];
    for (const [name, values] of numbers)
      it(`--${name}`, () => {
        for (const value of values) {
          const r = refused([`--${name}=${value}`]);
          assert.equal(r.status, 2, `${value}: ${r.stderr}`);
          assert.match(r.stderr, new RegExp(`^bunker: .*${name}.*\\n$`));
          assert.equal(existsSync(join(dir, 'never')), false, 'nothing was made');
        }
      });

    it('in the environment, by the name of the variable', () => {
      const r = refused([], { BUNKER_MAX_PIDS: 'x' });
      assert.equal(r.status, 2);
      assert.match(r.stderr, /BUNKER_MAX_PIDS/);
    });

    it('in the file, by its path', () => {
      for (const [text, words] of [
        ['memory = x\n', /memory/],
        ['nonsense = 1\n', /nonsense/],
        ['just words\n', /just words/],
        ['config = /etc/other\n', /config/],
      ]) {
        const path = config(text);
        const r = refused(['--config', path]);
        assert.equal(r.status, 2, text);
        assert.match(r.stderr, words);
        assert.ok(r.stderr.includes(path));
      }
    });

    it('of a flag', () => {
      assert.match(refused([], { BUNKER_DRAIN: 'maybe' }).stderr, /drain/i);
    });

    it('--log-level', () => {
      const r = refused(['--log-level', 'loud']);
      assert.equal(r.status, 2);
      assert.match(r.stderr, /log level.*loud/);
    });

    it('a file that is not there', () => {
      const r = refused(['--config', '/no/such/file']);
      assert.equal(r.status, 2);
      assert.match(r.stderr, /\/no\/such\/file/);
    });

    it('an unknown option, a missing value, a stray word', () => {
      for (const [args, words] of [[['--colour', 'red'], /--colour/], [['--memory'], /--memory needs a value/], [['word'], /word/], [['-x'], /-x/]]) {
        const r = refused(args);
        assert.equal(r.status, 2, args.join(' '));
        assert.match(r.stderr, words);
      }
    });
  });

  describe('an address', () => {
    for (const listen of ['nonsense', '127.0.0.1', ':80', '127.0.0.1:99999', '127.0.0.1:-1', '127.0.0.1:http:x', '256.0.0.1:80', 'the one in use'])
      it(`that is none, or is taken, ends the start with a sentence: ${listen}`, () => {
        const address = listen === 'the one in use' ? `127.0.0.1:${server.port}` : listen;
        const r = spawnSync(BUNKER, ['serve', '--listen', address, '--data', join(dir, 'unused'), '--drain'], { encoding: 'utf8', timeout: 3000 });
        const made = existsSync(join(dir, 'unused'));
        rmSync(join(dir, 'unused'), { recursive: true, force: true });
        assert.ok(r.status > 0, `it ended with ${r.status ?? r.signal}: ${r.stderr}`);
        assert.match(r.stderr, /^bunker: .+\n$/);
        assert.ok(r.stderr.includes(address), r.stderr);
        assert.equal(made, false, 'nothing was made');
      });
  });

  it('of a maximum below the default works, or is refused at the start', async () => {
    let other;
    try {
      other = await startBeside(server, { args: ['--max-memory', '512Mi'] });
    } catch (e) {
      assert.match(e.message, /max-memory/);
      return;
    }
    try {
      const answer = await other.request('POST', '/v1/sandboxes', {});
      assert.equal(answer.status, 201, `a plain create can never work: ${answer.text}`);
    } finally {
      await finish(other);
    }
  });

  it('of a data directory that cannot be one ends the start with a sentence', () => {
    const file = config('');
    for (const data of [file, '/proc/nowhere', `/tmp/${'x'.repeat(200)}`]) {
      const r = spawnSync(BUNKER, ['serve', '--listen', '127.0.0.1:0', '--data', data], { encoding: 'utf8', timeout: 20000 });
      assert.ok(r.status > 0, data);
      rmSync(`/tmp/${'x'.repeat(200)}`, { recursive: true, force: true });
      assert.match(r.stderr, /^bunker: .+\n$/);
      assert.ok(r.stderr.includes(data), r.stderr);
    }
  });

  it('of a data directory that the unprivileged front cannot reach says so', () => {
    const closed = join(dir, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    const r = spawnSync(BUNKER, ['serve', '--listen', '127.0.0.1:0', '--data', join(closed, 'data'), '--drain'], { encoding: 'utf8', timeout: 3000 });
    rmSync(closed, { recursive: true, force: true });
    assert.ok(r.status > 0);
    assert.ok(r.stderr.includes(closed), r.stderr);
    assert.doesNotMatch(r.stderr, /bnk_/, 'a server that cannot start shows no key');
  });

  it('of nothing but --help shows every option and starts nothing', () => {
    const r = spawnSync(BUNKER, ['serve', '--help'], { encoding: 'utf8' });
    assert.equal(r.status, 0);
    for (const option of ['listen', 'data', 'api-key', 'no-auth', 'domain', 'config', 'drain', 'max-sandboxes', 'output-limit'])
      assert.match(r.stdout, new RegExp(`^  --${option}\\b`, 'm'));
  });

  describe('without root', () => {
    const asNobody = (args) => spawnSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', BUNKER, ...args], { encoding: 'utf8', timeout: 20000 });

    it('the server says exactly what it needs and stops', () => {
      const r = asNobody(['serve', '--listen', '127.0.0.1:0', '--data', join(dir, 'never')]);
      assert.equal(r.status, 1);
      assert.equal(
        r.stderr,
        'bunker: it must be started by root (sudo bunker serve): it makes namespaces, mounts, cgroups and uid blocks for the sandboxes. Running without root is not supported yet\n',
      );
      assert.equal(existsSync(join(dir, 'never')), false);
    });

    it('--help and wrong options are answered as for root', () => {
      assert.equal(asNobody(['serve', '--help']).status, 0);
      assert.equal(asNobody(['serve', '--colour']).status, 2);
    });
  });
});
