// How much of the network one sandbox may have: bytes, connections and questions in a second. What is beyond that waits, and nothing fails.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { World, WEB, enterNamespace, python } from '../network/world.mjs';

enterNamespace(import.meta.url);

const MIB = 2 ** 20, RATE = 50, BURST = 256;
let world, wide, narrow;

before(async () => {
  world = await World.make();
  wide = await world.start({ args: ['--connection-rate', '0'] });
  narrow = await world.start({ args: ['--bandwidth', '1Mi', '--connection-rate', String(RATE)] });
});

after(async () => {
  try {
    await wide?.destroy();
    await narrow?.destroy();
  } finally {
    world.end();
  }
});

const make = async (server) => (await server.create({ network: { mode: 'open' } })).id;

/** Seconds that a command takes inside, which must succeed. */
async function seconds(server, id, command) {
  const began = process.hrtime.bigint();
  const done = await server.exec(id, command);
  assert.equal(done.exitCode, 0, done.stderr);
  return Number(process.hrtime.bigint() - began) / 1e9;
}

test('H94 bytes beyond the bandwidth of a sandbox wait, both ways and over all of its connections', { timeout: 120000 }, async () => {
  const get = `curl -sSf -o /tmp/big http://${WEB}/big${4 * MIB} && [ $(stat -c %s /tmp/big) = ${4 * MIB} ]`;
  const two = `for i in 1 2; do curl -sSf -o /tmp/$i http://${WEB}/big${2 * MIB} & done; wait; [ $(cat /tmp/1 /tmp/2 | wc -c) = ${4 * MIB} ]`;
  const put = `head -c ${4 * MIB} /dev/zero | curl -sSf -T - http://${WEB}/ | grep -q '"size":${4 * MIB}'`;
  for (const [what, command] of Object.entries({ get, two, put })) {
    const [control, id] = [await make(wide), await make(narrow)];
    const free = await seconds(wide, control, command);
    const capped = await seconds(narrow, id, command);
    // 1 MiB at once, then 1 MiB in a second.
    assert.ok(capped > 2.5, `${what}: 4 MiB took ${capped} s with 1 MiB/s, ${free} s without`);
    assert.ok(free < capped, `${what}: the control took ${free} s, the other ${capped} s`);
  }
});

test('H94 connections beyond the rate wait and are all served', { timeout: 120000 }, async () => {
  const many = `
import json, socket, time
began, served = time.time(), 0
for i in range(${BURST + 3 * RATE}):
    s = socket.create_connection(('${WEB}', 27)); s.settimeout(30)
    served += s.recv(10) == b'whole\\n'
    s.close()
print(json.dumps([served, time.time() - began]))`;
  const [all, took] = await python(narrow, await make(narrow), many);
  assert.equal(all, BURST + 3 * RATE);
  assert.ok(took > 2.5, `${took} s`);
  const [control, quick] = await python(wide, await make(wide), many);
  assert.equal(control, all);
  assert.ok(quick < took, `${quick} s without a rate, ${took} s with one`);
});

test('H94 one sandbox that floods does not keep another from connecting', { timeout: 120000 }, async () => {
  const [flooder, other] = [await make(narrow), await make(narrow)];
  const flood = `
import socket, threading
def forever():
    while True:
        try: socket.create_connection(('${WEB}', 27), 5).recv(10)
        except OSError: pass
for i in range(8): threading.Thread(target=forever).start()`;
  await narrow.request('POST', `/v1/sandboxes/${flooder}/processes`, { command: ['python3', '-c', flood] });
  const times = await python(narrow, other, `
import json, socket, time
out = []
for i in range(40):
    began = time.time()
    assert socket.create_connection(('${WEB}', 27), 10).recv(10) == b'whole\\n'
    out.append(time.time() - began)
print(json.dumps(sorted(out)))`);
  assert.ok(times[20] < 1, `half of the connections took more than ${times[20]} s`);
});

test('H94 questions for names beyond the rate are answered late, not never', { timeout: 120000 }, async () => {
  const [answered] = await python(narrow, await make(narrow), `
import json, socket
print(json.dumps([sum(1 for i in range(600) if socket.gethostbyname('web.test') == '${WEB}')]))`);
  assert.equal(answered, 600);
});
