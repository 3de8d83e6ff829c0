// What people do with disks from a shell: diff, commit, discard, checkpoints, snapshots, forks, volumes, du.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BUNKER, Server, until } from '../lib/server.mjs';
import { finish } from './support.mjs';

const AT_TERMINAL = new URL('../lib/at_terminal.py', import.meta.url).pathname;
let server, dir, work;
const cli = (...args) => server.cli(args);
/** Must go well; what it printed. */
const ok = (...args) => {
  const r = cli(...args);
  assert.equal(r.status, 0, `${args.join(' ')}: ${r.stderr}`);
  return r.stdout;
};
const refused = (status, message, ...args) => {
  const r = cli(...args);
  assert.equal(r.status, status, `${args.join(' ')}: ${r.stdout}${r.stderr}`);
  assert.match(r.stderr, message);
};
const sh = async (command, box = work) => (await server.exec(box.id, { command })).stdout;
/** At a terminal of its own, answering a question with `answer`. */
const atTerminal = (args, answer) =>
  new Promise((resolve) => {
    const child = spawn('python3', [AT_TERMINAL, '24', '200', BUNKER, ...args], {
      env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (part) => {
      const asked = text.includes('[y/N]');
      text += part;
      if (!asked && text.includes('[y/N]')) child.stdin.end(answer);
    });
    child.on('close', (code) => resolve({ code, text }));
  });
const lines = (text) => text.split('\n').filter(Boolean).sort();

before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
  dir = mkdtempSync('/tmp/bunker-disks-');
  work = await server.create({ name: 'work' });
  await sh("mkdir -p src/empty && echo one > src/a && printf 'x' > 'new\nline' && ln -s src/a soft && chmod 0755 .profile && rm .bashrc");
});
after(async () => {
  rmSync(dir, { recursive: true, force: true });
  await finish(server);
});

