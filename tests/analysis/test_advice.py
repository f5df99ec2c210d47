"""Advice is given where it can help: a knob of a role on the path, and a value that it does not have."""

import pytest

from analysis.reports import advice
from tests.analysis.support import Record, as_manifest, contents, knob, make_manifest, role

DIRECT, NGINX, PROXIED = ["k6", "backend"], ["k6", "nginx"], ["k6", "nginx", "backend"]
GATEWAY = ["k6", "gateway", "backend"]
# 400 requests in eight seconds, at most 300 at once.
SPIKE = {"load.workload": "spike", "load.rate_per_second": 50, "load.duration": 8_000, "load.max_users": 300}
AT_NGINX = [{"to": "nginx", "dropped_syns": {"lost": 0, "recovered": 40}}]


def advise(manifest: Record, ledger: Record, cause: str, hop: tuple[str, str] | None = None) -> advice.Advice:
    return advice.advise_on_cause(as_manifest(manifest), ledger, cause, 9, hop)


def advised(path: list[str], cause: str, knobs: Record, hops: list[Record]) -> tuple[str | None, str | None]:
    manifest = make_manifest() | {"path": path}
    manifest["knobs"] |= {name: knob(value) for name, value in knobs.items()}
    found = advise(manifest, {"hops": hops}, cause)
    assert found.why
    assert (found.command is None) == (found.knob is None)
    return found.knob, found.value


@pytest.mark.parametrize(
    ("path", "cause", "knobs", "value"),
    [
        (DIRECT, "accept-queue-drop", {}, ("backend.max_connections", "103")),
        # It takes as many as come, and not as fast as they come.
        (DIRECT, "accept-queue-drop", {"backend.max_connections": 8192}, ("backend.accept_count", "103")),
        (DIRECT, "waited-for-a-thread", {"backend.threads_max": 1, "backend.max_connections": 60},
         ("backend.threads_max", "60")),
        (PROXIED, "upstream-timeout", {"nginx.proxy_read_timeout": 2_000}, ("nginx.proxy_read_timeout", "3s")),
        # 103 requests, in five turns of a second.
        (PROXIED, "upstream-timeout", {"nginx.proxy_read_timeout": 2_000, "backend.threads_max": 25},
         ("nginx.proxy_read_timeout", "6s")),
        (PROXIED, "stale-keepalive", {"nginx.upstream_keepalive_timeout": 60_000},
         ("nginx.upstream_keepalive_timeout", "19s")),
        (DIRECT, "syn-queue-drop", {"kernel.backend.net.ipv4.tcp_syncookies": "0"},
         ("kernel.backend.net.ipv4.tcp_syncookies", "1")),
        (NGINX, "syn-queue-drop", {}, ("kernel.nginx.net.ipv4.tcp_syncookies", "1")),
        (GATEWAY, "stale-keepalive", {"gateway.idle_conn_timeout": 90_000}, ("gateway.idle_conn_timeout", "19s")),
        (GATEWAY, "stale-keepalive", {"gateway.idle_conn_timeout": 0}, ("gateway.idle_conn_timeout", "19s")),
        # Nothing delays these answers, so that the number of users alone bounds them.
        (DIRECT, "waited-in-accept-queue", SPIKE | {"load.handler_delay": 0}, ("backend.max_connections", "300")),
        (DIRECT, "waited-in-accept-queue", SPIKE | {"load.handler_delay": 100}, ("backend.max_connections", "5")),
    ],
)  # fmt: skip
def test_a_knob_that_can_help_is_named(path: list[str], cause: str, knobs: Record, value: tuple[str, str]) -> None:
    assert advised(path, cause, knobs, []) == value


@pytest.mark.parametrize("cause", ["accept-queue-drop", "waited-in-accept-queue"])
def test_of_several_queues_at_one_port_no_longer_one_is_advised(cause: str) -> None:
    manifest = make_manifest() | {"path": DIRECT}
    listener = manifest["listeners"]["backend-1"][0]
    manifest["listeners"]["backend-1"] = [listener, listener | {"address": "::"}]
    assert advise(manifest, {"hops": []}, cause, ("k6", "backend")).knob is not None
    manifest["listeners"]["backend-1"] = [listener, listener]
    found = advise(manifest, {"hops": []}, cause, ("k6", "backend"))
    assert found.knob is None
    assert found.why.startswith("backend has 2 accept queues at one port, one for each socket that listens there")


