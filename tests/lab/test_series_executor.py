"""The engine: goes on after failures, resumes after a real kill at each moment of a run, and never mixes."""

import multiprocessing.process
import platform
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import series as series_file
from formats.series import Series
from lab import paths
from lab.engines.compose.engine import Compose
from lab.errors import BadInput, Interruption
from lab.schema import schemas
from lab.series import matrices, store
from lab.series.executor import Executor, open_places
from lab.series.plan import Plan, order_runs, set_repetitions
from tests.lab import series_support
from tests.lab.engine import InMemoryDocker
from tests.lab.series_support import MACHINE, MATRIX, MOMENTS, FakeRunner, executor
from tests.lab.support import IMAGES
from tests.lab.waiting import wait_until

CELLS = [f"accept-count-{count}-users-{users}" for count in (1, 2) for users in (3, 4)]
FIRST = order_runs(CELLS, 2, 1)[0][0]
NAMES = st.lists(st.text("abc-", min_size=1, max_size=6), unique=True, min_size=1, max_size=12)


@given(NAMES, st.integers(1, 5), st.integers(0, 2**31))
def test_each_repetition_is_a_block_with_every_cell_once(cells: list[str], repetitions: int, seed: int) -> None:
    found = order_runs(cells, repetitions, seed)
    for repetition in range(repetitions):
        block = found[repetition * len(cells) : (repetition + 1) * len(cells)]
        assert sorted(block) == sorted((cell, repetition + 1) for cell in cells)


@given(NAMES, st.randoms(use_true_random=False), st.integers(0, 2**31))
def test_the_order_does_not_depend_on_how_the_cells_are_listed(cells: list[str], random: object, seed: int) -> None:
    shuffled = sorted(cells, key=lambda _: random.random())  # type: ignore[attr-defined] # hypothesis's Random
    assert order_runs(cells, 2, seed) == order_runs(shuffled, 2, seed)


def test_the_order_is_the_same_on_every_machine() -> None:
    assert order_runs(["a", "b", "c"], 2, 1) == [("a", 1), ("c", 1), ("b", 1), ("b", 2), ("c", 2), ("a", 2)]


@pytest.fixture
def plan(elsewhere: Path) -> Plan:
    series_support.write(elsewhere)
    return matrices.plan_matrix("grid")


def run(made: Executor) -> Series:
    made.go(open_places(made))
    return series_file.load_series(made.folder)


def test_a_series_runs_every_place_in_the_seed_s_order(plan: Plan) -> None:
    runner = FakeRunner()
    series = run(executor(plan, runner))
    assert runner.ran == order_runs(CELLS, 2, 1) == [(place.cell, place.repetition) for place in series.runs]
    assert (series.status, series.ended is not None) == ("complete", True)
    assert {place.verdict for place in series.runs} == {"reproduced"}
    assert all((paths.RESULTS / str(place.run)).is_dir() for place in series.runs)
    assert (paths.RESULTS / "series" / "latest").resolve().name == series.series


def test_the_file_keeps_to_its_schema(plan: Plan) -> None:
    series = run(executor(plan, FakeRunner()))
    jsonschema.validate(series.model_dump(mode="json", by_alias=True), schemas()["series.schema.json"])


def test_one_failing_cell_does_not_stop_the_rest_and_the_same_command_tries_it_again(plan: Plan) -> None:
    series = run(executor(plan, FakeRunner(fails=(FIRST,))))
    assert series.status == "partial"
    failed = [place for place in series.runs if place.status == "aborted"]
    assert [(place.cell, place.reason) for place in failed] == [(FIRST, "the backend died")] * 2
    assert sum(place.status == "complete" for place in series.runs) == 6

    again = FakeRunner()
    repaired = run(executor(plan, again))
    assert repaired.series == series.series
    assert again.ran == [(FIRST, 1), (FIRST, 2)]
    assert repaired.status == "complete"
    assert [place.lost for place in repaired.runs if place.cell == FIRST] == [[place.run] for place in failed]


def test_repetitions_are_added_to_a_series_that_is_through(plan: Plan) -> None:
    first = run(executor(plan, FakeRunner()))
    again = FakeRunner()
    more = run(executor(set_repetitions(plan, 3), again))
    assert more.series == first.series
    assert again.ran == order_runs(CELLS, 3, 1)[len(CELLS) * 2 :]
    assert (more.repetitions, more.status, len(more.runs)) == (3, "complete", len(CELLS) * 3)
    assert [place.run for place in more.runs[: len(first.runs)]] == [place.run for place in first.runs]


