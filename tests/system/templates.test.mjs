// Templates: imported from archives and images, built from steps, tagged, used, deleted.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Server, until } from '../lib/server.mjs';
import { dir, dockerSave, file, ociLayout, sha256, symlink, tar, tinyRoot } from '../lib/images.mjs';
import { assertRefused, clear, finish, remove } from './support.mjs';

let server;
before(async () => {
  server = await Server.start();
  await importRoot('tiny');
});
after(() => finish(server));

const query = (options) => new URLSearchParams(options).toString();

function importArchive(options, bytes) {
  return server.request('POST', `/v1/templates/imports?${query(options)}`, bytes, { headers: { 'content-type': 'application/x-tar' } });
}

async function imported(options, bytes) {
  const answer = await importArchive(options, bytes);
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}

const importRoot = (name, more = []) => imported({ name }, tar([...tinyRoot(), ...more]));

async function run(template, command, options = {}) {
  const result = await server.run({ template, command, ...options });
  assert.equal(result.exitCode, 0, result.stderr);
  return result.stdout;
}

async function ended(build) {
  return until('the build has ended', async () => {
    const { json } = await server.request('GET', `/v1/templates/builds/${build}`);
    return ['ready', 'failed', 'cancelled'].includes(json.status) && json;
  }, 60000);
}

async function build(body) {
  const answer = await server.request('POST', '/v1/templates/builds', body);
  assert.equal(answer.status, 202, answer.text);
  return ended(answer.json.id);
}

async function built(body) {
  const result = await build(body);
  assert.equal(result.status, 'ready', `${result.reason}\n${await logText(result.id)}`);
  return result;
}

async function logOf(id, offset = 0) {
  const entries = [];
  for (;;) {
    const { json } = await server.request('GET', `/v1/templates/builds/${id}/log?offset=${offset}&limit=50`);
    if (json.entries.length === 0) return entries;
    entries.push(...json.entries);
    offset = json.nextOffset;
  }
}
const logText = async (id) => (await logOf(id)).map((e) => `${e.step} ${e.level} ${e.message}`).join('\n');

