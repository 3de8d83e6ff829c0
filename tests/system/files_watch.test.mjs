// What happens in a directory, told as it happens.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Server, sleep } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { finish, LONG } from './support.mjs';
import { assertFileError, Files } from './files_support.mjs';

let server, files;
before(async () => {
  server = await Server.start();
  files = new Files(server, (await server.create()).id);
});
after(() => finish(server));

/** Server-sent events of a watch: { next(), quiet(), close() }. */
async function watch(path, options = {}) {
  const controller = new AbortController();
  const response = await fetch(`${server.url}${files.base}/fs/watch?${files.query({ path, ...options })}`, {
    headers: { authorization: `Bearer ${server.key}` },
    signal: controller.signal,
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  const queue = [];
  let wake = () => {}, done = false;
  (async () => {
    let rest = '';
    try {
      for await (const part of response.body) {
        rest += new TextDecoder().decode(part);
        const events = rest.split('\n\n');
        rest = events.pop();
        for (const event of events) {
          const data = /^data: (.*)$/m.exec(event);
          if (!data) continue;
          const object = JSON.parse(data[1]);
          assert.equal(/^event: (.*)$/m.exec(event)[1], object.type);
          queue.push(object);
        }
        wake();
      }
    } catch {
      // closed by us
    }
    done = true;
    wake();
  })();
  const next = async () => {
    while (queue.length === 0 && !done) await new Promise((resolve) => (wake = resolve));
    return queue.shift();
  };
  assert.deepEqual(await next(), { type: 'ready' });
  return { next, quiet: async (ms = 150) => (await sleep(ms), queue.splice(0)), close: () => controller.abort() };
}

const brief = (events) => events.map((e) => [e.type, e.path, e.to].filter((x) => x !== undefined).join(' '));

describe('a watch by events', () => {
  it('tells of files', { timeout: 20000 }, async () => {
    await files.sh('mkdir -p w');
    const w = await watch('w');
    await files.sh('echo x > w/a');
    assert.deepEqual(await w.next(), { type: 'create', path: 'a', directory: false });
    assert.deepEqual(brief(await w.quiet()), ['write a']);
    await files.sh('chmod 600 w/a');
    assert.deepEqual(brief([await w.next()]), ['chmod a']);
    await files.sh('mv w/a w/b');
    assert.deepEqual(brief([await w.next()]), ['rename a b']);
    await files.sh('rm w/b; mkdir w/sub; touch w/sub/x');
    assert.deepEqual(brief(await w.quiet()), ['remove b', 'create sub']);
    w.close();
  });

  it('tells of everything below, in new directories too', { timeout: 30000 }, async () => {
    await files.sh('mkdir -p wr/old');
    const w = await watch('wr', { recursive: true });
    await files.sh('mkdir -p wr/a/b/c && for i in $(seq 50); do echo $i > wr/a/b/c/$i; done; touch wr/old/x');
    const events = brief(await w.quiet(500));
    for (const path of ['a', 'a/b', 'a/b/c', 'old/x', ...Array.from({ length: 50 }, (_, i) => `a/b/c/${i + 1}`)])
      assert.equal(events.filter((e) => e === `create ${path}`).length, 1, `create ${path}`);
    await files.sh('mv wr/a wr/old/moved && echo y > wr/old/moved/b/c/1');
    assert.deepEqual([...new Set(brief(await w.quiet()))], ['rename a old/moved', 'write old/moved/b/c/1']);
    w.close();
  });

  it('has names of any bytes', { timeout: 20000 }, async () => {
    await files.sh('mkdir -p wn');
    const w = await watch('wn');
    const name = Buffer.from([0x61, 0xff, 0x0a]);
    await files.ok(files.put(Buffer.concat([Buffer.from('wn/'), name]), 'x'));
    const event = await w.next();
    assert.equal(event.pathBase64, name.toString('base64'));
    w.close();
  });

  it('ends with the directory', { timeout: 20000 }, async () => {
    await files.sh('mkdir -p we');
    const w = await watch('we');
    await files.sh('rmdir we');
    assert.deepEqual(await w.next(), { type: 'remove', path: '', directory: true });
    assert.equal(await w.next(), undefined);
  });

  it('says when events were lost', { timeout: 60000 }, async () => {
    await files.sh('mkdir -p wo');
    const response = await fetch(`${server.url}${files.base}/fs/watch?path=wo`, { headers: { authorization: `Bearer ${server.key}` } });
    const reader = response.body.getReader();
    await reader.read();
    // Nobody reads: the pipe fills, then the kernel's queue.
    await files.sh(`python3 -c "
import os
for i in range(40000):
    p = 'wo/%0240d' % (i % 7); open(p, 'w').close(); os.unlink(p)
"`);
    let text = '', part;
    const end = Date.now() + 20000;
    while (!text.includes('"overflow"') && Date.now() < end && !(part = await reader.read()).done) text = text.slice(-100) + new TextDecoder().decode(part.value);
    assert.match(text, /"type":"overflow"/);
    await reader.cancel();
  });

  it('says why it cannot', async () => {
    assertFileError(await files.ask('watch', 'nope'), 404, 'not_found');
    assertFileError(await files.ask('watch', '/etc/passwd'), 400, 'not_a_directory');
    assertFileError(await files.ask('watch', '/root'), 403, 'permission_denied');
    assertFileError(await files.ask('watch', '.', { recursive: 'x' }), 400, 'invalid_field', 'recursive');
  });

  it('J108 does not watch without end', { timeout: 120000, skip: LONG ? false : 'needs BUNKER_LONG=1' }, async () => {
    await files.sh(`python3 -c "
import os
for i in range(66):
    os.makedirs('wd/%d' % i)
    for k in range(1000): os.mkdir('wd/%d/%d' % (i, k))
"`);
    const answer = await files.ask('watch', 'wd', { recursive: true });
    assertFileError(answer, 503, 'resource_exhausted');
    await files.ok(files.delete('wd', { recursive: true }));
  });
});

describe('a watch by WebSocket', () => {
  const open = (query) => Socket.open(server, `${files.base}/fs/watch?${query}`);

  it('tells the same', { timeout: 20000 }, async () => {
    await files.sh('mkdir -p ws');
    const socket = await open('path=ws&recursive=true');
    const next = async () => (await socket.next()).text;
    assert.deepEqual(await next(), { type: 'ready' });
    await files.sh('mkdir -p ws/deep && echo x > ws/deep/f');
    assert.deepEqual(await next(), { type: 'create', path: 'deep', directory: true });
    assert.deepEqual(brief([await next()]), ['create deep/f']);
    await files.sh('rm -r ws');
    let event, last;
    while ((event = await socket.next()) && event.text) last = event.text;
    assert.deepEqual(last, { type: 'remove', path: '', directory: true });
  });

  it('is refused by an answer, before it is open', { timeout: 20000 }, async () => {
    await assert.rejects(open('path=nope'), { status: 404 });
    await assert.rejects(open('path=ws&bogus=1'), { status: 400 });
  });
});
