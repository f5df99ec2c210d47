"""The ways in which a run fails: nothing stays running, the manifest says why, and there is no traceback."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from formats import run_liveness
from lab.engines.compose.engine import Compose
from lab.errors import BadInput, Interruption, LabError
from lab.runs.lock import machine_lock
from lab.runs.run import run
from lab.series import matrices
from lab.series.executor import run_plan
from tests.lab import series_support
from tests.lab.container_states import state
from tests.lab.engine import InMemoryDocker
from tests.lab.support import IMAGES, Make


@pytest.fixture
def start(effective: Make, elsewhere: Path, fake_docker: InMemoryDocker) -> Callable[..., Path]:
    """Run the minimal scenario with results elsewhere."""
    fake_docker.says("version *", "26.1.5")
    fake_docker.says("compose version *", "2.26.1")
    fake_docker.says("image ls *", IMAGES)
    assert elsewhere.is_dir()

    def go(*overrides: str) -> Path:
        return run(effective(*overrides), Compose(), ["connlab", "run", "one"], Console(stderr=True))

    return go


def interrupt(*_: object, **__: object) -> None:
    """What a signal does, in the place of anything."""
    series_support.interrupt()


def manifest_of(elsewhere: Path) -> dict[str, Any]:
    (file,) = elsewhere.glob("results/one/*/manifest.json")
    return dict(json.loads(file.read_bytes()))


def test_compose_s_failure_aborts_the_run_and_all_is_removed(
    start: Callable[..., Path], elsewhere: Path, fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("compose * up *", stderr="no space left on device", exit_code=1)
    fake_docker.says("ps *", "connlab-run-backend-1\n")
    fake_docker.says("network ls *", "connlab-run_lab\n")
    with pytest.raises(LabError, match=r"(?s)the run was aborted: .*no space left on device.*stays in"):
        start()
    manifest = manifest_of(elsewhere)
    assert manifest["status"] == "aborted"
    assert "no space left on device" in manifest["reason"]
    after = fake_docker.calls[[" up " in call for call in fake_docker.calls].index(True) :]
    assert "rm --force --volumes connlab-run-backend-1" in after
    assert "network rm connlab-run_lab" in after
    assert not (elsewhere / "results" / "one" / "latest").is_symlink()


def test_a_container_that_ends_at_its_start_is_named_with_its_last_words(
    start: Callable[..., Path], fake_docker: InMemoryDocker
) -> None:
    died = {"Action": "die", "Actor": {"Attributes": {"name": "connlab-run-backend-1", "exitCode": "2"}}}
    fake_docker.says("events *", json.dumps(died) + "\n")
    fake_docker.says("compose * up *", stderr="container connlab-run-backend-1 exited (2)", exit_code=1, once_told=True)
    fake_docker.says("logs --tail *", "backend: CONNLAB_HEAP_MB is missing\n")
    with pytest.raises(
        LabError, match=r"(?s)backend-1 ended with exit code 2 during its start:\n  backend: CONNLAB_HEAP_MB"
    ):
        start()


def test_a_container_that_ended_is_named_though_compose_says_so_before_the_engine(
    start: Callable[..., Path], fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("compose * up *", exit_code=1)
    fake_docker.says("ps *", "connlab-run-collector-backend-1\nconnlab-run-backend-1\n")
    states = state("collector-backend-1", code=137) + state("backend-1", running=True)
    fake_docker.says("inspect --format {{.Name}} *", states)
    with pytest.raises(LabError, match="collector-backend-1 ended with exit code 137 during its start"):
        start()


def test_a_sysctl_that_the_kernel_refuses_is_bad_input(start: Callable[..., Path], fake_docker: InMemoryDocker) -> None:
    said = "runc: write sysctl key: open /proc/sys/net/ipv4/tcp_syncookies: invalid argument: unknown"
    fake_docker.says("compose * up *", stderr=said, exit_code=1)
    with pytest.raises(
        BadInput, match=r"--set kernel.k6.net.ipv4.tcp_syncookies=1: the kernel refuses net.ipv4.tcp_syncookies"
    ):
        start("kernel.k6.net.ipv4.tcp_syncookies=1")


def test_without_an_engine_nothing_is_begun(
    start: Callable[..., Path], elsewhere: Path, fake_docker: InMemoryDocker
) -> None:
    fake_docker.forget()
    fake_docker.says("*", stderr="Cannot connect to the Docker daemon", exit_code=1)
    with pytest.raises(LabError, match="hint: start the Docker Engine"):
        start()
    assert not (elsewhere / "results").exists()


def test_a_second_run_is_refused(start: Callable[..., Path], elsewhere: Path) -> None:
    with (
        machine_lock("the run of two", elsewhere / "connlab.lock"),
        pytest.raises(LabError, match="the run of two is in progress"),
    ):
        start()


def test_results_that_cannot_be_written_are_an_error_of_the_machine(
    start: Callable[..., Path], elsewhere: Path
) -> None:
    (elsewhere / "results").write_text("in the way")
    with pytest.raises(LabError, match=r"see that /.*/results is writable"):
        start()


def test_a_disk_without_room_for_a_manifest_leaves_no_folder(
    start: Callable[..., Path], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path) -> None:
        assert folder.is_dir()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_liveness, "hold_run", full)
    with pytest.raises(LabError, match=r"one/.*: No space left on device\nhint: see that /.*/results is writable"):
        start()
    assert list((elsewhere / "results" / "one").iterdir()) == []


def test_what_cannot_be_removed_after_a_run_is_reported_and_noted_for_the_next(
    start: Callable[..., Path], elsewhere: Path, fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("compose * up *", stderr="broken", exit_code=1)
    fake_docker.says("network ls *", "connlab-run_lab", after=" up ")
    fake_docker.says("network rm *", stderr="has active endpoints", exit_code=1)
    told = r"(?s)the run was aborted: .*broken.*its containers could not be removed: .*has active endpoints.*make clean"
    with pytest.raises(LabError, match=told):
        start()
    assert "could not be removed" in manifest_of(elsewhere)["reason"]
    (folder,) = elsewhere.glob("results/one/*-r01")
    assert json.loads((elsewhere / "cache" / "running.json").read_bytes())["folder"] == f"one/{folder.name}"


def test_a_run_that_breaks_off_has_its_report_all_the_same(
    start: Callable[..., Path], elsewhere: Path, fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("compose * up *", stderr="broken", exit_code=1)
    with pytest.raises(LabError, match=r"stays in \S+\nits report: \S+/report.html"):
        start()
    (page,) = elsewhere.glob("results/one/*/report.html")
    assert "The run was aborted" in page.read_text()
    assert "aborted" in (elsewhere / "results" / "index.html").read_text()


def test_an_analysis_that_fails_hides_not_why_the_run_broke_off(
    start: Callable[..., Path], fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise ValueError("half a file\nand more")

    monkeypatch.setattr("lab.runs.run_results.analyse_run", fail)
    fake_docker.says("compose * up *", stderr="broken", exit_code=1)
    with pytest.raises(LabError, match=r"(?s)the run was aborted: .*broken.*\nthere is no report of it: half a file$"):
        start()


@pytest.fixture
def left(
    start: Callable[..., Path], elsewhere: Path, fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The manifest of a run whose process was killed."""
    fake_docker.says("compose * up *", stderr="broken", exit_code=1)
    with monkeypatch.context() as killed:
        killed.setattr("lab.runs.run.record", interrupt)
        with pytest.raises(Interruption):
            start()
    (file,) = elsewhere.glob("results/one/*/manifest.json")
    return file


