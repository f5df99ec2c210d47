"""Removes what the lab made in the Docker Engine, and nothing else: what bears its labels, and two names of its own."""

from __future__ import annotations

from itertools import chain

from lab.engines.compose import docker_sidecar
from lab.engines.compose.docker import DockerFailed, docker
from lab.engines.compose.names import PROJECT
from lab.engines.protocol import Cleaned

_COMPOSE_LABEL = f"com.docker.compose.project={PROJECT}"
_CHECK_LABEL = "connlab.check"
_RUN_LABELS = (_COMPOSE_LABEL, "connlab.run", docker_sidecar.LABEL, _CHECK_LABEL)
# Set by the builds; an image that a newer build replaced has lost its name and keeps these.
_IMAGE_LABELS = ("connlab.source", "connlab.base", _CHECK_LABEL)
# What Docker makes without a label: the checks' cache (setup/check.sh), and the base as it was pulled or imported.
_CACHE = f"{PROJECT}-cache"
_TRIXIE_SLIM = f"{PROJECT}/trixie-slim"


def clean() -> Cleaned:
    """Remove the lab's containers, networks, volumes and images; results/ and the builder's cache stay."""
    cleaned = Cleaned()
    containers = _listed("ps", "--all", template="{{.Names}}", labels=_RUN_LABELS)
    _remove(cleaned, "containers", ("rm", "--force", "--volumes"), containers)
    networks = _listed("network", "ls", template="{{.Name}}", labels=(_COMPOSE_LABEL,))
    _remove(cleaned, "networks", ("network", "rm"), networks)
    volumes = _listed("volume", "ls", template="{{.Name}}", labels=(_COMPOSE_LABEL, _CHECK_LABEL))
    cache = [name for name in docker("volume", "ls", "--format", "{{.Name}}").split() if name == _CACHE]
    _remove(cleaned, "volumes", ("volume", "rm"), volumes + cache)
    _remove(cleaned, "images", ("rmi", "--no-prune"), _image_names())
    # What lost its name to a newer build goes after what may be built on it.
    nameless = [name for label in _IMAGE_LABELS for name in _nameless_images(label)]
    _remove(cleaned, "images", ("rmi",), list(dict.fromkeys(nameless)))
    return cleaned


def _listed(*command: str, template: str, labels: tuple[str, ...]) -> list[str]:
    found = [docker(*command, "--filter", f"label={label}", "--format", template).split() for label in labels]
    return list(dict.fromkeys(chain.from_iterable(found)))


def _image_names() -> list[str]:
    filters = [*(f"label={label}" for label in _IMAGE_LABELS), f"reference={_TRIXIE_SLIM}"]
    listed = [docker("image", "ls", "--filter", one, "--format", "{{.Repository}}:{{.Tag}}").split() for one in filters]
    names = [name for name in dict.fromkeys(chain.from_iterable(listed)) if "<none>" not in name]
    # The roles' images first: an image goes after those that were made from it.
    return sorted(names, key=lambda name: "base" in name or "slim" in name)


def _nameless_images(label: str) -> list[str]:
    return docker(
        "image", "ls", "--filter", "dangling=true", "--filter", f"label={label}", "--format", "{{.ID}}"
    ).split()


def _remove(cleaned: Cleaned, kind: str, command: tuple[str, ...], names: list[str]) -> None:
    for name in names:
        try:
            docker(*command, name, timeout_s=120)
        except DockerFailed as error:
            cleaned.kept.append(f"{name}: {error.reason}")
        else:
            getattr(cleaned, kind).append(name)
