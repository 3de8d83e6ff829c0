// B20 to B23, E60, E68: images, disks and volumes that were laid out for whoever mounts, writes, fills and deletes them.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { until } from '../lib/server.mjs';
import { dir, symlink, tar, tinyRoot } from '../lib/images.mjs';
import { Arena, LONG, random } from './arena.mjs';

describe('B images and mount points', { timeout: LONG ? 3600000 : 240000 }, () => {
  let arena;
  let server;
  let counter = 0;
  const corePattern = readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
  const hostMounts = () => readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length;
  const wardenMounts = () => readFileSync(`/proc/${server.wardenPid}/mountinfo`, 'utf8').split('\n').length;

  before(async () => {
    arena = await Arena.open({ args: ['--pool', '0'] });
    server = arena.server;
  });
  after(() => arena?.close());

  const send = (entries) => server.request('POST', `/v1/templates/imports?name=root${++counter}`, tar(entries), { headers: { 'content-type': 'application/x-tar' } });
  const look = 'test -c /dev/null && test -d /proc/1 && test -d /tmp && echo whole; cat /root/* 2>/dev/null; true';
  const without = (...names) => tinyRoot().filter((e) => !names.some((name) => e.name === name || e.name.startsWith(`${name}/`)));
  /** No boot that fails may be more than that: its words are taken out of the log, which is checked at the end. */
  const forgetFailedBoots = () => (server.log.text = server.log.text.replace(/.*(boot failed|request failed).*\n/g, ''));

  it('B20 an image whose own directories are links to elsewhere is refused or contained', async () => {
    const mounts = [hostMounts(), wardenMounts()];
    const control = await send(tinyRoot());
    assert.equal(control.status, 201, control.text);
    assert.equal((await server.run({ template: `root${counter}`, command: look, user: 'root' })).stdout, 'whole\n', 'the control');
    let booted = 0;
    for (const target of LONG ? ['/', '/host', '../../..', '/proc/1/root', '/usr'] : ['/', '../../..'])
      for (const names of [['dev'], ['proc'], ['etc'], ['run'], ['dev', 'proc', 'sys', 'tmp']]) {
        const answer = await send([...without(...names), ...names.map((name) => symlink(name, target))]);
        if (answer.status !== 201) {
          assert.ok(answer.status >= 400 && answer.status < 500, `${names} → ${target}: ${answer.status} ${answer.text}`);
          continue;
        }
        const r = await server.request('POST', '/v1/run', { template: `root${counter}`, command: look, user: 'root' });
        if (r.status === 200 && r.json.stdout.includes('whole')) booted++;
        assert.ok(!r.text.includes(arena.canaries.mark), `${names} → ${target} shows the host`);
      }
    forgetFailedBoots();
    assert.ok(booted > 0, 'none of them was ever mounted over');
    assert.deepEqual([hostMounts(), wardenMounts()], mounts);
  });

  it('B20 a disk that has links for mount points does not boot, and says where', async () => {
    const box = await server.create();
    const at = `/v1/sandboxes/${box.id}`;
    const mounts = [hostMounts(), wardenMounts()];
    const resume = () => server.request('POST', `${at}/resume`);
    for (const [name, step] of [['dev', 'mounting /dev'], ['proc', 'mounting /proc'], ['usr', 'mounting /usr']])
      for (const target of ['/', '/root', '../../../../..', arena.canaries.file]) {
        assert.equal((await server.request('POST', `${at}/pause`, { memory: false })).status, 200);
        const planted = server.disks('boxes', box.id, 'root', name);
        rmSync(planted, { recursive: true, force: true });
        symlinkSync(target, planted);
        const answer = await resume();
        assert.equal(answer.status, 500, `${name} → ${target}: ${answer.text}`);
        assert.match(answer.json.error.message, new RegExp(step));
        rmSync(planted);
        const again = await resume();
        assert.equal(again.status, 200, `the control: ${again.text}`);
      }
    forgetFailedBoots();
    await arena.remove(box);
    assert.deepEqual([hostMounts(), wardenMounts()], mounts);
  });

  it('B21 no node of /dev is what an image put there', async () => {
    const links = ['dev/null', 'dev/console', 'dev/pts/0', 'dev/tty', 'dev/zero', 'dev/shm', 'dev/fd'].map((name) => symlink(name, '/proc/sys/kernel/core_pattern'));
    const answer = await send([...without('dev'), dir('dev'), dir('dev/pts'), ...links, symlink('opt', '/proc/sys/kernel/core_pattern')]);
    assert.equal(answer.status, 201, answer.text);
    const r = await server.run({
      template: `root${counter}`,
      command: 'test -c /dev/null && test -c /dev/zero && echo nodes; ls -A /dev; for n in null console pts/0 tty zero; do echo evil > /dev/$n; done 2>/dev/null; readlink /opt',
      user: 'root',
    });
    assert.match(r.stdout, /^nodes\n/);
    assert.ok(!/console/.test(r.stdout), 'what is below a mount point shows through');
    assert.match(r.stdout, /core_pattern\n$/, 'the control: its other links are there');
    assert.equal(readFileSync('/proc/sys/kernel/core_pattern', 'utf8'), corePattern);
  });

  it('B22 a mount point that is flipped by a neighbour while it is mounted over leads nowhere else', async (t) => {
    for (const name of ['outer', 'inner']) assert.equal((await server.request('POST', '/v1/volumes', { name })).status, 201);
    const neighbour = await server.create({ volumes: [{ volume: 'outer', path: '/data' }] });
    const flipping = await server.request('POST', `/v1/sandboxes/${neighbour.id}/processes`, {
      command: `cd /data && exec python3 -c "
import os
os.makedirs('sub', exist_ok=True); os.symlink('/etc', 'link')
while True:
    try: os.rename('sub', 'aside'); os.rename('link', 'sub'); os.rename('sub', 'link'); os.rename('aside', 'sub')
    except OSError: pass
"`,
    });
    assert.equal(flipping.status, 201, flipping.text);
    const outcomes = { mounted: 0, refused: 0 };
    const volumes = [{ volume: 'outer', path: '/data' }, { volume: 'inner', path: '/data/sub' }];
    for (let i = 0; i < (LONG ? 10000 : 40); i++) {
      const answer = await server.request('POST', '/v1/sandboxes', { volumes });
      if (answer.status !== 201) {
        assert.match(answer.json.error.message, /mounting the volumes/);
        outcomes.refused++;
        continue;
      }
      const seen = await server.exec(answer.json.id, { command: 'cat /proc/self/mountinfo; test -s /etc/passwd && echo whole', user: 'root' });
      const points = seen.stdout.split('\n').map((line) => line.split(' ')[4]).filter(Boolean);
      assert.deepEqual(points.filter((point) => !/^\/($|usr$|dev|proc|data)/.test(point)), [], 'a volume is where nobody asked for one');
      assert.match(seen.stdout, /whole/);
      outcomes.mounted++;
      await server.request('DELETE', `/v1/sandboxes/${answer.json.id}`);
    }
    t.diagnostic(JSON.stringify(outcomes));
    await arena.remove(neighbour);
    const control = await server.request('POST', '/v1/sandboxes', { volumes });
    if (control.status === 201) {
      outcomes.mounted++;
      await server.request('DELETE', `/v1/sandboxes/${control.json.id}`);
    }
    assert.ok(outcomes.mounted > 0, 'the control: it was never mounted');
    forgetFailedBoots();
  });

  it('B23 a parent that is renamed during a write takes the file along, and nobody else', async () => {
    const box = await server.create();
    const at = `/v1/sandboxes/${box.id}`;
    const renaming = await server.request('POST', `${at}/processes`, {
      command: `exec python3 -c "
import os
os.makedirs('w/p'); os.symlink('/etc', 'w/l')
while True:
    for a, b in (('p', 'q'), ('l', 'p'), ('p', 'l'), ('q', 'p')):
        try: os.rename('w/' + a, 'w/' + b)
        except OSError: pass
"`,
    });
    assert.equal(renaming.status, 201);
    const before_ = (await server.exec(box.id, 'ls /etc | sort')).stdout;
    const acknowledged = [];
    for (let i = 0; i < (LONG ? 5000 : 150); i++) {
      const name = `f${i}`;
      const r = await server.request('PUT', `${at}/files?path=/home/user/w/p/${name}`, `content ${i}`, { headers: { 'content-type': 'application/octet-stream' } });
      if (r.status < 300) acknowledged.push(name);
      else assert.ok(r.status < 500, r.text);
    }
    assert.equal((await server.request('DELETE', `${at}/processes/${renaming.json.id}`)).status, 204);
    const found = (await server.exec(box.id, "find /home/user/w -type f -printf '%f\\n'")).stdout.split('\n').filter(Boolean).sort();
    assert.deepEqual(found, acknowledged.sort(), 'what was acknowledged is there, once, and nothing else');
    assert.ok(found.length > 0, 'the control: nothing was ever written');
    assert.equal((await server.exec(box.id, 'ls /etc | sort')).stdout, before_, 'the user wrote to /etc');
    await arena.remove(box);
  });

  it('B the canaries are unharmed', () => arena.canaries.assertUnharmed());
});

