"""The packets of a few connections that tell a run's story.

In: the joins of a run, and its captures. Out: derived/ladders.json.
It must not know how a ladder is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.diagnosis import joins
from analysis.evidence import flows
from analysis.expressions.values import Unknown
from analysis.output import write as write_file
from analysis.reports.stories import carried, choose, ladders_file, tell, wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from analysis.evidence.rawrun import RawRun
    from analysis.figures import Run
    from analysis.reports.stories.choose import ChosenRequest
    from analysis.reports.stories.ladders_file import Ladders

__all__ = ["FILE", "build_ladders", "write"]

FILE = ladders_file.FILE


def write(run: Run, folder: Path) -> None:
    """Write the file into a run's folder."""
    write_file(folder / FILE, build_ladders(run).to_json())


def build_ladders(run: Run) -> Ladders:
    """Choose and tell the ladders of a run; it never raises for what the run's files hold or lack."""
    manifest, joined = run.raw.manifest, run.joined
    if isinstance(joined, Unknown):
        return ladders_file.ladders(manifest.scenario, manifest.run, [], [joined.why])
    if not run.raw.captures:
        return ladders_file.ladders(manifest.scenario, manifest.run, [], ["nothing was captured"])
    chosen: list[tuple[ChosenRequest, joins.Story, list[carried.Carrier]]] = []
    for choice in choose.choose_typical(joined):
        story = joins.find_story(joined, *choice.key)
        if story is not None:
            chosen.append((choice, story, carried.find_carriers(story, carried.next_request_us(joined, story.case))))
    found = [each for _, _, carriers in chosen for each in carriers]
    problems = [
        *carried.read_packets(run.raw.places, found, run.raw.clocks),
        *_untold(run.raw, {each.observer for each in found}),
    ]
    teller = tell.Teller(joined, manifest, run.raw.places)
    return ladders_file.ladders(manifest.scenario, manifest.run, [teller.ladder(*each) for each in chosen], problems)


def _untold(raw: RawRun, told: set[str]) -> Iterator[str]:
    """What is wrong with the captures that no connection leads to: one that cannot be read at all has none."""
    for instance, capture in raw.captures.items():
        if instance in told:
            continue
        losses = raw.reductions[instance].losses if capture.packets else ("missing",)
        yield from (f"{wire.file_of(raw.places, instance)}: {flows.unnamed(loss)}" for loss in losses)
