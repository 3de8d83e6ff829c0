// Everything that can be asked of and done to files besides their content.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Server } from '../lib/server.mjs';
import { finish } from './support.mjs';
import { assertFileError, Files, send } from './files_support.mjs';

let server, files, home;
before(async () => {
  server = await Server.start();
  files = new Files(server, (await server.create()).id);
  home = '/home/user/';
});
after(() => finish(server));

const names = (entries) => entries.map((entry) => entry.path.replace('/home/user/', ''));

describe('stat and exists', () => {
  before(() => files.sh('mkdir -p s && echo 12345 > s/f && chmod 0640 s/f && ln -s f s/link && ln -s nowhere s/broken && touch -d 2001-02-03T04:05:06.789Z s/f'));

  it('tells all about a file', async () => {
    const { json } = await files.ok(files.ask('stat', 's/f'));
    assert.deepEqual(
      { ...json, accessedAt: undefined, changedAt: undefined },
      { name: 'f', path: `${home}s/f`, type: 'file', size: 6, mode: '0640', uid: 1000, gid: 1000, owner: 'user', group: 'user', links: 1, modifiedAt: '2001-02-03T04:05:06.789Z', accessedAt: undefined, changedAt: undefined },
    );
    assert.equal((await files.ok(files.ask('stat', '/'))).json.name, '/');
    assert.equal((await files.ok(files.ask('stat', '/dev/null'))).json.type, 'characterDevice');
  });

  it('tells about a link, or what it leads to', async () => {
    const { json } = await files.ok(files.ask('stat', 's/link'));
    assert.deepEqual([json.type, json.target], ['symlink', 'f']);
    assert.equal((await files.ok(files.ask('stat', 's/link', { follow: true }))).json.type, 'file');
    assertFileError(await files.ask('stat', 's/broken', { follow: true }), 404, 'not_found');
  });

  it('tells whether there is something', async () => {
    const exists = async (path) => (await files.ok(files.ask('exists', path))).json.exists;
    assert.deepEqual([await exists('s'), await exists('s/f'), await exists('s/nope'), await exists('s/broken')], [true, true, false, false]);
  });
});

describe('list', () => {
  before(() => files.sh('mkdir -p l/b/c/d && touch l/a l/z l/b/x l/b/c/y && ln -s a l/link'));

  it('goes as deep as asked, in the order of names', async () => {
    const at = async (options) => names((await files.ok(files.ask('list', 'l', options))).json.entries);
    assert.deepEqual(await at({}), ['l/a', 'l/b', 'l/link', 'l/z']);
    assert.deepEqual(await at({ depth: 2 }), ['l/a', 'l/b', 'l/b/c', 'l/b/x', 'l/link', 'l/z']);
    assert.deepEqual(await at({ depth: 0 }), ['l/a', 'l/b', 'l/b/c', 'l/b/c/d', 'l/b/c/y', 'l/b/x', 'l/link', 'l/z']);
    assert.deepEqual(await at({ depth: 0, type: 'directory' }), ['l/b', 'l/b/c', 'l/b/c/d']);
  });

  it('gives pages that together are all', async () => {
    const seen = [];
    let cursor;
    do {
      const { json } = await files.ok(files.ask('list', 'l', { depth: 0, limit: 3, ...(cursor && { cursor }) }));
      seen.push(...names(json.entries));
      assert.equal(json.truncated, json.nextCursor !== undefined);
      cursor = json.nextCursor;
    } while (cursor);
    assert.deepEqual(seen, ['l/a', 'l/b', 'l/b/c', 'l/b/c/d', 'l/b/c/y', 'l/b/x', 'l/link', 'l/z']);
    assertFileError(await files.ask('list', 'l', { cursor: '!' }), 400, 'invalid_field', 'cursor');
  });

  it('lists a hundred thousand names in pages', { timeout: 60000 }, async () => {
    await files.sh('mkdir many && cd many && seq 100000 | xargs touch');
    let count = 0, cursor, last = '';
    do {
      const { json } = await files.ok(files.ask('list', 'many', { limit: 10000, ...(cursor && { cursor }) }));
      for (const entry of json.entries) {
        assert.ok(entry.name > last);
        last = entry.name;
      }
      count += json.entries.length;
      cursor = json.nextCursor;
    } while (cursor);
    assert.equal(count, 100000);
    await files.ok(files.delete('many', { recursive: true }));
  });

  it('says why it cannot', async () => {
    assertFileError(await files.ask('list', 'l/a'), 400, 'not_a_directory');
    assertFileError(await files.ask('list', 'l/nope'), 404, 'not_found');
    assertFileError(await files.ask('list', '/root'), 403, 'permission_denied');
    assertFileError(await files.ask('list', 'l', { limit: 10001 }), 400, 'invalid_field', 'limit');
    assertFileError(await files.ask('list', 'l', { type: 'x' }), 400, 'invalid_field', 'type');
  });
});

