// Snapshots and forks, as users of E2B's SDK make them.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { InvalidArgumentError, Sandbox, SandboxError, SandboxNotFoundError } from 'e2b';
import { failure, startServer } from './support.mjs';

await startServer();

async function all(paginator) {
  const items = [];
  while (paginator.hasNext) items.push(...(await paginator.nextItems()));
  return items;
}

describe('snapshots', () => {
  it('are what new sandboxes begin with, also when the first is gone', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 300000 });
    await sandbox.files.write('state', 'one');
    const named = await sandbox.createSnapshot({ name: 'my-snapshot' });
    assert.deepEqual(named, { snapshotId: 'my-snapshot:default', names: ['my-snapshot:default'] });
    await sandbox.files.write('state', 'two');
    const nameless = await Sandbox.createSnapshot(sandbox.sandboxId);
    assert.match(nameless.snapshotId, /^[a-z0-9]{20}:default$/);
    assert.deepEqual(nameless.names, []);
    assert.equal(await sandbox.isRunning(), true);
    await sandbox.kill();
    for (const [id, state] of [[named.snapshotId, 'one'], ['my-snapshot', 'one'], [nameless.snapshotId, 'two']]) {
      const copy = await Sandbox.create(id);
      assert.equal(await copy.files.read('state'), state, id);
      await copy.kill();
    }
  });

  it('are listed with filters and pages', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create();
    for (const name of ['list-a', 'list-b', 'list-c']) await sandbox.createSnapshot({ name });
    const ids = async (paginator) => (await all(paginator)).map((one) => one.snapshotId).sort();
    const wanted = ['list-a:default', 'list-b:default', 'list-c:default'];
    assert.deepEqual(await ids(sandbox.listSnapshots()), wanted);
    assert.deepEqual(await ids(sandbox.listSnapshots({ limit: 1 })), wanted);
    assert.deepEqual(await ids(Sandbox.listSnapshots({ name: 'list-b' })), ['list-b:default']);
    assert.ok((await ids(Sandbox.listSnapshots({ limit: 2 }))).length >= 3);
    assert.deepEqual(await ids(Sandbox.listSnapshots({ sandboxId: 'a'.repeat(20) })), []);
    await sandbox.kill();
    assert.equal(await Sandbox.deleteSnapshot('list-a:default'), true);
    assert.equal(await Sandbox.deleteSnapshot('list-a:default'), false);
    assert.deepEqual(await ids(Sandbox.listSnapshots({ name: 'list-a' })), []);
    assert.equal((await failure(Sandbox.create('list-a:default'))).statusCode, 404);
  });

  it('need a sandbox', async () => {
    assert.ok((await failure(Sandbox.createSnapshot('a'.repeat(20)))) instanceof SandboxNotFoundError);
    const sandbox = await Sandbox.create();
    assert.ok((await failure(sandbox.createSnapshot({ name: '../x y' }))) instanceof SandboxError);
    await sandbox.kill();
  });
});

describe('fork', () => {
  it('gives copies that go their own way', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create({ metadata: { of: 'fork' }, envs: { A: '1' }, timeoutMs: 300000 });
    await sandbox.files.write('state', 'original');
    const forks = await sandbox.fork({ count: 3, timeoutMs: 120000 });
    assert.equal(forks.length, 3);
    assert.equal(new Set([sandbox, ...forks].map((one) => one.sandboxId)).size, 4);
    for (const [i, fork] of forks.entries()) {
      assert.equal(await fork.files.read('state'), 'original');
      await fork.files.write('state', `copy ${i}`);
      assert.equal((await fork.commands.run('echo $A')).stdout, '1\n');
      assert.ok(Math.abs((await fork.getInfo()).endAt - Date.now() - 120000) < 5000);
    }
    assert.equal(await sandbox.files.read('state'), 'original');
    assert.equal(await forks[1].files.read('state'), 'copy 1');
    const [single] = await Sandbox.fork(forks[1].sandboxId);
    assert.equal(await single.files.read('state'), 'copy 1');
    await Promise.all([sandbox, single, ...forks].map((one) => one.kill()));
  });

  it('says what is wrong', async () => {
    assert.ok((await failure(Sandbox.fork('a'.repeat(20)))) instanceof SandboxNotFoundError);
    const sandbox = await Sandbox.create();
    for (const count of [0, 101, -1]) {
      const error = await failure(sandbox.fork({ count }));
      assert.ok(error instanceof SandboxError || error instanceof InvalidArgumentError, String(error));
    }
    await sandbox.kill();
  });
});
