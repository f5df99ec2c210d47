"""docs/experiments.md, docs/catalogue.md and the source in each lesson, made from what they are about."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from analysis.formatting import format_count, format_number
from formats.predictions import Result
from lab import paths
from lab.console import listing
from lab.outcomes import run_and_judge
from lab.scenarios import predictions
from lab.scenarios.catalogue import load_catalogue, load_sources, source_of
from lab.scenarios.resolved import ResolvedScenario
from lab.series import arms
from tools.recording import recorded_runs
from tools.recording.recorded_runs import RecordedRun

DOCUMENT = paths.ROOT / "docs" / "experiments.md"
CATALOGUE = paths.ROOT / "docs" / "catalogue.md"
FILES = (DOCUMENT, CATALOGUE)

_WORKSHOP = "workshop"
_NONE = "not recorded yet"
_SOURCE = "**Source**: "

_INTRODUCTION = """\
# What was published, and what this lab measures

Made by `make experiments` from the scenarios and from [experiments.jsonl](experiments.jsonl); do not edit it.

Each row is a scenario: the published result, of the [source](#sources) that the letter of its id names; and beside \
it the same figures as this lab measures them: the median of the recorded runs, with minimum and maximum in \
parentheses. Absolute times and rates depend on the machine; the lab reproduces counts, ratios and the order of values.

`verdict` counts runs: `reproduced` if every prediction held, `inconclusive` if evidence was missing or unhealthy, \
`not` if a prediction was false. The predictions that were not true follow in parentheses, with the number of runs. \
`unexplained` is the largest number of requests in a run for which the ledger found no cause; `identities` says how \
many of the ledger's identities hold. A run of a scenario with arms is a series; its numbers cover all arms.

A prediction is this lab's own, and may contradict what was published. `claim` says in how many runs the published \
claim was confirmed or refuted by the predictions that the scenario names for it (`claim` in its scenario.yaml), and \
what they leave open; or that it is undecided, because this scenario cannot tell, and why.

`control` is the case without the fault, which must not show the signal: an arm of the scenario, an arm of another \
scenario, another scenario as a whole, or `itself` for a healthy scenario (`control` in its scenario.yaml). It is \
clean in a recorded run if all predictions that say so held.

`make record SCENARIO=<slug> RUNS=10` (or `SCENARIO=all`) records runs until there are that many. Runs of an earlier \
version of a scenario, with other knobs or predictions, do not count. If a run refutes a prediction and the prediction \
is then changed, counting starts again. `earlier` has the verdicts of the runs that no longer count.
"""

_ABOUT_CATALOGUE = """\
# The catalogue

Made by `make experiments` from [scenarios/catalogue.yaml](../scenarios/catalogue.yaml) and from recorded runs; do not \
edit it.

The lab's own scenarios by subject, in the order in which one learns them. Each is a lesson: a question, a prediction \
to write down, the run, and where to look. `make run SCENARIO=<name>` runs one, `make show SCENARIO=<name>` prints its \
predictions and the value of each knob, `make list` prints this list.

- **level**: 1, begin here; 2, wants the lessons above it; 3, several causes at once, or a claim to be tested.
- **takes**: about how long its runs take, with start and end, on two processors.
- **from**: the published experiment that it repeats; [what was published](experiments.md#sources), and what this lab \
measured beside it. Empty: it is this lab's own.
- **held**: in how many recorded runs all predictions were true; \
[why some were false](series.md#the-whole-catalogue-and-recorded-runs).
"""


def write() -> list[Path]:
    """Write the documents and the sources of the lessons, and return the documents' files.

    Raises:
        BadInput: a scenario or a recorded line is wrong.
    """
    scenarios, recorded = list(run_and_judge.resolve_all()), recorded_runs.read()
    DOCUMENT.write_text(document(scenarios, recorded))
    CATALOGUE.write_text(catalogue(scenarios, recorded))
    for one in (one for one in scenarios if one.place.lesson.is_file()):
        text = one.place.lesson.read_text()
        made = lesson(text, one)
        if made != text:
            one.place.lesson.write_text(made)
    return list(FILES)


def document(scenarios: Sequence[ResolvedScenario], recorded: Sequence[RecordedRun]) -> str:
    """Return the content of docs/experiments.md."""
    by_slug = {one.slug: one for one in scenarios}
    rows = []
    used: list[RecordedRun] = []
    for resolved in sorted(scenarios, key=_by_experiment):
        counting = recorded_runs.counting(resolved, recorded)
        used += counting
        earlier = _tally([one for one in recorded if one.scenario == resolved.slug and one not in counting])
        rows.append(_row(resolved, counting, _control(resolved, by_slug, recorded), earlier))
    header = (
        "id",
        "scenario",
        "published",
        "here",
        "claim",
        "control",
        "verdict",
        "earlier",
        "unexplained",
        "identities",
        "takes",
    )
    return "\n".join([_INTRODUCTION, *_sources(), *_conditions(used), *_table(header, rows), ""])


def _by_experiment(one: ResolvedScenario) -> tuple[bool, list[tuple[int, str]], str]:
    """Return the key that orders scenarios as the experiments are numbered; the workshop's own come last."""
    parts = re.findall(r"\d+|\D+", one.scenario.experiment)
    numbered = [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    return one.scenario.experiment == _WORKSHOP, numbered, one.slug


def catalogue(scenarios: Iterable[ResolvedScenario], recorded: Sequence[RecordedRun]) -> str:
    """Return the content of docs/catalogue.md."""
    by_slug = {one.slug: one for one in scenarios}
    lines = [_ABOUT_CATALOGUE]
    for subject in load_catalogue():
        rows = [
            (
                f"[{entry.slug}](../scenarios/{entry.slug}/README.md)",
                str(entry.level or ""),
                entry.takes,
                _cell(entry.shows or resolved.scenario.title),
                "; ".join(listing.describe_paths(arms.resolve_variants(resolved))),
                "" if resolved.scenario.experiment == _WORKSHOP else resolved.scenario.experiment,
                count(recorded_runs.counting(resolved, recorded)),
            )
            for entry in subject.entries
            for resolved in [by_slug[entry.slug]]
        ]
        header = ("scenario", "level", "takes", "shows", "path", "from", "held")
        lines += [f"## {subject.name}", "", *filter(None, [subject.about]), "", *_table(header, rows), ""]
    return "\n".join(lines)


def lesson(text: str, resolved: ResolvedScenario) -> str:
    """Return a lesson with the line that cites its source, below what it takes; without one if it has no source."""
    source = source_of(resolved)
    paragraphs = [one for one in text.split("\n\n") if not one.startswith(_SOURCE)]
    if source:
        where = "[The sources](../../docs/experiments.md#sources)"
        line = f"{_SOURCE}experiment {resolved.scenario.experiment} of {source.cited}. {where} say what it used."
        at = next(index for index, one in enumerate(paragraphs) if one.startswith("**Time**"))
        paragraphs.insert(at + 1, line)
    return "\n\n".join(paragraphs)


def _sources() -> Iterator[str]:
    """Write what was published where."""
    yield "## Sources"
    yield ""
    yield "Articles by engineers. The lab states their results in its own words; their texts are not here."
    yield ""
    rows = [
        (letter, one.title or "(untitled)", one.language, one.date or "undated", one.about, one.used)
        for letter, one in load_sources().items()
    ]
    yield from _table(("letter", "title", "language", "date", "about", "used"), rows)
    yield from ("", "## Results", "")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _cell(text: str) -> str:
    """Write a text so that it stays in its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _conditions(used: Sequence[RecordedRun]) -> Iterator[str]:
    """Return on what and when the recorded runs were made."""
    if not used:
        return
    machines = Counter((line.kernel, line.cpus) for line in used)
    told = "; ".join(
        f"{count} on Linux {kernel} with {cpus} processors" for (kernel, cpus), count in machines.most_common()
    )
    days = sorted({line.when[:10] for line in used})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    yield f"{format_count(len(used), 'recorded run')}, {span}: {told}."
    yield ""


def _row(resolved: ResolvedScenario, counting: Sequence[RecordedRun], control: str, earlier: str) -> Sequence[str]:
    published = resolved.scenario.published
    first = (resolved.scenario.experiment, f"[{resolved.slug}](../scenarios/{resolved.slug}/README.md)")
    says = _cell(published.description or "") if published else ""
    if not counting:
        return (*first, says, _NONE, "", control, "", earlier, "", "", "")
    here = published.here.items() if published else ()
    figures = "<br>".join(f"{_cell(name)}: {_figure(expression, counting)}" for name, expression in here)
    said = claim(resolved, counting) + _open(resolved)
    takes = f"{median(line.took_s for line in counting):.0f} s"
    rest = (_unexplained(counting), _identities(counting), takes)
    return (*first, says, figures, said, control, _verdict(counting), earlier, *rest)


def _control(
    resolved: ResolvedScenario, catalogue: Mapping[str, ResolvedScenario], recorded: Sequence[RecordedRun]
) -> str:
    """Write where the signal must not show, and in how many runs it did not."""
    found = predictions.resolve_control(resolved, catalogue)
    if found is None:
        return ""
    where, arm, names = found
    counting = recorded_runs.counting(where, recorded)
    shows = sum(not {*names}.isdisjoint(line.false) for line in counting)
    clean = sum({*names}.isdisjoint((*line.false, *line.unknown)) for line in counting)
    others = (("not", shows), ("unknown", len(counting) - clean - shows))
    parts = [f"clean in {clean} of {len(counting)}", *(f"{word} in {count}" for word, count in others if count)]
    of = ", ".join(parts) if counting else _NONE
    link = f"[{where.slug}](../scenarios/{where.slug}/README.md)" if where is not resolved else None
    return f"{', '.join(filter(None, (link, arm))) or 'itself'}: {of}"


def claim(resolved: ResolvedScenario, counting: Sequence[RecordedRun]) -> str:
    """Write in how many runs the predictions that speak of what was published were all true."""
    declared = resolved.scenario.claim
    if declared is None or not counting:
        return ""
    if declared.undecided:
        return "undecided"
    names = {*declared.supported_by, *declared.refuted_by}
    # A prediction about an arm's runs is named <arm>/<id>.
    open_ = [names & {name.rsplit("/", 1)[-1] for name in (*line.false, *line.unknown)} for line in counting]
    told = sum(not each for each in open_)
    return f"{'refuted' if declared.refuted_by else 'confirmed'} in {told} of {len(counting)}"


def _open(resolved: ResolvedScenario) -> str:
    """Write what stays open of what was published."""
    claim = resolved.scenario.claim
    if claim is None:
        return ""
    return f": {_cell(claim.undecided)}" if claim.undecided else f"; but {_cell(claim.caveat)}" if claim.caveat else ""


def _figure(expression: str, counting: Sequence[RecordedRun]) -> str:
    values = [line.here.get(expression) for line in counting]
    known = [value for value in values if value is not None]
    if not known:
        return "unknown" if any(expression in line.here for line in counting) else _NONE
    of = f", of {len(known)} runs" if len(known) < len(values) else ""
    return _spread(known) + of


def _spread(values: Sequence[float]) -> str:
    """Write the median with the least and the greatest."""
    least, middle, greatest = (format_number(each, 4) for each in (min(values), median(values), max(values)))
    return middle if least == greatest else f"{middle} ({least} to {greatest})"


def count(counting: Sequence[RecordedRun]) -> str:
    """Write in how many recorded runs all predictions held."""
    return f"{sum(line.verdict == 'reproduced' for line in counting)} of {len(counting)}" if counting else _NONE


_SHORT: dict[Result, str] = {"reproduced": "reproduced", "inconclusive": "inconclusive", "not-reproduced": "not"}


def _tally(recorded: Sequence[RecordedRun]) -> str:
    counts = Counter(line.verdict for line in recorded)
    return "; ".join(f"{counts[verdict]} {word}" for verdict, word in _SHORT.items() if counts[verdict])


def _verdict(counting: Sequence[RecordedRun]) -> str:
    others = _tally([line for line in counting if line.verdict != "reproduced"])
    parts = [f"reproduced in {count(counting)}", *filter(None, [others])]
    wanting = Counter(
        f"{name} {status}"
        for line in counting
        for status, names in (("false", line.false), ("unknown", line.unknown))
        for name in names
    )
    told = ", ".join(f"{name} in {count}" for name, count in wanting.most_common())
    return "; ".join(parts) + (f" ({told})" if told else "")


def _unexplained(counting: Sequence[RecordedRun]) -> str:
    known = [line.unexplained for line in counting if line.unexplained is not None]
    return f"{max(known)}" if len(known) == len(counting) else f"unknown in {len(counting) - len(known)}"


def _identities(counting: Sequence[RecordedRun]) -> str:
    told = [f"{_spread([line.identities['true'] for line in counting])} hold"]
    failing = max(line.identities["false"] for line in counting)
    unknown = max(line.identities["unknown"] for line in counting)
    told += [f"up to {count} {word}" for word, count in (("fail", failing), ("unknown", unknown)) if count]
    return "; ".join(told)
