// J109: archives and images made to do harm: each must be refused or harmless, and the server as it was.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createGzip, gzipSync } from 'node:zlib';
import { Readable } from 'node:stream';
import http from 'node:http';
import { Server } from '../lib/server.mjs';
import { dir, dockerSave, file, ociLayout, sha256, symlink, tar, tarHeader, tinyRoot } from '../lib/images.mjs';
import { finish } from '../system/support.mjs';

let server, outside, counter = 0;
before(async () => {
  outside = mkdtempSync('/tmp/bunker-outside-');
  server = await Server.start({ args: ['--disk', '64Mi', '--max-disk', '64Mi'] });
});
after(async () => {
  rmSync(outside, { recursive: true, force: true });
  await finish(server);
});

function send(body, query = '') {
  return server.request('POST', `/v1/templates/imports?name=evil${++counter}${query}`, body, { headers: { 'content-type': 'application/x-tar' } });
}

async function refused(body, code, query) {
  const answer = await send(body, query);
  assert.ok([400, 403, 404, 422, 507].includes(answer.status), `${answer.status} ${answer.text}`);
  if (code) assert.equal(answer.json.error.code, code, answer.text);
  const { json } = await server.request('GET', '/v1/templates');
  assert.ok(!json.templates.some((t) => t.status === 'ready' && t.name === `evil${counter}`));
  const create = await server.request('POST', '/v1/sandboxes', { template: `evil${counter}` });
  assert.equal(create.status, 404);
  return answer.json.error;
}

async function accepted(body, command, options = {}) {
  const answer = await send(body);
  assert.equal(answer.status, 201, answer.text);
  return (await server.run({ template: `evil${counter}`, command, user: 'root', ...options })).stdout;
}

test('J109 control: an honest archive is a template', async () => {
  assert.equal(await accepted(tar([...tinyRoot(), file('usr/x', 'fine')]), 'cat /usr/x'), 'fine');
});

test('J109_members_that_lead_out_are_refused', async () => {
  for (const name of ['../evil', '/evil', 'usr/../../evil', `${'../'.repeat(20)}${outside.slice(1)}/evil`, `${outside}/evil`])
    await refused(tar([...tinyRoot(), file(name, 'x')]), 'invalid_archive');
  await refused(tar([...tinyRoot(), { name: '.', type: 'symlink', linkname: '/' }, file('etc/evil', 'x')]), 'invalid_archive');
  assert.ok(!existsSync('/evil') && !existsSync(`${outside}/evil`));
});

test('J109_links_lead_nowhere_but_into_the_image', async () => {
  const cases = [
    [symlink('usr/link', outside), file('usr/link/evil', 'x')],
    [symlink('usr/link', `../../../../../../../..${outside}`), file('usr/link/evil', 'x')],
    [symlink('usr/link', '/proc/self/root'), file('usr/link/evil', 'x')],
    [symlink('usr/link', '/'), symlink('usr/two', 'link/../..'), dir('usr/two/evil')],
  ];
  for (const entries of cases) {
    const answer = await send(tar([...tinyRoot(), dir(outside.slice(1)), ...entries]));
    assert.ok([201, 400, 404].includes(answer.status), answer.text);
    assert.ok(!existsSync(`${outside}/evil`));
  }
  // Inside of it they are followed: the file is where a sandbox would find it.
  assert.equal(await accepted(tar([...tinyRoot(), dir('real'), symlink('usr/link', '/real'), file('usr/link/f', 'here')]), 'cat /real/f'), 'here');
});

test('J109_a_link_that_takes_a_files_place_is_not_written_through', async () => {
  const out = await accepted(
    tar([...tinyRoot(), file('usr/target', 'safe'), symlink('usr/swap', 'target'), file('usr/swap', 'new')]),
    'cat /usr/target; cat /usr/swap; test -L /usr/swap || echo file',
  );
  assert.equal(out, 'safenewfile\n');
});

test('J109_hard_links_reach_nothing_outside', async () => {
  for (const linkname of ['/etc/shadow', '../../etc/shadow', '../import/x', 'usr/none'])
    await refused(tar([...tinyRoot(), { name: 'usr/hard', type: 'link', linkname }]));
  const out = await accepted(tar([...tinyRoot(), file('usr/a', 'a'), { name: 'usr/b', type: 'link', linkname: '/usr/a' }]), 'stat -c %h /usr/b');
  assert.equal(out, '2\n');
});

test('J109_devices_are_left_out', async () => {
  const out = await accepted(
    tar([...tinyRoot(), { name: 'usr/mem', type: 'char', major: 1, minor: 1 }, { name: 'usr/disk', type: 'block', major: 254, minor: 0 }, { name: 'usr/whiteout', type: 'char', major: 0, minor: 0 }, { name: 'usr/pipe', type: 'fifo' }]),
    'ls /usr',
  );
  assert.equal(out, 'pipe\n');
});

