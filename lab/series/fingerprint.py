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
from lab.scenario import own_script
from lab.scenario.effective import Effective
from lab.scenario.own_script import OwnScript
from lab.scenario.topology import topology_of
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


def with_own(plan: str, configurations: Iterable[str], effectives: Iterable[Effective]) -> str:
    """Give the digest of a plan with what the user's own files say, where there are any.

    Args:
        plan: the digest of what is to be run.
        configurations: the text of each configuration of the user's own.
        effectives: the scenarios; the folder of each one's script counts, for it may hold modules and data.
    """
    scripts = [script for one in effectives if (script := own_script.of(one, topology_of(one)))]
    said = [*configurations, *(_digest(files, folder) for folder, files in _read_by(scripts).items())]
    return hashlib.sha256("\0".join((plan, *said)).encode()).hexdigest() if said else plan


def _read_by(scripts: Iterable[OwnScript]) -> dict[Path, list[Path]]:
    """Give what scripts may read of each folder; its pages for people are not among it."""
    folders = dict.fromkeys(script.folder for script in scripts)
    return {
        folder: sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".md")
        for folder in folders
    }


def is_own(image: str) -> bool:
    """Tell the image of a scenario's own service, which stands under <scenario>/<service>, from the lab's."""
    return "/" in image


def _machine(engine: Engine) -> dict[str, Any]:
    """Give what each run's manifest will say of machine and lab, as far as a comparison wants it alike in all."""
    # Only a series that is run needs it, and its verdict will load the rest.
    from analysis.compare.replicates import must_agree  # noqa: PLC0415

    parts = {"host": facts.host(engine), "lab": facts.lab_version()}
    said = {f"{group}.{name}": value for group, part in parts.items() for name, value in part}
    return {name: value for name, value in said.items() if must_agree(name)}


def _sources(package: str) -> list[Path]:
    return sorted(file for kind in ("*.py", "*.sql") for file in (paths.ROOT / package).rglob(kind))


def _digest(files: Iterable[Path], folder: Path = paths.ROOT) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        digest.update(f"{file.relative_to(folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def differences(before: Fingerprint, after: Fingerprint) -> Iterator[str]:
    """Say in words what changed between two fingerprints, so that their runs must not stand side by side."""
    if before.plan != after.plan:
        yield "the scenario, its own files, or the cells and their order"
    if before.code != after.code:
        yield "the lab's own program (lab/, compose.yaml or a role.yaml)"
    for name in sorted(before.images.keys() | after.images.keys()):
        if before.images.get(name) != after.images.get(name):
            was, is_now = (_short(images.get(name)) for images in (before.images, after.images))
            yield f"the image {'of ' if is_own(name) else 'connlab/'}{name} ({was}, now {is_now})"
    if before.kernel != after.kernel:
        yield f"the kernel ({before.kernel}, now {after.kernel})"
    for name, value in before.machine.items():
        if after.machine.get(name) != value:
            yield f"{name} ({value}, now {after.machine.get(name)})"


def _short(image: str | None) -> str:
    return image.removeprefix("sha256:")[:_SHOWN] if image else "none"
