// Agentuity's own command line. It needs bun and 770 MB of packages, so it is run where somebody has
// installed it:
//     mkdir /tmp/cli && cd /tmp/cli && npm i --ignore-scripts bun @agentuity/cli@2.0.21
//     AGENTUITY_CLI=/tmp/cli node --test tests/sdk/agentuity/cli.test.mjs
// What it asks besides the SDK's calls is asked here in any case.
import { describe, it, after } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SandboxClient } from '@agentuity/server';
import { startServer, until } from './support.mjs';

const server = await startServer();
const client = new SandboxClient();

describe('what the command line asks', () => {
  it('is where it is, who it is, and whose a sandbox is', async () => {
    const get = async (path) => (await server.request('GET', `/agentuity${path}`)).json.data;
    assert.deepEqual(await get('/cli/region'), [{ region: 'local', description: 'this server' }]);
    assert.deepEqual(await get('/cli/organization'), [{ id: 'default', name: 'default' }]);
    const sandbox = await client.create({ name: 'seen' });
    const list = await get('/cli/sandbox?name=seen&limit=10&sort=created&direction=desc');
    assert.equal(list.total, 1);
    const { createdAt, ...rest } = list.sandboxes[0];
    assert.ok(createdAt);
    assert.deepEqual(rest, {
      id: sandbox.id, name: 'seen', description: null, status: 'idle', region: 'local', orgId: 'default', orgName: 'default', projectId: null,
    });
    assert.equal((await get(`/cli/sandbox/${sandbox.id}`)).orgId, 'default');
    await sandbox.destroy();
    for (const id of [sandbox.id, 'sbx_00000000000000000000', 'nonsense']) assert.equal((await server.request('GET', `/agentuity/cli/sandbox/${id}`)).status, 404);
    const run = await client.run({ command: { exec: ['true'] } });
    await until('the run has ended', async () => (await get(`/cli/sandbox/${run.sandboxId}`)).status === 'terminated');
  });
});

const directory = process.env.AGENTUITY_CLI;
const bun = directory && join(directory, 'node_modules/@oven/bun-linux-x64/bin/bun');
const missing = !directory ? 'AGENTUITY_CLI does not say where the command line is installed' : !existsSync(bun) ? `${bun} is not there` : false;

describe('the command line', { skip: missing }, () => {
  const home = mkdtempSync(join(tmpdir(), 'bunker-agentuity-cli-'));
  after(() => rmSync(home, { recursive: true, force: true }));
  const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: '1', ...JSON.parse(server.cli(['env', 'agentuity', '--json']).stdout) };
  /** { code, stdout, stderr } of `agentuity cloud sandbox ARGS`. */
  const run = (args, input) => new Promise((resolve) => {
    const child = execFile(bun, [join(directory, 'node_modules/@agentuity/cli/bin/cli.ts'), 'cloud', 'sandbox', ...args], { env, cwd: home },
      (error, stdout, stderr) => resolve({ code: error ? error.code : 0, stdout, stderr }));
    child.stdin.end(input);
  });
  const ok = async (...args) => {
    const result = await run(args);
    assert.equal(result.code, 0, `${args.join(' ')}\n${result.stdout}\n${result.stderr}`);
    return result.stdout;
  };
  const json = async (...args) => JSON.parse(await ok(...args, '--json'));

  it('runs, creates, executes, lists and deletes', { timeout: 240000 }, async () => {
    assert.match(await ok('run', '--', 'echo', 'hello'), /hello/);
    const { sandboxId: id } = await json('create', '--name', 'by-cli');
    assert.match(id, /^sbx_/);
    assert.match(await ok('exec', id, '--', 'sh', '-c', 'echo from $HOME'), /from \/home\/agentuity/);
    assert.match(await ok('list'), /by-cli|sbx_/);
    assert.match(await ok('get', id), /idle/);
    writeFileSync(join(home, 'local.txt'), 'local content');
    await ok('fs', 'cp', './local.txt', `${id}:remote.txt`);
    await ok('fs', 'cp', `${id}:remote.txt`, './back.txt');
    assert.equal(readFileSync(join(home, 'back.txt'), 'utf8'), 'local content');
    mkdirSync(join(home, 'dir'));
    writeFileSync(join(home, 'dir', 'deep.txt'), 'deep');
    await ok('fs', 'cp', '-r', './dir', `${id}:copied`);
    await ok('fs', 'mkdir', id, 'made');
    assert.match(await ok('fs', 'ls', id), /made/);
    await ok('fs', 'rm', id, 'remote.txt');
    await ok('fs', 'rmdir', id, 'made');
    await ok('fs', 'download', id, './down.tar.gz');
    assert.ok(existsSync(join(home, 'down.tar.gz')));
    await ok('fs', 'upload', id, './down.tar.gz', '--path', 'again');
    await ok('fs', 'download', id, './down.zip', '--path', 'again');
    await ok('fs', 'upload', id, './down.zip', '--path', 'unzipped');
    assert.match(await ok('fs', 'ls', id, 'unzipped'), /copied/);
    await ok('env', id, 'A=b');
    assert.match(await ok('exec', id, '--', 'sh', '-c', 'echo $A'), /b/);
    await ok('pause', id);
    await ok('resume', id);
    await ok('job', 'create', id, '--', 'sleep', '100');
    assert.match(await ok('job', 'list', id), /job_/);
    await ok('checkpoint', 'create', id, 'point');
    assert.match(await ok('checkpoint', 'list', id), /point/);
    await ok('snapshot', 'create', id, '--name', 'cli-snap');
    assert.match(await ok('snapshot', 'list'), /cli-snap/);
    mkdirSync(join(home, 'context'));
    writeFileSync(join(home, 'context', 'app.txt'), 'app');
    writeFileSync(join(home, 'context', 'agentuity-snapshot.yaml'),
      'version: 1\nruntime: base\nname: by-file\nfiles:\n  - "*.txt"\nenv:\n  GREETING: hello\nmetadata:\n  team: red\n');
    await ok('snapshot', 'build', 'context');
    assert.match(await ok('snapshot', 'get', 'by-file'), /team=red/);
    const { sandboxId: built } = await json('create', '--snapshot', 'by-file');
    assert.match(await ok('exec', built, '--', 'sh', '-c', 'cat app.txt; echo " $GREETING"'), /app hello/);
    await ok('delete', built, '--confirm');
    assert.match(await ok('events', id), /create/);
    assert.match(await ok('execution', 'list', id), /exe_/);
    assert.match(await ok('runtime', 'list'), /base/);
    await ok('delete', id, '--confirm');
  });
});
