// Zip archives as hostile as one likes: every number can be another than the true one.
import { deflateRawSync } from 'node:zlib';

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

const numbers = (...pairs) => Buffer.concat(pairs.map(([size, value]) => {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntLE(value, 0, size);
  return bytes;
}));

/** entries: { name, content, mode, stored, flags, method, crc, size, at } — the last five instead of the true ones. */
export function zip(entries, { comment = '', count } = {}) {
  const bodies = [], directory = [];
  let at = 0;
  for (const e of entries) {
    const content = Buffer.from(e.content ?? ''), name = Buffer.from(e.name);
    const packed = e.packed ?? (e.stored ? content : deflateRawSync(content));
    const method = e.method ?? (e.stored ? 0 : 8), crc = e.crc ?? crc32(content), size = e.size ?? content.length;
    const common = [[2, e.flags ?? 0], [2, method], [2, 0x6000], [2, 0x5871], [4, crc], [4, packed.length], [4, size], [2, name.length]];
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), numbers([2, 20], ...common, [2, 0]), name, packed]);
    directory.push(Buffer.concat([
      Buffer.from('PK\x01\x02'),
      numbers([2, 0x0314], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [2, 0], [4, ((e.mode ?? 0o100644) << 16) >>> 0], [4, e.at ?? at]),
      name,
    ]));
    if (!e.shared) {
      bodies.push(local);
      at += local.length;
    }
  }
  const list = Buffer.concat(directory);
  const end = numbers([2, 0], [2, 0], [2, count ?? entries.length], [2, count ?? entries.length], [4, list.length], [4, at], [2, comment.length]);
  return Buffer.concat([...bodies, list, Buffer.from('PK\x05\x06'), end, Buffer.from(comment)]);
}
