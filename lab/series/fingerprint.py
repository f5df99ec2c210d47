"""What must be the same for two runs to be compared: plan, code, images, kernel and machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lab import paths
from lab.engine.protocol import Engine
from lab.roles import declaration
from lab.run import facts
from lab.scenario.effective import Effective
from lab.series.record import Fingerprint

_FLOWS = paths.ROOT / ".cache" / "bin" / "flows"
_SHOWN = 12


def now(plan: str, roles: Iterable[str], engine: Engine, own: Iterable[Effective] = ()) -> Fingerprint:
    """Take the fingerprint of this moment; images that are missing are built first.

    Args:
        plan: the digest of what is to be run.
        roles: those that take part.
        engine: what runs it.
        own: of each scenario that brings services, one as it is run.

    Raises:
        BadInput: a service's image cannot be had.
        LabError: an image cannot be had, or no engine answers.
    """
    wanted = ["collector", *sorted(set(roles))]
    machine = _machine(engine)
    return Fingerprint(
        plan=plan,
        code=_digest([*_sources("lab"), paths.COMPOSE_FILE, *sorted(paths.ROOT.glob(f"*/{declaration.FILE}"))]),
        analysis=_digest([*_sources("analysis"), _FLOWS]),
        images=engine.images(wanted)
        | {f"{one.slug}/{name}": image for one in own for name, image in engine.service_images(one).items()},
        kernel=machine.pop("host.kernel"),
        machine=machine,
    )


def is_own(image: str) -> bool:
    """Tell the image of a scenario's own service, which stands under <scenario>/<service>, from the lab's."""
    return "/" in image


def _machine(engine: Engine) -> dict[str, Any]:
    """Give what each run's manifest will say of machine and lab, as far as a comparison wants it alike in all."""
    # Only a series that is run needs it, and its verdict will load the rest.
    from analysis.compare.differences import must_agree  # noqa: PLC0415

    parts = {"host": facts.host(engine), "lab": facts.lab_version()}
    said = {f"{group}.{name}": value for group, part in parts.items() for name, value in part}
    return {name: value for name, value in said.items() if must_agree(name)}


def _sources(package: str) -> list[Path]:
    return sorted((paths.ROOT / package).rglob("*.py"))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        digest.update(f"{file.relative_to(paths.ROOT)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def differences(before: Fingerprint, after: Fingerprint) -> Iterator[str]:
    """Say in words what changed between two fingerprints, so that their runs must not stand side by side."""
    if before.plan != after.plan:
        yield "the scenario, or the cells and their order"
    if before.code != after.code:
        yield "the lab's own program (lab/, compose.yaml or a role.yaml)"
    for name in sorted(before.images.keys() | after.images.keys()):
        if before.images.get(name) != after.images.get(name):
            was, is_now = (_short(images.get(name)) for images in (before.images, after.images))
            yield f"the image {'of ' if is_own(name) else 'connlab/'}{name} ({was}, now {is_now})"
    if before.kernel != after.kernel:
        yield f"the kernel ({before.kernel}, now {after.kernel})"
    # A series of an earlier version does not say this.
    for name, value in before.machine.items():
        if after.machine.get(name) != value:
            yield f"{name} ({value}, now {after.machine.get(name)})"


def _short(image: str | None) -> str:
    return image.removeprefix("sha256:")[:_SHOWN] if image else "none"
