"""`connlab explain`: what it takes, what it refuses, and what it prints."""

import json
from pathlib import Path

import pytest

from lab.errors import ExitCode
from tests.analysis.support import contents
from tests.lab.support import connlab

MANIFEST = {
    "schema": "connlab.manifest/1",
    "scenario": "told",
    "run": "20251121T072640Z-default-r01",
    "status": "complete",
    "path": ["k6", "backend"],
    "roles": contents("k6", "backend"),
    "instances": {"k6": ["k6-1"], "backend": ["backend-1"]},
    "phases": [],
}
REQUEST = {
    "id": 3, "vu": 1, "iteration": 0, "scenario": "users", "name": "delay", "method": "GET",
    "url": "http://backend-1:8080/\u001b[2J", "time_us": 1_763_710_000_000_000, "end_us": 1_763_710_000_010_000,
    "blocked_us": 0, "connecting_us": 0, "tls_us": 0, "sending_us": 0, "waiting_us": 0, "receiving_us": 0,
    "duration_us": 0, "status": 0, "error_code": 1212, "error": "dial: connection refused", "reused": False,
    "remote": None, "dial": None,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw" / "k6-1" / "role").mkdir(parents=True)
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    (tmp_path / "raw" / "k6-1" / "role" / "requests.jsonl").write_text(json.dumps(REQUEST) + "\n")
    return tmp_path


def test_a_story_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("explain", str(folder), "--request", "3") == ExitCode.REPRODUCED

    out = capsys.readouterr().out
    assert "Request k6-1/3 failed after 10.0 ms" in out
    assert "k6's error 1212: dial: connection refused" in out
    assert "\x1b" not in out


def test_the_worst_are_printed_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("explain", str(folder), "--top=5", "--json") == ExitCode.REPRODUCED

    (account,) = json.loads(capsys.readouterr().out)["accounts"]
    assert (account["request"], account["outcome"]) == ("k6-1/3", "failed")
    assert account["asked"] == r"GET http://backend-1:8080/\x1b[2J"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([], "give REQUEST=k6-1/17 (--request) or TOP=5 (--top)"),
        (["--request=3", "--top=5"], "takes either a request"),
        (["--request=4"], "there is no request k6-1/4; its ids go from 3 to 3, the nearest is k6-1/3"),
        (["--request="], "'' names no request"),
        (["--top=0"], "'--top': Input should be greater than or equal to 1"),
        (["--top=101"], "'--top': Input should be less than or equal to 100"),
        (["--top=few"], "Invalid value for '--top'"),
    ],
)
def test_bad_input_is_refused(folder: Path, asked: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("explain", str(folder), *asked) == ExitCode.BAD_INPUT
    assert message in capsys.readouterr().err


def test_an_unknown_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = tmp_path / "nowhere"
    assert connlab("explain", str(nowhere), "--top=5") == ExitCode.BAD_INPUT
    assert capsys.readouterr().err.startswith(f"connlab: no run at '{nowhere}'")


def test_a_broken_manifest_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "manifest.json").write_text("{")
    assert connlab("explain", str(folder), "--request=3") == ExitCode.BAD_INPUT
    assert "manifest.json" in capsys.readouterr().err
