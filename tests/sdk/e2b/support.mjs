// One server for a file of tests, and the SDK pointed at it as docs/e2b.md tells users to.
import { after } from 'node:test';
import { Server } from '../../lib/server.mjs';

export { Server, sleep, until } from '../../lib/server.mjs';

/** The four variables that a user sets. */
export function environment(server) {
  return {
    E2B_API_URL: server.url,
    E2B_SANDBOX_URL: server.url,
    E2B_VOLUME_API_URL: server.url,
    E2B_API_KEY: `e2b_${server.key.replace(/^bnk_/, '')}`,
  };
}

/** A server for the tests of this file, and the SDK pointed at it; it is taken down behind them. */
export async function startServer(options = {}) {
  const server = await Server.start(options);
  Object.assign(process.env, environment(server));
  after(() => server.destroy());
  return server;
}

/** Options for another tenant's key, or another server. */
export function optionsFor(server, key = server.key) {
  return { apiUrl: server.url, sandboxUrl: server.url, apiKey: `e2b_${key.replace(/^bnk_/, '')}` };
}

/** The error that a promise ends with. */
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}
