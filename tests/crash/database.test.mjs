// Disks and a database that do not belong together: an empty, missing or foreign database must not cost a single disk.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { chownSync, copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, dataDirectory, safeReaddir } from '../lib/server.mjs';
import { finish, remove, startBeside } from '../system/support.mjs';

// Not its reserve, which is a directory and says nothing about whose it is.
const databaseFiles = (server) => readdirSync(join(server.data, 'front')).filter((name) => name.startsWith('bunker.db') && !name.endsWith('-reserve'));
const removeDatabase = (server) => databaseFiles(server).forEach((name) => rmSync(join(server.data, 'front', name)));

/** As `cp -p` of root does: a database keeps its owner, which is the front. */
function putDatabase(server, name, from) {
  const to = join(server.data, 'front', name);
  const { uid } = statSync(join(server.data, 'front'));
  if (from) copyFileSync(from, to);
  else writeFileSync(to, '');
  chownSync(to, uid, uid);
}

/** The server must end at once, with a sentence that says what to do. */
async function refusedStart(server, what) {
  await assert.rejects(server.launch(), (error) => {
    assert.match(error.message, /the server ended \(2\)/, what);
    assert.match(error.message, /belong to another database/, what);
    assert.match(error.message, /--adopt-disks/, what);
    return true;
  });
}

describe('a database that is not that of the disks', { timeout: 200000 }, () => {
  let server, aside;
  before(async () => {
    server = await Server.start({ args: ['--pool', '1'] });
    aside = dataDirectory('bunker-aside-');
  });
  after(async () => {
    await finish(server);
    rmSync(aside, { recursive: true, force: true });
  });

  let box, sleeper;
  it('is refused at every start, and with the right one back everything is there', async () => {
    box = await server.create();
    await server.exec(box.id, 'echo precious > ~/mark; sync');
    sleeper = (await server.exec(box.id, '(sleep 1000 >/dev/null 2>&1 & echo $!)')).stdout.trim();
    assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/checkpoints`, { name: 'first' })).status, 201);
    assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/snapshots`, { name: 'gold' })).status, 201);
    assert.equal((await server.request('POST', '/v1/volumes', { name: 'kept' })).status, 201);
    await server.crash();

    for (const name of databaseFiles(server)) renameSync(join(server.data, 'front', name), join(aside, name));
    await refusedStart(server, 'missing');
    await refusedStart(server, 'made by the start before');
    removeDatabase(server);
    putDatabase(server, 'bunker.db');
    await refusedStart(server, 'empty');

    const other = await startBeside(server, { args: ['--pool', '0'] });
    await other.stop();
    removeDatabase(server);
    for (const name of databaseFiles(other)) putDatabase(server, name, join(other.data, 'front', name));
    await refusedStart(server, 'of another server');
    await other.destroy();

    removeDatabase(server);
    for (const name of readdirSync(aside)) putDatabase(server, name, join(aside, name));
    await server.launch();
    assert.equal((await server.exec(box.id, `cat ~/mark; kill -0 ${sleeper} && echo alive`)).stdout, 'precious\nalive\n');
    const copy = await server.create({ snapshot: 'gold' });
    assert.equal((await server.exec(copy.id, 'cat ~/mark')).stdout, 'precious\n');
    await remove(server, copy.id);
    assert.equal((await server.request('POST', `/v1/sandboxes/${box.id}/checkpoints/first/restore`)).status, 200);
    assert.equal((await server.request('GET', '/v1/volumes')).json.volumes.length, 1);
    assert.doesNotMatch(server.log.text, /is gone/);
  });

  it('can be adopted on purpose: what it does not know is set aside for a day and counted', async () => {
    const before = safeReaddir(server.disks('aside')).length; // one of the pool, at the crash before
    await server.crash();
    mkdirSync(join(aside, 'again'));
    for (const name of databaseFiles(server)) renameSync(join(server.data, 'front', name), join(aside, 'again', name));
    server.args.push('--adopt-disks');
    await server.launch();
    server.args.pop();
    assert.deepEqual((await server.request('GET', '/v1/sandboxes')).json.sandboxes, []);
    const kept = safeReaddir(server.disks('aside'));
    const kinds = kept.map((name) => name.split('-')[0]);
    for (const kind of ['sandbox', 'checkpoint', 'snapshot', 'volume']) assert.ok(kinds.includes(kind), `${kind} in ${kept}`);
    assert.ok(kept.some((name) => name.startsWith(`sandbox-${box.id}-`)));
    const counted = Array.from(server.log.text.matchAll(/set aside for a day disks=(\d+)/g), (m) => Number(m[1])).reduce((a, b) => a + b, 0);
    assert.equal(counted, kept.length - before, server.log.text);

    // It is theirs now, and stays so.
    await server.crash();
    await server.launch();
    const old = kept.find((name) => name.startsWith('volume-'));
    renameSync(server.disks('aside', old), server.disks('aside', old.replace(/\d+$/, (s) => String(Number(s) - 25 * 3600))));
    await server.crash();
    await server.launch();
    const left = safeReaddir(server.disks('aside'));
    assert.ok(!left.some((name) => name.startsWith('volume-')), 'a day is over');
    assert.ok(left.some((name) => name.startsWith('snapshot-')), 'a day is not over');
  });
});
