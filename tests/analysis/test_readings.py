"""What was read once a second, as derived/readings.parquet."""

from pathlib import Path

import duckdb

from analysis.evidence.rawrun import RawRun
from analysis.figures import Run
from analysis.verdicts import parquet_files
from formats import manifest
from tests.analysis.support import DRAIN_END_S, MEASURE_S, RunFolder, at_us


def derive(folder: Path) -> None:
    (folder / "derived").mkdir(exist_ok=True)
    parquet_files.write_readings(Run(RawRun(folder, manifest.load_manifest(folder))), folder)


def values(run: RunFolder, instance: str, name: str) -> list[float]:
    folder = run.write()
    derive(folder)
    rows = duckdb.execute(
        "SELECT value FROM read_parquet($path) WHERE instance = $instance AND name = $name ORDER BY time_us",
        {"path": str(folder / parquet_files.READINGS), "instance": instance, "name": name},
    ).fetchall()
    return [value for (value,) in rows]


def test_sockets_by_side_and_state(run: RunFolder) -> None:
    found = values(run, "backend-1", "sockets.server.established")

    assert max(found) == 3
    assert found[-1] == 0


def test_a_state_that_a_reading_has_not_counts_as_none(run: RunFolder) -> None:
    for reading in run.samples["backend-1"].slow:
        if reading["kind"] == "sockets" and reading["groups"][0]["count"] == 0:
            reading["groups"] = []

    assert values(run, "backend-1", "sockets.server.established")[-1] == 0


def test_processor_time_by_program_and_of_the_machine(run: RunFolder) -> None:
    for name, percent in (("cpu_percent.java", 5), ("host.cpu_percent", 10)):
        found = values(run, "backend-1", name)

        # One for each second of the window, and the two around it.
        assert len(found) >= DRAIN_END_S - MEASURE_S
        assert all(abs(value - percent) < 1 for value in found)


def test_a_reading_that_lacks_the_machine_tells_nothing_of_it(run: RunFolder) -> None:
    readings_ = [reading for reading in run.samples["backend-1"].slow if reading["kind"] == "processes"]
    for reading in readings_:
        # All of it was spent before the run.
        reading["host"]["cpu_total_ms"] += 10**6
    del next(reading for reading in readings_ if reading["time_us"] > at_us(30))["host"]

    assert all(abs(value - 10) < 1 for value in values(run, "backend-1", "host.cpu_percent"))


def test_what_the_servers_say_of_themselves(run: RunFolder, proxied_run: RunFolder) -> None:
    assert set(values(run, "backend-1", "tomcat.connections")) == {0, 1}
    assert set(values(proxied_run, "nginx", "nginx.writing")) == {1}


def test_a_run_that_never_measured_has_none(run: RunFolder) -> None:
    run.manifest["phases"] = []
    folder = run.write()
    (folder / "derived").mkdir()
    (folder / parquet_files.READINGS).write_text("of an earlier analysis")
    derive(folder)

    assert not (folder / parquet_files.READINGS).exists()
