// Checkpoints: named restore points of one sandbox, made while it runs.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Server, childrenOf, commandName, safeReaddir, sleep, until } from '../lib/server.mjs';
import { assertRefused, finish, killServer } from './support.mjs';

const isRoot = process.getuid() === 0;
const setup = 'echo one > f; mkdir -p d/empty; ln -s f l; chmod 751 f; ln f hard; dd if=/dev/urandom of=blob bs=64k count=8 2>/dev/null; sudo rm /etc/hostname; sudo mv /var/lib/dpkg /var/lib/moved; sha256sum blob > sums';
/* Counts in five files, one after the other, each in another way; whoever sees a later one sees all before it. */
const writer = `
import mmap, os
first, log, synced = (os.open('count-' + n, os.O_RDWR | os.O_CREAT | os.O_APPEND * (n == 'log')) for n in ('first', 'log', 'synced'))
mapped = os.open('count-mapped', os.O_RDWR | os.O_CREAT)
os.ftruncate(mapped, 4096)
mapped = mmap.mmap(mapped, 4096)
i = 0
while True:
    i += 1
    n = b'%09d' % i
    os.pwrite(first, n, 0)
    os.write(log, n + b'\\n')
    os.pwrite(synced, n, 100000)
    if i % 20 == 0: os.fsync(synced)
    mapped[0:9] = n
    new = os.open('count-new', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(new, n)
    os.close(new)
    os.rename('count-new', 'count-last')
`;
const look = 'cat f; stat -c "%a %h %n" f hard; readlink l; ls d; test -e /etc/hostname; echo $?; ls -d /var/lib/moved /var/lib/dpkg 2>&1; sha256sum -c sums';

