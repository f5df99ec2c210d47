"""How the lab confines what it runs and mounts beside compose.yaml, which says the same for the roles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from lab.engines import bounds, owners
from lab.engines.compose.docker import DockerFailed, NoEngine, docker
from lab.errors import LabError


def run_options(*capabilities: str) -> list[str]:
    """Give the options of `docker run` for one of the lab's images, with these capabilities and no others."""
    added = [part for one in capabilities for part in ("--cap-add", one)]
    groups = [part for group in owners.supplementary_groups() for part in ("--group-add", group)]
    files = ["--read-only", "--tmpfs", "/tmp:mode=1777"]  # noqa: S108 # in the container
    kept = ["--cap-drop", "ALL", *added, "--security-opt", "no-new-privileges:true", *groups]
    limits = bounds.limits_for_one_off()
    bounded = ["--memory", f"{limits.memory_mb}m", "--pids-limit", str(limits.processes)]
    return ["--pull", "never", *files, *bounded, *kept]


def compose_limits(limits: bounds.ContainerLimits) -> dict[str, Any]:
    """Give the limits of a service, as Compose writes them."""
    return {"mem_limit": f"{limits.memory_mb}m", "pids_limit": limits.processes}


def bind_mount(source: Path, target: str | Path, *, read_only: bool) -> dict[str, Any]:
    """Give a folder or a file of the host as a volume of a service; one that is not there is an error."""
    access = {"read_only": True} if read_only else {}
    return {"type": "bind", "source": str(source), "target": str(target), **access, "bind": {"create_host_path": False}}


def mount_option(source: Path, target: str | Path) -> str:
    """Give a folder or a file of the host, read only, as `docker run --mount` takes it: a line of CSV."""
    fields = ("type=bind", f"source={source}", f"target={target}", "readonly")
    return ",".join(f'"{one.replace(chr(34), chr(34) * 2)}"' if re.search('[,"]', one) else one for one in fields)


def try_folder(
    role: str,
    command: str,
    mounted: tuple[Path, str | Path],
    settings: Mapping[str, str],
    *more: str,
    refused: type[LabError],
) -> str | None:
    """Give what a role's image says of a folder that it reads, without a network.

    Returns:
        What it says; None if there is no such image, or one of another version of the lab that cannot do it.

    Raises:
        LabError: `refused`, with the program's message; or there is no engine, or none for this user.
    """
    folder = ("--mount", mount_option(*mounted))
    environment = [option for name, value in settings.items() for option in ("--env", f"{name}={value}")]
    given = (*run_options(), *more, *folder, *environment)
    try:
        return docker("run", "--rm", "--network", "none", *given, f"connlab/{role}", command)
    except NoEngine:
        raise
    except DockerFailed as failed:
        if "No such image" in failed.stderr or not _is_of_this_lab(f"connlab/{role}"):
            return None
        raise refused(failed.stderr) from None


def _is_of_this_lab(image: str) -> bool:
    """Tell whether the set-up would keep an image; it builds one of another version anew."""
    label = '{{index .Config.Labels "org.opencontainers.image.version"}}'
    return docker("image", "inspect", "--format", label, image).strip() in ("", metadata.version("connlab"))
