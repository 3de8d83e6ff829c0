// The internet of the tests, in a network namespace of its own: web servers, a resolver, and hosts that nobody may reach. All of them
// are this process. It is told its names on stdin and says "ready"; what it was asked is at http://ANY:8053/.
import { spawnSync } from 'node:child_process';
import dgram from 'node:dgram';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const run = (...args) => {
  const done = spawnSync(args[0], args.slice(1), { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.stderr}`);
};

/** What listens here besides the addresses of the interface. */
const addresses = ['5.5.5.2', '5.5.5.10', '5.5.5.11', '5.5.5.12', '5.5.5.53', '10.9.0.1', '100.64.0.9', '172.16.9.1', '192.168.9.1', '169.254.169.254', '168.63.129.16', '198.51.100.7', '203.0.113.77'];
const addresses6 = ['2a00:5::2', '2a00:5::10', 'fd00:ec2::254', 'fd12::1', '2001:db8::7'];

const asked = [];
let names = {};
let mirrors; // a directory for each host, with what it serves

function readName(packet, at) {
  const labels = [];
  for (; packet[at]; at += packet[at] + 1) labels.push(packet.subarray(at + 1, at + 1 + packet[at]).toString('latin1'));
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

function encodeName(name) {
  return Buffer.concat([...name.split('.').filter(Boolean).map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])), Buffer.from([0])]);
}

const types = { A: 1, CNAME: 5, TXT: 16, AAAA: 28 };

function encodeData({ type, data }) {
  if (type === 'A') return Buffer.from(data.split('.').map(Number));
  if (type === 'CNAME') return encodeName(data);
  if (type === 'TXT') return Buffer.concat(data.match(/.{1,200}/g).map((part) => Buffer.concat([Buffer.from([part.length]), Buffer.from(part)])));
  const [head, tail = ''] = data.split('::');
  const left = head.split(':').filter(Boolean), right = tail.split(':').filter(Boolean);
  const groups = [...left, ...Array(8 - left.length - right.length).fill('0'), ...right].map((g) => parseInt(g, 16));
  return Buffer.from(groups.flatMap((g) => [g >> 8, g & 255]));
}

/** The records of a name: a list, or a list of lists that are told in turn. */
function recordsOf(name) {
  const found = names[name];
  if (!found) return undefined;
  if (!Array.isArray(found[0])) return found;
  found.push(found.shift());
  return found[found.length - 1];
}

function answer(packet, byTcp) {
  const { name, end } = readName(packet, 12);
  const type = packet.readUInt16BE(end);
  asked.push({ name, type, byTcp });
  const records = recordsOf(name);
  const told = (records ?? []).filter((r) => types[r.type] === type || r.type === 'CNAME' || (r.name && types[r.type] === type));
  const parts = told.map((r) => {
    const data = encodeData(r);
    const fixed = Buffer.alloc(10);
    fixed.writeUInt16BE(types[r.type], 0);
    fixed.writeUInt16BE(1, 2);
    fixed.writeUInt32BE(r.ttl ?? 60, 4);
    fixed.writeUInt16BE(data.length, 8);
    return Buffer.concat([r.name ? encodeName(r.name) : Buffer.from([0xc0, 12]), fixed, data]);
  });
  const head = Buffer.alloc(12);
  packet.copy(head, 0, 0, 2);
  head.writeUInt16BE(records ? 0x8180 : 0x8183, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(told.length, 6);
  const whole = Buffer.concat([head, packet.subarray(12, end + 4), ...parts]);
  if (byTcp || whole.length <= 1232) return whole;
  head.writeUInt16BE(0x8380, 2);
  head.writeUInt16BE(0, 6);
  return Buffer.concat([head, packet.subarray(12, end + 4)]);
}

function serveNames() {
  const udp = dgram.createSocket({ type: 'udp4' });
  udp.on('message', (packet, from) => udp.send(answer(packet, false), from.port, from.address));
  udp.bind(53, '5.5.5.53'); // answers come from where they were asked
  net.createServer((socket) => {
    let rest = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length > 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        const len = rest.readUInt16BE(0);
        const told = answer(rest.subarray(2, 2 + len), true);
        const size = Buffer.alloc(2);
        size.writeUInt16BE(told.length);
        socket.write(Buffer.concat([size, told]));
        rest = rest.subarray(2 + len);
      }
    });
  }).listen(53, '::');
}

/** What a mirror has under this name; of a directory, its index. */
function mirrored(req) {
  const host = (req.headers.host ?? '').replace(/:.*/, '');
  const path = decodeURIComponent(req.url.replace(/\?.*/, ''));
  if (!mirrors || !/^[\w.-]+$/.test(host) || path.includes('..')) return undefined;
  try {
    const file = join(mirrors, host, path);
    return readFileSync(statSync(file).isDirectory() ? join(file, 'index') : file);
  } catch {
    return undefined;
  }
}

/** Tells who was asked, under which name, and by whom. */
function web(req, res) {
  const file = mirrored(req);
  if (file) return void res.writeHead(200, { 'content-length': file.length, ...(req.url.endsWith('/') && { 'content-type': 'text/html' }) }).end(file);
  if (mirrors) return void res.writeHead(404).end();
  const { localAddress, remoteAddress, localPort } = req.socket;
  if (req.url.startsWith('/big')) {
    const chunk = Buffer.alloc(1 << 16, 'x');
    let left = Number(req.url.slice(4));
    const more = () => {
      let takes = true;
      while (left > 0 && takes) {
        takes = res.write(chunk.subarray(0, Math.min(left, chunk.length)));
        left -= chunk.length;
      }
      if (left > 0) res.once('drain', more);
      else res.end();
    };
    more();
    return;
  }
  if (req.url.startsWith('/to/')) return void res.writeHead(302, { location: req.url.slice(4) }).end();
  let size = 0;
  req.on('data', (bytes) => (size += bytes.length));
  req.on('end', () => res.end(`${JSON.stringify({ sni: req.socket.servername || undefined, host: req.headers.host, url: req.url, headers: req.url.startsWith('/headers') ? req.rawHeaders : undefined, address: localAddress?.replace('::ffff:', ''), from: remoteAddress?.replace('::ffff:', ''), port: localPort, size })}\n`));
}

/** A certificate for all names but evil.test and those below it, of an authority of its own. */
function certificate() {
  const dir = mkdtempSync(`${tmpdir()}/bunker-internet-`);
  const make = (subject, ...more) => run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', subject, '-days', '2', ...more);
  const certified = Object.keys(names).filter((name) => !name.endsWith('evil.test')).map((name) => `DNS:${name}`);
  try {
    make('/CN=authority', '-keyout', `${dir}/ca-key`, '-out', `${dir}/ca`);
    make('/CN=internet', '-addext', `subjectAltName=${certified.join(',')}`, '-addext', 'basicConstraints=critical,CA:FALSE', '-CA', `${dir}/ca`, '-CAkey', `${dir}/ca-key`, '-keyout', `${dir}/key`, '-out', `${dir}/cert`);
    return { key: readFileSync(`${dir}/key`), cert: readFileSync(`${dir}/cert`), authority: readFileSync(`${dir}/ca`, 'utf8') };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Says 101 to WebSockets, and echoes what comes then; /refuse stays with HTTP. */
function serveUpgrades(server) {
  server.on('upgrade', (req, socket, head) => {
    socket.on('error', () => {});
    if (req.url === '/refuse') return socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
    if (head.length) socket.write(head);
    return socket.pipe(socket);
  });
  return server;
}

function serveOthers(authority) {
  const quiet = (handler) => (socket) => {
    socket.on('error', () => {});
    handler(socket);
  };
  net.createServer({ allowHalfOpen: true }, quiet((s) => s.pipe(s))).listen(7, '::'); // echo
  net.createServer(quiet((s) => s.write('220 first\r\n'))).listen(25, '::'); // speaks first
  net.createServer(quiet((s) => s.resetAndDestroy())).listen(26, '::'); // resets
  net.createServer(quiet((s) => s.end('whole\n'))).listen(27, '::'); // ends in order
  http.createServer((req, res) => res.end(req.url === '/authority' ? authority : JSON.stringify(asked.splice(0)))).listen(8053, '::');
}

process.stdin.setEncoding('utf8');
let input = '';
process.stdin.on('data', (text) => {
  input += text;
  const lines = input.split('\n');
  input = lines.pop();
  for (const line of lines) {
    const { interface: name, names: told, tls, mirrors: directory } = JSON.parse(line);
    names = told;
    mirrors = directory ?? mirrors;
    if (!name) continue;
    run('ip', 'link', 'set', 'lo', 'up');
    run('ip', 'link', 'set', name, 'up');
    for (const address of addresses) run('ip', 'addr', 'add', `${address}/32`, 'dev', address.startsWith('5.5.5.2') ? name : 'lo');
    for (const address of addresses6) run('ip', '-6', 'addr', 'add', `${address}/128`, 'dev', 'lo', 'nodad');
    run('ip', 'route', 'add', '5.5.5.1/32', 'dev', name);
    run('ip', '-6', 'addr', 'add', '2a00:5:0:1::2/64', 'dev', name, 'nodad');
    serveNames();
    const secret = tls ?? certificate();
    serveOthers(secret.authority ?? '');
    serveUpgrades(https.createServer(secret, web)).listen(443, '::');
    https.createServer(secret, web).listen(8443, '::');
    serveUpgrades(http.createServer(web)).listen(80, '::');
    http.createServer(web).listen(8080, '::', () => console.log('ready'));
  }
});
process.stdin.on('end', () => process.exit(0));
