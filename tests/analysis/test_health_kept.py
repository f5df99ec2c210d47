"""Whether k6 kept its users' connections: told by the packets, and only where somebody waited for a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.diagnosis.health import arrivals
from analysis.diagnosis.health.problems import Evidence
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from formats import manifest
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import MEASURE_S, SYNS_S, RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from analysis.diagnosis.health.problems import Report

CLIENT, SERVER = "172.18.0.3", "172.18.0.2:8080"


def served(capture: Capture, second: float, port: int = 41_001) -> Connection:
    """A user's connection that brought an answer 0.2 s after `second`, of the load's."""
    began = MEASURE_S + second
    return Connection(capture, f"{CLIENT}:{port}", SERVER).handshake(began).ask(began + 0.1).answer(began + 0.2)


def turned_away(capture: Capture) -> Connection:
    """Somebody who asks for a connection until 15 s after the load began."""
    return Connection(capture, f"{CLIENT}:49000", SERVER).syns(*(MEASURE_S + syn for syn in SYNS_S))


def closed_by_k6(capture: Capture) -> None:
    turned_away(capture)
    served(capture, 1).close_by_client(MEASURE_S + 3)


def closed_with_nobody_waiting(capture: Capture) -> None:
    served(capture, 1).close_by_client(MEASURE_S + 3)


def closed_after_the_last_try(capture: Capture) -> None:
    turned_away(capture)
    served(capture, 1).close_by_client(MEASURE_S + 16)


def closed_by_the_server(capture: Capture) -> None:
    turned_away(capture)
    served(capture, 1).close_by_server(MEASURE_S + 3)


def closed_without_an_answer(capture: Capture) -> None:
    turned_away(capture)
    served(capture, 1).ask(MEASURE_S + 2).close_by_client(MEASURE_S + 3)


def closed_before_the_load(capture: Capture) -> None:
    turned_away(capture)
    served(capture, -2).close_by_client(MEASURE_S + 1)


def closed_by_another(capture: Capture) -> None:
    turned_away(capture)
    began = MEASURE_S + 1
    Connection(capture, "172.18.0.9:41001", SERVER).handshake(began).ask(began + 0.1).answer(
        began + 0.2
    ).close_by_client(MEASURE_S + 3)


def examine(run: RunFolder) -> Report | None:
    raw = RawRun(run.write(), manifest.load_manifest(run.folder))
    assert isinstance(raw.window, Window)
    return arrivals.examine_kept_connections(raw, raw.window)


@pytest.mark.parametrize(
    ("packets", "given_up"),
    [
        (closed_by_k6, 1),
        (closed_with_nobody_waiting, 0),
        (closed_after_the_last_try, 0),
        (closed_by_the_server, 0),
        (closed_without_an_answer, 0),
        (closed_before_the_load, 0),
        (closed_by_another, 0),
    ],
)
def test_a_connection_that_k6_gave_up_leaves_the_load_in_doubt(
    run: RunFolder, packets: Callable[[Capture], None], given_up: int
) -> None:
    run.set_knobs(load__workload="long_polling")
    run.captures["backend-1"] = Capture()
    packets(run.captures["backend-1"])
    report = examine(run)
    assert report is not None
    assert report.figures == {"given_up": given_up}
    assert [problem.spoils for problem in report.problems] == [{Evidence.LOAD}] * given_up


def test_other_workloads_may_close_theirs(run: RunFolder) -> None:
    closed_by_k6(run.captures["backend-1"])
    assert examine(run) is None


def test_without_a_path_nobody_is_known_to_have_kept_them(run: RunFolder) -> None:
    run.set_knobs(load__workload="long_polling")
    # What was observed where it ran has none.
    run.manifest |= {"path": [], "observed": {"targets": [], "capture": "headers"}}
    assert examine(run) is None


def test_without_a_capture_nothing_is_known_of_it(run: RunFolder) -> None:
    run.set_knobs(load__workload="long_polling", capture__mode="off")
    run.captures.clear()
    assert examine(run) is None
