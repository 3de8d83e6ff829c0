// E155: memory of the front. Bodies that do not end, answers that nobody reads and large JSON cost the tenant that sends them, not the others.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { Server, sleep, until } from '../lib/server.mjs';
import { Socket } from '../lib/websocket.mjs';
import { finish, metric, residentKib } from '../system/support.mjs';

const HEAVY = `bnk_${'a'.repeat(40)}`;
const MIB = 2 ** 20;

describe('memory for requests', { timeout: 240000 }, () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0', '--api-key', `heavy=${HEAVY}`] });
  });
  after(() => finish(server));

  const heavy = (method, path, body) => server.request(method, path, body, { key: HEAVY });

  /** A connection with what it was answered; it reads only if it is told to. */
  function connect(t, text, { reads = true } = {}) {
    const socket = net.connect(server.port, '127.0.0.1');
    t.after(() => socket.destroy());
    const peer = { socket, text: '' };
    socket.on('error', () => {});
    if (reads) socket.on('data', (data) => (peer.text += data));
    else socket.pause();
    socket.write(text);
    return peer;
  }

  const othersAreServed = async () => {
    const box = await server.create({ files: [{ path: 'x', content: 'y'.repeat(2 * MIB) }] });
    assert.equal((await server.exec(box.id, 'wc -c < x')).stdout.trim(), String(2 * MIB), 'control: another tenant is served');
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${box.id}`)).status, 204);
  };

  it('E155_bodies_that_are_not_finished_hold_no_more_than_the_tenants_share', async (t) => {
    const before = residentKib(server.frontPid);
    const head = `POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${HEAVY}\r\nContent-Type: application/json\r\nContent-Length: ${9 * MIB}\r\n\r\n`;
    const peers = [];
    for (let i = 0; i < 40; i++) {
      const peer = connect(t, head);
      peer.socket.write(Buffer.alloc(8 * MIB, ' '));
      peers.push(peer);
    }
    await until('the rest is refused', () => peers.filter((peer) => /^HTTP\/1.1 503/.test(peer.text)).length >= 32, 60000);
    const refused = peers.filter((peer) => peer.text);
    for (const peer of refused) assert.match(peer.text, /^HTTP\/1.1 503[^]*Retry-After: 1\r\n[^]*resource_exhausted/);
    const more = (residentKib(server.frontPid) - before) >> 10;
    assert.ok(more < 200, `${more} MiB for 40 bodies of 8 MiB`);
    await othersAreServed();
    assert.ok((await metric(server, 'http_requests_unaffordable_total')) >= 32);
    for (const peer of peers) peer.socket.destroy();
    await until('it is served again', async () => (await heavy('GET', '/v1/sandboxes')).status === 200);
  });

  /** A hundred sandboxes whose list has more than 6 MB. */
  async function makeLong() {
    const metadata = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`k${i}`, 'x'.repeat(1000)]));
    const boxes = [];
    for (let i = 0; i < 10; i++) {
      const made = await Promise.all(Array.from({ length: 10 }, () => heavy('POST', '/v1/sandboxes', { metadata })));
      for (const answer of made) boxes.push(answer.json.id);
    }
    return boxes;
  }

  /** Asks for a list on many connections and reads nothing; then says how the front has grown, and reads them all. */
  async function askAndWait(t, path, count, key = `Authorization: Bearer ${HEAVY}`) {
    const before = residentKib(server.frontPid);
    const ask = `GET ${path} HTTP/1.1\r\nHost: x\r\n${key}\r\nConnection: close\r\n\r\n`;
    const peers = Array.from({ length: count }, () => connect(t, ask, { reads: false }));
    let highest = 0;
    for (let i = 0; i < 5; i++) {
      await othersAreServed();
      highest = Math.max(highest, residentKib(server.frontPid));
    }
    for (const peer of peers) peer.socket.on('data', (data) => (peer.text ||= data.toString())).resume();
    await Promise.all(peers.map((peer) => new Promise((resolve) => (peer.socket.closed ? resolve() : peer.socket.once('close', resolve)))));
    const statuses = new Set(peers.map((peer) => peer.text.slice(9, 12)));
    return { more: (highest - before) >> 10, statuses: [...statuses] };
  }

  it('E155_lists_that_nobody_reads_are_written_in_pieces', async (t) => {
    const boxes = await makeLong();
    const { text } = await heavy('GET', '/v1/sandboxes?limit=100');
    assert.ok(text.length > 6 * 1000 * 1000, 'control: one list is served');
    assert.deepEqual(JSON.parse(text).sandboxes.map((box) => box.id).sort(), boxes.sort(), 'control: and whole');
    const { more, statuses } = await askAndWait(t, '/v1/sandboxes?limit=100', 30);
    assert.ok(more < 45, `${more} MiB for 30 lists of 6 MiB`);
    assert.deepEqual(statuses, ['200']);
    const e2b = await askAndWait(t, '/v2/sandboxes?limit=100', 30, `X-API-Key: ${HEAVY}`);
    assert.ok(e2b.more < 45, `${e2b.more} MiB for 30 lists of 6 MiB`);
    assert.deepEqual(e2b.statuses, ['200']);
    for (const id of boxes) await heavy('DELETE', `/v1/sandboxes/${id}`);
    const ended = await askAndWait(t, '/v1/sandboxes?limit=100&status=deleted', 30);
    assert.ok(ended.more < 45, `${ended.more} MiB for 30 lists of what has ended`);
    assert.deepEqual(ended.statuses, ['200']);
  });

  it('E155_lists_of_commands_with_long_arguments_are_read_in_slices', async (t) => {
    const box = (await heavy('POST', '/v1/sandboxes', {})).json;
    const command = ['true', ...Array.from({ length: 4 }, () => 'x'.repeat(120000))];
    const ids = [];
    for (let i = 0; i < 40; i++) ids.push((await heavy('POST', `/v1/sandboxes/${box.id}/exec`, { command })).json.executionId);
    const { json } = await heavy('GET', '/v1/executions?limit=100');
    assert.deepEqual(json.executions.map((x) => x.id), ids.reverse(), 'control: one list is whole, the newest first');
    assert.equal((await heavy('GET', '/v1/executions?limit=17')).json.executions.at(-1).id, ids[16], 'control: and so is a page');
    const { more, statuses } = await askAndWait(t, '/v1/executions?limit=100', 40);
    assert.ok(more < 200, `${more} MiB for 40 lists of 19 MiB`);
    assert.deepEqual(statuses, ['200']);
    await heavy('DELETE', `/v1/sandboxes/${box.id}`);
  });

  it('E155_answers_that_nobody_reads_hold_no_more_than_the_tenants_share', async (t) => {
    const boxes = await makeLong();
    const path = '/agentuity/sandbox?limit=100'; // a list that is counted is made whole
    const whole = () => heavy('GET', path);
    assert.ok((await whole()).text.length > 6 * 1000 * 1000, 'control: one list is served');
    const before = residentKib(server.frontPid);
    const ask = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${HEAVY}\r\n\r\n`;
    const peers = Array.from({ length: 120 }, () => connect(t, ask, { reads: false }));
    let refusal;
    await until('its share is used up', async () => (refusal = await whole()).status !== 200, 60000);
    assert.deepEqual([refusal.status, refusal.headers['retry-after']], [429, '1'], refusal.text.slice(0, 200));
    const more = (residentKib(server.frontPid) - before) >> 10;
    assert.ok(more < 250, `${more} MiB for 120 answers of 6 MiB`);
    await othersAreServed();
    for (const id of boxes) assert.equal((await heavy('DELETE', `/v1/sandboxes/${id}`)).status, 204, 'a delete is never refused for it');
    for (const peer of peers) peer.socket.destroy();
    await until('it is served again', async () => (await heavy('GET', '/v1/sandboxes')).status === 200);
  });

  it('E155_messages_in_WebSockets_count_like_bodies', async (t) => {
    const box = (await heavy('POST', '/v1/sandboxes', {})).json;
    const { id } = (await heavy('POST', `/v1/sandboxes/${box.id}/processes`, { command: ['cat'], openStdin: true })).json;
    const open = async () => {
      const socket = await Socket.open(server, `/v1/sandboxes/${box.id}/processes/${id}/output`, { key: HEAVY });
      t.after(() => socket.destroy());
      return socket;
    };
    const [large, small] = [await open(), await open()];
    const bytes = 100 * 1024;
    large.send(Buffer.alloc(bytes, 'y'));
    let echoed = 0;
    while (echoed < bytes) echoed += (await large.next()).data?.length ?? 0;
    const head = `POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${HEAVY}\r\nContent-Type: application/json\r\nContent-Length: ${9 * MIB}\r\n\r\n`;
    const peers = Array.from({ length: 7 }, () => connect(t, head));
    for (const peer of peers) peer.socket.write(Buffer.alloc(8 * MIB, ' '));
    const rest = connect(t, head);
    rest.socket.write(Buffer.alloc(8 * MIB - 32 * 1024, ' '));
    await until('a large message is refused', async () => {
      if (!large.closed) large.send(Buffer.alloc(bytes, 'z'));
      await sleep(100);
      return large.closed;
    }, 30000);
    assert.equal(large.closed.code, 1013);
    small.send(Buffer.from('small\n'));
    await small.readUntil('small');
    await othersAreServed();
    for (const peer of [...peers, rest]) peer.socket.destroy();
    await until('it is served again', async () => (await heavy('DELETE', `/v1/sandboxes/${box.id}`)).status === 204);
  });

  it('E155_large_JSON_is_parsed_beside_the_loop', async () => {
    const box = await server.create();
    const value = { metadata: { big: 'x'.repeat(60000) }, files: [{ path: 'big', content: 'x'.repeat(24 * MIB) }] };
    const body = JSON.stringify(value);
    let over = false;
    const works = [1, 2].map(async () => {
      for (let i = 0; i < 3; i++) {
        const answer = await heavy('POST', '/v1/sandboxes', body);
        assert.ok([201, 503].includes(answer.status), answer.text);
        if (answer.status === 201) await heavy('DELETE', `/v1/sandboxes/${answer.json.id}`);
      }
    });
    const work = Promise.all(works).finally(() => (over = true));
    let worst = 0;
    while (!over) {
      const began = performance.now();
      assert.equal((await server.exec(box.id, 'true')).exitCode, 0);
      worst = Math.max(worst, performance.now() - began);
    }
    await work;
    assert.ok(worst < 3000, `another tenant's exec took ${Math.round(worst)} ms`);
    const broken = await heavy('POST', '/v1/sandboxes', `${body.slice(0, -1)},`);
    assert.deepEqual([broken.status, broken.json.error.code], [400, 'invalid_json'], 'control: its errors are told');
  });

  it('E155_clients_that_leave_while_their_JSON_is_parsed_leave_nothing', async (t) => {
    const body = JSON.stringify({ files: [{ path: 'big', content: 'x'.repeat(20 * MIB) }] });
    for (let i = 0; i < 6; i++) {
      const { socket } = connect(t, `POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${HEAVY}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`);
      await new Promise((resolve) => socket.write(body, resolve));
      socket.destroy();
    }
    await until('nothing is left', async () => (await heavy('GET', '/v1/sandboxes')).json?.sandboxes?.length === 0, 30000);
    await othersAreServed();
  });
});
