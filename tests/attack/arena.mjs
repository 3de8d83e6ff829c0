// Where attempts are made: a server with a secret in its environment, canaries on the host around it,
// and the same program run inside a sandbox, as user and as root, and outside without walls.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Server, sleep } from '../lib/server.mjs';

export const LONG = process.env.BUNKER_LONG === '1';
export const random = (bytes = 8) => randomBytes(bytes).toString('hex');

const sources = new URL('./attempts/', import.meta.url).pathname;
const INSIDE = '/home/user/attempts';
const built = new Map();
let buildDirectory;

/** The path of attempts/NAME.c, compiled once per process. */
export function compile(name) {
  if (built.has(name)) return built.get(name);
  if (!buildDirectory) {
    buildDirectory = mkdtempSync('/tmp/bunker-attack-');
    process.on('exit', () => rmSync(buildDirectory, { recursive: true, force: true }));
  }
  const output = join(buildDirectory, name);
  const warnings = ['-Wall', '-Wextra', '-Wno-missing-field-initializers'];
  const multiarch = spawnSync('gcc', ['-print-multiarch'], { encoding: 'utf8' }).stdout.trim();
  const headers = ['-idirafter', '/usr/include', '-idirafter', `/usr/include/${multiarch}`];
  const compilers = [['musl-gcc', ...headers], ['gcc']];
  let failure = '';
  for (const [compiler, ...options] of compilers) {
    const source = join(sources, `${name}.c`);
    const r = spawnSync(compiler, [...options, ...warnings, '-O1', '-static', '-pthread', '-o', output, source], {
      encoding: 'utf8',
    });
    if (r.status === 0) {
      built.set(name, output);
      return output;
    }
    failure += `${compiler}: ${r.error ?? r.stderr}\n`;
  }
  throw new Error(`cannot compile ${name}.c:\n${failure}`);
}

/** "NUMBER NAME OUTCOME detail" lines; anything else is an error, so that no attempt gets lost. */
export function parseLines(text) {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const match = /^(\d+) (\S+) (BLOCKED|ESCAPED|ERROR) ?(.*)$/.exec(line);
      if (!match) throw new Error(`not a report: ${line}`);
      return { number: Number(match[1]), name: match[2], outcome: match[3], detail: match[4] };
    });
}

const show = (lines) => lines.map((l) => `${l.who}: ${l.number} ${l.name} ${l.outcome} ${l.detail}`).join('\n');

/** Runs a program on the host; resolves with { code, signal, stdout, stderr }. */
export function runOnHost(command, args, { env = {}, stdio } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env }, stdio: stdio ?? ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** Things on the host that nobody inside may see, change or reach. */
class Canaries {
  static async place() {
    const c = new Canaries();
    c.mark = `canary-${random()}`;
    c.file = `/root/bunker-canary-${random()}`;
    writeFileSync(c.file, c.mark, { mode: 0o600 });
    // The mark is its name, by which the process can be found.
    c.process = spawn('sleep', ['infinity'], { argv0: c.mark, stdio: 'ignore' });
    c.visitors = [];
    c.listener = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => c.visitors.push(data.toString()));
    });
    await new Promise((resolve) => c.listener.listen(0, '127.0.0.1', resolve));
    process.on('exit', () => c.remove());
    return c;
  }

  get settings() {
    return {
      CANARY_FILE: this.file,
      CANARY_PID: String(this.process.pid),
      CANARY_MARK: this.mark,
      CANARY_PORT: String(this.listener.address().port),
      CANARY_HOSTNAME: 'bunker-canary',
    };
  }

  assertUnharmed() {
    assert.equal(readFileSync(this.file, 'utf8'), this.mark, 'the canary file was changed');
    assert.equal(this.process.exitCode ?? this.process.signalCode, null, 'the canary process is dead');
    assert.deepEqual(this.visitors.filter((v) => v.startsWith('inside')), [], 'the canary listener had visitors');
  }

  remove() {
    rmSync(this.file, { force: true });
    this.listener.close();
    if (this.process.exitCode === null) this.process.kill('SIGKILL');
  }
}

export class Arena {
  /** options: args of the server; programs: attempts that every sandbox gets. */
  static async open({ args = [], programs = [] } = {}) {
    const arena = new Arena();
    arena.programs = programs;
    for (const name of programs) compile(name);
    arena.secret = `secret-${random(16)}`;
    arena.canaries = await Canaries.place();
    try {
      arena.server = await Server.start({ args, env: { ATTACK_SECRET: arena.secret } });
    } catch (error) {
      arena.canaries.remove();
      throw error;
    }
    return arena;
  }

