// One server for a file of tests, and the SDK pointed at it as docs/agentuity.md tells users to.
import { after } from 'node:test';
import { Server } from '../../lib/server.mjs';

export { Server, sleep, until } from '../../lib/server.mjs';

/** The variables that a user of the SDK sets: what `bunker env agentuity` prints. */
export function environment(server) {
  return {
    AGENTUITY_SANDBOX_URL: `${server.url}/agentuity`,
    AGENTUITY_STREAM_URL: `${server.url}/agentuity/input`,
    AGENTUITY_SDK_KEY: server.key,
  };
}

/** A server for the tests of this file, and the SDK pointed at it; it is taken down behind them. */
export async function startServer(options = {}) {
  const server = await Server.start(options);
  Object.assign(process.env, environment(server));
  after(() => server.destroy());
  return server;
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

/** What a stream of bytes has, as text. */
export const text = (stream) => new Response(stream).text();
/** What is behind an address that needs no key. */
export const fetchText = async (url) => {
  const answer = await fetch(url);
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer.text();
};
