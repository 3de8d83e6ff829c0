// What all sandboxes have together: the host keeps processes and memory for itself, and its pool for compiled filters.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Server, until } from '../lib/server.mjs';
import { cgroupsOf, finish, remove } from '../system/support.mjs';
import { runOnHost } from './arena.mjs';

const LIMITS = { pids: ['pids.max'], memory: ['memory.max', 'memory.limit_in_bytes'] };

/** The limit over all sandboxes of a server, from whichever hierarchy has it. */
function limitOf(server, what) {
  for (const dir of cgroupsOf(server))
    for (const file of LIMITS[what])
      try {
        return Number(readFileSync(join(dir, file), 'utf8'));
      } catch {
        // It is another hierarchy's.
      }
  return NaN;
}

describe('E all sandboxes together', () => {
  const servers = [];
  const start = async (...args) => {
    const server = await Server.start({ args: ['--pool', '0', ...args] });
    servers.push(server);
    return server;
  };
  after(async () => {
    for (const server of servers) await finish(server);
  });

  /** How many processes two sandboxes of 60 have at once when each takes all it can. */
  async function processes(server) {
    const boxes = await Promise.all([1, 2].map(() => server.create({ resources: { pids: 60 } })));
    const take = "import os, time\nn = 0\ntry:\n  while n < 55:\n    if os.fork() == 0: time.sleep(20); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n, flush=True)\ntime.sleep(20)";
    const counts = [];
    for (const box of boxes) {
      const stream = await server.stream(`/v1/sandboxes/${box.id}/exec`, { command: ['python3', '-c', take], timeout: '20s' });
      assert.equal(stream.status, 200);
      for await (const event of stream.events)
        if (event.type === 'stdout') {
          counts.push(Number(event.data));
          break;
        }
      stream.close();
    }
    for (const box of boxes) await remove(server, box.id);
    return counts;
  }

  it('E171 two sandboxes cannot have more processes together than all may have', async (t) => {
    const control = await processes(await start());
    assert.deepEqual(control, [55, 55], 'the control: one of them could not have its own');
    const counts = await processes(await start('--total-pids', '80'));
    t.diagnostic(`of 80: ${counts.join(' and ')}`);
    assert.equal(counts[0], 55);
    assert.ok(counts[1] <= 80 - 55, `${counts[1]} more were given`);
  });

  /** Whether two sandboxes of 200 MiB can both hold 120. */
  async function memory(server) {
    const boxes = await Promise.all([1, 2].map(() => server.create({ resources: { memory: '200Mi' } })));
    const hold = 'import time\nx = bytearray(120 << 20)\nprint("held", flush=True)\ntime.sleep(1.5)\nprint("still")';
    const runs = await Promise.all(boxes.map((box) => server.exec(box.id, { command: ['python3', '-c', hold], timeout: '30s' })));
    for (const box of boxes) await remove(server, box.id);
    return runs.map((r) => (/still/.test(r.stdout) ? 'held' : `signal ${r.signal}`)).sort();
  }

  it('E171 two sandboxes cannot have more memory together than all may have', async (t) => {
    assert.deepEqual(await memory(servers[0] ?? (await start())), ['held', 'held'], 'the control: one of them could not have its own');
    const held = await memory(await start('--total-memory', '192Mi'));
    t.diagnostic(held.join(', '));
    assert.notDeepEqual(held, ['held', 'held']);
  });

  it('E171 without options the host keeps a quarter of its process numbers and a part of its memory', async () => {
    const server = servers[0] ?? (await start());
    const number = (path) => Number(readFileSync(path, 'utf8'));
    const pids = Math.min(number('/proc/sys/kernel/pid_max'), number('/proc/sys/kernel/threads-max'));
    const total = Number(/MemTotal: +(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))[1]) * 1024;
    assert.ok(limitOf(server, 'pids') <= pids * 0.75 + 1, `${limitOf(server, 'pids')} of ${pids}`);
    assert.ok(limitOf(server, 'memory') <= total - (255 << 20), `${limitOf(server, 'memory')} of ${total}`);
    assert.ok(limitOf(server, 'memory') > total / 2, `${limitOf(server, 'memory')} of ${total}`);
  });

  const hog = `
import os, socket, struct, sys, threading, time
ask = b''.join(struct.pack('<IHHII', 36, 26, 1, k, 0) + struct.pack('<BBBBBBBBI', 2, 32, 0, 0, 0, 0, 0, 0, 0) + struct.pack('<HHI', 8, 1, 0x0100007f) for k in range(100))
keep = []
def take(count):
    for _ in range(count):
        try: s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        except OSError as e: refused.append(e.errno); return
        keep.append(s)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
        try:
            for _ in range(20): s.send(ask, socket.MSG_DONTWAIT)
        except OSError: pass
refused = []
threads = [threading.Thread(target=take, args=(20,)) for _ in range(int(sys.argv[1]))]
for t in threads: t.start()
for t in threads: t.join()
print(len(keep), set(refused), flush=True)
time.sleep(float(sys.argv[2]))`;
  const unreclaimable = () => Number(/SUnreclaim: +(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))[1]) / 1024;

  it('E173 sockets of netlink, whose unread answers nobody is charged for, are few, whoever holds them', async (t) => {
    const control = await runOnHost('unshare', ['-n', 'python3', '-c', hog, '8', '0']);
    assert.match(control.stdout, /^160 set\(\)/, `the control: ${control.stdout}${control.stderr}`);
    const server = servers[0] ?? (await start());
    const [box, other] = [await server.create({ resources: { memory: '256Mi' } }), await server.create()];
    const before = unreclaimable();
    const stream = await server.stream(`/v1/sandboxes/${box.id}/exec`, { command: ['python3', '-c', hog, '100', '20'], timeout: '30s' });
    let said = '';
    for await (const event of stream.events)
      if (event.type === 'stdout') {
        said = event.data.trim();
        break;
      }
    t.diagnostic(`a hundred threads have ${said} sockets; the kernel holds ${(unreclaimable() - before).toFixed(0)} MiB more`);
    assert.match(said, /^32 \{105\}$/, 'ENOBUFS beyond 32');
    const names = 'python3 -c "import socket; print(socket.if_nameindex())"';
    const full = await server.exec(box.id, names);
    assert.notEqual(full.exitCode, 0, 'another process of the same sandbox has one more');
    assert.equal((await server.exec(other.id, names)).exitCode, 0, 'it takes them from others');
    stream.close();
    await server.exec(box.id, 'pkill -9 python3; true');
    await until('they are given back', async () => (await server.exec(box.id, names)).exitCode === 0);
    for (const one of [box, other]) await remove(server, one.id);
  });

  it('E173 programs that ask for the interfaces of the network get them', async () => {
    const server = servers[0] ?? (await start());
    const box = await server.create();
    const programs = {
      node: ['node', '-e', 'console.log(Object.keys(os.networkInterfaces()))'],
      'python, addresses': ['python3', '-c', "import socket; print(socket.getaddrinfo('localhost', 80, flags=socket.AI_ADDRCONFIG))"],
      'python, names': ['python3', '-c', 'import socket; print(socket.if_nameindex())'],
      'a socket of its own, bound by number': ['python3', '-c', "import os, socket; s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0); s.bind((os.getpid() + (7 << 22), 0)); print('lo', s.getblocking(), s.get_inheritable())"],
      'many, one after the other': ['python3', '-c', 'import socket\nfor _ in range(300): socket.if_nameindex()\nprint("lo")'],
      ip: 'command -v ip >/dev/null || exec echo lo; ip link',
    };
    for (const [name, command] of Object.entries(programs)) {
      const r = await server.exec(box.id, { command });
      assert.equal(r.exitCode, 0, `${name}: ${r.stderr}`);
      assert.match(r.stdout, /lo|127\.0\.0\.1/, name);
    }
    await remove(server, box.id);
  });

  it('D172 no socket gets a compiled filter', async () => {
    const code = `
import ctypes, errno, socket, struct
code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0xffffffff))
program = struct.pack('HxxxxxxQ', 1, ctypes.addressof(code))
for family in socket.AF_INET, socket.AF_UNIX, socket.AF_NETLINK:
    s = socket.socket(family, socket.SOCK_DGRAM)
    for option, value in (26, program), (50, struct.pack('i', -1)), (51, program), (52, struct.pack('i', -1)):
        try: s.setsockopt(socket.SOL_SOCKET, option, value); said = 'done'
        except OSError as e: said = errno.errorcode[e.errno]
        print(family.name, option, said)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
`;
    const control = await runOnHost('python3', ['-c', code]);
    assert.match(control.stdout, /AF_INET 26 done/, `the control: ${control.stdout}${control.stderr}`);
    assert.doesNotMatch(control.stdout, /AF_INET 50 ENOPROTOOPT/, 'the control: the host has no such option');
    const server = servers[0] ?? (await start());
    const box = await server.create();
    for (const user of ['user', 'root']) {
      const r = await server.exec(box.id, { command: ['python3', '-c', code], user });
      assert.equal(r.exitCode, 0, r.stderr);
      const lines = r.stdout.trim().split('\n');
      assert.equal(lines.length, 12);
      for (const line of lines) assert.match(line, / ENOPROTOOPT$/);
    }
    await remove(server, box.id);
  });
});
