"""Why requests failed or were slow, in words and on which hop, and what to change: a knob, its value, the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from analysis import command_hints, formatting
from analysis.database import composed, sql
from analysis.diagnosis import causes, syn_ladder
from analysis.diagnosis.causes import UNEXPLAINED, Cause
from analysis.diagnosis.causes.answering import PROXY_FULL
from analysis.diagnosis.causes.cause import FIRST_HOP, LAST_HOP
from analysis.diagnosis.causes.remedies import NO_KNOB, AdvisedRun, more_places
from analysis.diagnosis.causes.waiting import served_at_once
from analysis.diagnosis.model_settings import ModelNotApplicable, Settings
from analysis.formatting import format_count, format_ms, format_races
from analysis.reports import chart_series
from analysis.reports.run_record import Record
from formats.manifest import Manifest
from formats.series import split_id


@dataclass(frozen=True)
class Reason:
    """Why `count` requests failed or were slow, and `failed` of these failed; `hop` has the two roles."""

    cause: Cause
    count: int
    failed: int
    because: str
    where: str
    hop: tuple[str, str]


def find_reasons(record: Record) -> list[Reason]:
    """Return the causes of a run, the main one first."""
    failed = record.ledger["failed_causes"]
    found = []
    for name, count in rank_causes(record.ledger["causes"], record.ledger["unexplained"], failed):
        cause = causes.cause_named(name)
        hop = _hop(record, cause)
        ends = {"client": name_role(record, hop[0]), "server": name_role(record, hop[1])}
        because, where = cause.because.format(**ends), cause.where.format(**ends)
        found.append(Reason(cause, count, failed.get(name, 0), because, where, hop))
    return found


def rank_causes(
    explained: Mapping[str, int], unexplained: int | None, failed: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Return each cause with its failed and slow requests: that of most failures first, then the most frequent one."""
    counts = {**explained, UNEXPLAINED.name: unexplained or 0}
    found = [(name, count) for name, count in counts.items() if count]
    return sorted(found, key=lambda item: (-failed.get(item[0], 0), -item[1], item[0]))


def name_role(record: Record, role: str) -> str:
    """Return a role within a sentence."""
    declared = record.manifest.roles.get(role)
    return (declared.display_name if declared else None) or f"the {role}"


def _hop(record: Record, cause: Cause) -> tuple[str, str]:
    """Return the roles of the hop on which most of a cause's requests were hurt."""
    if behind := record.manifest.behind:
        rows = record.rows(composed(__name__, "share_at_last_hop", at_last_hop="behind IS NOT NULL"), cause=cause.name)
        if (rows[0]["share"] or 0) > 0.5:  # noqa: PLR2004  most of them
            return behind
    path = record.manifest.request_path if len(record.manifest.path) > 1 else ["client", "server"]
    at_the_end = cause.hop == LAST_HOP
    proxied = len(path) > 2  # noqa: PLR2004  client, proxy, server
    if cause.hop not in (FIRST_HOP, LAST_HOP) and proxied and record.has("requests"):
        rows = record.rows(composed(__name__, "share_at_last_hop", at_last_hop=cause.hop), cause=cause.name)
        at_the_end = (rows[0]["share"] or 0) > 0.5  # noqa: PLR2004  most of them
    return (path[-2], path[-1]) if at_the_end else (path[0], path[1])


_WHOLE_SECONDS_FROM = 10


