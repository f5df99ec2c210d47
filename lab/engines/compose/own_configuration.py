"""A user's own configuration in its role's image: tested before a run, and mounted into the role's container."""

from __future__ import annotations

from typing import Any

from lab.engines.compose import confined
from lab.engines.owners import ROLE_UID
from lab.errors import ConfigurationRefused
from lab.scenarios.own_configuration import MOUNTED, OwnConfiguration


def examine_configuration(own: OwnConfiguration) -> str | None:
    """Give the configuration as the program read it; None if there is no image of the role.

    Raises:
        ConfigurationRefused: the program does not take it.
        LabError: there is no engine, or none for this user.
    """
    folders = [
        option
        for folder in ("/raw", *own.declared.writable)
        for option in ("--tmpfs", f"{folder}:mode=1777,uid={ROLE_UID}")
    ]
    # A test asks for the addresses of these names, and for nothing that stands there.
    hosts = [option for name in own.hosts for option in ("--add-host", f"{name}:127.0.0.1")]
    mounted = (own.file.parent, MOUNTED)
    return confined.try_folder(
        own.role, "test", mounted, own.settings(), *folders, *hosts, refused=ConfigurationRefused
    )


def configuration_fields(own: OwnConfiguration, volumes: list[dict[str, Any]], tmpfs: list[str]) -> dict[str, Any]:
    """Give what stands over the pattern of the role's container.

    Args:
        own: the configuration.
        volumes: those that the container has.
        tmpfs: the same of folders in memory.
    """
    return {
        "volumes": [*volumes, confined.bind_mount(own.file.parent, MOUNTED, read_only=True)],
        "tmpfs": [*tmpfs, *(f"{folder}:mode=1777,uid={ROLE_UID}" for folder in own.declared.writable)],
    }
