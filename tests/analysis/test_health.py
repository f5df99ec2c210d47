import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from analysis.derivation import JudgedRun, judge
from tests.analysis.clocks import Clock, set_clock
from tests.analysis.support import EPOCH_US, Record, RunFolder, make_access, make_capture, make_request, raw_file

# One prediction for each kind of evidence; all hold in the healthy run.
WATCHED = {
    "requests": "client.requests.ok == 3",
    "dials": "client.dials.failed == 100",
    "events": "client.admissions.total == 0",
    "order": "client.admissions.out_of_order == 0",
    "counters": "kernel.backend.TcpExt.ListenDrops == 500",
    "k6-counters": "kernel.k6.TcpExt.TCPSynRetrans == 400",
    "queue": "listen.backend.depth.max == 2",
    "sockets": "sockets.backend.established.max == 3",
    "processes": "process.backend.cpu_percent.mean == 5",
    "scrapes": "tomcat.backend.requests == 3",
    "model": "model.users_served == 3",
    "capacity": "model.accept_capacity == 3",
    "dropped": "client.iterations.dropped >= 0",
}
# In doubt it leaves nothing decided that any observer counted.
LOAD = set(WATCHED)
TIMES = {"order", "scrapes"}


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong in a run.

    Attributes:
        before: changes the run before it is written.
        after: changes the folder.
        unknown: the predictions that it makes unknown; all others must still hold.
        why: what they must say.
    """

    unknown: set[str]
    why: str
    before: Callable[[RunFolder], object] = lambda _run: None
    after: Callable[[Path], object] = lambda _folder: None


def harmless(
    before: Callable[[RunFolder], object] = lambda _run: None, after: Callable[[Path], object] = lambda _folder: None
) -> Fault:
    return Fault(set(), "", before, after)


def remove(folder: Path, *names: str) -> None:
    for name in names:
        raw_file(folder, name).unlink()


def lose_line(file: Path, number: int) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: number - 1] + lines[number:]))


def take(run: RunFolder, instance: str, cpu_percent: float) -> None:
    for reading in run.samples[instance].slow:
        for process in reading.get("processes", [])[:1]:
            process["cpu_ms"] = round((reading["time_us"] - EPOCH_US) / 1000 * cpu_percent / 100)


def keep_busy(run: RunFolder, k6_cpu_percent: float) -> None:
    take(run, "k6-1", k6_cpu_percent)
    for samples in run.samples.values():
        for reading in samples.slow:
            if "host" in reading:
                reading["host"]["cpu_idle_ms"] = reading["host"]["cpu_total_ms"] // 100


def spike(run: RunFolder, rate_per_second: int) -> None:
    """Have a spike of two seconds ask for what the run's users did."""
    run.set_knobs(load__workload="spike", load__rate_per_second=rate_per_second, load__duration=2000)


def cut(path: Path, lost_bytes: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - lost_bytes])


def corrupt_line(path: Path, number: int) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = b'{"kind":"dial"' + lines[number - 1][5:20]
    path.write_bytes(b"\n".join(lines))


def backend(run: RunFolder) -> Record:
    report: Record = run.lines["backend-1/capture.json"][0]
    return report


