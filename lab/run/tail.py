"""Follows the raw files while the run writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from formats.safe_open import open_regular

_READ_MAX_BYTES = 4 << 20
# Holds the last lines of samples.jsonl; a tick with all counters has about 10 KB.
_END_BYTES = 256 << 10


class Tail:
    """The lines of a JSON Lines file since the last look; a file that is not there yet has none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def objects(self) -> list[dict[str, Any]]:
        """Give the whole new lines; what is not a JSON object is passed over, for a display must not stop a run."""
        try:
            with open_regular(self._file) as stream:
                stream.seek(self._offset)
                data = stream.read(_READ_MAX_BYTES)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [parsed for parsed in map(_parsed, whole.splitlines()) if isinstance(parsed, dict)]


def last_tick_us(samples: Path) -> int:
    """Give the time of the last whole tick in a samples.jsonl, in microseconds since 1970; 0 where there is none."""
    try:
        with open_regular(samples) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END_BYTES))
            data = stream.read()
    except OSError:
        return 0
    for line in reversed(data[: data.rfind(b"\n") + 1].splitlines()):
        parsed = _parsed(line)
        if isinstance(parsed, dict) and parsed.get("kind") == "tick":
            return int(parsed.get("time_us", 0))
    return 0


def _parsed(line: bytes) -> Any:  # noqa: ANN401 # JSON
    try:
        return json.loads(line)
    except ValueError:
        return None
