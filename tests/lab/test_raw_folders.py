"""The folders of a run's raw files: which container can write where, and what is left of what one planted."""

import contextlib
import os
import re
import resource
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analysis.evidence.rawfiles import Places
from formats import manifest
from formats.manifest import Removed
from lab import paths
from lab.engines import container_settings
from lab.engines.compose.engine import Compose
from lab.errors import LabError
from lab.runs import phases, raw_folders
from lab.runs.gauges import Tail, last_tick_us
from lab.runs.run_context import RunContext, open_run
from lab.scenarios.topology import topology_of
from tests.lab.engine import InMemoryDocker
from tests.lab.support import Make
from tests.lab.test_run_ends import ended

__all__ = ["ended"]

BASE_IMAGE = paths.ROOT / "setup" / "base.Dockerfile"


@pytest.fixture(params=[0o000, 0o022, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    former = os.umask(request.param)
    yield
    os.umask(former)


@pytest.fixture
def chowned(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """What is given to whom; nothing really is, so that any user can run this."""
    given: dict[str, tuple[int, int]] = {}
    monkeypatch.setattr("os.chown", lambda path, uid, gid: given.update({Path(path).name: (uid, gid)}))
    return given


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_umask", "elsewhere")
def test_no_folder_of_a_run_is_open_to_the_world(effective: Make, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("version *", "26.1.5")
    context = open_run(effective(), Compose(), ["connlab"])
    folders = [context.folder, *(each for each in context.folder.rglob("*") if each.is_dir())]
    assert len(folders) == 8
    assert [str(each) for each in folders if mode(each) & stat.S_IWOTH] == []
    assert mode(context.folder) == 0o700, "nobody else looks in while containers write"
    raw_folders.seal_raw_folders(context.raw)
    assert mode(context.folder) == 0o755


@pytest.mark.usefixtures("_umask")
def test_as_root_a_role_owns_its_find_own_folder_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chowned: dict[str, tuple[int, int]]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (tmp_path / "raw").mkdir()
    places = Places(tmp_path)
    raw_folders.make_raw_folders(places, "k6-1")
    assert chowned == {"role": (10001, 10001)}
    assert [mode(each) for each in (places.collector("k6-1"), places.role("k6-1"))] == [0o755, 0o755]
    assert not mode(places.role("k6-1").parent) & 0o022


@pytest.mark.usefixtures("_umask")
def test_as_another_user_both_folders_are_open_to_its_group_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chowned: dict[str, tuple[int, int]]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    monkeypatch.setattr("os.getegid", lambda: 5678)
    (tmp_path / "raw").mkdir()
    places = Places(tmp_path)
    raw_folders.make_raw_folders(places, "k6-1")
    assert chowned == {"collector": (-1, 5678), "role": (-1, 5678)}
    assert [mode(each) for each in (places.collector("k6-1"), places.role("k6-1"))] == [0o775, 0o775]
    assert not mode(places.role("k6-1").parent) & 0o022
    assert container_settings.supplementary_groups() == ["5678"]


def test_a_program_that_runs_as_any_user_can_write_its_log_until_the_folder_is_sealed(tmp_path: Path) -> None:
    places = Places(tmp_path)
    (tmp_path / "raw").mkdir()
    raw_folders.make_raw_folders(places, "caddy-1", any_user=True)
    assert (mode(places.role("caddy-1")), mode(places.collector("caddy-1")) & 0o002) == (0o777, 0)
    raw_folders.seal_raw_folders(tmp_path / "raw")
    assert mode(places.role("caddy-1")) & 0o022 == 0


def test_the_roles_user_is_that_of_their_images() -> None:
    assert re.findall(r"useradd --uid ([0-9]+)", BASE_IMAGE.read_text()) == [str(container_settings.ROLE_UID)]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file that is not one of the run's."""
    file = tmp_path / "target"
    file.write_text('{"kind":"tick","time_us":7}\n')
    file.chmod(0o600)
    return file


def test_what_is_no_plain_file_is_removed_and_nothing_behind_it_is_touched(tmp_path: Path, target: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    role = tmp_path / "run" / "raw" / "k6-1" / "role"
    role.mkdir(parents=True)
    (role / "requests.jsonl").symlink_to(target)
    (role / "dials.jsonl").hardlink_to(target)
    (role / "folder").symlink_to(elsewhere)
    os.mkfifo(role / "events.jsonl")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(role / "s"))
    (role / "\x1b[2J").symlink_to("nowhere")
    (role / "kept.jsonl").write_text("kept")
    (role / "kept.jsonl").chmod(0o4777)
    role.chmod(0o777)

    removed = raw_folders.seal_raw_folders(tmp_path / "run" / "raw")

    assert removed == [
        Removed(file=r"raw/k6-1/role/\x1b[2J", was="a symbolic link"),
        Removed(file="raw/k6-1/role/dials.jsonl", was="a second name of another file"),
        Removed(file="raw/k6-1/role/events.jsonl", was="a named pipe"),
        Removed(file="raw/k6-1/role/folder", was="a symbolic link"),
        Removed(file="raw/k6-1/role/requests.jsonl", was="a symbolic link"),
        Removed(file="raw/k6-1/role/s", was="a socket"),
    ]
    assert [each.name for each in role.iterdir()] == ["kept.jsonl"]
    assert (mode(role), mode(role / "kept.jsonl")) == (0o755, 0o644)
    assert target.read_text() == '{"kind":"tick","time_us":7}\n'
    assert (mode(target), mode(elsewhere)) == (0o600, 0o700)


# More than Python's stack, and than a process's open files by default.
DEPTH = 1300


@pytest.fixture
def nested() -> Iterator[Callable[[Path], Path]]:
    """Makes folders in each other, and gives the innermost; pytest could not remove them itself."""
    made: list[Path] = []

    def make(top: Path) -> Path:
        made.append(top)
        inner = top / "/".join("d" * DEPTH)
        subprocess.run(["mkdir", "-p", inner], check=True)
        return inner

    yield make
    subprocess.run(["rm", "-rf", *made], check=True)


@pytest.fixture
def _few_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("_few_files")
def test_folders_in_each_other_are_sealed_however_deep_they_are(
    tmp_path: Path, target: Path, nested: Callable[[Path], Path]
) -> None:
    role = tmp_path / "run" / "raw" / "k6-1" / "role"
    inner = nested(role)
    (inner / "link").symlink_to(target)
    (inner / "file").write_text("kept")
    inner.chmod(0o777)
    beside = role / "d" / "beside"
    beside.mkdir(mode=0o777)
    (beside / "link").symlink_to(target)

    removed = raw_folders.seal_raw_folders(tmp_path / "run" / "raw")

    assert [each.was for each in removed] == ["a symbolic link"] * 2
    assert removed[0].file == "raw/k6-1/role/d/beside/link"
    assert removed[1].file.startswith("raw/k6-1/role/d/d/d/")
    assert removed[1].file.endswith("/d/d/link")
    assert [each.name for each in inner.iterdir()] == ["file"]
    assert (mode(inner), mode(beside)) == (0o755, 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_as_root_the_lab_takes_back_what_a_role_wrote(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    places = Places(tmp_path)
    raw_folders.make_raw_folders(places, "k6-1")
    file = places.role("k6-1", "requests.jsonl")
    file.write_text("")
    os.chown(file, container_settings.ROLE_UID, container_settings.ROLE_UID)
    assert raw_folders.seal_raw_folders(tmp_path / "raw") == []
    assert {(each.stat().st_uid, each.stat().st_gid) for each in (file, file.parent)} == {(0, 0)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")
@pytest.mark.parametrize("within", [None, "own"])
def test_no_program_with_another_user_s_rights_is_left_open_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str | None
) -> None:
    # Root in a container made it; the lab is another user, to whom its own folders belong.
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    run, role = Path("run"), Path("run/raw/shop-1/role")
    role.mkdir(parents=True)
    for folder in (run, *role.parents[:2], role):
        os.chown(folder, 1234, 1234)
    run.chmod(0o700)
    program = role / (within or "") / "program"
    program.parent.mkdir(mode=0o755, exist_ok=True)
    program.write_text("kept")
    program.chmod(0o4755)
    (role / "log").write_text("kept")

    os.seteuid(1234)
    try:
        removed = raw_folders.seal_raw_folders(run / "raw")
    finally:
        os.seteuid(0)

    if within:
        assert (removed, mode(run)) == ([], 0o700)
        return
    assert removed == [Removed(file="raw/shop-1/role/program", was="a program with its owner's rights")]
    assert (mode(run), [each.name for each in role.iterdir()]) == (0o755, ["log"])


@pytest.mark.parametrize("how", ["complete", "aborted"])
def test_a_run_is_sealed_however_it_ends(
    ended: Callable[..., Path], elsewhere: Path, target: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def plant(context: RunContext, *_: object) -> None:
        context.places.role("k6-1", "requests.jsonl").symlink_to(target)
        if how == "aborted":
            raise LabError("no more")

    monkeypatch.setattr(phases, "drain", plant)
    if how == "aborted":
        with pytest.raises(LabError):
            ended(0)
    else:
        ended(0)

    [folder] = [each for each in (elsewhere / "results" / "one").iterdir() if not each.is_symlink()]
    left = manifest.load_manifest(folder)
    assert left.status == how
    assert left.removed == [Removed(file="raw/k6-1/role/requests.jsonl", was="a symbolic link")]
    assert target.read_text() == '{"kind":"tick","time_us":7}\n'


def test_a_run_whose_containers_are_left_stays_closed_to_others(
    ended: Callable[..., Path], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise LabError("no more")

    monkeypatch.setattr(phases, "drain", breaks)
    monkeypatch.setattr("lab.runs.run._try_to_remove", lambda _: "its containers could not be removed")
    with pytest.raises(LabError, match="could not be removed"):
        ended(0)
    [folder] = [each for each in (elsewhere / "results" / "one").iterdir() if not each.is_symlink()]
    assert mode(folder) == 0o700


def test_folders_in_each_other_end_neither_their_run_nor_the_next(
    ended: Callable[..., Path], nested: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def plant(context: RunContext, *_: object) -> None:
        nested(context.places.role("k6-1", "d"))

    monkeypatch.setattr(phases, "drain", plant)
    for _ in range(2):
        assert manifest.load_manifest(ended(0)).status == "complete"


def test_what_the_last_run_left_never_ends_the_next(
    ended: Callable[..., Path], elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed(*_: object) -> None:
        raise SystemExit

    def breaks(*_: object) -> None:
        raise RecursionError("too deep")

    with monkeypatch.context() as patched:
        patched.setattr(phases, "drain", killed)
        patched.setattr("lab.runs.run._ensure_ending", lambda *_: contextlib.nullcontext())
        with pytest.raises(SystemExit):
            ended(0)
    [left] = [each for each in (elsewhere / "results" / "one").iterdir() if not each.is_symlink()]
    assert manifest.load_manifest(left).status == "running"

    with monkeypatch.context() as patched:
        patched.setattr(raw_folders, "seal_raw_folders", breaks)
        patched.setattr("lab.runs.run._phases", lambda *_: None)
        ended(0)
    assert f"{left.name}: what the run before this one left stays as it is: too deep" in capsys.readouterr().err
    assert manifest.load_manifest(left).status == "aborted"


@pytest.mark.parametrize("name", ["container.log", "collector.log"])
def test_a_link_in_the_place_of_a_containers_log_is_not_written_through(
    effective: Make, fake_docker: InMemoryDocker, tmp_path: Path, target: Path, name: str
) -> None:
    fake_docker.says("ps *", "connlab-run-backend-1\nconnlab-run-collector-backend-1\n")
    fake_docker.says("logs *", "what it said\n")
    folder = tmp_path / "raw" / "backend-1"
    folder.mkdir(parents=True)
    (folder / name).symlink_to(target)
    Compose().keep_logs(topology_of(effective()), tmp_path / "raw")
    assert target.read_text() == '{"kind":"tick","time_us":7}\n'
    assert not (folder / name).is_symlink()
    assert (folder / name).read_text() == "what it said\n"


@pytest.mark.parametrize("how", ["link", "pipe"])
def test_the_live_display_neither_follows_a_link_nor_waits_for_a_pipe(tmp_path: Path, target: Path, how: str) -> None:
    file = tmp_path / "live.jsonl"
    file.symlink_to(target) if how == "link" else os.mkfifo(file)
    assert Tail(target).objects() != []
    assert Tail(file).objects() == []
    assert last_tick_us(file) == 0
