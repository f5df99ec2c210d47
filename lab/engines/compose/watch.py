"""Watches the engine's events, so that the end of any container of a run is known at once, with its exit code."""

from __future__ import annotations

import json
import threading
from typing import Self

from lab.engines import protocol
from lab.engines.compose.docker import follow
from lab.engines.compose.names import RUN_LABEL, container_name
from lab.errors import LabError


class Watch(protocol.Watch):
    """The containers of a run that have ended so far."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        filters = ("type=container", "event=die", "event=oom", f"label={RUN_LABEL}={run_id}")
        arguments = [part for one in filters for part in ("--filter", one)]
        self._events = follow("events", "--format", "json", *arguments)
        self._reader = threading.Thread(target=self._read, name="docker-events", daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._events.end()
        self._reader.join(timeout=1)

    def _read(self) -> None:
        for line in self._events:
            self.take(line)

    def take(self, line: str) -> None:
        """Take in one event, as the engine writes it."""
        try:
            event = json.loads(line)
            action, attributes = event["Action"], event["Actor"]["Attributes"]
            service = attributes["name"].removeprefix(container_name(""))
            if action == "oom":
                self._out_of_memory.add(service)
            elif action == "die":
                self.end(service, int(attributes["exitCode"]))
        except (ValueError, KeyError, TypeError):
            return  # not an event that we asked for

    @property
    def is_told(self) -> bool:
        """Whether the engine goes on telling; if not, nobody would see a container end."""
        return self._events.goes_on or self._reader.is_alive()

    def check(self) -> None:
        """Raise LabError if the engine has stopped telling its events."""
        if not self.is_told:
            raise LabError("the Docker Engine stopped telling its events", way_on="see whether it was restarted")
