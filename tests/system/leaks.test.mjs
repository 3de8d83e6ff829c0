// alone: counts what the kernel has while nobody else makes any.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Server, safeReaddir, sleep, until } from '../lib/server.mjs';
import { LONG, cgroupsOf, finish, footprint, list, metric, openConnections, openFiles, residentKib, startCommand } from './support.mjs';

const CYCLES = LONG ? 10000 : 200;

describe('leaks', () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '4'] });
  });
  after(() => finish(server));

  const namespaces = () => {
    const seen = new Set();
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
      try {
        seen.add(readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes('bunker-') && pid);
      } catch {
        // It ended while we looked.
      }
    return seen.size;
  };
  const measure = () => footprint(server, { pooled: 4 });

  const cycle = async (i) => {
    const bad = (path, body) => server.request('POST', path, body);
    if (i % 10 === 3) await bad('/v1/sandboxes', { files: [{ path: '/etc/passwd', content: 'x' }] });
    if (i % 10 === 4) await bad('/v1/sandboxes', { resources: { memory: '1' } });
    if (i % 10 === 5) await bad('/v1/run', { command: 'true', user: 'nobody-knows' });
    const box = await server.create(i % 3 ? {} : { resources: { memory: '200Mi' }, files: [{ path: '/tmp/f', content: 'f' }] });
    if (i % 7 === 0) await server.exec(box.id, { command: '(setsid sleep 1000 &); sleep 9', timeout: '20ms' });
    else if (i % 7 === 1) await server.exec(box.id, 'head -c 200000 /dev/zero');
    else if (i % 7 === 2) await bad(`/v1/sandboxes/${box.id}/exec`, { command: 'true', cwd: '/nowhere' });
    else if (i % 7 === 3) (await startCommand(server, box.id, { command: 'sleep 30' })).stream.close();
    else await server.exec(box.id, ['true']);
    const gone = await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    assert.equal(gone.status, 204);
  };

  it(`E69 ${CYCLES} sandboxes come and go, some of them failing, and leave nothing`, async () => {
    for (let i = 0; i < 30; i++) await cycle(i);
    const before = await measure();
    const memory = residentKib(server.frontPid);
    for (let i = 0; i < CYCLES; i += 4) await Promise.all([0, 1, 2, 3].map((n) => cycle(i + n)));
    const afterwards = await measure();
    assert.deepEqual(afterwards, before);
    const sanitized = /asan/.test(readFileSync(`/proc/${server.frontPid}/maps`, 'utf8'));
    const grown = residentKib(server.frontPid) - memory;
    assert.ok(sanitized || grown < 2048, `the front grew by ${grown} KiB`);
    assert.equal(namespaces() > 0, true);
  });

  it('many executions in one sandbox leave nothing in it', async () => {
    const box = await server.create();
    const inside = async () => {
      // By the shell alone: what a pipe starts may not be there yet, or not any more.
      const r = await server.exec(box.id, { command: 'set -- /proc/[0-9]*; echo $#', user: 'root' });
      return Number(r.stdout);
    };
    const cgroups = () => safeReaddir(join(cgroupsOf(server).find((dir) => safeReaddir(join(dir, box.id)).includes('cgroup.kill')), box.id)).filter((name) => /^e\d+$/.test(name)).length;
    for (let i = 0; i < 20; i++) await server.exec(box.id, ['true']);
    const before = await inside();
    for (let i = 0; i < 100; i++)
      await Promise.all([
        server.exec(box.id, ['true']),
        server.exec(box.id, '(setsid sleep 0.05 >/dev/null 2>&1 &)'),
        server.exec(box.id, ['no-such-program']),
        server.exec(box.id, { command: 'cat', stdin: 'x'.repeat(1000) }),
      ]);
    await sleep(200);
    assert.equal(await inside(), before);
    await until('few cgroups are left', () => cgroups() <= 16, 3000);
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
  });

  it('long outputs are on disk only as long as they are kept, and no descriptor stays open', async () => {
    const box = await server.create();
    // Each sandbox of the pool is a descriptor, and each connection.
    const quiet = async () => {
      await until('the pool is full', async () => (await metric(server, 'sandboxes_pooled')) === 4);
      server.agent.destroy();
      await until('the connections are closed', () => openConnections(server) === 0);
      return openFiles(server.frontPid);
    };
    const before = await quiet();
    for (let i = 0; i < 30; i++) await server.exec(box.id, 'head -c 300000 /dev/zero');
    await until('the descriptors are closed', async () => (await quiet()) <= before, 5000);
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    assert.deepEqual(await list(server), []);
  });
});
