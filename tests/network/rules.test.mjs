// Modes allow and deny: what decides is the name, resolved by us; addresses only where a list has them.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { assertRefused, finish, remove } from '../system/support.mjs';
import { until } from '../lib/server.mjs';
import { CONNECT, WEB, WEB6, World, enterNamespace, processesOf, python } from './world.mjs';

enterNamespace(import.meta.url);

const PKG = '5.5.5.11', EVIL = '5.5.5.12';
let world, server;

before(async () => {
  world = await World.make();
  server = await world.start({ args: ['--private-networks', '10.9.0.0/16,fd12::/16'] });
});

after(async () => {
  try {
    await finish(server, { killed: true });
  } finally {
    world.end();
  }
});

const allow = (...list) => ({ mode: 'allow', allow: list });

async function make(network) {
  const box = await server.create({ network });
  assert.deepEqual(box.network, network);
  return box.id;
}

const change = async (id, network) => assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/network`, network)).status, 200);

/** What a web server says that it was asked; or how curl failed. */
async function curl(id, url, ...args) {
  const done = await server.exec(id, ['curl', '-ksS', '-m', '10', '-w', '\n%{http_code}', ...args, url]);
  if (done.exitCode !== 0) return `curl ${done.exitCode}`;
  const [body, code] = done.stdout.split('\n').filter(Boolean).slice(-2);
  return code === '200' ? JSON.parse(body) : Number(code ?? body);
}

/** Bytes to an address, and what comes back. */
const say = (id, host, port, text) => python(server, id, `${CONNECT}
print(json.dumps(attempt('${host}', ${port}, sys.argv[1].encode('latin1'))))`, text);

/** Resolves a name first, so that its address is known to be that name's. */
const sayNamed = (id, name, port, text) => python(server, id, `${CONNECT}
address = socket.getaddrinfo('${name}', None, socket.AF_INET)[0][4][0]
print(json.dumps(attempt(address, ${port}, sys.argv[1].encode('latin1'))))`, text);

const resolves = async (id, name) => (await server.exec(id, ['getent', 'ahostsv4', name])).exitCode === 0;

const get = (host, path = '/', extra = '') => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${extra}\r\n`;

test('allow_reaches_its_names_and_nothing_else', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  assert.equal((await curl(id, 'https://pkg.test/')).address, PKG);
  assert.equal((await curl(id, 'https://pkg.test/')).sni, 'pkg.test');
  assert.equal((await curl(id, 'http://pkg.test/')).address, PKG);
  assert.equal((await curl(id, 'http://PKG.test./')).address, PKG, 'case and a dot at the end do not matter');
  await world.asked();
  assert.equal(await resolves(id, 'evil.test'), false);
  assert.equal(await resolves(id, 'secret.is.this.evil.test'), false);
  assert.equal((await server.exec(id, ['python3', '-c', 'import socket; socket.gethostbyaddr("5.5.5.12")'])).exitCode, 1);
  assert.deepEqual(await world.asked(), [], 'what is not allowed is not asked for');
  assert.equal(await curl(id, 'https://evil.test/'), 'curl 6');
  assert.equal(await curl(id, 'https://evil.test/', '--resolve', `evil.test:443:${EVIL}`), 'curl 35');
  assert.equal(await curl(id, 'http://evil.test/', '--resolve', `evil.test:80:${EVIL}`), 403);
  await remove(server, id);
});

test('an_address_is_no_way_around', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  assert.equal(await curl(id, `https://${EVIL}/`), 'curl 35', 'without a name');
  assert.equal(await curl(id, `https://${PKG}/`), 'curl 35', 'also where the name is');
  assert.equal(await curl(id, `http://${EVIL}/`), 403);
  assert.equal(await curl(id, `http://${PKG}/`), 403);
  assert.equal(await say(id, EVIL, 7, 'x\n'), 'ECONNRESET');
  assert.equal(await say(id, EVIL, 25, ''), 'ECONNRESET');
  assert.equal(await say(id, WEB6, 7, 'x\n'), 'ECONNRESET', 'by IPv6');
  assert.equal(await say(id, `::ffff:${EVIL}`, 7, 'x\n'), 'ECONNRESET', 'in its IPv6 form');
  assert.equal(await say(id, '1.1.1.1', 853, '\x01'), 'ECONNRESET', 'another resolver');
  await remove(server, id);
});

