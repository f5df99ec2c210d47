"""The images of a scenario's own services: built from their folder, found in the local store, or pulled."""

from __future__ import annotations

import contextlib

from lab import paths
from lab.engines.compose.docker import DockerFailed, docker
from lab.engines.compose.service_part import image_of
from lab.errors import BadInput, LabError, Problem
from lab.scenarios import services
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import Build, Service, spoken

_PULL_S = 1800
_BUILD_S = 3600
# Told apart from the lab's own by the value; `connlab clean` removes both.
_LABEL = "connlab.source=own"


def service_image_ids(effective: ResolvedScenario) -> dict[str, str]:
    """Give the ids of the images of the services on the path and of those that they need, by the services' names.

    Raises:
        BadInput: an image cannot be pulled, or a folder not be built.
    """
    own = effective.registry.services
    wanted = services.needed_by(own, [role for role in effective.scenario.path if role in own])
    return {name: _id(effective, name, own[name]) for name in wanted}


def _id(effective: ResolvedScenario, name: str, service: Service) -> str:
    image = image_of(service, name, effective.place)
    if service.build is not None:
        _build(effective, name, service.build, image)
    elif (present := _present(image)) is not None:
        return present
    else:
        _pull(effective, name, image)
    found = _present(image)
    if found is None:
        raise LabError(f"there is no image {image}", way_on="the engine says it has it: try again")
    return found


def _present(image: str) -> str | None:
    with contextlib.suppress(DockerFailed):
        return docker("image", "inspect", "--format", "{{.Id}}", "--", image).strip() or None
    return None


def _build(effective: ResolvedScenario, name: str, build: Build, image: str) -> None:
    context = paths.real(effective.place.home / build.context)
    try:
        # As setup/lib.sh builds the lab's own: by the engine's own builder, with the host's network.
        builder = ("--builder", docker("context", "show").strip(), "--network", "host", "--load", "--provenance=false")
        options = ["--quiet", "--label", _LABEL, "--tag", image]
        options += ["--file", str(context / build.dockerfile)] if build.dockerfile else []
        options += ["--target", build.target] if build.target else []
        options += [f"--build-arg={key}={spoken(value)}" for key, value in build.args.items()]
        docker("buildx", "build", *builder, *options, str(context), timeout_s=_BUILD_S)
    except DockerFailed as error:
        said = "\n  ".join(error.stderr.strip().splitlines()[-8:])
        what = f"the image of {name} cannot be built from {build.context}:\n  {said}"
        where = effective.where("services", name, "build")
        raise BadInput(Problem(what, where, _way_on_of_build(error.stderr))) from None


def _way_on_of_build(stderr: str) -> str | None:
    if "no such host" in stderr or "i/o timeout" in stderr or "connection refused" in stderr:
        return "if no image registry can be reached: FROM connlab/base, the lab's own Debian"
    return None


def _pull(effective: ResolvedScenario, name: str, image: str) -> None:
    try:
        docker("pull", "--quiet", "--", image, timeout_s=_PULL_S)
    except DockerFailed as error:
        what = f"the image {image} of {name} is not here, and cannot be pulled: {error.reason}"
        way_on = "load it ('docker load'), build it ('build: <folder>'), or correct its name"
        raise BadInput(Problem(what, effective.where("services", name), way_on)) from None
