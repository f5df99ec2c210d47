"""Which engine the lab's commands use."""

from __future__ import annotations

from lab.engine.compose.engine import Compose
from lab.engine.protocol import Engine


def chosen() -> Engine:
    """Give the engine: Docker Compose is the only one so far."""
    return Compose()