@pytest.mark.parametrize(
    ("hop", "why"),
    [
        (("k6", "nginx"), "between k6 and nginx, with a capture at both ends; load.connect_timeout, now 30s, says"),
        (("nginx", "backend"), "between nginx and backend, with a capture at both ends; nginx.proxy_connect_timeout,"),
    ],
)
def test_of_packets_that_got_lost_the_timer_of_the_hop_is_named(hop: tuple[str, str], why: str) -> None:
    manifest = make_manifest() | {"path": PROXIED}
    manifest["knobs"]["nginx.proxy_connect_timeout"] = knob(2_000, "ms")
    found = advise(manifest, {"hops": []}, "connect-timeout", hop)
    assert found.knob is None
    assert why in found.why


@pytest.mark.parametrize(
    ("cause", "maxconn", "script", "value", "words"),
    [
        # Of 103 users, 21 find a place in its accept queue.
        ("accept-queue-drop", 6, False, "82", "sets haproxy.maxconn: change it there (haproxy.cfg:14)"),
        ("waited-in-accept-queue", 6, False, "103", "sets haproxy.maxconn: change it there (haproxy.cfg:14)"),
        ("accept-queue-drop", 103, False, "103", "sets haproxy.backlog: change it there (haproxy.cfg:13)"),
        ("accept-queue-drop", None, False, "103", "sets haproxy.backlog: change it there (haproxy.cfg:13)"),
        ("waited-in-accept-queue", 6, True, None, "haproxy.maxconn = 6, haproxy.cfg:14 bounds the connections"),
    ],
)
def test_where_clients_find_haproxy_full_its_own_limit_is_named_with_its_line(
    cause: str, maxconn: int | None, *, script: bool, value: str | None, words: str
) -> None:
    manifest = make_manifest() | {"path": ["k6", "haproxy", "backend"], "roles": contents("k6", "haproxy", "backend")}
    manifest["instances"]["haproxy"] = ["haproxy"]
    lines = {"maxconn": (maxconn, "haproxy.cfg:14"), "backlog": (20, "haproxy.cfg:13")}
    manifest["knobs"] |= {
        f"haproxy.{name}": knob(number) | {"source": "file", "where": [where]}
        for name, (number, where) in lines.items()
        if number is not None
    }
    manifest["knobs"]["load.keep_alive"] = knob(False)
    if script:
        manifest["knobs"]["load.workload"] = knob("script")
        del manifest["knobs"]["load.users"]
    hops = [{"to": "haproxy", "dropped_syns": {"lost": 9, "recovered": 0}}]
    found = advise(manifest, {"hops": hops}, cause, ("k6", "haproxy"))
    assert found.value == value
    assert words in found.why


def test_of_a_script_s_load_through_a_full_proxy_the_knob_to_raise_is_named() -> None:
    manifest = make_manifest() | {"path": PROXIED}
    del manifest["knobs"]["load.users"]
    nginx = {"nginx.worker_connections": knob(64), "nginx.worker_processes": knob("1")}
    manifest["knobs"] |= {"load.workload": knob("script"), **nginx}
    found = advise(manifest, {"hops": []}, "proxy-connections-exhausted")
    assert found.why.endswith("; nginx.worker_connections = 64 bounds the connections at once: try more")


def test_of_a_script_s_load_the_lab_does_not_know_how_much_it_is() -> None:
    manifest = make_manifest() | {"path": DIRECT}
    del manifest["knobs"]["load.users"]
    manifest["knobs"]["load.workload"] = knob("script")
    found = advise(manifest, {"hops": []}, "accept-queue-drop")
    assert (found.knob, found.why.partition(":")[0]) == (
        None,
        (
            "the value depends on the load, and the lab does not know how much load the scenario's own script makes;"
            " backend.max_connections = 1 and backend.accept_count = 1 bound the connections at once"
        ),
    )


