"""A run's folder from somebody hostile: no command hangs, fills the memory, steers the terminal, or ends by a fault."""

import itertools
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.compare import CompareError, compare_series
from analysis.derivation import analyse
from analysis.reports import comparison_page, index, run_report
from analysis.verdicts.derived import DerivedError
from formats import manifest
from lab import paths
from lab.cli import main
from lab.serve import app
from lab.serve.commands import Started
from tests.analysis.results import Results
from tests.analysis.whole import make_run, observed
from tests.lab.support import connlab

EXAMPLE = paths.ROOT / "docs" / "example"
BAD, GOOD = "20261121T141444Z-default-r01", "20261121T151444Z-default-r01"

Place = tuple[str | int, ...]
COMMANDS = [
    ["advise", "{run}"],
    ["estimate", "--run={run}"],
    ["explain", "--top=2", "{run}"],
    ["report", "{run}"],
    ["analyse", "{run}"],
    ["compare", "--a={run}", "--b={good}"],
]
EACH_COMMAND = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run, with a good one of the same scenario beside it."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    return two_runs(tmp_path / "results")


def two_runs(results: Path) -> Path:
    """Write a run and a good one beside it."""
    folder = results / "accept-queue-overflow" / BAD
    for each in (folder, folder.with_name(GOOD)):
        shutil.copytree(EXAMPLE, each)
        changes(each, run=each.name)
    return folder


def changes(run: Path, /, **fields: object) -> None:
    """Change a manifest."""
    content = json.loads((run / "manifest.json").read_bytes())
    (run / "manifest.json").write_text(json.dumps(content | fields))


def ends(capsys: pytest.CaptureFixture[str], command: list[str], run: Path) -> tuple[int, str]:
    """The command's exit code and what it says; it must be one of the lab's own ends."""
    with pytest.raises(SystemExit) as end:
        main([each.format(run=run, good=run.with_name(GOOD)) for each in command])
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert "internal error" not in said, said
    assert "Traceback" not in said
    return int(end.value.code or 0), said


Trap = Callable[[Path], None]
TRAP: dict[str, Trap] = {
    "pipe": os.mkfifo,
    "endless link": lambda file: file.symlink_to("/dev/zero"),
    "link to itself": lambda file: file.symlink_to(file.name),
    "folder": Path.mkdir,
}
TRAPS = pytest.mark.parametrize("trap", TRAP.values(), ids=TRAP)


@TRAPS
@EACH_COMMAND
def test_a_trap_for_a_manifest_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str], command: list[str], trap: Trap
) -> None:
    (run / "manifest.json").unlink()
    trap(run / "manifest.json")
    code, said = ends(capsys, command, run)
    assert code == 2, said
    assert "manifest.json" in said


@TRAPS
def test_traps_among_the_derived_files_are_named_or_replaced(
    run: Path, capsys: pytest.CaptureFixture[str], trap: Trap
) -> None:
    files = [run / "derived" / f"{name}.json" for name in ("verdict", "ledger", "figures", "ladders")]
    # A trap that one command has replaced is set again for the next one.
    for command, file in zip(COMMANDS, itertools.cycle(files), strict=False):
        set_trap(file, trap)
        ends(capsys, command, run)
    for file in files:
        set_trap(file, trap)
    ends(capsys, ["analyse", "{run}"], run)
    if trap is not Path.mkdir:
        assert all(stat.S_ISREG(file.lstat().st_mode) for file in files), "all were derived again"


def set_trap(file: Path, trap: Trap) -> None:
    if file.is_dir():
        file.rmdir()
    else:
        file.unlink()
    trap(file)


@TRAPS
def test_traps_among_the_raw_files_are_missing_evidence(
    run: Path, capsys: pytest.CaptureFixture[str], trap: Trap
) -> None:
    for file in [file for file in (run / "raw").rglob("*") if file.is_file()]:
        file.unlink()
        trap(file)
    code, said = ends(capsys, ["analyse", "{run}"], run)
    assert code == 3, said
    for command in COMMANDS:
        ends(capsys, command, run)


