import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analysis.evidence.rawrun import RawRun
from analysis.figures import Run
from analysis.figures.catalogue import FIGURES
from analysis.verdicts import figures_file
from formats import manifest
from lab.schema import schemas
from tests.analysis.support import OTHERS, RunFolder, make_access, make_samples, quiet_tick
from tests.analysis.whole import make_run


def written(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        figures_file.build_figures_file(Run(RawRun(folder, manifest.load_manifest(folder)))).to_json()
    )
    Draft202012Validator(schemas()["figures.schema.json"]).validate(content)
    return content


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is written of the healthy run."""
    return written(make_run(tmp_path_factory.mktemp("run")).write())


# What a run of k6 has none of without a proxy, a script of one's own, links, TLS, kernel events or shared ports.
_ELSEWHERE = (
    "access.",
    "events.",
    "link.",
    "listen.<role>.queue.",
    "gateway.",
    "ledger.connections.",
    "ledger.gateway_",
    "flows.<server>.request",
    "flows.<server>.tls.",
    "client.checks.",
    "client.named.",
    "client.groups.",
    "client.thresholds.",
    "moved.",
    "shutdown.",
)


def test_every_figure_of_a_run_is_there(healthy: dict[str, Any]) -> None:
    found = healthy["figures"]

    absent = [figure.pattern for figure in FIGURES if all(figure.match(name) is None for name in found)]
    assert [pattern for pattern in absent if not pattern.startswith(_ELSEWHERE)] == []


def test_what_is_unknown_is_null_and_says_why(run: RunFolder) -> None:
    run.samples["backend-1"].ended = False
    run.samples["backend-1"].lose_ticks(50, 70)
    found = written(run.write())

    assert found["figures"]["kernel.backend.TcpExt.ListenDrops"] is None
    assert "sampler/backend-1" in found["why"]["kernel.backend.TcpExt.ListenDrops"]
    assert found["figures"]["client.requests.failed"] == OTHERS
    assert set(found["why"]) == {name for name, value in found["figures"].items() if value is None}


def test_an_instance_is_named_only_beside_others_of_its_role(proxied_run: RunFolder) -> None:
    names = written(proxied_run.write())["figures"]
    assert "listen.backend.drops" in names
    assert "listen.nginx.drops" in names
    assert not [name for name in names if "backend_1" in name]

    proxied_run.manifest["instances"]["backend"] = ["backend-1", "backend-2"]
    proxied_run.manifest["exits"]["backend-2"] = 143
    proxied_run.set_knobs(backend__instances=2)
    proxied_run.samples["backend-2"] = make_samples("backend-2", quiet_tick, "java")
    names = written(proxied_run.write())["figures"]
    assert {"listen.backend.drops", "listen.backend_1.drops", "listen.backend_2.drops"} <= set(names)


def test_only_codes_that_occurred_are_named(proxied_run: RunFolder) -> None:
    proxied_run.lines["nginx/access.jsonl"].append(make_access(55.0, 418))
    names = written(proxied_run.write())["figures"]

    assert {name for name in names if name.startswith("access.nginx.status.")} == {
        "access.nginx.status.200",
        "access.nginx.status.418",
        "access.nginx.status.502",
    }
    assert [name for name in names if name.startswith("client.requests.error.")] == ["client.requests.error.1211"]


def test_gauges_among_the_samples_are_no_counters(healthy: dict[str, Any]) -> None:
    assert not [name for name in healthy["figures"] if "sockstat" in name]
