"""Which changes of what was measured a prediction has to notice."""

import pytest

from analysis.expressions import parse
from analysis.expressions.values import Value, unknown
from tools.recording.mutation import changes, unmoved

VALUES: dict[str, Value] = {
    "client.requests.ok": 3,
    "client.requests.failed": 100,
    "client.requests.total": 103,
    "kernel.backend.TcpExt.ListenOverflows": 500,
    "flows.backend.syn_failed": 500,
    "sockets.k6.time_wait.end": 12,
    "sockets.nginx.time_wait.end": 0,
    "sockets.nginx.fin_wait2.max": 0.33,
    "client.latency_ms.max": 2_004.5,
    "client.latency_ms.list": (1_001.0, 1_002.0, 2_004.5),
    "gateway.connections.opened": 606,
    "load.users": 103,
}


def idle(text: str) -> list[int]:
    expression = parse(text)
    measured = [name for name in expression.names if not name.startswith("load.")]
    assert expression.evaluate(VALUES.__getitem__) is True
    return [part.column for part in unmoved(expression, VALUES, measured)]


@pytest.mark.parametrize(
    "text",
    [
        "client.requests.failed == 100",
        "client.requests.failed > 0 and kernel.backend.TcpExt.ListenOverflows == 5 * client.requests.failed",
        "flows.backend.syn_failed == kernel.backend.TcpExt.ListenOverflows",
        "sockets.k6.time_wait.end == 12 and sockets.nginx.time_wait.end == 0",
        "sockets.nginx.time_wait.end < 3",
        "client.latency_ms.max < 2500",
        "nth(client.latency_ms.list, 3) < 2500",
        "gateway.connections.opened > 400",
        "not client.requests.failed == 99",
        "client.requests.ok + client.requests.failed == load.users",
    ],
)
def test_a_prediction_that_says_something_notices(text: str) -> None:
    assert idle(text) == []


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("gateway.connections.opened > 100", [1]),
        ("sockets.nginx.fin_wait2.max <= 20", [1]),
        ("client.requests.failed == 100 and sockets.nginx.fin_wait2.max <= 20", [35]),
        ("client.requests.failed > 0", [1]),
        ("client.latency_ms.max < 9000", [1]),
        ("client.requests.failed == 100 or client.requests.failed < 1000", [1]),
    ],
)
def test_a_prediction_that_notices_nothing_is_listed(text: str, columns: list[int]) -> None:
    assert idle(text) == columns


def test_what_is_not_known_is_not_changed() -> None:
    assert all(not change for change in changes({"a.b.c": unknown("lost")}))


def test_one_request_with_another_outcome_changes_both_counts() -> None:
    assert {"client.requests.ok": 2, "client.requests.failed": 101} in list(
        changes({"client.requests.ok": 3, "client.requests.failed": 100})
    )
