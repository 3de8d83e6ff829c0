// bunker template: imports of directories and archives, Dockerfiles, tags; as a user types them.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { Server } from '../lib/server.mjs';
import { dockerSave, file, ociLayout, tar, tinyRoot } from '../lib/images.mjs';
import { finish } from './support.mjs';

let server, work;
before(async () => {
  work = mkdtempSync(join(tmpdir(), 'bunker-cli-templates-'));
  server = await Server.start();
  writeFileSync(join(work, 'root.tar'), tar(tinyRoot()));
  ok(['template', 'import', join(work, 'root.tar'), 'tiny']);
});
after(async () => {
  rmSync(work, { recursive: true, force: true });
  await finish(server);
});

function ok(args, options) {
  const result = server.cli(args, options);
  assert.equal(result.status, 0, result.stderr);
  return result.stdout;
}

const run = (template, line) => ok(['run', '-t', template, '-c', line]);

/** A directory with these files; content null is a directory. */
function directory(name, files) {
  const path = join(work, name);
  mkdirSync(path, { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(join(path, file, '..'), { recursive: true });
    if (content === null) mkdirSync(join(path, file), { recursive: true });
    else writeFileSync(join(path, file), content);
  }
  return path;
}

function unpack(name, entries) {
  const path = join(work, name);
  mkdirSync(path);
  const result = spawnSync('tar', ['-x', '-C', path], { input: tar(entries) });
  assert.equal(result.status, 0, String(result.stderr));
  return path;
}

test('imports_a_directory_an_archive_and_what_is_piped', () => {
  ok(['template', 'import', unpack('root', [...tinyRoot(), file('here', 'yes')]), 'fromdir:1', '--description', 'a note']);
  assert.equal(run('fromdir:1', 'cat /here'), 'yes');
  ok(['template', 'import', '-', 'piped'], { input: tar(dockerSave([{ layers: [tar([...tinyRoot(), file('docker', 'd')])], tags: ['x:1'] }])) });
  assert.equal(run('piped', 'cat /docker'), 'd');
  const image = ociLayout([tar([...tinyRoot(), file('oci', 'o')])]);
  ok(['template', 'import', unpack('layout', image.entries), 'layout', '--digest', image.digest]);
  assert.equal(run('layout', 'cat /oci'), 'o');
  const wrong = server.cli(['template', 'import', join(work, 'layout'), 'layout', '--digest', `sha256:${'0'.repeat(64)}`]);
  assert.equal(wrong.status, 1);
  assert.match(wrong.stderr, /digest_mismatch/);
  assert.match(server.cli(['template', 'import', '/nowhere', 'x']).stderr, /No such file/);
});

test('lists_shows_tags_and_deletes', () => {
  ok(['template', 'import', join(work, 'root.tar'), 'tagged:v1']);
  ok(['template', 'tag', 'tagged:v1', 'prod']);
  assert.match(ok(['template', 'ls']), /^NAME +DEFAULT +TAGS +STATUS +DESCRIPTION\nbase +yes/);
  assert.match(ok(['templates']), /\ntagged +- +prod v1 +ready/);
  assert.deepEqual(JSON.parse(ok(['template', 'info', 'tagged'])).tags.map((t) => t.tag), ['prod', 'v1']);
  ok(['template', 'untag', 'tagged:v1']);
  assert.equal(run('tagged:prod', 'echo ok'), 'ok\n');
  ok(['template', 'rm', 'tagged']);
  assert.equal(server.cli(['template', 'info', 'tagged']).status, 1);
  assert.equal(server.cli(['template', 'nonsense']).status, 2);
  assert.equal(server.cli(['template']).status, 2);
});

test('builds_a_dockerfile_with_its_files', () => {
  const dir = directory('web', {
    Dockerfile: [
      'ARG BASE=tiny',
      'FROM ${BASE}',
      'ARG VERSION=1',
      'ENV GREETING="hello there" PATH=/opt/bin:$PATH',
      'WORKDIR /srv/app',
      'COPY . .',
      'COPY --chown=user --chmod=0640 conf/*.conf /etc/app/',
      'ADD bundle.tar /bundle',
      'RUN echo "$VERSION $GREETING" > built && \\',
      '    # a comment',
      '    pwd >> built',
      'RUN ["/bin/sh", "-c", "echo exec >> built"]',
      'USER user',
      'EXPOSE 8080',
      'ENTRYPOINT ["/bin/sh", "-c", "echo $0 > /tmp/started; exec sleep 1000"]',
      'CMD ["argument"]',
    ].join('\n'),
    'index.html': '<p>',
    'conf/a.conf': 'a',
    'conf/b.conf': 'b',
    'conf/c.txt': 'c',
    'node_modules/x/y': 'ignored',
    'keep.log': 'kept',
    'drop.log': 'dropped',
    '.dockerignore': '# not these\nnode_modules\n*.log\n!keep.log\nDockerfile\n.dockerignore\nbundle.tar\n',
    'bundle.tar': tar([file('inner', 'unpacked')]),
  });
  const built = server.cli(['template', 'build', '-t', 'web:v1', '--build-arg', 'VERSION=2', '--ready', 'test -s /tmp/started', dir]);
  assert.equal(built.status, 0, built.stderr);
  assert.match(built.stdout, /^[a-z0-9]{20}\n$/);
  assert.match(built.stderr, /\[1\/\d+\] ENV/);
  assert.equal(run('web:v1', 'cat built; ls -A; ls /etc/app; cat /bundle/inner; cat /tmp/started; id -un; echo $PATH'), '2 hello there\n/srv/app\nexec\nbuilt\nconf\nindex.html\nkeep.log\na.conf\nb.conf\nunpackedargument\nuser\n/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n');
  assert.equal(run('web:v1', "stat -c '%U %a' /etc/app/a.conf"), 'user 640\n');
  const again = server.cli(['template', 'build', '-t', 'web:v2', '--build-arg', 'VERSION=2', '--ready', 'test -s /tmp/started', dir]);
  assert.equal((again.stderr.match(/CACHED/g) ?? []).length, 8, 'the same files make the same archive');
  const quiet = server.cli(['template', 'build', '-q', '-t', 'web:v3', dir]);
  assert.equal(quiet.stderr, '');
  const info = JSON.parse(ok(['template', 'info', 'web'])).builds[0];
  assert.deepEqual([info.ports, info.entrypoint, info.command], [['8080'], ['/bin/sh', '-c', 'echo $0 > /tmp/started; exec sleep 1000'], ['argument']]);
  assert.match(server.cli(['template', 'log', info.id]).stderr, /ready/);
});

test('says_what_is_wrong_with_a_dockerfile_and_where', () => {
  const cases = [
    ['FROM tiny\nLABEL a=b\n', /Dockerfile:2: the instruction LABEL is not supported/],
    ['FROM tiny\nCOPY nothing /x\n', /nothing: No such file/],
    ['FROM tiny\nCOPY ../secret /x\n', /leads out of the directory/],
    ['FROM tiny\nCOPY *.none /x/\n', /nothing here matches/],
    ['FROM no-such:1\n', /there is no template 'no-such:1'[\s\S]*bunker template import docker:\/\/no-such:1 no-such:1/],
    ['FROM tiny\nRUN echo because >&2; exit 3\n', /because\n[\s\S]*at step 1: failed to run command 'echo because >&2; exit 3': command failed: exit status 3/],
  ];
  cases.forEach(([text, pattern], i) => {
    const result = server.cli(['template', 'build', '-t', 'bad', directory(`bad${i}`, { Dockerfile: text })]);
    assert.equal(result.status, 1, text);
    assert.match(result.stderr, pattern);
  });
  assert.equal(server.cli(['template', 'build', work]).status, 2);
  assert.match(server.cli(['template', 'build', '-t', 'x', join(work, 'nowhere')]).stderr, /Dockerfile: No such file/);
});

test('links_of_the_directory_are_copied_and_not_followed', () => {
  const dir = directory('links', { Dockerfile: 'FROM tiny\nCOPY . /x\n' });
  symlinkSync('/etc/shadow', join(dir, 'link'));
  ok(['template', 'build', '-q', '-t', 'links', dir]);
  assert.equal(run('links', 'readlink /x/link'), '/etc/shadow\n');
});

test('a_debian_is_sent_when_it_is_whole_and_not_at_all_when_it_is_not', async () => {
  const bin = join(work, 'bin');
  mkdirSync(bin);
  // What it begins with comes at once, the rest long after: here, only when the test has looked.
  writeFileSync(join(bin, 'mmdebstrap'), `#!/bin/sh\necho "$@" > ${work}/args\nhead -c 512 ${work}/root.tar\n[ -e ${work}/broken ] && exit 25\ntail -c +513 ${work}/root.tar\n`, { mode: 0o755 });
  const env = { PATH: `${bin}:${process.env.PATH}` };
  ok(['template', 'debian', 'python:made', '--recipe', 'python', '--suite', 'trixie', '--variant', 'apt', '--include', 'jq'], { env });
  const args = readFileSync(join(work, 'args'), 'utf8');
  assert.match(args, /--variant=apt .*--include=\S*python3\S*,jq trixie -/);
  assert.match(args, /path-exclude=\/usr\/share\/man/, 'a recipe goes without manuals');
  assert.equal(run('python:made', 'echo made'), 'made\n');
  ok(['template', 'debian', 'plain'], { env });
  assert.doesNotMatch(readFileSync(join(work, 'args'), 'utf8'), /dpkgopt|include/, 'a Debian without a recipe is what mmdebstrap makes of it');
  writeFileSync(join(work, 'broken'), '');
  const broken = server.cli(['template', 'debian', 'broken'], { env });
  assert.equal(broken.status, 1);
  assert.match(broken.stderr, /mmdebstrap ended with status 25/);
  assert.ok(!(await server.request('GET', '/v1/templates')).json.templates.some((t) => t.name === 'broken'), 'half an archive was sent');
});