FAULTS = {
    "a gap in the middle spoils maxima and no difference": Fault(
        {"queue"}, "sampler/backend-1: no samples for 1100 ms (limit 1000 ms)",
        lambda run: run.samples["backend-1"].lose_ticks(30, 31)),
    "a short gap spoils nothing": harmless(lambda run: run.samples["backend-1"].lose_ticks(30, 30.9)),
    "a gap over the window's start spoils its counters": Fault(
        {"counters", "queue"},
        "the samples do not cover the window: a gap of 700 ms spans the start of the window (limit 500 ms)",
        lambda run: run.samples["backend-1"].lose_ticks(9.8, 10.4)),
    "a gap over the window's end spoils its counters": Fault(
        {"counters", "queue"}, "a gap of 700 ms spans the end of the window (limit 500 ms)",
        lambda run: run.samples["backend-1"].lose_ticks(61.8, 62.4)),
    "samples that end early spoil what they do not cover": Fault(
        {"counters", "queue"}, "the samples do not cover the window: they end before the window does",
        lambda run: run.samples["backend-1"].lose_ticks(61, 99)),
    "late ticks spoil nothing": harmless(
        lambda run: [tick.update(late_us=90_000) for tick in run.samples["backend-1"].ticks]),
    "a sampler that did not end cleanly is reported": harmless(
        lambda run: setattr(run.samples["backend-1"], "ended", False)),
    "a missing namespace spoils its own figures": Fault(
        {"counters", "queue", "sockets", "processes", "scrapes"},
        "sampler/backend-1: the samples do not cover the window: there are none",
        after=lambda folder: shutil.rmtree(folder / "raw" / "backend-1")),
    "no samples at all leave the clock and the processors unwatched": Fault(
        LOAD, "clock: no sampler compared the clocks over the whole window",
        after=lambda folder: remove(folder, "k6-1/samples.jsonl", "backend-1/samples.jsonl")),
    "samples of another version spoil their figures": Fault(
        {"k6-counters"},
        "sampler/k6-1: samples.jsonl has no header of this instance and of a version that this program reads",
        lambda run: (run.samples["k6-1"].header or {}).update(schema="connlab.samples/2")),
    "samples of another instance spoil their figures": Fault(
        {"k6-counters"}, "sampler/k6-1: samples.jsonl has no header of this instance",
        lambda run: run.samples["k6-1"].name("backend-1")),
    "a tick that the file lost spoils what came after it": Fault(
        {"counters", "queue"}, "sampler/backend-1: samples.jsonl lacks 1 tick of those that its last line counts",
        after=lambda folder: lose_line(folder / "raw/backend-1/collector/samples.jsonl", 278)),
    "missing readings of the sockets spoil these": Fault(
        {"sockets"}, "sampler/backend-1: no reading of the sockets for 4000 ms (limit 3000 ms)",
        lambda run: run.samples["backend-1"].lose_readings("sockets", 30, 33)),
    "missing readings of the processes spoil these": Fault(
        {"processes"}, "sampler/backend-1: no reading of the processes for 4000 ms (limit 3000 ms)",
        lambda run: run.samples["backend-1"].lose_readings("processes", 30, 33)),
    "a cut file of samples spoils nothing if the cut is after the window": harmless(
        after=lambda folder: cut(folder / "raw" / "backend-1" / "collector" / "samples.jsonl", 200)),
    "a clock that was set forward spoils nothing": harmless(lambda run: set_clock(run, Clock(((40, 2),)))),
    "a clock that was set back by an hour spoils nothing": harmless(lambda run: set_clock(run, Clock(((40, -3600),)))),
    "a clock that was set back a little spoils what only its times order": Fault(
        TIMES, "clock: was set back, and showed 2100 ms of the window twice",
        lambda run: set_clock(run, Clock(((40, -2),)))),
    "a k6 that takes much of processors that are never idle starves": Fault(
        LOAD,
        "host: the processors were idle for 1.0 % of the load (limit 2 %), and k6 used 75.0 % of them (limit 25 %)",
        lambda run: keep_busy(run, k6_cpu_percent=150)),
    "a k6 that takes little gets it however busy the processors are": harmless(
        lambda run: keep_busy(run, k6_cpu_percent=20)),
    "a k6 that takes much of processors with time to spare does not starve": harmless(
        lambda run: take(run, "k6-1", 150)),
    "a sampler that often wakes late beside k6 means late users": Fault(
        LOAD, "host: 10.0 % of the samples beside k6 were late under load (limit 5 %)",
        lambda run: [tick.update(late_us=60_000) for tick in run.samples["k6-1"].ticks[::10]]),
    "a machine that stands still beside k6 keeps its users from coming": Fault(
        LOAD, "host: for 1500 ms of the load nothing ran beside k6 (limit 1000 ms), so its users may not have run",
        lambda run: run.samples["k6-1"].lose_ticks(11.0, 12.4)),
    "a sampler beside k6 that died under the load leaves that in doubt": Fault(
        LOAD, "host: the samples beside k6-1 do not cover the load, so it may have been kept waiting",
        lambda run: run.samples["k6-1"].lose_ticks(30, 99)),
    "no account of the processors leaves the load in doubt": Fault(
        LOAD, "host: the processor usage under load was not recorded",
        lambda run: [reading.pop("host", None) for each in run.samples.values() for reading in each.slow]),
    "dropped iterations spoil what the load must lead to": Fault(
        LOAD, "k6/k6-1: k6 dropped 4 iterations: the load was smaller than requested",
        lambda run: setattr(run.clients["k6-1"], "dropped", 4)),
    "interrupted iterations spoil what the load must lead to": Fault(
        LOAD, "k6/k6-1: k6 interrupted 4 iterations before the end, as it does at load.max_duration: requests in",
        lambda run: setattr(run.clients["k6-1"], "interrupted", 4)),
    "a spike that k6 was too slow for spoils what the load must lead to": Fault(
        LOAD, "k6/k6-1: k6 began 103 of the 116 requests that were due, 88.8 % of them (limit 90 %)",
        lambda run: spike(run, rate_per_second=58)),
    "a spike of which a few requests came after its end does not": Fault(
        {"model"}, "", lambda run: spike(run, rate_per_second=57)),
    "users who never came spoil what the load must lead to": Fault(
        LOAD, "users: 103 of 104 users sent a request: the load was smaller than requested",
        lambda run: run.set_knobs(load__users=104)),
    "a k6 that did not end cleanly spoils what it recorded": Fault(
        LOAD, "k6/k6-1: k6 did not end cleanly, so the load may have ended early",
        lambda run: setattr(run.clients["k6-1"], "ended", False)),
    "a k6 that failed spoils what the load must lead to": Fault(
        LOAD, "k6/k6-1: k6 ended with exit code 107", lambda run: run.manifest["exits"].update({"k6-1": 107})),
    "a threshold that was crossed is no failure": harmless(lambda run: run.manifest["exits"].update({"k6-1": 99})),
    "an exit code that was not recorded is reported": harmless(lambda run: run.manifest.update(exits={})),
    "a missing file of requests spoils what rests on it": Fault(
        {"requests"}, "k6/k6-1: requests.jsonl: missing", after=lambda folder: remove(folder, "k6-1/requests.jsonl")),
    "a cut file of requests does as well": Fault(
        {"requests"}, "k6/k6-1: requests.jsonl: the last line is cut off",
        after=lambda folder: cut(folder / "raw" / "k6-1" / "role" / "requests.jsonl", 9)),
    "a corrupt line spoils what rests on every line": Fault(
        {"dials"},
        "k6/k6-1: dials.jsonl: 1 corrupt lines; k6/k6-1: dials.jsonl holds 102 dials, its last line says 103",
        after=lambda folder: corrupt_line(folder / "raw" / "k6-1" / "role" / "dials.jsonl", 7)),
    "requests fewer than their last line says spoil these": Fault(
        {"requests"}, "k6/k6-1: requests.jsonl holds 102 requests, its last line says 103",
        after=lambda folder: lose_line(folder / "raw" / "k6-1" / "role" / "requests.jsonl", 50)),
    "missing events spoil these": Fault(
        {"events", "order"}, "k6/k6-1: events.jsonl: missing",
        after=lambda folder: remove(folder, "k6-1/events.jsonl")),
    "events cut short spoil these": Fault(
        {"events", "order"},
        "k6/k6-1: events.jsonl has no last line: k6 did not end cleanly, so events may be missing",
        after=lambda folder: cut(folder / "raw" / "k6-1" / "role" / "events.jsonl", 9)),
    "missing accounts of k6 leave its dropped iterations unknown": Fault(
        LOAD, "k6/k6-1: k6 did not report its dropped iterations",
        after=lambda folder: remove(folder, "k6-1/summary.json", "k6-1/live.jsonl")),
    "without its summary k6's last word counts": harmless(after=lambda folder: remove(folder, "k6-1/summary.json")),
    "errors in k6's log are reported": harmless(
        lambda run: run.texts.update({"k6-1/k6.log": 'time="x" level=error msg="boom"\n'})),
    "missing scrapes spoil what was scraped": Fault(
        {"scrapes"}, "tomcat/backend-1: no scrape for 5000 ms (limit 3000 ms)",
        lambda run: run.lines.update({"backend-1/tomcat.jsonl": without(run.lines["backend-1/tomcat.jsonl"], 30, 34)})),
    "a scrape that failed spoils nothing by itself": harmless(
        lambda run: run.lines["backend-1/tomcat.jsonl"].__setitem__(
            30, {"time_us": EPOCH_US + 31_000_000, "error": "connection refused"})),
    "scrapes that begin late have no growth": Fault(
        {"scrapes"}, "there is no scrape before the measurement",
        lambda run: run.lines.update({"backend-1/tomcat.jsonl": without(run.lines["backend-1/tomcat.jsonl"], 0, 11)})),
    "dropped packets spoil the capture alone": harmless(lambda run: backend(run).update(packets_dropped_by_kernel=3)),
    "a missing capture spoils itself alone": harmless(after=lambda folder: remove(folder, "backend-1/capture.json")),
}  # fmt: skip


