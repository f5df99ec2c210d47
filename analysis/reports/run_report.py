"""The report of a run: one HTML page in its folder, made from manifest.json and derived/ alone."""

from pathlib import Path

from analysis import formatting
from analysis.diagnosis import causes
from analysis.formatting import format_count, format_ms
from analysis.output import write as write_file
from analysis.reports import (
    chart_series,
    conditions,
    drawings,
    links_and_shutdowns,
    observed_charts,
    rendering,
    run_charts,
    summary,
)
from analysis.reports.run_record import Record, load_manifest, load_record
from analysis.verdicts import derived, guesses
from analysis.verdicts.connections_file import Connections
from analysis.verdicts.derived import DerivedError
from formats.manifest import Manifest

FILE = Path("report.html")


def write(run_dir: Path) -> Path:
    """Write the report into a run's folder, beside manifest.json and derived/; return the page.

    Raises:
        DerivedError: the folder is not that of a run, or was not analysed by this version.
        OSError: the page cannot be written.
    """
    path = run_dir / FILE
    write_file(path, render(run_dir))
    return path


def render(run_dir: Path) -> str:
    """Return a run's report.

    Raises:
        DerivedError: as `write`.
    """
    content = load_manifest(run_dir)
    if content.observed is None:
        return render_run(load_record(run_dir))
    return render_observation(run_dir, content)


def render_run(record: Record) -> str:
    """Return the content of report.html.

    Raises:
        DerivedError: the manifest has lost what the derived files are about.
    """
    if record.start_us is None and record.ledger["requests"] is not None:
        raise DerivedError("manifest.json has no phase 'measure', whose requests were derived", record.folder)
    charts = run_charts.build_charts(record)
    return rendering.render(
        "report",
        {
            "charts": [chart.drawn() for chart in charts if chart.missing is None],
            "phases": run_charts.phase_spans(record),
            "queues": chart_series.queue_levels(record, run_charts.duration_s(record)),
        },
        {
            "run": record,
            "summary": summary.summarize(record),
            "guesses": guesses.score_guesses(
                record.manifest.guesses, record.verdict, {"figures": record.figures, "why": record.why}
            ),
            "health": summary.instrument_rows(record),
            "charts": charts,
            "path": drawings.draw_path(record),
            "path_size": drawings.PATH_GEOMETRY,
            "ladders": drawings.draw_ladders(record),
            "size": drawings.LADDER_GEOMETRY,
            "endings": links_and_shutdowns.ending_rows(record),
            "links": links_and_shutdowns.link_rows(record),
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
        styles=("report",),
        scripts=("timeline", "report", "player"),
    )


def render_observation(folder: Path, recorded: Manifest) -> str:
    """Return the content of report.html; raises DerivedError if the run was not analysed by this version."""
    account = derived.read(folder, Connections)
    found = [
        (count, server.server, causes.cause_named(name))
        for target in account.targets
        for server in target.servers
        for name, count in server.causes.items()
    ]
    charts = observed_charts.build_charts(folder, account)
    rows = observed_charts.build_waterfall(folder, account)
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
        styles=("report",),
        scripts=("timeline", "report", "waterfall"),
    )
