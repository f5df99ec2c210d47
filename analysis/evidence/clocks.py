"""The clocks of a run's machines, and what puts each of them on that of one.

Each packet that was seen at both ends of a hop, each dial and first request beside the connection's packets, and each
look of the lab at an instance's clock says that one thing came before another: that bounds the difference of the two
clocks. Each pair of machines that have such bounds both ways is fitted (analysis.evidence.clock_fit). From the machine
of the first server on the path, the narrowest fits lead to all others.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np

from analysis.database import Integers, composed, create, in_memory, insert_rows, literal, sql
from analysis.evidence import clock, jsonl, logs
from analysis.evidence.clock import Clock
from analysis.evidence.clock_fit import SAME, Bounds, Fit, fit
from analysis.evidence.flows import Reduction
from analysis.evidence.rawfiles import Places, descriptor_path
from analysis.evidence.samples import Samples
from formats.manifest import Manifest
from formats.safe_files import open_regular

# The machine on which the lab ran, where the instances ran elsewhere.
LAB = ""

# Where there are more connections than these, some of them suffice.
CONNECTIONS_MAX = 100_000

# A log in ms that is put on another clock loses a part of one more.
_ROUNDED_US = 1_000


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, and how its clock stands to the one that all times are put on.

    Attributes:
        name: as the engine has it; LAB for the lab's own.
        clock: its wall clock; None if nothing bounds the difference from both sides.
        along: the machines on the way to the one of the reference, that one last; empty for itself.
        fit: of its clock to that of the first of these; None as for `clock`, and for the reference.
        bounds: how many bounds that fit rests on.
    """

    name: str
    clock: Clock | None
    along: tuple[str, ...] = ()
    fit: Fit | None = None
    bounds: int = 0


