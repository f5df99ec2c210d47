// Takes uploads up to a limit. A larger one gets 413: at once, or when all of it has come.
const limit = 1024 * Number(process.env.LIMIT_KB);
const readOn = process.env.READ_ON === "true";

require("http")
  .createServer((request, answer) => {
    const refuse = () => answer.writeHead(413, { Connection: "close" }).end("too large\n");
    const tooLarge = Number(request.headers["content-length"] || 0) > limit;
    if (tooLarge && !readOn) {
      refuse(); // Node.js closes the connection behind this answer, whatever is still on its way
      return;
    }
    request.resume().on("end", tooLarge ? refuse : () => answer.end("stored\n"));
  })
  .listen(8080);
