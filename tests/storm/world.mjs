// What a storm is about: sandboxes with everything in them that a route can name, and what is beside them. What the storm
// destroys is made anew, so that requests go on to find something.
import { file, sha256, tar, tinyRoot } from '../lib/images.mjs';
import { until } from '../lib/server.mjs';

// What is made in each sandbox, and where it is asked for.
const PARTS = {
  process: { path: 'processes', runs: true, body: () => ({ command: 'cat', openStdin: true }) },
  job: { path: 'jobs', runs: true, body: () => ({ command: 'sleep 1000' }) },
  context: { path: 'contexts', body: () => ({ language: 'bash' }) },
  checkpoint: { path: 'checkpoints', body: (world) => ({ name: world.fresh('checkpoint') }) },
};
const TAR = { headers: { 'content-type': 'application/x-tar' } };

export class World {
  constructor(server) {
    this.server = server;
    this.count = 0;
    this.victims = [];
    this.templateName = 'storm';
    this.archive = tar([file('context', 'x')]);
    this.hash = sha256(this.archive);
  }

  /** A name that nobody has. */
  fresh(kind) {
    return `${kind}-${++this.count}`;
  }

  async call(method, path, body, options) {
    const answer = await this.server.request(method, path, body, options);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json ?? answer.text;
  }

  async bytes(path) {
    const answer = await fetch(this.server.url + path, { headers: { authorization: `Bearer ${this.server.key}`, connection: 'close' } });
    return Buffer.from(await answer.arrayBuffer());
  }

  async open(victims) {
    this.untouched = await this.server.create({ name: 'untouched', files: [{ path: '/home/user/kept', content: 'kept' }] });
    this.waits = await this.call('POST', `/v1/sandboxes/${this.untouched.id}/processes`, { command: 'sleep 1000' });
    await this.makeVolume();
    await this.makeKey();
    await this.makeSnapshot();
    await this.makeTemplate();
    await this.makeBuilding();
    await this.makeInput();
    for (let i = 0; i < victims; i++) this.victims.push(await this.makeVictim());
    const [v] = this.victims;
    this.portable = await this.call('GET', `/v1/sandboxes/${v.id}/export?path=/home`);
    this.bundle = await this.bytes(`/v1/snapshots/${this.snapshot}/export`);
  }

  async makeVictim() {
    const { id } = await this.server.create({ resources: { memory: '300Mi' }, files: [{ path: '/home/user/f', content: 'content' }, { path: '/home/user/large', content: 'x'.repeat(1 << 20) }] });
    const v = { id, watcher: 'none' };
    for (const part of Object.keys(PARTS)) await this.makePart(v, part);
    v.token = (await this.call('POST', `/e2b/sandboxes/${id}/connect`, { timeout: 600 })).envdAccessToken;
    v.execution = (await this.server.exec(id, 'echo x')).executionId;
    const execute = await this.call('POST', `/agentuity/sandbox/sbx_${id}/execute`, { command: ['echo', 'x'] });
    v.stream = execute.data.stdoutStreamUrl.split('/').pop();
    return v;
  }

  async makePart(v, part) {
    const made = await this.call('POST', `/v1/sandboxes/${v.id}/${PARTS[part].path}`, PARTS[part].body(this));
    v[part] = made.id;
    if (part === 'process') v.pid = made.pid;
  }

  async makeVolume() {
    this.volume = (await this.call('POST', '/v1/volumes', { name: this.fresh('shared') })).id;
    this.volumeToken = (await this.call('GET', `/e2b/volumes/${this.volume}`)).token;
    await this.call('PUT', `/e2b/volumecontent/${this.volume}/file?path=/f&force=true`, 'content', { headers: { authorization: `Bearer ${this.volumeToken}`, 'content-type': 'application/octet-stream' } });
  }

  async makeKey() {
    this.key = (await this.call('POST', '/v1/keys', { name: this.fresh('kept') })).id;
  }

