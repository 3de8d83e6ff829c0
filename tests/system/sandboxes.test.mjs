import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { Server, sleep, until } from '../lib/server.mjs';
import { assertRefused, clear, exists, finish, initPid, list, metric, remove, sandboxesInKernel, sha256, startBeside, startCommand } from './support.mjs';

const RFC3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

describe('sandboxes', () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--max-sandboxes', '60'] });
  });
  after(() => finish(server));

  describe('creation', () => {
    afterEach(() => clear(server));

    it('needs no option at all, and answers with the shape that clients rely on', async () => {
      const answer = await server.request('POST', '/v1/sandboxes', {});
      assert.equal(answer.status, 201);
      const box = answer.json;
      assert.match(box.id, /^[a-z0-9]{20}$/);
      assert.equal(box.status, 'idle');
      assert.equal(box.template, 'base');
      assert.equal(box.name, '');
      assert.match(box.createdAt, RFC3339_UTC);
      assert.ok(Math.abs(Date.parse(box.createdAt) - Date.now()) < 60000);
      assert.deepEqual(box.resources, { memory: '1Gi', cpu: '1000m', pids: 512, openFiles: 4096, disk: '10Gi' });
      assert.deepEqual(box.metadata, {});
      assert.equal(box.project, '');
      assert.equal(box.executions, 0);
      assert.equal('expiresAt' in box, false, 'without an idle timeout nothing expires');
    });

    it('keeps name, description, project and metadata as they were given', async () => {
      const wanted = {
        name: 'A.name_with-signs.1',
        description: 'ünïcode, "quotes" and\nlines 🦫',
        project: 'alpha/beta',
        metadata: { team: 'red', ticket: 42, nested: { list: [1, 'two', null, true] }, 'odd key.é': '' },
      };
      const made = await server.create(wanted);
      const { json } = await server.request('GET', `/v1/sandboxes/${made.id}`);
      for (const box of [made, json]) for (const [key, value] of Object.entries(wanted)) assert.deepEqual(box[key], value, key);
    });

    it('gives its environment to every command', async () => {
      const box = await server.create({ env: { GREETING: 'hello wörld', EMPTY: '', LINES: 'a\nb', PATH: '/opt:/usr/bin:/bin' } });
      const r = await server.exec(box.id, 'printf "%s|%s|%s|%s" "$GREETING" "${EMPTY-unset}" "$LINES" "$PATH"');
      assert.equal(r.stdout, 'hello wörld||a\nb|/opt:/usr/bin:/bin');
      assert.deepEqual(box.env, { GREETING: 'hello wörld', EMPTY: '', LINES: 'a\nb', PATH: '/opt:/usr/bin:/bin' });
    });

    it('shows the environment back whole, also under very long names', async () => {
      const long = 'L'.repeat(1500);
      const { env } = await server.create({ env: { [`${long}1`]: 'one', [`${long}2`]: 'two' } });
      assert.equal(env[`${long}1`], 'one');
      assert.equal(env[`${long}2`], 'two');
    });

    it('writes files as text and as base64, with their modes and missing directories, for its user', async () => {
      const binary = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      const box = await server.create({
        files: [
          { path: '/home/user/plain.txt', content: 'grüße\n' },
          { path: 'relative.txt', content: 'in the working directory' },
          { path: '/tmp/deep/er/bytes.bin', content: binary.toString('base64'), encoding: 'base64' },
          { path: '/home/user/run.sh', content: '#!/bin/sh\necho it runs\n', mode: '0755' },
          { path: '/home/user/secret', content: 's', mode: '600' },
          { path: '/home/user/empty', content: '' },
        ],
      });
      const r = await server.exec(box.id, {
        command: [
          'sh',
          '-c',
          'cat plain.txt relative.txt; echo; sha256sum < /tmp/deep/er/bytes.bin; ./run.sh; ' +
            'stat -c "%a %U %s" plain.txt run.sh secret empty /tmp/deep/er/bytes.bin /tmp/deep',
        ],
      });
      assert.equal(
        r.stdout,
        'grüße\nin the working directory\n' +
          `${sha256(binary)}  -\nit runs\n` +
          '644 user 8\n755 user 23\n600 user 1\n644 user 0\n644 user 256\n' +
          r.stdout.slice(r.stdout.lastIndexOf('755 user')),
      );
    });

    it('writes a large file byte by byte', async () => {
      const content = 'x'.repeat(1000) + '\n';
      const box = await server.create({ files: [{ path: '/tmp/large', content: content.repeat(8000) }] });
      const r = await server.exec(box.id, 'wc -c < /tmp/large; uniq /tmp/large | wc -l');
      assert.equal(r.stdout, `${1001 * 8000}\n1\n`);
    });

    it('leaves nothing when a file cannot be written', async () => {
      const before = await metric(server, 'sandboxes');
      const answer = await server.request('POST', '/v1/sandboxes', {
        name: 'never-made',
        files: [
          { path: '/tmp/fine', content: '' },
          { path: '/etc/passwd', content: 'not for user' },
        ],
      });
      assertRefused(answer, 403, 'permission_denied', 'files[1]');
      await until('it is gone', async () => (await metric(server, 'sandboxes')) === before);
      assert.deepEqual(await list(server, '?name=never-made'), []);
    });

    it('runs commands and writes files as its user', async () => {
      const box = await server.create({ user: 'root', files: [{ path: '/root/f', content: '' }] });
      const r = await server.exec(box.id, 'id -u; pwd; echo $HOME $USER; stat -c %U /root/f; echo x > /etc/written && echo ok');
      assert.equal(r.stdout, '0\n/root\n/root root\nroot\nok\n');
      assert.equal(box.user, 'root');
    });

    it('starts commands in its working directory', async () => {
      const box = await server.create({ workdir: '/var/tmp', files: [{ path: 'here', content: 'there' }] });
      assert.equal(box.workdir, '/var/tmp');
      assert.equal((await server.exec(box.id, 'pwd; cat here')).stdout, '/var/tmp\nthere');
    });

    it('starts in the home of its user when no working directory was asked for', async () => {
      const box = await server.create();
      const r = await server.exec(box.id, 'id -un; pwd; touch mine && ls -ld "$HOME" | cut -d" " -f3');
      assert.equal(r.stdout, 'user\n/home/user\nuser\n');
    });

    it('takes resources as Kubernetes writes them and shows them back', async () => {
      const box = await server.create({ resources: { memory: '256Mi', cpu: '500m', pids: 64, openFiles: 128, disk: '2Gi' } });
      assert.deepEqual(box.resources, { memory: '256Mi', cpu: '500m', pids: 64, openFiles: 128, disk: '2Gi' });
      const same = await server.create({ resources: { memory: 268435456, cpu: 0.5 } });
      assert.equal(same.resources.memory, '256Mi');
      assert.equal(same.resources.cpu, '500m');
      const whole = await server.create({ resources: { memory: '1G', cpu: '2' } });
      assert.equal(whole.resources.cpu, '2000m');
    });

    it('takes the template by name', async () => {
      const box = await server.create({ template: 'base' });
      assert.equal(box.template, 'base');
    });

    it('treats null like an absent field', async () => {
      const box = await server.create({ name: null, env: null, resources: null, files: null, timeout: null, template: null });
      assert.equal(box.name, '');
    });

    it('gives each execution the time limit of the sandbox, unless it has its own', async () => {
      const box = await server.create({ timeout: { execution: '300ms' } });
      assert.deepEqual(box.timeout, { execution: '300ms' });
      const cut = await server.exec(box.id, 'sleep 30');
      assert.equal(cut.timedOut, true);
      assert.equal(cut.exitCode, 124);
      const own = await server.exec(box.id, { command: 'sleep 0.6; echo done', timeout: '20s' });
      assert.equal(own.stdout, 'done\n');
    });

    it('refuses a name that the tenant uses already, and frees it with the sandbox', async () => {
      const first = await server.create({ name: 'taken' });
      const count = await metric(server, 'sandboxes');
      assertRefused(await server.request('POST', '/v1/sandboxes', { name: 'taken' }), 409, 'name_taken', 'name');
      assert.equal(await metric(server, 'sandboxes'), count);
      await remove(server, first.id);
      const second = await server.create({ name: 'taken' });
      assert.notEqual(second.id, first.id);
    });

    it('gives a name to one of many who ask for it at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => server.request('POST', '/v1/sandboxes', { name: 'contested' })),
      );
      const made = answers.filter((a) => a.status === 201);
      assert.equal(made.length, 1);
      assert.deepEqual([...new Set(answers.filter((a) => a !== made[0]).map((a) => a.status))], [409]);
    });
  });

  describe('get and delete', () => {
    it('shows a running command, and how many there were', async () => {
      const box = await server.create();
      const { stream } = await startCommand(server, box.id, { command: 'read line', stdin: null });
      stream.close();
      const running = await startCommand(server, box.id, { command: ['sleep', '30'] });
      assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.status, 'running');
      running.stream.close();
      await server.exec(box.id, ['true']);
      const { json } = await server.request('GET', `/v1/sandboxes/${box.id}`);
      assert.equal(json.executions, 3);
      await remove(server, box.id);
    });

    it('answers 404 for ids that never were, are gone, or cannot be', async () => {
      const box = await server.create();
      await remove(server, box.id);
      for (const id of [box.id, 'a'.repeat(20), 'short', 'A'.repeat(20), 'x'.repeat(300), 'a b']) {
        const path = `/v1/sandboxes/${encodeURIComponent(id)}`;
        assertRefused(await server.request('GET', path), 404, 'not_found');
        assertRefused(await server.request('DELETE', path), 404, 'not_found');
        assertRefused(await server.request('POST', `${path}/exec`, { command: 'true' }), 404, 'not_found');
      }
    });

    it('ends a running command as cancelled when its sandbox is deleted', async () => {
      const box = await server.create();
      const running = server.exec(box.id, 'echo early; sleep 60');
      await until('it runs', async () => (await list(server, '?status=running')).length === 1);
      await sleep(100);
      await remove(server, box.id);
      const r = await running;
      assert.equal(r.status, 'cancelled');
      assert.equal(r.stdout, 'early\n');
      assert.notEqual(r.exitCode, 0);
    });

    it('lets two delete the same sandbox at once', async () => {
      const box = await server.create();
      const path = `/v1/sandboxes/${box.id}`;
      const answers = await Promise.all([1, 2, 3].map(() => server.request('DELETE', path)));
      for (const { status } of answers) assert.ok(status === 204 || status === 404, `answered ${status}`);
      assert.ok(answers.some((a) => a.status === 204));
      assert.equal(await exists(server, box.id), false);
    });

    it('has nothing left of a sandbox soon after its deletion is answered', async () => {
      const box = await server.create();
      await server.exec(box.id, 'setsid sleep 1000 >/dev/null 2>&1 & echo');
      await remove(server, box.id);
      assert.equal(readFileSync('/proc/self/mountinfo', 'utf8').includes(box.id), false);
      await until('its disk is out of sight', () => !existsSync(server.disks('boxes', box.id)), 2000);
      await until('its socket is gone', () => !existsSync(join(server.data, 'run', `${box.id}.sock`)), 2000);
      await until('its cgroups are gone', () => !sandboxesInKernel(server).includes(box.id), 2000);
    });
  });

  describe('deletion during creation', () => {
    it('is no fault of the server, and leaves it alive, whatever the moment', async () => {
      const cold = await startBeside(server, { args: ['--pool', '0'] });
      const faults = [];
      try {
        for (let round = 0; round < 25; round++) {
          const creating = cold.request('POST', '/v1/sandboxes', { resources: { memory: '64Mi' } });
          const deleting = [];
          let answered = false;
          creating.then(() => (answered = true));
          while (!answered)
            for (const box of await list(cold)) deleting.push(cold.request('DELETE', `/v1/sandboxes/${box.id}`));
          const made = await creating;
          for (const { status } of await Promise.all(deleting)) assert.ok([204, 404].includes(status), `delete: ${status}`);
          if (made.status >= 500) faults.push(made.text);
          if (made.status === 201) await cold.request('DELETE', `/v1/sandboxes/${made.json.id}`);
        }
        assert.deepEqual(await list(cold), []);
      } finally {
        await finish(cold);
      }
      assert.equal(faults.length, 0, `${faults.length} creations answered 5xx, such as ${faults[0]}`);
    });
  });

  describe('prepared ones', () => {
    it('are lent once each, however many ask', async () => {
      const many = await Promise.all(Array.from({ length: 25 }, () => server.create()));
      assert.equal(new Set(many.map((box) => box.id)).size, 25);
      const marks = await Promise.all(many.map(async (box, i) => (await server.exec(box.id, `echo ${i} >> /tmp/mark; cat /tmp/mark`)).stdout));
      assert.deepEqual(marks, many.map((_, i) => `${i}\n`));
      await clear(server);
    });

    it('that died are not lent', async () => {
      const other = await startBeside(server, { args: ['--pool', '3'] });
      try {
        await until('the pool is full', async () => (await metric(other, 'sandboxes_pooled')) === 3);
        for (const id of sandboxesInKernel(other)) process.kill(initPid(other, id), 'SIGKILL');
        await sleep(200);
        for (let i = 0; i < 5; i++) assert.equal((await other.exec((await other.create()).id, 'echo alive')).stdout, 'alive\n');
      } finally {
        await finish(other);
      }
    });
  });

  describe('list', () => {
    const made = [];
    before(async () => {
      for (let i = 0; i < 4; i++)
        made.push(
          await server.create({
            name: `listed-${i}`,
            project: i < 2 ? 'one' : 'two & more',
            metadata: { team: i % 2 ? 'odd' : 'even', number: i, flag: true },
          }),
        );
    });
    after(() => clear(server));
    const names = async (query) => (await list(server, query)).map((box) => box.name);

    it('has all of them in the order of creation', async () => {
      assert.deepEqual(await names(''), ['listed-0', 'listed-1', 'listed-2', 'listed-3']);
    });

    it('filters by project', async () => {
      assert.deepEqual(await names('?project=one'), ['listed-0', 'listed-1']);
      assert.deepEqual(await names('?project=two+%26%20more'), ['listed-2', 'listed-3']);
      assert.deepEqual(await names('?project=three'), []);
    });

    it('filters by name', async () => {
      assert.deepEqual(await names('?name=listed-2'), ['listed-2']);
      assert.deepEqual(await names('?name=listed'), []);
    });

    it('filters by metadata, strings and other values', async () => {
      assert.deepEqual(await names('?metadata.team=odd'), ['listed-1', 'listed-3']);
      assert.deepEqual(await names('?metadata.number=2'), ['listed-2']);
      assert.deepEqual(await names('?metadata.flag=true&metadata.team=even'), ['listed-0', 'listed-2']);
      assert.deepEqual(await names('?metadata.none=x'), []);
    });

    it('filters by status', async () => {
      const { stream } = await startCommand(server, made[1].id, { command: ['sleep', '2'] });
      assert.deepEqual(await names('?status=running'), ['listed-1']);
      assert.deepEqual(await names('?status=idle'), ['listed-0', 'listed-2', 'listed-3']);
      assert.deepEqual(await names('?status=failed'), []);
      stream.close();
      await until('it is idle again', async () => (await names('?status=running')).length === 0);
    });

    it('combines filters', async () => {
      assert.deepEqual(await names('?project=one&metadata.team=odd&status=idle'), ['listed-1']);
    });

    it('pages by limit and cursor, and the last page has no cursor', async () => {
      const seen = [];
      let cursor = '';
      for (let pages = 0; pages < 10; pages++) {
        const { json } = await server.request('GET', `/v1/sandboxes?limit=3${cursor}`);
        seen.push(json.sandboxes.map((box) => box.name));
        if (!json.nextCursor) break;
        cursor = `&cursor=${encodeURIComponent(json.nextCursor)}`;
      }
      assert.deepEqual(seen, [['listed-0', 'listed-1', 'listed-2'], ['listed-3']]);
    });

    it('keeps the filter from page to page', async () => {
      const first = (await server.request('GET', '/v1/sandboxes?limit=1&metadata.team=odd')).json;
      assert.deepEqual(first.sandboxes.map((b) => b.name), ['listed-1']);
      const second = (await server.request('GET', `/v1/sandboxes?limit=1&metadata.team=odd&cursor=${first.nextCursor}`)).json;
      assert.deepEqual(second.sandboxes.map((b) => b.name), ['listed-3']);
      assert.equal(second.nextCursor, undefined);
    });

    it('has those that ended when it is asked for them, by how they did, filtered and in pages', async () => {
      const gone = [];
      for (const team of ['a', 'b', 'a']) gone.push(await server.create({ name: 'gone', project: 'past', metadata: { team } }).then(async (box) => (await remove(server, box.id), box.id)));
      const short = await server.create({ name: 'short', project: 'past', onLease: 'destroy', timeout: { lease: '1s' } });
      await until('its time is over', async () => (await names('?status=terminated&project=past')).length === 1, 20000);
      const ids = async (query) => (await list(server, query)).map((box) => box.id);
      assert.deepEqual(await ids('?status=deleted&project=past'), gone, 'in the order of creation');
      assert.deepEqual(await ids('?status=terminated&name=short'), [short.id]);
      const [box] = await list(server, '?status=deleted&project=past&metadata.team=b');
      assert.deepEqual([box.id, box.status, box.endedBy], [gone[1], 'deleted', 'request']);
      assert.ok(box.endedAt);
      const first = (await server.request('GET', '/v1/sandboxes?status=deleted&project=past&metadata.team=a&limit=1')).json;
      assert.deepEqual(first.sandboxes.map((b) => b.id), [gone[0]]);
      const second = (await server.request('GET', `/v1/sandboxes?status=deleted&project=past&metadata.team=a&limit=1&cursor=${first.nextCursor}`)).json;
      assert.deepEqual([second.sandboxes.map((b) => b.id), second.nextCursor], [[gone[2]], undefined], 'the page goes on behind what is not wanted');
      const shown = server.cli(['ls', '--status', 'deleted', '--project', 'past', '-q']);
      assert.equal(shown.stdout, gone.map((id) => `${id}\n`).join(''));
    });

    it('pages past a sandbox that was deleted since', async () => {
      const extra = await server.create({ name: 'short-lived' });
      const last = await server.create({ name: 'listed-9' });
      const page = (await server.request('GET', '/v1/sandboxes?limit=5')).json;
      assert.equal(page.sandboxes[4].name, 'short-lived');
      await remove(server, extra.id);
      assert.deepEqual(await names(`?cursor=${page.nextCursor}`), ['listed-9']);
      await remove(server, last.id);
    });

    it('shows each exactly once over pages of one, also those that were made in the same millisecond', async () => {
      const more = await Promise.all(Array.from({ length: 40 }, () => server.create({ project: 'burst' })));
      const paged = [];
      let cursor = '';
      do {
        const { json } = await server.request('GET', `/v1/sandboxes?limit=1&project=burst${cursor}`);
        paged.push(...json.sandboxes.map((box) => box.id));
        cursor = json.nextCursor ? `&cursor=${json.nextCursor}` : '';
      } while (cursor && paged.length <= 40);
      await Promise.all(more.map((box) => remove(server, box.id)));
      const missing = more.filter((box) => !paged.includes(box.id)).length;
      assert.equal(missing, 0, `${missing} of 40 were on no page`);
      assert.equal(paged.length, 40);
    });
  });

  describe('quota', () => {
    it('answers 429 beyond the number of sandboxes a tenant may have, and recovers', async () => {
      const keys = ['--api-key', 'a=bnk_aaaaaaaaaaaaaaaa', '--api-key', 'b=bnk_bbbbbbbbbbbbbbbb'];
      const small = await startBeside(server, { args: ['--max-sandboxes', '2', ...keys] });
      try {
        const a = { key: 'bnk_aaaaaaaaaaaaaaaa' };
        const create = (who, body = {}) => small.request('POST', '/v1/sandboxes', body, who);
        const first = await create(a);
        assert.equal((await create(a)).status, 201);
        assertRefused(await create(a), 429, 'quota_exceeded');
        assertRefused(await small.request('POST', '/v1/run', { command: 'true' }, a), 429, 'quota_exceeded');
        assert.equal((await create({ key: 'bnk_bbbbbbbbbbbbbbbb' })).status, 201, 'the quota is per tenant');
        assert.equal((await small.request('DELETE', `/v1/sandboxes/${first.json.id}`, undefined, a)).status, 204);
        assert.equal((await create(a)).status, 201);
      } finally {
        await finish(small);
      }
    });

    it('never lets a burst past the quota', async () => {
      const small = await startBeside(server, { args: ['--max-sandboxes', '5'] });
      try {
        const answers = await Promise.all(Array.from({ length: 20 }, () => small.request('POST', '/v1/sandboxes', {})));
        assert.equal(answers.filter((a) => a.status === 201).length, 5);
        assert.equal(answers.filter((a) => a.status === 429).length, 15);
        assert.equal((await list(small)).length, 5);
      } finally {
        await finish(small);
      }
    });
  });

  describe('idle timeout', () => {
    const gone = (id, ms) => until(`${id} is gone`, async () => !(await exists(server, id)), ms);

    it('destroys a sandbox that nobody used for that long', async () => {
      const box = await server.create({ timeout: { idle: '800ms' } });
      assert.deepEqual(box.timeout, { idle: '800ms' });
      assert.match(box.expiresAt, RFC3339_UTC);
      const left = Date.parse(box.expiresAt) - Date.now();
      assert.ok(left > 0 && left <= 900, `expires in ${left} ms`);
      await sleep(400);
      assert.equal(await exists(server, box.id), true);
      await gone(box.id, 3000);
    });

    it('starts again with every execution', async () => {
      const box = await server.create({ timeout: { idle: '1s' } });
      for (let i = 0; i < 4; i++) {
        await sleep(500);
        assert.equal((await server.exec(box.id, 'echo $$')).exitCode, 0);
      }
      await gone(box.id, 4000);
    });

    it('does not run while a command runs, also without a client', async () => {
      const box = await server.create({ timeout: { idle: '500ms' } });
      const { id, stream } = await startCommand(server, box.id, { command: 'sleep 2; echo finished' });
      stream.close();
      await sleep(1500);
      const { json } = await server.request('GET', `/v1/sandboxes/${box.id}`);
      assert.equal(json.status, 'running');
      assert.equal('expiresAt' in json, false, 'what is in use has no time of expiry');
      const result = (await server.request('GET', `/v1/executions/${id}?wait=10s`)).json;
      assert.equal(result.stdout, 'finished\n');
      await gone(box.id, 4000);
    });

    it('does not run while a stream is open', async () => {
      const box = await server.create({ timeout: { idle: '600ms' } });
      const { stream } = await startCommand(server, box.id, { command: 'head -c 6000000 /dev/zero | tr "\\0" x' });
      stream.response.pause();
      await sleep(2000);
      assert.equal(await exists(server, box.id), true, 'somebody still reads its output');
      let last;
      for await (const event of stream.events) last = event;
      assert.equal(last.type, 'exit');
      assert.equal(last.exitCode, 0);
      await gone(box.id, 4000);
    });

    it('is not moved by looking at the sandbox', async () => {
      const box = await server.create({ timeout: { idle: '700ms' } });
      const end = Date.now() + 3000;
      while ((await exists(server, box.id)) && Date.now() < end) await sleep(100);
      assert.equal(await exists(server, box.id), false);
    });

    it('of zero means never', async () => {
      const box = await server.create({ timeout: { idle: '0s' } });
      assert.equal('expiresAt' in box, false);
      await remove(server, box.id);
    });
  });
});
