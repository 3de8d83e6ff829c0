// A file's content: read, written, in parts, of any size and any name, and what happens when it cannot be.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { Server, until } from '../lib/server.mjs';
import { finish, LONG, sha256 } from './support.mjs';
import { assertFileError, Files, send } from './files_support.mjs';

let server, files;
before(async () => {
  server = await Server.start();
  files = new Files(server, (await server.create()).id);
});
after(() => finish(server));

const front = () => {
  const status = readFileSync(`/proc/${server.frontPid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)[1]) * 1024;
};

describe('reading', () => {
  it('gives the bytes that are there', async () => {
    const bytes = randomBytes(300_000);
    await files.ok(files.put('bytes', bytes));
    const answer = await files.ok(files.get('bytes'));
    assert.equal(sha256(answer.bytes), sha256(bytes));
    assert.equal(answer.headers['content-length'], '300000');
    assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  });

  it('takes the path from the URL, absolute', async () => {
    await files.ok(files.put('in the url', 'x'));
    const answer = await send(server, 'GET', `${files.base}/files/home/user/in%20the%20url`);
    assert.equal(answer.text, 'x');
    assertFileError(await send(server, 'GET', `${files.base}/files/home?path=x`), 400, 'invalid_field', 'path');
  });

  it('gives parts, by query and by Range', async () => {
    await files.ok(files.put('digits', '0123456789'));
    assert.equal(await files.text('digits', { offset: 3, length: 4 }), '3456');
    assert.equal(await files.text('digits', { offset: 8 }), '89');
    const part = async (range) => files.get('digits', {}, { range });
    let answer = await part('bytes=2-4');
    assert.equal(answer.status, 206);
    assert.equal(answer.text, '234');
    assert.equal(answer.headers['content-range'], 'bytes 2-4/10');
    answer = await part('bytes=-3');
    assert.equal(answer.text, '789');
    assert.equal(answer.headers['content-range'], 'bytes 7-9/10');
    answer = await part('bytes=5-99');
    assert.equal(answer.headers['content-range'], 'bytes 5-9/10');
    answer = await part('bytes=10-');
    assertFileError(answer, 416, 'range_not_satisfiable');
    assert.equal(answer.headers['content-range'], 'bytes */10');
    // What is not one plain range is as if it were not there.
    for (const range of ['bytes=1-2,4-5', 'bytes=5-2', 'lines=1-2', 'bytes=a-b', 'bytes='])
      assert.equal((await part(range)).status, 200, range);
    answer = await files.get('digits', {}, { range: 'bytes=2-4', 'if-range': '"x"' });
    assert.equal(answer.status, 200);
  });

  it('gives parts of large files', async () => {
    const bytes = randomBytes(5 << 20);
    await files.ok(files.put('large', bytes));
    const answer = await files.get('large', {}, { range: `bytes=1000000-3999999` });
    assert.equal(answer.status, 206);
    assert.equal(sha256(answer.bytes), sha256(bytes.subarray(1000000, 4000000)));
  });

  it('tells the size by HEAD', async () => {
    await files.ok(files.put('sized', 'twelve bytes'));
    const answer = await files.head('sized');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-length'], '12');
    assert.equal((await files.head('/home')).status, 400);
    assert.equal((await files.head('nope')).status, 404);
  });

  it('gives the bytes of files whose size says nothing', async () => {
    assert.match(await files.text('/proc/self/status'), /^Name:\s+bunker-files/);
    assert.match(await files.text('/proc/cpuinfo'), /processor/);
    assert.equal(await files.text('/proc/self/status', { length: 5 }), 'Name:');
  });

  it('says why it cannot', async () => {
    await files.sh('mkdir -p dir && rm -f fifo && mkfifo fifo && echo secret > closed && chmod 0 closed && ln -sf loop loop');
    assertFileError(await files.get('nope'), 404, 'not_found');
    assertFileError(await files.get('dir'), 400, 'is_a_directory');
    assertFileError(await files.get('fifo'), 400, 'not_a_regular_file');
    assertFileError(await files.get('/dev/zero'), 400, 'not_a_regular_file');
    assertFileError(await files.get('closed'), 403, 'permission_denied');
    assertFileError(await files.get('loop'), 400, 'too_many_links');
    assertFileError(await files.get('bytes/x'), 400, 'not_a_directory');
    assertFileError(await files.get('a'.repeat(256)), 400, 'name_too_long');
    assertFileError(await files.get('x', { user: 'nobody-here' }), 400, 'invalid_field', 'user');
    assertFileError(await files.get('x', { cwd: '/nowhere' }), 404, 'not_found');
    assertFileError(await files.get('../etc/passwd'), 400, 'invalid_field', 'path');
    assertFileError(await files.get('x', { bogus: 1 }), 400, 'unknown_field', 'bogus');
    assertFileError(await files.get(''), 400, 'invalid_field', 'path');
    assert.equal(await files.text('/home/user/closed', { user: 'root' }), 'secret\n');
  });

  it('is not blocked by what blocks', async () => {
    await files.sh('rm -f pipe && mkfifo pipe');
    const waiting = Promise.all(Array.from({ length: 20 }, () => files.get('pipe')));
    assert.equal((await send(server, 'GET', '/health')).status, 200);
    for (const answer of await waiting) assertFileError(answer, 400, 'not_a_regular_file');
  });

  it('J106 cuts the answer off when the file shrinks, and never takes what grows', { timeout: 30000 }, async () => {
    await files.sh('head -c 200000000 /dev/zero > shrinking; head -c 200000 /dev/zero > growing');
    const got = await new Promise((resolve, reject) => {
      const req = http.get(
        `${server.url}${files.base}/files?path=shrinking`,
        { headers: { authorization: `Bearer ${server.key}` }, agent: false },
        async (res) => {
          let length = 0;
          res.on('data', (part) => {
            length += part.length;
          });
          res.pause();
          await files.sh('truncate -s 1000 shrinking');
          res.resume();
          res.on('close', () => resolve({ length, complete: res.complete }));
        },
      );
      req.on('error', reject);
    });
    assert.equal(got.complete, false);
    assert.ok(got.length < 200000000);
    const [answer] = await Promise.all([files.ok(files.get('growing')), files.sh('for i in 1 2 3; do head -c 50000 /dev/zero >> growing; done')]);
    assert.equal(answer.bytes.length, Number(answer.headers['content-length']));
    // The server is as before.
    assert.equal((await files.ok(files.get('growing'))).bytes.length, 350000);
  });

  it('leaves nothing behind when the client goes away', { timeout: 30000 }, async () => {
    await files.sh('head -c 300000000 /dev/zero > abandoned');
    for (let i = 0; i < 5; i++)
      await new Promise((resolve) => {
        const req = http.get(
          `${server.url}${files.base}/files?path=abandoned`,
          { headers: { authorization: `Bearer ${server.key}` }, agent: false },
          (res) => {
            res.once('data', () => {
              req.destroy();
              resolve();
            });
          },
        );
      });
    await until('the workers have gone', async () => Number((await files.sh("grep -l bunker-files /proc/[0-9]*/comm 2>/dev/null | wc -l")).trim()) <= 4);
  });
});

describe('writing', () => {
  it('makes a file with its parents, and tells what it is', async () => {
    const { json } = await files.ok(files.put('a/b/c.txt', 'hello'));
    assert.equal(json.path, '/home/user/a/b/c.txt');
    assert.equal(json.name, 'c.txt');
    assert.equal(json.type, 'file');
    assert.equal(json.size, 5);
    assert.equal(json.mode, '0644');
    assert.equal(json.owner, 'user');
    assert.equal(json.uid, 1000);
    assert.ok(Math.abs(Date.parse(json.modifiedAt) - Date.now()) < 60000);
    assertFileError(await files.put('z/y', 'x', { parents: false }), 404, 'not_found');
  });

  it('replaces, appends, writes at an offset', async () => {
    await files.ok(files.put('w', '0123456789'));
    await files.ok(files.put('w', 'abc'));
    assert.equal(await files.text('w'), 'abc');
    await files.ok(files.put('w', 'def', { append: true }));
    assert.equal(await files.text('w'), 'abcdef');
    await files.ok(files.put('w', 'XY', { offset: 2 }));
    assert.equal(await files.text('w'), 'abXYef');
    assertFileError(await files.put('w', 'x', { exclusive: true }), 409, 'already_exists');
    assertFileError(await files.put('w', 'x', { append: true, atomic: true }), 400, 'invalid_field', 'atomic');
    assert.equal(await files.text('w'), 'abXYef');
  });

  it('writes an empty file', async () => {
    await files.ok(files.put('empty', ''));
    const answer = await files.ok(files.get('empty'));
    assert.equal(answer.bytes.length, 0);
    assert.equal(answer.headers['content-length'], '0');
  });

  it('takes a body whose length nobody knows', async () => {
    const bytes = randomBytes(1_000_000);
    await files.ok(files.put('chunked', Readable.from([bytes.subarray(0, 10), bytes.subarray(10, 700000), bytes.subarray(700000)])));
    assert.equal(sha256((await files.get('chunked')).bytes), sha256(bytes));
  });

  it('sets mode and owner', async () => {
    assert.equal((await files.ok(files.put('m', '#!/bin/sh', { mode: '0750' }))).json.mode, '0750');
    assert.equal((await files.ok(files.put('m', '#!/bin/sh\n'))).json.mode, '0750');
    const { json } = await files.ok(files.put('/srv/deep/owned', 'x', { user: 'root', owner: 'user:user' }));
    assert.equal(json.owner, 'user');
    assert.equal((await files.ok(files.ask('stat', '/srv/deep'))).json.owner, 'user');
    assertFileError(await files.put('m', 'x', { owner: 'root' }), 403, 'permission_denied');
    assertFileError(await files.put('m', 'x', { owner: 'nobody-here' }), 400, 'invalid_field', 'owner');
    assertFileError(await files.put('m', 'x', { mode: '99' }), 400, 'invalid_field', 'mode');
  });

  it('replaces at once when asked to, and leaves all as it was when it is cut short', { timeout: 30000 }, async () => {
    await files.ok(files.put('atomic', 'old'));
    const half = (options) =>
      new Promise((resolve) => {
        const req = http.request(`${server.url}${files.base}/files?${files.query({ path: 'atomic', ...options })}`, {
          method: 'PUT',
          agent: false,
          headers: { authorization: `Bearer ${server.key}`, 'content-length': 1_000_000 },
        });
        req.on('error', resolve);
        req.write(Buffer.alloc(400_000, 'n'));
        setTimeout(() => req.destroy(), 200);
      });
    await half({ atomic: true });
    assert.equal(await files.text('atomic'), 'old');
    assert.deepEqual((await files.sh('ls -A')).split('\n').filter((name) => name.startsWith('.bunker')), []);
    // The control: in place, half of it is there.
    await half({});
    await until('the writer has seen the end', async () => (await files.text('atomic')).length > 3);
    await files.ok(files.put('atomic', 'new', { atomic: true, mode: '0600' }));
    assert.equal(await files.text('atomic'), 'new');
  });

  it('says why it cannot', async () => {
    assertFileError(await files.put('dir', 'x'), 400, 'is_a_directory');
    assertFileError(await files.put('fifo', 'x'), 400, 'not_a_regular_file');
    assertFileError(await files.put('/dev/null', 'x', { user: 'root' }), 400, 'not_a_regular_file');
    assertFileError(await files.put('/etc/x', 'x'), 403, 'permission_denied');
    assertFileError(await files.put('bytes/x', 'x'), 400, 'not_a_directory');
    assertFileError(await files.put('a'.repeat(256), 'x'), 400, 'name_too_long');
  });

  it('says that the disk is full, and goes on', { timeout: 60000 }, async () => {
    // A file system of its own, that is small: /dev/shm is, for a sandbox of little memory.
    const small = await server.create({ resources: { memory: '64Mi' } });
    const other = new Files(server, small.id);
    const size = Number((await other.sh("df -B1 /dev/shm | awk 'NR==2{print $4}'")).trim());
    const answer = await other.put('/dev/shm/full', Buffer.alloc(Math.min(size * 2, 256 << 20)));
    assertFileError(answer, 507, 'no_space');
    await other.ok(other.delete('/dev/shm/full'));
    await other.ok(other.put('/dev/shm/fits', 'x'));
    await server.request('DELETE', `/v1/sandboxes/${small.id}`);
  });
});

describe('names', () => {
  const odd = [
    ['spaces', 'with  spaces '],
    ['newlines', 'two\nlines\r\n'],
    ['quotes', `'"\`$(x)\\`],
    ['unicode', 'grüße-🙂'],
    ['looking like options', '-rf'],
    ['percent signs', '%2e%2e%00'],
    ['bytes that are no UTF-8', Buffer.from([0x66, 0xff, 0xfe, 0x80, 0x31])],
  ];
  for (const [what, name] of odd)
    it(`with ${what}`, async () => {
      const path = Buffer.concat([Buffer.from('names/'), Buffer.from(name)]);
      const { json } = await files.ok(files.put(path, 'x'));
      const full = Buffer.concat([Buffer.from('/home/user/'), path]);
      if (Buffer.isBuffer(name)) assert.equal(json.pathBase64, full.toString('base64'));
      else assert.deepEqual([json.path, json.pathBase64], [full.toString(), undefined]);
      assert.equal(await files.text(path), 'x');
      // And back in a body.
      const back = await files.ok(files.post('chmod', { pathBase64: full.toString('base64'), mode: '0600' }));
      assert.equal(back.json.mode, '0600');
      await files.ok(files.delete(path));
    });
});

