"""`--metrics`: where each collector serves its figures, and how a Prometheus finds that."""

import json
import re
from collections.abc import Callable, Iterator
from io import StringIO
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from ruamel.yaml import YAML

from analysis.evidence.rawfiles import Places
from formats import manifest
from lab import paths
from lab.cli.options import DEFAULT_METRICS_PORT
from lab.engines import selection
from lab.engines.compose.engine import Compose
from lab.engines.compose.run_file import build_run_file
from lab.engines.kubernetes import objects
from lab.engines.kubernetes.engine import Kubernetes
from lab.engines.kubernetes.objects import Images
from lab.engines.protocol import Watch
from lab.errors import LabError
from lab.runs import capacity, phases, scrape_targets
from lab.runs.live_display import Display
from lab.runs.lock import machine_lock
from lab.runs.run import clear_up_after, run
from lab.runs.run_context import RunContext
from lab.scenarios.topology import topology_of
from tests.lab.engine import InMemoryDocker, InMemoryEngine
from tests.lab.support import MINIMAL, Make, connlab
from tests.lab.test_kubernetes import OWNER, container
from tests.lab.test_kubernetes import pod as made_pod

POD_MONITOR = YAML(typ="safe").load((paths.ROOT / "docs/boards/podmonitor.yaml").read_text())
SERVED = {"CONNLAB_METRICS": "0.0.0.0:9645", "CONNLAB_METRICS_LABELS": "run=run-1 role=backend"}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave the engine that a command chose to no other test."""
    yield
    selection.select_engine("compose")


def pod(make: Make, port: int | None) -> dict[str, Any]:
    return made_pod(make, "backend-1", metrics_port=port)


# --- what a collector gets ---------------------------------------------------------------------------------------


def test_a_collector_serves_its_figures_only_where_that_is_asked_for(effective: Make) -> None:
    asked = effective()
    places, subnet = Places(Path("/run-1")), IPv4Network("198.18.7.0/24")

    def of_engines(port: int | None) -> list[dict[str, str]]:
        composed = build_run_file(asked, topology_of(asked), "run-1", places, subnet, metrics_port=port)["services"]
        in_pod = container(pod(effective, port), "collector")["env"]
        return [composed["collector-backend-1"]["environment"], {one["name"]: one["value"] for one in in_pod}]

    for off, on in zip(of_engines(None), of_engines(9645), strict=True):
        assert on == off | SERVED
        assert [name for name in off if "METRICS" in name] == []
    serving, silent = (container(pod(effective, port), "collector") for port in (9645, None))
    assert serving["ports"] == [{"name": "metrics", "containerPort": 9645}]
    assert "ports" not in silent


def test_a_scrape_may_come_into_a_run_s_pods_only_where_that_is_asked_for() -> None:
    off, on = (
        objects.build_network_policy("run-1", OWNER)["spec"],
        objects.build_network_policy("run-1", OWNER, metrics_port=9645)["spec"],
    )
    assert on["ingress"] == [*off["ingress"], {"ports": [{"protocol": "TCP", "port": 9645}]}]
    assert on["egress"] == off["egress"]
    assert all("from" in rule for rule in off["ingress"])


# --- the PodMonitor ---------------------------------------------------------------------------------------------


def selects(labels: dict[str, str]) -> bool:
    selector = POD_MONITOR["spec"]["selector"]
    assert {one["operator"] for one in selector["matchExpressions"]} == {"Exists"}
    return selector["matchLabels"].items() <= labels.items() and all(
        one["key"] in labels for one in selector["matchExpressions"]
    )


def test_the_pod_monitor_finds_the_pods_of_instances_and_their_port(effective: Make) -> None:
    made = pod(effective, 9645)
    assert selects(made["metadata"]["labels"])
    (endpoint,) = POD_MONITOR["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [one["name"] for one in container(made, "collector")["ports"]]
    assert endpoint["honorLabels"] is True
    # What only holds a run has no figures.
    assert not selects(objects.build_owner("run-1", Images(), 60)["spec"]["template"]["metadata"]["labels"])


def test_the_pod_monitor_takes_run_role_and_instance_from_labels_that_the_pods_have(effective: Make) -> None:
    made = pod(effective, 9645)
    # As Prometheus names what it found out about a pod.
    meta = {
        "__meta_kubernetes_pod_label_" + name.replace(".", "_").replace("/", "_").replace("-", "_"): value
        for name, value in made["metadata"]["labels"].items()
    }
    (endpoint,) = POD_MONITOR["spec"]["podMetricsEndpoints"]
    found = {one["targetLabel"]: meta[one["sourceLabels"][0]] for one in endpoint["relabelings"]}
    assert found == {"run": "run-1", "role": "backend", "instance": "backend-1"}


def test_the_guide_shows_the_pod_monitor_as_it_is() -> None:
    shown = re.findall(r"(?s)```yaml\n(.*?)```", (paths.ROOT / "docs/kubernetes.md").read_text())
    assert POD_MONITOR in [YAML(typ="safe").load(one) for one in shown if "PodMonitor" in one]


# --- which port it is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("port", "overrides", "said"),
    [
        (8081, (), "--metrics-port 8081 is the port of a role's management; name another one by --metrics-port"),
        (8080, (), "--metrics-port 8080 is the port on which backend takes its traffic"),
        (
            20000,
            ("kernel.k6.net.ipv4.ip_local_port_range=20000 21999",),
            "--metrics-port 20000 would take one of the ports that k6 connects from",
        ),
    ],
)
def test_a_port_that_the_run_needs_itself_is_refused(
    effective: Make, port: int, overrides: tuple[str, ...], said: str
) -> None:
    engine = InMemoryEngine()
    engine.metrics = port
    (problem,) = capacity.engine_problems(effective(*overrides), engine)
    assert said in str(problem)


@pytest.mark.parametrize(
    ("options", "port"),
    [([], None), (["--metrics"], DEFAULT_METRICS_PORT), (["--metrics", "--metrics-port", "9100"], 9100)],
)
@pytest.mark.parametrize(("engine", "kind"), [("compose", Compose), ("kubernetes", Kubernetes)])
@pytest.mark.usefixtures("fake_docker")
def test_the_engine_has_the_port_that_was_asked_for(
    options: list[str], port: int | None, engine: str, kind: type
) -> None:
    assert connlab("run", "accept-queue-overflow", "--check", "--engine", engine, *options) == 0
    assert isinstance(selection.selected_engine(), kind)
    assert selection.selected_engine().metrics == port


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metrics-port", "9100"], "connlab: --metrics-port needs --metrics; add --metrics"),
        (
            ["--metrics", "--metrics-port", "80"],
            "Invalid value for '--metrics-port': Input should be greater than or equal to 1024",
        ),
        (["--metrics", "--metrics-port", "8080"], "is the port on which backend takes its traffic"),
    ],
)
def test_a_wrong_port_is_one_clear_message(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str], fake_docker: InMemoryDocker
) -> None:
    assert connlab("run", "accept-queue-overflow", "--check", *options) == 2
    assert said in capsys.readouterr().err
    assert fake_docker.calls == []


# --- where a Prometheus finds it --------------------------------------------------------------------------------


Go = Callable[[InMemoryEngine], tuple[manifest.Manifest, str]]


@pytest.fixture
def go(effective: Make, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    """Take a scenario through a run, and give its manifest and what was printed."""
    monkeypatch.setattr("lab.runs.run_results.analyse_run", lambda _: {})
    assert elsewhere.is_dir()

    def take(engine: InMemoryEngine) -> tuple[manifest.Manifest, str]:
        said, asked = StringIO(), effective(text=MINIMAL + "drain: 0s\n")
        return manifest.load_manifest(run(asked, engine, ["connlab"], Console(file=said))), said.getvalue()

    return take


def seen_while_it_runs(engine: InMemoryEngine, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note what the file of targets has when the load is over."""
    found: list[Any] = []
    drain = phases.drain

    def look(context: RunContext, watch: Watch, display: Display) -> None:
        found.append(json.loads(scrape_targets.file().read_text()) if scrape_targets.file().exists() else None)
        drain(context, watch, display)

    monkeypatch.setattr(phases, "drain", look)
    assert engine.running == set()
    return found


