"""What must hold between the parts of a scenario."""

import pytest

from lab.errors import BadInput
from tests.lab.support import MINIMAL, Make, yaml_with

LONG_POLLING = {"workload: users": "workload: long_polling"}
SEQUENTIAL = {"workload: users\n    users: 3": "workload: sequential\n    requests: 100"}
SLOW, TCP, SPIKE = (f"load.workload={name}" for name in ("slow_clients", "tcp", "spike"))


def on_path(path: str) -> dict[str, str]:
    return {"[k6, backend]": path}


def without_backend(proxy: str) -> dict[str, str]:
    return {"[k6, backend]": f"[k6, {proxy}]", "  backend:\n    accept_count: 1\n": ""}


def refusal(make: Make, *overrides: str, **replacements: str) -> str:
    with pytest.raises(BadInput) as refused:
        make(*overrides, text=yaml_with(MINIMAL, replacements))
    return str(refused.value)


@pytest.mark.parametrize(
    ("changes", "overrides", "message"),
    [
        (on_path("[backend, k6]"), "", "does not begin with k6, the client"),
        (on_path("[nginx, backend]"), "", "does not begin with k6, the client"),
        (on_path("[k6, backend, nginx]"), "", "are not in the order client, proxy, server; write [k6, nginx, backend]"),
        (on_path("[k6, backend, backend]"), "", "names a role twice"),
        (on_path("[k6, k6, backend]"), "", "names a role twice"),
        (on_path("[k6]"), "", "path is too short"),
        ({}, "nginx.worker_processes=2", "nginx.worker_processes is set, but nginx is not on the path"),
        ({}, "kernel.nginx.net.ipv4.tcp_tw_reuse=1", "but nginx is not on the path"),
        (
            {},
            "load.rate_per_second=5",
            "load.rate_per_second is set, but the workload 'users' does not read it; leave it out; only spike reads it",
        ),
        ({}, f"{TCP} load.keep_alive=false", "load.keep_alive is set, but the workload 'tcp' does not read it"),
        ({**without_backend("nginx"), **LONG_POLLING}, "", "long_polling needs the backend's waiting room"),
        (without_backend("gateway"), "", "the gateway has no page of its own to answer with; put backend on the path"),
        (without_backend("nginx"), "", "nginx has only its static page /static.html, but load.path is /api/delay"),
        (
            {},
            "load.path=/actuator/health load.handler_delay=1s",
            "load.handler_delay is set, but only /api/delay reads it",
        ),
        ({}, "backend.threads_max=1", "backend.threads_min_spare (10) exceeds backend.threads_max (1)"),
        (
            LONG_POLLING,
            "backend.token_timeout=1s",
            "backend.token_timeout (1s) must exceed backend.polling_period (5s)",
        ),
        (SEQUENTIAL, "load.instances=2", "it runs in one instance"),
        ({}, "load.instances=4", "3 users cannot be shared by 4 instances of k6"),
        ({}, f"{TCP} load.instances=4", "3 users cannot be shared by 4 instances of k6"),
        ({}, f"{SPIKE} load.instances=2 load.max_users=1", "load.max_users (1) cannot be shared by 2 instances of k6"),
        (LONG_POLLING, "backend.instances=2", "each of the 2 backends has its own waiting room"),
        (LONG_POLLING, "load.users=1", "long_polling starts its users in two halves"),
        (
            {},
            f"{SLOW} load.header_interval=3s",
            "a header has at least 5 lines; at one line every 3s it takes longer than load.header_duration (10s)",
        ),
        ({}, f"{SLOW} load.header_interval=2s load.method=POST", "a header has at least 7 lines"),
        (
            {},
            f"{SLOW} load.header_duration=2m",
            "load.request_timeout (1m) ends a slow client's request before its header is sent",
        ),
        (
            {},
            f"{SLOW} load.header_interval=1ms load.header_duration=102ms",
            "makes 101 headers, and Tomcat refuses a request with more than 100",
        ),
        (
            {},
            f"{SLOW} load.header_duration=2m load.request_timeout=3m load.max_duration=2m",
            "and load.max_duration ends it after 120 s",
        ),
        (
            {},
            "load.workload=half_open load.half_open_duration=2m load.max_duration=2m",
            "and load.max_duration ends it after 120 s",
        ),
        ({}, f"{TCP} load.arrival_gap=5m", "the load itself takes 600 s, and load.max_duration ends it"),
        (
            {},
            "load.arrival_gap=10s load.max_duration=15s",
            "the load itself takes 20 s, and load.max_duration ends it after 15 s",
        ),
        (
            {},
            "load.calls=11 load.think_time=1s load.handler_delay=100ms load.max_duration=5s",
            "the load itself takes 11.1 s, and load.max_duration ends it after 5 s",
        ),
        ({}, f"{SPIKE} load.duration=10s load.handler_delay=2s load.max_duration=11s", "the load itself takes 12 s"),
        (SEQUENTIAL, "load.handler_delay=100ms load.max_duration=9s", "the load itself takes 10 s"),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    effective: Make, changes: dict[str, str], overrides: str, message: str
) -> None:
    assert message in refusal(effective, *overrides.split(), **changes)


@pytest.mark.parametrize(
    ("changes", "overrides"),
    [
        (without_backend("nginx"), "load.path=/static.html"),
        ({}, f"{TCP} load.closes_first=server load.calls=2"),
        ({}, f"{SLOW} load.header_interval=2s"),
        ({}, f"{SLOW} load.slow_users=3"),
        # The request line, a hundred headers, and the empty line.
        ({}, f"{SLOW} load.header_interval=1ms load.header_duration=101ms"),
    ],
)
def test_parts_that_just_fit_are_taken(effective: Make, changes: dict[str, str], overrides: str) -> None:
    assert effective(*overrides.split(), text=yaml_with(MINIMAL, changes)).slug == "one"


def test_of_two_knobs_that_disagree_the_one_that_was_set_is_cited(effective: Make) -> None:
    assert refusal(effective, "backend.threads_max=1").startswith("--set backend.threads_max=1: ")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("kernel.k6.net.ipv4.tcp_tw_recycle=1", "Linux has none since 4.12"),
        ("kernel.k6.net.ipv4.tcp_mem=1 2 3", "has one value for the whole machine"),
        ("kernel.k6.vm.swappiness.x=1", "is not a sysctl of a network namespace"),
        ("kernel.k6.net.ipv4.tcp_syn_retries=0", "must be a whole number from 1 to 127, not '0'"),
        ("kernel.k6.net.ipv4.tcp_syn_retries=many", "must be a whole number from 1 to 127, not 'many'"),
        ("kernel.k6.net.ipv4.ip_local_port_range=60000 50000", "takes two ports, the lower one first"),
        ("kernel.k6.net.ipv4.x=$(reboot)", "is not a value for the sysctl"),
        ("kernel.kb.net.ipv4.tcp_syn_retries=1", "unknown role 'kb'; valid: k6, gateway, haproxy, nginx, backend"),
    ],
)
def test_a_sysctl_that_cannot_be_set_is_refused(effective: Make, override: str, message: str) -> None:
    assert message in refusal(effective, override)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 == 1", "prediction 'served': column 1: it names no figure that is measured"),
        ("load.users == load.users", "prediction 'served': column 1: it names no figure that is measured"),
        ("client.requests.ok == 3 and model.users_failed == 0", "column 29: it names no figure that is measured"),
        ("client.requests.ok >= 0", "it is true whatever is measured"),
        ("client.requests.ok == 3 and client.requests.ok <= client.requests.ok", "it is true whatever is measured"),
        ("client.requests.okay == 3", "client.requests.ok"),
        ("client.requests.ok ==", "prediction 'served':"),
        ("kernel.nginx.TcpExt.ListenOverflows == 0", "nginx"),
        ("load.user == 3", "load.users"),
        ("__import__('os')", "prediction 'served':"),
        ("client.requests.ok + 1", "prediction 'served':"),
    ],
)
def test_a_prediction_that_nothing_can_judge_is_refused(effective: Make, expression: str, message: str) -> None:
    said = refusal(effective, **{"client.requests.ok == load.users": expression})
    assert "scenario.yaml:15: " in said
    assert message in said


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("client.requests.ok > 1", "client.requests.ok is measured; only knobs and model are known before a run"),
        ("load.users", "a prediction must compare something"),
        ("load.user > 1", "load.users"),
        ('load.method == "PUT"', "column 16: load.method cannot be 'PUT'; valid: "),
    ],
)
def test_a_condition_that_is_not_known_before_a_run_is_refused(effective: Make, when: str, message: str) -> None:
    said = refusal(
        effective, **{"    description: All are served.\n": f"    description: All are served.\n    when: {when}\n"}
    )
    assert "scenario.yaml:16: prediction 'served'" in said
    assert message in said


def test_two_predictions_of_one_name_are_refused(effective: Make) -> None:
    again = "  - {id: served, description: Again., expression: client.requests.ok == 3}\n"
    with pytest.raises(BadInput, match="two predictions are named 'served'"):
        effective(text=MINIMAL + again)