def elsewhere_by_path(left: Path, note: Path) -> Path:
    """A folder outside results/, named by its whole path."""
    outside = shutil.move(left.parent, note.parent / left.parent.name)
    return renamed(note, str(outside))


def elsewhere_by_dots(left: Path, note: Path) -> Path:
    outside = shutil.move(left.parent, note.parent / left.parent.name)
    return renamed(note, f"one/../../cache/{Path(outside).name}")


def elsewhere_by_a_link(left: Path, note: Path) -> Path:
    outside = Path(shutil.move(left.parent, note.parent / left.parent.name))
    left.parent.symlink_to(outside)
    return outside / "manifest.json"


def elsewhere_by_a_link_in_place_of_the_scenario(left: Path, note: Path) -> Path:
    outside = Path(shutil.move(left.parent.parent, note.parent / "one"))
    left.parent.parent.symlink_to(outside)
    return outside / left.parent.name / "manifest.json"


def by_a_linked_manifest(left: Path, note: Path) -> Path:
    outside = Path(shutil.move(left, note.parent / "manifest.json"))
    left.symlink_to(outside)
    return outside


def of_another_name(left: Path, note: Path) -> Path:
    other = Path(shutil.move(left.parent, left.parent.with_name("other")))
    return renamed(note, f"one/{other.name}")