test('a_forged_name_leads_to_its_owner', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  const tls = await curl(id, 'https://pkg.test/', '--resolve', `pkg.test:443:${EVIL}`);
  assert.deepEqual([tls.address, tls.sni], [PKG, 'pkg.test']);
  const web = await curl(id, 'http://pkg.test/', '--resolve', `pkg.test:80:${EVIL}`);
  assert.equal(web.address, PKG);
  assert.equal((await curl(id, 'https://pkg.test/', '--resolve', `pkg.test:443:[${WEB6}]`)).address, PKG, 'from IPv6 to IPv4');
  assert.equal((await curl(id, 'https://pkg.test:8443/', '--resolve', `pkg.test:8443:${EVIL}`)).address, PKG, 'on any port');
  assert.equal((await curl(id, 'http://pkg.test:8080/', '--resolve', `pkg.test:8080:${EVIL}`)).address, PKG);
  await remove(server, id);
});

test('every_request_of_a_connection_is_for_the_same_host', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test', 'web.test'));
  const out = await python(server, id, `
import errno, json, socket
def talk(*parts):
    s = socket.create_connection(('pkg.test', 80))
    s.settimeout(10)
    got = []
    try:
        for part in parts:
            s.sendall(part.encode())
            got.append(s.recv(65536).decode().split('\\r\\n')[0])
    except OSError as e:
        got.append(errno.errorcode[e.errno])
    return got
one = 'GET / HTTP/1.1\\r\\nHost: pkg.test\\r\\n\\r\\n'
other = 'GET / HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n'
post = 'POST / HTTP/1.1\\r\\nHost: pkg.test\\r\\nContent-Length: %d\\r\\n\\r\\n%s' % (len(other), other)
chunks = 'POST / HTTP/1.1\\r\\nHost: pkg.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n0\\r\\n\\r\\n'
print(json.dumps([talk(one, one, one), talk(one, other), talk(one, post, one), talk(chunks, one), talk(chunks, other)]))`);
  const ok = 'HTTP/1.1 200 OK';
  assert.deepEqual(out, [[ok, ok, ok], [ok, 'ECONNRESET'], [ok, ok, ok], [ok, ok], [ok, 'ECONNRESET']]);
  await remove(server, id);
});

