// Previews under attack: from clients, and from what listens inside a sandbox.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Server, until } from '../lib/server.mjs';

const OTHER = 'bnk_00000000000000000000000000000000000000aa';
let server, box;

// A server inside that answers each connection with the bytes of a file named by the path, and says what it was sent.
const APP = `
import socket, threading
s = socket.create_server(('127.0.0.1', 3000), backlog=128)
def one(c):
    head = b''
    while b'\\r\\n\\r\\n' not in head:
        piece = c.recv(65536)
        if not piece: return
        head += piece
    open('/tmp/seen', 'ab').write(head + b'=====\\n')
    name = head.split(b' ')[1].decode().strip('/')
    try: answer = open('/tmp/answers/' + name, 'rb').read()
    except OSError: answer = b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok'
    try: c.sendall(answer); c.shutdown(socket.SHUT_WR); c.recv(1)
    except OSError: pass
    c.close()
while True: threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
`;

/** Sends bytes as they are; the answer as text when the connection ends, or is quiet for a while. */
function raw(bytes, quiet = 700) {
  return new Promise((resolve) => {
    const socket = net.connect(server.port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    const done = () => {
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(quiet, done);
    socket.on('data', (data) => (text += data.toString('latin1')));
    socket.on('close', done);
    socket.on('error', done);
  });
}
const status = (text) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);
const host = (port, id = box.id) => `${port}-${id}.localhost`;
async function answers(name, text) {
  const r = await server.request('PUT', `/v1/sandboxes/${box.id}/files/tmp/answers/${name}`, Buffer.from(text, 'latin1'), { headers: { 'content-type': 'application/octet-stream' } });
  assert.ok(r.status === 200 || r.status === 201, r.text);
}
const seen = async () => (await server.exec(box.id, 'cat /tmp/seen; rm -f /tmp/seen')).stdout;

before(async () => {
  server = await Server.start({ args: ['--pool', '0', '--api-key', `other=${OTHER}`] });
  box = await server.create({ previews: 'public' });
  await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: ['python3', '-c', APP] });
  await until('it listens', async () => status(await raw(`GET / HTTP/1.1\r\nHost: ${host(3000)}\r\n\r\n`)) === 200);
  await seen();
});
after(() => server?.destroy());

describe('K114 the proxy of previews', () => {
  test('K114 serves an honest request: the control', async () => {
    assert.match(await raw(`GET / HTTP/1.1\r\nHost: ${host(3000)}\r\nConnection: close\r\n\r\n`), /^HTTP\/1\.1 200 OK\r\n[^]*ok$/);
  });

  test('K114 takes no host name for a port that is none, and never the server itself', async () => {
    await seen();
    for (const port of ['0', '65536', '99999', '-1', '03000x', '3000.5']) {
      const text = await raw(`GET /health HTTP/1.1\r\nHost: ${host(port)}\r\nConnection: close\r\n\r\n`);
      assert.ok(!text.includes('\r\n\r\nok'), `${port}: ${text}`);
    }
    for (const port of [22, server.port]) assert.equal(status(await raw(`GET / HTTP/1.1\r\nHost: ${host(port)}\r\nConnection: close\r\n\r\n`)), 502, 'a port inside, which is closed');
    assert.equal(await seen(), '');
  });

  test('K114 refuses requests that two programs could read in two ways', async () => {
    const bad = {
      'two hosts': `GET / HTTP/1.1\r\nHost: ${host(3000)}\r\nHost: evil\r\n\r\n`,
      'an absolute target': `GET http://evil/ HTTP/1.1\r\nHost: ${host(3000)}\r\n\r\n`,
      'length and coding': `POST / HTTP/1.1\r\nHost: ${host(3000)}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      'two codings': `POST / HTTP/1.1\r\nHost: ${host(3000)}\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
      'two lengths': `POST / HTTP/1.1\r\nHost: ${host(3000)}\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd`,
      'a folded line': `GET / HTTP/1.1\r\nHost: ${host(3000)}\r\nA: b\r\n c\r\n\r\n`,
      'a bare LF': `GET / HTTP/1.1\nHost: ${host(3000)}\n\n`,
      'a space before the colon': `GET / HTTP/1.1\r\nHost: ${host(3000)}\r\nContent-Length : 4\r\n\r\nabcd`,
    };
    for (const [what, bytes] of Object.entries(bad)) assert.equal(status(await raw(bytes)), 400, what);
    assert.equal(await seen(), '', 'none of them came through');
  });

  test('K114 sends a smuggled request nowhere', async () => {
    const text = await raw(`POST / HTTP/1.1\r\nHost: ${host(3000)}\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: ${host(3000)}\r\n\r\n`);
    assert.ok(!(await seen()).includes('smuggled'), text);
  });

  test('K114 lets no field of one hop, and none of our credentials, through', async () => {
    await raw(
      `GET / HTTP/1.1\r\nHost: ${host(3000)}\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nProxy-Authorization: a\r\nTE: trailers\r\nAuthorization: Bearer ${server.key}\r\nX-API-Key: ${server.key}\r\n` +
        `X-Bunker-Preview-Token: t\r\nE2B-Traffic-Access-Token: t\r\nCookie: bunker_preview=t\r\nX-Mine: yes\r\n\r\n`,
    );
    const head = (await seen()).toLowerCase();
    assert.match(head, /x-mine: yes/);
    for (const name of ['x-secret', 'proxy-authorization', 'te:', 'authorization', 'x-api-key', 'preview-token', 'traffic-access', 'cookie', server.key.toLowerCase()]) assert.ok(!head.includes(name), name);
  });

  test('K114 shows another tenant nothing, and nobody which sandboxes there are', async () => {
    const own = await server.create();
    const ask = (id, key) => raw(`GET / HTTP/1.1\r\nHost: ${host(3000, id)}\r\n${key ? `Authorization: Bearer ${key}\r\n` : ''}Connection: close\r\n\r\n`);
    const body = (text) => JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)).error;
    assert.equal(status(await ask(own.id, OTHER)), 404);
    assert.deepEqual(body(await ask(own.id)), body(await ask('a'.repeat(20))));
    assert.deepEqual(body(await ask(own.id, OTHER)), body(await ask('a'.repeat(20), OTHER)));
    assert.equal(status(await ask(own.id, server.key)), 502, 'the control: its owner is told that nothing listens');
  });
});

