"""What the gateway says of its connections to the backends: its record of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from analysis.database import sql
from analysis.diagnosis.health import Evidence
from analysis.expressions.values import Kind, Unknown, Value
from analysis.figures.declaration import Compute, Figure
from analysis.figures.run import Run

if TYPE_CHECKING:
    from analysis.diagnosis.joins import Row
    from analysis.evidence.window import Window

_ROLE = "gateway"
_DIALS_FILE = "gateway: dials.jsonl"
_DIALS = {Evidence.DIALS: "dials", Evidence.TIMES: ""}
_ACCESS = {Evidence.ACCESS: "access", Evidence.TIMES: ""}

# Figure, a column of at_gateway.sql → its meaning.
_COUNTS = {
    "connections.opened": "Connections to the backends that were opened.",
    "connections.closed": "Connections to the backends that were closed, by either side.",
    "connections.closed_by_peer": (
        "Those where the gateway read the backend's close before its own; the capture shows which side was first."
    ),
    "dials.total": "Attempts to connect to a backend.",
    "dials.failed": "Attempts that failed.",
}


def _in_window(evidence: dict[Evidence, str], value: Callable[[Row, Mapping[str, str]], int]) -> Compute:
    """A value of what the gateway did in the window, the row of at_gateway.sql."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        joined = run.joined
        if isinstance(joined, Unknown):
            return joined

        def in_window(window: Window) -> Value:
            moments = {"start_us": window.start_us, "end_us": window.end_us}
            return value(joined.row(sql(__name__, "at_gateway"), role=_ROLE, **moments), found)

        return run.resting_on(run.instances(_ROLE), evidence, in_window)

    return compute


def _count(name: str, evidence: dict[Evidence, str] = _DIALS) -> Compute:
    return _in_window(evidence, lambda row, _: int(row[name.replace(".", "_")]))


def _figure(name: str, meaning: str, source: str, compute: Callable[[Run, Mapping[str, str]], Value]) -> Figure:
    return Figure(f"gateway.{name}", Kind.NUMBER, "", meaning, source, compute, of_role=_ROLE)


FIGURES: tuple[Figure, ...] = (
    *(_figure(name, meaning, _DIALS_FILE, _count(name)) for name, meaning in _COUNTS.items()),
    _figure(
        "dials.failed_<kind>",
        "Attempts that failed for this reason, as `client.dials.failed_<kind>`.",
        _DIALS_FILE,
        _in_window(_DIALS, lambda row, found: row["kinds"].get(found["kind"].replace("_", "-"), 0)),
    ),
    _figure(
        "connections.reused",
        "Uses of a connection from the pool; one request may have several.",
        "gateway: access.jsonl",
        _count("connections.reused", _ACCESS),
    ),
)
