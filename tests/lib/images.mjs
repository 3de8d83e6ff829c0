// Archives made by hand: tar with whatever headers a test wants, images as OCI and `docker save` lay them out, a tiny root.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const digest = (bytes) => `sha256:${sha256(bytes)}`;

const TYPES = { file: '0', link: '1', symlink: '2', char: '3', block: '4', dir: '5', fifo: '6' };

function octal(value, size) {
  return Buffer.from(value.toString(8).padStart(size - 1, '0') + '\0', 'latin1');
}

/** One header block. `size` may lie about the content's. */
export function tarHeader({ name, type = 'file', mode, uid = 0, gid = 0, size = 0, linkname = '', mtime = 1700000000, major = 1, minor = 3 }) {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  octal(mode ?? (type === 'dir' ? 0o755 : 0o644), 8).copy(block, 100);
  octal(uid, 8).copy(block, 108);
  octal(gid, 8).copy(block, 116);
  octal(size, 12).copy(block, 124);
  octal(mtime, 12).copy(block, 136);
  block.write('        ', 148);
  block.write(TYPES[type] ?? type, 156);
  block.write(linkname, 157, 100);
  block.write('ustar\0' + '00', 257);
  octal(major, 8).copy(block, 329);
  octal(minor, 8).copy(block, 337);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(sum.toString(8).padStart(6, '0') + '\0 ', 148);
  return block;
}

/** entries: { name, type, mode, uid, gid, content, linkname, size }; the end is left out with { end: false }. */
export function tar(entries, { end = true } = {}) {
  const parts = [];
  for (const entry of entries) {
    const content = Buffer.from(entry.content ?? '');
    parts.push(tarHeader({ ...entry, size: entry.size ?? content.length }), content);
    if (content.length % 512) parts.push(Buffer.alloc(512 - (content.length % 512)));
  }
  if (end) parts.push(Buffer.alloc(1024));
  return Buffer.concat(parts);
}

export const dir = (name, more = {}) => ({ name, type: 'dir', ...more });
export const file = (name, content, more = {}) => ({ name, content, ...more });
export const symlink = (name, linkname) => ({ name, type: 'symlink', linkname });

const APPLETS =
  'sh ls cat echo id env true false mkdir rm cp mv chmod chown sleep grep touch ln wc tee find stat test pwd dd head readlink wget nc printf kill ps'.split(' ');

/** A root of two megabytes: busybox, and who root is. */
export function tinyRoot() {
  return [
    dir('bin'),
    file('bin/busybox', readFileSync('/bin/busybox'), { mode: 0o755 }),
    ...APPLETS.map((name) => symlink(`bin/${name}`, 'busybox')),
    dir('etc'),
    file('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\n'),
    file('etc/group', 'root:x:0:\n'),
    dir('usr'),
  ];
}

const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch] ?? process.arch;

export function imageConfig(layers, config = {}) {
  return Buffer.from(
    JSON.stringify({ architecture, os: 'linux', config, rootfs: { type: 'layers', diff_ids: layers.map((layer) => digest(layer)) } }),
  );
}

/**
 * An OCI layout as entries of a tar. layers: tar archives. `change` may alter the parts before they are put together:
 * { blobs: Map of digest → bytes, manifest, index, config }.
 */
export function ociLayout(layers, { config = {}, gzip = true, name = 'latest', change } = {}) {
  const packed = layers.map((layer) => (gzip ? gzipSync(layer) : layer));
  const configBytes = imageConfig(layers, config);
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: digest(configBytes), size: configBytes.length },
    layers: packed.map((blob) => ({
      mediaType: `application/vnd.oci.image.layer.v1.tar${gzip ? '+gzip' : ''}`,
      digest: digest(blob),
      size: blob.length,
    })),
  };
  const manifestBytes = Buffer.from(JSON.stringify(manifest));
  const parts = {
    blobs: new Map([configBytes, manifestBytes, ...packed].map((blob) => [sha256(blob), blob])),
    index: {
      schemaVersion: 2,
      manifests: [
        {
          mediaType: manifest.mediaType,
          digest: digest(manifestBytes),
          size: manifestBytes.length,
          annotations: { 'org.opencontainers.image.ref.name': name },
        },
      ],
    },
    manifest,
    digest: digest(manifestBytes),
  };
  change?.(parts);
  const entries = [
    file('oci-layout', '{"imageLayoutVersion":"1.0.0"}'),
    file('index.json', JSON.stringify(parts.index)),
    dir('blobs'),
    dir('blobs/sha256'),
    ...[...parts.blobs].map(([hex, blob]) => file(`blobs/sha256/${hex}`, blob)),
  ];
  return { entries, digest: parts.digest };
}

/** What `docker save` writes, as entries of a tar; layers are plain tars. */
export function dockerSave(images) {
  const entries = [];
  const manifest = [];
  for (const { layers, config = {}, tags } of images) {
    const configBytes = imageConfig(layers, config);
    const paths = layers.map((layer) => `${sha256(layer)}/layer.tar`);
    layers.forEach((layer, i) => entries.push(dir(sha256(layer)), file(paths[i], layer)));
    entries.push(file(`${sha256(configBytes)}.json`, configBytes));
    manifest.push({ Config: `${sha256(configBytes)}.json`, RepoTags: tags, Layers: paths });
  }
  entries.push(file('manifest.json', JSON.stringify(manifest)));
  return entries;
}
