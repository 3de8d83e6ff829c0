// Agentuity's SDK through a proxy that rewrites Host: what run() and execute() write arrives.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { PassThrough } from 'node:stream';
import { SandboxClient } from '@agentuity/server';
import { startProxy } from '../../lib/proxy.mjs';
import { environment, fetchText, startServer } from './support.mjs';

const server = await startServer({ args: ['--pool', '0'] });
const proxy = await startProxy(server, { prefix: '/boxes', headers: (req) => ({ 'x-forwarded-host': req.headers.host, 'x-forwarded-prefix': '/boxes' }) });
after(() => proxy.close());
Object.assign(process.env, environment({ ...server, url: proxy.url }));

describe('through a proxy', () => {
  it('run has its output', async () => {
    const stdout = new PassThrough();
    const parts = [];
    stdout.on('data', (part) => parts.push(part));
    const result = await new SandboxClient().run({ command: { exec: ['sh', '-c', 'echo through; sleep 0.3; echo all'] } }, { stdout });
    assert.equal(result.exitCode, 0);
    assert.equal(Buffer.concat(parts).toString(), 'through\nall\n');
  });

  it('execute tells where to read', async () => {
    const sandbox = await new SandboxClient().create();
    const result = await sandbox.execute({ command: ['echo', 'hi'] });
    assert.ok(result.stdoutStreamUrl.startsWith(proxy.url));
    assert.equal(await fetchText(result.stdoutStreamUrl), 'hi\n');
    await sandbox.destroy();
  });
});
