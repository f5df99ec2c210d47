"""What the analysis of a run needs: said, and refused, before it begins."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.database import MEMORY_MB
from analysis.derivation import TooLargeError, judge
from analysis.evidence import size
from analysis.evidence.rawrun import RawRun
from formats import manifest
from tests.analysis.support import RunFolder
from tests.bench import synthetic

Machine = Callable[[int, int], Path]

GB = 1_000_000_000


def raw_of(run: RunFolder, records_bytes: int | None = None, file: str = "requests.jsonl") -> RawRun:
    """A run one of whose files takes so many bytes; a sparse file has the size and none of the blocks."""
    folder = run.write()
    if records_bytes is not None:
        place = folder / "raw/k6-1/role" / file
        place.touch()
        os.truncate(place, records_bytes)
    return RawRun(folder, manifest.load_manifest(folder))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Give what makes a machine of so many free megabytes of memory and disk; it gives the kernel's file."""

    def of(free_mb: int, disk_mb: int) -> Path:
        meminfo = tmp_path / "meminfo"
        meminfo.write_text(f"MemTotal: 99 kB\nMemAvailable: {free_mb * 1_000_000 // 1024 + 1} kB\n")
        monkeypatch.setattr(size, "_MEMORY", meminfo)
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=disk_mb * 1_000_000))
        return meminfo

    return of


def require(raw: RawRun) -> None:
    size.require(raw.manifest, raw.places)


def needs_of(raw: RawRun) -> size.Needs:
    return size.needs_of(raw.manifest, raw.places)


def test_a_small_run_needs_no_disk_and_no_more_than_its_share(run: RunFolder) -> None:
    needs = needs_of(raw_of(run))
    assert (needs.tables_mb, needs.disk_mb) == (MEMORY_MB, 0)


def test_what_a_large_run_needs_grows_with_its_records(run: RunFolder) -> None:
    once, twice = (needs_of(raw_of(run, each * GB)) for each in (2, 4))
    assert MEMORY_MB < once.tables_mb < twice.tables_mb
    assert once.memory_mb < twice.memory_mb < 2 * once.memory_mb
    assert twice.disk_mb == pytest.approx(2 * once.disk_mb, rel=0.01)


@pytest.mark.parametrize(("of", "per_mb"), [("jmeter", 14.6), ({"fields": {"time": "t", "status": "s"}}, 0.6)])
def test_a_file_of_results_and_a_declared_log_are_records_too(run: RunFolder, of: object, per_mb: float) -> None:
    run.manifest["roles"]["k6"]["logs"] = {"records": of}
    without, with_it = (needs_of(raw_of(run, size, "records")) for size in (0, GB // 5))
    assert with_it.memory_mb - without.memory_mb == pytest.approx(200 * per_mb, abs=2)


@pytest.mark.parametrize(
    ("free_mb", "disk_mb", "said"),
    [(1_000, 100_000, "of memory, and 1,000 MB are free"), (100_000, 500, "500 MB are free there: name a folder")],
)
def test_a_run_that_does_not_fit_is_refused_before_anything_is_derived(
    run: RunFolder, machine: Machine, free_mb: int, disk_mb: int, said: str
) -> None:
    machine(free_mb, disk_mb)
    raw = raw_of(run, 2 * GB)
    with pytest.raises(TooLargeError, match=said):
        judge(raw.folder)
    assert not (raw.folder / "derived").exists()


def test_a_run_that_fits_is_not_refused(run: RunFolder, machine: Machine) -> None:
    machine(10_000, 10_000)
    require(raw_of(run, 2 * GB))


@pytest.mark.parametrize("content", [None, "MemTotal: 1 kB\n", "MemAvailable: many\n"])
def test_a_machine_that_does_not_say_what_is_free_refuses_nothing(
    run: RunFolder, machine: Machine, content: str | None
) -> None:
    meminfo = machine(0, 100_000)
    meminfo.unlink() if content is None else meminfo.write_text(content)
    require(raw_of(run, 2 * GB))


def test_a_small_run_is_never_refused(run: RunFolder, machine: Machine) -> None:
    machine(1, 1)
    require(raw_of(run))


def test_a_run_that_was_made_is_found_again(tmp_path: Path) -> None:
    """The load of `make bench-analysis`, in small: several instances, and groups of unequal length."""
    synthetic.write(tmp_path / "run", synthetic.Load(requests=303, calls=3, instances=2))
    found = judge(tmp_path / "run")
    assert found.verdict.problems == []
    assert [(each.id, each.status) for each in found.verdict.predictions] == [
        ("ok", "true"),
        ("unexplained", "true"),
        ("failed", "true"),
    ]


def test_an_instance_has_only_so_many_ports(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give more instances"):
        synthetic.write(tmp_path / "run", synthetic.Load(requests=100_000, calls=1, instances=1))
