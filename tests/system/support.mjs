// What the system tests share: reading answers, streams, counters, and the kernel's own view of a sandbox.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Server, cgroupRoots, dataDirectory, safeReaddir, until } from '../lib/server.mjs';

export const LONG = process.env.BUNKER_LONG === '1';

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** No process of the server crashed by itself or was caught by a sanitizer. */
export function assertHealthyLog(server, { killed = false } = {}) {
  const bad = killed
    ? /AddressSanitizer|LeakSanitizer|runtime error:|makes no sense|cannot change like this/
    : /AddressSanitizer|LeakSanitizer|runtime error:|makes no sense|cannot change like this|the front died/;
  const at = server.log.text.search(bad);
  assert.equal(at, -1, `the log tells of a fault:\n${server.log.text.slice(Math.max(0, at - 200), at + 4000)}`);
}

/** The end of a server; `killed`: the test itself killed its front. */
export async function finish(server, options) {
  try {
    assertHealthyLog(server, options);
  } finally {
    await server.destroy();
  }
  assertHealthyLog(server);
}

/** Another server beside this one. */
export async function startBeside(server, options = {}) {
  const data = dataDirectory();
  try {
    return await Server.start({ ...options, data });
  } catch (e) {
    rmSync(data, { recursive: true, force: true });
    throw e;
  }
}

/** The answer is an error of this status and code, about this field (undefined: about none). */
export function assertRefused(answer, status, code, field) {
  assert.equal(answer.status, status, answer.text);
  assert.match(answer.headers['content-type'] ?? '', /^application\/json/);
  const error = answer.json?.error;
  assert.ok(error, `no error object in ${answer.text}`);
  assert.equal(error.code, code, answer.text);
  assert.equal(error.field, field, answer.text);
  assert.ok(error.message.length > 0, 'an error says what is wrong');
  assert.deepEqual(Object.keys(answer.json), ['error']);
}

/** One value of /metrics. */
export async function metric(server, name) {
  const { text } = await server.request('GET', '/metrics');
  const line = text.split('\n').find((l) => l.startsWith(`bunker_${name} `));
  assert.ok(line, `there is no metric bunker_${name}`);
  return Number(line.split(' ')[1]);
}

