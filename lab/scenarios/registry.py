"""What a scenario may name: the lab's roles and their knobs, and those of the services that it brings itself."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails

from formats.role import Role
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading.document import Document, Location
from lab.reading.validation_messages import describe_error, name_place, refuse_findings, siblings
from lab.roles.declared_roles import ROLES
from lab.scenarios import generators, services
from lab.scenarios.compose_path import Composed
from lab.scenarios.knobs import CATALOGUE, KnownKnob, build_catalogue, knobs_with
from lab.scenarios.model import OwnLoad, Scenario
from lab.scenarios.network import Link
from lab.scenarios.services import Build, Service, Services, may_stand_on_path, split_volume

_SERVICES: TypeAdapter[dict[str, Service]] = TypeAdapter(Services)
_KEPT = 64


@dataclass(frozen=True)
class Registry:
    """What a scenario may name.

    Attributes:
        roles: by name, in the order of a path.
        scenario: the model of its file.
        notices: what is left out of Compose projects, a line each.
    """

    roles: Mapping[str, Role]
    scenario: type[Scenario]
    knobs: Mapping[str, KnownKnob]
    services: Mapping[str, Service]
    notices: tuple[str, ...] = ()


LAB_REGISTRY = Registry(ROLES, Scenario, CATALOGUE, {})


def registry_for(own: Mapping[str, Service], load: OwnLoad | None = None) -> Registry:
    """Return what a scenario with these services, and this load of its own, may name."""
    generator = generators.name_of(load)
    if load is not None and generator is not None:
        own = {**own, generator: generators.service_of(load)}
    # Cells of a series have the same ones, and models are slow to make.
    made = load.model_dump_json() if load is not None and generator is not None else None
    return _of(_SERVICES.dump_json(dict(own), exclude_defaults=True), made) if own else LAB_REGISTRY


@lru_cache(maxsize=_KEPT)
def _of(text: bytes, made: str | None) -> Registry:
    own = _SERVICES.validate_json(text)
    load = None if made is None else OwnLoad.model_validate_json(made)
    generator = generators.name_of(load)
    roles = services.roles({name: one for name, one in own.items() if may_stand_on_path(name) and name != generator})
    if load is not None and generator is not None:
        roles = {generator: generators.role_of(generator, own[generator], load), **roles}
    names: Any = Literal[(*ROLES, *roles)]
    knobs = knobs_with(roles, names)
    scenario = create_model(
        "Scenario",
        __base__=Scenario,
        path=(list[names], Field(min_length=2)),
        knobs=(knobs, knobs()),
        network=(dict[names, dict[names, Link]], Field(default={})),
    )
    known = build_catalogue(knobs, {**ROLES, **roles})
    return Registry({**ROLES, **roles}, scenario, known, own)


KEY = "services"
# What names a service of a cluster on the path: the load goes to the pods behind it, which run already.
_SERVICE = "service"
_HINT = "copy what it needs into the folder, or name a Compose file that builds it (compose: …)"
_STAGE = re.compile(r"(?im)^\s*FROM\s[^\n]*\sAS\s+(\S+)")


def read_registry(content: dict[str, Any], document: Document, home: Path) -> tuple[Registry, Document]:
    """Return what a scenario may name, and the scenario with the lines of what comes from Compose projects.

    In its content, what it takes from them is put in their place.

    Raises:
        BadInput: a service is wrong; all that was found is listed.
        LabError: there is no Docker Compose to read a project.
    """
    spread_content, document = _spread_running(content, document)
    content |= spread_content
    composed = Composed(document, home)
    content |= composed.spread(content)
    document = composed.document
    load = _load_of(content)
    if KEY not in content:
        return registry_for({}, load), document
    try:
        read_ = _SERVICES.validate_python(content[KEY])
    except ValidationError as error:
        raise refuse_findings(error, document, _say, (KEY,)) from None
    expanded = composed.expand(read_)
    if problems := [*_problems(expanded, document), *_of_files(read_, expanded, composed, home)]:
        raise BadInput(problems)
    content[KEY] = {name: one.model_dump(exclude_defaults=True) for name, one in expanded.items()}
    notices = dict.fromkeys([*composed.notices, *_running_notices(expanded)])
    return replace(registry_for(expanded, load), notices=tuple(notices)), document


def _spread_running(content: Mapping[str, Any], document: Document) -> tuple[dict[str, Any], Document]:
    """Return a scenario in which `{service: shop/web}` on the path is a service of its own, with the lines of that.

    Raises:
        BadInput: no name on a path can be made of the service's.
    """
    path, own = content.get("path"), content.get(KEY, {})
    if not isinstance(path, list) or not isinstance(own, Mapping):
        return dict(content), document  # the scenario's model says what is wrong
    steps, declared, lines = list(path), dict(own), dict(document.lines)
    for index, step in enumerate(path):
        if not isinstance(step, Mapping) or not isinstance(named := step.get(_SERVICE), str):
            continue
        name = re.sub(r"[^a-z0-9]", "", named.rpartition("/")[2].lower())
        if not may_stand_on_path(name):
            what = f"'{named}' gives no name for figures and knobs"
            hint = f"write services: {{web: {{cluster_service: {named}}}}}, and web on the path"
            raise BadInput(Problem(what, document.where(("path", index)), hint))
        steps[index] = name
        said = declared.get(name)
        besides = {key: one for key, one in step.items() if key != _SERVICE}
        declared[name] = {"cluster_service": named, **besides, **(said if isinstance(said, Mapping) else {})}
        at = lines.get(("path", index)) or lines.get(("path",), 1)
        keys = {"cluster_service": _SERVICE, **{key: key for key in besides}}
        lines |= {(KEY, name): at}
        lines |= {(KEY, name, key): lines.get(("path", index, of_step), at) for key, of_step in keys.items()}
    if steps == path:
        return dict(content), document
    return {**content, "path": steps, KEY: declared}, replace(document, lines=lines)


def _running_notices(services: Mapping[str, Service]) -> Iterator[str]:
    """Yield what the lab does to the pods behind each service that runs already."""
    for name, service in services.items():
        if service.cluster_service:
            yield (
                f"{name}: the load goes to the pods behind {service.cluster_service}, which stay as they are."
                " A collector joins each as an ephemeral container, whose entry stays in the pod until the pod is gone"
            )


def _load_of(content: Mapping[str, Any]) -> OwnLoad | None:
    """Return the scenario's own load; None where it has none, or none that is valid, which the whole's check says."""
    try:
        load = OwnLoad.model_validate(content.get("load"))
    except ValidationError:
        return None
    return load if load.is_own else None


def _say(error: ErrorDetails, location: Location) -> tuple[str, str | None]:
    return describe_error(error, siblings(Service, location[1:]), name_place((KEY, *location)))


def _problems(own: Mapping[str, Service], document: Document) -> Iterator[Problem]:
    for below, what, hint in services.service_problems(own):
        yield Problem(what, document.where((KEY, *below)), hint)
    for name, service in own.items():
        try:
            services.roles({name: service} if may_stand_on_path(name) else {})
        except ValidationError as error:
            # What no role can be declared with, such as a choice of one value.
            for finding in error.errors():
                location = (KEY, name, *finding["loc"])
                what, hint = describe_error(finding, [], name_place(location))
                yield Problem(what, document.where(location), hint)


def _of_files(
    read_: Mapping[str, Service], expanded: Mapping[str, Service], composed: Composed, home: Path
) -> Iterator[Problem]:
    """Yield what is wrong with the files that services name; a Compose file's own builds have been looked at."""
    document = composed.document
    for name, service in read_.items():
        if build := service.build:
            where = document.where((KEY, name, "build"))
            folder = paths.inside(home, build.context)
            if folder is None or not paths.inside(home, build.context, build.dockerfile or "."):
                yield Problem(f"the build of {name} leads out of the scenario's folder", where, _HINT)
            elif not folder.is_dir():
                hint = "give the Dockerfile's, from the scenario's folder"
                yield Problem(f"there is no folder {build.context}", where, hint)
        # Those of a Compose project have been looked at.
        for index, volume in enumerate(service.volumes):
            yield from _volume_problems(volume, document.where((KEY, name, "volumes", index)), home)
    for name, service in expanded.items():
        if service.build and (what := _no_dockerfile(service.build, home)):
            said = name in read_ and read_[name].build is not None
            of_project = None if said else composed.where_build(name)
            where = of_project or document.where((KEY, name, "build"))
            yield Problem(what, where, "the engine builds the image before a run")


def _volume_problems(volume: str, where: str, home: Path) -> Iterator[Problem]:
    source, *_ = split_volume(volume)
    file = paths.inside(home, source)
    if not source.startswith("."):
        return
    if file is None:
        yield Problem(f"{volume} leads out of the scenario's folder", where, "copy what it needs into the folder")
    elif not file.exists():
        yield Problem(f"there is no {source} in the scenario's folder", where)


def _no_dockerfile(build: Build, home: Path) -> str | None:
    """Return what a build lacks, its Dockerfile or the stage in it; None if neither."""
    folder = paths.real(home / build.context)
    files = [build.dockerfile] if build.dockerfile else ["Dockerfile", "dockerfile"]
    file = next((folder / name for name in files if (folder / name).is_file()), None)
    if file is None:
        return f"there is no {files[0]} in {build.context}" if folder.is_dir() else None
    stages = [stage.lower() for stage in _STAGE.findall(file.read_text(errors="replace"))]
    if build.target is None or build.target.isdecimal() or build.target.lower() in stages:
        return None
    return f"the Dockerfile has no stage '{build.target}'"