for (const [pool, args] of [['in a btrfs pool', []], ['in plain directories', ['--disk-pool', 'directory']]])
  describe(`checkpoints ${pool}`, { skip: !isRoot && 'needs root', timeout: 120000 }, () => {
    let server, box, path;
    const make = (name) => server.request('POST', `${path}/checkpoints`, { name });
    const restore = (name) => server.request('POST', `${path}/checkpoints/${name}/restore`);
    before(async () => {
      server = await Server.start({ args: ['--pool', '1', ...args] });
      box = await server.create();
      path = `/v1/sandboxes/${box.id}`;
    });
    after(() => finish(server));

    it('bring back every file as it was: modes, links, deletions, renamed directories', async () => {
      assert.equal((await server.exec(box.id, setup)).exitCode, 0);
      const before = (await server.exec(box.id, look)).stdout;
      const made = await make('before');
      assert.equal(made.status, 201, made.text);
      assert.match(made.json.id, /^[a-z0-9]{20}$/);
      assert.equal(made.json.name, 'before');
      assert.equal(made.json.parent, '');
      await server.exec(box.id, 'rm -rf f hard l d blob; echo new > new; sudo mv /var/lib/moved /var/lib/dpkg; echo x | sudo tee /etc/hostname');
      const answer = await restore('before');
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.json.status, 'idle');
      assert.equal((await server.exec(box.id, look)).stdout, before);
      assert.equal((await server.exec(box.id, 'ls new')).exitCode, 2);
    });

    it('end processes when they are restored, and give the sandbox a new boot id', async () => {
      const old = (await server.request('GET', path)).json.bootId;
      const running = server.request('POST', `${path}/exec`, { command: 'sleep 300' });
      await until('it runs', async () => (await server.request('GET', path)).json.status === 'running');
      const answer = await restore('before');
      assert.equal(answer.status, 200, answer.text);
      assert.notEqual(answer.json.bootId, old);
      const ended = await running;
      assert.equal(ended.json.status, 'cancelled', ended.text);
      assert.equal((await server.exec(box.id, 'pgrep sleep')).exitCode, 1);
    });

    it('do not stop a running process, and are of one moment', async () => {
      const start = await server.request('POST', `${path}/processes`, { command: ['python3', '-c', writer] });
      const { pid } = start.json;
      await until('it has begun', async () => (await server.exec(box.id, 'cat count-last')).stdout);
      for (let i = 0; i < 5; i++) {
        const made = await make(`moment-${i}`);
        assert.equal(made.status, 201, made.text);
        if (pool.includes('btrfs')) assert.ok(made.json.frozenMs < 5000, `it stood still for ${made.json.frozenMs} ms`);
        assert.equal((await server.exec(box.id, `kill -0 ${pid}`)).exitCode, 0, 'it goes on');
      }
      for (let i = 0; i < 5; i++) {
        await restore(`moment-${i}`);
        const seen = (await server.exec(box.id, 'cat count-first; echo; tail -n 1 count-log; tail -c 9 count-synced; echo; head -c 9 count-mapped; echo; cat count-last')).stdout.trim().split('\n');
        assert.ok(seen.length === 5 && seen.every((n) => /^\d{9}$/.test(n)), `whole numbers: ${seen}`);
        const order = seen.map(Number);
        assert.ok(order.every((n, k) => k === 0 || n === order[k - 1] || n === order[k - 1] - 1), `in the order in which they were written: ${seen}`);
        assert.ok(order[0] - order[4] <= 1, `of one round or two: ${seen}`);
        assert.equal((await server.exec(box.id, `test "$(wc -l < count-log)" -eq ${order[1]}`)).exitCode, 0, 'no line is missing');
      }
    });

    it('are listed in order, found by id and name, and deleted', async () => {
      const list = (await server.request('GET', `${path}/checkpoints`)).json.checkpoints;
      assert.deepEqual(list.map((c) => c.name), ['before', 'moment-0', 'moment-1', 'moment-2', 'moment-3', 'moment-4']);
      for (const ref of [list[0].id, 'before']) {
        const one = await server.request('GET', `${path}/checkpoints/${ref}`);
        assert.deepEqual(one.json, list[0]);
      }
      assert.equal((await server.request('DELETE', `${path}/checkpoints/moment-2`)).status, 204);
      assertRefused(await server.request('GET', `${path}/checkpoints/moment-2`), 404, 'not_found');
      assertRefused(await server.request('DELETE', `${path}/checkpoints/moment-2`), 404, 'not_found');
      assertRefused(await restore('moment-2'), 404, 'not_found');
      assert.equal((await restore('moment-3')).status, 200);
    });

    it('refuse what makes no sense', async () => {
      assertRefused(await make('before'), 409, 'name_taken', 'name');
      assertRefused(await make(''), 400, 'invalid_field', 'name');
      assertRefused(await make('x'.repeat(64)), 400, 'invalid_field', 'name');
      assertRefused(await server.request('POST', `${path}/checkpoints`, {}), 400, 'missing_field', 'name');
      assertRefused(await server.request('POST', `${path}/checkpoints`, { name: 'a', more: 1 }), 400, 'unknown_field', 'more');
    });

    it('work on a paused sandbox, which stays paused, and on a suspended one', async () => {
      await server.exec(box.id, 'echo paused > state; sleep 1000 >/dev/null 2>&1 &');
      await server.request('POST', `${path}/pause`);
      assert.equal((await make('while-paused')).status, 201);
      assert.equal((await server.request('GET', path)).json.status, 'paused');
      await server.request('POST', `${path}/resume`);
      assert.equal((await server.exec(box.id, 'pgrep sleep')).exitCode, 0, 'its processes are those from before');
      await server.request('POST', `${path}/pause`, { memory: false });
      const made = await make('while-suspended');
      assert.equal(made.status, 201, made.text);
      const answer = await restore('while-paused');
      assert.equal(answer.json.status, 'suspended');
      await server.request('POST', `${path}/resume`);
      assert.equal((await server.exec(box.id, 'cat state')).stdout, 'paused\n');
    });

    it('survive a kill -9 of everything, and the keeper', async () => {
      await server.exec(box.id, 'echo kept > state');
      const kept = await make('kept');
      assert.equal(kept.status, 201, kept.text);
      await server.exec(box.id, 'echo other > state');
      const names = (await server.request('GET', `${path}/checkpoints`)).json.checkpoints.map((c) => c.name);
      await killServer(server);
      await server.launch();
      assert.deepEqual((await server.request('GET', `${path}/checkpoints`)).json.checkpoints.map((c) => [c.name, c.status]), names.map((name) => [name, 'ready']));
      assert.equal((await make('behind')).json.parent, kept.json.id, 'and so does their line');
      assert.equal((await restore('kept')).status, 200);
      assert.equal((await server.exec(box.id, 'cat state')).stdout, 'kept\n');
    });

    it('go with their sandbox', async () => {
      const other = await server.create();
      await server.request('POST', `/v1/sandboxes/${other.id}/checkpoints`, { name: 'gone' });
      const count = safeReaddir(server.disks('checkpoints')).length;
      await server.request('DELETE', `/v1/sandboxes/${other.id}`);
      await until('its checkpoint is gone', () => safeReaddir(server.disks('checkpoints')).length === count - 1);
    });

    it('throw away everything when they are asked to discard', async () => {
      const answer = await server.request('POST', `${path}/discard`);
      assert.equal(answer.status, 200, answer.text);
      assert.equal((await server.exec(box.id, 'ls -A; cat /etc/hostname')).stdout, '.bashrc\n.profile\nsandbox\n');
      assert.equal((await make('anew')).json.parent, '', 'the line begins anew');
      assert.equal((await restore('kept')).status, 200, 'the checkpoints are still there');
    });
  });

describe('a checkpoint that is cut short', { skip: !isRoot && 'needs root', timeout: 60000 }, () => {
  it('leaves the sandbox running, whatever the moment in which the keeper dies', async () => {
    const server = await Server.start({ args: ['--pool', '0'] });
    const box = await server.create();
    await server.exec(box.id, 'echo here > f');
    const path = `/v1/sandboxes/${box.id}`;
    for (let i = 0; i < 12; i++) {
      const making = server.request('POST', `${path}/checkpoints`, { name: `n${i}` });
      await sleep(i);
      const keeper = childrenOf(server.wardenPid).find((pid) => commandName(pid) === 'bunker-keeper');
      for (const pid of [...childrenOf(keeper), keeper]) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It was faster.
        }
      }
      const made = await making;
      assert.equal(made.status, 201, made.text);
      assert.equal((await server.exec(box.id, 'cat f')).stdout, 'here\n');
    }
    assert.equal((await server.request('POST', `${path}/checkpoints/n7/restore`)).status, 200);
    await until('nothing is left frozen', () => safeReaddir(server.disks('frozen')).length === 0);
    server.log.text = server.log.text.replace(/.*(one of the disks' processes died|a disk operation failed).*\n/g, '');
    await finish(server);
  });
});
