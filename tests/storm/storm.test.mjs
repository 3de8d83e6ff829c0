// The disconnect storm: requests to every route of every API whose clients hang up within 30 ms, by RST. The server must go
// on, keep what nobody touched, and leave nothing behind. BUNKER_STORM_SEED repeats a storm's order and choices.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { listRoutes } from '../lib/routes.mjs';
import { Server, sleep } from '../lib/server.mjs';
import { LONG, assertHealthyLog, footprint } from '../system/support.mjs';
import * as requests from './requests.mjs';
import { World } from './world.mjs';

const SEED = Number(process.env.BUNKER_STORM_SEED ?? 20261118);
const SECONDS = LONG ? 300 : 12;
// How often each route is called at least, and one that makes or ends a sandbox.
const TIMES = LONG ? 60 : 8;
const RARE_TIMES = LONG ? 15 : 3;
const CLIENTS = 8;
const AREAS = { native: { 0: 'native' }, e2b: { 0: 'control', 1: 'envd', 2: 'code' }, agentuity: { 0: 'agentuity' }, preview: { 0: 'paths', 1: 'ports' } };
const PORTS = { envd: 49983, code: 49999, ports: 8080 };

/** The routes, each with the area of requests.mjs that has its request. */
function routesByArea() {
  return listRoutes().map(({ dialect, claim, method, pattern }) => {
    const area = AREAS[dialect]?.[claim];
    assert.ok(area, `nobody knows how to call ${method} ${pattern} of ${dialect}`);
    return { area, key: `${method.toLowerCase()} ${pattern}`, method: method === 'ANY' ? 'GET' : method, pattern };
  });
}

