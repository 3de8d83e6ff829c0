// Terminals: a full-screen program whose screen is looked at, several viewers, restarts, and `bunker shell` at a real terminal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { Console } from '../lib/console.mjs';
import { BUNKER, Server, sleep, until } from '../lib/server.mjs';
import { Screen } from '../lib/screen.mjs';
import { Socket } from '../lib/websocket.mjs';
import { finish, killServer } from './support.mjs';

describe('terminals', { timeout: 120000 }, () => {
  let server;
  let box;
  before(async () => {
    server = await Server.start({ args: ['--output-limit', '64Ki'] });
    box = await server.create();
  });
  after(() => finish(server, { killed: true }));

  const call = async (method, path, body) => await server.request(method, `/v1/sandboxes/${box.id}${path}`, body);
  const start = async (options) => {
    const r = await call('POST', '/processes', { pty: true, ...options });
    assert.equal(r.status, 201, r.text);
    return r.json;
  };
  const open = async (p, query = '') => await Socket.open(server, `/v1/sandboxes/${box.id}/processes/${p.id}/output${query}`);
  const ended = async (p) => (await call('GET', `/processes/${p.id}?wait=20s`)).json;

  it('are not opened for what cannot be shown: the error is a status', async () => {
    const p = await start({ command: ['sleep', '30'] });
    await assert.rejects(open({ id: 'nothing' }), /404/);
    await assert.rejects(open(p, '?offset=x'), /400/);
    const ws = await open(p);
    ws.send({ type: 'signal', signal: 'NONE' });
    ws.send({ type: 'signal', signal: 'KILL' });
    const texts = [];
    for (let m = await ws.next(); m; m = await ws.next()) if (m.text) texts.push(m.text.type);
    assert.deepEqual(texts.filter((t) => t !== 'data'), ['start', 'error', 'exit']);
  });

  it('are the controlling terminal of their process, in canonical mode with echo and signals', async () => {
    const p = await start({ command: ['sh', '-c', 'tty; test -t 0 -a -t 1 -a -t 2 && echo all; echo $TERM; ls -l $(tty); echo hi >/dev/tty; stty -a; read line; echo "got $line"; trap "echo int; exit 9" INT; echo ready; while :; do sleep 0.05; done'] });
    const ws = await open(p);
    let seen = await ws.readUntil('echoctl');
    ws.send('abX\x7fé\x7fc\r');
    seen = await ws.readUntil('ready', seen);
    assert.match(seen, /^\/dev\/pts\/\d+\r\nall\r\nxterm-256color\r\n/);
    assert.match(seen, /crw--w---- 1 user tty/);
    assert.match(seen, /\r\nhi\r\n/);
    assert.match(seen, /rows 24; columns 80/);
    assert.match(seen, /isig icanon/);
    assert.match(seen, /got abc\r\n/, 'the line discipline edits the line');
    ws.send('\x03');
    seen = await ws.readUntil('int');
    const end = await ended(p);
    assert.deepEqual([end.exitCode, end.stderr.length], [9, 0]);
  });

  it('show a full-screen program as it draws itself, follow its size, and take its keys', async () => {
    const program = `
import curses
def main(screen):
    curses.curs_set(0)
    keys = []
    while True:
        rows, columns = screen.getmaxyx()
        screen.erase()
        screen.border()
        screen.addstr(1, 2, "size %dx%d" % (rows, columns), curses.A_BOLD)
        screen.addstr(rows - 2, columns - 8, "corner")
        screen.addstr(3, 2, "keys " + ",".join(keys))
        screen.refresh()
        key = screen.getch()
        if key == ord("q"):
            return
        keys.append(curses.keyname(key).decode())
curses.wrapper(main)
print("left")
`;
    const p = await start({ command: ['python3', '-c', program], pty: { rows: 20, columns: 60 } });
    const ws = await open(p);
    const screen = new Screen(20, 60);
    const shows = async (what, check) => {
      for (let m; !check(); ) {
        m = await ws.next(10000).catch(() => null);
        assert.ok(m, `the screen never showed ${what}:\n${screen.text()}`);
        if (m.data) screen.write(m.data);
      }
    };
    await shows('the first screen', () => screen.line(1).includes('size 20x60') && screen.line(18).includes('corner'));
    assert.equal(screen.line(18).indexOf('corner'), 52);
    ws.send('a');
    ws.send('\x1bOA');
    await shows('the keys', () => /keys a,KEY_UP/.test(screen.line(3)));
    await sleep(200); // curses does not see a SIGWINCH that comes right before it reads
    screen.resize(30, 100);
    ws.send({ type: 'resize', rows: 30, columns: 100 });
    await shows('the new size', () => screen.line(1).includes('size 30x100') && screen.line(28).indexOf('corner') === 92);

    // Somebody else who comes now sees the same screen, from what was kept.
    const other = await open(p);
    const mirror = new Screen(20, 60);
    for (let m; !/keys a,KEY_UP,KEY_RESIZE/.test(mirror.line(3)); ) {
      m = await other.next(10000).catch(() => null);
      assert.ok(m, `the second viewer sees:\n${mirror.text()}`);
      if (m.data) {
        if (m.data.includes('size 30x100')) mirror.resize(30, 100);
        mirror.write(m.data);
      }
    }
    ws.send('q');
    await shows('the end', () => screen.text().includes('left'));
    assert.equal((await ended(p)).exitCode, 0);
    assert.equal((await other.rest()).texts.at(-1).type, 'exit');
  });

  it('draw vi, which saves what was typed', async () => {
    await server.exec(box.id, 'printf "first\\nsecond\\n" > /tmp/vi.txt');
    const p = await start({ command: ['vi', '-u', 'NONE', '/tmp/vi.txt'], pty: { rows: 10, columns: 40 } });
    const ws = await open(p);
    const screen = new Screen(10, 40);
    const shows = async (check) => {
      for (let m; !check(); ) {
        m = await ws.next(10000).catch(() => null);
        assert.ok(m, `vi shows:\n${screen.text()}`);
        if (m.data) screen.write(m.data);
      }
    };
    await shows(() => screen.line(0).startsWith('first') && screen.line(1).startsWith('second') && screen.line(3).startsWith('~'));
    ws.send('othird');
    await shows(() => screen.line(1).startsWith('third') && screen.line(2).startsWith('second'));
    ws.send('\x1b');
    await sleep(100);
    ws.send(':wq\r');
    assert.equal((await ended(p)).exitCode, 0);
    assert.equal((await server.exec(box.id, 'cat /tmp/vi.txt')).stdout, 'first\nthird\nsecond\n');
  });

  it('are hung up when their main process ends, and what was written comes out whole', async () => {
    for (const size of [0, 5, 4096, 70000, 200000]) {
      const p = await start({ command: ['sh', '-c', `stty -opost -echo; read x; head -c ${size} /dev/zero | tr '\\0' x; (trap "" HUP; sleep 1; echo late) & exit 3`] });
      const ws = await open(p);
      await sleep(50);
      ws.send('\n');
      const { data, texts } = await ws.rest();
      assert.equal(data.toString('latin1').replace(/^\s+/, '').length, size, `${size} bytes`);
      assert.equal(texts.at(-1).exitCode, 3);
    }
  });

  it('are read to the last byte of their main process, and not a byte further, whoever writes after it', async () => {
    const program = `if (fork == 0) { $SIG{HUP} = 'IGNORE'; select(undef, undef, undef, 0.5); syswrite STDOUT, 'late'; exit } system('stty -opost'); syswrite STDOUT, 'x' x 60000; kill 9, $$`;
    const all = await Promise.all(Array.from({ length: 12 }, () => start({ command: ['perl', '-e', program] })));
    for (const p of all) {
      const end = await ended(p);
      assert.deepEqual([end.signal, end.stdout.length], ['SIGKILL', 60000]);
    }
  });

  it('have their last screens read by who comes late, beyond what is kept', async () => {
    const p = await start({ command: ['sh', '-c', 'stty -opost -echo; seq 1 60000; read x; seq 60001 60003'] });
    await until('it has written', async () => (await call('GET', `/processes/${p.id}`)).json.stdout.length >= 348894);
    const ws = await open(p, '?offset=-65536');
    await ws.next();
    const place = (await ws.next()).text;
    assert.equal(place.offset, 348894 - 65536);
    ws.send('\n');
    const { data } = await ws.rest();
    assert.ok(data.toString().endsWith('59999\n60000\n60001\n60002\n60003\n'));
    assert.equal(data.length, 65536 + 18);
  });

  it('survive their clients and the server, with open stdin and the last screens', async () => {
    const p = await start({ command: ['sh', '-c', 'stty -echo -opost; seq 1 60000; while read x; do echo "[$x]"; [ "$x" = end ] && exit 4; done'] });
    const ws = await open(p, '?offset=348894');
    await ws.next();
    ws.send('one\n');
    await ws.readUntil('[one]');
    await killServer(server);
    await server.launch();
    const again = await open(p, '?offset=-70');
    const seen = await again.readUntil('[one]\n');
    assert.ok(seen.endsWith('59999\n60000\n[one]\n'), JSON.stringify(seen));
    await call('POST', `/processes/${p.id}/resize`, { rows: 5, columns: 5 });
    again.send('end\n');
    const { data, texts } = await again.rest();
    assert.equal(data.toString(), '[end]\n');
    assert.equal(texts.at(-1).exitCode, 4);
  });

  it('end their input by a key', async () => {
    const p = await start({ command: ['sh', '-c', 'stty -echo; cat; echo over'] });
    const ws = await open(p);
    await sleep(200);
    ws.send('x\n');
    await ws.readUntil('x');
    ws.send({ type: 'end' });
    await ws.readUntil('over');
    assert.equal((await ended(p)).exitCode, 0);
  });

  it('take more than their queue holds, and the end of it, from who does not wait', async () => {
    const p = await start({ command: ['sh', '-c', 'stty raw -echo; echo ready; sleep 0.7; head -c 20001 | wc -c'] });
    const ws = await open(p);
    await ws.readUntil('ready');
    for (let i = 0; i < 4; i++) ws.send('x'.repeat(5000));
    ws.send({ type: 'end' });
    assert.match(await ws.readUntil('20001'), /20001/);
    assert.equal((await ended(p)).exitCode, 0);
    assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.status !== 'failed', true);
  });

  it('are at most 256 in a sandbox', async () => {
    const other = await server.create({ resources: { pids: 600 } });
    const many = await Promise.all(Array.from({ length: 250 }, () => server.request('POST', `/v1/sandboxes/${other.id}/processes`, { command: ['sleep', '100'], pty: true })));
    const failed = many.filter((r) => r.status !== 201);
    assert.deepEqual(failed.map((r) => r.text), []);
    await server.request('DELETE', `/v1/sandboxes/${other.id}`);
  });

  describe('bunker shell', () => {
    const at = (args, options) => new Console(server, args, options);

    it('is a terminal: raw, with its size and colours, and passes the exit status on', async () => {
      const c = at(['shell', box.id], { rows: 31, columns: 97 });
      await c.sees('$ ');
      c.type('stty size; echo $TERM; printf "\\033[31mred\\033[0m\\n"\r');
      await c.sees('31 97');
      await c.sees('xterm\r\n');
      await c.sees('\x1b[31mred\x1b[0m');
      c.child.kill('SIGUSR1');
      await sleep(200);
      c.type('stty size\r');
      await c.sees('32 98');
      c.type('sleep 100\r');
      await sleep(300);
      c.type('\x03');
      c.type('echo after-ctrl-c; exit 7\r');
      await c.sees('after-ctrl-c');
      assert.equal(await c.ended, 7);
    });

    it('detaches by ~. and is come back to by attach', async () => {
      const c = at(['shell', box.id]);
      await c.sees('$ ');
      c.type('echo ~~not-detached; mark=4; echo here\r');
      await c.sees('here\r\n');
      c.type('~.');
      await c.sees(/detached; come back with: bunker attach \S+ \d+/);
      assert.equal(await c.ended, 0);
      const [, sandbox, pid] = /bunker attach (\S+) (\d+)/.exec(c.text);
      const back = at(['attach', sandbox, pid]);
      await back.sees('here\r\n');
      back.type('echo "still $mark"; exit $mark\r');
      await back.sees('still 4');
      assert.equal(await back.ended, 4);
    });

    it('makes a sandbox when none is named, and destroys it with the shell', async () => {
      const c = at(['shell']);
      await c.sees(/sandbox ([a-z0-9]{20})/);
      const [, id] = /sandbox ([a-z0-9]{20})/.exec(c.text);
      await c.sees('$ ');
      c.type('exit\r');
      assert.equal(await c.ended, 0);
      assert.equal((await server.request('GET', `/v1/sandboxes/${id}`)).status === 404 || (await server.request('GET', `/v1/sandboxes/${id}`)).json.status === 'deleted', true);
    });

    it('goes on when the server is killed and started again', async () => {
      const c = at(['shell', box.id]);
      await c.sees('$ ');
      c.type('mark=before\r');
      await sleep(200);
      await killServer(server);
      await server.launch();
      await sleep(600);
      c.type('echo "mark is $mark"; exit 6\r');
      await c.sees('mark is before');
      assert.equal(await c.ended, 6);
    });

    it('needs a terminal', async () => {
      const child = spawn(BUNKER, ['shell', box.id], { env: { ...process.env, BUNKER_URL: server.url, BUNKER_API_KEY: server.key }, stdio: ['ignore', 'pipe', 'pipe'] });
      assert.equal(await new Promise((resolve) => child.on('close', resolve)), 2);
    });
  });
});