test('what_two_parsers_could_understand_differently_is_refused', { timeout: 120000 }, async () => {
  const id = await make(allow('pkg.test'));
  const requests = {
    'an absolute target': `GET http://evil.test/ HTTP/1.1\r\nHost: pkg.test\r\n\r\n`,
    CONNECT: 'CONNECT evil.test:443 HTTP/1.1\r\nHost: pkg.test\r\n\r\n',
    'two hosts': 'GET / HTTP/1.1\r\nHost: pkg.test\r\nHost: evil.test\r\n\r\n',
    'no host': 'GET / HTTP/1.1\r\nX: y\r\n\r\n',
    'a folded line': 'GET / HTTP/1.1\r\nHost: pkg.test\r\n evil.test\r\n\r\n',
    'bare line feeds': 'GET / HTTP/1.1\nHost: pkg.test\n\n',
    'a space before the colon': 'GET / HTTP/1.1\r\nHost : evil.test\r\nHost: pkg.test\r\n\r\n',
    'two lengths': 'POST / HTTP/1.1\r\nHost: pkg.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    'length and coding': 'POST / HTTP/1.1\r\nHost: pkg.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'another coding': 'POST / HTTP/1.1\r\nHost: pkg.test\r\nTransfer-Encoding: identity\r\n\r\n',
    'HTTP/2 by upgrade': get('pkg.test', '/', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'),
    'HTTP/2 at once': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'HTTP/0.9': 'GET /\r\n',
    'an empty line first': `\r\n${get('pkg.test')}`,
    'an unknown method': get('evil.test').replace('GET', 'FETCH'),
    'lower case': get('evil.test').replace('GET', 'get'),
    'a user in the host': get('pkg.test@evil.test'),
  };
  for (const [what, text] of Object.entries(requests)) {
    for (const port of [80, 8080]) assert.match(await sayNamed(id, 'pkg.test', port, text), /^HTTP\/1.1 403 /, `${what} on ${port}`);
  }
  assert.match(await sayNamed(id, 'pkg.test', 80, get('pkg.test:80')), /^HTTP\/1.1 200 /);
  assert.match(await sayNamed(id, 'pkg.test', 80, get('pkg.test').replace('GET', 'FETCH')), /^HTTP\/1.1 400 /, "a server's own answer");
  await remove(server, id);
});

test('wildcards_are_for_what_is_below', { timeout: 60000 }, async () => {
  const id = await make(allow('*.wild.test'));
  assert.equal((await curl(id, 'https://a.wild.test/')).address, PKG);
  assert.equal((await curl(id, 'https://b.a.WILD.test/')).address, PKG);
  for (const name of ['wild.test', 'evilwild.test', 'a.wild.test.evil.test', 'evil.test']) {
    assert.equal(await resolves(id, name), false, name);
    assert.equal(await curl(id, `https://${name}/`, '--resolve', `${name}:443:${EVIL}`), 'curl 35', name);
  }
  await remove(server, id);
});

test('ports_addresses_and_ranges', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test:443', '5.5.5.12:80', '5.5.5.10/31:7', '[2a00:5::/64]:80'));
  assert.equal((await curl(id, 'https://pkg.test/')).address, PKG);
  assert.equal(await curl(id, 'http://pkg.test/'), 403, 'another port');
  assert.equal((await curl(id, `http://${EVIL}/`)).address, EVIL);
  assert.equal((await curl(id, `http://[::ffff:${EVIL}]/`)).address, EVIL, 'the same address');
  assert.equal(await curl(id, `https://${EVIL}/`), 'curl 35');
  assert.equal(await say(id, WEB, 7, 'x'), 'x');
  assert.equal(await say(id, WEB, 27, ''), 'ECONNRESET');
  assert.equal((await curl(id, `http://[${WEB6}]/`)).address, WEB6);
  assert.equal(await say(id, WEB6, 7, 'x\n'), 'ECONNRESET');
  await change(id, allow('::/0'));
  assert.equal(await say(id, WEB6, 7, 'x'), 'x');
  assert.equal(await say(id, WEB, 7, 'x\n'), 'ECONNRESET', 'all of IPv6 is nothing of IPv4');
  await change(id, allow('0.0.0.0/0'));
  assert.equal((await curl(id, 'https://evil.test/')).address, EVIL, 'who may reach everything may ask for it');
  for (const host of ['10.9.0.1', '169.254.169.254', '127.0.0.1', '5.5.5.1']) assert.match(await say(id, host, 80, get('x')), /^E/, host);
  await remove(server, id);
});

test('other_protocols_go_to_addresses_that_were_told_for_an_allowed_name', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  assert.equal(await say(id, PKG, 7, 'x\n'), 'ECONNRESET', 'nobody asked for it');
  assert.equal(await sayNamed(id, 'pkg.test', 7, 'x\n'), 'x\n');
  assert.equal(await sayNamed(id, 'pkg.test', 25, ''), '220 first\r\n', 'a server that speaks first');
  assert.equal(await sayNamed(id, 'pkg.test', 27, ''), 'whole\n');
  assert.equal(await say(id, PKG, 7, '\x01\x02'), '\x01\x02', 'it is remembered');
  assert.equal(await say(id, PKG, 7, '{"x": 1}'), '{"x": 1}', 'without the end of a line');
  assert.equal(await say(id, PKG, 7, 'x'), 'x');
  assert.equal(await say(id, EVIL, 7, 'x\n'), 'ECONNRESET');
  const other = await make(allow('pkg.test'));
  assert.equal(await say(other, PKG, 7, 'x\n'), 'ECONNRESET', 'for this sandbox only');
  await change(id, allow('web.test'));
  assert.equal(await say(id, PKG, 7, 'x\n'), 'ECONNRESET', 'and only while the name is allowed');
  await remove(server, id);
  await remove(server, other);
});