@pytest.mark.parametrize("times", [None, 1, 2])
def test_a_series_that_is_through_and_lacks_none_begins_anew(plan: Plan, times: int | None) -> None:
    first = run(executor(plan, FakeRunner()))
    another = run(executor(set_repetitions(plan, times), FakeRunner()))
    assert another.series != first.series
    assert len(another.runs) == len(CELLS) * (times or 2)


def test_repetitions_are_added_to_an_unfinished_series_and_kept_by_the_plain_command(plan: Plan) -> None:
    first = run(executor(set_repetitions(plan, 3), FakeRunner(fails=(FIRST,))))
    assert (first.status, first.repetitions) == ("partial", 3)
    again = FakeRunner()
    whole = run(executor(plan, again))
    assert (whole.series, whole.status, whole.repetitions) == (first.series, "complete", 3)
    assert again.ran == [(FIRST, number) for number in (1, 2, 3)]


def test_an_unfinished_series_is_not_made_smaller(plan: Plan) -> None:
    run(executor(plan, FakeRunner(fails=(FIRST,))))
    with pytest.raises(BadInput, match="was begun with 2 repetitions of each, not with 1"):
        executor(set_repetitions(plan, 1), FakeRunner())


def test_no_repetitions_are_added_where_the_kernel_changed(plan: Plan) -> None:
    run(executor(plan, FakeRunner()))
    with pytest.raises(BadInput, match="8 of 8 runs, and cannot continue: since it began, the kernel"):
        executor(set_repetitions(plan, 3), FakeRunner(), kernel="6.19")


def test_failures_in_succession_end_the_series(plan: Plan) -> None:
    runner = FakeRunner(fails=tuple(CELLS))
    series = run(executor(plan, runner))
    assert len(runner.ran) == 3
    assert series.status == "partial"
    assert series.reason == "3 runs in a row did not complete; the last: the backend died"


def test_a_stop_rule_ends_the_series_for_good(elsewhere: Path) -> None:
    series_support.write(elsewhere, MATRIX + 'stop: {when: "client.requests.failed > 0"}\n')
    plan = matrices.plan_matrix("grid")
    second = order_runs(CELLS, 2, 1)[1][0]
    stopped = run(executor(plan, FakeRunner(holds={second: True})))
    assert (stopped.status, [place.status for place in stopped.runs].count("complete")) == ("stopped", 2)
    assert executor(plan, FakeRunner()).series.series != stopped.series


def test_ctrl_c_keeps_what_is_complete_and_the_same_command_goes_on(plan: Plan) -> None:
    def at(moment: str) -> None:
        if moment == "measuring" and len(runner.ran) == 3:
            series_support.interrupt()

    runner = FakeRunner(at=at)
    made = executor(plan, runner)
    with pytest.raises(Interruption, match="2 of 8 runs are complete; the same command continues"):
        run(made)
    assert series_file.load_series(made.folder).status == "interrupted"
    after = FakeRunner()
    assert run(executor(plan, after)).status == "complete"
    assert after.ran == order_runs(CELLS, 2, 1)[2:]


# The process takes no lock that another thread of the tests' own could hold.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_process_loses_at_most_the_run_at_work(plan: Plan, elsewhere: Path, moment: str) -> None:
    # Forked: what a lab imports takes longer than its runs.
    process = multiprocessing.get_context("fork").Process(target=series_support.run_until, args=(elsewhere, moment))
    process.start()
    try:
        wait_until(lambda: (elsewhere / "reached").exists() or not process.is_alive())
    finally:
        process.kill()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert series_file.load_series((paths.RESULTS / "series" / "latest").resolve()).status == "running"

    runner = FakeRunner()
    made = executor(plan, runner)
    survived = [place.status for place in made.series.runs].count("complete")
    assert survived == (3 if moment in ("ended", "deriving") else 2)
    series = run(made)
    assert runner.ran == order_runs(CELLS, 2, 1)[survived:]
    assert (series.status, {place.verdict for place in series.runs}) == ("complete", {"reproduced"})
    assert len({place.run for place in series.runs}) == 8
    # Killed before the folder was made there is nothing to lose; afterwards it is named.
    assert sum(len(place.lost) for place in series.runs) == (1 if moment in ("opened", "measuring") else 0)
    assert len(list((paths.RESULTS / "series").glob("2*"))) == 1


