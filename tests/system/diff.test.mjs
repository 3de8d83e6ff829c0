// What a sandbox has changed: as a list, as a unified diff, as a tar.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync, existsSync, lstatSync, mkdirSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { Server, childrenOf, commandName, sleep, until } from '../lib/server.mjs';
import { assertRefused, finish } from './support.mjs';

const isRoot = process.getuid() === 0;

for (const [pool, args] of [['in a btrfs pool', []], ['in plain directories', ['--disk-pool', 'directory']]])
  describe(`a diff ${pool}`, { skip: !isRoot && 'needs root', timeout: 120000 }, () => {
    let server, box, path, scratch;
    const diff = (query = '') => server.request('GET', `${path}/diff${query}`);
    const listed = async (query) => {
      const { json } = await diff(query);
      return Object.fromEntries(json.changes.map((c) => [c.path, c]));
    };
    const raw = (query) =>
      new Promise((resolve, reject) => {
        http.get(`${server.url}${path}/diff${query}`, { headers: { authorization: `Bearer ${server.key}` } }, (res) => {
          const parts = [];
          res.on('data', (part) => parts.push(part));
          res.on('error', reject);
          res.on('end', () => resolve(Buffer.concat(parts)));
        }).on('error', reject);
      });
    const unpack = (bytes) => {
      const dir = mkdtempSync(join(scratch, 'x-'));
      const tar = spawnSync('tar', ['-xf', '-', '-C', dir], { input: bytes });
      assert.equal(tar.status, 0, String(tar.stderr));
      return dir;
    };
    before(async () => {
      server = await Server.start({ args: ['--pool', '1', ...args] });
      box = await server.create();
      path = `/v1/sandboxes/${box.id}`;
      scratch = mkdtempSync('/tmp/bunker-diff-');
    });
    after(async () => {
      rmSync(scratch, { recursive: true, force: true });
      await finish(server);
    });

    it('of a sandbox that is deleted before its disk is looked at is 404, and so is its export', { timeout: 60000 }, async () => {
      const doomed = await server.create();
      const keeper = childrenOf(server.wardenPid).find((pid) => commandName(pid) === 'bunker-keeper');
      process.kill(keeper, 'SIGSTOP');
      let asked;
      try {
        asked = ['diff', 'diff?format=tar', 'export'].map((what) => server.request('GET', `/v1/sandboxes/${doomed.id}/${what}`));
        await sleep(300); // they wait for the keeper
        assert.equal((await server.request('DELETE', `/v1/sandboxes/${doomed.id}`)).status, 204);
      } finally {
        process.kill(keeper, 'SIGCONT');
      }
      for (const answer of await Promise.all(asked)) assertRefused(answer, 404, 'not_found');
    });

    it('of a new sandbox is empty', async () => {
      const { status, json } = await diff();
      assert.equal(status, 200);
      assert.deepEqual(json, { changes: [], added: 0, changed: 0, deleted: 0, truncated: false });
    });

    it('names what was added, changed and deleted, with sizes, also in /usr', async () => {
      await server.exec(box.id, { command: `sed -i s/sandbox/other/ /etc/hosts; rm /etc/hostname; rm -r /usr/share/doc/bash; echo hello > /usr/share/greeting; chmod 600 /etc/fstab; rm /etc/timezone; mkdir /etc/timezone; touch /etc/timezone/in`, user: 'root' });
      await server.exec(box.id, 'mkdir -p d/e; ln -s nowhere l; echo 12345 > d/f; ln d/f d/g');
      const c = await listed();
      assert.deepEqual(c['/etc/hosts'], { path: '/etc/hosts', change: 'changed', type: 'file', oldSize: 42, size: 40 });
      assert.deepEqual(c['/etc/hostname'], { path: '/etc/hostname', change: 'deleted', type: 'file', oldSize: 8 });
      assert.deepEqual(c['/usr/share/doc/bash'], { path: '/usr/share/doc/bash', change: 'deleted', type: 'directory' });
      assert.deepEqual(c['/usr/share/greeting'], { path: '/usr/share/greeting', change: 'added', type: 'file', size: 6 });
      assert.equal(c['/etc/fstab'].change, 'changed', 'its mode');
      assert.deepEqual([c['/etc/timezone'].change, c['/etc/timezone'].type, c['/etc/timezone'].oldType], ['changed', 'directory', 'file']);
      assert.equal(c['/etc/timezone/in'].change, 'added');
      assert.deepEqual([c['/home/user/d'].type, c['/home/user/d/e'].type, c['/home/user/l'].type, c['/home/user/d/g'].size], ['directory', 'directory', 'symlink', 6]);
    });

    it('does not name what was touched, copied up or rewritten with the same content', async () => {
      await server.exec(box.id, { command: 'touch /etc/services; cp /etc/protocols /tmp/p; cat /tmp/p > /etc/protocols; rm /tmp/p; chmod 600 /etc/rpc; chmod 644 /etc/rpc', user: 'root' });
      const c = await listed();
      for (const name of ['/etc/services', '/etc/protocols', '/etc/rpc', '/etc', '/tmp']) assert.equal(c[name], undefined, name);
    });

    it('follows a directory that was moved', async () => {
      await server.exec(box.id, { command: 'mv /etc/ssl /etc/tls; rm /etc/tls/openssl.cnf; echo mine > /etc/tls/own; mv /etc/tls/certs /etc/tls/trust', user: 'root' });
      const c = await listed();
      assert.equal(c['/etc/ssl'].change, 'deleted');
      assert.equal(c['/etc/tls'].change, 'added');
      assert.equal(c['/etc/tls/own'].change, 'added');
      assert.equal(c['/etc/tls/openssl.cnf'], undefined);
      assert.equal(c['/etc/tls/certs'], undefined);
      assert.ok(Object.keys(c).some((name) => name.startsWith('/etc/tls/trust/')), 'what is in it came along');
    });

    it('compares with a checkpoint and with a snapshot', async () => {
      await server.request('POST', `${path}/checkpoints`, { name: 'a' });
      await server.request('POST', `${path}/snapshots`, { name: 'b' });
      assert.deepEqual((await diff('?checkpoint=a')).json.changes, []);
      await server.exec(box.id, 'echo more >> d/f; rm l; touch new');
      for (const query of ['?checkpoint=a', '?snapshot=b']) {
        const c = await listed(query);
        assert.deepEqual(Object.keys(c).sort(), ['/home/user/d/f', '/home/user/d/g', '/home/user/l', '/home/user/new']);
        assert.deepEqual([c['/home/user/d/f'].oldSize, c['/home/user/d/f'].size, c['/home/user/l'].change, c['/home/user/new'].change], [6, 11, 'deleted', 'added']);
      }
      const from = await server.create({ snapshot: 'b' });
      await server.exec(from.id, 'echo x > only');
      const { json } = await server.request('GET', `/v1/sandboxes/${from.id}/diff`);
      assert.deepEqual(json.changes.map((c) => c.path), ['/home/user/only'], 'without more it is what it began with');
      await server.request('DELETE', `/v1/sandboxes/${from.id}`);
    });

    it('is text that git can apply', async () => {
      const old = Array.from({ length: 400 }, (_, i) => `line ${i}`);
      const text = (lines) => lines.join('\n');
      const files = { plain: text(old) + '\n', noend: text(old), 'with space': 'a\n', gone: 'x\ny\n', 'tab\there': 'q\n', crlf: 'a\r\nb\r\n' };
      await server.exec(box.id, { command: 'mkdir -p w', files: Object.entries(files).map(([name, content]) => ({ path: `/home/user/w/${name}`, content })) });
      await server.request('POST', `${path}/checkpoints`, { name: 'text' });
      const changed = old.flatMap((line, i) => (i % 97 === 5 ? [] : i % 61 === 3 ? [line, 'inserted', ''] : i === 200 ? ['other'] : [line]));
      const after = { plain: text(changed) + '\n', noend: text(changed) + '\n', 'with space': 'b\na\n', 'tab\there': 'q\nr\n', crlf: 'a\r\nB\r\n', 'new file': 'fresh' };
      await server.exec(box.id, { command: 'rm w/gone; ln -s plain w/link; chmod 755 w/plain', files: Object.entries(after).map(([name, content]) => ({ path: `/home/user/w/${name}`, content })) });
      const patch = await raw('?checkpoint=text&format=text');
      const tree = mkdtempSync(join(scratch, 'git-'));
      mkdirSync(join(tree, 'home/user/w'), { recursive: true });
      for (const [name, content] of Object.entries(files)) writeFileSync(join(tree, 'home/user/w', name), content);
      const git = spawnSync('git', ['apply', '--whitespace=nowarn', '-'], { cwd: tree, input: patch, encoding: 'utf8' });
      assert.equal(git.status, 0, git.stderr + patch);
      for (const [name, content] of Object.entries(after)) assert.equal(readFileSync(join(tree, 'home/user/w', name), 'utf8'), content, name);
      assert.equal(existsSync(join(tree, 'home/user/w/gone')), false);
      assert.equal(readlinkSync(join(tree, 'home/user/w/link')), 'plain');
      assert.equal(lstatSync(join(tree, 'home/user/w/plain')).mode & 0o777, 0o755);
    });

    it('names what is no text, or too long', async () => {
      await server.exec(box.id, 'head -c 5000 /dev/urandom > w/noise; yes | head -c 3000000 > w/long');
      const text = String(await raw('?checkpoint=text&format=text'));
      assert.match(text, /Binary files a\/home\/user\/w\/noise and b\/home\/user\/w\/noise differ/);
      assert.match(text, /Binary files a\/home\/user\/w\/long and b\/home\/user\/w\/long differ/);
      assert.ok(text.length < 100000);
    });

    it('is a tar with modes, owners, links and whiteouts', async () => {
      await server.exec(box.id, `mkdir -p ${'n'.repeat(120)}/${'m'.repeat(120)}; echo deep > ${'n'.repeat(120)}/${'m'.repeat(120)}/f; chmod 4711 d/f`);
      const dir = unpack(await raw('?format=tar'));
      assert.equal(readFileSync(join(dir, 'etc/hosts'), 'utf8').includes('other'), true);
      assert.equal(readFileSync(join(dir, 'home/user', 'n'.repeat(120), 'm'.repeat(120), 'f'), 'utf8'), 'deep\n');
      for (const name of ['etc/.wh.hostname', 'usr/share/doc/.wh.bash', 'etc/.wh.ssl', 'etc/.wh.timezone']) assert.equal(lstatSync(join(dir, name)).size, 0, name);
      const f = lstatSync(join(dir, 'home/user/d/f')), g = lstatSync(join(dir, 'home/user/d/g'));
      assert.deepEqual([f.mode & 0o7777, f.uid, f.nlink, f.ino === g.ino], [0o4711, 1000, 2, true]);
      assert.equal(lstatSync(join(dir, 'home/user/w/link')).isSymbolicLink(), true);
      assert.equal(lstatSync(join(dir, 'home/user/w/noise')).size, 5000);
    });

    it('is not led astray by links, fifos, odd names or depth', async () => {
      writeFileSync(join(scratch, 'canary'), 'the host');
      await server.exec(box.id, { command: `mkdir -p /srv/t && cd /srv/t && ln -s ${scratch} out && mkfifo fifo && rm -rf /var/lib/apt && ln -s ${scratch} /var/lib/apt && touch "$(printf 'new\\nline')" "quo\\"te" && ln -s /proc/self/fd/3 proc && python3 -c "
import os
for i in range(400): os.mkdir('d'); os.chdir('d')
"`, user: 'root' });
      const started = Date.now();
      const { json } = await diff();
      assert.ok(Date.now() - started < 20000);
      assert.equal(json.truncated, true, 'not all of the depth was looked at');
      const c = Object.fromEntries(json.changes.map((x) => [x.path, x]));
      assert.equal(c['/srv/t/out'].type, 'symlink');
      assert.equal(c['/var/lib/apt'].type, 'symlink');
      assert.equal(c['/srv/t/fifo'].type, 'other');
      assert.ok(c['/srv/t/new\nline'] && c['/srv/t/quo"te']);
      for (const query of ['?format=tar', '?format=text']) await assert.rejects(raw(query), /aborted/, 'what is not whole does not end well');
      await server.exec(box.id, { command: 'rm -rf /srv/t/d', user: 'root' });
      for (const query of ['?format=tar', '?format=text']) assert.equal((await raw(query)).includes('the host'), false, query);
      await server.exec(box.id, { command: 'rm -rf /srv/t /var/lib/apt', user: 'root' });
    });

    it('of many files comes as fast as it is taken, and holds up nobody', async () => {
      await server.exec(box.id, 'mkdir many && cd many && seq 20000 | xargs touch');
      const stalled = http.get(`${server.url}${path}/diff`, { headers: { authorization: `Bearer ${server.key}` }, agent: false });
      const response = await new Promise((resolve) => stalled.on('response', resolve));
      response.pause();
      await sleep(300);
      assert.equal((await server.request('POST', `${path}/checkpoints`, { name: 'meanwhile' })).status, 201);
      const { json } = await diff();
      assert.ok(json.added >= 20000);
      const keeper = childrenOf(server.wardenPid).find((pid) => commandName(pid) === 'bunker-keeper');
      stalled.destroy();
      await until('who read for nobody is gone', () => childrenOf(keeper).length === 0);
    });

    it('refuses what makes no sense', async () => {
      assertRefused(await diff('?format=pdf'), 400, 'invalid_field', 'format');
      assertRefused(await diff('?checkpoint=none'), 404, 'not_found', 'checkpoint');
      assertRefused(await diff('?snapshot=none'), 404, 'not_found', 'snapshot');
      assertRefused(await diff('?snapshot=b&checkpoint=a'), 400, 'invalid_field', 'checkpoint');
    });
  });