  async close() {
    this.canaries.remove();
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('the server and its sandboxes did not end within a minute')), 60000);
    });
    const log = this.server.log.text;
    await Promise.race([this.server.destroy(), late]).finally(() => clearTimeout(timer));
    assert.doesNotMatch(log, /the front died|Sanitizer|runtime error/, 'the server stumbled');
  }

  /** A sandbox with the programs in it. */
  sandbox(options = {}) {
    const files = this.programs.map((name) => ({
      path: `${INSIDE}/${name}`,
      content: readFileSync(compile(name)).toString('base64'),
      encoding: 'base64',
      mode: '0755',
    }));
    return this.server.create({ ...options, files });
  }

  remove(sandbox) {
    return this.server.request('DELETE', `/v1/sandboxes/${sandbox.id}`);
  }

  /** Runs one of the programs inside; more: user, timeout, env. */
  run(sandbox, name, args, more = {}) {
    return this.server.exec(sandbox.id, {
      command: [`${INSIDE}/${name}`, ...args],
      cwd: '/tmp',
      timeout: '60s',
      ...more,
      env: { ...this.canaries.settings, ...more.env },
    });
  }

  async inside(sandbox, name, user, env = {}) {
    const r = await this.run(sandbox, name, ['inside'], { user, env });
    if (r.exitCode !== 0) throw new Error(`${name} as ${user} ended with ${r.exitCode}: ${r.stdout}${r.stderr}`);
    return parseLines(r.stdout).map((line) => ({ ...line, who: user }));
  }

  /** The same program without walls. What it might leave behind stays in a mount namespace of its own. */
  async control(name, env = {}) {
    const root = openSync('/root', 'r');
    try {
      const r = await runOnHost('unshare', ['--mount', '--uts', compile(name), 'control'], {
        env: { ...this.canaries.settings, ...env },
        stdio: [root, 'pipe', 'pipe', root],
      });
      if (r.code !== 0) throw new Error(`the control of ${name} ended with ${r.code ?? r.signal}: ${r.stderr}`);
      return parseLines(r.stdout).map((line) => ({ ...line, who: 'control' }));
    } finally {
      closeSync(root);
    }
  }

  /** All three runs of one program. */
  async trial(sandbox, name, env = {}) {
    return new Trial([
      ...(await this.inside(sandbox, name, 'user', env)),
      ...(await this.inside(sandbox, name, 'root', env)),
      ...(await this.control(name, env)),
    ]);
  }

  /** Until stop() is called: GET /health, and `true` in a sandbox that is not under attack. */
  probe(bystander) {
    const health = [];
    const exec = [];
    let running = true;
    const measure = async (into, action) => {
      while (running) {
        const from = process.hrtime.bigint();
        await action();
        into.push(Number(process.hrtime.bigint() - from) / 1e6);
        await sleep(10);
      }
    };
    const both = Promise.all([
      measure(health, async () => assert.equal((await this.server.request('GET', '/health')).status, 200)),
      measure(exec, async () => assert.equal((await this.server.exec(bystander.id, ['true'])).exitCode, 0)),
    ]);
    both.catch(() => {});
    return {
      stop: async () => {
        running = false;
        await both;
        return { health: summary(health), exec: summary(exec) };
      },
    };
  }

  frontMemory() {
    const status = readFileSync(`/proc/${this.server.frontPid}/status`, 'utf8');
    const megabytes = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)[1]) / 1024;
    return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') };
  }
}

export function summary(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN;
  return { count: sorted.length, median: at(0.5), p99: at(0.99), max: at(1) };
}

export const showTimes = (s) =>
  `${s.count} times, median ${s.median.toFixed(1)} ms, p99 ${s.p99.toFixed(1)} ms, max ${s.max.toFixed(1)} ms`;

/** What became of all attempts of one program; check() judges those of one number. */
export class Trial {
  constructor(lines) {
    this.lines = lines;
  }

  of(number, who) {
    return this.lines.filter((l) => l.number === number && l.who === who);
  }

  check(t, number) {
    const control = this.of(number, 'control');
    assert.ok(control.length > 0, `there is no attempt ${number}`);
    for (const who of ['user', 'root'])
      assert.deepEqual(this.of(number, who).map((l) => l.name), control.map((l) => l.name), `${who} did not try everything`);
    const inside = [...this.of(number, 'user'), ...this.of(number, 'root')];
    const wrong = inside.filter((l) => l.outcome !== (l.name.startsWith('may-') ? 'ESCAPED' : 'BLOCKED'));
    assert.equal(show(wrong), '', 'inside');
    const excused = control.filter((l) => l.outcome === 'ERROR' && /^(absent:|control: none, because) /.test(l.detail));
    for (const l of excused) t.diagnostic(`${l.number} ${l.name}: ${l.detail}`);
    const failed = control.filter((l) => l.outcome !== 'ESCAPED' && !excused.includes(l));
    assert.equal(show(failed), '', 'the control must succeed, or the attempt proves nothing');
  }
}
