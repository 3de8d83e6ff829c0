// Hello world with every version of the SDK that is promised to work.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { startServer } from './support.mjs';

await startServer();

for (const name of ['e2b-2.8.4', 'e2b-2.15.0', 'e2b-2.45.0', 'e2b-2.50.0', 'e2b']) {
  describe(name, () => {
    it('creates, runs, reads, finds and kills', { timeout: 30000 }, async () => {
      const { Sandbox } = await import(name);
      const sandbox = await Sandbox.create({ metadata: { version: name }, timeoutMs: 60000 });
      const result = await sandbox.commands.run('echo hello; echo oops >&2; id -un; pwd');
      assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, 'hello\nuser\n/home/user\n', 'oops\n']);
      assert.equal(await sandbox.isRunning(), true);
      const again = await Sandbox.connect(sandbox.sandboxId);
      assert.equal((await again.commands.run('echo again')).stdout, 'again\n');
      await sandbox.files.write('note.txt', 'kept');
      assert.equal(await again.files.read('note.txt'), 'kept', 'before 2.15 nothing but the token says which sandbox');
      assert.equal(await (await fetch(await sandbox.downloadUrl('note.txt'))).text(), 'kept');
      await (sandbox.pause ?? sandbox.betaPause).call(sandbox);
      assert.equal(await sandbox.isRunning(), false);
      assert.equal(await (await Sandbox.connect(sandbox.sandboxId)).files.read('note.txt'), 'kept');
      const listed = await Sandbox.list({ query: { metadata: { version: name } } }).nextItems();
      assert.deepEqual(
        listed.map((one) => one.sandboxId),
        [sandbox.sandboxId],
      );
      await sandbox.kill();
      assert.equal(await sandbox.isRunning(), false);
    });
  });
}