def interrupted(plan: Plan) -> Series:
    made = executor(plan, FakeRunner(at=lambda moment: series_support.interrupt() if moment == "opened" else None))
    with pytest.raises(Interruption):
        run(made)
    return made.series


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"code": "other"}, "the lab's own program"),
        ({"kernel": "7.0"}, r"the kernel \(6.18, now 7.0\)"),
        ({"machine": MACHINE | {"host.docker": "27.0.0"}}, r"host.docker \(26.1.5, now 27.0.0\)"),
    ],
)
def test_a_series_is_not_mixed_with_what_changed_since(plan: Plan, changed: dict[str, Any], what: str) -> None:
    first = interrupted(plan)
    with pytest.raises(BadInput, match=rf"(?s)has 0 of 8 runs, and cannot continue.*{what}.*NEW=1 \(--new\)"):
        executor(plan, FakeRunner(), new=False, **changed)
    assert executor(plan, FakeRunner(), new=True, **changed).series.series != first.series


def test_an_edited_matrix_is_not_mixed_with_its_earlier_self(plan: Plan, elsewhere: Path) -> None:
    interrupted(plan)
    series_support.write(elsewhere, MATRIX.replace("seed: 1", "seed: 2"))
    edited = matrices.plan_matrix("grid")
    with pytest.raises(BadInput, match="the scenario, its own files, or the cells and their order"):
        executor(edited, FakeRunner())


def test_other_overrides_are_another_series(plan: Plan) -> None:
    first = interrupted(plan)
    other = matrices.plan_matrix("grid", ["backend.max_connections=7"])
    assert executor(other, FakeRunner()).series.series != first.series


def test_an_image_that_changed_is_named(plan: Plan) -> None:
    before = series_support.fingerprint(plan)
    after = before.model_copy(update={"images": {"backend": "sha256:2", "k6": "sha256:3"}})
    assert list(store.list_differences(before, after)) == [
        "the image connlab/backend (1, now 2)",
        "the image connlab/k6 (none, now 3)",
    ]


def test_of_the_machine_the_fingerprint_has_what_a_comparison_wants_alike(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("version *", "26.1.5")
    fake_docker.says("compose version *", "2.26.1")
    fake_docker.says("image ls *", IMAGES)
    taken = store.take_fingerprint("p", ["k6"], Compose())
    assert taken.kernel == platform.release()
    assert set(taken.machine) == {"host.distribution", "host.cpus", "host.docker", "host.compose", "lab.version"}
    assert taken.machine["host.docker"] == "26.1.5"


def test_a_series_that_does_not_say_on_which_machine_it_began_goes_on(plan: Plan) -> None:
    before, after = (series_support.fingerprint(plan, machine=machine) for machine in ({}, MACHINE))
    assert list(store.list_differences(before, after)) == []


def test_a_new_analysis_derives_the_recorded_runs_again(plan: Plan) -> None:
    count = 0

    def at(moment: str) -> None:
        nonlocal count
        count += moment == "ended"
        if count == 3:
            series_support.interrupt()

    with pytest.raises(Interruption):
        run(executor(plan, FakeRunner(at=at)))
    derived: list[str] = []
    executor(plan, FakeRunner(at=derived.append), analysis="newer")
    assert derived == ["deriving"] * 3


def test_an_analysis_that_fails_spoils_one_run_alone(plan: Plan) -> None:
    def at(moment: str) -> None:
        if moment == "deriving" and len(runner.ran) == 1:
            raise KeyError("x")

    runner = FakeRunner(at=at)
    series = run(executor(plan, runner))
    assert series.runs[0].verdict == "inconclusive"
    assert series.runs[0].reason == "the analysis failed: KeyError: 'x'"
    assert series.status == "complete"


def test_a_stop_rule_is_not_asked_of_a_run_whose_analysis_failed(elsewhere: Path) -> None:
    series_support.write(elsewhere, MATRIX + 'stop: {when: "client.requests.failed > 0"}\n')
    plan = matrices.plan_matrix("grid")

    def at(moment: str) -> None:
        if moment == "deriving" and len(runner.ran) == 1:
            raise KeyError("x")

    runner = FakeRunner(holds={order_runs(CELLS, 2, 1)[0][0]: True}, at=at)
    series = run(executor(plan, runner))
    assert [place.status for place in series.runs].count("complete") > 1


def test_progress_tells_the_time_left(plan: Plan, capfd: pytest.CaptureFixture[str]) -> None:
    run(executor(plan, FakeRunner()))
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 8
    assert "1 of 8 complete" in lines[0]
    assert "left" in lines[0]
