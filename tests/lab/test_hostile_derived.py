"""Derived files of somebody hostile: whatever they hold, one bad run is one bad row, and no command ends by a fault."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.compare import CompareError, compare_series
from analysis.derivation import analyse
from analysis.reports import comparison_page, index, run_report
from analysis.reports.run_record import ReportError
from lab import paths
from lab.cli import main
from lab.serve import app
from lab.serve.commands import Started
from tests.analysis.results import Results
from tests.analysis.whole import make_run, observed

EXAMPLE = paths.ROOT / "docs" / "example"
RUN = "accept-queue-overflow/20261121T141444Z-default-r01"
GOOD = "accept-queue-overflow/20261121T151444Z-default-r01"
SEEN = "observed-shop/20261121T161444Z-default-r01"

Place = tuple[str | int, ...]
# As JSON's text: what a double does not hold, what Python does not convert, what no number is.
HOSTILE = [
    "9" * 400, "9" * 5000, f"-{'9' * 400}", "1e400", "-1e400", "NaN", "-Infinity", str(10**18), str(-(10**18)),
    str(2**53), "1e300", "1e-320", "-0.0", "-1", "0", "0.5", "true", "null", '"x"', "[]", "{}",
]  # fmt: skip


def scalars(value: object, place: Place = ()) -> list[Place]:
    """The places of a document in which no other place is; of a list's entries, those of the first."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() for one in scalars(inner, (*place, key))]
    if isinstance(value, list):
        return [one for index, inner in enumerate(value[:1]) for one in scalars(inner, (*place, index))]
    return [place]


def with_text(content: object, place: Place, text: str) -> str:
    copy = json.loads(json.dumps(content))
    inner = copy
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = "@"
    return json.dumps(copy).replace('"@"', text)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a scenario, one that was watched, and a series."""
    root = tmp_path_factory.mktemp("hostile") / "results"
    for name in (RUN, GOOD):
        shutil.copytree(EXAMPLE, root / name)
        manifest = json.loads((root / name / "manifest.json").read_bytes()) | {"run": Path(name).name}
        (root / name / "manifest.json").write_text(json.dumps(manifest))
    (root / SEEN).mkdir(parents=True)
    run = observed(make_run(root / SEEN))
    run.manifest |= {"run": Path(SEEN).name}
    run.write()
    analyse(root / SEEN)
    figures = [{"figures": {"client.requests.failed": count}} for count in (3, 4)]
    folder = Results(root).series({"kept": figures, "closed": figures}, figures=["client.requests.failed"])
    (folder / "derived").mkdir()
    found, verdict = compare_series(folder)
    comparison_page.write(found, folder / "derived", root, verdict)
    return root


@pytest.fixture(autouse=True)
def below(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "RESULTS", results)


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
    results: Path, capsys: pytest.CaptureFixture[str], file: str, place: Place, text: str
) -> None:
    bad = results / RUN / "derived" / f"{file}.json"
    with holding(bad, with_text(json.loads(bad.read_bytes()), place, text)):
        states = {entry.run: entry.state for entry in index.runs_of_scenario(results, "accept-queue-overflow")}
        assert states == {Path(RUN).name: "analyse again", Path(GOOD).name: "reproduced"}
        keys = app.Keys("entry", "form", "frame")
        client = app.make_app(keys, Started()).test_client()
        client.get("/?key=entry")
        assert client.get("/").status_code == 200
        for run in (RUN, GOOD):
            with pytest.raises(SystemExit) as end:
                main(["report", str(results / run)])
            assert end.value.code == 0, capsys.readouterr()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.data())
def test_whatever_a_derived_file_holds_every_page_is_made(results: Path, drawn: st.DataObject) -> None:
    files = [*results.glob("*/*/derived/*.json"), *results.glob("series/*/series.json")]
    file = drawn.draw(st.sampled_from(sorted(files)), "file")
    content = json.loads(file.read_bytes())
    place = drawn.draw(st.sampled_from(scalars(content)), "place")
    with holding(file, with_text(content, place, drawn.draw(st.sampled_from(HOSTILE), "value"))):
        index.write(results)
        if file.name != "series.json" and "series" not in file.parts:
            with suppress(ReportError):
                run_report.write(file.parent.parent)
        else:
            with suppress(CompareError):
                compare_series(next(results.glob("series/*")))
