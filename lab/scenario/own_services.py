"""Reads a scenario's services before all else: its path and its knobs may name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lab import paths
from lab.errors import BadInput, Problem
from lab.reading.document import Document
from lab.reading.findings import sentence, siblings
from lab.scenario import compose_file, services, world
from lab.scenario.services import Build, Service, Services, split_volume
from lab.scenario.world import World

KEY = "services"
_WAY_ON = "copy what it needs into the folder, or name a Compose file that builds it (compose: …)"
_STAGE = re.compile(r"(?im)^\s*FROM\s[^\n]*\sAS\s+(\S+)")
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
        problems = [*_problems(expanded, document), *_of_files(read_, expanded, document, home)]
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


def _problems(own: Mapping[str, Service], document: Document) -> Iterator[Problem]:
    for below, what, way_on in services.problems(own):
        yield Problem(what, document.where((KEY, *below)), way_on)
    for name, service in own.items():
        try:
            services.roles({name: service} if services.may_stand_on_path(name) else {})
        except ValidationError as error:
            # What no role can be declared with, such as a choice of one value.
            for finding in error.errors():
                what, way_on = sentence(finding, [], ".".join(map(str, (KEY, name, *finding["loc"]))))
                yield Problem(what, document.where((KEY, name, *finding["loc"])), way_on)


def _of_files(
    read_: Mapping[str, Service], expanded: Mapping[str, Service], document: Document, home: Path
) -> Iterator[Problem]:
    """Give what is wrong with the files that services name; a Compose file's own builds have been looked at."""
    for name, service in read_.items():
        if build := service.build:
            where = document.where((KEY, name, "build"))
            folder = paths.inside(home, build.context)
            if folder is None or not paths.inside(home, build.context, build.dockerfile or "."):
                yield Problem(f"the build of {name} leads out of the scenario's folder", where, _WAY_ON)
            elif not folder.is_dir():
                way_on = "give the Dockerfile's, from the scenario's folder"
                yield Problem(f"there is no folder {build.context}", where, way_on)
    for name, service in expanded.items():
        if service.build and (what := _no_dockerfile(service.build, home)):
            yield Problem(what, document.where((KEY, name, "build")), "the engine builds the image before a run")
        for index, volume in enumerate(service.volumes):
            where = document.where((KEY, name, "volumes", index))
            source, *_ = split_volume(volume)
            file = paths.inside(home, source)
            if file is None:
                way_on = "copy what it needs into the folder"
                yield Problem(f"{volume} leads out of the scenario's folder", where, way_on)
            elif not file.exists():
                yield Problem(f"there is no {source} in the scenario's folder", where)


def _no_dockerfile(build: Build, home: Path) -> str | None:
    """Say what a build lacks, its Dockerfile or the stage in it; None if neither."""
    folder = paths.real(home / build.context)
    files = [build.dockerfile] if build.dockerfile else ["Dockerfile", "dockerfile"]
    file = next((folder / name for name in files if (folder / name).is_file()), None)
    if file is None:
        return f"there is no {files[0]} in {build.context}" if folder.is_dir() else None
    stages = [stage.lower() for stage in _STAGE.findall(file.read_text(errors="replace"))]
    if build.target is None or build.target.isdecimal() or build.target.lower() in stages:
        return None
    return f"the Dockerfile has no stage '{build.target}'"
