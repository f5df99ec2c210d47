"""Finds what belongs together: a request's dial, its connection, its line at the proxy, and the proxy's connection.

Each link says how it was found; what cannot be told apart is not linked, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import has_rows, make, sql
from analysis.diagnosis.slack import CLOCK_SLACK_US, NGINX_TURN_US

if TYPE_CHECKING:
    import duckdb

# nginx stamps its lines to the millisecond, from a clock that it reads once in each turn of its event loop.
_NGINX_SLACK_US = 2_000
# How late it may notice that a server closed, or write its line, on a machine without a processor to spare.
_NGINX_LATE_US = 1_000_000
# Within this, only one connection may begin for its try to be told by time alone.
_ALONE_US = 5_000


def build(database: duckdb.DuckDBPyConnection, apart_us: int) -> None:
    """Make the tables `dial_links`, `sessions`, `request_links`, `tries` and `try_links`.

    Args:
        database: with the tables of the other modules of this package.
        apart_us: how far the times of two instances may be off against each other.
    """
    slack_us = CLOCK_SLACK_US + apart_us
    database.execute(sql(__name__, "addressed_dials"))
    database.execute(sql(__name__, "dials_of_unknown_port"))
    database.execute(sql(__name__, "dial_links_by_address"), {"slack_us": slack_us})
    if has_rows(database, "dials_of_unknown_port"):
        database.execute(sql(__name__, "dial_links_by_time"), {"slack_us": slack_us})
        database.execute(sql(__name__, "dial_links_by_group"), {"slack_us": slack_us})
    make(database, AT_THE_PROXY, ["access"], lambda: _link_proxy(database, apart_us))


def _link_proxy(database: duckdb.DuckDBPyConnection, apart_us: int) -> None:
    nginx_us, turn_us, late_us = (each + apart_us for each in (_NGINX_SLACK_US, NGINX_TURN_US, _NGINX_LATE_US))
    database.execute(sql(__name__, "sessions"), {"slack_us": CLOCK_SLACK_US + apart_us})
    database.execute(sql(__name__, "request_links"), {"slack_us": nginx_us, "late_us": late_us})
    database.execute(sql(__name__, "tries"))
    database.execute(sql(__name__, "try_links_by_dial"))
    database.execute(sql(__name__, "try_links_by_port"), {"slack_us": nginx_us, "turn_us": turn_us})
    database.execute(sql(__name__, "try_links_by_order"), {"slack_us": nginx_us, "turn_us": turn_us})
    database.execute(sql(__name__, "try_links_by_time"), {"slack_us": nginx_us, "alone_us": _ALONE_US + apart_us})
    database.execute(sql(__name__, "try_links_by_breach"), {"slack_us": nginx_us, "late_us": late_us})


# What a run has none of without lines of a proxy.
AT_THE_PROXY = {
    "sessions": {
        "instance": "VARCHAR", "connection": "BIGINT", "dial_instance": "VARCHAR", "dial": "BIGINT",
        "observer": "VARCHAR", "flow": "BIGINT",
    },
    "request_links": {
        "instance": "VARCHAR", "id": "BIGINT", "place": "BIGINT", "access_instance": "VARCHAR", "line": "BIGINT",
    },
    "tries": {
        "instance": "VARCHAR", "line": "BIGINT", "try": "BIGINT", "tries": "BIGINT", "server": "VARCHAR",
        "server_address": "VARCHAR", "server_port": "BIGINT", "status": "BIGINT", "connect_us": "BIGINT",
        "header_us": "BIGINT", "response_us": "BIGINT", "start_us": "BIGINT", "names_dial": "BOOLEAN",
        "dial": "BIGINT", "place": "BIGINT", "reused": "BOOLEAN", "local_port": "BIGINT",
    },
    "try_links": {
        "instance": "VARCHAR", "line": "BIGINT", "try": "BIGINT", "observer": "VARCHAR", "flow": "BIGINT",
        "how": "VARCHAR",
    },
}  # fmt: skip
