"""The report of a run: one HTML page in its folder, made from manifest.json and derived/ alone."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from analysis import formatting
from analysis.database import over_files
from analysis.diagnosis import causes
from analysis.evidence.rawfiles import descriptor_path
from analysis.formatting import format_count, format_ms
from analysis.output import write as write_file
from analysis.reports import conditions, drawings, rendering, summary, time_series, timelines, waterfall
from analysis.reports.run_record import Record, ReportError, load_manifest_json, load_record
from analysis.reports.time_series import Chart, chart_table
from analysis.verdicts import connections_file, derived, guesses
from analysis.verdicts.connections_file import QUEUES, Connections
from analysis.verdicts.derived import DerivedError
from formats.safe_files import open_within

__all__ = ["FILE", "ReportError", "render", "write"]

FILE = Path("report.html")


def write(run_dir: Path) -> Path:
    """Write the report into a run's folder, beside manifest.json and derived/; return the page.

    Raises:
        ReportError: the folder is not that of a run, or was not analysed by this version.
        OSError: the page cannot be written.
    """
    path = run_dir / FILE
    write_file(path, render(run_dir))
    return path


def render(run_dir: Path) -> str:
    """Return a run's report.

    Raises:
        ReportError: as `write`.
    """
    content = load_manifest_json(run_dir)
    if content.get("observed") is None:
        return render_run(load_record(run_dir))
    try:
        return render_observation(run_dir, content)
    except DerivedError as error:
        raise ReportError(error.what, run_dir) from None


def render_run(record: Record) -> str:
    """Return the content of report.html.

    Raises:
        ReportError: the manifest has lost what the derived files are about.
    """
    if record.start_us is None and record.ledger["requests"] is not None:
        raise ReportError("manifest.json has no phase 'measure', whose requests were derived", record.folder)
    charts = timelines.build_charts(record)
    return rendering.render(
        "report",
        {
            "charts": [chart.drawn() for chart in charts if chart.missing is None],
            "phases": timelines.phase_spans(record),
            "queues": time_series.queue_levels(record, timelines.duration_s(record)),
        },
        {
            "run": record,
            "summary": summary.summarize(record),
            "guesses": guesses.score_guesses(
                record.manifest, record.verdict, {"figures": record.figures, "why": record.why}
            ),
            "health": summary.instrument_rows(record),
            "charts": charts,
            "path": drawings.draw_path(record),
            "path_size": drawings.PATH_GEOMETRY,
            "ladders": drawings.draw_ladders(record),
            "size": drawings.LADDER_GEOMETRY,
            "load": conditions.load_rows(record),
            "times": conditions.latency_rows(record),
            "statistics": conditions.STATISTICS,
            "shares": conditions.cpu_shares(record),
            "steps": conditions.step_rows(record),
            "knobs": conditions.knob_rows(record),
            "sysctls": conditions.sysctl_table(record),
            "versions": conditions.version_rows(record),
            "again": conditions.commands(record),
        },
        {
            "number": formatting.format_value,
            "measured": formatting.format_measured,
            "format_ms": format_ms,
            "format_count": format_count,
            "written": guesses.written,
        },
        styles=("theme", "report"),
        scripts=("timeline", "report", "player"),
    )


def render_observation(folder: Path, recorded: dict[str, Any]) -> str:
    """Return the content of report.html; raises DerivedError if the run was not analysed by this version."""
    account = derived.read(folder, connections_file.FILE, Connections)
    found = [
        (count, server.server, causes.cause_named(name))
        for target in account.targets
        for server in target.servers
        for name, count in server.causes.items()
    ]
    charts = list(_queue_charts(folder, account.seconds or 0))
    rows = waterfall.build_waterfall(folder, account)
    return rendering.render(
        "observed",
        {"charts": [chart.drawn() for chart in charts], "phases": [], "waterfall": rows},
        {
            "run": recorded,
            "account": account,
            "causes": sorted(found, key=lambda each: -each[0]),
            "charts": charts,
            "waterfall": rows,
        },
        {"number": formatting.format_value, "format_count": format_count},
        styles=("theme", "report"),
        scripts=("timeline", "report", "waterfall"),
    )


def _queue_charts(folder: Path, lasts_s: float) -> Iterator[Chart]:
    """Yield a chart for each queue that ever held a connection."""
    try:
        file = open_within(folder, QUEUES)
    except OSError:
        return
    with file, over_files() as database:
        try:
            rows = database.execute(
                "SELECT server, step, depth, queue_limit FROM read_parquet($path, hive_partitioning = false)"
                " ORDER BY server, step",
                {"path": descriptor_path(file)},
            ).fetchall()
        except duckdb.Error:
            raise derived.DerivedError(f"{folder / QUEUES}: damaged", folder) from None
    width_s = lasts_s / connections_file.STEPS
    for number, (server, found) in enumerate(groupby(rows, key=itemgetter(0)), start=1):
        steps = [(round(step * width_s, 3), depth, limit) for _, step, depth, limit in found]
        says = f"The most connections in the queue in each of {len(steps)} equal steps; the limit is"
        limit = formatting.format_number(max(limit for *_, limit in steps))
        chart = Chart(f"queue-{number}", f"Accept queue of {server}", f"{says} {limit}.", "connections", "lines")
        chart.add("in the queue", "role", [(at_s, depth) for at_s, depth, _ in steps])
        chart.add("limit", "limit", [(at_s, limit) for at_s, _, limit in steps])
        chart.keep_limits_in_view()
        chart.table = chart_table(chart, lasts_s)
        yield chart
