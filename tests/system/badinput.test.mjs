import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Server, until } from '../lib/server.mjs';
import { assertRefused, finish, list, metric } from './support.mjs';

const json = { 'content-type': 'application/json' };
const show = (value) => JSON.stringify(value).slice(0, 60);

/** Every kind of JSON value; a field that takes one of these kinds is tried with all the others. */
const samples = { boolean: true, number: 42, string: 'text', array: ['x'], object: { x: 'y' } };

describe('bad input', () => {
  let server;
  let box;
  before(async () => {
    server = await Server.start();
    box = await server.create({ name: 'bystander' });
    await server.exec(box.id, 'true');
  });
  after(() => finish(server));

  const counters = ['sandboxes', 'sandboxes_created_total', 'sandboxes_destroyed_total', 'executions_total', 'executions_running'];
  const state = async () => ({
    sandboxes: (await list(server)).map(({ id, name, executions, status }) => ({ id, name, executions, status })),
    counters: await Promise.all(counters.map((name) => metric(server, name))),
  });

  /** The request is refused like this, and nothing is different afterwards. */
  async function refused(send, status, code, field) {
    const before = await state();
    assertRefused(await send(), status, code, field);
    assert.deepEqual(await state(), before, 'a refused request has no effect');
  }
  const post = (path, body, headers) => () => server.request('POST', path, body, { headers });
  const create = (body) => post('/v1/sandboxes', body);
  const run = (body) => post('/v1/run', { command: 'true', ...body });
  const exec = (body) => post(`/v1/sandboxes/${box.id}/exec`, { command: 'true', ...body });
  const get = (path) => () => server.request('GET', path);
  /** As it is: no client that tidies the path up first. */
  const rawGet = (path) => async () => {
    const answer = await raw(server, [`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\nConnection: close\r\n\r\n`]);
    const [, status, type, text] = /^HTTP\/1\.1 (\d+) .*?\r\nContent-Type: (.*?)\r\n.*?\r\n\r\n(.*)$/s.exec(answer);
    return { status: Number(status), headers: { 'content-type': type }, text, json: JSON.parse(text) };
  };

  describe('a field of the wrong type', () => {
    const common = {
      template: ['string'], name: ['string'], description: ['string'], workdir: ['string'], project: ['string'],
      resources: ['object'], metadata: ['object'], env: ['object'], files: ['array'], user: ['string'],
    };
    const command = { cwd: ['string'], stdin: ['string'], stdinEncoding: ['string'], encoding: ['string'] };
    const calls = [
      ['create', create, { ...common, timeout: ['object'] }],
      ['run', run, { ...common, ...command, timeout: ['object', 'string'], command: ['array', 'string'] }],
      ['exec', exec, { ...command, env: ['object'], files: ['array'], user: ['string'], timeout: ['string'], command: ['array', 'string'] }],
    ];
    for (const [name, call, fields] of calls)
      for (const [field, kinds] of Object.entries(fields))
        it(`${name}: ${field} is no ${Object.keys(samples).filter((k) => !kinds.includes(k)).join(', ')}`, async () => {
          for (const [kind, value] of Object.entries(samples))
            if (!kinds.includes(kind)) await refused(call({ [field]: value }), 400, 'invalid_field', field);
        });

    const nested = [
      ['resources.memory', ['string', 'number'], (v) => ({ resources: { memory: v } })],
      ['resources.cpu', ['string', 'number'], (v) => ({ resources: { cpu: v } })],
      ['resources.pids', ['number'], (v) => ({ resources: { pids: v } })],
      ['resources.openFiles', ['number'], (v) => ({ resources: { openFiles: v } })],
      ['timeout.idle', ['string'], (v) => ({ timeout: { idle: v } })],
      ['timeout.execution', ['string'], (v) => ({ timeout: { execution: v } })],
      ['env.KEY', ['string'], (v) => ({ env: { KEY: v } })],
      ['files[0].path', ['string'], (v) => ({ files: [{ path: v, content: '' }] })],
      ['files[0].content', ['string'], (v) => ({ files: [{ path: '/tmp/x', content: v }] })],
      ['files[0].encoding', ['string'], (v) => ({ files: [{ path: '/tmp/x', content: '', encoding: v }] })],
      ['files[0].mode', ['string'], (v) => ({ files: [{ path: '/tmp/x', content: '', mode: v }] })],
    ];
    for (const [field, kinds, body] of nested)
      it(`create: ${field}`, async () => {
        for (const [kind, value] of Object.entries(samples))
          if (!kinds.includes(kind)) await refused(create(body(value)), 400, 'invalid_field', field);
      });
  });

  const table = (title, rows) =>
    describe(title, () => {
      for (const [name, send, status, code, field] of rows) it(name, () => refused(send(), status, code, field));
    });
  const rows = (what, values, send, status, code, field) =>
    values.map((value) => [`${what}: ${show(value)}`, () => send(value), status, code, field]);

  table('an unknown field', [
    ['create', () => create({ colour: 'red' }), 400, 'unknown_field', 'colour'],
    ['create: command is for run', () => create({ command: 'true' }), 400, 'unknown_field', 'command'],
    ['run', () => run({ Name: 'x' }), 400, 'unknown_field', 'Name'],
    ['exec', () => exec({ shell: true }), 400, 'unknown_field', 'shell'],
    ['resources', () => create({ resources: { gpu: 1 } }), 400, 'unknown_field', 'resources.gpu'],
    ['timeout', () => create({ timeout: { total: '1s' } }), 400, 'unknown_field', 'timeout.total'],
    ['a file', () => create({ files: [{ path: '/tmp/x', content: '', owner: 'root' }] }), 400, 'unknown_field', 'files[0].owner'],
    ['list', () => get('/v1/sandboxes?colour=red'), 400, 'unknown_field', 'colour'],
  ]);

  const durations = ['', '5', '-1s', '1x', 's', '1h-1m', ' 1s', '1 s', '1s ', '1.s', '.5s', '1e3s', '9'.repeat(30) + 's', '99999999h', '1s1', 'Infinity'];
  table('a wrong duration', [
    ...rows('timeout.idle', durations, (v) => create({ timeout: { idle: v } }), 400, 'invalid_field', 'timeout.idle'),
    ...rows('timeout.execution', ['', '-1s', '9999999h'], (v) => create({ timeout: { execution: v } }), 400, 'invalid_field', 'timeout.execution'),
    ...rows('exec timeout', durations, (v) => exec({ timeout: v }), 400, 'invalid_field', 'timeout'),
    ...rows('run timeout', ['', '-1s', 'soon'], (v) => run({ timeout: v }), 400, 'invalid_field', 'timeout'),
    ...rows('run timeout.execution', ['', 'soon'], (v) => run({ timeout: { execution: v } }), 400, 'invalid_field', 'timeout.execution'),
  ]);

  const sizes = ['', '-1Mi', '1', '0', 0, -5, '15Mi', 1.5, 1e300, '1Zi', '1 Gi', 'Mi', '1e3Mi', '9'.repeat(40), '1Mib', '100Ti', '64.1.1Mi', '0x40Mi'];
  table('a negative or absurd amount', [
    ...rows('memory', sizes, (v) => create({ resources: { memory: v } }), 400, 'invalid_field', 'resources.memory'),
    ...rows('cpu', ['', '0', 0, '-1', -0.5, '5m', '1x', 'm', 1e9, 1e300, '2000000m', '1 m'], (v) => create({ resources: { cpu: v } }), 400, 'invalid_field', 'resources.cpu'),
    ...rows('pids', [0, 1, -1, 1.5, 2 ** 40, -(2 ** 40)], (v) => create({ resources: { pids: v } }), 400, 'invalid_field', 'resources.pids'),
    ...rows('openFiles', [0, 1, 15, -1, 2.5, 2 ** 40], (v) => create({ resources: { openFiles: v } }), 400, 'invalid_field', 'resources.openFiles'),
    ...rows('run memory', ['-1Mi', '1'], (v) => run({ resources: { memory: v } }), 400, 'invalid_field', 'resources.memory'),
  ]);

  table('a template that does not exist', [
    ['create', () => create({ template: 'nope' }), 404, 'template_not_found', 'template'],
    ['run', () => run({ template: '../base' }), 404, 'template_not_found', 'template'],
    ['an empty one', () => create({ template: '' }), 400, 'invalid_field', 'template'],
  ]);

  table('a name', [
    ['that is taken', () => create({ name: 'bystander' }), 409, 'name_taken', 'name'],
    ['that is taken, for run', () => run({ name: 'bystander' }), 409, 'name_taken', 'name'],
    ...rows('that is none', ['a b', 'a/b', '-x', '.x', '_x', 'ü', 'a\nb', 'x'.repeat(64), '../x', 'a%b'], (v) => create({ name: v }), 400, 'invalid_field', 'name'),
    ['description too long', () => create({ description: 'x'.repeat(1025) }), 400, 'invalid_field', 'description'],
    ['project too long', () => create({ project: 'x'.repeat(129) }), 400, 'invalid_field', 'project'],
    ['metadata too long', () => create({ metadata: { x: 'y'.repeat(70000) } }), 400, 'invalid_field', 'metadata'],
  ]);

  const climbing = ['..', '../x', '/..', '/a/../b', 'a/..', '/tmp/../etc/passwd', '/tmp/x/..', './../x'];
  const file = (extra) => ({ files: [{ path: '/tmp/x', content: '', ...extra }] });
  table('a path', [
    ...rows('of a file that climbs', climbing, (v) => create(file({ path: v })), 400, 'invalid_field', 'files[0].path'),
    ...rows('of a file that climbs, for exec', climbing, (v) => exec(file({ path: v })), 400, 'invalid_field', 'files[0].path'),
    ...rows('workdir that climbs', climbing, (v) => create({ workdir: v }), 400, 'invalid_field', 'workdir'),
    ...rows('cwd that climbs', climbing, (v) => exec({ cwd: v }), 400, 'invalid_field', 'cwd'),
    ...rows('workdir that is no absolute path', ['', 'tmp', './tmp'], (v) => create({ workdir: v }), 400, 'invalid_field', 'workdir'),
    ...rows('cwd that is no absolute path', ['', 'tmp'], (v) => exec({ cwd: v }), 400, 'invalid_field', 'cwd'),
    ['that is empty', () => create(file({ path: '' })), 400, 'invalid_field', 'files[0].path'],
    ['that is too long', () => create(file({ path: `/${'x'.repeat(4096)}` })), 400, 'invalid_field', 'files[0].path'],
    ['with NUL', () => create(file({ path: '/tmp/a\0b' })), 400, 'invalid_json'],
    ['cwd with NUL', () => exec({ cwd: '/tmp\0/x' }), 400, 'invalid_json'],
    ['workdir with NUL', () => create({ workdir: '/tmp\0' }), 400, 'invalid_json'],
    ['command with NUL', () => exec({ command: ['echo', 'a\0b'] }), 400, 'invalid_json'],
    ['in the second file', () => create({ files: [{ path: '/tmp/a', content: '' }, { path: '../b', content: '' }] }), 400, 'invalid_field', 'files[1].path'],
  ]);

  table('a file', [
    ['without path', () => create({ files: [{ content: '' }] }), 400, 'missing_field', 'files[0].path'],
    ['without content', () => create({ files: [{ path: '/tmp/x' }] }), 400, 'missing_field', 'files[0].content'],
    ['that is no object', () => create({ files: ['/tmp/x'] }), 400, 'invalid_field', 'files'],
    ['of unknown encoding', () => create(file({ encoding: 'hex' })), 400, 'invalid_field', 'files[0].encoding'],
    ...rows('of bad mode', ['', '8', 'rwx', '77777', '-1', '0o644', ' 644'], (v) => create(file({ mode: v })), 400, 'invalid_field', 'files[0].mode'),
    ...rows('of bad base64', ['*', 'abc', 'YQ', 'YQ=', 'YQ==YQ=='], (v) => create(file({ content: v, encoding: 'base64' })), 400, 'invalid_field', 'files[0].content'),
    ['too many', () => create({ files: Array.from({ length: 1001 }, (_, i) => ({ path: `/tmp/${i}`, content: '' })) }), 400, 'invalid_field', 'files'],
  ]);

  table('a command', [
    ['that is missing', () => post(`/v1/sandboxes/${box.id}/exec`, {}), 400, 'missing_field', 'command'],
    ['that is missing, for run', () => post('/v1/run', {}), 400, 'missing_field', 'command'],
    ['that is null', () => exec({ command: null }), 400, 'missing_field', 'command'],
    ...rows('that is no command', [[], [''], [1], ['sh', null], [['sh']], ['sh', {}]], (v) => exec({ command: v }), 400, 'invalid_field', 'command'),
    ['with bad base64 for stdin', () => exec({ stdin: '*', stdinEncoding: 'base64' }), 400, 'invalid_field', 'stdin'],
    ['of unknown stdinEncoding', () => exec({ stdin: '', stdinEncoding: 'hex' }), 400, 'invalid_field', 'stdinEncoding'],
    ['of unknown encoding', () => exec({ encoding: 'latin1' }), 400, 'invalid_field', 'encoding'],
    ...rows('of bad user', ['', 'a b', 'a:b', 'a/b', 'root\n', 'x'.repeat(64)], (v) => exec({ user: v }), 400, 'invalid_field', 'user'),
    ...rows('with a bad variable name', ['', 'A=B', '1A', 'A B', 'A-B', 'é'], (v) => exec({ env: { [v]: 'x' } }), 400, 'invalid_field', 'env'),
    ['with too many variables', () => exec({ env: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`V${i}`, ''])) }), 400, 'invalid_field', 'env'],
  ]);

  table('a query', [
    ...rows('limit', ['0', '-1', '1001', 'ten', '', '1.5', '99999999999999999999', '+5', ' 5'], (v) => get(`/v1/sandboxes?limit=${encodeURIComponent(v)}`), 400, 'invalid_field', 'limit'),
    ...rows('status', ['nope', 'IDLE', ''], (v) => get(`/v1/sandboxes?status=${v}`), 400, 'invalid_field', 'status'),
    ...rows('cursor', ['x', '5', '5-short', '-', '5-'.padEnd(22, 'A'), '5-'.padEnd(23, 'a'), ''], (v) => get(`/v1/sandboxes?cursor=${v}`), 400, 'invalid_field', 'cursor'),
    ['with a bad escape', () => get('/v1/sandboxes?name=%zz'), 400, 'invalid_request'],
    ['with NUL', () => get('/v1/sandboxes?name=%00'), 400, 'invalid_request'],
  ]);

  const malformed = [
    '', ' ', '{', '}', '{"name"}', '{"name":}', '{"name":"x",}', '{,}', "{'name':'x'}", '{"name":"x"', '{"name":"x"}}', '{} {}', '{}x',
    '[]', '"x"', 'null', 'true', '12', '{"resources":{"pids":01}}', '{"resources":{"pids":1.}}', '{"resources":{"pids":+1}}', '{"resources":{"pids":NaN}}',
    '{"resources":{"pids":1e999}}', '{"name":"\t"}', '{"name":"\\x41"}', '{"name":"\\u00zz"}', '{"name":"\\ud800"}', '{"name":"\\udc00x"}',
    '\ufeff{}', '// comment\n{}', 'undefined', '{"metadata":{"a":tru}}', 'name=x',
  ];
  table('malformed JSON', [
    ...rows('create', malformed, (v) => post('/v1/sandboxes', v), 400, 'invalid_json'),
    ['a key twice', () => post('/v1/sandboxes', '{"name":"a","name":"b"}'), 400, 'invalid_json', 'name'],
    ['a key twice, further down', () => post('/v1/sandboxes', '{"env":{"A":"1","A":"2"}}'), 400, 'invalid_json', 'A'],
    ['invalid UTF-8', () => post('/v1/sandboxes', Buffer.from('{"name":"\xff\xfe"}', 'latin1')), 400, 'invalid_json'],
    ['overlong UTF-8', () => post('/v1/sandboxes', Buffer.from('{"name":"\xc0\xaf"}', 'latin1')), 400, 'invalid_json'],
    ['an encoded surrogate', () => post('/v1/sandboxes', Buffer.from('{"name":"\xed\xa0\x80"}', 'latin1')), 400, 'invalid_json'],
    ['NUL after the end', () => post('/v1/sandboxes', '{}\0'), 400, 'invalid_json'],
    ['NUL before the start', () => post('/v1/sandboxes', '\0{}'), 400, 'invalid_json'],
  ]);

  table('a bomb', [
    ['of arrays', () => post('/v1/sandboxes', '['.repeat(1_000_000)), 400, 'invalid_json'],
    ['of objects', () => post('/v1/sandboxes', '{"a":'.repeat(500_000)), 400, 'invalid_json'],
    ['that is closed again', () => post('/v1/sandboxes', `{"metadata":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`), 400, 'invalid_json'],
    ['of keys', () => post('/v1/sandboxes', `{"env":{${Array.from({ length: 100_000 }, (_, i) => `"K${i}":""`).join()}}}`), 400, 'invalid_json'],
    ['of values', () => post('/v1/run', `{"command":[${'1,'.repeat(5_000_000)}1]}`), 400, 'invalid_json'],
    ['of digits', () => post('/v1/sandboxes', `{"resources":{"pids":${'9'.repeat(1_000_000)}}}`), 400, 'invalid_json'],
  ]);

  table('a content type', [
    ...rows('', ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'multipart/form-data; boundary=x', '*/*', 'text/json'], (v) => post('/v1/sandboxes', '{}', { 'content-type': v }), 415, 'unsupported_media_type'),
    ['exec', () => post(`/v1/sandboxes/${box.id}/exec`, '{"command":"true"}', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type'],
    ['run', () => post('/v1/run', '{"command":"true"}', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type'],
  ]);

  it('takes JSON with a charset, and in any case', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset=UTF-8']) {
      const answer = await server.request('POST', '/v1/run', '{"command":"true"}', { headers: { 'content-type': type } });
      assert.equal(answer.status, 200, answer.text);
    }
    await until('the runs are gone', async () => (await metric(server, 'sandboxes')) === 1);
  });

  table('a route', [
    ...rows('that is not there', ['/v1', '/v9/sandboxes', '/V1/sandboxes', '/v1/sandboxes/', '/v1/sandbox', '/favicon.ico', `/v1/sandboxes/${'a'.repeat(20)}/nope`, '/v1/execution', '/health/'], (v) => get(v), 404, 'route_not_found'),
    ...rows('that plays tricks', ['/v1//sandboxes', '/./v1/sandboxes', '/v1/../v1/sandboxes', '/v1/%2e%2e/x', '/v1/sandboxes/%2Fetc', '/v1/sandboxes/%00', '/v1/%zz'], (v) => rawGet(v), 400, 'invalid_request'),
  ]);

  describe('a method that a route does not have', () => {
    const cases = [
      ['PUT', '/v1/sandboxes', ['GET', 'HEAD', 'OPTIONS', 'POST']],
      ['PUT', `/v1/sandboxes/${'a'.repeat(20)}`, ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH']],
      ['GET', `/v1/sandboxes/${'a'.repeat(20)}/exec`, ['OPTIONS', 'POST']],
      ['DELETE', '/v1/run', ['OPTIONS', 'POST']],
      ['POST', '/health', ['GET', 'HEAD', 'OPTIONS']],
      ['POST', '/metrics', ['GET', 'HEAD', 'OPTIONS']],
      ['DELETE', '/v1/templates', ['GET', 'HEAD', 'OPTIONS']],
      ['POST', `/v1/executions/${'a'.repeat(20)}`, ['GET', 'HEAD', 'OPTIONS']],
    ];
    for (const [method, path, allowed] of cases)
      it(`${method} ${path}`, () =>
        refused(async () => {
          const answer = await server.request(method, path);
          assert.deepEqual(answer.headers.allow?.split(', ').sort(), allowed);
          return answer;
        }, 405, 'method_not_allowed'));
  });

  describe('a body over the limit', () => {
    const limit = 32 << 20;
    for (const path of ['/v1/sandboxes', '/v1/run'])
      it(`is refused by ${path}`, () => refused(post(path, Buffer.alloc(limit + 1, 0x20), json), 413, 'body_too_large'));

    it('is refused before it was sent', async () => {
      const before = await state();
      const answer = await raw(server, [
        `POST /v1/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n`,
      ]);
      assert.match(answer, /^HTTP\/1\.1 413 /);
      assert.match(answer, /"body_too_large"/);
      assert.deepEqual(await state(), before);
    });

    it('is refused when it comes in chunks', async () => {
      const answer = await raw(server, [
        `POST /v1/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
        ...Array.from({ length: 40 }, () => `100000\r\n${' '.repeat(1 << 20)}\r\n`),
      ]);
      assert.match(answer, /^HTTP\/1\.1 413 /);
    });

    it('is not what 31 MiB are', async () => {
      const content = 'x'.repeat(31 << 20);
      const answer = await server.request('POST', '/v1/run', { command: 'wc -c < /tmp/f', files: [{ path: '/tmp/f', content }] });
      assert.equal(answer.status, 200, answer.text.slice(0, 300));
      assert.equal(answer.json.stdout, `${content.length}\n`);
    });
  });

  it('leaves the connection usable where it can', async () => {
    const head = `Host: x\r\nAuthorization: Bearer ${server.key}\r\n`;
    const answer = await raw(server, [
      `GET /nope HTTP/1.1\r\n${head}\r\n`,
      `POST /v1/sandboxes HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{`,
      `GET /health HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
    ]);
    assert.deepEqual([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map((m) => m[1]), ['404', '400', '200']);
  });

  it('gives every answer a request id', async () => {
    const a = await server.request('GET', '/nope');
    const b = await server.request('GET', '/health');
    assert.ok(a.headers['x-request-id']);
    assert.notEqual(a.headers['x-request-id'], b.headers['x-request-id']);
  });
});

/** Sends pieces as they are and returns all that comes back until the server closes. */
function raw(server, pieces) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(server.port, '127.0.0.1');
    let text = '';
    socket.setTimeout(15000, () => socket.destroy(new Error(`no end of the answer: ${text.slice(0, 300)}`)));
    socket.setEncoding('utf8');
    socket.on('data', (part) => (text += part));
    socket.on('error', (e) => (e.code === 'EPIPE' || e.code === 'ECONNRESET' ? resolve(text) : reject(e)));
    socket.on('end', () => {
      socket.destroy();
      resolve(text);
    });
    for (const piece of pieces) socket.write(piece);
  });
}
