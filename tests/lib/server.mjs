// Starts a real server in a directory of its own, talks to it, and takes it down with everything it made.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import http from 'node:http';

export const BUNKER = process.env.BUNKER ?? new URL('../../build/bunker', import.meta.url).pathname;

/** An empty data directory; tools/test looks for those that a test leaves behind. */
export const dataDirectory = (prefix = 'bunker-test-') => mkdtempSync(join(process.env.BUNKER_TEST_TMP ?? '/tmp', prefix));

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Polls until check() is truthy; throws with `what` when that takes longer than ms, or than ten seconds: a busy machine is no fault. */
export async function until(what, check, ms = 0) {
  const end = Date.now() + Math.max(ms, 10000);
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`timed out waiting until ${what}`);
    await sleep(10);
  }
}

function waitForLine(child, log, pattern, ms) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no line ${pattern} in ${ms} ms:\n${log.text}`)), ms);
    const look = () => {
      const match = pattern.exec(log.text);
      if (match) {
        clearTimeout(timer);
        resolve(match);
      }
    };
    child.stderr.on('data', look);
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`the server ended (${code ?? signal}):\n${log.text}`));
    });
    look();
  });
}

export class Server {
  /** options: args (more of them), env, data (of an earlier server, to restart it), listen */
  static async start(options = {}) {
    const s = new Server();
    s.data = options.data ?? dataDirectory();
    s.args = options.args ?? [];
    s.listen = options.listen;
    s.wrapper = options.wrapper ?? []; // a program that starts it
    s.env = { ...process.env, ...options.env };
    for (const name of Object.keys(s.env))
      if (name.startsWith('BUNKER_') && !(options.env && name in options.env)) delete s.env[name];
    s.env.BUNKER_SANDBOX_CA ??= ''; // sandboxes are the same on every host
    await s.launch();
    return s;
  }

  async launch() {
    this.log = { text: '' };
    const [program, ...args] = [...this.wrapper, BUNKER, 'serve', '--listen', this.listen ?? '127.0.0.1:0', '--data', this.data, ...this.args];
    this.child = spawn(program, args, {
      env: this.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child.stderr.setEncoding('utf8');
    this.child.stderr.on('data', (text) => (this.log.text += text));
    this.ended = new Promise((resolve) => this.child.on('close', (code, signal) => resolve({ code, signal })));
    const match = await waitForLine(this.child, this.log, /listening on https?:\/\/(\S+)/, 30000);
    this.listen = match[1];
    this.url = `http://${match[1].replace('0.0.0.0', '127.0.0.1')}`;
    this.port = Number(match[1].split(':').pop());
    this.key = existsSync(join(this.data, 'api-key')) ? readFileSync(join(this.data, 'api-key'), 'utf8').trim() : '';
    this.agent ??= new http.Agent({ keepAlive: true });
  }

  /** After a front's death: its connections died with it. */
  renewAgent() {
    this.agent?.destroy();
    this.agent = new http.Agent({ keepAlive: true });
  }

  /** The pid of the process that was started (the warden) and of its child, the front. */
  get wardenPid() {
    return this.child.pid;
  }
  get frontPid() {
    return childrenOf(this.child.pid).find((pid) => commandName(pid) === 'bunker-front');
  }

  /** A directory of the disks; they may be on a mount that only the warden sees. */
  disks(...names) {
    return join(`/proc/${this.child.pid}/root`, this.data, 'disks', ...names);
  }

  /** One request; body is sent as JSON unless it is a string or Buffer. */
  request(method, path, body, { headers = {}, key = this.key } = {}) {
    const raw = typeof body === 'string' || Buffer.isBuffer(body);
    const payload = body === undefined ? undefined : raw ? body : JSON.stringify(body);
    const all = { ...headers };
    if (key) all.authorization ??= `Bearer ${key}`;
    if (payload !== undefined) {
      all['content-type'] ??= 'application/json';
      all['content-length'] ??= Buffer.byteLength(payload);
    }
    return new Promise((resolve, reject) => {
      const req = http.request(this.url + path, { method, headers: all, agent: this.agent }, (res) => {
        const parts = [];
        res.on('data', (part) => parts.push(part));
        res.on('error', reject);
        res.on('end', () => {
          const text = Buffer.concat(parts).toString('utf8');
          let json;
          try {
            json = JSON.parse(text);
          } catch {
            json = undefined;
          }
          resolve({ status: res.statusCode, headers: res.headers, text, json });
        });
      });
      req.on('error', reject);
      req.end(payload);
    });
  }

  async create(options = {}) {
    const answer = await this.request('POST', '/v1/sandboxes', options);
    if (answer.status !== 201) throw new Error(`create: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  async exec(id, options) {
    const body = typeof options === 'string' || Array.isArray(options) ? { command: options } : options;
    const answer = await this.request('POST', `/v1/sandboxes/${id}/exec`, body);
    if (answer.status !== 200) throw new Error(`exec: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  async run(options) {
    const body = typeof options === 'string' || Array.isArray(options) ? { command: options } : options;
    const answer = await this.request('POST', '/v1/run', body);
    if (answer.status !== 200) throw new Error(`run: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  /** Opens an NDJSON stream: { status, events: async iterator, close() }. */
  stream(path, body, headers = {}) {
    const payload = JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const req = http.request(
        this.url + path,
        {
          method: 'POST',
          agent: false,
          headers: {
            authorization: `Bearer ${this.key}`,
            accept: 'application/x-ndjson',
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
            ...headers,
          },
        },
        (res) => {
          async function* events() {
            let rest = '';
            res.setEncoding('utf8');
            for await (const text of res) {
              rest += text;
              const lines = rest.split('\n');
              rest = lines.pop();
              for (const line of lines) if (line) yield JSON.parse(line);
            }
          }
          resolve({ status: res.statusCode, headers: res.headers, events: events(), response: res, close: () => req.destroy() });
        },
      );
      req.on('error', reject);
      req.end(payload);
    });
  }

  /** The CLI, against this server. Returns { status, signal, stdout, stderr }. */
  cli(args, { input, env = {} } = {}) {
    return spawnSync(BUNKER, args, {
      input,
      encoding: 'utf8',
      env: { ...this.env, BUNKER_URL: this.url, BUNKER_DATA: this.data, ...env },
      timeout: 60000,
      maxBuffer: 256 << 20,
    });
  }

  /** The CLI in the background, for the caller to end. */
  cliStart(args) {
    return spawn(BUNKER, args, { env: { ...this.env, BUNKER_URL: this.url, BUNKER_DATA: this.data }, stdio: ['ignore', 'pipe', 'inherit'] });
  }

  /** kill -9 of both processes, as a crash would. */
  async crash() {
    const front = this.frontPid;
    process.kill(this.wardenPid, 'SIGKILL');
    try {
      if (front) process.kill(front, 'SIGKILL');
    } catch (error) {
      if (error.code !== 'ESRCH') throw error; // it was quicker
    }
    await this.ended;
    this.agent.destroy();
    this.agent = undefined;
  }

  /** SIGTERM; the sandboxes stay. */
  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) process.kill(this.child.pid, 'SIGTERM');
    const result = await this.ended;
    this.agent?.destroy();
    this.agent = undefined;
    if (/AddressSanitizer|LeakSanitizer|runtime error:/.test(this.log.text)) throw new Error(`a sanitizer spoke:\n${this.log.text}`);
    return result;
  }

  /** Ends the server and everything it made, whatever state it is in; then checks that nothing is left. */
  async destroy() {
    const running = this.child.exitCode === null && this.child.signalCode === null;
    let complaint;
    if (running) await this.stop().catch((error) => (complaint = error));
    if (existsSync(join(this.data, 'instance'))) {
      this.args = [...this.args.filter((a) => a !== '--drain'), '--drain'];
      await this.launch();
      await this.stop().catch((error) => (complaint ??= error));
    }
    const left = this.leftovers();
    rmSync(this.data, { recursive: true, force: true });
    if (complaint) throw complaint;
    if (left.length) throw new Error(`left behind: ${left.join(', ')}`);
  }

  /** What exists outside the data directory because of this server: cgroups and mounts. */
  leftovers() {
    const left = [];
    let instance = '';
    try {
      instance = readFileSync(join(this.data, 'instance'), 'utf8').trim().split(' ').reverse()[0];
    } catch {
      return left;
    }
    for (const root of cgroupRoots())
      for (const name of safeReaddir(root)) if (name.startsWith('bunker-') && name.endsWith(instance)) left.push(join(root, name));
    for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) if (line.includes(this.data)) left.push(line);
    for (const kind of ['disks/boxes', 'run'])
      for (const name of safeReaddir(join(this.data, kind))) left.push(join(this.data, kind, name));
    return left;
  }
}

export function cgroupRoots() {
  return ['', 'unified', 'memory', 'cpu', 'pids'].map((name) => join('/sys/fs/cgroup', name)).filter(existsSync);
}

export function safeReaddir(path) {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

export function childrenOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

export function commandName(pid) {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
