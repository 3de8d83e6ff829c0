// bunker cp and bunker files, as people use them.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BUNKER, Server, sleep } from '../lib/server.mjs';
import { finish } from './support.mjs';
import { Files } from './files_support.mjs';

let server, files, dir;
before(async () => {
  server = await Server.start();
  files = new Files(server, (await server.create({ name: 'work' })).id);
  dir = mkdtempSync('/tmp/bunker-cp-');
});
after(async () => {
  rmSync(dir, { recursive: true, force: true });
  await finish(server);
});

const here = (name) => join(dir, name);
const sh = (command) => {
  const r = spawnSync('sh', ['-c', command], { cwd: dir, encoding: 'utf8' });
  assert.equal(r.status, 0, r.stderr);
  return r.stdout;
};
/** Run in our directory; must go well. */
const bunker = (...args) => {
  const r = spawnSync(BUNKER, args, { cwd: dir, encoding: 'utf8', env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data }, timeout: 60000, maxBuffer: 1 << 28 });
  assert.equal(r.status, 0, `${args.join(' ')}: ${r.stderr}`);
  return r.stdout;
};
const refused = (message, ...args) => {
  const r = spawnSync(BUNKER, args, { cwd: dir, encoding: 'utf8', env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data }, timeout: 60000 });
  assert.notEqual(r.status, 0, `${args.join(' ')} went well`);
  assert.match(r.stderr, message);
  return r;
};
const shape = "find . -type d -printf '%p %M %T@\\n' -o -printf '%p %M %l %T@ %n\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum";

describe('bunker cp', () => {
  before(() => {
    sh(`mkdir -p tree/sub/empty && cd tree && echo content > file && chmod 0751 file && ln file sub/hard && ln -s ../file sub/soft && printf x > 'odd name
' && head -c 3000000 /dev/urandom > big && chmod 0700 sub && find . -exec touch -h -d '2001-02-03 04:05:06.789' {} +`);
    writeFileSync(here('one.txt'), 'one');
  });

  it('copies a file, into a directory or by a new name', async () => {
    sh("chmod 0640 one.txt && touch -d '2001-02-03 04:05:06' one.txt");
    bunker('cp', 'one.txt', 'work:');
    bunker('cp', 'one.txt', 'work:two.txt');
    bunker('cp', 'one.txt', 'work:new/deep/three.txt');
    bunker('cp', 'one.txt', `${files.id}:/tmp/`);
    assert.equal(await files.sh("cat one.txt two.txt new/deep/three.txt /tmp/one.txt; stat -c '%a %Y %U' two.txt"), 'oneoneoneone640 981173106 user\n'.replace('981173106', `${Math.floor(statSync(here('one.txt')).mtimeMs / 1000)}`));
    bunker('cp', 'work:two.txt', 'back.txt');
    assert.equal(sh("cat back.txt; stat -c '%a %Y' back.txt one.txt | uniq | wc -l"), 'one1\n');
    mkdirSync(here('into'));
    bunker('cp', 'work:two.txt', 'into');
    assert.equal(readFileSync(here('into/two.txt'), 'utf8'), 'one');
  });

  it('copies a directory there and back as it was', async () => {
    bunker('cp', 'tree', 'work:copied');
    assert.equal(await files.sh(`cd copied && ${shape}`), sh(`cd tree && ${shape}`));
    bunker('cp', 'tree', 'work:copied');
    assert.equal(await files.sh('cat copied/tree/file'), 'content\n');
    await files.sh('rm -r copied/tree && touch -d "2001-02-03 04:05:06.789" copied');
    bunker('cp', 'work:copied', 'returned');
    assert.equal(sh(`cd returned && ${shape}`), sh(`cd tree && ${shape}`));
    bunker('cp', 'work:copied', 'into');
    assert.ok(existsSync(here('into/copied/file')));
    bunker('cp', 'tree/.', 'work:content');
    assert.equal(await files.sh('cat content/file'), 'content\n');
  });

  it('reads stdin and writes stdout', async () => {
    const r = server.cli(['cp', '-', 'work:piped'], { input: 'from a pipe' });
    assert.equal(r.status, 0, r.stderr);
    assert.equal(await files.text('piped'), 'from a pipe');
    assert.equal(bunker('cp', 'work:piped', '-'), 'from a pipe');
  });

  it('shows a bar on a terminal only', { skip: spawnSync('script', ['--version']).error ? 'no script(1)' : false, timeout: 60000 }, () => {
    sh('head -c 30000000 /dev/urandom > large');
    const env = { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data };
    const seen = spawnSync('script', ['-qec', `${BUNKER} cp large work:large`, '/dev/null'], { cwd: dir, env, encoding: 'utf8', timeout: 60000 });
    assert.equal(seen.status, 0);
    assert.match(seen.stdout, /large \[=*>? *\] +\d+% .*iB/);
    const quiet = spawnSync(BUNKER, ['cp', 'large', 'work:large'], { cwd: dir, env, encoding: 'utf8' });
    assert.equal(quiet.stderr + quiet.stdout, '');
  });

  it('says why it cannot', () => {
    refused(/nope/, 'cp', 'nope', 'work:');
    refused(/not_found/, 'cp', 'work:nope', '.');
    refused(/permission_denied/, 'cp', 'one.txt', 'work:/etc/');
    refused(/there is no sandbox/, 'cp', 'one.txt', 'nobody:');
    refused(/one of the two/, 'cp', 'one.txt', 'two.txt');
    refused(/one of the two/, 'cp', 'work:a', 'work:b');
    refused(/is neither a file nor a directory/, 'cp', '/dev/null', 'work:');
    assert.equal(refused(/missing/, 'cp', 'one.txt').status, 2);
  });

  it('is not led out of the directory by what comes', async () => {
    mkdirSync(here('victim'));
    writeFileSync(here('victim/f'), 'safe');
    // The first copy plants a link, the second would write through it.
    await files.sh(`mkdir -p trap1 trap2/l && ln -sfn ${here('victim')} trap1/l && echo evil > trap2/l/f`);
    mkdirSync(here('target'));
    bunker('cp', 'work:trap1/.', 'target');
    refused(/lead out of the directory/, 'cp', 'work:trap2/.', 'target');
    assert.equal(readFileSync(here('victim/f'), 'utf8'), 'safe');
    // A link in the last place is replaced, not written through.
    symlinkSync(here('victim/f'), here('target/g'));
    await files.sh('mkdir -p trap3 && echo new > trap3/g');
    bunker('cp', 'work:trap3/.', 'target');
    assert.equal(readFileSync(here('victim/f'), 'utf8'), 'safe');
    assert.equal(readFileSync(here('target/g'), 'utf8'), 'new\n');
  });

  it('says when the connection breaks in the middle', { timeout: 60000 }, async () => {
    await files.sh('mkdir -p cut && head -c 3000000 /dev/zero > cut/a && echo x > cut/b && chmod 0 cut/b');
    refused(/not complete|no archive|lost|cut short/, 'cp', 'work:cut', 'cut');
  });
});

