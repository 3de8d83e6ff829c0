// E152 and E153: what is kept of commands takes the host's disk, and its files take descriptors. One tenant gets its share of both,
// and the others notice nothing.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, writeFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Server, dataDirectory, sleep, until } from '../lib/server.mjs';
import { finish } from '../system/support.mjs';

const HEAVY = `bnk_${'a'.repeat(40)}`;
const MIB = 2 ** 20;

/** Bytes and names of the files in the spool. */
function spool(server) {
  const dir = join(server.data, 'front/spool');
  const names = readdirSync(dir);
  const sizes = names.map((name) => statSync(join(dir, name), { throwIfNoEntry: false })?.size ?? 0);
  return { bytes: sizes.reduce((sum, n) => sum + n, 0), names };
}

const as = (server, key) => ({
  request: (method, path, body) => server.request(method, path, body, { key }),
  async create(body = {}) {
    const answer = await server.request('POST', '/v1/sandboxes', body, { key });
    assert.equal(answer.status, 201, answer.text);
    return answer.json.id;
  },
  async exec(id, command) {
    const answer = await server.request('POST', `/v1/sandboxes/${id}/exec`, { command }, { key });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  },
  async start(id, command) {
    const answer = await server.request('POST', `/v1/sandboxes/${id}/processes`, { command }, { key });
    assert.equal(answer.status, 201, answer.text);
    return answer.json.id;
  },
});

const zeros = (mib) => `head -c ${mib}M /dev/zero | tr '\\0' x`;

describe('a tenant that keeps a lot', { timeout: 180000 }, () => {
  const LIMIT = 32 * MIB;
  let server, heavy, other, box, control;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0', '--api-key', `heavy=${HEAVY}`, '--kept-limit', '32Mi', '--quota', 'heavy=disk:32Mi', '--disk', '16Mi'] });
    heavy = as(server, HEAVY);
    other = as(server, server.key);
    box = await heavy.create();
    control = { box: await other.create() };
    control.execution = (await other.exec(control.box, zeros(2))).executionId;
  });
  after(() => finish(server, { killed: true }));

  const controlIsThere = async () => {
    const answer = await other.request('GET', `/v1/executions/${control.execution}`);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.stdout.length, 2 * MIB, 'control: the other tenant has its results');
    assert.equal(answer.json.outputTruncated, false);
  };

  it('E152_results_beyond_a_tenants_share_go_the_oldest_first', async () => {
    const ids = [];
    for (let i = 0; i < 12; i++) {
      const r = await heavy.exec(box, zeros(4));
      assert.equal(r.outputTruncated, false, 'control: one by one each finds room, because the oldest go');
      assert.equal(r.stdout.length, 4 * MIB);
      ids.push(r.executionId);
      for (const id of ids.slice(-4)) assert.equal((await heavy.request('GET', `/v1/executions/${id}`)).status, 200, 'no more go than must');
    }
    assert.ok(spool(server).bytes <= LIMIT + 2 * MIB, `${spool(server).bytes} bytes in the spool`);
    const statuses = [];
    for (const id of ids) statuses.push((await heavy.request('GET', `/v1/executions/${id}`)).status);
    assert.deepEqual([statuses[0], statuses.at(-1)], [404, 200]);
    assert.deepEqual(statuses, statuses.toSorted((a, b) => b - a), 'those that are gone are the oldest');
    await controlIsThere();
  });

  it('E152_forty_floods_at_once_do_not_pass_the_share', async () => {
    const started = [];
    let most = 0;
    let over = false;
    // Sizes are read one by one: a sum counts only if no file left meanwhile, else it may hold more than there was at any moment.
    const watching = (async () => {
      for (; !over; await sleep(5)) {
        const { bytes, names } = spool(server);
        const left = new Set(spool(server).names);
        if (names.every((name) => left.has(name))) most = Math.max(most, bytes);
      }
    })();
    for (let i = 0; i < 40; i++) started.push(await heavy.start(box, `${zeros(8)} & ${zeros(8)} >&2; wait`));
    await until('all have ended', async () => (await heavy.request('GET', `/v1/sandboxes/${box}`)).json.status === 'idle', 60000);
    over = true;
    await watching;
    assert.ok(most > LIMIT / 2, `control: the attack wrote ${most} bytes`);
    assert.ok(most <= LIMIT + 3 * MIB, `${most} bytes in the spool`);
    await controlIsThere();
    const answer = await other.exec(control.box, zeros(4));
    assert.deepEqual([answer.stdout.length, answer.outputTruncated], [4 * MIB, false]);
  });

  it('E152_what_is_kept_is_counted_again_by_the_next_front', async () => {
    const front = server.frontPid;
    process.kill(front, 'SIGKILL');
    server.renewAgent();
    await until('another front serves', () => server.request('GET', '/health').then((r) => r.status === 200, () => false));
    assert.notEqual(server.frontPid, front);
    await controlIsThere();
    for (let i = 0; i < 8; i++) assert.equal((await heavy.exec(box, zeros(4))).outputTruncated, false);
    await until('the oldest are gone', () => spool(server).bytes <= LIMIT + 6 * MIB);
  });

  it('E152_rows_with_long_command_lines_count', async () => {
    const line = 'x'.repeat(400000);
    for (let i = 0; i < 100; i++) assert.equal((await heavy.exec(box, ['true', line.slice(0, 120000), line.slice(0, 120000)])).exitCode, 0);
    const listed = async () => {
      let bytes = 0;
      for (let path = '/v1/executions?limit=100', page; path; path = page.nextCursor && `/v1/executions?limit=100&cursor=${page.nextCursor}`) {
        page = (await heavy.request('GET', path)).json;
        for (const x of page.executions) bytes += JSON.stringify(x).length;
      }
      return bytes;
    };
    assert.ok((await listed()) <= LIMIT, 'what is listed is within the share');
    await controlIsThere();
  });

  it('E152_output_of_a_build_leaves_no_file', async () => {
    const before = spool(server).names.filter((name) => !name.endsWith('.log'));
    const answer = await other.request('POST', '/v1/templates/builds', { name: 'chatty', steps: [{ run: 'seq 40000' }] });
    assert.equal(answer.status, 202, answer.text);
    const { status } = await until('it is built', async () => {
      const { json } = await other.request('GET', `/v1/templates/builds/${answer.json.id}`);
      return ['ready', 'failed'].includes(json.status) && json;
    });
    assert.equal(status, 'ready');
    const log = statSync(join(server.data, 'front/spool', `${answer.json.id}.log`));
    assert.ok(log.size > 200000, 'control: it is in the log');
    assert.deepEqual(spool(server).names.filter((name) => !name.endsWith('.log') && !before.includes(name)), []);
  });

  it('E152_a_file_that_no_execution_has_is_removed_at_the_next_start', async () => {
    const orphan = join(server.data, 'front/spool', `${'z'.repeat(20)}.0`);
    const kept = join(server.data, 'front/spool', `${control.execution}.0`);
    writeFileSync(orphan, 'left by a server that died');
    await server.stop();
    await server.launch();
    await until('it is gone', () => !existsSync(orphan));
    assert.ok(existsSync(kept), 'control: a file of a result stays');
    await controlIsThere();
  });
});

