"""What a shell completes: scenarios, runs, knobs and the like. Each loads what it alone needs."""

import re
from collections.abc import Iterator
from pathlib import Path


def complete_scenario(incomplete: str) -> Iterator[str]:
    """Yield the lab's scenarios, and folders where the user is writing a path."""
    from lab import paths

    if incomplete.startswith((".", "/", "~")) or "/" in incomplete:
        folder = Path(incomplete).expanduser()
        above = folder if incomplete.endswith("/") else folder.parent
        begin = incomplete[: len(incomplete) - (0 if incomplete.endswith("/") else len(folder.name))]
        yield from (f"{begin}{one.name}/" for one in sorted(above.glob("*")) if one.is_dir())
        return
    yield from sorted(file.parent.name for file in paths.SCENARIOS.glob("*/scenario.yaml"))


def complete_exercise(incomplete: str) -> Iterator[str]:
    """Yield the exercises of one lesson, or every lesson with a slash."""
    from lab import paths

    slug, slash, _ = incomplete.partition("/")
    if not slash:
        yield from (f"{name}/" for name in complete_scenario(""))
        return
    file = paths.SCENARIOS / slug / "exercises.yaml"
    known = re.findall(r"(?m)^  - ", file.read_text()) if file.is_file() else []
    yield from (f"{slug}/{number}" for number in range(1, len(known) + 1))


def complete_matrix() -> Iterator[str]:
    """Yield the lab's matrices."""
    from lab import paths

    yield from sorted(file.stem for file in paths.SCENARIOS.glob("matrices/*.yaml"))


def complete_run() -> Iterator[str]:
    """Yield the runs, newest first, after the scenarios that have one: such a name is its newest run."""
    from lab import paths

    runs = sorted((file.parent for file in paths.RESULTS.glob("*/*/manifest.json")), key=lambda one: one.name)
    yield from dict.fromkeys(one.parent.name for one in reversed(runs))
    yield from (f"{one.parent.name}/{one.name}" for one in reversed(runs) if one.name != "latest")


def complete_setting() -> Iterator[str]:
    """Yield the knobs, each with the `=` that a value follows."""
    from lab.scenarios.knobs import CATALOGUE

    yield from (f"{name}=" for name in sorted(CATALOGUE))


def complete_knob() -> Iterator[str]:
    """Yield the knobs."""
    yield from (one.removesuffix("=") for one in complete_setting())