test('J109_whiteouts_remove_within_the_image_and_nowhere_else', async () => {
  const base = tar([...tinyRoot(), dir('d'), file('d/x', '1'), symlink('out', outside), dir(outside.slice(1)), file(`${outside.slice(1)}/inner`, '1')]);
  for (const name of ['d/.wh..', 'd/.wh.', 'd/.wh...'])
    await refused(tar(ociLayout([base, tar([file(name, '')])]).entries), 'invalid_archive');
  const layer = tar([file('out/.wh.inner', ''), file('.wh.out', ''), file('d/.wh..wh..opq', ''), file('d/.wh.../evil', '')].slice(0, 3));
  const out = await accepted(tar(ociLayout([base, layer]).entries), `ls -A /d /out ${outside} 2>&1; ls /bin/sh`);
  assert.match(out, /\/bin\/sh\n$/);
  assert.doesNotMatch(out, /inner|\bx\b/);
  assert.ok(existsSync(outside));
  // All of the image may go; then there is nothing to run.
  const empty = await send(tar(ociLayout([base, tar([file('.wh..wh..opq', '')])]).entries));
  assert.equal(empty.status, 201, empty.text);
  assert.notEqual((await server.request('POST', '/v1/run', { template: `evil${counter}`, command: ['/bin/sh'] })).json?.exitCode, 0);
});

test('J109_what_the_root_needs_is_made_whatever_stands_there', async () => {
  const without = (name) => tinyRoot().filter((e) => e.name !== name);
  await refused(tar([...without('etc/passwd'), { name: 'etc/passwd', type: 'fifo' }]), 'not_a_regular_file');
  assert.equal(await accepted(tar([...without('etc/passwd'), symlink('etc/passwd', '/dev/zero')]), 'id -u user; test -L /etc/passwd || echo file'), '1000\nfile\n');
  await refused(tar([...without('etc/passwd'), dir('etc/passwd')]));
  const out = await accepted(
    tar([...tinyRoot(), { name: 'dev', type: 'fifo' }, file('proc', 'x'), symlink('sys', '/bin'), symlink('tmp', 'nowhere'), dir('etc/hosts'), file('etc/hosts/x', '1')]),
    'cat /etc/hosts | wc -l; test -c /dev/null && test -d /proc/1 && touch /tmp/x && echo right',
  );
  assert.equal(out, '2\nright\n');
});

