// One plausible request for every route of every API. A route that the server has and that is not here fails the suite.
//
// Keys are `method path` as `test_routes list` prints them, below the area that serves them. A value makes the request:
// { query, json | body + type, headers, rare, expect }. `w` is the world, `v` one of its sandboxes, `pick` chooses.
// `rare`: it makes or ends things as large as a sandbox; it is sent less often. `expect`: what it may answer besides
// success when nobody hangs up.
import { createHash } from 'node:crypto';
import { file, tar } from '../lib/images.mjs';

const FILE = '/home/user/f';
const at = (path = FILE) => ({ query: `?path=${path}` });
const json = (value, more = {}) => ({ json: value, ...more });
const tarOf = (entries, more = {}) => ({ body: tar(entries), type: 'application/x-tar', ...more });
const plain = () => ({});

const COMMANDS = ['true', 'sleep 0.02; echo done', 'head -c 100000 /dev/zero', 'echo out; echo err >&2; exit 3', 'sleep 0.3'];
const CODES = ['print(1)', 'import time; time.sleep(0.05)', 'import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(3)', '1/0'];
const small = [file('a', 'x'), file('b', 'y'.repeat(3000))];

/** A form with one file. */
function form(name, field = 'file') {
  const body = `--storm\r\ncontent-disposition: form-data; name="${field}"; filename="${name}"\r\ncontent-type: application/octet-stream\r\n\r\n${'z'.repeat(5000)}\r\n--storm--\r\n`;
  return { body, type: 'multipart/form-data; boundary=storm' };
}

/** A message of a Connect stream. */
function envelope(message) {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(text.length, 1);
  return { body: Buffer.concat([head, text]), type: 'application/connect+json' };
}

const live = { accept: 'application/x-ndjson' };
const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
const box = '/v1/sandboxes/{id}';

