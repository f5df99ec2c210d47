"""What each file of SQL makes of a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from analysis.database import sql
from analysis.health import arrivals

if TYPE_CHECKING:
    from pathlib import Path


def connection(port: int, server_port: int, begin_us: int, end_us: int | None) -> tuple[Any, ...]:
    return ("c", port, "s", server_port, begin_us, end_us, [begin_us], int(end_us is not None))


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_taken_together_gives_the_same_pair_whatever_the_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Three queues become full at one moment, each with two users beside its last place."""
    path = str(tmp_path / "flows.parquet")
    with duckdb.connect() as database:
        columns = "client_address VARCHAR, client_port BIGINT, server_address VARCHAR, server_port BIGINT,"
        times = "first_time_us BIGINT, handshake_ack_time_us BIGINT, syn_times_us BIGINT[], synack_count BIGINT"
        database.execute(f"CREATE TABLE flows ({columns} {times})")
        for number in order:
            rows = [connection(10 * number + nth, number, 10, 20) for nth in order]
            rows += [connection(100 + number, number, 15, 25), connection(200, number, 30, None)]
            database.executemany("INSERT INTO flows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.execute(f"COPY flows TO '{path}'")
        query = sql(arrivals.__name__, "taken_together")
        found = database.execute(query, {"path": path, "start_us": 0, "addresses": ["s"]}).fetchall()
    assert found == [("c", 101, "c", 11)]
