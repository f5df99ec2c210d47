"""An application that takes half a second for each request."""

import time
from collections.abc import Callable, Iterable


def app(_environ: object, start_response: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    """Answer after half a second."""
    time.sleep(0.5)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\n"]
