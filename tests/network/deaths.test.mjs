// What dies, and what becomes of networks then: nothing is ever open that was not allowed, and nothing ends as if it were complete.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { finish, remove } from '../system/support.mjs';
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

/** Holds a connection to the echo server, sends a byte over it ten times a second, and writes down how it ended. */
const HOLDER = `
import errno, socket, time
s = socket.create_connection(('${WEB}', 7))
s.settimeout(10)
n = 0
try:
    while True:
        s.sendall(b'x')
        if not s.recv(1):
            break
        n += 1
        open('/tmp/held', 'w').write('open %d' % n)
        time.sleep(0.1)
    open('/tmp/held', 'w').write('EOF')
except OSError as e:
    open('/tmp/held', 'w').write(errno.errorcode.get(e.errno, str(e)))
`;

const held = async (id) => (await server.exec(id, 'cat /tmp/held')).stdout;

async function holder() {
  const box = await server.create({ network: { mode: 'open' } });
  const made = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: ['python3', '-c', HOLDER] });
  assert.equal(made.status, 201, made.text);
  await until('the connection is open', async () => (await held(box.id)).startsWith('open'));
  return box.id;
}

/** The connection has carried more since. */
async function goesOn(id) {
  const count = async () => Number((await held(id)).split(' ')[1]);
  const before = await count();
  await until('the connection carries more', async () => (await count()) > before);
}

const attempt = (id, host = WEB, port = 27) => python(server, id, `${CONNECT}
print(json.dumps(attempt('${host}', ${port})))`);

const resolves = async (id) => (await server.exec(id, 'getent hosts other.test')).exitCode === 0;

test('egress_killed_its_connections_are_reset_and_it_is_back_in_a_moment', { timeout: 60000 }, async () => {
  const id = await holder();
  const [pid] = processesOf(server, 'bunker-egress');
  process.kill(pid, 'SIGKILL');
  await until('the connection has ended', async () => !(await held(id)).startsWith('open'));
  assert.equal(await held(id), 'ECONNRESET');
  await until('it reaches the internet again', async () => (await attempt(id)) === 'whole\n');
  assert.ok(await resolves(id));
  assert.notEqual(processesOf(server, 'bunker-egress')[0], pid);
  await remove(server, id);
});

test('front_killed_connections_go_on_and_changes_reach_them', { timeout: 60000 }, async () => {
  const id = await holder();
  const [egress] = processesOf(server, 'bunker-egress');
  const front = server.frontPid;
  process.kill(front, 'SIGKILL');
  server.renewAgent();
  await until('there is another front', async () => server.frontPid && server.frontPid !== front && (await server.request('GET', '/health').catch(() => ({}))).status === 200);
  await goesOn(id);
  assert.equal(await attempt(id), 'whole\n');
  assert.equal(processesOf(server, 'bunker-egress')[0], egress);
  assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/network`, { mode: 'none' })).status, 200);
  await until('the connection has ended', async () => (await held(id)) === 'ECONNRESET');
  assert.equal(await attempt(id), 'ENETUNREACH');
  await remove(server, id);
});

// Its row is stored beside its network: when that fails, the row goes again.
test('a_create_whose_network_fails_leaves_nothing', { timeout: 60000 }, async () => {
  const names = async () => (await server.request('GET', '/v1/sandboxes')).json.sandboxes.map((box) => box.name);
  const before = await names();
  const [egress] = processesOf(server, 'bunker-egress');
  process.kill(egress, 'SIGSTOP');
  try {
    const made = await server.request('POST', '/v1/sandboxes', { name: 'unwired', network: { mode: 'open' } });
    assert.deepEqual([made.status, made.json.error.code], [503, 'unavailable'], made.text);
    assert.deepEqual(await names(), before);
    const plain = await server.create({ name: 'unwired' });
    await remove(server, plain.id);
  } finally {
    process.kill(egress, 'SIGCONT');
  }
  const box = await server.create({ name: 'unwired', network: { mode: 'open' } });
  assert.equal(await attempt(box.id), 'whole\n');
  await remove(server, box.id);
});

test('wire_killed_nothing_changes_and_new_sandboxes_get_a_network', { timeout: 60000 }, async () => {
  const id = await holder();
  const [wire] = processesOf(server, 'bunker-wire');
  process.kill(wire, 'SIGKILL');
  await until('there is another one', () => processesOf(server, 'bunker-wire').some((pid) => pid !== wire));
  await goesOn(id);
  const other = await server.create({ network: { mode: 'open' } });
  assert.equal(await attempt(other.id), 'whole\n');
  await remove(server, other.id);
  await remove(server, id);
});

test('the_whole_server_killed_egress_goes_on_and_is_taken_over', { timeout: 60000 }, async () => {
  const id = await holder();
  const [egress] = processesOf(server, 'bunker-egress');
  await server.crash();
  await server.launch();
  await goesOn(id);
  assert.equal(processesOf(server, 'bunker-egress')[0], egress);
  assert.equal(await attempt(id), 'whole\n');
  assert.deepEqual((await server.request('GET', `/v1/sandboxes/${id}/network`)).json, { mode: 'open' });
  await remove(server, id);
});

test('with_nobody_to_start_it_again_nothing_gets_out', { timeout: 60000 }, async () => {
  const box = await server.create({ network: { mode: 'open' } });
  const program = `${CONNECT}
import time
open('/tmp/ready', 'w').write('x')
seen, end = set(), time.monotonic() + 2
while time.monotonic() < end:
    seen.add(attempt('${WEB}', 27))
    time.sleep(0.02)
open('/tmp/seen', 'w').write(json.dumps(sorted(seen)))`;
  await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: ['python3', '-c', program] });
  await until('it runs', async () => (await server.exec(box.id, 'cat /tmp/ready')).exitCode === 0);
  const [egress] = processesOf(server, 'bunker-egress');
  const [wire] = processesOf(server, 'bunker-wire');
  await server.crash();
  process.kill(wire, 'SIGKILL');
  process.kill(egress, 'SIGKILL');
  await new Promise((resolve) => setTimeout(resolve, 2500)); // nobody tells that nothing happens
  await server.launch();
  const seen = JSON.parse((await server.exec(box.id, 'cat /tmp/seen')).stdout);
  assert.ok(seen.includes('ECONNREFUSED'), `without egress a connection is refused: ${seen}`);
  for (const what of seen) assert.ok(['ECONNREFUSED', 'ECONNRESET', 'whole\n'].includes(what), what);
  assert.equal(await attempt(box.id), 'whole\n', 'the next start puts it back');
  await remove(server, box.id);
});

test('paused_and_stopped_a_sandbox_keeps_its_network', { timeout: 60000 }, async () => {
  const id = await holder();
  assert.equal((await server.request('POST', `/v1/sandboxes/${id}/pause`)).status, 200);
  assert.equal((await server.stop()).code, 0);
  await server.launch();
  assert.equal((await server.request('POST', `/v1/sandboxes/${id}/resume`)).status, 200);
  await goesOn(id);
  assert.equal(await attempt(id), 'whole\n');
  await remove(server, id);
});
