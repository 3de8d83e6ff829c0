// Certificates for tests, each of its own authority.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Writes DIR/NAME.pem and DIR/NAME.key, for localhost; the common name is NAME. */
export function makeCertificate(dir, name, { names = 'DNS:localhost,DNS:*.localhost,IP:127.0.0.1', key = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] } = {}) {
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', ...key, '-nodes', '-days', '2'],
    ...['-keyout', join(dir, `${name}.key`), '-out', join(dir, `${name}.pem`)],
    ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`],
  ]);
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`);
}
