// A server that passes the first request of each kind on to another and answers every later one with what it heard: what is
// left is the price of the client. `fork` it with the other server's URL; it sends its port, and ends when its parent lets go.
import http from 'node:http';

const [upstream] = process.argv.slice(2);
const heard = new Map();

async function collect(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

function pass(req, body) {
  return new Promise((resolve, reject) => {
    const out = http.request(upstream + req.url, { method: req.method, headers: req.headers }, async (res) =>
      resolve({ status: res.statusCode, headers: res.headers, body: await collect(res) }));
    out.on('error', reject);
    out.end(body);
  });
}

const server = http.createServer(async (req, res) => {
  const body = await collect(req);
  const kind = req.method === 'DELETE' ? req.method : `${req.method} ${req.url}`;
  if (!heard.has(kind)) heard.set(kind, await pass(req, body));
  const answer = heard.get(kind);
  res.writeHead(answer.status, answer.headers);
  res.end(answer.body);
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.on('disconnect', () => process.exit());
