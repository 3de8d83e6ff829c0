// A server that is killed again and again, and what must be true of it after each time.
import assert from 'node:assert/strict';
import http from 'node:http';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Server, childrenOf, commandName, safeReaddir, sleep, until } from '../lib/server.mjs';
import { isAlive, sandboxesInKernel } from '../system/support.mjs';
import { tar, tinyRoot } from '../lib/images.mjs';
import { Faults } from './faults.mjs';

const PATIENCE_MS = 20000;

export class World {
  static async start(options = {}) {
    const w = new World();
    w.faults = new Faults();
    w.server = await Server.start({ ...options, args: ['--pool', '1', ...(options.args ?? [])], env: { BUNKER_FAULTS: w.faults.path } });
    await w.settled();
    return w;
  }

  async end() {
    this.faults.disarm();
    try {
      await this.server.destroy();
    } finally {
      this.faults.close();
    }
  }

  /** One request on a connection of its own; fails when it is not answered, or not in time. */
  request(method, path, body) {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const headers = { authorization: `Bearer ${this.server.key}` };
    if (payload !== undefined) Object.assign(headers, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) });
    return new Promise((resolve, reject) => {
      const req = http.request(this.server.url + path, { method, headers, agent: false, timeout: PATIENCE_MS }, (res) => {
        const parts = [];
        res.on('data', (part) => parts.push(part));
        res.on('error', reject);
        res.on('end', () => {
          if (!res.complete) return reject(new Error('the answer was cut short'));
          const text = Buffer.concat(parts).toString();
          resolve({ status: res.statusCode, text, json: text.startsWith('{') ? JSON.parse(text) : undefined });
        });
      });
      req.on('timeout', () => req.destroy(new Hung(`${method} ${path}`)));
      req.on('error', reject);
      req.end(payload);
    });
  }

  /** The same, and it must be answered with this status. */
  async expect(status, method, path, body) {
    const answer = await this.request(method, path, body);
    assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
    return answer.json;
  }

  create(body = {}) {
    return this.expect(201, 'POST', '/v1/sandboxes', body);
  }

  /** A small template, from an archive. */
  async import(name) {
    const answer = await this.server.request('POST', `/v1/templates/imports?name=${name}`, tar(tinyRoot()), { headers: { 'content-type': 'application/x-tar' } });
    assert.equal(answer.status, 201, answer.text);
  }

  async exec(id, command) {
    const r = await this.expect(200, 'POST', `/v1/sandboxes/${id}/exec`, { command });
    assert.equal(r.exitCode, 0, `${command}: ${JSON.stringify(r)}`);
    return r.stdout;
  }

  pid(role) {
    if (role === 'warden') return this.server.child.exitCode === null && this.server.child.signalCode === null ? this.server.wardenPid : undefined;
    return childrenOf(this.server.wardenPid).find((pid) => commandName(pid) === `bunker-${role}`);
  }

  /** After a death: until the server answers again, started anew where nobody else does that. */
  async recover(dead, { everybody = false } = {}) {
    if (everybody) this.killAll();
    await until('the dead are dead', () => !isAlive(dead));
    if (dead === this.server.wardenPid || everybody) await this.server.ended;
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const { exitCode, signalCode } = this.server.child;
      if (exitCode !== null || signalCode !== null) {
        this.server.agent?.destroy();
        this.server.agent = undefined;
        this.log = (this.log ?? '') + this.server.log.text;
        await this.server.ended;
        await this.server.launch();
      }
      const health = await this.request('GET', '/health').catch(() => undefined);
      if (health?.status === 200 && this.pid('front') && this.pid('keeper')) return this.server.renewAgent();
      assert.ok(Date.now() < end, `the server does not come back:\n${this.server.log.text.slice(-3000)}`);
      await sleep(10);
    }
  }

  killAll() {
    for (const role of ['front', 'keeper', 'warden']) {
      const pid = this.pid(role);
      try {
        if (pid) process.kill(pid, 'SIGKILL');
      } catch (e) {
        if (e.code !== 'ESRCH') throw e;
      }
    }
  }

  /** Until there is nothing but the pool: no sandbox, disk, cgroup or socket that nobody asked for. */
  async settled() {
    let seen;
    const isSettled = async () => {
      const [boxes, metrics] = [await this.sandboxes(), await this.request('GET', '/metrics')];
      const pooled = Number(/^bunker_sandboxes_pooled (\d+)$/m.exec(metrics.text)?.[1] ?? -1);
      const kernel = sandboxesInKernel(this.server);
      const disks = this.disks('boxes');
      const sockets = safeReaddir(join(this.server.data, 'run')).map((name) => name.replace('.sock', '')).filter((name) => name !== 'egress');
      const others = ['checkpoints', 'snapshots', 'layers', 'frozen'].flatMap((kind) => this.disks(kind));
      seen = { boxes: boxes.length, pooled, kernel, disks, sockets, others };
      return boxes.length === 0 && pooled === 1 && others.length === 0 && [kernel, disks, sockets].every((ids) => ids.length === 1 && ids[0] === kernel[0]);
    };
    await until('nothing is left but the pool', isSettled, PATIENCE_MS).catch((e) => {
      throw new Error(`${e.message}: ${JSON.stringify(seen)}`);
    });
  }

  async sandboxes() {
    return (await this.expect(200, 'GET', '/v1/sandboxes?limit=1000')).sandboxes;
  }

  /** Names below data/disks, which only the server's own mount namespace shows. */
  disks(kind) {
    return safeReaddir(join(`/proc/${this.server.wardenPid}/root`, this.server.data, 'disks', kind)).filter((name) => !name.startsWith('.'));
  }

  /** What must not grow, however often it is killed. */
  census() {
    const count = (pid, what) => readdirSync(`/proc/${pid}/${what}`).length;
    const mounts = readFileSync(`/proc/${this.server.wardenPid}/mountinfo`, 'utf8').split('\n').length;
    const loops = readdirSync('/sys/block').filter((name) => {
      try {
        return readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').includes(this.server.data);
      } catch {
        return false;
      }
    });
    return {
      mounts, loops: loops.length, frozen: this.disks('frozen').length, spool: safeReaddir(join(this.server.data, 'front/spool')).length,
      warden: count(this.server.wardenPid, 'fd'), front: count(this.pid('front'), 'fd'), keeper: count(this.pid('keeper'), 'fd'),
    };
  }

  /** Every sandbox there is can be used, or be booted again; and all of them can be deleted, with the snapshots. */
  async useAndDeleteAll() {
    for (const { id } of await this.sandboxes()) {
      const status = async () => (await this.request('GET', `/v1/sandboxes/${id}`)).json?.status ?? 'gone';
      const now = await until('it is no longer on its way out', async () => ((s) => s !== 'stopping' && s)(await status()));
      if (['terminated', 'gone', undefined].includes(now)) continue;
      const resume = ['idle', 'running'].includes(now) ? { status: 200 } : await this.request('POST', `/v1/sandboxes/${id}/resume`);
      if (resume.status === 404) continue; // the sandbox of a run, which ends with it
      assert.equal(resume.status, 200, resume.text);
      const used = await this.request('POST', `/v1/sandboxes/${id}/exec`, { command: 'echo usable' });
      if (used.status === 200) assert.equal(used.json.stdout, 'usable\n');
      else await until(`it has ended (${used.text})`, async () => ['terminated', 'gone'].includes(await status()));
    }
    for (const { id } of await this.sandboxes()) {
      const { status, text } = await this.request('DELETE', `/v1/sandboxes/${id}`);
      assert.ok(status === 204 || status === 404, `DELETE: ${status} ${text}`);
      const left = (await this.request('GET', `/v1/sandboxes/${id}`)).json?.status;
      assert.ok([undefined, 'terminated'].includes(left), `a deleted sandbox is ${left}`);
    }
    for (const { id } of (await this.expect(200, 'GET', '/v1/snapshots')).snapshots) {
      const { status, text } = await this.request('DELETE', `/v1/snapshots/${id}`);
      assert.ok(status === 204 || status === 404, `DELETE of a snapshot: ${status} ${text}`);
    }
  }
}

/** A request that was never answered: worse than any error. */
export class Hung extends Error {
  constructor(what) {
    super(`${what} was not answered in ${PATIENCE_MS} ms`);
  }
}
