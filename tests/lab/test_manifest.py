import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from formats import manifest
from formats.manifest import Manifest
from lab import paths
from lab.runs.run_context import knob_records
from lab.scenarios.topology import topology_of
from lab.schema import schemas
from tests.lab.support import Make, manifest_of


@pytest.fixture
def running(effective: Make) -> Manifest:
    scenario = effective("backend.max_connections=1", "kernel.k6.net.ipv4.tcp_syn_retries=6")
    return manifest_of(
        scenario,
        "20260101T000000Z-default-r01",
        instances={role: list(names) for role, names in topology_of(scenario).instances.items()},
        knobs=knob_records(scenario),
        predictions=[stated.prediction for stated in scenario.predictions],
    )


def test_it_keeps_to_its_schema(running: Manifest, tmp_path: Path) -> None:
    running.begin("prepare")
    running.save(tmp_path)
    jsonschema.validate(json.loads((tmp_path / "manifest.json").read_bytes()), schemas()["manifest.schema.json"])


def test_it_reads_as_it_was_written(running: Manifest, tmp_path: Path) -> None:
    running.begin("prepare")
    running.save(tmp_path)
    assert manifest.load_manifest(tmp_path) == running


def test_every_knob_of_the_path_is_recorded_with_its_default_and_source(running: Manifest) -> None:
    recorded = {name: (one.value, one.default, one.source) for name, one in running.knobs.items()}
    assert recorded["backend.accept_count"] == (1, 100, "scenario")
    assert recorded["backend.max_connections"] == (1, 8192, "set")
    assert recorded["backend.keep_alive_timeout"] == (20_000, 20_000, "default")
    assert recorded["kernel.k6.net.ipv4.tcp_syn_retries"] == ("6", None, "set")
    assert not [name for name in recorded if name.startswith("nginx.")]


def test_a_phase_ends_where_the_next_begins(running: Manifest) -> None:
    running.begin("prepare")
    running.begin("measure")
    running.end_phase()
    prepare, measure = running.phases
    assert prepare.end_us == measure.start_us
    assert measure.end_us is not None


def test_a_run_that_has_ended_stays_as_it_ended(running: Manifest) -> None:
    running.begin("prepare")
    running.finish("aborted", "the disk is full")
    running.finish("complete")
    assert (running.status, running.reason) == ("aborted", "the disk is full")
    assert running.phases[-1].end_us is not None


HOLDS = """
import sys
from pathlib import Path
from formats.run_liveness import hold_run
hold_run(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_run_whose_process_was_killed_is_read_as_aborted(running: Manifest, tmp_path: Path) -> None:
    running.save(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=paths.ROOT
    ) as lab:
        assert lab.stdout is not None
        assert lab.stdout.readline() == b"held\n"
        assert manifest.load_manifest(tmp_path).status == "running"
        lab.kill()
    left = manifest.load_manifest(tmp_path)
    assert (left.status, "ended without a message" in str(left.reason)) == ("aborted", True)
    # The file stays as it is until the next run brings this one to its end.
    assert manifest.read_manifest(tmp_path).status == "running"


def test_a_failed_write_leaves_the_old_file_whole(
    running: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.save(tmp_path)
    before = (tmp_path / "manifest.json").read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        running.save(tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == before
