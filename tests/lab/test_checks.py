"""What must hold between the parts of a scenario."""

import pytest

from lab.errors import BadInput
from tests.lab.support import MINIMAL, Make, yaml_with

LONG_POLLING = {"workload: users": "workload: long_polling"}


def refusal(make: Make, *overrides: str, **replacements: str) -> str:
    with pytest.raises(BadInput) as refused:
        make(*overrides, text=yaml_with(MINIMAL, replacements))
    return str(refused.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("[backend, k6]", "does not begin with k6, the client"),
        ("[nginx, backend]", "does not begin with k6, the client"),
        (
            "[k6, nginx, gateway, backend]",
            "has two proxies, but the lab can follow requests through one only; leave one",
        ),
        (
            "[k6, backend, nginx]",
            "are not in the order client, proxy, server; write [k6, nginx, backend]",
        ),
        ("[k6, backend, backend]", "names a role twice"),
        ("[k6, k6, backend]", "names a role twice"),
    ],
)
def test_a_path_leads_from_the_client_to_the_last_server(effective: Make, path: str, message: str) -> None:
    assert message in refusal(effective, **{"[k6, backend]": path})


def test_a_path_has_a_server(effective: Make) -> None:
    assert "path is too short" in refusal(effective, **{"[k6, backend]": "[k6]"})


def test_a_knob_of_a_role_that_is_not_on_the_path_is_refused(effective: Make) -> None:
    said = refusal(effective, "nginx.worker_processes=2")
    assert said.startswith(
        "--set nginx.worker_processes=2: nginx.worker_processes is set, but nginx is not on the path"
    )


def test_a_sysctl_of_a_role_that_is_not_on_the_path_is_refused(effective: Make) -> None:
    assert "but nginx is not on the path" in refusal(effective, "kernel.nginx.net.ipv4.tcp_tw_reuse=1")


def test_a_knob_that_the_workload_does_not_read_is_refused(effective: Make) -> None:
    said = refusal(effective, "load.rate_per_second=5")
    assert (
        "load.rate_per_second is set, but the workload 'users' does not read it; leave it out; only spike reads it"
        in said
    )
    said = refusal(effective, "load.workload=tcp", "load.keep_alive=false")
    assert "load.keep_alive is set, but the workload 'tcp' does not read it" in said


def test_long_polling_needs_the_waiting_room(effective: Make) -> None:
    text = {"[k6, backend]": "[k6, nginx]", "  backend:\n    accept_count: 1\n": "", **LONG_POLLING}
    assert "long_polling needs the backend's waiting room" in refusal(effective, **text)


def test_the_gateway_needs_a_backend(effective: Make) -> None:
    text = {"[k6, backend]": "[k6, gateway]", "  backend:\n    accept_count: 1\n": ""}
    assert "the gateway has no page of its own to answer with; put backend on the path" in refusal(effective, **text)


def test_nginx_alone_has_its_static_page(effective: Make) -> None:
    text = {"[k6, backend]": "[k6, nginx]", "  backend:\n    accept_count: 1\n": ""}
    assert "nginx has only its static page /static.html, but load.path is /api/delay" in refusal(effective, **text)
    assert effective("load.path=/static.html", text=yaml_with(MINIMAL, text)).scenario.path == ["k6", "nginx"]


def test_what_only_the_delay_reads_is_refused_elsewhere(effective: Make) -> None:
    said = refusal(effective, "load.path=/actuator/health", "load.handler_delay=1s")
    assert "load.handler_delay is set, but only /api/delay reads it" in said


def test_spare_threads_cannot_exceed_all_threads(effective: Make) -> None:
    said = refusal(effective, "backend.threads_max=1")
    assert said.startswith(
        "--set backend.threads_max=1: backend.threads_min_spare (10) exceeds backend.threads_max (1)"
    )


def test_a_token_outlives_the_polling_period(effective: Make) -> None:
    said = refusal(effective, "backend.token_timeout=1s", **LONG_POLLING)
    assert "backend.token_timeout (1s) must exceed backend.polling_period (5s)" in said


