"""Actions: what the lab does to a server while the load runs, and which cannot be."""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from formats import manifest
from lab.engines.compose.containers import Watch
from lab.engines.compose.engine import Compose
from lab.engines.compose.run_file import build_run_file
from lab.engines.compose.startup import FIRST_SUBNET
from lab.engines.container_settings import role_environment
from lab.errors import BadInput, LabError
from lab.runs import links
from lab.runs.actions import Actions
from lab.runs.run_context import RunContext, open_run
from lab.scenarios.topology import topology_of
from tests.lab.container_states import event
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, Make, yaml_with
from tests.lab.waiting import wait_until

PROXIED = yaml_with(
    MINIMAL, {"[k6, backend]": "[k6, nginx, backend]", "users: 3": "users: 3\n    calls: 100\n    think_time: 100ms"}
)


def with_actions(*actions: str, text: str = PROXIED) -> str:
    return text + "actions:\n" + "".join(f"  - {{{action}}}\n" for action in actions)


def context_of(make: Make, *actions: str) -> RunContext:
    opened = open_run(make(text=with_actions(*actions)), Compose(), ["connlab"])
    opened.manifest.begin("measure")
    return opened


@pytest.fixture
def watch(fake_docker: InMemoryDocker, elsewhere: Path) -> Watch:
    assert elsewhere.is_dir()
    fake_docker.says("version *", "26.1.5")
    fake_docker.says("compose version *", "2.26.1")
    fake_docker.stays("events *")
    return Watch("run-1")


def await_begun(context: RunContext) -> None:
    wait_until(lambda: context.manifest.actions[0].start_us is not None)


def of_containers(docker: InMemoryDocker) -> list[str]:
    return [
        call
        for call in docker.calls
        if call.startswith(("pause", "unpause", "stop", "start", "exec", "kill", "update"))
    ]


def test_a_pause_lasts_as_long_as_it_should_and_is_written_down(
    effective: Make, watch: Watch, fake_docker: InMemoryDocker
) -> None:
    context = context_of(effective, "at: 100ms, do: pause, instance: nginx, for: 200ms")
    with watch, Actions(context, watch) as actions:
        await_begun(context)
        assert actions.settle() is None
    assert of_containers(fake_docker) == ["pause connlab-run-nginx", "unpause connlab-run-nginx"]
    context.finish("complete")
    (record,) = manifest.load_manifest(context.folder).actions
    assert (record.do, record.instance, record.at_ms, record.for_ms) == ("pause", "nginx", 100, 200)
    begun_us = context.manifest.phases[0].start_us
    assert record.start_us is not None
    assert record.end_us is not None
    assert record.start_us - begun_us >= 100_000
    assert record.end_us - record.start_us >= 200_000


def test_a_restart_s_end_is_no_crash_and_the_server_is_waited_for(
    effective: Make, watch: Watch, fake_docker: InMemoryDocker
) -> None:
    context = context_of(effective, "at: 0s, do: restart, instance: nginx, for: 50ms")
    with watch, Actions(context, watch) as actions:
        wait_until(lambda: bool(of_containers(fake_docker)))
        watch.take(event("die", name="connlab-run-nginx", exitCode="0"))
        assert actions.settle() is None
        assert watch.ended("nginx") is None
        watch.take(event("die", name="connlab-run-nginx", exitCode="1"))
        assert watch.ended("nginx") == "nginx ended with exit code 1"
    assert of_containers(fake_docker) == [
        "stop --time 15 connlab-run-nginx",
        "start connlab-run-nginx",
        "exec connlab-run-collector-nginx collector ready --within 90s",
    ]
    (record,) = context.manifest.actions
    assert record.exit_code == 0
    assert record.start_us is not None
    assert record.down_us is not None
    assert record.end_us is not None
    assert record.start_us < record.down_us < record.end_us


