"""Services that run on a cluster already: how a scenario names them, what the cluster says, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.rawfiles import Places
from lab.engines.compose.engine import Compose
from lab.engines.kubernetes.engine import Kubernetes
from lab.engines.kubernetes.kubectl import Kubectl
from lab.engines.kubernetes.objects import Images, build_network_policy
from lab.engines.kubernetes.pods import Pods
from lab.engines.protocol import Parts
from lab.errors import BadInput
from lab.scenarios.resolve import resolve
from lab.scenarios.topology import topology_of
from tests.lab.engine import InMemoryDocker
from tests.lab.support import Make, resolving

SCENARIO = """\
schema: 1
title: A shop
experiment: own
question: Which users are served?
path: [k6, {service: shop/my-web}]
knobs:
  load: {workload: users, users: 3, path: /}
predictions:
  - {id: served, description: Each is served., expression: client.requests.ok == load.users}
"""
OWNER = {"kind": "Job", "name": "connlab-run-1", "uid": "1"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "corner"
    folder.mkdir()
    return folder


@pytest.fixture
def shop(home: Path) -> Make:
    return resolving(home, SCENARIO)


def endpoint(pod: str, address: str, *, ready: bool = True) -> dict[str, Any]:
    of = {"kind": "Pod", "name": pod, "uid": f"uid-{pod}"}
    return {"addresses": [address], "conditions": {"ready": ready}, "nodeName": "node-2", "targetRef": of}


READY = [endpoint("web-b", "10.0.0.8"), endpoint("web-a", "10.0.0.7"), endpoint("web-c", "10.0.0.9", ready=False)]


def cluster(monkeypatch: pytest.MonkeyPatch, endpoints: list[dict[str, Any]] = READY, *ports: int) -> Kubernetes:
    """A cluster that grants everything, with one Service."""
    monkeypatch.setattr(Kubectl, "require_rights", lambda *_: None)
    client = InMemoryDocker()
    client.says("*get service my-web *", json.dumps({"spec": {"selector": {"app": "web"}}}))
    slices = {"items": [{"endpoints": endpoints, "ports": [{"port": one} for one in ports or (9000,)]}]}
    client.says("*get endpointslices* --selector kubernetes.io/service-name=my-web *", json.dumps(slices))
    return Kubernetes(Kubectl(client=client))


def problems(engine: Kubernetes | Compose, shop: Make, *overrides: str, **changes: Any) -> str:  # noqa: ANN401 # of Make
    made = shop(*overrides, **changes)
    return "\n".join(map(str, engine.cannot(made, topology_of(made))))


def test_the_cluster_says_on_which_port_how_many_pods_listen(
    monkeypatch: pytest.MonkeyPatch, shop: Make, home: Path
) -> None:
    engine, written = cluster(monkeypatch), shop()
    found = resolve(str(home), found=tuple(engine.found(written)))
    assert topology_of(found).targets == ["http://myweb-1:9000", "http://myweb-2:9000"]
    assert not list(engine.cannot(found, topology_of(found)))
    # What the scenario says itself stands.
    said = shop(changes={"shop/my-web}": "shop/my-web, port: 80, instances: 1}"})
    assert engine.found(said) == []


def test_what_the_scenario_says_otherwise_than_the_cluster_is_refused_at_its_line(
    monkeypatch: pytest.MonkeyPatch, shop: Make
) -> None:
    said = problems(cluster(monkeypatch), shop, changes={"shop/my-web}": "shop/my-web, port: 80}"})
    assert "scenario.yaml:5: no pod behind shop/my-web takes traffic on port 80: the cluster says 9000" in said
    assert "2 pods are ready behind shop/my-web, and myweb.instances is 1" in said


def test_a_service_without_a_pod_is_refused(monkeypatch: pytest.MonkeyPatch, shop: Make) -> None:
    with pytest.raises(BadInput, match=r"scenario.yaml:5: no pod is ready behind the Service 'shop/my-web'"):
        cluster(monkeypatch, READY[2:]).found(shop())


def test_a_service_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, shop: Make) -> None:
    with pytest.raises(BadInput, match="there is no Service 'other' in the namespace 'shop'"):
        cluster(monkeypatch).found(shop(changes={"my-web": "other"}))


def test_the_lab_makes_no_pod_of_what_runs_already_and_lets_the_load_reach_it(
    monkeypatch: pytest.MonkeyPatch, shop: Make, home: Path
) -> None:
    engine, written = cluster(monkeypatch), shop()
    found = resolve(str(home), found=tuple(engine.found(written)))
    pods = Pods(Parts(found, topology_of(found), "run-1", Places(home)), Images())
    assert (pods.names, pods.order()) == (["k6-1"], [["k6-1"]])
    policy = build_network_policy("run-1", OWNER, engine.running.selectors)["spec"]
    reached = policy["egress"][0]["to"][1]
    assert reached["podSelector"] == {"matchLabels": {"app": "web"}}
    assert reached["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
    assert len(policy["ingress"][0]["from"]) == 1


def test_compose_says_where_such_a_scenario_runs(shop: Make) -> None:
    assert "shop/my-web runs on a cluster; run it with --engine kubernetes" in problems(Compose(), shop)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shop/my-web}", "my-web}", "services.myweb.cluster_service"),
        ("shop/my-web}", "shop/-}", "'shop/-' gives no name for figures and knobs; write services: {web: "),
        ("shop/my-web}", "shop/my-web, environment: {A: b}}", "the lab leaves it as it is: environment cannot act"),
        ("my-web}]", "my-web}, backend]", "on the path backend comes after myweb, and the lab does not tell"),
        ("  load:", "  kernel: {myweb: {net.core.somaxconn: 9}}\n  load:", "shop/my-web runs already"),
        ("knobs:", "actions: [{at: 0s, do: restart, instance: myweb-1}]\nknobs:", "act on another server"),
        ("knobs:", "network: {myweb: {k6: {delay: 1ms}}}\nknobs:", "network: {k6: {myweb: …}}"),
    ],
)
def test_what_would_change_a_service_that_runs_is_refused(shop: Make, old: str, new: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        shop(changes={old: new})
    assert said in str(refused.value)
    assert "scenario.yaml:" in str(refused.value)
