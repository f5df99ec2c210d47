import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from analysis.derivation import ManifestError, Verdict, analyse, judge
from analysis.expressions import ExpressionError
from analysis.verdicts import predictions
from lab.schema import schemas
from tests.analysis.support import KNOBS, PREDICTIONS, RunFolder, declared, make_request, raw_file


def statuses(verdict: Verdict) -> dict[str, str]:
    return {prediction.id: prediction.status for prediction in verdict.predictions}


def written(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "derived" / "verdict.json").read_text())
    return content


def test_a_healthy_run_that_behaves_as_predicted_is_reproduced(run: RunFolder) -> None:
    verdict = judge(run.write()).verdict

    assert {prediction.id: prediction.why for prediction in verdict.predictions if prediction.why} == {}
    assert statuses(verdict) == dict.fromkeys(PREDICTIONS, "true")
    assert verdict.verdict == "reproduced"
    assert verdict.problems == []
    assert all(health.healthy for health in verdict.health.values())


@pytest.mark.parametrize(("first", "status", "result"), [(4, "false", "not-reproduced"), (3, "true", "inconclusive")])
def test_one_false_prediction_is_not_reproduced_and_without_one_an_unknown_is_inconclusive(
    run: RunFolder, first: int, status: str, result: str
) -> None:
    run.predict(f"client.requests.ok == {first}", "nth(client.latency_ms.list, 9) == 1", "client.requests.ok == 3")
    verdict = judge(run.write()).verdict

    assert list(statuses(verdict).values()) == [status, "unknown", "true"]
    assert verdict.verdict == result
    assert verdict.predictions[1].why == "nth() asked for value 9 of a list of 3"


def test_a_run_without_predictions_proves_nothing(run: RunFolder) -> None:
    run.predict()
    verdict = judge(run.write()).verdict

    assert verdict.verdict == "inconclusive"
    assert [problem.message for problem in verdict.problems] == ["the run has no predictions"]


def test_every_name_of_a_prediction_is_measured(run: RunFolder) -> None:
    run.predict("client.requests.ok <= load.users and near(nth(client.latency_ms.list, 7), 0, 1) and load.keep_alive")
    run.clients["k6-1"].requests += [make_request(200 + number, 3.5) for number in range(98)]
    folder = run.write()
    analyse(folder)

    assert written(folder)["predictions"][0]["measured"] == {
        "client.requests.ok": 101,
        "load.users": 103,
        "load.keep_alive": True,
        # A list longer than 100 is reduced to its ends.
        "client.latency_ms.list": {"count": 101, "min": 3.5, "max": 43_210.5},
    }


def test_what_is_unknown_is_measured_as_null(run: RunFolder) -> None:
    run.predict("client.admissions.total == 0 or client.requests.error.1211 == 100")
    folder = run.write()
    (folder / "raw" / "k6-1" / "role" / "events.jsonl").unlink()
    analyse(folder)
    prediction = written(folder)["predictions"][0]

    assert (prediction["status"], prediction["why"]) == ("true", None)
    assert prediction["measured"] == {"client.admissions.total": None, "client.requests.error.1211": 100}


@pytest.mark.parametrize("status", ["running", "aborted", "failed"])
def test_a_run_that_did_not_complete_decides_nothing(run: RunFolder, status: str) -> None:
    run.manifest |= {"status": status, "reason": "Ctrl-C"}
    run.predict("client.requests.ok == 3", "load.users == 103", "load.users == 104", "true")
    verdict = judge(run.write()).verdict

    assert set(statuses(verdict).values()) == {"unknown"}
    assert verdict.verdict == "inconclusive"
    assert {prediction.why for prediction in verdict.predictions} == {f"the run is {status}, not complete: Ctrl-C"}


def test_a_run_that_was_aborted_before_it_began_still_has_a_verdict(run: RunFolder) -> None:
    kept = ("schema", "scenario", "run", "path", "roles", "predictions")
    run.manifest = {key: run.manifest[key] for key in kept} | {"status": "aborted"}
    folder = run.write()
    shutil.rmtree(folder / "raw")

    assert analyse(folder).verdict == "inconclusive"
    assert written(folder)["health"].keys() == {"clock", "host"}