def without(lines: list[Record], first_s: float, last_s: float) -> list[Record]:
    return [line for line in lines if not first_s <= (line["time_us"] - EPOCH_US) / 1_000_000 < last_s]


def judged(run: RunFolder, fault: Fault) -> JudgedRun:
    run.manifest["predictions"] = [
        {"id": id_, "description": "It is as it was.", "expression": expression} for id_, expression in WATCHED.items()
    ]
    fault.before(run)
    folder = run.write()
    fault.after(folder)
    return judge(folder)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_makes_unknown_what_rests_on_it_and_nothing_else(run: RunFolder, name: str) -> None:
    fault = FAULTS[name]
    verdict = judged(run, fault)
    by_status = {
        status: {each.id for each in verdict.predictions if each.status == status}
        for status in ("true", "false", "unknown")
    }

    assert by_status == {"true": WATCHED.keys() - fault.unknown, "false": set(), "unknown": fault.unknown}
    reasons = {each.id: each.why or "" for each in verdict.predictions if each.status == "unknown"}
    if fault.why:
        assert any(fault.why in reason for reason in reasons.values()), reasons
    assert all(reasons.values())


def test_a_load_in_doubt_makes_unknown_what_depends_on_it(run: RunFolder) -> None:
    expected = {
        "kernel.backend.TcpExt.ListenDrops == 500": "unknown",
        "kernel.backend.TcpExt.ListenDrops < 500": "unknown",
        "kernel.backend.TcpExt.ListenDrops == 500 or load.users == 103": "unknown",
        "ledger.cause.accept_queue_drop == 100": "unknown",
        "ledger.requests.failed < 100": "unknown",
        "ledger.identities.failed == 0": "true",
        "ledger.identities.failed > 0": "false",
        "ledger.unexplained == 0": "true",
        "ledger.unexplained > 0": "false",
        "sysctl.backend.exists.net.core.somaxconn == 1": "true",
        "sysctl.backend.exists.net.core.somaxconn == 0": "false",
        "load.users == 103": "true",
        "load.users < 103": "false",
    }
    run.clients["k6-1"].dropped = 4
    run.predict(*expected)
    found = judge(run.write()).predictions

    assert {each.expression: each.status for each in found} == expected
    assert {each.why for each in found} == {
        None,
        "k6/k6-1: k6 dropped 4 iterations: the load was smaller than requested",
    }


