// Arms the fault points of a server (src/base/fault.h): a file of one 64-bit number per process, mapped by all of them.
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROLES = ['front', 'warden', 'keeper'];
const MANY = 1000000000n;

export class Faults {
  constructor() {
    this.path = join(mkdtempSync(join(process.env.BUNKER_TEST_TMP ?? '/tmp', 'bunker-faults-')), 'countdowns');
    this.fd = openSync(this.path, 'w+');
    this.disarm();
  }

  /** The process dies at its n-th step from now; with n below 0 the thread of its loop spins there. */
  arm(role, n) {
    this.#write(role, BigInt(n));
  }

  disarm() {
    for (const role of ROLES) this.#write(role, 0n);
  }

  /** Whether the one that was armed has died. */
  fired(role) {
    return this.#read(role) === 0n;
  }

  /** How many steps each process takes while action runs. */
  async count(action) {
    for (const role of ROLES) this.#write(role, MANY);
    try {
      await action();
      return Object.fromEntries(ROLES.map((role) => [role, Number(MANY - this.#read(role))]));
    } finally {
      this.disarm();
    }
  }

  close() {
    closeSync(this.fd);
    rmSync(dirname(this.path), { recursive: true, force: true });
  }

  #write(role, value) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    writeSync(this.fd, bytes, 0, 8, ROLES.indexOf(role) * 8);
  }

  #read(role) {
    const bytes = Buffer.alloc(8);
    readSync(this.fd, bytes, 0, 8, ROLES.indexOf(role) * 8);
    return bytes.readBigInt64LE();
  }
}
