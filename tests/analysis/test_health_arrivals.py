"""Whether users came one after another where it counts, and whether k6 kept their connections: by the packets."""

from collections.abc import Callable

import pytest

from analysis.diagnosis.health import arrivals
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from analysis.figures import Run
from analysis.verdicts.predictions import judge
from formats import manifest
from tests.analysis.packets import FIN, RST, SYN, Capture, Connection
from tests.analysis.support import MEASURE_S, SYNS_S, RunFolder, at_us, make_capture

CLIENT, SERVER = "172.18.0.3", "172.18.0.2:8080"


def connected(capture: Capture, second: float, port: int) -> Connection:
    """A user who connects so long after the load began; a handshake takes 0.1 ms."""
    return Connection(capture, f"{CLIENT}:{port}", SERVER).handshake(MEASURE_S + second)


def users(*seconds: float, away: float | None = None, later: float | None = None) -> Callable[[Capture], None]:
    """Users who connect at these times of the load, from port 41001 on.

    One more, of port 49000, is turned `away`; another, of port 49001, gets no answer to its first SYN and one `later`.
    """

    def packets(capture: Capture) -> None:
        for port, second in enumerate(seconds, start=41_001):
            connected(capture, second, port)
        if away is not None:
            Connection(capture, f"{CLIENT}:49000", SERVER).syns(*(MEASURE_S + away + syn for syn in SYNS_S))
        if later is not None:
            Connection(capture, f"{CLIENT}:49001", SERVER).syns(MEASURE_S + later).handshake(MEASURE_S + later + 1)

    return packets


together_at_the_last_place = users(0.01, 0.02, 0.02005, away=0.03)
one_after_another = users(0.01, 0.02, 0.0202, away=0.03)
together_with_places_left = users(0.01, 0.01005, 0.02, away=0.03)
together_with_nobody_turned_away = users(0.01, 0.02, 0.02005)
together_after_it = users(0.01, 0.011, 0.012, 20, 20.00005, away=0.02)
together_before_the_load = users(-0.5, -0.49995, -0.4, away=0.02)
together_and_one_waits = users(0.01, 0.02, 0.02005, later=0.03)
before_the_program_accepted = users(0.01, 0.02, away=0.03)
before_the_program_accepted_and_one_waits = users(0.01, 0.02, later=0.03)
before_the_program_accepted_and_the_next_comes_in = users(0.01, 0.02, 0.04, away=0.03)
before_the_program_accepted_and_somebody_comes_in_much_later = users(0.01, 0.02, 0.09, away=0.03)
before_the_program_accepted_and_both_come_in = users(0.01, 0.02, 0.04, later=0.03)
one_more_than_it_holds = users(0.01, 0.011, 0.012, 0.013, away=0.03)


def an_ack_that_met_a_full_queue(capture: Capture) -> None:
    users(0.01, away=0.03)(capture)
    connected(capture, 0.02, 41_002).answered_again(MEASURE_S + 1.02, MEASURE_S + 3.02)


def a_syn_that_was_answered_twice(capture: Capture) -> None:
    """The client had not seen the first answer: its SYN came twice."""
    waiting = Connection(capture, f"{CLIENT}:41002", SERVER).syns(MEASURE_S + 0.02)
    waiting.answered_again(MEASURE_S + 0.0201).handshake(MEASURE_S + 1.02)


def after_one_left(capture: Capture) -> None:
    connected(capture, 0.005, 41_000).close_by_server(MEASURE_S + 0.025)
    users(0.02, 0.021, away=0.03)(capture)


def at_a_port_where_nobody_listens(capture: Capture) -> None:
    connected(capture, 0.01, 41_001)
    Connection(capture, f"{CLIENT}:49000", SERVER).syns(MEASURE_S + 0.02).refused(MEASURE_S + 0.0201)


def a_client_that_gives_up_in_time(capture: Capture) -> None:
    turned_away_after(capture, 0.999)


