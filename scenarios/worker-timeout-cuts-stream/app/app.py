"""An export that comes line by line, for six seconds; any other page is answered at once."""

import time
from collections.abc import Callable, Iterable, Iterator

LINES = 12
PAUSE_S = 0.5


def app(environ: dict[str, str], start_response: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    """Answer with the export, or with one line."""
    if environ["PATH_INFO"] != "/export":
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
        return [b"ok\n"]
    start_response("200 OK", [("Content-Type", "text/csv")])
    return lines()


def lines() -> Iterator[bytes]:
    """Yield a line at once, one after each pause, and a last one that says that it was the last."""
    for number in range(LINES):
        yield b"%d,some,data\n" % number
        time.sleep(PAUSE_S)
    yield b"end\n"
