"""Keeps what `make bench` measured in docs/performance.jsonl, and writes the tables of the documents from it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.goals import BENCHES

_DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORDS = _DOCS / "performance.jsonl"
DOCUMENT = _DOCS / "performance.md"
HOUR_DOCUMENT = _DOCS / "reliability.md"
_BEGIN, _END = "<!-- bench: made by 'make bench' -->", "<!-- end of bench -->"
_BEGIN_CAPTURES, _END_CAPTURES = "<!-- captures: made by 'make bench' -->", "<!-- end of captures -->"
_BEGIN_LOOP, _END_LOOP = "<!-- loop: made by 'make bench' -->", "<!-- end of loop -->"
_KINDS = {
    "off": "no instrument",
    "loop": "tcpdump, ss and nstat, in the server's namespace",
    "headers": "the instrument: every packet's headers",
    "events": "the instrument: handshakes and events",
}
_BEGIN_NOISE, _END_NOISE = "<!-- noise: made by 'make bench-noise' -->", "<!-- end of noise -->"
_JUDGES = {
    "compare": "`connlab compare`: changed",
    "gate": "`connlab gate`, `WORSE_THAN=10%`: worse",
    "k6": "a threshold of k6, 1.1 times: one repetition",
    "k6_repeated": "the same: the median of a half",
    "hyperfine": "hyperfine's Welch t test, p < 0.05",
}
_TIMES = ("inspect_s", "tshark_s", "ratio")

Line = dict[str, Any]


def load() -> dict[str, Line]:
    """Read the newest line of each bench."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    return {line["bench"]: line for line in map(json.loads, lines)}


def keep(line: Line) -> None:
    """Put a bench's line in the place of its former one."""
    lines = load() | {line["bench"]: line}
    ordered = (lines[bench.name] for bench in BENCHES if bench.name in lines)
    RECORDS.write_text("".join(json.dumps(each) + "\n" for each in ordered), encoding="utf-8")


def table(lines: dict[str, Line]) -> Iterator[str]:
    """Say of each goal what was measured, and whether that meets it."""
    yield "| command | figure | goal | measured | met |"
    yield "|---|---|---|---|---|"
    for bench in BENCHES:
        line = lines.get(bench.name)
        for goal in bench.goals:
            command = f"`make bench-{bench.name}`"
            if line is None:
                yield f"| {command} | {goal.says} | {goal.wanted} | not yet | |"
                continue
            value = _figure(line, goal.figure)
            measured = "unknown" if value is None else goal.shown.format(value)
            met = "unknown" if value is None else "yes" if goal.met(value) else "no"
            remark = "" if line["quiet"] else " (busy machine)"
            yield f"| {command} | {goal.says} | {goal.wanted} | {measured}{remark} | {met} |"
    seen = {(line["when"], line["kernel"], line["cpus"]) for line in lines.values()}
    for when, kernel, cpus in sorted(seen):
        names = ", ".join(
            bench.name
            for bench in BENCHES
            if (line := lines.get(bench.name)) and (line["when"], line["kernel"], line["cpus"]) == (when, kernel, cpus)
        )
        yield ""
        yield f"Measured on {when}, with Linux {kernel} and {cpus} processors: {names}."


def _figure(line: Line, name: str) -> float | None:
    found: Any = line
    for key in name.split("."):
        found = found[key]
    return None if found is None else float(found)


def hour(line: Line | None) -> Iterator[str]:
    """Say how much memory each part had early and late in the run of an hour."""
    if line is None:
        yield "Not measured yet."
        return
    machine = f"Linux {line['kernel']} and {line['cpus']} processors"
    yield f"Measured on {line['when']}, with {machine}, in {line['minutes']} minutes."
    yield ""
    yield "| part | memory in the second sixth of the time, MiB | in the last sixth | growth |"
    yield "|---|---:|---:|---:|"
    for part, memory in line["memory"].items():
        early, late = memory["early_mb"], memory["late_mb"]
        yield f"| {part} | {early} | {late} | {(late - early) / early:+.1%} |"
    yield ""
    yield (
        f"The raw files took {line['raw_mb']:,} MB, the largest {line['largest_mb']:,} MB. No tick of a sampler was"
        f" further than {line['drift_ms']} ms from where it is due, and {line['gaps']} were missing."
    )


