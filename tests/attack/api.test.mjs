// K: the control plane.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { listRoutes } from '../lib/routes.mjs';
import { sleep } from '../lib/server.mjs';
import { Arena, LONG, random, showTimes } from './arena.mjs';

/** The server's own list, so that a route that is added is attacked from its first day on. */
const allRoutes = () => listRoutes().filter(({ dialect }) => dialect === 'native');

const closedRoutes = allRoutes().filter((route) => !route.open);
const openRoutes = allRoutes().filter((route) => route.open);
/** Those that take JSON and name nothing that is not there. */
const jsonRoutes = closedRoutes.filter(
  ({ method, pattern, streams, bodyless }) =>
    method === 'POST' && !streams && !bodyless && !pattern.replace(/^\/v1\/(sandboxes|executions)\/\{id\}/, '').includes('{'),
);
const randomId = () => [...Array(20)].map(() => '0123456789abcdefghijklmnopqrstuvwxyz'[Math.floor(Math.random() * 36)]).join('');

/** A body that the route would take, so that nothing but the attack can be what is refused. */
function bodyFor({ method, pattern }) {
  if (method !== 'POST') return undefined;
  return pattern === '/v1/sandboxes' ? {} : { command: ['true'] };
}

describe('K the control plane', () => {
  let arena;
  let server;
  let box;
  let execution;
  const key = `bnk_${random(20)}`;
  const otherKey = `bnk_${random(20)}`;
  let slowHead;

  before(async () => {
    arena = await Arena.open({ args: ['--api-key', `default=${key}`, '--api-key', `other=${otherKey}`] });
    server = arena.server;
    server.key = key;
    box = await arena.sandbox({ name: 'of-default' });
    execution = (await server.exec(box.id, ['echo', 'of default'])).executionId;
    slowHead = trickle(server.port, 'GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ', 'a', 500);
  });
  after(() => arena?.close());

  const sandboxIds = async (k = key) =>
    (await server.request('GET', '/v1/sandboxes', undefined, { key: k })).json.sandboxes.map((s) => s.id).sort();

  /** Nothing may have changed, and the server must be well. */
  async function assertNothingHappened(ids) {
    // The sandbox of a run that was answered may be on its way out.
    for (let i = 0; i < 100 && (await sandboxIds()).length > ids.length; i++) await sleep(20);
    assert.deepEqual(await sandboxIds(), ids);
    assert.equal((await server.request('GET', '/health')).status, 200);
    assert.ok(server.frontPid, 'the front is gone');
  }

  /** The head alone: some answers have no end. */
  const statusOf = (target) =>
    new Promise((resolve, reject) => {
      const req = http.get(server.url + target, { headers: { authorization: `Bearer ${key}` }, agent: false }, (res) => {
        resolve(res.statusCode);
        req.destroy();
      });
      req.on('error', reject);
    });

  const path = ({ pattern }, id) => pattern.replace('{id}', id);
  const idOf = ({ pattern }) => (pattern.includes('/executions/') ? execution : box.id);

  it('K110 the table of routes was found', () => {
    assert.ok(closedRoutes.length >= 9, JSON.stringify(closedRoutes));
    assert.deepEqual(openRoutes.map((route) => route.pattern), ['/health', '/']);
  });

  const wrongKeys = {
    'no key': {},
    'an empty bearer': { authorization: 'Bearer ' },
    'a bearer without a space': { authorization: 'Bearer' },
    'a key that nobody has': { authorization: `Bearer bnk_${random(20)}` },
    'a key that nobody has, in the other header': { 'x-api-key': `bnk_${random(20)}` },
    'an empty key': { 'x-api-key': '' },
    'the key with one character less': { authorization: `Bearer ${key.slice(0, -1)}` },
    'the key with one character more': { authorization: `Bearer ${key}0` },
    'the key in capitals': { authorization: `Bearer ${key.toUpperCase()}` },
    'the key with a space behind': { authorization: `Bearer ${key} x` },
    'two prefixes': { authorization: `Bearer bnk_${key}` },
    'another scheme': { authorization: `Basic ${Buffer.from(`x:${key}`).toString('base64')}` },
    'the bare key': { authorization: key },
    'garbage': { authorization: 'Bearer \u00ff\u00fe\u0080' },
    'a very long key': { authorization: `Bearer ${'a'.repeat(7000)}` },
    'a key of a path': { authorization: 'Bearer ../../../../api-key' },
    'a key in a cookie': { cookie: `key=${key}; authorization=Bearer ${key}` },
  };
  for (const route of closedRoutes)
    it(`K110 ${route.method} ${route.pattern} takes no wrong key`, async () => {
      const ids = await sandboxIds();
      for (const [what, headers] of Object.entries(wrongKeys))
        for (const method of route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]) {
          const r = await server.request(method, path(route, idOf(route)), bodyFor(route), { headers, key: '' });
          assert.equal(r.status, 401, `${method} with ${what}: ${r.status} ${r.text}`);
          if (method !== 'HEAD') assert.equal(r.json.error.code, 'unauthorized', what);
          assert.ok(!r.text.includes(box.id), `${what}: the answer names the sandbox`);
        }
      const inQuery = await server.request(route.method, `${path(route, idOf(route))}?key=${key}&api_key=${key}`, bodyFor(route), { key: '' });
      assert.equal(inQuery.status, 401);
      await assertNothingHappened(ids);
    });

  it('K110 the control: with the key each route answers', async () => {
    for (const route of closedRoutes.filter((r) => r.method === 'GET')) {
      const status = await statusOf(path(route, idOf(route)));
      assert.ok(status === 200 || status === 400 || status === 404, `${route.pattern}: ${status}`);
      if (['/v1/sandboxes', '/v1/sandboxes/{id}', '/v1/executions/{id}', '/v1/templates'].includes(route.pattern)) assert.equal(status, 200, route.pattern);
    }
  });

  it('K110 /health is open and tells no secret', async () => {
    const r = await server.request('GET', '/health', undefined, { key: '' });
    assert.equal(r.status, 200);
    for (const secret of [key, otherKey, box.id, server.data, arena.secret]) assert.ok(!r.text.includes(secret));
  });

  it('K111 keys are kept as hashes, and the file for the CLI is for root only', () => {
    for (const directory of ['front', 'front/spool', '.'])
      for (const name of readdirSync(join(server.data, directory))) {
        const file = join(server.data, directory, name);
        // The disks of the sandboxes are what the sandboxes wrote.
        if (!statSync(file).isFile() || name === 'api-key' || name === 'disks.btrfs') continue;
        const bytes = readFileSync(file, 'latin1');
        for (const k of [key, otherKey]) assert.ok(!bytes.includes(k.slice(4)), `${file} holds a key`);
      }
    const st = statSync(join(server.data, 'api-key'));
    assert.equal(st.mode & 0o777, 0o600);
    assert.equal(st.uid, 0);
    assert.ok(!server.log.text.includes(key.slice(4)), 'the log holds a key');
  });

  it('K111 how much of a key is right does not show in the time', async (t) => {
    const nearly = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
    const far = `bnk_${'z'.repeat(40)}`;
    const times = { nearly: [], far: [] };
    for (let i = 0; i < 600; i++)
      for (const [name, k] of i % 2 ? [['nearly', nearly], ['far', far]] : [['far', far], ['nearly', nearly]]) {
        const from = process.hrtime.bigint();
        await server.request('GET', '/v1/templates', undefined, { key: k });
        times[name].push(Number(process.hrtime.bigint() - from) / 1e3);
      }
    const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
    const [a, b] = [median(times.nearly), median(times.far)];
    t.diagnostic(`median ${a.toFixed(1)} µs when nearly right, ${b.toFixed(1)} µs when far off`);
    assert.ok(Math.abs(a - b) < Math.max(50, 0.25 * Math.min(a, b)), `${a} µs and ${b} µs`);
  });

  const visible = (r, id) => {
    const headers = { ...r.headers };
    for (const name of ['date', 'x-request-id', 'connection', 'keep-alive']) delete headers[name];
    return { status: r.status, headers, text: r.text.replaceAll(id, 'ID') };
  };
  const bodies = {
    'a good body': (route) => [bodyFor(route)],
    'no JSON': (route) => (bodyFor(route) ? ['{'] : [undefined]),
    'an unknown field': (route) => (bodyFor(route) ? [{ nonsense: 1 }] : [undefined]),
    'another type': (route) => (bodyFor(route) ? ['x', { 'content-type': 'text/plain' }] : [undefined]),
  };
  for (const route of closedRoutes.filter((r) => r.pattern.includes('{id}')))
    it(`K112 ${route.method} ${route.pattern}: what belongs to another tenant does not exist`, async () => {
      const ids = await sandboxIds();
      const id = idOf(route);
      assert.ok(ids.includes(box.id), 'the control: there is nothing to be found');
      for (const [what, make] of Object.entries(bodies))
        for (const query of route.method === 'GET' ? ['', '?wait=100ms', '?encoding=base64', '?encoding=nonsense', '?wait=nonsense'] : [''])
          for (const method of route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]) {
            const [body, headers] = make(route);
            const ask = async (i) => visible(await server.request(method, path(route, i) + query, body, { headers, key: otherKey }), i);
            const theirs = await ask(id);
            const nobodys = await ask(randomId());
            assert.deepEqual(theirs, nobodys, `${what} ${query}`);
            // What sandboxes that are gone have left is listed, too: of an unknown one that is nothing.
            const empty = theirs.status === 200 && /^\{"\w+":\[\]\}$/.test(theirs.text || '{"head":[]}');
            assert.ok(empty || (theirs.status >= 400 && theirs.status < 500), `${theirs.status} ${theirs.text}`);
          }
      await assertNothingHappened(ids);
    });

  it('K112 lists and names are per tenant', async () => {
    assert.deepEqual(await sandboxIds(otherKey), []);
    for (const query of ['?name=of-default', '?status=idle', '?limit=1000', `?cursor=0-${box.id}`])
      assert.ok(!(await server.request('GET', `/v1/sandboxes${query}`, undefined, { key: otherKey })).text.includes(box.id));
    const same = await server.request('POST', '/v1/sandboxes', { name: 'of-default' }, { key: otherKey });
    assert.equal(same.status, 201, 'that a name is taken tells that somebody has it');
    assert.deepEqual(await sandboxIds(otherKey), [same.json.id]);
    assert.ok(!(await sandboxIds()).includes(same.json.id));
    await server.request('DELETE', `/v1/sandboxes/${same.json.id}`, undefined, { key: otherKey });
  });

  it("K112 the counters tell nothing of another tenant's sandboxes", async () => {
    const count = async () =>
      /^bunker_sandboxes (\d+)$/m.exec((await server.request('GET', '/metrics', undefined, { key: otherKey })).text)?.[1];
    const before_ = await count();
    const made = await server.create({});
    const after_ = await count();
    await arena.remove(made);
    assert.equal(after_, before_, 'a tenant can count the sandboxes of the others');
  });

  // ---- 115: what should not be read to its end ----

  it('K115 a thousand requests that never end do not hold up the others', async (t) => {
    const ids = await sandboxIds();
    const body = `POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
    const halves = ['GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ', body, 'GET /v1/sandboxes HTT', ''];
    const open = [];
    try {
      for (let i = 0; i < 1000; i++) open.push(trickle(server.port, halves[i % halves.length], halves[i % halves.length] ? 'a' : '', 700));
      await Promise.all(open.map((c) => c.connected));
      const probe = arena.probe(box);
      await sleep(2000);
      const times = await probe.stop();
      t.diagnostic(`health ${showTimes(times.health)}; exec ${showTimes(times.exec)}; front ${arena.frontMemory().now.toFixed(1)} MB`);
      assert.ok(times.health.median < 100);
      assert.ok(arena.frontMemory().now < 64, `the front has ${arena.frontMemory().now} MB`);
    } finally {
      for (const c of open) c.close();
    }
    await assertNothingHappened(ids);
  });

  it('K115 a body that trickles is cut in the end', { skip: LONG ? false : 'takes minutes: BUNKER_LONG=1', timeout: 400000 }, async () => {
    const head = `POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
    const c = trickle(server.port, head, ' ', 20000);
    const ended = await Promise.race([c.ended, sleep(300000).then(() => undefined)]);
    c.close();
    assert.match(ended ?? 'still open after five minutes', /^HTTP\/1\.1 408 /);
  });

  const tooLarge = {
    'by its length': `Content-Length: ${64 << 20}\r\n\r\n`,
    'by a length near 2^63': 'Content-Length: 9223372036854775807\r\n\r\n',
    'by the size of its first chunk': 'Transfer-Encoding: chunked\r\n\r\n4000000\r\n',
  };
  for (const [what, rest] of Object.entries(tooLarge))
    it(`K115 a body that is too large, ${what}, is refused before it comes`, async () => {
      const ids = await sandboxIds();
      for (const route of jsonRoutes) {
        const head = `POST ${path(route, idOf(route))} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n${rest}`;
        const answer = await raw(server.port, head);
        assert.match(answer, /^HTTP\/1\.1 413 /, `${route.pattern}: ${answer.slice(0, 200)}`);
        assert.match(answer, /"code":"body_too_large"/);
      }
      await assertNothingHappened(ids);
    });

  it('K115 a length that is no number is refused', async () => {
    const head = `POST /v1/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
    for (const length of ['-1', '+1', '0x10', '1,1', '1 1', '18446744073709551616', '99999999999999999999999', '1e3', ''])
      assert.match(await raw(server.port, `${head}Content-Length: ${length}\r\n\r\n`), /^HTTP\/1\.1 400 /, length);
  });

  const badJson = {
    '100,000 levels of lists': '['.repeat(100000),
    '100,000 levels of objects': '{"a":'.repeat(100000),
    '100,000 levels below metadata': `{"command":["true"],"metadata":{"a":${'['.repeat(100000)}${']'.repeat(100000)}}}`,
    'a key twice': '{"command":["true"],"command":["false"]}',
    'a key twice, once escaped': '{"command":["true"],"comm\\u0061nd":["false"]}',
    'a key twice, further down': '{"command":["true"],"env":{"A":"1","A":"2"}}',
    '1e400': '{"command":["true"],"resources":{"pids":1e400}}',
    '-1e400': '{"command":["true"],"metadata":{"a":-1e400}}',
    'NaN': '{"command":["true"],"resources":{"pids":NaN}}',
    'Infinity': '{"command":["true"],"resources":{"pids":Infinity}}',
    'a lone high surrogate': '{"command":["echo","\\ud800"]}',
    'a lone low surrogate': '{"command":["echo","\\udc00"]}',
    'surrogates in the wrong order': '{"command":["echo","\\udc00\\ud800"]}',
    'NUL escaped': '{"command":["echo","a\\u0000b"]}',
    'NUL in a key': '{"command":["true"],"env":{"A\\u0000B":"1"}}',
    'NUL as it is': Buffer.from('{"command":["echo","a\0b"]}'),
    'a control character': '{"command":["echo","a\u0001b"]}',
    'text that is not UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    'overlong UTF-8': Buffer.concat([Buffer.from('{"command":["echo","'), Buffer.from([0xc0, 0xaf]), Buffer.from('"]}')]),
    'a byte order mark': '\ufeff{"command":["true"]}',
    'two values': '{"command":["true"]} {"command":["true"]}',
    'a comment': '{"command":["true"]/* */}',
    'a comma too many': '{"project":"x","command":["true"],}',
    'single quotes': "{'command':['true']}",
    'a number as the body': '1',
    'a list as the body': '["true"]',
    'null as the body': 'null',
    'nothing': '',
    'blanks': '   ',
    'a string without end': '{"command":["true',
    'a leading zero': '{"command":["true"],"resources":{"pids":012}}',
    '200,000 values': `{"command":["true"],"metadata":{"a":[${'1,'.repeat(200000)}1]}}`,
    '20,000 keys': `{"command":["true"],"metadata":{${[...Array(20000).keys()].map((i) => `"k${i}":1`).join(',')}}}`,
  };
  for (const [what, text] of Object.entries(badJson))
    it(`K115 ${what} is refused as JSON`, async () => {
      const ids = await sandboxIds();
      for (const route of jsonRoutes.filter((r) => what !== 'nothing' || /\/(sandboxes|exec|run|processes|jobs)$/.test(r.pattern))) {
        const from = Date.now();
        const body = route.pattern === '/v1/sandboxes' && typeof text === 'string' ? text.replace(/"command":\["[^"]*"(,"[^"]*")?\],/, '') : text;
        const r = await server.request('POST', path(route, idOf(route)), body);
        assert.equal(r.status, 400, `${route.pattern}: ${r.status} ${r.text.slice(0, 200)}`);
        assert.match(r.json.error.code, /^(invalid_json|unknown_field|invalid_field)$/, route.pattern);
        assert.ok(Date.now() - from < 10000, `it took ${Date.now() - from} ms`);
      }
      await assertNothingHappened(ids);
    });

  it('K115 a head that trickles is cut after its ten seconds', { timeout: 20000 }, async () => {
    const ended = await Promise.race([slowHead.ended, sleep(14000).then(() => undefined)]);
    assert.match(ended ?? 'it is still open', /^HTTP\/1\.1 408 /);
  });

  // ---- 117 ----

  const confusing = (list, id) => [
    `/v1//${list}`, `//v1/${list}`, `/v1/${list}/`, `/v1/${list}//`, `/v1/./${list}`, `/v1/../v1/${list}`, `/v1/x/../${list}`,
    `/health/../v1/${list}`, `/health/..%2fv1/${list}`, `/health%2f..%2fv1%2f${list}`, `/v1/${list}/.`, `/v1/${list}/..`,
    `/v1/%2e/${list}`, `/v1/%2e%2e/v1/${list}`, `/v1/${list}/%2e%2e/`, `/v1%2f${list}`, `/v1/${list}%2f`, `/v1/${list}%00`,
    `/v1/${list}%00/${id}`, `/v1/${list}%0d%0aX:1`, `/V1/${list}`, `/v1/${list.toUpperCase()}`, `/v1/${list};a=b`, `/v1/${list}.`,
    `/v1/${list}.json`, `/v1/${list}%20`, `/v1/${list}%`, `/v1/${list}%2`, `/v1/${list}%zz`, `/v1\\${list}`, `/v1/${list}#x`,
    `/v1/${list}\\..`, `/v1/%ef%bc%8e%ef%bc%8e/${list}`, `/v1/${list}/${id}/..`, `/v1/${list}/${id}%2f..`, `/v1/${list}/${id}/`,
    `/v1/${list}/${id}%00`, `/v1/${list}/${id}%20`, `/v1/${list}/${id}.`, `/v1/${list}/${id.toUpperCase()}`, `/v1/${list}/${id}/exec/`,
    `/v1/${list}/../${list}/${id}`, `/v1/${list}/*`, `/v1/${list}/{id}`, `/v1/${list}/%2e%2e%2f${list}%2f${id}`, 'v1/sandboxes', '*',
    `http://127.0.0.1/v1/${list}`, `http://evil.example/v1/${list}`, `@127.0.0.1/v1/${list}`, `/v1/${list}/${id.slice(0, 19)}`, `/v1/${list}/${id}a`,
  ];

  it('K117 a path that could be read in two ways is refused in every way', async () => {
    const ids = await sandboxIds();
    const wrong = [];
    const ask = (method, target, more) => raw(server.port, `${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);
    const statusOf = (answer) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
    for (const target of confusing('sandboxes', box.id))
      for (const method of ['GET', 'DELETE']) {
        const without = statusOf(await ask(method, target, ''));
        const withKey = statusOf(await ask(method, target, `Authorization: Bearer ${key}\r\n`));
        if (![400, 401, 404, 405].includes(without)) wrong.push(`${method} ${target} without a key: ${without}`);
        if (![400, 404, 405].includes(withKey)) wrong.push(`${method} ${target} with the key: ${withKey}`);
      }
    assert.deepEqual(wrong, []);
    await assertNothingHappened(ids);
    assert.equal(statusOf(await ask('GET', '/v1/sandboxes', `Authorization: Bearer ${key}\r\n`)), 200, 'the control');
    assert.equal(statusOf(await ask('GET', '/v1/s%61ndboxes', `Authorization: Bearer ${key}\r\n`)), 200, 'the control: decoded once');
    assert.equal(statusOf(await ask('GET', '/v1/s%2561ndboxes', `Authorization: Bearer ${key}\r\n`)), 404, 'not decoded twice');
  });

  it('K117 a key that comes twice, or in pieces, opens nothing', async () => {
    const wrong = `bnk_${random(20)}`;
    for (const [lines, expected] of [
      [`Authorization: Bearer ${wrong}\r\nAuthorization: Bearer ${wrong}\r\n`, 401],
      [`Authorization:\r\n Bearer ${key}\r\n`, 400],
      [`Authorization : Bearer ${key}\r\n`, 400],
      [`X-A: b\nAuthorization: Bearer ${key}\r\n`, 400],
      [`X-A: b\rAuthorization: Bearer ${key}\r\n`, 400],
      [`X-A: \0\r\nAuthorization: Bearer ${key}\r\n`, 400],
    ]) {
      const answer = await raw(server.port, `GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}\r\n`);
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${expected} `), JSON.stringify(lines));
    }
  });

  // ---- 118 ----

  const numbers = [0, -1, 1.5, -0.0000001, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 53 + 2, 2 ** 54, 2 ** 63, 2 ** 64, 1e308, -(2 ** 63)];
  const words = ['', '0', '-1', '+1', ' 1', '1 ', '0x10', '1e9', '4294967296', '18014398509481984', '9223372036854775807', '9223372036854775808',
    '18446744073709551616', '99999999999999999999999999', '1.5', '1.', '.5', 'NaN', 'inf', '1Ei', '9223372036854775807Ti', '1Mi1Mi', '٣'];
  const durations = ['', '0', '0s', '-1s', '1', '1d', '4294967296s', '18014398509481984ms', '9223372036854775807ms', '9223372036854775808ms',
    '9223372036854775807h', '1h1', '1.5.5s', '1e3s', ' 1s', '99999999999999999999s', 'NaNs', '1s\n'];
  const sane = { memory: [16 << 20, 2 ** 46], cpu: [10, 1024000], pids: [2, 2 ** 22], openFiles: [16, 2 ** 20] };

  /** A sandbox that was made all the same must have limits that make sense. */
  async function judgeCreate(what, r) {
    if (r.status === 400) {
      assert.match(r.json.error.code, /^invalid_(field|json)$/, what);
      return;
    }
    assert.equal(r.status, 201, `${what}: ${r.status} ${r.text}`);
    try {
      const had = r.json.resources;
      const amounts = { memory: bytesOf(had.memory), cpu: parseInt(had.cpu, 10), pids: had.pids, openFiles: had.openFiles };
      for (const [name, [min, max]] of Object.entries(sane))
        assert.ok(amounts[name] >= min && amounts[name] <= max, `${what}: ${name} became ${had[name]}`);
      assert.equal((await server.exec(r.json.id, ['true'])).exitCode, 0, what);
    } finally {
      await arena.remove(r.json);
    }
  }

  for (const field of Object.keys(sane))
    it(`K118 resources.${field} takes numbers that make sense`, async () => {
      const ids = await sandboxIds();
      for (const value of [...numbers, ...words, true, [], {}, [1]]) {
        const what = `resources.${field} = ${JSON.stringify(value)}`;
        await judgeCreate(what, await server.request('POST', '/v1/sandboxes', { resources: { [field]: value } }));
      }
      for (const literal of ['18446744073709551616', '9223372036854775807', '9223372036854775808', '-9223372036854775809', '1E+2', '1e-400', '-0', '0.1e1'])
        await judgeCreate(literal, await server.request('POST', '/v1/sandboxes', `{"resources":{"${field}":${literal}}}`));
      await assertNothingHappened(ids);
    });

  it('K118 timeouts take durations that make sense', async () => {
    const ids = await sandboxIds();
    for (const value of [...durations, ...numbers, true, []]) {
      const text = JSON.stringify(value);
      await judgeCreate(`timeout.execution = ${text}`, await server.request('POST', '/v1/sandboxes', { timeout: { execution: value } }));
      if (!['0', '0s'].includes(value))
        await judgeCreate(`timeout.idle = ${text}`, await server.request('POST', '/v1/sandboxes', { timeout: { idle: value } }));
      for (const [route, body] of [[`/v1/sandboxes/${box.id}/exec`, {}], ['/v1/run', {}]]) {
        const r = await server.request('POST', route, { ...body, command: ['true'], timeout: value });
        assert.ok(r.status === 400 || (r.status === 200 && r.json.exitCode === 0), `${route} timeout ${text}: ${r.status} ${r.text}`);
      }
    }
    await assertNothingHappened(ids);
  });

  it('K118 numbers in queries and modes make sense', async () => {
    const ids = await sandboxIds();
    for (const value of words) {
      for (const query of ['limit', 'cursor']) {
        const r = await server.request('GET', `/v1/sandboxes?${query}=${encodeURIComponent(value)}`);
        const fine = r.status === 400 || (r.status === 200 && query === 'limit' && /^\d+$/.test(value) && Number(value) >= 1 && Number(value) <= 1000);
        assert.ok(fine, `${query}=${value}: ${r.status}`);
      }
      const from = Date.now();
      const r = await server.request('GET', `/v1/executions/${execution}?wait=${encodeURIComponent(value)}`);
      assert.ok([200, 400].includes(r.status) && Date.now() - from < 10000, `wait=${value}: ${r.status}`);
    }
    for (const mode of ['', '8', '-1', '77777', '0o644', '+644', ' 644', '644 ', '1777777777777777777777', 'rwx', '10000']) {
      const files = [{ path: '/tmp/mode', content: '', mode }];
      const r = await server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: ['true'], files });
      assert.equal(r.status, 400, `mode ${JSON.stringify(mode)}: ${r.text}`);
    }
    await assertNothingHappened(ids);
  });

  it('K118 a user that is a number is one of the sandbox', async () => {
    for (const user of ['-1', '65536', '4294967295', '4294967296', '18446744073709551616', '1e3', '0x0', ' 0', '']) {
      const r = await server.request('POST', `/v1/sandboxes/${box.id}/exec`, { command: ['id', '-u'], user });
      assert.equal(r.status, 400, `user ${JSON.stringify(user)}: ${r.text}`);
    }
    assert.equal((await server.exec(box.id, { command: ['id', '-u'], user: '65534' })).stdout, '65534\n');
  });

  // ---- 119 ----

  it('K119 ids are long, drawn evenly, and never come twice', async (t) => {
    const boxes = await Promise.all([...Array(32)].map(() => server.create({})));
    const executions = await Promise.all([...Array(64)].map(() => server.exec(box.id, ['true'])));
    const requests = await Promise.all([...Array(64)].map(() => server.request('GET', '/health')));
    await Promise.all(boxes.map((b) => arena.remove(b)));
    const ids = [...boxes.map((b) => b.id), ...executions.map((x) => x.executionId)];
    for (const id of ids) assert.match(id, /^[a-z0-9]{20}$/);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(new Set(requests.map((r) => r.headers['x-request-id'])).size, requests.length);
    const expected = (ids.length * 20) / 36;
    const counts = new Map();
    for (const c of ids.join('')) counts.set(c, (counts.get(c) ?? 0) + 1);
    let chi = 0;
    for (const c of 'abcdefghijklmnopqrstuvwxyz0123456789') chi += ((counts.get(c) ?? 0) - expected) ** 2 / expected;
    t.diagnostic(`${ids.length} ids, chi-square ${chi.toFixed(1)} with 35 degrees of freedom`);
    assert.ok(chi < 100, `the characters are not drawn evenly: chi-square ${chi}`);
    for (let at = 0; at < 20; at++) assert.ok(new Set(ids.map((id) => id[at])).size > 15, `place ${at} hardly changes`);
    const sorted = [...ids].sort();
    for (let i = 1; i < sorted.length; i++) assert.notEqual(sorted[i].slice(0, 8), sorted[i - 1].slice(0, 8), 'two ids begin alike');
  });

  it('K110 a key that was taken away opens nothing', async () => {
    assert.equal((await server.request('GET', '/v1/sandboxes', undefined, { key: otherKey })).status, 200, 'the control');
    await server.stop();
    server.args = ['--api-key', `default=${key}`];
    await server.launch();
    server.key = key;
    for (const route of closedRoutes) {
      const r = await server.request(route.method, path(route, idOf(route)), bodyFor(route), { key: otherKey });
      assert.equal(r.status, 401, `${route.pattern}: ${r.text}`);
    }
  });

  it('K the server did not stumble', () => {
    arena.canaries.assertUnharmed();
    assert.doesNotMatch(server.log.text, /the front died|Sanitizer|runtime error/);
    assert.ok(existsSync(`/proc/${server.frontPid}`));
  });
});

