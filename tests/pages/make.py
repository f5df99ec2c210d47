"""Makes the pages that the browser looks at: `python -m tests.pages.make <folder>`.

Each run is one of the analysis's tests, derived and reported by the code that users run; the index lists them all. So
is each series that is compared, of which there is a page alone.
"""

import json
import shutil
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import duckdb

from analysis.compare import compare_series, judge_series
from analysis.derivation import analyse
from analysis.reports import comparison_page, index, run_report
from tests.analysis.packets import Capture, Connection
from tests.analysis.results import Results, write
from tests.analysis.support import (
    LOAD_END_S,
    MEASURE_S,
    Record,
    RunFolder,
    at_us,
    knob,
    make_capture,
    make_dial,
    make_manifest,
    make_request,
    make_samples,
)
from tests.analysis.whole import make_run, observed

SCENARIO = "accept-queue-overflow"
HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror=window.hurt=1>\u202e\u2028'\"&{{7*7}}"
AT_WORK = "at-work/20251121T080000Z-default-r01"
HEALTHY_USERS = 3
# Which of many runs failed.
FAILED = 1_234
_OVERFLOWS = "kernel.backend.TcpExt.ListenOverflows"


def failing(run: RunFolder) -> None:
    """A full accept queue, of which somebody expected something."""
    run.manifest |= {"slow_ms": 5000, "title": "A full accept queue: 103 users, three places"}
    run.manifest["question"] = "What does each of them see, and how does the server's kernel count it?"
    run.manifest["profile"] = {"prepare": 2_250.4, "prepare/start": 1_750.2, "measure": 50_000.1}
    asked = {"prediction": run.manifest["predictions"][0]["id"], "unit": "count"}
    run.manifest["guesses"] = [
        asked | {"asks": "How many users get all of their answers?", "figure": "client.users.served", "value": 3},
        asked | {"asks": "By how much does it grow?", "figure": _OVERFLOWS, "value": 100},
        asked | {"asks": "How many requests fail?", "figure": "client.requests.failed", "value": None},
    ]


def healthy(run: RunFolder) -> None:
    """Three users of whom each finds a place at once."""
    client = run.clients["k6-1"]
    client.requests = [make_request(number, 1_004.0) for number in range(1, HEALTHY_USERS + 1)]
    client.dials = [make_dial(number, failed=False, duration_ms=0.3) for number in range(1, HEALTHY_USERS + 1)]
    capture = Capture()
    for number in range(1, HEALTHY_USERS + 1):
        second = MEASURE_S + 0.01 * (number - 1) + 0.0001
        connection = Connection(capture, f"172.18.0.3:{40_000 + number}", "172.18.0.2:8080", isn=1_000 * number)
        connection.handshake(second).ask(second + 0.0003).answer(second + 1.003)
    run.captures["backend-1"] = capture
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]

    def opened(second: float) -> int:
        return sum(second >= MEASURE_S + 0.01 * number for number in range(1, HEALTHY_USERS + 1))

    def server(second: float) -> tuple[dict[str, int], int]:
        counters = dict.fromkeys(("TcpExt.ListenOverflows", "TcpExt.ListenDrops", "Tcp.ActiveOpens"), 0)
        return counters | {"Tcp.PassiveOpens": opened(second), "sockstat.TCP.tw": 0}, 0

    def user(second: float) -> tuple[dict[str, int], int]:
        return {"Tcp.ActiveOpens": opened(second), "Tcp.PassiveOpens": 0, "sockstat.TCP.tw": 0}, 0

    run.samples["backend-1"] = make_samples("backend-1", server, "java")
    run.samples["k6-1"] = make_samples("k6-1", user, "k6", port=None)
    run.set_knobs(load__users=HEALTHY_USERS, backend__max_connections=8192, backend__accept_count=100)
    run.predict("client.requests.failed == 0", "kernel.backend.TcpExt.ListenDrops == 0")


