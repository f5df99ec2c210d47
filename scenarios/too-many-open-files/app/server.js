// Answers after 20 ms, and keeps connections for longer than a user pauses.
const server = require("http").createServer((_, answer) => setTimeout(() => answer.end("done\n"), 20));
server.keepAliveTimeout = 60000;
server.listen(8080);