export const native = {
  'post /v1/sandboxes': () => json({ resources: { memory: '128Mi' }, files: [{ path: '/tmp/f', content: 'x' }], timeout: { idle: '60s' } }, { rare: true }),
  [`get ${box}`]: plain,
  [`delete ${box}`]: () => ({ rare: true }),
  'get /v1/sandboxes': plain,
  [`patch ${box}`]: () => json({ metadata: { storm: 'yes' } }),
  [`get ${box}/network`]: () => ({}),
  [`get ${box}/network/destinations`]: (w, v, pick) => ({ headers: pick([live, { accept: 'text/event-stream' }, {}]) }),
  [`put ${box}/network`]: () => json({ mode: 'none' }),
  [`post ${box}/pause`]: () => ({ rare: true }),
  [`post ${box}/resume`]: plain,
  [`get ${box}/events`]: (w, v, pick) => ({ headers: pick([live, { accept: 'text/event-stream' }, {}]) }),
  [`get ${box}/usage`]: plain,
  [`get ${box}/metrics`]: plain,
  'get /v1/quota': plain,
  [`post ${box}/checkpoints`]: (w) => json({ name: w.fresh('checkpoint') }, { rare: true }),
  [`get ${box}/checkpoints`]: plain,
  [`get ${box}/checkpoints/{checkpoint}`]: plain,
  [`post ${box}/checkpoints/{checkpoint}/restore`]: () => ({ rare: true }),
  [`delete ${box}/checkpoints/{checkpoint}`]: () => ({ rare: true }),
  [`post ${box}/discard`]: () => ({ rare: true }),
  [`get ${box}/diff`]: plain,
  [`post ${box}/snapshots`]: () => json({}, { rare: true }),
  [`post ${box}/fork`]: () => json({ count: 1 }, { rare: true }),
  'get /v1/snapshots': plain,
  'get /v1/snapshots/{snapshot}': plain,
  'patch /v1/snapshots/{snapshot}': () => json({ tag: 'storm' }),
  'delete /v1/snapshots/{snapshot}': () => ({ rare: true }),
  'get /v1/snapshots/{snapshot}/lineage': plain,
  'get /v1/snapshots/{snapshot}/export': (w, v, pick) => ({ query: pick(['', '?format=json']) }),
  'post /v1/snapshots/import': (w) => ({ body: w.bundle, type: 'application/zstd', rare: true }),
  'post /v1/volumes': (w) => json({ name: w.fresh('volume') }, { rare: true }),
  'get /v1/volumes': plain,
  'get /v1/volumes/{volume}': plain,
  'delete /v1/volumes/{volume}': () => ({ rare: true }),
  'post /v1/keys': (w) => json({ name: w.fresh('key'), expiresIn: '1s' }, { expect: [429] }),
  'get /v1/keys': plain,
  'get /v1/keys/{key}': plain,
  'post /v1/keys/{key}/rotate': (w, v, pick) => json({ grace: pick(['0s', '1s', '1h']) }, { expect: [409] }),
  'delete /v1/keys/{key}': () => ({ rare: true }),
  'put /v1/secrets/{name}': (w, v, pick) => json({ value: pick(['a', 'b'.repeat(16384)]) }, { expect: [400, 409] }),
  'get /v1/secrets': plain,
  'get /v1/secrets/{name}': () => ({ expect: [400, 404] }),
  'delete /v1/secrets/{name}': () => ({ expect: [400, 404, 409] }),
  'get /v1/disks': plain,
  [`get ${box}/export`]: plain,
  [`get ${box}/ports`]: plain,
  [`get ${box}/ports/{port}`]: plain,
  [`get ${box}/ports/{port}/connect`]: () => ({ headers: { connection: 'Upgrade', upgrade: 'tcp' }, expect: [502] }),
  [`put ${box}/ports/{port}`]: (w, v, pick) => json({ public: pick([true, false]) }),
  [`post ${box}/ports/{port}/tokens`]: () => json({ expires: '1s' }, { expect: [201, 429] }),
  [`delete ${box}/ports/{port}/tokens/{token}`]: () => ({ expect: [404] }),
  'post /v1/sandboxes/import': (w) => json(w.portable, { rare: true }),
  [`post ${box}/exec`]: (w, v, pick) => json({ command: pick(COMMANDS) }, { headers: pick([live, {}]) }),
  'post /v1/run': (w, v, pick) => json({ command: pick(COMMANDS) }, { rare: true, headers: pick([live, {}]) }),
  'get /v1/executions': plain,
  'get /v1/executions/{id}': (w, v, pick) => ({ query: pick(['', '?wait=1s']) }),
  'get /v1/executions/{id}/output': (w, v, pick) => ({ headers: pick([live, {}]) }),
  [`post ${box}/processes`]: (w, v, pick) => json({ command: 'read x; sleep 0.5', openStdin: true, pty: pick([undefined, { rows: 24, columns: 80 }]) }),
  [`get ${box}/processes`]: plain,
  [`get ${box}/processes/{process}`]: plain,
  [`delete ${box}/processes/{process}`]: () => ({ rare: true }),
  [`get ${box}/processes/{process}/output`]: (w, v, pick) => ({ headers: pick([live, upgrade, {}]) }),
  [`post ${box}/processes/{process}/signal`]: () => json({ signal: 'WINCH' }),
  [`post ${box}/processes/{process}/resize`]: () => json({ rows: 30, columns: 90 }, { expect: [400, 409] }),
  [`post ${box}/processes/{process}/stdin`]: () => ({ body: 'word\n', type: 'application/octet-stream' }),
  [`post ${box}/jobs`]: (w, v, pick) => json({ command: pick(COMMANDS) }),
  [`get ${box}/jobs`]: plain,
  [`get ${box}/jobs/{job}`]: (w, v, pick) => ({ query: pick(['', '?wait=1s']) }),
  [`get ${box}/jobs/{job}/output`]: (w, v, pick) => ({ headers: pick([live, upgrade, {}]) }),
  [`post ${box}/jobs/{job}/stop`]: () => json({}, { rare: true }),
  [`post ${box}/code`]: (w, v, pick) => json({ language: 'python', code: pick(CODES) }, { headers: pick([live, {}]) }),
  [`post ${box}/contexts`]: () => json({ language: 'bash' }, { rare: true }),
  [`get ${box}/contexts`]: plain,
  [`get ${box}/contexts/{context}`]: plain,
  [`delete ${box}/contexts/{context}`]: () => ({ rare: true }),
  [`post ${box}/contexts/{context}/restart`]: () => ({ rare: true }),
  [`post ${box}/contexts/{context}/interrupt`]: plain,
  [`post ${box}/contexts/{context}/execute`]: (w, v, pick) => json({ code: pick(COMMANDS) }, { headers: pick([live, {}]) }),
  [`get ${box}/env`]: plain,
  [`patch ${box}/env`]: () => json({ STORM: 'yes' }),
  [`get ${box}/files`]: (w, v, pick) => at(pick([FILE, '/home/user/large'])),
  [`put ${box}/files`]: () => ({ ...at('/home/user/put'), body: 'p'.repeat(100000), type: 'application/octet-stream' }),
  [`delete ${box}/files`]: () => ({ ...at('/home/user/put'), expect: [404] }),
  [`get ${box}/files/{path*}`]: (w, v, pick) => ({ headers: pick([{}, { range: 'bytes=2-5' }]) }),
  [`put ${box}/files/{path*}`]: () => ({ body: 'content', type: 'application/octet-stream' }),
  [`delete ${box}/files/{path*}`]: () => ({ path: 'home/user/put', expect: [404] }),
  [`get ${box}/fs/stat`]: () => at(),
  [`get ${box}/fs/exists`]: () => at(),
  [`get ${box}/fs/list`]: (w, v, pick) => at(pick(['/home/user', '/usr/lib', '/'])),
  [`get ${box}/fs/metadata`]: () => at(),
  [`post ${box}/fs/mkdir`]: () => json({ path: '/home/user/d/e', parents: true }, { expect: [409] }),
  [`post ${box}/fs/move`]: () => json({ from: '/home/user/put', to: '/home/user/moved' }, { expect: [404, 409] }),
  [`post ${box}/fs/copy`]: () => json({ from: FILE, to: '/home/user/copy' }, { expect: [409] }),
  [`post ${box}/fs/remove`]: () => json({ path: '/home/user/copy' }, { expect: [404] }),
  [`post ${box}/fs/chmod`]: () => json({ path: FILE, mode: '0600' }),
  [`post ${box}/fs/chown`]: () => json({ path: FILE, owner: 'user' }),
  [`post ${box}/fs/symlink`]: () => json({ path: '/home/user/l', target: 'f' }, { expect: [409] }),
  [`post ${box}/fs/find`]: () => json({ path: '/usr/lib', pattern: '*.so' }),
  [`post ${box}/fs/grep`]: () => json({ path: '/home/user', pattern: 'content' }),
  [`post ${box}/fs/replace`]: () => json({ path: FILE, pattern: 'c', replacement: 'c' }),
  [`patch ${box}/fs/metadata`]: () => json({ path: FILE, set: { storm: 'yes' } }, { expect: [400] }),
  [`post ${box}/fs/write`]: () => json({ files: [{ path: FILE, content: 'content' }, { path: '/home/user/g', content: 'x'.repeat(20000) }] }),
  [`post ${box}/fs/upload`]: () => form('/home/user/up'),
  [`get ${box}/fs/tar`]: (w, v, pick) => at(pick(['/home/user', '/usr/lib'])),
  [`put ${box}/fs/tar`]: () => ({ ...at('/home/user/t'), ...tarOf(small) }),
  [`get ${box}/fs/watch`]: (w, v, pick) => ({ ...at('/home/user'), headers: pick([live, upgrade]) }),
  'get /v1/templates': plain,
  'get /v1/templates/resolve': () => ({ query: '?ref=base' }),
  'get /v1/templates/{template}': plain,
  'delete /v1/templates/{template}': () => ({ rare: true, expect: [409] }),
  'put /v1/templates/{template}/tags/{tag}': () => json({ build: 'v7' }),
  'delete /v1/templates/{template}/tags/{tag}': () => ({ rare: true }),
  'post /v1/templates/builds': (w) => json({ name: w.fresh('built'), from: w.templateName, steps: [{ run: 'true' }] }, { rare: true }),
  'get /v1/templates/builds/{build}': plain,
  'delete /v1/templates/builds/{build}': () => ({ expect: [409] }),
  'get /v1/templates/builds/{build}/log': (w, v, pick) => ({ headers: pick([live, {}]) }),
  'get /v1/templates/contexts/{hash}': plain,
  'put /v1/templates/contexts/{hash}': (w) => ({ body: w.archive, type: 'application/x-tar' }),
  'post /v1/templates/imports': (w) => tarOf(small, { query: `?name=${w.fresh('imported')}`, rare: true }),
  'get /metrics': plain,
  'get /health': plain,
  'get /': plain,
  'get /openapi.yaml': plain,
};

