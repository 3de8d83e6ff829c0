// The routes that the program serves, by the program: [{ dialect, claim, method, pattern }].
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { BUNKER } from './server.mjs';

export function listRoutes() {
  const text = execFileSync(join(dirname(BUNKER), 'tests/unit/test_routes'), ['list'], { encoding: 'utf8' });
  return text.trim().split('\n').map((line) => {
    const [dialect, claim, method, pattern] = line.split(' ');
    return { dialect, claim: Number(claim), method: method.toUpperCase(), pattern };
  });
}
