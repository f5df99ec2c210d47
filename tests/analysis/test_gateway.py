"""A run through the gateway: its own record of connections, joined with the capture and with its access log."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import duckdb
import pytest

from analysis.derivation import JudgedRun, analyse, judge
from analysis.figures import UnknownFigure, scope
from analysis.reports import run_charts, run_record
from tests.analysis.joined import one_request
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import (
    KNOBS,
    MEASURE_S,
    RunFolder,
    at_us,
    declared,
    make_access,
    make_capture,
    make_dial,
    make_request,
)

Record = dict[str, Any]

BACKEND, GATEWAY, CLIENT = "172.18.0.2:8080", "172.18.0.4:8080", "172.18.0.3:41000"
BEGIN_S = 54.0


@pytest.fixture
def run(proxied_run: RunFolder) -> RunFolder:
    """One request over the gateway, which went over a connection of the pool: nothing is wrong."""
    run = proxied_run
    manifest = run.manifest
    manifest["path"] = ["k6", "gateway", "backend"]
    manifest["slow_ms"] = 1_000
    for part in ("instances", "sysctls", "exits"):
        manifest[part]["gateway"] = deepcopy(manifest[part].pop("nginx"))
    manifest["instances"]["gateway"] = ["gateway"]
    manifest["addresses"]["gateway"] = ["172.18.0.4"]
    manifest["sysctls"]["gateway"]["net.ipv4.ip_local_port_range"] = "50001\t50002"
    run.samples["gateway"] = run.samples.pop("nginx")
    run.samples["gateway"].name("gateway")
    for name in [name for name in run.lines if name.startswith("nginx/")]:
        del run.lines[name]
    run.lines["gateway/gateway.jsonl"] = [
        {"time_us": at_us(second), "status": 200, "body": state(open_=3 if second == 54 else 2)}
        for second in range(1, 64)
    ]
    run.texts["gateway/error.log"] = ""
    run.set_knobs(load__users=1)
    client = run.clients["k6-1"]
    client.requests = [make_request(1, 10, BEGIN_S) | {"remote": GATEWAY}]
    client.dials = [make_dial(1, failed=False, duration_ms=0.2) | here(CLIENT, GATEWAY)]
    run.captures = {"gateway": Capture()}
    Connection(run.captures["gateway"], CLIENT, GATEWAY).handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.009)
    # The pool's first connection was made for an earlier request, and its second one for none.
    upstream("172.18.0.4:50001", run).handshake(MEASURE_S + 1)
    upstream("172.18.0.4:50002", run).handshake(MEASURE_S + 2).close_by_client(BEGIN_S - 1)
    run.lines["gateway/dials.jsonl"] = dials(
        dial(1, MEASURE_S + 1, "172.18.0.4:50001"), dial(2, MEASURE_S + 2, "172.18.0.4:50002"), closed(2, BEGIN_S - 1)
    )
    run.lines["gateway/access.jsonl"] = [
        line(200, 0.010, upstream_connection="1", upstream_connection_requests="2", upstream_reused="true")
    ]
    return run


def here(local: str, remote: str) -> Record:
    return {"time_us": at_us(BEGIN_S), "local": local, "remote": remote}


def upstream(client: str, run: RunFolder) -> Connection:
    return Connection(run.captures["gateway"], client, BACKEND)


def state(open_: int) -> Record:
    return {
        "connections": {"open": open_, "idle": 1, "opened": 2, "reused": 1, "closed": 1, "closedByPeer": 0},
        "dials": {"underWay": 0, "failed": {}},
        "requests": {"inFlight": 1, "waiting": 0, "served": 1},
    }


def dial(number: int, second: float, local: str | None, error_kind: str | None = None) -> Record:
    made = make_dial(number, failed=error_kind is not None, duration_ms=0.2)
    return made | {"vu": None, "time_us": at_us(second), "local": local, "remote": BACKEND, "error_kind": error_kind}


def closed(number: int, second: float) -> Record:
    made = {"kind": "close", "id": number, "time_us": at_us(second)}
    return made | {"bytes_sent": 1, "bytes_received": 1, "error": None}


def dials(*records: Record) -> list[Record]:
    header = {"kind": "header", "schema": "connlab.dials/1", "instance": "gateway", "time_us": at_us(0)}
    count = sum(record["kind"] == "dial" for record in records)
    failed = sum(record.get("error_kind") is not None for record in records)
    return [header, *records, {"kind": "end", "time_us": at_us(63), "dials": count, "failed": failed}]


def line(status: int, took_s: float, **changes: object) -> Record:
    own = {"connection": 9, "remote_port": 41_000, "request_time": took_s, "upstream_local_addr": "172.18.0.4:50001"}
    times = {f"upstream_{stage}_time": f"{took_s:.3f}" for stage in ("header", "response")}
    return make_access(BEGIN_S + took_s, status) | own | times | changes


def judged(run: RunFolder, *expressions: str) -> JudgedRun:
    run.lines["gateway/capture.json"] = [make_capture(len(run.captures["gateway"].packets))]
    run.predict(*expressions)
    return judge(run.write())


def statuses(run: RunFolder, *expressions: str) -> list[str]:
    return [each.status for each in judged(run, *expressions).predictions]


def request_of(run: RunFolder, columns: str) -> tuple[Any, ...]:
    run.lines["gateway/capture.json"] = [make_capture(len(run.captures["gateway"].packets))]
    return one_request(run.write(), columns)


def test_the_pool_s_connections_are_counted(run: RunFolder) -> None:
    expected = (
        "gateway.connections.opened == 2",
        "gateway.connections.closed == 1 and gateway.connections.closed_by_peer == 0",
        "gateway.connections.reused == 1",
        "gateway.connections.open.max == 3 and gateway.connections.idle.max == 1",
        "model.ports.gateway == 2",
        "gateway.dials.total == 2 and gateway.dials.failed == 0 and gateway.dials.failed_timeout == 0",
        "gateway.requests.in_flight.max == 1 and gateway.requests.waiting.max == 0",
        "access.gateway.requests == 1 and access.gateway.status.2xx == 1 and access.gateway.tries.total == 1",
    )
    assert statuses(run, *expected) == ["true"] * len(expected)
    analyse(run.folder)
    assert duckdb.read_parquet(str(run.folder / "derived" / "readings.parquet")).filter(
        "name = 'gateway.connections.open' AND value = 3"
    ).project("time_us").fetchall() == [(at_us(54),)]


def dialled(run: RunFolder, error_kind: str) -> None:
    """One more dial of the gateway, which failed."""
    run.lines["gateway/dials.jsonl"].insert(-1, dial(3, BEGIN_S + 0.002, None, error_kind))
    run.lines["gateway/dials.jsonl"][-1] |= {"dials": 3, "failed": 1}


IDENTITIES = ("connections-opened", "dials-unanswered", "dials-refused", "dials-without-port")


@pytest.mark.parametrize(
    ("error_kind", "made", "ports", "false"),
    [
        (None, None, 2, None),
        (None, lambda one: one.handshake(BEGIN_S), 2, "connections-opened"),
        ("reset", None, 2, "connections-opened"),
        ("reset", lambda one: one.handshake(BEGIN_S), 2, None),
        ("timeout", None, 2, "dials-unanswered"),
        (None, lambda one: one.syns(BEGIN_S), 2, "dials-unanswered"),
        ("canceled", lambda one: one.syns(BEGIN_S), 2, None),
        ("refused", None, 2, "dials-refused"),
        (None, lambda one: one.refused(BEGIN_S), 2, "dials-refused"),
        ("address-not-available", None, 2, None),
        ("address-not-available", None, 3, "dials-without-port"),
    ],
)
def test_what_the_gateway_and_the_capture_count_differently_is_false(
    run: RunFolder,
    error_kind: str | None,
    made: Callable[[Connection], object] | None,
    ports: int,
    false: str | None,
) -> None:
    """One more dial, one more connection, or both."""
    run.manifest["sysctls"]["gateway"]["net.ipv4.ip_local_port_range"] = f"50001\t{50_000 + ports}"
    if error_kind is not None:
        dialled(run, error_kind)
    if made is not None:
        made(upstream("172.18.0.4:50003", run))
    (_, hop) = judged(run).account.hops
    found = {each.id: each.holds for each in hop.identities}
    assert {name: found[name] for name in IDENTITIES} == {
        name: "false" if name == false else "true" for name in IDENTITIES
    }


def test_a_request_leads_to_the_kept_connection_that_carried_it(run: RunFolder) -> None:
    assert request_of(run, "access_line, up_observer, up_id, up_how") == (1, "gateway", 1, "dial")


def test_what_befell_a_kept_connection_earlier_is_not_this_request_s(run: RunFolder) -> None:
    run.captures["gateway"] = Capture()
    Connection(run.captures["gateway"], CLIENT, GATEWAY).handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 2)
    upstream("172.18.0.4:50001", run).syns(MEASURE_S + 1).handshake(MEASURE_S + 4)
    run.lines["gateway/dials.jsonl"] = dials(dial(1, MEASURE_S + 1, "172.18.0.4:50001") | {"duration_us": 3_000_000})
    run.clients["k6-1"].requests[0] |= {"end_us": at_us(BEGIN_S + 2)}
    assert request_of(run, "outcome, up_id, up_syns_lost, up_syn_us") == ("slow", 1, 1, 0)


def test_a_request_that_waited_for_the_pool(run: RunFolder) -> None:
    run.clients["k6-1"].requests[0] |= {"end_us": at_us(BEGIN_S + 2)}
    run.lines["gateway/access.jsonl"] = [
        line(200, 2, upstream_connection="1", upstream_connection_requests="2", upstream_reused="true",
             upstream_connect_time="1.900")
    ]  # fmt: skip
    cause, evidence = request_of(run, "cause, evidence")
    assert cause == "waited-for-a-connection"
    assert evidence == "gateway line 1: waited for 1.900 s of 2.000 s before it got dial gateway/1"


@pytest.mark.parametrize(
    ("ports", "cause"), [("50001 50002", "ephemeral-ports-exhausted"), ("50001 50003", "upstream")]
)
def test_the_gateway_is_out_of_ports_only_if_all_are_held(run: RunFolder, ports: str, cause: str) -> None:
    run.set_knobs(load__users=1)
    run.manifest["sysctls"]["gateway"]["net.ipv4.ip_local_port_range"] = ports.replace(" ", "\t")
    run.clients["k6-1"].requests[0] |= {"status": 502, "error_code": 1502}
    dialled(run, "address-not-available")
    run.lines["gateway/access.jsonl"] = [
        line(502, 0.010, upstream_connection="3", upstream_connection_requests="-", upstream_reused="-",
             upstream_local_addr="-", upstream_connect_time="-", upstream_header_time="-")
    ]  # fmt: skip
    found, evidence = request_of(run, "cause, evidence")
    assert found.startswith(cause)
    assert not cause.startswith("ephemeral") or "; 2 of 2 ports were held, 1 in TIME_WAIT" in evidence
    holds = "true" if cause.startswith("ephemeral") else "false"
    assert statuses(run, "gateway.dials.failed_address_not_available == ledger.gateway_dials_without_port") == [holds]


def test_a_record_of_dials_without_its_end_proves_nothing(run: RunFolder) -> None:
    run.lines["gateway/dials.jsonl"].pop()
    found = judged(run, "gateway.connections.opened == 2")
    (prediction,) = found.predictions
    assert prediction.status == "unknown"
    assert "dials.jsonl has no last line: gateway did not end cleanly" in (prediction.why or "")
    assert found.health["dials/gateway"].healthy is False


def test_figures_are_the_path_s_own() -> None:
    knobs = {**KNOBS, "gateway.max_idle_conns": 100}
    path = declared("k6", "gateway", "backend")
    for name in ("access.gateway.status.5xx", "gateway.dials.failed_address_not_available", "gateway.max_idle_conns"):
        scope(path, knobs).kind_of(name)
    with pytest.raises(
        UnknownFigure, match=r"nginx is not a proxy on the path; did you mean access\.gateway\.requests\?"
    ):
        scope(path, knobs).kind_of("access.nginx.requests")
    with pytest.raises(UnknownFigure, match=r"nginx is not a proxy on the path$"):
        scope(declared("k6", "backend"), KNOBS).kind_of("access.nginx.requests")
    with pytest.raises(UnknownFigure, match="gateway is not on the path"):
        scope(declared("k6", "nginx", "backend"), KNOBS).kind_of("gateway.connections.opened")


def test_the_report_draws_its_connections_and_requests(run: RunFolder) -> None:
    folder = run.write()
    analyse(folder)
    (chart,) = [one for one in run_charts.build_charts(run_record.load_record(folder)) if one.id == "servers"]

    assert {each.name: each.most for each in chart.series if each.name.startswith("gateway")} == {
        "gateway: connections to the backends": 3,
        "gateway: of these idle, in its pool": 1,
        "gateway: requests in flight": 1,
    }
