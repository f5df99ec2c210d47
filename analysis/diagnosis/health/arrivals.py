"""Examines whether users who were to come one after another did so where an accept queue was full.

The kernel looks for room in the queue when a SYN comes, and again when the handshake ends. If two handshakes are in
progress at once, the second may find room that the first is about to take, on another processor: the queue then holds
one more than its limit says. Or its last ACK is dropped. And if the users come faster than the program accepts, which
on a busy machine may stand still for longer than load.arrival_gap, the queue is full while the program has places left.
Each way the count may not be that of users who come one after another. It is if the next user takes the place.

And a client that is late to give up may send one SYN more than its timeout allows.

Users who poll come in a ramp, several in a millisecond. How many are in progress at once is no matter there; that the
server held more connections than it can is.

Users who poll keep their connections: whether k6 did so while others still asked for one, is examined too.
Go closes a connection that it would keep when it learns more than 50 ms late that its request was written
(net/http: maxWriteWaitBeforeConnReuse): a k6 that gets too little of the processors gives places away.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from analysis.database import literal, over_files, sql
from analysis.diagnosis.health import limits
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.diagnosis.model_settings import ModelNotApplicable, Settings, accept_capacity
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from analysis.expressions.values import is_number
from analysis.formatting import format_count

# The workloads whose users come one after another, if load.arrival_gap is not 0.
_IN_TURN = ("users", "tcp", "slow_clients")
# Their users hold their connections until they leave, whatever answer they get.
_IN_A_RAMP = ("long_polling",)
# The workloads whose users are all alike, so that it does not matter which of two takes a place.
_ALIKE = ("users", "tcp")


def examine_arrivals(raw: RawRun, window: Window | None) -> Report | None:
    """Report on handshakes that ended together as a queue became full; None where users are to come together."""
    workload, gap_ms = (raw.manifest.value_of(name) for name in ("load.workload", "load.arrival_gap"))
    in_turn = workload in _IN_TURN and is_number(gap_ms) and gap_ms != 0
    if window is None or not (in_turn or workload in _IN_A_RAMP):
        return None
    report = Report("arrivals")
    # Others, who are not on the path, are no users who were to come in turn, and take places all the same.
    on_path = [address for each in raw.manifest.addresses.values() for address in each]
    soon_us = limits.TAKEN_SOON_MS * 1000 if workload in _ALIKE else 0
    for instance, reduction in raw.reductions.items():
        # Where a link loses answers, a SYN that came again says nothing about a queue.
        if reduction.rows is None or _loses_answers(raw, instance):
            continue
        addresses = raw.manifest.addresses.get(instance, [])
        asked = {"start_us": window.start_us, "addresses": addresses, "clients": on_path}
        with _rows_with_acks(raw, instance, reduction.rows) as rows:
            said = (
                _out_of_turn(raw, instance, rows, asked, soon_us)
                if in_turn
                else _held_too_many(raw, instance, rows, asked)
            )
        if said:
            report.add(said, Evidence.LOAD)
    return report


@contextmanager
def _rows_with_acks(raw: RawRun, instance: str, rows: Path) -> Iterator[Path]:
    """Yield the connections of a capture; without packets of data, a handshake ends as the SYN-ACK leaves."""
    if not raw.captures[instance].handshakes_only:
        yield rows
        return
    with tempfile.TemporaryDirectory(prefix="connlab-") as scratch, over_files() as database:
        found = Path(scratch) / rows.name
        ends = "coalesce(handshake_ack_time_us, synack_times_us[1]) AS handshake_ack_time_us"
        query = f"SELECT * REPLACE ({ends}) FROM read_parquet($path, hive_partitioning = false)"  # noqa: S608  constant
        database.execute(f"COPY ({query}) TO '{found}' (FORMAT parquet)", {"path": literal(rows)})
        yield found


def _loses_answers(raw: RawRun, instance: str) -> bool:
    links = (each for each in raw.manifest.links if each.instance == instance)
    return any(each.use is None or each.use.lost > 0 for each in links)


def _out_of_turn(raw: RawRun, instance: str, rows: Path, asked: Mapping[str, object], soon_us: int) -> str | None:
    """Return which of an instance's captured connections did not come in its turn, as a sentence."""
    together = "users who were to come one after another came together"
    if pair := _first(rows, "taken_together", asked):
        return (
            f"{pair[0]}:{pair[1]} and {pair[2]}:{pair[3]} connected at the same moment as the last place of"
            f" {instance}'s accept queue was taken: {together}"
        )
    if alone := _first(rows, "acks_refused", asked):
        return (
            f"{alone[0]}:{alone[1]} had room in {instance}'s accept queue with its SYN and none with its last ACK"
            f" ({format_count(alone[2], 'such connection')}): {together}"
        )
    capacity = _capacity(raw, instance)
    if capacity and (early := _first(rows, "refused_early", {**asked, "capacity": capacity, "soon_us": soon_us})):
        return (
            f"{early[0]}:{early[1]} found {instance}'s accept queue full while only {early[2]} of"
            f" {capacity} connections were open: the program had not accepted those who came before"
        )
    if late := _gave_up_late(raw, instance, rows, asked):
        return (
            f"{late[0]}:{late[1]} sent another SYN to {instance} {late[2]:.0f} ms after its first, though its"
            " timeout was over: the client was late to give up"
        )
    return None


