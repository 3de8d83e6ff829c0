// A host with an internet: the test moves into a network namespace of its own, in which it starts servers, and another one plays the
// rest of the world (internet.mjs). Namespaces have no names: they end with their processes, whatever happens.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { Server, until } from '../lib/server.mjs';

/** Runs the rest of this file in a new network namespace; does not return outside of it. */
export function enterNamespace(url) {
  if (process.env.BUNKER_TEST_NAMESPACE) return;
  const done = spawnSync('unshare', ['--net', process.execPath, fileURLToPath(url)], { stdio: 'inherit', env: { ...process.env, BUNKER_TEST_NAMESPACE: '1' } });
  process.exit(done.status ?? 1);
}

const run = (...args) => {
  const done = spawnSync(args[0], args.slice(1), { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.stderr}`);
};

export const HOST = '5.5.5.1', HOST6 = '2a00:5:0:1::1', WEB = '5.5.5.10', WEB6 = '2a00:5::10', RESOLVER = '5.5.5.53';

export const NAMES = {
  'web.test': [{ type: 'A', data: WEB }, { type: 'AAAA', data: WEB6 }],
  'other.test': [{ type: 'A', data: '5.5.5.11' }],
  'alias.test': [{ type: 'CNAME', data: 'web.test' }, { type: 'A', data: WEB, name: 'web.test' }],
  'private.test': [{ type: 'A', data: '10.9.0.1' }, { type: 'AAAA', data: 'fd12::1' }],
  'mixed.test': [{ type: 'A', data: '10.9.0.1' }, { type: 'A', data: WEB }, { type: 'A', data: '127.0.0.1' }],
  'sneaky.test': [{ type: 'CNAME', data: 'private.test' }, { type: 'A', data: '10.9.0.1', name: 'private.test' }],
  'metadata.google.internal': [{ type: 'A', data: '169.254.169.254' }],
  'long.test': [{ type: 'TXT', data: 'l'.repeat(3000) }],
  'short.test': [{ type: 'TXT', data: 'short' }],
  'pkg.test': [{ type: 'A', data: '5.5.5.11' }],
  'wild.test': [{ type: 'A', data: '5.5.5.11' }],
  'a.wild.test': [{ type: 'A', data: '5.5.5.11' }],
  'b.a.wild.test': [{ type: 'A', data: '5.5.5.11' }],
  'evilwild.test': [{ type: 'A', data: '5.5.5.12' }],
  'a.wild.test.evil.test': [{ type: 'A', data: '5.5.5.12' }],
  'evil.test': [{ type: 'A', data: '5.5.5.12' }],
  'flip.test': [[{ type: 'A', data: WEB, ttl: 0 }], [{ type: 'A', data: '127.0.0.1', ttl: 0 }], [{ type: 'A', data: '10.9.0.1', ttl: 0 }]],
  'registry.npmjs.org': [{ type: 'A', data: '5.5.5.11' }],
  'six.test': [{ type: 'AAAA', data: '2a00:ffff::1' }, { type: 'A', data: WEB }],
};

export class World {
  /** more: names; tls, what HTTPS shows instead of a certificate that nobody signed; mirrors, a directory of files for each host. */
  static async make({ names = {}, ...more } = {}) {
    const w = new World();
    const file = fileURLToPath(new URL('internet.mjs', import.meta.url));
    w.internet = spawn('unshare', ['--net', process.execPath, file], { stdio: ['pipe', 'pipe', 'inherit'] });
    await w.inOwnNamespace();
    run('ip', 'link', 'set', 'lo', 'up');
    run('ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'down0', 'netns', String(w.internet.pid));
    run('ip', 'addr', 'add', `${HOST}/32`, 'dev', 'up0');
    run('ip', 'link', 'set', 'up0', 'up');
    run('ip', 'route', 'add', '5.5.5.2/32', 'dev', 'up0');
    run('ip', 'route', 'add', 'default', 'via', '5.5.5.2');
    run('ip', '-6', 'addr', 'add', `${HOST6}/64`, 'dev', 'up0', 'nodad');
    run('ip', '-6', 'route', 'add', '2a00:5::/64', 'via', '2a00:5:0:1::2', 'dev', 'up0');
    run('ip', '-6', 'route', 'add', '2001:db8::/32', 'via', '2a00:5:0:1::2', 'dev', 'up0');
    run('ip', '-6', 'route', 'add', 'fd00::/8', 'via', '2a00:5:0:1::2', 'dev', 'up0');
    w.names({ ...NAMES, ...names }, 'down0', more);
    await once(w.internet.stdout, 'data');
    return w;
  }

  async inOwnNamespace() {
    const own = readlinkSync('/proc/self/ns/net');
    await until('the internet has a namespace', () => readlinkSync(`/proc/${this.internet.pid}/ns/net`) !== own);
  }

  names(names, name, more = {}) {
    this.internet.stdin.write(`${JSON.stringify({ interface: name, names, ...more })}\n`);
  }

  /** What the resolver was asked since the last time. */
  async asked() {
    return (await fetch(`http://${RESOLVER}:8053/`)).json();
  }

  /** The certificate of the authority that this internet trusts. */
  async authority() {
    return (await fetch(`http://${RESOLVER}:8053/authority`)).text();
  }

  start(options = {}) {
    return Server.start({ ...options, args: ['--resolver', RESOLVER, ...(options.args ?? [])] });
  }

  end() {
    this.internet.stdin.end();
  }
}

/** The processes of this name that belong to this server. */
export function processesOf(server, name) {
  const found = [];
  for (const pid of readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    try {
      if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== name) continue;
      if (name in cgroups ? startedFor(pid, server, cgroups[name]) : readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1] === String(server.wardenPid)) found.push(Number(pid));
    } catch {
      /* it has ended */
    }
  }
  return found;
}

/** What bunker-wire starts is no child of the server's: it is known by its cgroup. */
const cgroups = { 'bunker-egress': 'egress', 'bunker-broker': 'broker-' };

function startedFor(pid, server, cgroup) {
  const instance = readFileSync(`${server.data}/instance`, 'utf8').trim().split(' ')[1];
  return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(`bunker-${instance}/${cgroup}`);
}

/** A Python program in a sandbox; what it prints, as JSON. */
export async function python(server, id, program, ...args) {
  const done = await server.exec(id, ['python3', '-c', program, ...args]);
  if (done.exitCode !== 0) throw new Error(done.stderr);
  return JSON.parse(done.stdout);
}

/** Connects from inside and tells what came of it: "ok", what was read, or the name of the error. */
export const CONNECT = `
import errno, json, socket, sys
def attempt(host, port, send=b'', family=None):
    family = family or (socket.AF_INET6 if ':' in host else socket.AF_INET)
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(10)
    try:
        s.connect((host, port))
        if send: s.sendall(send)
        got = s.recv(65536)
        return got.decode('latin1') if got else 'EOF'
    except socket.timeout:
        return 'TIMEOUT'
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    finally:
        s.close()
`;
