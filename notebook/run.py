"""A run in a notebook: SQL and charts over its derived files. `make notebook RUN=…` opens a copy of this over a run."""

import marimo

app = marimo.App(width="medium", app_title="connlab: a run")


@app.cell
def _():
    import glob
    import html
    import json
    from pathlib import Path

    import altair as alt
    import duckdb
    import marimo as mo

    # This copy is yours to change: docs/data-format.md says what each column means. It reads the folder of the run that
    # the command names, and executes nothing there.
    folder = Path(mo.cli_args()["run"])
    return alt, duckdb, folder, glob, html, json, mo


@app.cell
def _(duckdb, folder, glob, json):
    manifest = json.loads((folder / "manifest.json").read_text())
    verdict = json.loads((folder / "derived" / "verdict.json").read_text())
    figures = json.loads((folder / "derived" / "figures.json").read_text())["figures"]

    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    # DuckDB takes a path for a pattern, and `column=value` in it for a column.
    files = {name: folder / "derived" / f"{name}.parquet" for name in ("requests", "flows", "timeline", "readings")}
    tables = [name for name, file in files.items() if file.is_file() and not file.is_symlink()]
    for name in tables:
        con.read_parquet(glob.escape(str(files[name])), hive_partitioning=False).create_view(name)

    def rows(query):
        """The rows of a query, each a dict; `$start` is when the load began, in microseconds."""
        found = con.execute(query, {"start": start_us} if "$start" in query else None)
        names = [column[0] for column in found.description]
        return [dict(zip(names, values, strict=True)) for values in found.fetchall()]

    # An aborted run may never have come so far.
    start_us = next((phase["start_us"] for phase in manifest["phases"] if phase["name"] == "measure"), 0)
    return figures, manifest, rows, tables, verdict


@app.cell
def _(html, manifest, mo, verdict):
    signs = {"true": "✓", "false": "✗", "unknown": "?"}
    mo.vstack(
        [
            # The run's own words are untrusted: show them as text.
            mo.Html(f"<h1>{html.escape(manifest.get('title') or manifest['scenario'])}</h1>"),
            mo.Html(
                f"<p><code>{html.escape(manifest['scenario'])}/{html.escape(manifest['run'])}</code>,"
                f" {html.escape(manifest['status'])}. <b>{html.escape(verdict['verdict'])}</b></p>"
            ),
            mo.ui.table(
                [
                    {
                        "": signs[one["status"]],
                        "prediction": one["description"],
                        "measured": ", ".join(f"{name} = {value}" for name, value in one["measured"].items()),
                    }
                    for one in verdict["predictions"]
                ],
                selection=None,
                wrapped_columns=["prediction", "measured"],
                page_size=20,
                label="Predictions",
            ),
        ]
    )
    return


@app.cell
def _(mo, rows, tables):
    mo.stop("requests" not in tables, mo.md("No request is on record."))
    mo.vstack(
        [
            mo.md("## Requests, by what became of them"),
            mo.ui.table(
                rows("""
                SELECT outcome, cause, count(*) AS requests,
                       round(quantile_cont(total_us, 0.5) / 1e3, 1) AS median_ms,
                       round(max(total_us) / 1e3, 1) AS longest_ms,
                       round(avg(dial_duration_us) FILTER (NOT reused) / 1e3, 1) AS connecting_ms_mean
                  FROM requests GROUP BY ALL ORDER BY requests DESC"""),
                selection=None,
            ),
        ]
    )
    return


@app.cell
def _(alt, mo, rows, tables):
    mo.stop("requests" not in tables)
    mo.ui.altair_chart(
        alt.Chart(
            alt.Data(
                values=rows("""
                SELECT (time_us - $start) / 1e6 AS at_s, greatest(total_us / 1e3, 0.01) AS took_ms, outcome,
                       coalesce(cause, '') AS cause, instance || '/' || id AS request
                  FROM requests ORDER BY time_us LIMIT 5000""")
            ),
            title="How long each request took; the first 5,000",
        )
        .mark_point(filled=True)
        .encode(
            x=alt.X("at_s:Q", title="began, s"),
            y=alt.Y("took_ms:Q", title="took, ms").scale(type="log"),
            color="outcome:N",
            shape="outcome:N",
            tooltip=["request:N", "took_ms:Q", "cause:N"],
        )
        .properties(width="container", height=260),
        chart_selection=False,
        legend_selection=False,
    )
    return


@app.cell
def _(alt, mo, rows, tables):
    _queue = (
        rows("""
            SELECT (time_us - $start) / 1e6 AS at_s, instance, listen_depth AS depth, listen_limit AS "limit"
              FROM timeline WHERE listen_depth IS NOT NULL ORDER BY time_us""")
        if "timeline" in tables
        else []
    )
    mo.stop(not _queue, mo.md("No sample of an accept queue is on record."))
    _base = alt.Chart(alt.Data(values=_queue), title="Accept queues against their limits").encode(
        x=alt.X("at_s:Q", title="s"), color="instance:N"
    )
    mo.ui.altair_chart(
        (
            _base.mark_line(interpolate="step-after").encode(y=alt.Y("depth:Q", title="connections waiting"))
            + _base.mark_line(strokeDash=[4, 4]).encode(y="limit:Q")
        ).properties(width="container", height=200),
        chart_selection=False,
        legend_selection=False,
    )
    return


@app.cell
def _(mo, tables):
    question = mo.ui.code_editor(
        value="""-- What did the packets of each request look like? One row for each request and its connection.
SELECT r.instance || '/' || r.id AS request, r.outcome, r.cause, r.total_us / 1e3 AS took_ms,
       f.syn_count, f.syns_lost, f.handshake_us / 1e3 AS handshake_ms, f.closed_by
  FROM requests r LEFT JOIN flows f ON f.observer = r.flow_observer AND f.id = r.flow_id
 ORDER BY r.total_us DESC
 LIMIT 20"""
        if {"requests", "flows"} <= set(tables)
        else "SELECT 'this run has no requests and flows to join' AS note",
        language="sql",
        label="Your own question",
    )
    mo.vstack(
        [
            mo.md("## Ask it"),
            mo.md(f"The tables are {', '.join(f'`{name}`' for name in tables) or 'none'}; times are in µs since 1970."),
            question,
        ]
    )
    return (question,)


@app.cell
def _(mo, question, rows):
    mo.ui.table(rows(question.value), selection=None)
    return


@app.cell
def _(figures, mo):
    mo.vstack(
        [
            mo.md("## Every figure"),
            mo.ui.table(
                [{"figure": name, "value": str(value)} for name, value in figures.items()], selection=None, page_size=15
            ),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
