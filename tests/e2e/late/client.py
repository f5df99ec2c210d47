"""One connection after the other, then more than the queue has places for, then one to a closed port."""

import contextlib
import json
import socket
import sys
import threading
import time


def ask(port: int = 8000) -> None:
    began = time.monotonic()
    with contextlib.suppress(OSError), socket.create_connection((sys.argv[1], port), timeout=10) as connection:
        own = connection.getsockname()[1]
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        connection.recv(1000)
        told = {"port": own, "most_us": round(1e6 * (time.monotonic() - began))}
        print(json.dumps(told), flush=True)  # noqa: T201 # the test reads it


for _ in range(20):
    ask()
threads = [threading.Thread(target=ask) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
ask(81)
