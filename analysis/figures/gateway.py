"""What the gateway says of its connections to the backends: its record of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from analysis.expressions.values import Kind, Unknown, Value
from analysis.figures.measured_run import Run
from analysis.figures.pattern import Compute, Figure
from analysis.health import Evidence

if TYPE_CHECKING:
    from analysis.evidence.window import Window

_ROLE = "gateway"
_DIALS_FILE = "gateway: dials.jsonl"
_DIALS = {Evidence.DIALS: "dials", Evidence.TIMES: ""}
_ACCESS = {Evidence.ACCESS: "access", Evidence.TIMES: ""}

# Figure → meaning, table, and the condition that counts its rows.
_COUNTS = {
    "connections.opened": ("Connections to the backends that were opened.", "dials", "error_kind IS NULL"),
    "connections.closed": ("Connections to the backends that were closed, by either side.", "closes", "true"),
    "connections.closed_by_peer": (
        "Those where the gateway read the backend's close before its own; the capture shows which side was first.",
        "closes",
        "error IS NOT NULL",
    ),
    "dials.total": ("Attempts to connect to a backend.", "dials", "true"),
    "dials.failed": ("Attempts that failed.", "dials", "error_kind IS NOT NULL"),
}


def _count(table: str, condition: str) -> Compute:
    """How many rows of a table of analysis.account.joins began in the window and meet a condition."""
    sql = f"""
        SELECT count(*) AS value FROM {table} JOIN instances USING (instance)
         WHERE role = '{_ROLE}' AND time_us BETWEEN $from_us AND $to_us AND {condition} AND $kind IS NOT NULL
    """  # noqa: S608  names of our own
    return _joined(sql, _DIALS)


def _joined(sql: str, evidence: dict[Evidence, str]) -> Compute:
    def compute(run: Run, found: Mapping[str, str]) -> Value:
        joined = run.joined
        if isinstance(joined, Unknown):
            return joined
        kind = found.get("kind", "").replace("_", "-")

        def count(window: Window) -> Value:
            return int(joined.row(sql, from_us=window.start_us, to_us=window.end_us, kind=kind)["value"])

        return run.resting_on(run.instances(_ROLE), evidence, count)

    return compute


# The gateway's access log has milliseconds, rounded down.
_REUSED = f"""
    SELECT count(*) AS value FROM tries JOIN instances USING (instance)
     WHERE role = '{_ROLE}' AND reused AND start_us BETWEEN $from_us // 1000 * 1000 AND $to_us AND $kind IS NOT NULL
"""  # noqa: S608  names of our own


def _figure(name: str, meaning: str, source: str, compute: Callable[[Run, Mapping[str, str]], Value]) -> Figure:
    return Figure(f"gateway.{name}", Kind.NUMBER, "", meaning, source, compute, of_role=_ROLE)


FIGURES: tuple[Figure, ...] = (
    *(
        _figure(name, meaning, _DIALS_FILE, _count(table, condition))
        for name, (meaning, table, condition) in _COUNTS.items()
    ),
    _figure(
        "dials.failed_<kind>",
        "Attempts that failed for this reason, as `client.dials.failed_<kind>`.",
        _DIALS_FILE,
        _count("dials", "error_kind = $kind"),
    ),
    _figure(
        "connections.reused",
        "Uses of a connection from the pool; one request may have several.",
        "gateway: access.jsonl",
        _joined(_REUSED, _ACCESS),
    ),
)
