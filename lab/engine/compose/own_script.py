"""A user's own script in k6's image: read before a run, and mounted into its containers."""

from __future__ import annotations

from typing import Any

from lab.engine.compose import confined
from lab.errors import ScriptRefused
from lab.scenario.own_script import MOUNTED, OwnScript


def examine(script: OwnScript) -> str | None:
    """Give what k6 says of a script's options; None if there is no image of k6.

    Raises:
        ScriptRefused: k6 does not take it.
        LabError: there is no engine, or none for this user.
    """
    return confined.tried("k6", "inspect", (script.folder, MOUNTED), script.settings(), refused=ScriptRefused)


def mount(script: OwnScript) -> dict[str, Any]:
    """Give the volume through which k6 reads a script and what lies beside it."""
    return confined.mount(script.folder, MOUNTED, read_only=True)
