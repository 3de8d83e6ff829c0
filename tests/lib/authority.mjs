// A certificate authority of a test's own, and what it signs; all of it in a directory that goes with the test.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';

export class Authority {
  constructor(name = 'Test CA') {
    this.dir = mkdtempSync(join(tmpdir(), 'bunker-ca-'));
    this.file = join(this.dir, 'ca.pem');
    this.keyFile = join(this.dir, 'ca.key');
    this.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', `/CN=${name}`, '-days', '2', '-keyout', this.keyFile, '-out', this.file, '-addext', 'basicConstraints=critical,CA:TRUE');
    this.pem = readFileSync(this.file, 'utf8');
  }

  openssl(...args) {
    const done = spawnSync('openssl', args, { encoding: 'utf8' });
    if (done.status !== 0) throw new Error(`openssl ${args[0]}: ${done.stderr}`);
    return done.stdout;
  }

  /** A certificate for these names, and its key. */
  sign(...names) {
    const at = (name) => join(this.dir, name);
    writeFileSync(at('ext'), `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}\nextendedKeyUsage=serverAuth\n`);
    this.openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', `/CN=${names[0]}`, '-keyout', at('leaf.key'), '-out', at('leaf.csr'));
    this.openssl('x509', '-req', '-in', at('leaf.csr'), '-CA', this.file, '-CAkey', this.keyFile, '-days', '1', '-extfile', at('ext'), '-out', at('leaf.pem'));
    return { key: readFileSync(at('leaf.key'), 'utf8'), cert: readFileSync(at('leaf.pem'), 'utf8') };
  }

  get hash() {
    return this.openssl('x509', '-noout', '-subject_hash', '-in', this.file).trim();
  }

  end() {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
