"""http.server as it is: one request at a time, a backlog of 5. Each answer takes a second."""

import http.server
import time


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(1)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_arguments: object) -> None:
        pass


with http.server.HTTPServer(("", 8000), Handler) as server:
    print("listens on 8000", flush=True)  # noqa: T201 # for who waits for it
    server.serve_forever()