@pytest.mark.parametrize(
    ("limits", "fixed", "value"),
    [
        ({"connections": "places", "backlog": "queue"}, "", ("shop.places", "103")),
        ({"connections": "places", "backlog": "queue"}, "places", ("shop.queue", "103")),
        ({"backlog": "queue"}, "", ("shop.queue", "103")),
        ({"connections": "places"}, "places", (None, None)),
        ({}, "", (None, None)),
    ],
)
def test_of_a_service_s_own_knobs_that_is_named_which_bounds_it(
    limits: Record, fixed: str, value: tuple[str | None, str | None]
) -> None:
    knobs = {name: {"fixed": name == fixed} for name in ("places", "queue")}
    shop = role("server", "shop", knobs, limits=limits)
    roles = {"k6": role("client", "load"), "shop": shop}
    manifest = make_manifest() | {"path": ["k6", "shop"], "roles": roles, "instances": {"shop": ["shop-1"]}}
    manifest["knobs"] |= {"shop.places": knob(1), "shop.queue": knob(1)}
    found = advise(manifest, {"hops": []}, "accept-queue-drop")
    assert (found.knob, found.value) == value


@pytest.mark.parametrize(
    ("cause", "limit", "value"),
    [
        ("accept-queue-drop", "backlog", "103"),
        ("proxy-connections-exhausted", "process_connections", "420"),
        ("waited-for-a-connection", "server_connections", "103"),
        ("upstream-timeout", "answer_timeout", "3s"),
        ("stale-keepalive", "server_idle", "19s"),
        ("ephemeral-ports-exhausted", "pool", "103"),
    ],
)
def test_a_knob_of_another_proxy_is_named_as_its_declaration_has_it(cause: str, limit: str, value: str) -> None:
    door = role("proxy", "door", {"wide": {}}, limits={limit: "wide"})
    server = role("server", "backend", {"keep_alive_timeout": {}}, limits={"idle": "keep_alive_timeout"})
    roles = {"k6": role("client", "load"), "door": door, "backend": server}
    manifest = make_manifest() | {"path": ["k6", "door", "backend"], "roles": roles}
    manifest["knobs"] |= {"door.wide": knob(30_000 if limit == "server_idle" else 1)}
    hops = [{"to": "door", "dropped_syns": {"lost": 9, "recovered": 0}}]
    found = advise(manifest, {"hops": hops}, cause)
    assert (found.knob, found.value) == ("door.wide", value)


def test_advice_on_a_race_has_the_measured_time_and_those_that_did_not_fail() -> None:
    roles = {"k6": role("client", "load"), "shop": role("server", "shop")}
    manifest = make_manifest() | {"path": ["k6", "shop"], "roles": roles}
    near = {"from": "k6", "to": "shop", "kept_ms": (1001.2, 1003.0), "resent": 3, "near_races": 1}
    found = advise(manifest, {"hops": [near]}, "stale-keepalive")
    assert found.why == (
        "k6 must close an idle connection before shop does (by its closes, shop keeps an idle connection for 1 s): "
        "shorten the idle timeout of k6, or lengthen the idle timeout of shop; beside those that failed, 3 requests met"
        " a kept connection as shop closed it, and were sent again without an error; 1 answered request came within"
        " 50 ms of such a close"
    )


@pytest.mark.parametrize(
    ("cause", "what", "words"),
    [
        ("stale-keepalive", "idle", "lengthen gunicorn's --it (app/start:5: gunicorn --it 3)"),
        ("accept-queue-drop", "backlog", "raise gunicorn's --it (app/start:5: gunicorn --it 3); kernel.shop.net.core"),
        ("unix-socket-full", "backlog", "a longer queue: raise gunicorn's --it (app/start:5: gunicorn --it 3)"),
        ("unix-socket-full", "none", "gunicorn --backlog, uWSGI --listen"),
    ],
)
def test_advice_on_a_service_names_its_program_s_setting_and_line(cause: str, what: str, words: str) -> None:
    roles = {"k6": role("client", "load"), "shop": role("server", "shop")}
    manifest = make_manifest() | {"path": ["k6", "shop"], "roles": roles}
    line = {"program": "gunicorn", "setting": "--it", "where": "app/start:5", "text": "gunicorn --it 3"}
    manifest["settings"] = {"shop": {what: line}}
    hops = [{"from": "k6", "to": "shop", "dropped_syns": {"lost": 9, "recovered": 0}}]
    assert words in advise(manifest, {"hops": hops}, cause).why


