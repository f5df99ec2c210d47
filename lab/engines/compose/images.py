"""The images of a run in Docker's store: the lab's own, and those of a scenario's services; what is missing is made."""

import contextlib
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from formats.knob_types import spoken
from lab import paths, setup_scripts
from lab.engines.compose.docker import DockerFailed, docker
from lab.engines.role_containers import image_of_service
from lab.errors import BadInput, LabError, Problem
from lab.roles.declared_roles import ROLES
from lab.scenarios import generators, own_configuration
from lab.scenarios.own_configuration import OwnImage
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import Build, Service
from lab.scenarios.topology import topology_of

_PULL_S = 1800
_BUILD_S = 3600
# Told apart from the lab's own by the value; `connlab clean` removes both.
_LABEL = "connlab.source=own"
# The first line of many a Dockerfile. The engine's builder reads that language itself, but asks a registry for this.
_SYNTAX = re.compile(r"\A((?:\s*#[^\n]*\n)*?)\s*#\s*syntax\s*=\s*(?:docker\.io/)?docker/dockerfile\b[^\n]*\n?")
_NOT_HAD = re.compile(r"failed to resolve source metadata for (?:docker\.io/(?:library/)?)?([^\s]+):(?=\s)")


def image_ids(names: Iterable[str]) -> dict[str, str]:
    """Return the ids of the lab's images by their short names; those that are missing are pulled or built first."""
    wanted = list(dict.fromkeys(names))
    present = _lab_images()
    if missing := [name for name in wanted if name not in present]:
        build_images(missing)
        present = _lab_images()
    if lost := [name for name in wanted if name not in present]:
        raise LabError(f"there is no image connlab/{lost[0]}", hint="build the images: connlab setup (make setup)")
    return {name: present[name] for name in wanted}


def _lab_images() -> dict[str, str]:
    listed = docker(
        "image", "ls", "--no-trunc", "--filter", "reference=connlab/*:latest", "--format", "{{.Repository}} {{.ID}}"
    )
    return {repository.removeprefix("connlab/"): image for repository, image in map(str.split, listed.splitlines())}


def build_images(names: list[str]) -> None:
    """Pull or build images as the set-up does; what it says goes to this program's stderr.

    Raises:
        LabError: the build failed.
    """
    if setup_scripts.run("images.sh", *names):
        raise LabError(f"the images were not made ready: {', '.join(names)}", hint="read what was printed above")


def service_image_ids(resolved: ResolvedScenario) -> dict[str, str]:
    """Return the ids of the images of the services on the path and of those that they need, by the services' names.

    They are built from their folder, found in the local store, or pulled.

    Raises:
        BadInput: an image cannot be pulled, or a folder not be built.
    """
    own = resolved.registry.services
    topology = topology_of(resolved)
    wanted = dict.fromkeys([*topology.needed, *(role for role in topology.instances if role in own)])
    found = {name: _service_image_id(resolved, name, own[name]) for name in wanted}
    proxies = {role: own_configuration.image_of(resolved, role) for role in resolved.scenario.path}
    return found | {role: build_proxy(role, image) for role, image in proxies.items() if image is not None}


def build_proxy(role: str, image: OwnImage) -> str:
    """Put what the lab brings into an image of the user's own with a proxy; return the id of the user's.

    Raises:
        BadInput: there is no such image, or it has no such program.
        LabError: it cannot be built on.
    """
    found = _find_id(image.name)
    if found is None:
        _pull(image.name, role, image.where)
        found = _find_id(image.name)
    image_ids([role])
    arguments = {"LAB": f"connlab/{role}", "IMAGE": image.name, "ROLE": role, "STOP_SIGNAL": ROLES[role].stop_signal}
    options = [*_builder(), "--tag", image.made, "--file", str(paths.ROOT / "setup" / "own-proxy.Dockerfile")]
    options += [f"--build-arg={key}={value}" for key, value in arguments.items()]
    try:
        docker("buildx", "build", *options, str(paths.ROOT / role), timeout_s=_BUILD_S)
    except DockerFailed as error:
        if refused := re.search(rf"connlab-{role}: (.+)", error.stderr):
            raise BadInput(Problem(f"{image.name}: {refused[1]}", image.where, "name another image")) from None
        said = "\n  ".join(error.stderr.strip().splitlines()[-8:])
        raise LabError(f"the lab's entry point cannot be put into {image.name}:\n  {said}") from None
    return str(found)


