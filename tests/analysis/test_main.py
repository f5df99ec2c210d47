import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from analysis.__main__ import main
from tests.analysis.support import RunFolder

Analysis = Callable[..., "Done"]


class Done(NamedTuple):
    returncode: str | int | None
    stdout: str
    stderr: str


@pytest.fixture
def analysis(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Analysis:
    """Call the command in this process."""

    def called(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["analysis", *map(str, arguments)])
        code: str | int | None
        try:
            code = main()
        except SystemExit as end:
            code = end.code
        return Done(code, *capsys.readouterr())

    return called


@pytest.mark.parametrize(
    ("expression", "code"),
    [("client.requests.ok == 3", 0), ("client.requests.ok == 4", 1), ("1 / 0 == 1", 3)],
)
def test_the_exit_code_tells_the_verdict(analysis: Analysis, run: RunFolder, expression: str, code: int) -> None:
    run.predict(expression)
    done = analysis(run.write())

    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_missing_argument_is_bad_input(analysis: Analysis) -> None:
    assert analysis().returncode == 2


def test_the_module_runs_as_a_command(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "analysis", tmp_path], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{tmp_path}: no manifest.json here; this is not a run's folder\n"


def test_without_the_program_that_reads_captures_nothing_is_written(
    analysis: Analysis, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run.write()
    (folder / "raw" / "k6-1" / "collector" / "capture.pcap").write_bytes(b"")
    monkeypatch.setenv("CONNLAB_FLOWS", "/none")
    done = analysis(folder)

    assert (done.returncode, done.stdout) == (4, "")
    assert (
        done.stderr
        == "CONNLAB_FLOWS names no file; hint: `connlab setup` (make setup) makes it, or CONNLAB_FLOWS names one\n"
    )
    assert not (folder / "derived").exists()


def test_a_verdict_that_cannot_be_written_is_a_failure(analysis: Analysis, run: RunFolder) -> None:
    folder = run.write()
    (folder / "derived").write_text("in the way")
    done = analysis(folder)

    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"{folder / 'derived'}: File exists\n"