describe('mkdir', () => {
  it('makes what is missing', async () => {
    const { json } = await files.ok(files.post('mkdir', { path: 'm/n/o', mode: '0700' }));
    assert.deepEqual([json.type, json.mode, json.path], ['directory', '0700', `${home}m/n/o`]);
    await files.ok(files.post('mkdir', { path: 'm/n/o' }));
    assertFileError(await files.post('mkdir', { path: 'm/n/o', existOk: false }), 409, 'already_exists');
    assertFileError(await files.post('mkdir', { path: 'q/r', parents: false }), 404, 'not_found');
    await files.ok(files.put('m/file', ''));
    assertFileError(await files.post('mkdir', { path: 'm/file' }), 409, 'already_exists');
    assertFileError(await files.post('mkdir', { path: 'm/file/x' }), 400, 'not_a_directory');
    assertFileError(await files.post('mkdir', {}), 400, 'missing_field', 'path');
    assertFileError(await files.post('mkdir', { path: 'x', recursive: true }), 400, 'unknown_field', 'recursive');
  });
});

describe('move', () => {
  it('renames, makes parents, replaces when asked to', async () => {
    await files.ok(files.put('mv/a', '1'));
    assert.equal((await files.ok(files.post('move', { from: 'mv/a', to: 'mv/x/y/b' }))).json.path, `${home}mv/x/y/b`);
    await files.ok(files.put('mv/c', '2'));
    assertFileError(await files.post('move', { from: 'mv/c', to: 'mv/x/y/b' }), 409, 'already_exists');
    await files.ok(files.post('move', { from: 'mv/c', to: 'mv/x/y/b', overwrite: true }));
    assert.equal(await files.text('mv/x/y/b'), '2');
    assertFileError(await files.post('move', { from: 'mv/nope', to: 'mv/d' }), 404, 'not_found');
    assertFileError(await files.post('move', { from: 'mv', to: 'mv/x/in' }), 400, 'invalid_request');
    await files.sh('mkdir -p mv/full/x mv/dir');
    assertFileError(await files.post('move', { from: 'mv/dir', to: 'mv/full', overwrite: true }), 409, 'directory_not_empty');
  });

  it('works between file systems and with directories of the template', async () => {
    await files.sh('mkdir -p /tmp/t/sub && echo x > /tmp/t/sub/f && ln -s f /tmp/t/sub/l');
    await files.ok(files.post('move', { from: '/tmp/t', to: '/dev/shm/t' }));
    assert.equal(await files.text('/dev/shm/t/sub/f'), 'x\n');
    assert.equal((await files.ok(files.ask('exists', '/tmp/t'))).json.exists, false);
    await files.ok(files.post('move', { from: '/usr/share/doc/bash', to: '/usr/share/doc/moved', user: 'root' }));
    assert.equal((await files.ok(files.ask('exists', '/usr/share/doc/bash'))).json.exists, false);
  });
});

describe('copy', () => {
  it('keeps modes, times, links, hard links and metadata', async () => {
    await files.sh(`mkdir -p cp/t/sub && cd cp/t && echo content > f && chmod 0711 f && ln f sub/hard && ln -s ../f sub/soft && mkfifo pipe && chmod 0750 sub
      touch -d 2001-02-03T04:05:06.123456789Z f sub && touch -d 2002-02-03T04:05:06Z .`);
    await files.ok(send(server, 'PATCH', `${files.base}/fs/metadata`, { path: 'cp/t/f', set: { note: 'kept' } }));
    await files.ok(files.post('copy', { from: 'cp/t', to: 'cp/u' }));
    const shown = (dir) => files.sh(`cd cp/${dir} && find . -printf '%p %M %l %T@ %n\\n' | sort`);
    assert.equal(await shown('u'), await shown('t'));
    assert.deepEqual((await files.ok(files.ask('metadata', 'cp/u/f'))).json.metadata, { note: 'kept' });
    assertFileError(await files.post('copy', { from: 'cp/t', to: 'cp/v', recursive: false }), 400, 'is_a_directory');
    assertFileError(await files.post('copy', { from: 'cp/t/f', to: 'cp/u/f' }), 409, 'already_exists');
    assertFileError(await files.post('copy', { from: 'cp/t', to: 'cp/t/sub/in' }), 400, 'invalid_request');
    assert.deepEqual((await files.sh('ls -A cp')).trim().split('\n'), ['t', 'u']);
  });

  it('gives a file what is in it, also when its size says nothing', async () => {
    await files.ok(files.post('copy', { from: '/proc/cpuinfo', to: 'cp/cpuinfo' }));
    assert.match(await files.text('cp/cpuinfo'), /processor/);
  });
});

