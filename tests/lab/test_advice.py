"""Advice: from the ledger's main cause to a knob, a value and one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab import advice, manifest
from lab.catalogue import CATALOGUE
from lab.effective import Effective, resolve
from lab.errors import BadInput
from lab.manifest import Host, LabVersion, Manifest, instances_of, knob_records, utc_now
from lab.topology import topology_of


def recorded(folder: Path, effective: Effective, causes: dict[str, int], **ledger: Any) -> Path:  # noqa: ANN401 # JSON
    """A run's folder with a manifest and a ledger."""
    (folder / "derived").mkdir()
    Manifest(
        scenario=effective.slug,
        run="r",
        command=[],
        started=utc_now(),
        lab=LabVersion(version="0", python="3"),
        host=Host(kernel="6.18", distribution="d", cpus=2, memory_kb=1),
        path=list(effective.scenario.path),
        instances=instances_of(topology_of(effective)),
        knobs=knob_records(effective, {knob.name: knob.default for knob in CATALOGUE.values()}),
        sysctls={"backend-1": {"net.core.somaxconn": "4096"}},
        tolerance=effective.scenario.tolerance,
        predictions=[],
    ).save(folder)
    whole = {"requests": {}, "lacks": [], "unexplained": 0, "causes": causes, "hops": [], **ledger}
    (folder / "derived" / "ledger.json").write_text(json.dumps(whole))
    return folder


@pytest.mark.parametrize(
    ("scenario", "cause", "knob", "value"),
    [
        ("accept-queue-overflow", "accept-queue-drop", "backend.max_connections", "101"),
        ("accept-queue-overflow", "waited-in-accept-queue", "backend.max_connections", "103"),
        ("accept-queue-overflow", "waited-for-a-thread", "backend.threads_max", "1"),
        ("spike-through-nginx", "proxy-connections-exhausted", "nginx.worker_connections", "2408"),
        ("spike-through-nginx", "stale-keepalive", "nginx.upstream_keepalive_timeout", "19s"),
        ("spike-through-nginx", "upstream-timeout", "nginx.proxy_read_timeout", "5s"),
    ],
)
def test_a_cause_has_its_knob(tmp_path: Path, scenario: str, cause: str, knob: str, value: str) -> None:
    found = advice.of_run(recorded(tmp_path, resolve(scenario), {cause: 9, "error-status": 1}))
    assert (found.cause, found.count, found.knob, found.value) == (cause, 9, knob, value)
    assert found.command == f'make run SCENARIO={scenario} SET="{knob}={value}"'


def test_what_was_not_enough_is_doubled(tmp_path: Path) -> None:
    effective = resolve("spike-through-nginx", ["nginx.worker_connections=5000"])
    found = advice.of_run(recorded(tmp_path, effective, {"proxy-connections-exhausted": 1}))
    assert found.value == "10000"


def test_the_command_keeps_what_the_run_had_set(tmp_path: Path) -> None:
    effective = resolve("accept-queue-overflow", ["load.users=50", "backend.max_connections=2"])
    found = advice.of_run(recorded(tmp_path, effective, {"accept-queue-drop": 1}))
    assert found.command == 'make run SCENARIO=accept-queue-overflow SET="backend.max_connections=48 load.users=50"'


def test_the_advice_can_be_run(tmp_path: Path) -> None:
    found = advice.of_run(recorded(tmp_path, resolve("spike-through-nginx"), {"ephemeral-ports-exhausted": 1}))
    assert found.command is not None
    assert found.command.startswith(".venv/bin/connlab run spike-through-nginx --set ")
    resolve("spike-through-nginx", [f"{found.knob}={found.value}"])


def test_drops_before_nginx_are_nginx_s(tmp_path: Path) -> None:
    hops = [{"to": "nginx", "dropped_syns": {"fatal": 5, "healed": None}}]
    run = recorded(tmp_path, resolve("long-polling-smoke"), {"accept-queue-drop": 5}, hops=hops)
    assert advice.of_run(run).knob == "nginx.listen_backlog"


@pytest.mark.parametrize("cause", ["slow-handler", "generator-starved", "unexplained", "error-status"])
def test_where_no_knob_helps_it_says_so(tmp_path: Path, cause: str) -> None:
    unexplained = {"unexplained": 3} if cause == "unexplained" else {}
    causes = {} if unexplained else {cause: 3}
    found = advice.of_run(recorded(tmp_path, resolve("accept-queue-overflow"), causes, **unexplained))
    assert (found.cause, found.knob, found.command) == (cause, None, None)
    assert found.why


def test_a_run_without_faults_needs_no_advice(tmp_path: Path) -> None:
    assert advice.of_run(recorded(tmp_path, resolve("accept-queue-overflow"), {})).cause is None


def test_a_run_without_a_ledger_is_refused_with_the_way_on(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no ledger that can be read; derive it"):
        advice.of_run(tmp_path)
    empty = recorded(tmp_path, resolve("accept-queue-overflow"), {}, requests=None, lacks=["k6's end"])
    with pytest.raises(BadInput, match="is empty: k6's end"):
        advice.of_run(empty)
    assert manifest.load(empty).run == "r"
