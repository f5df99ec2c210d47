"""What connections that a server refused, reset or closed prove, beside the listeners that dumps of its host show."""

from collections.abc import Iterator
from typing import Final

from analysis.database import sql
from analysis.diagnosis.observed import Observation
from analysis.diagnosis.observed.counters import Finding
from analysis.evidence.samples import Samples
from analysis.formatting import format_count

_SAYS: Final = {
    "reset": "A program does so that closes with unread data, aborts a connection, or dies; so does what stands between"
    " them.",
    "closed-unanswered": "The program itself closed them: its log, or a limit or timeout of its own, tells why. A full"
    " queue does not look so.",
}
_DONE: Final = {"refused": "were refused", "reset": "were reset by the server", "closed-unanswered": "were closed by"
                " the server without an answer"}  # fmt: skip


def find_endings(seen: Observation, instance: str, samples: Samples) -> Iterator[Finding]:
    """Yield what a capture proves of connections that the server's side ended, by server and outcome.

    Args:
        seen: the observation.
        instance: the host whose capture it is; the client's capture counts only where the server's has none.
        samples: what dumps of that host tell.
    """
    for row in seen.rows(sql(__name__, "endings"), observer=instance):
        count, outcome = row["connections"], row["outcome"]
        done = _DONE[outcome] if count > 1 else _DONE[outcome].replace("were", "was", 1)
        says = f"{format_count(count, 'connection')} to {row['server']} {done}. {_SAYS.get(outcome, '')}"
        if outcome == "refused":
            says += _of_listeners(samples if row["direction"] == "in" else None, row["port"])
        yield Finding(outcome, says, {"connections": count})


def _of_listeners(samples: Samples | None, port: int) -> str:
    """Return what dumps tell of a port that refused connections."""
    ticks = [tick for tick in samples.ticks if tick.listeners] if samples else []
    if not ticks:
        return "Nothing listened there, or a filter rejected them: `ss -ltnp` on that host tells which."
    if any(each.port == port for tick in ticks for each in tick.listeners):
        return "Dumps show a listener on this port: it listens on another address, began later, or a filter rejected."
    ports = ", ".join(map(str, sorted({each.port for tick in ticks for each in tick.listeners})))
    return f"Nothing listens on {port} in the dumps of this host, only on {ports}: the program is down, or elsewhere."
