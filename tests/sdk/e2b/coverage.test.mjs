// Every public method of the SDK is called by some test here, and every error class is met: compared with the
// declarations that the SDK is published with.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';

const here = new URL('.', import.meta.url);
const declarations = readFileSync(new URL('node_modules/e2b/dist/index.d.ts', here), 'utf8');
const interpreter = readFileSync(new URL('node_modules/@e2b/code-interpreter/dist/index.d.ts', here), 'utf8');
const tests = readdirSync(here)
  .filter((name) => name.endsWith('.test.mjs') && name !== 'coverage.test.mjs')
  .map((name) => readFileSync(new URL(name, here), 'utf8'))
  .join('\n');

/** The public methods and getters of a class, as its declaration has them. */
function methodsOf(name, text = declarations) {
  const start = new RegExp(`^declare (abstract )?class ${name}[ <]`, 'm').exec(text);
  assert.ok(start, `the SDK has no class ${name}`);
  const body = text.slice(start.index, text.indexOf('\n}', start.index));
  const found = new Set();
  for (const line of body.split('\n')) {
    const match = /^ {2,4}(?:static )?(?:async )?(?:get )?([a-zA-Z]+)(?:<[^(]*>)?\(/.exec(line);
    if (match && !/^\s*(private|protected)/.test(line) && match[1] !== 'constructor') found.add(match[1]);
  }
  return [...found];
}

const classes = ['Sandbox', 'SandboxApi', 'SandboxPaginator', 'Commands', 'CommandHandle', 'CommandExitError', 'Filesystem', 'WatchHandle', 'Pty', 'Git', 'TemplateBase', 'Volume', 'Secret', 'SnapshotPaginator'];

/** What a test of the server cannot call in a sensible way. */
const exempt = new Set([
  'with', // of ClientFactory: makes a class with options of its own
  'supportsStdinClose', // internal
  'getMcpToken', // needs the MCP gateway, which is refused
  'fill', 'iamToken', // of Secret: texts for rules of the network, which are refused
]);

for (const name of classes)
  describe(name, () => {
    for (const method of methodsOf(name))
      it(`${method} is called`, { skip: exempt.has(method) && 'see exempt' }, () => {
        assert.match(tests, new RegExp(`\\.${method}\\b`));
      });
  });

for (const name of ['Sandbox', 'Execution', 'Result'])
  describe(`${name} of the code interpreter`, () => {
    for (const method of methodsOf(name, interpreter))
      it(`${method} is called`, () => {
        assert.match(tests, new RegExp(`\\.${method}\\b`));
      });
  });

describe('error classes', () => {
  const unreachable = {
    FileUploadError: 'needs a server that refuses its own URL',
    SecretNotFoundError: 'there are no secrets yet',
  };
  for (const [, name] of declarations.matchAll(/^declare class (\w+Error) extends/gm))
    it(`${name} is met`, { skip: unreachable[name] }, () => {
      assert.match(tests, new RegExp(`instanceof ${name}\\b`));
    });
});
