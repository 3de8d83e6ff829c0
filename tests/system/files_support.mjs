// What the tests of files share: requests whose bodies and answers are bytes, and the paths of one sandbox.
import assert from 'node:assert/strict';
import http from 'node:http';

/** One request; the answer's body as a Buffer. `body` may be a Buffer, a string, JSON, or a stream (sent in chunks). */
export function send(server, method, path, body, headers = {}) {
  const streamed = body && typeof body.pipe === 'function';
  const raw = typeof body === 'string' || Buffer.isBuffer(body);
  const payload = body === undefined || streamed ? undefined : raw ? body : JSON.stringify(body);
  const all = { authorization: `Bearer ${server.key}`, ...headers };
  if (payload !== undefined) {
    all['content-length'] ??= Buffer.byteLength(payload);
    if (!raw) all['content-type'] ??= 'application/json';
  }
  return new Promise((resolve, reject) => {
    const req = http.request(server.url + path, { method, headers: all, agent: server.agent }, (res) => {
      const parts = [];
      res.on('data', (part) => parts.push(part));
      res.on('error', reject);
      res.on('aborted', () => reject(new Error('the answer was cut short')));
      res.on('end', () => {
        const bytes = Buffer.concat(parts);
        let json;
        try {
          json = JSON.parse(bytes.toString());
        } catch {
          json = undefined;
        }
        resolve({ status: res.statusCode, headers: res.headers, bytes, text: bytes.toString(), json });
      });
    });
    req.on('error', reject);
    if (streamed) body.pipe(req);
    else req.end(payload);
  });
}

const encode = (value) => (Buffer.isBuffer(value) ? [...value].map((b) => `%${b.toString(16).padStart(2, '0')}`).join('') : encodeURIComponent(value));

/** The files of one sandbox. Every call gives the answer as it is; `ok` insists that it went well. */
export class Files {
  constructor(server, id) {
    this.server = server;
    this.base = `/v1/sandboxes/${id}`;
    this.id = id;
  }
  query(options) {
    return Object.entries(options)
      .map(([name, value]) => `${name}=${encode(value)}`)
      .join('&');
  }
  get(path, options = {}, headers) {
    return send(this.server, 'GET', `${this.base}/files?${this.query({ path, ...options })}`, undefined, headers);
  }
  head(path, options = {}) {
    return send(this.server, 'HEAD', `${this.base}/files?${this.query({ path, ...options })}`);
  }
  put(path, body, options = {}, headers) {
    return send(this.server, 'PUT', `${this.base}/files?${this.query({ path, ...options })}`, body, headers);
  }
  delete(path, options = {}) {
    return send(this.server, 'DELETE', `${this.base}/files?${this.query({ path, ...options })}`);
  }
  ask(what, path, options = {}) {
    return send(this.server, 'GET', `${this.base}/fs/${what}?${this.query({ path, ...options })}`);
  }
  post(what, body) {
    return send(this.server, 'POST', `${this.base}/fs/${what}`, body);
  }
  async ok(answer) {
    const got = await answer;
    assert.ok(got.status >= 200 && got.status < 300, `${got.status} ${got.text.slice(0, 500)}`);
    return got;
  }
  async text(path, options) {
    return (await this.ok(this.get(path, options))).text;
  }
  async sh(command, options = {}) {
    const result = await this.server.exec(this.id, { command, ...options });
    assert.equal(result.exitCode, 0, `${command}: ${result.stderr}`);
    return result.stdout;
  }
  async paths(answer) {
    return (await this.ok(answer)).json.entries.map((entry) => entry.path);
  }
}

export function assertFileError(answer, status, code, field) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.json?.error?.code, code, answer.text);
  assert.equal(answer.json.error.field, field, answer.text);
}