def _builder() -> list[str]:
    """Return the options of a build, as setup/lib.sh builds: by the engine's own builder, with the host's network."""
    builder = ["--builder", docker("context", "show").strip(), "--network", "host", "--load", "--provenance=false"]
    return [*builder, "--progress", "plain", "--label", _LABEL]


def _service_image_id(resolved: ResolvedScenario, name: str, service: Service) -> str:
    image = image_of_service(service, name, resolved.place)
    if image == generators.IMAGE:
        return next(iter(image_ids([image.removeprefix("connlab/")]).values()))
    if service.build is not None:
        _build_service(resolved, name, service.build, image)
    elif (present := _find_id(image)) is not None:
        return present
    else:
        _pull(image, name, resolved.where("services", name))
    found = _find_id(image)
    if found is None:
        raise LabError(f"there is no image {image}", hint="the engine says it has it: try again")
    return found


def _find_id(image: str) -> str | None:
    with contextlib.suppress(DockerFailed):
        return docker("image", "inspect", "--format", "{{.Id}}", "--", image).strip() or None
    return None


def _build_service(resolved: ResolvedScenario, name: str, build: Build, image: str) -> None:
    context = paths.real(resolved.place.home / build.context)
    named = context / build.dockerfile if build.dockerfile else None
    try:
        _build_here(build, context, named, image)
    except DockerFailed as error:
        where = resolved.where("services", name, "build")
        if missing := _NOT_HAD.search(error.stderr):
            what = f"the image of {name} cannot be built from {build.context}: its Dockerfile builds on {missing[1]}, "
            what += "which is not here, and cannot be pulled"
            make = f"make it from Debian's packages ('docker build --tag {missing[1]}')"
            way = f"load it ('docker load'), {make}, or build on connlab/base, the lab's own Debian"
            raise BadInput(Problem(what, where, way)) from None
        said = "\n  ".join(error.stderr.strip().splitlines()[-8:])
        what = f"the image of {name} cannot be built from {build.context}:\n  {said}"
        offline = any(words in error.stderr for words in ("no such host", "i/o timeout", "connection refused"))
        hint = "a step fetches what cannot be reached from here" if offline else None
        raise BadInput(Problem(what, where, hint)) from None


def _build_here(build: Build, context: Path, dockerfile: Path | None, image: str) -> None:
    """Build an image, without its Dockerfile's `syntax` line where no registry has the image that it asks for."""
    try:
        return _build(build, context, dockerfile, image)
    except DockerFailed as error:
        text = (dockerfile or context / "Dockerfile").read_text() if _NOT_HAD.search(error.stderr) else ""
        if not _SYNTAX.match(text):
            raise
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "Dockerfile")
        plain.write_text(_SYNTAX.sub(r"\1", text))
        return _build(build, context, plain, image)


def _build(build: Build, context: Path, dockerfile: Path | None, image: str) -> None:
    options = [*_builder(), "--tag", image]
    options += ["--file", str(dockerfile)] if dockerfile else []
    options += ["--target", build.target] if build.target else []
    options += [f"--build-arg={key}={spoken(value)}" for key, value in build.args.items()]
    docker("buildx", "build", *options, str(context), timeout_s=_BUILD_S)


def _pull(image: str, name: str, where: str) -> None:
    try:
        docker("pull", "--quiet", "--", image, timeout_s=_PULL_S)
    except DockerFailed as error:
        what = f"the image {image} of {name} is not here, and cannot be pulled: {error.reason}"
        build = "docker build" if name in ROLES else "build: <folder>"
        hint = f"load it ('docker load'), build it ('{build}'), or correct its name"
        raise BadInput(Problem(what, where, hint)) from None
