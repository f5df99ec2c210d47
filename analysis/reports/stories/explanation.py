"""Explains single requests: what every observer saw of each, in the order of time; as text for a terminal or a file."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import duckdb

from analysis.database import over_files, sql
from analysis.diagnosis import health, joins
from analysis.evidence.rawfiles import descriptor_path
from analysis.evidence.window import Window
from analysis.formatting import excerpt, format_count, format_us
from analysis.reports.stories.narrator import Narrator
from analysis.reports.stories.observers import MILLISECOND_US
from analysis.reports.stories.packets import load_carriers
from analysis.reports.stories.timeline import AttributedCause, Explanation
from formats.safe_files import open_within
from formats.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analysis.diagnosis.health import Health
    from analysis.diagnosis.joins import Joined
    from analysis.evidence.rawrun import RawRun
    from analysis.reports.stories.timeline import Event, Key, Note, RequestTimeline

_NO_REQUEST = "the run has no record of any request"
CAUSES_FILE = Path("derived") / "requests.parquet"
WIDTH = 120
_SECOND_US = 1_000_000
# A story does not need a complete run; nothing in it is counted over a window.
_ALWAYS = Window(0, 1 << 62, 1 << 62)


class UnknownRequest(ValueError):
    """There is no such request; the text says which there are."""


def find_request(joined: Joined, text: str) -> Key:
    """Return the request that a user names, as `k6-1/17`, or `17` if there is one instance; raise UnknownRequest."""
    match = re.fullmatch(r"(?:([a-z0-9-]+)/)?([0-9]{1,18})", text)
    if not match:
        raise UnknownRequest(f"'{excerpt(text)}' names no request: write k6-1/17, or 17 if there is one k6 instance")
    number = int(match[2])
    ids = {row["instance"]: row for row in joined.rows(sql(__name__, "ids"), number=number)}
    if not ids:
        raise UnknownRequest(_NO_REQUEST)
    instance = match[1] or (next(iter(ids)) if len(ids) == 1 else None)
    if instance is None:
        raise UnknownRequest(f"request {text} may be of {' or '.join(ids)}: write {next(iter(ids))}/{text}")
    if instance not in ids:
        raise UnknownRequest(f"no requests of '{instance}' are recorded; there are those of {' and '.join(ids)}")
    of_instance = ids[instance]
    if of_instance["nearest"] != number:
        raise UnknownRequest(
            f"there is no request {instance}/{number}; its ids go from {of_instance['low']} to {of_instance['high']},"
            f" the nearest is {instance}/{of_instance['nearest']}"
        )
    return instance, number


def load_causes(folder: Path) -> dict[Key, AttributedCause] | None:
    """Return the cause of each request that has one; None if a run was not analysed, or its file cannot be read."""
    try:
        with open_within(folder, CAUSES_FILE) as file, over_files() as database:
            found = database.execute(sql(__name__, "derived_causes"), {"path": descriptor_path(file)}).fetchall()
    except (OSError, duckdb.Error):
        return None
    return {(row[0], row[1]): AttributedCause(row[2], visible(row[3] or "")) for row in found}


def explain_request(raw: RawRun, request: str) -> Explanation:
    """Explain one request of a run, named as `find_request` has it; raise UnknownRequest if there is none."""
    checked, joined = _join(raw)
    return _explain(raw, checked, joined, [find_request(joined, request)])


def explain_worst(raw: RawRun, number: int) -> Explanation:
    """Explain so many requests: the failed ones first, then the slowest; raise UnknownRequest if none is on record."""
    checked, joined = _join(raw)
    found = [(row["instance"], row["id"]) for row in joined.rows(sql(__name__, "worst"), number=number)]
    if not found:
        raise UnknownRequest(_NO_REQUEST)
    return _explain(raw, checked, joined, found)


def _join(raw: RawRun) -> tuple[Health, Joined]:
    checked = health.examine(raw)
    return checked, joins.join(raw, checked, _ALWAYS)


def _explain(raw: RawRun, checked: Health, joined: Joined, keys: list[Key]) -> Explanation:
    narrator = Narrator(raw, joined)
    stories = [story for key in keys if (story := joins.find_story(joined, *key)) is not None]
    carriers, problems = load_carriers(raw, joined, stories)
    causes = load_causes(raw.folder)
    accounts = [
        narrator.timeline(story, found, (causes or {}).get((story.case["instance"], story.case["id"])))
        for story, found in zip(stories, carriers, strict=True)
    ]
    if causes is None and any(account.outcome != "ok" for account in accounts):
        problems.append(f"{CAUSES_FILE} is missing or broken, so causes are not shown; hint: analyse the run")
    return Explanation(
        run=visible(f"{raw.manifest.scenario}/{raw.manifest.run}"),
        outcomes=joins.count_outcomes(joined),
        accounts=accounts,
        hosts=narrator.hosts,
        problems=[visible(problem) for problem in (*_problems(raw, checked), *problems)],
    )


def _problems(raw: RawRun, checked: Health) -> Iterator[str]:
    """Say what a story may lack, of the whole run."""
    manifest = raw.manifest
    if manifest.status != "complete":
        yield f"the run is {manifest.status}" + (f": {manifest.reason}" if manifest.reason else "")
    if not raw.captures:
        yield "no packet was captured, so none is shown"
    said = {problem.message for problem in checked.problems if problem.spoils}
    for problem in checked.problems:
        if problem.spoils:
            yield f"{problem.instrument}: {problem.message}"
    for instance, reduction in raw.reductions.items():
        for loss in reduction.losses:
            if loss not in said:
                yield f"{raw.places.shown(raw.places.collector(instance))}: {loss}"


def format_explanation(explanation: Explanation) -> Iterator[str]:
    """Return an explanation as lines, at most WIDTH columns wide where a word allows; none steers a terminal."""
    for line in _lines(explanation):
        yield visible(line)


def _lines(explanation: Explanation) -> Iterator[str]:
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in explanation.outcomes.items())
    yield f"{explanation.run}: {format_count(sum(explanation.outcomes.values()), 'request')}, {outcomes}"
    if explanation.problems:
        yield "Missing evidence"
        for problem in explanation.problems:
            yield from _wrapped(f"- {problem}", "  ", "    ")
    for account in explanation.accounts:
        yield ""
        yield from _account(account)


def _account(account: RequestTimeline) -> Iterator[str]:
    cause = f": {account.cause.name}" if account.cause else ""
    yield f"Request {account.request} {_OUTCOMES[account.outcome]} {format_us(account.total_us)}{cause}"
    yield from _wrapped(account.asked, "  ", "    ")
    yield f"  began {_when(account)}"
    if account.cause and account.cause.evidence:
        yield from _wrapped(account.cause.evidence, "  because ", "    ")
    yield ""
    yield from _events(account)
    for missing in account.missing:
        yield from _wrapped(f"Unknown: {missing}", "  ", "    ")
    yield ""
    yield "  Sources"
    for file, places in _sources(account.events).items():
        yield from _wrapped(f"{file}: {places}", "    ", "      ")
    if account.views:
        yield ""
        yield "  In Wireshark (display filter) and tcpdump, in the run's folder"
        for view in account.views:
            yield f"    {view.connection}, {view.capture}"
            # Not wrapped: they are to be copied.
            yield f"      {view.wireshark}"
            yield f"      {view.tcpdump}"


_OUTCOMES = {"failed": "failed after", "slow": "was slow, it took", "ok": "was answered in"}


def _when(account: RequestTimeline) -> str:
    moment = datetime.fromtimestamp(account.start_us / _SECOND_US, UTC)
    clock = f"{moment:%Y-%m-%d %H:%M:%S}.{account.start_us % _SECOND_US:06d} UTC"
    if account.measure_us is None:
        return clock
    return f"{(account.start_us - account.measure_us) / _SECOND_US:,.3f} s into the load, at {clock}"


def _events(account: RequestTimeline) -> Iterator[str]:
    times = [_offset(event, account.start_us) for event in account.events]
    time_width = max(len("ms"), *map(len, times))
    observer_width = max(len(event.observer) for event in account.events)
    indent = " " * (2 + time_width + 2 + observer_width + 2)
    yield f"  {'ms':>{time_width}}"
    for event, time in zip(account.events, times, strict=True):
        head = f"  {time:>{time_width}}  {event.observer:<{observer_width}}  "
        place = f" [{event.place}]" if event.observer.startswith("wire@") else ""
        yield from _wrapped(f"{event.text}{place}", head, indent)
        for note in event.notes:
            yield from _wrapped(note.text, f"{indent}  ", f"{indent}  ")


def _offset(event: Event, start_us: int) -> str:
    """Return an event's time since the request began, in ms, as exactly as it was recorded."""
    since_us = event.time_us - start_us
    if event.resolution_us < MILLISECOND_US:
        return f"{since_us / 1000:,.3f}"
    # The digits line up with those of exact times.
    return f"~{round(since_us / 1000):,}    "


def _sources(events: Iterable[Event]) -> dict[str, str]:
    """Return each file that the events rest on, and the places in it; frames by the first and the last."""
    places: dict[str, dict[str, None]] = {}
    for event in events:
        sources: tuple[Event | Note, ...] = (event, *event.notes)
        for source in sources:
            places.setdefault(source.file, {})[source.place] = None
    found = {}
    for file, of_file in places.items():
        frames = [
            int(word) for each in of_file if each.startswith("frame") for word in each.split() if word.isdecimal()
        ]
        span = (
            f"frames {min(frames)} to {max(frames)}" if len({*frames}) > 1 else f"frame {frames[0]}" if frames else ""
        )
        found[file] = span or ", ".join(of_file)
    return found


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    options = {"initial_indent": first, "subsequent_indent": rest}
    return wrap(text, WIDTH, **options, break_long_words=False, break_on_hyphens=False) or [first.rstrip()]  # type: ignore[arg-type]
