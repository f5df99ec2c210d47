"""What a service of the scenario's own adds to the pattern of a role's container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lab import paths
from lab.engines.compose import confined
from lab.engines.owners import ROLE_UID
from lab.scenarios.places import Place
from lab.scenarios.services import Service, split_volume, spoken

_TMP = "/tmp:mode=1777"  # noqa: S108 # as compose.yaml has it for every role
_HEALTH = {"interval": "1h", "timeout": "5s", "retries": 1, "start_interval": "250ms"}


def image_of(service: Service, name: str, place: Place) -> str:
    """Give the image's name: the scenario's, or that under which its folder is built."""
    return service.image or f"connlab-own/{place.slug}-{name}"


def service_fields(
    name: str, own: Mapping[str, Service], place: Place, instances: Mapping[str, list[str]]
) -> dict[str, Any]:
    """Give what stands over the pattern: the image, and each loosening that the scenario asks for.

    Args:
        name: the service's.
        own: all services of the scenario.
        place: where that lies.
        instances: of the roles on the path.
    """
    service = own[name]
    user = {} if service.user == "image" else {"user": service.user or f"{ROLE_UID}:{ROLE_UID}"}
    command = service.ready if isinstance(service.ready, list) else None
    return {
        "image": image_of(service, name, place),
        **user,
        **({"command": list(service.command)} if service.command is not None else {}),
        **({"cap_add": list(service.capabilities)} if service.capabilities else {}),
        "tmpfs": [_TMP, *(f"{folder}:mode=1777" for folder in service.writable)],
        "volumes": [_volume(one, place) for one in service.volumes],
        **(
            {"healthcheck": {"test": ["CMD", *command], **_HEALTH, "start_period": f"{service.ready_within}ms"}}
            if command
            else {}
        ),
        **({"depends_on": waits} if (waits := dict(_waits(service, own, instances))) else {}),
    }


def _waits(
    service: Service, own: Mapping[str, Service], instances: Mapping[str, list[str]]
) -> Iterator[tuple[str, dict[str, str]]]:
    for needed in service.needs:
        condition = "service_healthy" if isinstance(own[needed].ready, list) else "service_started"
        for one in instances.get(needed, [needed]):
            yield one, {"condition": condition}


def service_environment(service: Service) -> dict[str, str]:
    """Give the environment that the scenario writes."""
    return {name: spoken(value) for name, value in service.environment.items()}


def _volume(text: str, place: Place) -> dict[str, Any]:
    source, target, _ = split_volume(text)
    return confined.bind_mount(paths.real(place.home / source), target, read_only=True)
