import json
from pathlib import Path

import pytest
from rich.console import Console

from lab.gauges import Gauges
from lab.live import Display
from lab.topology import topology_of
from tests.lab.support import Make


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    for instance in ("k6-1", "k6-2", "backend-1"):
        (tmp_path / instance).mkdir()
    return tmp_path


def write(file: Path, *lines: object) -> None:
    with file.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)


def second(requests: int, failed: int) -> dict[str, object]:
    errors = {"1211": failed} if failed else {}
    return {"vus": 2, "requests": requests, "failed": failed, "dropped_iterations": 0, "errors": errors}


def tick(counters: dict[str, int], depth: int | None = None) -> dict[str, object]:
    listeners = [{"port": 8081, "depth": 0, "limit": 9}, {"port": 8080, "depth": depth, "limit": 1}]
    return {"kind": "tick", "counters": counters, "listen": listeners if depth is not None else []}


def test_the_last_second_of_each_client_is_summed(effective: Make, raw: Path) -> None:
    gauges = Gauges(topology_of(effective("load.instances=2")), raw)
    write(raw / "k6-1" / "live.jsonl", second(1, 0), second(5, 1))
    write(raw / "k6-2" / "live.jsonl", second(7, 2))
    gauges.refresh()
    assert (gauges.client.users, gauges.client.requests, gauges.client.failed) == (4, 12, 3)
    assert gauges.client.errors == {"1211": 3}


def test_a_counter_keeps_its_value_until_it_changes(effective: Make, raw: Path) -> None:
    gauges = Gauges(topology_of(effective()), raw)
    samples = raw / "backend-1" / "samples.jsonl"
    write(
        samples,
        {"kind": "header"},
        tick({"TcpExt.ListenOverflows": 3, "sockstat.TCP.tw": 7}, depth=2),
        tick({}, depth=1),
    )
    gauges.refresh()
    backend = gauges.kernels["backend-1"]
    assert (backend.overflows, backend.time_wait, backend.depth, backend.limit) == (3, 7, 1, 1)


def test_without_a_terminal_there_is_one_plain_line(
    effective: Make, raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(raw / "k6-1" / "live.jsonl", second(103, 100))
    write(raw / "backend-1" / "samples.jsonl", tick({"TcpExt.ListenOverflows": 500}, depth=2))
    with Display(Console(highlight=False), "one") as display:
        display.watch(Gauges(topology_of(effective()), raw))
        display.phase("measure", 45)
        display.refresh()
    assert capsys.readouterr().out == (
        "one: measure 0 of about 45 s · 2 users, 103 requests, 100 failed: 100 connect time-out (1211) · "
        "k6-1: 0 TIME_WAIT · backend-1: queue 2/1, 500 overflows, 0 TIME_WAIT\n"
    )


def test_in_a_terminal_the_display_is_drawn_and_goes_again(effective: Make, raw: Path) -> None:
    console = Console(force_terminal=True, width=100, record=True)
    with Display(console, "one") as display:
        display.watch(Gauges(topology_of(effective()), raw))
        display.phase("measure", 45)
    assert "0 of about 45 s" in console.export_text()
