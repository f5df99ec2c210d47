"""What moved is told by groups with a name: only what is beyond noise, matters, and is not the lab's own."""

from __future__ import annotations

import pytest

from analysis.compare import narrative
from analysis.compare.comparison import stage_of
from analysis.compare.comparison_file import Counts, Effect, PairEntry, Sample, Stage


def effect(figure: str, a: float, b: float, status: str = "changed") -> Effect:
    def sample(mean: float) -> Sample:
        return Sample(values=[mean, mean], mean=mean, low=mean, high=mean)

    content = {"figure": figure, "stage": stage_of(figure), "unit": "", "status": status, "difference": b - a}
    unknown = dict.fromkeys(("low", "high", "standardised", "noise", "repetitions_needed", "why"))
    return Effect.model_validate({**unknown, **content, "a": sample(a), "b": sample(b)})


def pair_of(*effects: Effect) -> PairEntry:
    counts = dict.fromkeys(Stage, Counts(changed=0, unclear=0, noise=0, equal=0, unknown=0))
    return PairEntry(a="a", b="b", settings=[], counts=counts, by_chance=0, references=0, effects=list(effects))


def told(*effects: Effect) -> list[str]:
    return [each.says for each in narrative.find_moved(pair_of(*effects))]


def test_figures_of_one_kind_are_told_by_the_one_that_moved_most() -> None:
    opened = [
        effect(f"kernel.{role}.Tcp.{name}", 500, b)
        for role, name, b in (("k6", "ActiveOpens", 1), ("backend", "PassiveOpens", 2))
    ]
    assert told(*opened) == ["fewer connections opened: 500 → 1"]


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (effect("flows.backend.syns", 2000, 1), "fewer SYNs: 2,000 → 1"),
        (effect("flows.backend.syn_unanswered", 20, 1), "fewer handshakes without an answer: 20 → 1"),
        (effect("flows.backend.syn_retransmissions", 20, 1), "fewer resets and packets sent again: 20 → 1"),
        (
            effect("access.nginx.connection.keep_alive", 0, 2000),
            "more lines of some kind in a proxy's logs: 0 → 2,000",
        ),
        (effect("flows.backend.closed_by_server", 9, 0), "fewer connections that one side closed first: 9 → 0"),
        (effect("access.nginx.tries.total", 1, 9), "more servers that a proxy tried: 1 → 9"),
        (
            effect("tomcat.backend.requests", 1430, 1977),
            "more counted on the programs' own pages, read once a second: 1,430 → 1,977",
        ),
    ],
)
def test_a_figure_is_named_by_what_it_counts(one: Effect, says: str) -> None:
    assert told(one) == [says]


def test_times_of_a_single_connection_are_no_part_of_the_story() -> None:
    few = (effect("client.dials.ok", 2000, 1), effect("client.dial_ms.min", 0.08, 0.47))
    assert told(*few) == ["fewer connections that users made: 2,000 → 1"]


def test_a_median_stands_for_times_though_an_extreme_moved_more() -> None:
    times = (effect("client.latency_ms.min", 1.0, 0.1), effect("client.latency_ms.p50", 1.0, 0.5))
    assert told(*times) == ["faster answers: 1 → 0.5"]


def test_the_story_in_short_leads_from_the_counters_to_the_users() -> None:
    dialled = effect("client.dials.ok", 500, 1)
    story = narrative.find_moved(
        pair_of(
            effect("listen.backend.depth.max", 1, 0),
            effect("kernel.k6.Tcp.ActiveOpens", 500, 1),
            effect("kernel.k6.TcpExt.TCPHPHits", 9_000, 1),
            dialled,
            effect("client.latency_ms.p50", 1.0, 0.5),
        )
    )
    assert narrative.in_short(story, "client.latency_ms.p50") == (
        "In short: fewer connections opened: 500 → 1; and users got faster answers: 1 → 0.5."
    )
    assert narrative.in_short(story, None).endswith("users got fewer connections that users made: 500 → 1.")
    # Where users felt nothing, or nothing moved before them, there is no way to tell of.
    assert narrative.in_short(story[:2], None) == narrative.in_short(narrative.find_moved(pair_of(dialled)), None) == ""
