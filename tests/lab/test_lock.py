import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.lock import machine_lock


def test_a_second_run_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with (
        machine_lock("the run of one", file),
        pytest.raises(LabError, match=rf"the run of one is at work .* \(process {os.getpid()}\)"),
        machine_lock("the run of two", file),
    ):
        pass


def test_who_is_refused_hears_what_holds_the_lock_and_which_part_of_it_is_at_work(tmp_path: Path) -> None:
    def refusal() -> str:
        with pytest.raises(LabError) as refused, machine_lock("another", tmp_path / "lock"):
            pass
        return str(refused.value)

    with machine_lock("the recording of runs", tmp_path / "lock") as lock:
        assert refusal().startswith("the recording of runs is at work")
        with machine_lock("the series of one", held=lock):
            lock.note("kept r03", tmp_path / "folder")
            assert refusal().startswith("the recording of runs: the series of one, kept r03 is at work")
        with machine_lock("the run of two", held=lock):
            lock.note(folder=tmp_path / "folder")
            assert refusal().startswith("the recording of runs: the run of two is at work")
    with machine_lock("the series of one", tmp_path / "lock") as lock:
        lock.note("kept r03", tmp_path / "folder")
        assert refusal().startswith("the series of one: kept r03 is at work")


def test_who_comes_to_an_end_leaves_nothing_to_clear_up(tmp_path: Path) -> None:
    with machine_lock("the run of one", tmp_path / "lock") as lock:
        lock.note(folder=tmp_path / "folder")
    with machine_lock("the run of two", tmp_path / "lock") as lock:
        assert lock.dead is None


def test_who_was_killed_leaves_word_of_the_run_s_folder(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    program = f"""
import os, signal
from pathlib import Path
from lab.lock import machine_lock
with machine_lock("the run of one", Path({str(file)!r})) as lock:
    lock.note(folder=Path("/results/one/run"))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    with machine_lock("the run of two", file) as lock:
        assert lock.dead is not None
        assert lock.dead.folder == "/results/one/run"


def test_a_file_that_a_dying_process_half_wrote_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text('{"pid": 1')
    with machine_lock("the run of one", tmp_path / "lock") as lock:
        assert lock.dead is None
