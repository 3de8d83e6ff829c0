// Modes none and open: what a sandbox reaches, and what it never reaches.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { assertRefused, finish, remove } from '../system/support.mjs';
import { until } from '../lib/server.mjs';
import { CONNECT, HOST, HOST6, WEB, WEB6, World, enterNamespace, processesOf, python } from './world.mjs';

enterNamespace(import.meta.url);

let world, server, own;

before(async () => {
  world = await World.make();
  own = http.createServer((req, res) => res.end('the host\n')); // what must not be reached
  await new Promise((resolve) => own.listen(8099, '::', resolve));
  server = await world.start({ args: ['--public-networks', '203.0.113.0/24,2001:db8::/32'] });
});

after(async () => {
  own.close();
  own.closeAllConnections();
  try {
    await finish(server);
  } finally {
    world.end();
  }
});

const get = (host, path = '/') => `curl -sS -m 10 http://${host}${path}`;

test('none_has_no_route_and_no_names', { timeout: 30000 }, async () => {
  const box = await server.create();
  assert.deepEqual(box.network, { mode: 'none' });
  const out = await python(server, box.id, `${CONNECT}
print(json.dumps([attempt('${WEB}', 80), attempt('${WEB6}', 80), attempt('192.0.2.53', 53)]))`);
  assert.deepEqual(out, ['ENETUNREACH', 'ENETUNREACH', 'ENETUNREACH']);
  assert.notEqual((await server.exec(box.id, 'getent hosts web.test')).exitCode, 0);
  assert.deepEqual((await world.asked()).filter((q) => q.name === 'web.test'), []);
  await remove(server, box.id);
});

test('open_reaches_the_internet_by_name_and_by_address', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  assert.deepEqual(box.network, { mode: 'open' });
  assert.deepEqual((await server.request('GET', `/v1/sandboxes/${box.id}/network`)).json, { mode: 'open' });
  assert.equal((await server.exec(box.id, 'cat /etc/resolv.conf')).stdout, 'nameserver 192.0.2.53\n');
  const seen = JSON.parse((await server.exec(box.id, get('web.test', '/x'))).stdout);
  assert.equal(seen.host, 'web.test');
  assert.ok([WEB, WEB6].includes(seen.address), seen.address);
  assert.ok([HOST, HOST6].includes(seen.from), `it comes from the host, not from ${seen.from}`);
  for (const [host, address] of [[WEB, WEB], [`[${WEB6}]`, WEB6], ['alias.test:8080', WEB], ['203.0.113.77', '203.0.113.77'], ['[2001:db8::7]', '2001:db8::7']]) {
    const done = await server.exec(box.id, get(host));
    assert.equal(done.exitCode, 0, `${host}: ${done.stderr}`);
    assert.equal(JSON.parse(done.stdout).address, address);
  }
  await remove(server, box.id);
});

test('a_connection_carries_everything_both_ways_and_ends_as_it_does', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  const out = await python(server, box.id, `${CONNECT}
import hashlib, os, threading
data = os.urandom(20_000_000)
s = socket.create_connection(('${WEB}', 7))
def write():
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=write).start()
h, n = hashlib.sha256(), 0
while part := s.recv(1 << 20):
    h.update(part)
    n += len(part)
echoed = h.digest() == hashlib.sha256(data).digest()
print(json.dumps([echoed, n, attempt('${WEB}', 25), attempt('${WEB}', 26), attempt('${WEB}', 27), attempt('${WEB}', 9)]))`);
  // A server that resets, and a port where nobody listens: never the end of the data.
  assert.deepEqual(out, [true, 20000000, '220 first\r\n', 'ECONNRESET', 'whole\n', 'ECONNRESET']);
  const size = 50_000_000;
  assert.equal((await server.exec(box.id, `${get(WEB, `/big${size}`)} | wc -c`)).stdout.trim(), String(size));
  await remove(server, box.id);
});