for (const pool of ['auto', 'directory'])
  describe(`E60 disks that are filled, ${pool === 'auto' ? 'in a btrfs pool' : 'in plain directories'}`, { timeout: LONG ? 3600000 : 240000 }, () => {
    let arena;
    let server;
    let bystander;
    const limited = pool === 'auto';
    before(async () => {
      arena = await Arena.open({ args: ['--pool', '0', '--disk-pool', pool] });
      server = arena.server;
      bystander = await server.create();
    });
    after(() => arena?.close());

    /** Fills a disk inside; the others must not feel it, and its deletion must end. */
    async function fill(what, command, { user = 'user', resources, check } = {}) {
      const box = await server.create(resources ? { resources } : {});
      const r = await server.exec(box.id, { command, user, timeout: LONG ? '900s' : '120s' });
      assert.equal(r.timedOut, false, what);
      await check?.(box, r);
      assert.equal((await server.exec(bystander.id, 'head -c 1000000 /dev/urandom > f && sync f && rm f && echo fine')).stdout, 'fine\n', `${what}: a neighbour cannot write`);
      assert.equal((await server.request('GET', '/health')).status, 200);
      await arena.remove(box);
      await until(`${what} is gone`, () => !readdirSync(server.disks('boxes')).includes(box.id) && readdirSync(server.disks('trash')).length === 0, LONG ? 600000 : 60000);
    }
    const small = limited ? { disk: '32Mi' } : undefined;

    it('E60 bytes end inside, and only there', { skip: !limited && 'a pool of directories has no limits' }, () =>
      fill('a full disk', 'head -c 100M /dev/zero > full; stat -c %s full', {
        resources: small,
        check: (_, r) => {
          assert.match(r.stderr, /quota|space/i);
          assert.ok(Number(r.stdout) > 1 << 20 && Number(r.stdout) <= 32 << 20, 'the control: something was written, and not all');
        },
      }));

    it('E60 many files end inside, or do no harm', () =>
      fill('many files', `mkdir many; cd many; i=0; while [ $i -lt ${LONG ? 1000 : 10} ]; do seq -f $i-%.0f 1000 | xargs touch || exit 0; i=$((i+1)); done; ls -U | wc -l`, {
        resources: limited && !LONG ? { disk: '256Mi' } : undefined,
        check: (_, r) => assert.ok(Number(r.stdout) >= 10000 || r.stderr, r.stdout),
      }));

    it('E60 attributes count', () =>
      fill('attributes', `python3 -c "
import os
for i in range(${limited ? 20000 : 500}):
    try:
        open('a%d' % i, 'w').close()
        os.setxattr('a%d' % i, 'user.x', b'x' * 3000)
        if i % 500 == 499: os.sync()
    except OSError as e: print(e.strerror); break
"`, { resources: limited ? { disk: '8Mi' } : undefined, check: (_, r) => limited && assert.match(r.stdout, /quota|space/i) }));

    it('E60 an exabyte of holes is no burden', () =>
      fill('a sparse file', 'truncate -s 1E sparse || truncate -s 15T sparse; du -k sparse', {
        check: async (box, r) => {
          assert.match(r.stdout, /^0\s/);
          const made = await server.request('POST', `/v1/sandboxes/${box.id}/snapshots`, { name: `sparse-${random(3)}` });
          assert.equal(made.status, 201, made.text);
          assert.equal((await server.request('DELETE', `/v1/snapshots/${made.json.id}`)).status, 204);
        },
      }));

    it('E60 a hundred thousand levels do not stop who deletes them', () =>
      fill('a deep tree', `python3 -c "
import os
for i in range(${LONG ? 100000 : limited ? 5000 : 800}): os.mkdir('d'); os.chdir('d')
open('bottom', 'w').close()
"`, { check: (_, r) => assert.equal(r.exitCode, 0, r.stderr) }));

    it('E60 a storm of fsync does not hold up the others', async () => {
      const box = await server.create();
      const storm = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, {
        command: `exec python3 -c "
import os
f = os.open('f', os.O_RDWR | os.O_CREAT)
while True: os.pwrite(f, b'x', 0); os.fsync(f)
"`,
      });
      assert.equal(storm.status, 201);
      const probe = arena.probe(bystander);
      for (let i = 0; i < 10; i++) {
        const made = await server.create();
        await arena.remove(made);
      }
      const { health } = await probe.stop();
      assert.ok(health.max < 5000, `a request took ${health.max} ms`);
      await arena.remove(box);
    });

    it('E60 the canaries are unharmed', () => arena.canaries.assertUnharmed());
  });

describe('E68 a quota', { timeout: 120000 }, () => {
  let arena;
  before(async () => {
    arena = await Arena.open({ args: ['--pool', '2', '--quota', 'sandboxes:10'] });
  });
  after(() => arena?.close());

  it('E68 of ten gives ten to two hundred who ask at once, and again when there is room', async () => {
    const { server } = arena;
    const ask = () => server.request('POST', '/v1/sandboxes', {});
    for (let round = 0; round < 2; round++) {
      const answers = await Promise.all(Array.from({ length: 200 }, ask));
      const made = answers.filter((r) => r.status === 201);
      assert.equal(made.length, 10);
      for (const r of answers.filter((r) => r.status !== 201)) assert.equal(r.json.error.code, 'quota_exceeded', r.text);
      assert.equal((await server.request('GET', '/v1/sandboxes?limit=100')).json.sandboxes.length, 10);
      await Promise.all(made.map((r) => arena.remove(r.json)));
    }
  });
});
