"""The report of a run: its page, its sentences, its time lines; and the index of all runs."""

import json
import re
import shutil
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analysis.compare import judge_series
from analysis.derivation import analyse
from analysis.evidence.rawrun import RawRun
from analysis.figures import Run
from analysis.reports import (
    advice,
    chart_series,
    conditions,
    drawings,
    index,
    run_charts,
    run_record,
    run_report,
    summary,
)
from analysis.reports.chart_series import Chart, ChartSeries
from analysis.verdicts import parquet_files
from analysis.verdicts.derived import DerivedError
from formats import manifest
from tests.analysis.clocks import Clock, set_clock
from tests.analysis.results import Results
from tests.analysis.support import (
    Record,
    RunFolder,
    Samples,
    as_manifest,
    at_us,
    damage_pages,
    knob,
    make_manifest,
    make_samples,
    quiet_tick,
)
from tests.analysis.whole import make_run
from tests.pages.make import RUNS

Tick = Callable[[float], tuple[dict[str, int], int]]
Tell = Callable[..., summary.Summary]

DROP, WAITED, POOL = "accept-queue-drop", "waited-in-accept-queue", "waited-for-a-connection"
STATUS, RESET = "error-status", "reset-by-peer"
OTHER = "everything else: kernel, engine, the lab itself, services beside the path, other programs"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The healthy run, analysed once; tests take copies."""
    folder = make_run(tmp_path_factory.mktemp("healthy")).write()
    analyse(folder)
    return folder


@pytest.fixture
def analysed(healthy: Path, tmp_path: Path) -> Path:
    """An analysed run whose files a test may change."""
    return shutil.copytree(healthy, tmp_path / "analysed")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The texts of reports, by what became of the run."""
    found = {}
    for name in ("failing", "healthy", "aborted", "without-captures"):
        run = make_run(tmp_path_factory.mktemp(name))
        RUNS[name](run)
        analyse(run.write())
        found[name] = text_of(run_report.render(run.folder))
    return found


def text_of(page: str) -> str:
    """What of a page is read, without its scripts, styles and marks."""
    content = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", content)).split())


def describe(folder: Path, file: str = "manifest.json", **changes: object) -> None:
    """Change a file of a run that was analysed."""
    (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | changes))


def read(run: RunFolder) -> run_record.Record:
    folder = run.write()
    analyse(folder)
    return run_record.load_record(folder)


def read_tables(run: RunFolder) -> run_record.Record:
    """A run with its tables, from which charts and queues are drawn, and nothing else that is derived."""
    folder = run.write()
    derived = folder / "derived"
    derived.mkdir()
    found = Run(RawRun(folder, manifest.load_manifest(folder)))
    parquet_files.write(found, derived)
    parquet_files.write_readings(found, folder)
    return run_record.Record(folder, as_manifest(run.manifest), verdict={}, ledger={}, ladders={}, figures={}, why={})


def chart_of(found: run_record.Record, name: str) -> Chart:
    return next(chart for chart in run_charts.build_charts(found) if chart.id == name)


# Of each run's page, in pieces as long as a sentence; `!` is what must not be there.
SAYS = r"""
failing
  100 of 103 requests failed, because the backend had no place for another connection
  What to change Set backend\.max_connections to one of these \(103 connections for each backend, whose accept queue
  101 : nobody fails, but 2 users wait in the accept queue until another's idle connection ends, after 20 s or more
  103 : nobody waits Try 103: make run SCENARIO=accept-queue-overflow SET="backend\.max_connections=103"
  backend\.keep_alive_timeout 20s 20s how long an idle client keeps its place
  Of 103 requests, 100 failed, 2 were slow \(more than 5 s\), and 1 was answered in time\. 100 failed: accept queue full
  \(accept-queue-drop\)\. Between the client and the backend, while connecting\. 2 were slow: waited in the accept queue
  Failed clients waited up to 30 s\. The kernel of the backend dropped 500 SYNs \(connection requests\), 5 for each of
  the kernel drops the SYN of a new connection and sends no answer
  3 places for 103 users, so 100 found none\. From 21 s on, the accept queue had a free place, but 100 clients failed
  last SYN had left at most 15 s after its first, and the next was due 31 s after the first, too late for the connect
  How many users get all of their answers\?.* 3 3 ✓ right
  By how much does it grow\?.* 100 500 ○ off: 5 times your number
  How many requests fail\?.* skipped 100
  A full accept queue: 103 users, three places .*how does the server's kernel count it\?
  3 made 100 failed ✗ 500 SYNs unanswered
  min avg p50 p90 p95 p99 max
  k6 2\.5 backend \(java\) 2\.5 the collectors 0\.8 tcpdump 0\.0 everything else: .* 4\.2 idle 90\.0
  queue 2 \(limit 1\): full
  queue 0 to 2 \(limit 1\)
  accepted between \d
  In Wireshark, open raw/backend-1/collector/capture\.pcap and filter by ip\.addr == .* && tcp\.port ==
healthy
  ✓ The run went as predicted: all 2 predictions held All 3 requests succeeded
  ✓ All 2 predictions held prediction result
  ✓ (All )?\d+ identities hold must be equal
  ! What to change|Your predictions|Where the time of the run went|no idle time|By name
aborted
  \? Inconclusive: 0 of 6 predictions held, 6 unknown The run was aborted: interrupted \(Ctrl-C\)
  6 predictions cannot be decided: the run is aborted, not complete: interrupted \(Ctrl-C\) Predictions prediction
  k6 did not end cleanly
  Unknown: the processor usage under load was not recorded
without-captures
  100 of 103 requests failed\. For them, no record proves the cause\. \? 100 requests are unexplained; the scenario
  What to change No setting is sure to help: no record proves a cause
  100 failed without a proven cause\. .*counted 500 overflows of its accept queue, which may be the cause
  Nothing to draw: no record has both a request and its packets
  Evidence is missing\. .*no packet was captured
  Identities: .*\? unknown .*✓ 2 identities hold
"""


