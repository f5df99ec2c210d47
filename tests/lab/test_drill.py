"""The incident drill: solvable for every seed from the given evidence by rule; judged by a run; refused in one line."""

import json
import re
from pathlib import Path

import pytest

from analysis.diagnosis.causes import CAUSES
from lab import paths
from lab.errors import BadInput, ExitCode
from lab.lessons.drill import evidence, faults, incident
from lab.lessons.drill.evidence import SeenRun
from lab.outcomes import run_and_judge
from lab.scenarios.knobs import CATALOGUE, format_knob
from lab.scenarios.resolved import ResolvedScenario
from tests.lab import drills
from tests.lab.support import connlab

SEEDS = range(50)
# The given evidence of a run of each fault, as `make drill` printed it.
RECORDED = Path(__file__).parent / "testdata" / "drills"


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def begun(results: Path, seed: int, level: int) -> tuple[faults.Drill, incident.DrillState]:
    drill = incident.draw_drill(seed, level)
    incident.folder(drill).mkdir(parents=True, exist_ok=True)
    run = drills.write(drill, results / drill.name / "20261123T000000Z-default-r01")
    return drill, incident.begin(drill, run)


def given(results: Path, seed: int, level: int) -> tuple[faults.Drill, str]:
    drill, state = begun(results, seed, level)
    return drill, "\n".join(incident.format_evidence(drill, state))


@pytest.mark.parametrize("level", faults.LEVELS)
def test_every_drill_is_solved_by_rule_and_no_two_causes_look_alike(results: Path, level: int) -> None:
    seen: dict[drills.Read, set[str]] = {}
    for seed in SEEDS:
        drill, text = given(results, seed, level)
        read = drills.read(text)
        assert drills.solve(read) == (drill.fault.name, drill.fault.place), f"seed {seed}\n{text}"
        seen.setdefault(read, set()).add(drill.fault.name)
    assert [causes for causes in seen.values() if len(causes) > 1] == []


def test_every_fault_can_be_run() -> None:
    first: dict[tuple[str, tuple[str, ...]], faults.Drill] = {}
    for seed in SEEDS:
        drill = faults.draw(seed, 3)
        first.setdefault((drill.fault.name, drill.path), drill)
    assert len(first) == len(faults.FAULTS)
    for drill in first.values():
        effective = incident.resolve_drill(drill)
        assert tuple(effective.scenario.path) == drill.path
        assert {name: value for name, value in effective.values.items() if name == "load.users"} == {
            "load.users": drill.knobs["load.users"]
        }


def test_every_fault_is_drawn() -> None:
    drawn = {
        (one.fault.name, one.path) for one in (faults.draw(seed, level) for seed in SEEDS for level in faults.LEVELS)
    }
    assert drawn == {(fault.name, fault.path) for fault in faults.FAULTS}
    assert all(len(faults.draw(seed, 1).path) == 2 for seed in SEEDS)


def test_a_drill_is_the_same_each_time_and_its_scenario_does_not_tell() -> None:
    for seed in SEEDS:
        drill = faults.draw(seed, 3)
        assert drill == faults.draw(seed, 3)
        words = json.loads(incident.scenario_text(drill))
        told = f"{words['title']} {words['question']} {words['predictions']} {drill.name}"
        assert drill.fault.name not in told
        assert drill.fault.says not in told


def test_level_three_shows_something_harmless_besides(results: Path) -> None:
    shown = {"kernel.k6.net.ipv4.tcp_max_tw_buckets": "TCPTimeWaitOverflow",
             "kernel.backend.net.ipv4.tcp_syncookies": "SYN cookies sent"}  # fmt: skip
    seen = set()
    for seed in range(8):
        drill, text = given(results, seed, 3)
        assert drill.alarm is not None
        seen.add(drill.alarm.knob)
        assert [name for name, words in shown.items() if words in text] == [drill.alarm.knob]
        assert not any(words in given(results, seed, 2)[1] for words in shown.values())
    assert seen == set(shown)


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: f"{fault.name}.{fault.path[1]}")
def test_every_solution_is_whole(fault: faults.Fault) -> None:
    seed = next(seed for seed in SEEDS if faults.draw(seed, 2).fault is fault)
    drill = faults.draw(seed, 2)
    assert fault.cause in {cause.name for cause in CAUSES}
    assert fault.proof.endswith(".")
    for knob, value in fault.fixes.items():
        text = f"{knob}={format_knob(knob, value, CATALOGUE)}"
        incident.check_answer(drill, fault.name, fault.place, [text])
        assert incident.resolve_drill(drill, [text]).values[knob] != incident.resolve_drill(drill).values.get(knob)