def captures(lines: dict[str, Line]) -> Iterator[str]:
    """Say of each capture what its right answer is, which of it each tool says, and what each takes."""
    measured = [lines[name] for name in ("inspect", "captures") if name in lines]
    yield "| capture | right answer | `inspect` says | tshark says | `inspect`, s | tshark, s | times as fast |"
    yield "|---|---|---|---|---:|---:|---:|"
    for row in (row for line in measured for row in line["rows"]):
        facts = row["facts"]
        says = (_part(facts, row[key]) for key in ("inspect_says", "tshark_says"))
        cells = (Path(row["capture"]).name, "; ".join(facts), *says, *(f"{row[key]:.2f}" for key in _TIMES))
        yield f"| {' | '.join(cells)} |"
    for line in measured:
        times = "the median of {} runs".format(line["repetitions"]) if line["repetitions"] > 1 else "that of one run"
        busy = "" if line["quiet"] else ", while other programs ran"
        yield ""
        yield (
            f"{line['captures']} captures of `make bench-{line['bench']}`, {line['facts']} facts: `inspect` says"
            f" {line['said_share']:.0%} of them, tshark {line['tshark_said_share']:.0%}. Each time is {times}{busy}."
        )


def _part(facts: list[str], said: list[str]) -> str:
    """Say how much of an answer is said, and what is not."""
    missing = [fact for fact in facts if fact not in said]
    return f"not: {'; '.join(missing)}" if missing else "all"


def loop(lines: dict[str, Line]) -> Iterator[str]:
    """Say what each kind of instrument costs beside none."""
    yield "| load | kind | requests/s | p99 | processor time of a request | its own programs, of one processor |"
    yield "|---|---|---:|---:|---:|---:|"
    measured = {
        load: lines[name]
        for name, load in (("loop", "new connections"), ("loop-kept", "kept connections"))
        if name in lines
    }
    for load, line in measured.items():
        for kind, says in _KINDS.items():
            found = line[kind]
            cells = [f"{found['per_second']:,}", f"{found['p99_ms']:.1f} ms", f"{found['cpu_us']:.0f} µs"]
            if kind != "off":
                changes = (-found["throughput_lost"], found["p99_gained"], found["cpu_gained"])
                cells = [f"{cell} ({change:+.1%})" for cell, change in zip(cells, changes, strict=True)]
            own = "" if kind == "off" else f"{found['own_share']:.1%}"
            yield f"| {load} | {says} | {' | '.join(cells)} | {own} |"
    for load, line in measured.items():
        busy = "" if line["quiet"] else ", while other programs ran"
        yield ""
        yield (
            f"With {load}: medians of {line['repetitions']} runs of each kind, in turn{busy}; in brackets the median"
            " change against the run without instrument in the same turn. The loop looked"
            f" {line['rounds_per_second']:g} times a second."
        )


def noise(line: Line | None) -> Iterator[str]:
    """Say how often each way to compare calls a difference where there is none, and where there is one."""
    if line is None:
        yield "Not measured yet."
        return
    few, many = line["repetitions"]
    yield (
        f"{line['arms']} figures of arms, {line['noisy']} of them noisy (a standard deviation above 5 % of the mean);"
        f" {few if few == many else f'{few} to {many}'} {line['source']} of each, dealt out {line['splits']} times:"
        f" {line['arms'] * line['splits']:,} comparisons."
    )
    yield ""
    yield f"| judge | calls noise a difference | the same, in noisy figures | finds times {line['planted']:g} |"
    yield "|---|---:|---:|---:|"
    for name, each in line["judges"].items():
        counts = (f"{each[key]:,} ({each[f'{key}_share']:.1%})" for key in ("called", "called_noisy", "found"))
        yield f"| {_JUDGES[name]} | {' | '.join(counts)} |"


def write() -> None:
    """Write each table between its two marks."""
    lines = load()
    for document, begin, end, made in (
        (DOCUMENT, _BEGIN, _END, table(lines)),
        (DOCUMENT, _BEGIN_CAPTURES, _END_CAPTURES, captures(lines)),
        (DOCUMENT, _BEGIN_LOOP, _END_LOOP, loop(lines)),
        (DOCUMENT, _BEGIN_NOISE, _END_NOISE, noise(lines.get("noise"))),
        (HOUR_DOCUMENT, _BEGIN, _END, hour(lines.get("hour"))),
    ):
        before, rest = document.read_text(encoding="utf-8").split(begin)
        after = rest.split(end)[1]
        document.write_text("\n".join((f"{before}{begin}", *made, f"{end}{after}")), encoding="utf-8")
