// A file worker that was taken over answers every operation of every API in the wrong order, too often or too seldom. The front
// stays, the client gets an answer or loses its connection, and the sandbox has failed. The control is the same worker, honest.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { FILE_OP, RECORD, content, end, entry, frame, FRAME, hostile, pack, record, started } from '../lib/hostile.mjs';
import { Server, until } from '../lib/server.mjs';

const text = (path) => Buffer.byteLength(path);
const ENTRY = (mode) => record(RECORD.ENTRY, entry('/home/user/f', { size: 3, mode }));
const ATTRIBUTE = record(RECORD.ATTRIBUTE, pack('u32', 6, 'u32', 1, 'user.av'));
const CONTENT = (length) => record(RECORD.CONTENT, content(length));
const DATA = (bytes) => record(RECORD.DATA, Buffer.from(bytes));
const MATCH = record(RECORD.MATCH, pack('u64', 1, 'u32', 1, 'u32', 0, 'u32', 2, 'u32', 1, '/fx'));
const CHANGE = record(RECORD.CHANGE, pack('u64', 1, 'u32', 2, 'u32', 0, '/f'));
const READY = record(RECORD.READY);
const EVENT = record(RECORD.EVENT, pack('u32', 0, 'u32', 0, 'u32', text('/f'), 'u32', 0, '/f'));
const END = record(RECORD.END, end());

/** What an honest worker answers to an operation that goes well, before its END. */
const honest = {
  [FILE_OP.READ]: [ENTRY(), CONTENT(3), DATA('abc')],
  [FILE_OP.PACK]: [CONTENT(), DATA('x'.repeat(1024))],
  [FILE_OP.WATCH]: [READY, EVENT],
  [FILE_OP.GREP]: [MATCH, MATCH],
  [FILE_OP.REPLACE]: [CHANGE],
  [FILE_OP.ATTRIBUTES]: [ATTRIBUTE],
  [FILE_OP.LIST]: [ENTRY(), ENTRY()],
  [FILE_OP.FIND]: [ENTRY()],
  [FILE_OP.REMOVE]: [],
  [FILE_OP.UNPACK]: [],
  [FILE_OP.ROOT]: [],
};
const honestly = (op) => honest[op] ?? [ENTRY()];
const ONCE = [FILE_OP.READ, FILE_OP.PACK, FILE_OP.WATCH, FILE_OP.STAT, FILE_OP.MKDIR, FILE_OP.MOVE, FILE_OP.COPY, FILE_OP.CHMOD, FILE_OP.CHOWN, FILE_OP.SYMLINK, FILE_OP.WRITE];
const INPUT = [FILE_OP.WRITE, FILE_OP.UNPACK, FILE_OP.ATTRIBUTES];

/** Everything that makes no sense as the answer to an operation, by name. */
function lies(op) {
  const said = honestly(op);
  const types = said.map((r) => r.readUInt32LE(0));
  const strangers = { CONTENT: CONTENT(), MATCH, CHANGE, READY, EVENT, SYNCED: record(RECORD.SYNCED), DATA: DATA('x'), ENTRY: ENTRY() };
  const all = {};
  for (const [name, stranger] of Object.entries(strangers)) if (!types.includes(RECORD[name])) all[`${name}, which it does not have`] = [stranger, ...said, END];
  // Entries of an unpacked archive may be told.
  if (op === FILE_OP.UNPACK) delete all['ENTRY, which it does not have'];
  if (ONCE.includes(op)) {
    all['nothing but END'] = [END];
    all['its first record twice'] = [said[0], ...said, END];
  }
  if (said.length > 1 && types[0] !== types[1]) all['its second record first'] = [said[1], said[0], END];
  if (types.includes(RECORD.CONTENT)) all['CONTENT twice'] = [...said, CONTENT(3), DATA('abc'), END];
  if (op === FILE_OP.READ) {
    all['more than it promised'] = [ENTRY(), CONTENT(3), DATA('abcd'), END];
    all['more, in another piece'] = [ENTRY(), CONTENT(3), DATA('abc'), DATA('d'), END];
    all['less than it promised'] = [ENTRY(), CONTENT(3), DATA('ab'), END];
    all['much more than it promised'] = [ENTRY(), CONTENT(3), record(RECORD.DATA, Buffer.alloc(1 << 20), 2n ** 63n)];
  }
  return all;
}

const json = { 'content-type': 'application/json' };
const stream = { 'content-type': 'application/connect+json', 'connect-protocol-version': '1' };
const envelope = (message) => {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
};
const path = '/home/user/f';
const native = (method, op, where, body, headers) => ({ name: `${method} ${where.replace(/\?.*/, '')}`, op: FILE_OP[op], method, target: (id) => `/v1/sandboxes/${id}/${where}`, body, headers });
const agentuity = (method, op, where, body, headers) => ({ name: `Agentuity's ${method} ${where}`, op: FILE_OP[op], method, target: (id) => `/agentuity/fs${where.replace('ID', id)}`, body, headers });
const envd = (op, call, body, headers = json) => ({ name: `E2B's ${call}`, op: FILE_OP[op], method: 'POST', target: () => `/filesystem.Filesystem/${call}`, body, headers, envd: true });

