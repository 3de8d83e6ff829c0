// API keys as users of E2B's SDK meet them: one that may only look, and one that is taken back under them.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Sandbox } from 'e2b';
import { failure, optionsFor, startServer, until } from './support.mjs';

const server = await startServer();
const create = async (options) => (await server.request('POST', '/v1/keys', options)).json;

describe('a key of the scope read', () => {
  it('lists and looks, and makes, ends and changes nothing', async () => {
    const reader = optionsFor(server, (await create({ name: 'reader', scope: 'read' })).key);
    const sandbox = await Sandbox.create();
    const listed = await Sandbox.list(reader).nextItems();
    assert.deepEqual(listed.map((s) => s.sandboxId), [sandbox.sandboxId]);
    assert.equal((await Sandbox.getInfo(sandbox.sandboxId, reader)).state, 'running');
    for (const attempt of [() => Sandbox.create(reader), () => Sandbox.kill(sandbox.sandboxId, reader), () => Sandbox.connect(sandbox.sandboxId, reader), () => Sandbox.setTimeout(sandbox.sandboxId, 1000, reader)]) {
      const error = await failure(attempt());
      assert.match(error.message, /403.*scope 'use'/);
    }
    assert.equal(await sandbox.isRunning(), true);
    await sandbox.kill();
  });
});

describe('a key that is revoked', () => {
  it('ends the commands that its SDK follows, and nobody else\'s', async () => {
    const key = await create({ name: 'lost' });
    const mine = await Sandbox.create(optionsFor(server, key.key));
    const theirs = await Sandbox.connect(mine.sandboxId);
    let ticks = 0;
    const following = failure(mine.commands.run('while true; do echo tick; sleep 0.05; done', { timeoutMs: 0 }));
    const other = await theirs.commands.run('while true; do echo tick; sleep 0.05; done', { background: true, timeoutMs: 0, onStdout: () => ticks++ });
    await until('both run', async () => ticks > 0 && (await theirs.commands.list()).length === 2);
    const since = performance.now();
    assert.equal((await server.request('DELETE', `/v1/keys/${key.id}`)).status, 204);
    const error = await following;
    const ms = performance.now() - since;
    assert.ok(ms < 1000, `it was told after ${ms} ms`);
    assert.ok(error);
    assert.match((await failure(mine.commands.run('true'))).message, /401/);
    assert.match((await failure(mine.files.write('/home/user/f', 'x'))).message, /key.*has ended/i);
    assert.match((await failure(mine.getInfo())).message, /valid API key/);
    const before_ = ticks;
    await until('the other one goes on', () => ticks > before_ + 5);
    assert.equal((await theirs.commands.list()).length, 2, 'commands go on, whoever has begun them');
    await other.kill();
    await theirs.kill();
  });
});
