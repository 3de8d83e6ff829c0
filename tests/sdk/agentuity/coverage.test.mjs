// Every method that the SDK declares is called by a test here, and no other name is.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';

const sources = new URL('node_modules/@agentuity/core/src/services/sandbox/', import.meta.url);
const source = readFileSync(new URL('client.ts', sources), 'utf8');
const tests = readdirSync(new URL('.', import.meta.url))
  .filter((name) => name.endsWith('.test.mjs') && name !== 'coverage.test.mjs')
  .map((name) => readFileSync(new URL(name, import.meta.url), 'utf8'))
  .join('\n');

/** The names in front of a bracket at the beginning of lines of one tab's depth. */
const methods = (text) => [...text.matchAll(/^\t(?:async )?(\w+)\(/gm)].map((m) => m[1]).filter((name) => name !== 'constructor');
const body = (begin) => {
  const from = source.indexOf(begin);
  assert.ok(from >= 0, `${begin} is in the SDK`);
  return source.slice(from, source.indexOf('\n}', from));
};

const declared = {
  client: methods(body('export class SandboxClient')),
  sandbox: methods(body('export interface SandboxInstance')),
  job: methods(body('export interface JobInstance')),
  checkpoint: methods(body('export interface DiskCheckpointInstance')),
};

describe('the SDK', () => {
  it('is what these tests were written for', () => {
    assert.equal(declared.client.length, 26, declared.client.join(' '));
    assert.equal(declared.sandbox.length, 12, declared.sandbox.join(' '));
    assert.deepEqual(declared.job, ['get', 'stop']);
    assert.deepEqual(declared.checkpoint, ['restore', 'delete']);
  });

  it('has no method that is not called', () => {
    const called = (receivers, name) => new RegExp(`\\b(${receivers})\\.${name}\\(`).test(tests);
    for (const name of declared.client) assert.ok(called('client|stranger|who|nobody', name), `client.${name}`);
    for (const name of declared.sandbox) assert.ok(called('sandbox|next|middle|again|bare|theirs', name), `sandbox.${name}`);
    for (const name of declared.job) assert.ok(called('job|again|quick|stubborn', name), `job.${name}`);
    for (const name of declared.checkpoint) assert.ok(called('first|second|again', name), `checkpoint.${name}`);
  });

  it('is not called by names that it does not have', () => {
    const names = new Set(declared.client);
    for (const [, name] of tests.matchAll(/\b(?:client|stranger)\.(\w+)\(/g)) assert.ok(names.has(name), `client.${name}`);
  });
});
