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


def test_who_comes_to_an_end_leaves_nothing_to_clear_up(tmp_path: Path) -> None:
    with machine_lock("the run of one", tmp_path / "lock") as lock:
        lock.note("the run of one", tmp_path / "folder")
    with machine_lock("the run of two", tmp_path / "lock") as lock:
        assert lock.dead is None


def test_who_was_killed_leaves_word_of_the_run_s_folder(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    program = f"""
import os, signal
from pathlib import Path
from lab.lock import machine_lock
with machine_lock("the run of one", Path({str(file)!r})) as lock:
    lock.note("the run of one", Path("/results/one/run"))
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
