// Many sandboxes, each with a list of its own: none gets another's, and a change is for one sandbox, at once, while the others go on.
// BUNKER_LONG=1: five hundred of them.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { LONG, finish, startCommand } from '../system/support.mjs';
import { until } from '../lib/server.mjs';
import { World, enterNamespace } from './world.mjs';

enterNamespace(import.meta.url);

const COUNT = LONG ? 500 : 200, CHANGED = 50, AT_ONCE = 8, TIMEOUT = LONG ? 600000 : 100000;
// An allowed address is allowed under all its names: no name here leads to one that is on a list.
const NAMED = ['5.5.5.10', '5.5.5.11'], LISTED = ['5.5.5.12', '5.5.5.2'];

/** What the sandbox of this number may reach: a name on any port, a name on one port, or an address on one port. */
function target(i) {
  const turn = Math.floor(i / 3), port = [80, 8080][turn % 2], listed = LISTED[(turn >> 1) % 2];
  if (i % 3 === 2) return { host: listed, port, address: listed, entry: `${listed}:${port}` };
  const host = `n${i}.many.test`, address = NAMED[(turn >> 1) % 2];
  return { host, port, address, entry: i % 3 === 0 ? host : `${host}:${port}` };
}

const allow = ({ entry }) => ({ mode: 'allow', allow: [entry] });
const url = ({ host, port }) => `http://${host}:${port}/`;
const isName = ({ host }) => host.endsWith('.test');
const label = ({ host, port }) => `${host}:${port}`;

let world, server, boxes;

before(async () => {
  const names = Object.fromEntries(Array.from({ length: COUNT }, (_, i) => target(i)).filter(isName).map(({ host, address }) => [host, [{ type: 'A', data: address }]]));
  world = await World.make({ names });
  server = await world.start();
});

after(async () => {
  try {
    await finish(server);
  } finally {
    world.end();
  }
});

/** Does it for each, a few at once. */
async function each(items, act, atOnce = AT_ONCE) {
  const queue = items.entries();
  const results = [];
  const work = async () => {
    for (const [i, item] of queue) results[i] = await act(item, i);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}

/** Asks for each of these in turn; who answered, or how it failed. Those with `directly` are not resolved. */
async function curl(id, ...targets) {
  const one = (t) => ['-4', '-s', '-m', '10', '-w', '%{stderr}%{exitcode} %{http_code}\n', ...(t.directly ? ['--connect-to', `::${t.address}:${t.port}`] : []), url(t)];
  const { stdout, stderr } = await server.exec(id, ['curl', ...targets.flatMap((t, i) => [...(i ? ['--next'] : []), ...one(t)])]);
  const bodies = stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  return stderr.trim().split('\n').map((line) => {
    const [exit, status] = line.split(' ').map(Number);
    if ([7, 55, 56].includes(exit) || status === 403) return 'refused'; // where no name is on the list, before one is said
    if (exit || status !== 200) return exit === 6 ? 'unknown' : `curl ${exit}, ${status}`;
    const { host, address, port } = bodies.shift();
    return `${host.replace(/:.*/, '')}:${port} at ${address}`;
  });
}

const answered = (t) => `${label(t)} at ${t.address}`;
const directly = (t) => ({ ...t, directly: true });

/** It reaches the one and not the other, neither by asking for its address nor by knowing it. */
async function obeys(id, reached, refused, why) {
  const got = await curl(id, reached, directly(refused), refused);
  assert.deepEqual(got, [answered(reached), 'refused', isName(refused) ? 'unknown' : 'refused'], `${why}: ${label(reached)} and not ${label(refused)}`);
}

/** Asks for all targets again and again until /tmp/stop is there, and tells of each when it began and ended, and what came of it. */
const LOOP = `
import json, os, socket, sys, time
period, targets = float(sys.argv[1]), json.loads(sys.argv[2])
def ask(t):
    try:
        with socket.create_connection((t['address'], t['port']), 10) as s:
            s.sendall(('GET / HTTP/1.1\\r\\nHost: %s:%d\\r\\nConnection: close\\r\\n\\r\\n' % (t['host'], t['port'])).encode())
            return {b'200': 'reached', b'403': 'refused'}[s.recv(4096).split()[1]]
    except ConnectionError:
        return 'refused'
    except (OSError, LookupError) as e:
        return repr(e)
while True:
    for i, t in enumerate(targets):
        began = time.time()
        result = ask(t)
        print(json.dumps([i, began * 1000, time.time() * 1000, result]), flush=True)
    if os.path.exists('/tmp/stop'): break
    time.sleep(period)
`;

const loop = (period, ...targets) => ({ command: ['python3', '-c', LOOP, String(period), JSON.stringify(targets)] });
const stop = (id) => server.exec(id, ['touch', '/tmp/stop']);
const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));

