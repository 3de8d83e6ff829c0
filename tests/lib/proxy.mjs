// A reverse proxy that is not careful about Host: the server behind it sees a name of its own.
import http from 'node:http';

/** options: prefix (taken off), headers (added, of the request), from (the local address that it connects from). */
export async function startProxy(server, { prefix = '', headers = () => ({}), from = '127.0.0.1' } = {}) {
  const front = http.createServer((req, res) => {
    if (!req.url.startsWith(prefix)) return res.writeHead(404).end();
    const all = { ...req.headers, ...headers(req), host: 'inside.invalid:1' };
    const back = http.request({ port: server.port, host: '127.0.0.1', localAddress: from, method: req.method, path: req.url.slice(prefix.length) || '/', headers: all }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    back.on('error', () => res.destroy());
    res.on('close', () => back.destroy());
    req.pipe(back);
  });
  await new Promise((resolve) => front.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${front.address().port}`;
  return { host, url: `http://${host}${prefix}`, close: () => (front.closeAllConnections(), front.close()) };
}