def problems(verdict: JudgedRun) -> dict[str, list[str]]:
    return {each.message: list(each.spoils) for each in verdict.problems}


@pytest.mark.parametrize(
    ("name", "message", "spoils"),
    [
        ("a sampler that did not end cleanly is reported", "the sampler did not end cleanly", []),
        ("an exit code that was not recorded is reported", "the manifest does not say how k6 ended", []),
        ("errors in k6's log are reported", "k6.log has 1 errors", []),
        ("a scrape that failed spoils nothing by itself", "1 scrapes failed in the window", []),
        ("dropped packets spoil the capture alone", "the kernel dropped 3 packets", ["packets"]),
        (
            "a missing capture spoils itself alone",
            "capture.json: missing or broken: the capture did not end cleanly",
            ["packets"],
        ),
    ],
)
def test_what_spoils_no_figure_is_still_told(run: RunFolder, name: str, message: str, spoils: list[str]) -> None:
    assert problems(judged(run, FAULTS[name]))[message] == spoils


def test_each_instrument_gives_its_own_figures(run: RunFolder) -> None:
    health = judge(run.write()).health

    assert health["sampler/backend-1"].figures == {
        "rate_hz": 10, "ticks": 641, "late_ticks": 2, "late_ms_max": 61.0, "gaps": 0, "longest_gap_ms": 100.0,
        "cpu_percent": 0.8, "ended": True,
    }  # fmt: skip
    assert health["k6/k6-1"].figures == {
        "exit_code": 0, "ended": True, "requests": 103, "dials": 103, "events": 0, "dropped_iterations": 0,
        "interrupted_iterations": 0, "log_errors": 0, "cpu_percent": 5.0,
    }  # fmt: skip
    assert health["host"].figures == {
        "cpu_idle_percent": 90.0, "k6_cpu_share_percent": 2.5, "late_ticks_percent": 0.0
    }  # fmt: skip
    assert health["clock"].figures == {"longest_step_ms": 0.0}
    assert health["tomcat/backend-1"].figures == {"readings": 63, "errors": 0, "longest_gap_ms": 1000.0}
    assert health["capture/backend-1"].figures == {
        "packets": 521, "packets_dropped": 0, "bytes": 46_890, "truncated": False
    }  # fmt: skip
    assert "capture/k6-1" not in health


