"""A load that something else than k6 made: its connections by packets and kernel, its requests by its results."""

import csv
from pathlib import Path
from typing import Any

import pytest

from analysis import figures
from analysis.derivation import judge
from analysis.diagnosis.health.generator import own_words
from analysis.evidence import result_files
from analysis.evidence.rawrun import RawRun
from analysis.expressions.values import Unknown
from analysis.reports.stories.explanation import explain_request, format_explanation
from formats import manifest
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import MEASURE_S, OTHERS, SYNS_S, RunFolder, knob, make_capture
from tests.analysis.whole import made_by

JTL = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,bytes,URL,Latency,Connect\n"
XML = """<?xml version="1.0"?><testResults version="1.2">
<httpSample t="1003" lt="1002" ct="1" ts="1700000000123" s="true" lb="delay" rc="200" rm="" tn="users 1-1"/>
<sample t="3500" lt="0" ts="1700000000200" s="false" lb="delay" rc="Non HTTP response code: java.net.ConnectException"
 rm="Non HTTP response message: Connection refused" tn="users 1-2"/></testResults>"""
ROW = "1700000000123,1003,delay,200,,users 1-1,text,true,9,http://a/,1002,1\n"
ANSWERED = (1_700_000_000_123_000, 1_003_000, 200, None)
REFUSED = (1_700_000_000_200_000, 3_500_000, 0, "refused")
VEGETA = (
    '1700000000123456789,200,1003000000,0,5,"",aGk=,pay,0,GET,http://a/,""\n'
    '1700000000200000000,0,3500000000,0,0,"dial tcp 10.0.0.2:80: connect: connection refused",,pay,1,GET,http://a/,""\n'
)


@pytest.mark.parametrize(
    ("text", "of", "requests"),
    [
        (XML, "jmeter", [ANSWERED, REFUSED]),
        (JTL + ROW, "jmeter", [ANSWERED]),
        (VEGETA, "vegeta", [(1_700_000_000_123_456, *ANSWERED[1:]), REFUSED]),
    ],
)  # fmt: skip
def test_results_tell_of_each_request_and_of_connections_that_failed(
    tmp_path: Path, text: str, of: str, requests: list[Any]
) -> None:
    file = tmp_path / "results"
    file.write_text(text)
    longest = csv.field_size_limit()
    found, dials, damage = result_files.read(file, of, "10.0.0.2:80")
    assert csv.field_size_limit() == longest  # of all that this process reads
    kinds = {each["id"]: each["error_kind"] for each in dials}
    assert damage.messages("results") == []
    assert [
        (one["time_us"], one["end_us"] - one["time_us"], one["status"], kinds.get(one["dial"])) for one in found
    ] == requests


@pytest.mark.parametrize(("text", "of", "users"), [(JTL + ROW + ROW, "jmeter", 1), (VEGETA, "vegeta", 2)])
def test_requests_of_no_named_thread_are_not_of_one_user(tmp_path: Path, text: str, of: str, users: int) -> None:
    file = tmp_path / "results"
    file.write_text(text)
    found, _, _ = result_files.read(file, of, "10.0.0.2:80")
    assert len({one["vu"] for one in found}) == users


