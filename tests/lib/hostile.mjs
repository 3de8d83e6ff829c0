// An init that was taken over: stands in for the init of one sandbox, at the socket that the front connects to, and
// says whatever a test wants. Numbers and the version come from the headers, so a changed enum changes the attacker, too.
import { chmodSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { until } from './server.mjs';

const source = (name) => readFileSync(new URL(`../../src/wire/${name}`, import.meta.url), 'utf8').replace(/\/\*[^]*?\*\//g, '');

/** The members of `enum name`, without their prefix. */
function enumOf(text, name, prefix) {
  const members = {};
  let next = 0;
  for (const entry of new RegExp(`enum ${name} \\{([^}]*)\\}`).exec(text)[1].split(',').map((e) => e.trim()).filter(Boolean)) {
    const [member, value] = entry.split('=').map((e) => e.trim());
    const shift = /^1\s*<<\s*(\d+)$/.exec(value ?? '');
    if (value !== undefined) next = shift ? 2 ** shift[1] : /^\d+$/.test(value) ? Number(value) : members[value.slice(prefix.length)];
    members[member.slice(prefix.length)] = next++;
  }
  return members;
}

const frames = source('frame.h');
const records = source('record.h');
export const FRAME = enumOf(frames, 'frame_type', 'FRAME_');
export const RECORD = enumOf(records, 'record_type', 'RECORD_');
export const FILE_OP = enumOf(records, 'file_op', 'FILE_');
export const FRAME_VERSION = Number(/FRAME_VERSION\s+(\d+)u/.exec(frames)[1]);
export const RECORD_UNKNOWN = 2n ** 64n - 1n;

/** Little-endian integers: pack('u32', 1, 'i64', -1, …); a Buffer or string is appended as it is. */
export function pack(...items) {
  const parts = [];
  while (items.length) {
    const item = items.shift();
    const sizes = { u16: 2, u32: 4, i32: 4, u64: 8, i64: 8 };
    if (!(item in sizes)) {
      parts.push(Buffer.from(item));
      continue;
    }
    const value = BigInt(items.shift());
    parts.push(Buffer.from(Array.from({ length: sizes[item] }, (_, i) => Number((value >> BigInt(8 * i)) & 255n))));
  }
  return Buffer.concat(parts);
}

/** One frame (wire/frame.h). */
export const frame = (type, { stream = 0, tag = 0, offset = 0 } = {}, payload = Buffer.alloc(0)) =>
  Buffer.concat([pack('u32', payload.length, 'u16', type, 'u16', stream, 'u64', tag, 'u64', offset), payload]);
/** One record (wire/record.h); `size` may lie. */
export const record = (type, payload = Buffer.alloc(0), size = payload.length) => Buffer.concat([pack('u32', type, 'u32', 0, 'u64', size), payload]);

// Payloads of frames.
export const started = (pid = 7, stage = 0, error = 0) => pack('i32', pid, 'i32', stage, 'i32', error, 'i32', 0);
export const exit = ({ code = 0, signal = 0, flags = 0, end = [0, 0] } = {}) =>
  pack('i32', code, 'i32', signal, 'u32', flags, 'u32', 0, 'u64', 0, 'u64', 0, 'u64', end[0], 'u64', end[1]);
export const claim = ({ execution, pid = 7, startFlags = 0, kind = 0, flags = 0, startedMs = Date.now(), timeoutMs = 0, acked = [0, 0], ended }) =>
  pack(
    execution.padEnd(24, '\0'),
    ...['i32', pid, 'u32', startFlags, 'u32', kind, 'u32', flags, 'i64', startedMs, 'u64', timeoutMs],
    ...['u64', acked[0], 'u64', acked[1], 'u64', 0, 'u64', 0],
    ended ?? exit(),
    'user\0/\0\0sh\0',
  );

// Payloads of records.
export const content = (length = RECORD_UNKNOWN, offset = 0) => pack('u64', length, 'u64', offset);
export const end = (error = 0, count = 0) => pack('i32', error, 'u32', 0, 'u64', count, 'u32', 0, 'u32', 0);
export const entry = (path, { size = 0, mode = 0o100644 } = {}) =>
  pack('u64', size, 'i64', 0, 'i64', 0, 'i64', 0, 'u64', 1, 'u32', mode, 'u32', 0, 'u32', 0, 'u32', 1, 'u32', Buffer.byteLength(path), 'u32', 0, 'u32', 0, 'u32', 0, path);

/** A connection of the front: what it sends, piece by piece, and what it is told. */
export class Channel {
  constructor(socket) {
    this.socket = socket;
    this.received = Buffer.alloc(0);
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('data', (data) => (this.received = Buffer.concat([this.received, data])));
    socket.on('error', () => {}); // the front hangs up on who speaks nonsense
  }

  /** Resolves when the socket has taken it. */
  send(...pieces) {
    return new Promise((resolve) => this.socket.write(Buffer.concat(pieces), () => resolve()));
  }

  async take(size) {
    await until('the front says something', () => this.received.length >= size || this.socket.destroyed, 60000);
    if (this.received.length < size) throw new Error('the front hung up');
    const piece = this.received.subarray(0, size);
    this.received = this.received.subarray(size);
    return piece;
  }

  /** The next frame of the front: { type, stream, tag, offset, payload }. */
  async frame() {
    const h = await this.take(24);
    const payload = await this.take(h.readUInt32LE(0));
    return { type: h.readUInt16LE(4), stream: h.readUInt16LE(6), tag: h.readBigUInt64LE(8), offset: h.readBigUInt64LE(16), payload };
  }

  /** The next frame of a type; others are passed over. */
  async frameOf(type) {
    for (;;) {
      const f = await this.frame();
      if (f.type === type) return f;
    }
  }

  /** The next record of the front: { type, payload }. */
  async record() {
    const h = await this.take(16);
    return { type: h.readUInt32LE(0), payload: await this.take(Number(h.readBigUInt64LE(8))) };
  }

  /** HELLO, the given frames (RECORDs), READY: what an init says first. */
  greet(...between) {
    return this.send(frame(FRAME.HELLO, {}, pack('u32', FRAME_VERSION, 'u32', 0)), ...between, frame(FRAME.READY));
  }
}

/**
 * Takes the place of a sandbox's init and kills the front, so that the next one connects to us. `attach(channel)` is
 * called for the connection of the processes, `worker(channel, first)` for each of file work, before anything was
 * answered; `first` is the frame that asked for it. With `restart: false` the front stays, with its connection to the
 * true init: each worker that it asks for from now on is ours. Returns { restore }, which must be called before the
 * server ends.
 */
export async function hostile(server, id, { attach = (c) => c.greet(), worker = (c) => c.socket.destroy(), restart = true } = {}) {
  const path = join(server.data, 'run', `${id}.sock`);
  const sockets = new Set();
  const failures = [];
  const serve = async (socket) => {
    const channel = new Channel(socket);
    const first = await channel.frame();
    await (first.type === FRAME.ATTACH ? attach(channel) : worker(channel, first));
  };
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serve(socket).catch((error) => failures.push(error));
  });
  renameSync(path, `${path}-`);
  await new Promise((resolve) => listener.listen(path, resolve));
  chmodSync(path, 0o777);
  const front = server.frontPid;
  if (restart) {
    process.kill(front, 'SIGKILL');
    await until('there is another front', () => server.frontPid && server.frontPid !== front);
    server.renewAgent();
    await until('it answers', () => server.request('GET', '/health').then((a) => a.status === 200, () => false));
  }
  return {
    failures, // what attach and worker threw; a front that hangs up makes them throw
    restore() {
      listener.close();
      for (const socket of sockets) socket.destroy();
      rmSync(path, { force: true });
      renameSync(`${path}-`, path);
    },
  };
}