def test_each_page_says_what_became_of_its_run(pages: dict[str, str]) -> None:
    missing, run = [], ""
    for line in SAYS.strip().splitlines():
        run = run if line.startswith(" ") else line
        pattern = line.strip().removeprefix("! ")
        if line.startswith(" ") and (re.search(pattern, pages[run]) is None) != line.startswith("  ! "):
            missing.append((run, pattern))
    assert missing == [], pages


def test_false_and_unknown_predictions_stand_open_and_first(run: RunFolder) -> None:
    run.predict("client.requests.failed == 100", "client.requests.failed == 1", 'sysctl.k6."no.such" == 1')
    run.manifest["predictions"].append(run.manifest["predictions"][1] | {"id": "p4", "when": "load.users == 1"})
    read(run)
    page = run_report.render(run.folder)
    text = text_of(page)

    assert "✗ The run did not go as predicted: 1 of 4 predictions held, 1 false, 1 unknown, 1 not applicable" in text
    order = ["✗ false", "? unknown", "✓ 1 prediction held", "✓ true", "1 prediction is about other settings"]
    places = [text.index(part, text.index("Predictions prediction")) for part in order]
    assert places == sorted(places)
    opened = page[page.index("<h3>Predictions</h3>") :].partition("<details><summary>✓")[0]
    assert re.findall(r'class="sign ([\w-]+)"', opened) == ["false", "unknown"]


def test_seconds_without_idle_time_are_a_caution(analysed: Path) -> None:
    path = analysed / "derived" / "readings.parquet"
    busy = f"if(name = 'host.cpu_percent' AND time_us < {at_us(13)}, 100, value) AS value"
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE old AS SELECT * FROM read_parquet('{path}')")  # noqa: S608  our own
        database.execute(f"COPY (SELECT * REPLACE ({busy}) FROM old) TO '{path}' (FORMAT parquet)")  # noqa: S608

    (caution,) = summary.summarize(run_record.load_record(analysed)).cautions
    assert re.match(r"The processors had no idle time in [1-3] of 5\d seconds of the load\. Times", caution)
    assert f"⚠ {caution}" in text_of(run_report.render(analysed))


def test_settings_that_the_load_cannot_use_are_not_listed(analysed: Path) -> None:
    found = run_record.load_record(analysed)

    def listed() -> set[str]:
        limits = {text.partition(":")[0] for box in drawings.draw_path(found).boxes for text in box.limits}
        turns = {turn["name"] for turn in summary.summarize(found).turns}
        return {row["name"] for row in conditions.knob_rows(found)} | limits | turns

    assert {"load.users", "load.keep_alive", "users", "backend.keep_alive_timeout"} <= listed()
    assert not {"load.rejoin", "load.ramp_half"} & listed()
    found.manifest.knobs["load.keep_alive"].value = False
    assert "backend.keep_alive_timeout" not in {turn["name"] for turn in summary.summarize(found).turns}
    spike = run_record.load_record(analysed)
    spike.manifest.knobs["load.workload"].value = "spike"
    assert "load.users" not in spike.usable_knobs


