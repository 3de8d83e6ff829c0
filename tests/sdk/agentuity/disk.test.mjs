// Checkpoints, snapshots, archives and snapshot builds of Agentuity's SDK.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  APIClient, createMinimalLogger, SandboxClient, sandboxDownloadArchive, sandboxUploadArchive, snapshotBuildFinalize, snapshotBuildInit,
  snapshotUpload,
} from '@agentuity/core';
import { file as archived, tar, tinyRoot } from '../../lib/images.mjs';
import { failure, fetchText, startServer, text, until } from './support.mjs';

const OTHER = 'bnk_0123456789abcdef0123456789abcdef';
const server = await startServer({ args: ['--api-key', `other=${OTHER}`] });
const client = new SandboxClient();
const api = new APIClient(`${server.url}/agentuity`, createMinimalLogger(), server.key, {});
const file = (path, content) => ({ path, content: Buffer.from(content) });
const read = async (sandbox, path) => text(await sandbox.readFile(path));

describe('disk checkpoints', () => {
  it('are made, listed, restored and deleted', async () => {
    const sandbox = await client.create();
    await sandbox.writeFiles([file('state', 'before')]);
    const first = await client.createDiskCheckpoint(sandbox.id, 'before-upgrade');
    assert.match(first.id, /^ckpt_[a-z0-9]{20}$/);
    assert.deepEqual([first.name, first.parent], ['before-upgrade', '']);
    await sandbox.writeFiles([file('state', 'after'), file('new', 'x')]);
    const second = await client.createDiskCheckpoint(sandbox.id, 'second');
    assert.equal(second.parent, 'before-upgrade');
    assert.deepEqual((await client.listDiskCheckpoints(sandbox.id)).map((c) => c.name), ['before-upgrade', 'second']);
    await first.restore();
    assert.equal(await read(sandbox, 'state'), 'before');
    assert.match((await failure(sandbox.readFile('new'))).message, /404/);
    const again = await client.getDiskCheckpoint(sandbox.id, second.id);
    await again.restore();
    assert.equal(await read(sandbox, 'state'), 'after');
    assert.equal((await failure(client.createDiskCheckpoint(sandbox.id, 'second'))).status, 409);
    await first.delete();
    assert.deepEqual((await client.listDiskCheckpoints(sandbox.id)).map((c) => c.id), [second.id]);
    assert.equal((await failure(first.restore())).status, 404);
    const stranger = new SandboxClient({ apiKey: OTHER });
    assert.equal((await failure(stranger.listDiskCheckpoints(sandbox.id)))._tag, 'SandboxNotFoundError');
    assert.equal((await failure(stranger.createDiskCheckpoint(sandbox.id, 'theirs')))._tag, 'SandboxNotFoundError');
    const theft = await server.request('POST', `/agentuity/sandbox/${sandbox.id}/checkpoint/${second.id}/restore`, undefined, { key: OTHER });
    assert.equal(theft.json.code, 'SANDBOX_NOT_FOUND');
    const own = await stranger.create();
    const crossed = await server.request('DELETE', `/agentuity/sandbox/${own.id}/checkpoint/${second.id}`, undefined, { key: OTHER });
    assert.equal(crossed.status, 404);
    await own.destroy();
    await sandbox.destroy();
  });
});

