// sandbox.pty, as users of E2B's SDK call it.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { NotFoundError, Sandbox } from 'e2b';
import { failure, sleep, startServer, until } from './support.mjs';

await startServer();
const sandbox = await Sandbox.create({ timeoutMs: 600000 });
const bytes = (text) => new TextEncoder().encode(text);

async function terminal(options = {}) {
  const screen = { text: '' };
  const onData = (data) => (screen.text += Buffer.from(data).toString());
  const handle = await sandbox.pty.create({ cols: 80, rows: 24, onData, ...options });
  return { handle, screen, type: (text) => sandbox.pty.sendInput(handle.pid, bytes(text)) };
}

describe('pty', () => {
  it('is a shell on a terminal of the size that was asked for', async () => {
    const { handle, screen, type } = await terminal({ cols: 91, rows: 33 });
    await type('tty; stty size; echo $TERM $LANG\n');
    await until('it has answered', () => /dev\/pts\/\d+[\s\S]*33 91[\s\S]*xterm-256color C.UTF-8/.test(screen.text));
    await type('exit\n');
    assert.equal((await handle.wait()).exitCode, 0);
  });

  it('takes its user, directory and environment', async () => {
    const { handle, screen, type } = await terminal({ user: 'root', cwd: '/var', envs: { COLOUR: 'blue' } });
    await type('echo "<$(id -un) $PWD $COLOUR>"; exit\n');
    await handle.wait();
    assert.match(screen.text, /<root \/var blue>/);
  });

  it('is resized while it runs', async () => {
    const { handle, screen, type } = await terminal();
    await sandbox.pty.resize(handle.pid, { cols: 120, rows: 40 });
    await type('stty size\n');
    await until('it knows', () => screen.text.includes('40 120'));
    await sandbox.pty.kill(handle.pid);
  });

  it('passes keys such as Ctrl+C on', async () => {
    const { handle, screen, type } = await terminal();
    await type('sleep 1000\n');
    await sleep(300);
    await type('\x03');
    await type('echo still-$((1+1))\n');
    await until('the shell is back', () => screen.text.includes('still-2'));
    assert.equal(await sandbox.pty.kill(handle.pid), true);
    assert.equal(await sandbox.pty.kill(handle.pid), false);
    await handle.wait().catch(() => {});
  });

  it('is connected to again, with what was missed', async () => {
    const { handle, type } = await terminal();
    await type('sleep 0.5; echo miss-$((40+2))\n');
    await sleep(100);
    await handle.disconnect();
    await sleep(900);
    let text = '';
    const again = await sandbox.pty.connect(handle.pid, { onData: (data) => (text += Buffer.from(data).toString()) });
    await until('it was replayed', () => text.includes('miss-42'));
    await sandbox.pty.sendInput(again.pid, bytes('exit 5\n'));
    assert.equal((await failure(again.wait())).exitCode, 5);
  });

  it('is listed among the commands, and refuses to be another process', async () => {
    const { handle } = await terminal();
    const listed = (await sandbox.commands.list()).find((one) => one.pid === handle.pid);
    assert.deepEqual([listed.cmd, listed.args], ['/bin/bash', ['-i', '-l']]);
    await handle.kill();
    assert.ok((await failure(sandbox.pty.resize(999999, { cols: 1, rows: 1 }))) instanceof NotFoundError);
    assert.ok((await failure(sandbox.pty.sendInput(999999, bytes('x')))) instanceof NotFoundError);
    const plain = await sandbox.commands.run('sleep 20', { background: true });
    assert.match((await failure(sandbox.pty.resize(plain.pid, { cols: 10, rows: 10 }))).message, /no terminal/);
    await plain.kill();
  });
});