const requests = [
  native('GET', 'READ', `files?path=${path}`),
  native('HEAD', 'STAT', `files?path=${path}`),
  native('PUT', 'WRITE', `files?path=${path}`, 'abc', { 'content-type': 'application/octet-stream' }),
  native('DELETE', 'REMOVE', `files?path=${path}`),
  native('GET', 'STAT', `fs/stat?path=${path}`),
  native('GET', 'STAT', `fs/exists?path=${path}`),
  native('GET', 'LIST', 'fs/list?path=/home'),
  native('GET', 'ATTRIBUTES', `fs/metadata?path=${path}`),
  native('GET', 'PACK', 'fs/tar?path=/etc'),
  native('GET', 'PACK', 'fs/tar?path=/etc&compression=gzip'),
  native('PUT', 'UNPACK', 'fs/tar?path=/tmp', Buffer.alloc(1024), { 'content-type': 'application/x-tar' }),
  native('GET', 'WATCH', 'fs/watch?path=/home'),
  native('POST', 'MKDIR', 'fs/mkdir', { path }),
  native('POST', 'MOVE', 'fs/move', { from: path, to: '/tmp/g' }),
  native('POST', 'COPY', 'fs/copy', { from: path, to: '/tmp/g' }),
  native('POST', 'REMOVE', 'fs/remove', { path }),
  native('POST', 'CHMOD', 'fs/chmod', { path, mode: '0644' }),
  native('POST', 'CHOWN', 'fs/chown', { path, owner: 'user' }),
  native('POST', 'SYMLINK', 'fs/symlink', { path, target: '/etc' }),
  native('POST', 'FIND', 'fs/find', { path: '/home', pattern: '*' }),
  native('POST', 'GREP', 'fs/grep', { path: '/home', pattern: 'x' }),
  native('POST', 'REPLACE', 'fs/replace', { path: '/home', pattern: 'x', replacement: 'y' }),
  native('POST', 'WRITE', 'fs/write', { files: [{ path, content: 'abc' }] }),
  native('PATCH', 'ATTRIBUTES', 'fs/metadata', { path, set: { a: 'b' } }),
  agentuity('GET', 'READ', `/ID?path=${path}`),
  agentuity('GET', 'LIST', '/list/ID?path=/home'),
  agentuity('POST', 'MKDIR', '/mkdir/ID', { path }),
  agentuity('POST', 'STAT', '/rm/ID', { path }),
  agentuity('POST', 'REMOVE', '/rm/ID', { path }),
  agentuity('POST', 'WRITE', '/ID', { files: [{ path, content: Buffer.from('abc').toString('base64') }] }),
  agentuity('GET', 'PACK', '/download/ID?path=/etc'),
  { name: "E2B's GET /files", op: FILE_OP.READ, method: 'GET', target: () => `/files?path=${path}`, envd: true },
  { name: "E2B's POST /files", op: FILE_OP.WRITE, method: 'POST', target: () => `/files?path=${path}`, body: 'abc', headers: { 'content-type': 'application/octet-stream' }, envd: true },
  envd('STAT', 'Stat', { path }),
  envd('MKDIR', 'MakeDir', { path }),
  envd('MOVE', 'Move', { source: path, destination: '/tmp/g' }),
  envd('REMOVE', 'Remove', { path }),
  envd('LIST', 'ListDir', { path: '/home' }),
  envd('WATCH', 'CreateWatcher', { path: '/home' }),
  envd('WATCH', 'WatchDir', envelope({ path: '/home' }), stream),
];

let server;
before(async () => {
  server = await Server.start({ args: ['--pool', '4'] });
});
after(() => server.destroy());

/** Answers one request after the other; `answer(op)` gives the records, with their END. */
const working = (answer, asked) => async (channel) => {
  await channel.send(frame(FRAME.STARTED, {}, started()));
  for (;;) {
    const request = await channel.record();
    const op = request.payload.readUInt32LE(0);
    asked.push(op);
    if (INPUT.includes(op)) while ((await channel.record()).type !== RECORD.END);
    await channel.send(...answer(op));
  }
};

/** One request to a sandbox whose workers are ours. What the client saw, and which operations were asked for. */
async function play(request, answer) {
  const box = await server.create();
  const asked = [];
  const headers = { ...request.headers };
  if (request.envd) {
    const token = (await server.request('POST', `/e2b/sandboxes/${box.id}/connect`, { timeout: 300 }, { headers: { 'x-api-key': server.key } })).json.envdAccessToken;
    Object.assign(headers, { 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': '49983', 'x-access-token': token });
  }
  const attacker = await hostile(server, box.id, { worker: working(answer, asked), restart: false });
  try {
    const seen = await server.request(request.method, request.target(box.id), request.body, { headers }).then((r) => r.status, (e) => e.code ?? e.message);
    await until('its status is known', async () => (await server.request('GET', `/v1/sandboxes/${box.id}`)).status === 200);
    return { seen, asked, status: (await server.request('GET', `/v1/sandboxes/${box.id}`)).json.status };
  } finally {
    attacker.restore();
    assert.equal((await server.request('DELETE', `/v1/sandboxes/${box.id}`)).status, 204);
  }
}

for (const request of requests)
  describe(request.name, () => {
    it('is answered when the worker is honest', { timeout: 60000 }, async () => {
      const { seen, asked, status } = await play(request, (op) => [...honestly(op), END]);
      assert.ok(asked.includes(request.op), `${asked} does not have ${request.op}`);
      assert.ok(seen >= 200 && seen < 300, `${seen}`);
      assert.notEqual(status, 'failed');
    });

    it('survives a worker that lies, and ends its sandbox', { timeout: 120000 }, async () => {
      const front = server.frontPid;
      for (const [name, answer] of Object.entries(lies(request.op))) {
        const { seen, status } = await play(request, (op) => (op === request.op ? answer : [...honestly(op), END]));
        assert.equal(server.frontPid, front, `${name}: the front died\n${server.log.text}`);
        assert.equal(status, 'failed', `${name}: ${seen}`);
      }
    });
  });
