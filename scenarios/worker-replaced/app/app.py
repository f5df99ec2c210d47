"""An application that takes 20 ms for each request."""

import time
from collections.abc import Callable, Iterable


def app(_environ: object, start_response: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    """Answer after 20 ms."""
    time.sleep(0.02)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\n"]
