// What networks and previews cost, beside the same without them, in one interleaved run:
//
//     BUNKER=build/bunker node bench/network.mjs [--large]
//
// It plays in network namespaces of its own (tests/network/world.mjs) and touches none of the host's. Each row has the aim that it
// is held to; a machine that is busy misses some.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { WEB, World, enterNamespace, processesOf } from '../tests/network/world.mjs';
import { until } from '../tests/lib/server.mjs';

enterNamespace(import.meta.url);

const LARGE = process.argv.includes('--large');
const PEER = join(dirname(process.env.BUNKER), 'bench/bunker-peer');
const PORT = '7000';
const ROUNDS = 10;
const GIB = 2 ** 30;

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
const at = (list, share) => list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))];
const us = () => Number(process.hrtime.bigint() / 1000n);
const numbers = (text) => text.trim().split('\n').map(Number);

function outside(...args) {
  const done = spawnSync(PEER, args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.stderr}`);
  return numbers(done.stdout);
}

async function inside(server, id, ...args) {
  const done = await server.exec(id, ['/tmp/peer', ...args]);
  if (done.exitCode !== 0) throw new Error(`inside, ${args.join(' ')}: ${done.stderr}`);
  return numbers(done.stdout);
}

const rows = [];
function row(what, value, unit, aim, good) {
  rows.push(good);
  console.log(`${what.padEnd(52)} ${value.padStart(9)} ${unit.padEnd(14)} ${aim.padEnd(14)} ${good ? 'met' : 'MISSED'}`);
}

/** Seconds of processor time of the processes so far. */
const cpuOf = (pids) =>
  pids.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);

const world = await World.make();
const server = await world.start({ args: ['--pool', '8', '--connection-rate', '0'] });
const peers = [spawn('nsenter', [`--net=/proc/${world.internet.pid}/ns/net`, PEER, 'serve', PORT], { stdio: 'ignore' }), spawn(PEER, ['serve', PORT], { stdio: 'ignore' })];

const withPeer = async (settings) => {
  const { id } = await server.create(settings);
  const copied = server.cli(['cp', '-q', PEER, `${id}:/tmp/peer`]);
  if (copied.status !== 0) throw new Error(copied.stderr);
  return id;
};

/** Median milliseconds of creates, of each kind in turn. */
async function creates() {
  const kinds = { none: [], open: [] };
  for (let i = 0; i < 60; i++)
    for (const mode of Object.keys(kinds)) {
      await until('the pool is full', async () => (await server.request('GET', '/health')).json.pool?.ready !== 0, 1000).catch(() => {});
      const began = us();
      const { id } = await server.create({ network: { mode } });
      kinds[mode].push((us() - began) / 1000);
      await server.request('DELETE', `/v1/sandboxes/${id}`);
    }
  const added = median(kinds.open) - median(kinds.none);
  row(`create, none ${median(kinds.none).toFixed(2)}, open ${median(kinds.open).toFixed(2)} ms`, `+${added.toFixed(2)}`, 'ms', 'at most 0.5', added <= 0.5);
}

async function egress(id) {
  const own = [], theirs = [], ownBulk = [], theirBulk = [];
  const pids = processesOf(server, 'bunker-egress');
  for (let i = 0; i < ROUNDS; i++) {
    own.push(...outside('connect', WEB, '7001', '50'));
    theirs.push(...(await inside(server, id, 'connect', WEB, '7001', '50')));
  }
  const ratio = median(theirs) / median(own);
  row(`connect and one byte: host ${median(own)}, egress ${median(theirs)} us`, ratio.toFixed(2), 'x host', 'at most 3', ratio <= 3);
  const before = cpuOf(pids);
  for (let i = 0; i < 3; i++) {
    ownBulk.push(...outside('get', WEB, PORT, 'web.test', `/${GIB}`, '1'));
    theirBulk.push(...(await inside(server, id, 'get', WEB, PORT, 'web.test', `/${GIB}`, '1')));
  }
  const share = median(ownBulk) / median(theirBulk);
  const cpu = ((cpuOf(pids) - before) / 3 / GIB) * 1e9;
  row(`1 GiB: host ${((GIB / median(ownBulk)) | 0)}, egress ${((GIB / median(theirBulk)) | 0)} MB/s`, share.toFixed(2), 'x host', 'at least 0.6', share >= 0.6);
  row("bunker-egress's processor time", cpu.toFixed(2), 's/GB', 'at most 0.35', cpu <= 0.35);
}

async function previews(id) {
  const direct = [], shown = [], directBulk = [], shownBulk = [];
  const port = new URL(server.url).port;
  const name = `${PORT}-${id}.localhost`;
  for (let i = 0; i < ROUNDS; i++) {
    direct.push(...outside('get', '127.0.0.1', PORT, 'localhost', '/1024', '50'));
    shown.push(...outside('get', '127.0.0.1', port, name, '/1024', '50'));
  }
  const ratio = median(shown) / median(direct);
  row(`preview of 1 KB: direct ${median(direct)}, preview ${median(shown)} us`, ratio.toFixed(2), 'x direct', 'at most 2', ratio <= 2);
  for (let i = 0; i < 3; i++) {
    directBulk.push(...outside('get', '127.0.0.1', PORT, 'localhost', `/${GIB}`, '1'));
    shownBulk.push(...outside('get', '127.0.0.1', port, name, `/${GIB}`, '1'));
  }
  const share = median(directBulk) / median(shownBulk);
  row(`preview of 1 GiB: direct ${(GIB / median(directBulk)) | 0}, preview ${(GIB / median(shownBulk)) | 0} MB/s`, share.toFixed(2), 'x direct', 'at least 0.6', share >= 0.6);
}

const available = () => Number(/MemAvailable: +(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))[1]);

async function memory() {
  const count = 100;
  const took = {};
  for (const mode of ['none', 'open']) {
    const before = available();
    const ids = [];
    for (let i = 0; i < count; i++) ids.push((await server.create({ network: { mode } })).id);
    took[mode] = (before - available()) / count;
    for (const id of ids) await server.request('DELETE', `/v1/sandboxes/${id}`);
  }
  const more = took.open - took.none;
  row(`memory of a sandbox: none ${took.none | 0}, open ${took.open | 0} kB`, `+${more | 0}`, 'kB', 'at most 64', more <= 64);
}

async function changes(count) {
  const lists = [['web.test', '*.example.com'], ['other.test', '5.5.5.0/24:443'], ['preset:npm']];
  const ids = [];
  for (let i = 0; i < count; i++) ids.push((await server.create({ network: { mode: 'allow', allow: lists[i % 3] } })).id);
  const times = [];
  for (let i = 0; i < 200; i++) {
    const began = us();
    const done = await server.request('PUT', `/v1/sandboxes/${ids[(i * 37) % count]}/network`, { mode: 'allow', allow: lists[(i + 1) % 3] });
    if (done.status !== 200) throw new Error(done.text);
    times.push((us() - began) / 1000);
  }
  row(`a change of rules, ${count} sandboxes with some: p50 ${median(times).toFixed(2)}`, at(times, 0.99).toFixed(2), 'ms p99', 'at most 10', at(times, 0.99) <= 10);
}

try {
  console.log(`${'what'.padEnd(52)} ${'value'.padStart(9)} ${'unit'.padEnd(14)} ${'aim'.padEnd(14)}`);
  await creates();
  const id = await withPeer({ network: { mode: 'open' } });
  await egress(id);
  const shown = await withPeer({ previews: 'public' });
  await server.request('POST', `/v1/sandboxes/${shown}/processes`, { command: ['/tmp/peer', 'serve', PORT] });
  await until('it listens', async () => (await server.request('GET', `/v1/sandboxes/${shown}/ports`)).json.ports.length === 2);
  await previews(shown);
  await memory();
  await changes(LARGE ? 1000 : 100);
  console.log(`${rows.filter(Boolean).length} aims met, ${rows.filter((good) => !good).length} missed`);
} finally {
  for (const peer of peers) peer.kill('SIGKILL');
  await server.destroy();
  world.end();
}
