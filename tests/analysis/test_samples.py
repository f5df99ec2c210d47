from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.evidence import samples
from analysis.evidence.samples import Samples as Read
from tests.analysis.support import MONO_US, Record, RunFolder, Samples, at_us, jsonl

names = st.sampled_from(["TcpExt.ListenDrops", "Tcp.ActiveOpens", "sockstat.TCP.tw", "IcmpMsg.InType3"])
readings = st.lists(st.dictionaries(names, st.integers(0, 5)), min_size=1, max_size=30)


def series(counters: list[dict[str, int]]) -> Samples:
    """A sampler that saw these counters, one set each tick."""
    header = {"kind": "header", "schema": "connlab.samples/1", "role": "backend-1", "rate_hz": 10, "time_us": at_us(0)}
    found = Samples("backend-1", header)
    seen: dict[str, int] = {}
    for number, changed in enumerate(counters):
        seen = {**seen, **changed}
        time = {"time_us": at_us(number / 10), "mono_us": MONO_US + number * 100_000, "late_us": 0}
        found.ticks.append({"kind": "tick", **time, "counters": dict(seen), "listen": []})
    return found


def read(lines: list[Record], *, cut: int = 0) -> Read:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "samples.jsonl"
        content = jsonl(lines).encode()
        path.write_bytes(content[: len(content) - cut])
        return samples.read(path)


@given(readings)
def test_changes_put_together_give_back_every_value(counters: list[dict[str, int]]) -> None:
    sampled = series(counters)
    found = read(sampled.lines())

    for number, tick in enumerate(sampled.ticks):
        values = {name: counter.at(number) for name, counter in found.counters.items()}
        assert {name: value for name, value in values.items() if value is not None} == tick["counters"]


@given(readings, st.integers(0, 29), st.integers(0, 29))
def test_a_maximum_is_the_greatest_value_between_two_ticks(
    counters: list[dict[str, int]], one: int, other: int
) -> None:
    sampled = series(counters)
    first, last = sorted(min(index, len(counters) - 1) for index in (one, other))
    found = read(sampled.lines())

    for name, counter in found.counters.items():
        values = [tick["counters"][name] for tick in sampled.ticks[first : last + 1] if name in tick["counters"]]
        assert counter.maximum(first, last) == max(values, default=None)


def test_the_header_gives_the_rate_and_the_last_line_the_end(run: RunFolder) -> None:
    found = samples.read(run.write() / "raw" / "backend-1" / "collector" / "samples.jsonl")

    assert found.rate_hz == 10
    assert found.end is not None
    assert found.end["reason"] == "signal"
    assert len(found.ticks) == len(run.samples["backend-1"].ticks)
    assert len(found.sockets) == len(found.processes) == len(found.selves) == 64


def test_a_corrupt_line_costs_the_ticks_until_one_gives_all_values_again(run: RunFolder) -> None:
    path = run.write() / "raw" / "backend-1" / "collector" / "samples.jsonl"
    lines = path.read_text().splitlines()
    corrupt = next(index for index, line in enumerate(lines) if f'"time_us":{at_us(15)}' in line)
    lines[corrupt] = lines[corrupt][:40]
    path.write_text("\n".join(lines) + "\n")

    found = samples.read(path)

    assert found.lines.damage.messages("f") == [f"f: 1 corrupt lines, the first is line {corrupt + 1}"]
    hole = max(pairwise(found.ticks), key=lambda pair: pair[1].mono_us - pair[0].mono_us)
    # The tick of 15.0 s is lost; that of 20.0 s is full.
    assert [tick.time_us for tick in hole] == [at_us(14.9), at_us(20)]


def test_a_cut_file_is_used_up_to_the_cut(run: RunFolder) -> None:
    found = read(run.samples["backend-1"].lines(), cut=30)

    assert found.end is None
    assert found.lines.damage.messages("f") == ["f: the last line is cut off"]
    assert len(found.ticks) == len(run.samples["backend-1"].ticks)


TICK: Record = {"kind": "tick", "time_us": 1, "mono_us": 1, "counters": {"a.b": 1}, "listen": []}
LISTENER = {"address": "172.18.0.2", "port": 8080, "depth": 0, "limit": 1, "drops": 0}


def test_records_that_lack_what_they_need_are_corrupt() -> None:
    without = [{key: value for key, value in TICK.items() if key != lacking} for lacking in TICK]
    found = read([*without, {**TICK, "counters": 5}, {**TICK, "kind": ["tick"]}])

    assert (found.ticks, found.lines.damage.bad_lines) == ([], len(without) + 2)


@pytest.mark.parametrize(
    "damage",
    [
        {"counters": {"a.b": "x"}},
        {"counters": {"a.b": None}},
        {"counters": {"a.b": 1.5}},
        {"counters": {"a.b": True}},
        {"listen": None},
        {"listen": [7]},
        {"listen": [LISTENER | {"depth": "2"}]},
        {"listen": [{"port": 8080}]},
    ],
)
def test_a_tick_with_a_bad_value_costs_the_ticks_until_one_gives_all_values_again(damage: Record) -> None:
    after = [{**TICK, "time_us": 3}, {**TICK, "time_us": 4, "full": True}]
    found = read([TICK, {**TICK, "time_us": 2, **damage}, *after])

    assert found.lines.damage.messages("f") == ["f: 1 corrupt lines, the first is line 2"]
    assert [tick.time_us for tick in found.ticks] == [1, 4]


@pytest.mark.parametrize("groups", [None, [7], [{"state": "ESTABLISHED"}], [{"state": "ESTABLISHED", "count": "3"}]])
def test_a_reading_of_the_sockets_with_a_bad_count_is_none(groups: object) -> None:
    found = read([{"kind": "sockets", "time_us": 1, "groups": groups}])

    assert (found.sockets, found.lines.damage.bad_lines) == ([], 1)


def test_a_value_may_be_below_zero() -> None:
    assert read([{**TICK, "counters": {"Tcp.MaxConn": -1}}]).counters["Tcp.MaxConn"].at(0) == -1


def test_what_a_later_version_may_add_is_passed_over() -> None:
    found = read([{**TICK, "listen": [LISTENER | {"new": None}], "new": "?"}, {"kind": "novelty", "time_us": 2}])

    assert found.lines.damage.bad_lines == 0
    assert found.counters["a.b"].at(0) == 1
    assert len(found.ticks[0].listeners) == 1
