// docs/attacks.md claims which attempt is tested where: here the claims are compared with the names of the tests.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url).pathname;
const page = readFileSync(join(root, 'docs/attacks.md'), 'utf8');

const spread = (text) =>
  text.split(',').flatMap((part) => {
    const [from, to = from] = part.trim().split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });

const claims = new Set(
  [...page.matchAll(/^\| ([A-L]) \| ([\d, -]+) \| .* \| `(\S+)` \|$/gm)].flatMap(([, group, numbers, file]) => spread(numbers).map((n) => `${group}${n} in ${file}`)),
);

const tested = new Set(
  ['tests/attack', 'tests/system', 'tests/crash']
    .flatMap((dir) => readdirSync(join(root, dir)).filter((name) => name.endsWith('.test.mjs')).map((name) => `${dir}/${name}`))
    .flatMap((file) => [...readFileSync(join(root, file), 'utf8').matchAll(/\b(?:it|test|describe)\(\s*['"`]([A-L]\d+)[ _]/g)].map(([, number]) => `${number} in ${file}`)),
);

test('every attempt that is claimed has a test with its number, and the other way round', () => {
  assert.ok(claims.size > 90, `${claims.size} claims were found`);
  assert.deepEqual([...claims].filter((claim) => !tested.has(claim)), [], 'claimed and not tested');
  assert.deepEqual([...tested].filter((claim) => !claims.has(claim)), [], 'tested and not claimed');
});

test('every number from 1 to 129 is tested or has a reason', () => {
  const numbers = new Set([...claims].map((claim) => Number(/\d+/.exec(claim)[0])));
  const excused = new Set([...page.matchAll(/^\| ([\d, -]+) \| /gm)].flatMap(([, list]) => spread(list)));
  for (let n = 1; n <= 129; n++) assert.ok(numbers.has(n) !== excused.has(n), `${n}: ${numbers.has(n) ? 'tested and excused' : 'neither tested nor excused'}`);
});