describe('bunker diff', () => {
  it('lists what was added, changed and deleted', () => {
    const got = ok('diff', 'work');
    for (const line of ['A /home/user/src/', 'A /home/user/src/empty/', 'A /home/user/src/a  4 B', 'A /home/user/soft', 'D /home/user/.bashrc'])
      assert.ok(got.includes(`${line}\n`), `${line} in ${got}`);
    assert.match(got, /^M \/home\/user\/\.profile  \d+ B  0644 -> 0755$/m);
    const { changes, added, changed, deleted, truncated } = JSON.parse(ok('diff', '--json', 'work'));
    assert.deepEqual([changes.length, changed, deleted, truncated], [added + changed + deleted, 1, 1, false]);
    assert.deepEqual(changes.find((c) => c.path === '/home/user/.profile').oldMode, '0644');
  });

  it('shows only what was asked for, in every form', () => {
    assert.deepEqual(lines(ok('diff', 'work', 'src')), ['A /home/user/src/', 'A /home/user/src/a  4 B', 'A /home/user/src/empty/']);
    assert.deepEqual(lines(ok('diff', 'work', './src//a', '/home/user/.bashrc')), ['A /home/user/src/a  4 B', 'D /home/user/.bashrc']);
    assert.equal(ok('diff', 'work', '/home/user/sr'), '', 'a name that only begins like it is another');
    const json = JSON.parse(ok('diff', '--json', 'work', 'src'));
    assert.deepEqual([json.changes.length, json.added, json.deleted], [3, 3, 0]);
    const text = ok('diff', '--text', 'work', 'src');
    assert.match(text, /^diff --git a\/home\/user\/src\/a b\/home\/user\/src\/a\n[^]*\+one\n$/);
    assert.match(ok('diff', '-p', 'work', 'new\nline'), /^diff --git "a\/home\/user\/new\\012line"/, 'a quoted name is found');
    ok('diff', '--tar', join(dir, 'c.tar'), 'work', 'src', '.bashrc', 'new\nline');
    const members = spawnSync('tar', ['-tf', join(dir, 'c.tar')], { encoding: 'utf8' });
    assert.equal(members.stderr, '');
    assert.deepEqual(lines(members.stdout), ['home/user/.wh..bashrc', 'home/user/new\\nline', 'home/user/src/', 'home/user/src/a', 'home/user/src/empty/']);
    assert.equal(spawnSync('tar', ['-xOf', join(dir, 'c.tar'), 'home/user/src/a'], { encoding: 'utf8' }).stdout, 'one\n');
  });

  it('compares with a checkpoint or a snapshot', async () => {
    ok('checkpoint', 'create', 'work', 'one');
    ok('commit', 'work', 'kept:first');
    await sh('echo two >> src/a');
    for (const against of ['one', 'kept:first', 'kept']) assert.equal(ok('diff', '--against', against, 'work'), 'M /home/user/src/a  4 B -> 8 B\n', against);
    assert.match(ok('diff', '-a', 'one', '-p', 'work'), / one\n\+two\n$/);
    assert.equal(ok('diff', '-a', 'template', 'work'), ok('diff', 'work'));
    refused(1, /no checkpoint or snapshot "none" \(not_found\)/, 'diff', '-a', 'none', 'work');
    refused(1, /no sandbox with the id or name "nobody"/, 'diff', 'nobody');
    refused(2, /only one of --text, --tar and --json/, 'diff', '--text', '--json', 'work');
    refused(1, /must not have "\.\."/, 'diff', 'work', '../x');
  });

  it('leaves no half of a file, and writes no archive to a terminal', async () => {
    refused(1, /not_found/, 'diff', '-a', 'none', '--tar', join(dir, 'half.tar'), 'work');
    refused(1, /No such file or directory/, 'diff', '--tar', join(dir, 'no/such.tar'), 'work');
    assert.deepEqual(readdirSync(dir).filter((name) => name.includes('half')), []);
    const { text, code } = await atTerminal(['diff', '--tar', '-', 'work']);
    assert.deepEqual([code, /not for a terminal/.test(text)], [1, true]);
  });

  it('lets nothing through to a terminal that steers it', async () => {
    await sh("printf 'evil\\033[31m\\a\\n' > \"$(printf 'n\\033[2Jame')\"");
    for (const args of [['diff', 'work'], ['diff', '-p', 'work']]) {
      const { text } = await atTerminal(args);
      assert.doesNotMatch(text, /\x1b\[2J|\x07|evil\x1b/);
    }
    assert.match((await atTerminal(['diff', 'work'])).text, /added, 1 changed, 1 deleted/);
    await sh("rm n*ame");
  });
});

describe('bunker checkpoint and discard', () => {
  it('goes back to a checkpoint', async () => {
    assert.deepEqual(JSON.parse(ok('checkpoint', 'ls', '--json', 'work')).checkpoints.map((c) => c.name), ['one']);
    assert.match(ok('checkpoint', 'ls', 'work'), /^NAME +ID +AGE +STATUS\none +[a-z0-9]{20} +\d+[smh] +ready\n$/);
    assert.match(ok('checkpoint', 'restore', 'work', 'one'), /^[a-z0-9]{20} idle\n$/);
    assert.equal(await sh('cat src/a'), 'one\n');
    refused(1, /not_found/, 'checkpoint', 'restore', 'work', 'none');
    ok('checkpoint', 'create', 'work', 'two');
    ok('checkpoint', 'rm', 'work', 'two', 'one');
    assert.deepEqual(JSON.parse(ok('checkpoint', 'ls', '--json', 'work')).checkpoints, []);
  });

  it('throws changes away only when it is told to', async () => {
    refused(2, /say so by --yes/, 'discard', 'work');
    for (const answer of ['n\n', '\n', 'yesterday\n']) {
      const { code, text } = await atTerminal(['discard', 'work'], answer);
      assert.equal(code, 1);
      assert.match(text, /\d+ added, 1 changed, 1 deleted since the beginning/);
    }
    assert.equal(await sh('cat src/a'), 'one\n', 'nothing is gone');
    ok('checkpoint', 'create', 'work', 'here');
    await sh('echo x > later');
    assert.equal((await atTerminal(['discard', '--to', 'here', 'work'], 'y\n')).code, 0);
    assert.equal(await sh('cat src/a; ls later 2>&1 | wc -l; test -e later || echo gone'), 'one\n1\ngone\n');
    ok('discard', '--yes', 'work');
    assert.equal(ok('diff', 'work'), '');
  });
});

describe('bunker snapshot, commit and fork', () => {
  it('keeps a disk by a name, for others to begin with', async () => {
    await sh('echo kept > file');
    const id = ok('commit', 'work', 'web:v1', '--description', 'a note').trim();
    const info = JSON.parse(ok('snapshot', 'info', '--json', 'web:v1'));
    assert.deepEqual([info.id, info.name, info.tag, info.description], [id, 'web', 'v1', 'a note']);
    assert.match(ok('snapshot', 'info', 'web:v1'), /^description +a note$/m);
    assert.equal(ok('run', '--snapshot', 'web:v1', '--', 'cat', 'file'), 'kept\n');
    const box = ok('create', '--snapshot', id).trim();
    refused(1, /in_use/, 'snapshot', 'rm', 'web:v1');
    assert.equal(JSON.parse(ok('info', '--json', box)).snapshot, id);
    ok('rm', box);
    assert.deepEqual(lines(ok('snapshot', 'ls', '-q', 'web')), [id]);
    assert.match(ok('snapshot', 'ls'), /^NAME +TAG +ID +TEMPLATE +SIZE +FILES +AGE\n/);
    ok('snapshot', 'tag', 'web:v1', 'stable');
    ok('snapshot', 'info', 'web:stable');
    ok('snapshot', 'tag', '--none', 'web:stable');
    refused(1, /not_found/, 'snapshot', 'info', 'web:stable');
    refused(2, /either the new tag or --none/, 'snapshot', 'tag', 'web');
  });

  it('goes through a file, and through a pipe', async () => {
    ok('snapshot', 'export', 'web', join(dir, 'web.tar.zst'));
    assert.equal(statSync(join(dir, 'web.tar.zst')).mode & 0o777, 0o666 & ~process.umask());
    const id = ok('snapshot', 'import', join(dir, 'web.tar.zst'), 'copy:v2').trim();
    assert.equal(JSON.parse(ok('snapshot', 'info', '--json', 'copy:v2')).id, id);
    assert.equal(ok('run', '--snapshot', 'copy:v2', '--', 'cat', 'file'), 'kept\n');
    const r = spawnSync('sh', ['-c', `"$0" snapshot export web | "$0" snapshot import - piped`, BUNKER], { encoding: 'utf8', env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data } });
    assert.equal(r.status, 0, r.stderr);
    writeFileSync(join(dir, 'bad'), readFileSync(join(dir, 'web.tar.zst')).subarray(0, -1));
    refused(1, /invalid_archive/, 'snapshot', 'import', join(dir, 'bad'), 'bad');
    refused(1, /No such file/, 'snapshot', 'import', join(dir, 'none'));
    refused(1, /Is a directory/, 'snapshot', 'import', dir);
    ok('snapshot', 'rm', 'web', 'copy', 'piped', 'kept');
    assert.equal(ok('snapshot', 'ls', '-q'), '');
  });

  it('copies a sandbox', async () => {
    const ids = lines(ok('fork', '-n', '2', 'work'));
    assert.equal(ids.length, 2);
    for (const id of ids) assert.equal(ok('exec', id, '--', 'cat', 'file'), 'kept\n');
    assert.equal(JSON.parse(ok('fork', '--json', 'work')).sandboxes[0].parent, work.id);
    refused(1, /count/, 'fork', '-n', '101', 'work');
    ok('rm', ...lines(ok('ls', '-q')).filter((id) => id !== work.id));
  });
});

