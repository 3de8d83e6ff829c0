// The routes that the program serves, by the program: [{ dialect, claim, open, bodyless, streams, method, pattern, scope }].
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { BUNKER } from './server.mjs';

export function listRoutes() {
  const text = execFileSync(join(dirname(BUNKER), 'tests/unit/test_routes'), ['list'], { encoding: 'utf8' });
  return text.trim().split('\n').map((line) => {
    const [dialect, claim, access, limit, body, method, pattern, scope] = line.split(' ');
    return { dialect, claim: Number(claim), open: access === 'open', bodyless: limit === '0', streams: body === 'streams', method: method.toUpperCase(), pattern, scope };
  });
}
