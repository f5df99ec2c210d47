"""A page that answers at once, and /slow after ANSWER_SECONDS."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Answer as WSGI has it."""
    if environ["PATH_INFO"] == "/slow":
        time.sleep(float(os.environ["ANSWER_SECONDS"]))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"done\n"]