describe('bunker files', () => {
  before(() => files.sh("mkdir -p f/src && echo 'hello world' > f/a.txt && echo 'int main' > f/src/m.c && ln -s a.txt f/link && printf x > \"f/$(printf 'e\\033[31m')\""));

  it('lists', () => {
    assert.equal(bunker('files', 'ls', 'work', 'f'), 'a.txt\ne\x1b[31m\nlink\nsrc\n');
    assert.equal(bunker('files', 'ls', '-r', 'work', 'f/src'), 'm.c\n');
    assert.match(bunker('files', 'ls', '-l', 'work', 'f'), /^-0644 user     user +12 20\S+ a\.txt$/m);
    assert.match(bunker('files', 'ls', '-l', 'work', 'f'), /link -> a\.txt$/m);
    assert.equal(bunker('files', 'ls', 'work', 'f/a.txt'), '/home/user/f/a.txt\n');
    refused(/not_found/, 'files', 'ls', 'work', 'nope');
  });

  it('does not let names steer a terminal', { skip: spawnSync('script', ['--version']).error ? 'no script(1)' : false }, () => {
    const env = { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data };
    const seen = spawnSync('script', ['-qec', `${BUNKER} files ls work f`, '/dev/null'], { env, encoding: 'utf8' });
    assert.ok(!seen.stdout.includes('\x1b[31m'));
    assert.match(seen.stdout, /e\?\[31m/);
  });

  it('prints, tells, makes and removes', () => {
    assert.equal(bunker('files', 'cat', 'work', 'f/a.txt', 'f/src/m.c'), 'hello world\nint main\n');
    assert.match(bunker('files', 'stat', 'work', 'f/link'), /symlink/);
    assert.equal(JSON.parse(bunker('files', 'stat', '-L', '--json', 'work', 'f/link')).type, 'file');
    bunker('files', 'mkdir', 'work', 'f/new/deep');
    bunker('files', 'rm', 'work', 'f/new/deep');
    refused(/directory_not_empty/, 'files', 'rm', 'work', 'f/src');
    bunker('files', 'rm', '-r', '-u', 'root', 'work', '/home/user/f/new');
  });

  it('finds', () => {
    assert.equal(bunker('files', 'find', 'work', '*.c', 'f'), '/home/user/f/src/m.c\n');
    assert.equal(bunker('files', 'grep', 'work', 'world', 'f'), '/home/user/f/a.txt:1:hello world\n');
    assert.equal(bunker('files', 'grep', '-E', '--include', '*.c', 'work', '^int', 'f'), '/home/user/f/src/m.c:1:int main\n');
    refused(/invalid_field/, 'files', 'grep', '-E', 'work', '(');
  });

  it('finds and lists more than one page', { timeout: 60000 }, async () => {
    await files.sh('mkdir -p pages && cd pages && seq 1700 | xargs touch');
    assert.equal(bunker('files', 'ls', 'work', 'pages').trim().split('\n').length, 1700);
    assert.equal(bunker('files', 'find', 'work', '*', 'pages').trim().split('\n').length, 1700);
  });

  it('watches', { timeout: 30000 }, async () => {
    const child = spawn(BUNKER, ['files', 'watch', '-r', 'work', 'f'], { env: { ...server.env, BUNKER_URL: server.url, BUNKER_DATA: server.data } });
    const closed = new Promise((resolve) => child.on('close', resolve));
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
    for (let i = 0; i < 100 && !out.includes('create'); i++) {
      await files.sh(`touch f/w${i}`);
      await sleep(50);
    }
    await files.sh('mv f/a.txt f/b.txt; rm -r f');
    await closed;
    assert.match(out, /^rename +a\.txt -> b\.txt$/m);
    assert.match(out, /^remove +\/$/m);
  });

  it('explains itself', () => {
    assert.match(bunker('files', '--help'), /grep/);
    assert.match(bunker('cp', '--help'), /SANDBOX:PATH/);
    refused(/there is no command/, 'files', 'nope');
  });
});
