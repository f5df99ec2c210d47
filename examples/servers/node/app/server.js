// A page that answers at once, and /slow after ANSWER_SECONDS, for which it does not block the event loop.
const { createServer } = require('node:http');

const server = createServer(({ url }, response) => {
  const seconds = url.startsWith('/slow') ? Number(process.env.ANSWER_SECONDS) : 0;
  setTimeout(() => response.end('done\n'), seconds * 1000);
});
server.listen({ host: '0.0.0.0', port: 8080, backlog: Number(process.env.BACKLOG) });
