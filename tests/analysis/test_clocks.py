"""Runs whose instances are on machines with clocks of their own: they say what they would have said by one clock."""

import json
import shutil
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.derivation import JudgedRun, analyse, judge
from analysis.diagnosis.causes.waiting import APART
from analysis.evidence import clocks
from analysis.evidence.clock_fit import DRIFT_MAX, SAME, Bounds, Rate, fit
from analysis.evidence.clocks import Clocks
from analysis.verdicts.clocks_file import ClocksFile
from tests.analysis import generators
from tests.analysis.machines import ELSEWHERE, HERE, move
from tests.analysis.whole import make_run

EXAMPLE = Path("docs/example")
BEGIN_US = 1_795_270_000_000_000
MINUTE_US = 60_000_000


def told(of_run: JudgedRun) -> dict[str, object]:
    """What a run says without regard to when it was: the cause of each request, and what must be equal."""
    joined = of_run.run.joined
    assert not hasattr(joined, "why")
    causes = joined.execute("SELECT instance, id, cause FROM attributed ORDER BY ALL").fetchall()
    outcomes = [(each.id, each.status) for each in of_run.predictions]
    identities = [(hop.to, each.id, each.holds) for hop in of_run.account.hops for each in hop.identities]
    return {"causes": causes, "outcomes": outcomes, "identities": identities, "account": of_run.account.causes}


@cache
def by_one_clock() -> dict[str, object]:
    return told(judge(EXAMPLE))


def copied(folder: Path) -> Path:
    run = folder / "run"
    shutil.copytree(EXAMPLE, run, ignore=shutil.ignore_patterns("derived"))
    return run


@pytest.mark.parametrize("instance", ["k6-1", "backend-1"])
@pytest.mark.parametrize(("ahead_ms", "ppm"), [(-250, 0), (3000, 100), (0.4, -100)])
def test_a_run_on_two_clocks_has_the_same_ledger(tmp_path: Path, instance: str, ahead_ms: float, ppm: float) -> None:
    run = copied(tmp_path)
    move(run, instance, ahead_ms, ppm)
    found = judge(run)
    assert told(found) == by_one_clock()
    assert found.run.raw.clocks.nodes[instance] == ELSEWHERE


def test_of_many_connections_some_are_enough_for_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "CONNECTIONS_MAX", 60)
    run = copied(tmp_path)
    move(run, "k6-1", 3000, 100)
    found = judge(run)
    assert 0 < found.run.raw.clocks.machines[ELSEWHERE].bounds < 100
    assert found.account.causes["accept-queue-drop"] == 100


def test_the_clocks_are_written_down_and_only_those_of_several_machines(tmp_path: Path) -> None:
    run = copied(tmp_path)
    analyse(run)
    assert not (run / ClocksFile.file).exists()
    move(run, "k6-1", 3000, 100)
    analyse(run)
    found = ClocksFile.model_validate_json((run / ClocksFile.file).read_bytes())
    here, elsewhere, lab = found.machines
    assert (found.reference, here.machine, here.ahead_us, here.residual_us) == (HERE, HERE, 0, 0)
    assert (elsewhere.machine, elsewhere.instances, elsewhere.by, lab.machine) == (ELSEWHERE, ["k6-1"], HERE, None)
    assert elsewhere.residual_us is not None
    assert elsewhere.ahead_us == pytest.approx(3_000_000, abs=elsewhere.residual_us)
    # The lab looked at both clocks, within 75 ms.
    assert found.apart_us is not None
    assert found.lab_apart_us is not None
    assert found.apart_us < 20_000 < found.lab_apart_us < 75_000


def test_a_run_that_never_measured_has_no_time_at_which_a_clock_is_ahead(tmp_path: Path) -> None:
    run = copied(tmp_path)
    move(run, "k6-1", 3000, 100)
    content = json.loads((run / "manifest.json").read_bytes())
    content["phases"] = [each for each in content["phases"] if each["name"] not in ("measure", "drain")]
    (run / "manifest.json").write_text(json.dumps(content))
    analyse(run)
    found = ClocksFile.model_validate_json((run / ClocksFile.file).read_bytes())
    assert [each.ahead_us for each in found.machines] == [None, None, None]


def test_without_anything_that_bounds_the_lab_s_clock_nothing_is_true(tmp_path: Path) -> None:
    run = copied(tmp_path)
    move(run, "k6-1", 3000, 100, looks=False)
    found = judge(run)
    assert found.verdict.verdict == "inconclusive"
    (problem,) = [each.message for each in found.problems if each.instrument == "clock"]
    assert problem == "nothing bounds the difference of the lab's clock and those of the instances"


def test_clocks_that_nothing_bounds_are_not_taken_for_one(tmp_path: Path) -> None:
    run = copied(tmp_path)
    move(run, "k6-1", 0, 0, looks=False)
    (run / "raw/backend-1/collector/capture.pcap").unlink()
    found = judge(run)
    assert found.run.raw.clocks.apart_us is None
    assert any("from both sides" in each for each in found.account.lacks)


@pytest.mark.parametrize(("apart_us", "doubt"), [(60_000_000, "within 60.000 s only"), (None, "nothing says how far")])
def test_a_cause_whose_proof_needs_better_clocks_is_unexplained(
    monkeypatch: pytest.MonkeyPatch, apart_us: int | None, doubt: str
) -> None:
    monkeypatch.setattr(Clocks, "apart_us", apart_us)
    joined = judge(EXAMPLE).run.joined
    assert not hasattr(joined, "why")
    found = joined.execute("SELECT evidence FROM attributed WHERE cause = 'unexplained'").fetchall()
    assert len(found) == 2  # those who waited; nobody's clock has a part in the others' lost SYNs
    assert all(says.startswith("waited-in-accept-queue is in doubt") and doubt in says for (says,) in found)


