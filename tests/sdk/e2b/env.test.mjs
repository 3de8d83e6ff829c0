// The four variables, as `bunker env e2b` prints them, are all that a user changes.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { BUNKER } from '../../lib/server.mjs';
import { startServer } from './support.mjs';

const server = await startServer();
const here = new URL('.', import.meta.url).pathname;

describe('bunker env e2b', () => {
  it('prints lines for eval, with which the SDK just works', { timeout: 30000 }, () => {
    const program = `const { Sandbox } = require('e2b-2.45.0'); Sandbox.create().then(async (s) => { console.log((await s.commands.run('echo it works')).stdout.trim()); await s.kill(); })`;
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('E2B_')));
    const r = spawnSync('/bin/sh', ['-c', `eval "$("$0" env e2b)" && node -e "$1"`, BUNKER, program], {
      cwd: here,
      encoding: 'utf8',
      env: { ...env, BUNKER_URL: `${server.url}/`, BUNKER_DATA: server.data },
    });
    assert.equal(r.stdout, 'it works\n', r.stderr);
  });

  it('gives a key that every version accepts', () => {
    const { stdout } = server.cli(['env', 'e2b', '--json']);
    const variables = JSON.parse(stdout);
    assert.deepEqual(Object.keys(variables), ['E2B_API_URL', 'E2B_SANDBOX_URL', 'E2B_VOLUME_API_URL', 'E2B_API_KEY']);
    assert.match(variables.E2B_API_KEY, /^e2b_[0-9a-f]+$/);
    const odd = server.cli(['env', 'e2b', '--api-key', "bnk_with-'quotes_and_more"]);
    assert.match(odd.stdout, /E2B_API_KEY='e2b_with-'\\''quotes_and_more'\nexport E2B_VALIDATE_API_KEY='false'\n$/);
  });

  it('knows its dialects', () => {
    const r = server.cli(['env', 'esperanto']);
    assert.equal(r.status, 2);
    assert.match(r.stderr, /no dialect "esperanto"/);
  });
});