def test_a_report_needs_the_manifest_and_what_was_derived_and_is_the_same_each_time(analysed: Path) -> None:
    shutil.rmtree(analysed / "raw")
    first = run_report.write(analysed).read_bytes()

    assert b"100 of 103 requests failed" in first
    assert run_report.write(analysed).read_bytes() == first


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def of_another_version(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": f"connlab.{file.stem}/99"}))


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("figures.json", Path.unlink, r"the run has no figures\.json"),
        ("requests.parquet", cut, r"requests\.parquet: damaged"),
        ("requests.parquet", damage_pages, "derived is damaged"),
        *((f"{name}.json", of_another_version, f"this version reads connlab.{name}/1")
          for name in ("verdict", "ledger", "figures", "ladders")),
    ],
)  # fmt: skip
def test_a_derived_file_that_is_missing_damaged_or_of_another_version_is_refused_with_a_hint(
    analysed: Path, name: str, damage: Callable[[Path], None], says: str
) -> None:
    damage(analysed / "derived" / name)

    with pytest.raises(DerivedError, match=f"{says}; derive it again: make analyse RUN="):
        run_report.write(analysed)


def before_the_load(run: RunFolder) -> None:
    run.manifest |= {"status": "aborted", "reason": "no backend", "phases": run.manifest["phases"][:1]}


def without_requests(run: RunFolder) -> None:
    run.clients["k6-1"].requests, run.clients["k6-1"].ended = [], False


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (before_the_load, "The run was aborted: no backend."),
        (without_requests, "Unexplained requests Unknown: no request is on record."),
    ],
)
def test_a_run_that_recorded_little_has_a_report_too(
    run: RunFolder, change: Callable[[RunFolder], None], says: str
) -> None:
    change(run)
    read(run)
    text = text_of(run_report.render(run.folder))

    assert says in text
    assert "All 0 requests" not in text


def test_one_request_and_one_step_are_no_plurals(analysed: Path) -> None:
    found = run_record.load_record(analysed)
    found.ledger["unexplained"] = 1
    ladder = found.ladders["ladders"][0]
    ladder["left_out"] = 1
    # A step of which no frame is known has its queue all the same.
    for step in ladder["steps"]:
        step["frames"] = None
    content = run_report.render_run(found)

    assert "1 request failed or was slow without a proven cause." in content
    assert "1 step in the middle not shown." in content
    assert "<td>queue of backend-1 " in content
    assert "<td>; " not in content


def test_what_a_run_says_is_text_and_its_settings_make_the_command(analysed: Path) -> None:
    knobs = make_manifest()["knobs"]
    knobs["load.users"] = knob(7) | {"source": "set"}
    knobs["load.connect_timeout"] = knob(1_500, "ms") | {"source": "set"}
    steps = {"prepare": 2250.4, "prepare/start <now>": 1750.0}
    describe(analysed, title="Three <places>", knobs=knobs, profile=steps)
    times = {"median_ms": 3.5, "p95_ms": 4.25}
    names = [
        {"name": "<pay>", "group": "::buy", "total": 7, "failed": 2, "slow": 0, **times, "causes": {"refused": 2}},
        {"name": "home", "group": "", "total": 9, "failed": 0, "slow": 0, **times, "causes": {}},
    ]
    describe(analysed, "derived/ledger.json", names=names)
    page = run_report.render(analysed)

    assert "Three &lt;places&gt;" in page
    assert '<th scope="row">\u2003start &lt;now&gt;</th><td class="number">1,750</td>' in page
    assert "<pay> ::buy 7 2 0 3.5 4.25 refused 2 home 9 0 0" in text_of(page)
    assert 'make run SCENARIO=accept-queue-overflow SET="load.users=7 load.connect_timeout=1500ms"' in text_of(page)


@pytest.mark.parametrize("steps", [{"prepare": -1}, {"prepare": 1e300}, {"prepare": "1"}, ["prepare"]])
def test_steps_that_no_run_takes_are_no_manifest_s(analysed: Path, steps: object) -> None:
    describe(analysed, profile=steps)
    with pytest.raises(DerivedError, match="profile"):
        run_report.render(analysed)


def test_a_cause_at_a_proxy_points_to_the_proxy_s_hop_and_knobs(analysed: Path) -> None:
    content = json.loads((analysed / "manifest.json").read_text())
    knobs = content["knobs"] | {"gateway.max_idle_conns": knob(100), "nginx.upstream_keepalive": knob(0)}
    describe(analysed, path=["k6", "gateway", "backend"], knobs=knobs)
    describe(analysed, "derived/ledger.json", causes={"ephemeral-ports-exhausted": 100})
    path = analysed / "derived" / "requests.parquet"
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE old AS SELECT * FROM read_parquet('{path}')")  # noqa: S608  our own
        replaced = "'ephemeral-ports-exhausted' AS cause, NULL::VARCHAR AS dial_error_kind, 1 AS access_line"
        database.execute(f"COPY (SELECT * REPLACE ({replaced}) FROM old) TO '{path}' (FORMAT parquet)")  # noqa: S608
    found = summary.summarize(run_record.load_record(analysed))

    assert "because the gateway had no port left for another connection to the backend" in found.sentence
    assert [turn["name"] for turn in found.turns] == ["gateway.max_idle_conns"]


