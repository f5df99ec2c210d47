"""A server that lets each connection wait in the accept queue for a time that is known, and says for how long.

It sees by poll when one stands there, before it accepts it. Each seventh connection it resets.
"""

import json
import select
import socket
import struct
import time

LATE_MS = (0, 4, 8, 12, 16)

listener = socket.create_server(("0.0.0.0", 8000), backlog=2)  # noqa: S104 # on a network of the test's own
print("listens", flush=True)  # noqa: T201 # the test reads it
number = 0
while True:
    select.select([listener], [], [])
    seen = time.monotonic()
    time.sleep(LATE_MS[number % len(LATE_MS)] / 1000 if number != 20 else 1.5)
    began = time.monotonic()
    connection, (_, port) = listener.accept()
    told = {"port": port, "least_us": round(1e6 * (began - seen))}
    print(json.dumps(told), flush=True)  # noqa: T201 # as above
    connection.recv(1000)
    connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
    if number % 7 == 6:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    number += 1