test('late_first_bytes_are_looked_at_too', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  const out = await python(server, id, `
import errno, json, socket, time
address = socket.getaddrinfo('pkg.test', None, socket.AF_INET)[0][4][0]
def late(port, text):
    s = socket.create_connection((address, port))
    s.settimeout(10)
    time.sleep(0.8)
    try:
        if port == 25: s.recv(100)
        s.sendall(text.encode())
        return s.recv(65536).decode().split('\\r\\n')[0] if port != 25 else 'sent' if s.recv(1) == b'' else 'data'
    except socket.timeout: return 'TIMEOUT'
    except OSError as e: return errno.errorcode[e.errno]
print(json.dumps([late(8080, 'GET / HTTP/1.1\\r\\nHost: pkg.test\\r\\n\\r\\n'), late(8080, 'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'), late(7, 'hello\\n'), late(25, 'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')]))`);
  assert.deepEqual(out, ['HTTP/1.1 200 OK', 'HTTP/1.1 403 Forbidden', 'hello\n', 'ECONNRESET']);
  await remove(server, id);
});

test('rebinding_reaches_nothing', { timeout: 60000 }, async () => {
  const id = await make(allow('flip.test', 'private.test', 'sneaky.test', 'mixed.test', 'metadata.google.internal'));
  const seen = new Set();
  for (let i = 0; i < 6; i++) {
    const got = await curl(id, 'http://flip.test/');
    seen.add(got.address ?? got);
  }
  for (const what of seen) assert.ok([WEB, 'curl 6', 'curl 52', 'curl 56'].includes(what), String(what));
  assert.ok(seen.has(WEB));
  for (const name of ['private.test', 'sneaky.test', 'metadata.google.internal']) {
    assert.equal(await resolves(id, name), false, name);
    for (const address of ['10.9.0.1', '127.0.0.1', '169.254.169.254']) {
      const got = await curl(id, `http://${name}/`, '--resolve', `${name}:80:${address}`);
      assert.match(String(got), /^curl (7|52|56)$/, `${name} at ${address}`);
    }
  }
  assert.equal((await curl(id, 'http://mixed.test/')).address, WEB, 'of a mixed answer the public one');
  await remove(server, id);
});

test('deny_passes_what_no_list_names', { timeout: 60000 }, async () => {
  const id = await make({ mode: 'deny', allow: ['a.wild.test', '5.5.5.12:80'], deny: ['*.wild.test', 'evil.test', 'pkg.test:80', '5.5.5.12/32', '2a00:5::/64'] });
  assert.equal((await curl(id, 'http://web.test/', '-4')).address, WEB);
  assert.equal((await curl(id, 'https://pkg.test/')).address, PKG);
  assert.equal(await say(id, WEB, 7, 'x\n'), 'x\n');
  assert.equal(await curl(id, 'http://pkg.test/'), 403, 'a name with its port');
  assert.equal(await curl(id, 'https://evil.test/'), 'curl 6');
  assert.equal(await curl(id, 'https://b.a.wild.test/', '--resolve', `b.a.wild.test:443:${PKG}`), 'curl 35');
  assert.equal((await curl(id, 'https://a.wild.test/')).address, PKG, 'allow wins');
  assert.equal(await say(id, EVIL, 7, 'x\n'), 'ECONNRESET', 'an address');
  assert.equal(await say(id, `::ffff:${EVIL}`, 7, 'x\n'), 'ECONNRESET');
  assert.equal(await say(id, WEB6, 7, 'x\n'), 'ECONNRESET');
  assert.equal((await curl(id, `http://${EVIL}/`)).address, EVIL, 'allow wins');
  for (const host of ['10.9.0.1', '169.254.169.254']) assert.match(await say(id, host, 80, get('x')), /^E/, host);
  await remove(server, id);
});

/** A connection that carries a byte ten times a second, and writes down how it ended. */
const HOLDER = `
import errno, socket, sys, time
s = socket.create_connection((sys.argv[1], 7))
s.settimeout(10)
n, file = 0, '/tmp/held-' + sys.argv[1]
try:
    while True:
        s.sendall(b'x\\n')
        if not s.recv(2): break
        n += 1
        open(file, 'w').write('open %d' % n)
        time.sleep(0.1)
    open(file, 'w').write('EOF')
except OSError as e:
    open(file, 'w').write(errno.errorcode.get(e.errno, str(e)))
`;

const held = async (id, host) => (await server.exec(id, `cat /tmp/held-${host}`)).stdout;

async function hold(id, host) {
  assert.equal((await server.request('POST', `/v1/sandboxes/${id}/processes`, { command: ['python3', '-c', HOLDER, host] })).status, 201);
  await until(`the connection to ${host} is open`, async () => (await held(id, host)).startsWith('open'));
}