def _held_too_many(raw: RawRun, instance: str, rows: Path, asked: Mapping[str, object]) -> str | None:
    """Return with which of its captured connections an instance held more than it can, as a sentence."""
    capacity = _capacity(raw, instance)
    if not capacity or not (beyond := _first(rows, "held_too_many", {**asked, "capacity": capacity})):
        return None
    return (
        f"{beyond[0]}:{beyond[1]} was connection {beyond[2]} at {instance}, which holds {capacity}: two users connected"
        " at the same moment as the last place of its accept queue was taken"
    )


def _gave_up_late(raw: RawRun, instance: str, rows: Path, asked: Mapping[str, object]) -> tuple[Any, ...] | None:
    """Return the first connection that k6 still asked a server for after its connect timeout."""
    timeout_ms = raw.manifest.value_of("load.connect_timeout")
    beside_k6 = [each for role in raw.manifest.path[1:2] for each in raw.manifest.of_role(role)]
    if not is_number(timeout_ms) or instance not in beside_k6:
        return None
    return _first(rows, "gave_up_late", {**asked, "connect_timeout_us": timeout_ms * 1000})


def _capacity(raw: RawRun, instance: str) -> int | None:
    """Return how many connections a server holds; None where nothing says so, or the lab stopped it on purpose."""
    manifest = raw.manifest
    servers = manifest.of_role(manifest.origin or "")
    if instance not in servers or any(each.instance == instance for each in manifest.actions):
        return None
    try:
        return accept_capacity(Settings(manifest)) // len(servers)
    except ModelNotApplicable:
        return None


def _first(path: Path, found_by: str, asked: Mapping[str, object]) -> tuple[Any, ...] | None:
    """Return the first row that a query, named by its file, finds over the connections of a capture."""
    with over_files() as database:
        return database.execute(sql(__name__, found_by), {"path": literal(path), **asked}).fetchone()


def examine_kept_connections(raw: RawRun, window: Window | None) -> Report | None:
    """Report on the connections that k6 gave up; None where no capture tells, or users may close theirs."""
    if window is None or raw.manifest.value_of("load.workload") not in _IN_A_RAMP:
        return None
    servers = [each for role in raw.manifest.path[1:2] for each in raw.manifest.of_role(role)]
    reductions = [raw.reductions[each] for each in servers if each in raw.reductions]
    paths = [each.rows for each in reductions if each.rows is not None]
    if not paths:
        return None
    clients = [address for each in raw.manifest.clients for address in raw.manifest.addresses.get(each, [])]
    asked = {"start_us": window.start_us, "clients": clients}
    given_up = sum(count for path in paths for count in _first(path, "given_up", asked) or ())
    report = Report("connections", {"given_up": given_up})
    if given_up:
        report.add(
            f"k6 closed {format_count(given_up, 'connection')} that its users would have kept, while others asked for"
            " one: it got too little processor time",
            Evidence.LOAD,
        )
    return report