const create = () => json({ templateID: 'base', timeout: 60 }, { rare: true });

export const control = {
  'post /e2b/sandboxes': create,
  'post /e2b/v2/sandboxes': create,
  'get /e2b/sandboxes/{id}': plain,
  'delete /e2b/sandboxes/{id}': () => ({ rare: true }),
  'get /e2b/v2/sandboxes': plain,
  'get /e2b/sandboxes': plain,
  'post /e2b/sandboxes/{id}/connect': () => json({ timeout: 300 }),
  'post /e2b/v2/sandboxes/{id}/connect': () => json({ timeout: 300 }),
  'post /e2b/sandboxes/{id}/pause': () => json({}, { rare: true, expect: [409] }),
  'post /e2b/sandboxes/{id}/timeout': () => json({ timeout: 300 }),
  'post /e2b/sandboxes/{id}/refreshes': () => json({ duration: 300 }),
  'post /e2b/sandboxes/{id}/resume': () => json({ timeout: 300 }, { expect: [409] }),
  'put /e2b/sandboxes/{id}/network': () => json({}),
  'get /e2b/sandboxes/{id}/metrics': plain,
  'get /e2b/sandboxes/metrics': (w, v) => ({ query: `?sandbox_ids=${v.id}` }),
  'get /e2b/sandboxes/{id}/logs': plain,
  'get /e2b/v2/sandboxes/{id}/logs': plain,
  'post /e2b/sandboxes/{id}/snapshots': () => json({}, { rare: true }),
  'get /e2b/snapshots': plain,
  'post /e2b/sandboxes/{id}/fork': () => json({ count: 1, timeout: 60 }, { rare: true }),
  'get /e2b/templates': plain,
  'get /e2b/v2/templates': plain,
  'get /e2b/templates/{id}': plain,
  'patch /e2b/templates/{id}': () => json({ public: false }),
  'patch /e2b/v2/templates/{id}': () => json({ public: false }),
  'delete /e2b/templates/{id}': () => ({ rare: true, expect: [409] }),
  'get /e2b/templates/aliases/{alias}': plain,
  'post /e2b/templates/tags': (w) => json({ target: `${w.templateName}:v7`, tags: ['storm'] }),
  'delete /e2b/templates/tags': (w) => json({ name: w.templateName, tags: ['storm'] }, { expect: [404] }),
  'get /e2b/templates/{id}/tags': plain,
  'post /e2b/v3/templates': (w) => json({ name: w.fresh('e2b'), cpuCount: 1, memoryMB: 128 }, { rare: true }),
  'post /e2b/v2/templates/{id}/builds/{build}': (w) => json({ fromTemplate: w.templateName, steps: [{ type: 'RUN', args: ['true'] }] }, { rare: true, expect: [409] }),
  'get /e2b/templates/{id}/builds/{build}/status': plain,
  'get /e2b/templates/{id}/builds/{build}/logs': plain,
  'get /e2b/templates/{id}/files/{hash}': plain,
  'post /e2b/volumes': (w) => json({ name: w.fresh('volume') }, { rare: true }),
  'get /e2b/volumes': plain,
  'get /e2b/volumes/{volume}': plain,
  'delete /e2b/volumes/{volume}': () => ({ rare: true }),
  'post /e2b/secrets': () => json({}, { expect: [501] }),
  'get /e2b/secrets': () => ({ expect: [501] }),
  'get /e2b/secrets/{id}': () => ({ expect: [404, 501] }),
  'post /e2b/secrets/{id}': () => json({}, { expect: [404, 501] }),
  'delete /e2b/secrets/{id}': () => ({ expect: [404, 501] }),
  'get /e2b/volumecontent/{volume}/path': () => at('/f'),
  'patch /e2b/volumecontent/{volume}/path': () => json({ mode: 0o644 }, at('/f')),
  'delete /e2b/volumecontent/{volume}/path': () => ({ ...at('/made'), expect: [404] }),
  'get /e2b/volumecontent/{volume}/dir': () => at('/'),
  'post /e2b/volumecontent/{volume}/dir': () => ({ query: '?path=/made&force=true' }),
  'get /e2b/volumecontent/{volume}/file': () => at('/f'),
  'put /e2b/volumecontent/{volume}/file': () => ({ query: '?path=/f&force=true', body: 'v'.repeat(50000), type: 'application/octet-stream' }),
  'put /templates/uploads/{hash}': (w) => ({ query: w.uploadQuery, body: w.archive, type: 'application/x-tar' }),
  'get /files': (w, v) => ({ query: `?path=${FILE}&signature=${sign(FILE, 'read', v)}` }),
  'post /files': (w, v) => ({ query: `?path=${FILE}&signature=${sign(FILE, 'write', v)}`, ...form('f') }),
};

