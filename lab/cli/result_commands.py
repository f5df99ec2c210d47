"""Commands that read finished runs: derive, show, explain, compare, judge, advise."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lab import terminal
from lab.cli.execution import end_judged, end_observed, say_next
from lab.cli.groups import COMPARE, OBSERVE, READ, examples
from lab.cli.options import JsonOption, NewestRunArgument, RunArgument, complete_run
from lab.errors import BadInput, LabError, Problem

app = typer.Typer()


@app.command(
    rich_help_panel=READ,
    epilog=examples("analyse accept-queue-overflow", "analyse ./results/accept-queue-overflow/latest"),
)
def analyse(
    run: RunArgument,
    *,
    as_json: JsonOption = False,
) -> None:
    """Derive everything again from a run's raw files.

    The exit code is the verdict's.
    """
    from lab.console import run_lookup
    from lab.observe import printing
    from lab.outcomes import run_and_judge
    from lab.runs import run_results

    folder = run_lookup.find_run(run)
    verdict = run_results.analyse_run(folder)
    if printing.was_observed(folder):
        end_observed(folder, as_json=as_json)
    end_judged(run_and_judge.Outcome(folder, verdict), as_json=as_json)


@app.command(rich_help_panel=READ, epilog=examples("report accept-queue-overflow"))
def report(
    run: RunArgument,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a run's report again, and the index of all runs."""
    from lab import paths
    from lab.console import next_steps, run_lookup
    from lab.runs import run_results

    folder = run_lookup.find_run(run)
    try:
        page = run_results.ensure_report(folder)
    except OSError as error:
        if error.errno not in run_results.CLOSED:
            raise
        hint = f"a report that is only looked at needs no such folder: {next_steps.opened(folder)}"
        raise LabError(f"{error.filename or paths.shown(folder)}: {error.strerror}", hint=hint) from None
    if as_json:
        terminal.result_json({"report": str(page)})
    else:
        terminal.result([paths.shown(page)])
        say_next(f"next, in the browser: {next_steps.opened(folder)}")