def a_client_that_gives_up_late(capture: Capture) -> None:
    turned_away_after(capture, 1.0)


def turned_away_after(capture: Capture, second: float) -> None:
    """A user whose next SYN comes so long after the first; the places are taken."""
    users(0.01, 0.011, 0.012)(capture)
    Connection(capture, f"{CLIENT}:49000", SERVER).syns(MEASURE_S + 0.03, MEASURE_S + 0.03 + second)


def as_many_as_it_holds_at_a_time(capture: Capture) -> None:
    connected(capture, 0.005, 41_000).close_by_server(MEASURE_S + 0.013)
    users(0.012, 0.0135, 0.014, away=0.03)(capture)


def one_more_whose_ack_was_refused(capture: Capture) -> None:
    users(0.01, 0.011, 0.012)(capture)
    connected(capture, 0.013, 41_004).answered_again(MEASURE_S + 1.02)


def handshakes_alone(run: RunFolder) -> None:
    """Leave SYN, FIN and RST of the backend's packets, as `capture.mode=handshakes` does."""
    capture = run.captures["backend-1"]
    capture.packets = [(at, frame) for at, frame in capture.packets if frame[47] & (SYN | FIN | RST)]
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets)) | {"mode": "handshakes"}]


def raw_of(run: RunFolder) -> RawRun:
    return RawRun(run.write(), manifest.load_manifest(run.folder))


def examine(run: RunFolder) -> Report | None:
    raw = raw_of(run)
    assert isinstance(raw.window, Window)
    return arrivals.examine_arrivals(raw, raw.window)


def loads_in_doubt(run: RunFolder, packets: Callable[[Capture], None], times: int) -> list[str]:
    """Check how often the backend's packets leave the load in doubt; give what is told of each time."""
    run.captures["backend-1"] = Capture()
    packets(run.captures["backend-1"])
    report = examine(run)
    assert report is not None
    assert [problem.spoils for problem in report.problems] == [{Evidence.LOAD}] * times
    return [problem.message for problem in report.problems]


@pytest.mark.parametrize("workload", ["users", "tcp", "slow_clients"])
@pytest.mark.parametrize(
    ("packets", "found"),
    [
        (together_at_the_last_place, 1),
        (together_and_one_waits, 1),
        (one_after_another, 0),
        (together_with_places_left, 0),
        (together_with_nobody_turned_away, 0),
        (together_after_it, 0),
        (together_before_the_load, 0),
    ],
)
def test_users_who_take_the_last_place_together_leave_the_load_in_doubt(
    run: RunFolder, workload: str, packets: Callable[[Capture], None], found: int
) -> None:
    run.set_knobs(load__workload=workload)
    for message in loads_in_doubt(run, packets, found):
        assert f"{CLIENT}:41003 and {CLIENT}:41002 connected at the same moment" in message
        assert "backend-1's accept queue" in message


@pytest.mark.parametrize(
    "packets",
    [
        together_at_the_last_place,
        before_the_program_accepted,
        an_ack_that_met_a_full_queue,
        a_client_that_gives_up_late,
    ],
)
def test_clients_that_are_not_on_the_path_are_no_users_out_of_turn(
    run: RunFolder, packets: Callable[[Capture], None]
) -> None:
    run.set_knobs(load__connect_timeout=1000)
    loads_in_doubt(run, packets, 1)
    run.manifest["addresses"]["k6-1"] = ["172.18.0.9"]
    assert loads_in_doubt(run, packets, 0) == []