@pytest.mark.parametrize("cause", ["accept-queue-drop", "waited-in-accept-queue"])
@pytest.mark.parametrize(("silent", "advised"), [(5, True), (4, False)])
def test_where_silent_clients_hold_most_places_the_server_is_to_wait_less_for_them(
    cause: str, silent: int, *, advised: bool
) -> None:
    roles = {"k6": role("client", "load"), "shop": role("server", "shop")}
    manifest = make_manifest() | {"path": ["k6", "shop"], "roles": roles, "instances": {"shop": ["shop-1"]}}
    line = {
        "program": "Apache httpd",
        "setting": "RequestReadTimeout",
        "where": "app/a:5",
        "text": "RequestReadTimeout",
    }
    manifest["settings"] = {"shop": {"silence": line}}
    hops = [{"from": "k6", "to": "shop", "dropped_syns": {"lost": 9, "recovered": 0}}]
    ledger = {"hops": hops, "holders": [{"instance": "shop-1", "silent": silent, "held": 8}]}
    found = advise(manifest, ledger, cause, ("k6", "shop"))
    assert ("less for a request (Apache httpd's RequestReadTimeout (app/a:5: Requ" in found.why) == advised


@pytest.mark.parametrize(
    ("valid_ms", "moved", "value"),
    [(0, True, ("nginx.resolver_valid", "1s")), (30_000, True, ("nginx.resolver_valid", "1s")),
     (0, False, (None, None)), (1_000, True, (None, None))],
)  # fmt: skip
def test_nginx_is_to_ask_again_for_a_name_that_moved(
    valid_ms: int, *, moved: bool, value: tuple[str | None, str | None]
) -> None:
    manifest = make_manifest() | {"path": PROXIED}
    manifest["knobs"]["nginx.resolver_valid"] = knob(valid_ms)
    move = {"do": "dns", "instance": "backend-2", "name": "api", "was": "backend-1", "at_ms": 3000, "start_us": 1}
    manifest["actions"] = [move] if moved else []
    found = advise(manifest, {"hops": []}, "connection-refused")
    assert (found.knob, found.value) == value
    assert ("the name api leads to backend-2, and nginx went on to backend-1" in found.why) == (found.knob is not None)


def test_who_finds_no_place_at_nginx_needs_one_there() -> None:
    knobs = SPIKE | {"load.handler_delay": 0, "nginx.listen_backlog": 31}
    assert advised(NGINX, "accept-queue-drop", knobs, AT_NGINX) == ("nginx.listen_backlog", "300")


@pytest.mark.parametrize(
    ("path", "cause", "knobs"),
    [
        (NGINX, "accept-queue-drop", {}),
        (NGINX, "waited-in-accept-queue", {}),
        (NGINX, "stale-keepalive", {"nginx.upstream_keepalive_timeout": 60_000}),
        (DIRECT, "stale-keepalive", {}),
        (DIRECT, "upstream-timeout", {}),
        (GATEWAY, "stale-keepalive", {}),
        (GATEWAY, "upstream-timeout", {}),
    ],
)
def test_no_knob_is_named_of_a_role_that_is_not_on_the_path(path: list[str], cause: str, knobs: Record) -> None:
    assert advised(path, cause, knobs, []) == (None, None)


@pytest.mark.parametrize(
    ("path", "cause", "knobs", "hops"),
    [
        (DIRECT, "accept-queue-drop", {"backend.max_connections": 8192, "backend.accept_count": 103}, []),
        (DIRECT, "waited-in-accept-queue", {"backend.max_connections": 103}, []),
        (DIRECT, "waited-for-a-thread", {"backend.max_connections": 60}, []),
        (PROXIED, "accept-queue-drop", SPIKE | {"nginx.listen_backlog": 511}, AT_NGINX),
        (PROXIED, "waited-for-another-server", SPIKE | {"load.handler_delay": 20, "backend.max_connections": 8192}, []),
        (PROXIED, "upstream-timeout", {"nginx.proxy_read_timeout": 60_000}, []),
        (PROXIED, "stale-keepalive", {"nginx.upstream_keepalive_timeout": 19_000}, []),
        (DIRECT, "syn-queue-drop", {"kernel.backend.net.ipv4.tcp_syncookies": "1"}, []),
        (DIRECT, "ephemeral-ports-exhausted", {"kernel.k6.net.ipv4.ip_local_port_range": "1024 65535"}, []),
    ],
)
def test_no_value_is_advised_that_is_no_better_than_the_one_it_has(
    path: list[str], cause: str, knobs: Record, hops: list[Record]
) -> None:
    assert advised(path, cause, knobs, hops) == (None, None)
