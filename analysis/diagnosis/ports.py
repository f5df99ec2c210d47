"""The table `port_shortages`: what held the ports of a client, or of a proxy, when a dial or a try found none.

A client needs a port of its range for each connection to one server's address and port. A connection that the client
closed first holds its port for 60 s more, in TIME_WAIT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import create, make, sql
from analysis.evidence.logs.access_log import NO_PORT

if TYPE_CHECKING:
    import duckdb

    from analysis.evidence.manifest import Manifest

# TCP_TIMEWAIT_LEN (include/net/tcp.h).
TIME_WAIT_MS = 60_000

RANGE = "net.ipv4.ip_local_port_range"


def build(database: duckdb.DuckDBPyConnection, manifest: Manifest) -> None:
    """Make the table."""
    create(database, "port_ranges", {"instance": "VARCHAR", "ports": "BIGINT"})
    for instance in manifest.sysctls:
        ports = ports_of(manifest.sysctl(instance, RANGE))
        if ports is not None:
            database.execute("INSERT INTO port_ranges VALUES (?, ?)", [instance, ports])
    constants = {"time_wait_us": 1000 * TIME_WAIT_MS, "error_kind": _NO_PORT, "gave_up": NO_PORT}
    make(
        database,
        SHORTAGES,
        [f"dials WHERE error_kind = '{_NO_PORT}'", f"access WHERE gave_up = '{NO_PORT}'"],
        lambda: database.execute(sql(__name__, "port_shortages"), constants),
    )


def ports_of(text: str | None) -> int | None:
    """How many ports a range such as "32768	60999" has."""
    numbers = (text or "").split()
    if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):  # noqa: PLR2004  lowest and highest
        return None
    return int(numbers[1]) - int(numbers[0]) + 1


SHORTAGES = {
    "port_shortages": {
        "instance": "VARCHAR", "dial": "BIGINT", "line": "BIGINT", "held": "HUGEINT", "waiting": "HUGEINT",
        "ports": "BIGINT",
    },
}  # fmt: skip

# What is known about a dial that found no port.
_NO_PORT = "address-not-available"
