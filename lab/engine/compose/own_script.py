"""A user's own script in k6's image: read before a run, and mounted into its containers."""

from __future__ import annotations

from typing import Any

from lab.engine.compose import confined
from lab.engine.compose.docker import DockerFailed, NoEngine, docker
from lab.errors import ScriptRefused
from lab.scenario.own_script import MOUNTED, OwnScript

_IMAGE = "connlab/k6"
_NO_IMAGE = "No such image"


def examine(script: OwnScript) -> str | None:
    """Give what k6 says of a script's options; None if there is no image of k6.

    Raises:
        ScriptRefused: k6 does not take it.
        LabError: there is no engine, or none for this user.
    """
    mounted = ("--mount", f"type=bind,source={script.folder},target={MOUNTED},readonly")
    environment = [option for name, value in script.settings().items() for option in ("--env", f"{name}={value}")]
    try:
        return docker(
            "run", "--rm", "--network", "none", *confined.options(), *mounted, *environment, _IMAGE, "inspect"
        )
    except NoEngine:
        raise
    except DockerFailed as failed:
        if _NO_IMAGE in failed.stderr:
            return None
        raise ScriptRefused(failed.stderr) from None


def mount(script: OwnScript) -> dict[str, Any]:
    """Give the volume through which k6 reads a script and what lies beside it."""
    return confined.mount(script.folder, MOUNTED, read_only=True)
