"""A page that answers at once, and /slow after ANSWER_SECONDS, for which it does not block the event loop."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any


async def application(
    scope: dict[str, Any], _: Callable[[], Awaitable[Any]], send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Answer as ASGI has it."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/slow":
        await asyncio.sleep(float(os.environ["ANSWER_SECONDS"]))
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"done\n"})