test('the_host_and_everything_private_are_never_reached', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  const reachable = [`http://${HOST}:8099/`, `http://[${HOST6}]:8099/`, 'http://127.0.0.1:8099/', 'http://10.9.0.1/', 'http://169.254.169.254/', 'http://168.63.129.16/', 'http://100.64.0.9/', 'http://192.168.9.1/', 'http://172.16.9.1/', 'http://198.51.100.7/', 'http://[fd12::1]/', 'http://[fd00:ec2::254]/'];
  for (const url of reachable) assert.equal((await fetch(url)).status, 200, `${url} is there, for the host`);
  const targets = [[HOST, 8099], [HOST6, 8099], ['127.0.0.1', 8099], ['::1', 8099], ['0.0.0.0', 8099], ['::ffff:127.0.0.1', 8099], [`::ffff:${HOST}`, 8099], ['64:ff9b::7f00:1', 8099], ['64:ff9b::a09:1', 80], ['2002:a09:1::1', 80],
    ['10.9.0.1', 80], ['::ffff:10.9.0.1', 80], ['169.254.169.254', 80], ['::ffff:169.254.169.254', 80], ['168.63.129.16', 80], ['100.64.0.9', 80], ['192.168.9.1', 80], ['172.16.9.1', 80], ['198.51.100.7', 80], ['fd12::1', 80], ['fd00:ec2::254', 80], ['fe80::1', 80], ['10.0.2.15', 8099], ['224.0.0.1', 80], ['255.255.255.255', 80], ['192.0.2.53', 80]];
  const out = await python(server, box.id, `${CONNECT}
print(json.dumps([attempt(h, p, b'GET / HTTP/1.0\\r\\n\\r\\n') for h, p in json.loads(sys.argv[1])]))`, JSON.stringify(targets));
  for (const [i, what] of out.entries()) assert.match(what, /^E[A-Z]+$/, `${targets[i]} answered ${what}`);
  for (const [i, what] of out.entries()) assert.notEqual(what, 'EOF', `${targets[i]} looks as if it had ended in order`);
  for (const form of ['2130706433:8099', '0177.0.0.1:8099', '0x0a090001', 'localhost:8099', 'metadata.google.internal', 'private.test', 'sneaky.test'])
    assert.notEqual((await server.exec(box.id, get(form))).exitCode, 0, form);
  // The same program reaches what it may: the test would notice if it reached nothing at all.
  assert.equal((await server.exec(box.id, get(WEB))).exitCode, 0);
  await remove(server, box.id);
});

const ASK = `
import json, socket, struct, sys
def ask(name, kind, server='192.0.2.53', tcp=False, cls=1):
    q = struct.pack('>6H', 0x1234, 0x0100, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + struct.pack('>BHH', 0, kind, cls)
    s = socket.socket(socket.AF_INET6 if ':' in server else socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(10)
    s.connect((server, 53))
    s.sendall((struct.pack('>H', len(q)) if tcp else b'') + q)
    if tcp:
        need = struct.unpack('>H', s.recv(2))[0]
        a = b''
        while len(a) < need: a += s.recv(need - len(a))
    else:
        a = s.recv(4096)
    ident, flags, _, answers = struct.unpack('>4H', a[:8])
    assert ident == 0x1234
    return {'code': flags & 15, 'answers': answers, 'truncated': bool(flags & 0x200), 'length': len(a), 'tail': a[-4:].hex()}
`;