test('J109_compression_bombs_end_at_the_disk_limit', { timeout: 60000 }, async () => {
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.frontPid}/status`, 'utf8'))[1]);
  const before = rss();
  const size = 2 ** 30;
  function* bomb() {
    yield tarHeader({ name: 'usr/bomb', size });
    const zeros = Buffer.alloc(1 << 20);
    for (let i = 0; i < 1024; i++) yield zeros;
    yield Buffer.alloc(1024);
  }
  const answer = await new Promise((resolve, reject) => {
    const req = http.request(`${server.url}/v1/templates/imports?name=bomb`, { method: 'POST', headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/x-tar' } }, (res) => {
      let text = '';
      res.on('data', (part) => (text += part));
      res.on('end', () => resolve({ status: res.statusCode, text }));
    });
    let done = false;
    req.on('response', () => (done = true));
    req.on('error', (e) => done || reject(e));
    Readable.from(bomb()).pipe(createGzip({ level: 1 })).pipe(req);
  });
  assert.equal(answer.status, 507, answer.text);
  assert.match(answer.text, /no_space/);
  const grown = rss() - before;
  // What a sanitizer keeps of freed memory is up to 256 MiB; the archive is a gigabyte.
  const sanitized = /asan/.test(readFileSync(`/proc/${server.frontPid}/maps`, 'utf8'));
  assert.ok(grown < (sanitized ? 320 : 64) * 1024, `the front has grown by ${grown} KiB`);
});

test('J109_sizes_that_lie_are_noticed', async () => {
  await refused(tar([...tinyRoot(), file('usr/short', 'x', { size: 10 ** 9 })], { end: false }), 'invalid_archive');
  await refused(Buffer.concat([tar(tinyRoot(), { end: false }), tarHeader({ name: 'usr/huge', size: 0o77777777777 })]), 'invalid_archive');
  const broken = tar(tinyRoot());
  broken[148] ^= 1;
  await refused(broken, 'invalid_archive');
  await refused(gzipSync(tar(tinyRoot())).subarray(0, 500000), 'invalid_archive');
  await refused(Buffer.from('this is no archive at all, but long enough to be looked at'.repeat(20)), 'invalid_archive');
  await refused(Buffer.concat([tarHeader({ name: 'x', type: 'x', size: 10 ** 8 }), Buffer.alloc(2048)]), 'invalid_archive');
});

const layers = () => [tar(tinyRoot()), tar([file('usr/second', '2')])];
const flip = (bytes) => {
  const copy = Buffer.from(bytes);
  copy[copy.length >> 1] ^= 1;
  return copy;
};

test('J109_every_digest_of_an_image_is_checked', async () => {
  assert.equal(await accepted(tar(ociLayout(layers()).entries), 'cat /usr/second'), '2');
  const change = (pick) => tar(ociLayout(layers(), { gzip: false, change: (parts) => pick(parts) }).entries);
  const swap = (parts, hex, bytes) => parts.blobs.set(hex, bytes);
  const hexOf = (descriptor) => descriptor.digest.slice(7);
  // A layer, the configuration, the manifest: other bytes under the same name.
  await refused(change((p) => swap(p, hexOf(p.manifest.layers[1]), flip(p.blobs.get(hexOf(p.manifest.layers[1]))))), 'digest_mismatch');
  await refused(change((p) => swap(p, hexOf(p.manifest.config), Buffer.from(p.blobs.get(hexOf(p.manifest.config)).toString().replace('linux', 'Linux')))), 'digest_mismatch');
  await refused(change((p) => swap(p, p.digest.slice(7), Buffer.from(p.blobs.get(p.digest.slice(7)).toString() + ' '))), 'digest_mismatch');
  // Sizes that lie; a layer that is missing; digests without compression that are of another layer.
  const rewrite = (edit) =>
    change((p) => {
      const manifest = JSON.parse(JSON.stringify(p.manifest));
      edit(manifest, p);
      const bytes = Buffer.from(JSON.stringify(manifest));
      p.blobs.set(sha256(bytes), bytes);
      Object.assign(p.index.manifests[0], { digest: `sha256:${sha256(bytes)}`, size: bytes.length });
    });
  await refused(rewrite((m) => (m.layers[0].size += 1)), 'digest_mismatch');
  await refused(rewrite((m) => (m.layers[0].digest = `sha256:${'0'.repeat(64)}`)));
  await refused(rewrite((m) => m.layers.reverse()), 'digest_mismatch');
  await refused(rewrite((m) => (m.layers[0].digest = 'sha256:../../../../etc/passwd')), 'invalid_image');
  await refused(rewrite((m) => m.layers.pop()), 'invalid_image');
  await refused(change((p) => (p.index.manifests[0].digest = 'md5:x')), 'invalid_image');
  // What docker saves has the digests of its layers in the configuration.
  const saved = dockerSave([{ layers: layers(), tags: ['x:1'] }]);
  const at = saved.findIndex((e) => e.name.endsWith('layer.tar'));
  await refused(tar(saved.map((e, i) => (i === at ? { ...e, content: flip(e.content) } : e))), 'digest_mismatch');
});

test('J109_an_image_names_no_file_but_its_own', async () => {
  const manifest = (value) => tar([file('manifest.json', JSON.stringify(value))]);
  for (const path of ['../../etc/passwd', '/etc/passwd', 'a/../../b', ''])
    await refused(manifest([{ Config: path, Layers: [] }]), 'invalid_image');
  await refused(tar([symlink('c.json', '/etc/passwd'), file('manifest.json', JSON.stringify([{ Config: 'c.json', Layers: [] }]))]));
  await refused(tar([{ name: 'manifest.json', type: 'fifo' }]));
  await refused(tar([symlink('manifest.json', '/dev/zero')]));
  await refused(manifest('x'.repeat(5 << 20)), 'invalid_image');
  await refused(tar([file('oci-layout', '{}'), file('index.json', '[['.repeat(5000))]), 'invalid_image');
});

test('J109_files_for_copy_are_as_harmless', async () => {
  await send(tar(tinyRoot()));
  const from = `evil${counter}`;
  for (const entries of [[file('../evil', 'x')], [file(`${outside}/evil`, 'x')], [symlink('l', outside), file('l/evil', 'x')]]) {
    const bytes = tar(entries);
    const hash = sha256(bytes);
    await server.request('PUT', `/v1/templates/contexts/${hash}`, bytes, { headers: { 'content-type': 'application/x-tar' } });
    const made = await server.request('POST', '/v1/templates/builds', { name: 'copied', from, steps: [{ copy: { context: hash, path: '/app/' } }] });
    for (;;) {
      const { json } = await server.request('GET', `/v1/templates/builds/${made.json.id}`);
      if (['ready', 'failed'].includes(json.status)) {
        assert.equal(json.status, 'failed');
        break;
      }
    }
    assert.ok(!existsSync(`${outside}/evil`) && !existsSync('/evil'));
  }
});