@pytest.mark.parametrize(
    ("row", "of", "waited"),
    [
        (JTL + "1700000000123,1003,delay,200,,t,text,true,9,http://a/,602,1\n", "jmeter", (601_000, 401_000)),
        (JTL + "1700000000123,1003,delay,Broken,Timed out,t,text,false,9,http://a/,0,1\n", "jmeter", (1_002_000, 0)),
        (JTL + "1700000000123,1003,delay,Broken,Premature end,t,text,false,9,http://a/,602,1\n", "jmeter",
         (601_000, 401_000)),
        (VEGETA.splitlines()[0] + "\n", "vegeta", (1_003_000, 0)),
    ],
)  # fmt: skip
def test_a_request_had_a_part_of_its_answer_only_if_its_first_byte_came(
    tmp_path: Path, row: str, of: str, waited: tuple[int, int]
) -> None:
    file = tmp_path / "results"
    file.write_text(row)
    ((found,), _, _) = result_files.read(file, of, None)
    assert (found["waiting_us"], found["receiving_us"]) == waited


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("HTTPConnectionPool(host='a', port=80): (<...>, 'Connection to a timed out. (connect timeout=3)')", "timeout"),
        ("HTTPConnectionPool(host='a', port=80): Read timed out. (read timeout=3)", None),
    ],
)
def test_urllib3_tells_a_connection_that_failed_from_an_answer_that_did(
    tmp_path: Path, said: str, kind: str | None
) -> None:
    file = tmp_path / "results"
    file.write_text(JTL + f'1700000000123,3000,pay,,"{said}",t,text,false,9,http://a/,,\n')
    _, (dial,), _ = result_files.read(file, "jmeter", "10.0.0.2:80")
    assert dial["error_kind"] == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, ["results: missing"]),
        (JTL + ROW + "now,1,a,200,,t,text,true,9,http://a/,1,1\n", ["results: 1 corrupt lines, the first is line 2"]),
        (XML[:-40], ["results: the last line is cut off"]),
    ],
)
def test_results_that_are_missing_or_damaged_say_so(tmp_path: Path, text: str | None, said: list[str]) -> None:
    file = tmp_path / "results"
    if text is not None:
        file.write_text(text)
    assert result_files.read(file, "jmeter", None)[2].messages("results") == said


