// A gRPC server by HTTP/2 alone: it answers each call with an empty message after a while, and bounds a connection's streams.
const http2 = require('node:http2');

const answerMs = 200;
const server = http2.createServer({ settings: { maxConcurrentStreams: Number(process.env.STREAMS ?? 100) } });

server.on('stream', (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  // An empty message is five bytes: not compressed, and of length 0.
  stream.on('end', () => setTimeout(() => stream.end(Buffer.alloc(5)), answerMs));
  stream.resume();
});

server.listen(3000);
