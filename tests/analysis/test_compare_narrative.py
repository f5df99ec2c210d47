"""The answer of a comparison, and what moved: sentences, with names, intervals and what they are worth."""

import re

import pytest

from analysis.compare import compare_runs, compare_series, narrative
from analysis.compare.comparison import stage_of
from analysis.compare.comparison_file import Counts, Effect, PairEntry, Sample, Stage
from analysis.compare.narrative import label_for
from analysis.figures.catalogue import find
from tests.analysis.results import Results, latencies
from tests.analysis.support import Record

LESS = "arms.on.client.latency_ms.mean < arms.off.client.latency_ms.mean"


@pytest.mark.parametrize(
    ("off", "on", "told", "claim"),
    [
        (
            (1.20, 1.22, 1.18, 1.21),
            (0.60, 0.58, 0.62, 0.61),
            r"The mean answer time is 0\.6 ms lower with on than with off: 0\.6\d* instead of 1\.2 ms \(95 %: .*",
            "The claim holds.",
        ),
        (
            (1.2, 1.5, 0.9, 1.3),
            (1.0, 1.3, 0.9, 0.8),
            "The mean answer time differs between off and on by no more than repetitions of one of them do.",
            "1 of 1 claim cannot be decided: faster.",
        ),
        (
            (1.0,),
            (2.0,),
            "One repetition cannot tell whether the mean answer time differs between off and on; about 4 would.",
            "1 of 1 claim cannot be decided: faster.",
        ),
        (
            (1.0,) * 4,
            (1.0,) * 4,
            "The mean answer time is the same with off and with on.",
            "1 of 1 claim does not hold: faster.",
        ),
        ((1.0,), (None,), "The mean answer time is unknown for off or on: lost.", "1 of 1 claim cannot .*"),
    ],
)
def test_the_answer_tells_the_difference_and_the_claim(
    results: Results, off: tuple[float, ...], on: tuple[float | None, ...], told: str, claim: str
) -> None:
    folder = results.series({"off": latencies(*off), "on": latencies(*on)}, {"faster": LESS})
    for found, pattern in zip(compare_series(folder)[0].answer, (told, claim), strict=True):
        assert re.fullmatch(pattern, found), found


def test_one_run_of_each_tells_no_difference_from_chance(results: Results) -> None:
    a, b = results.run(), results.run({"client.latency_ms.mean": 9.0})
    assert compare_runs([a], [b]).answer == [
        "One run of A or B cannot tell a difference from chance: repeat both, and compare groups of runs."
    ]


@pytest.mark.parametrize(
    ("search", "told"),
    [
        (
            {"found": 101, "predicted": 101, "goal": "smallest"},
            "smallest {knob} with which {until} holds is 101. The model predicts the same.",
        ),
        (
            {"found": 2_101, "predicted": 103, "goal": "largest"},
            "largest {knob} with which {until} holds is 2,101. The model predicts 103.",
        ),
        (
            {"found": None, "why": "always"},
            "search found no value of {knob} from which on {until} holds: always.",
        ),
    ],
)
def test_a_search_says_what_it_found(results: Results, search: Record, told: str) -> None:
    asked = {"knob": "backend.max_connections", "until": "client.requests.failed == 0", "low": 1, "high": 200}
    folder = results.series({"off": latencies(1.0)}, kind="search", search=asked | search)
    assert compare_series(folder)[0].answer[0].removeprefix("The ") == told.format(**asked)


def test_a_search_is_its_tries_in_their_order(results: Results) -> None:
    knob = "backend.max_connections"
    folder = results.series(
        {"low": latencies(1.0), "high": latencies(1.0, 1.0)},
        kind="search",
        search={
            "knob": knob,
            "until": "client.requests.failed == 0",
            "found": 9,
            "predicted": 8,
            "goal": "smallest",
            "low": 1,
            "high": 9,
        },
        knobs={"low": {knob: 7}, "high": {knob: 9}},
        holds={"low": "false", "high": "true"},
    )
    found = compare_series(folder)[0].search
    assert found is not None
    assert [(each.value, each.holds) for each in found.tries] == [(7, "false"), (9, "true"), (9, "true")]
    assert (found.predicted, found.found, found.goal) == (8, 9, "smallest")


def test_a_series_that_says_nothing_of_what_it_is_about_says_what_to_do(results: Results) -> None:
    (told,) = compare_series(results.series({"off": latencies(1.0), "on": latencies(2.0)}))[0].answer
    assert told.startswith("The scenario names no figure that this series is about")
    (told,) = compare_series(results.series({"off": latencies(1.0)}))[0].answer
    assert told.startswith("Nothing can be compared yet")


