// A server of somebody's own: HTTP and WebSocket on one port, gRPC on another.
const http = require('node:http');
const http2 = require('node:http2');
const { WebSocketServer } = require('ws');

const sockets = new WebSocketServer({ noServer: true });
const web = http.createServer((_request, response) => response.end('hello\n'));
web.on('upgrade', (request, socket, head) => {
  if (request.url === '/full') {
    socket.end('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    return;
  }
  sockets.handleUpgrade(request, socket, head, (session) => session.on('message', (message) => session.send(`${message}`)));
});
web.listen(3000);

// An empty message is five bytes: not compressed, and of length 0.
const calls = http2.createServer();
calls.on('stream', (stream, headers) => {
  const known = headers[':path'] === '/talk.Talk/Greet';
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': known ? '0' : '5' }));
  stream.on('end', () => (known ? stream.end(Buffer.alloc(5)) : stream.end()));
  stream.resume();
});
calls.listen(3001);
