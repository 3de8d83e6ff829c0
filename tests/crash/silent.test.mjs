// A start of the front while an init does not answer: calls to that sandbox wait for it, everybody else is served at once.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Server, sleep, until } from '../lib/server.mjs';
import { finish, initPid } from '../system/support.mjs';

let server;
before(async () => {
  server = await Server.start({ args: ['--pool', '0'] });
});
after(() => finish(server, { killed: true }));

const answers = () => server.request('GET', '/health').then((answer) => answer.status === 200, () => false);

/** Kills the front and waits until the next one serves; says how long that took. */
async function restart() {
  const front = server.frontPid, began = performance.now();
  process.kill(front, 'SIGKILL');
  await until('the front is another', () => server.frontPid && server.frontPid !== front, 30000);
  server.renewAgent();
  await until('it answers', answers, 30000);
  return performance.now() - began;
}

/** A sandbox with a process that runs, whose init is stopped. */
async function silence(t) {
  const box = await server.create();
  const { json } = await server.request('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'sleep 300', name: 'sleeper' });
  const stored = await server.request('PATCH', `/v1/sandboxes/${box.id}`, { metadata: { stored: 'after the process' } });
  assert.equal(stored.status, 200, stored.text);
  const init = initPid(server, box.id);
  process.kill(init, 'SIGSTOP');
  const go = () => {
    try {
      process.kill(init, 'SIGCONT');
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  };
  t.after(go);
  return { id: box.id, process: json.id, go };
}

/** A request whose state can be looked at. */
function begin(method, path, body) {
  const call = { over: false };
  call.done = server.request(method, path, body).then((answer) => {
    call.over = true;
    return answer;
  });
  return call;
}

test('an init that stands keeps nobody else waiting', { timeout: 60000 }, async (t) => {
  const other = await server.create();
  const usual = await restart();
  const silent = await silence(t);
  const took = await restart();
  assert.ok(took < usual + 5000, `served after ${Math.round(took)} ms, ${Math.round(usual)} without it`);
  const held = [
    begin('POST', `/v1/sandboxes/${silent.id}/exec`, { command: 'echo back' }),
    begin('GET', `/v1/sandboxes/${silent.id}/processes`),
    begin('GET', `/v1/executions/${silent.process}`),
    begin('GET', `/v1/sandboxes/${silent.id}/files?path=/etc/passwd`),
  ];
  const began = performance.now();
  assert.equal((await server.exec(other.id, 'echo here')).stdout, 'here\n');
  const made = await server.create();
  assert.equal((await server.request('DELETE', `/v1/sandboxes/${made.id}`)).status, 204);
  assert.equal((await server.request('GET', `/v1/sandboxes/${silent.id}`)).status, 200, 'what is asked of its row');
  assert.ok(performance.now() - began < 5000, `others took ${Math.round(performance.now() - began)} ms`);
  assert.deepEqual(held.map((call) => call.over), [false, false, false, false], 'control: it does not answer yet');
  silent.go();
  const [exec, processes, execution, file] = await Promise.all(held.map((call) => call.done));
  assert.deepEqual([exec.status, exec.json.stdout], [200, 'back\n'], exec.text);
  assert.equal(processes.json.processes[0].id, silent.process, processes.text);
  assert.equal(execution.json.status, 'running', execution.text);
  assert.equal(file.status, 200, file.text);
  assert.doesNotMatch(server.log.text, /a process was lost/);
});

test('a client that leaves while it waits leaves nothing', { timeout: 60000 }, async (t) => {
  const silent = await silence(t);
  await restart();
  const gone = new AbortController();
  const lost = fetch(`${server.url}/v1/sandboxes/${silent.id}/exec`, {
    method: 'POST', body: JSON.stringify({ command: 'touch /tmp/ran' }), signal: gone.signal,
    headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
  }).then(() => 'answered', () => 'left');
  await sleep(200);
  gone.abort();
  assert.equal(await lost, 'left');
  silent.go();
  assert.equal((await server.exec(silent.id, 'test ! -e /tmp/ran && echo nothing')).stdout, 'nothing\n');
});

test('one that stands can be deleted at once', { timeout: 60000 }, async (t) => {
  const silent = await silence(t);
  await restart();
  const held = begin('POST', `/v1/sandboxes/${silent.id}/exec`, { command: 'true' });
  const began = performance.now();
  assert.equal((await server.request('DELETE', `/v1/sandboxes/${silent.id}`)).status, 204);
  assert.ok(performance.now() - began < 5000, `${Math.round(performance.now() - began)} ms`);
  assert.ok([404, 409].includes((await held.done).status), 'the one that waited is told');
  const end = await server.request('GET', `/v1/executions/${silent.process}`);
  assert.equal(end.json.status, 'cancelled', end.text);
});

test('one that stays silent is given up and its callers are told', { timeout: 60000 }, async (t) => {
  const silent = await silence(t);
  await restart();
  const answer = await server.request('POST', `/v1/sandboxes/${silent.id}/exec`, { command: 'true' });
  assert.deepEqual([answer.status, answer.json.error.code], [409, 'not_running'], answer.text);
  assert.equal((await server.request('GET', `/v1/sandboxes/${silent.id}`)).json.status, 'failed');
  const end = await server.request('GET', `/v1/executions/${silent.process}`);
  assert.equal(end.json.status, 'failed', end.text);
});

test('an init that stands does not hold up a stop, and goes on afterwards', { timeout: 60000 }, async (t) => {
  const silent = await silence(t);
  await restart();
  const held = begin('POST', `/v1/sandboxes/${silent.id}/exec`, { command: 'echo never' }).done.catch((error) => error);
  await sleep(300);
  const began = performance.now();
  await server.stop();
  const took = performance.now() - began;
  assert.ok(took < 6000, `the stop took ${Math.round(took)} ms`);
  assert.notEqual((await held).status, 200);
  silent.go();
  await server.launch();
  assert.equal((await server.exec(silent.id, 'echo back')).stdout, 'back\n');
  const execution = await server.request('GET', `/v1/executions/${silent.process}`);
  assert.equal(execution.json.status, 'running', execution.text);
});