def where_all_may_write(left: Path, _: Path) -> Path:
    left.parent.chmod(0o777)
    return left


def by_a_note_that_all_may_write(left: Path, note: Path) -> Path:
    note.chmod(0o666)
    return left


def by_the_lock_file(left: Path, note: Path) -> Path:
    """The words of another user, who can write into a lock file that an earlier version made."""
    note.unlink()
    outside = Path(shutil.move(left.parent, note.parent / left.parent.name))
    said = {"pid": 1, "what": "the run of one", "since": "2026-01-31 12:00:00", "folder": str(outside)}
    (note.parent.parent / "connlab.lock").write_text(json.dumps(said))
    return outside / "manifest.json"


def renamed(note: Path, folder: str) -> Path:
    """Let the note name another folder, and give the manifest there."""
    note.write_text(json.dumps(json.loads(note.read_text()) | {"folder": folder}))
    return note.parent.parent / "results" / folder / "manifest.json"


@pytest.mark.parametrize(
    "where",
    [
        elsewhere_by_path,
        elsewhere_by_dots,
        elsewhere_by_a_link,
        elsewhere_by_a_link_in_place_of_the_scenario,
        by_a_linked_manifest,
        of_another_name,
        where_all_may_write,
        by_a_note_that_all_may_write,
        by_the_lock_file,
    ],
)
def test_the_manifest_of_a_killed_run_is_written_in_its_own_place_only(
    start: Callable[..., Path], elsewhere: Path, left: Path, where: Callable[[Path, Path], Path]
) -> None:
    file = where(left, elsewhere / "cache" / "running.json")
    before = file.read_bytes()
    with pytest.raises(LabError):
        start()
    assert file.read_bytes() == before


def test_a_run_that_had_come_to_its_end_keeps_its_manifest(start: Callable[..., Path], left: Path) -> None:
    left.write_text(left.read_text().replace('"status": "running"', '"status":   "complete"'))
    before = left.read_bytes()
    with pytest.raises(LabError):
        start()
    assert left.read_bytes() == before


@pytest.mark.parametrize(
    "moment", ["lab.runs.run.clear_up_after", "lab.runs.machine.describe_host", "formats.run_liveness.hold_run"]
)
def test_an_interruption_before_the_run_is_at_work_needs_no_traceback(
    start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(moment, interrupt)
    with pytest.raises(Interruption, match=r"^interrupted \(Ctrl-C\)$"):
        start()


def test_an_interruption_before_the_first_place_of_a_series_needs_no_traceback(
    elsewhere: Path, fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fake_docker.calls == []
    series_support.write(elsewhere)
    plan = matrices.plan_matrix("grid")
    monkeypatch.setattr("lab.series.store.take_fingerprint", interrupt)
    with pytest.raises(Interruption, match=r"^interrupted \(Ctrl-C\)$"):
        run_plan(plan, Compose(), ["connlab"], Console(stderr=True), new=False)


def test_a_run_that_was_killed_is_reported_by_the_next(start: Callable[..., Path], left: Path) -> None:
    assert json.loads(left.read_bytes())["status"] == "running"
    assert left.with_name(".manifest.reserve").exists()
    with pytest.raises(LabError):
        start()
    assert not left.with_name(".manifest.reserve").exists()
    manifest = json.loads(left.read_bytes())
    assert manifest["status"] == "aborted"
    assert "ended without a message" in manifest["reason"]