describe('snapshots', () => {
  it('are bases of sandboxes by id, name, name:tag and tag, and have a lineage', async () => {
    const sandbox = await client.create();
    await sandbox.writeFiles([file('layer', 'one')]);
    const one = await client.createSnapshot(sandbox.id, { name: 'stack', tag: 'v1', description: 'the first' });
    assert.match(one.snapshotId, /^snp_[a-z0-9]{20}$/);
    assert.deepEqual([one.name, one.tag, one.description, one.public], ['stack', 'v1', 'the first', false]);
    assert.ok(one.sizeBytes >= 3 && one.fileCount >= 1, JSON.stringify(one));
    assert.ok(Math.abs(new Date(one.createdAt) - Date.now()) < 60000);
    await sandbox.destroy();
    for (const ref of [one.snapshotId, one.snapshotId.slice(4), 'stack:v1', 'stack', 'v1']) {
      const next = await client.create({ snapshot: ref });
      assert.equal(await read(next, 'layer'), 'one', ref);
      const info = await next.get();
      assert.equal(info.snapshot.id, one.snapshotId);
      await next.destroy();
    }
    const middle = await client.create({ snapshot: 'stack:v1', env: { A: 'b' }, resources: { memory: '512Mi' } });
    await middle.writeFiles([file('layer', 'two')]);
    const two = await client.createSnapshot(middle.id, { name: 'stack', tag: 'v2' });
    assert.equal(two.parentSnapshotId, one.snapshotId);
    const { lineage, total } = await client.getSnapshotLineage({ snapshot: two.snapshotId });
    assert.deepEqual(lineage.map((e) => e.snapshotId), [two.snapshotId, one.snapshotId]);
    assert.equal(total, 2);
    assert.equal((await client.getSnapshotLineage({ name: 'stack', tag: 'v2', limit: 1 })).lineage.length, 1);
    const list = async (params) => (await client.listSnapshots(params)).snapshots.map((s) => s.tag);
    assert.deepEqual(await list(), ['v2', 'v1']);
    assert.deepEqual(await list({ sort: 'created', direction: 'asc', limit: 1 }), ['v1']);
    assert.deepEqual(await list({ sandboxId: middle.id }), ['v2']);
    assert.deepEqual((await client.list({ snapshotId: one.snapshotId })).sandboxes.map((s) => s.sandboxId), [middle.id]);
    assert.equal((await client.tagSnapshot(two.snapshotId, 'stable')).tag, 'stable');
    assert.equal((await client.getSnapshot(two.snapshotId)).tag, 'stable');
    assert.equal((await client.tagSnapshot(two.snapshotId, null)).tag, null);
    assert.equal((await failure(client.deleteSnapshot(one.snapshotId))).status, 409, 'a sandbox stands on it');
    await middle.destroy();
    await client.deleteSnapshot(one.snapshotId);
    const after = await client.getSnapshotLineage({ snapshot: two.snapshotId });
    assert.deepEqual(after.lineage.map((e) => e.deleted), [false, true]);
    await client.deleteSnapshot(two.snapshotId);
    assert.equal((await client.listSnapshots()).total, 0);
  });

  it('are not found when they are not there, or are somebody else\'s', async () => {
    const sandbox = await client.create();
    const mine = await client.createSnapshot(sandbox.id);
    await sandbox.destroy();
    const stranger = new SandboxClient({ apiKey: OTHER });
    for (const [who, ref] of [[client, 'snp_00000000000000000000'], [client, 'nothing:latest'], [stranger, mine.snapshotId]]) {
      assert.equal((await failure(who.getSnapshot(ref)))._tag, 'SnapshotNotFoundError');
      assert.equal((await failure(who.deleteSnapshot(ref)))._tag, 'SnapshotNotFoundError');
      assert.equal((await failure(who.tagSnapshot(ref, 'x')))._tag, 'SnapshotNotFoundError');
      assert.equal((await failure(who.getSnapshotLineage({ snapshot: ref })))._tag, 'SnapshotNotFoundError');
      const error = await failure(who.create({ snapshot: ref }));
      assert.equal(error._tag, 'SnapshotNotFoundError', String(error));
      assert.match(error.message, /not found/);
    }
    assert.equal((await stranger.listSnapshots()).total, 0);
    await client.deleteSnapshot(mine.snapshotId);
  });

  it('are never public', async () => {
    const sandbox = await client.create();
    assert.equal((await failure(client.createSnapshot(sandbox.id, { public: true }))).status, 501);
    assert.deepEqual((await server.request('GET', '/agentuity/sandbox/snapshots/public?limit=5')).json.data, { snapshots: [], total: 0 });
    assert.equal((await server.request('GET', '/agentuity/sandbox/snapshots/public/thing%3Alatest')).json.code, 'SNAPSHOT_NOT_FOUND');
    const both = await server.request('POST', '/agentuity/sandbox', { snapshot: 'x', runtime: 'base' });
    assert.equal(both.status, 400);
    await sandbox.destroy();
  });
});