def test_a_matrix_says_where_users_failed_and_where_the_border_lies(results: Results) -> None:
    failed = {"few-3": 0, "few-9": 4, "many-3": 0, "many-9": 0}
    cells: dict[str, list[Record]] = {cell: [{"figures": {"client.requests.failed": n}}] for cell, n in failed.items()}
    assert compare_series(results.series(cells, kind="matrix"))[0].answer[0] == "Users failed in 1 of 4 cells: few-9."
    levels = {name: {"places": name.split("-")[0], "users": name.split("-")[1]} for name in cells}
    found = compare_series(results.series(cells, kind="matrix", levels=levels))[0].answer
    assert [*found[:2], found[-1]] == [
        "Users failed in 1 of 4 cells.",
        "users by places: 3 is clean with few, many; 9 fails with few and is clean with many.",
        "Each cell ran once, so the noise is unknown.",
    ]


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("client.latency_ms.p50", "median answer time"),
        ("client.latency_ms.p99", "99th percentile of the answer time"),
        ("client.dial_ms.max", "longest time to connect"),
        ("client.requests.ok_per_second", "throughput"),
        ("kernel.backend.TcpExt.ListenOverflows", None),
        ("client.latency_ms.list", None),
    ],
)
def test_a_figure_has_the_name_that_people_use(figure: str, name: str | None) -> None:
    assert label_for(figure) == name
    assert find(figure) is not None


def effect(figure: str, a: float, b: float) -> Effect:
    def sample(mean: float) -> Sample:
        return Sample(values=[mean, mean], mean=mean, low=mean, high=mean)

    content = {"figure": figure, "stage": stage_of(figure), "unit": "", "status": "changed", "difference": b - a}
    unknown = dict.fromkeys(("low", "high", "standardised", "noise", "repetitions_needed", "why"))
    return Effect.model_validate({**unknown, **content, "a": sample(a), "b": sample(b)})


def pair_of(*effects: Effect) -> PairEntry:
    counts = dict.fromkeys(Stage, Counts(changed=0, unclear=0, noise=0, equal=0, unknown=0))
    return PairEntry(a="a", b="b", settings=[], counts=counts, by_chance=0, references=0, effects=list(effects))


def told(*effects: Effect) -> list[str]:
    return [each.says for each in narrative.find_moved(pair_of(*effects))]


@pytest.mark.parametrize(
    ("effects", "says", "others"),
    [
        # Of one kind by the one that moved most.
        (
            (effect("kernel.k6.Tcp.ActiveOpens", 500, 1), effect("kernel.backend.Tcp.PassiveOpens", 500, 2)),
            "fewer connections opened: 500 → 1",
            1,
        ),
        # Times of a single connection say nothing of the others.
        (
            (effect("client.dials.ok", 2000, 1), effect("client.dial_ms.min", 0.08, 0.47)),
            "fewer connections that users made: 2,000 → 1",
            0,
        ),
        # A median stands for times, though an extreme moved more.
        (
            (effect("client.latency_ms.min", 1.0, 0.1), effect("client.latency_ms.p50", 1.0, 0.5)),
            "faster answers: 1 → 0.5",
            1,
        ),
        # Of two high percentiles, neither stands for the other.
        (
            (effect("client.latency_ms.p95", 1.0, 0.1), effect("client.latency_ms.p99", 1.0, 0.5)),
            "faster answers: 1 → 0.1",
            1,
        ),
    ],
)
def test_figures_that_say_one_thing_are_told_once(effects: tuple[Effect, ...], says: str, others: int) -> None:
    (moved,) = narrative.find_moved(pair_of(*effects))
    assert (moved.says, moved.others) == (says, others)


def test_what_moved_too_little_to_matter_is_counted() -> None:
    fewer = effect("client.dials.ok", 1000, 1)
    assert narrative.count_small_moves(pair_of(fewer)) == ""
    little = effect("client.latency_ms.p50", 1000, 1001)
    assert narrative.count_small_moves(pair_of(fewer, little)) == "1 figure more moved by less than 5%."


def test_what_moved_before_the_users_is_no_difference_of_theirs() -> None:
    (said,) = narrative.answer_runs(pair_of(effect("kernel.k6.Tcp.ActiveOpens", 500, 1)), (2, 2))
    assert said == "No figure of the users differs between a and b by more than repetitions do."


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (effect("flows.backend.syns", 2000, 1), "fewer SYNs: 2,000 → 1"),
        (effect("flows.backend.syn_unanswered", 20, 1), "fewer handshakes without an answer: 20 → 1"),
        (effect("flows.backend.syn_retransmissions", 20, 1), "fewer resets and retransmissions: 20 → 1"),
        (
            effect("access.nginx.connection.keep_alive", 0, 2000),
            "more lines in a proxy's logs: 0 → 2,000",
        ),
        (effect("flows.backend.closed_by_server", 9, 0), "fewer connections that one side closed first: 9 → 0"),
        (effect("access.nginx.tries.total", 1, 9), "more servers that a proxy tried: 1 → 9"),
        (
            effect("tomcat.backend.requests", 1430, 1977),
            "more counted on the programs' status pages: 1,430 → 1,977",
        ),
    ],
)
def test_a_figure_is_named_by_what_it_counts(one: Effect, says: str) -> None:
    assert told(one) == [says]


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
    assert narrative.summarize_moved(story, "client.latency_ms.p50") == (
        "In short: fewer connections opened: 500 → 1; and users got faster answers: 1 → 0.5."
    )
    assert narrative.summarize_moved(story, None).endswith("users got fewer connections that users made: 500 → 1.")
    # Where users felt nothing, or nothing moved before them, there is no way to tell of.
    assert (
        narrative.summarize_moved(story[:2], None)
        == narrative.summarize_moved(narrative.find_moved(pair_of(dialled)), None)
        == ""
    )
