"""The figures of a run at work, and how they are shown: redrawn in a terminal, else line by line."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from analysis.evidence.rawfiles import Places
from lab.runs.gauges import Gauges, History, Tail, bars, last_tick_us
from lab.runs.live_display import Display
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of
from tests.lab.support import Make


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places(tmp_path)
    for instance in ("k6-1", "k6-2", "backend-1"):
        for folder in (found.collector(instance), found.role(instance)):
            folder.mkdir(parents=True)
    return found


def gauges_of(effective: ResolvedScenario, places: Places) -> Gauges:
    topology = topology_of(effective)
    return Gauges(topology.clients, {one: topology.port_of(one) for one in topology.all}, places)


def write(file: Path, *lines: object) -> None:
    with file.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)


def drawn(effective: Make, places: Places, *, width: int = 110) -> str:
    """Return what a terminal shows of the measurement."""
    console = Console(force_terminal=True, width=width, record=True, file=io.StringIO())
    with Display(console, "one") as display:
        display.watch(gauges_of(effective(), places))
        display.phase("measure", 45)
    return console.export_text()


def second(requests: int, failed: int) -> dict[str, object]:
    errors = {"1211": failed} if failed else {}
    return {"vus": 2, "requests": requests, "failed": failed, "dropped_iterations": 0, "errors": errors}


def at(moment_s: int, line: dict[str, object]) -> dict[str, object]:
    return {"time_us": 1_700_000_000_000_000 + moment_s * 1_000_000, **line}


def tick(counters: dict[str, int], depth: int | None = None) -> dict[str, object]:
    listeners = [{"port": 8081, "depth": 0, "limit": 9}, {"port": 8080, "depth": depth, "limit": 1}]
    return {"kind": "tick", "counters": counters, "listen": listeners if depth is not None else []}


def test_the_last_second_of_each_client_is_summed(effective: Make, places: Places) -> None:
    gauges = gauges_of(effective("load.instances=2"), places)
    write(places.role("k6-1", "live.jsonl"), second(1, 0), second(5, 1))
    write(places.role("k6-2", "live.jsonl"), second(7, 2))
    gauges.refresh()
    assert (gauges.client.users, gauges.client.requests, gauges.client.failed) == (4, 12, 3)
    assert gauges.client.errors == {"1211": 3}


def test_a_counter_keeps_its_value_until_it_changes(effective: Make, places: Places) -> None:
    gauges = gauges_of(effective(), places)
    samples = places.collector("backend-1", "samples.jsonl")
    write(
        samples,
        {"kind": "header"},
        tick({"TcpExt.ListenOverflows": 3, "sockstat.TCP.tw": 7}, depth=2),
        tick({}, depth=1),
    )
    gauges.refresh()
    backend = gauges.kernels["backend-1"]
    assert (backend.overflows, backend.time_wait, backend.depth, backend.limit) == (3, 7, 1, 1)


def test_of_several_queues_one_may_be_full(effective: Make, places: Places) -> None:
    gauges = gauges_of(effective(), places)
    listeners = [{"port": 8080, "depth": depth, "limit": 1} for depth in (0, 2)]
    write(places.collector("backend-1", "samples.jsonl"), {"kind": "tick", "counters": {}, "listen": listeners})
    gauges.refresh()
    backend = gauges.kernels["backend-1"]
    assert (backend.depth, backend.limit, backend.queues, backend.is_full) == (2, 2, 2, True)


def test_without_a_terminal_there_is_one_plain_line(
    effective: Make, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    write(places.role("k6-1", "live.jsonl"), second(103, 100))
    write(places.collector("backend-1", "samples.jsonl"), tick({"TcpExt.ListenOverflows": 500}, depth=2))
    with Display(Console(highlight=False), "one") as display:
        display.watch(gauges_of(effective(), places))
        display.phase("measure", 45)
        display.refresh()
    assert capsys.readouterr().out == (
        "one: measure 0 of about 45 s · 2 users active, 103 requests (0/s), 100 failed: 100 connect timeout (1211) · "
        "k6-1: 0 TIME_WAIT · backend-1: queue 2 of 2 places, full, 500 overflows, 0 TIME_WAIT\n"
    )


def test_what_k6_has_not_said_yet_is_a_dash_and_no_zero(
    effective: Make, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    # k6 writes its first lines before its own figures come.
    write(places.role("k6-1", "live.jsonl"), {"time_us": 1, "vus": 0, "requests": 0, "failed": 0})
    write(places.collector("backend-1", "samples.jsonl"), tick({"TcpExt.ListenOverflows": 91}, depth=1))
    with Display(Console(highlight=False), "one") as display:
        display.watch(gauges_of(effective(), places))
        display.phase("measure")
    told = capsys.readouterr().out
    assert " · - users active, - requests · " in told
    assert "backend-1: queue 1 of 2 places, 91 overflows" in told
    text = drawn(effective, places)
    rows = [line.split() for line in text.splitlines()]
    assert ["users", "-"] in rows
    assert ["requests", "-"] in [row[:2] for row in rows]


def test_a_plain_line_is_printed_on_a_change_and_after_ten_seconds(
    effective: Make, places: Places, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("lab.runs.live_display.time.monotonic", lambda: now)
    with Display(Console(highlight=False), "one") as display:
        display.watch(gauges_of(effective(), places))
        display.phase("measure")
        for second in range(1, 26):
            now = 100.0 + second
            if second == 5:
                write(places.role("k6-1", "live.jsonl"), {"vus": 1, "requests": 0, "failed": 0})
            display.refresh()
    said = [line.split(" · ")[0] for line in capsys.readouterr().out.splitlines()]
    assert said == [f"one: measure {second} s" for second in (0, 5, 15, 25)]


def test_one_user_with_one_request_is_shown_as_one(
    effective: Make, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    write(places.role("k6-1", "live.jsonl"), second(1, 1) | {"vus": 1, "dropped_iterations": 1})
    with Display(Console(highlight=False), "one") as display:
        display.watch(gauges_of(effective(), places))
        display.phase("measure")
        display.refresh()
    told = capsys.readouterr().out
    assert "1 user active, 1 request (0/s), 1 failed: 1 connect timeout (1211), 1 iteration dropped ·" in told


def test_in_a_terminal_the_queue_is_seen_to_fill_and_to_overflow(effective: Make, places: Places) -> None:
    write(places.role("k6-1", "live.jsonl"), at(0, second(0, 0)), at(1, second(2, 0)), at(2, second(103, 100)))
    ticks = [(0, 0, 0), (1, 1, 0), (2, 2, 0), (2, 2, 60), (3, 2, 100), (5, 1, 100)]
    write(
        places.collector("backend-1", "samples.jsonl"),
        *(at(when, tick({"TcpExt.ListenOverflows": overflows}, depth)) for when, depth, overflows in ticks),
    )
    text = drawn(effective, places)
    rows = [line.rstrip() for line in text.splitlines()]
    assert any("one  measure" in row and "about 45 s left" in row for row in rows)
    assert any(re.search(r"queue +1 +of 2 \(limit 1 \+ 1\) +▁▅██ ▅$", row) for row in rows), rows
    assert any(re.search(r"overflows +100 +▁▁█▆ ▁$", row) for row in rows), rows
    assert any(re.search(r"failed +100 +100 connect timeout \(1211\) +▁▁█$", row) for row in rows), rows


def test_a_full_queue_says_so(effective: Make, places: Places) -> None:
    write(places.collector("backend-1", "samples.jsonl"), at(0, tick({}, depth=2)))
    text = drawn(effective, places)
    assert "full: drops new SYNs" in text


def test_a_narrow_terminal_keeps_the_figures_and_shortens_the_history(effective: Make, places: Places) -> None:
    write(places.collector("backend-1", "samples.jsonl"), *(at(when, tick({}, depth=1)) for when in range(100)))
    text = drawn(effective, places, width=60)
    assert re.search(r"queue +1 +of 2 \(limit 1 \+ 1\) +▅{6}(?!▅)", text), text


def test_a_history_keeps_levels_sums_and_gaps() -> None:
    levels, sums = History(), History(grows=True)
    for moment_us, value in ((0, 3), (900_000, 5), (3_000_000, 1)):
        levels.add(moment_us, value)
        sums.add(moment_us, value)
    assert (levels.last(5, until=3), sums.last(4, until=3)) == ([None, 5, None, None, 1], [8, None, None, 1])
    assert (levels.newest, sums.per_second, History().newest, History().per_second) == (3, 0, 0, 0)
    levels.add(100_000_000, 2)
    assert [value for value in levels.last(200, until=100) if value is not None] == [2]
    assert bars([0, None, 0.001, 4, 8, 99], 8) == "▁ ▂▅██"


def test_failures_are_shown_by_kind_a_row_for_each(effective: Make, places: Places) -> None:
    line = second(200, 141) | {"errors": {"1502": 138, "1211": 2, "1220": 1, "1999": 1}, "dropped_iterations": 7}
    write(places.role("k6-1", "live.jsonl"), at(0, line))
    text = drawn(effective, places, width=100)
    rows = [line.rstrip() for line in text.splitlines()]
    kinds = [re.sub(r"[ █]+", " ", row).strip() for row in rows if re.search(r"answered|\((1211|1220)\)|never", row)]
    assert list(dict.fromkeys(kinds)) == [
        "failed 141 138 answered 502",
        "2 connect timeout (1211)",
        "1 connection reset (1220)",
        "dropped 7 iterations never started",
    ]


def test_only_what_is_new_and_whole_is_given(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    tail = Tail(file)
    assert tail.objects() == []
    file.write_text('{"a": 1}\n{"a": 2}\n{"a"')
    assert tail.objects() == [{"a": 1}, {"a": 2}]
    with file.open("a") as stream:
        stream.write(": 3}\n")
    assert tail.objects() == [{"a": 3}]
    assert tail.objects() == []


def test_what_is_no_object_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('[1]\nno json\n\n{"a": 1}\n')
    assert Tail(tmp_path / "x").objects() == [{"a": 1}]


def test_the_last_whole_tick_is_found_behind_other_lines(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    assert last_tick_us(file) == 0
    file.write_text('{"kind":"header","time_us":1}\n')
    assert last_tick_us(file) == 0
    with file.open("a") as stream:
        stream.write('{"kind":"tick","time_us":2}\n' * 50_000)
        stream.write('{"kind":"tick","time_us":3}\n{"kind":"self","time_us":4}\n{"kind":"tick","time_us":5}')
    assert last_tick_us(file) == 3