function bytesOf(text) {
  const [, number, unit] = /^(\d+)(Ki|Mi|Gi|Ti)?$/.exec(text);
  return Number(number) * 1024 ** ['', 'Ki', 'Mi', 'Gi', 'Ti'].indexOf(unit ?? '');
}

/** Sends bytes as they are; resolves with what came until the other side closed or was silent for a second. */
function raw(port, bytes) {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('latin1');
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('data', (data) => {
      text += data;
      // A refusal closes the connection only after a while; the answer is all that matters.
      if (/\r\n\r\n/.test(text) && /^HTTP\/1\.1 [45]/.test(text)) socket.destroy();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', (error) => (text ? resolve(text) : reject(error)));
  });
}

/** Opens with some bytes and adds one more every now and then. */
function trickle(port, first, byte, ms) {
  const socket = net.connect(port, '127.0.0.1');
  let text = '';
  let timer;
  socket.setEncoding('latin1');
  socket.on('data', (data) => (text += data));
  socket.on('error', () => {});
  const connected = new Promise((resolve) => {
    socket.on('connect', () => {
      if (first) socket.write(first);
      if (byte) timer = setInterval(() => socket.write(byte), ms);
      resolve();
    });
    socket.on('close', resolve);
  });
  const ended = new Promise((resolve) => {
    socket.on('end', () => resolve(text));
    socket.on('close', () => resolve(text));
  });
  ended.then(() => clearInterval(timer));
  return { connected, ended, close: () => (clearInterval(timer), socket.destroy()) };
}
