"""What a reader sees of a ledger first: what nothing explains."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from analysis.verdicts.ledger_file import Ledger
from lab.console.run_output import MissingEvidence, print_ledger
from lab.runs.run_results import print_judgement

Record = dict[str, Any]


def identity(id_: str, left: int, right: int | None, most: int | None = None, why: str | None = None) -> Record:
    difference = None if right is None else left - (most or right)
    holds = "unknown" if difference is None else "true" if difference == 0 else "false"
    sides = {"left": {"name": "a", "value": left, "value_max": None}}
    sides |= {"right": {"name": "b", "value": right, "value_max": most}}
    return {"id": id_, "says": "Both are equal.", **sides, "difference": difference, "holds": holds, "why": why}


def make_ledger(**changes: object) -> Record:
    hop: Record = {
        "from": "k6",
        "to": "backend",
        "observers": ["backend-1"],
        "dropped_syns": {"recovered": 35, "lost": 1500},
        "dropped_later": 7,
        "in_vain": 1,
        "resent": 2,
        "near_races": 1,
    }
    hop["identities"] = [
        identity("opened", 103, 103),
        identity("accepted", 5, 3, 4),
        identity("syns-dropped", 1535, None, why="capture/backend-1: the kernel dropped 3 packets"),
    ]
    return {
        "schema": "connlab.ledger/1",
        "scenario": "one",
        "run": "one",
        "failed_causes": {"accept-queue-drop": 300},
        "lacks": ["the run is aborted, not complete"],
        "requests": {"total": 1200, "ok": 899, "failed": 301, "slow": 0},
        "unexplained": 1,
        "unexplained_requests": [{"request": "k6-1/17", "outcome": "failed", "why": "no dial is recorded for it"}],
        "causes": {"accept-queue-drop": 300},
        "names": [],
        "hops": [hop],
        **changes,
    }


def printed(folder: Path, ledger: Record) -> list[str]:
    (folder / Ledger.file).parent.mkdir()
    (folder / Ledger.file).write_text(json.dumps(ledger))
    console = Console(width=40, record=True)
    print_ledger(console, folder, MissingEvidence([{"instrument": "sampler/backend-1", "message": "lost"}]))
    return console.export_text().splitlines()


def test_the_unexplained_come_first_then_the_causes_then_what_does_not_agree(tmp_path: Path) -> None:
    hop = "        k6 → backend: 1 of 3 identities hold"
    assert printed(tmp_path, make_ledger()) == [
        "ledger: 1 unexplained of 301 failed and 0 slow; 1,200 requests in all",
        "        k6-1/17 failed: no dial is recorded for it",
        "     300 accept-queue-drop",
        hop + "; dropped SYNs: 1,500 never answered, 35 recovered on retry; 7 ACKs and data"
        "; 1 client left before an answer, and backend had the request; 2 requests met a kept connection as backend"
        " closed it, and were sent again without an error; 1 answered request came within 50 ms of such a close",
        "false   accepted: a = 5, b = 3 to 4: +1",
        "unknown syns-dropped: capture/backend-1: the kernel dropped 3 packets",
    ]


def test_connections_that_came_late_stand_apart_from_those_that_failed(tmp_path: Path) -> None:
    ledger = make_ledger(requests=None, unexplained=None, unexplained_requests=[], causes={}, by_connection=True)
    ledger["hops"][0]["connections"] = {
        "total": 211,
        "failed": 36,
        "outcomes": {},
        "causes": {"accept-queue-drop": 35, "unexplained": 1},
        "delayed": {"waited-for-syn-retry": 20},
    }
    assert printed(tmp_path, ledger)[:3] == [
        "ledger: 1 unexplained of 36 connections that failed from k6 to backend; 211 in all",
        "      35 accept-queue-drop",
        "        20 connections more did not fail, but came late: waited-for-syn-retry 20",
    ]


def test_what_lacks_the_same_is_reported_once(tmp_path: Path) -> None:
    ledger = make_ledger()
    why = "sampler/backend-1: lost; sampler/backend-1: lost"
    ledger["hops"][0]["identities"] = [identity(name, 5, None, why=why) for name in ("opened", "accepted")]

    assert printed(tmp_path, ledger)[-1] == "unknown opened, accepted: sampler/backend-1 lacks evidence"


def test_without_a_capture_the_dropped_syns_are_unknown(tmp_path: Path) -> None:
    ledger = make_ledger(unexplained=0, unexplained_requests=[], causes={})
    ledger["hops"][0] |= {
        "dropped_syns": {"recovered": None, "lost": None},
        "dropped_later": None,
        "in_vain": None,
        "resent": None,
        "near_races": None,
        "identities": [],
    }

    assert printed(tmp_path, ledger)[1:] == ["        k6 → backend: 0 of 0 identities hold; dropped SYNs unknown"]


def test_a_run_that_did_not_come_to_its_load_has_none(tmp_path: Path) -> None:
    ledger = make_ledger(requests=None, unexplained=None, unexplained_requests=[], causes={}, hops=[])

    assert printed(tmp_path, ledger) == ["ledger: none: the run is aborted, not complete"]


def test_the_names_of_a_script_s_requests_that_failed_are_said(tmp_path: Path) -> None:
    pay = {"name": "pay", "group": "::buy", "total": 7, "failed": 2, "slow": 1, "median_ms": 3.5, "p95_ms": 4}
    home = {"name": "home", "group": "", "total": 7, "failed": 0, "slow": 0, "median_ms": 1, "p95_ms": 2, "causes": {}}
    said = printed(tmp_path, make_ledger(names=[{**pay, "causes": {"refused": 2, "slow-handler": 1}}, home]))
    assert "        2 failed and 1 slow of 7 named pay in ::buy: refused 2, slow-handler 1" in said
    assert not any("home" in line for line in said)


@pytest.mark.parametrize(("why", "last"), [("a hole", ["        why: a hole"]), (None, []), ("", [])])
def test_what_is_not_decided_says_why(capsys: pytest.CaptureFixture[str], why: str | None, last: list[str]) -> None:
    print_judgement(Console(), "unknown", "served", {"client.requests.ok": "3"}, why)
    said = capsys.readouterr().out.splitlines()
    assert said == ["unknown served", "        client.requests.ok = 3", *last]


@pytest.mark.parametrize("content", ['{"schema": "connlab.ledger/0"}', "{", None])
def test_a_ledger_that_this_version_did_not_write_is_derived_again(
    content: str | None, tmp_path: Path, derived_run: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = derived_run(tmp_path / "run")
    whole = (folder / Ledger.file).read_bytes()
    (folder / Ledger.file).unlink()
    if content is not None:
        (folder / Ledger.file).write_text(content)

    print_ledger(Console(), folder, MissingEvidence([]))

    told = capsys.readouterr()
    assert told.err.endswith("; it is derived again\n")
    assert told.out.startswith("ledger: ")
    assert (folder / Ledger.file).read_bytes() == whole


PROBLEMS = [
    {"instrument": "sampler/backend-1", "message": "no header", "spoils": []},
    {"instrument": "sampler/backend-1", "message": "no header of a version", "spoils": []},
    {"instrument": "capture/nginx", "message": "the kernel dropped 3 packets", "spoils": []},
]


@pytest.mark.parametrize(
    ("why", "short"),
    [
        ("sampler/backend-1: no header of a version", "sampler/backend-1 lacks evidence"),
        ("sampler/backend-1: no header; sampler/backend-1: no header of a version", "sampler/backend-1 lacks evidence"),
        (
            "sampler/backend-1: no header; capture/nginx: the kernel dropped 3 packets",
            "sampler/backend-1 lacks evidence; capture/nginx lacks evidence",
        ),
        (
            "accepted: sampler/backend-1: no header; sampler/backend-1: no header; opened: capture/nginx: lost",
            "accepted: sampler/backend-1 lacks evidence; opened: capture/nginx: lost",
        ),
        ("nth() asked for value 9 of a list of 3", "nth() asked for value 9 of a list of 3"),
    ],
)
def test_what_is_reported_as_evidence_is_named_elsewhere(why: str, short: str) -> None:
    assert MissingEvidence(PROBLEMS).short(why) == short
