// What works on disks outside of the sandbox, for somebody who writes them inside: the keeper, the sweeper, the readers.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { childrenOf, commandName, until } from '../lib/server.mjs';
import { Arena, LONG, random } from './arena.mjs';

const CAPABILITIES = { CHOWN: 0, DAC_OVERRIDE: 1, DAC_READ_SEARCH: 2, FOWNER: 3, FSETID: 4, SETGID: 6, SETUID: 7, SYS_ADMIN: 21, SYS_RESOURCE: 24, SETFCAP: 31 };
const mask = (...names) => names.reduce((sum, name) => sum | (1n << BigInt(CAPABILITIES[name])), 0n);

describe('the disks', { timeout: 240000 }, () => {
  let arena;
  let server;
  let box;
  const inside = async (command, user = 'user', sandbox = box) => {
    const r = await server.exec(sandbox.id, { command, user, timeout: '120s' });
    assert.equal(r.exitCode, 0, r.stderr);
    return r.stdout;
  };
  const path = (what, sandbox = box) => `/v1/sandboxes/${sandbox.id}/${what}`;
  const ours = (name) => childrenOf(server.wardenPid).find((pid) => commandName(pid) === name);
  const readers = () => childrenOf(ours('bunker-keeper')).filter((pid) => commandName(pid) === 'bunker-reader');

  before(async () => {
    arena = await Arena.open({ args: ['--pool', '0'] });
    server = arena.server;
    box = await arena.sandbox();
  });
  after(() => arena?.close());

  /** A comparison whose answer nobody takes. */
  const stall = (target) =>
    new Promise((resolve, reject) => {
      const req = http.get(server.url + target, { headers: { authorization: `Bearer ${server.key}` }, agent: false }, (res) => {
        res.pause();
        resolve(req);
      });
      req.on('error', reject);
    });

  it('are worked on by processes that have given up the rest', async () => {
    const status = (pid) => {
      const text = readFileSync(`/proc/${pid}/status`, 'utf8');
      const field = (name) => new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(text)[1];
      return {
        uid: Number(field('Uid').split('\t')[1]),
        capabilities: BigInt(`0x${field('CapEff')}`),
        permitted: BigInt(`0x${field('CapPrm')}`),
        noNewPrivileges: field('NoNewPrivs'),
        seccomp: field('Seccomp'),
        network: readlinkSync(`/proc/${pid}/ns/net`),
      };
    };
    await inside('mkdir /home/user/many && cd /home/user/many && seq 20000 | xargs touch');
    const request = await stall(path('diff'));
    const [reader] = await until('it is being read', () => (readers().length ? readers() : undefined));
    const all = mask(...Object.keys(CAPABILITIES));
    const wanted = {
      'bunker-keeper': [ours('bunker-keeper'), 0, all],
      'bunker-sweeper': [ours('bunker-sweeper'), 0, all],
      'bunker-reader': [reader, 65534, mask('DAC_READ_SEARCH', 'SYS_ADMIN')],
    };
    const host = status(process.pid);
    assert.notEqual(host.capabilities & ~all, 0n, 'the control: whoever starts this has more');
    for (const [name, [pid, uid, capabilities]] of Object.entries(wanted)) {
      const s = status(pid);
      assert.equal(s.uid, uid, name);
      assert.equal(s.capabilities & ~capabilities, 0n, `${name} has ${s.capabilities.toString(16)}`);
      assert.equal(s.permitted, s.capabilities, name);
      assert.equal(s.noNewPrivileges, '1', name);
      assert.equal(s.seccomp, '2', name);
      assert.notEqual(s.network, host.network, name);
    }
    const held = readdirSync(`/proc/${reader}/fd`)
      .filter((fd) => Number(fd) > 2)
      .map((fd) => readlinkSync(`/proc/${reader}/fd/${fd}`));
    assert.ok(held.some((target) => target.startsWith('pipe:')));
    for (const target of held)
      assert.match(target, new RegExp(`^pipe:|^/usr|/disks/templates/|/disks/boxes/${box.id}/(root|usr)`), 'it holds what it does not read');
    request.destroy();
    await until('it has gone', () => readers().length === 0);
    await inside('rm -rf /home/user/many');
  });

  it('a comparison ends when nobody waits for it, even one that finds nothing', async () => {
    // One piece of data, many times over: it takes long to compare, and next to no room.
    await inside(`python3 -c "
import fcntl, os, struct
source = os.open('piece', os.O_RDWR | os.O_CREAT); os.write(source, os.urandom(1 << 20) * 16); os.fsync(source)
big = os.open('big', os.O_RDWR | os.O_CREAT)
for i in range(8192): fcntl.ioctl(big, 0x4020940d, struct.pack('qQQQ', source, 0, 16 << 20, i << 24))
"`);
    assert.equal((await server.request('POST', path('checkpoints'), { name: 'same' })).status, 201);
    await inside('touch big');
    const request = http.get(`${server.url}${path('diff')}?checkpoint=same`, { headers: { authorization: `Bearer ${server.key}` }, agent: false });
    request.on('error', () => {});
    await until('it is under way', () => readers().length === 1);
    request.destroy();
    await until('nobody works for nothing', () => readers().length === 0);
    await inside('rm big piece');
  });

  it('an exabyte of nothing is compared at once', async () => {
    await inside('truncate -s 1E sparse; printf x | dd of=sparse bs=1 seek=1P conv=notrunc 2>/dev/null');
    assert.equal((await server.request('POST', path('checkpoints'), { name: 'sparse' })).status, 201);
    await inside('touch sparse');
    const same = await server.request('GET', `${path('diff')}?checkpoint=sparse`);
    assert.deepEqual(same.json.changes, []);
    await inside('printf y | dd of=sparse bs=1 seek=1P conv=notrunc 2>/dev/null');
    const other = await server.request('GET', `${path('diff')}?checkpoint=sparse`);
    assert.deepEqual(other.json.changes.map((c) => [c.change, c.path]), [['changed', '/home/user/sparse']], 'the control');
    await inside('rm sparse');
  });

  it('one tenant cannot take all the readers', async () => {
    await inside('mkdir many && cd many && seq 20000 | xargs touch');
    const requests = [];
    for (let i = 0; i < 4; i++) requests.push(await stall(path('diff')));
    const refused = await server.request('GET', path('diff'));
    assert.equal(refused.status, 429, refused.text);
    assert.equal(refused.json.error.code, 'quota_exceeded');
    for (const request of requests) request.destroy();
    await until('they are gone', () => readers().length === 0);
    assert.equal((await server.request('GET', path('diff'))).status, 200, 'the control');
    await inside('rm -rf many');
  });

  it('marks of the overlay cannot be set, and those that look like it mean nothing', async () => {
    const set = (name, value, target, user) => server.exec(box.id, { command: ['python3', '-c', `import os; os.setxattr('${target}', '${name}', b'${value}')`], user });
    await inside('mkdir -p /etc/apt && touch /etc/apt/x; mkdir -p marked', 'root');
    const seen = await inside('ls /etc | sort');
    for (const user of ['user', 'root'])
      for (const name of ['trusted.overlay.opaque', 'trusted.overlay.redirect', 'trusted.overlay.metacopy', 'security.capability'])
        assert.notEqual((await set(name, 'y', '/home/user/marked', user)).exitCode, 0, `${user} set ${name}`);
    for (const [name, value] of [['user.overlay.opaque', 'y'], ['user.overlay.redirect', '/root'], ['user.overlay.whiteout', 'y'], ['user.overlay.metacopy', '']]) {
      assert.equal((await set(name, value, '/etc', 'root')).exitCode, 0, 'the control: an attribute like any other');
      assert.equal((await set(name, value, '/etc/apt/x', 'root')).exitCode, 0);
    }
    assert.notEqual((await server.exec(box.id, { command: 'mknod /home/user/gone c 0 0', user: 'root' })).exitCode, 0, 'a whiteout was made');
    const snapshot = await server.request('POST', path('snapshots'), { name: `marks-${random(3)}` });
    assert.equal(snapshot.status, 201, snapshot.text);
    const copy = await server.create({ snapshot: snapshot.json.id });
    assert.equal(await inside('ls /etc | sort', 'user', copy), seen);
    assert.equal(await inside('test -e /etc/apt/x && echo there', 'user', copy), 'there\n');
    await arena.remove(copy);
  });

  for (const [what, ask] of [
    ['a comparison', () => server.request('GET', `${path('diff')}?format=tar`)],
    ['a comparison as text', () => server.request('GET', `${path('diff')}?format=text`)],
    ['a snapshot', async () => {
      const made = await server.request('POST', path('snapshots'), { name: `race-${random(3)}` });
      const bundle = await fetch(`${server.url}/v1/snapshots/${made.json.id}/export`, { headers: { authorization: `Bearer ${server.key}` } });
      const tar = spawnSync('zstd', ['-dc'], { input: Buffer.from(await bundle.arrayBuffer()), maxBuffer: 1 << 28, encoding: 'latin1' });
      assert.equal(tar.status, 0, tar.stderr);
      await server.request('DELETE', `/v1/snapshots/${made.json.id}`);
      return { status: bundle.status, text: tar.stdout };
    }],
  ])
    it(`${what} follows no link that takes a directory's place meanwhile`, async () => {
      const { file, mark } = arena.canaries;
      const name = file.split('/').pop();
      await inside(`mkdir -p race/d/sub; ln -sfn /root race/l; for d in . d d/sub; do echo of the sandbox > race/$d/${name}; done`);
      const swapping = await server.request('POST', path('processes'), {
        command: `cd race && exec python3 -c "
import os
open('started', 'w').close()
while True:
    try:
        os.rename('d', 'aside'); os.rename('l', 'd'); os.rename('d', 'l'); os.rename('aside', 'd')
        os.makedirs('gone/below'); os.rmdir('gone/below'); os.rmdir('gone')
    except OSError: pass
"`,
      });
      assert.equal(swapping.status, 201, swapping.text);
      await until('it swaps', async () => (await server.exec(box.id, 'test -e race/started')).exitCode === 0);
      for (let i = 0; i < (LONG ? 500 : 25); i++) {
        const r = await ask();
        assert.equal(r.status, 200, r.text);
        assert.ok(!r.text.includes(mark), 'it holds a file of the host');
        assert.ok(r.text.includes('of the sandbox'), 'the control: what is there under this name comes along');
      }
      await server.request('DELETE', path(`processes/${swapping.json.id}`));
      await inside('rm -rf race');
    });

  it('the canaries are unharmed', () => arena.canaries.assertUnharmed());
});
