// What a build leaves when the server dies in the middle of it: nothing but a build that says so.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { join } from 'node:path';
import { Server, safeReaddir, until } from '../lib/server.mjs';
import { file, tar, tinyRoot } from '../lib/images.mjs';
import { finish } from './support.mjs';

const TAR = { headers: { 'content-type': 'application/x-tar' } };

/** The keeper's disks, as the server's own mounts show them. */
const disks = (server, kind) => safeReaddir(join(`/proc/${server.wardenPid}/root`, server.data, 'disks', kind)).filter((name) => !name.startsWith('.'));

async function importRoot(server, name, more = []) {
  const answer = await server.request('POST', `/v1/templates/imports?name=${name}`, tar([...tinyRoot(), ...more]), TAR);
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}

async function startBuild(server, name, line) {
  const { json, text } = await server.request('POST', '/v1/templates/builds', { name, from: 'tiny', steps: [{ run: 'echo one > /one' }, { run: line }] });
  assert.ok(json.id, text);
  await until('the second step runs', async () => (await server.request('GET', `/v1/templates/builds/${json.id}/log`)).text.includes('begun'));
  return json.id;
}

const killers = {
  front: async (server) => {
    const front = server.frontPid;
    process.kill(front, 'SIGKILL');
    await until('another front answers', async () => {
      try {
        return server.frontPid !== front && (await server.request('GET', '/health')).status === 200;
      } catch {
        return false;
      }
    });
  },
  server: async (server) => {
    await server.crash();
    await server.launch();
  },
};

for (const [who, kill] of Object.entries(killers))
  test(`a_build_that_the_${who}_did_not_survive_has_failed_and_left_nothing`, { timeout: 60000 }, async () => {
    const server = await Server.start({ args: ['--pool', '0'] });
    try {
      await importRoot(server, 'tiny');
      const id = await startBuild(server, 'cut', 'echo begun; sleep 1000');
      assert.equal(disks(server, 'boxes').length, 1, 'the builder');
      await kill(server);
      const after = (await server.request('GET', `/v1/templates/builds/${id}`)).json;
      assert.equal(after.status, 'failed');
      assert.match(after.reason, /the server ended/);
      assert.match((await server.request('GET', `/v1/templates/builds/${id}/log`)).text, /begun/, 'its log is kept');
      await until('the builder is gone', () => disks(server, 'boxes').length === 0);
      // What was there is there: the template, and the first step, which need not be done again.
      assert.equal((await server.run({ template: 'tiny', command: 'echo works' })).stdout, 'works\n');
      const again = await server.request('POST', '/v1/templates/builds', { name: 'cut', from: 'tiny', steps: [{ run: 'echo one > /one' }, { run: 'echo two' }] });
      await until('it is ready', async () => (await server.request('GET', `/v1/templates/builds/${again.json.id}`)).json.status === 'ready');
      assert.match((await server.request('GET', `/v1/templates/builds/${again.json.id}/log`)).text, /\[1\/2\] CACHED/);
      // Nothing of it stays when it is deleted.
      for (const name of ['cut', 'tiny']) assert.equal((await server.request('DELETE', `/v1/templates/${name}`)).status, 204);
      await until('the layers are gone', () => disks(server, 'layers').length === 0);
    } finally {
      await finish(server, { killed: true });
    }
  });

test('an_import_whose_client_or_server_goes_away_leaves_nothing', { timeout: 60000 }, async () => {
  const server = await Server.start({ args: ['--pool', '0'] });
  const begin = async () => {
    const req = http.request(`${server.url}/v1/templates/imports?name=half`, { method: 'POST', headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/x-tar' } });
    req.on('error', () => {});
    req.write(tar(tinyRoot(), { end: false }));
    await until('the builder is there', () => disks(server, 'boxes').length === 1);
    return req;
  };
  try {
    (await begin()).destroy();
    await until('the builder is gone', () => disks(server, 'boxes').length === 0);
    const status = async () => (await server.request('GET', '/v1/templates/half')).json.builds[0].status;
    assert.equal(await status(), 'cancelled');
    await begin();
    await server.crash();
    await server.launch();
    assert.equal(await status(), 'failed');
    await until('the builder is gone', () => disks(server, 'boxes').length === 0);
    assert.equal(disks(server, 'layers').length, 0);
    await importRoot(server, 'half', [file('whole', 'yes')]);
    assert.equal((await server.run({ template: 'half', command: 'cat /whole' })).stdout, 'yes');
  } finally {
    await finish(server, { killed: true });
  }
});

test('a_server_that_is_told_to_stop_ends_its_builds', { timeout: 60000 }, async () => {
  const server = await Server.start({ args: ['--pool', '0'] });
  try {
    await importRoot(server, 'tiny');
    const id = await startBuild(server, 'stopped', 'echo begun; sleep 1000');
    const sandbox = await server.create({ template: 'tiny', name: 'stays' });
    await server.stop();
    await server.launch();
    const after = (await server.request('GET', `/v1/templates/builds/${id}`)).json;
    assert.equal(after.status, 'failed');
    assert.match(after.reason, /stopped/);
    assert.equal((await server.exec(sandbox.id, 'echo still here')).stdout, 'still here\n', 'what stands on a template goes on');
    assert.deepEqual(disks(server, 'boxes'), [sandbox.id]);
  } finally {
    await finish(server);
  }
});

test('a_sandbox_remembers_after_a_restart_what_its_disk_began_with', { timeout: 60000 }, async () => {
  const server = await Server.start({ args: ['--pool', '0'] });
  try {
    await importRoot(server, 'tiny');
    const { json } = await server.request('POST', '/v1/templates/builds', { name: 'made', from: 'tiny', steps: [{ run: 'echo built > /built' }] });
    await until('it is built', async () => (await server.request('GET', `/v1/templates/builds/${json.id}`)).json.status === 'ready');
    const box = await server.create({ template: 'made' });
    await server.exec(box.id, { command: 'echo more > /more', user: 'root' });
    await server.crash();
    await server.launch();
    await server.request('DELETE', '/v1/templates/made');
    const { changes } = (await server.request('GET', `/v1/sandboxes/${box.id}/diff`)).json;
    assert.deepEqual(changes.map((c) => c.path).filter((path) => /built|more/.test(path)), ['/more'], 'only what was changed since');
    assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/discard`)).status, 200);
    assert.equal((await server.exec(box.id, 'cat /built; ls /more 2>/dev/null')).stdout, 'built\n');
  } finally {
    await finish(server, { killed: true });
  }
});
