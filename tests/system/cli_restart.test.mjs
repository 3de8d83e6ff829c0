// The command line while the server dies (kill -9 of all of it) and comes back, and what becomes of a command when bunker ends first.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BUNKER, Server, sleep, until } from '../lib/server.mjs';
import { finish, killServer } from './support.mjs';

const COUNT = 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo "line $i"; echo "err $i" >&2; sleep 0.01; done; exit 7';
const lines = (word) => Array.from({ length: 400 }, (_, i) => `${word} ${i + 1}\n`).join('');
const sha = (bytes) => createHash('sha256').update(bytes).digest('hex');

describe('a restart of the server', { timeout: 300000 }, () => {
  let server;
  let box;
  let dir;
  before(async () => {
    server = await Server.start();
    box = await server.create({ name: 'work' });
    dir = mkdtempSync('/tmp/bunker-test-cli-restart-');
  });
  after(async () => {
    rmSync(dir, { recursive: true });
    await finish(server, { killed: true });
  });

  /** The CLI in the background, with what it says. */
  const begin = (args, stdio = ['ignore', 'pipe', 'pipe']) => {
    const child = spawn(BUNKER, args, { env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data }, stdio });
    const c = { child, out: '', err: '' };
    child.stdout?.setEncoding('latin1').on('data', (text) => (c.out += text));
    child.stderr?.setEncoding('utf8').on('data', (text) => (c.err += text));
    c.ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)));
    return c;
  };
  const restart = async (away = 300) => {
    await killServer(server);
    await sleep(away);
    await server.launch();
  };

  it('is not seen by exec: no byte is missing or doubled, and the exit status is the command’s', async () => {
    const c = begin(['exec', 'work', '--', 'sh', '-c', COUNT]);
    await until('it runs', () => c.out.includes('line 40\n'));
    await restart();
    await until('it goes on', () => c.out.includes('line 200\n'));
    await restart(1500);
    assert.equal(await c.ended, 7, c.err);
    assert.equal(c.out, lines('line'));
    assert.equal(c.err, lines('err'));
  });

  it('is not seen by exec --json, nor by exec -i', async () => {
    const json = begin(['exec', '--json', 'work', '--', 'sh', '-c', COUNT]);
    const typed = begin(['exec', '-i', 'work', '--', 'sh', '-c', 'read a; echo "got $a"; sleep 2; read b; echo "then $b"'], ['pipe', 'pipe', 'pipe']);
    typed.child.stdin.write('one\n');
    await until('it reads', () => typed.out.includes('got one'));
    await sleep(300);
    await restart();
    typed.child.stdin.end('two\n');
    assert.equal(await typed.ended, 0, typed.err);
    assert.equal(typed.out, 'got one\nthen two\n');
    assert.equal(await json.ended, 7, json.err);
    const result = JSON.parse(json.out);
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], [lines('line'), lines('err'), 7]);
  });

  it('is not seen by logs -f, with or without the sandbox', async () => {
    const id = server.cli(['exec', '-d', 'work', '--', 'sh', '-c', COUNT]).stdout.trim();
    const both = [begin(['logs', '-f', 'work', id]), begin(['logs', '-f', id])];
    for (const c of both) await until('it follows', () => c.out.includes('line 40\n'));
    await restart();
    for (const c of both) {
      assert.equal(await c.ended, 0, c.err);
      assert.equal(c.out, lines('line'));
      assert.equal(c.err, lines('err'));
    }
  });

  it('is not seen by jobs wait, whose status is the job’s', async () => {
    server.cli(['jobs', '-n', 'slow', 'work', 'start', 'sh', '-c', 'sleep 3; exit 5']);
    const c = begin(['jobs', 'work', 'wait', 'slow']);
    await sleep(500);
    await restart();
    assert.equal(await c.ended, 5, c.err);
    assert.match(c.out, /failed\n$/);
  });

  it('is not seen by events -f: each comes once, in order', async () => {
    const other = await server.create();
    const c = begin(['events', '-f', '--json', other.id]);
    await until('it follows', () => c.out.includes('created'));
    await server.request('POST', `/v1/sandboxes/${other.id}/pause`, {});
    await until('it tells', () => c.out.includes('paused'));
    await restart();
    await server.request('POST', `/v1/sandboxes/${other.id}/resume`, {});
    await server.request('DELETE', `/v1/sandboxes/${other.id}`);
    assert.equal(await c.ended, 0, c.err);
    const events = c.out.trim().split('\n').map((line) => JSON.parse(line));
    const numbers = events.map((e) => e.number);
    assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b));
    const types = events.map((e) => e.type);
    for (const type of ['created', 'paused', 'resumed', 'deleted']) assert.equal(types.filter((t) => t === type).length, 1, types.join(' '));
  });

  it('is told by files watch as an overflow, which then goes on', async () => {
    await server.exec(box.id, 'mkdir -p watched');
    const c = begin(['files', 'watch', 'work', 'watched']);
    await until('it watches', async () => {
      await server.exec(box.id, 'touch watched/before');
      return /before/.test(c.out);
    });
    await restart();
    await until('it watches again', () => /^overflow/m.test(c.out));
    await server.exec(box.id, 'touch watched/after');
    await until('it tells', () => /after/.test(c.out));
    await server.exec(box.id, 'rm -r watched');
    assert.equal(await c.ended, 0, c.err);
    assert.equal(c.out.match(/^overflow/gm).length, 1);
  });

  it('does not cut cp: what arrives is whole, up, down and to stdout', async () => {
    const big = randomBytes(1 << 20);
    mkdirSync(join(dir, 'up'));
    for (let i = 0; i < 200; i++) writeFileSync(join(dir, 'up', `f${i}`), big);
    const up = begin(['cp', '-q', join(dir, 'up'), 'work:']);
    await until('it is under way', async () => (await server.exec(box.id, 'ls up 2>/dev/null | wc -l')).stdout.trim() > 2);
    await restart();
    assert.equal(await up.ended, 0, up.err);
    const sums = (await server.exec(box.id, 'cd up && cat * | sha256sum; ls | wc -l; cat f* > ../whole')).stdout.split('\n');
    const all = createHash('sha256');
    for (let i = 0; i < 200; i++) all.update(big);
    const sum = all.digest('hex');
    assert.deepEqual([sums[0].split(' ')[0], sums[1]], [sum, '200']);

    const down = begin(['cp', '-q', 'work:up', join(dir, 'down')]);
    await sleep(150);
    await restart();
    assert.equal(await down.ended, 0, down.err);
    for (let i = 0; i < 200; i++) assert.ok(readFileSync(join(dir, 'down', `f${i}`)).equals(big), `f${i}`);

    const piped = begin(['cp', 'work:whole', '-'], ['ignore', 'pipe', 'pipe']);
    await until('it flows', () => piped.out.length > 1 << 20);
    piped.child.stdout.pause();
    await restart();
    piped.child.stdout.resume();
    assert.equal(await piped.ended, 0, piped.err);
    assert.equal(sha(Buffer.from(piped.out, 'latin1')), sum);
  });

  it('that takes too long ends exec, with how to see the rest', async () => {
    const c = begin(['exec', 'work', '--', 'sh', '-c', 'echo begun; sleep 14; echo done']);
    await until('it runs', () => c.out.includes('begun'));
    await killServer(server);
    assert.equal(await c.ended, 125);
    const [, hint] = /^bunker: the command goes on; its output: bunker (logs -f work \w+)$/m.exec(c.err) ?? [];
    assert.ok(hint, c.err);
    await server.launch();
    const rest = server.cli(hint.split(' '));
    assert.equal(rest.stdout, 'begun\ndone\n', rest.stderr);
  });

  it('is not waited for when there was no server in the first place', async () => {
    const began = Date.now();
    const r = server.cli(['exec', 'work', '--', 'true'], { env: { BUNKER_URL: 'http://127.0.0.1:1' } });
    assert.equal(r.status, 125);
    assert.match(r.stderr, /no server/);
    assert.ok(Date.now() - began < 5000);
  });

  describe('the end of bunker', () => {
    const running = async (word) => (await server.exec(box.id, `pgrep -x ${word} | wc -l`)).stdout.trim();

    for (const options of [[], ['-i']])
      it(`by a pipe that nobody reads ends the command: exec ${options.join(' ')} … | head`, async () => {
        const line = `'${BUNKER}' exec ${options.join(' ')} work -- yes | head -2; echo \${PIPESTATUS[0]}`;
        const c = spawn('bash', ['-c', line], { env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data }, stdio: ['ignore', 'pipe', 'inherit'] });
        let out = '';
        c.stdout.on('data', (data) => (out += data));
        await new Promise((resolve) => c.on('close', resolve));
        assert.equal(out, 'y\ny\n141\n');
        assert.equal(await running('yes'), '0');
      });

    it('does not wait for a command that ignores the end: it is killed', async () => {
      const line = `'${BUNKER}' exec work -- sh -c 'trap "" TERM PIPE; while :; do echo x || sleep 0.01; done' | head -1`;
      const c = spawn('bash', ['-c', line], { env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data }, stdio: ['ignore', 'ignore', 'inherit'] });
      await new Promise((resolve) => c.on('close', resolve));
      assert.deepEqual((await server.request('GET', `/v1/sandboxes/${box.id}/processes`)).json.processes, []);
    });

    for (const signal of ['SIGINT', 'SIGTERM'])
      it(`by ${signal} leaves it running, and says how to end it`, async () => {
        const c = begin(['exec', 'work', '--', 'sh', '-c', 'echo begun; exec sleep 1000']);
        await until('it runs', () => c.out.includes('begun'));
        c.child.kill(signal);
        assert.equal(await c.ended, signal);
        const [, hint] = /goes on as PID \d+; to end it: bunker (kill work \d+)\n/.exec(c.err) ?? [];
        assert.ok(hint, c.err);
        assert.equal(await running('sleep'), '1');
        assert.equal(server.cli(hint.split(' ')).status, 0);
        assert.equal(await running('sleep'), '0');
      });
  });
});