@dataclass(frozen=True)
class Clocks:
    """The clocks of a run.

    Attributes:
        machines: by name, the reference first; none where all of a run is on one machine, with one clock.
        nodes: the machine of each instance, if there are several.
        one: the clock of a run that is on one machine.
    """

    machines: Mapping[str, Machine] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    one: Clock = clock.NEVER_SET

    def of(self, instance: str) -> Clock:
        """Return the clock that an instance's times are by."""
        return self._on(self.nodes.get(instance, LAB))

    def together(self, instances: Iterable[str]) -> dict[str, list[str]]:
        """Return the instances by the machines that they are on."""
        found: dict[str, list[str]] = defaultdict(list)
        for each in instances:
            found[self.nodes.get(each, LAB)].append(each)
        return dict(found)

    @property
    def lab(self) -> Clock:
        """The clock of the phases and actions."""
        return self._on(LAB)

    def _on(self, machine: str) -> Clock:
        found = self.machines.get(machine)
        return (found and found.clock) or self.one

    @property
    def all(self) -> list[Clock]:
        """Each clock of an instance, once."""
        names = dict.fromkeys(self.nodes.values())
        return [self._on(name) for name in names] if self.machines else [self.one]

    @property
    def reference(self) -> str:
        """The machine on whose clock all times are put."""
        return next(iter(self.machines), LAB)

    @cached_property
    def apart_us(self) -> int | None:
        """How far the times of two instances may be off against each other; 0 by one clock, None if nobody knows."""
        names = list(dict.fromkeys(self.nodes.values()))
        pairs = [self._between_us(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]
        known = [each for each in pairs if each is not None]
        if len(known) < len(pairs):
            return None
        return max(known) + _ROUNDED_US if known else 0

    @property
    def lab_apart_us(self) -> int | None:
        """How far an instance's time may be off against one of the lab; None if nobody knows."""
        if not self.machines or LAB in self.nodes.values():
            return 0
        found = [self._between_us(LAB, name) for name in dict.fromkeys(self.nodes.values())]
        known = [each for each in found if each is not None]
        return max(known) if len(known) == len(found) else None

    def residual_us(self, machine: str) -> int | None:
        """Return how far the times of a machine may be off against those of the reference; None if nobody knows."""
        return self._between_us(machine, self.reference)

    def _between_us(self, one: str, other: str) -> int | None:
        """Return what the fits on the way from one machine to another leave open, together."""
        legs = []
        for name in (one, other):
            found = self.machines[name]
            if found.clock is None:
                return None
            legs.append({name, *found.along})
        # Where both ways lead to the reference together, they say nothing of the two.
        return sum(of.residual_us for each in legs[0] ^ legs[1] if (of := self.machines[each].fit))


def find_clocks(
    manifest: Manifest,
    places: Places,
    sampled: Mapping[str, Samples],
    reductions: Callable[[], Mapping[str, Reduction]],
) -> Clocks:
    """Find out how the clocks of a run's machines stood to each other.

    Args:
        manifest: as written.
        places: where the raw files lie.
        sampled: what each instance's collector sampled, as read.
        reductions: gives what `flows` made of each capture, with times as captured.
    """
    nodes = {instance: manifest.nodes[instance] for instance in sampled if instance in manifest.nodes}
    if not nodes:
        return Clocks(one=clock.find_clock(sampled, manifest.phases))
    alone = {
        name: clock.find_clock({each: sampled[each] for each in nodes if nodes[each] == name}, manifest.phases)
        for name in dict.fromkeys(nodes.values())
    }
    alone.setdefault(LAB, clock.NEVER_SET)
    bounds = _bounds(manifest, places, nodes, reductions(), alone)
    return Clocks(_reached(manifest, nodes, alone, bounds), nodes)


# For each pair of machines, events that one saw before the other did: their times, by each machine's clock.
_Seen = dict[tuple[str, str], tuple["Integers", "Integers"]]


def _reached(
    manifest: Manifest, nodes: Mapping[str, str], alone: Mapping[str, Clock], seen: _Seen
) -> dict[str, Machine]:
    """Go from the machine of the first server to all others, to the nearest one first."""
    servers = manifest.of_role(manifest.path[1]) if len(manifest.path) > 1 else []
    reference = next((nodes[each] for each in servers if each in nodes), next(iter(alone)))
    found = {reference: Machine(reference, alone[reference])}
    fits = {(one, other): _fit(seen, one, other) for one in alone for other in alone if one != other}
    while True:
        open_us = {name: _open_us(found, name) for name in found}
        steps = [
            (open_us[near] + fitted.residual_us, far, near, fitted)
            for (far, near), fitted in fits.items()
            if far not in found and near in found and fitted is not None
        ]
        if not steps:
            break
        _, far, near, fitted = min(steps, key=lambda each: each[:3])
        nearer = found[near]
        rate = fitted.rate.then(nearer.clock.rate if nearer.clock else SAME)
        count = sum(len(seen[pair][0]) for pair in ((far, near), (near, far)))
        found[far] = Machine(far, replace(alone[far], rate=rate), (near, *nearer.along), fitted, count)
    return found | {name: Machine(name, None) for name in alone if name not in found}


def _open_us(machines: Mapping[str, Machine], name: str) -> int:
    """Return what the fits from a machine to the reference leave open, together."""
    return sum(of.residual_us for each in (name, *machines[name].along) if (of := machines[each].fit))


def _fit(seen: _Seen, far: str, near: str) -> Fit | None:
    """Fit one machine's clock to that of another."""
    if (far, near) not in seen or (near, far) not in seen:
        return None
    # What came at the near one after it had come at the far one was shown no earlier, on one clock.
    far_first, near_later = seen[far, near]
    near_first, far_later = seen[near, far]
    most, least = Bounds(far_first, near_later - far_first), Bounds(far_later, near_first - far_later)
    times_us = np.concatenate([far_first, far_later])
    return fit(least, most, int(times_us.min()), int(times_us.max()))


def _bounds(
    manifest: Manifest,
    places: Places,
    nodes: Mapping[str, str],
    reductions: Mapping[str, Reduction],
    alone: Mapping[str, Clock],
) -> _Seen:
    seen: dict[tuple[str, str], list[tuple[Integers, Integers]]] = defaultdict(list)
    with in_memory() as database:
        columns = {"instance": "VARCHAR", "machine": "VARCHAR", "address": "VARCHAR"}
        create(database, "instances", columns)
        rows = [(one, nodes[one], address) for one in nodes for address in manifest.addresses.get(one, [])]
        insert_rows(database, "instances", columns, rows)
        create(database, "events", _EVENTS)
        _add_events(database, manifest, places, reductions)
        for name, of_machine in alone.items():
            if of_machine.differs:
                changed = f"UPDATE events SET time_us = {of_machine.sql('time_us')} WHERE machine = ?"  # noqa: S608  numbers
                database.execute(changed, [name])
        found = database.execute(sql(__name__, "pairs")).fetchnumpy()
    for pair in {*zip(found["first"].tolist(), found["later"].tolist(), strict=True)}:
        of_pair = (found["first"] == pair[0]) & (found["later"] == pair[1])
        seen[pair].append((np.asarray(found["first_us"][of_pair]), np.asarray(found["later_us"][of_pair])))
    for look in manifest.clocks:
        machine = nodes.get(look.instance, LAB)
        if machine != LAB:
            shown_us = alone[machine].steady(look.shown_us)
            seen[LAB, machine].append(_pair(look.asked_us, shown_us))
            seen[machine, LAB].append(_pair(shown_us, look.told_us))
    return {pair: _joined(events) for pair, events in seen.items()}


def _add_events(
    database: duckdb.DuckDBPyConnection, manifest: Manifest, places: Places, reductions: Mapping[str, Reduction]
) -> None:
    """Add what captures, dials and requests have of connections; what has no machine is not an event."""
    rows = {instance: literal(of.rows) for instance, of in reductions.items() if of.rows is not None}
    counted = [
        database.execute("SELECT count(*) FROM read_parquet(?, hive_partitioning = false)", [path]).fetchall()[0][0]
        for path in rows.values()
    ]
    one_of = 1 + sum(counted) // CONNECTIONS_MAX
    for instance, path in rows.items():
        captured = {"instance": instance, "path": path, "one_of": one_of}
        database.execute(sql(__name__, "events_captured"), captured)
    dialled = composed(__name__, "dialled_both_ends", whole=jsonl.WHOLE_DIAL)
    of_dials = {"one_of": one_of, "fields": jsonl.HEADER | jsonl.DIALS}
    answered = composed(__name__, "answered", whole=jsonl.WHOLE_REQUEST)
    of_requests = {"fields": jsonl.HEADER | jsonl.REQUESTS}
    for instance, file, _ in manifest.logged(logs.DIALS):
        if _read(database, dialled, places.role(instance, file), **of_dials):
            database.execute(sql(__name__, "events_dialled"), {"instance": instance})
    for instance in manifest.of_role("k6"):
        if not _read(database, dialled, places.role(instance, "dials.jsonl"), **of_dials):
            continue
        database.execute(sql(__name__, "events_dialled"), {"instance": instance})
        if _read(database, answered, places.role(instance, "requests.jsonl"), **of_requests):
            database.execute(sql(__name__, "events_requested"), {"instance": instance})
    database.execute("DELETE FROM events WHERE machine IS NULL")


def _pair(first_us: int, later_us: int) -> tuple[Integers, Integers]:
    return np.array([first_us], dtype=np.int64), np.array([later_us], dtype=np.int64)


def _joined(events: Iterable[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    first, later = zip(*events, strict=True)
    return np.concatenate(first).astype(np.int64), np.concatenate(later).astype(np.int64)


# An event of a connection at one of its ends. `side`: whose end; `sender`: whose packet it is, or was.
_EVENTS = {
    "machine": "VARCHAR", "side": "VARCHAR", "client": "VARCHAR", "server": "VARCHAR", "isn": "BIGINT",
    "place": "BIGINT", "places": "BIGINT", "what": "VARCHAR", "sender": "VARCHAR", "time_us": "BIGINT",
}  # fmt: skip


def _read(database: duckdb.DuckDBPyConnection, query: str, path: Path, **parameters: object) -> bool:
    """Make a table of a file; what is missing bounds nothing, and makes none."""
    with suppress(OSError, duckdb.Error), open_regular(path) as file:
        database.execute(query, {**parameters, "path": descriptor_path(file)})
        return True
    return False