def aborted(run: RunFolder) -> None:
    """Ctrl-C in the middle of the load."""
    run.manifest |= {"status": "aborted", "reason": "interrupted (Ctrl-C)"}
    run.manifest["phases"] = run.manifest["phases"][:2]
    run.manifest["phases"][1]["end_us"] = at_us(LOAD_END_S - 20)
    run.manifest["exits"] = {"k6-1": 137, "backend-1": 143}
    client = run.clients["k6-1"]
    client.ended = False
    client.requests = [each for each in client.requests if each["end_us"] < at_us(LOAD_END_S - 20)]


def without_captures(run: RunFolder) -> None:
    run.set_knobs(capture__mode="off")
    run.captures.clear()
    del run.lines["backend-1/capture.json"]


def hostile(run: RunFolder) -> None:
    """Whatever a client, a server, a log or a packet may have put there."""
    failing(run)
    manifest, client = run.manifest, run.clients["k6-1"]
    manifest["title"] = manifest["question"] = manifest["guesses"][0]["asks"] = HOSTILE
    manifest["command"] = ["connlab", "run", HOSTILE]
    manifest["host"]["distribution"] = HOSTILE
    manifest["git"]["commit"] = HOSTILE
    manifest["images"][HOSTILE] = HOSTILE
    manifest["knobs"]["load.path"] = knob(HOSTILE) | {"source": "set", "default": "/api/delay"}
    manifest["sysctls"]["k6-1"][HOSTILE] = HOSTILE
    manifest["predictions"][0]["description"] = HOSTILE
    for request in client.requests:
        request |= {"url": f"http://backend:8080/{HOSTILE}", "method": HOSTILE, "name": HOSTILE}
        if request["error"]:
            request["error"] = HOSTILE
    for dial in client.dials:
        if dial.get("error"):
            dial["error"] = HOSTILE
    for samples in run.samples.values():
        for reading in samples.slow:
            for process in reading.get("processes", []):
                process["comm"] = HOSTILE if process["comm"] != "collector" else "collector"
            for group in reading.get("groups", []):
                group["state"] = HOSTILE


RUNS = {each.__name__.replace("_", "-"): each for each in (failing, healthy, aborted, without_captures, hostile)}


def observed_hostile(run: RunFolder) -> None:
    """A program whose owner gave it hostile names."""
    observed(run)
    run.manifest["title"] = HOSTILE
    run.manifest["command"] = ["connlab", "observe", HOSTILE]
    (target,) = run.manifest["observed"]["targets"]
    target["name"] = HOSTILE
    target["program"] |= dict.fromkeys(("name", "setting", "how", "source"), HOSTILE)
    run.manifest["sysctls"]["backend-1"][HOSTILE] = HOSTILE


def observed_blind(run: RunFolder) -> None:
    """Somebody forbade to capture."""
    observed(run)
    run.manifest["observed"]["capture"] = "off"
    run.captures.clear()
    run.lines.clear()


OBSERVED = {"overflow": observed, "blind": observed_blind, "hostile": observed_hostile, "crowd": observed}
CROWD = 100_000


def multiply_connections(folder: Path) -> None:
    """Give an observation as many connections as a page has at most, all over its time."""
    file, whole = folder / "derived" / "connections.parquet", folder / "whole.parquet"
    duckdb.execute(
        f"""COPY (SELECT * REPLACE (first_time_us + late_us AS first_time_us, last_time_us + late_us AS last_time_us)
                    FROM (SELECT * FROM read_parquet('{file}'),
                                 (SELECT range % 1000 * 40000 AS late_us FROM range({CROWD})) LIMIT {CROWD}))
             TO '{whole}' (FORMAT parquet)"""  # noqa: S608
    )
    whole.replace(file)


def grid(results: Results, axes: dict[str, list[str]], runs: dict[str, list[Record]], **more: Any) -> Path:  # noqa: ANN401  whatever a series has
    """A matrix of users by places by whatever else, whose cells' names are their levels."""
    return results.series(
        runs,
        kind="matrix",
        axes=[{"name": name, "levels": [{"name": level} for level in each]} for name, each in axes.items()],
        cells=[
            {"cell": cell, "scenario": "queue", "levels": dict(zip(axes, cell.split("-"), strict=True))}
            for cell in runs
        ],
        **more,
    )


