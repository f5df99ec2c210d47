"""What the lab does to a server within a run: evidence that ends with it is unknown, and causes name it."""

from typing import Any

import pytest

from analysis.derivation import analyse
from analysis.evidence.rawrun import RawRun
from analysis.reports import links_and_shutdowns, run_charts, run_report
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
    assert "was ended by the lab, or reloaded, and what it had counted with it" in why(run, "tomcat.backend.requests")
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
        "backend-1 was paused for 2.000 s of the 2.200 s that it took; the lab had begun to pause backend-1 at"
        " 44.100 s, 100.0 ms after the request began"
    )


def test_a_pause_is_not_the_handler_s_work(scene: Scene) -> None:
    act(scene.run, "pause", "backend-1", BEGIN_S + 0.1, BEGIN_S + 2.1)
    busy(scene, 1)
    scene.dial()
    scene.request(2.2, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2.199)

    assert scene.cause()[0] == "server-paused"


@pytest.mark.parametrize(
    ("periods", "used_ms", "says"),
    [
        (19, 0, "throttled in 19 of 20 periods of 100 ms (nr_throttled)"),
        # It had a limit, and seldom used it up.
        (9, 1000, None),
        # Nobody could read what the kernel counted.
        (None, 96, "at its limit: its processes used 0.096 processors"),
        (None, 80, None),
    ],
)
def test_a_request_that_a_processor_limit_held(
    scene: Scene, periods: int | None, used_ms: int, says: str | None
) -> None:
    limit = {"cpus": 0.1, "throttled_periods": periods, "throttled_us": periods and 1_700_000}
    act(scene.run, "cpu", "backend-1", BEGIN_S + 0.1, BEGIN_S + 2.1, **limit)
    used = [reading for reading in scene.run.samples["backend-1"].slow if reading["kind"] == "processes"]
    for second, reading in enumerate(used):
        reading["processes"][0]["cpu_ms"] = used_ms * second
    scene.dial()
    scene.request(2.2, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2.199)
    cause, evidence = scene.cause()

    assert cause == ("cpu-throttled" if says else "unexplained")
    assert (
        f"backend-1: the limit held it for 2.000 s of the 2.200 s that the request took; it was {says}" in evidence
    ) == bool(says)


def test_a_limit_is_not_the_handler_s_work(scene: Scene) -> None:
    limit = {"cpus": 0.1, "throttled_periods": 19, "throttled_us": 1_700_000}
    act(scene.run, "cpu", "backend-1", BEGIN_S + 0.1, BEGIN_S + 2.1, **limit)
    busy(scene, 1)
    scene.dial()
    scene.request(2.2, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2.199)

    assert scene.cause()[0] == "cpu-throttled"


def test_a_client_that_a_limit_held_was_late_by_itself(scene: Scene) -> None:
    limit = {"cpus": 0.1, "throttled_periods": 19, "throttled_us": 1_700_000}
    act(scene.run, "cpu", "k6-1", BEGIN_S + 0.1, BEGIN_S + 2.1, **limit)
    # The server works for others meanwhile, and by its kept connection's packets it answers this one at once.
    busy(scene, 1)
    scene.dial()
    scene.request(2.2, status=200)
    kept = scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.9).answer(BEGIN_S + 0.902)
    kept.ask(BEGIN_S + 2.5).answer(BEGIN_S + 2.502)
    cause, evidence = scene.cause()

    assert cause == "generator-starved"
    assert evidence.startswith(
        "k6-1: the limit held it for 2.000 s of the 2.200 s that the request took; it was throttled in 19 of 20 periods"
    )


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


@pytest.mark.parametrize(
    ("do", "end_s", "says"),
    [
        ("restart", BEGIN_S + 1, "; the lab had begun to restart backend-1 at 43.000 s, 1.000 s before the request"),
        # Nothing has started it again.
        ("drain", BEGIN_S - 0.5, "; the lab had begun to drain backend-1 at 43.000 s, 1.000 s before the request"),
        ("cpu", BEGIN_S - 0.5, ""),
    ],
)
def test_a_refused_dial_s_evidence_names_what_ended_the_server(scene: Scene, do: str, end_s: float, says: str) -> None:
    act(scene.run, do, "backend-1", BEGIN_S - 1, end_s, cpus=0.5 if do == "cpu" else None)
    scene.dial(error_kind="refused")
    scene.request(0.0003, connected=False)
    scene.connection().refused(BEGIN_S + 0.0001)
    cause, evidence = scene.cause()

    assert cause == "connection-refused"
    assert evidence.endswith(says)
    assert ("the lab" in evidence) == bool(says)
    assert CLIENT in evidence


