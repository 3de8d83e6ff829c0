// sandbox.files, as users of E2B's SDK call it.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { AuthenticationError, FileNotFoundError, FileType, FilesystemEventType, InvalidArgumentError, NotEnoughSpaceError, Sandbox, SandboxError, TimeoutError } from 'e2b';
import { failure, sleep, startServer, until } from './support.mjs';

const server = await startServer();
const sandbox = await Sandbox.create({ timeoutMs: 600000 });
const { files } = sandbox;
const run = async (command, options) => (await sandbox.commands.run(command, options)).stdout;
const hash = (data) => createHash('sha256').update(data).digest('hex');

describe('files.write and files.read', () => {
  it('carry text, bytes, blobs and streams there and back', async () => {
    const bytes = randomBytes(100000);
    const cases = { text: 'žluťoučký 🐎\n', empty: '', bytes: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), blob: new Blob([bytes]), stream: new Blob([bytes]).stream() };
    for (const [name, data] of Object.entries(cases)) {
      const info = await files.write(`kinds/${name}`, data);
      assert.deepEqual({ ...info }, { path: `/home/user/kinds/${name}`, name, type: 'file', metadata: undefined });
    }
    assert.equal(await files.read('kinds/text'), 'žluťoučký 🐎\n');
    assert.equal(await files.read('kinds/empty'), '');
    assert.equal((await files.read('kinds/empty', { format: 'bytes' })).length, 0);
    assert.equal(hash(await files.read('kinds/bytes', { format: 'bytes' })), hash(bytes));
    assert.equal(hash(Buffer.from(await (await files.read('kinds/blob', { format: 'blob' })).arrayBuffer())), hash(bytes));
    const parts = [];
    for await (const part of await files.read('kinds/stream', { format: 'stream' })) parts.push(part);
    assert.equal(hash(Buffer.concat(parts)), hash(bytes));
    assert.equal(await run('stat -c "%U %a" kinds kinds/text'), 'user 755\nuser 644\n');
  });

  it('replace what was there, but not its mode', async () => {
    await run('echo a much longer content > old; chmod 755 old');
    await files.write('old', 'new');
    assert.equal(await run('cat old; stat -c " %a" old'), 'new 755\n');
  });

  it('know gzip and octet-stream', async () => {
    const text = 'compress me '.repeat(10000);
    await files.write('zipped', text, { gzip: true });
    assert.equal(await files.read('zipped', { gzip: true }), text);
    await files.write('octets', 'plain', { useOctetStream: true });
    assert.equal(await files.read('octets'), 'plain');
    const bomb = gzipSync(Buffer.alloc(30 << 20));
    const answer = await fetch(`${server.url}/files?path=bomb`, {
      method: 'POST',
      headers: { 'e2b-sandbox-id': sandbox.sandboxId, 'x-access-token': sandbox.envdAccessToken, 'content-type': 'application/octet-stream', 'content-encoding': 'gzip' },
      body: bomb,
    });
    assert.equal(answer.status, 200);
    assert.equal(await run('stat -c %s bomb; rm bomb'), `${30 << 20}\n`);
  });

  it('write many files at once, wherever they belong', async () => {
    const written = await files.write([
      { path: '/tmp/x', data: '1' },
      { path: 'dir/sub/y', data: '2' },
      { path: 'od"d na%me', data: '3' },
    ]);
    assert.deepEqual(
      written.map((one) => one.path),
      ['/tmp/x', '/home/user/dir/sub/y', '/home/user/od"d na%me'],
    );
    assert.deepEqual(await Promise.all(['/tmp/x', 'dir/sub/y', 'od"d na%me'].map((path) => files.read(path))), ['1', '2', '3']);
    assert.deepEqual(await files.writeFiles([{ path: 'wf', data: 'x' }]), [{ path: '/home/user/wf', name: 'wf', type: 'file', metadata: undefined }]);
    assert.deepEqual(await files.write([]), []);
    const twice = await failure(files.write([{ path: 'same', data: '1' }, { path: 'same', data: '2' }]));
    assert.ok(twice instanceof InvalidArgumentError);
    assert.match(twice.message, /multiple files to the same path/);
  });

  it('are not written twice in one request, however their path is spelled', async () => {
    for (const other of ['/home/user/one', './one', 'dir/../one', '/home//user/one', '~/one']) {
      const twice = await failure(files.write([{ path: 'one', data: '1' }, { path: other, data: '2' }]));
      assert.ok(twice instanceof InvalidArgumentError, `${other}: ${twice}`);
      assert.match(twice.message, /multiple files to the same path '\/home\/user\/one'/);
    }
    assert.equal((await files.write([{ path: 'one', data: '1' }, { path: '/tmp/one', data: '2' }])).length, 2);
  });

  it('come by the thousand, as a project does', async () => {
    const project = Array.from({ length: 3000 }, (_, i) => ({ path: `project/${i % 50}/${i}`, data: String(i) }));
    const written = await files.write(project);
    assert.deepEqual([written.length, written[2999].path], [3000, '/home/user/project/49/2999']);
    assert.equal(await run('find project -type f | wc -l; cat project/0/1050; rm -r project'), '3000\n1050');
  });

  it('are refused in one request when naming them would take too much memory', async () => {
    // Each answer names its file twice: 4,000 names of 240 letters in directories as deep are more than 8 MiB.
    const deep = Array.from({ length: 8 }, () => 'd'.repeat(240)).join('/');
    const many = Array.from({ length: 4500 }, (_, i) => ({ path: `deep/${deep}/${String(i).padStart(240, 'f')}`, data: '' }));
    const error = await failure(files.write(many));
    assert.ok(error instanceof InvalidArgumentError, String(error));
    assert.match(error.message, /too many files for one request/);
    assert.equal((await files.write(many.slice(0, 1500))).length, 1500);
    await run('rm -r deep');
  });

  it('keep metadata, and replace it as a whole', async () => {
    const info = await files.write('meta', 'x', { metadata: { author: 'me', Kind: 'a b' } });
    assert.deepEqual(info.metadata, { author: 'me', kind: 'a b' });
    assert.deepEqual((await files.getInfo('meta')).metadata, { author: 'me', kind: 'a b' });
    assert.deepEqual((await files.list('.')).find((one) => one.name === 'meta').metadata, { author: 'me', kind: 'a b' });
    await files.write('meta', 'x', { metadata: { other: '1' } });
    assert.deepEqual((await files.getInfo('meta')).metadata, { other: '1' });
    await files.write('meta', 'x');
    assert.equal((await files.getInfo('meta')).metadata, undefined);
    const streamed = await files.write('meta2', new Blob(['x']).stream(), { metadata: { a: 'b' } });
    assert.deepEqual(streamed.metadata, { a: 'b' });
  });

  it('belong to the user they are written for, and reach everywhere', async () => {
    // As envd, which is root inside: agents write to /app without asking.
    await files.write('/app/code/main.py', 'print(1)');
    assert.equal(await run('stat -c "%U:%G %a" /app /app/code /app/code/main.py'), 'user:user 755\nuser:user 755\nuser:user 644\n');
    await files.makeDir('/data/sets');
    await files.rename('/app/code/main.py', '/srv/moved/main.py');
    assert.equal(await run('stat -c "%U" /data /data/sets /srv/moved /srv/moved/main.py'), 'user\nuser\nuser\nuser\n');
    await files.write('/root/secret', 'for root', { user: 'root' });
    assert.equal(await run('sudo stat -c %U /root/secret'), 'root\n');
    assert.equal(await files.read('/root/secret'), 'for root');
    await files.write('relative', 'r', { user: 'root' });
    assert.equal(await run('sudo cat /root/relative'), 'r');
    assert.equal((await files.list('.', { user: 'root' })).some((one) => one.path === '/root/relative'), true);
    await files.write('/root/secret', 'mine now');
    assert.equal(await run('sudo stat -c %U /root/secret'), 'user\n');
    const as = { user: 'who-is-that' };
    for (const call of [() => files.read('x', as), () => files.read('/etc/hostname', as), () => files.write('x', 'x', as), () => files.list('/', as)]) {
      const stranger = await failure(call());
      assert.ok(stranger instanceof AuthenticationError, String(stranger));
    }
  });

  it('say what is wrong', async () => {
    const missing = await failure(files.read('nope'));
    assert.ok(missing instanceof FileNotFoundError);
    assert.match(missing.message, /'nope' does not exist/);
    assert.ok((await failure(files.read('kinds'))) instanceof InvalidArgumentError);
    assert.ok((await failure(files.write('kinds', 'x'))) instanceof InvalidArgumentError);
    assert.ok((await failure(files.write('kinds/text/below', 'x'))) instanceof SandboxError);
    assert.ok((await failure(files.read('~root/x'))) instanceof InvalidArgumentError);
    assert.equal(await files.read('~/kinds/text'), await files.read('kinds/text'));
  });

  it('read files whose size nobody knows beforehand', async () => {
    assert.match(await files.read('/proc/self/status'), /^Name:/);
    assert.ok((await files.read('/proc/cpuinfo')).length > 10);
  });

  it('give parts of a file', async () => {
    await files.write('digits', '0123456789');
    const get = (range) => fetch(`${server.url}/files?path=digits`, { headers: { 'e2b-sandbox-id': sandbox.sandboxId, 'x-access-token': sandbox.envdAccessToken, range } });
    for (const [range, text, content] of [
      ['bytes=2-4', '234', 'bytes 2-4/10'],
      ['bytes=7-', '789', 'bytes 7-9/10'],
      ['bytes=-2', '89', 'bytes 8-9/10'],
      ['bytes=8-100', '89', 'bytes 8-9/10'],
    ]) {
      const answer = await get(range);
      assert.deepEqual([answer.status, await answer.text(), answer.headers.get('content-range')], [206, text, content]);
    }
    assert.equal((await get('bytes=10-')).status, 416);
    for (const odd of ['bytes=4-2', 'bytes=x', 'lines=1-2', 'bytes=0-1,3-4']) assert.equal(await (await get(odd)).text(), '0123456789');
  });

  it('carry a large file in bounded memory', { timeout: 300000 }, async () => {
    const size = process.env.BUNKER_LONG ? 2 * 2 ** 30 : 200 * 2 ** 20;
    const piece = randomBytes(1 << 20);
    const sum = createHash('sha256');
    let sent = 0;
    const stream = new ReadableStream({
      pull(controller) {
        if (sent >= size) return controller.close();
        sent += piece.length;
        sum.update(piece);
        controller.enqueue(piece);
      },
    });
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.frontPid}/status`, 'utf8'))[1]);
    const before = rss();
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, rss())), 20);
    await files.write('/tmp/large', stream);
    const wanted = sum.digest('hex');
    assert.equal(await run('sha256sum < /tmp/large', { timeoutMs: 120000 }), `${wanted}  -\n`);
    const back = createHash('sha256');
    for await (const part of await files.read('/tmp/large', { format: 'stream' })) back.update(part);
    clearInterval(watch);
    assert.equal(back.digest('hex'), wanted);
    assert.ok(most - before < 32 << 10, `the front grew by ${most - before} KiB`);
    await files.remove('/tmp/large');
  });
});

describe('files.list', () => {
  it('describes what is there, as deep as asked for', async () => {
    await run('mkdir -p tree/a/b tree/c && echo 12345 > tree/a/f && chmod 640 tree/a/f && touch tree/a/b/deep && ln -s a/f tree/link && ln -s a tree/dirlink && ln -s nowhere tree/broken && chmod 1777 tree/c');
    const top = await files.list('tree');
    assert.deepEqual(
      top.map((one) => [one.name, one.type, one.path]),
      [
        ['a', FileType.DIR, '/home/user/tree/a'],
        ['c', FileType.DIR, '/home/user/tree/c'],
        ['dirlink', FileType.DIR, '/home/user/tree/dirlink'],
        ['link', FileType.FILE, '/home/user/tree/link'],
      ],
    );
    const deep = (await files.list('/home/user/tree', { depth: 3 })).map((one) => one.path.slice('/home/user/tree/'.length));
    assert.deepEqual(deep, ['a', 'a/b', 'a/b/deep', 'a/f', 'c', 'dirlink', 'link']);
    const file = (await files.list('tree/a')).find((one) => one.name === 'f');
    assert.deepEqual([file.size, file.mode, file.permissions, file.owner, file.group], [6, 0o640, '-rw-r-----', 'user', 'user']);
    assert.ok(Math.abs(file.modifiedTime - Date.now()) < 60000);
    const link = top.find((one) => one.name === 'link');
    assert.deepEqual([link.symlinkTarget, link.permissions], ['/home/user/tree/a/f', 'Lrwxrwxrwx']);
    assert.equal(top.find((one) => one.name === 'c').permissions, 'dtrwxrwxrwx');
    assert.equal((await files.list('.')).some((one) => one.name === 'tree'), true);
    assert.equal((await files.list('tree/dirlink'))[0].path, '/home/user/tree/dirlink/b');
  });

  it('says what is wrong', async () => {
    assert.ok((await failure(files.list('nope'))) instanceof FileNotFoundError);
    assert.ok((await failure(files.list('tree/a/f'))) instanceof InvalidArgumentError);
    assert.ok((await failure(files.list('tree', { depth: 0 }))) instanceof InvalidArgumentError);
  });

  it('streams what is large', { timeout: 60000 }, async () => {
    await run('mkdir many && cd many && seq -f "file-%06g" 5000 | xargs touch');
    const all = await files.list('many');
    assert.equal(all.length, 5000);
    assert.equal(all[4999].name, 'file-005000');
  });
});

describe('files', () => {
  it('makeDir, exists, getInfo, rename, remove', async () => {
    assert.equal(await files.makeDir('made/below'), true);
    assert.equal(await files.makeDir('made/below'), false);
    assert.ok((await failure(files.makeDir('kinds/text'))) instanceof InvalidArgumentError);
    assert.equal(await files.exists('made/below'), true);
    assert.equal(await files.exists('made/nope'), false);
    await files.write('made/f', 'x');
    const info = await files.getInfo('made/f');
    assert.deepEqual([info.name, info.type, info.path, info.size, info.mode, info.owner], ['f', FileType.FILE, '/home/user/made/f', 1, 0o644, 'user']);
    assert.equal((await files.getInfo('made')).permissions, 'drwxr-xr-x');
    await files.makeDir('made/nothing-in-it');
    for (const path of ['made', 'made/nothing-in-it']) assert.equal((await files.getInfo(path)).size, 4096);
    const moved = await files.rename('made/f', 'elsewhere/new/g');
    assert.deepEqual([moved.name, moved.path], ['g', '/home/user/elsewhere/new/g']);
    assert.equal(await files.read('elsewhere/new/g'), 'x');
    assert.equal(await files.exists('made/f'), false);
    assert.ok((await failure(files.rename('nope', 'x'))) instanceof FileNotFoundError);
    assert.ok((await failure(files.getInfo('nope'))) instanceof FileNotFoundError);
    await files.remove('elsewhere');
    assert.equal(await files.exists('elsewhere'), false);
    await files.remove('elsewhere');
  });

  it('say when there is no space left', { timeout: 60000 }, async () => {
    // E2B's SDK cannot ask for a small disk; the native API can.
    const { id } = await server.create({ resources: { disk: '16Mi' } });
    const small = await Sandbox.connect(id);
    const error = await failure(small.files.write('big', new Blob([randomBytes(64 << 20)]).stream()));
    assert.ok(error instanceof NotEnoughSpaceError, String(error));
    await small.kill();
  });
});

describe('signed URLs', () => {
  it('read and write without the SDK', async () => {
    await files.write('signed.txt', 'by url');
    const url = await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: 60 });
    assert.equal(await (await fetch(url)).text(), 'by url');
    const up = await sandbox.uploadUrl('up.txt', { user: 'user' });
    const form = new FormData();
    form.append('file', new Blob(['uploaded']), 'ignored');
    assert.equal((await fetch(up, { method: 'POST', body: form })).status, 200);
    assert.equal(await files.read('up.txt'), 'uploaded');
    assert.equal((await fetch(url, { method: 'POST', body: form })).status, 401, 'a URL to read does not write');
    const other = await Sandbox.create();
    await other.files.write('signed.txt', 'of the other');
    assert.equal(await (await fetch(await other.downloadUrl('signed.txt'))).text(), 'of the other');
    assert.equal(await (await fetch(url)).text(), 'by url');
    await other.kill();
    const late = await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: -5 });
    assert.equal((await fetch(late)).status, 401);
  });
});

describe('files.watchDir', () => {
  const watch = async (path, options) => {
    const events = [];
    const handle = await files.watchDir(path, (event) => events.push(event), options);
    return { handle, events, names: () => events.map((event) => `${event.type} ${event.name}`) };
  };

  it('tells what happens in a directory', async () => {
    await files.makeDir('watched');
    const { handle, names } = await watch('watched');
    await files.write('watched/new', '1');
    await until('it was created and written', () => names().includes('create new') && names().includes('write new'));
    await files.rename('watched/new', 'watched/other');
    await until('it was renamed', () => names().includes('rename new') && names().includes('create other'));
    await run('chmod 600 watched/other');
    await until('its mode changed', () => names().includes('chmod other'));
    await files.remove('watched/other');
    await until('it was removed', () => names().includes('remove other'));
    assert.ok(Object.values(FilesystemEventType).includes('create'));
    const count = names().length;
    await handle.stop();
    await files.write('watched/after', 'x');
    await sleep(200);
    assert.equal(names().length, count);
  });

  it('looks below, also at what comes later', async () => {
    const { handle, names } = await watch('watched', { recursive: true });
    await files.makeDir('watched/sub');
    await until('the directory came', () => names().includes('create sub'));
    await files.write('watched/sub/deep.txt', 'x');
    await until('what is in it came', () => names().some((one) => one === 'write sub/deep.txt' || one === 'create sub/deep.txt'));
    await handle.stop();
  });

  it('describes the file, if asked to', async () => {
    const { handle, events } = await watch('watched', { includeEntry: true });
    await files.write('watched/described', 'four');
    const written = await until('it was written', () => events.find((event) => event.type === 'write' && event.name === 'described'));
    assert.deepEqual([written.entry.path, written.entry.size, written.entry.type], ['/home/user/watched/described', 4, 'file']);
    await files.remove('watched/described');
    const removed = await until('it was removed', () => events.find((event) => event.type === 'remove'));
    assert.equal(removed.entry, undefined);
    await handle.stop();
  });

  it('says what cannot be watched, and when it is over', async () => {
    assert.ok((await failure(files.watchDir('nope', () => {}))) instanceof FileNotFoundError);
    assert.ok((await failure(files.watchDir('kinds/text', () => {}))) instanceof InvalidArgumentError);
    let ended;
    await files.watchDir('watched', () => {}, { timeoutMs: 300, onExit: (error) => (ended = error ?? 'fine') });
    await until('its time is up', () => ended !== undefined);
    assert.ok(ended instanceof TimeoutError, String(ended));
    const doomed = await Sandbox.create();
    let exit;
    await doomed.files.watchDir('.', () => {}, { onExit: (error) => (exit = error) });
    await doomed.kill();
    await until('the watch ended', () => exit !== undefined);
    assert.ok(exit instanceof TimeoutError, String(exit));
  });
});