/** mulberry32: the same numbers for the same seed. */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('disconnect storm', { timeout: (SECONDS + 240) * 1000 }, () => {
  const random = generator(SEED);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const routes = routesByArea();
  const fired = new Map(routes.map((route) => [route, 0]));
  let server, world, before_;

  before(async () => {
    console.log(`# seed ${SEED}, ${routes.length} routes, ${SECONDS} s`);
    server = await Server.start({ args: ['--pool', '2'] });
    world = new World(server);
    await world.open(3);
  });
  after(() => server.destroy());

  /** What a placeholder of a route stands for. */
  function fill({ area, pattern }, request, v) {
    const id = pattern.startsWith('/v1/executions') ? v.execution : /\/templates\/\{id\}/.test(pattern) ? world.template : area === 'code' ? v.context : area === 'agentuity' ? `sbx_${v.id}` : v.id;
    const names = { ...world, ...v, id, name: 'STORM', port: '8080', token: 'none', alias: world.templateName, tag: 'v7', 'path*': request.path ?? 'home/user/f', 'rest**': '' };
    if (area === 'agentuity') Object.assign(names, { execution: `exe_${v.execution}`, job: `job_${v.job}`, snapshot: request.name ?? `snp_${world.snapshot}`, stream: request.name ?? v.stream, token: request.name });
    if (pattern.startsWith('/templates/uploads')) names.hash = '0'.repeat(64);
    return pattern.replace(/\{([^}]+)\}/g, (_, name) => {
      assert.ok(names[name] !== undefined, `nothing is known for {${name}} of ${pattern}`);
      return names[name];
    });
  }

  /** The bytes of a request: head and body. */
  function encode(route, request, v) {
    const headers = { host: `localhost:${server.port}`, ...request.headers };
    if (route.area in PORTS) Object.assign(headers, { 'e2b-sandbox-id': v.id, 'e2b-sandbox-port': PORTS[route.area], 'x-access-token': v.token });
    else if (route.pattern.includes('/volumecontent/')) headers.authorization = `Bearer ${world.volumeToken}`;
    if (!headers.authorization && route.area !== 'envd' && route.area !== 'code') headers.authorization = `Bearer ${server.key}`;
    const body = request.json === undefined ? Buffer.from(request.body ?? '') : Buffer.from(JSON.stringify(request.json));
    if (request.json !== undefined || request.type) headers['content-type'] = request.type ?? 'application/json';
    if (body.length || !['GET', 'DELETE'].includes(route.method)) headers['content-length'] = body.length;
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    return { head: Buffer.from(`${route.method} ${fill(route, request, v)}${request.query ?? ''} HTTP/1.1\r\n${lines.join('')}\r\n`), body };
  }

  const prepare = (route) => {
    const v = pick(world.victims);
    const request = requests[route.area][route.key](world, v, pick);
    return { request, ...encode(route, request, v) };
  };

  /** Sends a request, or its beginning, and resets the connection after 0 to 30 ms. */
  function fire(route) {
    const { head, body } = prepare(route);
    const cut = random() < 0.2 ? Math.floor(random() * body.length) : body.length;
    const ms = random() * 30;
    const reads = random() < 0.8;
    return new Promise((resolve) => {
      const socket = net.connect(server.port, '127.0.0.1', () => {
        socket.write(Buffer.concat([head, body.subarray(0, cut)]));
        fired.set(route, fired.get(route) + 1);
        setTimeout(() => socket.resetAndDestroy(), ms);
      });
      if (reads) socket.resume();
      socket.on('error', () => {});
      socket.on('close', resolve);
    });
  }

  /** The status that a request gets when its client waits for it. */
  function ask(route) {
    const { request, head, body } = prepare(route);
    return new Promise((resolve, reject) => {
      const socket = net.connect(server.port, '127.0.0.1', () => socket.write(Buffer.concat([head, body])));
      let text = '';
      socket.setTimeout(20000, () => socket.destroy(new Error(`${route.key}: no answer`)));
      socket.on('data', (data) => {
        text += data.toString('latin1');
        const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1];
        if (!status || (Number(status) >= 400 && !text.includes('}'))) return;
        socket.destroy();
        resolve({ status: Number(status), request, text });
      });
      socket.on('error', reject);
      socket.on('close', () => reject(new Error(`${route.key}: closed after '${text}'`)));
    });
  }

  it('there is a request for every route, and no other', () => {
    for (const area of Object.keys(requests))
      assert.deepEqual(routes.filter((r) => r.area === area).map((r) => r.key).sort(), Object.keys(requests[area]).sort(), `requests.mjs and the routes of ${area}`);
  });

  it('every request is one that the server takes', async () => {
    const bad = [];
    // Those that end things come last, and what they end is made anew.
    for (const route of [...routes].sort((a, b) => isRare(a) - isRare(b))) {
      const { status, request, text } = await ask(route);
      if (status >= 400 && !request.expect?.includes(status)) bad.push(`${route.area} ${route.key}: ${text.split('\r\n\r\n').pop()}`);
      if (request.rare) for (let slot = 0; slot < 2 * world.victims.length; slot++) await world.tend(slot);
    }
    // Every thread and every file that a server ever opens is open now.
    await world.close();
    before_ = await footprint(server, { pooled: 2, ms: 60000 });
    await world.open(3);
    assert.deepEqual(bad, []);
  });

  const isRare = (route) => Boolean(requests[route.area][route.key]?.(world, world.victims[0], pick).rare);

  it(`answers after ${SECONDS} s of clients that hang up`, async () => {
    const end = Date.now() + SECONDS * 1000;
    const common = routes.filter((route) => !isRare(route));
    const deck = routes.flatMap((route) => Array(isRare(route) ? RARE_TIMES : TIMES).fill(route));
    for (let i = deck.length - 1; i > 0; i--) {
      const k = Math.floor(random() * (i + 1));
      [deck[i], deck[k]] = [deck[k], deck[i]];
    }
    let storming = true;
    const client = async () => {
      while (deck.length || Date.now() < end) await fire(deck.pop() ?? pick(common));
    };
    const gardener = async () => {
      for (let slot = 0; storming; slot++) {
        await world.tend(slot).catch((error) => console.log(`# tending: ${error.message}`));
        if (slot % 10 === 9) await world.sweep().then(() => world.makeInput()).catch((error) => console.log(`# sweeping: ${error.message}`));
        await sleep(200);
      }
    };
    const tended = gardener();
    await Promise.all(Array.from({ length: CLIENTS }, client));
    storming = false;
    await tended;
    const total = [...fired.values()].reduce((sum, n) => sum + n, 0);
    console.log(`# ${total} requests were reset, at least ${Math.min(...fired.values())} of each route`);
    for (const [route, n] of fired) assert.ok(n >= (isRare(route) ? RARE_TIMES : TIMES), `${route.area} ${route.key} was sent ${n} times`);
    assert.equal((await server.request('GET', '/health')).status, 200);
    assertHealthyLog(server);
  });

  it('what nobody touched is as it was', async () => {
    const r = await server.exec(world.untouched.id, 'cat /home/user/kept');
    assert.deepEqual([r.exitCode, r.stdout], [0, 'kept']);
    const process = await world.call('GET', `/v1/sandboxes/${world.untouched.id}/processes/${world.waits.id}`);
    assert.equal(process.status, 'running');
  });

  it('nothing is left when the sandboxes are gone', async () => {
    await world.close();
    // Of what a client has left behind, the last goes by a timer.
    let now = await footprint(server, { pooled: 2, ms: 60000 });
    for (const end = Date.now() + 30000; JSON.stringify(now) !== JSON.stringify(before_) && Date.now() < end; await sleep(200)) now = await footprint(server, { pooled: 2 });
    assert.deepEqual(now, before_);
  });

  it('the server ends by itself, and no sanitizer has spoken', async () => {
    assertHealthyLog(server);
    const { code, signal } = await server.stop();
    assert.deepEqual({ code, signal }, { code: 0, signal: null });
    assertHealthyLog(server);
  });
});
