// Pausing and resuming: files, memory, time and traffic.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { InvalidArgumentError, Sandbox, SandboxNotFoundError } from 'e2b';
import { initPid } from '../../system/support.mjs';
import { failure, sleep, startServer, until } from './support.mjs';

const server = await startServer();

describe('pause', () => {
  it('keeps processes, files and tokens; a second one changes nothing', async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 60000 });
    await sandbox.commands.run('echo data > file');
    const counter = await sandbox.commands.run('i=0; while true; do echo $i; i=$((i+1)); sleep 0.05; done', { background: true });
    await until('it counts', () => counter.stdout.length > 3);
    assert.equal(await sandbox.pause(), true);
    assert.equal(await sandbox.pause(), false);
    assert.equal(await Sandbox.pause(sandbox.sandboxId), false);
    assert.equal(await sandbox.betaPause(), false);
    assert.equal((await sandbox.getInfo()).state, 'paused');
    assert.equal(await sandbox.isRunning(), false);
    assert.ok((await failure(sandbox.commands.run('true'))) instanceof SandboxNotFoundError);
    const stood = counter.stdout;
    await sleep(300);
    assert.equal(counter.stdout, stood);
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 60000 });
    assert.equal(again.envdAccessToken, sandbox.envdAccessToken);
    assert.equal(await sandbox.isRunning(), true);
    assert.equal((await sandbox.commands.run('cat file')).stdout, 'data\n');
    await until('it counts on', () => counter.stdout.length > stood.length + 3);
    const numbers = counter.stdout.trim().split('\n').map(Number);
    assert.deepEqual(numbers, numbers.map((_, i) => i));
    await sandbox.kill();
  });

  it('without memory boots anew on the same disk', async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 60000 });
    const boot = async () => (await sandbox.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout;
    const first = await boot();
    await sandbox.commands.run('echo kept > file; sync');
    const sleeper = await sandbox.commands.run('sleep 1000', { background: true });
    assert.equal(await sandbox.pause({ keepMemory: false }), true);
    assert.equal((await sandbox.getInfo()).state, 'paused');
    await sandbox.connect();
    assert.notEqual(await boot(), first);
    assert.equal((await sandbox.commands.run('cat file')).stdout, 'kept\n');
    assert.equal((await sandbox.commands.list()).some((one) => one.pid === sleeper.pid && one.args.includes('sleep 1000')), false);
    await sleeper.wait().catch(() => {});

    const second = await boot();
    await sandbox.pause();
    await sandbox.connect();
    assert.equal(await boot(), second, 'with memory it is the same boot');
    await sandbox.pause();
    await sandbox.connect({ onResume: 'reboot' });
    assert.notEqual(await boot(), second, 'unless a reboot is asked for');
    await sandbox.kill();
  });

  it('loses no file in ten rounds', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 300000 });
    for (let round = 1; round <= 10; round++) {
      await sandbox.commands.run(`echo ${round} > round-${round}; echo ${round} >> log`);
      assert.equal(await sandbox.pause({ keepMemory: round % 2 === 0 }), true);
      await sandbox.connect();
      const { stdout } = await sandbox.commands.run('ls round-* | wc -l; cat log | tr "\\n" " "');
      assert.equal(stdout, `${round}\n${Array.from({ length: round }, (_, i) => i + 1).join(' ')} `);
    }
    await sandbox.kill();
  });

  it('gives a resumed sandbox new time', async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 60000 });
    await sandbox.pause();
    await sandbox.connect({ timeoutMs: 500000 });
    assert.ok(Math.abs((await sandbox.getInfo()).endAt - Date.now() - 500000) < 5000);
    await sandbox.kill();
  });

  it('can be ended by kill', async () => {
    const sandbox = await Sandbox.create();
    await sandbox.pause();
    assert.equal(await sandbox.kill(), true);
    assert.ok((await failure(sandbox.connect())) instanceof SandboxNotFoundError);
  });
});