def test_one_user_alone_runs_in_one_instance(effective: Make) -> None:
    text = {"workload: users\n    users: 3": "workload: sequential"}
    assert "it runs in one instance" in refusal(effective, "load.instances=2", **text)


def test_every_instance_has_a_user(effective: Make) -> None:
    assert "3 users cannot be shared by 4 instances of k6" in refusal(effective, "load.instances=4")


def test_every_instance_has_a_place_in_the_spike(effective: Make) -> None:
    asked = ("load.workload=spike", "load.instances=2")
    assert "load.max_users (1) cannot be shared by 2 instances of k6" in refusal(effective, *asked, "load.max_users=1")


def test_a_waiting_room_is_one_backends(effective: Make) -> None:
    assert "each of the 2 backends has its own waiting room" in refusal(
        effective, "backend.instances=2", **LONG_POLLING
    )


def test_plain_connections_are_users_too(effective: Make) -> None:
    assert effective("load.workload=tcp", "load.closes_first=server", "load.calls=2").scenario.knobs.load.calls == 2
    said = refusal(effective, "load.workload=tcp", "load.instances=4")
    assert "3 users cannot be shared by 4 instances of k6" in said
    said = refusal(effective, "load.workload=tcp", "load.arrival_gap=5m")
    assert "the load itself takes 600 s, and load.max_duration ends it" in said


def test_a_slow_header_fits_its_time_and_the_time_its_request(effective: Make) -> None:
    slow = "load.workload=slow_clients"
    said = refusal(effective, slow, "load.header_interval=3s")
    assert "a header has at least 5 lines; at one line every 3s it takes longer than load.header_duration (10s)" in said
    # A POST has two more.
    assert effective(slow, "load.header_interval=2s").scenario.knobs.load.header_interval == 2_000
    assert "a header has at least 7 lines" in refusal(effective, slow, "load.header_interval=2s", "load.method=POST")
    said = refusal(effective, slow, "load.header_duration=2m")
    assert "load.request_timeout (1m) ends a slow client's request before its header is sent" in said
    assert effective(slow, "load.slow_users=3").scenario.knobs.load.slow_users == 3
    # The request line, a hundred headers, and the empty line.
    assert effective(slow, "load.header_interval=1ms", "load.header_duration=101ms").values["load.slow_users"] == 10
    said = refusal(effective, slow, "load.header_interval=1ms", "load.header_duration=102ms")
    assert "makes 101 headers, and Tomcat refuses a request with more than 100" in said


def test_what_stands_beside_the_users_counts_in_the_loads_time(effective: Make) -> None:
    for workload, knob in (("slow_clients", "header_duration"), ("half_open", "half_open_duration")):
        asked = (f"load.workload={workload}", f"load.{knob}=2m", "load.request_timeout=3m")
        said = refusal(effective, *asked, "load.max_duration=2m")
        assert "and load.max_duration ends it after 120 s" in said


def test_a_waiting_room_is_for_more_than_one_user(effective: Make) -> None:
    assert "long_polling starts its users in two halves" in refusal(effective, "load.users=1", **LONG_POLLING)


def test_the_load_ends_before_its_bound(effective: Make) -> None:
    said = refusal(effective, "load.arrival_gap=10s", "load.max_duration=15s")
    assert "the load itself takes 20 s, and load.max_duration ends it after 15 s" in said
    said = refusal(effective, "load.calls=11", "load.think_time=1s", "load.handler_delay=100ms", "load.max_duration=5s")
    assert "the load itself takes 11.1 s, and load.max_duration ends it after 5 s" in said
    spike = ("load.workload=spike", "load.duration=10s", "load.handler_delay=2s")
    assert "the load itself takes 12 s" in refusal(effective, *spike, "load.max_duration=11s")
    text = {"workload: users\n    users: 3": "workload: sequential\n    requests: 100"}
    said = refusal(effective, "load.handler_delay=100ms", "load.max_duration=9s", **text)
    assert "the load itself takes 10 s" in said


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
