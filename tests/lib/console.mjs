// The command line at a terminal of its own.
import { spawn } from 'node:child_process';
import { BUNKER, until } from './server.mjs';

const HELPER = new URL('./at_terminal.py', import.meta.url).pathname;

export class Console {
  constructor(server, args, { rows = 24, columns = 80, term = 'xterm' } = {}) {
    this.child = spawn('python3', [HELPER, String(rows), String(columns), BUNKER, ...args], {
      env: { ...process.env, BUNKER_URL: server.url, BUNKER_API_KEY: server.key, TERM: term },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.text = '';
    this.child.stdout.setEncoding('utf8');
    this.child.stdout.on('data', (data) => (this.text += data));
    this.ended = new Promise((resolve) => this.child.on('close', (code) => resolve(code)));
  }
  type(keys) {
    this.child.stdin.write(keys);
  }
  async sees(what) {
    await until(`the terminal shows ${what}: ${JSON.stringify(this.text)}`, () => (typeof what === 'string' ? this.text.includes(what) : what.test(this.text)), 15000);
  }
}