def test_a_limit_is_shown_by_the_name_of_its_knob(results: Path) -> None:
    seed = next(seed for seed in SEEDS if faults.draw(seed, 2).fault.name == "proxy-queue-times-out")
    drill, text = given(results, seed, 2)
    assert f"  haproxy.server_maxconn: {drill.knobs['haproxy.server_maxconn']}\n" in text
    assert f"  haproxy.timeout_queue: {drill.knobs['haproxy.timeout_queue']}\n" in text
    assert "  kernel.backend.net.core.somaxconn: 4096\n" in text


def test_the_log_of_an_incident_leaves_out_how_the_proxy_ended(tmp_path: Path) -> None:
    file = tmp_path / "raw" / "haproxy" / "role" / "error.log"
    file.parent.mkdir(parents=True)
    file.write_text("[WARNING]  (20) : Server servers/s1 is DOWN\n[WARNING]  (20) : Proxy servers stopped (FE: 0).\n")
    told = list(evidence.proxy_log(SeenRun(tmp_path, ("k6", "haproxy", "backend"))))
    assert told[1:2] == ["[WARNING]  (20) : Server servers/s1 is DOWN"]
    assert not any("stopped" in line for line in told)


def test_more_evidence_costs_its_minutes_once(results: Path) -> None:
    drill, state = begun(results, 4, 1)
    before = state.minutes
    for _ in range(2):
        assert "threads busy, connections" in "\n".join(incident.ask_for_more(drill, state, "threads"))
    again = incident.load_state(drill)
    assert again is not None
    assert again.minutes == before + evidence.MORE["threads"].minutes
    with pytest.raises(BadInput, match="there is no evidence 'thread'"):
        incident.ask_for_more(drill, state, "thread")


def test_evidence_of_a_run_that_left_nothing_is_empty_and_no_error(tmp_path: Path) -> None:
    pages = tmp_path / "raw" / "backend-1" / "collector" / "tomcat.jsonl"
    pages.parent.mkdir(parents=True)
    pages.write_text('{"time_us": 1, "status": 503, "body": {"error": "starting"}}\nno line of ours\n')
    run = SeenRun(tmp_path, ("k6", "nginx", "backend"))
    assert "0 requests" in "\n".join(evidence.format_pieces(run, {**evidence.GIVEN, **evidence.MORE}))


@pytest.mark.parametrize(
    ("answer", "left", "points", "code"),
    [
        (("accept-queue-full", "backend"), 0, 100, ExitCode.REPRODUCED),
        (("accept-queue-full", "k6"), 0, 85, ExitCode.REPRODUCED),
        (("threads-exhausted", "backend"), 0, 60, ExitCode.NOT_REPRODUCED),
        (("accept-queue-full", "backend"), 3, 55, ExitCode.NOT_REPRODUCED),
    ],
)
def test_an_answer_is_scored_by_cause_place_and_the_run_of_its_remedy(
    results: Path, answer: tuple[str, str], left: int, points: int, code: ExitCode
) -> None:
    drill, state = begun(results, 5, 1)
    after = results / drill.name / "20261123T000100Z-default-r01"
    drills.ledger(results / state.run, 20, 3)
    drills.ledger(after, left, 0)
    found = incident.judge(drill, state, incident.record_answer(drill, state, *answer, after))
    assert (found.points, found.code) == (points, code)
    told = "\n".join(incident.format_result(drill, state, found, after))
    assert f"20 failed → {left}, 3 slow → 0" in told
    assert f"score: {points} of 100" in told
    assert f"what shows it: {drill.fault.proof}" in told
    assert "what fixes it: backend.max_connections=200" in told