def too_late_sentence(record: Record, main: Reason) -> str | None:
    """Return how many clients failed though the accept queue had a free place; None if none did, or it is unknown."""
    if main.hop != tuple(record.manifest.path[:2]) or not all(map(record.has, ("requests", "flows", "timeline"))):
        return None
    timeout_ms = record.manifest.integer_of("load.connect_timeout")
    next_ms = None if timeout_ms is None else _next_syn_ms(record, timeout_ms)
    if timeout_ms is None or next_ms is None or record.start_us is None:
        return None
    queues = chart_series.queues_per_instance(record, main.hop[1])
    found = record.rows(sql(__name__, "too_late"), queues=queues, cause=main.cause.name)[0]
    if not found["count"]:
        return None
    since, first, last = (_second(record, found[name]) for name in ("since_us", "first_end_us", "last_end_us"))
    ends = f"{first} s" if first == last else f"{first} to {last} s"
    each, most = ("its", "") if found["count"] == 1 else ("each one's", "at most ")
    last_ms = found["last_us"] / 1000
    syns = f"last SYN had left {most}{format_ms(last_ms)} after its first" if last_ms else "only SYN had left"
    return (
        f"From {since} s on, the accept queue had a free place, but {format_count(found['count'], 'client')} failed"
        f" at {ends}: {each} {syns}, and the next was due {format_ms(next_ms)} after the first, too late for the"
        f" connect timeout of {format_ms(timeout_ms)}."
    )


def _second(record: Record, time_us: int) -> str:
    """Return a moment since the measurement began: to a tenth while that tells moments apart."""
    seconds = record.offset_s(time_us)
    return f"{seconds:.0f}" if seconds >= _WHOLE_SECONDS_FROM else f"{seconds:.1f}"


def _next_syn_ms(record: Record, timeout_ms: int) -> int | None:
    """Return when the first SYN would be due that the connect timeout forestalls; None if there is none."""
    try:
        ladder = syn_ladder.ladder_of_users(Settings(record.manifest))
    except ModelNotApplicable:
        return None
    return next((syn.earliest_ms for syn in ladder if syn.earliest_ms >= timeout_ms), None)


@dataclass(frozen=True)
class Advice:
    """What to change, and why.

    Attributes:
        cause: the run's main cause; None if every request was fine.
        count: the requests that have it; the connections, where the load has no record of requests.
        knob: what to set; None where no setting of the path would help.
        value: as a scenario writes it.
        why: how the value comes about, or what to do instead.
        command: the one command that tests it.
        besides: what has to be set with it, as knobs and values.
        choices: where more than one value helps, each with what it is for, the smallest first.
    """

    cause: str | None
    count: int
    why: str
    knob: str | None = None
    value: str | None = None
    command: str | None = None
    besides: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    counted: str = "request"


def advise_on_run(record: Record) -> Advice:
    """Return the advice on the main cause of a run, whose ledger has requests, or else the hops' connections."""
    if record.ledger["requests"] is None:
        return _advise_on_connections(record)
    main = next(iter(find_reasons(record)), None)
    if main is None:
        races = [one for hop in record.ledger["hops"] if (one := format_races(hop))]
        why = "no request failed or was slow, so nothing needs to change"
        if races:
            near = "; ".join(races)
            why = f"no request failed or was slow, but {near}: who connects must close idle connections first"
        return Advice(None, 0, why)
    return advise_on_cause(record.manifest, record.ledger, main.cause.name, main.count, main.hop)


def _advise_on_connections(record: Record) -> Advice:
    """Return the advice on the most frequent cause of connections that failed or were late."""
    hops = [hop for hop in record.ledger["hops"] if hop["connections"]]
    found = [
        (count, cause, (hop["from"], hop["to"]))
        for hop in hops
        for part in ("causes", "delayed")
        for cause, count in hop["connections"].get(part, {}).items()
    ]
    if not found:
        why = "no connection failed or was late, so nothing needs to change"
        return Advice(None, 0, why if hops else "nothing tells of connections", counted="connection")
    count, cause, hop = max(found, key=lambda each: each[0])
    advice = advise_on_cause(record.manifest, record.ledger, cause, count, hop)
    return replace(advice, counted="connection")


