"""Raw files that are not files: a role may leave anything under the name of one."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.derivation import Verdict, analyse
from analysis.evidence import flows
from analysis.evidence.rawfiles import Places
from analysis.evidence.rawrun import RawRun
from analysis.figures import Run
from analysis.verdicts import predictions
from formats import manifest
from formats.safe_files import open_regular
from tests.analysis.support import RunFolder, raw_file
from tests.analysis.test_example import EXAMPLE

# What opens a pipe to read waits for one that writes, for ever; this is long enough for any machine.
_HANGS_S = 300

# Each file that a container writes and predictions rest on, and one that does.
RESTS_ON = {
    "k6-1/requests.jsonl": "client.requests.ok == 3",
    "k6-1/dials.jsonl": "client.dials.failed == 100",
    "k6-1/events.jsonl": "client.admissions.total == 0",
    "backend-1/samples.jsonl": "kernel.backend.TcpExt.ListenDrops == 500",
    "backend-1/capture.pcap": "flows.backend.total == 103",
    "backend-1/capture.json": "flows.backend.total == 103",
    "backend-1/tomcat.jsonl": "tomcat.backend.requests == 3",
    "nginx/access.jsonl": "access.nginx.requests == 4",
    "nginx/error.log": "access.nginx.errors.110 == 0",
}


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def replace(path: Path, kind: str) -> None:
    """Put a pipe in a file's place, or a link to what the file was: that it is not followed shows in the verdict."""
    kept = path.rename(path.with_name(f"{path.name}.kept"))
    if kind == "a symbolic link":
        path.symlink_to(kept)
    else:
        os.mkfifo(path)


@pytest.mark.parametrize(
    ("put", "what"),
    [
        (lambda path: path.symlink_to(__file__), "is a symbolic link"),
        (lambda path: path.symlink_to("nowhere"), "is a symbolic link"),
        (os.mkfifo, "is a named pipe"),
        (Path.mkdir, "is a directory"),
        (make_socket, "No such device or address"),
    ],
)
def test_what_is_no_file_is_not_opened(tmp_path: Path, put: Callable[[Path], object], what: str) -> None:
    put(tmp_path / "x")
    with pytest.raises(OSError, match=what):
        open_regular(tmp_path / "x")


@pytest.mark.parametrize("file", RESTS_ON)
def test_what_rests_on_a_link_is_unknown_and_says_why(request: pytest.FixtureRequest, file: str) -> None:
    run: RunFolder = request.getfixturevalue("proxied_run" if file.startswith("nginx/") else "run")
    folder = run.write()
    assert judged(folder, RESTS_ON[file])[0] == "true"
    replace(raw_file(folder, file), "a symbolic link")

    status, problems = judged(folder, RESTS_ON[file])

    # capture.json is an account in one piece: what cannot be read of it is broken.
    why = "missing or broken" if file.endswith(".json") else "is a symbolic link"
    assert status == "unknown"
    assert [each for each in problems if why in each], problems


def judged(folder: Path, expression: str) -> tuple[str, list[str]]:
    """A prediction's result, and the instruments' problems."""
    run = Run(RawRun(folder, manifest.load_manifest(folder)))
    return predictions.judge(run, expression).status, [problem.message for problem in run.health.problems]


def statuses(verdict: Verdict) -> list[str]:
    return [prediction.status for prediction in verdict.predictions]


@pytest.mark.parametrize("kind", ["a symbolic link", "a named pipe"])
def test_no_file_of_a_run_is_followed_or_waited_for(run: RunFolder, kind: str) -> None:
    folder = run.write()
    for path in [each for each in (folder / "raw").rglob("*") if each.is_file()]:
        replace(path, kind)

    # A process of its own: what waits within DuckDB can only be killed.
    program = (
        "import sys; from pathlib import Path; from analysis.derivation import analyse; analyse(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, str(folder)]
    subprocess.run(command, cwd=EXAMPLE.parents[1], timeout=_HANGS_S, check=False, capture_output=True)

    verdict = json.loads((folder / "derived" / "verdict.json").read_text())
    assert {prediction["status"] for prediction in verdict["predictions"]} == {"unknown"}


def test_what_the_lab_removed_is_reported(run: RunFolder) -> None:
    run.predict("client.requests.ok == 3")
    run.manifest["removed"] = [{"file": "raw/k6-1/role/requests.jsonl", "was": "a symbolic link"}]
    folder = run.write()
    raw_file(folder, "k6-1/requests.jsonl").unlink()

    assert statuses(analyse(folder)) == ["unknown"]
    told = "raw/k6-1/role/requests.jsonl was a symbolic link, not a file of its own: the lab removed it"
    assert told in (folder / "derived" / "verdict.json").read_text()


def test_a_capture_is_read_as_it_was_opened(run: RunFolder, tmp_path: Path) -> None:
    folder = Places(run.write()).collector("backend-1")
    assert flows.reduce_capture(folder, tmp_path / "flows.parquet").losses == ()
