"""Why something is unknown, told once: what an instrument lacks stands as evidence, and elsewhere it is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Lacks:
    """What the instruments of a run lack, as its verdict has it under `problems`."""

    def __init__(self, problems: Iterable[Mapping[str, Any]]) -> None:
        self._instruments = {f"{one['instrument']}: {one['message']}": one["instrument"] for one in problems}

    def short(self, why: str) -> str:
        """Give a reason with the instrument's name in place of its problem's text, each thing once."""
        # The longest first: one problem's text may be the beginning of another's.
        for told in sorted(self._instruments, key=len, reverse=True):
            why = why.replace(told, f"{self._instruments[told]} lacks evidence")
        kept: list[str] = []
        for reason in why.split("; "):
            if not any(before.endswith(reason) for before in kept):
                kept.append(reason)
        return "; ".join(kept)
