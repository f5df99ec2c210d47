"""What the lab does to a server within a run: evidence that ends with it is unknown, and causes name it."""

from typing import Any

import pytest

from analysis.derivation import analyse
from analysis.evidence.rawrun import RawRun
from analysis.reports import timelines
from analysis.reports.run_record import Record as ReportRecord
from analysis.reports.run_record import load_record as read_record
from analysis.reports.stories.explanation import explain_request
from formats import manifest
from tests.analysis.scenes import BEGIN_S, CLIENT, Scene, found, kinds, proxied, scene
from tests.analysis.support import MEASURE_S, RunFolder, at_us, make_access
from tests.analysis.test_causes import WAITS, busy, held_up, held_up_behind_a_proxy
from tests.analysis.test_figures import value, why

__all__ = ["found", "kinds", "proxied", "scene"]

# All in one process, as in test_causes.py.
pytestmark = pytest.mark.xdist_group("actions")

Record = dict[str, Any]


def act(run: RunFolder, do: str, instance: str, start_s: float, end_s: float, **more: object) -> None:
    action = {"do": do, "instance": instance, "at_ms": 0, "for_ms": None, "exit_code": None, "down_us": None}
    run.manifest["actions"] = [action | {"start_us": at_us(start_s), "end_us": at_us(end_s)} | more]


