/*
 * What is walked through. Each step is
 *
 *     prepare(w)           what must be there before; its result is ctx
 *     act(w, ctx)          the operation: it is acknowledged when this returns, and it may fail at any point
 *     check(w, ctx, ack)   after the restart; ack is { value } of act when it was acknowledged, else undefined
 *
 * Add yours here: whatever is acknowledged must hold after kill -9 of any process at any step.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { until } from '../lib/server.mjs';

const digest = (text) => createHash('sha256').update(text).digest('hex');

async function marked(w, options = {}) {
  const box = await w.create(options);
  await w.exec(box.id, 'echo kept > ~/mark');
  return box;
}

/** The sandbox is there, whatever it is now, and has its file. */
async function isKept(w, box) {
  const now = await w.expect(200, 'GET', `/v1/sandboxes/${box.id}`);
  if (!['idle', 'running'].includes(now.status)) await w.expect(200, 'POST', `/v1/sandboxes/${box.id}/resume`);
  assert.equal(await w.exec(box.id, 'cat ~/mark'), 'kept\n');
  return now;
}

const moved = (path, body, state) => ({
  prepare: (w) => marked(w),
  act: (w, box) => w.expect(200, 'POST', `/v1/sandboxes/${box.id}/${path}`, body),
  async check(w, box, ack) {
    const { status } = await w.expect(200, 'GET', `/v1/sandboxes/${box.id}`);
    if (ack) assert.equal(status, state);
    await isKept(w, box);
  },
});

const resumed = (memory) => ({
  async prepare(w) {
    const box = await marked(w);
    await w.expect(200, 'POST', `/v1/sandboxes/${box.id}/pause`, { memory });
    return box;
  },
  act: (w, box) => w.expect(200, 'POST', `/v1/sandboxes/${box.id}/resume`),
  async check(w, box, ack) {
    const now = await isKept(w, box);
    if (ack) assert.equal(now.status, 'idle');
  },
});

