import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readlinkSync, rmdirSync } from 'node:fs';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Server, safeReaddir, sleep, until } from '../lib/server.mjs';
import { finish, initPid, metric, residentKib, startBeside } from './support.mjs';

const status = (pid) => Object.fromEntries(readFileSync(`/proc/${pid}/status`, 'utf8').split('\n').map((line) => line.split(':\t')));

describe('server', () => {
  let server;
  before(async () => {
    server = await Server.start({ args: ['--domain', 'boxes.example'] });
  });
  after(() => finish(server));

  it('says in one line on stderr where it listens', () => {
    assert.equal(server.log.text.match(/^bunker: listening on http:\/\/127\.0\.0\.1:\d+$/gm).length, 1);
  });

  it('writes structured logs: time, level, process, message, key=value', async () => {
    const other = await startBeside(server, { args: ['--log-level', 'debug'] });
    try {
      await other.request('GET', '/v1/sandboxes');
      const request = /request id=\S+ method=GET target=\/v1\/sandboxes status=200/;
      await until('the request is in the log', () => request.test(other.log.text));
      const lines = other.log.text.slice(other.log.text.indexOf('listening')).split('\n').slice(1, -1);
      for (const line of lines) assert.match(line, /^\d{4}-\d\d-\d\dT[\d:.]+Z (error|warn|info|debug) (front|warden|keeper|sweeper): \S.*/);
      assert.equal(other.log.text.slice(other.log.text.indexOf('listening')).includes(other.key), false, 'no key in the log');
    } finally {
      await finish(other);
    }
  });

  describe('/health', () => {
    it('is open, quick and JSON', async () => {
      const answer = await server.request('GET', '/health', undefined, { key: '' });
      assert.equal(answer.status, 200);
      assert.equal(answer.json.status, 'ok');
      assert.match(answer.json.version, /^\d+\.\d+\.\d+/);
      assert.equal(answer.json.domain, 'boxes.example');
    });

    it('answers HEAD and OPTIONS', async () => {
      const head = await server.request('HEAD', '/health');
      assert.deepEqual([head.status, head.text], [200, '']);
      const options = await server.request('OPTIONS', '/v1/sandboxes');
      assert.equal(options.status, 204);
      assert.deepEqual(options.headers.allow.split(', ').sort(), ['GET', 'HEAD', 'OPTIONS', 'POST']);
    });
  });

  describe('/metrics', () => {
    it('is Prometheus text: each metric with help and type', async () => {
      const { text, headers } = await server.request('GET', '/metrics');
      assert.match(headers['content-type'], /^text\/plain; version=0\.0\.4/);
      const names = new Set();
      for (const line of text.trim().split('\n')) {
        if (line.startsWith('#')) assert.match(line, /^# (HELP|TYPE) bunker_[a-z_0-9]+ \S/);
        else names.add(/^(bunker_[a-z_0-9]+)(\{[a-z]+="[^"]*"\})? \d+(\.\d+)?$/.exec(line)[1]);
      }
      for (const name of names) {
        assert.ok(text.includes(`# HELP ${name} `), name);
        assert.match(text, new RegExp(`^# TYPE ${name} (counter|gauge)$`, 'm'));
        if (text.includes(`# TYPE ${name} counter`)) assert.match(name, /_total$/);
      }
    });

    it('counts sandboxes and executions', async () => {
      const names = ['sandboxes', 'sandboxes_created_total', 'sandboxes_destroyed_total', 'executions_total', 'executions_running'];
      const read = async () => Object.fromEntries(await Promise.all(names.map(async (name) => [name, await metric(server, name)])));
      const before = await read();
      const box = await server.create();
      const running = server.exec(box.id, 'sleep 0.5');
      await until('it runs', async () => (await metric(server, 'executions_running')) === before.executions_running + 1);
      await running;
      const during = await read();
      assert.equal(during.sandboxes, before.sandboxes + 1);
      assert.equal(during.sandboxes_created_total, before.sandboxes_created_total + 1);
      assert.equal(during.executions_total, before.executions_total + 1);
      assert.equal(during.executions_running, before.executions_running);
      await server.request('DELETE', `/v1/sandboxes/${box.id}`);
      const end = await read();
      assert.equal(end.sandboxes, before.sandboxes);
      assert.equal(end.sandboxes_destroyed_total, before.sandboxes_destroyed_total + 1);
    });

    it('does not count file work of the server as executions', async () => {
      const before = await metric(server, 'executions_total');
      const box = await server.create({ files: [{ path: '/tmp/a', content: '' }, { path: '/tmp/b', content: '' }] });
      assert.equal(await metric(server, 'executions_total'), before);
      assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}`)).json.executions, 0);
      await server.request('DELETE', `/v1/sandboxes/${box.id}`);
    });

    it('counts answers by class of status', async () => {
      const count = async (name) => {
        const { text } = await server.request('GET', '/metrics');
        return Number(new RegExp(`^bunker_http_responses_total\\{class="${name}"\\} (\\d+)$`, 'm').exec(text)[1]);
      };
      const before = await count('4xx');
      await server.request('GET', '/nope');
      assert.equal(await count('4xx'), before + 1);
    });
  });

  describe('front', () => {
    it('has no privilege: its own uid, no capability, no new privileges, seccomp', () => {
      const s = status(server.frontPid);
      const uids = s.Uid.split('\t');
      assert.equal(new Set(uids).size, 1);
      assert.notEqual(uids[0], '0');
      assert.notEqual(s.Gid.split('\t')[0], '0');
      assert.equal(s.Groups.trim(), '');
      for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb']) assert.equal(s[set], '0000000000000000', set);
      assert.equal(s.NoNewPrivs, '1');
      assert.equal(s.Seccomp, '2');
    });

    it('has another uid than any sandbox and any other server', async () => {
      const other = await startBeside(server);
      try {
        assert.notEqual(status(other.frontPid).Uid, status(server.frontPid).Uid);
      } finally {
        await finish(other);
      }
    });

    it('is small', async () => {
      for (let i = 0; i < 20; i++) await server.run('true');
      const maps = readFileSync(`/proc/${server.frontPid}/maps`, 'utf8');
      const limit = /asan/.test(maps) ? 400000 : 12288;
      const kib = residentKib(server.frontPid);
      assert.ok(kib < limit, `the front has ${kib} KiB resident`);
    });
  });

  it('lets nobody else use its data directory', async () => {
    const second = await Server.start({ data: server.data }).then(
      async (s) => {
        await s.stop();
        return 'it started';
      },
      (e) => e.message,
    );
    assert.match(second, /another bunker server is running/);
    assert.equal((await server.request('GET', '/health')).status, 200);
  });

  it('runs beside other servers, each with its own sandboxes', async () => {
    const other = await startBeside(server);
    try {
      const box = await other.create();
      assert.equal((await server.request('GET', `/v1/sandboxes/${box.id}`)).status, 404);
      assert.equal((await other.exec(box.id, 'echo hi')).stdout, 'hi\n');
    } finally {
      await finish(other);
    }
  });

  it('starts although killed servers have left their empty cgroups in every range', async () => {
    const root = existsSync('/sys/fs/cgroup/unified') ? '/sys/fs/cgroup/unified' : '/sys/fs/cgroup';
    const left = Array.from({ length: 13 }, (_, range) => `${root}/bunker-${range}-leftover`);
    left.forEach((path) => mkdirSync(path));
    try {
      const other = await startBeside(server);
      await other.destroy();
    } finally {
      left.forEach((path) => rmdirSync(path));
    }
  });

  it('ends with status 0 on SIGTERM and on SIGINT', async () => {
    for (const signal of ['SIGTERM', 'SIGINT']) {
      const other = await startBeside(server);
      try {
        process.kill(other.wardenPid, signal);
        assert.deepEqual(await other.ended, { code: 0, signal: null });
      } finally {
        await finish(other);
      }
    }
  });

  it('answers on IPv6 loopback', async () => {
    const other = await startBeside(server);
    try {
      await other.stop();
      other.listen = '[::1]:0';
      await other.launch();
      assert.match(other.url, /^http:\/\/\[::1\]:\d+$/);
      assert.equal((await other.request('GET', '/health')).status, 200);
    } finally {
      await finish(other);
    }
  });

  it('answers 503 beyond its connections, and goes on', async () => {
    const other = await startBeside(server, { args: ['--max-connections', '4'] });
    try {
      const idle = Array.from({ length: 4 }, () => net.connect(other.port, '127.0.0.1'));
      for (const socket of idle) socket.write(`GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${other.key}\r\n\r\n`);
      await Promise.all(idle.map((socket) => once(socket, 'data')));
      other.agent.destroy();
      const answer = await other.request('GET', '/health');
      assert.equal(answer.status, 503);
      assert.equal(answer.json.error.code, 'unavailable');
      for (const socket of idle) socket.destroy();
      await until('there is room', async () => (await other.request('GET', '/health')).status === 200);
    } finally {
      await finish(other);
    }
  });

  it('keeps results for as long as it was told', async () => {
    const other = await startBeside(server);
    try {
      const { id } = await other.create();
      const r = await other.exec(id, 'seq 1 20000');
      await other.stop();
      other.args = ['--retention', '1s'];
      await other.launch();
      await until('the result is forgotten', async () => (await other.request('GET', `/v1/executions/${r.executionId}`)).status === 404, 5000);
      await until('its output is gone from the disk', () => safeReaddir(`${other.data}/front/spool`).length === 0, 3000);
    } finally {
      await finish(other);
    }
  });

  it('runs init from a sealed copy', async () => {
    const box = await server.create();
    assert.match(readlinkSync(`/proc/${initPid(server, box.id)}/exe`), /^\/memfd:/);
    await server.request('DELETE', `/v1/sandboxes/${box.id}`);
  });
});