test('names_are_answered_wherever_they_are_asked_without_private_addresses', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  await world.asked();
  const out = await python(server, box.id, `${ASK}
print(json.dumps([ask('web.test', 1), ask('web.test', 1, '8.8.8.8'), ask('web.test', 28, '2606:4700::1111'), ask('WeB.tEsT', 1, tcp=True),
  ask('private.test', 1), ask('private.test', 28), ask('mixed.test', 1), ask('sneaky.test', 1), ask('nothing.test', 1), ask('web.test', 65), ask('web.test', 255), ask('short.test', 16), ask('long.test', 16), ask('long.test', 16, tcp=True), ask('six.test', 28), ask('web.test', 1, cls=3)]))`);
  const [plain, elsewhere, six, stream, none, none6, mixed, sneaky, missing, https, any, text, cut, whole, unrouted, chaos] = out;
  for (const told of [plain, elsewhere, stream, mixed]) assert.deepEqual([told.code, told.answers, told.tail], [0, 1, '0505050a']);
  assert.deepEqual([six.code, six.answers, six.tail], [0, 1, '00000010']);
  for (const told of [none, none6, https]) assert.deepEqual([told.code, told.answers], [0, 0]);
  assert.deepEqual([sneaky.code, sneaky.answers], [0, 1], 'the alias, without an address');
  assert.equal(missing.code, 3);
  assert.equal(any.code, 4);
  assert.deepEqual([text.code, text.answers], [0, 1]);
  assert.deepEqual([cut.truncated, cut.answers], [true, 0]);
  assert.ok(cut.length <= 512);
  assert.deepEqual([whole.truncated, whole.answers], [false, 1]);
  assert.ok(whole.length > 3000);
  assert.deepEqual([unrouted.code, unrouted.answers], [0, 0], 'an address without a route is not told');
  assert.equal(chaos.code, 1);
  const asked = await world.asked();
  assert.ok(asked.some((q) => q.name === 'long.test' && q.byTcp), 'what does not fit is asked by TCP');
  assert.ok(!asked.some((q) => q.type === 65 || q.type === 255), 'some questions are not passed on');
  await remove(server, box.id);
});

test('udp_is_for_names_only_and_is_refused_at_once', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  const out = await python(server, box.id, `
import errno, json, socket, time
def send(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    s.connect(('${WEB}', port))
    began = time.monotonic()
    try:
        s.send(b'x')
        s.recv(10)
        return 'answered'
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e)) if time.monotonic() - began < 1 else 'late'
def make(*kind):
    try:
        socket.socket(*kind).close()
        return 'made'
    except OSError as e:
        return errno.errorcode[e.errno]
print(json.dumps([send(123), send(443), make(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), make(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), make(socket.AF_PACKET, socket.SOCK_RAW, 3)]))`);
  assert.deepEqual(out.slice(0, 2), ['ECONNREFUSED', 'ECONNREFUSED']);
  for (const what of out.slice(2)) assert.match(what, /^E/);
  await remove(server, box.id);
});

test('what_listens_inside_is_not_disturbed', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  const out = await python(server, box.id, `${CONNECT}
import threading
outside = socket.create_connection(('${WEB}', 8080))
l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(('0.0.0.0', 8080))
l.listen()
def serve():
    while True:
        c, _ = l.accept()
        c.sendall(b'inside')
        c.close()
threading.Thread(target=serve, daemon=True).start()
print(json.dumps([attempt('127.0.0.1', 8080), attempt('10.0.2.15', 8080), attempt('${WEB}', 8080, b'GET / HTTP/1.0\\r\\n\\r\\n')[:15], attempt('127.0.0.1', 53)]))`);
  assert.deepEqual(out, ['inside', 'inside', 'HTTP/1.1 200 OK', 'ECONNREFUSED']);
  await remove(server, box.id);
});

test('sandboxes_do_not_reach_each_other', { timeout: 30000 }, async () => {
  const [one, other] = [await server.create({ network: { mode: 'open' } }), await server.create({ network: { mode: 'open' } })];
  const job = await server.request('POST', `/v1/sandboxes/${other.id}/processes`, { command: ['python3', '-m', 'http.server', '8000'] });
  assert.equal(job.status, 201, job.text);
  await until('it listens', async () => (await server.exec(other.id, get('127.0.0.1:8000'))).exitCode === 0);
  assert.equal((await server.exec(other.id, get('10.0.2.15:8000'))).exitCode, 0);
  for (const host of ['10.0.2.15:8000', '[fd00::15]:8000', '127.0.0.1:8000']) assert.notEqual((await server.exec(one.id, get(host))).exitCode, 0, host);
  await remove(server, one.id);
  await remove(server, other.id);
});

