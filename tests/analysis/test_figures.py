import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import figures
from analysis.diagnosis.health import Evidence
from analysis.evidence.rawrun import RawRun
from analysis.expressions.values import Kind, Unknown, Value
from analysis.figures import Run, Scope, UnknownFigure, catalogue, model_outcomes, scope
from analysis.figures.__main__ import render_markdown
from analysis.figures.catalogue import FIGURES, kernel_counters
from formats import manifest
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import (
    END_S,
    KNOBS,
    MEASURE_S,
    OTHERS,
    SERVED_MS,
    USERS,
    RunFolder,
    declared,
    knob,
    make_capture,
    make_manifest,
    make_request,
    make_samples,
    quiet_tick,
)

ROOT = Path(__file__).resolve().parents[2]


def value(run: RunFolder, name: str) -> Value:
    return figures.value(read(run.write()), name)


def read(folder: Path) -> Run:
    return Run(RawRun(folder, manifest.load_manifest(folder)))


@pytest.fixture(scope="module")
def healthy(whole_run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The healthy run, read once."""
    return read(replace(whole_run, folder=tmp_path_factory.mktemp("run")).write())


@pytest.fixture(scope="module")
def kept() -> dict[str, Run]:
    return {}


@pytest.fixture
def proxied(kept: dict[str, Run], request: pytest.FixtureRequest) -> Run:
    """The run through nginx, read once."""
    if not kept:
        kept["proxied"] = read(request.getfixturevalue("proxied_run").write())
    return kept["proxied"]


@pytest.fixture
def described(tmp_path: Path) -> RunFolder:
    """A run of which there is its manifest alone, which is all that the model and the settings need."""
    return RunFolder(tmp_path, make_manifest(), samples={}, clients={}, lines={}, texts={})


def modelled(described: RunFolder, name: str) -> Value:
    """A figure of the model, whatever became of the load."""
    return figures.value(read(described.write()).without(frozenset({Evidence.LOAD})), name)


def why(run: RunFolder, name: str) -> str:
    found = value(run, name)
    assert isinstance(found, Unknown), found
    return found.why


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("client.requests.total", USERS),
        ("client.requests.ok", 3),
        ("client.requests.ok_per_second", 0.069),
        ("client.requests.failed", OTHERS),
        ("client.requests.error.1211", OTHERS),
        ("client.requests.error.1050", 0),
        ("client.latency_ms.list", SERVED_MS),
        ("client.latency_ms.min", 1_004.2),
        ("client.latency_ms.mean", 22_098.233),
        ("client.latency_ms.p50", 22_080.0),
        ("client.latency_ms.p95", 41_097.45),
        ("client.latency_ms.max", 43_210.5),
        ("client.users.total", USERS),
        ("client.users.served", 3),
        ("client.users.failed", OTHERS),
        ("client.dials.total", USERS),
        ("client.dials.ok", 3),
        ("client.dials.failed", OTHERS),
        ("client.dials.failed_timeout", OTHERS),
        ("client.dials.failed_address_not_available", 0),
        ("client.dial_ms.list", (0.3, 0.3, 0.3)),
        ("client.dial_ms.max", 0.3),
        ("client.dial_ms.failed.list", (30_000.4,) * OTHERS),
        ("client.dial_ms.failed.min", 30_000.4),
        ("client.iterations.dropped", 0),
        ("client.admissions.total", 0),
        ("client.admissions.out_of_order", 0),
        ("kernel.backend.TcpExt.ListenOverflows", 500),
        ("kernel.backend_1.TcpExt.ListenDrops", 500),
        ("kernel.backend.Tcp.PassiveOpens", 55),
        ("kernel.k6.TcpExt.TCPSynRetrans", 400),
        ("listen.backend.depth.max", 2),
        ("listen.backend.limit", 1),
        ("listen.backend.drops", 500),
        ("sockets.backend.established.max", 3),
        ("sockets.backend.established.end", 0),
        ("sockets.backend.close_wait.max", 0),
        ("sockets.backend.time_wait.max", 2),
        ("sockets.backend.time_wait.end", 0),
        ("process.backend.cpu_percent.mean", 5.0),
        ("process.backend.cpu_percent.max", 5.0),
        ("process.backend.rss_mb.max", 200.0),
        ("process.backend.threads.max", 31),
        ("process.backend.open_files.max", 60),
        ("process.backend.collector.cpu_percent.mean", 0.8),
        ("process.backend.tcpdump.cpu_percent.mean", 0.08),
        ("process.k6.tcpdump.cpu_percent.mean", 0),
        ("tomcat.backend.connections.max", 1),
        ("tomcat.backend.threads_busy.max", 1),
        ("tomcat.backend.requests", 3),
        ("tomcat.backend.issued", 0),
        ("model.accept_capacity", 3),
        ("model.listen_backlog", 1),
        ("model.round_trips_to_connect", 1),
        ("model.syn_ladder_ms", (0, 1_000, 3_000, 7_000, 15_000)),
        ("model.syns_per_failed_dial", 5),
        ("model.users_served", 3),
        ("model.users_failed", 100),
        ("model.listen_drops", 500),
        ("model.response_ms.list", (1_000, 21_990, 42_980)),
        ("load.users", USERS),
        ("load.keep_alive", True),
    ],
)
def test_a_figure_has_the_value_that_the_run_recorded(healthy: Run, name: str, expected: Value) -> None:
    scope(declared("k6", "backend"), KNOBS).kind_of(name)

    assert figures.value(healthy, name) == expected


def test_a_dial_held_half_open_on_purpose_neither_failed_nor_made_a_connection(run: RunFolder) -> None:
    run.clients["k6-1"].dials[49] |= {"error": "held half open", "error_kind": "half-open", "duration_us": 99_000_000}
    assert value(run, "client.dials.failed_half_open") == 1
    assert value(run, "client.dials.failed") == OTHERS - 1
    assert value(run, "client.dials.ok") == USERS - OTHERS
    assert value(run, "client.dial_ms.failed.max") == 30_000.4


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # What nginx logged before the measurement does not count.
        ("access.nginx.requests", 4),
        ("access.nginx.status.200", 3),
        ("access.nginx.status.502", 1),
        ("access.nginx.status.504", 0),
        ("access.nginx.connection.keep_alive", 3),
        ("access.nginx.connection.close", 1),
        ("kernel.nginx.TcpExt.ListenDrops", 0),
        ("listen.nginx.depth.max", 0),
    ],
)
def test_a_proxy_has_figures_of_its_own(proxied: Run, name: str, expected: Value) -> None:
    scope(proxied.raw.manifest.roles, KNOBS).kind_of(name)

    assert figures.value(proxied, name) == expected


def test_a_role_is_the_sum_of_its_instances_and_the_greatest_of_their_maxima(run: RunFolder) -> None:
    run.manifest["instances"]["backend"] = ["backend-1", "backend-2"]
    run.set_knobs(backend__instances=2)
    run.manifest["sysctls"]["backend-2"] = run.manifest["sysctls"]["backend-1"]
    run.samples["backend-2"] = make_samples(
        "backend-2", lambda second: ({"TcpExt.ListenDrops": int(second)}, 1), "java"
    )
    run.lines["backend-2/tomcat.jsonl"] = run.lines["backend-1/tomcat.jsonl"]

    assert value(run, "kernel.backend.TcpExt.ListenDrops") == 500 + 52
    assert value(run, "kernel.backend_2.TcpExt.ListenDrops") == 52
    assert value(run, "listen.backend.depth.max") == 2
    assert value(run, "tomcat.backend.requests") == 6
    assert value(run, "process.backend.cpu_percent.mean") == 10.0
    assert value(run, "model.accept_capacity") == 6
    assert why(run, "model.users_served") == "the model gives none: the model is of one backend"
    assert why(run, "kernel.backend.TcpExt.ListenOverflows") == "this kernel has no counter TcpExt.ListenOverflows"


def test_a_round_trip_is_as_it_was_measured_before_the_load(run: RunFolder) -> None:
    assert why(run, "link.backend.round_trip_ms") == "no link leads to backend, or from it to the role before it"
    echoes = {"to": "backend-1", "sent": 1000, "min_us": 50_100, "p99_us": 52_000, "max_us": 60_000}
    asked = {"asked_ms": 50, "asked_loss_percent": 1, "loss_low_percent": 0.5, "loss_high_percent": 1.8}
    run.manifest["round_trips"] = [
        {"instance": "k6-1", **echoes, **asked, "received": 990, "p50_us": 50_250},
        {"instance": "k6-2", **echoes, **asked, "received": 985, "p50_us": 50_300},
    ]
    assert value(run, "link.backend.round_trip_ms") == 50.3
    assert value(run, "link.backend.lost_percent") == 1.5
    run.manifest["round_trips"][0]["p50_us"] = None
    assert why(run, "link.backend.round_trip_ms") == "no echo was answered"


def test_what_instruments_took_is_unknown_without_their_own_records(run: RunFolder) -> None:
    run.samples["backend-1"].lose_readings("self", 0, END_S)
    del run.lines["backend-1/capture.json"]
    assert why(run, "process.backend.collector.cpu_percent.mean") == "there are too few records of the sampler itself"
    assert why(run, "process.backend.tcpdump.cpu_percent.mean") == "no capture.json says what tcpdump used"
    run.samples["backend-1"].lose_readings("processes", 0, END_S)
    assert why(run, "process.backend.collector.cpu_percent.mean").startswith("sampler/backend-1: no reading of")


def test_the_clients_of_several_instances_are_put_together(run: RunFolder) -> None:
    run.manifest["instances"]["k6"] = ["k6-1", "k6-2"]
    run.manifest["exits"]["k6-2"] = 0
    run.samples["k6-2"] = make_samples("k6-2", quiet_tick, "k6", port=None)
    other = run.clients["k6-2"] = type(run.clients["k6-1"])("k6-2")
    other.requests = [make_request(1, 500.0), make_request(2, None)]

    assert value(run, "client.requests.ok") == 4
    assert value(run, "client.requests.ok_per_second") == 0.093
    # Both instances have a virtual user of the number 1.
    assert value(run, "client.users.total") == USERS + 2
    assert value(run, "client.latency_ms.min") == 500.0


@pytest.mark.parametrize(
    ("turns", "out_of_order"),
    [
        ([], 0),
        ([(1, 10), (2, 20), (3, 30)], 0),
        ([(1, 10), (3, 20), (2, 30)], 1),
        ([(2, 10), (3, 20), (1, 30)], 2),
        ([(2, 10), (1, 10), (3, 10)], 0),
        ([(3, 10), (1, 20), (2, 30)], 1),
    ],
)
def test_admissions_are_out_of_order_if_a_lower_number_had_its_turn_later(
    run: RunFolder, turns: list[tuple[int, int]], out_of_order: int
) -> None:
    run.clients["k6-1"].events = [
        {"time_us": 5, "vu": number, "name": "admitted", "data": {"number": number, "turn_us": turn_us}}
        for number, turn_us in turns
    ] + [{"time_us": 5, "vu": 9, "name": "issued", "data": {"number": 9}}]

    assert value(run, "client.admissions.total") == len(turns)
    assert value(run, "client.admissions.out_of_order") == out_of_order


def test_an_admission_without_its_turn_leaves_the_order_unknown(run: RunFolder) -> None:
    run.clients["k6-1"].events = [{"time_us": 5, "vu": 1, "name": "admitted", "data": {"number": 4, "turn_us": None}}]

    assert why(run, "client.admissions.out_of_order") == "an admission lacks its number or its turn"


def test_statistics_of_nothing_are_unknown(run: RunFolder) -> None:
    run.set_knobs(load__users=1)
    run.clients["k6-1"].requests = [make_request(1, None)]

    assert value(run, "client.latency_ms.list") == ()
    assert why(run, "client.latency_ms.p99") == "there is none to take it from"


def test_a_counter_that_goes_back_is_unknown(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(40, 99):
        tick["counters"] = {**tick["counters"], "TcpExt.ListenDrops": 1}

    assert why(run, "kernel.backend.TcpExt.ListenDrops") == "the counter TcpExt.ListenDrops went back from 7 to 1"


def test_a_counter_that_appears_in_the_window_grew_from_zero(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(40, 99):
        tick["counters"] = {**tick["counters"], "IcmpMsg.InType3": 4}

    assert value(run, "kernel.backend.IcmpMsg.InType3") == 4


def test_a_listener_that_was_opened_again_has_no_difference(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(40, 99):
        tick["listen"] = [{**tick["listen"][0], "drops": 0}]

    assert why(run, "listen.backend.drops") == "the listener on port 8080 was opened again"


def test_a_queue_that_is_full_beside_an_empty_one_is_counted(run: RunFolder) -> None:
    assert value(run, "listen.backend.full_beside_empty") == 0
    for tick in run.samples["backend-1"].tick_between(40, 49):
        first = {**tick["listen"][0], "depth": 2, "limit": 1}
        tick["listen"] = [first, {**first, "depth": 0}]
    assert value(run, "listen.backend.full_beside_empty") == 90


def test_the_queue_that_is_full_is_told_by_the_order_in_which_the_sockets_were_made(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(40, 49):
        first = {**tick["listen"][0], "depth": 2, "limit": 1, "inode": 77}
        tick["listen"] = [first, {**first, "depth": 0, "inode": 12}]
    of_queues = [value(run, f"listen.backend.queue.{number}.full_beside_empty") for number in (1, 2)]
    assert of_queues == [0, 90]


@pytest.mark.parametrize(("ipv6", "depth", "limit"), [(True, 500, 999), (False, 2, 1)])
def test_the_queue_of_ipv6_is_that_of_clients_over_ipv6_alone(
    run: RunFolder, *, ipv6: bool, depth: int, limit: int
) -> None:
    run.manifest["roles"]["backend"]["ipv6"] = ipv6
    for tick in run.samples["backend-1"].ticks:
        first = tick["listen"][0]
        tick["listen"] = [{**first, "address": "10.0.0.2"}, {**first, "address": "::", "limit": 999, "depth": 500}]
    assert (value(run, "listen.backend.depth.max"), value(run, "listen.backend.limit")) == (depth, limit)


def test_a_setting_exists_if_every_instance_s_kernel_has_it(described: RunFolder) -> None:
    name = "net.ipv4.tcp_tw_recycle"
    described.manifest["sysctls"]["backend-1"][name] = None
    described.manifest["sysctls"]["k6-1"][name] = "0"
    assert value(described, f"sysctl.backend.exists.{name}") == 0
    assert value(described, f"sysctl.k6.exists.{name}") == 1
    assert why(described, "sysctl.k6.exists.net.ipv4.tcp_ecn") == "net.ipv4.tcp_ecn was not read back"


def test_a_setting_that_is_empty_exists(described: RunFolder) -> None:
    described.manifest["sysctls"]["k6-1"]["net.ipv4.ip_local_reserved_ports"] = ""
    assert value(described, "sysctl.k6.exists.net.ipv4.ip_local_reserved_ports") == 1


def test_of_a_role_without_instances_no_setting_is_known(described: RunFolder) -> None:
    described.manifest["instances"]["backend"] = []
    assert why(described, "sysctl.backend.exists.net.core.somaxconn") == "the manifest names no such instance"


def test_management_ports_are_no_part_of_the_queue(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].ticks:
        tick["listen"] = [*tick["listen"], {**tick["listen"][0], "port": 8081, "depth": 77}]

    assert value(run, "listen.backend.depth.max") == 2


@pytest.mark.parametrize(
    ("knobs", "served", "reason"),
    [
        ({"backend__max_connections": 2, "backend__accept_count": 3, "load__users": 9}, 6, ""),
        ({"backend__accept_count": 5000}, None, "load.request_timeout (120000 ms) may end requests that wait"),
        ({"load__workload": "spike"}, None, "the model is of the workload users"),
        ({"load__keep_alive": False}, None, "the model is of users who keep their connections"),
        ({"load__path": "/static"}, None, "the model knows the time of /api/delay alone"),
        ({"load__connect_timeout": 120_000}, None, "load.request_timeout ends requests before load.connect_timeout"),
        ({"load__max_duration": 40_000}, None, "load.max_duration may end the load"),
        ({"load__calls": 2}, None, "users who fail dial again for their next call"),
        ({"load__calls": 100}, None, "load.calls reaches backend.max_keep_alive_requests"),
        ({"load__calls": 2, "load__think_time": 20_000}, None, "load.think_time reaches backend.keep_alive_timeout"),
        ({"load__arrival_gap": 0, "load__connect_timeout": 1_000}, None, "another load.arrival_gap may part them"),
        ({"backend__max_connections": 300}, 103, ""),
        ({"backend__max_connections": 300, "backend__threads_max": 50}, None, "requests may wait for a thread"),
        ({"load__users": "many"}, None, "the manifest has no whole number for load.users"),
        ({"load__workload": "long_polling", "load__users": 3}, 3, ""),
        ({"load__workload": "long_polling", "backend__keep_alive_timeout": 60_000}, 3, ""),
        ({"load__workload": "long_polling"}, None, "users who are silent for backend.keep_alive_timeout lose"),
        (
            {"load__workload": "long_polling", "load__rejoin": True},
            None,
            "users who reach backend.max_keep_alive_requests lose",
        ),
    ],
)
def test_the_model_follows_the_settings_and_says_where_it_ends(
    described: RunFolder, knobs: dict[str, object], served: int | None, reason: str
) -> None:
    described.set_knobs(**knobs)

    found = modelled(described, "model.users_served")

    assert found == served if served is not None else isinstance(found, Unknown)
    assert reason in (found.why if isinstance(found, Unknown) else "")
    if served is not None:
        assert modelled(described, "model.users_failed") == described.manifest["knobs"]["load.users"]["value"] - served


def test_the_model_does_not_simulate_more_users_than_it_can(
    described: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_outcomes, "_USERS_MAX", USERS - 1)

    found = modelled(described, "model.users_served")

    assert isinstance(found, Unknown)
    assert found.why == "the model gives none: the model is of at most 102 users"


@pytest.mark.parametrize(
    ("sysctl", "text", "name", "reason"),
    [
        ("net.ipv4.tcp_syn_retries", None, "model.syn_ladder_ms", "the kernel of k6-1 has no"),
        ("net.ipv4.tcp_syn_retries", "six", "model.syn_ladder_ms", "of k6-1 is not a number: six"),
        ("net.ipv4.tcp_syn_retries", "9" * 12, "model.syn_ladder_ms", "999,999, and no kernel takes that"),
        ("net.ipv4.tcp_rto_max_ms", "0", "model.syn_ladder_ms", "of k6-1 is 0, and no kernel takes that"),
        ("net.core.somaxconn", None, "model.accept_capacity", "the kernel of backend-1 has no"),
    ],
)
def test_the_model_needs_the_kernels_settings(
    described: RunFolder, sysctl: str, text: str | None, name: str, reason: str
) -> None:
    for instance in ("k6-1", "backend-1"):
        described.manifest["sysctls"][instance][sysctl] = text

    assert reason in why(described, name)


def test_a_sysctl_that_was_not_read_is_unknown_and_one_that_the_kernel_lacks_is_not(described: RunFolder) -> None:
    described.manifest["sysctls"]["k6-1"]["net.ipv4.tcp_syn_linear_timeouts"] = None
    assert value(described, "model.syns_per_failed_dial") == 5

    del described.manifest["sysctls"]["k6-1"]["net.ipv4.tcp_syn_linear_timeouts"]
    assert "the manifest has no net.ipv4.tcp_syn_linear_timeouts of k6-1" in why(
        described, "model.syns_per_failed_dial"
    )


@pytest.mark.parametrize(("timeout_ms", "syns"), [(900, 1), (2_000, 2), (60_000, 6)])
def test_a_proxy_s_try_sends_as_many_syns_as_fit_into_its_own_time_out(
    proxied_run: RunFolder, timeout_ms: int, syns: int
) -> None:
    proxied_run.manifest["knobs"]["nginx.proxy_connect_timeout"] = knob(timeout_ms, "ms")

    assert value(proxied_run, "model.syns_per_failed_try") == syns


def test_a_gateway_that_leaves_the_time_out_to_the_kernel_sends_the_whole_ladder(proxied_run: RunFolder) -> None:
    proxied_run.manifest["path"] = ["k6", "gateway", "backend"]
    proxied_run.manifest["instances"]["gateway"] = proxied_run.manifest["instances"].pop("nginx")
    proxied_run.set_knobs(gateway__dial_timeout=0)

    assert value(proxied_run, "model.syns_per_failed_try") == 7


def test_without_a_proxy_there_are_no_tries_of_one(described: RunFolder) -> None:
    assert "there is no proxy on the path" in why(described, "model.syns_per_failed_try")


def test_linear_timeouts_lengthen_the_ladder(described: RunFolder) -> None:
    described.manifest["sysctls"]["k6-1"]["net.ipv4.tcp_syn_linear_timeouts"] = "4"

    assert value(described, "model.syns_per_failed_dial") == 9


SCOPE = Scope(
    declared("k6", "backend"),
    {**KNOBS, "backend.instances": 2, "nginx.worker_processes": "auto"},
    frozenset({"TcpExt.ListenOverflows", "TcpExt.ListenDrops", "Tcp.CurrEstab"}),
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("client.requests.ok", Kind.NUMBER),
        ("client.latency_ms.list", Kind.LIST),
        ("client.dial_ms.failed.list", Kind.LIST),
        ("model.response_ms.list", Kind.LIST),
        ("kernel.backend_2.TcpExt.ListenDrops", Kind.NUMBER),
        ("kernel.k6.IcmpMsg.InType3", Kind.NUMBER),
        ("load.users", Kind.NUMBER),
        ("load.keep_alive", Kind.TRUTH),
        ("nginx.worker_processes", Kind.TEXT),
    ],
)
def test_a_name_has_its_kind(name: str, kind: Kind) -> None:
    assert SCOPE.kind_of(name) is kind


NONE = "there is no figure or knob {name}"


@pytest.mark.parametrize(
    ("name", "why", "nearest"),
    [
        ("client.request.ok", NONE, "client.requests.ok"),
        ("load.user", NONE, "load.users"),
        # A number may be any.
        ("client.requests.eror.0", NONE, "client.requests.error.0"),
        # Without a proxy there is no name of one.
        ("access.nginx.request", NONE, None),
        (
            "kernel.backend.TcpExt.ListenOverflow",
            "{name}: there is no counter TcpExt.ListenOverflow",
            "kernel.backend.TcpExt.ListenOverflows",
        ),
        (
            "kernel.nginx.TcpExt.ListenDrops",
            "{name}: nginx is not one of k6, k6_1, backend, backend_1, backend_2",
            None,
        ),
        (
            "listen.backend_3.limit",
            "{name}: backend_3 is not one of k6, k6_1, backend, backend_1, backend_2",
            "listen.backend_2.limit",
        ),
        ("kernel.k6.Tcp.CurrEstab", "{name}: Tcp.CurrEstab is a setting or a level, not a counter that grows", None),
        ("client.latency_ms.p96", "{name}: there is no statistic p96", "client.latency_ms.p99"),
        ("client.dials.failed_timeouts", "{name}: there is no kind timeouts", "client.dials.failed_timeout"),
        ("sockets.k6.ESTABLISHED.max", NONE, "sockets.k6.established.max"),
        ("tomcat.k6.connections.max", "{name}: k6 is not one of backend, backend_1, backend_2", None),
        (
            "kernel.k6.net.ipv4.tcp_syn_retries",
            NONE + ": an expression knows a sysctl's value only where the scenario sets it, as a knob of kernel",
            None,
        ),
        ("zzz", NONE, None),
        ("flows.backend_2.syn_healed", NONE, "flows.backend_2.syn_recovered"),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(name: str, why: str, nearest: str | None) -> None:
    with pytest.raises(UnknownFigure) as refused:
        SCOPE.kind_of(name)

    assert str(refused.value) == why.format(name=name) + (f"; did you mean {nearest}?" if nearest else "")
    assert (refused.value.name, refused.value.nearest) == (name, nearest)


def test_without_a_kernel_to_ask_any_counter_passes() -> None:
    Scope(declared("k6", "backend"), KNOBS, frozenset()).kind_of("kernel.backend.TcpExt.AnythingAtAll")


def test_the_kernels_counters_are_read_from_proc(tmp_path: Path) -> None:
    (tmp_path / "netstat").write_text("TcpExt: ListenDrops TW\nTcpExt: 1 2\nIpExt: InOctets\nIpExt: 3\n")
    (tmp_path / "snmp").write_text("Tcp: RtoMin\nTcp: 200\n")

    assert kernel_counters(tmp_path) == {"TcpExt.ListenDrops", "TcpExt.TW", "IpExt.InOctets", "Tcp.RtoMin"}
    assert kernel_counters(tmp_path / "none") == frozenset()


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel")
def test_this_kernel_has_the_counters_that_the_scenarios_name() -> None:
    assert {"TcpExt.ListenOverflows", "TcpExt.ListenDrops", "TcpExt.TCPSynRetrans"} <= kernel_counters()


def test_every_figure_is_declared_once() -> None:
    patterns = [figure.pattern for figure in FIGURES]

    assert len(patterns) == len(set(patterns))


def test_the_table_of_figures_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "analysis" / "figures" / "__main__.py"), run_name="__main__")

    assert capsys.readouterr().out == render_markdown()
    assert (ROOT / "docs" / "figures.md").read_text() == render_markdown(), (
        "python -m analysis.figures > docs/figures.md"
    )


def test_the_table_of_figures_has_every_figure() -> None:
    table = render_markdown()
    assert [figure.pattern for figure in FIGURES if f"| `{figure.pattern}` |" not in table] == []


def secured(run: RunFolder) -> RunFolder:
    """A run with two connections by TLS: the server answers the second one's ClientHello never."""
    run.manifest["roles"]["backend"] |= {"tls": True}
    capture = Capture()
    for number, times_s in enumerate(((0.001, 0.101, 0.131), (0.001,)), start=1):
        begin_s = MEASURE_S + number
        connection = Connection(capture, f"172.18.0.3:{41_000 + number}", "172.18.0.2:8080").handshake(begin_s)
        connection.secure(*(begin_s + each for each in times_s))
    run.captures = {"backend-1": capture}
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    return run


def test_packets_tell_whom_tls_handshakes_waited_for(run: RunFolder) -> None:
    found = read(secured(run).write())

    assert {
        name: figures.value(found, f"flows.backend.tls.{name}")
        for name in ("handshakes", "unanswered", "handshake_ms.list", "server_hello_ms.p50", "client_reply_ms.max")
    } == {
        "handshakes": 2,
        "unanswered": 1,
        "handshake_ms.list": (130.0,),
        "server_hello_ms.p50": 100.0,
        "client_reply_ms.max": 30.0,
    }


@pytest.mark.parametrize("is_secured", [True, False])
def test_only_a_server_that_takes_tls_has_figures_of_its_handshakes(run: RunFolder, *, is_secured: bool) -> None:
    found = set(catalogue.figure_names(read((secured(run) if is_secured else run).write())))

    assert ("flows.backend.tls.handshakes" in found) is is_secured


def test_an_earlier_flows_tells_nothing_of_tls(run: RunFolder) -> None:
    found = read(secured(run).write())
    for instance, reduction in found.raw.reductions.items():
        found.raw.reductions[instance] = replace(reduction, knows_tls=False)
    told = figures.value(found, "flows.backend.tls.handshakes")

    assert isinstance(told, Unknown)
    assert told.why == "an earlier `flows` read the captures, and tells nothing of TLS"


@pytest.mark.parametrize(
    ("scheme", "takes", "known"), [("https", True, False), ("https", False, True), ("http", True, True)]
)
def test_streams_are_unknown_if_requests_over_tls_may_have_been_streams(
    proxied_run: RunFolder, scheme: str, *, takes: bool, known: bool
) -> None:
    for request in proxied_run.clients["k6-1"].requests:
        request["url"] = f"{scheme}://nginx:8080/"
    proxied_run.set_knobs(nginx__http2=takes)
    found = value(proxied_run, "client.streams.connections")
    if known:
        assert found == 0
    else:
        assert isinstance(found, Unknown)
        assert found.why == "no record says by which version of HTTP the requests over TLS were sent"
