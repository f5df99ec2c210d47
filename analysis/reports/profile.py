"""Where a run's processors and its time went: the share of each program under the load, and each step of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analysis.expressions.values import is_number
from analysis.reports.run_record import Record
from formats.manifest import declared_roles

_OTHER = "other: the kernel, the engine, the lab itself, services beside the path, other programs"


@dataclass(frozen=True)
class Shares:
    """Who had the processors under the load.

    Attributes:
        rows: who, and the share of all processors of the machine in percent, None if unknown; together they are 100.
        missing: why there are no rows; None where there are.
    """

    rows: list[tuple[str, float | None]] = field(default_factory=list)
    missing: str | None = None


def shares(record: Record) -> Shares:
    """Divide the processors among the programs of the path, their collectors, what was idle, and the rest."""
    if record.manifest.get("nodes"):
        return Shares(missing="the run was on a cluster, and how many processors its nodes have is not on record")
    cpus = record.manifest.get("host", {}).get("cpus")
    idle = record.verdict["health"].get("host", {}).get("figures", {}).get("cpu_idle_percent")
    if cpus is None or not is_number(idle):
        return Shares(missing="nothing says how busy the processors were under the load")

    def share(*figures: str) -> float | None:
        values = [record.figures.get(figure) for figure in figures]
        known = [value for value in values if is_number(value)]
        return sum(known) / cpus if known and len(known) == len(values) else None

    instruments = {"the collectors": "collector.", "tcpdump": "tcpdump."}
    rows = [
        *((_program(record, role), share(f"process.{role}.cpu_percent.mean")) for role in record.path),
        *(
            (name, share(*(f"process.{role}.{part}cpu_percent.mean" for role in record.path)))
            for name, part in instruments.items()
        ),
    ]
    # Each reading is of a moment of its own, so that all of them may come to a little more than there is.
    other = max(100 - idle - sum(value or 0 for _, value in rows), 0)
    return Shares([*rows, (_OTHER, other), ("idle", idle)])


def _program(record: Record, role: str) -> str:
    """A role, with the names of its processes where these are others."""
    declared = declared_roles(record.manifest).get(role)
    names = [name for name in declared.processes if name != role] if declared else []
    return f"{role} ({', '.join(names)})" if names else role


def steps(record: Record) -> list[dict[str, Any]]:
    """Each step of the run, how deep it lies within others, and its milliseconds; none if nobody asked for them."""
    return [
        {"depth": name.count("/"), "name": name.rpartition("/")[2], "ms": ms}
        for name, ms in (record.manifest.get("profile") or {}).items()
    ]