@pytest.mark.parametrize(
    ("next_us", "parts_us", "borne_us"),
    [
        (10_000, 240_000, 25_000),  # so much more is proven than what lies above the bound
        (100_000, 240_000, 11_500),  # two waits alike: either is the main part, unless clocks are a tenth of it apart
        (100_000, 195_000, 2_500),  # less than half is proven, and the rest is just within the bound
        (100_000, 185_000, 0),
    ],
)
def test_two_waits_that_are_alike_are_no_doubt(next_us: int, parts_us: int, borne_us: int) -> None:
    waits = f"105000 AS part_max_us, {next_us} AS part_next_us, {parts_us} AS parts_us"
    times = "410000 AS total_us, 220000 AS bound_us"
    found = duckdb.execute(f"SELECT {APART} FROM (SELECT {waits}, {times})").fetchall()  # noqa: S608
    assert found == [(borne_us,)]


RATES = st.builds(Rate, st.just(BEGIN_US), st.floats(-250_000, 3_000_000), st.floats(-DRIFT_MAX, DRIFT_MAX))


@example(rate=Rate(BEGIN_US, 0, -0.99 * DRIFT_MAX), delays=[(0, 0)] * 40)
@example(rate=Rate(BEGIN_US, 0, 0.99 * DRIFT_MAX), delays=[(0, 0)] * 40)
@given(rate=RATES, delays=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), min_size=2, max_size=40))
def test_a_fit_is_no_further_off_than_it_says(rate: Rate, delays: list[tuple[int, int]]) -> None:
    times_us = np.linspace(BEGIN_US, BEGIN_US + MINUTE_US, len(delays)).astype(np.int64)
    there, back = np.array(delays, dtype=np.int64).T
    ahead_us = np.array([rate.more_us(int(us)) for us in times_us])
    least, most = Bounds(times_us, ahead_us - there), Bounds(times_us, ahead_us + back + 1)
    found = fit(least, most, BEGIN_US, BEGIN_US + MINUTE_US)
    assert found is not None
    off_us = np.abs([found.rate.more_us(int(us)) for us in times_us] - ahead_us)
    assert off_us.max() <= found.residual_us + found.contradiction_us + 2
    assert found.contradiction_us == 0


def test_bounds_from_one_side_fit_nothing() -> None:
    one = Bounds(np.array([BEGIN_US]), np.array([5]))
    none = Bounds(np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    assert fit(one, none, BEGIN_US, BEGIN_US) is None
    assert fit(none, one, BEGIN_US, BEGIN_US) is None


def test_a_clock_that_does_not_run_evenly_says_by_how_much() -> None:
    times_us = BEGIN_US + np.arange(0, MINUTE_US, 1_000_000)
    bent_us = np.where(times_us < BEGIN_US + MINUTE_US // 2, 0, 40_000)
    found = fit(Bounds(times_us, bent_us - 100), Bounds(times_us, bent_us + 100), BEGIN_US, BEGIN_US + MINUTE_US)
    assert found is not None
    assert 5_000 < found.contradiction_us <= found.residual_us < 40_000


@given(one=RATES, other=RATES, second=st.integers(0, 60))
def test_rates_follow_each_other_and_turn_round(one: Rate, other: Rate, second: int) -> None:
    time_us = BEGIN_US + 1_000_000 * second
    middle_us = time_us + one.more_us(time_us)
    last_us = middle_us + other.more_us(middle_us)
    assert abs(time_us + one.then(other).more_us(time_us) - last_us) <= 2
    assert abs(middle_us + one.inverse().more_us(middle_us) - time_us) <= 2
    assert SAME.more_us(time_us) == 0


def test_one_ledger_over_64_generators_with_a_clock_each_has_every_cause_right(tmp_path: Path) -> None:
    run, causes = generators.make(tmp_path, seed=7)
    found = judge(run.write())
    joined = found.run.joined
    assert not hasattr(joined, "why")
    attributed = joined.execute("SELECT instance, id, cause FROM attributed ORDER BY ALL").fetchall()
    assert {(instance, id_): cause for instance, id_, cause in attributed} == causes
    assert len(found.run.raw.clocks.machines) == generators.GENERATORS + 2
    assert found.account.requests is not None
    assert found.account.requests.total == generators.GENERATORS * generators.USERS


def test_a_busy_machine_of_a_generator_puts_the_load_in_doubt_and_a_server_s_does_not(tmp_path: Path) -> None:
    def problems(busy: str) -> list[str]:
        run = make_run(tmp_path / busy)
        run.manifest["nodes"] = {"k6-1": "a.example", "backend-1": "b.example"}
        for record in run.samples[busy].slow:
            if record["kind"] == "processes":
                record["host"] = record["host"] | {"cpu_idle_ms": 0}
                record["processes"][0]["cpu_ms"] *= 20
        return [each.message for each in judge(run.write()).problems if each.instrument == "host"]

    (said,) = problems("k6-1")
    assert said.startswith("the processors of a.example were idle for 0.0 % of the load")
    assert problems("backend-1") == []
