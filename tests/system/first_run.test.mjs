// `make run`: what it shows, and that it ends whatever its server does and whoever reads its output.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { BUNKER, childrenOf, commandName, dataDirectory, sleep, until } from '../lib/server.mjs';
import { isAlive } from './support.mjs';

const script = new URL('../../tools/first-run', import.meta.url).pathname;

/** A port that nobody listens on. */
const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

describe('make run', () => {
  async function start() {
    const data = dataDirectory();
    const env = { ...process.env, BUNKER_DATA: data, BUNKER_LISTEN: `127.0.0.1:${await freePort()}`, BUNKER_POOL: '0' };
    const child = spawn(script, [BUNKER], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const run = { child, data, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text) => (run.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (run.stderr += text));
    // Not the exit: both pipes must have ended, as for who reads them.
    run.ended = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })));
    await until('it waits', () => run.stdout.includes('Ctrl-C stops the server') || child.exitCode !== null, 60000);
    run.server = childrenOf(child.pid).find((pid) => commandName(pid) === 'bunker-warden');
    assert.ok(run.server, run.stdout + run.stderr);
    return run;
  }

  const within = async (run, ms) => {
    const end = await Promise.race([run.ended, sleep(ms).then(() => 'late')]);
    assert.notEqual(end, 'late', `its output was still open after ${ms} ms`);
    rmSync(run.data, { recursive: true, force: true });
    return end;
  };

  it('runs a first command, ends its server when told to, and says so by its exit', async () => {
    const run = await start();
    assert.match(run.stdout, /Hello from user on Linux/);
    assert.match(run.stdout, /The sandbox was created in \d/);
    run.child.kill('SIGTERM');
    assert.deepEqual(await within(run, 20000), { code: 0, signal: null });
    assert.equal(isAlive(run.server), false, 'the server goes on');
  });

  it('ends when its server does not', async () => {
    const run = await start();
    process.kill(run.server, 'SIGSTOP');
    run.child.kill('SIGTERM');
    assert.deepEqual(await within(run, 30000), { code: 0, signal: null });
    assert.equal(isAlive(run.server), false, 'the server goes on');
  });

  it('ends for who reads its output when it is killed', async () => {
    const run = await start();
    run.child.kill('SIGKILL');
    try {
      assert.equal((await within(run, 15000)).signal, 'SIGKILL');
      assert.ok(isAlive(run.server), 'the server went with it');
    } finally {
      process.kill(run.server, 'SIGTERM');
      await until('the server has ended', () => !isAlive(run.server), 20000);
      rmSync(run.data, { recursive: true, force: true });
    }
  });
});
