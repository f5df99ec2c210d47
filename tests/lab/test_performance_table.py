"""The table of docs/performance.md: made by `make bench`, from what was measured last."""

import pytest

from tests.bench import table
from tests.bench.goals import BENCHES, Goal

_LINE = {
    "bench": "collector", "core_share_at_rest": 0.0042, "core_share_at_work": 0.0071, "quiet": True,
    "when": "2026-01-02", "kernel": "6.1", "cpus": 2,
}  # fmt: skip


def rows(**changed: object) -> list[str]:
    return [row for row in table.table({"collector": _LINE | changed}) if "bench-collector" in row]


def test_a_row_says_whether_the_goal_was_met() -> None:
    rest, work = rows()
    assert rest.endswith("| 0.50% or less | 0.42% | yes |")
    assert work.endswith("| 0.50% or less | 0.71% | no |")


def test_a_busy_machine_and_a_bench_without_a_result_are_told() -> None:
    assert all("(busy machine)" in row for row in rows(quiet=False))
    assert "| not yet | |" in next(row for row in table.table({}) if "bench-flows" in row)
    assert "Measured on 2026-01-02, with Linux 6.1 and 2 processors: collector." in table.table({"collector": _LINE})


def test_a_figure_that_could_not_be_measured_is_unknown_and_no_goal_that_was_met() -> None:
    kind = {"throughput_lost": -0.01, "p99_gained": 0.02}
    line = _LINE | {"events": kind, "of_loop": {"throughput_lost": None, "p99_gained": -0.5, "own_share": 0.1}}
    lost, p99, *_ = (row for row in table.table({"loop": line}) if "`make bench-loop`" in row)
    assert lost.endswith("| 50% or less | unknown | unknown |")
    assert p99.endswith("| 50% or less | -50% | yes |")


@pytest.mark.parametrize(("at_most", "met"), [(True, [True, True, False]), (False, [False, True, True])])
def test_a_bound_is_itself_good_enough(at_most: bool, met: list[bool]) -> None:  # noqa: FBT001  a parameter
    goal = Goal("x", "", 3, at_most=at_most)
    assert [goal.met(value) for value in (2.9, 3, 3.1)] == met


def test_the_document_has_what_was_measured_last() -> None:
    lines = table.load()
    assert lines.keys() <= {bench.name for bench in BENCHES}
    for made in (table.table(lines), table.captures(lines), table.loop(lines), table.noise(lines.get("noise"))):
        assert "\n".join(made) in table.DOCUMENT.read_text(encoding="utf-8")
    assert "\n".join(table.hour(lines.get("hour"))) in table.HOUR_DOCUMENT.read_text(encoding="utf-8")


def test_a_judge_s_row_has_how_often_it_was_wrong_and_right() -> None:
    shares = {"called_share": 0.06, "called_noisy_share": 0.12, "found_share": 0.75}
    judge = {"called": 12, "called_noisy": 6, "found": 150} | shares
    counts = {"arms": 2, "noisy": 1, "repetitions": [8, 9], "splits": 100, "planted": 1.5, "source": "runs"}
    line = {**counts, "judges": {"gate": judge}}
    said = list(table.noise(line))
    assert "8 to 9 runs of each, dealt out 100 times: 200 comparisons." in said[0]
    assert said[-1] == "| `connlab gate`, `WORSE_THAN=10%`: worse | 12 (6.0%) | 6 (12.0%) | 150 (75.0%) |"
