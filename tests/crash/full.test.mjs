// A data directory whose file system was filled from outside: what needs room is refused as such, deletes work and make room, and a
// start needs none.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Server, until } from '../lib/server.mjs';
import { assertRefused, exists, finish, metric, remove } from '../system/support.mjs';

const sh = (command) => execFileSync('sh', ['-c', command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

const kinds = {
  'ext4': { make: 'mkfs.ext4 -q -m 0' },
  'ext4, whose reserve is used up': { make: 'mkfs.ext4 -q -m 0', reserve: false },
  'btrfs': { make: 'mkfs.btrfs -q --mixed' },
};

for (const [kind, { make, reserve = true }] of Object.entries(kinds))
  describe(`a full disk, ${kind}`, { timeout: 100000 }, () => {
    let server, place;
    before(async () => {
      place = mkdtempSync(join(process.env.BUNKER_TEST_TMP ?? '/tmp', 'bunker-full-'));
      sh(`truncate -s 1000M ${place}/image; ${make} ${place}/image; mkdir ${place}/fs; mount -o loop ${place}/image ${place}/fs; chmod 711 ${place} ${place}/fs`);
      server = await Server.start({
        data: join(place, 'fs', 'data'),
        args: ['--pool', '0', '--disk-pool', 'loop', '--disk-pool-size', '256Mi', '--max-disk-pool-size', '256Mi', '--disk', '100Mi'],
      });
    });
    after(async () => {
      try {
        if (server) await finish(server, { killed: true });
      } finally {
        sh(`umount ${place}/fs; rm -rf ${place}`);
      }
    });

    // This blocks: meanwhile the server may close connections that are kept, and nobody here hears of it.
    const fill = () => {
      sh(`cd ${place}/fs; for b in 1M 64k 4k 512; do dd if=/dev/urandom bs=$b 2>/dev/null >>filler.$b || true; sync; done`);
      server.renewAgent();
    };
    const empty = () => sh(`rm -f ${place}/fs/filler*; sync`);
    const post = (path, body) => server.request('POST', path, body);

    let box, other, third;
    it('refuses what needs room as such, and serves the rest', async () => {
      box = await server.create();
      other = await server.create();
      third = await server.create();
      await server.exec(box.id, 'echo precious > ~/mark; sync');
      if (!reserve) sh(`rm ${server.data}/front/bunker.db-reserve/*`);
      fill();
      let made;
      for (let i = 0; i < 50; i++) {
        made = await post('/v1/sandboxes', { metadata: { filler: 'x'.repeat(60000) } });
        if (made.status !== 201) break;
      }
      assertRefused(made, 507, 'no_space');
      for (let i = 0; i < 20; i++) await post('/v1/sandboxes', {});
      assertRefused(await post(`/v1/sandboxes/${box.id}/pause`), 507, 'no_space');
      assertRefused(await post(`/v1/sandboxes/${box.id}/checkpoints`, { name: 'x' }), 507, 'no_space');
      assert.equal((await server.exec(box.id, 'cat ~/mark')).stdout, 'precious\n');
      assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.status, 'idle');
    });

    it('answers a delete', async () => {
      const started = Date.now();
      await remove(server, other.id);
      assert.ok(Date.now() - started < 5000, `it took ${Date.now() - started} ms`);
      assert.ok(!(await exists(server, other.id)));
    });

    it('has another front when one dies, and starts again', { skip: !reserve }, async () => {
      const front = server.frontPid;
      process.kill(front, 'SIGKILL');
      await until('there is another front', () => server.frontPid && server.frontPid !== front);
      server.renewAgent();
      await until('it answers', async () => (await server.request('GET', '/health').catch(() => undefined))?.status === 200);
      assert.equal((await server.exec(box.id, 'cat ~/mark')).stdout, 'precious\n');
      await server.crash();
      await server.launch();
      assert.equal((await server.exec(box.id, 'cat ~/mark')).stdout, 'precious\n');
      assert.ok(!(await exists(server, other.id)), 'what was deleted stays so');
      await remove(server, third.id);
      await server.stop();
      await server.launch();
      assert.equal((await server.exec(box.id, 'cat ~/mark')).stdout, 'precious\n');
    });

    it('does all again when there is room', async () => {
      empty();
      await until('a create works', async () => {
        const made = await post('/v1/sandboxes', {});
        if (made.status === 201) await remove(server, made.json.id);
        return made.status === 201;
      });
      assert.equal((await post(`/v1/sandboxes/${box.id}/checkpoints`, { name: 'x' })).status, 201);
      await until('ends are stored', async () => (await metric(server, 'sandboxes')) === (reserve ? 1 : 2));
      await server.crash();
      await server.launch();
      assert.ok(!(await exists(server, other.id)));
      if (reserve) assert.ok(!(await exists(server, third.id)));
      await remove(server, box.id);
    });
  });