def test_a_path_of_four_roles_is_drawn_wider_than_the_page(analysed: Path) -> None:
    found = drawings.draw_path(run_record.load_record(analysed))
    describe(analysed, path=["k6", "nginx", "shop", "db"])
    record = run_record.load_record(analysed)
    record.ledger["hops"] = [record.ledger["hops"][0] | {"to": each} for each in ("nginx", "shop", "db")]
    wide = drawings.draw_path(record)

    assert wide.width > found.width
    assert all(one.x + one.width <= other.x for one, other in zip(wide.bands, wide.boxes[1:], strict=True))
    assert wide.boxes[-1].x < wide.width


@pytest.mark.parametrize(
    ("depths", "limit", "says", "places"),
    [
        ((2, 2), 1, "queue 2 (limit 1): full", ["taken", "taken"]),
        ((2, 0), 1, "queue 0 to 2 (limit 1)", ["maybe", "maybe"]),
        ((1, 2), 1, "queue 1 to 2 (limit 1)", ["taken", "maybe"]),
        ((0, 0), 1, "queue 0 (limit 1)", ["", ""]),
        ((9, 9), 100, "queue 9 (limit 100)", []),
    ],
)
def test_a_queue_between_two_samples_has_bounds(
    analysed: Path, depths: tuple[int, int], limit: int, says: str, places: list[str]
) -> None:
    found = run_record.load_record(analysed)
    for step in found.ladders["ladders"][0]["steps"]:
        if step["queue"]:
            step["queue"] |= {"depth_before": depths[0], "depth_after": depths[1], "limit": limit}
    (line,) = [line for line in drawings.draw_ladders(found)[0].lines if line.kind == "syn"]

    assert (line.notes[0][1], line.places) == (says, places)


def test_the_arrow_of_what_got_lost_ends_on_its_way(analysed: Path) -> None:
    found = run_record.load_record(analysed)
    ends = set()
    for drawing in drawings.draw_ladders(found):
        lanes, rows = dict(drawing.lanes), [line for line in drawing.lines if line.kind != "pause"]
        for step, line in zip(drawing.ladder["steps"], rows, strict=True):
            if step["to"]:
                begin, end = sorted((lanes[step["from"]], lanes[step["to"]]))
                ends.add((step["lost"], line.x1 in (begin, end), begin < line.x2 < end))
    assert ends == {(True, True, True), (False, True, False)}