async function goesOn(id, host) {
  const count = async () => Number((await held(id, host)).split(' ')[1]);
  const first = await count();
  await until(`the connection to ${host} carries more`, async () => (await count()) > first);
}

test('a_change_ends_what_it_no_longer_allows_and_leaves_the_rest', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test', 'web.test', EVIL));
  for (const host of ['pkg.test', 'web.test', EVIL]) await hold(id, host);
  await change(id, allow('web.test', EVIL));
  await until('what is no longer allowed has ended', async () => (await held(id, 'pkg.test')) === 'ECONNRESET');
  assert.equal(await curl(id, 'http://pkg.test/', '--resolve', `pkg.test:80:${PKG}`), 403);
  await goesOn(id, 'web.test');
  await goesOn(id, EVIL);
  await change(id, { mode: 'deny', deny: [EVIL] });
  await until('what is denied has ended', async () => (await held(id, EVIL)) === 'ECONNRESET');
  await goesOn(id, 'web.test');
  await change(id, { mode: 'open' });
  await goesOn(id, 'web.test');
  await change(id, allow('pkg.test'));
  await until('all of it has ended', async () => (await held(id, 'web.test')) === 'ECONNRESET');
  await hold(id, 'pkg.test');
  await change(id, { mode: 'deny', deny: ['pkg.test'] });
  await until('a denied name has ended', async () => (await held(id, 'pkg.test')) === 'ECONNRESET');
  await remove(server, id);
});

test('a_web_socket_and_large_bodies_pass_where_requests_are_read', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  const out = await python(server, id, `
import errno, json, socket
head = 'GET %s HTTP/1.1\\r\\nHost: pkg.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n'
def upgrade(path, then):
    s = socket.create_connection(('pkg.test', 80))
    s.settimeout(10)
    got = []
    try:
        s.sendall((head % path).encode())
        got.append(s.recv(4096).decode().split('\\r\\n')[0])
        s.sendall(then)
        got.append(s.recv(4096).decode('latin1'))
    except OSError as e:
        got.append(errno.errorcode[e.errno])
    return got
print(json.dumps([upgrade('/', b'\\x81\\x02hi'), upgrade('/refuse', b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')]))`);
  assert.deepEqual(out, [['HTTP/1.1 101 Switching Protocols', '\x81\x02hi'], ['HTTP/1.1 200 OK', 'ECONNRESET']]);
  const done = await server.exec(id, "head -c 20000000 /dev/zero > /tmp/big; curl -sS -m 30 -T /tmp/big http://pkg.test/put; curl -sS -m 30 -H 'Transfer-Encoding: chunked' -T /tmp/big http://pkg.test/put; curl -sS -m 30 http://pkg.test/big20000000 | wc -c; curl -ksS -m 30 -T /tmp/big https://pkg.test/put");
  const [length, chunked, down, tls] = done.stdout.trim().split('\n');
  assert.deepEqual([JSON.parse(length).size, JSON.parse(chunked).size, Number(down), JSON.parse(tls).size], [20000000, 20000000, 20000000, 20000000], done.stderr);
  await remove(server, id);
});

test('presets_are_lists_with_a_name', { timeout: 60000 }, async () => {
  const id = await make(allow('preset:npm', 'preset:pypi', 'preset:debian', 'preset:github', 'preset:go', 'preset:crates'));
  assert.equal((await curl(id, 'https://registry.npmjs.org/')).address, PKG);
  assert.equal(await resolves(id, 'evil.test'), false);
  await world.asked();
  for (const name of ['pypi.org', 'deb.debian.org', 'github.com', 'raw.githubusercontent.com', 'proxy.golang.org', 'index.crates.io']) await resolves(id, name);
  const asked = new Set((await world.asked()).map((q) => q.name));
  for (const name of ['pypi.org', 'deb.debian.org', 'github.com', 'raw.githubusercontent.com', 'proxy.golang.org', 'index.crates.io']) assert.ok(asked.has(name), name);
  await remove(server, id);
});

