// What the command line makes of the words that people type: options of a shell, docker's habits, slips, beginnings of ids, and questions before a loss.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import http from 'node:http';
import { after, afterEach, before, describe, it } from 'node:test';
import { Console } from '../lib/console.mjs';
import { BUNKER, Server } from '../lib/server.mjs';
import { clear, finish, list } from './support.mjs';

describe('words of the command line', { timeout: 180000 }, () => {
  let server;
  const at = (...args) => new Console(server, args);
  before(async () => {
    server = await Server.start();
  });
  afterEach(() => clear(server));
  after(() => finish(server));

  /** Refused as bad usage, in one line. */
  const refused = (args, words, status = 2) => {
    const r = server.cli(args);
    assert.equal(r.status, status, r.stderr);
    assert.match(r.stderr, words);
    assert.match(r.stderr, /^bunker: .*\n$/);
  };

  describe('shell, of a sandbox that is there', () => {
    it('has the user, directory and environment that are asked for', async () => {
      await server.create({ name: 'work' });
      const c = at('shell', '-u', 'root', '-w', '/tmp', '-e', 'FOO=bar', 'work');
      await c.sees('# ');
      c.type('echo "$(id -un) in $PWD with $FOO"; exit 3\r');
      await c.sees('root in /tmp with bar');
      assert.equal(await c.ended, 3);
    });

    it('refuses what only a new one can have, by the name of the option', async () => {
      await server.create({ name: 'work' });
      for (const [args, option] of [
        [['-t', 'nosuch'], 'template'],
        [['--memory', '2Gi'], 'memory'],
        [['-n', 'foo'], 'name'],
        [['-k'], 'keep'],
        [['-m', 'a=b'], 'metadata'],
        [['-v', 'a:/b'], 'volume'],
        [['--snapshot', 'x'], 'snapshot'],
      ])
        refused(['shell', ...args, 'work'], new RegExp(`--${option} is for a new sandbox, and work is there already`));
    });

    it('falls back to a terminal that the sandbox knows', async () => {
      await server.create({ name: 'work' });
      for (const [term, seen] of [['xterm-ghostty-of-tomorrow', 'xterm-256color'], ['vt100', 'vt100']]) {
        const c = new Console(server, ['shell', 'work'], { term });
        await c.sees('$ ');
        c.type('echo "is $TERM."; exit\r');
        await c.sees(`is ${seen}.`);
        assert.equal(await c.ended, 0);
      }
    });
  });

  describe('run -it', () => {
    for (const option of ['-it', '-ti', '--tty'])
      it(`is a terminal: ${option}; its sandbox is gone afterwards`, async () => {
        const c = at('run', option, '-t', 'base', '--', 'sh', '-c', 'test -t 0 && test -t 1 && echo "a terminal in $(pwd)"; read x; exit $x');
        await c.sees('a terminal in /home/user');
        c.type('9\r');
        assert.equal(await c.ended, 9);
        assert.deepEqual(await list(server), []);
      });

    it('says what docker’s order is here', async () => {
      const c = at('run', '-it', 'base', 'sh');
      await c.sees('base is a template; what runs in it comes behind: bunker run -it -t base -- COMMAND');
      assert.equal(await c.ended, 127);
      const r = server.cli(['run', 'base', 'true']);
      assert.equal(r.status, 127);
      assert.match(r.stderr, /base is a template.*bunker run -t base -- COMMAND/);
    });

    it('needs a terminal, and is not spelled -t -i', () => {
      refused(['run', '-it', '--', 'sh'], /-it needs a terminal; without one, use: bunker run -i/);
      refused(['run', '-t', '-i', '--', 'sh'], /-t is the template of run, and -i is none; for a terminal: bunker run -it/);
    });
  });

  describe('a question', () => {
    it('is asked by rm --all, with the number; only yes removes', async () => {
      await Promise.all([server.create(), server.create(), server.create()]);
      const no = at('rm', '--all');
      await no.sees('Remove all 3 sandboxes, with everything in them? [y/N]');
      no.type('n\r');
      assert.equal(await no.ended, 1);
      assert.equal((await list(server)).length, 3);
      const yes = at('rm', '--all');
      await yes.sees('[y/N]');
      yes.type('y\r');
      assert.equal(await yes.ended, 0);
      assert.deepEqual(await list(server), []);
    });

    it('is not asked by rm --all -y, nor of a script', async () => {
      await server.create();
      assert.equal(await at('rm', '--all', '-y').ended, 0);
      assert.deepEqual(await list(server), []);
      await server.create();
      assert.equal(server.cli(['rm', '--all']).status, 0);
      assert.deepEqual(await list(server), []);
    });

    it('is asked by checkpoint restore', async () => {
      const box = await server.create({ name: 'work' });
      server.cli(['checkpoint', 'create', 'work', 'before']);
      await server.exec(box.id, 'touch new');
      const no = at('checkpoint', 'restore', 'work', 'before');
      await no.sees('Throw away what was written since before and end the processes of work? [y/N]');
      no.type('\r');
      assert.equal(await no.ended, 1);
      assert.equal((await server.exec(box.id, 'ls new')).exitCode, 0);
      assert.equal(await at('checkpoint', 'restore', '-y', 'work', 'before').ended, 0);
      assert.notEqual((await server.exec(box.id, 'ls new')).exitCode, 0);
    });
  });

  describe('the beginning of an id', () => {
    it('stands for it while only one has it; a name wins', async () => {
      const box = await server.create();
      const short = box.id.slice(0, 6);
      assert.match(server.cli(['info', short]).stdout, new RegExp(box.id));
      assert.equal(server.cli(['exec', short, '--', 'echo', 'hi']).stdout, 'hi\n');
      const named = await server.create({ name: short });
      assert.match(server.cli(['info', short]).stdout, new RegExp(named.id));
      assert.equal(server.cli(['rm', box.id.slice(0, 8)]).stdout.trim(), box.id);
    });

    it('that several have is refused, with all of them; one shorter than three letters is none', async () => {
      const ids = ['abc0000000000000000x', 'abc0000000000000000y', 'abd0000000000000000z'];
      const fake = http.createServer((req, res) => res.end(JSON.stringify({ sandboxes: /[?&]name=/.test(req.url) ? [] : ids.map((id) => ({ id, name: '', status: 'running' })) })));
      await new Promise((resolve) => fake.listen(0, '127.0.0.1', resolve));
      const removed = async (prefix) => {
        const env = { ...process.env, BUNKER_URL: `http://127.0.0.1:${fake.address().port}`, BUNKER_API_KEY: 'x' };
        return await new Promise((resolve) => execFile(BUNKER, ['rm', prefix], { env }, (error, stdout, stderr) => resolve([error?.code ?? 0, stdout, stderr])));
      };
      assert.deepEqual(await removed('abc'), [1, '', `bunker: "abc" is the beginning of 2 ids: ${ids[0]}, ${ids[1]} (ambiguous)\n`]);
      assert.deepEqual(await removed('abd'), [0, `${ids[2]}\n`, '']);
      assert.match((await removed('ab'))[2], /no sandbox with the id or name "ab"/);
      fake.close();
    });
  });

  describe('a slip', () => {
    it('of a command is answered with the command that was meant', () => {
      for (const [word, meant] of [['exce', 'exec'], ['creat', 'create'], ['stop', 'pause'], ['start', 'resume'], ['list', 'ls'], ['inspect', 'info'], ['images', 'templates'], ['delete', 'rm'], ['stats', 'usage'], ['ssh', 'shell']])
        refused([word], new RegExp(`no command "${word}"; did you mean: bunker ${meant}\\?`));
      refused(['files', 'grpe'], /no command "files grpe"; did you mean "grep"\?/);
      refused(['xyzzy'], /no command "xyzzy"; see: bunker help/);
    });

    it('of an option, a sandbox or a template likewise', async () => {
      refused(['create', '--memroy', '1Gi'], /unknown option --memroy; did you mean --memory\?/);
      refused(['create', '--qqqqqq'], /unknown option --qqqqqq; see/);
      await server.create({ name: 'workshop' });
      refused(['info', 'workshpo'], /"workshpo"; did you mean "workshop"\?/, 1);
      refused(['create', '-t', 'bsae'], /no template 'bsae'; did you mean 'base'\?/, 1);
      refused(['run', '-t', 'nothing-like-it', '--', 'true'], /no template 'nothing-like-it'; see: bunker templates/, 125);
    });

    it('that leaves out an argument is told which', () => {
      for (const [args, name] of [[['info'], 'SANDBOX'], [['cp', 'a'], 'DESTINATION'], [['kill', 'work'], 'PROCESS'], [['files', 'stat', 'work'], 'PATH'], [['checkpoint', 'create', 'work'], 'NAME'], [['import'], 'FILE']])
        refused(args, new RegExp(`an argument is missing: ${name}; see`));
    });
  });
});
