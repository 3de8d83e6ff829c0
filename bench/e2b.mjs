// What E2B's own SDK needs, in Node: `node e2b.mjs SAMPLES PARALLEL`, pointed at a server by the variables that
// `bunker env e2b` prints. Prints one line per sample, "create run kill" in microseconds, then "parallel COUNT MICROSECONDS".
import { createRequire } from 'node:module';

const require = createRequire(new URL('../tests/sdk/e2b/package.json', import.meta.url));
const { Sandbox } = require('e2b');
const [samples, parallel] = process.argv.slice(2).map(Number);
const microseconds = () => Number(process.hrtime.bigint() / 1000n);

async function cycle() {
  const times = [microseconds()];
  const sandbox = await Sandbox.create();
  times.push(microseconds());
  await sandbox.commands.run('true');
  times.push(microseconds());
  await sandbox.kill();
  times.push(microseconds());
  return times;
}

for (let i = 0; i < 20; i++) await cycle(); // Node warms up
for (let i = 0; i < samples; i++) {
  const t = await cycle();
  console.log(t.slice(1).map((end, n) => end - t[n]).join(' '));
}
await new Promise((resolve) => setTimeout(resolve, 500)); // for the pool
const began = microseconds();
await Promise.all(Array.from({ length: parallel }, cycle));
console.log(`parallel ${parallel} ${microseconds() - began}`);