/** As E2B's SDK signs an address of a file, for the default user and without an end. */
const sign = (path, operation, v) => encodeURIComponent(`v1_${createHash('sha256').update(`${path}:${operation}::${v.token}`).digest('base64').replace(/=+$/, '')}`);

const process = (v) => ({ process: { pid: v.pid } });

export const envd = {
  'get /health': plain,
  'get /envs': plain,
  'get /metrics': plain,
  'get /files': (w, v, pick) => at(pick([FILE, '/home/user/large'])),
  'post /files': () => ({ ...at(FILE), ...form('f') }),
  'post /process.Process/Start': (w, v, pick) => envelope({ process: { cmd: '/bin/sh', args: ['-c', pick(COMMANDS)] }, stdin: false }),
  'post /process.Process/Connect': (w, v) => envelope(process(v)),
  'post /process.Process/List': () => json({}),
  'post /process.Process/SendSignal': (w, v) => json({ ...process(v), signal: 'SIGNAL_SIGTERM' }, { rare: true, expect: [404] }),
  'post /process.Process/Update': (w, v) => json({ ...process(v), pty: { size: { cols: 80, rows: 24 } } }, { expect: [400, 409] }),
  'post /process.Process/SendInput': (w, v) => json({ ...process(v), input: { stdin: Buffer.from('word\n').toString('base64') } }),
  'post /process.Process/CloseStdin': (w, v) => json(process(v), { rare: true }),
  'post /process.Process/StreamInput': (w, v) => envelope({ start: process(v) }),
  'post /filesystem.Filesystem/Stat': () => json({ path: FILE }),
  'post /filesystem.Filesystem/MakeDir': () => json({ path: '/home/user/made' }, { expect: [409] }),
  'post /filesystem.Filesystem/Move': () => json({ source: '/home/user/made', destination: '/home/user/made2' }, { expect: [404, 409, 500] }),
  'post /filesystem.Filesystem/Remove': () => json({ path: '/home/user/made2' }, { expect: [404] }),
  'post /filesystem.Filesystem/ListDir': () => json({ path: '/usr/lib', depth: 1 }),
  'post /filesystem.Filesystem/WatchDir': () => envelope({ path: '/home/user' }),
  'post /filesystem.Filesystem/CreateWatcher': () => json({ path: '/home/user' }),
  'post /filesystem.Filesystem/GetWatcherEvents': (w, v) => json({ watcherId: v.watcher }, { expect: [404] }),
  'post /filesystem.Filesystem/RemoveWatcher': (w, v) => json({ watcherId: v.watcher }, { expect: [404] }),
};

