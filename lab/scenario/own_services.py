"""Reads a scenario's services before all else: its path and its knobs may name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lab import paths
from lab.errors import BadInput, Problem
from lab.reading.document import Document
from lab.reading.findings import sentence, siblings
from lab.scenario import compose_file, services, world
from lab.scenario.services import Service, Services
from lab.scenario.world import World

KEY = "services"
_SERVICES: TypeAdapter[dict[str, Service]] = TypeAdapter(Services)


def read(content: dict[str, Any], document: Document, home: Path) -> World:
    """Give what a scenario may name; in its content, what it takes from Compose files is put in their place.

    Args:
        content: of scenario.yaml; changed.
        document: the same, with its lines.
        home: its folder, from which the paths in it begin.

    Raises:
        BadInput: a service is wrong; all that was found is listed.
    """
    if KEY not in content:
        return world.OWN
    read_ = _validated(content[KEY], document)
    expanded, problems = compose_file.expand(read_, document, home)
    if not problems:
        problems = [*_problems(expanded, document, home)]
    if problems:
        raise BadInput(problems)
    content[KEY] = {name: one.model_dump(exclude_defaults=True) for name, one in expanded.items()}
    return world.of(expanded)


def _validated(content: Any, document: Document) -> dict[str, Service]:  # noqa: ANN401 # what the file has
    try:
        return _SERVICES.validate_python(content)
    except ValidationError as error:
        raise BadInput([_problem(finding, document) for finding in error.errors()]) from None


def _problem(finding: Any, document: Document) -> Problem:  # noqa: ANN401 # a TypedDict of pydantic's
    # Where a value may be of several types, pydantic names the type, which is not a key of the file.
    location = tuple(
        part for part in finding["loc"] if part != "[key]" and not str(part).startswith(("constrained", "list["))
    )
    what, way_on = sentence(finding, siblings(Service, location[1:]), ".".join(map(str, (KEY, *location))))
    return Problem(what, document.where((KEY, *location)), way_on)


def _problems(own: Mapping[str, Service], document: Document, home: Path) -> Iterator[Problem]:
    for below, what, way_on in services.problems(own):
        yield Problem(what, document.where((KEY, *below)), way_on)
    for name, service in own.items():
        if service.build is not None and not (home / service.build.context).is_dir():
            where = document.where((KEY, name, "build"))
            yield Problem(
                f"there is no folder {service.build.context}",
                where,
                "give the Dockerfile's, from the scenario's folder",
            )
        for index, volume in enumerate(service.volumes):
            source = paths.real(home / volume.split(":")[0])
            where = document.where((KEY, name, "volumes", index))
            if not source.is_relative_to(paths.real(home)):
                way_on = "copy what it needs into the folder"
                yield Problem(f"{volume} leads out of the scenario's folder", where, way_on)
            elif not source.exists():
                yield Problem(f"there is no {volume.split(':')[0]} in the scenario's folder", where)
