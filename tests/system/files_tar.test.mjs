// Directories as archives, down and up, with and without compression, and archives that mean harm.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import http from 'node:http';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Server } from '../lib/server.mjs';
import { finish } from './support.mjs';
import { assertFileError, Files, send } from './files_support.mjs';
import { tarMember } from '../lib/tar.mjs';

let server, files, temporary;
before(async () => {
  temporary = mkdtempSync('/tmp/bunker-tar-');
  server = await Server.start();
  files = new Files(server, (await server.create()).id);
  await files.sh(`mkdir -p t/sub/empty t/private && cd t && echo content > file && chmod 0751 file && ln file sub/hard && ln -s ../file sub/soft && mkfifo pipe
    n=$(printf 'x%.0s' $(seq 200)) && mkdir $n && echo long > $n/$n && ln -s $n/$n longlink && printf ab > 'odd name
' && chmod 0500 private && head -c 3000000 /dev/urandom > random && find . -exec touch -h -d '2001-02-03 04:05:06.789' {} +`);
});
after(async () => {
  rmSync(temporary, { recursive: true, force: true });
  await finish(server);
});

const shown = (dir) => files.sh(`cd ${dir} && find . -type d -printf '%p %M %T@\\n' -o -printf '%p %M %l %T@ %n\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum`);
const zstd = (bytes) => spawnSync('zstd', ['-q', '-c'], { input: bytes, maxBuffer: 1 << 30 }).stdout;
const upload = (path, bytes, options = {}) => send(server, 'PUT', `${files.base}/fs/tar?${files.query({ path, ...options })}`, bytes);

describe('down', () => {
  for (const [compression, type, flag] of [
    ['none', 'application/x-tar', '-xpf'],
    ['gzip', 'application/gzip', '-xzpf'],
    ['zstd', 'application/zstd', '--zstd -xpf'],
  ])
    it(`is an archive that tar reads, with compression ${compression}`, { timeout: 60000 }, async () => {
      const answer = await files.ok(files.ask('tar', 't', { compression }));
      assert.equal(answer.headers['content-type'], type);
      const archive = join(temporary, compression);
      writeFileSync(archive, answer.bytes);
      const dir = mkdtempSync(join(temporary, 'out-'));
      const result = spawnSync('sh', ['-c', `tar ${flag} ${archive} -C ${dir} && cd ${dir} && find . -type d -printf '%p %M %T@\\n' -o -printf '%p %M %l %T@ %n\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum`], { encoding: 'utf8' });
      assert.equal(result.stderr, '');
      assert.equal(result.stdout, await shown('t'));
    });

  it('of a file is an archive of one', async () => {
    const { bytes } = await files.ok(files.ask('tar', 't/file'));
    assert.equal(spawnSync('tar', ['-xO', 'file'], { input: bytes, encoding: 'utf8' }).stdout, 'content\n');
  });

  it('says why it cannot', async () => {
    assertFileError(await files.ask('tar', 'nope'), 404, 'not_found');
    assertFileError(await files.ask('tar', '/root'), 403, 'permission_denied');
    assertFileError(await files.ask('tar', 't/pipe'), 400, 'not_a_regular_file');
    assertFileError(await files.ask('tar', 't', { compression: 'rar' }), 400, 'invalid_field', 'compression');
  });

  it('is cut off when something in it cannot be read', async () => {
    await files.sh('mkdir -p broken && head -c 1000000 /dev/zero > broken/a && echo x > broken/b && chmod 0 broken/b');
    await assert.rejects(files.ask('tar', 'broken'), /cut short|aborted|terminated|ECONNRESET|hang up/);
    assert.equal((await files.ok(files.ask('exists', 'broken'))).json.exists, true);
  });

  it('gives up when the client goes away', { timeout: 60000 }, async () => {
    await files.sh('mkdir -p big && head -c 200000000 /dev/urandom > big/a');
    for (const compression of ['none', 'gzip', 'zstd'])
      await new Promise((resolve) => {
        const req = http.get(`${server.url}${files.base}/fs/tar?path=big&compression=${compression}`, { headers: { authorization: `Bearer ${server.key}` }, agent: false }, (res) => {
          res.once('data', () => {
            req.destroy();
            resolve();
          });
        });
      });
    await files.ok(files.delete('big', { recursive: true }));
  });
});

