// Members of archives, as hostile as one likes: what a well-behaved tar would refuse to write.
export function tarMember({ path, type = '0', content = '', target = '', mode = 0o644, uid = 0, gid = 0, size, prefix = '' }) {
  const header = Buffer.alloc(512);
  const put = (at, length, value) => Buffer.from(value).copy(header, at, 0, Math.min(length, Buffer.byteLength(value)));
  const octal = (at, length, value) => put(at, length, value.toString(8).padStart(length - 1, '0'));
  const bytes = Buffer.from(content);
  put(0, 100, path);
  octal(100, 8, mode);
  octal(108, 8, uid);
  octal(116, 8, gid);
  octal(124, 12, size ?? bytes.length);
  octal(136, 12, 1_000_000_000);
  put(156, 1, type);
  put(157, 100, target);
  put(257, 8, 'ustar\x0000');
  put(345, 155, prefix);
  header.fill(' ', 148, 156);
  const sum = header.reduce((a, b) => a + b, 0);
  put(148, 8, `${sum.toString(8).padStart(6, '0')}\0 `);
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
}

/** A pax header that overrides fields of the member behind it. */
export function paxHeader(fields) {
  const records = Object.entries(fields).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    let length = rest.length + 1;
    while (`${length}${rest}`.length !== length) length = `${length}${rest}`.length;
    return `${length}${rest}`;
  });
  return tarMember({ path: 'PaxHeader', type: 'x', content: records.join('') });
}
