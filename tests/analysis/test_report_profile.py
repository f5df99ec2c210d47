"""The report's last section: who had the processors under the load, and where the time of the run went."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from analysis.derivation import analyse
from analysis.reports import conditions, run_record, run_report

if TYPE_CHECKING:
    from tests.analysis.support import RunFolder

OTHER = "other: the kernel, the engine, the lab itself, services beside the path, other programs"


def read(run: RunFolder) -> run_record.Record:
    folder = run.write()
    analyse(folder)
    return run_record.load_record(folder)


def test_the_processors_are_divided_among_all_that_had_them_by_their_programs_names(run: RunFolder) -> None:
    found = conditions.cpu_shares(read(run))

    assert found.missing is None
    assert dict(found.rows) == pytest.approx(
        {"k6": 2.5, "backend (java)": 2.5, "the collectors": 0.8, "tcpdump": 0.04, OTHER: 4.16, "idle": 90.0}
    )
    assert sum(share or 0 for _, share in found.rows) == pytest.approx(100)


def test_more_than_all_of_them_leaves_nothing_for_others(run: RunFolder) -> None:
    record = read(run)
    record.figures["process.k6.cpu_percent.mean"] = 60.0

    assert dict(conditions.cpu_shares(record).rows)[OTHER] == 0


def test_what_one_program_had_is_unknown_without_its_readings_and_then_among_the_others(run: RunFolder) -> None:
    run.samples["k6-1"].lose_readings("processes", 20, 30)
    found = dict(conditions.cpu_shares(read(run)).rows)

    assert (found["k6"], found["the collectors"], found["backend (java)"]) == (None, None, 2.5)
    assert found[OTHER] == pytest.approx(7.46)
    assert '<th scope="row">k6</th><td class="number">unknown</td>' in run_report.render(run.folder)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nodes": {"k6-1": "node-1", "backend-1": "node-1"}}, "the run was on a cluster, and how many processors"),
        ({"host": {}}, "nothing says how busy the processors were under the load"),
        ({"status": "aborted", "reason": "no backend"}, "nothing says how busy the processors were under the load"),
    ],
)
def test_where_nothing_says_it_there_is_the_reason(run: RunFolder, changes: dict[str, object], why: str) -> None:
    run.manifest |= changes
    found = conditions.cpu_shares(read(run))

    assert found.rows == []
    assert (found.missing or "").startswith(why)
    assert f"<p>Not known: {why}" in run_report.render(run.folder)


def test_the_steps_of_a_run_stand_in_its_report_if_its_manifest_has_them(run: RunFolder) -> None:
    folder = read(run).folder
    assert "Where the time of the run went" not in run_report.render(folder)

    steps = {"prepare": 2250.4, "prepare/start <now>": 1750.0}
    (folder / "manifest.json").write_text(json.dumps(run.manifest | {"profile": steps}))
    content = run_report.render(folder)

    assert "Where the time of the run went" in content
    assert '<th scope="row">prepare</th><td class="number">2,250</td>' in content
    assert '<th scope="row">\u2003start &lt;now&gt;</th><td class="number">1,750</td>' in content


@pytest.mark.parametrize("steps", [{"prepare": -1}, {"prepare": 1e300}, {"prepare": "1"}, ["prepare"]])
def test_steps_that_no_run_takes_are_no_manifest_s(run: RunFolder, steps: object) -> None:
    folder = read(run).folder
    (folder / "manifest.json").write_text(json.dumps(run.manifest | {"profile": steps}))

    with pytest.raises(run_report.ReportError, match="profile"):
        run_report.render(folder)
