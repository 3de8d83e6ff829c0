// API keys as users of Agentuity's SDK meet them: one that may only look.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { SandboxClient } from '@agentuity/server';
import { failure, startServer } from './support.mjs';

const server = await startServer();

describe('a key of the scope read', () => {
  it('lists and looks, and makes, runs and ends nothing', async () => {
    const { key } = (await server.request('POST', '/v1/keys', { name: 'reader', scope: 'read' })).json;
    const sandbox = await new SandboxClient().create();
    const reader = new SandboxClient({ apiKey: key });
    assert.deepEqual((await reader.list()).sandboxes.map((s) => s.sandboxId), [sandbox.id]);
    assert.equal((await reader.get(sandbox.id)).sandboxId, sandbox.id);
    for (const attempt of [() => reader.create(), () => reader.destroy(sandbox.id)]) assert.match(String(await failure(attempt())), /scope 'use'/);
    assert.deepEqual((await reader.list()).sandboxes.length, 1);
    await sandbox.destroy();
  });
});
