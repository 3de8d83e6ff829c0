// Zip archives of Agentuity's calls: down and up, what other programs make of them, and hostile ones.
import { describe, it, after } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { APIClient, createMinimalLogger, SandboxClient, sandboxDownloadArchive, sandboxUploadArchive } from '@agentuity/core';
import { zip } from '../../lib/zip.mjs';
import { failure, fetchText, startServer, text } from './support.mjs';

const server = await startServer({ args: ['--pool', '0'] });
const client = new SandboxClient();
const api = new APIClient(`${server.url}/agentuity`, createMinimalLogger(), server.key, {});
const scratch = mkdtempSync(join(tmpdir(), 'bunker-agentuity-zip-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const sh = async (sandbox, script) => fetchText((await sandbox.execute({ command: ['sh', '-c', script] })).stdoutStreamUrl);
const upload = (sandbox, archive, path) => sandboxUploadArchive(api, { sandboxId: sandbox.id, archive: new Uint8Array(archive), path, format: 'zip' });
const download = async (sandbox, path) => Buffer.from(await new Response(await sandboxDownloadArchive(api, { sandboxId: sandbox.id, path, format: 'zip' })).arrayBuffer());
/** What Python's own reader says of a zip archive. */
const listed = (archive) => {
  writeFileSync(join(scratch, 'listed.zip'), archive);
  const script = `import json,sys,zipfile
z=zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
print(json.dumps([[i.filename,oct(i.external_attr>>16),i.file_size,i.compress_size] for i in z.infolist()]))`;
  return JSON.parse(execFileSync('python3', ['-c', script, join(scratch, 'listed.zip')]));
};

describe('a zip archive', () => {
  it('of a directory is one for others, and comes back as it was', { timeout: 60000 }, async () => {
    const sandbox = await client.create();
    await sh(sandbox, `mkdir -p tree/empty tree/sub; printf text > tree/a; ln tree/a tree/sub/same; ln -s ../a tree/sub/link; mkfifo tree/pipe
      printf '#!/bin/sh\\necho ran' > tree/run; chmod 755 tree/run; head -c 3000000 /dev/zero > tree/zeros; head -c 700000 /dev/urandom > tree/noise
      : > tree/nothing; printf x > tree/ünïcode; touch -d 2001-02-03T04:05:06Z tree/a; chmod 700 tree/empty`);
    const archive = await download(sandbox, 'tree');
    const entries = Object.fromEntries(listed(archive).map(([name, ...rest]) => [name, rest]));
    assert.deepEqual(Object.keys(entries).sort(), ['a', 'empty/', 'noise', 'nothing', 'run', 'sub/', 'sub/link', 'sub/same', 'zeros', 'ünïcode'].sort());
    assert.deepEqual([entries.a, entries.run[0], entries['sub/link'].slice(0, 2), entries['sub/same'][1]], [['0o100644', 4, 6], '0o100755', ['0o120777', 4], 4]);
    assert.ok(entries.zeros[1] === 3000000 && entries.zeros[2] < 30000, 'it is compressed');
    await upload(sandbox, archive, 'copy');
    const look = (dir) => sh(sandbox, `cd ${dir}; find . ! -name pipe ! -path . -printf '%P %y %m %l %s\\n' | sort; sha256sum noise zeros | cut -c1-64; stat -c %Y a`);
    const strip = (listing) => listing.replace(/^(empty|sub) d (\d+)  \d+$/gm, '$1 d $2');
    assert.equal(strip(await look('copy')), strip(await look('tree')));
    assert.equal(await sh(sandbox, 'cd copy; ./run; ls -A | wc -l'), 'ran\n8\n');
    const single = listed(await download(sandbox, 'tree/a'));
    assert.deepEqual(single.map((e) => e[0]), ['a'], 'one file is an archive, too');
    assert.match((await failure(download(sandbox, 'nowhere'))).message, /404/);
    await sandbox.destroy();
  });

  it('of other programs is unpacked, with its modes and links', { timeout: 60000 }, async () => {
    const sandbox = await client.create();
    const script = `import sys,zipfile
with zipfile.ZipFile(sys.argv[1],'w',zipfile.ZIP_DEFLATED,compresslevel=9) as z:
    z.writestr('text/long',b'a line of text\\n'*50000)
    z.writestr('text/stored',b'as it is',zipfile.ZIP_STORED)
    with z.open(zipfile.ZipInfo('wide'),'w',force_zip64=True) as f: f.write(b'64 bits')
    i=zipfile.ZipInfo('bin/run'); i.external_attr=0o100755<<16; z.writestr(i,'#!/bin/sh\\necho ran')
    i=zipfile.ZipInfo('bin/link'); i.external_attr=0o120777<<16; z.writestr(i,'run')
    z.comment=b'PK\\5\\6 is no end'`;
    execFileSync('python3', ['-c', script, join(scratch, 'made.zip')]);
    const archive = readFileSync(join(scratch, 'made.zip'));
    await upload(sandbox, archive, 'new/place');
    assert.equal(await sh(sandbox, 'cd new/place; wc -c < text/long; cat text/stored wide; bin/link; ls -lA bin/link | cut -c1'), '750000\nas it is64 bitsran\nl\n');
    await sandbox.destroy();
    // The content type will do, without a format.
    const other = await client.create();
    const answer = await server.request('POST', `/agentuity/fs/upload/${other.id}?path=.`, archive, { headers: { 'content-type': 'application/zip' } });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(await text(await other.readFile('wide')), '64 bits');
    await other.destroy();
  });
});

describe('a hostile zip archive', () => {
  it('is refused before anything is changed', { timeout: 60000 }, async () => {
    const sandbox = await client.create();
    const good = { name: 'good', content: 'good' };
    const shared = zip([{ name: 'a', content: 'x'.repeat(100000), stored: true }, ...Array.from({ length: 5 }, (_, i) => ({ name: `b${i}`, content: 'x'.repeat(100000), stored: true, at: 0, shared: true }))]);
    const whole = zip([good, { name: 'more', content: 'x'.repeat(5000) }]);
    const cases = {
      'a name with ..': zip([good, { name: '../up', content: 'x' }]),
      'a name with .. inside': zip([good, { name: 'a/../../up', content: 'x' }]),
      'an absolute name': zip([good, { name: '/tmp/up', content: 'x' }]),
      'a name with a NUL': zip([good, { name: 'a\0b', content: 'x' }]),
      'no name': zip([good, { name: '', content: 'x' }]),
      'members that share their bytes': shared,
      'an encrypted member': zip([good, { name: 'secret', content: 'x', flags: 1 }]),
      'a method of others': zip([good, { name: 'other', content: 'x', method: 12 }]),
      'content behind the archive': zip([good, { name: 'far', content: 'x', at: 0x7fffffff }]),
      'more entries than there are': zip([good], { count: 2 }),
      'fewer entries than there are': zip([good, good], { count: 1 }),
      'no end': whole.subarray(0, -1),
      'something in front': Buffer.concat([Buffer.from('#!/bin/sh\n'), whole]),
      'nothing': Buffer.alloc(1),
      'text': Buffer.from('no archive at all'),
      'a bomb by its own account': zip([good, { name: 'bomb', content: 'x'.repeat(100), size: 0xfffffff0 }]),
    };
    for (const [what, archive] of Object.entries(cases)) {
      const error = await failure(upload(sandbox, archive, 'there'));
      assert.match(error.message, /400.*(archive|leads out)/, `${what}: ${error.message}`);
    }
    assert.equal(await sh(sandbox, 'ls -A there; ls /tmp'), '', 'not even a part');
    await sandbox.destroy();
  });

  it('that lies about its content ends there, and leads nowhere by its links', { timeout: 60000 }, async () => {
    const sandbox = await client.create();
    const link = (name, target) => ({ name, content: target, mode: 0o120777, stored: true });
    const cases = {
      'a wrong sum': [zip([{ name: 'a', content: 'content', crc: 1 }]), /archive/],
      'less than it says': [zip([{ name: 'a', content: 'content', size: 8 }]), /archive/],
      'more than it says': [zip([{ name: 'a', content: 'x'.repeat(5000), size: 10 }]), /archive/],
      'no deflate': [zip([{ name: 'a', content: 'x', packed: Buffer.from('\x07nonsense') }]), /archive/],
      'a file through a link': [zip([link('out', '/tmp'), { name: 'out/up', content: 'x' }]), /leads out/],
      'a file through a link with ..': [zip([link('out', '../..'), { name: 'out/up', content: 'x' }]), /leads out/],
      'a link that is too long': [zip([link('long', 'x'.repeat(5000))]), /archive/],
      'a link to nothing': [zip([link('none', '')]), /archive/],
      'a link with a NUL': [zip([link('nul', 'a\0b')]), /archive/],
    };
    for (const [what, [archive, message]] of Object.entries(cases)) {
      const error = await failure(upload(sandbox, archive, 'there'));
      assert.match(error.message, /400/, `${what}: ${error.message}`);
      assert.match(error.message, message, what);
    }
    await upload(sandbox, zip([{ name: 'dev', mode: 0o020666, content: '' }, { name: 'setuid', mode: 0o104755, content: 'x' }]), 'there');
    assert.equal(await sh(sandbox, 'ls /tmp /home; ls -A there | grep -c dev; stat -c %a there/setuid; find . -name ".bunker*" | wc -l'), '/home:\nagentuity\nuser\n\n/tmp:\n0\n755\n0\n', 'devices are left out, set-id bits are taken off');
    await sandbox.destroy();
  });

  it('that would fill the disk fills only the sandbox\'s own', { timeout: 120000 }, async () => {
    const sandbox = await client.create({ resources: { disk: '64Mi' } });
    // 200 MB of zeros in 200 KB: below what is called a bomb.
    const error = await failure(upload(sandbox, zip([{ name: 'zeros', content: Buffer.alloc(200 << 20) }]), 'there'));
    assert.match(error.message, /507|413|no space|quota/i, error.message);
    await sandbox.destroy();
  });
});
