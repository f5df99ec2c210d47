// A gRPC server by HTTP/2 alone: it answers each call with an empty message, and ends old connections if it is told to.
const http2 = require('node:http2');

const ageMs = Number(process.env.CONNECTION_AGE_MS ?? 0);
const server = http2.createServer();

server.on('session', (session) => {
  // GOAWAY: no new call on this connection, and the ones under way may end.
  if (ageMs) setTimeout(() => session.close(), ageMs);
});

server.on('stream', (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  // An empty message is five bytes: not compressed, and of length 0.
  stream.on('end', () => stream.end(Buffer.alloc(5)));
  stream.resume();
});

server.listen(3000);
