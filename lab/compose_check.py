"""Has Compose check what the runs of the scenarios add to its file, without an engine starting anything."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from analysis.evidence.rawfiles import Places
from lab import parallel
from lab.engines.compose import run_file, startup
from lab.scenarios import places
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of
from lab.series import arms

# Clients beyond the first are made after its pattern.
_CLIENTS = ("accept-queue-healthy", "load.instances=3")


def all_runs() -> Iterator[ResolvedScenario]:
    """Yield each of the lab's scenarios as it is run, arm by arm where it has arms, and one with three clients."""
    for slug in places.slugs():
        yield from arms.resolve_variants(resolve(slug))
    slug, several = _CLIENTS
    yield resolve(slug, [several])


def check(runs: Iterable[ResolvedScenario]) -> int:
    """Check each different file that these runs add, and return how many there are.

    Raises:
        DockerFailed: Compose refuses one; the message holds what it says, and the file's name the scenario and the arm.
    """
    with tempfile.TemporaryDirectory(prefix="connlab-") as name:
        folder, files = Path(name), dict[str, Path]()
        for one in runs:
            content = run_file.build_run_file(one, topology_of(one), "check", Places(folder), startup.FIRST_SUBNET)
            text = json.dumps(content, sort_keys=True)
            if text not in files:
                files[text] = folder / f"{len(files)}-{one.slug}-{one.variant.arm or 'default'}.yaml"
                run_file.write_run_file(content, files[text])
        parallel.each(_check, files.values())
    return len(files)


def _check(file: Path) -> None:
    run_file.run_compose(file, "config", "--quiet")
