"""derived/ladders.json: the packets of a few connections that tell a run's story, chosen and read from the captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis import joins
from analysis.explain import carried
from analysis.ladders import choose, document, tell
from analysis.output import write as write_file
from analysis.values import Unknown

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.figures import Run
    from analysis.ladders.choose import Choice
    from analysis.ladders.document import Ladders

__all__ = ["FILE", "of_run", "write"]

FILE = document.FILE


def write(run: Run, folder: Path) -> None:
    """Write the file into a run's folder."""
    write_file(folder / FILE, of_run(run).to_json())


def of_run(run: Run) -> Ladders:
    """Choose and tell the ladders of a run; it never raises for what the run's files hold or lack."""
    manifest, joined = run.raw.manifest, run.joined
    if isinstance(joined, Unknown):
        return document.ladders(manifest.scenario, manifest.run, [], [joined.why])
    if not run.raw.captures:
        return document.ladders(manifest.scenario, manifest.run, [], ["nothing was captured"])
    chosen: list[tuple[Choice, joins.Story, list[carried.Carrier]]] = []
    for choice in choose.of_run(joined):
        story = joins.story(joined, *choice.key)
        if story is not None:
            chosen.append((choice, story, carried.of_story(story, carried.next_us(joined, story.case))))
    problems = list(carried.read(run.raw.folder, [each for _, _, carriers in chosen for each in carriers]))
    teller = tell.Teller(joined, manifest)
    return document.ladders(manifest.scenario, manifest.run, [teller.ladder(*each) for each in chosen], problems)