describe('remove', () => {
  it('removes a file, an empty directory, or everything', async () => {
    await files.sh('mkdir -p rm/d/e && touch rm/f rm/d/e/g && ln -s d rm/link');
    assert.equal((await files.post('remove', { path: 'rm/f' })).status, 204);
    assertFileError(await files.post('remove', { path: 'rm/f' }), 404, 'not_found');
    assert.equal((await files.post('remove', { path: 'rm/f', missingOk: true })).status, 204);
    assertFileError(await files.post('remove', { path: 'rm/d' }), 409, 'directory_not_empty');
    assert.equal((await files.post('remove', { path: 'rm/link', recursive: true })).status, 204);
    assert.equal((await files.ok(files.ask('exists', 'rm/d/e/g'))).json.exists, true);
    assert.equal((await files.delete('rm', { recursive: true })).status, 204);
    assert.equal((await files.ok(files.ask('exists', 'rm'))).json.exists, false);
    assertFileError(await files.delete('/etc/passwd'), 403, 'permission_denied');
  });

  it('removes a tree that is deeper than any path', { timeout: 60000 }, async () => {
    await files.sh(`python3 -c "
import os
os.mkdir('deep'); os.chdir('deep')
for i in range(5000):
    os.mkdir('d'); os.chdir('d')
"`);
    assert.equal((await files.delete('deep', { recursive: true })).status, 204);
  });
});

describe('chmod, chown, symlink', () => {
  it('changes one file or a tree, and not what links lead to', async () => {
    await files.sh('mkdir -p ch/d && touch ch/d/f ch/outside && ln -s ../outside ch/d/link && chmod 0644 ch/outside');
    assert.equal((await files.ok(files.post('chmod', { path: 'ch/d/f', mode: '0600' }))).json.mode, '0600');
    await files.ok(files.post('chmod', { path: 'ch/d', mode: '0700', recursive: true }));
    assert.equal(await files.sh('stat -c %a ch/d ch/d/f ch/outside'), '700\n700\n644\n');
    assertFileError(await files.post('chmod', { path: '/etc/passwd', mode: '0666' }), 403, 'permission_denied');
    assertFileError(await files.post('chmod', { path: 'ch' }), 400, 'missing_field', 'mode');
  });

  it('changes owners as root', async () => {
    const path = `${home}ch/d`;
    assertFileError(await files.post('chown', { path, owner: 'root' }), 403, 'permission_denied');
    const { json } = await files.ok(files.post('chown', { path, owner: '12:34', recursive: true, user: 'root' }));
    assert.deepEqual([json.uid, json.gid], [12, 34]);
    assert.equal(await files.sh(`stat -c %u:%g ${path}/f ${path}/link ch/outside`, { user: 'root', cwd: '/home/user' }), '12:34\n12:34\n1000:1000\n');
    await files.ok(files.post('chown', { path, owner: 'user', recursive: true, user: 'root' }));
    assertFileError(await files.post('chown', { path, owner: 'nobody-here', user: 'root' }), 400, 'invalid_field', 'owner');
  });

  it('makes links', async () => {
    const { json } = await files.ok(files.post('symlink', { path: 'ln/a/b', target: '../../anything' }));
    assert.deepEqual([json.type, json.target], ['symlink', '../../anything']);
    assertFileError(await files.post('symlink', { path: 'ln/a/b', target: 'x' }), 409, 'already_exists');
    assert.equal((await files.ok(files.post('symlink', { path: 'ln/a/b', target: 'x', overwrite: true }))).json.target, 'x');
    const raw = Buffer.from([0x61, 0xff]);
    const odd = await files.ok(files.post('symlink', { path: 'ln/odd', targetBase64: raw.toString('base64') }));
    assert.equal(odd.json.targetBase64, raw.toString('base64'));
  });
});

