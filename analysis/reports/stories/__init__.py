"""Explains single requests: what every observer saw of each, in the order of time.

In: the joins of a run, and the packets of chosen connections. Out: events, and derived/ladders.json.
It must not know pages. What the joins could not tell apart is not told here either, and the story says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.diagnosis import health, joins
from analysis.evidence.window import Window
from analysis.reports.stories import carried, derived_causes, select
from analysis.reports.stories.narrator import Narrator
from analysis.reports.stories.parts import AttributedCause, Event, Explanation, RequestTimeline, View
from analysis.reports.stories.select import UnknownRequest
from formats.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.diagnosis.health import Health
    from analysis.diagnosis.joins import Joined, Row, Story
    from analysis.evidence.rawrun import RawRun
    from analysis.reports.stories.select import Key

__all__ = [
    "AttributedCause",
    "Event",
    "Explanation",
    "RequestTimeline",
    "UnknownRequest",
    "View",
    "explain_request",
    "explain_worst",
]

# A story does not need a complete run; nothing in it is counted over a window.
_ALWAYS = Window(0, 1 << 62, 1 << 62)


def explain_request(raw: RawRun, request: str) -> Explanation:
    """Explain one request.

    Args:
        raw: its run.
        request: its name: `k6-1/17`, or `17` where there is one instance of k6.

    Raises:
        UnknownRequest: there is none of that name.
    """
    checked, joined = _join(raw)
    return _explain(raw, checked, joined, select.find_request(joined, request))


def explain_worst(raw: RawRun, number: int) -> Explanation:
    """Explain the worst requests of a run: those that failed first, then the slowest.

    Args:
        raw: the run.
        number: how many, above 0.

    Raises:
        UnknownRequest: no request was recorded.
    """
    checked, joined = _join(raw)
    return _explain(raw, checked, joined, select.find_worst(joined, number))


def _join(raw: RawRun) -> tuple[Health, Joined]:
    checked = health.examine(raw)
    return checked, joins.join(raw, checked, _ALWAYS)


def _explain(raw: RawRun, checked: Health, joined: Joined, keys: list[Key]) -> Explanation:
    narrator = Narrator(raw)
    stories = [story for key in keys if (story := joins.find_story(joined, *key)) is not None]
    nexts = [carried.next_request_us(joined, story.case) for story in stories]
    carriers = [carried.find_carriers(story, next_us) for story, next_us in zip(stories, nexts, strict=True)]
    unread = list(carried.read_packets(raw.places, [each for of_story in carriers for each in of_story], raw.clocks))
    known = derived_causes.load_causes(raw.folder)
    accounts = [
        narrator.tell(
            story, of_story, _close(joined, story.case) if next_us is None else None, (known or {}).get(_key(story))
        )
        for story, of_story, next_us in zip(stories, carriers, nexts, strict=True)
    ]
    wanting = any(account.outcome != "ok" for account in accounts)
    lacks = (
        [f"{derived_causes.FILE} is missing or broken, so causes are not shown: analyse the run"]
        if wanting and known is None
        else []
    )
    return Explanation(
        run=visible(f"{raw.manifest.scenario}/{raw.manifest.run}"),
        outcomes=joins.count_outcomes(joined),
        accounts=accounts,
        hosts=narrator.hosts,
        problems=[visible(problem) for problem in (*_problems(raw, checked), *unread, *lacks)],
    )


def _key(story: Story) -> Key:
    return story.case["instance"], story.case["id"]


def _close(joined: Joined, case: Row) -> Row | None:
    """The end of a request's connection at the client."""
    key = {"instance": case["instance"], "dial": case["dial"]}
    found = joined.rows("SELECT * FROM closes WHERE instance = $instance AND id = $dial", **key)
    return next(iter(found), None)


def _problems(raw: RawRun, checked: Health) -> Iterator[str]:
    """What a story may lack, of the whole run."""
    manifest = raw.manifest
    if manifest.status != "complete":
        yield f"the run is {manifest.status}" + (f": {manifest.reason}" if manifest.reason else "")
    if not raw.captures:
        yield "nothing was captured, so no packets are shown"
    for problem in checked.problems:
        if problem.spoils:
            yield f"{problem.instrument}: {problem.message}"
    for instance, reduction in raw.reductions.items():
        for loss in reduction.losses:
            yield f"{raw.places.shown(raw.places.collector(instance))}: {loss}"