/** A connection to the echo server that says when it ends, and how. */
const HELD = `
import errno, socket
s = socket.create_connection(('${WEB}', 7))
s.sendall(b'x')
s.recv(1)
print('open', flush=True)
try:
    print('EOF' if not s.recv(1) else 'data')
except OSError as e:
    print(errno.errorcode[e.errno])
`;

async function hold(id) {
  const stream = await server.stream(`/v1/sandboxes/${id}/exec`, { command: ['python3', '-c', HELD] });
  let text = '';
  let opened;
  const isOpen = new Promise((resolve) => (opened = resolve));
  const ended = (async () => {
    for await (const event of stream.events) {
      if (event.type === 'stdout') text += event.data;
      if (text.startsWith('open\n')) opened();
    }
    return text.slice(5).trim();
  })();
  await Promise.race([isOpen, ended]);
  return { ended };
}

test('a_change_is_in_force_when_it_is_answered_also_for_open_connections', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  const path = `/v1/sandboxes/${box.id}/network`;
  const { ended } = await hold(box.id);
  const none = await server.request('PUT', path, { mode: 'none' });
  assert.deepEqual([none.status, none.json], [200, { mode: 'none' }]);
  const out = await python(server, box.id, `${CONNECT}
print(json.dumps(attempt('${WEB}', 25)))`);
  assert.equal(out, 'ENETUNREACH');
  assert.equal(await ended, 'ECONNRESET');
  assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.network.mode, 'none');
  assert.equal((await server.request('PUT', path, { mode: 'open' })).status, 200);
  assert.equal((await server.exec(box.id, get('web.test'))).exitCode, 0);
  assert.equal((await server.request('PUT', path, { mode: 'open' })).status, 200, 'twice is fine');
  assert.equal((await server.exec(box.id, get('web.test'))).exitCode, 0);
  await remove(server, box.id);
});

test('the_doctor_tries_it', { timeout: 60000 }, () => {
  const done = server.cli(['doctor', '--json', '--data', server.data]);
  const checks = Object.fromEntries(JSON.parse(done.stdout).checks.map((c) => [c.name, c]));
  assert.deepEqual([checks.egress.ok, checks.egress.required], [true, false], done.stdout);
  assert.match(checks.egress.detail, /sk_lookup/);
  assert.deepEqual([checks['address guard'].ok, checks['address guard'].required], [true, false], done.stdout);
  assert.ok('resolver' in checks);
});

test('what_is_wrong_is_refused', { timeout: 30000 }, async () => {
  const box = await server.create();
  const path = `/v1/sandboxes/${box.id}/network`;
  assertRefused(await server.request('POST', '/v1/sandboxes', { network: { mode: 'ajar' } }), 400, 'invalid_field', 'network.mode');
  for (const rules of ['x', [7], [{ host: 'x' }], [{ host: 'a b', headers: { x: 'y' } }]])
    assert.equal((await server.request('PUT', path, { mode: 'open', rules })).status, 400, JSON.stringify(rules));
  assertRefused(await server.request('PUT', path, { mode: 7 }), 400, 'invalid_field', 'mode');
  assertRefused(await server.request('PUT', path, {}), 400, 'missing_field', 'mode');
  assertRefused(await server.request('PATCH', `/v1/sandboxes/${box.id}`, { network: { mode: 'open' } }), 400, 'unknown_field', 'network');
  assertRefused(await server.request('PUT', '/v1/sandboxes/aaaaaaaaaaaaaaaaaaaa/network', { mode: 'open' }), 404, 'not_found');
  assert.equal((await server.request('GET', path)).json.mode, 'none');
  await remove(server, box.id);
});

test('a_sandbox_has_so_many_connections_and_no_more', { timeout: 30000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  const other = await server.create({ network: { mode: 'open' } });
  const out = await python(server, box.id, `
import json, socket
held, refused = [], 0
for i in range(300):
    s = socket.create_connection(('${WEB}', 25))
    s.settimeout(10)
    try:
        s.recv(1)
        held.append(s)
    except OSError:
        refused += 1
print(json.dumps([len(held), refused]))`);
  assert.deepEqual(out, [256, 44]);
  assert.equal((await server.exec(other.id, get(WEB))).exitCode, 0, 'others have theirs');
  await until('they are given back', async () => (await server.exec(box.id, get(WEB))).exitCode === 0);
  await remove(server, box.id);
  await remove(server, other.id);
});

