// A WebSocket client that is small enough to be read: it counts and checks everything the server sends.
import { createHash, randomBytes } from 'node:crypto';
import net from 'node:net';

export class Socket {
  /** Resolves when the server has agreed; rejects with its status otherwise. */
  static open(server, path, { key = server.key, headers = {} } = {}) {
    return new Promise((resolve, reject) => {
      const s = new Socket();
      const nonce = randomBytes(16).toString('base64');
      s.messages = [];
      s.waiting = [];
      s.input = Buffer.alloc(0);
      s.tcp = net.connect(server.port, '127.0.0.1');
      s.tcp.on('error', (error) => s.end(error));
      s.tcp.on('close', () => s.end());
      s.tcp.write(`GET ${path} HTTP/1.1\r\nHost: localhost:${server.port}\r\nX-API-Key: ${key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${nonce}\r\n${Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
      s.onHead = (head) => {
        const accept = createHash('sha1').update(`${nonce}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
        if (head.startsWith('HTTP/1.1 101') && head.includes(accept)) resolve(s);
        else reject(Object.assign(new Error(head.split('\r\n')[0]), { status: Number(head.slice(9, 12)) }));
      };
      s.tcp.on('data', (data) => s.take(data));
    });
  }

  take(data) {
    this.input = this.input.length ? Buffer.concat([this.input, data]) : data;
    if (this.onHead) {
      const end = this.input.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = this.input.subarray(0, end).toString();
      this.input = this.input.subarray(end + 4);
      const { onHead } = this;
      this.onHead = null;
      onHead(head);
    }
    while (this.takeFrame());
  }

  takeFrame() {
    if (this.input.length < 2) return false;
    const opcode = this.input[0] & 15;
    let length = this.input[1] & 127;
    let at = 2;
    if (length === 126) {
      if (this.input.length < 4) return false;
      length = this.input.readUInt16BE(2);
      at = 4;
    } else if (length === 127) {
      if (this.input.length < 10) return false;
      length = Number(this.input.readBigUInt64BE(2));
      at = 10;
    }
    if (this.input.length < at + length) return false;
    const data = this.input.subarray(at, at + length);
    this.input = this.input.subarray(at + length);
    if (opcode === 1) this.deliver({ text: JSON.parse(data.toString()) });
    else if (opcode === 2) this.deliver({ data: Buffer.from(data) });
    else if (opcode === 8) this.closed = { code: data.length >= 2 ? data.readUInt16BE(0) : 1005, reason: data.subarray(2).toString() };
    else if (opcode === 9) this.frame(10, data);
    if (opcode === 8) {
      this.frame(8, data.subarray(0, 2));
      this.tcp.end();
      this.end();
    }
    return true;
  }

  deliver(message) {
    const waiter = this.waiting.shift();
    if (waiter) waiter.resolve(message);
    else this.messages.push(message);
  }

  end(error) {
    this.over = true;
    this.closed ??= { code: 1006, reason: String(error ?? '') };
    for (const waiter of this.waiting.splice(0)) waiter.resolve(null);
  }

  frame(opcode, data) {
    const mask = randomBytes(4);
    const head = Buffer.alloc(data.length < 126 ? 2 : data.length < 65536 ? 4 : 10);
    head[0] = 128 | opcode;
    if (head.length === 2) head[1] = 128 | data.length;
    else if (head.length === 4) (head[1] = 254), head.writeUInt16BE(data.length, 2);
    else (head[1] = 255), head.writeBigUInt64BE(BigInt(data.length), 2);
    const masked = Buffer.from(data);
    for (let i = 0; i < masked.length; i++) masked[i] ^= mask[i & 3];
    if (!this.tcp.destroyed) this.tcp.write(Buffer.concat([head, mask, masked]));
  }

  send(value) {
    if (typeof value === 'string' || Buffer.isBuffer(value)) this.frame(2, Buffer.from(value));
    else this.frame(1, Buffer.from(JSON.stringify(value)));
  }

  /** The next message: {text: object} or {data: Buffer}; null when the socket has closed. */
  next(ms = 30000) {
    if (this.messages.length) return Promise.resolve(this.messages.shift());
    if (this.over) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      const waiter = { resolve: (value) => (clearTimeout(timer), resolve(value)) };
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        reject(new Error(`no message in ${ms} ms`));
      }, ms);
      this.waiting.push(waiter);
    });
  }

  /** Everything until the close: the texts, and the bytes put together. */
  async rest() {
    const texts = [];
    const parts = [];
    for (let m; (m = await this.next()); ) m.text ? texts.push(m.text) : parts.push(m.data);
    return { texts, data: Buffer.concat(parts), closed: this.closed };
  }

  /** Reads bytes until they contain the text; returns all of them. */
  async readUntil(text, seen = '') {
    for (let m; !seen.includes(text) && (m = await this.next()); ) if (m.data) seen += m.data.toString('latin1');
    if (!seen.includes(text)) throw new Error(`closed before ${JSON.stringify(text)}: ${JSON.stringify(seen)}`);
    return seen;
  }

  pause() {
    this.tcp.pause();
  }
  resume() {
    this.tcp.resume();
  }
  destroy() {
    this.tcp.destroy();
  }
}
