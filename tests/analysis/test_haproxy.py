"""HAProxy's access log becomes the records that every proxy's log becomes."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from analysis.derivation import judge
from analysis.evidence import logs, scrapes
from analysis.evidence.records import Records
from formats.role import Role
from tests.analysis.joined import one_request
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import RunFolder, at_us, make_capture, make_dial, make_request, role

ROOT = Path(__file__).parents[2]
# As HAProxy wrote them in runs: an answer; one at the fourth try; a timeout at the second; a timeout in its queue; no
# port; a refusal at the second try; and the sentence when it stops.
RECORDED = Path(__file__).parent / "testdata" / "haproxy-access.jsonl"
# HAProxy 2.6, which does not write JSON by itself: an answer, no server that is up, and a refusal at both tries.
OLDER = Path(__file__).parent / "testdata" / "haproxy-2.6-access.jsonl"
STATS = Path(__file__).parent / "testdata" / "haproxy-stats.csv"

LINE: dict[str, Any] = {
    "time_ms": 1_700_000_001_000, "accepted_ms": 1_700_000_000_000, "requests": 1, "client_address": "10.0.0.2",
    "client_port": 40_000, "frontend_address": "10.0.0.3", "method": "GET", "uri": "/api", "status": 200,
    "bytes_sent": 102, "request_ms": 1, "queue_ms": 300, "connect_ms": 2, "response_ms": 500, "active_ms": 804,
    "termination": "--", "retries": 0, "queued_before": 3, "server_address": "10.0.0.4", "server_port": 8080,
    "local_port": 50_000,
}  # fmt: skip
REFUSED = {"status": 503, "connect_ms": -1, "response_ms": -1, "termination": "SC"}


def declared() -> Role:
    content = YAML(typ="safe", pure=True).load((ROOT / "haproxy" / "role.yaml").read_text())
    return Role.model_validate({"group": "haproxy"} | content)


def record(tmp_path: Path, **changes: object) -> dict[str, Any]:
    file = tmp_path / "access.jsonl"
    file.write_text(json.dumps(LINE | changes) + "\n")
    return records(file)[0]


def records(file: Path) -> list[dict[str, Any]]:
    result = duckdb.sql(logs.HAPROXY_ACCESS.lines(), params={"path": str(file), "fields": logs.HAPROXY_ACCESS.fields})
    assert result is not None
    return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]


def test_lines_of_a_haproxy_before_3_0_say_the_same() -> None:
    schema = json.loads((ROOT / "schemas" / "haproxy.schema.json").read_text())
    for line in OLDER.read_text().splitlines():
        Draft202012Validator(schema).validate(json.loads(line))
    answered, without_server, refused = records(OLDER)
    assert answered["request_uri"] == '/q?a="b"'
    assert (answered["upstream_addr"], answered["upstream_local_port"]) == ("127.0.0.1:9001", "51342")
    assert (without_server["upstream_addr"], without_server["gave_up"]) == ("", "no-server")
    assert refused["upstream_addr"] == "127.0.0.1:9, 127.0.0.1:9"
    assert [one["ssl_session_reused"] for one in (answered, without_server, refused)] == ["", "", ""]


def test_recorded_lines_are_as_the_schema_has_them() -> None:
    schema = json.loads((ROOT / "schemas" / "haproxy.schema.json").read_text())
    *lines, sentence = RECORDED.read_text().splitlines()
    for line in lines:
        Draft202012Validator(schema).validate(json.loads(line))
    assert sentence.startswith("Proxy traffic stopped")
    records = Records()
    records.load_access(RECORDED, "haproxy-1", logs.HAPROXY_ACCESS)
    assert records.access["haproxy-1"].damage.messages("access.jsonl") == []


def test_recorded_lines_tell_their_tries() -> None:
    found = [
        (each["upstream_status"], each["upstream_response_time"], each["gave_up"])
        for each in records(RECORDED)
        if each["status"] is not None
    ]
    assert found == [
        ("200", "2.707", None),
        ("-, -, -, 200", "0.951, 0.951, 0.951, 2.704", None),
        ("-, 504", "0.951, 0.952", None),
        ("", "", "queue-timeout"),
        ("502", "0.000", "no-port"),
        ("-, 502", "0.505, 0.000", None),
    ]


def test_a_recorded_page_of_statistics_has_every_declared_value() -> None:
    page = declared().scrape["haproxy"]
    (found,) = scrapes.values(page, [STATS.read_text()])
    assert found.keys() == page.values.keys()
    assert (found["clients"], found["requests"], found["queued"], found["in_flight"]) == (60, 60, 14, 24)


def test_a_connection_that_ends_without_a_request_counts_as_none() -> None:
    pages = ["# pxname,svname,req_tot,ereq\ntraffic,FRONTEND,62,2\n", "# pxname,svname,req_tot\ntraffic,FRONTEND,62\n"]
    assert scrapes.values(declared().scrape["haproxy"], pages) == [{"requests": 60}, {}]


@pytest.fixture
def through_haproxy(proxied_run: RunFolder) -> RunFolder:
    """One request through a proxy that logs as HAProxy does, answered with 503 after two seconds."""
    run = proxied_run
    run.manifest["roles"] = {
        "k6": role("client", "load"),
        "nginx": role("proxy", "nginx", logs={"access.jsonl": "haproxy-access"}),
        "backend": role("server", "backend"),
    }
    client = run.clients["k6-1"]
    local, remote = "172.18.0.3:41000", "172.18.0.4:8080"
    client.dials = [
        make_dial(1, failed=False, duration_ms=0.2) | {"time_us": at_us(54), "local": local, "remote": remote}
    ]
    client.requests = [
        make_request(1, 2000, 54) | {"end_us": at_us(56), "status": 503, "error_code": 1503, "remote": remote}
    ]
    del run.lines["nginx/stub_status.jsonl"]
    return run


def failed_for(run: RunFolder, capture: Capture, **changes: object) -> tuple[str, str]:
    Connection(capture, "172.18.0.3:41000", "172.18.0.4:8080").handshake(54).ask(54.001).answer(56)
    run.captures = {"nginx": capture}
    run.lines["nginx/capture.json"] = [make_capture(len(capture.packets))]
    run.lines["nginx/access.jsonl"] = [
        LINE | {"time_ms": at_us(56) // 1000, "accepted_ms": at_us(54) // 1000, "client_address": "172.18.0.3",
                "client_port": 41_000, "frontend_address": "172.18.0.4", "status": 503, "connect_ms": -1,
                "response_ms": -1, "server_address": "172.18.0.2"} | changes
    ]  # fmt: skip
    cause, evidence = one_request(run.write(), "cause", "evidence")
    return cause, evidence


def test_a_time_out_in_its_queue_is_a_cause(through_haproxy: RunFolder) -> None:
    waited = {"termination": "sQ", "queue_ms": 2000, "active_ms": 2000, "request_ms": 0, "local_port": "",
              "server_address": "", "server_port": ""}  # fmt: skip
    cause, evidence = failed_for(through_haproxy, Capture(), **waited)
    assert cause == "proxy-queue-timeout"
    assert evidence.endswith("after 2.000 s in the proxy's queue")


@pytest.mark.parametrize(("sent", "holds"), [(0, "true"), (107, "false")])
def test_an_error_of_no_bytes_was_never_an_answer(through_haproxy: RunFolder, sent: int, holds: str) -> None:
    run = through_haproxy
    failed_for(run, Capture())
    # HAProxy refused the stream of its first try, and the client asked again.
    run.lines["nginx/access.jsonl"].insert(0, run.lines["nginx/access.jsonl"][0] | {"bytes_sent": sent})
    run.manifest = json.loads(json.dumps(run.manifest).replace("nginx", "haproxy"))
    run.captures = {"haproxy": run.captures["nginx"]}
    for file in [name for name in run.lines if name.startswith("nginx")]:
        run.lines[file.replace("nginx", "haproxy")] = run.lines.pop(file)
    (answers,) = [one for one in judge(run.write()).account.hops[0].identities if one.id == "answers-5xx"]
    assert (answers.holds, answers.left.value) == (holds, 1)


REFUSING = [
    {"text": "http-request deny deny_status 429 if { path_beg /api }", "where": "haproxy.cfg:9"},
    {"text": "http-request deny", "where": "haproxy.cfg:10"},
    {"text": "http-request tarpit if { path_beg /slow }", "where": "haproxy.cfg:11"},
]


@pytest.mark.parametrize(
    ("termination", "status", "cause", "said"),
    [
        ("PR", 429, "refused-by-proxy", "; by haproxy.cfg:9: http-request deny deny_status 429"),
        ("PR", 403, "refused-by-proxy", "; by haproxy.cfg:10: http-request deny"),
        ("PT", 500, "refused-by-proxy", "; by haproxy.cfg:11: http-request tarpit"),
        ("SC", 503, "no-live-upstream", "status 503"),
    ],
)
def test_what_haproxy_answers_itself_is_its_own_word(
    through_haproxy: RunFolder, termination: str, status: int, cause: str, said: str
) -> None:
    through_haproxy.manifest["roles"]["nginx"]["rules"] = REFUSING
    through_haproxy.clients["k6-1"].requests[0] |= {"status": status, "error_code": 1000 + status}
    own = {"termination": termination, "status": status, "server_address": "", "server_port": "", "local_port": ""}
    found, evidence = failed_for(through_haproxy, Capture(), queue_ms=-1, **own)
    assert found == cause
    assert said in evidence


@pytest.mark.parametrize(
    ("ports", "local_port", "cause"),
    [
        ("50000 50001", "", "ephemeral-ports-exhausted"),
        ("50000 50002", "", "upstream-failed"),
        ("50000 50001", 50_002, "upstream-failed"),
    ],
)
def test_a_try_without_a_port_is_one_that_found_none(
    through_haproxy: RunFolder, ports: str, local_port: object, cause: str
) -> None:
    through_haproxy.manifest["sysctls"]["nginx"]["net.ipv4.ip_local_port_range"] = ports
    capture = Capture()
    for port in (50_000, 50_001):
        Connection(capture, f"172.18.0.4:{port}", "172.18.0.2:8080").handshake(53.5)
    refused = {"termination": "SC", "queue_ms": 0, "active_ms": 0, "request_ms": 0, "local_port": local_port}
    assert failed_for(through_haproxy, capture, **refused)[0] == cause


@pytest.mark.parametrize(
    ("ports", "cause"), [("50000 50001", "ephemeral-ports-exhausted"), ("50000 50002", "unexplained")]
)
def test_an_error_of_a_proxy_with_a_log_of_its_own_found_no_port_where_the_capture_has_none(
    through_haproxy: RunFolder, ports: str, cause: str
) -> None:
    run = through_haproxy
    fields = {"time": {"name": "at"}, "status": {"name": "status"}, "client": {"name": "peer"}}
    run.manifest["roles"]["nginx"]["logs"] = {
        "own.jsonl": {"fields": fields | {"duration": {"name": "s", "unit": "s"}}}
    }
    run.manifest["sysctls"]["nginx"]["net.ipv4.ip_local_port_range"] = ports
    capture = Capture()
    Connection(capture, "172.18.0.3:41000", "172.18.0.4:8080").handshake(54).ask(54.001).answer(56)
    for port in (50_000, 50_001):
        Connection(capture, f"172.18.0.4:{port}", "172.18.0.2:8080").handshake(53.5)
    run.captures = {"nginx": capture}
    run.lines["nginx/capture.json"] = [make_capture(len(capture.packets))]
    run.lines["nginx/own.jsonl"] = [{"at": at_us(56) / 1e6, "status": 503, "peer": "172.18.0.3:41000", "s": 2}]
    assert one_request(run.write(), "cause") == (cause,)


def test_the_wait_in_haproxy_is_before_the_try(tmp_path: Path) -> None:
    found = record(tmp_path)
    tried = {name: value for name, value in found.items() if name.startswith("upstream_") and value is not None}
    assert tried == {
        "upstream_addr": "10.0.0.4:8080",
        "upstream_status": "200",
        "upstream_connect_time": "0.002",
        "upstream_header_time": "0.502",
        "upstream_response_time": "0.503",
        "upstream_local_port": "50000",
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
    read = Records()
    read.load_access(file, "haproxy-1", logs.HAPROXY_ACCESS)
    found = read.access["haproxy-1"]
    assert (found.count, found.damage.bad_lines) == (1, 0)
    (line,) = read.rows("SELECT time_ms, request_time FROM access")
    assert line["time_ms"] - 1000 * line["request_time"] == 1_700_000_000_196


def test_a_message_of_the_error_log_has_its_moment() -> None:
    found = logs.read_haproxy_error(
        b"2025-11-21T07:26:40.123456+00:00 Connect() failed for backend servers: no free ports."
    )
    assert found is not None
    assert (found.time_us % 1_000_000, found.text) == (123_456, "Connect() failed for backend servers: no free ports.")
    assert logs.read_haproxy_error(b"[WARNING]  (24) : Proxy traffic stopped (cumulated conns: FE: 60, BE: 0).") is None