test('private_networks_open_only_to_lists_that_name_them', { timeout: 60000 }, async () => {
  const id = await make(allow('10.9.0.0/24:80', 'private.test'));
  assert.equal((await curl(id, 'http://10.9.0.1/')).address, '10.9.0.1');
  assert.equal((await curl(id, 'http://private.test/', '-4')).address, '10.9.0.1', 'by name, too');
  assert.match(await say(id, '10.9.0.1', 7, 'x\n'), /^E/);
  for (const list of [['0.0.0.0/0'], ['10.0.0.0/7'], ['private.test']]) {
    await change(id, allow(...list));
    assert.notEqual(typeof (await curl(id, 'http://10.9.0.1/')), 'object', `${list} is not it`);
    assert.notEqual(typeof (await curl(id, 'http://private.test/', '--resolve', 'private.test:80:10.9.0.1')), 'object', `${list} is not it`);
  }
  await change(id, { mode: 'open' });
  assert.equal(typeof (await curl(id, 'http://10.9.0.1/')), 'string', 'open is the public internet');
  await remove(server, id);
});

test('bad_rules_are_refused_and_nothing_changes', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  const path = `/v1/sandboxes/${id}/network`;
  const bad = ['', '*', '*.', 'a b', 'http://x.test', 'x.test/path', 'x.test:', 'x.test:0', 'x.test:70000', 'x..test', '.x.test', '*x.test', 'x.*.test', '1.2.3', '0x7f.1', '127.1', '300.1.1.1', '1.2.3.4/33',
    '1.2.3.4/8', '[1.2.3.4]:80', '[::1', '2001:db8::1]:80', 'bücher.test', `${'a'.repeat(64)}.test`, `${'a.'.repeat(130)}test`, 'preset:', 'preset:nothing', 'user@x.test',
    '127.0.0.1', '169.254.169.254', '::1', 'fe80::/10', '224.0.0.1', '::ffff:127.0.0.1', '10.0.0.0/8', '192.168.1.1', 'fd00::/8', '100.64.0.0/10', '::ffff:192.168.0.0/112', '64:ff9b::10.1.1.1'];
  for (const entry of bad) {
    const field = entry === '' ? 'allow' : 'network.allow';
    assertRefused(await server.request('PUT', path, { mode: 'allow', allow: ['fine.test', entry] }), 400, 'invalid_field', field);
    assertRefused(await server.request('POST', '/v1/sandboxes', { network: { mode: 'allow', allow: [entry] } }), 400, 'invalid_field', 'network.allow');
  }
  const refuse = async (network, code, field) => assertRefused(await server.request('POST', '/v1/sandboxes', { network }), 400, code, field);
  await refuse({ mode: 'open', allow: ['x.test'] }, 'invalid_field', 'network.allow');
  await refuse({ mode: 'none', deny: ['x.test'] }, 'invalid_field', 'network.deny');
  await refuse({ mode: 'allow', deny: ['x.test'] }, 'invalid_field', 'network.deny');
  await refuse({ mode: 'deny', deny: ['preset:npm'] }, 'invalid_field', 'network.deny');
  await refuse({ deny: ['x.test'] }, 'missing_field', 'network.mode');
  await refuse({ mode: 'allow', allow: 'x.test' }, 'invalid_field', 'network.allow');
  await refuse({ mode: 'allow', allow: [7] }, 'invalid_field', 'network.allow');
  await refuse({ mode: 'allow', allow: Array.from({ length: 1001 }, (_, i) => `n${i}.test`) }, 'invalid_field', 'network.allow');
  assert.deepEqual((await server.request('GET', path)).json, allow('pkg.test'));
  assert.equal((await curl(id, 'https://pkg.test/')).address, PKG);
  const long = allow(...Array.from({ length: 999 }, (_, i) => `${`n${i}-${'x'.repeat(50)}.`.repeat(4)}test`), 'web.test');
  await change(id, long);
  assert.deepEqual((await server.request('GET', path)).json, long);
  assert.equal((await curl(id, 'https://web.test/', '-4')).address, WEB, 'the last of a thousand long ones');
  assert.equal(await curl(id, 'https://pkg.test/'), 'curl 6');
  await remove(server, id);
});

