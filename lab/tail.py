"""Follows the raw files while the run writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_READ_MAX_BYTES = 4 << 20


class Tail:
    """The lines of a JSON Lines file since the last look; a file that is not there yet has none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def objects(self) -> list[dict[str, Any]]:
        """Give the whole new lines; what is no JSON object is passed over, for a display must not stop a run."""
        try:
            with self._file.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read(_READ_MAX_BYTES)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [parsed for parsed in map(_parsed, whole.splitlines()) if isinstance(parsed, dict)]


def _parsed(line: bytes) -> Any:  # noqa: ANN401 # JSON
    try:
        return json.loads(line)
    except ValueError:
        return None