@pytest.mark.parametrize(("packets", "found"), [(an_ack_that_met_a_full_queue, 1), (a_syn_that_was_answered_twice, 0)])
def test_an_ack_that_met_a_full_queue_leaves_the_load_in_doubt(
    run: RunFolder, packets: Callable[[Capture], None], found: int
) -> None:
    for message in loads_in_doubt(run, packets, found):
        assert f"{CLIENT}:41002 had room in backend-1's accept queue with its SYN" in message


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        (before_the_program_accepted, ["49000", "only 2 of 3"]),
        (before_the_program_accepted_and_one_waits, ["49001", "only 2 of 3"]),
        (before_the_program_accepted_and_the_next_comes_in, []),
        (before_the_program_accepted_and_somebody_comes_in_much_later, ["49000", "only 2 of 3"]),
        (before_the_program_accepted_and_both_come_in, ["49001", "only 2 of 3"]),
        (after_one_left, ["49000", "only 2 of 3"]),
        (at_a_port_where_nobody_listens, []),
        (one_after_another, []),
    ],
)
def test_a_full_queue_before_a_late_program_leaves_the_load_in_doubt(
    run: RunFolder, packets: Callable[[Capture], None], found: list[str]
) -> None:
    for message in loads_in_doubt(run, packets, 1 if found else 0):
        assert all(text in message for text in [*found, "the program had not accepted those who came before"])


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        (one_after_another, []),
        (before_the_program_accepted, ["49000", "only 2 of 3"]),
        (an_ack_that_met_a_full_queue, ["41002 had room"]),
    ],
)
def test_a_capture_of_handshakes_alone_tells_the_same(
    run: RunFolder, packets: Callable[[Capture], None], found: list[str]
) -> None:
    run.captures["backend-1"] = Capture()
    packets(run.captures["backend-1"])
    handshakes_alone(run)
    report = examine(run)
    assert report is not None
    assert [all(text in problem.message for text in found) for problem in report.problems] == [True] * bool(found)


@pytest.mark.parametrize(
    ("packets", "found"),
    [(a_client_that_gives_up_in_time, 0), (a_client_that_gives_up_late, 1), (a_syn_that_was_answered_twice, 0)],
)
def test_a_client_that_is_late_to_give_up_leaves_the_load_in_doubt(
    run: RunFolder, packets: Callable[[Capture], None], found: int
) -> None:
    run.set_knobs(load__connect_timeout=1000)
    for message in loads_in_doubt(run, packets, found):
        assert f"{CLIENT}:49000 sent another SYN to backend-1 1000 ms after its first" in message


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        (one_more_than_it_holds, 1),
        (as_many_as_it_holds_at_a_time, 0),
        (one_more_whose_ack_was_refused, 0),
        (together_at_the_last_place, 0),
    ],
)
def test_users_in_a_ramp_may_come_together_unless_the_server_holds_more_than_it_can(
    run: RunFolder, packets: Callable[[Capture], None], found: int
) -> None:
    run.set_knobs(load__workload="long_polling")
    for message in loads_in_doubt(run, packets, found):
        assert f"{CLIENT}:41004 was connection 4 at backend-1, which holds 3" in message


def test_users_who_differ_do_not_take_each_other_s_place(run: RunFolder) -> None:
    run.set_knobs(load__workload="slow_clients")
    loads_in_doubt(run, before_the_program_accepted_and_the_next_comes_in, 1)


def test_a_program_that_the_lab_stops_may_be_late(run: RunFolder) -> None:
    paused = {"do": "pause", "instance": "backend-1", "at_ms": 0, "for_ms": 900, "exit_code": None, "down_us": None}
    run.manifest["actions"] = [paused | {"start_us": at_us(0), "end_us": at_us(0.9)}]
    loads_in_doubt(run, before_the_program_accepted, 0)


def test_a_syn_whose_answer_a_link_lost_met_no_full_queue(run: RunFolder) -> None:
    back = {"instance": "backend-1", "to": "k6", "way": "nfqueue", "asked": {}, "read_back": {}}
    run.manifest["links"] = [back | {"use": {"packets": 100, "lost": 1}}]
    loads_in_doubt(run, together_at_the_last_place, 0)