test('lists_survive_what_dies_and_go_with_forks', { timeout: 120000 }, async () => {
  const id = await make(allow('pkg.test', '*.wild.test:443'));
  const check = async (box, why) => {
    await until(`${why}: it reaches what it may`, async () => (await curl(box, 'https://pkg.test/')).address === PKG);
    assert.equal(await curl(box, 'https://evil.test/', '--resolve', `evil.test:443:${EVIL}`), 'curl 35', why);
  };
  const [fork] = (await server.request('POST', `/v1/sandboxes/${id}/fork`, { count: 1 })).json.sandboxes;
  assert.deepEqual(fork.network, allow('pkg.test', '*.wild.test:443'));
  await check(fork.id, 'a fork');
  process.kill(processesOf(server, 'bunker-egress')[0], 'SIGKILL');
  await check(id, 'egress killed');
  await server.crash();
  await server.launch();
  await check(id, 'the server killed');
  assert.deepEqual((await server.request('GET', `/v1/sandboxes/${id}/network`)).json, allow('pkg.test', '*.wild.test:443'));
  assert.equal((await server.request('POST', `/v1/sandboxes/${id}/pause`, { memory: false })).status, 200);
  assert.equal((await server.request('POST', `/v1/sandboxes/${id}/resume`)).status, 200);
  await check(id, 'stopped and resumed');
  await remove(server, fork.id);
  await remove(server, id);
});

test('the_command_line_takes_lists', { timeout: 60000 }, async () => {
  const made = server.cli(['create', '--allow', 'pkg.test,preset:npm', '--allow', 'web.test:443']);
  assert.equal(made.status, 0, made.stderr);
  const id = made.stdout.trim();
  assert.deepEqual((await server.request('GET', `/v1/sandboxes/${id}/network`)).json, allow('pkg.test', 'preset:npm', 'web.test:443'));
  const info = server.cli(['info', id]).stdout;
  assert.match(info, /^network +allow$/m);
  assert.match(info, /^allow +pkg\.test, preset:npm, web\.test:443$/m);
  assert.equal(server.cli(['run', '--network', 'deny', '--deny', 'evil.test', '-c', 'curl -ksS https://pkg.test/']).status, 0);
  const bad = server.cli(['create', '--allow', 'no name']);
  assert.notEqual(bad.status, 0);
  assert.match(bad.stderr, /network\.allow/);
  await remove(server, id);
});

test('truncated_and_slow_beginnings_do_not_stay', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  const out = await python(server, id, `
import errno, json, socket, ssl, time
def end(s):
    s.settimeout(20)
    try:
        got = s.recv(4096)
        return got.decode('latin1').split('\\r\\n')[0] if got else 'EOF'
    except socket.timeout: return 'TIMEOUT'
    except OSError as e: return errno.errorcode[e.errno]
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname='pkg.test')
try: tls.do_handshake()
except ssl.SSLWantReadError: pass
hello = outgoing.read()
body = hello[5:]
split = b''.join(hello[:3] + len(body[i:i + 7]).to_bytes(2, 'big') + body[i:i + 7] for i in range(0, len(body), 7))
def tell(data, address='${EVIL}'):
    s = socket.create_connection((address, 443))
    s.sendall(data)
    return s
began = time.monotonic()
waiting = [tell(hello[:60]), tell(b'GET / HTTP'), socket.create_connection(('${EVIL}', 443))]
at_once = [end(tell(hello[:3] + b'\\xff\\xff' + hello[5:])), end(tell(b'\\x16\\x03\\x01\\x40\\x00\\x01\\xff\\xff\\xff' + b'x' * 16380)), end(tell(split))[:1]]
quick = time.monotonic() - began < 8
print(json.dumps([at_once, quick, [end(s) for s in waiting]]))`);
  assert.deepEqual(out, [['ECONNRESET', 'ECONNRESET', '\x16'], true, ['ECONNRESET', 'ECONNRESET', 'ECONNRESET']]);
  await remove(server, id);
});

const denials = async (id) =>
  (await server.request('GET', `/v1/sandboxes/${id}/events?limit=100`)).json.events.filter((e) => e.type === 'denied').map((e) => (assert.equal(e.cause, 'policy'), e.details));

