"""Holds seven connections on which it sends nothing, and opens each again when the server closes it."""

import socket
import threading
import time


def hold() -> None:
    while True:
        try:
            with socket.create_connection(("web", 8080), timeout=120) as connection:
                while connection.recv(4096):
                    pass
        except OSError:
            pass
        time.sleep(0.5)


for _ in range(7):
    threading.Thread(target=hold).start()