describe('archives', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'bunker-agentuity-'));
  it('go down and up as tar.gz', async () => {
    const sandbox = await client.create();
    await sandbox.execute({ command: ['sh', '-c', 'mkdir -p tree/empty; echo text > tree/a; printf "#!/bin/sh\\necho ran" > tree/run; chmod 755 tree/run; ln -s a tree/link'] });
    const archive = Buffer.from(await new Response(await sandboxDownloadArchive(api, { sandboxId: sandbox.id, path: 'tree', format: 'tar.gz' })).arrayBuffer());
    writeFileSync(join(scratch, 'down.tgz'), archive);
    const names = execFileSync('tar', ['tzf', join(scratch, 'down.tgz')]).toString();
    assert.match(names, /a\n/);
    assert.match(names, /empty\//);
    await sandboxUploadArchive(api, { sandboxId: sandbox.id, archive: new Uint8Array(archive), path: 'copy', format: 'tar.gz' });
    const result = await sandbox.execute({ command: ['sh', '-c', 'cd copy; ./run; echo; cat link; test -d empty && echo empty'] });
    assert.equal(await fetchText(result.stdoutStreamUrl), 'ran\n\ntext\nempty\n');
    assert.equal((await server.request('GET', `/agentuity/fs/download/${sandbox.id}?format=rar`)).status, 400);
    assert.match((await failure(sandboxDownloadArchive(api, { sandboxId: sandbox.id, path: 'none' }))).message, /404/);
    assert.match((await failure(sandboxUploadArchive(api, { sandboxId: sandbox.id, archive: new Uint8Array(Buffer.from('no archive at all')) }))).message, /400/);
    for (const [method, path] of [['GET', 'download'], ['POST', 'upload']])
      assert.equal((await server.request(method, `/agentuity/fs/${path}/${sandbox.id}`, method === 'POST' ? archive : undefined, { key: OTHER })).status, 404);
    await sandbox.destroy();
  });

  it('become snapshots', async () => {
    mkdirSync(join(scratch, 'context'), { recursive: true });
    writeFileSync(join(scratch, 'context', 'app.txt'), 'from the build');
    execFileSync('tar', ['czf', join(scratch, 'context.tgz'), '-C', join(scratch, 'context'), '.']);
    const archive = readFileSync(join(scratch, 'context.tgz'));
    const begun = await snapshotBuildInit(api, { runtime: 'base', name: 'built', tag: 'latest', description: 'by hand', encrypt: true });
    assert.ok(begun.snapshotId && begun.uploadUrl);
    const put = await fetch(begun.uploadUrl, { method: 'PUT', headers: { 'content-type': 'application/gzip' }, body: archive });
    assert.equal(put.status, 200, await put.text());
    const options = { snapshotId: begun.snapshotId, sizeBytes: 14, fileCount: 1, files: [] };
    for (const [settings, field] of [[{ env: { 'A=': 'b' } }, 'env'], [{ env: { A: 'x'.repeat(20000) } }, 'env'], [{ metadata: { a: 'x'.repeat(20000) } }, 'metadata'], [{ dependencies: ['a b'] }, 'dependencies']]) {
      const error = await failure(snapshotBuildFinalize(api, { ...options, ...settings }));
      assert.deepEqual([error.status, error.message.includes(field)], [400, true], `${field}: ${error.message}`);
    }
    const snapshot = await snapshotBuildFinalize(api, { ...options, env: { FROM: 'the snapshot', KEPT: 'yes' }, metadata: { commit: 'abc' } });
    assert.deepEqual([snapshot.name, snapshot.tag, snapshot.description], ['built', 'latest', 'by hand']);
    assert.deepEqual(snapshot.userMetadata, { commit: 'abc' });
    assert.deepEqual((await client.getSnapshot('built')).userMetadata, { commit: 'abc' });
    assert.equal((await failure(snapshotBuildFinalize(api, options))).status, 404, 'once');
    const sandbox = await client.create({ snapshot: 'built', env: { FROM: 'the sandbox' } });
    assert.equal(await read(sandbox, 'app.txt'), 'from the build');
    const variables = await sandbox.execute({ command: ['sh', '-c', 'echo $FROM, $KEPT'] });
    assert.equal(await fetchText(variables.stdoutStreamUrl), 'the sandbox, yes\n', 'what the sandbox was given counts more');
    const child = await client.createSnapshot(sandbox.id, { name: 'child' });
    const heir = await client.create({ snapshot: child.snapshotId });
    const inherited = await heir.execute({ command: ['sh', '-c', 'echo $FROM, $KEPT'] });
    assert.equal(await fetchText(inherited.stdoutStreamUrl), 'the snapshot, yes\n', 'and what stands on it passes them on');
    await heir.destroy();
    const bundle = await fetch(`${server.url}/v1/snapshots/${snapshot.snapshotId.slice(4)}/export`, { headers: { authorization: `Bearer ${server.key}` } });
    const carried = await server.request('POST', '/v1/snapshots/import?name=carried', Buffer.from(await bundle.arrayBuffer()), { headers: { 'content-type': 'application/zstd' } });
    assert.deepEqual([carried.json.env, carried.json.metadata], [{ FROM: 'the snapshot', KEPT: 'yes' }, { commit: 'abc' }], 'as a file, it has them, too');
    await sandbox.writeFiles([file('app.txt', 'mine to change')]);
    await sandbox.destroy();
    const other = await snapshotBuildInit(api, { runtime: 'base', name: 'built2' });
    const uploaded = await snapshotUpload(api, { snapshotId: other.snapshotId, body: new Uint8Array(archive), contentLength: archive.length });
    assert.deepEqual(uploaded, { success: true, scanned: false });
    assert.equal((await failure(snapshotBuildInit(api, { runtime: 'python:3.14' }))).status, 404);
    const forged = new URL(begun.uploadUrl).pathname.replace(/.$/, (c) => (c === '0' ? '1' : '0'));
    assert.equal((await fetch(server.url + forged, { method: 'PUT', body: archive })).status, 404);
    const plain = await client.create();
    const wrong = await server.request('PUT', `/agentuity/sandbox/snapshots/${plain.id.slice(4)}/upload`, archive);
    assert.equal(wrong.status, 404, 'not every sandbox is a build');
    await plain.destroy();
    assert.equal((await server.request('POST', `/agentuity/sandbox/snapshots/${other.snapshotId}/finalize`, {}, { key: OTHER })).status, 404);
  });

  it('become snapshots with packages', { timeout: 120000 }, async () => {
    // A template whose apt-get and npm only write down what they are asked for: what real ones do is tested with templates.
    const script = (name) => archived(`bin/${name}`, `#!/bin/sh\necho ${name} "$@" >> /installed\ncase "$*" in *no-such-package*) exit 1;; esac\n`, { mode: 0o755 });
    const imported = await server.request('POST', '/v1/templates/imports?name=noting', tar([...tinyRoot(), script('apt-get'), script('npm')]), { headers: { 'content-type': 'application/x-tar' } });
    assert.equal(imported.status, 201, imported.text);
    const archive = readFileSync(join(scratch, 'context.tgz'));
    const begun = await snapshotBuildInit(api, { runtime: 'noting', name: 'furnished' });
    await snapshotUpload(api, { snapshotId: begun.snapshotId, body: new Uint8Array(archive), contentLength: archive.length });
    const options = { snapshotId: begun.snapshotId, sizeBytes: 14, fileCount: 1, files: [] };
    const failed = await failure(snapshotBuildFinalize(api, { ...options, dependencies: ['no-such-package'] }));
    assert.match(failed.message, /could not be installed/);
    const snapshot = await snapshotBuildFinalize(api, { ...options, dependencies: ['jq'], packages: ['typescript'], env: { A: 'b' } });
    assert.equal(snapshot.name, 'furnished');
    await until('what was needed on the way is gone', async () => !(await client.list()).sandboxes.some((s) => s.runtime.name === 'noting'));
    const sandbox = await client.create({ snapshot: 'furnished' });
    assert.equal(await read(sandbox, 'app.txt'), 'from the build');
    const installed = await read(sandbox, '/installed');
    assert.match(installed, /apt-get -q -y install .*jq\n/);
    assert.match(installed, /npm install -g -- typescript\n/);
    await sandbox.destroy();
    rmSync(scratch, { recursive: true });
  });
});