export const code = {
  'post /contexts': () => json({ language: 'bash' }, { rare: true }),
  'get /contexts': plain,
  'post /contexts/{id}/restart': () => json({}, { rare: true }),
  'delete /contexts/{id}': () => ({ rare: true }),
  'get /health': plain,
  'post /execute': (w, v, pick) => json(pick([{ code: pick(COMMANDS), context_id: v.context }, { code: pick(CODES), language: 'python' }])),
};

export const ports = {
  'any /{rest**}': () => ({ expect: [502] }),
};

// The same by a path.
export const paths = {
  'any /p/{id}/{port}': () => ({ expect: [308] }),
  'any /p/{id}/{port}/{rest**}': () => ({ expect: [502] }),
};

const sandbox = '/agentuity/sandbox/2025-03-17';
const fs = '/agentuity/fs/2025-03-17';

export const agentuity = {
  [`post ${sandbox}`]: () => json({ command: { exec: ['true'], mode: 'oneshot' } }, { rare: true }),
  [`get ${sandbox}/status/{id}`]: plain,
  [`get ${sandbox}/{id}`]: plain,
  [`delete ${sandbox}/{id}`]: () => ({ rare: true }),
  [`get ${sandbox}`]: plain,
  [`post ${sandbox}/{id}/pause`]: () => ({ rare: true }),
  [`post ${sandbox}/{id}/resume`]: plain,
  [`patch ${sandbox}/env/{id}`]: () => json({ env: { STORM: 'yes' } }),
  [`patch ${sandbox}/env/2025-03-17/{id}`]: () => json({ env: { STORM: 'yes' } }),
  [`post ${sandbox}/{id}/execute`]: (w, v, pick) => json({ command: ['sh', '-c', pick(COMMANDS)] }),
  [`get ${sandbox}/execution/{execution}`]: (w, v, pick) => ({ query: pick(['', '?wait=1s']) }),
  [`get ${sandbox}/sandboxes/{id}/executions`]: plain,
  [`post ${sandbox}/sandboxes/{id}/jobs`]: (w, v, pick) => json({ command: ['sh', '-c', pick(COMMANDS)] }),
  [`get ${sandbox}/sandboxes/{id}/jobs`]: plain,
  [`get ${sandbox}/sandboxes/{id}/jobs/{job}`]: plain,
  [`delete ${sandbox}/sandboxes/{id}/jobs/{job}`]: () => ({ rare: true }),
  [`post ${sandbox}/{id}/checkpoint`]: (w) => json({ name: w.fresh('checkpoint') }, { rare: true }),
  [`get ${sandbox}/checkpoints/{id}`]: plain,
  [`post ${sandbox}/{id}/checkpoint/{checkpoint}/restore`]: () => json({}, { rare: true }),
  [`delete ${sandbox}/{id}/checkpoint/{checkpoint}`]: () => ({ rare: true }),
  [`post ${sandbox}/{id}/snapshot`]: () => json({}, { rare: true }),
  [`get ${sandbox}/snapshots`]: plain,
  [`get ${sandbox}/snapshots/lineage`]: (w) => ({ query: `?snapshot=${w.snapshot}` }),
  [`get ${sandbox}/snapshots/public`]: plain,
  [`get ${sandbox}/snapshots/public/{snapshot}`]: () => ({ expect: [404] }),
  [`get ${sandbox}/snapshots/{snapshot}`]: plain,
  [`patch ${sandbox}/snapshots/{snapshot}`]: () => json({ tag: 'storm' }, { expect: [409] }),
  [`delete ${sandbox}/snapshots/{snapshot}`]: () => ({ rare: true }),
  [`post ${sandbox}/snapshots/build`]: (w) => json({ runtime: 'base', name: w.fresh('image') }, { rare: true }),
  [`put ${sandbox}/snapshots/{snapshot}/upload`]: (w) => tarOf(small, { name: w.building, expect: [404, 409] }),
  [`post ${sandbox}/snapshots/{snapshot}/finalize`]: (w) => json({}, { name: w.building, rare: true, expect: [404, 409] }),
  [`get ${sandbox}/sandboxes/{id}/events`]: plain,
  [`get ${sandbox}/runtimes`]: plain,
  [`post ${fs}/{id}`]: () => json({ files: [{ path: FILE, content: Buffer.from('content').toString('base64') }] }),
  [`get ${fs}/list/{id}`]: () => at('/home/user'),
  [`post ${fs}/mkdir/{id}`]: () => json({ path: '/home/user/m', recursive: true }),
  [`post ${fs}/rmdir/{id}`]: () => json({ path: '/home/user/m', recursive: true }, { expect: [404] }),
  [`post ${fs}/rm/{id}`]: () => json({ path: '/home/user/moved' }, { expect: [404] }),
  [`get ${fs}/{id}`]: () => at(),
  [`get ${fs}/download/{id}`]: (w, v, pick) => ({ query: `?path=/home/user&format=${pick(['zip', 'tar.gz'])}` }),
  [`post ${fs}/upload/{id}`]: () => tarOf(small, { query: '?path=/home/user/u', expect: [400] }),
  'get /agentuity/cli/region': plain,
  'get /agentuity/cli/organization': plain,
  'get /agentuity/cli/sandbox': plain,
  'get /agentuity/cli/sandbox/{id}': plain,
  'post /agentuity/input': () => json({}, { expect: [429] }),
  'put /agentuity/input/{stream}': (w) => ({ name: w.input, body: 'words', type: 'application/octet-stream', expect: [404] }),
  'get /agentuity/stream/{stream}': plain,
  'put /agentuity/upload/{token}': (w) => tarOf(small, { name: w.uploadToken, expect: [404, 409] }),
};