def test_a_proxy_captures_for_both_its_hops_and_logs_each_request(proxied_run: RunFolder) -> None:
    health = judge(proxied_run.write()).health

    assert "capture/nginx" in health
    assert "capture/backend-1" not in health
    assert health["access/nginx"].figures == {"lines": 5, "exit_code": 0}
    assert health["stub_status/nginx"].figures == {"readings": 63, "errors": 0, "longest_gap_ms": 1000.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.manifest["exits"].update(nginx=137), "nginx ended with exit code 137"),
        (
            lambda run: run.manifest["exits"].update(nginx=143),
            "nginx ended with exit code 143, so its last lines may be missing: let it write them on SIGTERM",
        ),
        (lambda run: run.lines["nginx/access.jsonl"].append({"time_ms": "?"}), "access.jsonl: 1 corrupt lines"),
        (
            lambda run: run.lines["nginx/access.jsonl"].append(make_access(54, 200) | {"time_ms": 2**63 - 1}),
            "access.jsonl: 1 corrupt lines",
        ),
        (lambda run: run.lines.pop("nginx/access.jsonl"), "access.jsonl: missing"),
        (
            lambda run: run.lines.update({"nginx/access.jsonl": []}),
            "access.jsonl has 0 lines, and the clients read 3 answers",
        ),
        (
            lambda run: run.lines["nginx/access.jsonl"].pop(),
            "access.jsonl has 4 lines of requests for which stub_status counted 5: some are missing",
        ),
        (
            lambda run: run.lines.update({"nginx/stub_status.jsonl": []}),
            "no two pages of stub_status say how many lines access.jsonl should have",
        ),
    ],
)
def test_an_access_log_with_holes_counts_nothing(
    proxied_run: RunFolder, change: Callable[[RunFolder], object], message: str
) -> None:
    change(proxied_run)
    proxied_run.predict("access.nginx.requests == 4", "client.requests.ok == 3")
    verdict = judge(proxied_run.write())

    assert [each.status for each in verdict.predictions] == ["unknown", "true"]
    assert message in (verdict.predictions[0].why or "")