describe('find', () => {
  before(() => files.sh('mkdir -p fd/src/x fd/.git && touch fd/a.c fd/src/b.c fd/src/b.h fd/src/x/c.C fd/.git/config'));

  it('finds by pattern', async () => {
    const find = async (body) => names((await files.ok(files.post('find', { path: 'fd', ...body }))).json.entries);
    assert.deepEqual(await find({ pattern: '*.c' }), ['fd/a.c', 'fd/src/b.c']);
    assert.deepEqual(await find({ pattern: '/*.c' }), ['fd/a.c']);
    assert.deepEqual(await find({ pattern: 'src/**/*.{c,C}' }), ['fd/src/b.c', 'fd/src/x/c.C']);
    assert.deepEqual(await find({ pattern: '*.c', ignoreCase: true }), ['fd/a.c', 'fd/src/b.c', 'fd/src/x/c.C']);
    assert.deepEqual(await find({ pattern: '**', type: 'directory' }), ['fd/.git', 'fd/src', 'fd/src/x']);
    assert.deepEqual(await find({ pattern: '*', depth: 1 }), ['fd/.git', 'fd/a.c', 'fd/src']);
    const { json } = await files.ok(files.post('find', { path: 'fd', pattern: '*', limit: 2 }));
    assert.deepEqual([json.entries.length, json.truncated], [2, true]);
    assertFileError(await files.post('find', { path: 'fd', pattern: '' }), 400, 'invalid_field', 'pattern');
    assertFileError(await files.post('find', { path: 'fd' }), 400, 'missing_field', 'pattern');
  });

  it('leaves out the kernel and what may not be read', async () => {
    const found = (await files.ok(files.post('find', { path: '/', pattern: 'passwd', limit: 10000 }))).json.entries.map((e) => e.path);
    assert.ok(found.includes('/etc/passwd'));
    assert.ok(!found.some((path) => path.startsWith('/proc')));
  });
});

describe('grep', () => {
  before(() => files.sh("mkdir -p gr/d && printf 'one\\ntwo words\\nthree\\r\\n' > gr/a.txt && printf 'no\\nTwo\\n\\nlast two' > gr/d/b.md && printf 'two\\0two' > gr/binary && echo two > gr/closed && chmod 0 gr/closed"));

  it('finds lines by text and by expression', async () => {
    const grep = async (body) => (await files.ok(files.post('grep', { path: 'gr', ...body }))).json.matches.map((m) => `${m.path.replace(`${home}gr/`, '')}:${m.line}:${m.column}:${m.text}`);
    assert.deepEqual(await grep({ pattern: 'two' }), ['a.txt:2:1:two words', 'd/b.md:4:6:last two']);
    assert.deepEqual(await grep({ pattern: 'TWO', ignoreCase: true }), ['a.txt:2:1:two words', 'd/b.md:2:1:Two', 'd/b.md:4:6:last two']);
    assert.deepEqual(await grep({ pattern: 't.o' }), []);
    assert.deepEqual(await grep({ pattern: '^t[a-z]+e$', regex: true }), []);
    assert.deepEqual(await grep({ pattern: '^t[a-z]+', regex: true }), ['a.txt:2:1:two words', 'a.txt:3:1:three']);
    assert.deepEqual(await grep({ pattern: 'two', include: '*.md' }), ['d/b.md:4:6:last two']);
    assert.deepEqual(await grep({ path: 'gr/a.txt', pattern: 'three' }), ['a.txt:3:1:three']);
    const { json } = await files.ok(files.post('grep', { path: 'gr', pattern: 'two', limit: 1 }));
    assert.deepEqual([json.matches.length, json.truncated], [1, true]);
    assertFileError(await files.post('grep', { path: 'gr', pattern: '(', regex: true }), 400, 'invalid_field', 'pattern');
    assertFileError(await files.post('grep', { path: 'gr/closed', pattern: 'x' }), 403, 'permission_denied');
  });

  it('gives up a search whose client has gone', { timeout: 30000 }, async () => {
    await files.sh('cd gr && for i in 1 2 3; do yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | head -c 300000000 > endless$i; done');
    const controller = new AbortController();
    const request = fetch(`${server.url}${files.base}/fs/grep`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ path: 'gr', pattern: '(a|aa|aaa)*(a|aa)*b', regex: true }),
      signal: controller.signal,
    }).catch((e) => e);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const busy = () => files.sh("cat /proc/[0-9]*/stat 2>/dev/null | grep -c '(bunker-files) R' || true");
    assert.notEqual((await busy()).trim(), '0');
    controller.abort();
    await request;
    for (let i = 0; i < 50 && (await busy()).trim() !== '0'; i++) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal((await busy()).trim(), '0');
    await files.sh('rm gr/endless*');
  });
});

