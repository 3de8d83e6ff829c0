// What E2B's sandboxes reach: the internet unless something else is said, by lists, and changed while they run.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { World, enterNamespace } from '../../network/world.mjs';
import { Server, environment, failure } from './support.mjs';

enterNamespace(import.meta.url);
const { ALL_TRAFFIC, Sandbox } = await import('e2b');

const PKG = '5.5.5.11', EVIL = '5.5.5.12';
let world, server;

before(async () => {
  world = await World.make();
  server = await world.start();
  Object.assign(process.env, environment(server));
});

after(async () => {
  try {
    await server.destroy();
  } finally {
    world.end();
  }
});

/** Whether a sandbox reaches this, and where it ends. */
async function reach(sandbox, url) {
  const done = await sandbox.commands.run(`curl -ksS -m 10 -f ${url}`).catch((error) => error);
  return done.exitCode === 0 ? JSON.parse(done.stdout).address : false;
}

async function native(sandbox) {
  return (await server.request('GET', `/v1/sandboxes/${sandbox.sandboxId}/network`)).json;
}

describe('network', () => {
  it('is the internet if nothing is said', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create();
    assert.deepEqual(await native(sandbox), { mode: 'open' });
    assert.equal(await reach(sandbox, 'https://pkg.test/'), PKG);
    assert.equal(await reach(sandbox, 'http://10.9.0.1/'), false);
    assert.equal((await sandbox.getInfo()).allowInternetAccess, true);
    await sandbox.kill();
  });

  it('adds headers by rules, with secrets that the sandbox never has', { timeout: 60000 }, async () => {
    assert.equal((await server.request('PUT', '/v1/secrets/TOKEN', { value: 'sk-1' })).status, 200);
    const headers = { authorization: 'Bearer ${e2b.secrets.TOKEN}', 'x-plain': 'yes' };
    const sandbox = await Sandbox.create({ network: { rules: { 'web.test': [{ transform: { headers } }] } } });
    assert.deepEqual(await native(sandbox), {
      mode: 'open',
      rules: [{ host: 'web.test', headers: { authorization: 'Bearer ${secret:TOKEN}', 'x-plain': 'yes' } }],
    });
    const plain = JSON.parse((await sandbox.commands.run('curl -sS http://web.test/headers')).stdout).headers;
    assert.ok(plain.includes('yes'));
    assert.ok(!JSON.stringify(plain).includes('sk-1')); // only over TLS
    await sandbox.updateNetwork({});
    assert.deepEqual(await native(sandbox), { mode: 'open' });
    const error = await failure(Sandbox.create({ network: { rules: { 'web.test': [{ transform: { headers: { host: 'x' } } }] } } }));
    assert.equal(error.statusCode, 400, error.message);
    await sandbox.kill();
  });

  it('is nothing with allowInternetAccess: false', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create({ allowInternetAccess: false });
    assert.deepEqual(await native(sandbox), { mode: 'none' });
    assert.equal(await reach(sandbox, 'https://pkg.test/'), false);
    assert.equal((await sandbox.getInfo()).allowInternetAccess, false);
    await sandbox.kill();
  });

  it('is what allowOut names, where everything else is denied', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create({ network: { allowOut: ['pkg.test', EVIL], denyOut: [ALL_TRAFFIC] } });
    assert.deepEqual(await native(sandbox), { mode: 'allow', allow: ['pkg.test', EVIL] });
    assert.equal(await reach(sandbox, 'https://pkg.test/'), PKG);
    assert.equal(await reach(sandbox, `https://${EVIL}/`), EVIL);
    assert.equal(await reach(sandbox, 'https://web.test/'), false);
    const told = (await sandbox.getInfo()).network;
    assert.deepEqual([told.allowOut, told.denyOut], [['pkg.test', EVIL], [ALL_TRAFFIC]]);
    await sandbox.kill();
    const closed = await Sandbox.create({ network: { denyOut: [ALL_TRAFFIC] } });
    assert.deepEqual(await native(closed), { mode: 'allow' });
    assert.equal(await reach(closed, 'https://pkg.test/'), false);
    assert.equal(await reach(closed, `https://${PKG}/`), false);
    await closed.kill();
  });

  it('is everything but what denyOut names', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create({ network: { denyOut: ['5.5.5.8/29'], allowOut: [PKG] } });
    assert.deepEqual(await native(sandbox), { mode: 'deny', allow: [PKG], deny: ['5.5.5.8/29'] });
    assert.equal(await reach(sandbox, 'http://pkg.test/'), PKG, 'allowOut wins');
    assert.equal(await reach(sandbox, `http://${EVIL}/`), false);
    await sandbox.kill();
  });

  it('is changed while the sandbox runs, and what is not said is cleared', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create();
    await sandbox.updateNetwork({ allowOut: ['pkg.test'], denyOut: [ALL_TRAFFIC] });
    assert.equal(await reach(sandbox, 'https://evil.test/'), false);
    assert.equal(await reach(sandbox, 'https://pkg.test/'), PKG);
    await Sandbox.updateNetwork(sandbox.sandboxId, { allowInternetAccess: false });
    assert.equal(await reach(sandbox, 'https://pkg.test/'), false);
    await sandbox.updateNetwork({});
    assert.equal(await reach(sandbox, 'https://evil.test/'), EVIL);
    await sandbox.kill();
  });

  it('refuses lists as E2B does, and changes nothing', { timeout: 60000 }, async () => {
    const sandbox = await Sandbox.create();
    const bad = [
      [{ allowOut: ['pkg.test'] }, /ALL_TRAFFIC/],
      [{ allowOut: ['*.pkg.test'], denyOut: [EVIL] }, /ALL_TRAFFIC/],
      [{ denyOut: ['pkg.test'] }, /denyOut/],
      [{ denyOut: [ALL_TRAFFIC], allowOut: ['not a name'] }, /not a name/],
      [{ denyOut: [ALL_TRAFFIC], allowOut: ['10.0.0.0/8'] }, /private/],
    ];
    for (const [network, message] of bad) {
      for (const call of [() => sandbox.updateNetwork(network), () => Sandbox.create({ network })]) {
        const error = await failure(call());
        assert.equal(error.statusCode, 400, error.message);
        assert.match(error.message, message);
      }
    }
    assert.deepEqual(await native(sandbox), { mode: 'open' });
    await sandbox.kill();
  });
});