def counts(users: str, places: str) -> dict[str, int]:
    """What fails where there are so many places."""
    names = ("client.requests.failed", "client.users.failed", "model.users_failed")
    return dict.fromkeys(names, max(int(users) - int(places), 0))


def matrix(results: Results) -> Path:
    """Three axes; of the last two cells one is inconclusive, and one was never run."""
    axes = {"load.users": ["20", "40"], "backend.max_connections": ["2", "20", "200"]}
    axes["load.keep_alive"] = ["true", "false"]
    runs: dict[str, list[Record]] = {}
    for users, places, kept in product(*axes.values()):
        latencies = ({"client.latency_ms.mean": 1000.0 + int(users) * number} for number in (1, 2))
        runs[f"{users}-{places}-{kept}"] = [{"figures": counts(users, places) | latency} for latency in latencies]
    *_, inconclusive, missing = runs
    runs[inconclusive] = [{"predictions": {"p": "unknown"}}]
    runs[missing] = []
    return grid(results, axes, runs)


def hostile_arms(results: Results) -> Path:
    """Whatever a series of another machine may have for names."""
    # A run's folder bears the cell's name, which is checked; the names of levels are not.
    levels = {"plain": "plain", "odd": HOSTILE}
    figure = f"kernel.backend.TcpExt.{HOSTILE}"
    other: Record = {"knobs": {"load.path": HOSTILE}, "images": {HOSTILE: HOSTILE}}
    runs: dict[str, list[Record]] = {
        "plain": [{"figures": {figure: count}} for count in (900, 901)],
        "odd": [{"figures": {figure: count}} | other for count in (3, 4)]
        + [{"status": "aborted", "reason": HOSTILE} | other],
    }
    return results.series(
        runs,
        title=HOSTILE,
        question=HOSTILE,
        axes=[{"name": HOSTILE, "levels": [{"name": levels[cell]} for cell in runs]}],
        cells=[{"cell": cell, "scenario": "queue", "levels": {HOSTILE: levels[cell]}} for cell in runs],
    )


def arms(results: Results) -> Path:
    """Three ways to a server, of which each is faster than the one before; most of what else moved is one story."""
    ways = {"closed": (1.2, 500), "kept": (0.6, 1), "straight": (0.4, 1)}
    runs: dict[str, list[Record]] = {
        way: [
            {
                "figures": {
                    "client.latency_ms.mean": mean + 0.02 * number,
                    "client.requests.failed": 0,
                    "flows.backend.total": opened,
                    "kernel.nginx.Tcp.ActiveOpens": opened + 2,
                    "sockets.nginx.time_wait.max": opened - 1,
                    "ledger.identities.holding": 30 + opened,
                }
            }
            for number in range(5)
        ]
        for way, (mean, opened) in ways.items()
    }
    return results.series(
        runs,
        title="Keep-alive on three ways",
        question="Which way is faster, and by how much?",
        figures=["client.latency_ms.mean"],
        predictions={"kept": "arms.kept.client.latency_ms.mean <= 0.67 * arms.closed.client.latency_ms.mean"},
    )


def search(results: Results) -> Path:
    """A search that came to its end one connection above what the model says, with one run that is not known."""
    tried = {40: "false", 200: "true", 120: "true", 80: "false", 101: "unknown", 102: "true"}
    runs: dict[str, list[Record]] = {
        f"at-{value}": [{"figures": {"client.requests.failed": 0 if holds == "true" else 103 - value}}]
        for value, holds in tried.items()
    }
    knob = "backend.max_connections"
    return results.series(
        runs,
        kind="search",
        title="How many connections are enough?",
        knobs={f"at-{value}": {knob: value} for value in tried},
        holds={f"at-{value}": holds for value, holds in tried.items()},
        search={"knob": knob, "until": "client.requests.failed == 0", "low": 1, "high": 200, "step": 1, "confirm": 1}
        | {"goal": "smallest", "predicted": 101, "found": 102, "outcome": "found"},
    )