@pytest.mark.parametrize("place", ["raw", "raw/backend-1"])
def test_raw_files_elsewhere_are_not_read(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    shutil.move(run / place, tmp_path / "elsewhere")
    (run / place).symlink_to(tmp_path / "elsewhere")
    code, said = ends(capsys, ["analyse", "{run}"], run)
    assert code == 2
    assert f"{place} is a link" in said


def scalars(value: object, place: Place = (), *kinds: type) -> list[Place]:
    """The places of a document in which no other place is; of a list's entries, those of the first."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() for one in scalars(inner, (*place, key), *kinds)]
    if isinstance(value, list):
        return [one for index, inner in enumerate(value[:1]) for one in scalars(inner, (*place, index), *kinds)]
    return [place] if not kinds or type(value) in kinds else []


def numbers(value: object) -> list[Place]:
    return scalars(value, (), int, float)


def changed(content: object, place: Place, value: object) -> object:
    copy = json.loads(json.dumps(content))
    inner = copy
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return copy


# Digits that Python does not convert, a duration of 32 million years, and more than a double holds.
NUMBERS = {"5000 digits": "9" * 5000, "10^18": str(10**18), "infinite": "1e400"}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_no_number_in_a_manifest_is_too_large(run: Path, capsys: pytest.CaptureFixture[str], number: str) -> None:
    file = run / "manifest.json"
    content = json.loads(file.read_bytes())
    content["actions"] = [
        {"do": "stop", "instance": "backend-1", "at_ms": 1, "start_us": 1, "down_us": 1, "end_us": 1, "exit_code": 1}
    ]
    places = {tuple("*" if step in content["knobs"] else step for step in place): place for place in numbers(content)}
    taken = content
    for place in places.values():
        file.write_text(with_number(changed(content, place, "@"), number))
        try:
            manifest.load_manifest(run)
        except manifest.ManifestError:
            code, said = ends(capsys, ["advise", "{run}"], run)
            assert code == 2, f"{place}: {said}"
        else:
            taken = changed(taken, place, "@")
    file.write_text(with_number(taken, number))
    for command in (["analyse", "{run}"], ["advise", "{run}"]):
        ends(capsys, command, run)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("command",), None),
        (("git",), []),
        (("git", "commit"), float("nan")),
        (("lab",), "x"),
        (("host", "kernel"), []),
        (("host", "kernel"), float("nan")),
        (("images",), []),
        (("guesses",), "x"),
        (("guesses",), [{"prediction": "p", "figure": "f", "asks": "?", "unit": "ms", "value": "x"}]),
        (("knobs", "backend.instances", "source"), []),
        (("path",), []),
        (("path", 0), "x"),
    ],
    ids=str,
)
def test_what_a_report_shows_of_a_manifest_is_checked(
    run: Path, capsys: pytest.CaptureFixture[str], place: Place, value: object
) -> None:
    content = json.loads((run / "manifest.json").read_bytes())
    (run / "manifest.json").write_text(json.dumps(changed(content, place, value)))
    for command in (["advise", "{run}"], ["report", "{run}"], ["compare", "--a={run}", "--b={good}"]):
        code, said = ends(capsys, command, run)
        assert code == 2, said
        assert "manifest.json: " in said
        assert str(place[0]) in said


@pytest.mark.parametrize("key", ["command", "instances", "knobs"])
def test_a_manifest_may_lack_what_only_a_report_shows(run: Path, capsys: pytest.CaptureFixture[str], key: str) -> None:
    content = json.loads((run / "manifest.json").read_bytes())
    del content[key]
    (run / "manifest.json").write_text(json.dumps(content))
    for command in (["advise", "{run}"], ["report", "{run}"], ["compare", "--a={run}", "--b={good}"]):
        code, said = ends(capsys, command, run)
        assert code == 0, said


def test_a_manifest_that_lost_its_phases_after_the_analysis_is_derived_again(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes(run, phases=[])
    code, said = ends(capsys, ["report", "{run}"], run)
    assert code == 0, said
    assert "no phase 'measure', whose requests were derived; it is derived again" in said


def test_knobs_of_ten_trillion_fill_no_memory(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads((run / "manifest.json").read_bytes())
    for knob in content["knobs"].values():
        if type(knob["value"]) is int:
            knob["value"] = 10**13
    (run / "manifest.json").write_text(json.dumps(content))
    for command in (["analyse", "{run}"], ["advise", "{run}"], ["report", "{run}"]):
        ends(capsys, command, run)


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("instance", [folder.name for folder in sorted((EXAMPLE / "raw").iterdir())])
def test_no_number_in_a_raw_file_is_too_large(
    run: Path, capsys: pytest.CaptureFixture[str], instance: str, number: str
) -> None:
    for file in (run / "raw" / instance).rglob("*.json*"):
        text = file.read_text()
        lines = text.splitlines() if file.suffix == ".jsonl" else [text]
        middle = len(lines) // 2
        line = json.loads(lines[middle])
        for place in numbers(line):
            line = changed(line, place, "@")
        lines[middle] = with_number(line, number)
        file.write_text("\n".join(lines) + "\n")
    ends(capsys, ["analyse", "{run}"], run)


def with_number(content: object, number: str) -> str:
    return json.dumps(content).replace('"@"', number)


def test_nothing_that_is_written_can_be_changed_by_others(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = os.umask(0)
    try:
        for command in (["analyse", "{run}"], ["analyse", "{good}"], ["compare", "--a={run}", "--b={good}"]):
            ends(capsys, command, run)
    finally:
        os.umask(before)
    results = run.parent.parent
    written = [file for file in results.rglob("*") if not file.is_symlink() and file.stat().st_mode & stat.S_IWOTH]
    assert written == []
    assert (run / "derived" / "verdict.json").is_file()
    assert list(results.glob("comparisons/*/comparison.json"))


@pytest.mark.parametrize("name", ["id=7", "outcome=ok", "r[1]", "it's"])
def test_the_name_of_a_folder_has_no_say(
    capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """DuckDB takes a path for a pattern, and `column=value` in it for a column."""
    scratch, moved = tmp_path / name, tmp_path / "results" / name / "run"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    shutil.copytree(run, moved)
    assert ends(capsys, ["analyse", str(moved)], run)[0] == 0
    told = [ends(capsys, ["explain", "--top=3", str(each)], run)[1].splitlines() for each in (run, moved)]
    assert told[0][1:-1] == told[1][1:-1]
    assert ends(capsys, ["report", "{run}"], run)[0] == 0
    pages = [(each / "report.html").read_text().count("succeeded") for each in (run, moved)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("trap", [TRAP["pipe"], TRAP["endless link"]], ids=["pipe", "link"])
@pytest.mark.parametrize("command", [["explain", "--top=2", "{run}"], ["report", "{run}"]], ids=["explain", "report"])
def test_a_table_that_is_no_file_is_missing(
    capsys: pytest.CaptureFixture[str], run: Path, trap: Trap, command: list[str]
) -> None:
    table = run / "derived" / "requests.parquet"
    table.unlink()
    trap(table)
    assert ends(capsys, command, run)[0] == 0


def test_tables_are_not_read_through_a_link(capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path) -> None:
    shutil.move(run / "derived", tmp_path / "elsewhere")
    (run / "derived").symlink_to(tmp_path / "elsewhere")
    assert "causes are not shown" in ends(capsys, ["explain", "--top=2", "{run}"], run)[1]
    code, said = ends(capsys, ["advise", "{run}"], run)
    assert (code, "is a symbolic link" in said) == (2, True)


def test_a_name_that_is_not_utf_8_breaks_no_other_run_s_report(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    odd = run.with_name(os.fsdecode(b"r\xff1"))
    shutil.copytree(run, odd)
    assert [ends(capsys, ["report", str(each)], run)[0] for each in (odd, run)] == [0, 0]
    assert 'href="accept-queue-overflow/r%FF1/report.html"' in (paths.RESULTS / "index.html").read_text()


def test_a_comparison_is_not_written_through_a_link(
    capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (paths.RESULTS / "comparisons").symlink_to(tmp_path / "elsewhere")
    code, said = ends(capsys, ["compare", "--a={run}", "--b={good}"], run)
    assert (code, "writes through none" in said, list((tmp_path / "elsewhere").iterdir())) == (2, True, [])


def test_a_gate_waits_for_no_reader(capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "junit.xml")
    command = ["gate", "--a={run}", "--b={good}", "--figure=client.latency_ms.p99", "--worse-than=5%"]
    command.append(f"--junit={tmp_path}/junit.xml")
    code, said = ends(capsys, command, run)
    assert (code, "give --junit a file that can be written" in said) == (2, True)


def test_a_log_without_an_end_is_unknown(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    os.truncate(run / "raw" / "k6-1" / "role" / "k6.log", 1 << 40)
    assert ends(capsys, ["analyse", "{run}"], run)[0] in (0, 3)


# --- derived files ---------------------------------------------------------------------------------------------

# As JSON's text: what a double does not hold, what Python does not convert, what no number is.
VALUES = [
    "9" * 400, "9" * 5000, f"-{'9' * 400}", "1e400", "-1e400", "NaN", "-Infinity", str(10**18), str(-(10**18)),
    str(2**53), "1e300", "1e-320", "-0.0", "-1", "0", "0.5", "true", "null", '"x"', "[]", "{}",
]  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a scenario, one that was watched, and a series."""
    root = tmp_path_factory.mktemp("hostile") / "results"
    two_runs(root)
    seen = root / "observed-shop" / "20261121T161444Z-default-r01"
    seen.mkdir(parents=True)
    watched = observed(make_run(seen))
    watched.manifest |= {"run": seen.name}
    watched.write()
    analyse(seen)
    figures = [{"figures": {"client.requests.failed": count}} for count in (3, 4)]
    folder = Results(root).series({"kept": figures, "closed": figures}, figures=["client.requests.failed"])
    (folder / "derived").mkdir()
    found, verdict = compare_series(folder)
    comparison_page.write(found, folder / "derived", root, verdict)
    return root


@contextmanager
def holding(file: Path, text: str) -> Iterator[None]:
    before = file.read_bytes()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_bytes(before)


@pytest.mark.parametrize(
    "text", ["9" * 400, "9" * 5000, "1e400", "-1e400", "NaN", str(10**20)], ids=lambda text: text[:9]
)
@pytest.mark.parametrize(("file", "place"), [("ledger", ("requests", "total")), ("verdict", ("ledger", "unexplained"))])
def test_one_bad_run_is_one_bad_row(
    results: Path, monkeypatch: pytest.MonkeyPatch, file: str, place: Place, text: str
) -> None:
    monkeypatch.setattr(paths, "RESULTS", results)
    run = results / "accept-queue-overflow" / BAD
    bad = run / "derived" / f"{file}.json"
    with holding(bad, with_number(changed(json.loads(bad.read_bytes()), place, "@"), text)):
        states = {each.run: each.state for each in index.newest_runs(results, 99) if each.scenario == run.parent.name}
        assert states == {BAD: "analyse again", GOOD: "reproduced"}
        keys = app.Keys("entry", "form", "frame")
        client = app.make_app(keys, Started()).test_client()
        client.get("/?key=entry")
        assert client.get("/").status_code == 200
        for each in (run, run.with_name(GOOD)):
            assert connlab("report", str(each)) == 0


@pytest.mark.parametrize("value", ["p50", "p99", "max"])
def test_times_of_connections_without_a_value_are_refused(results: Path, value: str) -> None:
    (file,) = results.glob("observed-*/*/derived/connections.json")
    place = ("targets", 0, "servers", 0, "first_byte_us", value)
    text = with_number(changed(json.loads(file.read_bytes()), place, "@"), "null")
    with holding(file, text), pytest.raises(DerivedError, match=r"connections\.json.*first_byte_us"):
        run_report.write(file.parent.parent)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.data())
def test_whatever_a_derived_file_holds_every_page_is_made(results: Path, drawn: st.DataObject) -> None:
    files = [*results.glob("*/*/derived/*.json"), *results.glob("series/*/series.json")]
    file = drawn.draw(st.sampled_from(sorted(files)), "file")
    content = json.loads(file.read_bytes())
    place = drawn.draw(st.sampled_from(scalars(content)), "place")
    with holding(file, with_number(changed(content, place, "@"), drawn.draw(st.sampled_from(VALUES), "value"))):
        index.write(results)
        if file.name != "series.json" and "series" not in file.parts:
            with suppress(DerivedError):
                run_report.write(file.parent.parent)
        else:
            with suppress(CompareError):
                compare_series(next(results.glob("series/*")))