describe('up', () => {
  for (const compression of ['none', 'gzip', 'zstd'])
    it(`unpacks what was packed, with compression ${compression}`, { timeout: 60000 }, async () => {
      const { bytes } = await files.ok(files.ask('tar', 't', { compression }));
      const { json } = await files.ok(upload(`up/${compression}`, bytes));
      assert.ok(json.count >= 10);
      assert.equal(await shown(`up/${compression}`), await shown('t'));
    });

  for (const format of ['ustar', 'gnu', 'pax'])
    it(`unpacks what tar packed as ${format}`, async () => {
      const dir = mkdtempSync(join(temporary, 'in-'));
      const long = format === 'ustar' ? 'short' : 'l'.repeat(180);
      spawnSync('sh', ['-c', `cd ${dir} && mkdir -p d/${long} && echo hi > d/${long}/f && ln -s ${long}/f d/l && ln d/${long}/f d/h && chmod 0755 d/h`]);
      const { stdout } = spawnSync('tar', [`--format=${format}`, '-c', '-C', dir, 'd'], { maxBuffer: 1 << 24 });
      await files.ok(upload(`from-${format}`, stdout));
      assert.equal(await files.sh(`cat from-${format}/d/l && stat -c '%h %a %U' from-${format}/d/h`), 'hi\n2 755 user\n');
    });

  it('replaces what is there, keeps what it does not name', async () => {
    await files.sh('mkdir -p over && echo old > over/a && echo stays > over/b && ln -s /etc/passwd over/link && chmod 0711 over');
    await files.ok(upload('over', Buffer.concat([tarMember({ path: './', type: '5', mode: 0o777 }), tarMember({ path: 'a', content: 'new' }), tarMember({ path: 'link', content: 'file now' })])));
    assert.equal(await files.sh('cat over/a over/b over/link && stat -c %a over'), 'newstays\nfile now711\n');
  });

  it('restores owners only for root who asks', async () => {
    const archive = tarMember({ path: 'f', content: 'x', mode: 0o4755, uid: 33, gid: 34 });
    await files.ok(upload('owners1', archive));
    await files.ok(upload('/srv/owners2', archive, { user: 'root' }));
    await files.ok(upload('/srv/owners3', archive, { user: 'root', owners: true }));
    assert.equal(await files.sh('stat -c "%u:%g %a" owners1/f /srv/owners2/f /srv/owners3/f'), '1000:1000 755\n0:0 755\n33:34 4755\n');
  });

  it('refuses what is no archive', async () => {
    assertFileError(await upload('bad', Buffer.alloc(2000, 'x')), 400, 'invalid_archive');
    assertFileError(await upload('bad', Buffer.from('short')), 400, 'invalid_archive');
    const good = tarMember({ path: 'f', content: 'x'.repeat(1000) });
    assertFileError(await upload('bad', good.subarray(0, 900)), 400, 'invalid_archive');
    assertFileError(await upload('bad', gzipSync(good).subarray(0, 40)), 400, 'invalid_archive');
    assertFileError(await upload('bad', zstd(good).subarray(0, 30)), 400, 'invalid_archive');
    const broken = gzipSync(good);
    broken[20] ^= 0xff;
    assertFileError(await upload('bad', broken), 400, 'invalid_archive');
    assertFileError(await upload('bad', good, { parents: 'maybe' }), 400, 'invalid_field', 'parents');
    assertFileError(await upload('nope/nope', good, { parents: false }), 404, 'not_found');
    assertFileError(await upload('/etc', good), 403, 'permission_denied');
  });

  it('refuses a bomb', { timeout: 120000 }, async () => {
    // A gigabyte of nothing in a member that is passed over: it is expanded, but not written.
    const zeros = 1180 << 20;
    const result = spawnSync('sh', ['-c', `(cat; head -c ${zeros} /dev/zero) | zstd -q -c`], { input: tarMember({ path: 'label', type: 'V', size: zeros }), maxBuffer: 1 << 28 });
    assert.ok(result.stdout.length < 200_000, `${result.stdout.length}`);
    const answer = await upload('bomb', result.stdout);
    assertFileError(answer, 400, 'invalid_archive');
    assert.match(answer.json.error.message, /expands to more than/);
  });

  it('flows through a server that stays small', { timeout: 120000 }, async () => {
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.frontPid}/status`, 'utf8'))[1]) * 1024;
    await files.sh('mkdir -p flow && head -c 80000000 /dev/urandom > flow/a');
    const before = rss();
    let peak = 0;
    const timer = setInterval(() => (peak = Math.max(peak, rss())), 10);
    await new Promise((resolve, reject) => {
      http
        .get(`${server.url}${files.base}/fs/tar?path=flow&compression=zstd`, { headers: { authorization: `Bearer ${server.key}` }, agent: false }, (down) => {
          const up = http.request(`${server.url}${files.base}/fs/tar?path=flow2`, { method: 'PUT', headers: { authorization: `Bearer ${server.key}` }, agent: false }, (res) => {
            res.resume();
            res.on('end', () => (res.statusCode === 200 ? resolve() : reject(new Error(`${res.statusCode}`))));
          });
          up.on('error', reject);
          down.pipe(up);
        })
        .on('error', reject);
    });
    clearInterval(timer);
    assert.equal(await files.sh('cmp flow/a flow2/a && echo same'), 'same\n');
    const bound = process.env.BUNKER?.includes('asan') ? 160 << 20 : 32 << 20;
    assert.ok(peak - before < bound, `the front grew by ${peak - before} bytes`);
    await files.sh('rm -rf flow flow2');
  });
});