describe('a file system that is nearly full', { timeout: 60000 }, () => {
  let server;
  const mount = dataDirectory();
  const data = join(mount, 'data');
  before(async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m,mode=711', 'tmpfs', mount]);
    server = await Server.start({ data, args: ['--pool', '0', '--disk-pool', 'directory'] });
  });
  after(async () => {
    try {
      await finish(server);
    } finally {
      execFileSync('umount', [mount]);
      rmSync(mount, { recursive: true, force: true });
    }
  });

  it('E152_below_a_reserve_nothing_is_spooled_and_the_answer_says_so', async () => {
    const box = await server.create();
    const whole = await server.exec(box.id, zeros(1));
    assert.deepEqual([whole.stdout.length, whole.outputTruncated], [MIB, false], 'control: there is room');
    const room = Number(execFileSync('df', ['--output=avail', '-B1', data]).toString().split('\n')[1]);
    execFileSync('fallocate', ['-l', String(room - 10 * MIB), join(data, 'filler')]);
    await until('the front has seen it', async () => (await server.exec(box.id, zeros(1))).outputTruncated);
    const cut = await server.exec(box.id, zeros(1));
    assert.equal(cut.exitCode, 0);
    assert.ok(cut.stdout.length <= 32768, 'what is in memory is told');
    assert.equal((await server.exec(box.id, 'echo short')).stdout, 'short\n');
    rmSync(join(data, 'filler'));
    await until('there is room again', async () => !(await server.exec(box.id, zeros(1))).outputTruncated);
  });
});

describe('logs of builds', { timeout: 180000 }, () => {
  const LIMIT = 24 * MIB;
  let server;
  before(async () => {
    server = await Server.start({ args: ['--pool', '0', '--kept-limit', '24Mi', '--api-key', `heavy=${HEAVY}`] });
  });
  after(() => finish(server, { killed: true }));

  const heavy = (method, path, body) => server.request(method, path, body, { key: HEAVY });
  const build = async (name, run, key = HEAVY) => {
    const { json, text } = await server.request('POST', '/v1/templates/builds', { name, from: 'base', steps: [{ run: `${run}; : ${name}` }] }, { key });
    assert.ok(json.id, text);
    return await until('the build has ended', async () => {
      const { json: now } = await server.request('GET', `/v1/templates/builds/${json.id}`, undefined, { key });
      return ['ready', 'failed', 'cancelled'].includes(now.status) && now;
    }, 60000);
  };
  const chatty = "head -c 12M /dev/zero | tr '\\0' x | fold -w 4000";
  const logs = () => spool(server).names.filter((name) => name.endsWith('.log')).reduce((sum, name) => sum + statSync(join(server.data, 'front/spool', name)).size, 0);

  it('E152_logs_of_builds_count_with_what_is_kept_of_the_tenant', async () => {
    for (const name of ['one', 'two', 'three', 'four']) assert.equal((await build(name, chatty)).status, 'ready');
    assert.ok(logs() < LIMIT + MIB, `${logs()} bytes of logs`);
    const before = logs();
    assert.equal((await build('control', chatty, server.key)).status, 'ready');
    assert.ok(logs() > before + 12 * MIB, 'control: another tenant has its log');
    const front = server.frontPid;
    process.kill(front, 'SIGKILL');
    await until('there is another front', () => server.frontPid && server.frontPid !== front);
    server.renewAgent();
    await until('it answers', () => server.request('GET', '/health').then(() => true, () => false));
    const between = logs();
    assert.equal((await build('five', chatty)).status, 'ready');
    assert.ok(logs() < between + MIB, 'what is there still counts after a restart');
    for (const name of ['one', 'two', 'three', 'four']) assert.equal((await heavy('DELETE', `/v1/templates/${name}`)).status, 204);
    await until('their logs are gone', () => logs() < between - 20 * MIB);
    const after = logs();
    assert.equal((await build('six', chatty)).status, 'ready');
    assert.ok(logs() > after + 12 * MIB, 'a log has room again when others are deleted');
  });
});