  async makeSnapshot() {
    this.snapshot = (await this.call('POST', `/v1/sandboxes/${this.untouched.id}/snapshots`, { name: this.fresh('snapshot') })).id;
  }

  async makeTemplate() {
    this.build = (await this.call('POST', `/v1/templates/imports?name=${this.templateName}:v7`, tar(tinyRoot()), TAR)).id;
    await until('the template is there', async () => (await this.server.request('GET', `/v1/templates/builds/${this.build}`)).json.status === 'ready');
    await this.call('PUT', `/v1/templates/${this.templateName}/tags/latest`, { build: 'v7' });
    this.template = (await this.call('GET', `/v1/templates/${this.templateName}`)).id;
    await this.server.request('PUT', `/v1/templates/contexts/${this.hash}`, this.archive, TAR);
    const { url } = await this.call('GET', `/e2b/templates/${this.template}/files/${'0'.repeat(64)}`);
    this.uploadQuery = new URL(url).search;
  }

  /** A snapshot of Agentuity's that waits for its files. */
  async makeBuilding() {
    const { uploadUrl, snapshotId } = (await this.call('POST', '/agentuity/sandbox/snapshots/build', { runtime: 'base', name: this.fresh('image') })).data;
    this.uploadToken = uploadUrl.split('/').pop();
    this.building = snapshotId;
  }

  /** A stream that a command waits for. */
  async makeInput() {
    this.input = (await this.call('POST', '/agentuity/input', {})).id;
    await this.call('POST', '/agentuity/sandbox', { command: { exec: ['cat'], mode: 'oneshot' }, stream: { stdin: this.input } });
  }

  /** Repairs what the storm has taken away: one victim, and what is beside them. */
  async tend(slot) {
    const at = slot % this.victims.length;
    const v = this.victims[at];
    const gone = async (path) => (await this.server.request('GET', path)).status === 404;
    const found = await this.server.request('GET', `/v1/sandboxes/${v.id}`);
    if (found.status === 404 || ['terminated', 'failed'].includes(found.json.status)) this.victims[at] = await this.makeVictim();
    else if (['paused', 'suspended'].includes(found.json.status)) {
      // Not at once: what is due in a paused sandbox has time to become so.
      if (v.stood) await this.server.request('POST', `/v1/sandboxes/${v.id}/resume`);
      v.stood = !v.stood;
    } else {
      for (const part of Object.keys(PARTS)) {
        const { status, json } = await this.server.request('GET', `/v1/sandboxes/${v.id}/${PARTS[part].path}/${v[part]}`);
        if (status === 404 || (PARTS[part].runs && json.status !== 'running')) await this.makePart(v, part);
      }
    }
    if (await gone(`/v1/snapshots/${this.snapshot}`)) await this.makeSnapshot();
    if (await gone(`/v1/volumes/${this.volume}`)) await this.makeVolume();
    if (await gone(`/v1/keys/${this.key}`)) await this.makeKey();
    for (const tag of ['v7', 'latest']) if (await gone(`/v1/templates/resolve?ref=${this.templateName}:${tag}`)) await this.makeTemplate();
  }

  /** Deletes the sandboxes that the storm has made. */
  async sweep() {
    const { sandboxes } = await this.call('GET', '/v1/sandboxes?limit=100');
    const kept = [this.untouched, ...this.victims].map(({ id }) => id);
    for (const { id } of sandboxes) if (!kept.includes(id)) await this.server.request('DELETE', `/v1/sandboxes/${id}`);
  }

  /** Deletes everything, until there is nothing. */
  async close() {
    this.untouched = {};
    this.victims = [];
    await until('all sandboxes are gone', async () => (await this.sweep(), (await this.call('GET', '/v1/sandboxes')).sandboxes.length === 0), 60000);
    const { volumes } = await this.call('GET', '/v1/volumes');
    for (const { id } of volumes) await this.server.request('DELETE', `/v1/volumes/${id}`);
  }
}