describe('K114 what listens inside', () => {
  const visit = (name, more = '') => raw(`GET /${name} HTTP/1.1\r\nHost: ${host(3000)}\r\n${more}\r\n`);

  test('K114 cannot split the answer, or give two', async () => {
    const bad = {
      'no-http': 'SSH-2.0-OpenSSH\r\n\r\n',
      'bare-lf': 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
      'two-lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk',
      'length-and-coding': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'bad-length': 'HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok',
      'bad-status': 'HTTP/1.1 99 OK\r\nContent-Length: 2\r\n\r\nok',
      'long-status': 'HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok',
      'high-status': 'HTTP/1.1 700 OK\r\nContent-Length: 2\r\n\r\nok',
      'control': 'HTTP/1.1 200 OK\r\nA: b\x01c\r\n\r\n',
      'unasked-upgrade': 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nraw',
      'endless-head': `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(20000)}`,
      'nothing': '',
    };
    for (const [name, text] of Object.entries(bad)) {
      await answers(name, text);
      const got = await visit(name);
      assert.equal(status(got), 502, `${name}: ${got.slice(0, 200)}`);
    }
    assert.equal(status(await visit('fine')), 200, 'the control');
  });

  test('K114 cannot put a second answer behind the first', async () => {
    await answers('two', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil');
    const text = await raw(`GET /two HTTP/1.1\r\nHost: ${host(3000)}\r\n\r\nGET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    assert.ok(!text.includes('evil'), text);
    assert.equal(text.match(/HTTP\/1\.1 200/g).length, 2, 'the second answer is that of the second request');
  });

  test('K114 cannot end a chunked answer early without a trace', async () => {
    for (const [name, text] of [
      ['cut-chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab'],
      ['bad-chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n'],
      ['huge-chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab'],
    ]) {
      await answers(name, text);
      assert.ok(!(await visit(name)).endsWith('0\r\n\r\n'), name);
    }
    await answers('good-chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n');
    assert.ok((await visit('good-chunk')).endsWith('0\r\n\r\n'), 'the control');
  });

  test('K114 cannot set cookies for the domain, nor any at the origin of the API', async () => {
    await answers('cookies', 'HTTP/1.1 200 OK\r\nSet-Cookie: a=1; domain=.localhost; Path=/\r\nSet-Cookie: b=2;Domain=localhost\r\nContent-Length: 2\r\n\r\nok');
    const own = await visit('cookies');
    assert.match(own, /Set-Cookie: a=1; Path=\//);
    assert.ok(!/domain/i.test(own), own);
    const shared = await raw(`GET /p/${box.id}/3000/cookies HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: session=1\r\nConnection: close\r\n\r\n`);
    assert.equal(status(shared), 200);
    assert.ok(!/set-cookie/i.test(shared), shared);
    assert.match(shared, /Content-Security-Policy: sandbox /);
    assert.ok(!(await seen()).includes('session=1'));
  });
});

describe('K113 a token of a port', () => {
  test('K113 opens that port of that sandbox, until it is taken back or its time is over, and nothing else', async () => {
    const [own, other] = await Promise.all([server.create(), server.create()]);
    const make = async (body = {}) => {
      const r = await server.request('POST', `/v1/sandboxes/${own.id}/ports/3000/tokens`, body);
      assert.equal(r.status, 201, r.text);
      return r.json;
    };
    // Nothing listens: 502 says that one was let in, 401 that not.
    const ask = async (token, { id = own.id, port = 3000 } = {}) => status(await raw(`GET / HTTP/1.1\r\nHost: ${host(port, id)}\r\nX-Bunker-Preview-Token: ${token}\r\nConnection: close\r\n\r\n`));
    const { token, id } = await make();
    assert.equal(await ask(token), 502, 'the control');
    assert.equal(await ask(token, { port: 3001 }), 401, 'another port');
    assert.equal(await ask(token, { id: other.id }), 401, 'another sandbox');
    for (let i = 0; i < token.length; i += 7) assert.equal(await ask(token.slice(0, i) + (token[i] === '1' ? '2' : '1') + token.slice(i + 1)), 401, `changed at ${i}`);
    for (const bad of ['', id, token + '0', token.slice(1), token.toUpperCase(), `${id}${'0'.repeat(48)}`]) assert.equal(await ask(bad), 401, bad);
    const second = await make();
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${own.id}/ports/3000/tokens/${id}`, undefined, { key: OTHER })).status, 404);
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${own.id}/ports/3000/tokens/${id}`)).status, 204);
    assert.equal(await ask(token), 401, 'taken back');
    assert.equal(await ask(second.token), 502, 'the other one is not');
    const short = await make({ expires: '1s' });
    assert.equal(await ask(short.token), 502);
    await until('its time is over', async () => (await ask(short.token)) === 401);
    process.kill(server.frontPid, 'SIGKILL');
    server.renewAgent();
    await until('it is good after a death of the front', async () => (await ask(second.token)) === 502);
    assert.equal(await ask(token), 401, 'and what was taken back stays so');
  });
});
