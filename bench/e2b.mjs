// What E2B's own SDK needs, in Node: `node e2b.mjs SAMPLES PARALLEL`, pointed at a server by the variables that
// `bunker env e2b` prints. Prints one line per sample, "create run kill floor" in microseconds, then "parallel COUNT MICROSECONDS". The
// floor is the same cycle with a server that does nothing but answer with what it has heard (replay.mjs).
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../tests/sdk/e2b/package.json', import.meta.url));
const { Sandbox } = require('e2b');
const [samples, parallel] = process.argv.slice(2).map(Number);
const microseconds = () => Number(process.hrtime.bigint() / 1000n);

async function cycle(options) {
  const times = [microseconds()];
  const sandbox = await Sandbox.create(options);
  times.push(microseconds());
  await sandbox.commands.run('true');
  times.push(microseconds());
  await sandbox.kill();
  times.push(microseconds());
  return times;
}

const replay = fork(new URL('replay.mjs', import.meta.url).pathname, [process.env.E2B_API_URL]);
const [port] = await once(replay, 'message');
const url = `http://127.0.0.1:${port}`;
const floor = { apiUrl: url, sandboxUrl: url };

for (let i = 0; i < 20; i++) {
  // Node warms up
  await cycle();
  await cycle(floor);
}
for (let i = 0; i < samples; i++) {
  const t = await cycle();
  const f = await cycle(floor);
  console.log([...t.slice(1).map((end, n) => end - t[n]), f[3] - f[0]].join(' '));
}
await new Promise((resolve) => setTimeout(resolve, 500)); // for the pool
const began = microseconds();
await Promise.all(Array.from({ length: parallel }, () => cycle()));
console.log(`parallel ${parallel} ${microseconds() - began}`);
replay.disconnect();
