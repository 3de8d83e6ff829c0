import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { Server } from '../lib/server.mjs';
import { finish, remove } from './support.mjs';

describe('template base', () => {
  let server;
  let box;
  let other;
  const exec = (command, options = {}) => server.exec(box.id, { command, ...options });
  const asRoot = (command) => exec(command, { user: 'root' });
  before(async () => {
    server = await Server.start();
    box = await server.create();
    other = await server.create();
  });
  after(() => finish(server));

  it('is the one that the server lists, and the default', async () => {
    const { json } = await server.request('GET', '/v1/templates');
    assert.deepEqual(json.templates.map((t) => [t.name, t.default]), [['base', true], ['code-interpreter-v1', false]]);
    assert.ok(json.templates[0].description.length > 0);
  });

  describe('has the programs of the host', () => {
    for (const [program, args, pattern] of [
      ['/usr/bin/python3', ['-c', 'import ssl, json, sqlite3; print(6 * 7)'], /^42\n$/],
      ['/usr/bin/node', ['-e', 'console.log(6 * 7)'], /^42\n$/],
      ['/usr/bin/perl', ['-e', 'print 6 * 7'], /^42$/],
      ['/usr/bin/git', ['--version'], /^git version/],
      ['/bin/bash', ['-c', 'echo ${BASH_VERSION%%.*}'], /^\d+\n$/],
    ])
      it(program, { skip: !existsSync(program) && `the host has no ${program}` }, async () => {
        const r = await exec([program, ...args]);
        assert.equal(r.exitCode, 0, r.stderr);
        assert.match(r.stdout, pattern);
      });

    it('owned by root as seen from inside, and not writable by the user', async () => {
      const r = await exec('stat -c "%U %G" /usr /usr/bin/env /etc/passwd /; touch /usr/bin/mine 2>/dev/null || echo refused');
      assert.equal(r.stdout, 'root root\nroot root\nroot root\nroot root\nrefused\n');
    });
  });

  describe('can be changed by its root', () => {
    it('below /usr, and neither the host nor another sandbox sees it', async () => {
      const r = await asRoot(
        'echo mine > /usr/bin/bunker-test-file && mkdir /usr/lib/bunker-test-dir && rm /usr/bin/env && echo changed > /usr/bin/yes && chmod 755 /usr/bin/bunker-test-file && cat /usr/bin/bunker-test-file',
      );
      assert.equal(r.stdout, 'mine\n', r.stderr);
      assert.equal((await exec('ls /usr/bin/env')).exitCode, 2);
      assert.equal(existsSync('/usr/bin/bunker-test-file'), false);
      assert.equal(existsSync('/usr/lib/bunker-test-dir'), false);
      assert.equal(existsSync('/usr/bin/env'), true);
      assert.notEqual(readFileSync('/usr/bin/yes').subarray(0, 8).toString(), 'changed\n');
      const elsewhere = await server.exec(other.id, 'ls /usr/bin/bunker-test-file /usr/lib/bunker-test-dir; /usr/bin/env true && yes | head -1');
      assert.equal(elsewhere.stdout, 'y\n');
      const fresh = await server.run('test -e /usr/bin/bunker-test-file || /usr/bin/env echo clean');
      assert.equal(fresh.stdout, 'clean\n');
    });

    it('everywhere else: /etc, /opt, /srv, /var', async () => {
      const r = await asRoot('for d in etc opt srv var var/lib root; do echo x > /$d/bunker-mark && cat /$d/bunker-mark; done');
      assert.equal(r.stdout, 'x\n'.repeat(6), r.stderr);
      for (const dir of ['/etc', '/opt', '/srv', '/var', '/root']) assert.equal(existsSync(`${dir}/bunker-mark`), false);
      assert.equal((await server.exec(other.id, { command: 'ls /etc/bunker-mark /opt/bunker-mark', user: 'root' })).exitCode, 2);
    });

    it('with owners and modes of its own, set-uid among them', async () => {
      const r = await asRoot('cp /usr/bin/id /usr/local/bin/rootid && chmod 4755 /usr/local/bin/rootid && chown 1000:1000 /opt && stat -c %u:%a /opt /usr/local/bin/rootid');
      assert.equal(r.stdout, '1000:755\n0:4755\n', r.stderr);
      assert.match((await exec(['/usr/local/bin/rootid'])).stdout, /euid=0\(root\)/);
    });

    it('by pip', async (t) => {
      if (!existsSync('/usr/bin/pip3') || !existsSync('/usr/bin/python3')) return t.skip('SKIPPED LOUDLY: the host has no /usr/bin/pip3');
      const files = [
        { path: '/tmp/pkg/setup.py', content: "from setuptools import setup\nsetup(name='bunker-probe', version='1.0', py_modules=['bunker_probe'])\n" },
        { path: '/tmp/pkg/bunker_probe.py', content: 'ANSWER = 42\n' },
      ];
      const can = await exec(['/usr/bin/python3', '-c', 'import setuptools, wheel']);
      if (can.exitCode !== 0) return t.skip('SKIPPED LOUDLY: /usr/bin/python3 has no setuptools and wheel');
      const pip = '/usr/bin/python3 -m pip install --no-index --no-build-isolation --break-system-packages';
      const r = await exec(`cd /tmp/pkg && ${pip} . && cd / && /usr/bin/python3 -c "import bunker_probe as b; print(b.ANSWER, b.__file__)"`, {
        user: 'root',
        files,
        timeout: '120s',
      });
      assert.equal(r.exitCode, 0, r.stderr);
      assert.match(r.stdout, /\n42 \/usr\/.*bunker_probe\.py\n$/);
      assert.equal((await server.exec(other.id, ['/usr/bin/python3', '-c', 'import bunker_probe'])).exitCode, 1);
    });

    it('by npm i -g', async (t) => {
      if (!existsSync('/usr/bin/npm')) return t.skip('SKIPPED LOUDLY: the host has no /usr/bin/npm');
      const files = [
        { path: '/tmp/npm/package.json', content: JSON.stringify({ name: 'bunker-probe', version: '1.0.0', bin: { 'bunker-probe': 'cli.js' } }) },
        { path: '/tmp/npm/cli.js', content: '#!/usr/bin/node\nconsole.log("probe runs")\n', mode: '0755' },
      ];
      const r = await server.run({
        command: 'npm i -g --offline --no-audit --no-fund /tmp/npm && command -v bunker-probe && bunker-probe',
        user: 'root',
        files,
        timeout: '120s',
      });
      assert.equal(r.exitCode, 0, r.stderr + r.stdout);
      assert.match(r.stdout, /\/usr\/.*bunker-probe\nprobe runs\n$/);
    });
  });

  describe('shows nothing else of the host', () => {
    it('no home, data or secret', async () => {
      const canary = `/tmp/bunker-canary-${process.pid}`;
      writeFileSync(canary, 'host');
      try {
        const r = await server.run({ command: `ls -A /root /home /srv /mnt /media /opt /run /tmp /sys; ls ${canary}; find /var -type f | grep -v ^/var/lib/dpkg/`, user: 'root' });
        const entries = r.stdout.split('\n').filter((line) => line && !line.endsWith(':'));
        assert.deepEqual(entries, ['user', 'lock'], 'the home of `user` and /run/lock are all there is');
      } finally {
        rmSync(canary);
      }
    });

    it('no password hash of the host, and none of its users', async () => {
      const r = await server.run({ command: 'cat /etc/shadow /etc/passwd /etc/group', user: 'root' });
      const hashes = readFileSync('/etc/shadow', 'utf8').split('\n').map((line) => line.split(':')[1] ?? '').filter((hash) => hash.length > 3);
      for (const hash of hashes) assert.equal(r.stdout.includes(hash), false);
      assert.equal(r.stdout.includes('messagebus'), false);
      assert.match(r.stdout, /^user:x:1000:1000:/m);
      assert.equal((await server.run('cat /etc/shadow')).exitCode, 1, 'and the user cannot read even the own one');
    });

    it('of /etc only what was made for it or is public', async () => {
      const inside = (await asRoot('cd /etc && find . -xdev -type f ! -path "./ssl/certs/*"')).stdout.split('\n').filter(Boolean);
      for (const path of inside) {
        const host = `/etc/${path.slice(2)}`;
        if (!existsSync(host) || !statSync(host).isFile()) continue;
        const made = ['passwd', 'group', 'shadow', 'hostname', 'hosts', 'nsswitch.conf', 'resolv.conf', 'fstab', 'sudoers'];
        if (made.some((name) => host === `/etc/${name}`)) continue;
        assert.ok(statSync(host).mode & 0o004, `${host} is not for everybody on the host`);
      }
      for (const name of ['ssh', 'machine-id', 'ssl/private', 'kubernetes', 'docker', 'bunker', 'environment'])
        assert.equal((await asRoot(['test', '-e', `/etc/${name}`])).exitCode, 1, `/etc/${name} is there`);
    });

    it('sudo without a password for the user', async () => {
      assert.equal((await exec('sudo -n id -u; sudo -u nobody id -un')).stdout, '0\nnobody\n');
    });

    it('no network but its own loopback', async () => {
      const r = await exec("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '");
      assert.equal(r.stdout, 'lo\n');
      const python = `
import socket
s = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen()
c = socket.create_connection(('127.0.0.1', 8080)); print('loopback works')
for target in [('127.0.0.1', ${server.port}), ('10.0.0.1', 80), ('1.1.1.1', 53)]:
    try:
        socket.create_connection(target, timeout=1); print('reached', target)
    except OSError as e:
        print('no way')
`;
      assert.equal((await exec(['python3', '-c', python])).stdout, 'loopback works\nno way\nno way\nno way\n');
    });

    it('no name of its own', async () => {
      const name = (await exec(['hostname'])).stdout.trim();
      assert.equal(name, 'sandbox');
      assert.notEqual(name, hostname());
    });

    it('no process but its own', async () => {
      const count = Number((await exec('ls /proc | grep -c "^[0-9]*$"')).stdout);
      assert.ok(count < 12, `${count} processes`);
    });

    it('no device but the harmless ones', async () => {
      const r = await asRoot('ls -1 /dev');
      assert.deepEqual(r.stdout.trim().split('\n').filter((name) => name !== 'mqueue').sort(), [
        'boot_id', 'cmdline', 'fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero',
      ]);
      const works = await exec('echo x > /dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 8 /dev/urandom | wc -c && echo y > /dev/full; echo $?');
      assert.equal(works.stdout, ' 00 00 00 00\n8\n1\n');
    });

    it('no path of the host in its mounts', async () => {
      const r = await exec(['cat', '/proc/self/mountinfo', '/proc/self/cgroup']);
      assert.equal(r.stdout.includes(server.data), false, r.stdout);
      assert.equal(r.stdout.includes(box.id), false, r.stdout);
    });
  });

  describe('keeps to itself', () => {
    it('/tmp, /dev/shm and /home', async () => {
      const name = `bunker-private-${process.pid}`;
      await exec(`echo a > /tmp/${name}; echo a > /dev/shm/${name}; echo a > ~/${name}`);
      assert.equal((await server.exec(other.id, `cat /tmp/${name} /dev/shm/${name} ~/${name} 2>/dev/null`)).stdout, '');
      for (const dir of ['/tmp', '/dev/shm', '/home']) assert.equal(readdirSync(dir).includes(name), false);
    });

    it('abstract sockets and System V memory', async () => {
      const listen = 'import socket, time\ns = socket.socket(socket.AF_UNIX); s.bind("\\0bunker-test"); s.listen(); print("up", flush=True); time.sleep(3)';
      const stream = await server.stream(`/v1/sandboxes/${box.id}/exec`, { command: ['python3', '-c', listen] });
      await stream.events.next();
      assert.equal((await stream.events.next()).value.data, 'up\n');
      const connect = 'import socket\ns = socket.socket(socket.AF_UNIX); s.connect("\\0bunker-test"); print("reached")';
      assert.equal((await exec(['python3', '-c', connect])).stdout, 'reached\n', 'the control works');
      assert.equal((await server.exec(other.id, ['python3', '-c', connect])).exitCode, 1);
      stream.close();
      await exec('ipcmk -M 4096 >/dev/null');
      assert.match((await exec(['ipcs', '-m'])).stdout, /4096/);
      assert.equal(/4096/.test((await server.exec(other.id, ['ipcs', '-m'])).stdout), false);
    });

    it('its disk: a new sandbox starts clean after a dirty one was deleted', async () => {
      const dirty = await server.create({ user: 'root' });
      await server.exec(dirty.id, 'rm -rf /etc/ssl /home/user /usr/share/doc 2>/dev/null; echo bad > /etc/passwd');
      await remove(server, dirty.id);
      assert.equal((await server.run('id -un; ls -d /etc/ssl /home/user')).stdout, 'user\n/etc/ssl\n/home/user\n');
    });
  });
});
