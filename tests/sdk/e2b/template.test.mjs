// Template: building, tags, what comes of it, as users of E2B's SDK do it.
import { after, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BuildError, Sandbox, Template, TemplateError, defaultBuildLogger, waitForFile, waitForTimeout } from 'e2b';
import { failure, sleep, startServer, until } from './support.mjs';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const server = await startServer();
const context = mkdtempSync('/tmp/bunker-e2b-context-');
after(() => rmSync(context, { recursive: true, force: true }));
mkdirSync(join(context, 'src/deep'), { recursive: true });
writeFileSync(join(context, 'one.txt'), 'one\n');
writeFileSync(join(context, 'src/a.js'), 'a\n');
writeFileSync(join(context, 'src/b.txt'), 'b\n');
writeFileSync(join(context, 'src/deep/c.js'), 'c\n');

describe('Template.build', () => {
  it('runs its steps, tells how it goes, and sandboxes have what came of it', { timeout: 120000 }, async () => {
    const logs = [];
    const template = Template({ fileContextPath: context })
      .fromBaseImage()
      .setEnvs({ GREETING: 'hello there', EMPTY: '' })
      .setWorkdir('/app')
      .copy('one.txt', '/app/copied.txt', { mode: 0o644, user: 'user' })
      .copy('src', 'source')
      .runCmd('echo built by $(id -un) in $(pwd) with "$GREETING" > /app/proof && echo to the log')
      .runCmd(['mkdir -p /srv/x', 'touch /srv/x/y'], { user: 'root' })
      .setUser('user')
      .setStartCmd('echo started > /tmp/started; sleep 1000', waitForFile('/tmp/started'));
    const info = await Template.build(template, 'my-template', { cpuCount: 1, memoryMB: 512, onBuildLogs: (entry) => logs.push(entry) });
    assert.match(info.templateId, /^[a-z0-9]{20}$/);
    assert.match(info.buildId, UUID);
    assert.ok(logs.some((entry) => entry.message.includes('to the log')), logs.map((entry) => entry.message).join('\n'));
    assert.ok(logs.some((entry) => entry.message.endsWith(' RUN mkdir -p /srv/x && touch /srv/x/y')), logs.map((entry) => entry.message).join('\n'));

    const sandbox = await Sandbox.create('my-template');
    const run = async (command) => (await sandbox.commands.run(command)).stdout;
    assert.equal(await run('cat /app/copied.txt; stat -c %a /app/copied.txt'), 'one\n644\n');
    assert.equal(await run('cd /app/source && find . -type f | sort | tr "\\n" " "'), './a.js ./b.txt ./deep/c.js ');
    assert.match(await run('cat /app/proof'), /^built by \S+ in \/app with hello there\n$/);
    assert.equal(await run('ls /srv/x; echo "$GREETING"; cat /tmp/started'), 'y\nhello there\nstarted\n');
    const details = await sandbox.getInfo();
    assert.deepEqual([details.name, details.memoryMB, details.cpuCount], ['my-template', 512, 1]);
    await sandbox.kill();
  });

  it('knows every kind of step', { timeout: 180000 }, async () => {
    // What would fetch packages from a network that is not there tells what it was asked for instead.
    const tools = ['apt-get', 'pip', 'npm', 'bun'].map((name) => `printf '#!/bin/sh\necho ${name} "$@" >> /asked\n' > /usr/local/bin/${name}; chmod 755 /usr/local/bin/${name}`);
    const template = Template({ fileContextPath: context })
      .fromDockerfile('FROM e2bdev/base\nRUN echo by dockerfile > /docker\nENV D=ocker\nWORKDIR /work\n')
      .runCmd([...tools, 'touch /asked', 'chmod 666 /asked'], { user: 'root' })
      .copyItems([
        { src: 'one.txt', dest: '/items/first' },
        { src: 'src', dest: '/items/all' },
      ])
      .makeDir(['/made/a', '/made/b'], { user: 'root', mode: 0o755 })
      .makeSymlink('/made/a', '/made/link', { user: 'root' })
      .rename('/items/first', '/items/renamed', { user: 'root' })
      .remove('/items/all/b.txt', { user: 'root' })
      .aptInstall(['curl', 'jq'])
      .pipInstall(['numpy'])
      .npmInstall('left-pad', { g: true })
      .bunInstall('elysia', { g: true })
      .runCmd('git init -q -b main /srv/repo && cd /srv/repo && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m first', { user: 'root' })
      .gitClone('/srv/repo', '/srv/clone', { user: 'root' })
      .skipCache()
      .runCmd('date +%N > /fresh', { user: 'root' })
      .setReadyCmd(waitForTimeout(10));
    await Template.build(template, 'every-step');
    const sandbox = await Sandbox.create('every-step');
    const { stdout } = await sandbox.commands.run('cat /docker /items/renamed; readlink /made/link; ls /items/all; test -d /srv/clone/.git && echo cloned; echo $D; cat /asked', { user: 'root' });
    assert.match(stdout, /^by dockerfile\none\n\/made\/a\na.js\ndeep\ncloned\nocker\n/);
    for (const asked of [/apt-get .*install.*curl jq/, /pip install.* numpy/, /npm install -g left-pad/, /bun install -g elysia/]) assert.match(stdout, asked);
    await sandbox.kill();
  });

  it('begins with images that were imported under their names', { timeout: 120000 }, async () => {
    await Template.build(Template().fromBaseImage().runCmd('echo as if from a registry > /image', { user: 'root' }), 'python:3.99');
    await Template.build(Template().fromPythonImage('3.99').runCmd('cat /image'), 'on-python');
    const images = {
      debian: Template().fromDebianImage('bookworm'),
      ubuntu: Template().fromUbuntuImage('24.04'),
      fedora: Template().fromFedoraImage(),
      alpine: Template().fromAlpineImage(),
      arch: Template().fromArchImage(),
      node: Template().fromNodeImage('22'),
      bun: Template().fromBunImage(),
    };
    for (const [name, template] of Object.entries(images)) assert.ok(JSON.parse(await Template.toJSON(template.runCmd('true'))).fromImage.includes(name));
    const aws = Template().fromAWSRegistry('x', { accessKeyId: 'a', secretAccessKey: 'b', region: 'c' });
    const gcp = Template().fromGCPRegistry('x', { serviceAccountJSON: {} });
    for (const template of [aws, gcp]) assert.match((await failure(Template.build(template, 'registries'))).message, /fromImageRegistry/);
    const mcp = Template().fromTemplate('mcp-gateway').addMcpServer('exa');
    assert.match(await Template.toJSON(mcp), /mcp-gateway pull/);
    const container = Template().fromTemplate('devcontainer').betaDevContainerPrebuild('/app').betaSetDevContainerStart('/app');
    assert.match(await Template.toJSON(container), /devcontainer/);
  });

  it('waits for a ready command that takes its time', { timeout: 120000 }, async () => {
    const began = Date.now();
    await Template.build(Template().fromBaseImage().setStartCmd('sleep 1000', waitForTimeout(11_000)), 'slow-start');
    assert.ok(Date.now() - began >= 11_000);
  });

  it('takes files by pattern, and uploads nothing twice', { timeout: 120000 }, async () => {
    const template = () => Template({ fileContextPath: context }).fromTemplate('base').copy('src/*.js', '/js/');
    await Template.build(template(), 'patterns');
    const sandbox = await Sandbox.create('patterns');
    assert.equal((await sandbox.commands.run('ls /js')).stdout, 'a.js\n');
    await sandbox.kill();
    const began = Date.now();
    await Template.build(template(), 'patterns');
    assert.ok(Date.now() - began < 10000);
  });

  it('says which step failed, and why', { timeout: 120000 }, async () => {
    const template = Template().fromBaseImage().runCmd('true').runCmd('echo oh no >&2; exit 3');
    const error = await failure(Template.build(template, 'broken'));
    assert.ok(error instanceof BuildError, String(error));
    assert.match(error.message, /failed to run command 'echo oh no >&2; exit 3': command failed: exit status 3$/);
    const user = await failure(Template.build(Template().fromBaseImage().runCmd('whoami', { user: 'root123' }), 'nobody'));
    assert.match(user.message, /failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'$/);
    assert.equal(await Template.exists('broken'), false);
    const missing = await failure(Template.build(Template().fromImage('docker.io/nobody/has:this'), 'from-nowhere'));
    assert.ok(missing instanceof BuildError, String(missing));
    const foreign = await failure(Template.build(Template().fromImage('x', { username: 'u', password: 'p' }), 'private'));
    assert.match(foreign.message, /fromImageRegistry/);
  });

  it('works in the background', { timeout: 120000 }, async () => {
    const template = Template().fromBaseImage().runCmd('sleep 1; echo done');
    const info = await Template.buildInBackground(template, 'background:v1');
    let status = await Template.getBuildStatus(info, { logsOffset: 0 });
    assert.ok(['building', 'waiting'].includes(status.status), status.status);
    status = await until('it is ready', async () => {
      const now = await Template.getBuildStatus(info);
      return now.status === 'ready' && now;
    }, 30000);
    assert.ok(status.logEntries.some((entry) => entry.message.includes('done')));
    assert.equal(await Template.exists('background:v1'), true);
    assert.equal(typeof defaultBuildLogger(), 'function');
    assert.ok(waitForTimeout(1000));
  });
});

describe('templates', () => {
  it('exist or not', async () => {
    assert.equal(await Template.exists('my-template'), true);
    assert.equal(await Template.exists('base'), true);
    assert.equal(await Template.exists('never-built'), false);
    assert.equal(await Template.aliasExists('my-template'), true);
  });

  it('have tags, which can be moved and removed', { timeout: 120000 }, async () => {
    const first = await Template.build(Template().fromBaseImage().runCmd('echo 1 > /version'), 'tagged', { tags: ['v1', 'stable'] });
    const second = await Template.build(Template().fromBaseImage().runCmd('echo 2 > /version'), 'tagged', { tags: ['v2', 'default'] });
    const version = async (name) => {
      const sandbox = await Sandbox.create(name);
      const { stdout } = await sandbox.commands.run('cat /version');
      await sandbox.kill();
      return stdout.trim();
    };
    assert.equal(await version('tagged:v1'), '1');
    assert.equal(await version('tagged:v2'), '2');
    assert.equal(await version('tagged'), '2');
    assert.equal(await version('tagged:default'), '2');
    const assigned = await Template.assignTags('tagged:v2', ['stable', 'new']);
    assert.deepEqual(assigned, { buildId: second.buildId, tags: ['stable', 'new'] });
    assert.equal(await version('tagged:stable'), '2');
    const tags = await Template.getTags('tagged');
    assert.deepEqual(tags.map((one) => one.tag).sort(), ['default', 'new', 'stable', 'v1', 'v2']);
    assert.equal(tags.find((one) => one.tag === 'v1').buildId, first.buildId);
    for (const { buildId } of [first, second, assigned, ...tags]) assert.match(buildId, UUID);
    await Template.removeTags('tagged', 'new');
    await Template.removeTags('tagged', ['v1']);
    assert.deepEqual((await Template.getTags('tagged')).map((one) => one.tag).sort(), ['default', 'stable', 'v2']);
    assert.ok((await failure(Sandbox.create('tagged:v1'))).statusCode === 404);
    assert.ok((await failure(Template.assignTags('nope:v1', ['x']))) instanceof TemplateError);
    assert.ok((await failure(Template.getTags('nope'))) instanceof TemplateError);
  });

  it('are shown as JSON and as a Dockerfile', async () => {
    const template = Template().fromImage('python:3.12').runCmd('pip --version');
    assert.match(Template.toDockerfile(template), /FROM python:3.12\nRUN pip --version/);
    assert.equal(JSON.parse(await Template.toJSON(template)).fromImage, 'python:3.12');
  });

  it('have builds whose ids are UUIDs, wherever they are told and taken', async () => {
    const headers = { 'x-api-key': process.env.E2B_API_KEY };
    const get = async (path) => (await fetch(`${server.url}${path}`, { headers })).json();
    const listed = await get('/templates');
    for (const { buildID, aliases } of listed) assert.match(buildID, UUID, aliases[0]);
    const tagged = listed.find((one) => one.aliases[0] === 'tagged');
    const status = await get(`/templates/${tagged.templateID}/builds/${tagged.buildID}/status`);
    assert.deepEqual([status.buildID, status.status], [tagged.buildID, 'ready']);
    const missing = await get(`/templates/${tagged.templateID}/builds/00000000-0000-4000-8000-000000000000/status`);
    assert.deepEqual([missing.code, missing.message], [404, `template '${tagged.templateID}' has no such build`]);
  });

  it('are listed, and deleted with all their builds', async () => {
    const headers = { 'x-api-key': process.env.E2B_API_KEY };
    const list = async () => (await (await fetch(`${server.url}/templates`, { headers })).json()).map((one) => one.aliases[0]);
    assert.ok((await list()).includes('patterns'));
    assert.equal(await Sandbox.deleteSnapshot('patterns'), true);
    assert.equal(await Sandbox.deleteSnapshot('patterns'), false);
    assert.equal((await list()).includes('patterns'), false);
    assert.equal(await Template.exists('patterns'), false);
  });
});

describe('uploads', () => {
  it('are opened by their signature, for one hash and a while', async () => {
    const headers = { 'x-api-key': process.env.E2B_API_KEY };
    const hash = 'ab'.repeat(32);
    const { present, url } = await (await fetch(`${server.url}/templates/my-template/files/${hash}`, { headers })).json();
    assert.equal(present, false);
    const put = (to) => fetch(to, { method: 'PUT', body: 'x' });
    const change = (name, value) => {
      const changed = new URL(url);
      changed.searchParams.set(name, value);
      return changed;
    };
    assert.equal((await put(url.replace(hash, 'cd'.repeat(32)))).status, 401);
    assert.equal((await put(change('tenant', 'other'))).status, 401);
    assert.equal((await put(change('expires', '99999999999'))).status, 401);
    assert.equal((await put(change('signature', '0'.repeat(48)))).status, 401);
    assert.equal((await put(url.split('?')[0])).status, 401);
    assert.equal((await fetch(`${server.url}/templates/my-template/files/short`, { headers })).status, 400);
  });
});
