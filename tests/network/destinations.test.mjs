// What a sandbox reached and what was refused: counted for each destination, bounded, told live, and still known after deaths.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { assertRefused, finish, remove } from '../system/support.mjs';
import { until } from '../lib/server.mjs';
import { CONNECT, WEB, World, enterNamespace, processesOf, python } from './world.mjs';

enterNamespace(import.meta.url);

let world, server;

before(async () => {
  world = await World.make();
  server = await world.start();
});

after(async () => {
  try {
    await finish(server, { killed: true });
  } finally {
    world.end();
  }
});

const path = (id) => `/v1/sandboxes/${id}/network/destinations`;

async function destinations(id) {
  const answer = await server.request('GET', path(id));
  assert.equal(answer.status, 200, answer.text);
  return answer.json.destinations;
}

/** The one of this name, once it says so. */
async function destination(id, name, check) {
  const [, host, port] = name.match(/^(.*?)(?::(\d+))?$/);
  let found;
  await until(`${name} is counted`, async () => {
    found = (await destinations(id)).find((d) => d.host === host && d.port === (port && Number(port)));
    return found && check(found);
  });
  return found;
}

const get = (url) => `curl -sS -m 10 -o /dev/null ${url}`;

test('counts_connections_bytes_refusals_and_failures_of_each_destination', { timeout: 60000 }, async () => {
  const began = Date.now();
  const box = await server.create({ network: { mode: 'allow', allow: ['web.test', '5.5.5.11'] } });
  assert.deepEqual(await destinations(box.id), []);
  for (let i = 0; i < 3; i++) assert.equal((await server.exec(box.id, get('http://web.test/big100000'))).exitCode, 0);
  await server.exec(box.id, `${get('https://5.5.5.11/')} -k`);
  await server.exec(box.id, get('http://evil.test/'));
  await python(server, box.id, `${CONNECT}
print(json.dumps([attempt('5.5.5.12', 80, b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'), attempt('5.5.5.11', 9), attempt('5.5.5.11', 9)]))`);
  const web = await destination(box.id, 'web.test:80', (d) => d.connections === 3 && d.bytesIn > 300_000);
  assert.ok(web.bytesIn < 310_000, `three answers of 100,000 bytes and their heads, not ${web.bytesIn}`);
  assert.ok(web.bytesOut > 150 && web.bytesOut < 1000, `three requests, not ${web.bytesOut}`);
  assert.deepEqual([web.failed, web.refused, 'other' in web], [0, 0, false]);
  assert.ok([WEB, '2a00:5::10'].includes(web.address), web.address);
  assert.ok(Date.parse(web.lastUsedAt) >= began - 1000 && Date.parse(web.lastUsedAt) <= Date.now() + 1000, web.lastUsedAt);
  const asked = await destination(box.id, 'evil.test', (d) => d.refused > 0);
  assert.deepEqual([asked.connections, 'port' in asked, 'address' in asked], [0, false, false]);
  const forged = await destination(box.id, 'evil.test:80', (d) => d.refused === 1);
  assert.deepEqual([forged.connections, forged.bytesIn, forged.address], [0, 0, '5.5.5.12']);
  const closed = await destination(box.id, '5.5.5.11:9', (d) => d.failed === 2);
  assert.equal(closed.connections, 0);
  await remove(server, box.id);
});

test('open_shows_the_name_that_the_sandbox_was_told_the_address_for', { timeout: 60000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  await server.exec(box.id, get('http://other.test/'));
  await server.exec(box.id, get(`http://${WEB}:8080/`));
  assert.equal((await destination(box.id, 'other.test:80', (d) => d.connections === 1)).address, '5.5.5.11');
  assert.equal((await destination(box.id, `${WEB}:8080`, (d) => d.connections === 1)).address, WEB);
  const other = await server.create({ network: { mode: 'open' } });
  assert.deepEqual(await destinations(other.id), [], 'another sandbox has its own');
  await remove(server, other.id);
  await remove(server, box.id);
});

test('many_destinations_are_bounded_and_none_is_lost_from_the_sums', { timeout: 120000 }, async () => {
  const box = await server.create({ network: { mode: 'allow', allow: ['web.test'] } });
  await server.exec(box.id, get('http://web.test/'));
  await destination(box.id, 'web.test:80', (d) => d.connections === 1);
  await python(server, box.id, `${CONNECT}
import struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.connect(('192.0.2.53', 53))
for i in range(1000):
    name = b'n%d' % i
    s.sendall(struct.pack('>6H', i, 0x0100, 1, 0, 0, 0) + bytes([len(name)]) + name + b'\\x04test' + struct.pack('>BHH', 0, 1, 1))
    s.recv(4096)
print('{}')`);
  let all;
  await until('all questions are counted', async () => {
    all = await destinations(box.id);
    return all.reduce((sum, d) => sum + d.refused, 0) === 1000;
  });
  assert.equal(all.length, 257);
  const [others] = all.filter((d) => d.other);
  assert.ok(others.refused >= 744, `${others.refused} of those that are gone`);
  assert.equal(others.connections, 1, 'and what was reached first is among them');
  assert.equal(others.host, '');
  await remove(server, box.id);
});