def test_a_listener_that_was_away_has_no_difference_and_its_absence_is_measured(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(30, 33):
        tick["listen"] = []

    assert value(run, "listen.backend.closed_ms") == 3000
    assert why(run, "listen.backend.drops") == "the listeners on port 8080 changed in the window"
    assert value(run, "listen.backend.limit") == 1


def test_a_listener_that_stayed_was_never_away(run: RunFolder) -> None:
    assert value(run, "listen.backend.closed_ms") == 0


def test_what_a_server_counted_ends_with_it(run: RunFolder) -> None:
    act(run, "restart", "backend-1", 30, 33, exit_code=143)
    assert "was ended by the lab, and what it had counted with it" in why(run, "tomcat.backend.requests")
    act(run, "pause", "backend-1", 30, 33)
    assert value(run, "tomcat.backend.requests") == 3


def test_the_model_does_not_foresee_what_an_action_leads_to(run: RunFolder) -> None:
    assert value(run, "model.users_failed") == 100
    act(run, "pause", "backend-1", 30, 33)
    assert "does not cover the lab's actions on backend-1" in why(run, "model.users_failed")


@pytest.mark.parametrize(("code", "spoils"), [(0, False), (137, True)])
def test_a_proxy_that_was_killed_may_have_kept_lines_to_itself(
    proxied_run: RunFolder, code: int, *, spoils: bool
) -> None:
    act(proxied_run, "restart", "nginx", 30, 33, down_us=at_us(31), exit_code=code)
    if spoils:
        assert "nginx ended with exit code 137" in why(proxied_run, "access.nginx.requests")
    else:
        assert value(proxied_run, "access.nginx.requests") == 4


@pytest.mark.parametrize(
    "impossible",
    [{"upstream_connect_time": "1e300"}, {"upstream_response_time": "1e300"}, {"connection": 2**63 - 1}],
)
def test_a_line_with_an_impossible_value_is_a_line_all_the_same(proxied_run: RunFolder, impossible: Record) -> None:
    act(proxied_run, "restart", "nginx", 30, 33, down_us=at_us(31), exit_code=0)
    for line in proxied_run.lines["nginx/access.jsonl"]:
        line.update(impossible)
    assert value(proxied_run, "access.nginx.requests") == 4
    assert value(proxied_run, "ledger.unexplained") == 0


def test_connections_that_nginx_numbers_anew_are_distinguished(proxied: Scene) -> None:
    # Before it was started again nginx gave the number 9 to another client's connection.
    act(proxied.run, "restart", "nginx", BEGIN_S - 3, BEGIN_S - 1, down_us=at_us(BEGIN_S - 2), exit_code=0)
    other = make_access(BEGIN_S - 2.5, 200) | {"connection": 9, "remote_port": 39_999, "request_time": 0.01}
    line = make_access(BEGIN_S + 2, 504) | {"connection": 9, "remote_port": 41_000, "request_time": 2}
    line |= {"upstream_status": "504", "upstream_header_time": "-", "upstream_response_time": "2.000"}
    proxied.run.lines["nginx/access.jsonl"] = [other, line]
    proxied.request(2, status=504)
    proxied.connection("172.18.0.2:8080", "172.18.0.4:50000").handshake(BEGIN_S + 0.0015)

    cause, evidence = proxied.cause()
    assert cause == "upstream-timeout"
    assert evidence.startswith("nginx line 2: status 504")


def test_a_request_that_a_paused_server_held(scene: Scene) -> None:
    act(scene.run, "pause", "backend-1", BEGIN_S + 0.1, BEGIN_S + 2.1)
    scene.dial()
    scene.request(2.2, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2.199)
    cause, evidence = scene.cause()

    assert cause == "server-paused"
    assert evidence == (
        "backend-1 was paused for 2.000 s of the 2.200 s that it took; the lab had begun to pause backend-1 at 44.100 s"
    )


def test_a_pause_is_not_the_handler_s_work(scene: Scene) -> None:
    act(scene.run, "pause", "backend-1", BEGIN_S + 0.1, BEGIN_S + 2.1)
    busy(scene, 1)
    scene.dial()
    scene.request(2.2, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2.199)

    assert scene.cause()[0] == "server-paused"


@pytest.mark.parametrize("wait", WAITS)
def test_who_waited_to_be_accepted_did_so_whatever_was_paused_meanwhile(scene: Scene, wait: str) -> None:
    act(scene.run, "pause", "backend-1", BEGIN_S - 0.1, BEGIN_S + 1.8)
    scene.dial()
    scene.request(1.8, status=200)
    held_up(scene, scene.connection(), wait, BEGIN_S).answer(BEGIN_S + 1.799)

    assert scene.cause()[0] == wait


@pytest.mark.parametrize("wait", WAITS)
def test_so_did_a_proxy_whose_backend_was_paused(proxied: Scene, wait: str) -> None:
    act(proxied.run, "pause", "backend-1", BEGIN_S - 0.1, BEGIN_S + 1.8)
    held_up_behind_a_proxy(proxied, wait, 1.8)

    assert proxied.cause()[0] == wait


def test_without_the_pause_the_same_request_is_unexplained(scene: Scene) -> None:
    scene.dial()
    scene.request(2.2, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2.199)

    assert scene.cause()[0] == "unexplained"


def test_a_refused_dial_s_evidence_names_the_restart(scene: Scene) -> None:
    act(scene.run, "restart", "backend-1", BEGIN_S - 1, BEGIN_S + 1)
    scene.dial(error_kind="refused")
    scene.request(0.0003, connected=False)
    scene.connection().refused(BEGIN_S + 0.0001)
    cause, evidence = scene.cause()

    assert cause == "connection-refused"
    assert evidence.endswith("; the lab had begun to restart backend-1 at 43.000 s")
    assert CLIENT in evidence


def test_a_story_tells_what_the_lab_did_meanwhile(run: RunFolder) -> None:
    scene = Scene(run)
    act(scene.run, "pause", "backend-1", BEGIN_S + 0.1, BEGIN_S + 2.1)
    scene.dial()
    scene.request(2.2, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2.199)
    folder = scene.run.write()
    analyse(folder)
    (account,) = explain_request(RawRun(folder, manifest.load_manifest(folder)), "k6-1/1").accounts
    told = [(event.time_us, event.text) for event in account.events if event.observer == "lab"]

    assert told == [
        (at_us(BEGIN_S + 0.1), "begins to pause backend-1"),
        (at_us(BEGIN_S + 2.1), "has resumed backend-1"),
    ]


def test_the_report_shades_what_the_lab_did(run: RunFolder) -> None:
    act(run, "pause", "backend-1", MEASURE_S + 5, MEASURE_S + 7.5)
    folder = run.write()
    analyse(folder)
    record: ReportRecord = read_record(folder)

    assert timelines.phase_spans(record)[-1] == {"name": "backend-1: pause", "from": 5.0, "to": 7.5}
