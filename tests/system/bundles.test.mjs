// Snapshots as files: exported, carried to another server, imported.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { mkdtempSync, rmSync, writeFileSync, symlinkSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Server, childrenOf, commandName, safeReaddir, until } from '../lib/server.mjs';
import { assertRefused, finish, sandboxesInKernel } from './support.mjs';

const isRoot = process.getuid() === 0;
const HEAD = 8, END = 56;

function frame(magic, payload) {
  const head = Buffer.alloc(HEAD);
  head.writeUInt32LE(magic, 0);
  head.writeUInt32LE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

/** A file as an export would be, of whatever tar. */
function bundle(tar, manifest = {}) {
  const zstd = spawnSync('zstd', ['-q', '-c'], { input: tar, maxBuffer: 1 << 28 }).stdout;
  const start = Buffer.concat([frame(0x184d2a5b, Buffer.from(JSON.stringify({ format: 'bunker-snapshot', version: 1, template: 'base', ...manifest }))), zstd]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(start.length));
  return Buffer.concat([start, frame(0x184d2a5e, Buffer.concat([Buffer.from('BNKEND1\0'), createHash('sha256').update(start).digest(), length]))]);
}

describe('a snapshot as a file', { skip: !isRoot && 'needs root', timeout: 120000 }, () => {
  let server, other, file, dir, box;
  const get = (from, path) =>
    new Promise((resolve, reject) => {
      http.get(from.url + path, { headers: { authorization: `Bearer ${from.key}` } }, (res) => {
        const parts = [];
        res.on('data', (part) => parts.push(part));
        res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(parts) }));
        res.on('error', reject);
      }).on('error', reject);
    });
  const put = (to, bytes, query = '') => to.request('POST', `/v1/snapshots/import${query}`, bytes, { headers: { 'content-type': 'application/zstd' } });
  const nothingLeft = async (to, before) => {
    assert.deepEqual((await to.request('GET', '/v1/snapshots')).json.snapshots.map((s) => s.id), before);
    await until('no builder and no disk is left', () => sandboxesInKernel(to).length === 0 && safeReaddir(to.disks('snapshots')).length === before.length && safeReaddir(to.disks('boxes')).length === 0);
  };
  before(async () => {
    dir = mkdtempSync('/tmp/bunker-bundle-');
    server = await Server.start({ args: ['--pool', '0'] });
    other = await Server.start({ args: ['--pool', '0'] });
    box = await server.create();
    await server.exec(box.id, { command: 'rm /etc/hostname; rm -rf /usr/share/doc/bash; mv /etc/python3 /etc/elsewhere; echo tool > /usr/local/bin/tool; chmod 755 /usr/local/bin/tool; mkfifo /var/tmp/fifo; mknod /srv/null c 1 3 2>/dev/null; true', user: 'root' });
    await server.exec(box.id, 'mkdir -p d/empty; echo hi > d/f; chmod 4750 d/f; ln d/f d/g; ln -s ../d/f d/l; head -c 3000000 /dev/urandom > big; truncate -s 5M holes; sha256sum big holes > sums; touch -d "2001-02-03 04:05:06 UTC" old');
    await server.request('POST', `/v1/sandboxes/${box.id}/snapshots`, { name: 'work', tag: 'v1', description: 'ünïcode' });
  });
  after(async () => {
    rmSync(dir, { recursive: true, force: true });
    await finish(server);
    await finish(other);
  });

  it('is a tar.zst that any tool reads, between a manifest and an end', async () => {
    const answer = await get(server, '/v1/snapshots/work:v1/export');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'application/zstd');
    file = answer.body;
    const manifest = JSON.parse(file.subarray(HEAD, HEAD + file.readUInt32LE(4)));
    assert.deepEqual([manifest.format, manifest.version, manifest.name, manifest.tag, manifest.description, manifest.template], ['bunker-snapshot', 1, 'work', 'v1', 'ünïcode', 'base']);
    const list = spawnSync('sh', ['-c', 'zstd -dc | tar -tf -'], { input: file, encoding: 'utf8', maxBuffer: 1 << 28 });
    assert.equal(list.status, 0, list.stderr);
    for (const name of ['home/user/d/empty/', 'home/user/d/f', 'etc/.wh.hostname', 'etc/elsewhere/debian_config', 'usr/share/doc/.wh.bash', 'usr/local/bin/tool']) assert.ok(list.stdout.split('\n').includes(name), name);
  });

  it('keeps files that are called like whiteouts, and what they would take away', async () => {
    const odd = await server.create();
    await server.exec(odd.id, 'mkdir w && cd w && echo kept > f && echo one > .wh.f && ln -s f .wh.l && mkdir .wh.d && echo two > .wh.d/x && mkdir q && echo three > q/.wh..wh..opq && echo four > q/y && touch -d "1969-12-31 23:59:58.5 UTC" before');
    const look = "cd w && find . -printf '%p %y %s %l\\n' | sort && cat f .wh.f .wh.d/x q/.wh..wh..opq q/y && stat -c %y before";
    const expected = (await server.exec(odd.id, look)).stdout;
    const made = await server.request('POST', `/v1/sandboxes/${odd.id}/snapshots`, { name: 'odd' });
    const bytes = (await get(server, `/v1/snapshots/${made.json.id}/export`)).body;
    const back = await put(other, bytes);
    assert.equal(back.status, 201, back.text);
    const copy = await other.create({ snapshot: back.json.id });
    assert.equal((await other.exec(copy.id, look)).stdout, expected);
    await other.request('DELETE', `/v1/sandboxes/${copy.id}`);
    await other.request('DELETE', `/v1/snapshots/${back.json.id}`);
    await server.request('DELETE', `/v1/sandboxes/${odd.id}`);
    await server.request('DELETE', `/v1/snapshots/${made.json.id}`);
  });

  it('becomes the same disk on another server', async () => {
    const made = await put(other, file, '?tag=carried');
    assert.equal(made.status, 201, made.text);
    assert.deepEqual([made.json.name, made.json.tag, made.json.description, made.json.template], ['work', 'carried', 'ünïcode', 'base']);
    const there = await other.create({ snapshot: 'work:carried' });
    const look = 'cd /home/user; sha256sum -c sums; stat -c "%a %u %h %n" d/f d/g; readlink d/l; ls d/empty; stat -c %Y old; ls /etc/hostname /usr/share/doc/bash /etc/python3 2>&1; ls /etc/elsewhere; cat /usr/local/bin/tool; stat -c %F /var/tmp/fifo; find / -xdev -newer /home/user/old -path "/home/*" | sort';
    const here = await server.exec(box.id, { command: look, user: 'root' });
    const now = await other.exec(there.id, { command: look, user: 'root' });
    assert.equal(now.stdout, here.stdout);
    const again = await get(other, '/v1/snapshots/work:carried/export');
    const names = (bytes) => spawnSync('sh', ['-c', 'zstd -dc | tar -tvf - | sort'], { input: bytes, encoding: 'utf8' }).stdout;
    assert.equal(names(again.body), names(file), 'and what it exports is the same again');
    await other.request('DELETE', `/v1/sandboxes/${there.id}`);
  });

  it('is refused whole when a byte is missing, changed or added', async () => {
    const before = (await other.request('GET', '/v1/snapshots')).json.snapshots.map((s) => s.id);
    for (const length of [0, 5, HEAD, 200, 5000, file.length - END, file.length - 1]) assertRefused(await put(other, file.subarray(0, length)), 400, 'invalid_archive');
    for (const at of [0, 4, 60, 1000, file.length >> 1, file.length - 40, file.length - 1]) {
      const bad = Buffer.from(file);
      bad[at] ^= 0x20;
      const answer = await put(other, bad);
      assert.equal(answer.status, 400, `${at}: ${answer.text}`);
    }
    assertRefused(await put(other, Buffer.concat([file, Buffer.from('x')])), 400, 'invalid_archive');
    await nothingLeft(other, before);
  });

  it('is refused when its template or its name makes no sense', async () => {
    const tar = spawnSync('tar', ['-cf', '-', '-C', dir, '.']).stdout;
    assertRefused(await put(other, bundle(tar, { template: 'nowhere' })), 404, 'template_not_found', 'template');
    assertRefused(await put(other, bundle(tar, { version: 99 })), 400, 'invalid_archive');
    assertRefused(await put(other, bundle(tar, { format: 'x' })), 400, 'invalid_archive');
    assertRefused(await put(other, file, '?name=a%20b'), 400, 'invalid_field', 'name');
    assertRefused(await put(other, file, '?colour=red'), 400, 'unknown_field', 'colour');
    assertRefused(await put(other, bundle(Buffer.from('no tar at all'))), 400, 'invalid_archive');
    assertRefused(await get(other, '/v1/snapshots/none/export').then((a) => ({ ...a, text: String(a.body), json: JSON.parse(a.body) })), 404, 'not_found');
  });

  it('cannot lead out of the sandbox it is unpacked in, whatever is in it', async () => {
    const before = (await other.request('GET', '/v1/snapshots')).json.snapshots.map((s) => s.id);
    writeFileSync(join(dir, 'canary'), 'host');
    const evil = join(dir, 'evil');
    mkdirSync(evil);
    symlinkSync(dir, join(evil, 'link'));
    writeFileSync(join(evil, 'f'), 'overwritten');
    const tars = [
      ['up', ['-cf', '-', '-P', '-C', evil, '--transform', 's,^f$,../../../../../../../tmp/escaped,', 'f']],
      ['absolute', ['-cf', '-', '-P', join(evil, 'f')]],
      ['through a link', ['-cf', '-', '-C', evil, '--transform', `s,^f$,link/canary,`, 'link', 'f']],
      ['device', ['-cf', '-', '-C', '/dev', 'null']],
    ];
    for (const [what, args] of tars) {
      const answer = await put(other, bundle(spawnSync('tar', args).stdout), '?name=evil');
      assert.ok([400, 201].includes(answer.status), `${what}: ${answer.text}`);
      assert.equal(spawnSync('cat', [join(dir, 'canary')], { encoding: 'utf8' }).stdout, 'host', what);
      assert.equal(spawnSync('ls', ['/tmp/escaped']).status, 2, what);
      if (answer.status === 201) await other.request('DELETE', `/v1/snapshots/${answer.json.id}`);
    }
    await nothingLeft(other, before);
  });

  it('is bounded by the largest disk', async () => {
    const small = await Server.start({ args: ['--pool', '0', '--disk', '32Mi', '--max-disk', '48Mi'] });
    const zeros = spawnSync('sh', ['-c', `head -c 200000000 /dev/zero > ${dir}/zeros && tar -cf - -C ${dir} zeros`], { maxBuffer: 1 << 28 }).stdout;
    const bomb = bundle(zeros);
    assert.ok(bomb.length < 1000000);
    assertRefused(await put(small, bomb), 507, 'no_space');
    await nothingLeft(small, []);
    await finish(small);
  });

  it('is refused while sixteen others are being imported', async () => {
    const before = (await other.request('GET', '/v1/snapshots')).json.snapshots.map((s) => s.id);
    const open = Array.from({ length: 16 }, () => {
      const req = http.request(`${other.url}/v1/snapshots/import`, { method: 'POST', headers: { authorization: `Bearer ${other.key}`, 'content-type': 'application/zstd' } });
      req.on('error', () => {});
      req.write('x');
      return req;
    });
    await until('they are there', async () => (await put(other, file.subarray(0, 1))).status === 503);
    assertRefused(await put(other, file), 503, 'resource_exhausted');
    for (const req of open) req.destroy();
    await until('they are gone', async () => (await put(other, file.subarray(0, 1))).status === 400);
    await nothingLeft(other, before);
  });

  it('leaves nothing when the client goes away', async () => {
    const before = (await other.request('GET', '/v1/snapshots')).json.snapshots.map((s) => s.id);
    await new Promise((resolve) => {
      const req = http.request(`${other.url}/v1/snapshots/import`, { method: 'POST', agent: false, headers: { authorization: `Bearer ${other.key}`, 'content-type': 'application/zstd', 'content-length': file.length } });
      req.on('error', resolve);
      req.write(file.subarray(0, file.length - 100));
      setTimeout(() => req.destroy(), 300);
    });
    await nothingLeft(other, before);
    const read = http.get(`${server.url}/v1/snapshots/work/export`, { agent: false, headers: { authorization: `Bearer ${server.key}` } });
    await new Promise((resolve) => read.on('response', (res) => res.once('data', resolve)));
    read.destroy();
    const keeper = childrenOf(server.wardenPid).find((pid) => commandName(pid) === 'bunker-keeper');
    await until('who read for nobody is gone', () => childrenOf(keeper).length === 0);
  });
});
