"""Whether a figure became worse: what a gate says, and how often it is wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.compare import CompareError, gate
from analysis.compare.gate import FEWEST, GateOutcome, Limit
from analysis.compare.replicates import load_group
from tests.analysis.results import Results
from tests.analysis.support import make_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from analysis.compare.gate import Gate
    from analysis.compare.intervals import Floats

MEAN = "client.latency_ms.mean"
STEADY = (10.0, 10.2, 10.1, 9.9, 10.0, 10.1, 9.8)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


def gated(
    results: Results, a: tuple[float, ...], b: tuple[float, ...], limit: str = "5%", figure: str = MEAN, **more: bool
) -> Gate:
    group_a, group_b = (
        load_group(name, [results.run({figure: value}) for value in values]) for name, values in (("A", a), ("B", b))
    )
    return gate.judge(group_a, group_b, figure, Limit.parse(limit), **more)


@pytest.mark.parametrize(
    ("times", "limit", "outcome"),
    [
        (1.0, "5%", GateOutcome.PASSED),
        (1.2, "5%", GateOutcome.WORSE),
        (1.2, "25%", GateOutcome.PASSED),
        (1.2, "1", GateOutcome.WORSE),
        (1.2, "3", GateOutcome.PASSED),
        (1.05, "5%", GateOutcome.UNKNOWN),
        (0.5, "0%", GateOutcome.PASSED),
    ],
)
def test_a_limit_is_a_share_of_the_baseline_or_a_difference(
    results: Results, times: float, limit: str, outcome: GateOutcome
) -> None:
    found = gated(results, STEADY, tuple(times * value for value in STEADY), limit)
    assert found.outcome == outcome
    assert (found.why is None) == (outcome != GateOutcome.UNKNOWN)


def test_of_some_figures_more_is_better(results: Results) -> None:
    less = tuple(0.8 * value for value in STEADY)
    assert gated(results, STEADY, less, figure="client.requests.ok_per_second").outcome == GateOutcome.WORSE
    assert gated(results, less, STEADY, figure="client.requests.ok_per_second").outcome == GateOutcome.PASSED
    assert gated(results, STEADY, less).outcome == GateOutcome.PASSED
    assert gated(results, STEADY, less, greater_is_better=True).outcome == GateOutcome.WORSE


@pytest.mark.parametrize(
    ("figure", "more_is"),
    [
        ("client.requests.status.200", "better"),
        ("client.requests.status.3xx", "better"),
        ("access.nginx.status.2xx", "better"),
        ("access.haproxy.status.204", "better"),
        ("client.admissions.total", "better"),
        ("client.checks.it_failed.rate", "better"),
        ("client.requests.status.503", "worse"),
        ("access.nginx.status.4xx", "worse"),
        ("access.nginx.tries.retried", "worse"),
        ("client.dials.failed_timeout", "worse"),
        ("client.named.shop.latency_ms.p95", "worse"),
        ("client.requests.total", None),
        ("client.requests.status.101", None),
        ("client.named.failed.total", None),
        ("access.nginx.requests", None),
        ("access.nginx.connection.keep_alive", None),
    ],
)
def test_a_figures_name_says_whether_more_of_it_is_better(results: Results, figure: str, more_is: str | None) -> None:
    more = tuple(2 * value for value in STEADY)
    if more_is is None:
        with pytest.raises(CompareError, match=f"whether more of {figure} is better or worse is not known"):
            gated(results, STEADY, more, figure=figure)
    else:
        outcome = GateOutcome.PASSED if more_is == "better" else GateOutcome.WORSE
        assert gated(results, STEADY, more, figure=figure).outcome == outcome


def test_a_baseline_without_failures_allows_none(results: Results) -> None:
    found = gated(results, (0,) * FEWEST, (3,) * FEWEST, figure="client.requests.failed")
    assert found.outcome == GateOutcome.WORSE
    assert found.worse_by is not None
    assert (found.worse_by.low, found.worse_by.high) == (3, 3)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ((10.0,), (20.0, 21.0), "one run tells nothing of noise"),
        (STEADY[:4], tuple(2 * value for value in STEADY[:4]), f"4 and 4 runs cannot tell; about {FEWEST} of each"),
        (STEADY, tuple(1.05 * value for value in STEADY), "the difference lies at the limit"),
    ],
)
def test_what_cannot_be_told_says_what_would_help(
    results: Results, a: tuple[float, ...], b: tuple[float, ...], why: str
) -> None:
    found = gated(results, a, b)
    assert found.outcome == GateOutcome.UNKNOWN
    assert found.why is not None
    assert why in found.why


def test_a_figure_that_no_run_of_a_side_knows_is_unknown(results: Results) -> None:
    known, lost = results.run({MEAN: 1.0}), results.run({MEAN: None})
    found = gate.judge(load_group("A", [lost]), load_group("B", [known]), MEAN, Limit.parse("5%"))
    assert (found.outcome, found.a, found.b) == (GateOutcome.UNKNOWN, None, 1.0)
    assert found.why == "no usable run of the baseline knows the figure"


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ("client.latency_ms.meen", "no run has the figure client.latency_ms.meen; did you mean client.latency_ms.mean"),
        ("kernel.backend.TcpExt.ListenDrops", "say --better more or --better less"),
    ],
)
def test_a_figure_that_cannot_be_judged_is_refused(results: Results, figure: str, said: str) -> None:
    a, b = (load_group(name, [results.run({MEAN: 1.0})]) for name in "AB")
    with pytest.raises(CompareError, match=said):
        gate.judge(a, b, figure, Limit.parse("5%"))


@pytest.mark.parametrize("text", ["", "5 percent", "-3", "%", "1e3", "5%%", "\N{ARABIC-INDIC DIGIT FIVE}%"])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CompareError, match="is not a limit"):
        Limit.parse(text)


def test_runs_of_two_machines_are_refused(results: Results) -> None:
    other = results.run({MEAN: 1.0}, host=make_manifest()["host"] | {"kernel": "9.9.9"})
    with pytest.raises(CompareError, match=r"host.kernel is .* and 9.9.9 .* make the baseline on the machine"):
        gate.judge(load_group("A", [results.run({MEAN: 1.0})]), load_group("B", [other]), MEAN, Limit.parse("5%"))


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(100, 5, n),
        lambda rng, n: rng.lognormal(3, 1, n),
        lambda rng, n: rng.choice([10.0, 10.0, 50.0], n),
    ],
    ids=["normal", "skewed", "two values"],
)
def test_a_program_against_itself_is_not_worse(draw: Callable[[np.random.Generator, int], Floats]) -> None:
    """Where any difference counts, at most one gate in a thousand may say so."""
    rng = np.random.default_rng(7)
    said = Counter(
        gate.decide(draw(rng, FEWEST).tolist(), draw(rng, FEWEST).tolist(), Limit.parse("0")).outcome
        for _ in range(200)
    )
    assert said[GateOutcome.WORSE] <= 2


def test_a_program_that_is_clearly_worse_is_found_out() -> None:
    rng = np.random.default_rng(7)
    said = Counter(
        gate.decide(rng.normal(100, 3, FEWEST).tolist(), rng.normal(120, 3, FEWEST).tolist(), Limit.parse("5%")).outcome
        for _ in range(50)
    )
    assert said[GateOutcome.WORSE] >= 45
    assert said[GateOutcome.PASSED] == 0


def test_many_runs_are_dealt_out_at_random_and_the_same_each_time() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(100, 3, 15).tolist(), rng.normal(130, 3, 15).tolist()
    once, again = (gate.decide(a, b, Limit.parse("5%")) for _ in range(2))
    assert once == again
    assert once.outcome == GateOutcome.WORSE
    assert once.by_chance is not None
    assert 0 < once.by_chance <= gate.BY_CHANCE_MAX
