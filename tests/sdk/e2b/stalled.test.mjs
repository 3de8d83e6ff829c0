// E2B's clients that do not read: a stopped process of the SDK, and a raw stream.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import { describe, it } from 'node:test';
import { Sandbox } from 'e2b';
import { environment, sleep, startServer, until } from './support.mjs';

const server = await startServer({ args: ['--output-limit', '128Ki'] });

/** Writes lines that are their number, for ever. */
const FLOOD = 'for ($i = 0; ; $i++) { printf "%015d\\n", $i }';
const isNumbered = (text) => text.match(/.{15}\n/g).every((line, i) => Number(line) === i);

function envelope(message) {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}

/** A stream of Start that is not read, until rest() is called: all messages, without their envelopes. */
function start(sandbox, message, headers = {}) {
  return new Promise((resolve, reject) => {
    const req = http.request(
      `${server.url}/process.Process/Start`,
      {
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/connect+json', 'e2b-sandbox-id': sandbox.sandboxId, 'x-access-token': sandbox.envdAccessToken, ...headers },
      },
      (res) => {
        res.pause();
        res.on('error', () => {});
        const rest = async () => {
          const parts = [];
          for await (const part of res) parts.push(part);
          const all = Buffer.concat(parts);
          const messages = [];
          for (let at = 0; at < all.length; ) {
            const size = all.readUInt32BE(at + 1);
            messages.push(JSON.parse(all.toString('utf8', at + 5, at + 5 + size)));
            at += 5 + size;
          }
          return messages;
        };
        resolve({ rest, close: () => req.destroy() });
      },
    );
    req.on('error', reject);
    req.end(envelope(message));
  });
}

const call = async (sandbox, method, message) => {
  const response = await fetch(`${server.url}/process.Process/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'e2b-sandbox-id': sandbox.sandboxId, 'x-access-token': sandbox.envdAccessToken },
    body: JSON.stringify(message),
  });
  return { status: response.status, json: await response.json() };
};
const listed = async (sandbox) => (await call(sandbox, 'List', {})).json.processes;
const output = (messages) => Buffer.concat(messages.filter((m) => m.event?.data).map((m) => Buffer.from(m.event.data.stdout, 'base64'))).toString('latin1');
const perl = (tag) => ({ process: { cmd: '/usr/bin/perl', args: ['-e', FLOOD] }, tag });

describe('a stream that nobody reads', { timeout: 120000 }, () => {
  it('keeps no kill waiting: the process is gone, and its reader gets the rest', async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 3600000 });
    const stream = await start(sandbox, perl('flood'));
    await sleep(2000);
    const begun = Date.now();
    assert.equal((await call(sandbox, 'SendSignal', { process: { tag: 'flood' }, signal: 'SIGNAL_SIGKILL' })).status, 200);
    assert.ok(Date.now() - begun < 5000, `the kill took ${Date.now() - begun} ms`);
    assert.deepEqual(await listed(sandbox), []);
    assert.equal((await call(sandbox, 'SendSignal', { process: { tag: 'flood' }, signal: 'SIGNAL_SIGTERM' })).status, 404);
    assert.equal((await sandbox.commands.run('echo fine')).stdout, 'fine\n');
    const messages = await stream.rest();
    const text = output(messages);
    assert.ok(text.length > 1 << 20 && isNumbered(text), `${text.length} bytes`);
    assert.deepEqual(messages.at(-2).event.end, { exitCode: -1, status: 'signal: killed', error: 'signal: killed' });
    assert.deepEqual(messages.at(-1), {});
    await sandbox.kill();
  });

  it('ends at its deadline, also if it is read later', async () => {
    const sandbox = await Sandbox.create();
    const begun = Date.now();
    const stream = await start(sandbox, perl('late'), { 'connect-timeout-ms': '2000' });
    await until('its process is gone', async () => (await listed(sandbox)).length === 0);
    assert.ok(Date.now() - begun < 8000);
    const messages = await stream.rest();
    assert.equal(messages.at(-1).error.code, 'deadline_exceeded');
    assert.ok(isNumbered(output(messages)));
    await sandbox.kill();
  });
});

/** A process of its own that runs FLOOD by the SDK, checks what comes, and says how it ended. */
function client(sandbox) {
  const program = `
    import { Sandbox } from 'e2b';
    const sandbox = await Sandbox.connect('${sandbox.sandboxId}', { timeoutMs: 3600000 });
    let bytes = 0, next = 0, rest = '';
    const take = (text) => {
      bytes += text.length;
      const lines = (rest + text).split('\\n');
      rest = lines.pop();
      for (const line of lines) if (Number(line) !== next++) throw new Error('a hole at ' + line);
    };
    const command = await sandbox.commands.run(${JSON.stringify(`exec perl -e '${FLOOD}'`)}, { background: true, timeoutMs: 0, onStdout: take });
    console.log('pid ' + command.pid);
    const error = await command.wait().catch((e) => e);
    console.log('end ' + bytes + ' ' + error.constructor.name + ' ' + error.message);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: new URL('.', import.meta.url).pathname,
    env: { ...process.env, ...environment(server) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const c = { child, said: '', ended: new Promise((resolve) => child.on('exit', resolve)) };
  child.stdout.setEncoding('utf8').on('data', (text) => (c.said += text));
  c.pid = async () => Number((await until('the command runs', () => /pid (\d+)/.exec(c.said), 20000))[1]);
  return c;
}

describe('a client of the SDK that is stopped', { timeout: 120000 }, () => {
  it('keeps nobody from killing its command, and gets all of the output when it goes on', async () => {
    const sandbox = await Sandbox.create();
    const c = client(sandbox);
    try {
      const pid = await c.pid();
      await sleep(300);
      c.child.kill('SIGSTOP');
      await sleep(2000);
      assert.equal(await sandbox.commands.kill(pid), true);
      assert.deepEqual(await sandbox.commands.list(), []);
      assert.equal(await sandbox.commands.kill(pid), false, 'it is gone');
      c.child.kill('SIGCONT');
      await c.ended;
      assert.match(c.said, /end \d{6,} CommandExitError signal: killed/);
    } finally {
      c.child.kill('SIGKILL');
    }
    await sandbox.kill();
  });
});
