import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer

import pytest

from lab import paths
from lab.errors import LabError
from lab.runs import lock
from lab.runs.lock import is_ours, machine_lock
from tests.lab.waiting import HANG_S

FLOCK = shutil.which("flock") or "flock"
NOBODY = 65534


@pytest.fixture
def file(elsewhere: Path) -> Path:
    return elsewhere / "connlab.lock"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in which every user of the machine can make files, as /run/lock."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


def refusal(file: Path) -> str:
    with pytest.raises(LabError) as refused, machine_lock("another", file):
        pass
    return str(refused.value)


@contextlib.contextmanager
def another_process(file: Path, name: str = "holder", user: int | None = None) -> Iterator[int]:
    """Let a process hold the lock; its pid."""
    command = [FLOCK, "--no-fork", str(file), "sh", "-c", "echo held; read line", name]
    with subprocess.Popen(command, user=user, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        yield held.pid
        held.communicate("\n")


def test_a_holder_is_known_while_it_holds_and_no_longer(
    file: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "lock_file", lambda: file)
    monkeypatch.setattr(lock, "note_file", lambda: elsewhere / "note" / "running.json")
    assert lock.holder() is None
    with machine_lock("the run of one") as held:
        held.note(folder=paths.RESULTS / "one" / "r01")
        found = lock.holder()
        assert found is not None
        assert (found.pid, found.what, found.folder) == (os.getpid(), "the run of one", "one/r01")
        left = (elsewhere / "note" / "running.json").read_bytes()
    (elsewhere / "note" / "running.json").write_bytes(left)  # as a killed one leaves it
    assert lock.holder() is None


def test_a_second_run_is_refused_and_told_who_holds_the_lock(file: Path) -> None:
    with (
        machine_lock("the run of one", file),
        pytest.raises(LabError, match=rf"the run of one is in progress .* \(process {os.getpid()}\)"),
        machine_lock("the run of two", file),
    ):
        pass


def test_who_is_refused_hears_what_holds_the_lock_and_which_part_of_it_is_at_work(file: Path) -> None:
    folder = paths.RESULTS / "one" / "run"
    with machine_lock("the recording of runs", file) as lock:
        assert refusal(file).startswith("the recording of runs is in progress")
        with machine_lock("the series of one", held=lock):
            lock.note("kept r03", folder)
            assert refusal(file).startswith("the recording of runs: the series of one, kept r03 is in progress")
        with machine_lock("the run of two", held=lock):
            lock.note(folder=folder)
            assert refusal(file).startswith("the recording of runs: the run of two is in progress")
    with machine_lock("the series of one", file) as lock:
        lock.note("kept r03", folder)
        assert refusal(file).startswith("the series of one: kept r03 is in progress")


def test_a_holder_of_another_checkout_is_named_by_its_process(file: Path) -> None:
    with another_process(file) as pid:
        assert f"(process {pid} of " in refusal(file)
        assert f"'kill {pid}'" in refusal(file)


def test_the_note_of_a_dead_holder_is_not_taken_for_that_of_another(file: Path) -> None:
    with pytest.raises(ValueError, match="died"), machine_lock("the run of one", file):
        raise ValueError("died")
    with another_process(file):
        assert refusal(file).startswith("another run of the lab is in progress on this machine since ")


def test_the_words_of_another_process_steer_no_terminal(file: Path) -> None:
    with another_process(file, "a\x1b[2Jb\nc\u202ed"):
        told = refusal(file)
    assert r"a\x1b[2Jb\nc\u202ed" in told
    assert "\x1b" not in told


def test_a_holder_at_its_end_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_ENDING_S", HANG_S)
    file.touch()
    ending = os.open(file, os.O_RDONLY)
    fcntl.flock(ending, fcntl.LOCK_EX)
    Timer(0.1, os.close, (ending,)).start()
    with machine_lock("the run of one", file):
        pass


def test_who_comes_to_an_end_leaves_nothing_to_clear_up(file: Path) -> None:
    with machine_lock("the run of one", file) as lock:
        lock.note(folder=paths.RESULTS / "one" / "run")
    with machine_lock("the run of two", file) as lock:
        assert lock.dead is None


def test_who_was_killed_leaves_word_of_the_run_s_folder(elsewhere: Path, file: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from lab import paths
from lab.runs import lock
elsewhere = Path({str(elsewhere)!r})
paths.RESULTS = elsewhere / "results"
lock.note_file = lambda: elsewhere / "cache" / "running.json"
with lock.machine_lock("the run of one", Path({str(file)!r})) as held:
    held.note(folder=paths.RESULTS / "one" / "run")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    with machine_lock("the run of two", file) as lock:
        assert lock.dead is not None
        assert lock.dead.folder == "one/run"


def test_a_note_that_a_dying_process_half_wrote_is_no_obstacle(elsewhere: Path, file: Path) -> None:
    (elsewhere / "cache").mkdir()
    (elsewhere / "cache" / "running.json").write_text('{"pid": 1')
    with machine_lock("the run of one", file) as lock:
        assert lock.dead is None


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_its_owner_can_write_the_lock_file_and_all_can_lock_it(file: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with machine_lock("the run of one", file):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_what_stands_in_the_lock_file_is_neither_read_nor_changed(file: Path) -> None:
    said = '{"pid": 1, "what": "x", "since": "y", "folder": "/etc"}'
    file.write_text(said)
    file.chmod(0o666)
    with machine_lock("the run of one", file) as lock:
        assert lock.dead is None
    assert file.read_text() == said


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda file: file.symlink_to(file.with_name("target")), "cannot be opened"),
        (os.mkfifo, "is not a regular file"),
        (Path.mkdir, "is not a regular file"),
    ],
)
def test_what_is_no_file_in_its_place_is_reported(file: Path, make: Callable[[Path], None], why: str) -> None:
    make(file)
    assert why in refusal(file)
    assert "hint: " in refusal(file)
    assert not file.with_name("target").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_another_user_s_lock_file_is_locked_all_the_same(shared: Path, elsewhere: Path, mode: int) -> None:
    assert elsewhere.is_dir()
    file = shared / "connlab.lock"
    file.touch()
    file.chmod(mode)
    os.chown(file, NOBODY, NOBODY)
    with another_process(file, user=NOBODY) as pid:
        assert f"process {pid} of " in refusal(file)
    with machine_lock("the run of one", file):
        again = subprocess.run([FLOCK, "--nonblock", file, "true"], check=False, user=NOBODY)
        assert again.returncode == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_root_s_lock_file_holds_another_user_off_and_is_not_his_to_change(shared: Path, elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    file = shared / "connlab.lock"
    with machine_lock("the run of one", file):
        again = subprocess.run([FLOCK, "--nonblock", file, "true"], check=False, user=NOBODY)
        assert again.returncode == 1
    written = subprocess.run(["sh", "-c", f"echo x >>{file}"], check=False, user=NOBODY, capture_output=True)
    assert written.returncode != 0


@pytest.mark.parametrize(("mode", "where"), [(0o1777, "shared"), (0o755, "fallback"), (0o775, "fallback")])
@pytest.mark.parametrize("there", [False, True])
def test_root_and_other_users_lock_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, where: str, *, there: bool
) -> None:
    for name in ("shared", "fallback"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(lock, f"_{name.upper()}", tmp_path / name)
    (tmp_path / "shared").chmod(mode)
    if there:
        (tmp_path / "shared" / "connlab.lock").touch()
    for writable in (True, False):
        monkeypatch.setattr(os, "access", lambda *_, writable=writable: writable)
        assert lock.lock_file() == tmp_path / where / "connlab.lock"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_file_with_the_same_number_on_another_file_system_is_another_lock(elsewhere: Path) -> None:
    program = f"""
import subprocess
from pathlib import Path
from lab.runs import lock
elsewhere = Path({str(elsewhere)!r})
files = [elsewhere / name / "connlab.lock" for name in ("one", "other")]
for file in files:
    file.parent.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", file.parent], check=True)
    file.touch()
assert files[0].stat().st_ino == files[1].stat().st_ino
lock.note_file = lambda: elsewhere / "cache" / "running.json"
for held in files:
    with lock.machine_lock("the run of one", held):
        for file in files:
            lock.lock_file = lambda: file
            print(held.parent.name, file.parent.name, lock.holder() is not None)
"""
    unshared = ["unshare", "--mount", sys.executable, "-c", program]
    said = subprocess.run(unshared, check=True, capture_output=True, text=True).stdout
    assert said.splitlines() == ["one one True", "one other False", "other one False", "other other True"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_file_of_another_user_is_not_ours(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert is_ours(file.stat())
    os.chown(file, NOBODY, NOBODY)
    assert not is_ours(file.stat())