def test_a_remedy_that_did_not_fix_says_by_how_much_and_leads_to_its_own_run(results: Path) -> None:
    drill, state = begun(results, 5, 1)
    after = drills.write(drill, results / drill.name / "20261123T000100Z-default-r01")
    drills.ledger(results / state.run, 20, 3)
    drills.ledger(after, 0, 1)
    found = incident.judge(drill, state, incident.record_answer(drill, state, "accept-queue-full", "backend", after))
    told = list(incident.format_result(drill, state, found, after))
    assert "  the slowest answer took 6 s; 12 s were promised" in told
    assert "20261123T000100Z" in told[-1]


_ANSWER = ["--seed", "5", "--cause", "accept-queue-full", "--place", "backend"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--level", "4"], "there is no level 4; LEVEL=1, 2 or 3"),
        (["--more", "threads"], "an answer, or a question, needs its drill; give SEED=<n>"),
        (["--seed", "7", "--more", "threads"], "drill 7 of level 1 has not begun; begin it without an answer"),
        ([*_ANSWER, "--cause", "x", "--set", "backend.accept_count=9"], "there is no cause 'x'"),
        (_ANSWER, "a remedy is one knob"),
        ([*_ANSWER, "--set", "load.users=1"], "load.users belongs to the clients"),
        ([*_ANSWER, "--more", "threads"], "takes either an answer or a question"),
    ],
)
def test_what_is_no_answer_is_refused_in_one_line(
    results: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(results, 5, 1)
    assert connlab("drill", *arguments) == ExitCode.BAD_INPUT
    assert says in capsys.readouterr().err


def test_a_drill_that_began_gives_its_evidence_again(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(results, 5, 1)
    assert connlab("drill", "--seed", "5") == 0
    told = capsys.readouterr().out
    assert re.search(r"make drill SEED=5 LEVEL=1 MORE=sockets", told)
    assert connlab("drill", "--seed", "5", "--more", "sockets", "--json") == 0
    assert json.loads(capsys.readouterr().out)["minutes"] == 8


@pytest.mark.parametrize("run", ["/etc", "../../etc", "nowhere"])
def test_a_state_that_names_another_folder_is_refused(results: Path, run: str) -> None:
    drill, _ = begun(results, 5, 1)
    incident.save_state(drill, incident.DrillState(seed=5, level=1, run=run))
    with pytest.raises(BadInput, match=r"is gone; remove .*drill\.json to begin it again"):
        incident.load_state(drill)


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*.txt")), ids=lambda file: file.stem)
def test_what_real_runs_showed_is_solved_by_the_same_rule(file: Path) -> None:
    cause, first = file.stem.split(".")
    fault = next(one for one in faults.FAULTS if (one.name, one.path[1]) == (cause, first))
    assert drills.solve(drills.read(file.read_text())) == (fault.name, fault.place)


def test_a_drill_from_its_beginning_to_its_score(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command, with runs that leave what the fault leaves; the second has the remedy, and nobody fails."""
    drill = faults.draw(5, 1)
    ran: list[int] = []

    def of_run(effective: ResolvedScenario, *_: object, tries_out: bool) -> run_and_judge.Outcome:
        assert tries_out
        ran.append(int(effective.values["backend.max_connections"]))
        folder = drills.write(drill, results / drill.name / f"2026112300000{len(ran)}Z-default-r01")
        drills.ledger(folder, 20 if len(ran) == 1 else 0, 0)
        return run_and_judge.Outcome(folder, {})

    monkeypatch.setattr(run_and_judge, "run_once", of_run)
    assert connlab("drill", "--seed", "5") == 0
    assert "queue of a socket overflowed" in capsys.readouterr().out
    assert connlab("drill", *_ANSWER, "--set", "backend.max_connections=100") == 0
    told = capsys.readouterr().out
    assert "remedy: recovered: 20 failed → 0" in told
    assert "score: 100 of 100" in told
    assert "next drill: make drill LEVEL=2" in told
    assert ran == [drill.knobs["backend.max_connections"], 100]
    state = incident.load_state(drill)
    assert state is not None
    assert state.remedies == ["backend.max_connections=100"]