export async function list(server, query = '') {
  const answer = await server.request('GET', `/v1/sandboxes${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json.sandboxes;
}

export async function exists(server, id) {
  const { status, json } = await server.request('GET', `/v1/sandboxes/${id}`);
  assert.ok(status === 200 || status === 404, `GET of a sandbox answered ${status}`);
  return status === 200 && json.status !== 'terminated';
}

export async function remove(server, id) {
  const answer = await server.request('DELETE', `/v1/sandboxes/${id}`);
  assert.equal(answer.status, 204, answer.text);
}

/** Deletes every sandbox there is. */
export async function clear(server) {
  for (const box of await list(server)) await server.request('DELETE', `/v1/sandboxes/${box.id}`);
}

export async function execution(server, id, query = '') {
  const answer = await server.request('GET', `/v1/executions/${id}${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/** Reads a stream to its end and checks what every stream must keep: one start, contiguous offsets, one exit. */
export async function drain(stream, { base64 = false } = {}) {
  assert.equal(stream.status, 200);
  const out = { stdout: [], stderr: [], events: 0 };
  const position = { stdout: 0, stderr: 0 };
  for await (const event of stream.events) {
    assert.equal(out.exit, undefined, 'nothing comes after the exit event');
    if (out.events++ === 0) assert.equal(event.type, 'start', 'the first event tells the ids');
    if (event.type === 'start') {
      assert.equal(out.start, undefined, 'there is one start event');
      out.start = event;
    } else if (event.type === 'exit') {
      out.exit = event;
    } else {
      assert.ok(event.type in position, `unknown event ${event.type}`);
      const bytes = Buffer.from(event.data, base64 ? 'base64' : 'utf8');
      assert.equal(event.offset, position[event.type], `${event.type} has a hole or a repetition`);
      assert.ok(bytes.length > 0, 'an output event carries output');
      position[event.type] += bytes.length;
      out[event.type].push(bytes);
    }
  }
  assert.ok(out.exit, 'the stream ends with an exit event');
  out.stdout = Buffer.concat(out.stdout);
  out.stderr = Buffer.concat(out.stderr);
  return out;
}

/** Starts a command as a stream, and returns once it runs: { id, pid, stream }. */
export async function startCommand(server, sandbox, body) {
  const stream = await server.stream(`/v1/sandboxes/${sandbox}/exec`, body);
  assert.equal(stream.status, 200);
  const { value } = await stream.events.next();
  assert.equal(value.type, 'start');
  return { id: value.executionId, pid: value.pid, stream };
}

/** The directory of a server's sandboxes in every cgroup hierarchy that has one. */
export function cgroupsOf(server) {
  const instance = readFileSync(join(server.data, 'instance'), 'utf8').trim().split(' ')[1];
  const found = [];
  for (const root of cgroupRoots())
    for (const name of safeReaddir(root))
      if (name === `bunker-${instance}`) found.push(join(root, name));
  return found;
}

/** The sandboxes that have a cgroup, whoever knows of them: those in use and those of the pool. */
export function sandboxesInKernel(server) {
  const ids = new Set();
  for (const dir of cgroupsOf(server)) for (const name of safeReaddir(dir)) if (/^[a-z0-9]{20}$/.test(name)) ids.add(name);
  return [...ids].sort();
}

/** The directory of a sandbox on v2, where it is killed and frozen. */
export function unifiedDir(server, id) {
  const dir = cgroupsOf(server).find((path) => safeReaddir(join(path, id)).includes('cgroup.kill'));
  assert.ok(dir, `sandbox ${id} has no cgroup on v2`);
  return join(dir, id);
}

const pidsIn = (dir) => {
  try {
    return readFileSync(join(dir, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
  } catch {
    return [];
  }
};

/** The pid of a sandbox's init, as the host sees it. */
export function initPid(server, id) {
  const dir = unifiedDir(server, id);
  const [pid] = [...pidsIn(join(dir, 'init')), ...pidsIn(dir)];
  assert.ok(pid, `sandbox ${id} has no init`);
  return pid;
}

/** The processes of a sandbox, as the host sees them; init is the first. */
export function hostPids(server, id) {
  const dir = unifiedDir(server, id);
  const below = (at) => safeReaddir(at).filter((name) => /^e\d+$/.test(name)).map((name) => join(at, name));
  return [join(dir, 'init'), dir, ...below(dir), ...below(join(dir, 'box'))].flatMap(pidsIn);
}

/** The fields of /proc/PID/stat from the state on; [] when there is no such process. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

/** Start time of a process in clock ticks: with its pid it names a process for good. */
export function startTime(pid) {
  return statOf(pid)[19];
}

/** A zombie is dead: whoever is PID 1 here may take its time. */
export function isAlive(pid) {
  return !['Z', 'X', undefined].includes(statOf(pid)[0]);
}

/** Processes of a server, alive or dead, by its data directory: [pid, name]. The inits of sandboxes are not among them. */
export function serverProcesses(server) {
  const found = [];
  for (const entry of readdirSync('/proc')) {
    try {
      if (/^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0').includes(server.data))
        found.push([Number(entry), readFileSync(`/proc/${entry}/comm`, 'utf8').trim()]);
    } catch {
      // It ended while we looked.
    }
  }
  return found;
}

function killIfAlive(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It was faster.
  }
}

/**
 * kill -9 of the warden, and of the front if `both`. Returns what the dead server left running, which should be
 * nothing but the sweeper and the keeper, and kills that, so that it spoils only the test that is about it.
 */
export async function killServer(server, { both = true } = {}) {
  const front = server.frontPid;
  process.kill(server.wardenPid, 'SIGKILL');
  if (both && front) killIfAlive(front);
  await until('the server is dead', () => !isAlive(server.wardenPid) && !isAlive(front), 5000);
  /* A child of the warden that boots a sandbox needs a moment to see that, or to become its init. */
  const found = () => serverProcesses(server).filter(([, name]) => !['bunker-sweeper', 'bunker-keeper'].includes(name));
  await until('none is left', () => found().length === 0, 3000).catch(() => {});
  const strays = found();
  for (const [pid] of strays) killIfAlive(pid);
  await server.ended;
  server.agent.destroy();
  server.agent = undefined;
  return strays;
}

/** Resident memory of a process, in KiB. */
export function residentKib(pid) {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(match[1]);
}

/** Of the server's port, the connections that it has not closed: established, or closed by the other side. */
export function openConnections(server) {
  const port = server.port.toString(16).toUpperCase().padStart(4, '0');
  const isOpen = (line) => new RegExp(`^ *\\d+: \\w+:${port} \\w+:\\w+ (01|08) `).test(line);
  return readFileSync('/proc/net/tcp', 'utf8').split('\n').filter(isOpen).length;
}

export const openFiles = (pid) => readdirSync(`/proc/${pid}/fd`).length;

/** What a server without a sandbox has of the kernel, once it is quiet and its pool holds `pooled`. */
export async function footprint(server, { pooled, ms = 15000 }) {
  const wanted = { sandboxes: 0, running: 0, pooled, inKernel: pooled, trash: 0 };
  let now;
  await until(
    'the server is quiet',
    async () => {
      now = {
        sandboxes: await metric(server, 'sandboxes'),
        running: await metric(server, 'executions_running'),
        pooled: await metric(server, 'sandboxes_pooled'),
        inKernel: sandboxesInKernel(server).length,
        trash: safeReaddir(server.disks('trash')).length,
      };
      return JSON.stringify(now) === JSON.stringify(wanted);
    },
    ms,
  ).catch(() => assert.deepEqual(now, wanted, 'the server does not become quiet'));
  server.agent.destroy();
  await until('the connections are closed', () => openConnections(server) === 0);
  return {
    frontFds: openFiles(server.frontPid),
    wardenFds: openFiles(server.wardenPid),
    frontThreads: readdirSync(`/proc/${server.frontPid}/task`).length,
    processes: serverProcesses(server).length,
    cgroups: cgroupsOf(server).map((dir) => safeReaddir(dir).filter((name) => /^[a-z0-9]{20}$/.test(name)).length).join(),
    mounts: readFileSync(`/proc/${server.wardenPid}/mountinfo`, 'utf8').split('\n').length,
    hostMounts: readFileSync('/proc/self/mountinfo', 'utf8').split('\n').filter((line) => line.includes(server.data)).length,
    boxes: safeReaddir(server.disks('boxes')).length,
    sockets: safeReaddir(join(server.data, 'run')).length,
    stage: safeReaddir(join(server.data, 'stage')).length,
  };
}
