import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { BUNKER, Server, dataDirectory, until } from '../lib/server.mjs';
import { clear, finish, list, metric, sha256 } from './support.mjs';

const COMMANDS = ['run', 'create', 'exec', 'shell', 'ps', 'logs', 'attach', 'kill', 'jobs', 'vars', 'ls', 'info', 'rm', 'template', 'templates', 'serve', 'doctor', 'version', 'help'];

describe('bunker', () => {
  let server;
  let dir;
  const cli = (...args) => server.cli(args);
  const ok = (...args) => {
    const r = server.cli(args);
    assert.equal(r.status, 0, `bunker ${args.join(' ')}: ${r.stderr}`);
    return r.stdout;
  };
  before(async () => {
    server = await Server.start();
    dir = mkdtempSync('/tmp/bunker-test-cli-');
  });
  after(async () => {
    rmSync(dir, { recursive: true });
    await finish(server);
  });

  describe('help', () => {
    it('lists every command, without one asked for', () => {
      for (const args of [[], ['help'], ['--help'], ['-h']]) {
        const r = cli(...args);
        assert.equal(r.status, args.length ? 0 : 2);
        for (const command of COMMANDS) assert.match(r.stdout, new RegExp(`^  ${command} +\\S`, 'm'));
      }
    });

    for (const command of COMMANDS)
      it(`explains ${command}`, () => {
        const text = ok(command, '--help');
        assert.match(text, new RegExp(`^usage: bunker ${command}\\b`));
        assert.ok(text.split('\n').length > 4);
        assert.equal(ok('help', command), text);
      });

    it('is what a mistake points to', () => {
      for (const [args, words] of [
        [['nonsense'], /no command "nonsense".*bunker help/],
        [['ls', '--nonsense'], /unknown option --nonsense.*bunker ls --help/],
        [['ls', '-Z'], /unknown option -Z/],
        [['ls', 'extra'], /too many arguments/],
        [['info'], /argument is missing/],
        [['create', '--memory'], /value is missing after --memory/],
        [['create', '--pids', 'many'], /positive number.*--pids/],
        [['rm'], /either the sandboxes to remove or --all/],
        [['run'], /no command to run/],
        [['run', '--shell', 'true', '--', 'true'], /either a COMMAND or --shell/],
        [['run', '-e', '=x', '--', 'true'], /has no name/],
        [['run', '-e', 'SURELY_NOT_SET', '--', 'true'], /SURELY_NOT_SET is not set/],
        [['run', '-f', 'nocolon', '--', 'true'], /LOCAL:PATH/],
        [['run', '-m', 'novalue', '--', 'true'], /KEY=VALUE/],
        [['help', 'nonsense'], /no command "nonsense"/],
      ]) {
        const r = cli(...args);
        assert.equal(r.status, 2, args.join(' '));
        assert.equal(r.stdout, '');
        assert.match(r.stderr, words);
        assert.match(r.stderr, /^bunker: .*\n$/, 'one line');
      }
    });
  });

  describe('version', () => {
    it('is printed as text and as JSON, and is the one of the server', async () => {
      const text = ok('version');
      assert.match(text, /^bunker \d+\.\d+\.\d+/);
      assert.equal(ok('--version'), text);
      const { version } = JSON.parse(ok('version', '--json'));
      assert.equal(text, `bunker ${version}\n`);
      assert.equal((await server.request('GET', '/health')).json.version, version);
    });
  });

  describe('run', () => {
    const nothingLeft = () => until('its sandbox is gone', async () => (await metric(server, 'sandboxes')) === 0, 5000);

    it('passes output and exit status on', () => {
      const r = cli('run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3');
      assert.deepEqual([r.stdout, r.stderr, r.status], ['out\n', 'err\n', 3]);
      assert.equal(cli('run', '--', 'true').status, 0);
    });

    it('needs no -- before a command with options of its own', () => {
      assert.equal(ok('run', 'echo', '-n', '--json'), '--json');
    });

    it('ends with 124 on a timeout, 128+n on a signal, 127 without the program', () => {
      const late = cli('run', '--timeout', '300ms', '--', 'sleep', '20');
      assert.equal(late.status, 124);
      assert.match(late.stderr, /time limit/);
      assert.equal(cli('run', '--shell', 'kill -9 $$').status, 137);
      assert.equal(cli('run', '--shell', 'kill -TERM $$').status, 143);
      assert.equal(cli('run', '--', 'no-such-program').status, 127);
    });

    it('says when memory ran out', () => {
      const r = cli('run', '--memory', '64Mi', '--', 'python3', '-c', 'x = bytearray(300 << 20)');
      assert.equal(r.status, 137);
      assert.match(r.stderr, /memory/);
    });

    it('ends with 125 when the command could not be run at all', () => {
      for (const args of [['-t', 'nope'], ['-u', 'nobody-knows'], ['--memory', '-5'], ['--timeout', 'soon'], ['-f', '/no/such/file:/tmp/x']]) {
        const r = cli('run', ...args, '--', 'true');
        assert.equal(r.status, 125, args.join(' '));
        assert.match(r.stderr, /^bunker: .+\n$/);
        assert.equal(r.stdout, '');
      }
    });

    it('takes files with their modes', () => {
      const script = join(dir, 'job.sh');
      writeFileSync(script, '#!/bin/sh\necho "job $1"\n');
      chmodSync(script, 0o755);
      const bytes = randomBytes(300000);
      writeFileSync(join(dir, 'data'), bytes);
      const out = ok('run', '-f', `${script}:/home/user/job.sh`, '-f', `${join(dir, 'data')}:/tmp/sub/data`, '--shell', './job.sh 7; sha256sum < /tmp/sub/data');
      assert.equal(out, `job 7\n${sha256(bytes)}  -\n`);
    });

    it('takes variables, given or inherited', () => {
      const r = server.cli(['run', '-e', 'A=1=2', '-e', 'INHERITED', '-e', 'EMPTY=', '--shell', 'echo "$A $INHERITED ${EMPTY-unset}."'], { env: { INHERITED: 'from here' } });
      assert.equal(r.stdout, '1=2 from here .\n');
    });

    it('gives stdin to the command with -i, byte by byte, and only then', () => {
      const bytes = randomBytes(3_000_000);
      const r = spawnSync(BUNKER, ['run', '-i', '--', 'sha256sum'], {
        input: bytes,
        env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data },
      });
      assert.equal(r.stdout.toString(), `${sha256(bytes)}  -\n`);
      assert.equal(server.cli(['run', '--', 'wc', '-c'], { input: 'ignored' }).stdout, '0\n');
    });

    it('passes bytes of any kind and number, and complains of nothing', () => {
      const r = spawnSync(BUNKER, ['run', '--shell', 'head -c 12000000 /dev/urandom | tee /tmp/x; sha256sum < /tmp/x >&2'], {
        env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data },
        maxBuffer: 64 << 20,
      });
      assert.equal(r.stdout.length, 12000000);
      assert.equal(r.stderr.toString(), `${sha256(r.stdout)}  -\n`);
    });

    it('takes the options of the sandbox', () => {
      const out = ok('run', '-u', 'root', '-w', '/opt', '--open-files', '55', '--pids', '40', '--cpu', '0.5', '--memory', '128Mi', '--name', 'n', '--project', 'p', '-m', 'k=v', '--description', 'd', '-t', 'base', '--idle-timeout', '1h', '--shell', 'id -u; pwd; ulimit -n');
      assert.equal(out, '0\n/opt\n55\n');
    });

    it('sends every option of the sandbox that it takes', async () => {
      const child = spawn(BUNKER, ['run', '--name', 'told', '--on-idle', 'suspend', '--on-lease', 'pause', '--auto-resume', '--', 'sleep', '20'], { env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data }, stdio: 'ignore' });
      const exited = once(child, 'exit');
      try {
        const told = await until('it runs', async () => (await list(server)).find(({ name }) => name === 'told'));
        assert.deepEqual([told.onIdle, told.onLease, told.autoResume], ['suspend', 'pause', true]);
      } finally {
        child.kill('SIGKILL');
        await exited;
        await nothingLeft();
      }
    });

    it('prints one JSON result with --json, and passes the status on all the same', () => {
      const r = cli('run', '--json', '--shell', 'echo out; echo err >&2; exit 4');
      assert.equal(r.status, 4);
      assert.equal(r.stderr, '');
      const result = JSON.parse(r.stdout);
      assert.deepEqual([result.exitCode, result.stdout, result.stderr, result.timedOut, result.status], [4, 'out\n', 'err\n', false, 'completed']);
      assert.match(result.executionId, /^[a-z0-9]{20}$/);
    });

    it('leaves no sandbox', async () => {
      ok('run', '--', 'true');
      await nothingLeft();
    });

    const background = (...args) => spawn(BUNKER, args, { env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data }, stdio: ['ignore', 'pipe', 'pipe'] });

    it('destroys its sandbox on Ctrl-C', async () => {
      const child = background('run', '--shell', 'echo up; sleep 60');
      await once(child.stdout, 'data');
      child.kill('SIGINT');
      const [code, signal] = await once(child, 'exit');
      assert.ok(signal === 'SIGINT' || code === 130, `ended with ${code ?? signal}`);
      await nothingLeft();
    });

    it('ends when nobody reads its output any more', async () => {
      const r = spawnSync('sh', ['-c', '"$BUNKER_BIN" run -- yes | head -2'], {
        encoding: 'utf8',
        timeout: 20000,
        env: { ...server.env, BUNKER_BIN: BUNKER, BUNKER_URL: server.url, BUNKER_DATA: server.data },
      });
      assert.equal(r.stdout, 'y\ny\n');
      await nothingLeft();
    });

    it('shows output while the command runs', async () => {
      const child = background('run', '--shell', 'echo early; sleep 8');
      const began = Date.now();
      const [data] = await once(child.stdout, 'data');
      assert.equal(data.toString(), 'early\n');
      assert.ok(Date.now() - began < 7000);
      child.kill('SIGKILL');
      await nothingLeft();
    });
  });

  describe('create, ls, info, exec, rm', () => {
    afterEach(() => clear(server));

    it('print ids that the next command takes', async () => {
      const id = ok('create').trim();
      assert.match(id, /^[a-z0-9]{20}$/);
      assert.equal(ok('exec', id, '--', 'echo', 'hi'), 'hi\n');
      assert.equal(ok('ls', '-q'), `${id}\n`);
      assert.equal(ok('rm', id), `${id}\n`);
      assert.deepEqual(await list(server), []);
    });

    it('take names in place of ids', () => {
      const id = ok('create', '-n', 'work').trim();
      assert.equal(ok('exec', 'work', '--shell', 'pwd'), '/home/user\n');
      assert.match(ok('info', 'work'), new RegExp(id));
      assert.equal(ok('rm', 'work'), `${id}\n`);
    });

    it('take a name that looks like an id', () => {
      const name = 'abcdefghij0123456789';
      const id = ok('create', '-n', name).trim();
      assert.equal(JSON.parse(ok('info', '--json', name)).id, id);
      ok('rm', name);
    });

    it('make what was asked for', () => {
      const file = join(dir, 'setup');
      writeFileSync(file, 'x');
      const made = JSON.parse(
        ok('create', '--json', '-n', 'full', '--description', 'Text', '--project', 'p', '-m', 'a=1', '-m', 'b=2', '-e', 'E=v', '-f', `${file}:/tmp/setup`, '--memory', '128Mi', '--cpu', '250m', '--pids', '33', '--open-files', '44', '--disk', '3Gi', '--timeout', '9s', '--idle-timeout', '1h', '-u', 'root', '-w', '/opt'),
      );
      assert.deepEqual(
        [made.name, made.description, made.project, made.metadata, made.env, made.resources, made.timeout, made.user, made.workdir],
        ['full', 'Text', 'p', { a: '1', b: '2' }, { E: 'v' }, { memory: '128Mi', cpu: '250m', pids: 33, openFiles: 44, disk: '3Gi' }, { idle: '1h', execution: '9s' }, 'root', '/opt'],
      );
      assert.equal(ok('exec', 'full', '--shell', 'pwd; echo $E; cat /tmp/setup'), '/opt\nv\nx');
      const text = ok('info', 'full');
      for (const word of ['full', 'Text', '128Mi', '250m', '33', '44', 'E=v', 'a=1', 'root', '/opt', 'idle']) assert.ok(text.includes(word), word);
    });

    it('list as a table and as JSON, filtered', () => {
      const a = ok('create', '-n', 'a', '--project', 'one', '-m', 'team=red').trim();
      const b = ok('create', '-n', 'b', '-m', 'team=blue').trim();
      const table = ok('ls').split('\n');
      assert.match(table[0], /^ID +NAME +STATUS +TEMPLATE +AGE +EXECUTIONS$/);
      assert.match(table[1], new RegExp(`^${a} +a +idle +base +\\d+s +0$`));
      assert.equal(ok('ls', '-q', '-m', 'team=blue'), `${b}\n`);
      assert.equal(ok('ls', '-q', '--project', 'one'), `${a}\n`);
      assert.equal(ok('ls', '-q', '--name', 'b'), `${b}\n`);
      assert.equal(ok('ls', '-q', '--status', 'running'), '');
      assert.deepEqual(JSON.parse(ok('ls', '--json')).sandboxes.map((s) => s.name), ['a', 'b']);
    });

    it('list more than a page of the API', () => {
      const count = 120;
      const created = spawnSync('sh', ['-c', `for i in $(seq 1 ${count}); do "$BUNKER_BIN" create --pids 20 || exit 1; done`], {
        encoding: 'utf8',
        env: { ...server.env, BUNKER_BIN: BUNKER, BUNKER_URL: server.url, BUNKER_DATA: server.data },
      });
      assert.equal(created.status, 0, created.stderr);
      assert.equal(ok('ls', '-q').trim().split('\n').length, count);
      assert.equal(JSON.parse(ok('ls', '--json')).sandboxes.length, count);
      assert.equal(ok('rm', '--all').trim().split('\n').length, count);
    });

    it('run commands with every option of exec', () => {
      ok('create', '-n', 'x');
      writeFileSync(join(dir, 'put'), 'put here');
      assert.equal(ok('exec', '-u', 'root', '-w', '/usr', '-e', 'V=1', '-f', `${join(dir, 'put')}:/tmp/put`, 'x', '--shell', 'id -u; pwd; echo $V; cat /tmp/put'), '0\n/usr\n1\nput here');
      assert.equal(cli('exec', '--timeout', '200ms', 'x', 'sleep', '9').status, 124);
      assert.equal(cli('exec', 'x', '--', 'sh', '-c', 'exit 77').status, 77);
      assert.equal(server.cli(['exec', '-i', 'x', 'cat'], { input: 'piped' }).stdout, 'piped');
      assert.equal(JSON.parse(ok('exec', '--json', 'x', 'echo', 'hi')).stdout, 'hi\n');
    });

    it('remove several at once, and tell which there were not', async () => {
      const ids = [1, 2, 3].map(() => ok('create').trim());
      const r = cli('rm', ids[0], 'not-there', ids[2]);
      assert.equal(r.status, 1);
      assert.deepEqual(r.stdout.trim().split('\n'), [ids[0], ids[2]]);
      assert.match(r.stderr, /not-there/);
      assert.deepEqual((await list(server)).map((s) => s.id), [ids[1]]);
      assert.deepEqual(JSON.parse(ok('rm', '--json', '--all')).removed, [ids[1]]);
      assert.equal(cli('rm', '--all').status, 0);
    });

    it('answer what is not there with status 1, or 125 for exec', () => {
      for (const [args, status] of [[['info', 'nope'], 1], [['rm', 'nope'], 1], [['exec', 'nope', 'true'], 125], [['info', 'a'.repeat(20)], 1]]) {
        const r = cli(...args);
        assert.equal(r.status, status, args.join(' '));
        assert.match(r.stderr, /^bunker: .*no sandbox.*\n$/);
      }
    });

    it('refuse what the server refuses, with its sentence and code', () => {
      ok('create', '-n', 'dup');
      const r = cli('create', '-n', 'dup');
      assert.equal(r.status, 1);
      assert.match(r.stderr, /^bunker: .*dup.*\(name_taken\)\n$/);
    });

    it('let no control character of a label through to the terminal', async () => {
      await server.create({ name: 'evil', description: 'a\u001b[31mred\u0007', metadata: { k: 'x\u001b]0;t\u0007' } });
      assert.doesNotMatch(ok('info', 'evil') + ok('ls'), /[\x00-\x09\x0b-\x1f\x7f]/);
    });
  });

  describe('processes', () => {
    let box;
    before(() => {
      box = ok('create', '-n', 'processes').trim();
    });
    after(() => ok('rm', 'processes'));

    it('are started by exec -d, listed by ps, read by logs, and killed', async () => {
      const id = ok('exec', '-d', '-n', 'web', 'processes', '--', 'sh', '-c', 'echo out; echo err >&2; sleep 100').trim();
      assert.match(id, /^[a-z0-9]{20}$/);
      assert.match(ok('ps', 'processes'), new RegExp(`^${id} +\\d+ +web +running +user +\\d+s +sh -c echo out`, 'm'));
      assert.equal(ok('ps', '-q', 'processes').trim(), id);
      assert.equal(JSON.parse(ok('ps', '--json', 'processes')).processes[0].name, 'web');
      await until('it has written', () => ok('logs', 'processes', 'web') === 'out\n');
      assert.equal(cli('logs', 'processes', 'web').stderr, 'err\n');
      assert.equal(ok('logs', '--offset', '1', 'processes', 'web'), 'ut\n');
      assert.equal(ok('logs', '--tail', '2', id), 't\n', 'by its id alone');
      ok('kill', '-s', 'CONT', 'processes', 'web');
      ok('kill', 'processes', 'web');
      assert.equal(ok('ps', '-q', 'processes'), '');
      assert.match(ok('ps', '-a', 'processes'), /cancelled \(137\)/);
      assert.equal(ok('logs', '-f', 'processes', 'web'), 'out\n', 'also when it has ended');
      const again = cli('kill', '-s', 'TERM', 'processes', 'web');
      assert.equal(again.status, 1);
      assert.match(again.stderr, /not_running/);
    });

    it('take stdin as it comes, of any length, and pass output and status on', () => {
      const data = randomBytes(12_000_000);
      const r = server.cli(['exec', '-i', 'processes', '--', 'sha256sum'], { input: data });
      assert.deepEqual([r.status, r.stdout.slice(0, 64)], [0, sha256(data)], r.stderr);
      const failed = server.cli(['exec', '-i', 'processes', '--', 'sh', '-c', 'cat; echo e >&2; exit 9'], { input: 'x' });
      assert.deepEqual([failed.status, failed.stdout, failed.stderr], [9, 'x', 'e\n']);
    });

    it('are attached to, from the beginning to the end', () => {
      const id = ok('exec', '-d', 'processes', '--', 'sh', '-c', 'echo begun; sleep 0.5; echo over; exit 3').trim();
      const r = cli('attach', 'processes', id);
      assert.deepEqual([r.status, r.stdout], [3, 'begun\nover\n'], r.stderr);
    });

    it('can be jobs', () => {
      const id = ok('jobs', '-n', 'nap', 'processes', 'start', 'sleep', '100').split(' ')[0];
      assert.match(ok('jobs', 'processes'), new RegExp(`^${id} +\\d+ +nap +running`, 'm'));
      assert.match(ok('jobs', '--for', '50ms', 'processes', 'wait', 'nap'), /running/);
      assert.match(ok('jobs', '--grace', '1s', 'processes', 'stop', 'nap'), /cancelled/);
      ok('jobs', 'processes', 'start', 'true');
      const failed = cli('jobs', '-n', 'bad', '-c', 'exit 4', 'processes', 'start');
      assert.equal(cli('jobs', 'processes', 'wait', 'bad').status, 4, failed.stderr);
      assert.equal(cli('jobs', 'processes', 'nonsense', 'x').status, 2);
    });

    it('begin with the variables of their sandbox', () => {
      assert.equal(ok('vars', 'processes', 'A=1', 'B=two words'), 'A=1\nB=two words\n');
      assert.equal(ok('exec', 'processes', '--', 'sh', '-c', 'echo "$A-$B"'), '1-two words\n');
      assert.equal(ok('vars', 'processes', '--unset', 'A'), 'B=two words\n');
      assert.deepEqual(JSON.parse(ok('vars', '--json', 'processes')), { B: 'two words' });
      assert.equal(cli('vars', 'processes', 'novalue').status, 2);
      assert.equal(cli('vars', 'processes', '1BAD=x').status, 1);
    });

    it('have a terminal with -t', () => {
      const r = cli('exec', '-t', 'processes', '--', 'sh', '-c', 'tty; test -t 1; exit $?');
      assert.equal(r.status, 0, r.stderr);
      assert.match(r.stdout, /^\/dev\/pts\/\d+\r\n$/);
      assert.equal(server.cli(['exec', '-it', 'processes', '--', 'sh'], { input: '' }).status, 2, 'and with -i need one themselves');
    });
  });

  describe('templates', () => {
    it('are listed as a table and as JSON', () => {
      assert.match(ok('templates'), /^NAME +DEFAULT +TAGS +STATUS +DESCRIPTION\nbase +yes +\S/);
      assert.equal(JSON.parse(ok('templates', '--json')).templates[0].name, 'base');
    });
  });

  describe('finding the server', () => {
    const plain = (args, env = {}) => spawnSync(BUNKER, args, { encoding: 'utf8', timeout: 20000, env: { PATH: process.env.PATH, ...env } });

    it('uses --url and --api-key, and their variables', () => {
      assert.equal(plain(['ls', '-q', '--url', server.url, '--api-key', server.key]).status, 0);
      assert.equal(plain(['ls', '-q'], { BUNKER_URL: server.url, BUNKER_API_KEY: server.key }).status, 0);
      assert.equal(plain(['ls', '-q'], { BUNKER_URL: `${server.url}/`, BUNKER_DATA: server.data }).status, 0);
    });

    it('says what is wrong with the key', () => {
      const wrong = plain(['ls'], { BUNKER_URL: server.url, BUNKER_API_KEY: 'bnk_0123456789abcdef0123' });
      assert.equal(wrong.status, 1);
      assert.match(wrong.stderr, /unauthorized/);
      const none = plain(['ls'], { BUNKER_URL: server.url, BUNKER_DATA: '/no/such/dir' });
      assert.equal(none.status, 1);
      assert.match(none.stderr, /\/no\/such\/dir\/api-key/);
    });

    it('sends the local key to no other machine', () => {
      const r = plain(['ls'], { BUNKER_URL: 'http://192.0.2.1:2468', BUNKER_DATA: server.data });
      assert.equal(r.status, 1);
      assert.match(r.stderr, /needs a key/);
    });

    it('says that there is none, and how to start one', () => {
      const env = { BUNKER_URL: 'http://127.0.0.1:1', BUNKER_API_KEY: server.key };
      for (const [args, status] of [[['ls'], 1], [['info', 'x'], 1], [['rm', 'x'], 1], [['create'], 1], [['templates'], 1], [['run', 'true'], 125], [['exec', 'x', 'true'], 125]]) {
        const r = plain(args, env);
        assert.equal(r.status, status, args[0]);
        assert.match(r.stderr, /^bunker: no server at http:\/\/127\.0\.0\.1:1.*bunker serve\n$/);
      }
    });

    it('refuses URLs that it does not speak', () => {
      for (const [url, words] of [[`https://127.0.0.1:${server.port}`, /TLS with 127.0.0.1:\d+ failed/], ['ftp://x', /not a URL/], ['nonsense', /not a URL/], ['http://', /not a URL/], ['http://a:b:c', /not a URL/]]) {
        const r = plain(['ls'], { BUNKER_URL: url, BUNKER_API_KEY: 'x' });
        assert.equal(r.status, 1, url);
        assert.match(r.stderr, words);
      }
    });
  });

  describe('without a server', () => {
    /** Runs a script where port 2468 of loopback is free for sure: in a network namespace of its own. */
    const inside = (script, data, env = {}) =>
      spawnSync('unshare', ['--net', 'sh', '-c', `ip link set lo up; ${script}`], {
        encoding: 'utf8',
        timeout: 60000,
        env: { PATH: process.env.PATH, B: BUNKER, BUNKER_DATA: data, BUNKER_DRAIN: 'true', ...env },
      });
    const stop = 'kill $(sed -n "s/.*(pid \\([0-9]*\\),.*/\\1/p" "$BUNKER_DATA.err" | head -1); while kill -0 $(sed -n "s/.*(pid \\([0-9]*\\),.*/\\1/p" "$BUNKER_DATA.err" | head -1) 2>/dev/null; do sleep 0.05; done';
    const unusable = spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status !== 0 && 'SKIPPED LOUDLY: no network namespace can be made here';

    const scenario = (script, check) => {
      const data = dataDirectory();
      try {
        const r = inside(`(${script}) 2>"$BUNKER_DATA.err"; cat "$BUNKER_DATA.err" >&2; ${stop}`, data);
        check(r, data);
      } finally {
        rmSync(data, { recursive: true, force: true });
        rmSync(`${data}.err`, { force: true });
      }
    };

    it('run starts one in the background and says so', { skip: unusable }, () =>
      scenario(`"$B" run -- sh -c 'echo 1; exit 5'; echo status $?; "$B" run -- echo again`, (r, data) => {
        assert.equal(r.stdout, '1\nstatus 5\nagain\n', r.stderr);
        const said = r.stderr.split('\n').filter((line) => /no server was running; started one in the background \(pid \d+, log .*\)/.test(line));
        assert.equal(said.length, 1, r.stderr);
        assert.ok(said[0].includes(join(data, 'serve.log')));
        assert.match(readFileSync(join(data, 'serve.log'), 'utf8'), /listening on http:\/\/127\.0\.0\.1:2468/);
        assert.equal(statSync(join(data, 'serve.log')).mode & 0o077, 0, 'the log has the key in it');
      }));

    it('create starts one, too', { skip: unusable }, () =>
      scenario('"$B" create; "$B" ls -q', (r) => {
        const [made, listed] = r.stdout.split('\n');
        assert.match(made, /^[a-z0-9]{20}$/);
        assert.equal(listed, made);
      }));

    it('two at once start one server', { skip: unusable }, () =>
      scenario('for i in 1 2 3 4; do "$B" run -- echo $i & done; wait', (r) => {
        assert.deepEqual(r.stdout.trim().split('\n').sort(), ['1', '2', '3', '4'], r.stderr);
        assert.equal(r.stderr.match(/started one in the background/g).length, 1);
      }));

    it('the one that was started outlives the terminal', { skip: unusable }, () =>
      scenario(`setsid sh -c '"$B" run -- true'; "$B" run -- echo there`, (r) => {
        assert.equal(r.stdout, 'there\n', r.stderr);
      }));

    it('says why it could not be started', { skip: unusable }, () => {
      const data = dataDirectory();
      const r = inside('"$B" run -- true; echo $?', data, { BUNKER_MEMORY: 'lots' });
      rmSync(data, { recursive: true });
      assert.equal(r.stdout, '125\n');
      assert.match(r.stderr, /cannot start a server/);
      assert.match(r.stderr, /BUNKER_MEMORY.*lots/);
    });

    it('only root gets one', { skip: unusable }, () => {
      const data = dataDirectory();
      const r = inside('setpriv --reuid=65534 --regid=65534 --clear-groups "$B" run -- true; echo $?', data);
      rmSync(data, { recursive: true });
      assert.equal(r.stdout, '125\n', r.stderr);
      assert.match(r.stderr, /only root can start one: sudo bunker serve/);
    });

    it('no other command starts one', { skip: unusable }, () => {
      const data = dataDirectory();
      const r = inside('for c in ls templates "info x" "rm x" "exec x true"; do "$B" $c; done', data, { BUNKER_API_KEY: 'bnk_0123456789abcdef0123' });
      assert.equal(existsSync(join(data, 'serve.log')), false);
      rmSync(data, { recursive: true });
      assert.equal(r.stderr.match(/no server at/g).length, 5);
    });
  });
});
