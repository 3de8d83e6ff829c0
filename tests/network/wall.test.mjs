// The second wall: whatever runs in the cgroup of bunker-egress connects to nothing that no policy could open, whatever it thinks.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import http from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { finish } from '../system/support.mjs';
import { BUNKER, until } from '../lib/server.mjs';
import { CONNECT, HOST, HOST6, WEB, WEB6, World, enterNamespace, processesOf } from './world.mjs';

enterNamespace(import.meta.url);

let world, server, own;

before(async () => {
  world = await World.make();
  own = http.createServer((req, res) => res.end('the host\n'));
  await new Promise((resolve) => own.listen(8099, '::', resolve));
  server = await world.start({ args: ['--public-networks', '203.0.113.0/24', '--private-networks', '10.9.0.0/16'] });
});

after(async () => {
  own.close();
  own.closeAllConnections();
  try {
    await finish(server, { killed: true });
  } finally {
    world.end();
  }
});

/** The cgroup of version 2 in which bunker-egress is. */
function cgroup() {
  const [pid] = processesOf(server, 'bunker-egress');
  const [line] = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n').filter((l) => l.startsWith('0::'));
  const below = line.slice(3);
  return existsSync('/sys/fs/cgroup/unified') ? `/sys/fs/cgroup/unified${below}` : `/sys/fs/cgroup${below}`;
}

/** What a program says to connects to these, in the cgroup of bunker-egress or outside of it. */
async function attempts(targets, inside) {
  const program = `${CONNECT}
import os
if ${inside ? 'True' : 'False'}: open('${cgroup()}/cgroup.procs', 'w').write(str(os.getpid()))
print(json.dumps([attempt(h, p, b'GET / HTTP/1.0\\r\\n\\r\\n') for h, p in json.loads(sys.argv[1])]))`;
  return JSON.parse((await promisify(execFile)('python3', ['-c', program, JSON.stringify(targets)])).stdout);
}

const closed = [[HOST, 8099], [HOST6, 8099], ['127.0.0.1', 8099], ['::1', 8099], ['172.16.9.1', 80], ['192.168.9.1', 80], ['169.254.169.254', 80], ['168.63.129.16', 80], ['100.64.0.9', 80], ['198.51.100.7', 80], ['fd12::1', 80], ['fd00:ec2::254', 80]];
const open = [[WEB, 80], [WEB6, 80], ['203.0.113.77', 80], ['10.9.0.1', 80]];

test('the_cgroup_of_egress_reaches_nothing_that_no_policy_could_open', { timeout: 60000 }, async () => {
  for (const [i, what] of (await attempts([...closed, ...open], false)).entries()) assert.match(what, /^HTTP/, `${i} is there, for others`);
  assert.deepEqual(await attempts(closed, true), closed.map(() => 'EPERM'));
  for (const [i, what] of (await attempts(open, true)).entries()) assert.match(what, /^HTTP/, `${open[i]}: ${what}`);
});

/** How many of the four programs the cgroup has. */
const programs = () => spawnSync(`${dirname(BUNKER)}/tests/unit/test_wall`, ['query', cgroup()], { encoding: 'utf8' }).stdout.trim();

test('every_egress_is_behind_the_wall', { timeout: 60000 }, async () => {
  assert.equal(programs(), '4');
  const [first] = processesOf(server, 'bunker-egress');
  process.kill(first, 'SIGKILL');
  await until('there is another', () => processesOf(server, 'bunker-egress').some((pid) => pid !== first));
  assert.equal(programs(), '4');
  const [wire] = processesOf(server, 'bunker-wire');
  process.kill(wire, 'SIGKILL');
  await until('there is another wire', () => processesOf(server, 'bunker-wire').some((pid) => pid !== wire));
  await until('and one wall', () => programs() === '4');
  assert.deepEqual(await attempts([['127.0.0.1', 8099]], true), ['EPERM']);
});

test('an_address_that_the_host_gets_later_is_behind_it_too', { timeout: 60000 }, async () => {
  spawnSync('ip', ['addr', 'add', '5.5.5.77/32', 'dev', 'lo']);
  assert.match((await attempts([['5.5.5.77', 8099]], false))[0], /^HTTP/);
  await until('it is closed', async () => (await attempts([['5.5.5.77', 8099]], true))[0] === 'EPERM');
  spawnSync('ip', ['addr', 'del', '5.5.5.77/32', 'dev', 'lo']);
  await until('it is open again', async () => (await attempts([['5.5.5.77', 8099]], true))[0] !== 'EPERM');
});