def test_users_who_are_to_come_together_may(run: RunFolder) -> None:
    run.captures["backend-1"] = Capture()
    together_at_the_last_place(run.captures["backend-1"])
    run.set_knobs(load__arrival_gap=0)
    assert examine(run) is None
    run.set_knobs(load__arrival_gap=10, load__workload="spike")
    assert examine(run) is None


def test_without_a_capture_nothing_is_known_of_it(run: RunFolder) -> None:
    run.set_knobs(capture__mode="off")
    run.captures.clear()
    report = examine(run)
    assert report is not None
    assert report.problems == []


def test_then_a_prediction_is_neither_borne_out_nor_refuted(run: RunFolder) -> None:
    expressions = {"kernel.backend.TcpExt.ListenOverflows >= 0": "true", "listen.backend.depth.max == 12345": "false"}
    sound = Run(raw_of(run))
    assert {expression: judge(sound, expression).status for expression in expressions} == expressions
    # A moment after the last of the run's own, whose handshake is still under way.
    connected(run.captures["backend-1"], 0.02015, 41_003)
    doubtful = Run(raw_of(run))
    found = [judge(doubtful, expression) for expression in expressions]
    assert [each.status for each in found] == ["unknown"] * 2
    assert all("came together" in str(each.why) for each in found)


def kept(
    closed_s: float | None = None, *, began_s: float = 1, waits: bool = True, then: str = "", client: str = CLIENT
) -> Callable[[Capture], None]:
    """A user's connection that had its answer, and that k6 closed at a time of the load; somebody waits for 15 s.

    `then`: what came in place of this, or before it.
    """

    def packets(capture: Capture) -> None:
        began = MEASURE_S + began_s
        user = Connection(capture, f"{client}:41001", SERVER).handshake(began).ask(began + 0.1).answer(began + 0.2)
        if waits:
            users(away=0)(capture)
        if then == "asks again":
            user.ask(MEASURE_S + 2)
        if closed_s is None:
            user.close_by_server(MEASURE_S + 3)
        else:
            user.close_by_client(MEASURE_S + closed_s)

    return packets


def examine_kept(run: RunFolder) -> Report | None:
    raw = raw_of(run)
    assert isinstance(raw.window, Window)
    return arrivals.examine_kept_connections(raw, raw.window)


@pytest.mark.parametrize(
    ("packets", "given_up"),
    [
        pytest.param(kept(3), 1, id="closed by k6"),
        pytest.param(kept(3, waits=False), 0, id="with nobody waiting"),
        pytest.param(kept(16), 0, id="after the last try"),
        pytest.param(kept(), 0, id="by the server"),
        pytest.param(kept(3, then="asks again"), 0, id="without an answer"),
        pytest.param(kept(1, began_s=-2), 0, id="before the load"),
        pytest.param(kept(3, client="172.18.0.9"), 0, id="by another"),
    ],
)
def test_a_connection_that_k6_gave_up_leaves_the_load_in_doubt(
    run: RunFolder, packets: Callable[[Capture], None], given_up: int
) -> None:
    run.set_knobs(load__workload="long_polling")
    run.captures["backend-1"] = Capture()
    packets(run.captures["backend-1"])
    report = examine_kept(run)
    assert report is not None
    assert report.figures == {"given_up": given_up}
    assert [problem.spoils for problem in report.problems] == [{Evidence.LOAD}] * given_up


def test_other_workloads_may_close_theirs(run: RunFolder) -> None:
    kept(3)(run.captures["backend-1"])
    assert examine_kept(run) is None


def test_without_a_path_or_a_capture_nobody_is_known_to_have_kept_them(run: RunFolder) -> None:
    run.set_knobs(load__workload="long_polling", capture__mode="off")
    run.captures.clear()
    assert examine_kept(run) is None
    # What was observed where it ran has no path.
    run.manifest |= {"path": [], "observed": {"targets": [], "capture": "headers"}}
    assert examine_kept(run) is None
