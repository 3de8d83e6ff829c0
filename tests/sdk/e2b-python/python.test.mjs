// E2B's Python packages from PyPI, unmodified, with their synchronous and asynchronous classes: every *.py here that has tests is run, and each of its tests is one here.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { after, describe, it } from 'node:test';
import { Server } from '../../lib/server.mjs';
import { environment } from '../e2b/support.mjs';

const here = new URL('.', import.meta.url).pathname;
const install = spawnSync(`${here}../install`, ['--python'], { encoding: 'utf8' });
const python = install.stdout.trim().split('\n').pop();
const missing = install.status !== 0 && `E2B's Python packages cannot be had: ${install.stderr.trim().split('\n').pop()}`;
if (missing) console.error(`SKIPPED: ${missing}`);

/** Runs one file; its TAP, as { ok, name, why }. */
async function run(server, file) {
  const child = spawn(python, [`${here}${file}`], { env: { ...process.env, ...environment(server), PYTHONPATH: here, PYTHONDONTWRITEBYTECODE: '1' }, stdio: ['ignore', 'pipe', 'inherit'] });
  const results = [];
  let planned = -1;
  for await (const line of createInterface({ input: child.stdout })) {
    const [, not, name] = /^(not )?ok \d+ - (.*)$/.exec(line) ?? [];
    if (name) results.push({ ok: !not, name, why: '' });
    else if (line.startsWith('# ')) results.at(-1).why += `${line.slice(2)}\n`;
    else planned = Number(/^1\.\.(\d+)$/.exec(line)?.[1] ?? planned);
  }
  return { results, planned };
}

describe('E2B from Python', { skip: missing, timeout: 380000 }, async () => {
  if (missing) return;
  const server = await Server.start({ args: ['--pool', '2'] });
  after(() => server.destroy());
  for (const file of readdirSync(here).filter((name) => name.endsWith('.py') && name !== 'harness.py')) {
    const { results, planned } = await run(server, file);
    it(`${file}: all tests were run`, () => assert.deepEqual([results.length, planned > 0], [planned, true]));
    for (const { ok, name, why } of results) it(`${file}: ${name}`, () => assert.ok(ok, why));
  }
});