/** A host whose kernel has no bpf(): a filter in front of the server. */
const WITHOUT_BPF = `
import ctypes, os, platform, struct, sys
number = {'x86_64': 321, 'aarch64': 280}[platform.machine()]
code = struct.pack('HBBI', 0x20, 0, 0, 0) + struct.pack('HBBI', 0x15, 0, 1, number) + struct.pack('HBBI', 0x06, 0, 0, 0x50000 | 38) + struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 4, ctypes.addressof(buffer)))
assert ctypes.CDLL(None).prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
`;

describe('on a host that can give no network', () => {
  it('sandboxes are made without one, and lists are refused', { timeout: 60000 }, async () => {
    const other = await Server.start({ wrapper: ['python3', '-c', WITHOUT_BPF] });
    try {
      const options = { ...environment(other) };
      const by = { apiUrl: options.E2B_API_URL, sandboxUrl: options.E2B_SANDBOX_URL, apiKey: options.E2B_API_KEY };
      const sandbox = await Sandbox.create(by);
      assert.deepEqual((await other.request('GET', `/v1/sandboxes/${sandbox.sandboxId}/network`)).json, { mode: 'none' });
      assert.equal((await sandbox.commands.run('echo works')).stdout, 'works\n');
      assert.equal((await sandbox.getInfo()).allowInternetAccess, false, 'and it says so');
      await sandbox.updateNetwork({});
      const error = await failure(Sandbox.create({ ...by, network: { denyOut: [EVIL] } }));
      assert.match(error.message, /cannot give a sandbox a network/);
      const refused = await other.request('POST', '/v1/sandboxes', { network: { mode: 'open' } });
      assert.deepEqual([refused.status, refused.json.error.code], [503, 'unavailable']);
      await sandbox.kill();
    } finally {
      await other.destroy();
    }
  });
});
