"""HAProxy's access log becomes the records that every proxy's log becomes."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analysis.evidence.logs import access, haproxy

LINE: dict[str, Any] = {
    "time_ms": 1_700_000_001_000, "accepted_ms": 1_700_000_000_000, "requests": 1, "client_address": "10.0.0.2",
    "client_port": 40_000, "frontend_address": "10.0.0.3", "method": "GET", "uri": "/api", "status": 200,
    "bytes_sent": 102, "request_ms": 1, "queue_ms": 300, "connect_ms": 2, "response_ms": 500, "active_ms": 804,
    "termination": "--", "retries": 0, "queued_before": 3, "server_address": "10.0.0.4", "server_port": 8080,
    "local_port": 50_000,
}  # fmt: skip
REFUSED = {"status": 503, "connect_ms": -1, "response_ms": -1, "termination": "SC"}


def record(tmp_path: Path, **changes: object) -> dict[str, Any]:
    file = tmp_path / "access.jsonl"
    file.write_text(json.dumps(LINE | changes) + "\n")
    result = duckdb.sql(f"SELECT * FROM {haproxy.ACCESS.records()}", params={"path": str(file)})  # noqa: S608  names of our own
    assert result is not None
    return dict(zip(result.columns, result.fetchall()[0], strict=True))


def test_the_wait_in_haproxy_is_before_the_try(tmp_path: Path) -> None:
    found = record(tmp_path)
    tried = {name: value for name, value in found.items() if name.startswith("upstream_") and value is not None}
    assert tried == {
        "upstream_addr": "10.0.0.4:8080",
        "upstream_status": "200",
        "upstream_connect_time": "0.002",
        "upstream_header_time": "0.502",
        "upstream_response_time": "0.503",
    }
    assert found["request_time"] == 0.804


@pytest.mark.parametrize(
    ("changes", "status", "tries", "statuses"),
    [
        (REFUSED, 503, "10.0.0.4:8080", "502"),
        (REFUSED | {"termination": "sC"}, 503, "10.0.0.4:8080", "504"),
        (REFUSED | {"retries": 1}, 503, "10.0.0.4:8080, 10.0.0.4:8080", "-, 502"),
        (REFUSED | {"termination": "sQ"}, 503, "", ""),
        (REFUSED | {"termination": "CH", "status": -1, "connect_ms": 1}, 499, "10.0.0.4:8080", "-"),
        ({"status": 504, "response_ms": -1, "termination": "sH"}, 504, "10.0.0.4:8080", "504"),
    ],
)
def test_the_termination_tells_what_became_of_each_try(
    tmp_path: Path, changes: dict[str, object], status: int, tries: str, statuses: str
) -> None:
    found = record(tmp_path, **changes)
    assert (found["status"], found["upstream_addr"], found["upstream_status"]) == (status, tries, statuses)


@pytest.mark.parametrize(
    ("changes", "connects", "times"),
    [
        ({"retries": 3, "connect_ms": 2855, "response_ms": 2700, "active_ms": 5856}, "-, -, -, 0.002",
         "0.951, 0.951, 0.951, 2.702"),
        (REFUSED | {"termination": "sC", "retries": 1, "active_ms": 2204}, "-, -", "0.951, 0.952"),
        (REFUSED | {"retries": 2, "active_ms": 2303}, "-, -, -", "1.001, 1.001, 0.000"),
    ],
)  # fmt: skip
def test_tries_in_vain_divide_the_time_before_the_last(
    tmp_path: Path, changes: dict[str, object], connects: str, times: str
) -> None:
    found = record(tmp_path, **changes)
    assert (found["upstream_connect_time"], found["upstream_response_time"]) == (connects, times)


def test_requests_of_one_connection_have_its_number(tmp_path: Path) -> None:
    first, second, other = (
        record(tmp_path, **changes)["connection"] for changes in ({}, {"requests": 2}, {"client_port": 40_001})
    )
    assert first == second != other


def test_a_sentence_of_haproxy_s_own_is_no_damage(tmp_path: Path) -> None:
    file = tmp_path / "access.jsonl"
    file.write_text(json.dumps(LINE) + "\nProxy traffic stopped (cumulated conns: FE: 5, BE: 0).\n")
    found = access.read(file, haproxy.ACCESS)
    assert (found.count, found.damage.bad_lines) == (1, 0)
    assert found.columns["begin_ms"].tolist() == [1_700_000_000_196]


def test_a_message_of_the_error_log_has_its_moment() -> None:
    found = haproxy.error(b"2025-11-21T07:26:40.123456+00:00 Connect() failed for backend servers: no free ports.")
    assert found is not None
    assert (found.time_us % 1_000_000, found.text) == (123_456, "Connect() failed for backend servers: no free ports.")
    assert haproxy.error(b"[WARNING]  (24) : Proxy traffic stopped (cumulated conns: FE: 60, BE: 0).") is None