@pytest.mark.parametrize("is_back", [False, True])
def test_the_evidence_names_a_move_while_the_name_is_away(scene: Scene, *, is_back: bool) -> None:
    act(scene.run, "dns", "backend-9", BEGIN_S - 1, BEGIN_S - 0.9, name="api", was="backend-1")
    back = {"instance": "backend-1", "was": "backend-9", "at_ms": 1, "end_us": at_us(BEGIN_S - 0.4)}
    actions = scene.run.manifest["actions"]
    actions += [actions[0] | back] if is_back else []
    scene.dial(error_kind="refused")
    scene.request(0.0003, connected=False)
    scene.connection().refused(BEGIN_S + 0.0001)

    evidence = scene.cause()[1]
    assert ("; the lab had begun to move the name api from backend-1 to backend-9" in evidence) == (not is_back)
    assert ("1.000 s before the request" in evidence) == (not is_back)


@pytest.mark.parametrize("change", [{}, {"at_ms": 2000, "do": "start", "start_us": 1, "end_us": at_us(BEGIN_S - 0.2)}])
def test_what_an_end_lost_is_counted_until_the_server_serves_again(run: RunFolder, change: Record) -> None:
    scene = Scene(run)
    act(run, "drain", "backend-1", BEGIN_S - 1, BEGIN_S - 0.5, grace_ms=1000, exit_code=0)
    if change:
        run.manifest["actions"].append(run.manifest["actions"][0] | change)
    scene.dial(error_kind="refused")
    scene.request(0.0003, connected=False)
    scene.connection().refused(BEGIN_S + 0.0001)
    folder = run.write()
    analyse(folder)
    record = read_record(folder)
    (row, *_) = links_and_shutdowns.ending_rows(record)

    lost = 0 if change else 1
    assert row["name"] == "Drain of backend-1"
    assert row["lasted"] == "500.0 ms"
    assert (row["under_way_lost"], row["came"], row["came_lost"]) == (0, lost, lost)
    assert row["why"] == ["1 request: refused. Between k6 and backend-1, while connecting."][:lost]
    assert "shutdown.backend.came_lost" in record.figures
    assert "shutdown.k6.lost" not in record.figures
    assert "What orderly ends and reloads lost" in run_report.render_run(record)


def test_the_requests_of_an_end_are_figures(run: RunFolder) -> None:
    act(run, "restart", "backend-1", 30, 33, exit_code=143)
    assert value(run, "shutdown.backend.under_way") == 102
    assert value(run, "shutdown.backend.under_way_lost") == 100
    assert value(run, "shutdown.backend.came") == 0
    assert why(run, "shutdown.k6.lost") == "the lab ended and reloaded no instance of k6"


def test_a_link_stands_on_the_page_as_asked_and_as_measured(run: RunFolder) -> None:
    asked = {"delay": 25, "loss": 1.0, "loss_burst": 1, "forget_idle": 4000, "rate": 0}
    use = {"packets": 1200, "lost": 14}
    sends = {"instance": "k6-1", "to": "backend", "way": "nfqueue", "asked": asked, "read_back": asked, "use": use}
    back = sends | {"instance": "backend-1", "to": "k6", "asked": {"delay": 25}, "use": None}
    run.manifest["links"] = [sends, back]
    trip = {"sent": 1000, "received": 991, "min_us": 50_000, "p50_us": 50_210, "p99_us": 52_000, "max_us": 60_000}
    bounds = {"asked_ms": 50, "asked_loss_percent": 1, "loss_low_percent": 0.4, "loss_high_percent": 1.7}
    run.manifest["round_trips"] = [{"instance": "k6-1", "to": "backend-1"} | trip | bounds]
    folder = run.write()
    analyse(folder)
    record = read_record(folder)

    there, home = links_and_shutdowns.link_rows(record)
    assert there == {
        "from": "k6-1",
        "to": "backend",
        "delay": "25 ms",
        "loss": "1 %",
        "others": "forgets after 4000 ms without a packet",
        "way": "nfqueue",
        "round_trip": "50.21 ms",
        "echoes": "9 of 1,000",
        "lost": "14 of 1,200",
    }
    assert (home["round_trip"], home["lost"]) == ("50.21 ms", "unknown")
    assert "round trip measured" in run_report.render_run(record)


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

    assert run_charts.phase_spans(record)[-1] == {"name": "backend-1: pause", "from": 5.0, "to": 7.5}


def test_a_moved_name_is_shaded_by_its_name(run: RunFolder) -> None:
    act(run, "dns", "backend-2", MEASURE_S + 5, MEASURE_S + 5.1, name="api", was="backend-1")
    folder = run.write()
    analyse(folder)

    assert run_charts.phase_spans(read_record(folder))[-1]["name"] == "api: dns"


@pytest.mark.parametrize(("moved_s", "tries"), [(0, 5), (BEGIN_S, 0)])
def test_the_tries_of_a_proxy_are_counted_from_a_name_s_move_on(
    proxied_run: RunFolder, moved_s: float, tries: int
) -> None:
    act(proxied_run, "dns", "nginx", moved_s, moved_s, name="api", was="backend-1")
    assert value(proxied_run, "moved.nginx.to_old") == tries
    assert value(proxied_run, "moved.nginx.to_new") == 0


def test_without_a_move_its_figures_are_unknown(proxied_run: RunFolder) -> None:
    assert why(proxied_run, "moved.nginx.old_ms") == "the lab moved no name"