def test_an_error_log_that_is_missing_is_not_one_without_errors(proxied_run: RunFolder) -> None:
    proxied_run.predict("access.nginx.errors.110 == 0", "ledger.unexplained >= 0", "access.nginx.requests == 4")
    del proxied_run.texts["nginx/error.log"]
    verdict = judge(proxied_run.write())

    assert [each.status for each in verdict.predictions] == ["unknown", "unknown", "true"]
    assert "error.log: missing" in (verdict.predictions[0].why or "")


@pytest.mark.parametrize("serial", [f"{2**63}", f"{2**64 - 1}", "9" * 5_000])
def test_an_error_whose_connection_has_no_possible_number_is_counted(proxied_run: RunFolder, serial: str) -> None:
    proxied_run.predict("access.nginx.errors.111 == 1")
    proxied_run.texts["nginx/error.log"] = (
        f"2025/11/21 07:27:00 [error] 7#7: *{serial} connect() failed (111: Connection refused)\n"
    )

    assert [each.status for each in judge(proxied_run.write()).predictions] == ["true"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truncated": True}, "ended at its size limit, before the run did"),
        ({"packets_dropped_by_kernel": None}, "nothing says how many packets the kernel dropped"),
        ({"reason": "tcpdump ended by itself"}, "tcpdump ended by itself"),
    ],
)
def test_a_capture_with_holes_is_reported(run: RunFolder, change: Record, message: str) -> None:
    run.lines["backend-1/capture.json"] = [make_capture() | change]

    assert problems(judge(run.write()))[message] == ["packets"]


def test_the_clients_own_capture_is_expected_where_it_is_asked_for(run: RunFolder) -> None:
    run.set_knobs(capture__mode="off", capture__client="handshakes")
    del run.lines["backend-1/capture.json"], run.captures["backend-1"]
    verdict = judge(run.write())

    # Nothing is left to explain the failures by.
    assert [each.instrument for each in verdict.problems] == ["capture/k6-1"] * 2 + ["ledger"]


def test_a_collector_that_takes_much_of_a_processor_is_reported(run: RunFolder) -> None:
    for reading in run.samples["backend-1"].slow:
        if reading["kind"] == "self":
            reading["cpu_ms"] *= 20

    assert problems(judge(run.write())) == {"took 16.0 % of a processor (limit 10 %)": []}


def test_a_sampler_that_ended_by_itself_is_reported(run: RunFolder) -> None:
    folder = run.write()
    path = folder / "raw" / "backend-1" / "collector" / "samples.jsonl"
    path.write_text(path.read_text().replace('"reason":"signal"', '"reason":"error: no space left"'))

    assert problems(judge(folder)) == {"the sampler ended by itself: error: no space left": []}


def test_every_reason_is_reported_once(run: RunFolder) -> None:
    run.clients["k6-1"].requests.append(make_request(200, 5.0))
    run.clients["k6-1"].dropped = 1
    run.predict("client.requests.ok == client.requests.total")
    why = judge(run.write()).predictions[0].why

    assert why == "k6/k6-1: k6 dropped 1 iterations: the load was smaller than requested"