def test_the_targets_of_a_run_stand_in_a_file_while_it_lasts(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = InMemoryEngine()
    engine.metrics = 9645
    found = seen_while_it_runs(engine, monkeypatch)
    told, said = go(engine)
    assert told.metrics_port == 9645
    assert found == [
        [
            {"targets": ["192.0.2.1:9645"], "labels": {"run": told.run, "role": role, "instance": f"{role}-1"}}
            for role in ("k6", "backend")
        ]
    ]
    assert json.loads(scrape_targets.file().read_text()) == []
    (line,) = [one for one in said.splitlines() if one.startswith("metrics: ")]
    assert "http://192.0.2.1:9645/metrics (k6-1), http://192.0.2.1:9645/metrics (backend-1); " in line
    assert line.endswith("metrics-targets.json")


def test_a_run_that_serves_no_metrics_says_nothing_of_them_and_writes_no_file(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = InMemoryEngine()
    found = seen_while_it_runs(engine, monkeypatch)
    told, said = go(engine)
    assert told.metrics_port is None
    assert "metrics" not in said
    assert found == [None]
    assert not scrape_targets.file().exists()


def test_no_target_is_left_of_a_run_that_fails(go: Go) -> None:
    engine = InMemoryEngine(fails="stop along the path")
    engine.metrics = 9645
    with pytest.raises(LabError, match="the run was aborted"):
        go(engine)
    assert json.loads(scrape_targets.file().read_text()) == []


def test_no_target_is_left_of_a_lab_that_was_killed(elsewhere: Path) -> None:
    scrape_targets.file().parent.mkdir()
    scrape_targets.file().write_text('[{"targets": ["192.0.2.9:9645"]}]')
    with machine_lock("the next run", elsewhere / "connlab.lock") as lock:
        clear_up_after(lock, InMemoryEngine())
    assert json.loads(scrape_targets.file().read_text()) == []


def test_on_a_cluster_the_line_names_the_pods_label(go: Go) -> None:
    engine = InMemoryEngine()
    engine.metrics, engine.on_this_machine = 9645, False
    told, said = go(engine)
    assert f"metrics: port 9645 of each pod with the label connlab.run={told.run}" in said
    assert not scrape_targets.file().exists()
