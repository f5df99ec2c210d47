"""The ladders of a run: the few requests that tell its story, each packet and event a step; derived/ladders.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.database import sql
from analysis.diagnosis import attribution, joins
from analysis.evidence import flows
from analysis.expressions.values import Unknown
from analysis.reports.stories.narrator import Narrator, request_head
from analysis.reports.stories.packets import capture_file, load_carriers
from analysis.reports.stories.timeline import Ladder, Ladders, Packets, Step
from formats.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.diagnosis.joins import Joined, Story
    from analysis.evidence.rawrun import RawRun
    from analysis.figures import Run
    from analysis.reports.stories.packets import Carrier
    from analysis.reports.stories.timeline import Key, Kind, Moment

# What of one request a reader may want to see.
_STEPS_MAX = 40


def build_ladders(run: Run) -> Ladders:
    """Return the ladders of a run, whatever the run's files hold or lack."""
    found, lacks = _tell(run)
    manifest = run.raw.manifest
    return Ladders(
        contract="connlab.ladders/1", scenario=manifest.scenario, run=manifest.run, ladders=found, lacks=lacks
    )


def _tell(run: Run) -> tuple[list[Ladder], list[str]]:
    joined = run.joined
    if isinstance(joined, Unknown):
        return [], [joined.why]
    if not run.raw.captures:
        return [], ["no packet was captured"]
    chosen = [
        (choice, story)
        for choice in choose_typical(joined)
        if (story := joins.find_story(joined, *choice.key)) is not None
    ]
    carriers, problems = load_carriers(run.raw, joined, [story for _, story in chosen])
    problems += _unread_captures(run.raw, {each.observer for of_story in carriers for each in of_story})
    narrator = Narrator(run.raw, joined)
    return [_ladder(narrator, *each, found) for each, found in zip(chosen, carriers, strict=True)], problems


def _unread_captures(raw: RawRun, told: set[str]) -> Iterator[str]:
    """Say what is wrong with captures that no connection leads to: one that cannot be read at all has none."""
    for instance, capture in raw.captures.items():
        if instance in told:
            continue
        losses = raw.reductions[instance].losses if capture.packets else ("missing",)
        yield from (f"{capture_file(raw.places, instance)}: {flows.unnamed(loss)}" for loss in losses)


def _ladder(narrator: Narrator, choice: ChosenRequest, story: Story, carriers: list[Carrier]) -> Ladder:
    case = story.case
    moments = narrator.moments(story, carriers)
    steps = [_step(moment, case["time_us"]) for moment in moments if moment.label is not None]
    half = _STEPS_MAX // 2
    shown = steps if len(steps) <= _STEPS_MAX else [*steps[:half], *steps[-half:]]
    told = [carrier for carrier in carriers if not carrier.is_repeated and carrier.packets]
    return Ladder(
        **request_head(case),
        kind=choice.kind,
        cause=choice.cause,
        count=choice.count,
        began_us=case["time_us"] - (narrator.measure_us or 0),
        evidence=_evidence(narrator, choice),
        lanes=_lanes(narrator, story, told),
        steps=shown,
        left_out=len(steps) - len(shown) + sum(moment.left_out for moment in moments),
        packets=[
            Packets(connection=view.connection, capture=view.capture, wireshark=view.wireshark)
            for view in map(narrator.view, told)
        ],
    )


def _step(moment: Moment, began_us: int) -> Step:
    event, segment = moment.event, moment.segment
    after_us, text = event.time_us - began_us, moment.label or ""
    if segment is None:
        return Step(after_us=after_us, from_=event.observer, to=None, kind="event", text=text)
    return Step(
        after_us=after_us,
        from_=moment.ends[0],
        to=moment.ends[1],
        kind=segment.kind,
        text=text,
        again=segment.again,
        lost=segment.lost,
        frames=segment.frames,
        queue=moment.queue,
    )


def _evidence(narrator: Narrator, choice: ChosenRequest) -> str | None:
    query = "SELECT evidence FROM attributed WHERE instance = $instance AND id = $id"
    rows = narrator.joined.rows(query, instance=choice.key[0], id=choice.key[1])
    return visible(rows[0]["evidence"]) if rows and rows[0]["evidence"] else None


def _lanes(narrator: Narrator, story: Story, carriers: list[Carrier]) -> list[str]:
    """Return the ends in the order of the path; without packets, those that the request was between."""
    remote = (story.case["dial_remote"] or "").rpartition(":")[0].strip("[]")
    ends = {story.case["instance"], narrator.name(remote)}
    for carrier in carriers:
        ends |= {narrator.name(carrier.connection.client[0]), narrator.name(carrier.connection.server[0])}
    manifest = narrator.raw.manifest
    order = [instance for role in manifest.path for instance in manifest.of_role(role)]
    return [each for each in order if each in ends] + sorted(each for each in ends - set(order) if each)


# Nobody reads more than these; `connlab explain` shows any other.
_CAUSES_MAX = 6


@dataclass(frozen=True, slots=True)
class ChosenRequest:
    """One request: why it was chosen, its cause if it failed or was slow, and how many are like it."""

    kind: Kind
    key: Key
    cause: str | None
    count: int


def choose_typical(joined: Joined) -> list[ChosenRequest]:
    """Return the requests that are shown: a good one, a typical one of each frequent cause, the slowest."""
    counts = attribution.count_causes(joined)
    causes: list[tuple[str, str | None]] = [
        (outcome, cause)
        for outcome in ("failed", "slow")
        for cause, _ in sorted(counts[outcome].items(), key=lambda each: (-each[1], each[0]))
    ]
    kinds: dict[str, Kind] = {"ok": "good", "failed": "failed", "slow": "slow"}
    found = [
        ChosenRequest(kinds[outcome], (row["instance"], row["id"]), cause, row["count"])
        for outcome, cause in (("ok", None), *causes[:_CAUSES_MAX])
        for row in joined.rows(sql(__name__, "typical"), outcome=outcome, cause=cause)
    ]
    slowest = joined.rows(sql(__name__, "slowest"))
    found += [ChosenRequest("slowest", (row["instance"], row["id"]), row["cause"], 1) for row in slowest]
    first = {choice.key: choice for choice in reversed(found)}
    return [choice for choice in found if first[choice.key] is choice]
