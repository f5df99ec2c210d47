"""Actions: what the lab does to a server while the load runs, and which cannot be."""

from pathlib import Path

import pytest

from formats import manifest
from lab.engines.compose.containers import Watch
from lab.engines.compose.engine import Compose
from lab.errors import BadInput, LabError
from lab.runs.phases import Actions
from lab.runs.run_context import RunContext, open_run
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
    return [call for call in docker.calls if call.startswith(("pause", "unpause", "stop", "start", "exec"))]


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


def test_an_action_that_fails_ends_the_run_with_what_was_tried(
    effective: Make, watch: Watch, fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("pause *", stderr="cgroups: cannot freeze", exit_code=1)
    context = context_of(effective, "at: 0s, do: pause, instance: nginx, for: 1s")
    with watch, Actions(context, watch) as actions:
        await_begun(context)
        with pytest.raises(LabError, match=r"(?s)could not pause nginx \(0 s after the start\): .*cannot freeze"):
            actions.settle()


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
        ("at: 1s, do: pause, instance: nginx", "a pause needs a duration; write for: 2s"),
        ("at: 1s, do: stop, instance: nginx, for: 1s", "a stop lasts until the end of the run"),
        ("at: 1h, do: stop, instance: nginx", "at 1h, but then the load is over: load.max_duration is 10m"),
        ("at: 1s, do: freeze, instance: nginx", "actions.1.do cannot be 'freeze'"),
        ("at: 1, do: stop, instance: nginx", "actions.1.at: '1' has no unit: write 1s or 1ms"),
        ("at: 1s, do: stop, instance: nginx, fro: 1s", "unknown key 'actions.1.fro'; did you mean 'for'?"),
        ("do: stop, instance: nginx", "'actions.1.at' is missing"),
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
            "an earlier action stops",
        ),
    ],
)
def test_one_server_is_acted_on_once_at_a_time(effective: Make, first: str, second: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        effective(text=with_actions(second, first))
    resolved = effective(text=with_actions(first, second.replace("nginx", "backend-1")))
    assert len(resolved.scenario.actions) == 2


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