def test_a_wrong_expression_in_the_manifest_is_unknown_with_its_fault(run: RunFolder) -> None:
    run.predict("load.user == 3", "client.requests.ok = 3", "client.requests.ok", "client.dials.failed_x == 1")
    verdict = judge(run.write()).verdict

    assert verdict.verdict == "inconclusive"
    assert [prediction.why for prediction in verdict.predictions] == [
        "the expression is wrong: column 1: there is no figure or knob load.user; did you mean load.users?",
        "the expression is wrong: column 20: = is no part of an expression; write == to compare",
        "the expression is wrong: column 1: a prediction must compare something; this is a number",
        "the expression is wrong: column 1: client.dials.failed_x: there is no kind x",
    ]


def test_a_prediction_is_checked_whole_before_a_run() -> None:
    path = declared("k6", "backend")

    assert predictions.check("client.requests.ok == load.users", path, KNOBS).names == (
        "client.requests.ok",
        "load.users",
    )
    for text, column in (("1 == client.requests.okay", 6), ("client.latency_ms.list == 3", 1), ("1 ==", 5)):
        with pytest.raises(ExpressionError) as refused:
            predictions.check(text, path, KNOBS)
        assert refused.value.column == column


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 < ledger.cause.accept-queue-drop",
            "column 5: ledger.cause.accept-queue-drop is written ledger.cause.accept_queue_drop: a - would subtract",
        ),
        ("ledger.cause.no-such-thing == 0", "column 1: ledger.cause.no: there is no cause no"),
        ("load.user-load.users == 0", "column 1: there is no figure or knob load.user; did you mean load.users?"),
    ],
)
def test_a_name_with_hyphens_gets_its_spelling(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        predictions.check(text, declared("k6", "backend"), KNOBS)
    assert str(refused.value).startswith(message)


def test_the_raw_files_are_left_as_they_were(run: RunFolder) -> None:
    folder = run.write()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    analyse(folder)

    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no manifest.json here; this is not a run's folder"),
        ("", "Invalid JSON: EOF while parsing"),
        ('{"schema": "connlab.mani', "Invalid JSON"),
        ("[]", "Input should be an object"),
        ('{"schema": "connlab.manifest/2"}', "its schema is connlab.manifest/2, and this version reads"),
    ],
)
def test_a_folder_without_a_usable_manifest_is_no_run(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)

    with pytest.raises(ManifestError, match="manifest") as refused:
        analyse(tmp_path)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_prediction_stands_once_in_a_manifest(run: RunFolder) -> None:
    run.manifest["predictions"] *= 2

    with pytest.raises(ManifestError, match=r"predictions has the id .* twice"):
        analyse(run.write())


# What holds in the tests' run, and what does not: damage may hide either, and must never show the contrary.
TRUE = (
    *PREDICTIONS.values(),
    "client.requests.failed == 100 and client.users.served == 3",
    "flows.backend.unanswered == 100 and flows.backend.syn_unanswered == 500",
    "ledger.cause.accept_queue_drop == 100 and ledger.unexplained == 0",
    "ledger.identities.failed == 0",
    "sockets.backend.established.max == 3",
    "process.backend.rss_mb.max == 200",
    "tomcat.backend.requests == 3",
)
FALSE = (
    "client.requests.ok != 3 or client.requests.failed < 100",
    "client.dials.failed < 100 or client.dials.ok > 3",
    "kernel.backend.TcpExt.ListenOverflows < 500",
    "kernel.backend.TcpExt.ListenOverflows > 500",
    "kernel.k6.TcpExt.TCPSynRetrans != 400",
    "listen.backend.depth.max < 2",
    "flows.backend.unanswered < 100 or flows.backend.syn_unanswered < 500",
    "flows.backend.total > 103",
    "ledger.cause.accept_queue_drop < 100",
    "ledger.unexplained > 0 or ledger.requests.failed < 100",
    "ledger.identities.failed > 0",
    "max(client.latency_ms.list) < 43000",
    "tomcat.backend.requests < 3",
)