# The first section's sentences.


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Sum up a run of which this was derived."""

    def summed(
        requests: tuple[int, int, int],
        causes: dict[str, int],
        failed: dict[str, int],
        hops: tuple[Record, ...] = (),
        figures: Record | None = None,
        **changes: Any,  # noqa: ANN401  of the manifest
    ) -> summary.Summary:
        total, bad, slow = requests
        ledger = {
            "requests": {"total": total, "ok": total - bad, "failed": bad, "slow": slow},
            "unexplained": causes.get("unexplained", 0),
            "causes": {name: count for name, count in causes.items() if name != "unexplained"},
            "failed_causes": failed,
            "hops": list(hops),
            "lacks": [],
        }
        verdict = {"verdict": "reproduced", "predictions": []}
        content = as_manifest(make_manifest() | {"slow_ms": 5000} | changes)
        return summary.summarize(run_record.Record(tmp_path, content, verdict, ledger, {}, figures or {}, {}))

    return summed


def hop(client: str, server: str, lost: int, recovered: int) -> Record:
    return {"from": client, "to": server, "dropped_syns": {"lost": lost, "recovered": recovered}}


@pytest.mark.parametrize(
    ("requests", "causes", "failed", "begins"),
    [
        ((9, 0, 0), {}, {}, "All 9 requests succeeded."),
        ((1, 0, 0), {}, {}, "The only request succeeded."),
        ((0, 0, 0), {}, {}, "No request was made."),
        ((9, 3, 2), {DROP: 3, WAITED: 2}, {DROP: 3}, "3 of 9 requests failed, because the backend had no place"),
        ((9, 3, 2), {DROP: 4, RESET: 1}, {DROP: 2, RESET: 1}, "3 of 9 requests failed, most of them because"),
        ((9, 5, 0), {DROP: 2, STATUS: 2, RESET: 1}, {DROP: 2, STATUS: 2, RESET: 1},
         "5 of 9 requests failed, 2 of them because the backend had no place"),
        ((9, 0, 1), {WAITED: 1}, {}, "1 of 9 requests was slow, because the connection waited in the accept queue"),
        ((9, 0, 3), {WAITED: 2, "slow-handler": 1}, {}, "3 of 9 requests were slow, most of them because"),
        ((9, 3, 0), {"unexplained": 3}, {"unexplained": 3}, "3 of 9 requests failed. For them, no record proves"),
        ((9, 3, 0), {"unexplained": 2, DROP: 1}, {"unexplained": 2, DROP: 1},
         "3 of 9 requests failed. For most of them, no record proves the cause."),
    ],
)  # fmt: skip
def test_the_sentence_says_how_many_the_main_cause_has(
    tell: Tell, requests: tuple[int, int, int], causes: dict[str, int], failed: dict[str, int], begins: str
) -> None:
    assert tell(requests, causes, failed).sentence.startswith(begins)


SYNS = "SYNs (connection requests)"
RETRIED = "of connections that succeeded on a retry: the client waited, and saw no error."


@pytest.mark.parametrize(
    ("hops", "failed", "says"),
    [
        ([hop("k6", "backend", 0, 28)], 1, [f"The kernel of the backend dropped 28 {SYNS} {RETRIED}"]),
        ([hop("k6", "backend", 5, 1)], 1,
         [f"The kernel of the backend dropped 5 {SYNS}, all of one connection in its connect timeout of 30 s.",
          f"It dropped 1 SYN {RETRIED}"]),
        ([hop("k6", "nginx", 0, 2), hop("nginx", "backend", 4, 0)], 2,
         [f"The kernel of nginx dropped 2 {SYNS} {RETRIED}",
          f"The kernel of the backend dropped 4 {SYNS}, 2 for each of 2 connections."]),
    ],
)  # fmt: skip
def test_each_kernel_that_left_syns_unanswered_is_named_once(
    tell: Tell, hops: list[Record], failed: int, says: list[str]
) -> None:
    path = [hops[0]["from"], *(each["to"] for each in hops)]
    found = tell((9, 1, 0), {DROP: 1}, {DROP: 1}, tuple(hops), {"flows.backend.unanswered": failed}, path=path)
    assert found.what[1:] == says


@pytest.mark.parametrize(
    ("instances", "cause", "failed", "says"),
    [
        (3, DROP, 91, ("Each instance of the backend serves 1 at once (backend.max_connections), and its accept queue"
         " holds 1 + 1 (backend.accept_count): 9 places in all for 100 users, so 91 found none.")),
        (1, WAITED, 0, ("The backend serves 1 at once (backend.max_connections); up to 1 + 1 more wait in the accept"
         " queue (backend.accept_count) until one of these ends. An idle client keeps its place for 20 s"
         " (backend.keep_alive_timeout).")),
    ],
)  # fmt: skip
def test_the_places_of_the_backends_say_how_many_found_none(
    tell: Tell, instances: int, cause: str, failed: int, says: str
) -> None:
    knobs = make_manifest()["knobs"]
    knobs["load.users"]["value"] = 100
    figures = {"model.accept_capacity": 9, "model.listen_backlog": 1}
    named = {"k6": ["k6-1"], "backend": [f"backend-{number}" for number in range(instances)]}
    found = tell((100, failed, 91 - failed), {cause: 91}, {cause: failed}, (), figures, instances=named, knobs=knobs)

    assert found.why[-1] == says


@pytest.mark.parametrize(
    ("at_the_gateway_us", "limit", "advised", "where"),
    [
        (900, 4, "103", "At the gateway, before the request went on to the backend."),
        (900, 200, "0", "At the gateway, before the request went on to the backend."),
        (0, 0, None, "At the client, before the request went on to the gateway."),
    ],
)
def test_who_waited_for_a_connection_waited_where_the_pool_is(  # noqa: PLR0917  a scene
    tell: Tell, tmp_path: Path, at_the_gateway_us: int, limit: int, advised: str | None, where: str
) -> None:
    (tmp_path / "derived").mkdir()
    row = f"SELECT '{POOL}' AS cause, 100 AS pool_us, {at_the_gateway_us} AS up_pool_us"
    duckdb.execute(f"COPY ({row}) TO '{tmp_path}/derived/requests.parquet'")
    knobs = make_manifest()["knobs"] | {"gateway.max_conns_per_host": knob(limit)}
    found = tell((9, 0, 2), {POOL: 2}, {}, path=["k6", "gateway", "backend"], knobs=knobs)

    assert found.what == [f"2 were slow: waited for a connection ({POOL}). {where}"]
    assert [turn["name"] for turn in found.turns] == ["gateway.max_conns_per_host"] * (advised is not None)
    assert found.advice is not None
    assert found.advice.value == advised


# The time lines.


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_the_time_lines_of_a_run_whose_clock_was_set_are_as_long_as_it_was(run: RunFolder, step_s: int) -> None:
    set_clock(run, Clock(((30, step_s),)))
    found = read(run)
    spans = [(each["name"], each["from"], each["to"]) for each in run_charts.phase_spans(found)]
    assert spans == [("measure", 0, 50), ("drain", 50, 52)]
    assert run_report.write(found.folder).is_file()


def test_the_player_knows_each_queue_and_when_each_step_was(analysed: Path) -> None:
    found = run_record.load_record(analysed)
    (queue,) = chart_series.queue_levels(found, run_charts.duration_s(found))

    assert (queue["role"], queue["queues"], queue["places"][0][1]) == ("backend", 1, 2)
    assert max(depth for _, depth in queue["depth"]) == 2
    totals = [total for _, total in queue["overflows"]]
    assert (totals, totals[-1]) == (sorted(totals), 500)
    assert [(each.name, each.tone, each.most) for each in chart_of(found, "queue").series] == [
        ("backend: waiting", "role", 2),
        ("backend: limit", "limit", 1),
    ]
    for drawing in drawings.draw_ladders(found):
        steps = [line.at_s for line in drawing.lines]
        assert steps == sorted(steps)
        assert steps[0] == pytest.approx(drawing.ladder["began_us"] / 1e6)


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        ({"label", "description"}, "threads at work"),
        ({"description"}, "threads of Tomcat's pool at work"),
        (set(), "threads_busy"),
    ],
)
def test_a_value_of_a_server_has_its_label_or_what_describes_it(analysed: Path, kept: set[str], named: str) -> None:
    file = analysed / manifest.FILE
    content = json.loads(file.read_text())
    (page,) = content["roles"]["backend"]["scrape"].values()
    value = page["values"]["threads_busy"]
    page["values"]["threads_busy"] = {
        key: value[key] for key in value if key in kept or key not in ("label", "description")
    }
    file.write_text(json.dumps(content))
    assert f"backend: {named}" in [each.name for each in chart_of(run_record.load_record(analysed), "servers").series]


def second_backend(run: RunFolder, tick: Tick) -> Samples:
    """Another instance of the backend, which counts this, with its samples."""
    run.manifest["instances"]["backend"] = ["backend-1", "backend-2"]
    for of_instance in ("addresses", "sysctls", "listeners", "exits"):
        run.manifest[of_instance]["backend-2"] = run.manifest[of_instance]["backend-1"]
    run.samples["backend-2"] = make_samples("backend-2", tick, "java")
    return run.samples["backend-2"]


def waiting(second: float) -> tuple[dict[str, int], int]:
    """One connection waits, or two from the 30th second on."""
    return quiet_tick(second)[0], 2 if second >= 30 else 1


def test_what_one_instance_lacks_for_a_moment_is_no_dip_in_the_sum(run: RunFolder) -> None:
    other = second_backend(run, waiting)
    other.lose_ticks(15, 15.3)
    other.lose_readings("sockets", 20, 21)
    run.samples["backend-1"].lose_ticks(40, 40.2)
    found = read_tables(run)
    depth = next(each for each in chart_of(found, "queue").series if each.name == "backend: waiting")
    held = next(each for each in chart_of(found, "sockets").series if each.name == "backend: ESTABLISHED")

    first = [(0, 0), (0.1, 2), (21, 1), (42.1, 0)]
    steps = {at_s: value + (2 if at_s >= 20 else 1) for at_s, value in first} | {20: 4}
    assert dict(depth.points) == dict(sorted(steps.items())) | {51.9: 2}
    assert [value for _, value in held.points] == [6, 0, 0]
    assert [at_s for at_s, _ in held.points] == sorted({at_s for at_s, _ in held.points})


def test_where_nothing_listens_for_a_while_there_is_no_level(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(20, 30):
        tick["listen"] = []
    found = read_tables(run)
    (queue,) = chart_series.queue_levels(found, run_charts.duration_s(found))

    assert queue["places"] == [(0, 2), (10, 2), (10, None), (20, 2), (51.9, 2)]
    assert [value for at_s, value in queue["depth"] if 10 <= at_s < 20] == [2, None]


def two_workers(run: RunFolder) -> None:
    """Each with a queue of its own."""
    run.manifest["listeners"]["backend-1"] *= 2
    for tick in run.samples["backend-1"].ticks:
        tick["listen"] = [dict(each) for each in tick["listen"] for _ in range(2)]


@pytest.mark.parametrize(
    ("change", "full"), [(lambda run: second_backend(run, quiet_tick), [0, 1, 0, 0]), (two_workers, None)]
)
def test_several_queues_have_the_places_of_each_and_one_of_them_may_be_full(
    run: RunFolder, change: Callable[[RunFolder], object], full: list[int] | None
) -> None:
    change(run)
    found = read_tables(run)
    (queue,) = chart_series.queue_levels(found, run_charts.duration_s(found))

    assert (queue["queues"], queue["places"][0][1]) == (2, 4)
    assert full is None or [value for _, value in queue["full"]] == full
    note = "backend: the sum of its 2 queues; one may be full while others have room."
    assert chart_of(found, "queue").notes == [note]


def test_time_wait_is_that_of_the_instance_which_has_the_most_of_its_ports(run: RunFolder) -> None:
    def closing(second: float) -> tuple[dict[str, int], int]:
        return quiet_tick(second)[0] | {"sockstat.TCP.tw": 900 if second >= 30 else 100}, 0

    second_backend(run, closing)
    run.samples["backend-1"] = make_samples("backend-1", lambda second: closing(second + 10), "java")
    chart = chart_of(read_tables(run), "time-wait")

    assert next(each for each in chart.series if each.name == "backend: TIME_WAIT").most == 900
    assert chart.notes == ["backend: the highest of its instances at each moment."]


def test_charts_name_sides_and_causes_where_these_differ(run: RunFolder) -> None:
    run.manifest["slow_ms"] = 5000
    probe = {"state": "ESTABLISHED", "side": "client", "port": 8081, "local": "127.0.0.1", "peer": "127.0.0.1"}
    for reading in run.samples["backend-1"].slow:
        if reading["kind"] == "sockets":
            reading["groups"].append(probe | {"count": 1})
    found = read_tables(run)

    assert sorted(each.name for each in chart_of(found, "sockets").series) == [
        "backend as client: ESTABLISHED",
        "backend as server: ESTABLISHED",
        "k6: ESTABLISHED",
    ]
    ended = {each.name: sum(value or 0 for _, value in each.points) for each in chart_of(found, "requests").series}
    assert ended == {"succeeded": 1, "slow: waited in the accept queue": 2, "failed: accept queue full": 100}


def test_each_bar_stands_in_its_own_row_and_the_last_row_may_be_shorter() -> None:
    bars = ChartSeries("succeeded", "ok", [(round(0.1 * place, 3), place + 1) for place in range(13)])
    _, rows = chart_series.chart_table(Chart("requests", "", "", "", "bars", [bars]), 1.25)

    assert rows == [[f"{place / 10:g}", str(place + 1)] for place in range(13)]


def test_a_limit_far_above_is_written_and_not_drawn() -> None:
    chart = Chart("queue", "", "", "", "lines", [ChartSeries("depth", "role", [(0, 3)])])
    chart.add_limit("limit", 4096, 1)
    chart.keep_limits_in_view()

    assert [each.name for each in chart.series] == ["depth"]
    assert chart.notes == ["limit: 4,096, far above the chart (maximum measured: 3)."]


def test_many_requests_are_drawn_as_percentiles(run: RunFolder) -> None:
    client = run.clients["k6-1"]
    for number in range(4_000):
        begin_us = at_us(20 + number / 200)
        times = {"time_us": begin_us, "end_us": begin_us + 2_000, "id": 1_000 + number, "dial": 1, "reused": True}
        client.requests.append({**client.requests[0], **times, "connecting_us": 0})
    found = read_tables(run)
    chart = chart_of(found, "times")

    assert (chart.kind, chart_of(found, "spans").missing) == (
        "lines",
        "4,103 requests are too many to draw one by one.",
    )
    names = ["median", "95th percentile", "maximum", "longest time to connect"]
    assert [each.name for each in chart.series] == names
    assert sum(len(each.points) for each in chart.series) < 1_000


def test_a_minute_of_a_thousand_users_stays_far_below_two_megabytes(analysed: Path) -> None:
    """60,000 requests, and counters, levels and readings of which no two are alike."""
    noise = "(hash(time_us, instance, {0}) % 100000)::BIGINT AS {0}"
    levels = ", ".join(noise.format(name) for name in ("listen_depth", "time_wait", '"Tcp.ActiveOpens"'))
    for name, query in {
        "requests": """SELECT * REPLACE (id + 1000 * number AS id, time_us + 500 * number AS time_us,
            end_us + 500 * number + (hash(number) % 1000000)::BIGINT AS end_us) FROM old, range(583) AS n(number)""",
        "timeline": f"SELECT * REPLACE ({levels}) FROM old",  # noqa: S608  as below
        "readings": "SELECT * REPLACE (hash(time_us, name) % 10000 AS value) FROM old",
    }.items():
        path = analysed / "derived" / f"{name}.parquet"
        with duckdb.connect() as database:
            database.execute(f"CREATE TABLE old AS SELECT * FROM read_parquet('{path}')")  # noqa: S608  our own
            database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")

    assert run_report.write(analysed).stat().st_size < 1_500_000


# Processor usage.


def shares(record: run_record.Record) -> dict[str, float | None]:
    found = conditions.cpu_shares(record)
    assert not isinstance(found, str)
    return dict(found)


def test_a_program_s_cpu_usage_is_unknown_without_its_readings_and_then_among_the_others(run: RunFolder) -> None:
    run.samples["k6-1"].lose_readings("processes", 20, 30)
    record = read(run)
    found = shares(record)

    assert (found["k6"], found["the collectors"], found["backend (java)"]) == (None, None, 2.5)
    assert found[OTHER] == pytest.approx(7.46)
    assert '<th scope="row">k6</th><td class="number">unknown</td>' in run_report.render(run.folder)
    # More than all of them leaves nothing for others.
    record.figures["process.k6.cpu_percent.mean"] = 60.0
    assert shares(record)[OTHER] == 0
    record.manifest.nodes = {"k6-1": "node-1"}
    assert (
        conditions.cpu_shares(record) == "the run was on a cluster, and the number of its processors was not recorded"
    )


# The index.


def test_the_index_lists_runs_that_cannot_be_read_any_further(analysed: Path, tmp_path: Path) -> None:
    run_report.write(analysed)
    runs = tmp_path / "results" / "queue"
    for second in (39, 40, 41):
        shutil.copytree(analysed, runs / f"20251121T0726{second}Z-default-r01")
    broken, raw = runs / "20251121T072641Z-default-r01", runs / "20251121T072639Z-default-r01"
    (broken / "derived" / "verdict.json").write_text("{")
    (broken / "report.html").unlink()
    (raw / "derived" / "verdict.json").unlink()
    unread = {
        "20251121T072642Z-default-r01": "no JSON",
        "20251121T072643Z-default-r01": '{"schema": "connlab.manifest/1"}',
        "20251121T072644Z-<b>": '{"schema": "connlab.manifest/2"}',
    }
    for name, content in unread.items():
        (runs / name).mkdir()
        (runs / name / "manifest.json").write_text(content)
    (runs / "latest").symlink_to("20251121T072640Z-default-r01")

    page = index.write(runs.parent).read_text()

    assert "<p>3 runs of 1 scenario." in page
    names = ", ".join(f"queue/{escape(name)}" for name in unread)
    assert f"Not listed, because manifest.json or series.json is unreadable: {names}." in page
    states = re.findall(r'<tr data-scenario[^>]*data-state="([^"]+)"', page)
    assert sorted(states) == ["analyse again", "not analysed", "reproduced"]
    assert 'href="queue/20251121T072640Z-default-r01/report.html"' in page


def test_the_index_has_a_series_as_one_entry_with_its_runs_below_and_failures_first(tmp_path: Path) -> None:
    results = Results(tmp_path)
    killed = {"status": "failed", "reason": "backend-1 was killed\n" + "its log\n" * 100}
    folder = results.series({"kept": [{}, {}], "closed": [{}, killed]})
    alone = results.run(status="failed", reason="x" * 1_000)
    judge_series(folder)
    (results.root / "series" / "broken").mkdir()
    (results.root / "series" / "broken" / "series.json").write_text("{")

    page = index.write(results.root).read_text()

    assert "4 runs of 2 arms" in page
    assert 'class="series" data-scenario="queue" data-state="inconclusive"' in page
    rows = re.findall(r"<tr (.*?)>", page.partition("<tbody>")[2])
    assert 'data-state="failed"' in next(row for row in rows if "of-series" in row)
    assert ">backend-1 was killed<" in page
    assert "its log" not in page
    assert f">{'x' * 159}…<" in page
    assert alone.name in page
    assert "is unreadable: series/broken." in page


@pytest.mark.parametrize(("status", "state"), [("complete", "not analysed"), ("interrupted", "interrupted")])
def test_a_series_without_a_verdict_says_in_the_index_why(tmp_path: Path, status: str, state: str) -> None:
    results = Results(tmp_path)
    results.series({"kept": [{}], "closed": [{}]}, status=status)
    page = index.write(results.root).read_text()
    assert f'class="series" data-scenario="queue" data-state="{state}"' in page


def few_failures(run: RunFolder) -> None:
    """One request failed; two waited in the queue."""
    run.manifest["slow_ms"] = 5000
    run.clients["k6-1"].requests = run.clients["k6-1"].requests[:4]


def no_capture(run: RunFolder) -> None:
    run.captures.clear()
    del run.lines["backend-1/capture.json"]


@pytest.mark.parametrize(
    ("change", "main", "label"),
    [(few_failures, DROP, "accept queue full"), (no_capture, "unexplained", "unexplained")],
)
def test_report_index_and_advice_name_the_same_main_cause(
    run: RunFolder, tmp_path: Path, change: Callable[[RunFolder], None], main: str, label: str
) -> None:
    run.folder = tmp_path / "results" / "queue" / "r"
    run.folder.mkdir(parents=True)
    change(run)
    found = read(run)

    assert summary.summarize(found).reasons[0].cause.name == main
    assert advice.advise_on_run(found).cause == main
    assert f">{label}</td>" in index.write(tmp_path / "results").read_text()
