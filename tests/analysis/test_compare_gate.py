"""Whether a figure became worse: what a gate says, and how often it is wrong."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from analysis.compare import CompareError, gate
from analysis.compare.gate import FEWEST, Gate, GateOutcome, Limit
from analysis.compare.intervals import Floats
from analysis.compare.replicates import load_group
from tests.analysis.results import Results
from tests.analysis.support import make_manifest

MEAN = "client.latency_ms.mean"
STEADY = (10.0, 10.2, 10.1, 9.9, 10.0, 10.1, 9.8)


def gated(
    results: Results, a: tuple[float, ...], b: tuple[float, ...], limit: str = "5%", figure: str = MEAN, **more: bool
) -> Gate:
    group_a, group_b = (
        load_group(name, [results.run({figure: value}) for value in values]) for name, values in (("A", a), ("B", b))
    )
    return gate.judge(group_a, group_b, figure, Limit.parse(limit), **more)


def scaled(times: float) -> tuple[float, ...]:
    return tuple(times * value for value in STEADY)


@pytest.mark.parametrize(
    ("a", "b", "limit", "said"),
    [
        (STEADY, STEADY, "5%", "passed"),
        (STEADY, scaled(1.2), "5%", "worse"),
        (STEADY, scaled(1.2), "25%", "passed"),
        (STEADY, scaled(1.2), "1", "worse"),
        (STEADY, scaled(1.2), "3", "passed"),
        (STEADY, scaled(0.5), "0%", "passed"),
        # A baseline of zeros allows nothing.
        ((0,) * FEWEST, (3,) * FEWEST, "5%", "worse"),
        # What cannot be told says what would help.
        (STEADY, scaled(1.05), "5%", "unknown: 7 and 7 runs cannot tell: the difference lies at the limit"),
        (STEADY[:1], STEADY[:2], "5%", f"unknown: one run tells nothing about noise; give {FEWEST} of each"),
        (STEADY[:4], scaled(2)[:4], "5%", f"unknown: 4 and 4 runs cannot tell; about {FEWEST} of each would"),
    ],
)
def test_a_limit_is_a_share_of_the_baseline_or_a_difference(
    results: Results, a: tuple[float, ...], b: tuple[float, ...], limit: str, said: str
) -> None:
    found = gated(results, a, b, limit)
    assert f"{found.outcome.value}{f': {found.why}' if found.why else ''}" == said


MORE_IS_BETTER = (
    "client.requests.ok_per_second", "client.requests.status.200", "client.requests.status.3xx",
    "access.nginx.status.2xx", "access.haproxy.status.204", "client.admissions.total", "client.checks.it_failed.rate",
)  # fmt: skip
MORE_IS_WORSE = (
    "client.requests.failed", "client.requests.status.503", "access.nginx.status.4xx", "access.nginx.tries.retried",
    "client.dials.failed_timeout", "client.named.shop.latency_ms.p95", "client.dial_ms.failed.max",
)  # fmt: skip
NOT_KNOWN = (
    "client.requests.total", "client.requests.status.101", "client.named.failed.total", "access.nginx.requests",
    "access.nginx.connection.keep_alive", "kernel.backend.TcpExt.ListenDrops",
)  # fmt: skip


@pytest.mark.parametrize("figure", [*MORE_IS_BETTER, *MORE_IS_WORSE])
def test_a_figures_name_says_whether_more_of_it_is_better(results: Results, figure: str) -> None:
    outcome = GateOutcome.PASSED if figure in MORE_IS_BETTER else GateOutcome.WORSE
    assert gated(results, STEADY, scaled(2), figure=figure).outcome == outcome


@pytest.mark.parametrize("figure", NOT_KNOWN)
def test_where_the_name_does_not_say_so_it_must_be_given(results: Results, figure: str) -> None:
    with pytest.raises(CompareError, match=f"whether more of {figure} is better .*: give --better more or"):
        gated(results, STEADY, scaled(2), figure=figure)
    assert gated(results, STEADY, scaled(2), figure=figure, greater_is_better=True).outcome == GateOutcome.PASSED


def test_a_figure_that_no_run_of_a_side_knows_is_unknown(results: Results) -> None:
    known, lost = results.run({MEAN: 1.0}), results.run({MEAN: None})
    found = gate.judge(load_group("A", [lost]), load_group("B", [known]), MEAN, Limit.parse("5%"))
    assert (found.outcome, found.a, found.b) == (GateOutcome.UNKNOWN, None, 1.0)
    assert found.why == "no usable run of the baseline knows the figure"


def test_a_figure_that_is_none_is_refused(results: Results) -> None:
    a, b = (load_group(name, [results.run({MEAN: 1.0})]) for name in "AB")
    with pytest.raises(CompareError, match=r"no run has the figure client\.latency_ms\.meen; did you mean client\."):
        gate.judge(a, b, "client.latency_ms.meen", Limit.parse("5%"))


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