describe('auto-pause', () => {
  const pauseOf = (onTimeout, autoResume) => ({ lifecycle: { onTimeout, ...(autoResume === undefined ? {} : { autoResume }) } });

  it('equals pause', { timeout: 30000 }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 1500, ...pauseOf('pause') });
    assert.deepEqual((await sandbox.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: false });
    // Written right up to the end, and never synced.
    const writer = await sandbox.commands.run('i=0; while true; do i=$((i+1)); echo $i > file-$i; echo $i; sleep 0.02; done', { background: true });
    await until('it is paused', async () => (await sandbox.getInfo()).state === 'paused');
    const written = writer.stdout.trim().split('\n').length;
    assert.ok((await failure(sandbox.commands.run('true'))) instanceof SandboxNotFoundError);
    await sandbox.connect({ timeoutMs: 60000 });
    await until('it goes on where it stood', () => writer.stdout.trim().split('\n').length > written);
    await sandbox.commands.kill(writer.pid);
    await writer.wait().catch(() => {});
    const told = writer.stdout.trim().split('\n').map(Number);
    assert.deepEqual(told, told.map((_, i) => i + 1));
    const kept = await sandbox.commands.run('ls file-* | wc -l; cat file-* | sort -n | tail -1');
    const [files, last] = kept.stdout.trim().split('\n').map(Number);
    assert.ok(files >= told.length && last >= told.length);
    await sandbox.kill();
  });

  it('without memory keeps the disk', { timeout: 30000 }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 1000, ...pauseOf({ action: 'pause', keepMemory: false }) });
    await sandbox.commands.run('echo kept > file');
    await until('it is paused', async () => (await sandbox.getInfo()).state === 'paused');
    await sandbox.connect({ timeoutMs: 60000 });
    assert.equal((await sandbox.commands.run('cat file')).stdout, 'kept\n');
    await sandbox.kill();
  });

  it('ends when traffic comes, if that was asked for', { timeout: 30000 }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 1000, ...pauseOf('pause', true) });
    assert.deepEqual((await sandbox.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true });
    await sandbox.commands.run('echo kept > file');
    const isPaused = async () => (await sandbox.getInfo()).state === 'paused';
    await until('it is paused', isPaused);
    assert.equal((await sandbox.commands.run('cat file')).stdout, 'kept\n');
    assert.equal((await sandbox.getInfo()).state, 'running');
    await until('it is paused again', isPaused);
    assert.deepEqual(await sandbox.commands.list(), []);
    await sandbox.kill();
  });

  it('refuses combinations that make no sense', async () => {
    assert.ok((await failure(Sandbox.create(pauseOf('kill', true)))) instanceof InvalidArgumentError);
    assert.ok((await failure(Sandbox.create(pauseOf({ action: 'pause', keepMemory: false }, true)))) instanceof InvalidArgumentError);
    assert.ok((await failure(Sandbox.create(pauseOf('explode')))) instanceof InvalidArgumentError);
  });
});

describe('a sandbox whose processes were lost', () => {
  const lost = async (options) => {
    const sandbox = await Sandbox.create({ timeoutMs: 60000, ...options });
    await sandbox.commands.run('echo data > file; sync');
    process.kill(initPid(server, sandbox.sandboxId), 'SIGKILL');
    await until('that is known', async () => (await sandbox.getInfo()).state === 'paused');
    return sandbox;
  };

  it('is like a paused one, and connecting boots it on its disk', async () => {
    const sandbox = await lost({ metadata: { which: 'lost' } });
    const listed = async (state) => (await Sandbox.list({ query: { metadata: { which: 'lost' }, state } }).nextItems()).map((box) => box.state);
    assert.deepEqual(await listed(['paused']), ['paused']);
    assert.deepEqual(await listed(['running']), []);
    assert.deepEqual(await listed(), ['paused']);
    assert.equal(await sandbox.isRunning(), false);
    assert.equal(await sandbox.pause(), false);
    assert.ok((await failure(sandbox.commands.run('true'))) instanceof SandboxNotFoundError);
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 60000 });
    assert.equal((await again.commands.run('cat file')).stdout, 'data\n');
    assert.equal(await again.isRunning(), true);
    assert.deepEqual(await listed(['running']), ['running']);
    process.kill(initPid(server, sandbox.sandboxId), 'SIGKILL');
    await until('it is lost again', async () => (await sandbox.getInfo()).state === 'paused');
    assert.equal(await sandbox.kill(), true);
    assert.equal(await sandbox.kill(), false);
    assert.deepEqual(await listed(), []);
  });

  it('ends with its timeout', async () => {
    const sandbox = await lost({ timeoutMs: 4000 });
    await until('it is gone', async () => (await failure(sandbox.getInfo().then(() => { throw new Error('there'); }))) instanceof SandboxNotFoundError);
  });
});
