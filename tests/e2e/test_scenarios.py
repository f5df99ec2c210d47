"""The scenarios on real servers: what each one shows, and that its raw files keep their schemas."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from .conftest import ROOT, RUNS_MAX, Run, assert_spoiled_only_by_the_machine, left_behind

pytestmark = pytest.mark.e2e

SCHEMA_OF = {
    "samples.jsonl": "samples",
    "dials.jsonl": "dials",
    "requests.jsonl": "requests",
    "events.jsonl": "events",
    "live.jsonl": "live",
    "access.jsonl": "access",
    "capture.json": "capture",
    "tomcat.jsonl": "scrape",
    "stub_status.jsonl": "scrape",
    "gateway.jsonl": "scrape",
}
# Which of them an instance of each role writes; packets are captured at the first server.
FILES = {
    "k6": ("samples.jsonl", "dials.jsonl", "requests.jsonl", "events.jsonl", "live.jsonl"),
    "nginx": ("samples.jsonl", "access.jsonl", "stub_status.jsonl"),
    "gateway": ("samples.jsonl", "access.jsonl", "dials.jsonl", "gateway.jsonl"),
    "backend": ("samples.jsonl", "tomcat.jsonl"),
}


def documents(file: Path) -> Iterator[dict[str, Any]]:
    """The JSON documents of a file: one a line in .jsonl, one in all in .json."""
    if file.suffix == ".json":
        yield json.loads(file.read_text())
    else:
        for line in file.read_text().splitlines():
            yield json.loads(line)


def of_kind(kind: str, file: Path) -> list[dict[str, Any]]:
    return [line for line in documents(file) if line.get("kind") == kind]


def assert_follows_schemas(run: Run) -> None:
    """Each file follows its schema, and all are there that the instances of this run write."""
    instances, first_server = run.manifest["instances"], run.manifest["path"][1]
    expected = {f"{one}/{name}" for role, names in FILES.items() for name in names for one in instances.get(role, [])}
    expected |= {f"{one}/capture.json" for one in instances[first_server]}
    seen = set()
    for file in sorted((run.folder / "raw").glob("*/*/*")):
        if (name := SCHEMA_OF.get(file.name)) is None:
            continue
        seen.add(f"{file.parents[1].name}/{file.name}")
        validator = Draft202012Validator(json.loads((ROOT / f"schemas/{name}.schema.json").read_text()))
        for number, document in enumerate(documents(file), start=1):
            problem = next(validator.iter_errors(document), None)
            assert problem is None, f"{file}:{number}: {problem.message}"
    assert seen == expected
    assert (run.folder / "raw" / "k6-1" / "role" / "archive.tar").stat().st_size > 0
    for name in ("manifest", "derived/verdict", "derived/ledger", "derived/figures", "derived/ladders"):
        schema = json.loads((ROOT / f"schemas/{Path(name).name}.schema.json").read_text())
        Draft202012Validator(schema).validate(json.loads((run.folder / f"{name}.json").read_text()))


def assert_reproduced(run: Run) -> None:
    """The run's verdict; on a machine that was too busy for one, what holds all the same."""
    assert left_behind(run.folder) == []
    if run.busy:
        assert_spoiled_only_by_the_machine(run)
        pytest.skip(f"inconclusive in {RUNS_MAX} runs on this busy machine: {run.busy}")
    assert run.verdict["verdict"] == "reproduced", run.output
    assert run.exit_code == 0
    assert run.manifest["status"] == "complete"


def test_the_lab_pauses_a_server_under_load(run: Callable[..., Run]) -> None:
    paused = run("nginx-backlog", arm="small-backlog")
    (action,) = paused.manifest["actions"]
    assert action["end_us"] - action["start_us"] >= 2_000_000
    assert_reproduced(paused)


shares_overflow = pytest.mark.xdist_group("overflow")


@pytest.fixture(scope="module")
def overflow(run: Callable[..., Run]) -> Run:
    return run("accept-queue-overflow")


@shares_overflow
def test_103_users_overflow_the_queue_by_exactly_500(overflow: Run) -> None:
    assert_reproduced(overflow)
    measured = overflow.measured()
    assert measured["client.requests.ok"] == 3
    assert measured["client.dials.failed"] == 100
    assert measured["kernel.backend.TcpExt.ListenOverflows"] == 500
    assert measured["kernel.backend.TcpExt.ListenDrops"] == 500


@shares_overflow
def test_a_run_keeps_the_schemas_of_its_files(overflow: Run) -> None:
    assert_follows_schemas(overflow)


@shares_overflow
def test_every_sampler_samples_between_the_warm_up_and_the_measurement(overflow: Run) -> None:
    phases = {phase["name"]: phase for phase in overflow.manifest["phases"]}
    before, begun = phases["warmup"]["end_us"], phases["measure"]["start_us"]
    for instance in ("k6-1", "backend-1"):
        ticks = of_kind("tick", overflow.folder / "raw" / instance / "collector" / "samples.jsonl")
        assert any(before < tick["time_us"] < begun for tick in ticks), instance


@shares_overflow
def test_a_run_reads_its_knobs_back(overflow: Run) -> None:
    knob = overflow.manifest["knobs"]["backend.accept_count"]
    assert (knob["value"], knob["read_back"]) == (1, 1)
    assert overflow.manifest["sysctls"]["k6-1"]["net.ipv4.tcp_syn_linear_timeouts"] == "0"
    [listener] = [row for row in overflow.manifest["listeners"]["backend-1"] if row["port"] == 8080]
    assert listener["limit"] == 1


def test_the_control_does_not_show_the_signal(run: Callable[..., Run]) -> None:
    healthy = run("accept-queue-healthy")
    assert_reproduced(healthy)
    assert healthy.measured()["kernel.backend.TcpExt.ListenOverflows"] == 0


def test_the_fourth_user_fails_at_its_connect_time_out(run: Callable[..., Run]) -> None:
    # With 1 s, as published, the second SYN is due as the client gives up, and now and then leaves first. Each user
    # after the first waits for the keep-alive timeout of the one before: 20 s as published.
    assert_reproduced(run("accept-queue-four-users", "load.connect_timeout=900ms", "backend.keep_alive_timeout=4s"))


def test_long_polling_through_nginx_admits_everybody_in_order(run: Callable[..., Run]) -> None:
    polling = run("long-polling-smoke")
    assert_reproduced(polling)
    assert polling.measured()["client.admissions.total"] == 200
    assert_follows_schemas(polling)


def test_two_clients_and_a_gateway_with_a_large_enough_pool(run: Callable[..., Run]) -> None:
    pooled = run("gateway-pool-sized", "load.instances=2", "load.users=40", "load.calls=3")
    assert_reproduced(pooled)
    assert pooled.figures["ledger.identities.failed"] == 0
    assert_follows_schemas(pooled)
    raw = pooled.folder / "raw"
    assert sum(1 for _ in documents(raw / "gateway" / "role" / "access.jsonl")) == 120
    for client in ("k6-1", "k6-2"):
        assert len(of_kind("dial", raw / client / "role" / "dials.jsonl")) == 20, client