test('a_stream_tells_each_change_until_the_sandbox_has_ended', { timeout: 60000 }, async () => {
  const box = await server.create({ network: { mode: 'allow', allow: ['web.test'] } });
  await server.exec(box.id, get('http://web.test/'));
  await destination(box.id, 'web.test:80', (d) => d.connections === 1);
  const lines = [];
  const watch = server.cliStart(['net', '-f', '--json', box.id]);
  watch.stdout.setEncoding('utf8');
  watch.stdout.on('data', (text) => lines.push(text));
  const ended = new Promise((resolve) => watch.on('exit', resolve));
  const seen = () => lines.join('').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  await until('what was there before is told', () => seen().some((d) => d.host === 'web.test' && d.connections === 1));
  await server.exec(box.id, get('http://web.test/'));
  await server.exec(box.id, get('http://evil.test/'));
  await until('the change is told', () => seen().some((d) => d.connections === 2) && seen().some((d) => d.host === 'evil.test' && d.refused > 0));
  const quiet = seen().length;
  await new Promise((resolve) => setTimeout(resolve, 2500));
  assert.equal(seen().length, quiet, 'nothing is told while nothing changes');
  await remove(server, box.id);
  assert.equal(await ended, 0);
});

test('net_shows_mode_lists_totals_and_destinations', { timeout: 60000 }, async () => {
  const box = await server.create({ name: 'seen', network: { mode: 'allow', allow: ['web.test', '*.wild.test'] } });
  await server.exec(box.id, get('http://web.test/big1000000'));
  await server.exec(box.id, get('http://evil.test/'));
  await destination(box.id, 'evil.test', (d) => d.refused > 0);
  await destination(box.id, 'web.test:80', (d) => d.bytesIn > 1_000_000);
  const shown = server.cli(['net', 'seen']);
  assert.equal(shown.status, 0, shown.stderr);
  assert.match(shown.stdout, /^network +allow$/m);
  assert.match(shown.stdout, /^allow +web\.test, \*\.wild\.test$/m);
  assert.match(shown.stdout, /^reached +1 connections, .* MiB in, .* out$|^reached +1 connections, .*KiB in, .* out$/m);
  assert.match(shown.stdout, /^refused +[1-9]\d*$/m);
  assert.match(shown.stdout, /^web\.test:80 +1 +0 +0 /m);
  assert.match(shown.stdout, /^evil\.test +0 +0 +[1-9]/m);
  const json = JSON.parse(server.cli(['net', '--json', 'seen']).stdout);
  assert.deepEqual(json.network, { mode: 'allow', allow: ['web.test', '*.wild.test'] });
  assert.deepEqual(json.destinations.map((d) => d.host).sort(), ['evil.test', 'web.test']);
  assert.equal(server.cli(['net', 'nobody']).status, 1);
  await remove(server, box.id);
  assertRefused(await server.request('GET', path(box.id)), 404, 'not_found');
});

test('counts_survive_the_front_and_the_death_of_egress', { timeout: 90000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  await server.exec(box.id, get(`http://${WEB}/`));
  const first = await destination(box.id, `${WEB}:80`, (d) => d.connections === 1 && d.bytesIn > 0);
  const front = server.frontPid;
  process.kill(front, 'SIGKILL');
  server.renewAgent();
  await until('there is another front', async () => server.frontPid && server.frontPid !== front && (await server.request('GET', '/health').catch(() => ({}))).status === 200);
  const again = await destination(box.id, `${WEB}:80`, (d) => d.connections === 1);
  assert.equal(again.bytesIn, first.bytesIn, 'told anew, and not twice');
  const [egress] = processesOf(server, 'bunker-egress');
  process.kill(egress, 'SIGKILL');
  await until('it reaches the internet again', async () => (await server.exec(box.id, get(`http://${WEB}/`))).exitCode === 0);
  const both = await destination(box.id, `${WEB}:80`, (d) => d.connections >= 2);
  assert.equal(both.bytesIn, 2 * first.bytesIn);
  await remove(server, box.id);
});