def test_a_limit_ends_with_its_client(effective: Make, watch: Watch, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("update * --cpu-quota -1 *", stderr="cannot update a stopped container", exit_code=1)
    context = context_of(effective, "at: 0s, do: cpu, instance: k6-1, cpus: 0.25, for: 50ms")
    with watch, Actions(context, watch) as actions:
        await_begun(context)
        watch.take(event("die", name="connlab-run-k6-1", exitCode="0"))
        assert actions.settle() is None
    assert context.manifest.actions[0].end_us is not None


def test_whatever_was_paused_goes_on_when_the_measurement_breaks_off(
    effective: Make, watch: Watch, fake_docker: InMemoryDocker
) -> None:
    context = context_of(effective, "at: 0s, do: pause, instance: nginx, for: 60s")
    with watch, Actions(context, watch):
        wait_until(lambda: bool(of_containers(fake_docker)))
        assert of_containers(fake_docker) == ["pause connlab-run-nginx"]
    assert of_containers(fake_docker)[-1] == "unpause connlab-run-nginx"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("at: 1s, do: pause, instance: ngnix, for: 1s", "no server 'ngnix' on the path; did you mean 'nginx'?"),
        (
            "at: 1s, do: pause, instance: backend-2, for: 1s",
            "no server 'backend-2' on the path; did you mean 'backend-1",
        ),
        (
            "at: 1s, do: pause, instance: k6-1, for: 1s",
            "k6-1 makes the load, and is not a server; act on nginx or backend-1",
        ),
        ("at: 1s, do: pause, instance: nginx", "the action 'pause' needs a duration; write for: 2s"),
        (
            "at: 1s, do: stop, instance: nginx, for: 1s",
            "a stop lasts until the server is started again, so it takes no 'for'; leave 'for' out",
        ),
        ("at: 1h, do: stop, instance: nginx", "at 1h, but then the load is over: load.max_duration is 10m"),
        ("at: 1s, do: freeze, instance: nginx", "actions.1.do cannot be 'freeze'"),
        ("at: 1, do: stop, instance: nginx", "actions.1.at: '1' has no unit: write 1s or 1ms"),
        ("at: 1s, do: drain, instance: nginx, for: 1s", "a drain lasts until the server is started again"),
        ("at: 1s, do: stop, instance: nginx, grace: 1s", "the action 'stop' takes no 'grace'; leave it out"),
        ("at: 1s, do: cpu, instance: nginx, for: 1s", "the action 'cpu' needs 'cpus'; write cpus: 0.25"),
        ("at: 1s, do: cpu, instance: nginx, for: 1s, cpus: 0", "actions.1.cpus must be at least 0.01, not"),
        ("at: 1s, do: start, instance: nginx", "nginx runs at that time, and is not to be started; stop it first"),
        (
            "at: 1s, do: reload, instance: backend-1",
            "the lab knows no way to let the backend take its configuration anew while it runs; write do: restart",
        ),
        (
            "at: 1s, do: link, instance: k6-1, to: nginx, change: {loss: 5%}, for: 1s",
            "the action changes the link from k6 to nginx, and the scenario has none; declare it: network: {k6: {",
        ),
        ("at: 1s, do: link, instance: k6-1, to: nginx, change: {los: 5%}, for: 1s", "did you mean 'loss'?"),
        ("at: 1s, do: stop, instance: nginx, fro: 1s", "unknown key 'actions.1.fro'; did you mean 'for'?"),
        ("do: stop, instance: nginx", "'actions.1.at' is missing"),
        ("at: 1s, do: filter, instance: nginx, for: 1s", "the action 'filter' needs 'answer'; write answer: none"),
        ("at: 1s, do: filter, instance: nginx, for: 1s, answer: reset", "actions.1.answer cannot be 'reset'"),
        ("at: 1s, do: dns, instance: backend-2", "the action 'dns' needs 'name'; write name: api"),
        (
            "at: 1s, do: dns, name: api, instance: backend-1",
            "moves the name api, and the scenario has none of that name; declare it: names: {api: backend-1}",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_where_it_stands(effective: Make, action: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        effective(text=with_actions(action))
    assert message in str(refused.value)
    assert "scenario.yaml:" in str(refused.value)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            "at: 1s, do: pause, instance: nginx, for: 2s",
            "at: 2s, do: restart, instance: nginx",
            "another action on nginx still lasts at that time",
        ),
        (
            "at: 1s, do: stop, instance: nginx",
            "at: 2s, do: restart, instance: nginx",
            "an earlier action stops nginx, and nothing has started it again by then; start it first",
        ),
        (
            "at: 1s, do: drain, instance: nginx, grace: 3s",
            "at: 2s, do: start, instance: nginx",
            "another action on nginx still lasts at that time",
        ),
    ],
)
def test_one_server_is_acted_on_once_at_a_time(effective: Make, first: str, second: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        effective(text=with_actions(second, first))
    if "start" not in second:
        resolved = effective(text=with_actions(first, second.replace("nginx", "backend-1")))
        assert len(resolved.scenario.actions) == 2


def test_a_program_that_bounds_its_own_end_has_one_grace(effective: Make) -> None:
    drain, restart = "at: 1s, do: drain, instance: backend-1, grace: 1s", "do: restart, instance: backend-1, grace: 2s"
    start = "at: 3s, do: start, instance: backend-1"
    with pytest.raises(BadInput, match=r"one grace for a whole run.*; give both actions the same grace"):
        effective(text=with_actions(drain, start, f"at: 4s, {restart}"))
    resolved = effective(text=with_actions(drain, start, f"at: 4s, {restart}".replace("2s", "1s")))
    told = role_environment(resolved, topology_of(resolved), "backend-1")
    assert told["SPRING_LIFECYCLE_TIMEOUTPERSHUTDOWNPHASE"] == "1000ms"


def test_haproxy_has_a_master_where_it_is_reloaded(effective: Make) -> None:
    text = PROXIED.replace("nginx", "haproxy")
    reloaded = effective(text=with_actions("at: 1s, do: reload, instance: haproxy", text=text))
    assert role_environment(reloaded, topology_of(reloaded), "haproxy")["CONNLAB_MASTER"] == "true"
    other = effective(text=text)
    assert "CONNLAB_MASTER" not in role_environment(other, topology_of(other), "haproxy")


LINKED = PROXIED + "network: {k6: {nginx: {delay: 5ms}}}\n"


@pytest.mark.parametrize(
    ("actions", "calls"),
    [
        (
            ("at: 0s, do: reload, instance: nginx",),
            ["kill --signal SIGHUP connlab-run-nginx"],
        ),
        (
            ("at: 0s, do: cpu, instance: nginx, cpus: 0.25, for: 10ms",),
            [
                "update --cpu-period 100000 --cpu-quota 25000 connlab-run-nginx",
                "update --cpu-period 100000 --cpu-quota -1 connlab-run-nginx",
            ],
        ),
        (
            ("at: 0s, do: drain, instance: backend-1, grace: 1s", "at: 1100ms, do: start, instance: backend-1"),
            [
                # The backend cuts its requests off after a second, and then has time for the rest of its end.
                "stop --time 6 connlab-run-backend-1",
                "start connlab-run-backend-1",
                "exec connlab-run-collector-backend-1 collector ready --within 90s",
            ],
        ),
        (("at: 0s, do: drain, instance: nginx, grace: 2s",), ["stop --time 2 connlab-run-nginx"]),
    ],
)
def test_what_the_engine_is_asked_for(
    effective: Make, watch: Watch, fake_docker: InMemoryDocker, actions: tuple[str, ...], calls: list[str]
) -> None:
    context = context_of(effective, *actions)
    with watch, Actions(context, watch) as acting:
        if calls[0].startswith("stop"):
            wait_until(lambda: bool(of_containers(fake_docker)))
            watch.take(event("die", name=calls[0].split()[-1], exitCode="0"))
        wait_until(lambda: all(one.end_us is not None for one in context.manifest.actions))
        assert acting.settle() is None
    assert of_containers(fake_docker) == calls
    assert context.manifest.actions[0].grace_ms == context.resolved.scenario.actions[0].grace


def test_a_link_is_changed_and_given_back(effective: Make, watch: Watch, fake_docker: InMemoryDocker) -> None:
    action = "at: 0s, do: link, instance: k6-1, to: nginx, change: {loss: 100%}, for: 10ms"
    context = open_run(effective(text=with_actions(action, text=LINKED)), Compose(), ["connlab"])
    context.manifest.begin("measure")
    context.manifest.addresses = {"nginx": ["172.18.0.3"]}
    state = dict.fromkeys(links.NAMES.values(), 0) | {"delay_ms": 5, "loss_burst": 1, "queue": 1000}
    state |= {"rate_kbit": 0, "forget_with_reset": False}
    for loss_percent in (100.0, 0.0):
        answer = json.dumps({"way": "nfqueue", "links": [state | {"loss_percent": loss_percent}]})
        fake_docker.says("exec connlab-run-collector-k6-1 collector link --change *", answer, once=True)
    with watch, Actions(context, watch) as acting:
        wait_until(lambda: context.manifest.actions[0].end_us is not None)
        assert acting.settle() is None
    asked = [json.loads(call.split("--change ", 1)[1]) for call in of_containers(fake_docker)]
    assert [(one["delay_ms"], one["loss_percent"]) for (one,) in asked] == [(5, 100.0), (5, 0.0)]
    assert context.manifest.actions[0].change == {"loss": 100.0}


def test_the_gateway_is_not_started_twice(effective: Make) -> None:
    text = PROXIED.replace("nginx", "gateway")
    with pytest.raises(BadInput, match=r"records are of one process.*; pause or stop it"):
        effective(text=with_actions("at: 1s, do: restart, instance: gateway", text=text))


@pytest.mark.parametrize("workload", ["tcp", "slow_clients", "half_open"])
def test_where_nobody_knows_who_waits_a_load_may_last_to_its_bound(effective: Make, workload: str) -> None:
    waiting = {"workload: users": f"workload: {workload}", "users: 3": "users: 103\n    connect_timeout: 20s"}
    text = yaml_with(MINIMAL, waiting)
    assert effective(text=with_actions("at: 12s, do: stop, instance: backend-1", text=text)).scenario.actions
    with pytest.raises(BadInput, match=r"at 10m, but then the load is over: load.max_duration is 10m"):
        effective(text=with_actions("at: 10m, do: stop, instance: backend-1", text=text))


def test_a_load_whose_end_is_known_bounds_its_actions(effective: Make) -> None:
    spike = yaml_with(MINIMAL, {"workload: users\n    users: 3": "workload: spike\n    duration: 5s"}).replace(
        "load.users", "0"
    )
    with pytest.raises(BadInput, match=r"at 5s, but then the load is over: load.duration is 5s"):
        effective(text=with_actions("at: 5s, do: stop, instance: backend-1", text=spike))


NAMED = PROXIED.replace("  backend:\n", "  backend:\n    instances: 2\n", 1) + "names: {api: backend-1}\n"


@pytest.mark.parametrize(("stands", "fault"), [(False, None), (True, "the rule for port 8080 still stands")])
def test_a_filter_is_set_taken_away_and_read_back(
    effective: Make, watch: Watch, fake_docker: InMemoryDocker, fault: str | None, *, stands: bool
) -> None:
    command = "exec connlab-run-collector-nginx collector filter --port 8080 --answer none"
    fake_docker.says(f"{command} --remove", json.dumps({"stands": stands}))
    fake_docker.says(command, json.dumps({"stands": True}))
    context = context_of(effective, "at: 0s, do: filter, instance: nginx, answer: none, for: 10ms")
    with watch, Actions(context, watch) as actions, pytest.raises(LabError, match=fault) if fault else nullcontext():
        assert actions.settle() is None
    assert of_containers(fake_docker) == [command, f"{command} --remove"]


def test_the_collector_beside_a_filtered_server_may_filter(effective: Make) -> None:
    context = context_of(effective, "at: 1s, do: filter, instance: nginx, answer: none, for: 1s")
    made = build_run_file(context.resolved, context.topology, "run", context.places, FIRST_SUBNET)["services"]
    assert made["collector-nginx"]["cap_add"] == ["NET_ADMIN"]
    assert "cap_add" not in made["collector-backend-1"]


@pytest.mark.parametrize(
    ("found", "fault"), [("10.0.0.2", None), ("10.0.0.1", "nginx: api: asked backend-2 (10.0.0.2), found")]
)
def test_a_name_moves_at_its_askers_name_server_and_is_read_back(
    effective: Make, watch: Watch, fake_docker: InMemoryDocker, found: str, fault: str | None
) -> None:
    told = json.dumps({"names": [{"name": "api", "instance": "backend-2", "addresses": [found]}]})
    fake_docker.says("exec connlab-run-collector-nginx collector names --set api=backend-2", told)
    text = with_actions("at: 0s, do: dns, name: api, instance: backend-2", text=NAMED)
    context = open_run(effective(text=text), Compose(), ["connlab"])
    context.manifest.begin("measure")
    context.manifest.addresses = {"backend-1": ["10.0.0.1"], "backend-2": ["10.0.0.2"]}
    with watch, Actions(context, watch) as actions:
        await_begun(context)
        with pytest.raises(LabError, match=re.escape(fault)) if fault else nullcontext():
            assert actions.settle() is None
    (record,) = context.manifest.actions
    assert (record.name, record.was, record.instance) == ("api", "backend-1", "backend-2")


def test_the_role_in_front_knows_its_servers_by_the_names_alone(effective: Make) -> None:
    topology = topology_of(effective(text=NAMED))
    assert topology.behind("nginx") == ["api:8080"]
    assert topology.names_asked("nginx") == {"api": "backend-1"}
    assert topology.names_asked("k6") == {}


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (
            "{api: backend-3}",
            "",
            "the name api leads to backend-3, and there is no such server on the path; did you mean",
        ),
        ("{backend-2: backend-1}", "", "the name backend-2 is taken: a server of the path has it; choose another one"),
        (
            "{api: nginx}",
            "",
            "the name api leads to nginx, which clients reach by its own name; name a server behind a",
        ),
        ("{api_1: backend-1}", "", "names.api_1 takes small letters, digits and hyphens"),
        (
            "{api: backend-1}",
            "actions: [{at: 1s, do: dns, name: api, instance: backend-1}]",
            "the name api leads to backend-1 already; name another instance",
        ),
        (
            "{api: backend-1}",
            "actions: [{at: 1s, do: dns, name: api, instance: nginx}]",
            "the name api leads to backend-1, and nginx is another role; name backend-2",
        ),
    ],
)
def test_a_name_that_cannot_lead_there_is_refused(effective: Make, names: str, more: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        effective(text=NAMED.replace("{api: backend-1}", names) + more + "\n")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("names", "knob", "message"),
    [
        ("", "", "asks for one server's name again, and behind it are 2 servers; declare one name for them"),
        ("names: {api: backend-1}", "upstream_keepalive: 4, ", "nginx keeps no connections to its servers, and"),
    ],
)
def test_nginx_asks_again_for_one_name_without_a_pool(effective: Make, names: str, knob: str, message: str) -> None:
    knobs = f"knobs:\n  nginx: {{{knob}resolver_valid: 1s}}"
    text = NAMED.replace("names: {api: backend-1}", names).replace("knobs:", knobs)
    with pytest.raises(BadInput) as refused:
        effective(text=text)
    assert message in str(refused.value)