@app.command("open", rich_help_panel=READ, epilog=examples("open", "open accept-queue-overflow"))
def open_report(
    run: NewestRunArgument = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Open a run's report in the browser.

    On a machine without a browser, print where the report lies.
    """
    from lab import paths
    from lab.console import next_steps, run_lookup
    from lab.observe import printing
    from lab.runs import run_results

    folder = run_lookup.find_run(run) if run else run_results.newest_run()
    page = run_results.report_to_open(folder)
    opened = run_results.open_in_browser(page)
    if as_json:
        terminal.result_json({"report": str(page), "opened": opened})
    else:
        terminal.result([paths.shown(page) if opened else f"no browser found; open {page}"])
        if not printing.was_observed(folder):
            say_next(next_steps.after_run(folder))


@app.command(rich_help_panel=READ, epilog=examples("notebook", "notebook accept-queue-overflow"))
def notebook(
    run: NewestRunArgument = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Open a notebook over a run's files, with SQL and charts.

    It is a new copy of the lab's own, and yours to change.
    """
    from lab import paths
    from lab.cli import notebook as notebooks
    from lab.console import run_lookup
    from lab.runs import run_results

    folder = run_lookup.find_run(run) if run else run_results.newest_run()
    found = notebooks.copy_for(folder)
    notebooks.install()
    if as_json:
        terminal.result_json({"notebook": str(found), "command": notebooks.command(found, folder)})
    else:
        terminal.result([f"{paths.shown(found)}, over {paths.shown(folder)}; Ctrl-C ends it"])
        sys.stdout.flush()
        notebooks.open_(found, folder)


@app.command(
    rich_help_panel=READ,
    epilog=examples("explain accept-queue-overflow --top 5", "explain accept-queue-overflow --request k6-1/17"),
)
def explain(
    run: RunArgument,
    *,
    request: Annotated[str | None, typer.Option(help="The request's name, such as k6-1/17.")] = None,
    top: Annotated[
        int | None, typer.Option(min=1, max=100, help="In place of a name: how many of the failed and slowest.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a request: what every observer saw, in order of time.

    It also says how to see the request's packets.
    """
    from analysis.evidence.rawrun import RawRun
    from analysis.reports.stories.explanation import UnknownRequest, explain_request, explain_worst, format_explanation
    from formats.manifest import ManifestError, load_manifest
    from lab.console import next_steps, run_lookup

    if (request is None) == (top is None):
        hint = "give REQUEST=k6-1/17 (--request) or TOP=5 (--top)"
        raise BadInput(Problem("an explanation takes either a request or how many of the worst", hint=hint))
    folder = run_lookup.find_run(run)
    try:
        raw = RawRun(folder, load_manifest(folder))
        explanation = explain_worst(raw, top or 0) if request is None else explain_request(raw, request)
    except (ManifestError, UnknownRequest) as error:
        raise BadInput(Problem(str(error))) from None
    if as_json:
        terminal.result_json(asdict(explanation))
    else:
        terminal.result(format_explanation(explanation))
        say_next(next_steps.after_explanation(folder))


@app.command(
    rich_help_panel=COMPARE,
    epilog=examples("compare --a accept-queue-overflow --b accept-queue-small", "compare --matrix long-polling-border"),
)
def compare(
    *,
    a: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN",
            help="A run to compare with, or <series>:<cell>; repeatable: its repetitions.",
            autocompletion=complete_run,
        ),
    ] = None,
    b: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="A run that is compared; repeatable.", autocompletion=complete_run),
    ] = None,
    matrix: Annotated[
        str | None,
        typer.Option(help="In place of runs: a matrix, or a scenario with arms; its newest series is compared."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare runs, groups of runs, or the cells of a series.

    What differs in settings, counters, packets and users.
    """
    from lab.cli import comparisons

    if matrix is not None and (a or b):
        raise BadInput(Problem("a comparison takes runs as A and B, or a MATRIX, not both"))
    compared = comparisons.compare_runs(a or [], b or []) if matrix is None else comparisons.compare_series(matrix)
    if as_json:
        terminal.result_json({**json.loads(compared.comparison.to_json()), "folder": str(compared.folder)})
    else:
        comparisons.print_answer(terminal.stdout(), compared)
        say_next(comparisons.after_comparison(compared, b or []))


@app.command(
    rich_help_panel=COMPARE,
    epilog=examples("gate --a before/ --b after/ --figure client.latency_ms.p99 --worse-than 5%"),
)
def gate(
    *,
    a: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="The baseline: a run, a folder of runs, or <series>:<cell>; repeatable."),
    ] = None,
    b: Annotated[
        list[str] | None, typer.Option(metavar="RUN", help="The runs to judge, as --a names them; repeatable.")
    ] = None,
    figure: Annotated[str, typer.Option(help="A figure, such as client.latency_ms.p99.")],
    worse_than: Annotated[str, typer.Option(help="How much worse it may be: 5% of the baseline, or 2.5 of its unit.")],
    better: Annotated[
        str | None, typer.Option(metavar="more|less", help="Which way is better, where the name does not tell it.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="A file for JUnit XML.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge whether a figure became worse.

    Exit code 0: no. 1: yes. 3: the runs cannot tell.
    """
    from lab.cli import gates

    judged = gates.judge(a or [], b or [], figure, worse_than, better)
    if junit is not None:
        gates.write_junit(judged, junit)
    if as_json:
        terminal.result_json(gates.as_json(judged))
    else:
        terminal.result([gates.format_line(judged)])
        for remark in gates.list_remarks(judged):
            terminal.problem(remark)
        say_next(gates.next_step(judged))
    raise typer.Exit(judged.exit_code)


@app.command(rich_help_panel=READ, epilog=examples("advise accept-queue-overflow"))
def advise(
    run: RunArgument,
    *,
    as_json: JsonOption = False,
) -> None:
    """Name the setting to change, its value and how to test it.

    The main cause of the run's failures decides which setting it is.
    """
    from analysis.formatting import format_count
    from lab.console import advice, next_steps, run_lookup
    from lab.observe import printing

    folder = run_lookup.find_run(run)
    if printing.was_observed(folder):
        account = printing.read_connections(folder)
        if as_json:
            terminal.result_json(
                {
                    "run": run_lookup.run_name(folder),
                    "advice": account["advice"],
                    "says": list(printing.advice_lines(account)),
                }
            )
        else:
            terminal.result(printing.advice_lines(account))
        return
    found = advice.advise_on_run(folder)
    if as_json:
        terminal.result_json({"run": run_lookup.run_name(folder), **asdict(found)})
        return
    terminal.result(run_lookup.describe_run(folder))
    counted = f" ({format_count(found.count, found.counted)})" if found.cause else ""
    terminal.stdout().print(f"main cause: {found.cause or 'none'}{counted}")
    if found.knob:
        terminal.stdout().print(f"set {found.knob} = {found.value}: {found.why}", soft_wrap=True)
        for value, effect in found.choices.items():
            terminal.stdout().print(f"    {value}: {effect}", soft_wrap=True)
    else:
        terminal.stdout().print(found.why, soft_wrap=True)
    say_next(next_steps.after_advice(folder, found.command))


@app.command(
    rich_help_panel=OBSERVE,
    epilog=examples("estimate --overflows 48,211 --connect-timeout 5s", "estimate --run accept-queue-overflow"),
)
def estimate(
    *,
    overflows: Annotated[str | None, typer.Option(help="The difference of TcpExt.ListenOverflows.")] = None,
    connect_timeout: Annotated[str | None, typer.Option(help="The clients' connect timeout, such as 5s.")] = None,
    sysctl: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A sysctl of the clients, such as net.ipv4.tcp_syn_retries=6; repeatable."
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="In place of a counter: a run, whose counter and failed dials are compared.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate how many connections failed behind a counter.

    The counter is TcpExt.ListenOverflows. With a run, check the estimate against it.
    """
    from lab.cli import estimates
    from lab.console import next_steps, run_lookup

    if run is not None and (overflows, connect_timeout, sysctl) == (None, None, None):
        folder = run_lookup.find_run(run)
        check = estimates.check_run(folder)
        if as_json:
            terminal.result_json({"run": run_lookup.run_name(folder), **estimates.check_as_json(check)})
        else:
            terminal.result(
                [*run_lookup.describe_run(folder), "", *estimates.format_check(check), next_steps.after_run(folder)]
            )
        raise typer.Exit(estimates.exit_code(check))
    if run is not None or overflows is None or connect_timeout is None:
        raise BadInput(Problem("an estimate takes both --overflows and --connect-timeout, or --run alone"))
    estimated = estimates.estimate_from_counter(overflows, connect_timeout, sysctl or [])
    if as_json:
        terminal.result_json(estimates.as_json(estimated))
    else:
        terminal.result([*estimates.format_estimate(estimated), next_steps.after_estimate()])