test('egress_has_no_rights_and_no_files', { timeout: 30000 }, async () => {
  const [pid] = processesOf(server, 'bunker-egress');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  assert.match(status, /^CapEff:\t0+$/m);
  assert.match(status, /^CapPrm:\t0+$/m);
  assert.match(status, /^NoNewPrivs:\t1$/m);
  assert.match(status, /^Seccomp:\t2$/m);
  assert.match(status, /^Groups:\t\s*$/m);
  assert.doesNotMatch(status, /^Uid:\t0\t/m);
  const [, , uid] = /^Uid:\t(\d+)\t(\d+)/m.exec(status);
  assert.notEqual(uid, /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${server.frontPid}/status`, 'utf8'))[1], 'it is not the front');
  const open = readdirSync(`/proc/${pid}/fd`).filter((fd) => fd > 2).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  for (const what of open) assert.match(what, /^(socket|pipe|anon_inode):/, 'it has sockets and pipes only');
  assert.equal(readFileSync(`/proc/${pid}/environ`, 'utf8').includes('BUNKER_'), false);
});

function linkOf(path) {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // it is closed
  }
}

test('nothing_is_left_of_a_sandbox_that_is_deleted_or_suspended', { timeout: 30000 }, async () => {
  const [pid] = processesOf(server, 'bunker-egress');
  const held = () => readdirSync(`/proc/${pid}/fd`).filter((fd) => linkOf(`/proc/${pid}/fd/${fd}`).includes('bpf')).length; // one for each
  await until('those of other tests are gone', () => held() === 0);
  const boxes = await Promise.all(Array.from({ length: 10 }, () => server.create({ network: { mode: 'open' } })));
  assert.equal(held(), 10);
  for (const box of boxes.slice(5)) await remove(server, box.id);
  for (const box of boxes.slice(0, 5)) assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/pause`, { memory: false })).status, 200);
  await until('its sockets are closed', () => held() === 0);
  const [woken] = boxes;
  assert.equal((await server.request('POST', `/v1/sandboxes/${woken.id}/resume`)).status, 200);
  assert.equal((await server.exec(woken.id, get('web.test'))).exitCode, 0, 'a resume gives it back');
  for (const box of boxes.slice(0, 5)) await remove(server, box.id);
});

test('the_command_line_and_the_default_of_the_server', { timeout: 30000 }, async () => {
  const made = server.cli(['create', '--network', 'open', '--name', 'by-cli']);
  assert.equal(made.status, 0, made.stderr);
  const id = made.stdout.trim();
  assert.match(server.cli(['info', id]).stdout, /^network +open$/m);
  assert.equal(server.cli(['run', '--network', 'open', '-c', get('web.test')]).status, 0);
  assert.notEqual(server.cli(['run', '-c', get('web.test')]).status, 0);
  const fork = (await server.request('POST', `/v1/sandboxes/${id}/fork`, { count: 1 })).json.sandboxes[0];
  assert.equal(fork.network.mode, 'open');
  assert.equal((await server.exec(fork.id, get('web.test'))).exitCode, 0, 'a fork has the network of what it is a fork of');
  await remove(server, fork.id);
  await remove(server, id);
  const other = await world.start({ args: ['--network', 'open'] });
  try {
    const box = await other.create();
    assert.equal(box.network.mode, 'open');
    assert.equal((await other.exec(box.id, get('web.test'))).exitCode, 0);
    assert.notEqual((await other.exec(box.id, get('203.0.113.77'))).exitCode, 0, 'without --public-networks it is not public');
    assert.equal((await other.create({ network: { mode: 'none' } })).network.mode, 'none');
  } finally {
    await finish(other);
  }
});