describe('bunker volume and du', () => {
  it('makes volumes and mounts them', async () => {
    const id = ok('volume', 'create', 'cache').trim();
    ok('run', '-v', 'cache:/cache', '--', 'sh', '-c', 'echo shared > /cache/f');
    assert.equal(ok('run', '--volume', `${id}:/c:ro`, '--', 'sh', '-c', 'cat /c/f; touch /c/x 2>&1 | grep -c Read-only'), 'shared\n1\n');
    assert.match(ok('volume', 'ls'), /^cache +[a-z0-9]{20} /m);
    assert.match(ok('volume', 'info', 'cache'), /^sandboxes +0$/m);
    const box = ok('create', '-v', 'cache:/cache').trim();
    assert.equal(JSON.parse(ok('volume', 'info', '--json', 'cache')).sandboxes, 1);
    refused(1, /in_use/, 'volume', 'rm', 'cache');
    ok('rm', box);
    refused(2, /not of the form NAME:\/PATH/, 'create', '-v', 'cache');
    refused(1, /there is no volume/, 'create', '-v', 'none:/x');
    refused(1, /name_taken|already/, 'volume', 'create', 'cache');
  });

  it('tells what everything takes', async () => {
    await sh('dd if=/dev/zero of=big bs=1M count=3 2>/dev/null && sync big');
    ok('checkpoint', 'create', 'work', 'measured');
    ok('commit', 'work', 'measured:v1');
    const { disks } = JSON.parse(ok('du', '--json'));
    const found = (kind) => disks.filter((d) => d.kind === kind);
    const mine = found('sandbox').find((d) => d.name === 'work');
    assert.ok(mine.bytes >= 3 << 20 && mine.files >= 2, JSON.stringify(mine));
    assert.deepEqual([found('checkpoint')[0].name, found('checkpoint')[0].sandboxId], ['here', work.id]);
    assert.equal(found('snapshot')[0].name, 'measured:v1');
    assert.deepEqual([found('volume')[0].name, found('volume')[0].files], ['cache', 1]);
    assert.deepEqual(JSON.parse(ok('du', '--json', 'work')).disks.map((d) => d.kind), ['sandbox', 'checkpoint', 'checkpoint']);
    assert.match(ok('du', 'work'), /^KIND +NAME +ID +SIZE +LIMIT +FILES\nsandbox +work [^]*\ntotal +\d/);
    refused(1, /not_found/, 'du', 'nobody');
    ok('volume', 'rm', 'cache');
    ok('snapshot', 'rm', 'measured');
  });
});

it('explains every one of these commands', () => {
  for (const name of ['diff', 'commit', 'discard', 'fork', 'du', 'checkpoint', 'snapshot', 'volume']) assert.match(ok(name, '--help'), /^usage: bunker /);
  for (const [name, parts] of [['checkpoint', ['create', 'ls', 'restore', 'rm']], ['snapshot', ['create', 'ls', 'info', 'tag', 'rm', 'export', 'import']], ['volume', ['create', 'ls', 'info', 'rm']]])
    for (const part of parts) assert.equal(ok('help', name, part), ok(name, part, '--help'));
  refused(2, /no command "snapshot nope"/, 'snapshot', 'nope');
});
