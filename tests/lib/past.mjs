// A database with a long past, made in a second: copies of a sandbox and an execution that have ended.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const COPY = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=20)
table, model, first, count, fixed = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), dict(p.split('=', 1) for p in sys.argv[6:])
columns = [c[1] for c in db.execute(f'PRAGMA table_info({table})')]
made = {'id': "printf('p%019d', n)", 'name': "''", 'created_ms': 'created_ms + n', 'started_ms': 'started_ms + n', **fixed}
values = ', '.join(made.get(c, c) for c in columns)
db.execute(f'WITH RECURSIVE c(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM c WHERE n < {first + count - 1}) '
           f'INSERT INTO {table} ({", ".join(columns)}) SELECT {values} FROM c, {table} WHERE {table}.id = ?', (model,))
db.commit()
db.close()
`;

/**
 * Copies one row of "sandboxes" or "executions" `count` times, as p0000… from `first` on. `fixed` has SQL for columns that
 * differ, in which n is the number. The server may run.
 */
export function copyRow(data, table, model, count, { first = 0, ...fixed } = {}) {
  const pairs = Object.entries(fixed).map(([column, sql]) => `${column}=${sql}`);
  execFileSync('python3', ['-c', COPY, join(data, 'front/bunker.db'), table, model, String(first), String(count), ...pairs]);
}