FILES = (
    "backend-1/capture.json",
    "backend-1/capture.pcap",
    "backend-1/samples.jsonl",
    "backend-1/tomcat.jsonl",
    "k6-1/dials.jsonl",
    "k6-1/events.jsonl",
    "k6-1/k6.log",
    "k6-1/live.jsonl",
    "k6-1/requests.jsonl",
    "k6-1/samples.jsonl",
    "k6-1/summary.json",
)
# A file, what befalls it, where, and whether that is between two of its lines, where no broken one tells of it.
Damage = list[tuple[str, str, float, bool]]
damages = st.lists(
    st.tuples(
        st.sampled_from(FILES),
        st.sampled_from(["cut", "byte", "remove", "swap", "double"]),
        st.floats(0, 1),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture
def whole(run: RunFolder) -> Path:
    run.predict(*TRUE, *FALSE)
    return run.write()


def found_of(verdict: Verdict) -> tuple[dict[str, str], dict[str, str]]:
    """The status of each prediction that is true of the whole run, and of each that is false."""
    found = {each.expression: each.status for each in verdict.predictions}
    return {text: found[text] for text in TRUE}, {text: found[text] for text in FALSE}


def test_what_a_damaged_run_must_not_contradict_is_so_of_the_whole_one(whole: Path) -> None:
    files = {path for path in (whole / "raw").rglob("*") if path.is_file()}

    assert files == {raw_file(whole, name) for name in FILES}
    assert found_of(judge(whole).verdict) == (dict.fromkeys(TRUE, "true"), dict.fromkeys(FALSE, "false"))


@pytest.mark.parametrize(
    "damage",
    [
        ("k6-1/requests.jsonl", "cut", 0.5, True),
        ("k6-1/dials.jsonl", "cut", 0.5, True),
        ("backend-1/samples.jsonl", "byte", 0.5, False),
        ("backend-1/samples.jsonl", "cut", 0.5, True),
        ("backend-1/capture.pcap", "cut", 0.5, False),
        ("backend-1/capture.pcap", "remove", 0.0, False),
    ],
)
def test_a_damaged_file_gives_a_verdict_and_never_the_contrary(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, damage: tuple[str, str, float, bool]
) -> None:
    assert_no_contrary(whole, tmp_path_factory, [damage])


# In parts, for processes beside each other.
@pytest.mark.parametrize("_part", range(4))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages)
def test_whatever_happens_to_the_files_there_is_a_verdict_and_never_the_contrary(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, _part: int, damage: Damage
) -> None:
    assert_no_contrary(whole, tmp_path_factory, damage)


def assert_no_contrary(whole: Path, tmp_path_factory: pytest.TempPathFactory, damage: Damage) -> None:
    folder = shutil.copytree(whole, tmp_path_factory.mktemp("damaged") / "run")
    for file, how, where, at_line in damage:
        damage_file(raw_file(folder, file), how, where, at_line=at_line)

    true, false = found_of(analyse(folder))

    Draft202012Validator(schemas()["verdict.schema.json"]).validate(written(folder))
    assert "false" not in true.values()
    assert "true" not in false.values()
    shutil.rmtree(folder)


def damage_file(path: Path, how: str, where: float, *, at_line: bool) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    at = int(where * len(content))
    if at_line:
        at = content.rfind(b"\n", 0, at) + 1
    match how:
        case "cut":
            path.write_bytes(content[:at])
        # A packet has no mark by which a byte of it that changed could be told.
        case "byte" if path.suffix != ".pcap":
            path.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
        case "swap":
            path.write_bytes(content[at:] + content[:at])
        case "double":
            path.write_bytes(content + content[:at])
        case _:
            path.unlink()