describe('replace', () => {
  it('counts, and changes what it counted', async () => {
    await files.sh("mkdir -p rp/d && printf 'foo bar foo\\n' > rp/a && printf 'none' > rp/d/b && printf 'foo' > rp/d/c && chmod 0751 rp/a");
    const body = { path: 'rp', pattern: 'foo', replacement: 'quux' };
    let { json } = await files.ok(files.post('replace', { ...body, dryRun: true }));
    assert.deepEqual(json.files.map((f) => [f.path.replace(home, ''), f.replacements]), [['rp/a', 2], ['rp/d/c', 1]]);
    assert.equal(json.replacements, 3);
    assert.equal(await files.text('rp/a'), 'foo bar foo\n');
    ({ json } = await files.ok(files.post('replace', body)));
    assert.equal(json.replacements, 3);
    assert.equal(await files.text('rp/a'), 'quux bar quux\n');
    assert.equal(await files.sh('stat -c %a rp/a'), '751\n');
    await files.ok(files.post('replace', { path: 'rp/a', pattern: '(q)(u+)', replacement: '\\2\\1', regex: true }));
    assert.equal(await files.text('rp/a'), 'uuqx bar uuqx\n');
    await files.ok(files.post('replace', { path: 'rp/a', pattern: 'x', replacement: '', include: '*' }));
    assert.equal(await files.text('rp/a'), 'uuq bar uuq\n');
    assertFileError(await files.post('replace', { path: 'rp', pattern: 'x' }), 400, 'missing_field', 'replacement');
    assertFileError(await files.post('replace', { path: '/etc/passwd', pattern: 'root', replacement: 'x' }), 403, 'permission_denied');
  });
});

describe('metadata', () => {
  const set = (body) => send(server, 'PATCH', `${files.base}/fs/metadata`, body);

  it('is kept with the file', async () => {
    await files.ok(files.put('md/f', ''));
    assert.deepEqual((await files.ok(files.ask('metadata', 'md/f'))).json, { metadata: {} });
    let { json } = await files.ok(set({ path: 'md/f', set: { a: '1', b: 'zwei ü' }, setBase64: { c: Buffer.from([0, 255]).toString('base64') } }));
    assert.deepEqual(json, { metadata: { a: '1', b: 'zwei ü' }, metadataBase64: { c: 'AP8=' } });
    ({ json } = await files.ok(set({ path: 'md/f', unset: ['a', 'never'], set: { b: '' } })));
    assert.deepEqual(json.metadata, { b: '' });
    await files.ok(files.post('move', { from: 'md/f', to: 'md/g' }));
    assert.deepEqual((await files.ok(files.ask('metadata', 'md/g'))).json.metadata, { b: '' });
    // As programs inside see it.
    assert.equal(await files.sh(`python3 -c "import os; print(os.listxattr('md/g'))"`), "['user.b', 'user.c']\n");
  });

  it('is refused where it cannot be', async () => {
    assertFileError(await files.ask('metadata', 'md/nope'), 404, 'not_found');
    await files.sh('mkfifo md/fifo');
    assertFileError(await set({ path: 'md/fifo', set: { a: '1' } }), 403, 'permission_denied');
    assertFileError(await set({ path: '/etc/passwd', set: { a: '1' } }), 403, 'permission_denied');
    assertFileError(await set({ path: 'md/g', set: { '': 'x' } }), 400, 'invalid_field', 'set');
    assertFileError(await set({ path: 'md/g', set: { x: 'y'.repeat(49153) } }), 400, 'invalid_field', 'set');
    assertFileError(await set({ path: 'md/g', setBase64: { x: '!' } }), 400, 'invalid_field', 'setBase64');
    assertFileError(await set({ path: 'md/g', set: { x: 1 } }), 400, 'invalid_field', 'set.x');
  });
});

