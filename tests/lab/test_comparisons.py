"""`connlab compare` and `connlab gate`: what they take, what they print, and what they refuse."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from formats import series as series_file
from lab import paths
from tests.analysis.results import Results
from tests.analysis.support import knob
from tests.lab.support import Run

MEAN = "client.latency_ms.mean"
GATE = ("gate", f"--figure={MEAN}", "--worse-than=5%")
STEADY = (10.0, 10.2, 10.1, 9.9, 10.0, 10.1, 9.8)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return Results(tmp_path / "results")


def runs(results: Results, *means: float, **knobs: object) -> list[str]:
    given = {name.replace("__", "."): value for name, value in knobs.items()}
    return [str(results.run({MEAN: mean}, given).relative_to(results.root)) for mean in means]


def test_two_groups_are_compared_from_settings_to_users(connlab: Run, results: Results) -> None:
    a = runs(results, 10.0, 11.0, 12.0, 13.0)
    images = {"backend": "sha256:" + "1" * 64}
    b = [results.run({MEAN: mean}, {"load.users": 7}, images=images) for mean in (20.0, 21.0, 22.0, 23.0)]
    code, out, _ = connlab("compare", *(f"--a={run}" for run in a), *(f"--b={run}" for run in b))

    assert code == 0
    assert out.index("set: load.users: 103 → 7") < out.index("slower answers: 11.5 → 21.5 ms")
    assert "unintended differences: image.backend" in out
    folder = results.root / "comparisons" / f"queue-{Path(a[0]).name}-and-{b[0].name}"
    assert json.loads((folder / "comparison.json").read_text())["schema"] == "connlab.comparison/1"
    assert f"result: results/comparisons/{folder.name}/comparison.html" in out


def test_the_answer_is_told_in_thirty_lines(connlab: Run, results: Results) -> None:
    names = [f"client.requests.error.{code}" for code in range(1000, 1040)]
    names += [
        f"kernel.backend.{counter}"
        for counter in ("Tcp.ActiveOpens", "TcpExt.ListenDrops", "TcpExt.TW", "Ip.InReceives")
    ]
    names += ["flows.backend.total", "flows.backend.syns", "client.dial_ms.p95", "sockets.k6.time_wait.max"]
    arms: dict[str, list[dict[str, object]]] = {
        arm: [{"figures": {MEAN: mean + number, **dict.fromkeys(names, mean)}} for number in range(5)]
        for mean, arm in ((1, "on"), (90, "off"), (50, "other"), (20, "fourth"), (70, "fifth"))
    }
    results.series(arms, {f"claim{number}": f"arms.on.{MEAN} < arms.off.{MEAN}" for number in range(8)})
    code, out, _ = connlab("compare", "--matrix=queue")

    assert code == 0
    assert len(out.splitlines()) <= 30
    assert "off vs. on" in out
    # Where lines do not suffice, what users felt is kept.
    assert "slower answers: 3 → 92 ms (client.latency_ms.mean)" in out
    assert "groups of figures more moved before that" in out
    assert "3 claims more on the page" in out
    assert "1 pair more on the page" in out
    assert "derived/comparison.html" in out


def test_two_single_runs_know_nothing_and_name_the_run_that_helps(connlab: Run, results: Results) -> None:
    a, b = runs(results, 10.0)[0], runs(results, 20.0, load__users=7)[0]
    out = connlab("compare", f"--a={a}", f"--b={b}")[1]

    assert "One run of A or B cannot tell a difference from chance" in out
    assert "unknown: too few runs to tell whether 1 figure differs by more" in out
    assert f"next, A once more, so that groups can be compared: make -C {paths.ROOT} run SCENARIO=queue" in out


def test_the_unit_of_a_setting_is_the_one_that_the_run_declares(connlab: Run, results: Results) -> None:
    sides = []
    for ms in (1_500, 20_000):
        run = results.run()
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["knobs"]["shop.patience"] = knob(ms, "ms") | {"source": "scenario"}
        (run / "manifest.json").write_text(json.dumps(manifest))
        sides.append(run)
    _, out, _ = connlab("compare", f"--a={sides[0]}", f"--b={sides[1]}")

    assert "set: shop.patience: 1500ms → 20s" in out
    page = results.root / "comparisons" / f"queue-{sides[0].name}-and-{sides[1].name}" / "comparison.html"
    assert "shop.patience: 1500ms → 20s" in page.read_text()


def test_what_a_run_says_is_printed_as_it_is(connlab: Run, results: Results) -> None:
    a, b = results.run(knobs={"load.path": "/[red]x[/]"}), results.run(knobs={"load.path": "[/nothing]"})
    code, out, _ = connlab("compare", f"--a={a}", f"--b={b}")

    assert code == 0
    assert "load.path: /[red]x[/] → [/nothing]" in out


def test_the_cells_of_a_series_are_compared_by_name_id_or_folder(connlab: Run, results: Results) -> None:
    cells = {arm: [{"figures": {MEAN: mean + number}} for number in range(4)] for arm, mean in (("on", 1), ("off", 9))}
    folder = results.series(cells)
    series_file.load_series(folder)

    for name in ("queue", folder.name, str(folder)):
        code, out, _ = connlab("compare", f"--matrix={name}")
        assert (code, "off vs. on" in out) == (0, True)
        assert "clean" not in out
    assert (folder / "derived" / "comparison.json").is_file()

    code, out, _ = connlab("compare", f"--a={folder.name}:on", "--b=queue:off", "--json")
    assert code == 0
    assert [len(group["runs"]) for group in json.loads(out)["groups"]] == [4, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give A=<run> B=<run>, or MATRIX=<name>"),
        (["--a=nowhere", "--b=nowhere"], "no run at 'nowhere'"),
        (["--matrix=nowhere"], "no series of 'nowhere' below results/series; valid: queue"),
        (
            ["--a=20261121T080000Z-arms-queue", "--b=queue:on"],
            "has 2 cells; name one of them: 20261121T080000Z-arms",
        ),
        (["--matrix=queu"], "did you mean 'queue'?"),
        (["--matrix=burst-places"], f"run it first: make -C {paths.ROOT} matrix MATRIX=burst-places"),
        (["--matrix=keep-alive-paths"], f"run it first: make -C {paths.ROOT} run SCENARIO=keep-alive-paths"),
        (["--matrix="], "no series is named"),
        (["--matrix=queue", "--a=queue"], "a comparison takes runs as A and B, or a MATRIX, not both"),
        (["--a=queue:onn", "--b=queue:on"], "has no cell 'onn'; did you mean 'on'?"),
        (["--a=queue:off", "--b=queue:on"], "no run of the cell 'off' completed in"),
        (["--a=queue:on", "--b=queue:on"], "is both A and B"),
        (["--a=spike/20261121T080003Z-default-r01", "--b=queue:on"], "are of different scenarios"),
        (["--a=spike/20261121T080004Z-default-r01", "--b=queue:on"], "the run has no verdict.json; derive it again"),
    ],
)
def test_what_cannot_be_compared_is_refused(connlab: Run, results: Results, arguments: list[str], message: str) -> None:
    folder = results.series({"on": [{}, {}], "off": []})
    results.run(scenario="spike")
    (results.run(scenario="spike") / "derived" / "verdict.json").unlink()
    code, out, err = connlab("compare", *arguments)

    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (folder / "derived").exists()


def test_a_run_whose_manifest_is_damaged_is_not_to_be_derived_again(connlab: Run, results: Results) -> None:
    folder = results.series({"on": [{}, {}], "off": [{}, {}]})
    run = results.root / str(series_file.load_series(folder).runs[0].run)
    (run / "manifest.json").write_text("{")
    for arguments in (["--matrix=queue"], [f"--a={run}", "--b=queue:off"], ["--a=queue:off", "--b=queue:on"]):
        code, _, err = connlab("compare", *arguments)
        assert code == 2
        assert f"{run}/manifest.json: Invalid JSON" in err
        assert "derive it again" not in err


def test_a_damaged_series_is_reported_with_the_hint(connlab: Run, results: Results) -> None:
    file = results.series({"on": [{}, {}], "off": [{}, {}]}) / "series.json"
    file.write_text("{")
    for arguments in (["--matrix=queue"], ["--a=queue:off", "--b=queue:on"]):
        code, _, err = connlab("compare", *arguments)
        assert code == 2
        assert err.startswith(f"connlab: {file}: Invalid JSON: ")
        assert err.endswith("; run the series again with NEW=1 (--new)\n")


def sides(results: Results, times: float) -> list[str]:
    a, b = ([results.run({MEAN: each * factor}) for each in STEADY] for factor in (1, times))
    return [*(f"--a={run}" for run in a), *(f"--b={run}" for run in b)]


@pytest.mark.parametrize(
    ("times", "code", "said", "mark"),
    [(1.0, 0, "passed", None), (1.5, 1, "worse", "failure"), (1.05, 3, "unknown", "skipped")],
)
def test_a_gate_says_what_it_found_in_a_line_an_exit_code_and_junit(
    connlab: Run, results: Results, *, times: float, code: int, said: str, mark: str | None
) -> None:
    found, out, _ = connlab(*GATE, *sides(results, times), "--junit=gate.xml")
    first, last = out.splitlines()
    assert (found, first.split(" 10")[0]) == (code, f"{said}: {MEAN}")
    assert "5 % is allowed (7 runs and 7)" in first
    assert last.startswith(f"next, what else moved: make -C {paths.ROOT} compare A=")
    suite = ET.parse("gate.xml").getroot()  # noqa: S314  our own file
    (test,) = suite
    assert (suite.get("tests"), suite.get("failures"), test.get("classname")) == ("1", str(code % 3), "queue")
    assert [each.tag for each in test] == [*([mark] if mark else []), "system-out"]
    assert test.findtext("system-out") == first


def test_a_folder_of_runs_and_a_cell_are_a_side_each(connlab: Run, results: Results) -> None:
    arms = {arm: [{"figures": {MEAN: each * factor}} for each in STEADY] for arm, factor in (("on", 1), ("off", 2))}
    series = results.series(arms)
    baseline = Path("baseline")
    for file in (results.root / "queue").glob("*-on-*"):
        shutil.copytree(file, baseline / file.name)
    assert connlab(*GATE, "--a=baseline", f"--b={series.name}:off")[0] == 1
    code, _, err = connlab(*GATE, "--a=baseline", f"--b={series.name}")
    assert code == 2
    assert f"the series {series.name} has 2 cells" in err
    assert f"{series.name}:on, {series.name}:off" in err
    content = json.loads((series / "series.json").read_text())
    (series / "series.json").write_text(json.dumps(content | {"cells": content["cells"][1:]}))
    assert connlab(*GATE, "--a=baseline", f"--b={series.name}")[0] == 1


def test_what_a_foreign_run_says_is_text(connlab: Run, results: Results) -> None:
    hostile = "queue]]></x>\x1b[31m"
    side = [str(results.run({MEAN: 1.0}, scenario="queue", status="aborted", reason=hostile))]
    side += [str(results.run({MEAN: each})) for each in STEADY]
    more = [f"--b={results.run({MEAN: each})}" for each in STEADY]
    code, _, err = connlab(*GATE, *(f"--a={run}" for run in side), *more, "--junit=gate.xml")
    assert code == 0
    assert "\x1b" not in err
    assert "not counted: queue/" in err
    said = ET.parse("gate.xml").getroot()[0].findtext("system-out", "")  # noqa: S314  our own file
    assert "queue]]></x>\\x1b[31m" in said


def test_a_gate_as_json_has_everything(connlab: Run, results: Results) -> None:
    code, out, _ = connlab(*GATE, *sides(results, 1.5), "--json")
    found = json.loads(out)
    assert code == found["exit_code"] == 1
    assert (found["outcome"], found["figure"], found["limit"]) == ("worse", MEAN, {"value": 0.05, "relative": True})
    assert found["worse_by"]["low"] > 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--b=x",), "A names no run"),
        (("--a=nowhere", "--b=nowhere"), "no run at 'nowhere'"),
        (("--a=x", "--b=y", "--better=up"), "--better is 'more' or 'less', and not 'up'"),
        (("--a=nothing:cell", "--b=y"), "no series of 'nothing'"),
    ],
)
def test_a_bad_gate_is_refused(connlab: Run, results: Results, arguments: tuple[str, ...], said: str) -> None:
    assert not results.root.exists()
    code, _, err = connlab(*GATE, *arguments)
    assert code == 2
    assert said in err


def test_a_file_that_cannot_be_written_is_refused(connlab: Run, results: Results) -> None:
    code, _, err = connlab(*GATE, *sides(results, 1.0), "--junit=missing/gate.xml")
    assert code == 2
    assert "missing/gate.xml: No such file or directory" in err
