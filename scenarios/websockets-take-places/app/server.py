"""A WebSocket server that answers each message with the same, and says nothing by itself."""

import asyncio
from http import HTTPStatus

from websockets.asyncio.server import Request, Response, ServerConnection, serve


def answer(connection: ServerConnection, request: Request) -> Response | None:
    """Answer a page at once; anything else is a WebSocket."""
    return connection.respond(HTTPStatus.OK, "ready\n") if request.path == "/ready" else None


async def echo(connection: ServerConnection) -> None:
    """Send each message back."""
    async for message in connection:
        await connection.send(message)


async def main() -> None:
    """Serve, and send no pings: those would keep a silent session alive."""
    async with serve(echo, "", 3000, process_request=answer, ping_interval=None) as server:
        await server.serve_forever()


asyncio.run(main())