describe('many files at once', () => {
  it('writes them by JSON, and stops at the first that fails', async () => {
    const many = Array.from({ length: 500 }, (_, i) => ({ path: `bulk/${i % 10}/${i}`, content: `${i}` }));
    const { json } = await files.ok(files.post('write', { files: [...many, { path: 'bulk/bin', content: '/wA=', encoding: 'base64', mode: '0755' }] }));
    assert.equal(json.entries.length, 501);
    assert.equal(json.entries[500].mode, '0755');
    assert.equal(await files.text('bulk/7/497'), '497');
    const answer = await files.post('write', { files: [{ path: 'bulk/ok', content: '1' }, { path: 'bulk/7', content: '2' }, { path: 'bulk/never', content: '3' }] });
    assertFileError(answer, 400, 'is_a_directory', 'files[1]');
    assert.equal(await files.text('bulk/ok'), '1');
    assertFileError(await files.get('bulk/never'), 404, 'not_found');
    // Bad input is refused before anything is written.
    assertFileError(await files.post('write', { files: [{ path: 'bulk/one', content: '1' }, { path: '../x', content: '2' }] }), 400, 'invalid_field', 'files[1].path');
    assertFileError(await files.post('write', { files: [{ path: 'bulk/one', content: '1', mode: '8' }] }), 400, 'invalid_field', 'files[0].mode');
    assertFileError(await files.get('bulk/one'), 404, 'not_found');
  });

  it('takes them as a form', async () => {
    const form = new FormData();
    form.append('ignored', 'a field without a file name');
    form.append('file', new Blob(['one']), 'up/one.txt');
    form.append('file', new Blob([Buffer.alloc(3 << 20, 7)]), '/tmp/up/two words');
    form.append('file', new Blob([]), 'up/empty');
    const answer = await fetch(`${server.url}${files.base}/fs/upload?mode=0600`, { method: 'POST', body: form, headers: { authorization: `Bearer ${server.key}` } });
    const json = await answer.json();
    assert.equal(answer.status, 200, JSON.stringify(json));
    assert.deepEqual(json.entries.map((e) => [e.path, e.size, e.mode]), [[`${home}up/one.txt`, 3, '0600'], ['/tmp/up/two words', 3 << 20, '0600'], [`${home}up/empty`, 0, '0600']]);
    const bad = new FormData();
    bad.append('file', new Blob(['x']), '../up');
    const refused = await fetch(`${server.url}${files.base}/fs/upload`, { method: 'POST', body: bad, headers: { authorization: `Bearer ${server.key}` } });
    assert.equal(refused.status, 400);
    assert.equal((await refused.json()).error.field, 'filename');
    assertFileError(await send(server, 'POST', `${files.base}/fs/upload`, 'x', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type');
  });
});

describe('the sandbox', () => {
  it('must be there, and be the caller\'s', async () => {
    const nowhere = new Files(server, 'a'.repeat(20));
    for (const answer of [nowhere.get('x'), nowhere.put('x', 'y'), nowhere.delete('x'), nowhere.ask('list', '/'), nowhere.post('mkdir', { path: 'x' }), nowhere.ask('tar', '/'), nowhere.ask('watch', '/')])
      assertFileError(await answer, 404, 'not_found');
  });

  it('ends with its operations', { timeout: 30000 }, async () => {
    const box = await server.create();
    const other = new Files(server, box.id);
    await other.sh('head -c 300000000 /dev/zero > f');
    const events = await fetch(`${server.url}${other.base}/fs/watch?path=.`, { headers: { authorization: `Bearer ${server.key}` } });
    const reader = events.body.getReader();
    await reader.read();
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    let text = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += new TextDecoder().decode(part.value);
    assert.match(text, /"code":"not_running"/);
  });

  it('goes on after the front was killed, with nothing left of what was under way', { timeout: 60000 }, async () => {
    const watching = fetch(`${server.url}${files.base}/fs/watch?path=.`, { headers: { authorization: `Bearer ${server.key}` } }).catch((e) => e);
    const writing = files.put('crash', Buffer.alloc(200 << 20), { atomic: true }).catch((e) => e);
    await new Promise((resolve) => setTimeout(resolve, 150));
    process.kill(server.frontPid, 'SIGKILL');
    await Promise.all([watching, writing]);
    for (let i = 0; i < 100; i++) {
      const answer = await files.ask('exists', 'crash').catch(() => undefined);
      if (answer?.status === 200) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.equal((await files.ok(files.ask('exists', 'crash'))).json.exists, false);
    assert.deepEqual((await files.sh('ls -A')).split('\n').filter((name) => name.startsWith('.bunker')), []);
    server.log.text = server.log.text.replaceAll('the front died', 'the front was killed by the test');
  });
});
