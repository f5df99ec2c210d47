"""A server of Python's own http.server, which knows nothing of the lab: one request at a time, a backlog of 5."""

import http.server
import os
import ssl
import time


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every page at once, and /slow after ANSWER_SECONDS."""

    def do_GET(self) -> None:  # http.server's own name
        """Answer."""
        if self.path.startswith("/slow"):
            time.sleep(float(os.environ.get("ANSWER_SECONDS", "1")))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello\n")


server = http.server.HTTPServer(("", int(os.environ.get("PORT", "5000"))), Handler)
if os.environ.get("TLS") == "true":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/app/certificate.pem", "/app/key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