/** Those that it reached, once these are among them. */
async function reached(id, ...targets) {
  const wanted = targets.map(label).sort();
  let all, found;
  await until(`${wanted} are counted`, async () => {
    const answer = await server.request('GET', `/v1/sandboxes/${id}/network/destinations`);
    assert.equal(answer.status, 200, answer.text);
    all = answer.json.destinations;
    found = all.filter((d) => d.connections > 0).map(label).sort();
    return wanted.every((name) => found.includes(name));
  });
  assert.deepEqual(found, wanted, 'and nothing else');
  return all;
}

test('each_of_many_reaches_its_own_and_not_its_neighbours', { timeout: TIMEOUT }, async () => {
  const targets = Array.from({ length: COUNT }, (_, i) => target(i));
  boxes = await each(targets, async (own, i) => {
    const { id, network } = await server.create({ network: allow(own), resources: { memory: '64Mi', pids: 16 } });
    assert.deepEqual(network, allow(own));
    return { id, own, next: targets[(i + 1) % COUNT], far: targets[(i + COUNT / 2 + 1) % COUNT] };
  });
  await each(boxes, ({ id, own, next }, i) => obeys(id, own, next, `sandbox ${i}`));
  await each(boxes, async ({ id, own, next }) => {
    await until(`${next.host} is counted as refused`, async () => (await reached(id, own)).some((d) => d.host === next.host && d.refused > 0));
  });
});

/** Changes one from its own to that of one far away (a neighbour would not notice getting what it has) while it asks for both; the time that the change took. */
async function swap({ id, own, far }, i) {
  const { stream } = await startCommand(server, id, loop(0.05, own, far));
  let text = '';
  const ended = (async () => {
    for await (const event of stream.events) {
      if (event.type === 'stdout') text += event.data;
      else if (event.type === 'stderr') throw new Error(event.data);
    }
  })();
  ended.catch(() => {});
  const asked = () => lines(text.slice(0, text.lastIndexOf('\n') + 1));
  await until('it has asked', () => asked().length >= 4, 20000);
  const sent = Date.now(), start = performance.now();
  const answer = await server.request('PUT', `/v1/sandboxes/${id}/network`, allow(far));
  const took = performance.now() - start, since = Date.now() + 1;
  assert.equal(answer.status, 200, answer.text);
  await obeys(id, far, own, `sandbox ${i} was changed`);
  await until('it has asked again', () => asked().filter(([, began]) => began >= since).length >= 4, 20000);
  await stop(id);
  await ended;
  for (const [which, began, end, result] of asked()) {
    if (end < sent) assert.equal(result, ['reached', 'refused'][which], `sandbox ${i}, ${sent - end} ms before its change`);
    if (began >= since) assert.equal(result, ['refused', 'reached'][which], `sandbox ${i}, ${began - since} ms after its change`);
  }
  return took;
}

test('a_change_holds_at_once_and_for_one_while_the_others_go_on', { timeout: TIMEOUT }, async (t) => {
  const every = COUNT / CHANGED;
  const changing = boxes.filter((_, i) => i % every === 0), others = boxes.filter((_, i) => i % every !== 0).slice(-150);
  const running = Promise.all(others.map(({ id, own, next }) => server.exec(id, loop(2.5, own, next))));
  running.catch(() => {});
  let times;
  try {
    times = (await each(changing, swap)).sort((a, b) => a - b);
  } finally {
    await each(others, ({ id }) => stop(id));
  }
  let requests = 0;
  for (const [i, done] of (await running).entries()) {
    assert.equal(done.exitCode, 0, done.stderr);
    const asked = lines(done.stdout);
    assert.ok(asked.length >= 2, 'it asked');
    for (const [which, , , result] of asked) assert.equal(result, ['reached', 'refused'][which], `${label(others[i].own)} was not changed`);
    requests += asked.length;
  }
  const p99 = times[Math.ceil(times.length * 0.99) - 1];
  t.diagnostic(`${times.length} changes beside ${requests} requests of ${others.length} sandboxes: p50 ${times[times.length >> 1].toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
  assert.ok(p99 < 1000, `p99 of the changes: ${p99} ms`);
  await each(changing, ({ id, own, far }) => reached(id, own, far));
  await each(others, ({ id, own }) => reached(id, own));
});
