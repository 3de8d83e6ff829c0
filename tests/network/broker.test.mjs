// Hosts with rules: what the broker adds and refuses, seen from inside sandboxes and from the hosts; and what dies.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { finish, remove } from '../system/support.mjs';
import { until } from '../lib/server.mjs';
import { World, enterNamespace, processesOf } from './world.mjs';

enterNamespace(import.meta.url);

const SECRET = 'sk-live-0123456789', trusted = `${tmpdir()}/bunker-upstream-${process.pid}.pem`;
let world, server;

before(async () => {
  world = await World.make();
  writeFileSync(trusted, await world.authority());
  server = await world.start({ args: ['--upstream-ca', trusted] });
  assert.equal((await server.request('PUT', '/v1/secrets/KEY', { value: SECRET })).status, 200);
});

after(async () => {
  try {
    await finish(server, { killed: true });
  } finally {
    rmSync(trusted, { force: true });
    world.end();
  }
});

const rules = [
  { host: 'web.test', headers: { authorization: 'Bearer ${secret:KEY}', 'x-plain': 'yes' } },
  { host: 'evil.test', headers: { authorization: 'Bearer ${secret:KEY}' } },
];
const create = (network = { mode: 'open', rules }) => server.create({ env: { KEY: '${secret:KEY}' }, network });

/** The values of a header as the host has seen them. */
const values = (answer, name) => answer.headers.flatMap((text, i) => (i % 2 === 1 && answer.headers[i - 1].toLowerCase() === name ? [text] : []));

async function run(id, command) {
  const done = await server.exec(id, command);
  assert.equal(done.exitCode, 0, done.stderr);
  assert.ok(!done.stderr.includes(SECRET));
  return done.stdout;
}

const CLIENTS = {
  curl: 'curl -sS -H "Authorization: mine" -H "X-Key: a $KEY" https://web.test/headers',
  python: `python3 -c 'import os, urllib.request as u; print(u.urlopen(u.Request("https://web.test/headers", headers={"Authorization": "mine", "X-Key": "a " + os.environ["KEY"]})).read().decode())'`,
  node: `node -e 'require("https").get("https://web.test/headers", { headers: { Authorization: "mine", "X-Key": "a " + process.env.KEY } }, (r) => r.pipe(process.stdout))'`,
};

test('common_clients_trust_the_broker_and_hosts_get_the_secret', { timeout: 60000 }, async () => {
  const { id } = await create();
  for (const [name, command] of Object.entries(CLIENTS)) {
    if ((await server.exec(id, `command -v ${command.split(' ')[0]}`)).exitCode !== 0) continue;
    const seen = JSON.parse(await run(id, command));
    assert.deepEqual(values(seen, 'authorization'), [`Bearer ${SECRET}`], name);
    assert.deepEqual(values(seen, 'x-key'), [`a ${SECRET}`], name);
    assert.equal(seen.sni, 'web.test');
  }
  assert.ok((await run(id, 'echo $KEY')).startsWith('bnkph_'));
  await remove(server, id);
});

test('over_plain_http_and_to_other_hosts_no_secret_goes', { timeout: 60000 }, async () => {
  const { id } = await create();
  const plain = JSON.parse(await run(id, 'curl -sS -H "X-Key: $KEY" http://web.test/headers'));
  assert.deepEqual(values(plain, 'authorization'), []);
  assert.deepEqual(values(plain, 'x-plain'), ['yes']);
  assert.ok(values(plain, 'x-key')[0].startsWith('bnkph_'));
  const other = JSON.parse(await run(id, 'curl -sSk -H "X-Key: $KEY" https://other.test/headers'));
  assert.deepEqual(values(other, 'authorization'), []);
  assert.ok(values(other, 'x-key')[0].startsWith('bnkph_'));
  await remove(server, id);
});

test('a_host_whose_certificate_is_not_accepted_gets_nothing', { timeout: 60000 }, async () => {
  const { id } = await create();
  const answer = await run(id, 'curl -sS -i https://evil.test/headers');
  assert.match(answer, /^HTTP\/1.1 502 /);
  assert.match(answer, /evil.test: its certificate was not accepted: hostname mismatch/);
  await remove(server, id);
});

test('a_rule_does_not_allow_its_host_and_another_host_is_misdirected', { timeout: 60000 }, async () => {
  const { id } = await create({ mode: 'allow', allow: ['other.test'], rules });
  assert.notEqual((await server.exec(id, 'curl -sS --max-time 10 https://web.test/headers')).exitCode, 0);
  assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/network`, { mode: 'allow', allow: ['web.test'], rules })).status, 200);
  assert.deepEqual(values(JSON.parse(await run(id, 'curl -sS https://web.test/headers')), 'authorization'), [`Bearer ${SECRET}`]);
  assert.match(await run(id, 'curl -sS -i -H "Host: other.test" https://web.test/headers'), /^HTTP\/1.1 421 /);
  await remove(server, id);
});

test('a_name_that_is_denied_is_not_reached_through_an_address_that_is_allowed', { timeout: 60000 }, async () => {
  const network = { mode: 'deny', deny: ['web.test'], allow: ['5.5.5.11/32'], rules };
  const { id } = await create(network);
  const forged = 'curl -sS --max-time 10 --connect-to web.test:443:5.5.5.11:443 https://web.test/headers';
  assert.notEqual((await server.exec(id, forged)).exitCode, 0);
  assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/network`, { ...network, deny: ['evil.test'] })).status, 200);
  assert.deepEqual(values(JSON.parse(await run(id, forged)), 'authorization'), [`Bearer ${SECRET}`]); // the control
  await remove(server, id);
});