def five(results: Results) -> Path:
    """Six arms, of which three count: two real ones, and one whose run has no time lines.

    One run is inconclusive for want of a capture, one failed, and one was never begun.
    """
    made: dict[str, Callable[[RunFolder], None]] = {"full": failing, "room": healthy, "uncaptured": without_captures}
    counted: Record = {"figures": {"client.latency_ms.mean": 3.0}}
    runs: dict[str, list[Record]] = {cell: [counted, counted] for cell in (*made, "underived")}
    folder = results.series(
        runs | {"broken": [{"status": "failed", "reason": "the backend ended"}], "missing": []},
        title="Five ways to meet a queue",
        figures=["client.requests.failed"],
    )
    for cell, change in made.items():
        for place in sorted((results.root / "queue").glob(f"*-{cell}-r01")):
            was = json.loads((place / "manifest.json").read_text())
            shutil.rmtree(place)
            put(place, change, **{name: was[name] for name in ("scenario", "run", "series", "cell", "repetition")})
    return folder


def plain(results: Results) -> Path:
    """Three levels by three, all run."""
    axes = {"load.users": ["10", "20", "40"], "backend.max_connections": ["2", "20", "200"]}
    runs: dict[str, list[Record]] = {
        f"{users}-{places}": [{"figures": counts(users, places)}] * 2 for users, places in product(*axes.values())
    }
    return grid(results, axes, runs, figures=["client.users.failed"])


COMPARISONS: dict[str, Callable[[Results], Path]] = {
    **{each.__name__: each for each in (matrix, arms, search, five, plain)},
    "hostile": hostile_arms,
}


def at_work(results: Path) -> None:
    """A run that has not ended; it stands in no index."""
    folder = results / AT_WORK
    folder.mkdir(parents=True)
    run = make_run(folder)
    run.manifest |= {"run": folder.name, "scenario": folder.parent.name, "status": "running", "exits": {}}
    run.manifest["phases"] = run.manifest["phases"][:2]
    run.manifest["phases"][1]["end_us"] = None
    run.write()


def many(results: Path) -> None:
    """An index of 5,000 runs, of which one failed long ago, and of a series."""
    manifest = make_manifest()
    for number in range(5_000):
        minutes, second = divmod(number, 60)
        started = f"2025-11-20T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}Z"
        own = {"scenario": "queue", "run": f"run-{number:04d}", "started": started}
        wrong = {"status": "failed", "reason": f"backend-1 was killed {HOSTILE}\n{'its log ' * 500}"}
        write(results / "queue" / own["run"] / "manifest.json", manifest | own | (wrong if number == FAILED else {}))
    folder = Results(results).series({"kept": [{}, {}], "closed": [{}, {"status": "aborted"}]})
    comparison_page.write(compare_series(folder)[0], folder / "derived", results, judge_series(folder))
    index.write(results)


def put(folder: Path, change: Callable[[RunFolder], object], **manifest: object) -> None:
    """Write a run that is changed so, with all that is derived from it."""
    folder.mkdir(parents=True)
    run = make_run(folder)
    run.manifest |= manifest
    change(run)
    run.write()
    analyse(folder)


def make(results: Path) -> None:
    """Make all pages below a folder that is made anew."""
    shutil.rmtree(results, ignore_errors=True)
    for number, (name, change) in enumerate(RUNS.items()):
        put(results / SCENARIO / name, change, run=name, started=f"2025-11-21T07:2{number}:00Z")
        run_report.write(results / SCENARIO / name)
    index.write(results)
    at_work(results)
    for name, watched in OBSERVED.items():
        folder = results / "observed" / "observed-shop" / name
        put(folder, watched, run=name)
        if name == "crowd":
            multiply_connections(folder)
        run_report.write(folder)
    many(results / "many")
    for name, series in COMPARISONS.items():
        compared = Results(results / "comparisons" / name)
        folder = series(compared)
        comparison_page.write(compare_series(folder)[0], compared.root, compared.root, judge_series(folder))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
