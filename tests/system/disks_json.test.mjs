// Sandboxes as one JSON object: out, and in again, here and in other hands.
import assert from 'node:assert/strict';
import http from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Server, until } from '../lib/server.mjs';
import { assertRefused, finish, list } from './support.mjs';

let server;
before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
});
after(() => finish(server));

const base64 = (text) => Buffer.from(text).toString('base64');
const importing = (object, query = '') => server.request('POST', `/v1/sandboxes/import${query}`, object);
const imported = async (object, query) => {
  const answer = await importing(object, query);
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
};
const exported = async (id, query = '') => {
  const answer = await server.request('GET', `/v1/sandboxes/${id}/export${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer;
};
const sh = async (box, command, user = 'root') => {
  const r = await server.exec(box.id, { command, user });
  assert.equal(r.exitCode, 0, r.stderr);
  return r.stdout;
};
const drop = (...boxes) => Promise.all(boxes.map((box) => server.request('DELETE', `/v1/sandboxes/${box.id}`)));
// Everything there is to see of a tree, its names as they are.
const shape = (top) => `cd ${top} && { find . -type l -printf '%p %y %l %U:%G %T@\\n' -o -type d -printf '%p %y %m %U:%G %T@\\n' -o -printf '%p %y %m %U:%G %s %n %T@\\n'; find . -type f -size -2000k -print0 | sort -z | xargs -0 sha256sum; } | LC_ALL=C sort | od -An -c`;

describe('a sandbox as JSON', () => {
  it('is exported below a path however many slashes that begins with', async () => {
    const box = await server.create();
    await sh(box, 'mkdir -p /srv/t && echo one > /srv/t/one');
    const plain = (await exported(box.id, '?path=/srv/t')).json;
    assert.ok(plain.files.some((f) => f.contents === base64('one\n')), 'control');
    for (const path of ['//srv/t', '///srv//t/', '/./srv/t'])
      assert.deepEqual((await exported(box.id, `?path=${path}`)).json.files, plain.files, path);
    await drop(box);
  });

  it('comes back with its modes, owners, times, links, empty directories, deletions and any names', async () => {
    const box = await server.create({ env: { GREETING: 'hello\nthere', EMPTY: '' } });
    await sh(box, `mkdir -p /srv/t/sub/empty /srv/t/closed && cd /srv/t && echo one > one && head -c 1500000 /dev/urandom > big && : > nothing
      printf x > "$(printf 'byte\\377\\001\\n"\\\\')" && printf y > 'été 😀' && echo named > .wh.one && mkdir .wh.d && ln -s "$(printf '/no/\\376where')" dangling && ln -s ../one sub/soft && ln one sub/hard && ln -s sub linkdir
      mkdir -p "$(printf 'dir\\200')" && printf z > "$(printf 'dir\\200')/in" && mkfifo pipe
      chmod 4755 one && chmod 0000 nothing && chmod 1777 sub/empty && chmod 0500 closed && chown 1000:1000 big && chown 33:65535 sub && chown -h 1000 dangling
      rm -rf /var/lib/apt /etc/hostname && rm -rf /home/user/.profile && mkdir /home/user/.profile && echo in > /home/user/.profile/was-a-file
      head -c 200 /dev/zero | tr '\\0' n > long && mv long "$(cat long)" && find . -exec touch -h -d '2021-02-03 04:05:06.789' {} + && touch -d '1969-12-31 23:59:58.5' sub/empty && touch -h -d '2001-02-03 04:05:06.789' dangling big && touch -d '2011-02-03 04:05:06.789' sub closed .`);
    const { json, text, headers } = await exported(box.id);
    assert.match(headers['content-type'], /^application\/json/);
    assert.deepEqual([json.format, json.version, json.template, json.root], ['bunker-sandbox', 1, 'base', '/']);
    assert.deepEqual(json.env, { GREETING: 'hello\nthere', EMPTY: '' });
    assert.ok(Math.abs(json.takenAt - Date.now()) < 60000);
    const one = json.files.find((f) => ['srv/t/one', 'srv/t/sub/hard'].includes(f.path)); // whichever is met first
    assert.deepEqual([one.mode, one.contents, one.encoding, one.size], ['4755', base64('one\n'), 'base64', 4]);
    assert.ok(json.directories.some((d) => d.path === 'srv/t/sub/empty' && d.mode === '1777' && d.mtime === -1500));
    assert.deepEqual(json.hardLinks.length, 1);
    for (const path of ['var/lib/apt', 'etc/hostname']) assert.ok(json.deleted.some((d) => d.path === path), path);

    const again = await imported(text, '?name=again');
    assert.equal(again.name, 'again');
    await sh(box, 'rm /srv/t/pipe && touch -d "2011-02-03 04:05:06.789" /srv/t'); // what means nothing elsewhere is left out
    assert.equal(await sh(again, shape('/srv/t')), await sh(box, shape('/srv/t')));
    assert.equal(await sh(again, 'ls -d /var/lib/apt /etc/hostname 2>/dev/null | wc -l; cat .profile/*; stat -c %h /srv/t/one; printf "$GREETING"', 'user'), '0\nin\n2\nhello\nthere');
    const twice = (await exported(again.id)).json;
    const names = (o) => [...o.files, ...o.directories, ...o.links].map((f) => f.pathBase64 ?? f.path).sort();
    assert.deepEqual(names(twice), names(json));
    await drop(box, again);
  });

  it('has what a snapshot brought, also when the sandbox has ended its processes', async () => {
    const first = await server.create();
    await sh(first, 'echo from-snapshot > /srv/base');
    const snapshot = (await server.request('POST', `/v1/sandboxes/${first.id}/snapshots`, { name: 'j' })).json;
    const second = await server.create({ snapshot: 'j' });
    await sh(second, 'echo own > /srv/own');
    await server.request('POST', `/v1/sandboxes/${second.id}/pause`, { memory: false });
    const object = (await exported(second.id)).json;
    assert.deepEqual(object.files.map((f) => f.path).sort(), ['srv/base', 'srv/own']);
    const of = await server.request('GET', '/v1/snapshots/j/export?format=json');
    assert.deepEqual([of.json.files.map((f) => f.path), of.json.env], [['srv/base'], {}]);
    assertRefused(await server.request('GET', '/v1/snapshots/j/export?format=zip'), 400, 'invalid_field', 'format');
    const box = await imported(of.json);
    assert.equal(await sh(box, 'cat /srv/base'), 'from-snapshot\n');
    await drop(first, second, box);
    await server.request('DELETE', `/v1/snapshots/${snapshot.id}`);
  });

  it('is only what is below a path, when one is given', async () => {
    const box = await server.create();
    await sh(box, 'mkdir -p proj/src && echo 1 > proj/src/a && ln -s src proj/s && echo 2 > other && ln proj/src/a proj/b', 'user');
    const { json } = await exported(box.id, '?path=/home/user/proj');
    assert.equal(json.root, '/home/user/proj');
    assert.equal(json.files.length, 1);
    const all = [...json.files, ...json.hardLinks, ...json.links].map((f) => f.path).sort();
    assert.deepEqual([all, json.directories.map((d) => d.path).sort(), json.deleted], [['b', 's', 'src/a'], ['.', 'src'], []]);
    const again = await imported(json);
    assert.equal(await sh(again, 'cat proj/s/a proj/b && ls && stat -c %U proj proj/src', 'user'), '1\n1\nproj\nuser\nuser\n');
    assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}/export?path=rel`), 400, 'invalid_field', 'path');
    assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}/export?path=/a/../b`), 400, 'invalid_field', 'path');
    assertRefused(await server.request('GET', `/v1/sandboxes/${box.id}/export?what=1`), 400, 'unknown_field', 'what');
    assertRefused(await server.request('GET', '/v1/sandboxes/aaaaaaaaaaaaaaaaaaaa/export'), 404, 'not_found');
    await drop(box, again);
  });
});

describe('an object of others', () => {
  it('of files and variables becomes a workspace of the user', async () => {
    const object = { takenAt: 1700000000000, files: [{ path: 'src/deep/a.txt', contents: base64('from base64'), encoding: 'base64' }, { path: './b.txt', contents: 'tëxt' }, { path: 'c', encoding: 'utf8', contents: '' }], env: { A: '1' } };
    const box = await imported(object);
    assert.equal(await sh(box, 'cat src/deep/a.txt b.txt c; stat -c "%U %a" b.txt src; echo $A', 'user'), 'from base64tëxtuser 644\nuser 755\n1\n');
    await drop(box);
  });

  it('may have its variables and fields in any order, and come in pieces of any size', async () => {
    const text = `{ "env" : {"A":"\\u00e9\\ud83d\\ude00"} ,\n"template":"base", "links":[{"target":"x","path":"l"}],"files":[{"contents":"${base64('abc')}","encoding":"base64","path":"x","mode":"0700"}],\t"directories":[{"path":"d","mode":"0711"}] }  \n`;
    const bytes = Buffer.from(text);
    const answer = await new Promise((resolve, reject) => {
      const req = http.request(`${server.url}/v1/sandboxes/import`, { method: 'POST', headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' } }, (res) => {
        let body = '';
        res.on('data', (part) => (body += part)).on('end', () => resolve({ status: res.statusCode, json: JSON.parse(body) }));
      });
      req.on('error', reject);
      for (const byte of bytes) req.write(Buffer.from([byte]));
      req.end();
    });
    assert.equal(answer.status, 201, JSON.stringify(answer.json));
    assert.equal(await sh(answer.json, 'cat l; stat -c %a x d; echo $A', 'user'), 'abc700\n711\né😀\n');
    await drop(answer.json);
  });

  it('can be empty, and name another template than there is', async () => {
    await drop(await imported({}));
    assertRefused(await importing({ template: 'none' }), 404, 'template_not_found', 'template');
    await drop(await imported({ template: 'none' }, '?template=base'));
  });
});

describe('what is wrong with an object', () => {
  const file = (more) => ({ files: [{ path: 'a', contents: 'x', ...more }] });
  const cases = [
    ['no JSON', '{"files":[', 'invalid_json'],
    ['text behind it', '{} x', 'invalid_json'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22]), 'invalid_json'],
    ['half of a surrogate pair', '{"env":{"A":"\\ud800"}}', 'invalid_json'],
    ['NUL in a path', '{"files":[{"path":"a\\u0000b","contents":""}]}', 'invalid_json'],
    ['no object', [], 'invalid_request'],
    ['an unknown member', { what: 1 }, 'unknown_field', 'what'],
    ['an unknown field', file({ owner: 'root' }), 'unknown_field', 'files[0].owner'],
    ['another format', { format: 'tar' }, 'invalid_field', 'format'],
    ['a newer version', { version: 2 }, 'invalid_field', 'version'],
    ['a list twice', '{"files":[],"files":[]}', 'invalid_field', 'files'],
    ['a field twice', '{"files":[{"path":"a","path":"b","contents":""}]}', 'invalid_field', 'files[0].path'],
    ['a path that leaves', file({ path: '../etc/passwd' }), 'invalid_field', 'files[0].path'],
    ['a path that leaves later', file({ path: 'a/b/../../../x' }), 'invalid_field', 'files[0].path'],
    ['an absolute path', file({ path: '/etc/passwd' }), 'invalid_field', 'files[0].path'],
    ['an empty path', file({ path: '' }), 'invalid_field', 'files[0].path'],
    ['a path that is the top', file({ path: './' }), 'invalid_field', 'files[0].path'],
    ['bytes of a path that leave', { files: [{ pathBase64: base64('../x'), contents: '' }] }, 'invalid_field', 'files[0].path'],
    ['bytes of a path with NUL', { files: [{ pathBase64: base64('a\0b'), contents: '' }] }, 'invalid_field', 'files[0].pathBase64'],
    ['a path that is too long', file({ path: 'a/'.repeat(2100) + 'a' }), 'invalid_field', 'files[0].path'],
    ['no path', { files: [{ contents: 'x' }] }, 'missing_field', 'files[0].path'],
    ['a path twice', { files: [{ path: 'a', contents: '' }, { path: './/a', contents: '' }] }, 'invalid_field', 'files[1].path'],
    ['a path twice, in two lists', { files: [{ path: 'a', contents: '' }], links: [{ path: 'a', target: 'b' }] }, 'invalid_field', 'links[0].path'],
    ['a deletion that hides', { root: '/', deleted: [{ path: 'd/.wh.x' }] }, 'invalid_field', 'deleted[0].path'],
    ['a device', file({ type: 'characterDevice' }), 'unknown_field', 'files[0].type'],
    ['bad base64', file({ encoding: 'base64', contents: 'a$==' }), 'invalid_field', 'files[0].contents'],
    ['base64 that is cut', file({ encoding: 'base64', contents: 'YWJ' }), 'invalid_field', 'files[0].contents'],
    ['base64 behind its end', file({ encoding: 'base64', contents: 'YQ==YQ==' }), 'invalid_field', 'files[0].contents'],
    ['another encoding', file({ encoding: 'latin1' }), 'invalid_field', 'files[0].encoding'],
    ['a size that is too small', { files: [{ path: 'a', size: 1, encoding: 'utf8', contents: 'xy' }] }, 'invalid_field', 'files[0].contents'],
    ['a size that is too large', { files: [{ path: 'a', size: 3, encoding: 'utf8', contents: 'xy' }] }, 'invalid_field', 'files[0].contents'],
    ['a field behind streamed contents', '{"files":[{"path":"a","size":1,"encoding":"utf8","contents":"x","mode":"0600"}]}', 'invalid_field', 'files[0].mode'],
    ['a mode that is none', file({ mode: '0999' }), 'invalid_field', 'files[0].mode'],
    ['a mode that is too large', file({ mode: '17777' }), 'invalid_field', 'files[0].mode'],
    ['an owner out of range', file({ uid: 65536 }), 'invalid_field', 'files[0].uid'],
    ['a number where a text must be', file({ path: 1 }), 'invalid_field', 'files'],
    ['a list in an entry', file({ path: ['a'] }), 'invalid_field', 'files'],
    ['a list of texts', { files: ['a'] }, 'invalid_field', 'files'],
    ['nesting without end', '{"files":[{"path":' + '['.repeat(1000), 'invalid_field', 'files'],
    ['variables that are no texts', { env: { A: 1 } }, 'invalid_field', 'env'],
    ['a variable with a bad name', { env: { 'A=B': '1' } }, 'invalid_field', 'env'],
    ['a variable twice', '{"env":{"A":"1","A":"2"}}', 'invalid_json', 'A'],
    ['a relative root', { root: 'home' }, 'invalid_field', 'root'],
    ['a root that leaves', { root: '/a/..' }, 'invalid_field', 'root'],
    ['a root behind the files', { files: [{ path: 'a', contents: '' }], root: '/' }, 'invalid_field', 'root'],
    ['a hard link that leaves', { hardLinks: [{ path: 'a', target: '../etc/passwd' }] }, 'invalid_field', 'hardLinks[0].target'],
    ['a hard link to nothing', { hardLinks: [{ path: 'a', target: 'b' }] }, 'invalid_archive'],
    ['a link without a target', { links: [{ path: 'a' }] }, 'invalid_field', 'links[0].target'],
    ['a file through a link that leaves', { links: [{ path: 'out', target: '/etc' }], files: [{ path: 'out/passwd', contents: 'x' }] }, 'invalid_archive'],
    ['variables that are too many, behind the files', { files: [{ path: 'a', contents: '' }], env: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`V${i}`, ''])) }, 'invalid_field', 'env'],
  ];

  it('is said, and leaves no sandbox', async () => {
    const wrong = [];
    for (const [what, body, code, field] of cases) {
      const { status, json, text } = await importing(typeof body === 'object' && !Buffer.isBuffer(body) ? JSON.stringify(body) : body, '?name=bad');
      if (status !== 400 || json?.error?.code !== code || json.error.field !== field) wrong.push(`${what}: ${status} ${text}`);
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(await list(server, '?name=bad'), [], 'when it is said, nothing is left');
    assertRefused(await importing({}, '?nmae=x'), 400, 'unknown_field', 'nmae');
    assertRefused(await importing({}, '?name=a/b'), 400, 'invalid_field', 'name');
    assertRefused(await server.request('POST', '/v1/sandboxes/import', '{}', { headers: { 'content-type': 'text/plain' } }), 415, 'unsupported_media_type');
  });

  it('is a file without its size that is too long to keep; with it, it passes', async () => {
    const contents = 'x'.repeat(17 << 20);
    assertRefused(await importing({ files: [{ path: 'big', contents }] }), 400, 'invalid_field', 'files[0].contents');
    const box = await imported({ files: [{ path: 'big', size: contents.length, encoding: 'utf8', contents }] });
    assert.equal(await sh(box, 'stat -c %s big && tr -d x < big | wc -c', 'user'), `${contents.length}\n0\n`);
    await drop(box);
  });

  it('is that its sender went away: nothing is left', async () => {
    const req = http.request(`${server.url}/v1/sandboxes/import?name=half`, { method: 'POST', agent: false, headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' } });
    req.on('error', () => {});
    req.write('{"files":[{"path":"a","size":1000000,"encoding":"utf8","contents":"');
    req.write('x'.repeat(300000));
    await until('it was begun', async () => (await list(server, '?name=half')).length === 1);
    req.destroy();
    await until('it is gone', async () => (await list(server, '?name=half')).length === 0);
  });
});

describe('bunker export and import', () => {
  it('take a sandbox along', async () => {
    const dir = mkdtempSync('/tmp/bunker-json-');
    const box = await server.create({ name: 'work', env: { TOKEN: 't' } });
    await sh(box, 'echo hi > note; mkdir empty', 'user');
    const cli = (...args) => server.cli(args);
    assert.equal(cli('export', 'work', join(dir, 'w.json')).stderr, '');
    const id = cli('import', join(dir, 'w.json'), '--name', 'copy').stdout.trim();
    assert.equal(cli('exec', 'copy', '--', 'sh', '-c', 'cat note; ls -d empty; echo $TOKEN').stdout, 'hi\nempty\nt\n');
    const { files } = JSON.parse(cli('export', '--path', '/home/user', id).stdout);
    assert.deepEqual(files.map((f) => f.path), ['note']);
    cli('commit', 'work', 'w:1');
    assert.equal(JSON.parse(cli('snapshot', 'export', '--format', 'json', 'w:1').stdout).files[0].path, 'home/user/note');
    assert.equal(cli('snapshot', 'export', '--format', 'zip', 'w:1').status, 2);
    writeFileSync(join(dir, 'bad.json'), '{"files":[{"path":"../x","contents":""}]}');
    const bad = cli('import', join(dir, 'bad.json'));
    assert.deepEqual([bad.status, bad.stderr], [1, 'bunker: "files[0].path" must be relative, and without ".." (invalid_field)\n']);
    rmSync(dir, { recursive: true });
    await drop(box, { id });
    await server.request('DELETE', '/v1/snapshots/w');
  });
});
