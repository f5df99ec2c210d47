"""The phases of a run: clients start together, a load under way is watched, each edge is seen by every sampler."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pytest
from rich.console import Console

from lab.engines.compose.containers import Watch
from lab.engines.compose.engine import Compose
from lab.errors import LabError
from lab.runs import phases
from lab.runs.live_display import Display
from lab.runs.run_context import RunContext
from tests.lab.container_states import event
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, THROUGH_NGINX, Open, yaml_with

Phase = Callable[[RunContext, Watch, Display], str | None]
Underway = Callable[..., str | None]

# Far more than any of these tests takes, so that a phase that does not end shows as a hang.
LIMIT_S = 300
LONG = yaml_with(
    MINIMAL + f"drain: {LIMIT_S}s\n", {"users: 3": f"users: 3\n    handler_delay: 55s\n    max_duration: {LIMIT_S}s"}
)
GOES = json.dumps({"data": {"attributes": {"paused": False}}})


@pytest.fixture
def context(opened: Open) -> RunContext:
    drained = opened()
    drained.manifest.begin("drain")
    drained.manifest.end_phase()
    return drained


def tick(context: RunContext, instances: Sequence[str], after_us: int) -> None:
    end_us = context.manifest.phases[-1].end_us
    assert end_us
    for instance in instances:
        with context.places.collector(instance, "samples.jsonl").open("a") as stream:
            stream.write(f'{{"kind":"tick","time_us":{end_us + after_us}}}\n')


def test_every_sampler_s_next_sample_is_waited_for(context: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "_SAMPLE_MAX_S", LIMIT_S)
    tick(context, context.topology.all, 0)
    tick(context, context.topology.clients, 1)
    late = threading.Timer(0.2, tick, (context, context.topology.servers, 1))
    began = time.monotonic()
    late.start()
    phases.await_samples(context)
    waited_s = time.monotonic() - began
    late.join()
    assert 0.2 <= waited_s < LIMIT_S


def test_a_sampler_that_is_gone_is_not_waited_for_forever(context: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "_SAMPLE_MAX_S", 0.1)
    tick(context, context.topology.clients, 1)
    began = time.monotonic()
    phases.await_samples(context)
    assert time.monotonic() - began >= 0.1


@pytest.fixture
def underway(opened: Open, fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch) -> Underway:
    """Go through a phase of a run in which services end, each with its exit code."""
    monkeypatch.setattr(phases, "_END_MARGIN_S", 0)
    fake_docker.says("exec *", GOES)
    fake_docker.says("logs *", "last words\n")

    def go(phase: Phase, *overrides: str, text: str = LONG, ends: Mapping[str, int] | None = None) -> str | None:
        told = (
            event("die", name=f"connlab-run-{service}", exitCode=str(code)) for service, code in (ends or {}).items()
        )
        fake_docker.stays("events *", "".join(f"{one}\n" for one in told))
        context = opened(*overrides, text=text)
        context.manifest.begin("measure")
        with Watch(context.manifest.run) as watch:
            return phase(context, watch, Display(Console(quiet=True), "one"))

    return go


@pytest.mark.parametrize("phase", [phases.run_load, phases.drain])
@pytest.mark.parametrize("service", ["backend-1", "collector-backend-1", "collector-k6-1"])
def test_a_server_or_a_collector_that_ends_ends_the_run(underway: Underway, phase: Phase, service: str) -> None:
    told = rf"^{service} ended with exit code 137 during the run:\n  last words$"
    with pytest.raises(LabError, match=told):
        underway(phase, ends={service: 137})


@pytest.mark.parametrize(("completes", "blamed"), [("true", "collector-k6-1"), ("false", "queue")])
def test_a_service_that_ends_by_itself_does_not_end_the_run(underway: Underway, completes: str, blamed: str) -> None:
    needed = f"queue: {{image: acme/job, completes: {completes}}}"
    own = f"services:\n  app: {{image: acme/app, port: 3000, depends_on: [queue]}}\n  {needed}\nknobs:"
    changes = {"[k6, backend]": "[k6, app]", "knobs:\n  backend:\n    accept_count: 1": own}
    text = yaml_with(MINIMAL, {**changes, "users: 3": "users: 3\n    path: /"}) + f"drain: {LIMIT_S}s\n"
    with pytest.raises(LabError, match=f"^{blamed} ended with exit code"):
        underway(phases.drain, text=text, ends={"queue": 0, "collector-k6-1": 137})


def test_a_server_that_ends_with_the_engine_is_not_to_blame(underway: Underway, fake_docker: InMemoryDocker) -> None:
    gone = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
    fake_docker.says("version *", stderr=gone, exit_code=1)
    with pytest.raises(LabError, match=r"^the engine ended: Cannot connect .*\nhint: start the Docker Engine"):
        underway(phases.run_load, ends={"backend-1": 137})


@pytest.mark.parametrize("phase", [phases.run_load, phases.drain])
def test_a_full_disk_ends_the_run(underway: Underway, monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    monkeypatch.setattr("lab.runs.machine.disk_free_bytes", lambda _: 1 << 20)
    with pytest.raises(LabError, match=r"the disk is full: less than 64 MiB are left at \S+/raw$"):
        underway(phase)


@pytest.mark.parametrize("phase", [phases.run_load, phases.drain])
def test_an_engine_that_stops_telling_ends_the_run(
    underway: Underway, fake_docker: InMemoryDocker, phase: Phase
) -> None:
    fake_docker.says("events *")
    with pytest.raises(LabError, match="stopped sending events"):
        underway(phase)


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [
        (0, 0, None),
        (0, 99, None),  # a threshold was crossed, and the load itself went well
        (107, 0, "k6-1 ended with exit code 107:\n  last words"),
        (99, 137, "k6-2 ended with exit code 137:\n  last words"),
    ],
)
def test_how_the_clients_ended_tells_whether_the_load_went_well(
    underway: Underway, first: int, second: int, fault: str | None
) -> None:
    assert underway(phases.run_load, "load.instances=2", ends={"k6-1": first, "k6-2": second}) == fault


def test_a_load_that_does_not_end_is_stopped_and_spoils_the_run(
    underway: Underway, fake_docker: InMemoryDocker
) -> None:
    settings = ("load.instances=2", "load.max_duration=1s")
    fault = underway(phases.run_load, *settings, text=MINIMAL, ends={"k6-1": 0})
    assert fault == "k6 did not end within 1 s and was stopped"
    assert "stop --time 15 connlab-run-k6-1 connlab-run-k6-2" in fake_docker.calls


def test_an_action_that_fails_ends_the_load(underway: Underway, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("pause *", stderr="cgroups: cannot freeze", exit_code=1)
    with pytest.raises(LabError, match=r"(?s)could not pause backend-1 \(0 s after the start\): .*cannot freeze"):
        underway(phases.run_load, text=LONG + "actions: [{at: 0s, do: pause, instance: backend-1, for: 1s}]\n")


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (0, "the load had ended before it was time to stop backend-1 (50 s after the start)"),
        (107, "k6-1 ended with exit code 107:\n  last words"),
    ],
)
def test_an_action_that_never_was_spoils_a_load_that_went_well(underway: Underway, code: int, fault: str) -> None:
    text = LONG + "actions: [{at: 50s, do: stop, instance: backend-1}]\n"
    assert underway(phases.run_load, text=text, ends={"k6-1": code}) == fault


def test_the_drain_lasts_as_long_as_the_scenario_says(underway: Underway) -> None:
    began = time.monotonic()
    underway(phases.drain, text=MINIMAL + "drain: 300ms\n")
    assert time.monotonic() - began >= 0.3


def test_the_last_servers_of_the_path_are_warmed_up_one_request_at_a_time(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, tuple[str, ...]] = {}

    def ask(_: Compose, server: str, *command: str, timeout_s: float) -> None:
        assert timeout_s > 3
        asked[server] = command

    monkeypatch.setattr(Compose, "ask", ask)
    phases.warm_up(opened("backend.instances=2", text=THROUGH_NGINX + "warmup: {requests: 3}\n"))
    three = ("collector", "http", "--times", "3", "http://127.0.0.1:8080/api/delay")
    assert asked == dict.fromkeys(("backend-1", "backend-2"), three)


def test_a_waiting_room_is_warmed_up_by_one_user_who_asks_again_and_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def ask(_: Compose, __: str, *command: str, timeout_s: float = 20) -> str:
        assert timeout_s > 3
        asked.append(command)
        return '{"token": "its own"}'

    monkeypatch.setattr(Compose, "ask", ask)
    phases.warm_up(opened("load.workload=long_polling", text=MINIMAL + "warmup: {requests: 3}\n"))
    room = "http://127.0.0.1:8080/api"
    assert asked == [
        ("collector", "http", "--method", "POST", f"{room}/wait"),
        ("collector", "http", "--times", "3", "--method", "POST", "--body", '{"token": "its own"}', f"{room}/entry"),
    ]


def test_a_server_that_fails_its_warm_up_is_named_and_the_run_goes_on(
    opened: Open, fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("exec *", stderr="collector: GET http://127.0.0.1:8080/ answered 401 Unauthorized", exit_code=1)
    assert phases.warm_up(opened(text=MINIMAL + "warmup: {requests: 1}\n")) == [
        (
            "warm-up: backend-1 failed a request, so it is less warm than the scenario says: GET http://127.0.0.1:8080/"
            " answered 401 Unauthorized"
        )
    ]


def status(number: int, *, paused: bool) -> str:
    return json.dumps({"data": {"type": "status", "attributes": {"status": number, "paused": paused}}})


def test_it_waits_until_every_instance_stands_paused(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("exec *", status(4, paused=True))
    with Watch("run-1") as watch:
        phases.await_clients(Compose(), ["k6-1", "k6-2"], watch)
    assert sum(call.startswith("exec connlab-run-collector-k6-") for call in fake_docker.calls) == 2


def test_an_instance_that_ended_is_named_with_its_last_words(fake_docker: InMemoryDocker) -> None:
    died = {"Action": "die", "Actor": {"Attributes": {"name": "connlab-run-k6-1", "exitCode": "107"}}}
    fake_docker.says("events *", json.dumps(died) + "\n")
    fake_docker.says("exec *", exit_code=1)
    fake_docker.says("logs *", "CONNLAB_USERS must be set\n")
    with (
        Watch("run-1") as watch,
        pytest.raises(LabError, match=r"k6-1 ended with exit code 107 before its load:\n  CONNLAB_USERS"),
    ):
        phases.await_clients(Compose(), ["k6-1"], watch)


def test_all_instances_are_let_go(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("exec *", status(5, paused=False))
    phases.release_clients(Compose(), ["k6-1", "k6-2"])
    assert {call.split(" collector ")[0] for call in fake_docker.calls} == {
        "exec connlab-run-collector-k6-1",
        "exec connlab-run-collector-k6-2",
    }
    assert all("--method PATCH" in call and '"paused": false' in call for call in fake_docker.calls)


@pytest.mark.parametrize("answer", [status(4, paused=True), "{}", "null"])
def test_one_that_does_not_go_is_an_error(fake_docker: InMemoryDocker, answer: str) -> None:
    fake_docker.says("exec *", answer)
    with pytest.raises(LabError):
        phases.release_clients(Compose(), ["k6-1"])
