"""What moved is told by groups with a name: only what is beyond noise, matters, and is not the lab's own."""

from __future__ import annotations

import pytest

from analysis.compare import moved
from analysis.compare.comparison_file import Counts, EffectEntry, PairEntry, SampleEntry
from analysis.compare.effects import Stage, stage_of
from analysis.figures.known_names import FIGURES


def effect(figure: str, a: float, b: float, status: str = "changed") -> EffectEntry:
    def sample(mean: float) -> SampleEntry:
        return SampleEntry(values=[mean, mean], mean=mean, low=mean, high=mean)

    content = {"figure": figure, "stage": stage_of(figure), "unit": "", "status": status, "difference": b - a}
    unknown = dict.fromkeys(("low", "high", "standardised", "noise", "repetitions_needed", "why"))
    return EffectEntry.model_validate({**unknown, **content, "a": sample(a), "b": sample(b)})


def told(*effects: EffectEntry) -> list[str]:
    counts = dict.fromkeys(Stage, Counts(changed=0, unclear=0, noise=0, equal=0, unknown=0))
    pair = PairEntry(a="a", b="b", settings=[], counts=counts, by_chance=0, references=0, effects=list(effects))
    return [each.says for each in moved.of_pair(pair)]


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
def test_a_figure_is_named_by_what_it_counts(one: EffectEntry, says: str) -> None:
    assert told(one) == [says]


def test_times_of_a_single_connection_are_no_part_of_the_story() -> None:
    few = (effect("client.dials.ok", 2000, 1), effect("client.dial_ms.min", 0.08, 0.47))
    assert told(*few) == ["fewer connections that users made: 2,000 → 1"]
    flows = (effect("flows.backend.established", 1, 2000), effect("flows.backend.handshake_ms.max", 0.04, 3))
    assert told(*flows) == ["more connections: 1 → 2,000"]
    many = (effect("client.dials.ok", 2000, 20), effect("client.dial_ms.min", 0.08, 0.47))
    assert told(*many)[0] == "longer waits to connect: 0.08 → 0.47"


def test_what_rose_and_what_fell_are_told_apart() -> None:
    both = [effect("kernel.k6.Tcp.ActiveOpens", 500, 1), effect("kernel.backend.Tcp.PassiveOpens", 1, 300)]
    assert told(*both) == ["more connections opened: 1 → 300", "fewer connections opened: 500 → 1"]


def test_the_story_goes_from_the_counters_to_the_users() -> None:
    found = told(
        effect("client.latency_ms.mean", 1.2, 0.6),
        effect("flows.backend.total", 500, 1),
        effect("sockets.k6.time_wait.max", 0, 499),
    )
    assert found == ["more sockets in TIME_WAIT: 0 → 499", "fewer connections: 500 → 1", "shorter answers: 1.2 → 0.6"]


@pytest.mark.parametrize(
    "one",
    [
        effect("client.requests.failed", 0, 3, "noise"),
        effect("client.requests.failed", 0, 3, "unclear"),
        effect("client.latency_ms.mean", 1000, 1001),
        effect("ledger.identities.holding", 30, 40),
        effect("model.users_failed", 0, 100),
    ],
)
def test_what_does_not_matter_is_left_out(one: EffectEntry) -> None:
    assert told(one) == []


def test_every_figure_of_the_way_has_a_group() -> None:
    names = [figure.pattern.replace("<", "x").replace(">", "x") for figure in FIGURES]
    assert [
        name for name in names if stage_of(name) not in (Stage.MODEL, Stage.LAB) and not told(effect(name, 1, 2))
    ] == []