def test_of_a_load_without_records_connections_have_causes_and_requests_are_unknown(run: RunFolder) -> None:
    found = judge(made_by("wrk", run).write())
    assert figures.value(found.run, "ledger.connections.backend.cause.accept_queue_drop") == OTHERS
    assert figures.value(found.run, "flows.backend.syn_failed") == OTHERS * len(SYNS_S)
    unknown = figures.value(found.run, "client.requests.failed")
    assert isinstance(unknown, Unknown)
    assert "wrk leaves no record of its requests" in unknown.why
    assert found.account.requests is None
    (hop,) = found.account.hops
    assert {one.id: one.holds for one in hop.identities}["drops-by-overflow"] == "true"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("ab: invalid URL\nUsage: ab [options]\n    -n requests\n", "ab: invalid URL"),
        ("Running 5s test\nTraceback:\n  File a.py\nOSError: no plan\n\n", "OSError: no plan"),
        ("Usage: wrk <options>\n  -c\n", "Usage: wrk <options>"),
        ("a\n" * 9000 + "the end\n", "the end"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_generator_s_own_words_say_why_it_ended(tmp_path: Path, said: str | None, words: str) -> None:
    if said is not None:
        (tmp_path / "container.log").write_text(said)
    assert own_words(tmp_path / "container.log") == words


def test_who_ended_a_generator_is_named(run: RunFolder) -> None:
    watched = made_by("ab", run)
    watched.manifest["exits"]["ab-1"] = 143
    (measured,) = [one for one in watched.manifest["phases"] if one["name"] == "measure"]
    lasted_ms = (measured["end_us"] - measured["start_us"]) // 1000
    for limit_ms, said in (
        (lasted_ms + 1, "ab ended with exit code 143"),
        (lasted_ms, "the lab ended ab at load.max_"),
    ):
        watched.manifest["knobs"]["load.max_duration"] = knob(limit_ms, "ms")
        problems = judge(watched.write()).run.health.problems
        assert any(said in one.message for one in problems if one.instrument == "ab/ab-1")


def asked(run: RunFolder, *, in_turns: bool = True) -> dict[str, Any]:
    """What is said of the requests of three connections: one asks twice, one has data again, one has no answer."""
    capture = Capture()
    one, two, three = (
        Connection(capture, f"172.18.0.3:{50_000 + number}", "172.18.0.2:8080", isn=1_000 * number)
        for number in (1, 2, 3)
    )
    one.handshake(MEASURE_S + 1).ask(MEASURE_S + 1.1).answer(MEASURE_S + 1.2).answer(MEASURE_S + 1.3)
    one.ask(MEASURE_S + 1.5).answer(MEASURE_S + 1.55).close_by_client(MEASURE_S + 1.6)
    two.handshake(MEASURE_S + 2).ask(MEASURE_S + 2.1)
    two.sent -= 120
    two.ask(MEASURE_S + 2.3).answer(MEASURE_S + 2.4).close_by_server(MEASURE_S + 2.5)
    three.handshake(MEASURE_S + 3).ask(MEASURE_S + 3.1).close_by_server(MEASURE_S + 3.5)
    run.captures = {"backend-1": capture}
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    found = judge(made_by("wrk", run, in_turns=in_turns).write()).run
    names = ("total", "unanswered", "of_connection.list")
    return {name: figures.value(found, f"flows.backend.requests.{name}") for name in names} | {
        "took": figures.value(found, "flows.backend.request_ms.list")
    }


def test_packets_tell_the_requests_of_a_client_that_asks_one_at_a_time(run: RunFolder) -> None:
    assert asked(run) == {
        "total": 4,
        "unanswered": 1,
        "of_connection.list": (1, 1, 2),
        "took": (50.0, 200.0, 300.0),
    }


def test_a_client_that_may_not_wait_for_its_answer_has_an_unknown_number_of_requests(run: RunFolder) -> None:
    found = asked(run, in_turns=False)["total"]
    assert isinstance(found, Unknown)
    assert "wrk may send a request before the answer to the last" in found.why


def test_two_pieces_before_an_answer_may_be_two_requests(run: RunFolder) -> None:
    capture = run.captures["backend-1"]
    piecemeal = Connection(capture, "172.18.0.3:51000", "172.18.0.2:8080").handshake(MEASURE_S + 1)
    piecemeal.ask(MEASURE_S + 1.1).ask(MEASURE_S + 1.2).answer(MEASURE_S + 1.3).close_by_client(MEASURE_S + 1.4)
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    found = figures.value(judge(made_by("wrk", run).write()).run, "flows.backend.requests.total")
    assert isinstance(found, Unknown)
    assert "had data in several pieces" in found.why


@pytest.mark.parametrize("late_ms", [0, 150])
def test_of_a_load_with_results_each_failed_request_has_the_connection_that_began_with_it(
    run: RunFolder, late_ms: int
) -> None:
    """A busy generator opens a connection long after the time that it notes."""
    dials = [dial for dial in run.clients["k6-1"].dials if dial.get("error_kind") == "timeout"]
    rows = [
        f"{dial['time_us'] // 1000 - late_ms},{dial['duration_us'] // 1000 + late_ms},delay,Non HTTP response code:"
        f" ConnectTimeout,connect timed out,users 1-{dial['id']},text,false,9,http://a/,0,0\n"
        for dial in dials
    ]
    watched = made_by("jmeter", run, {"results.jtl": "jmeter"})
    watched.texts["jmeter-1/results.jtl"] = JTL + "".join(rows)
    found = judge(watched.write())
    assert found.account.requests is not None
    assert found.account.requests.failed == len(dials)
    assert found.account.causes == {"accept-queue-drop": len(dials)}
    assert figures.value(found.run, "ledger.unexplained") == 0


@pytest.mark.parametrize(("late_s", "left_s"), [(0, 3), (0, None), (0.15, None)])
def test_an_answered_request_has_no_connection_without_an_answer(
    run: RunFolder, late_s: float, left_s: float | None
) -> None:
    """Two samples begin in one millisecond; that which was answered stands first, and its connection is the second."""
    capture, at = Capture(), MEASURE_S + 1 + late_s
    left, served = (
        Connection(capture, f"172.18.0.3:{50_000 + number}", "172.18.0.2:8080", isn=1_000 * number) for number in (1, 2)
    )
    left.handshake(at)
    served.handshake(at + 0.001).ask(at + 0.002)
    left.ask(at + 0.003)
    served.answer(at + 0.1).close_by_client(at + 0.2)
    if left_s is not None:
        left.close_by_client(at + left_s)
    run.captures = {"backend-1": capture}
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    watched = made_by("jmeter", run, {"results.jtl": "jmeter"})
    (measured,) = [one for one in watched.manifest["phases"] if one["name"] == "measure"]
    begin_ms = measured["start_us"] // 1000 + 1000
    watched.texts["jmeter-1/results.jtl"] = JTL + "".join(
        f"{begin_ms},{row},users 1-1,text,true,9,http://a/,1,1\n"
        for row in (
            "300,delay,200,",
            "3000,delay,Non HTTP response code: java.net.SocketTimeoutException,Read timed out",
        )
    )
    joined = judge(watched.write()).run.joined
    assert not isinstance(joined, Unknown)
    found = joined.rows("SELECT status, server_first_data_time_us FROM requests"
                        " JOIN dial_links USING (instance, dial)"
                        " JOIN connections ON connections.id = flow")  # fmt: skip
    assert {one["status"]: one["server_first_data_time_us"] is not None for one in found} == {200: True, 0: False}


def test_of_samples_that_began_together_the_answer_tells_which_connection_is_whose(run: RunFolder) -> None:
    """The first sample has the second connection; then it asks once more over that, and both dials took less than 1 ms.

    JMeter notes a Connect of 0 for both: for the new connection, and for the kept one.
    """
    capture, at = Capture(), MEASURE_S + 1
    early, late = (
        Connection(capture, f"172.18.0.3:{50_000 + number}", "172.18.0.2:8080", isn=1_000 * number) for number in (1, 2)
    )
    early.handshake(at).ask(at + 0.001)
    late.handshake(at + 0.0005).ask(at + 0.002)
    early.answer(at + 1).close_by_client(at + 1.1)
    late.answer(at + 2).ask(at + 3).answer(at + 4).close_by_client(at + 4.1)
    run.captures = {"backend-1": capture}
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    watched = made_by("jmeter", run, {"results.jtl": "jmeter"})
    (measured,) = [one for one in watched.manifest["phases"] if one["name"] == "measure"]
    began_ms = measured["start_us"] // 1000 + 1000
    watched.texts["jmeter-1/results.jtl"] = JTL + "".join(
        f"{began_ms + after},{took},delay,{code},,users 1-{user},text,{code == 200},9,http://a/,{took},0\n"
        for after, took, code, user in ((0, 2001, 503, 1), (0, 1001, 200, 2), (3000, 1001, 504, 1))
    )
    folder = watched.write()
    joined = judge(folder).run.joined
    assert not isinstance(joined, Unknown)
    found = joined.rows("SELECT requests.status, connections.client_port AS port FROM requests"
                        " LEFT JOIN dial_links USING (instance, dial)"
                        " LEFT JOIN connections ON connections.id = flow")  # fmt: skip
    assert {one["status"]: one["port"] for one in found} == {503: 50_002, 200: 50_001, 504: 50_002}
    story = "\n".join(format_explanation(explain_request(RawRun(folder, manifest.load_manifest(folder)), "jmeter-1/3")))
    assert "begins delay (user 1)" in story
    assert "reuses the connection of dial 1" in story
    assert "raw/jmeter-1/role/results.jtl: row 3" in story
    assert "requests.jsonl" not in story


def test_packets_tell_of_a_request_whose_results_name_no_more_than_its_timeout(run: RunFolder) -> None:
    """Its neighbour, which had an answer, began between it and its connection."""
    dials = [dial for dial in run.clients["k6-1"].dials if dial.get("error_kind") == "timeout"]
    said = '"Get ""http://a/"": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"'
    rows = [
        f"{1000 * dial['time_us']},0,{1000 * dial['duration_us']},0,0,{said},,pay,1,GET,http://a/,\n" for dial in dials
    ]
    rows += [f"{1000 * dial['time_us'] + 1000},200,9000000,0,0,,,pay,1,GET,http://a/,\n" for dial in dials]
    watched = made_by("vegeta", run, {"results.csv": "vegeta"})
    watched.texts["vegeta-1/results.csv"] = "".join(rows)
    found = judge(watched.write())
    assert found.account.causes == {"accept-queue-drop": len(dials)}
    assert figures.value(found.run, "client.requests.total") == 2 * len(dials)
