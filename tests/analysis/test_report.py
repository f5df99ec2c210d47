"""The report of a run, and the index of all."""

import json
import re
import shutil
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path

import duckdb
import pytest

from analysis import formatting
from analysis.compare import judge_series
from analysis.derivation import analyse
from analysis.evidence.rawrun import RawRun
from analysis.figures import Run
from analysis.reports import conditions, drawings, index, run_record, run_report, summary, time_series, timelines
from analysis.reports.time_series import Chart
from analysis.verdicts import tables
from formats import manifest
from tests.analysis.clocks import Clock, set_clock
from tests.analysis.results import Results
from tests.analysis.support import (
    RunFolder,
    Samples,
    at_us,
    damage_pages,
    knob,
    make_manifest,
    make_samples,
    quiet_tick,
)
from tests.analysis.whole import make_run

Tick = Callable[[float], tuple[dict[str, int], int]]

OTHER = "other: the kernel, the engine, the lab itself, services beside the path, other programs"


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


def describe(folder: Path, **changes: object) -> None:
    """Change the manifest of a run that was analysed."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def read(run: RunFolder) -> run_record.Record:
    folder = run.write()
    analyse(folder)
    return run_record.load_record(folder)


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_the_time_lines_of_a_run_whose_clock_was_set_are_as_long_as_it_was(run: RunFolder, step_s: int) -> None:
    set_clock(run, Clock(((30, step_s),)))
    found = read(run)
    assert [(each["name"], each["from"], each["to"]) for each in timelines.phase_spans(found)] == [
        ("measure", 0, 50),
        ("drain", 50, 52),
    ]
    assert run_report.write(found.folder).is_file()


def read_tables(run: RunFolder) -> run_record.Record:
    """A run with its tables, from which charts and queues are drawn, and nothing else that is derived."""
    folder = run.write()
    derived = folder / "derived"
    derived.mkdir()
    found = Run(RawRun(folder, manifest.load_manifest(folder)))
    tables.write(found, derived)
    tables.write_readings(found, folder)
    return run_record.Record(folder, run.manifest, verdict={}, ledger={}, ladders={}, figures={}, why={})


def chart_of(found: run_record.Record, name: str) -> Chart:
    return next(chart for chart in timelines.build_charts(found) if chart.id == name)


def text_of(path: Path) -> str:
    """What of a page is read, without its scripts, styles and marks."""
    content = re.sub(r"<(script|style).*?</\1>", "", path.read_text(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", content)).split())


def test_a_report_needs_nothing_of_a_run_but_its_manifest_and_what_was_derived(analysed: Path) -> None:
    shutil.rmtree(analysed / "raw")

    assert "100 of 103 requests failed" in text_of(run_report.write(analysed))


def test_a_report_is_the_same_each_time(analysed: Path) -> None:
    first = run_report.write(analysed).read_bytes()

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

    with pytest.raises(run_report.ReportError, match=f"{says}; derive it again: make analyse RUN="):
        run_report.write(analysed)


def test_a_run_that_broke_off_before_its_load_has_a_report_too(run: RunFolder) -> None:
    run.manifest |= {"status": "aborted", "reason": "no backend"}
    run.manifest["phases"] = run.manifest["phases"][:1]
    folder = run.write()
    analyse(folder)

    assert "The run was aborted: no backend." in text_of(run_report.write(folder))


def test_the_story_says_what_failed_where_why_and_which_knob_to_turn(analysed: Path) -> None:
    found = summary.summarize(run_record.load_record(analysed))

    assert found.sentence == (
        "100 of 103 requests failed, because the backend had no place for another connection: its accept queue was"
        " full each time the client tried."
    )
    assert found.what[:2] == ["Of 103 requests, 100 failed, and 3 were answered.", "100 failed: accept queue full."]
    assert found.where == [
        "What failed: between the client and the backend, before there was a connection.",
        (
            "The kernel of the backend dropped 500 SYNs (connection requests), 5 for each of 100 connections in its"
            " connect timeout of 30 s."
        ),
    ]
    assert "3 places for 103 users, so 100 found none." in found.why[-2]
    assert found.why[-1] == (
        "From 21 s on the queue had a free place, and 100 clients failed all the same, at 30 to 31 s: each one's last"
        " SYN had left at most 15 s after its first, and the next was due 31 s after it, too late for the connect"
        " timeout of 30 s."
    )
    assert found.turns[0].knob == "backend.max_connections"
    assert found.advice is not None
    assert (found.advice.knob, found.advice.value) == ("backend.max_connections", "103")
    assert found.advice.command == 'make run SCENARIO=accept-queue-overflow SET="backend.max_connections=103"'


def test_without_k6_s_record_nothing_is_said_of_requests(run: RunFolder) -> None:
    client = run.clients["k6-1"]
    client.requests, client.ended = [], False
    folder = run.write()
    analyse(folder)
    text = text_of(run_report.write(folder))

    assert "Unexplained Not known: no request is on record. Causes Not known: no request is on record." in text
    assert "No request failed or was slow" not in text


def test_one_request_and_one_step_are_no_plurals(analysed: Path) -> None:
    found = run_record.load_record(analysed)
    found.ledger["unexplained"] = 1
    ladder = found.ladders["ladders"][0]
    ladder["left_out"] = 1
    # A step of which no frame is known has its queue all the same.
    for step in ladder["steps"]:
        step["frames"] = None
    content = run_report.render_run(found)

    assert "1 request failed or was slow, and nothing proves why." in content
    assert "1 step in the middle is left out." in content
    assert "<td>queue of backend-1 " in content
    assert "<td>; " not in content


def test_the_page_has_what_was_asked_guessed_set_and_told_apart(analysed: Path) -> None:
    plain = text_of(run_report.write(analysed))
    assert "By name" not in plain
    assert "Your own predictions" not in plain

    asked = {"prediction": "none", "asks": "How many fail?", "unit": "count"}
    guesses = [
        asked | {"figure": "client.requests.failed", "value": 99},
        asked | {"figure": "client.requests.ok", "value": None},
    ]
    knobs = make_manifest()["knobs"]
    knobs["load.users"] = knob(7) | {"source": "set"}
    knobs["load.connect_timeout"] = knob(1_500, "ms") | {"source": "set"}
    describe(analysed, title="Three <places>", question="Who waits?", guesses=guesses, knobs=knobs)
    file, times = analysed / "derived" / "ledger.json", {"median_ms": 3.5, "p95_ms": 4.25}
    names = [
        {"name": "<pay>", "group": "::buy", "total": 7, "failed": 2, "slow": 0, **times, "causes": {"refused": 2}},
        {"name": "home", "group": "", "total": 9, "failed": 0, "slow": 0, **times, "causes": {}},
    ]
    file.write_text(json.dumps(json.loads(file.read_text()) | {"names": names}))
    text = text_of(run_report.write(analysed))

    assert "Three <places>" in text
    assert "Who waits?" in text
    assert re.search(r"How many fail\? 99 100 ≈ near: 1 too few How many fail\? passed over 3", text)
    assert "<pay> ::buy 7 2 0 3.5 4.25 refused 2 home 9 0 0" in text
    assert 'make run SCENARIO=accept-queue-overflow SET="load.users=7 load.connect_timeout=1500ms"' in text


def test_the_player_knows_each_queue_and_when_each_step_was(analysed: Path) -> None:
    found = run_record.load_record(analysed)
    (queue,) = time_series.queue_levels(found, timelines.duration_s(found))

    assert (queue["role"], queue["queues"], queue["places"][0][1]) == ("backend", 1, 2)
    assert max(depth for _, depth in queue["depth"]) == 2
    assert [total for _, total in queue["overflows"]] == sorted(total for _, total in queue["overflows"])
    assert queue["overflows"][-1][1] == 500
    assert [(each.name, each.tone, each.most) for each in chart_of(found, "queue").series] == [
        ("backend: waiting", "role", 2),
        ("backend: limit", "limit", 1),
    ]
    for drawing in drawings.draw_ladders(found):
        steps = [line.at_s for line in drawing.lines]
        assert steps == sorted(steps)
        assert steps[0] == pytest.approx(drawing.ladder["began_us"] / 1e6)


def test_the_report_says_what_a_request_in_the_queue_waited_for(run: RunFolder) -> None:
    run.manifest["slow_ms"] = 5000
    client = run.clients["k6-1"]
    client.requests = [request for request in client.requests if request["status"] == 200]
    found = summary.summarize(read(run))

    assert found.sentence.startswith("2 of 3 requests were slow, because the connection waited in the accept queue")
    assert found.why[-1] == (
        "The backend serves 1 at once (backend.max_connections); up to 1 + 1 more wait in the queue"
        " (backend.accept_count) until one of these goes. An idle client keeps its place"
        " for 20 s (backend.keep_alive_timeout)."
    )


def test_a_knob_that_the_workload_does_not_read_is_no_condition_of_the_run(analysed: Path) -> None:
    found = run_record.load_record(analysed)
    named = [name for name, _ in conditions.load_rows(found)]
    assert "load.keep_alive" in named

    found.manifest["knobs"]["load.workload"]["value"] = "tcp"
    named = [name for name, _ in conditions.load_rows(found)]
    assert "load.keep_alive" not in named
    assert "load.users" in named


def test_a_cause_at_a_proxy_points_to_the_proxy_s_hop_and_knobs(analysed: Path) -> None:
    manifest = json.loads((analysed / "manifest.json").read_text())
    manifest["path"] = ["k6", "gateway", "backend"]
    manifest["knobs"] |= {"gateway.max_idle_conns": knob(100), "nginx.upstream_keepalive": knob(0)}
    (analysed / "manifest.json").write_text(json.dumps(manifest))
    ledger = json.loads((analysed / "derived" / "ledger.json").read_text())
    ledger["causes"] = {"ephemeral-ports-exhausted": 100}
    (analysed / "derived" / "ledger.json").write_text(json.dumps(ledger))
    path = analysed / "derived" / "requests.parquet"
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE old AS SELECT * FROM read_parquet('{path}')")  # noqa: S608  our own
        replaced = "'ephemeral-ports-exhausted' AS cause, NULL::VARCHAR AS dial_error_kind, 1 AS access_line"
        database.execute(f"COPY (SELECT * REPLACE ({replaced}) FROM old) TO '{path}' (FORMAT parquet)")  # noqa: S608
    found = summary.summarize(run_record.load_record(analysed))

    assert "because the gateway had no port left for another connection to the backend" in found.sentence
    assert [turn.knob for turn in found.turns] == ["gateway.max_idle_conns"]


def test_a_path_of_four_roles_is_drawn_wider_than_the_page(analysed: Path) -> None:
    found = drawings.draw_path(run_record.load_record(analysed))
    describe(analysed, path=["k6", "nginx", "shop", "db"])
    hop = json.loads((analysed / "derived" / "ledger.json").read_text())["hops"][0]
    record = run_record.load_record(analysed)
    record.ledger["hops"] = [hop | {"to": each} for each in ("nginx", "shop", "db")]
    wide = drawings.draw_path(record)

    assert wide.width > found.width
    assert all(one.x + one.width <= other.x for one, other in zip(wide.bands, wide.boxes[1:], strict=True))
    assert wide.boxes[-1].x < wide.width


def second_of(run: RunFolder, role: str, tick: Tick) -> Samples:
    """Another instance of a role, which counts this, with its samples."""
    first, second = f"{role}-1", f"{role}-2"
    run.manifest["instances"][role] = [first, second]
    for of_instance in ("addresses", "sysctls", "listeners", "exits"):
        if first in run.manifest[of_instance]:
            run.manifest[of_instance][second] = run.manifest[of_instance][first]
    run.samples[second] = make_samples(second, tick, "java")
    return run.samples[second]


def waiting(second: float) -> tuple[dict[str, int], int]:
    """One connection waits, or two from the 30th second on."""
    return quiet_tick(second)[0], 2 if second >= 30 else 1


def test_a_late_tick_of_one_instance_is_no_dip_in_the_sum(run: RunFolder) -> None:
    second_of(run, "backend", waiting).lose_ticks(15, 15.3)
    run.samples["backend-1"].lose_ticks(40, 40.2)
    depth = next(each for each in chart_of(read_tables(run), "queue").series if each.name == "backend: waiting")

    first = [(0, 0), (0.1, 2), (21, 1), (42.1, 0)]
    steps = {at_s: value + (2 if at_s >= 20 else 1) for at_s, value in first} | {20: 4}
    assert dict(depth.points) == dict(sorted(steps.items())) | {51.9: 2}


def test_a_late_reading_of_one_instance_is_no_dip_in_the_sum(run: RunFolder) -> None:
    second_of(run, "backend", waiting).lose_readings("sockets", 20, 21)
    held = next(each for each in chart_of(read_tables(run), "sockets").series if each.name == "backend: ESTABLISHED")

    assert [value for _, value in held.points] == [6, 0, 0]
    assert [at_s for at_s, _ in held.points] == sorted({at_s for at_s, _ in held.points})


def test_where_nothing_listens_for_a_while_there_is_no_level(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(20, 30):
        tick["listen"] = []
    found = read_tables(run)
    (queue,) = time_series.queue_levels(found, timelines.duration_s(found))

    assert queue["places"] == [(0, 2), (10, 2), (10, None), (20, 2), (51.9, 2)]
    assert [value for at_s, value in queue["depth"] if 10 <= at_s < 20] == [2, None]


def test_several_queues_have_the_places_of_each_and_one_of_them_may_be_full(run: RunFolder) -> None:
    second_of(run, "backend", quiet_tick)
    found = read_tables(run)
    (queue,) = time_series.queue_levels(found, timelines.duration_s(found))

    assert (queue["queues"], queue["places"][0][1]) == (2, 4)
    assert max(depth for _, depth in queue["depth"]) == 2
    assert [full for _, full in queue["full"]] == [0, 1, 0, 0]
    (chart,) = [chart for chart in timelines.build_charts(found) if chart.id == "queue"]
    assert chart.notes == ["backend: its 2 queues together; one of them may be full while others have room."]


def test_a_worker_with_a_queue_of_its_own_has_a_place_more(run: RunFolder) -> None:
    run.manifest["listeners"]["backend-1"] *= 2
    for tick in run.samples["backend-1"].ticks:
        tick["listen"] = [dict(each) for each in tick["listen"] for _ in range(2)]
    found = read_tables(run)
    (queue,) = time_series.queue_levels(found, timelines.duration_s(found))

    assert (queue["queues"], queue["places"][0][1]) == (2, 4)


def test_time_wait_is_that_of_the_instance_which_has_the_most_of_its_ports(run: RunFolder) -> None:
    def closing(second: float) -> tuple[dict[str, int], int]:
        return quiet_tick(second)[0] | {"sockstat.TCP.tw": 900 if second >= 30 else 100}, 0

    second_of(run, "backend", closing)
    run.samples["backend-1"] = make_samples("backend-1", lambda second: closing(second + 10), "java")
    chart = chart_of(read_tables(run), "time-wait")

    assert next(each for each in chart.series if each.name == "backend: TIME_WAIT").most == 900
    assert chart.notes == ["backend: of its instances the one that has the most at each moment."]


def test_who_is_server_and_client_both_has_its_sockets_told_apart(run: RunFolder) -> None:
    probe = {"state": "ESTABLISHED", "side": "client", "port": 8081, "local": "127.0.0.1", "peer": "127.0.0.1"}
    for reading in run.samples["backend-1"].slow:
        if reading["kind"] == "sockets":
            reading["groups"].append(probe | {"count": 1})

    assert sorted(each.name for each in chart_of(read_tables(run), "sockets").series) == [
        "backend as client: ESTABLISHED",
        "backend as server: ESTABLISHED",
        "k6: ESTABLISHED",
    ]


def test_requests_are_drawn_by_what_became_of_them(run: RunFolder) -> None:
    run.manifest["slow_ms"] = 5000
    chart = chart_of(read_tables(run), "requests")

    assert {each.name: sum(value or 0 for _, value in each.points) for each in chart.series} == {
        "answered well": 1,
        "slow: waited in the accept queue": 2,
        "failed: accept queue full": 100,
    }


def test_each_bar_stands_in_its_own_row_and_the_last_row_may_be_shorter() -> None:
    places = range(13)
    bars = time_series.ChartSeries("answered well", "ok", [(round(0.1 * place, 3), place + 1) for place in places])
    chart = time_series.Chart("requests", "", "", "", "bars", [bars])

    _, rows = time_series.chart_table(chart, 1.25)

    assert rows == [[f"{place / 10:g}", str(place + 1)] for place in places]


def test_a_limit_far_above_is_written_and_not_drawn() -> None:
    chart = time_series.Chart("queue", "", "", "", "lines", [])
    chart.series = [
        time_series.ChartSeries("depth", "role", [(0, 3)]),
        time_series.ChartSeries("limit", "limit", [(0, 4096)]),
    ]

    chart.keep_limits_in_view()

    assert [each.name for each in chart.series] == ["depth"]
    assert chart.notes == ["limit: 4,096, far above the chart. The most that there was: 3."]


def test_many_requests_are_drawn_as_percentiles(run: RunFolder) -> None:
    client = run.clients["k6-1"]
    for number in range(4_000):
        begin_us = at_us(20 + number / 200)
        times = {"time_us": begin_us, "end_us": begin_us + 2_000, "id": 1_000 + number, "dial": 1, "reused": True}
        client.requests.append({**client.requests[0], **times, "connecting_us": 0})
    chart = chart_of(read_tables(run), "times")

    assert chart.kind == "lines"
    assert [each.name for each in chart.series] == ["median", "95th percentile", "longest", "longest for connecting"]
    assert sum(len(each.points) for each in chart.series) < 1_000


def test_a_minute_of_a_thousand_users_stays_far_below_two_megabytes(analysed: Path) -> None:
    """60,000 requests, and counters, levels and readings of which no two are alike."""
    derived = analysed / "derived"
    noise = "(hash(time_us, instance, {0}) % 100000)::BIGINT AS {0}"
    levels = ", ".join(noise.format(name) for name in ("listen_depth", "time_wait", '"Tcp.ActiveOpens"'))
    for name, query in {
        "requests": """SELECT * REPLACE (id + 1000 * number AS id, time_us + 500 * number AS time_us,
            end_us + 500 * number + (hash(number) % 1000000)::BIGINT AS end_us) FROM old, range(583) AS n(number)""",
        "timeline": f"SELECT * REPLACE ({levels}) FROM old",  # noqa: S608  as below
        "readings": "SELECT * REPLACE (hash(time_us, name) % 10000 AS value) FROM old",
    }.items():
        path = derived / f"{name}.parquet"
        with duckdb.connect() as database:
            database.execute(f"CREATE TABLE old AS SELECT * FROM read_parquet('{path}')")  # noqa: S608  our own
            database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")

    assert run_report.write(analysed).stat().st_size < 1_500_000


def test_the_unit_of_a_knob_is_declared_not_guessed_from_its_name() -> None:
    seconds, ms = {"value": 60, "unit": None}, {"value": 60_000, "unit": "ms"}
    assert formatting.format_knob(seconds) == "60"
    assert formatting.format_knob(ms) == "1m"


def test_the_processors_are_divided_among_all_that_had_them_by_their_programs_names(run: RunFolder) -> None:
    record = read(run)
    found = conditions.cpu_shares(record)

    assert found.missing is None
    assert dict(found.rows) == pytest.approx(
        {"k6": 2.5, "backend (java)": 2.5, "the collectors": 0.8, "tcpdump": 0.04, OTHER: 4.16, "idle": 90.0}
    )
    assert sum(share or 0 for _, share in found.rows) == pytest.approx(100)
    # More than all of them leaves nothing for others.
    record.figures["process.k6.cpu_percent.mean"] = 60.0
    assert dict(conditions.cpu_shares(record).rows)[OTHER] == 0


def test_what_one_program_had_is_unknown_without_its_readings_and_then_among_the_others(run: RunFolder) -> None:
    run.samples["k6-1"].lose_readings("processes", 20, 30)
    found = dict(conditions.cpu_shares(read(run)).rows)

    assert (found["k6"], found["the collectors"], found["backend (java)"]) == (None, None, 2.5)
    assert found[OTHER] == pytest.approx(7.46)
    assert '<th scope="row">k6</th><td class="number">unknown</td>' in run_report.render(run.folder)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nodes": {"k6-1": "node-1", "backend-1": "node-1"}}, "the run was on a cluster, and how many processors"),
        ({"host": {}}, "nothing says how busy the processors were under the load"),
        ({"status": "aborted", "reason": "no backend"}, "nothing says how busy the processors were under the load"),
    ],
)
def test_where_nothing_says_it_there_is_the_reason(run: RunFolder, changes: dict[str, object], why: str) -> None:
    run.manifest |= changes
    found = conditions.cpu_shares(read(run))

    assert found.rows == []
    assert (found.missing or "").startswith(why)
    assert f"<p>Not known: {why}" in run_report.render(run.folder)


def test_the_steps_of_a_run_stand_in_its_report_if_its_manifest_has_them(analysed: Path) -> None:
    assert "Where the time of the run went" not in run_report.render(analysed)
    describe(analysed, profile={"prepare": 2250.4, "prepare/start <now>": 1750.0})
    content = run_report.render(analysed)

    assert '<th scope="row">prepare</th><td class="number">2,250</td>' in content
    assert '<th scope="row">\u2003start &lt;now&gt;</th><td class="number">1,750</td>' in content


@pytest.mark.parametrize("steps", [{"prepare": -1}, {"prepare": 1e300}, {"prepare": "1"}, ["prepare"]])
def test_steps_that_no_run_takes_are_no_manifest_s(analysed: Path, steps: object) -> None:
    describe(analysed, profile=steps)
    with pytest.raises(run_report.ReportError, match="profile"):
        run_report.render(analysed)


def test_the_index_lists_runs_that_cannot_be_read_any_further(analysed: Path, tmp_path: Path) -> None:
    run_report.write(analysed)
    results = tmp_path / "results"
    shutil.copytree(analysed, results / "queue" / "20251121T072640Z-default-r01")
    broken = results / "queue" / "20251121T072641Z-default-r01"
    shutil.copytree(analysed, broken)
    (broken / "derived" / "verdict.json").write_text("{")
    (broken / "report.html").unlink()
    raw = results / "queue" / "20251121T072639Z-default-r01"
    shutil.copytree(analysed, raw)
    (raw / "derived" / "verdict.json").unlink()
    unread = {
        "20251121T072642Z-default-r01": "no JSON",
        "20251121T072643Z-default-r01": '{"schema": "connlab.manifest/1"}',
        "20251121T072644Z-<b>": '{"schema": "connlab.manifest/2"}',
    }
    for name, content in unread.items():
        (results / "queue" / name).mkdir()
        (results / "queue" / name / "manifest.json").write_text(content)
    (results / "queue" / "latest").symlink_to("20251121T072640Z-default-r01")

    content = index.write(results).read_text()

    assert "<p>3 runs of 1 scenario." in content
    names = ", ".join(f"queue/{escape(name)}" for name in unread)
    assert f"Not listed, because manifest.json or series.json cannot be read: {names}." in content
    assert sorted(re.findall(r'<tr data-scenario[^>]*data-state="([^"]+)"', content)) == [
        "analyse again", "not analysed", "reproduced",
    ]  # fmt: skip
    assert 'href="queue/20251121T072640Z-default-r01/report.html"' in content


def test_the_index_has_a_series_as_one_entry_with_its_runs_below_and_what_went_wrong_first(tmp_path: Path) -> None:
    results = Results(tmp_path)
    killed = {"status": "failed", "reason": "backend-1 was killed\n" + "its log\n" * 100}
    folder = results.series({"kept": [{}, {}], "closed": [{}, killed]})
    alone = results.run(status="failed", reason="x" * 1_000)
    judge_series(folder)
    (results.root / "series" / "broken").mkdir()
    (results.root / "series" / "broken" / "series.json").write_text("{")

    content = index.write(results.root).read_text()

    assert "4 runs of 2 arms" in content
    assert 'class="series" data-scenario="queue" data-state="inconclusive"' in content
    rows = re.findall(r"<tr (.*?)>", content.partition("<tbody>")[2])
    assert 'data-state="failed"' in next(row for row in rows if "of-series" in row)
    assert ">backend-1 was killed<" in content
    assert "its log" not in content
    assert f">{'x' * 159}…<" in content
    assert alone.name in content
    assert "cannot be read: series/broken." in content
