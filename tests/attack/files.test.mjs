// J: the files' API. Its work is done inside, with a user's rights; here is what somebody inside may try with it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Files, assertFileError, send } from '../system/files_support.mjs';
import { paxHeader, tarMember } from '../lib/tar.mjs';
import { Arena, LONG, random } from './arena.mjs';

describe('J the API for files', { timeout: 240000 }, () => {
  let arena;
  let server;
  let files;
  let canary;
  before(async () => {
    arena = await Arena.open();
    server = arena.server;
    files = new Files(server, (await server.create()).id);
    canary = arena.canaries.file;
  });
  after(() => arena?.close());

  const users = ['user', 'root'];
  const upload = (path, bytes, options = {}) => send(server, 'PUT', `${files.base}/fs/tar?${files.query({ path, ...options })}`, bytes);

  describe('J101 ways out', () => {
    const ways = (target) => [
      target,
      `/proc/self/root${target}`,
      `/proc/1/root${target}`,
      `/proc/1/cwd${target}`,
      `/proc/self/cwd${target}`,
      `/proc/self/task/1/root${target}`,
      `/home/user/to-root${target}`,
      `/home/user/to-proc${target}`,
      `/home/user/to-file`,
      `/home/user/a/b/c`,
    ];
    before(async () => {
      await files.sh(`ln -sfn / to-root; ln -sfn /proc/1/root to-proc; ln -sfn ${canary} to-file; mkdir -p a && ln -sfn ../../../../../../../../root a/b`);
    });

    for (const user of users) {
      it(`reads nothing of the host as ${user}`, async () => {
        for (const path of ways(canary)) {
          const answer = await files.get(path, { user });
          assert.ok([403, 404, 400].includes(answer.status), `${path}: ${answer.status}`);
          assert.ok(!answer.text.includes(arena.canaries.mark), path);
          for (const what of ['stat', 'metadata', 'tar']) {
            const about = await files.ask(what, path, { user }).catch(() => ({ status: 404, text: '' }));
            assert.ok(about.status >= 400 || !about.text.includes(arena.canaries.mark), `${what} ${path}`);
          }
        }
        const found = await files.ok(files.post('find', { path: '/', pattern: canary.split('/').pop(), user }));
        assert.deepEqual(found.json.entries, []);
        const grep = await files.ok(files.post('grep', { path: '/root', pattern: arena.canaries.mark, user: 'root' }));
        assert.deepEqual(grep.json.matches, []);
      });

      it(`changes nothing of the host as ${user}`, async () => {
        for (const path of ways(canary)) {
          await files.put(path, 'changed', { user, parents: false });
          await files.post('chmod', { path, mode: '0777', user });
          await files.post('replace', { path, pattern: 'canary', replacement: 'dead', user });
          await files.post('copy', { from: '/etc/passwd', to: path, user, overwrite: true });
          await files.post('move', { from: path, to: '/tmp/moved', user });
          await files.delete(path, { user, recursive: true });
        }
        arena.canaries.assertUnharmed();
        await files.sh(`ln -sfn / to-root; ln -sfn /proc/1/root to-proc; mkdir -p a && ln -sfn ../../../../../../../../root a/b`);
      });
    }

    it('follows the same links where they stay inside: the control', async () => {
      await files.ok(files.put('/home/user/inside', 'here'));
      for (const path of ['/home/user/to-root/home/user/inside', '/proc/self/root/home/user/inside']) assert.equal(await files.text(path), 'here');
    });

    it('has nothing of init in its own /proc/self', async () => {
      for (const user of users) {
        const open = (await files.ok(files.ask('list', '/proc/self/fd', { user }))).json.entries.map((e) => Number(e.name)).sort((a, b) => a - b);
        // Standard descriptors, the front, and the directory that is being listed.
        assert.deepEqual(open, [0, 1, 2, 3, 4]);
        for (const path of ['/proc/self/fd/3', '/dev/fd/3', '/proc/1/fd/3', '/proc/1/fd/4', '/proc/1/mem', '/proc/1/environ', '/proc/self/mem']) {
          const answer = await files.get(path, { user, length: 100 }).catch((e) => ({ status: 500, text: String(e) }));
          assert.ok(answer.status >= 400 || /cut short|hang up/.test(answer.text), `${user} ${path}: ${answer.status} ${answer.text.slice(0, 100)}`);
        }
      }
    });

    it('has none of the server\'s secrets around it', async () => {
      for (const user of users) {
        const answer = await files.get('/proc/self/environ', { user });
        assert.ok(!answer.text.includes(arena.secret));
      }
    });
  });

  describe('J102 somebody who changes what is being looked at', () => {
    const rounds = LONG ? 400 : 40;
    let swapping;
    before(async () => {
      // As fast as it goes: a directory, then a link to /etc in its place, and back.
      await server.exec(files.id, { command: 'cp -a /etc /root/etc-before', user: 'root' });
      swapping = await server.request('POST', `/v1/sandboxes/${files.id}/processes`, {
        command: `mkdir -p /tmp/race && cd /tmp/race && chmod 777 . && exec python3 -c "
import os
while True:
    try:
        os.makedirs('victim/sub'); open('victim/sub/f', 'w').close()
    except OSError: pass
    try:
        os.rename('victim', 'aside'); os.symlink('/etc', 'victim')
    except OSError: pass
    try: os.unlink('victim')
    except OSError: pass
    for undo in (lambda: os.unlink('aside/sub/f'), lambda: os.unlink('aside/sub/planted'), lambda: os.rmdir('aside/sub'), lambda: os.rmdir('aside')):
        try: undo()
        except OSError: pass
"`,
      });
      assert.equal(swapping.status, 201, swapping.text);
    });
    after(() => server.request('DELETE', `/v1/sandboxes/${files.id}/processes/${swapping.json.id}`));

    it('root removes, changes and unpacks, and /etc stays as it was', { timeout: 120000 }, async () => {
      const member = tarMember({ path: 'victim/sub/planted', content: 'x' });
      for (let i = 0; i < rounds; i++)
        await Promise.all([
          files.delete('/tmp/race/victim', { recursive: true, user: 'root' }),
          files.post('chmod', { path: '/tmp/race', mode: '0777', recursive: true, user: 'root' }),
          files.post('chown', { path: '/tmp/race', owner: 'user', recursive: true, user: 'root' }),
          upload('/tmp/race', member, { user: 'root' }),
        ]);
      const diff = await server.exec(files.id, { command: `cd / && diff -r /etc /root/etc-before; cd /etc && find . -printf '%p %m %U\\n' | sort > /tmp/now; cd /root/etc-before && find . -printf '%p %m %U\\n' | sort > /tmp/then; diff /tmp/then /tmp/now`, user: 'root' });
      assert.equal(diff.stdout, '');
      assert.equal(diff.exitCode, 0, diff.stderr);
    });

    it('a plain write goes where the link leads: the control', async () => {
      await files.sh('ln -sfn /etc /tmp/control');
      await files.ok(files.put('/tmp/control/planted', 'x', { user: 'root' }));
      assert.equal(await files.text('/etc/planted'), 'x');
      await files.ok(files.delete('/etc/planted', { user: 'root' }));
    });
  });

  describe('J103 what does not end or does not answer', () => {
    it('is refused at once, and the server goes on', async (t) => {
      await files.sh(`rm -rf odd && mkdir odd && cd odd && mkfifo fifo && truncate -s 100G sparse && python3 -c "
import socket; s = socket.socket(socket.AF_UNIX); s.bind('socket')"`);
      const began = Date.now();
      for (const path of ['odd/fifo', 'odd/socket', '/dev/zero', '/dev/random', '/dev/tty', '/proc/kmsg', '/dev/null']) {
        assert.ok([400, 403, 404].includes((await files.get(path)).status), path);
        assert.ok([400, 403, 404].includes((await files.put(path, 'x')).status), path);
        assert.ok([400, 403, 404].includes((await files.get(path, { user: 'root' })).status), `root ${path}`);
      }
      t.diagnostic(`${Date.now() - began} ms`);
      assert.ok(Date.now() - began < 5000);
      assert.equal((await files.ok(files.get('odd/sparse', { offset: 50 * 2 ** 30, length: 10 }))).bytes.length, 10);
      assert.deepEqual((await files.ok(files.post('grep', { path: 'odd', pattern: 'x' }))).json.matches, []);
    });

    it('grep, find, copy and tar pass over what they cannot read', async () => {
      await files.ok(files.post('find', { path: 'odd', pattern: '*' }));
      await files.sh('rm odd/sparse');
      const { bytes } = await files.ok(files.ask('tar', 'odd'));
      assert.ok(bytes.includes('fifo') && !bytes.includes('socket'));
      await files.ok(files.post('copy', { from: 'odd', to: 'odd2' }));
      assert.equal(await files.sh('ls odd2'), 'fifo\n');
    });

    it('names of any length are refused or work', async () => {
      for (const length of [255, 256, 4000, 4095, 4096, 20000]) {
        const answer = await files.put('n'.repeat(length), 'x').catch((e) => ({ status: 431, text: String(e) }));
        if (length <= 255) assert.equal(answer.status, 200);
        else assert.ok([400, 414, 431].includes(answer.status), `${length}: ${answer.status}`);
      }
      const deep = 'd/'.repeat(2000);
      assert.equal((await files.put(`${deep}f`, 'x')).status, 200);
      assertFileError(await files.post('mkdir', { path: 'd/'.repeat(2100) }), 400, 'invalid_field', 'path');
      await files.ok(files.delete('d', { recursive: true }));
    });
  });

  it('J104 what is written belongs to who wrote it', async () => {
    const { json } = await files.ok(files.put('/tmp/mine', 'x'));
    assert.deepEqual([json.uid, json.gid], [1000, 1000]);
    await files.ok(files.put('/tmp/roots', 'x', { user: 'root', mode: '0600' }));
    assertFileError(await files.put('/tmp/roots', 'y'), 403, 'permission_denied');
    assertFileError(await files.put('/tmp/roots', 'y', { atomic: true }), 403, 'permission_denied');
    assertFileError(await files.get('/tmp/roots'), 403, 'permission_denied');
    assertFileError(await files.post('chmod', { path: '/tmp/roots', mode: '0666' }), 403, 'permission_denied');
    assertFileError(await files.post('chown', { path: '/tmp/mine', owner: 'root' }), 403, 'permission_denied');
  });

  describe('J105 archives', () => {
    const outside = [
      ['a name with ..', [tarMember({ path: '../escaped', content: 'x' })]],
      ['.. further inside', [tarMember({ path: 'a/../../escaped', content: 'x' })]],
      ['an absolute name', [tarMember({ path: '/tmp/escaped', content: 'x' })]],
      ['.. in the prefix', [tarMember({ path: 'escaped', prefix: '..', content: 'x' })]],
      ['.. in a pax header', [paxHeader({ path: '../escaped' }), tarMember({ path: 'fine', content: 'x' })]],
      ['a GNU long name with ..', [tarMember({ path: '././@LongLink', type: 'L', content: '../escaped\0' }), tarMember({ path: 'fine', content: 'x' })]],
      ['a link and a file through it', [tarMember({ path: 'l', type: '2', target: '..' }), tarMember({ path: 'l/escaped', content: 'x' })]],
      ['an absolute link and a file through it', [tarMember({ path: 'l', type: '2', target: '/tmp' }), tarMember({ path: 'l/escaped', content: 'x' })]],
      ['two links and a file through both', [tarMember({ path: 'a', type: '2', target: 'b' }), tarMember({ path: 'b', type: '2', target: '../..' }), tarMember({ path: 'a/tmp/escaped', content: 'x' })]],
      ['a link through /proc', [tarMember({ path: 'l', type: '2', target: '/proc/self/root/tmp' }), tarMember({ path: 'l/escaped', content: 'x' })]],
      ['a directory through a link', [tarMember({ path: 'l', type: '2', target: '..' }), tarMember({ path: 'l/escaped/', type: '5' })]],
      ['a hard link to the outside', [tarMember({ path: 'h', type: '1', target: '../target' })]],
      ['an absolute hard link', [tarMember({ path: 'h', type: '1', target: '/etc/passwd' })]],
      ['a hard link through a link', [tarMember({ path: 'l', type: '2', target: '..' }), tarMember({ path: 'h', type: '1', target: 'l/target' })]],
    ];
    before(() => files.sh('mkdir -p j && echo safe > j/target'));

    for (const [what, members] of outside)
      it(`${what} is refused`, async () => {
        for (const bytes of [Buffer.concat(members), gzipSync(Buffer.concat(members))])
          for (const user of users) {
            assertFileError(await upload('/home/user/j/into', bytes, { user }), 400, 'invalid_archive');
            assert.equal(await files.sh('cat j/target; stat -c %h j/target; ls -d j/escaped /tmp/escaped escaped 2>/dev/null || true'), 'safe\n1\n');
            await server.exec(files.id, { command: 'rm -rf /home/user/j/into', user: 'root' });
          }
      });

    it('links that stay inside work: the control', async () => {
      const members = [tarMember({ path: 'd/', type: '5', mode: 0o755 }), tarMember({ path: 'l', type: '2', target: 'd' }), tarMember({ path: 'l/f', content: 'x' }), tarMember({ path: 'h', type: '1', target: 'l/f' })];
      await files.ok(upload('j/fine', Buffer.concat(members)));
      assert.equal(await files.sh('cat j/fine/d/f; stat -c %h j/fine/h'), 'x2\n');
    });

    it('devices are refused, set-id bits dropped', async () => {
      for (const type of ['3', '4']) assertFileError(await upload('j/dev', tarMember({ path: 'node', type }), { user: 'root' }), 403, 'permission_denied');
      await files.ok(upload('j/suid', tarMember({ path: 'f', content: 'x', mode: 0o6755 })));
      assert.equal(await files.sh('stat -c %a j/suid/f'), '755\n');
    });

    it('numbers and lengths that cannot be are refused', async () => {
      const negative = tarMember({ path: 'f', content: 'x' });
      negative[124] = 0xff;
      const bad = [
        negative,
        tarMember({ path: 'f', size: 8 ** 11 - 1 }),
        tarMember({ path: 'f', type: 'S', content: 'x' }),
        paxHeader({ size: '-1' }),
        tarMember({ path: 'x', type: 'x', content: '99999999999999999999 path=a\n' }),
        tarMember({ path: 'x', type: 'x', content: '6 a=\n' }),
        Buffer.alloc(5120, 0x41),
      ];
      for (const bytes of bad) assertFileError(await upload('j/bad', Buffer.concat([bytes, tarMember({ path: 'g', content: 'x' })])), 400, 'invalid_archive');
    });

    it('a hundred thousand members, many of the same name', { timeout: 120000 }, async () => {
      const count = LONG ? 100_000 : 10_000;
      const parts = Array.from({ length: count }, (_, i) => tarMember({ path: `many/${i % 100}`, content: `${i}` }));
      const { json } = await files.ok(upload('j/many', Buffer.concat(parts)));
      assert.equal(json.count, count);
      assert.equal(await files.text('j/many/many/7'), `${count - 93}`);
    });
  });

  it('J107 a name says nothing in the answer\'s head', async () => {
    const name = Buffer.from('a"\r\nX-Evil: 1\r\n\r\nb');
    await files.ok(files.put(name, 'x'));
    const answer = await files.ok(files.get(name));
    assert.equal(answer.headers['x-evil'], undefined);
    assert.equal(answer.text, 'x');
  });

  it('J108 a watch of many directories holds up nobody, and sees what happens in the last of them', { timeout: 120000 }, async () => {
    await files.sh('mkdir wide && cd wide && python3 -c "import os; [os.makedirs(\'%d/%d\' % (i, k)) for i in range(100) for k in range(150)]"');
    const opening = fetch(`${server.url}${files.base}/fs/watch?${files.query({ path: 'wide', recursive: true })}`, { headers: { authorization: `Bearer ${server.key}` } });
    assert.equal((await server.request('GET', '/health')).status, 200);
    assert.equal(await files.sh('echo meanwhile'), 'meanwhile\n');
    const response = await opening;
    assert.equal(response.status, 200);
    await files.sh('touch wide/99/149/seen');
    let text = '';
    for await (const part of response.body) {
      text += Buffer.from(part).toString();
      if (text.includes('99/149/seen')) break;
    }
    await files.ok(files.delete('wide', { recursive: true }));
  });

  it('another tenant finds no files', async () => {
    const key = server.key;
    try {
      server.key = `bnk_${random(20)}`;
      assert.equal((await files.get('/etc/passwd')).status, 401);
    } finally {
      server.key = key;
    }
  });

  it('the server stays small and quick under many at once', { timeout: 120000 }, async (t) => {
    await files.ok(files.put('shared', Buffer.alloc(1 << 20, 'x')));
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.frontPid}/status`, 'utf8'))[1]);
    const answers = await Promise.all(Array.from({ length: 300 }, (_, i) => (i % 3 ? files.get('shared') : files.put(`many/${i}`, 'x'))));
    const refused = answers.filter((a) => a.status === 429).length;
    t.diagnostic(`${refused} of 300 were refused, the front has ${rss()} KiB`);
    for (const answer of answers) assert.ok([200, 429].includes(answer.status), `${answer.status} ${answer.text.slice(0, 200)}`);
    assert.equal((await files.ok(files.get('shared'))).bytes.length, 1 << 20);
  });
});