describe('large files', () => {
  it('flow both ways through a server that stays small', { timeout: 300000 }, async () => {
    const size = LONG ? 2 ** 30 : 2 ** 28;
    const block = randomBytes(1 << 20);
    const hash = sha256(Buffer.concat([block, block]));
    const blocks = function* () {
      for (let i = 0; i < size; i += block.length) yield block;
    };
    await files.ok(files.get('digits'));
    const before = front();
    let peak = 0;
    const timer = setInterval(() => (peak = Math.max(peak, front())), 10);
    await files.ok(files.put('huge', Readable.from(blocks()), {}, { 'content-length': size }));
    const length = await new Promise((resolve, reject) => {
      http
        .get(`${server.url}${files.base}/files?path=huge`, { headers: { authorization: `Bearer ${server.key}` }, agent: false }, (res) => {
          let got = 0;
          res.on('data', (part) => (got += part.length));
          res.on('end', () => resolve(got));
          res.on('error', reject);
        })
        .on('error', reject);
    });
    clearInterval(timer);
    assert.equal(length, size);
    const answer = await files.get('huge', { offset: size - (2 << 20) });
    assert.equal(sha256(answer.bytes), hash);
    const grown = peak - before;
    const bound = process.env.BUNKER?.includes('asan') ? 128 << 20 : 12 << 20;
    assert.ok(grown < bound, `the front grew by ${grown} bytes`);
    await files.ok(files.delete('huge'));
  });

  it('wait for a client that does not read', { timeout: 60000 }, async () => {
    await files.sh('head -c 100000000 /dev/zero > slow');
    const before = front();
    const readers = await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise((resolve, reject) => {
            const req = http.get(`${server.url}${files.base}/files?path=slow`, { headers: { authorization: `Bearer ${server.key}` }, agent: false }, (res) => {
              res.pause();
              resolve(req);
            });
            req.on('error', reject);
          }),
      ),
    );
    assert.equal((await files.ok(files.get('digits'))).status, 200);
    const grown = front() - before;
    const bound = process.env.BUNKER?.includes('asan') ? 160 << 20 : 32 << 20;
    for (const req of readers) req.destroy();
    assert.ok(grown < bound, `the front grew by ${grown} bytes`);
  });
});