export const steps = {
  create: {
    prepare: async () => undefined,
    act: (w) => w.create({ name: 'made', files: [{ path: 'mark', content: 'kept\n' }] }),
    async check(w, ctx, ack) {
      const all = await w.sandboxes();
      assert.ok(all.length <= 1, JSON.stringify(all));
      if (ack) assert.equal(all[0]?.id, ack.value.id, 'what was acknowledged is there');
      if (all[0]) await isKept(w, all[0]);
    },
  },

  'create with other limits': {
    prepare: async () => undefined,
    act: (w) => w.create({ resources: { memory: '64Mi', pids: 50 } }),
    async check(w, ctx, ack) {
      if (ack) assert.equal((await w.expect(200, 'GET', `/v1/sandboxes/${ack.value.id}`)).status, 'idle');
    },
  },

  exec: {
    prepare: (w) => marked(w),
    act: (w, box) => w.expect(200, 'POST', `/v1/sandboxes/${box.id}/exec`, { command: 'echo done > ~/done; seq 20000' }),
    async check(w, box, ack) {
      const stored = ack && (await w.expect(200, 'GET', `/v1/executions/${ack.value.executionId}`));
      const now = await isKept(w, box);
      if (!ack) return;
      assert.deepEqual([stored.status, now.status, now.executions], ['completed', 'idle', 2], 'it is not seen running again, nor counted twice');
      assert.equal(await w.exec(box.id, 'cat ~/done'), 'done\n');
      assert.equal(digest(stored.stdout), digest(ack.value.stdout), 'not a byte is missing or doubled');
    },
  },

  run: {
    prepare: async () => undefined,
    act: (w) => w.expect(200, 'POST', '/v1/run', { command: 'echo ran' }),
    async check(w, ctx, ack) {
      if (ack) assert.equal(ack.value.stdout, 'ran\n');
    },
  },

  write: {
    prepare: (w) => marked(w),
    act: (w, box) => w.expect(200, 'POST', `/v1/sandboxes/${box.id}/exec`, { command: 'true', files: [{ path: 'big', content: 'x'.repeat(300000) }] }),
    async check(w, box, ack) {
      await isKept(w, box);
      if (ack) assert.equal(await w.exec(box.id, 'wc -c < ~/big'), '300000\n');
    },
  },

  pause: moved('pause', undefined, 'paused'),
  suspend: moved('pause', { memory: false }, 'suspended'),
  resume: resumed(true),
  'resume from disk': resumed(false),

  'wake by a call': {
    async prepare(w) {
      const box = await marked(w, { autoResume: true });
      await w.expect(200, 'POST', `/v1/sandboxes/${box.id}/pause`, { memory: false });
      return box;
    },
    act: (w, box) => w.exec(box.id, 'echo woken > ~/woken'),
    async check(w, box, ack) {
      await isKept(w, box);
      if (ack) assert.equal(await w.exec(box.id, 'cat ~/woken'), 'woken\n');
    },
  },

  update: {
    prepare: (w) => marked(w),
    act: (w, box) => w.expect(200, 'PATCH', `/v1/sandboxes/${box.id}`, { name: 'renamed', env: { NEW: 'yes' }, timeout: { lease: '1h' } }),
    async check(w, box, ack) {
      const now = await isKept(w, box);
      if (ack) assert.deepEqual([now.name, now.env.NEW, Boolean(now.leaseEndsAt)], ['renamed', 'yes', true]);
    },
  },

  delete: {
    prepare: (w) => marked(w),
    async act(w, box) {
      await w.expect(204, 'DELETE', `/v1/sandboxes/${box.id}`);
    },
    async check(w, box, ack) {
      const { status } = await w.request('GET', `/v1/sandboxes/${box.id}`);
      if (ack) assert.equal(status, 404);
      if (status === 200) await isKept(w, box);
    },
  },

  'delete of a paused one': {
    async prepare(w) {
      const box = await marked(w);
      await w.expect(200, 'POST', `/v1/sandboxes/${box.id}/pause`);
      return box;
    },
    async act(w, box) {
      await w.expect(204, 'DELETE', `/v1/sandboxes/${box.id}`);
    },
    async check(w, box, ack) {
      const { status } = await w.request('GET', `/v1/sandboxes/${box.id}`);
      if (ack) assert.equal(status, 404);
    },
  },

  checkpoint: {
    prepare: (w) => marked(w),
    act: (w, box) => w.expect(201, 'POST', `/v1/sandboxes/${box.id}/checkpoints`, { name: 'point' }),
    async check(w, box, ack) {
      const now = await isKept(w, box);
      const { checkpoints } = await w.expect(200, 'GET', `/v1/sandboxes/${box.id}/checkpoints`);
      if (ack) assert.deepEqual(checkpoints.map((c) => c.name), ['point']);
      for (const { name } of checkpoints) {
        await w.exec(box.id, 'echo other > ~/mark');
        await w.expect(200, 'POST', `/v1/sandboxes/${box.id}/checkpoints/${name}/restore`);
        await isKept(w, now);
      }
    },
  },

  restore: {
    async prepare(w) {
      const box = await marked(w);
      await w.expect(201, 'POST', `/v1/sandboxes/${box.id}/checkpoints`, { name: 'point' });
      await w.exec(box.id, 'echo other > ~/mark');
      return box;
    },
    act: (w, box) => w.expect(200, 'POST', `/v1/sandboxes/${box.id}/checkpoints/point/restore`),
    async check(w, box, ack) {
      const now = await w.expect(200, 'GET', `/v1/sandboxes/${box.id}`);
      if (!['idle', 'running'].includes(now.status)) await w.expect(200, 'POST', `/v1/sandboxes/${box.id}/resume`);
      const mark = await w.exec(box.id, 'cat ~/mark');
      assert.ok(ack ? mark === 'kept\n' : ['kept\n', 'other\n'].includes(mark), `either one or the other: ${mark}`);
    },
  },

  'delete of a checkpoint': {
    async prepare(w) {
      const box = await marked(w);
      await w.expect(201, 'POST', `/v1/sandboxes/${box.id}/checkpoints`, { name: 'point' });
      return box;
    },
    act: async (w, box) => void (await w.expect(204, 'DELETE', `/v1/sandboxes/${box.id}/checkpoints/point`)),
    async check(w, box, ack) {
      const { checkpoints } = await w.expect(200, 'GET', `/v1/sandboxes/${box.id}/checkpoints`);
      if (ack) assert.deepEqual(checkpoints, []);
      await isKept(w, box);
    },
  },

  snapshot: {
    prepare: (w) => marked(w),
    act: (w, box) => w.expect(201, 'POST', `/v1/sandboxes/${box.id}/snapshots`, { name: 'shot' }),
    async check(w, box, ack) {
      await isKept(w, box);
      const { snapshots } = await w.expect(200, 'GET', '/v1/snapshots');
      if (ack) assert.deepEqual(snapshots.map((s) => s.id), [ack.value.id]);
      for (const { id } of snapshots) {
        await isKept(w, await w.create({ snapshot: id }));
      }
    },
  },

  'create from a snapshot': {
    async prepare(w) {
      const box = await marked(w);
      return w.expect(201, 'POST', `/v1/sandboxes/${box.id}/snapshots`, { name: 'shot' });
    },
    act: (w, shot) => w.create({ snapshot: shot.id }),
    async check(w, shot, ack) {
      if (ack) await isKept(w, ack.value);
      assert.equal((await w.expect(200, 'GET', '/v1/snapshots')).snapshots.length, 1);
    },
  },

  fork: {
    prepare: (w) => marked(w),
    act: (w, box) => w.expect(201, 'POST', `/v1/sandboxes/${box.id}/fork`, { count: 2 }),
    async check(w, box, ack) {
      await isKept(w, box);
      for (const fork of ack?.value.sandboxes ?? []) await isKept(w, fork);
    },
  },

  'a build': {
    async prepare(w) {
      await w.import('tiny');
    },
    async act(w) {
      const { id } = await w.expect(202, 'POST', '/v1/templates/builds', { name: 'made', from: 'tiny', steps: [{ run: 'echo kept > /mark' }] });
      let build;
      await until('it has ended', async () => ['ready', 'failed'].includes((build = await w.expect(200, 'GET', `/v1/templates/builds/${id}`)).status));
      return build;
    },
    async check(w, ctx, ack) {
      const { templates } = await w.expect(200, 'GET', '/v1/templates');
      const made = templates.find((t) => t.name === 'made' && t.status !== 'failed');
      if (ack?.value.status === 'ready') {
        assert.ok(made, JSON.stringify(templates));
        const box = await w.create({ template: 'made' });
        assert.equal(await w.exec(box.id, 'cat /mark'), 'kept\n');
      }
      await w.useAndDeleteAll();
      for (const name of ['made', 'tiny']) {
        const { status, text } = await w.request('DELETE', `/v1/templates/${name}`);
        assert.ok([204, 404].includes(status), text);
      }
    },
  },
};
