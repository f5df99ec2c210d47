"""The commands that the lab suggests, as they work in the folder in which the user stands.

`make` has its targets in the lab's own folder alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysis import suggested
from lab import paths


def make(target: str, variables: Mapping[str, str], sets: Mapping[str, str] | None = None) -> str:
    """Return a command as `analysis.suggested.make` does; a folder in it is named by `folder`."""
    return here(suggested.make(target, variables, sets))


def here(command: str) -> str:
    """Return a command that works in the lab's own folder as one that works where the user stands."""
    if _is_at_home():
        return command
    program, rest = command.split(" ", 1)
    if program == "make":
        return f"make -C {suggested.quoted(str(paths.ROOT))} {rest}"
    return f"{suggested.quoted(str(paths.ROOT / program))} {rest}"


def folder(path: Path) -> str:
    """Return a folder as such a command takes it: from the lab's own folder, or from the root."""
    return str(path.relative_to(paths.ROOT)) if path.is_relative_to(paths.ROOT) else str(path)


def typed(name: str) -> str:
    """Return a path that the user gave as such a command takes it."""
    return name if _is_at_home() else str(Path.cwd() / name)


def _is_at_home() -> bool:
    try:
        return Path.cwd() == paths.ROOT
    except FileNotFoundError:  # the folder was removed
        return False