test('the_command_line_puts_secrets_and_headers', { timeout: 60000 }, async () => {
  assert.equal(server.cli(['secret', 'set', 'CLI'], { input: 'from-stdin\n' }).status, 0);
  assert.match(server.cli(['secret', 'ls']).stdout, /CLI/);
  const made = server.cli(['create', '--network', 'open', '--header', 'web.test x-cli: got ${secret:CLI}', '--json']);
  assert.equal(made.status, 0, made.stderr);
  const { id } = JSON.parse(made.stdout);
  assert.deepEqual(values(JSON.parse(await run(id, 'curl -sS https://web.test/headers')), 'x-cli'), ['got from-stdin']);
  assert.ok(!server.cli(['info', id]).stdout.includes('from-stdin'));
  assert.notEqual(server.cli(['secret', 'rm', 'CLI']).status, 0); // a rule names it
  await remove(server, id);
  assert.equal(server.cli(['secret', 'rm', 'CLI']).status, 0);
});

const authorized = async (id) => {
  const done = await server.exec(id, 'curl -sS --max-time 10 https://web.test/headers');
  return done.exitCode === 0 && values(JSON.parse(done.stdout), 'authorization')[0] === `Bearer ${SECRET}`;
};

/** Holds a TLS connection through the broker and writes down how it ended. */
const HOLDER = `
import http.client, time
c = http.client.HTTPSConnection('web.test')
n = 0
try:
    while True:
        c.request('GET', '/'); c.getresponse().read(); n += 1
        assert c.sock
        open('/tmp/held', 'w').write('open %d' % n)
        time.sleep(0.1)
except Exception as e:
    open('/tmp/held', 'w').write(type(e).__name__)
`;
const held = async (id) => (await server.exec(id, 'cat /tmp/held')).stdout;

async function holder() {
  const { id } = await create();
  await server.request('POST', `/v1/sandboxes/${id}/processes`, { command: ['python3', '-c', HOLDER] });
  await until('the connection is open', async () => (await held(id)).startsWith('open'));
  return id;
}

test('broker_killed_its_connections_are_reset_and_the_next_ones_go_through_another', { timeout: 60000 }, async () => {
  const id = await holder();
  const [pid] = processesOf(server, 'bunker-broker');
  process.kill(pid, 'SIGKILL');
  await until('the connection has ended', async () => !(await held(id)).startsWith('open'));
  await until('requests get through again', () => authorized(id));
  assert.notEqual(processesOf(server, 'bunker-broker')[0], pid);
  await remove(server, id);
});

test('egress_killed_the_broker_stays_and_gets_its_connections_from_the_next', { timeout: 60000 }, async () => {
  const id = await holder();
  const [broker] = processesOf(server, 'bunker-broker');
  process.kill(processesOf(server, 'bunker-egress')[0], 'SIGKILL');
  await until('the connection has ended', async () => !(await held(id)).startsWith('open'));
  await until('requests get through again', () => authorized(id));
  assert.deepEqual(processesOf(server, 'bunker-broker'), [broker]);
  await remove(server, id);
});

test('wire_or_the_whole_server_killed_connections_go_on', { timeout: 60000 }, async () => {
  const id = await holder();
  const [broker] = processesOf(server, 'bunker-broker');
  const goesOn = async () => {
    const count = Number((await held(id)).split(' ')[1]);
    await until('the connection carries more', async () => Number((await held(id)).split(' ')[1]) > count);
  };
  const [wire] = processesOf(server, 'bunker-wire');
  process.kill(wire, 'SIGKILL');
  await until('there is another one', () => processesOf(server, 'bunker-wire').some((pid) => pid !== wire));
  await goesOn();
  await server.crash();
  await server.launch();
  await goesOn();
  assert.deepEqual(processesOf(server, 'bunker-broker'), [broker]);
  assert.ok(await authorized(id));
  await remove(server, id);
});

test('a_rule_that_is_changed_or_taken_away_ends_connections_at_once', { timeout: 60000 }, async () => {
  const id = await holder();
  assert.equal((await server.request('PUT', `/v1/sandboxes/${id}/network`, { mode: 'open' })).status, 200);
  await until('the connection has ended', async () => !(await held(id)).startsWith('open'));
  await remove(server, id);
});

test('the_broker_has_its_own_uid_and_no_rights', { timeout: 60000 }, async () => {
  const { id } = await create();
  assert.ok(await authorized(id));
  const status = (pid) => Object.fromEntries(readFileSync(`/proc/${pid}/status`, 'utf8').split('\n').map((line) => line.split(':\t')));
  const broker = status(processesOf(server, 'bunker-broker')[0]);
  const egress = status(processesOf(server, 'bunker-egress')[0]);
  assert.notEqual(broker.Uid, egress.Uid);
  assert.deepEqual([broker.CapEff, broker.CapBnd === undefined, broker.Seccomp, broker.NoNewPrivs], ['0000000000000000', false, '2', '1']);
  await remove(server, id);
  await until('a broker without sandboxes ends', () => processesOf(server, 'bunker-broker').length === 0, 30000);
});