def advise_on_cause(
    manifest: Manifest,
    ledger: Mapping[str, Any],
    cause: str,
    count: int,
    hop: tuple[str, str] | None = None,
) -> Advice:
    """Return the advice on one cause. `count` requests have it, most of them on `hop`; the run must have requests."""
    remedy = causes.cause_named(cause).remedy
    if isinstance(remedy, str):
        return Advice(cause, count, remedy)
    settings = AdvisedRun(manifest, ledger, hop)
    try:
        found = remedy(settings)
    except KeyError as missing:
        bounds: list[str | None] = []
        if remedy is more_places:
            bounds = [settings.limit(settings.crowded, what) for what in ("connections", "backlog")]
        elif remedy is served_at_once:
            bounds = [settings.limit(settings.hop[1], "connections")]
        elif cause == PROXY_FULL:
            bounds = [settings.limit(settings.proxy, "process_connections")]
        return Advice(cause, count, _without(settings, str(missing.args[0]), bounds))
    if found is None:
        return Advice(cause, count, NO_KNOB)
    if isinstance(found, str):
        return Advice(cause, count, found)
    test = rerun_command(manifest, {found.knob: found.value, **found.besides})
    why = f"{found.why}; {test.instead}" if test.instead else found.why
    return Advice(cause, count, why, found.knob, found.value, test.command, found.besides, found.choices)


def _without(run: AdvisedRun, knob: str, bounds: Sequence[str | None]) -> str:
    """Return why there is no value where the manifest lacks a knob, as of a script, and which `bounds` to raise."""
    if run.manifest.value_of("load.workload") != "script" or not knob.startswith("load."):
        return f"the value depends on {knob}, which the run's manifest does not have"
    who = "the scenario's own script" if run.client == "k6" else run.client
    why = f"the value depends on the load, and the lab does not know how much load {who} makes"
    known = [each for each in bounds if each is not None and each in run.manifest.knobs]
    now = " and ".join(f"{each} = {run.shown(each)}" for each in known)
    return f"{why}; {now} {'bound' if len(known) > 1 else 'bounds'} the connections at once: try more" if now else why


_ALONE = "default"


@dataclass(frozen=True)
class Rerun:
    """The command that makes a run again, or None and what does it instead."""

    command: str | None
    instead: str | None = None


def rerun_command(manifest: Manifest, changes: Mapping[str, str] | None = None) -> Rerun:
    """Return the command that makes a run again, with knobs changed to values as a scenario writes them.

    Of an arm it runs that arm alone, and of a cell its scenario or, if need be, the matrix.
    """
    changed = dict(changes or {})
    # A scenario that is not one of the lab's own is called by its folder.
    folder, preset = manifest.folder, manifest.preset
    scenario = folder or manifest.scenario
    kind, name = split_id(manifest.series) if manifest.series else (None, "")
    for knob in changed:
        record = manifest.knobs.get(knob)
        if record and record.source == "file":
            where = " and ".join(record.where or []) or "it has no line there yet"
            return Rerun(None, f"the scenario's own configuration sets {knob}: change it there ({where})")
    if kind == "arms" or (kind is None and manifest.cell != _ALONE):
        named = {"preset": preset, "arm": manifest.cell}
        return Rerun(_command("run", ("SCENARIO", scenario), named, _sets(manifest, "set") | changed))
    if kind is None or manifest.by_set:
        return Rerun(
            _command("run", ("SCENARIO", scenario), {"preset": preset}, _sets(manifest, "set", "cell") | changed)
        )
    if kind == "search":
        return Rerun(
            None,
            f"{scenario} has arms, which a search does not run: set it in"
            f" {folder or f'scenarios/{scenario}'}/scenario.yaml",
        )
    fixed = changed.keys() & _sets(manifest, "cell").keys()
    if fixed:
        return Rerun(None, f"the matrix sets {min(fixed)} itself: change it in scenarios/matrices/{name}.yaml")
    return Rerun(_command("matrix", ("MATRIX", name), {}, _sets(manifest, "set") | changed))


def _sets(manifest: Manifest, *sources: str) -> dict[str, str]:
    return {name: formatting.format_knob(knob) for name, knob in manifest.knobs.items() if knob.source in sources}


def _command(verb: str, what: tuple[str, str], named: Mapping[str, str | None], sets: Mapping[str, str]) -> str:
    given = {name.upper(): value for name, value in named.items() if value}
    return command_hints.make_command(verb, dict([what]) | given, sets)
