"""The report as one HTML page."""

from __future__ import annotations

from analysis.formatting import counted, spoken
from analysis.reports import (
    conditions,
    labels,
    ladder_drawing,
    path_drawing,
    profile,
    queues,
    rendering,
    summary,
    timelines,
)
from analysis.reports.run_record import Record, ReportError
from analysis.verdicts import guesses


def html(record: Record, linked: str | None = None) -> str:
    """The content of report.html; `linked` is as `rendering.render` takes it.

    Raises:
        ReportError: the manifest has lost what the derived files are about.
    """
    if record.start_us is None and record.ledger["requests"] is not None:
        raise ReportError("manifest.json has no phase 'measure', whose requests were derived", record.folder)
    charts = timelines.of_run(record)
    return rendering.render(
        "report",
        {
            "charts": [chart.drawn() for chart in charts if chart.missing is None],
            "phases": timelines.phases(record),
            "queues": queues.of_run(record, timelines.lasts_s(record)),
        },
        {
            "run": record,
            "summary": summary.of_run(record),
            "guesses": guesses.of_run(record.manifest, record.verdict, {"figures": record.figures, "why": record.why}),
            "health": summary.health(record),
            "charts": charts,
            "path": path_drawing.of_run(record),
            "path_size": path_drawing.geometry(),
            "ladders": ladder_drawing.of_run(record),
            "size": ladder_drawing.geometry(),
            "load": conditions.load(record),
            "times": conditions.times(record),
            "statistics": conditions.STATISTICS,
            "shares": profile.shares(record),
            "steps": profile.steps(record),
            "knobs": conditions.knobs(record),
            "sysctls": conditions.sysctls(record),
            "versions": conditions.versions(record),
            "again": conditions.commands(record),
        },
        {
            "number": labels.number,
            "measured": labels.measured,
            "spoken": spoken,
            "counted": counted,
            "written": guesses.written,
        },
        styles=("theme", "report"),
        scripts=("timeline", "report", "player"),
        linked=linked,
    )