async function upload(entries, pack = (bytes) => bytes) {
  const bytes = pack(tar(entries));
  const hash = sha256(bytes);
  const answer = await server.request('PUT', `/v1/templates/contexts/${hash}`, bytes, { headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 204, answer.text);
  return hash;
}

// ---- imports ----

test('a_root_becomes_a_template_with_what_every_sandbox_needs', async () => {
  const out = await run('tiny', 'id -un; pwd; cat /etc/hosts; ls -d /dev/null /proc/self /sys /tmp /run; touch /tmp/x; cat /etc/os-release 2>/dev/null; ls /usr');
  assert.match(out, /^user\n\/home\/user\n127\.0\.0\.1\tlocalhost/);
  assert.match(out, /\/dev\/null\n\/proc\/self\n\/run\n\/sys\n\/tmp\n$/, 'nothing of the host below /usr');
});

test('sandboxes_of_a_template_do_not_see_each_other', async () => {
  const one = await server.create({ template: 'tiny' });
  const two = await server.create({ template: 'tiny' });
  await server.exec(one.id, { command: 'echo mine > /bin/mine; rm /bin/wc', user: 'root' });
  const seen = await server.exec(two.id, 'ls /bin/mine /bin/wc');
  assert.match(seen.stdout, /\/bin\/wc/);
  assert.doesNotMatch(seen.stdout, /mine/);
  await clear(server);
});

test('compressed_archives_are_recognised', async () => {
  await imported({ name: 'zipped' }, gzipSync(tar(tinyRoot())));
  assert.equal(await run('zipped', 'echo yes'), 'yes\n');
});

test('owners_modes_links_and_times_are_kept', async () => {
  await importRoot('kept', [
    file('usr/owned', 'x', { uid: 1234, gid: 4321, mode: 0o640, mtime: 1234567890 }),
    file('usr/setuid', 'x', { mode: 0o4755 }),
    { name: 'usr/hard', type: 'link', linkname: 'usr/setuid' },
    symlink('usr/soft', '/usr/owned'),
  ]);
  const out = await run('kept', "stat -c '%u %g %a %Y' /usr/owned; stat -c '%a %h' /usr/setuid; readlink /usr/soft", { user: 'root' });
  assert.equal(out, '1234 4321 640 1234567890\n4755 2\n/usr/owned\n');
});

test('the_user_and_mount_points_are_made_although_links_lead_elsewhere', async () => {
  await imported(
    { name: 'linked' },
    tar([
      ...tinyRoot().filter((e) => !e.name.startsWith('etc')),
      symlink('dev', '/etc'),
      symlink('proc', '../../proc'),
      symlink('etc', 'usr/etc'),
      dir('usr/etc'),
      symlink('usr/etc/resolv.conf', '/run/systemd/resolve/stub-resolv.conf'),
      file('usr/etc/passwd', 'root:x:0:0:root:/root:/bin/sh'),
      symlink('home', '/usr/people'),
      dir('usr/people'),
    ]),
  );
  assert.equal(await run('linked', 'id -un; echo $HOME; cat /etc/passwd; ls -l /dev/null >/dev/null && echo ok'), 'user\n/home/user\nroot:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nok\n');
});

const twoLayers = () => [
  tar([...tinyRoot(), dir('data'), file('data/keep', '1'), file('data/gone', '1'), dir('data/all'), file('data/all/old', '1'), dir('data/file'), file('data/file/inner', '1')]),
  tar([
    file('data/.wh.gone', ''),
    dir('data/all'),
    file('data/all/.wh..wh..opq', ''),
    file('data/all/new', '2'),
    file('data/file', 'now a file'),
    file('data/.wh.never', ''),
    file('data/.wh..wh.aufs', ''),
  ]),
];

const twoLayersSeen = 'find /data | /bin/busybox sort; cat /data/file';
const twoLayersWanted = '/data\n/data/all\n/data/all/new\n/data/file\n/data/keep\nnow a file';

test('an_oci_layout_is_imported_with_its_whiteouts_and_its_configuration', async () => {
  const config = { Env: ['PATH=/bin', 'COLOUR=red'], WorkingDir: '/data', User: '0:0', Cmd: ['sh'], Entrypoint: ['/bin/tini'], ExposedPorts: { '80/tcp': {} } };
  const image = ociLayout(twoLayers(), { config });
  const result = await imported({ name: 'oci', digest: image.digest }, tar(image.entries));
  assert.equal(result.digest, image.digest);
  assert.deepEqual([result.workdir, result.env, result.entrypoint, result.command, result.ports], ['/data', { PATH: '/bin', COLOUR: 'red' }, ['/bin/tini'], ['sh'], ['80/tcp']]);
  assert.equal(await run('oci', twoLayersSeen), twoLayersWanted);
  assert.equal(await run('oci', 'pwd; echo $COLOUR; id -u'), '/data\nred\n0\n');
  assert.equal(await run('oci', 'echo $COLOUR', { env: { COLOUR: 'blue' } }), 'blue\n', "the sandbox's own environment counts more");
});

test('what_docker_save_writes_is_imported', async () => {
  const images = [
    { layers: twoLayers(), tags: ['two:1'] },
    { layers: [tar([...tinyRoot(), file('other', 'x')])], tags: ['other:1', 'other:2'] },
  ];
  await imported({ name: 'saved', ref: 'two:1' }, tar(dockerSave(images)));
  assert.equal(await run('saved', twoLayersSeen), twoLayersWanted);
  assertRefused(await importArchive({ name: 'saved2' }, tar(dockerSave(images))), 400, 'invalid_image');
  assertRefused(await importArchive({ name: 'saved2', ref: 'none' }, tar(dockerSave(images))), 400, 'invalid_image');
  await imported({ name: 'saved3' }, tar(dockerSave(images.slice(1))));
});

test('the_image_of_several_is_chosen_by_its_name', async () => {
  const one = ociLayout([tar([...tinyRoot(), file('one', '')])], { name: 'one' });
  const two = ociLayout([tar([...tinyRoot(), file('two', '')])], {
    name: 'two',
    change: (parts) => {
      parts.index.manifests.push(JSON.parse(one.entries[1].content).manifests[0]);
      for (const entry of one.entries) if (/^blobs\/sha256\/./.test(entry.name)) parts.blobs.set(entry.name.slice(13), entry.content);
    },
  });
  await imported({ name: 'both', ref: 'one' }, tar(two.entries));
  assert.equal(await run('both', 'ls -d /one'), '/one\n');
});

test('a_tag_moves_to_the_newest_import_and_the_old_version_goes', async () => {
  const first = await imported({ name: 'again:1' }, tar([...tinyRoot(), file('v1', '')]));
  const second = await imported({ name: 'again:1' }, tar([...tinyRoot(), file('v2', '')]));
  assert.equal(await run('again:1', 'ls /v1 /v2 2>/dev/null; true'), '/v2\n');
  const { json } = await server.request('GET', '/v1/templates/again');
  assert.deepEqual(json.tags.map((t) => [t.tag, t.build]), [['1', second.id]]);
  assert.ok(!json.builds.some((b) => b.id === first.id && b.status === 'ready'), 'a version without a tag goes when nothing stands on it');
});

// ---- names, tags, deletion ----

test('names_mean_what_they_say_or_are_refused', async () => {
  for (const template of ['python:3.14', 'tiny:2', 'none', 'base:3', 'a b', '../x', ':1', 'tiny:'])
    assertRefused(await server.request('POST', '/v1/sandboxes', { template }), 404, 'template_not_found', 'template');
  const sandbox = await server.create({ template: 'base:latest' });
  assert.equal(sandbox.template, 'base:latest');
  await remove(server, sandbox.id);
  for (const name of ['', '-x', 'a b', 'x:', 'a:b:c', 'x'.repeat(129)]) {
    const answer = await importArchive({ name }, tar(tinyRoot()));
    assert.equal(answer.status, 400, name);
    assert.equal(answer.json.error.field, 'name');
  }
  for (const name of ['base', 'builds', 'imports', 'contexts', 'resolve']) assertRefused(await importArchive({ name }, tar([])), 409, 'name_taken', 'name');
});

test('tags_are_given_moved_listed_and_taken_away', async () => {
  const one = await imported({ name: 'tagged' }, tar(tinyRoot()));
  const put = (tag, body = {}) => server.request('PUT', `/v1/templates/tagged/tags/${tag}`, body);
  assert.equal((await put('prod')).status, 204);
  assert.equal((await put('old', { build: one.id })).status, 204);
  assert.equal((await put('older', { build: 'prod' })).status, 204);
  assertRefused(await put('-bad'), 400, 'invalid_field', 'tag');
  assertRefused(await put('x', { build: 'nothing' }), 404, 'template_not_found', 'template');
  const { json } = await server.request('GET', '/v1/templates/tagged');
  assert.deepEqual(json.tags.map((t) => t.tag), ['latest', 'old', 'older', 'prod']);
  assert.equal(await run('tagged:prod', 'echo ok'), 'ok\n');
  assert.equal((await server.request('DELETE', '/v1/templates/tagged/tags/prod')).status, 204);
  assertRefused(await server.request('DELETE', '/v1/templates/tagged/tags/prod'), 404, 'not_found');
  assertRefused(await server.request('POST', '/v1/sandboxes', { template: 'tagged:prod' }), 404, 'template_not_found', 'template');
  const resolved = await server.request('GET', '/v1/templates/resolve?ref=tagged:old');
  assert.equal(resolved.json.build.id, one.id);
});

test('a_template_that_is_in_use_is_not_deleted', async () => {
  await importRoot('used');
  const sandbox = await server.create({ template: 'used' });
  assertRefused(await server.request('DELETE', '/v1/templates/used'), 409, 'in_use');
  assert.equal((await server.exec(sandbox.id, 'echo alive')).stdout, 'alive\n');
  await remove(server, sandbox.id);
  assert.equal((await server.request('DELETE', '/v1/templates/used')).status, 204);
  assertRefused(await server.request('GET', '/v1/templates/used'), 404, 'template_not_found');
  assertRefused(await server.request('DELETE', '/v1/templates/base'), 403, 'permission_denied');
});

test('templates_belong_to_their_tenant', async () => {
  const other = await Server.start({ args: ['--api-key', 'a=aaaaaaaaaaaaaaaaaaaaaaaa', '--api-key', 'b=bbbbbbbbbbbbbbbbbbbbbbbb', '--pool', '0'] });
  try {
    const as = (key) => ({ key, headers: { 'content-type': 'application/x-tar' } });
    const made = await other.request('POST', '/v1/templates/imports?name=mine', tar(tinyRoot()), as('aaaaaaaaaaaaaaaaaaaaaaaa'));
    assert.equal(made.status, 201, made.text);
    const b = { key: 'bbbbbbbbbbbbbbbbbbbbbbbb' };
    assert.ok((await other.request('GET', '/v1/templates', undefined, b)).json.templates.every((t) => t.builtIn));
    for (const path of ['/v1/templates/mine', `/v1/templates/${made.json.templateId}`, `/v1/templates/builds/${made.json.id}`, `/v1/templates/builds/${made.json.id}/log`])
      assert.equal((await other.request('GET', path, undefined, b)).status, 404, path);
    for (const template of ['mine', made.json.templateId, made.json.id])
      assert.equal((await other.request('POST', '/v1/sandboxes', { template }, b)).status, 404);
    assert.equal((await other.request('DELETE', '/v1/templates/mine', undefined, b)).status, 404);
  } finally {
    await finish(other);
  }
});

// ---- builds ----

test('steps_are_done_one_after_the_other', async () => {
  const context = await upload([dir('src'), file('src/a.txt', 'A'), file('src/b.txt', 'B'), file('one.txt', '1')]);
  const result = await built({
    name: 'stepped:v1',
    from: 'tiny',
    steps: [
      { env: { GREETING: 'hello', EMPTY: '' } },
      { workdir: '/app' },
      { copy: { context, source: 'src', path: '.' } },
      { copy: { context, source: 'one.txt', path: 'sub/', owner: '1000:1000', mode: '0600' } },
      { copy: { context, source: 'one.txt', path: '/app/renamed' } },
      { run: 'echo $GREETING > said; id -u >> said; pwd >> said' },
      { run: ['/bin/sh', '-c', 'id -un > /tmp/who; echo $ONLY >> /tmp/who'], user: 'user', env: { ONLY: 'here' } },
      { setUser: 'root' },
    ],
  });
  assert.equal(result.template, 'stepped');
  assert.deepEqual(result.tags, ['v1']);
  const out = await run('stepped:v1', "pwd; id -un; echo $GREETING; cat said /tmp/who; ls /app; stat -c '%u %a' sub/one.txt a.txt; cat renamed");
  assert.equal(out, '/app\nroot\nhello\nhello\n0\n/app\nuser\nhere\na.txt\nb.txt\nrenamed\nsaid\nsub\n1000 600\n0 644\n1');
});

test('a_build_on_the_built_in_template_keeps_the_host_below', async () => {
  await built({ name: 'onbase', steps: [{ run: 'mkdir -p /opt/x && echo 1 > /opt/x/y && echo "echo tool" > /usr/bin/our-tool && chmod +x /usr/bin/our-tool' }] });
  assert.equal(await run('onbase', 'cat /opt/x/y; our-tool; id -un'), '1\ntool\nuser\n');
});

test('what_was_built_before_is_not_built_again', async () => {
  const context = await upload([file('f', '1')]);
  const steps = [{ run: 'cat /proc/sys/kernel/random/uuid > /stamp' }, { copy: { context, source: 'f', path: '/f' } }, { run: 'cat /proc/sys/kernel/random/uuid > /stamp2' }];
  const stamp = async (name) => run(name, 'cat /stamp /stamp2');
  await built({ name: 'cache1', from: 'tiny', steps });
  const again = await built({ name: 'cache2', from: 'tiny', steps });
  assert.equal(await stamp('cache1'), await stamp('cache2'));
  assert.equal((await logText(again.id)).match(/CACHED/g).length, 3);
  // Another beginning, another end, another content, force, no cache.
  const first = await stamp('cache1');
  await built({ name: 'cache3', from: 'tiny', steps: [...steps.slice(0, 2), { run: 'cat /proc/sys/kernel/random/uuid > /stamp2; true' }] });
  assert.equal((await stamp('cache3')).split('\n')[0], first.split('\n')[0]);
  assert.notEqual(await stamp('cache3'), first);
  const changed = await upload([file('f', '2')]);
  await built({ name: 'cache4', from: 'tiny', steps: [steps[0], { copy: { context: changed, source: 'f', path: '/f' } }, steps[2]] });
  assert.equal((await stamp('cache4')).split('\n')[0], first.split('\n')[0]);
  assert.notEqual((await stamp('cache4')).split('\n')[1], first.split('\n')[1]);
  await built({ name: 'cache5', from: 'tiny', steps, noCache: true });
  assert.notEqual((await stamp('cache5')).split('\n')[0], first.split('\n')[0]);
  await built({ name: 'cache6', from: 'tiny', steps: [{ ...steps[0], force: true }, ...steps.slice(1)] });
  assert.notEqual((await stamp('cache6')).split('\n')[0], first.split('\n')[0]);
});

test('a_step_that_fails_fails_the_build_and_says_which_and_why', async () => {
  const result = await build({ name: 'failing', from: 'tiny', steps: [{ run: 'echo before' }, { run: 'echo out; echo complaint >&2; exit 7' }, { run: 'echo never' }] });
  assert.equal(result.status, 'failed');
  assert.equal(result.failedStep, '2');
  assert.match(result.reason, /status 7/);
  const log = await logOf(result.id);
  assert.deepEqual(log.filter((e) => e.step === '2').map((e) => [e.level, e.message]).slice(1, 3).sort(), [['info', 'out'], ['warn', 'complaint']]);
  assert.ok(!log.some((e) => /never/.test(e.message)));
  assert.deepEqual(log.map((e) => e.number), log.map((_, i) => i));
  assertRefused(await server.request('POST', '/v1/sandboxes', { template: 'failing' }), 404, 'template_not_found', 'template');
  const unknown = await build({ name: 'failing', from: 'tiny', steps: [{ run: 'true', user: 'nobody-here' }] });
  assert.match(unknown.reason, /invalid username: 'nobody-here'/);
});

test('a_build_has_no_network_of_its_own', async () => {
  const result = await build({ name: 'offline', from: 'tiny', steps: [{ run: `wget -T 2 -q -O- http://127.0.0.1:${server.port}/health` }] });
  assert.equal(result.status, 'failed');
});

test('a_command_that_is_killed_ends_its_build', async () => {
  const killed = await build({ name: 'killed', from: 'tiny', steps: [{ run: 'kill -9 $$' }] });
  assert.equal(killed.status, 'failed');
  assert.match(killed.reason, /signal 9/);
  const greedy = await build({ name: 'killed', from: 'tiny', resources: { memory: '64Mi' }, steps: [{ run: 'tail -c 200m /dev/zero' }] });
  assert.match(greedy.reason, /more memory/);
  const beyond = { name: 'killed', from: 'tiny', resources: { memory: '65Gi' }, steps: [{ run: 'true' }] };
  assertRefused(await server.request('POST', '/v1/templates/builds', beyond), 400, 'invalid_field', 'resources.memory');
});

test('a_build_that_writes_very_many_lines_keeps_nobody_waiting', async () => {
  const answer = await server.request('POST', '/v1/templates/builds', { name: 'chatty', from: 'tiny', steps: [{ run: 'yes | head -n 300000; printf "last\\r\\nno feed"' }] });
  let worst = 0;
  const end = await until('the build has ended', async () => {
    const began = Date.now();
    const { json } = await server.request('GET', `/v1/templates/builds/${answer.json.id}`);
    worst = Math.max(worst, Date.now() - began);
    return ['ready', 'failed', 'cancelled'].includes(json.status) && json;
  }, 60000);
  assert.equal(end.status, 'ready', end.reason);
  assert.ok(worst < 3000, `somebody waited ${worst} ms`);
  const last = await logOf(answer.json.id, end.logEntries - 4);
  assert.deepEqual(last.map((e) => e.message), ['y', 'last', 'no feed', 'ready']);
});

test('the_log_comes_live_and_ends_with_the_build', async () => {
  const answer = await server.request('POST', '/v1/templates/builds', { name: 'live', from: 'tiny', steps: [{ run: 'echo first; sleep 1; echo second' }] });
  const id = answer.json.id;
  const response = await fetch(`${server.url}/v1/templates/builds/${id}/log`, { headers: { authorization: `Bearer ${server.key}`, accept: 'application/x-ndjson' } });
  assert.equal(response.headers.get('content-type'), 'application/x-ndjson');
  let text = '';
  let firstAt, secondAt;
  for await (const chunk of response.body) {
    text += Buffer.from(chunk).toString();
    if (text.includes('"first"') && !firstAt) firstAt = Date.now();
    if (text.includes('"second"') && !secondAt) secondAt = Date.now();
  }
  assert.ok(secondAt - firstAt > 500, 'the first line came before the second was written');
  const events = text.trim().split('\n').map((line) => JSON.parse(line));
  assert.equal(events.at(-1).type, 'end');
  assert.equal(events.at(-1).build.status, 'ready');
});

test('a_build_can_be_cancelled_and_takes_too_long_only_once', async () => {
  const answer = await server.request('POST', '/v1/templates/builds', { name: 'endless', from: 'tiny', steps: [{ run: 'echo begun; sleep 1000' }] });
  await until('it has begun', async () => (await logText(answer.json.id)).includes('begun'));
  assert.equal((await server.request('DELETE', `/v1/templates/builds/${answer.json.id}`)).status, 204);
  assert.equal((await ended(answer.json.id)).status, 'cancelled');
  const late = await build({ name: 'endless', from: 'tiny', timeout: '1s', steps: [{ run: 'sleep 1000' }] });
  assert.equal(late.status, 'failed');
  assert.match(late.reason, /too long/);
});

test('the_start_command_is_tried_at_the_build_and_runs_in_every_sandbox', async () => {
  const start = 'echo $$ > /tmp/pid; sleep 0.3; touch /tmp/ready; exec sleep 1000';
  await built({ name: 'started', from: 'tiny', steps: [{ run: 'true' }], start, ready: 'test -e /tmp/ready' });
  const sandbox = await server.create({ template: 'started' });
  const seen = await server.exec(sandbox.id, 'cat /tmp/pid; test -e /tmp/ready && kill -0 $(cat /tmp/pid) && echo alive');
  assert.match(seen.stdout, /^\d+\nalive\n$/);
  await remove(server, sandbox.id);
  assert.match(await run('started', 'test -e /tmp/ready && echo yes'), /yes/, 'also for a single command');
  const sandboxes = async () => (await server.request('GET', '/v1/sandboxes')).json.sandboxes;
  const allGone = async () => (await sandboxes()).length === 0;
  await until('its sandbox went with the command, although the start command still ran', allGone);
  const cut = server.run({ template: 'started', command: 'touch /tmp/began; until test -e /tmp/go; do sleep 0.1; done' }).catch(() => {});
  const { id } = await until('there is another one', async () => (await sandboxes()).find((s) => s.status === 'running'));
  await until('its command runs', async () => (await server.exec(id, 'test -e /tmp/began')).exitCode === 0);
  await server.crash();
  await server.launch();
  await cut;
  await server.exec(id, 'touch /tmp/go');
  await until('it goes with its command also after a restart', allGone);
  const bad = await build({ name: 'unready', from: 'tiny', steps: [], start: 'sleep 1000', ready: 'echo not yet >&2; false', readyTimeout: '1s' });
  assert.equal(bad.status, 'failed');
  assert.equal(bad.failedStep, 'finalize');
  assert.match(bad.reason, /not yet/);
  const began = Date.now();
  const slow = await build({ name: 'unready', from: 'tiny', steps: [], start: 'sleep 1000', ready: 'sleep 1000', readyTimeout: '1s' });
  assert.equal(slow.status, 'failed');
  assert.match(slow.reason, /did not become ready in time/);
  assert.ok(Date.now() - began < 8000, 'one try may take all of the time, but not more');
  const dead = await build({ name: 'unready', from: 'tiny', steps: [], start: 'exit 3', ready: 'false' });
  assert.match(dead.reason, /status 3/);
});

test('copies_merge_as_docker_does', async () => {
  const context = await upload([dir('d'), dir('d/sub'), file('d/sub/x', 'X'), file('d/y', 'Y', { mode: 0o755 }), symlink('d/link', 'y'), file('z', 'Z')], gzipSync);
  await built({
    name: 'merged',
    from: 'tiny',
    steps: [
      { run: 'mkdir -p /have/sub && echo old > /have/sub/old && mkdir /isdir' },
      { copy: { context, source: 'd', path: '/have' } },
      { copy: { context, source: 'z', path: '/isdir' } },
      { copy: { context, source: '.', path: '/everything/' } },
      { copy: { context, source: 'd/', path: '/modes', mode: '0700', owner: 'user' } },
    ],
  });
  const out = await run('merged', "find /have /isdir /everything | /bin/busybox sort; stat -c '%U %a' /modes/y /modes/sub; readlink /have/link", { user: 'root' });
  assert.equal(
    out,
    '/everything\n/everything/d\n/everything/d/link\n/everything/d/sub\n/everything/d/sub/x\n/everything/d/y\n/everything/z\n' +
      '/have\n/have/link\n/have/sub\n/have/sub/old\n/have/sub/x\n/have/y\n/isdir\n/isdir/z\nuser 700\nuser 700\ny\n',
  );
  const missing = await build({ name: 'merged', from: 'tiny', steps: [{ copy: { context, source: 'nothing', path: '/x' } }] });
  assert.match(missing.reason, /nothing/);
});

test('a_template_can_stand_on_another_that_is_deleted_later', async () => {
  await built({ name: 'lower', from: 'tiny', steps: [{ run: 'echo low > /low' }] });
  await built({ name: 'upper', from: 'lower', steps: [{ run: 'echo up > /up' }] });
  assert.equal((await server.request('DELETE', '/v1/templates/lower')).status, 204);
  assert.equal(await run('upper', 'cat /low /up'), 'low\nup\n');
});

test('bad_requests_change_nothing', async () => {
  const before = (await server.request('GET', '/v1/templates')).json.templates.length;
  const post = (body) => server.request('POST', '/v1/templates/builds', body);
  assertRefused(await post({}), 400, 'missing_field', 'name');
  assertRefused(await post({ name: 'n', from: 'nowhere' }), 404, 'template_not_found', 'template');
  assertRefused(await post({ name: 'n', steps: [{}] }), 400, 'invalid_field', 'steps[0].');
  assertRefused(await post({ name: 'n', steps: [{ run: 'x', workdir: '/y' }] }), 400, 'invalid_field', 'steps[0].');
  assertRefused(await post({ name: 'n', steps: [{ run: [] }] }), 400, 'invalid_field', 'run');
  assertRefused(await post({ name: 'n', steps: [{ copy: { context: 'a'.repeat(64), path: '/x' } }] }), 404, 'not_found', 'steps');
  assertRefused(await post({ name: 'n', ready: 'x' }), 400, 'invalid_field', 'ready');
  assertRefused(await post({ name: 'n', steps: Array(501).fill({ run: 'true' }) }), 400, 'invalid_field', 'steps');
  assertRefused(await server.request('PUT', `/v1/templates/contexts/${'a'.repeat(64)}`, 'other'), 400, 'digest_mismatch', 'hash');
  assertRefused(await server.request('PUT', '/v1/templates/contexts/short', 'other'), 400, 'invalid_field', 'hash');
  assertRefused(await server.request('GET', `/v1/templates/contexts/${'a'.repeat(64)}`), 404, 'not_found');
  const kept = join(server.data, 'front', 'contexts', sha256('default').slice(0, 16));
  for (let i = 0; i < 1000; i++) writeFileSync(`${kept}-${i}`, '');
  assertRefused(await server.request('PUT', `/v1/templates/contexts/${sha256('new')}`, 'new'), 429, 'quota_exceeded');
  for (let i = 0; i < 1000; i++) rmSync(`${kept}-${i}`);
  assertRefused(await server.request('POST', '/v1/sandboxes', { packages: ['-x'] }), 400, 'invalid_field', 'packages');
  assert.equal((await server.request('GET', '/v1/templates')).json.templates.length, before);
});
