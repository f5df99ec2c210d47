"""A command ends as it should, whatever becomes of its standard streams."""

import subprocess
from pathlib import Path

import pytest

from lab import paths

RUN = paths.ROOT / "docs" / "example"
CONNLAB = ".venv/bin/connlab"


def ends(command: str) -> tuple[int, str]:
    """The exit code of a command for bash, and all that it says."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "internal error" not in done.stdout
    assert "Traceback" not in done.stdout
    return done.returncode, done.stdout


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_nothing(tmp_path: Path, closed: str) -> None:
    code, said = ends(f"cp -r {RUN} {tmp_path}/run && {CONNLAB} explain {tmp_path}/run --top 1 {closed}")
    assert (code, "cannot be read" in said) == (0, False)


def test_who_stops_reading_gets_the_command_s_own_exit_code() -> None:
    assert ends(f"{CONNLAB} list | true")[0] == 0
    assert ends(f"{CONNLAB} show nothing-of-this-name 2>&1 | true")[0] == 2


def test_a_result_that_cannot_be_written_is_none() -> None:
    code, said = ends(f"{CONNLAB} list >/dev/full")
    assert (code, "No space left on device" in said) == (4, True)
    assert ends(f"{CONNLAB} show nothing-of-this-name 2>/dev/full")[0] == 2


def test_a_letter_that_the_output_cannot_have_is_spelt_out() -> None:
    code, said = ends(f"PYTHONIOENCODING=ascii {CONNLAB} show accept-queue-turns")
    assert (code, said.isascii()) == (0, True)