test('what_was_refused_is_an_event_once_a_minute', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  assert.equal((await curl(id, 'https://pkg.test/')).address, PKG);
  for (let i = 0; i < 3; i++) await curl(id, 'https://evil.test/', '--resolve', `evil.test:443:${EVIL}`);
  await curl(id, 'http://evil.test/', '--resolve', `evil.test:80:${EVIL}`);
  await say(id, EVIL, 7, '\x01');
  await resolves(id, 'leak.evil.test');
  const wanted = [{ host: 'evil.test', address: EVIL, port: '443' }, { host: 'evil.test', address: EVIL, port: '80' }, { address: EVIL, port: '7' }, { host: 'leak.evil.test' }];
  await until('they are told', async () => (await denials(id)).length >= wanted.length);
  assert.deepEqual(await denials(id), wanted);
  await python(server, id, `
import json, socket
for port in range(1000, 1100):
    s = socket.create_connection(('${EVIL}', port))
    s.sendall(b'\\x01')
    try: s.recv(1)
    except OSError: pass
print('0')`);
  assert.ok((await denials(id)).length <= 60, 'a scan is no flood');
  const other = await make({ mode: 'open' });
  assert.match(await say(other, '10.9.0.1', 80, get('x')), /^E/);
  await until('a closed address is told, too', async () => (await denials(other)).length === 1);
  assert.deepEqual(await denials(other), [{ address: '10.9.0.1', port: '80' }]);
  await remove(server, other);
  await remove(server, id);
});

test('bytes_are_counted_in_both_directions_over_all_boots', { timeout: 60000 }, async () => {
  const id = await make(allow('pkg.test'));
  const usage = async () => (await server.request('GET', `/v1/sandboxes/${id}/usage`)).json;
  assert.deepEqual([(await usage()).networkBytesIn, (await usage()).networkBytesOut], [0, 0]);
  assert.equal((await server.exec(id, 'curl -sS -m 30 http://pkg.test/big3000000 | wc -c; head -c 2000000 /dev/zero | curl -sS -m 30 -T - http://pkg.test/put')).exitCode, 0);
  await until('they are told', async () => (await usage()).networkBytesIn >= 3000000 && (await usage()).networkBytesOut >= 2000000);
  const first = await usage();
  assert.ok(first.networkBytesIn < 3100000 && first.networkBytesOut < 2100000, JSON.stringify(first));
  assert.equal((await server.request('POST', `/v1/sandboxes/${id}/pause`, { memory: false })).status, 200);
  assert.equal((await server.request('POST', `/v1/sandboxes/${id}/resume`)).status, 200);
  await server.crash();
  await server.launch();
  assert.deepEqual([(await usage()).networkBytesIn, (await usage()).networkBytesOut], [first.networkBytesIn, first.networkBytesOut]);
  assert.equal((await server.exec(id, 'curl -sS -m 30 http://pkg.test/big1000000 | wc -c')).stdout.trim(), '1000000');
  await until('it goes on from there', async () => (await usage()).networkBytesIn >= first.networkBytesIn + 1000000);
  await remove(server, id);
});

test('allow_and_deny_change_single_rules', { timeout: 60000 }, async () => {
  const { id } = await server.create();
  const cli = (...args) => server.cli([...args, '--json']);
  const told = (...args) => JSON.parse(cli(...args).stdout);
  assert.deepEqual(told('allow', id, 'pkg.test', 'preset:npm'), allow('pkg.test', 'preset:npm'));
  assert.equal((await curl(id, 'https://pkg.test/')).address, PKG);
  assert.deepEqual(told('allow', id, 'pkg.test'), allow('preset:npm', 'pkg.test'), 'once');
  assert.deepEqual(told('deny', id, 'pkg.test'), allow('preset:npm'));
  assert.equal(await curl(id, 'https://pkg.test/'), 'curl 6');
  const covered = cli('deny', id, 'registry.npmjs.org');
  assert.notEqual(covered.status, 0, 'the preset still allows it');
  assert.match(covered.stderr, /'registry\.npmjs\.org' is no entry of the sandbox's allow list/);
  await change(id, { mode: 'open' });
  assert.deepEqual(told('allow', id, 'pkg.test'), { mode: 'open' }, 'it reaches that anyway');
  assert.deepEqual(told('deny', id, 'evil.test', EVIL), { mode: 'deny', deny: ['evil.test', EVIL] });
  assert.equal(await say(id, EVIL, 7, '\x01'), 'ECONNRESET');
  assert.deepEqual(told('allow', id, 'evil.test'), { mode: 'deny', allow: ['evil.test'], deny: [EVIL] });
  assert.equal((await curl(id, 'https://evil.test/')).address, EVIL);
  const bad = cli('allow', id, 'no name');
  assert.notEqual(bad.status, 0);
  assert.deepEqual((await server.request('GET', `/v1/sandboxes/${id}/network`)).json, { mode: 'deny', allow: ['evil.test'], deny: [EVIL] });
  await remove(server, id);
});
