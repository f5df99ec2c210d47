"""Commands that run or watch: a scenario, all, a matrix, a search, a system that already runs."""

import time
from pathlib import Path
from typing import Annotated

import typer

from analysis.steps import Steps
from lab import terminal
from lab.cli.execution import (
    command_line,
    end_checked,
    end_observed,
    resolve_asked,
    run_all,
    run_one_or_arms,
    run_series,
    say_next,
)
from lab.cli.groups import OBSERVE, RUN, Checked, RunCommand, examples
from lab.cli.options import (
    ALL,
    DEFAULT_METRICS_PORT,
    ArmOption,
    BeganOption,
    CheckOption,
    ContextOption,
    DryRunOption,
    EngineOption,
    ImagesOption,
    JsonOption,
    MetricsOption,
    MetricsPortOption,
    NamespaceOption,
    NewOption,
    PresetOption,
    ProfileOption,
    RegistryOption,
    RepetitionsOption,
    ScenarioArgument,
    ScenariosArgument,
    SetOption,
    SpreadOption,
    complete_knob,
    complete_matrix,
)
from lab.errors import BadInput, ExitCode, LabError, Problem

app = typer.Typer()


@app.command(
    cls=RunCommand,
    rich_help_panel=RUN,
    epilog=examples(
        "run accept-queue-overflow",
        "run accept-queue-overflow --set backend.accept_count=10",
        "run ./shop                # a scenario of your own",
        "run all                   # the whole catalogue",
    ),
)
def run(
    scenario: ScenariosArgument,
    sets: SetOption = None,
    *,
    preset: PresetOption = None,
    arm: ArmOption = None,
    repetitions: RepetitionsOption = None,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    registry: RegistryOption = None,
    spread: SpreadOption = False,
    metrics: MetricsOption = False,
    metrics_port: MetricsPortOption = None,
    profile: ProfileOption = False,
    began: BeganOption = None,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Run a scenario, or all its arms, and print the verdict.

    Engine and images are made ready first. The exit code is the verdict's.
    """
    from lab.engines.selection import select_engine

    if metrics_port is not None and not metrics:
        raise BadInput(Problem("--metrics-port needs --metrics", hint="add --metrics"))
    port = (metrics_port or DEFAULT_METRICS_PORT) if metrics else None
    select_engine(
        engine,
        context=context,
        namespace=namespace,
        registry=registry,
        spread=spread,
        metrics=port,
    )
    if scenario == ALL:
        of_one = bool(sets or preset or arm or repetitions or dry_run or profile)
        run_all(new=new, check=check, as_json=as_json, of_one=of_one)
    steps = Steps()
    if began is not None:
        steps.ms["set-up"] = round(max(time.time() - began, 0) * 1000, 1)
    with steps.step("resolve"):
        asked = resolve_asked(scenario, sets or [], preset, arm, repetitions)
    run_one_or_arms(*asked, new=new, dry_run=dry_run, check=check, as_json=as_json, profile=steps if profile else None)


@app.command(
    cls=RunCommand,
    rich_help_panel=RUN,
    epilog=examples("matrix", "matrix long-polling-border --dry-run", "matrix long-polling-border --repetitions 3"),
)
def matrix(
    name: Annotated[
        str,
        typer.Argument(
            help="The matrix's name, or its .yaml file; without one they are listed.", autocompletion=complete_matrix
        ),
    ] = "",
    sets: SetOption = None,
    *,
    repetitions: RepetitionsOption = None,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Run every cell of a matrix, or what is left of it.

    The cells are shuffled. The exit code is the series' verdict.
    """
    from lab.console import next_steps
    from lab.series import matrices, printing
    from lab.series import plan as plans
    from lab.series.matrices import matrix_names

    if name:
        planned = plans.set_repetitions(matrices.plan_matrix(name, sets or []), repetitions)
        run_series(planned, new=new, dry_run=dry_run, check=check, as_json=as_json)
    known = [matrices.plan_matrix(one) for one in matrix_names()]
    if check:
        raise Checked(plan.name for plan in known)
    if as_json:
        terminal.result_json([printing.plan_summary(plan) for plan in known])
    else:
        printing.print_plans(terminal.stdout(), known)
        if known:
            say_next(next_steps.after_matrices(known[0].name))


@app.command(
    cls=RunCommand,
    rich_help_panel=RUN,
    epilog=examples(
        "search accept-queue-overflow --knob backend.max_connections --condition 'client.requests.failed == 0'"
    ),
)
def search(
    scenario: ScenarioArgument,
    sets: SetOption = None,
    *,
    knob: Annotated[
        str, typer.Option(help="The knob to vary, such as backend.max_connections.", autocompletion=complete_knob)
    ] = "",
    condition: Annotated[
        str, typer.Option(help="The condition that must hold, such as 'client.requests.failed == 0'.")
    ] = "",
    low: Annotated[str | None, typer.Option("--from", help="The least value; by default half the model's.")] = None,
    high: Annotated[str | None, typer.Option("--to", help="The greatest value; by default twice the model's.")] = None,
    step: Annotated[str | None, typer.Option(help="How close to the border to search; by default 1, or 100ms.")] = None,
    confirm: Annotated[int, typer.Option(help="Runs at each of the two values beside the border.")] = 2,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Find the value of a knob from which on a condition holds.

    The exit code is 3 if there is none, and 4 if runs are missing, so that none was found.
    """
    from formats import series as series_file
    from lab.console import next_steps, run_output
    from lab.engines.selection import selected_engine
    from lab.series import executor, printing, searches

    planned = searches.plan_search(searches.Asked(scenario, knob, condition, low, high, step, confirm), sets or [])
    if check:
        end_checked(one.resolved for one in planned.plan.cells.values())
    folder, series, found = None, None, planned.plan.search
    if dry_run:
        executor.check_plan(planned.plan, selected_engine())
    else:
        folder = executor.run_plan(
            planned.plan, selected_engine(), command_line(), terminal.stderr(), new=new, places=planned.places
        )
        series = series_file.load_series(folder)
        found = series.search
    if found is None:
        raise LabError(f"{folder} is not the folder of a search")
    if series is None or found.outcome == "found":
        code = ExitCode.REPRODUCED
    else:
        code = ExitCode.INCONCLUSIVE if series.status == "complete" else ExitCode.LAB_FAILED
    if as_json:
        status = {"status": series.status, "reason": series.reason} if series else {}
        terminal.result_json({**found.model_dump(), **status, "folder": folder and str(folder), "exit_code": int(code)})
    else:
        printing.print_search(terminal.stdout(), found, series, folder)
        if series is None:
            say_next("next, run it: the same command without DRY=1 (--dry-run)")
        else:
            for line in run_output.search_summary(found, series):
                say_next(line)
            say_next(next_steps.after_search(planned.plan, found))
    raise typer.Exit(code)


@app.command(
    cls=RunCommand,
    rich_help_panel=OBSERVE,
    epilog=examples(
        "observe --container shop --duration 60s",
        "observe --compose acme/web --peer-container acme-proxy-1",
        "observe --pid 4711",
        "observe --pod default/shop-7d4b",
    ),
)
def observe(
    *,
    containers: Annotated[
        list[str] | None,
        typer.Option(
            "--container", metavar="NAME", help="A running container; repeatable. With --pod: one of the pod's."
        ),
    ] = None,
    compose: Annotated[
        str | None, typer.Option(metavar="PROJECT[/SERVICE]", help="All of a Compose project, or one service of it.")
    ] = None,
    pid: Annotated[int | None, typer.Option(min=1, help="A process of this machine.")] = None,
    pod: Annotated[str | None, typer.Option(metavar="NAMESPACE/POD", help="A pod of a Kubernetes cluster.")] = None,
    context: ContextOption = None,
    registry: RegistryOption = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer-container", metavar="NAME", help="A client's container, for the view from there."),
    ] = None,
    duration: Annotated[str, typer.Option(metavar="TIME", help="How long, such as 60s.")] = "60s",
    capture: Annotated[str, typer.Option(metavar="headers|handshakes|off", help="Which packets are kept.")] = "headers",
    capture_max_mb: Annotated[int, typer.Option(min=1, max=1 << 20, help="How large a capture may become, MiB.")] = 256,
    interface: Annotated[
        str | None,
        typer.Option(help="The interface to capture; by default all, and of a host that of its default route."),
    ] = None,
    events: Annotated[
        str, typer.Option(metavar="kernel|off", help="Whether the kernel itself tells of each connection.")
    ] = "off",
    connect_timeout: Annotated[
        str | None, typer.Option(help="How long the clients wait for a connection, if you know it.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="FILE", help="A role.yaml of the program that is observed.")
    ] = None,
    host: Annotated[bool, typer.Option("--host", help="Allow a target in the host's own namespaces.")] = False,
    check: CheckOption = False,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Watch a container, project, process or pod that already runs.

    It is not changed. The exit code is 0 if the whole time was observed, and 3 if a target ended before.
    """
    from lab.engines.selection import select_engine, selected_engine
    from lab.observe import observing
    from lab.observe.options import parse_options, parse_pod
    from lab.observe.targets import TargetNames, find_targets

    elsewhere = pod is not None
    if pod is not None:
        pod = parse_pod(pod, containers or (), {"--compose": compose, "--pid": pid, "--peer-container": peers})
        containers = None
        select_engine("kubernetes", context=context, registry=registry)
    elif context or registry:
        raise BadInput(Problem("--context and --registry need --pod", hint="name the pod by --pod"))
    named = TargetNames(containers or (), compose, pid, pod, peers or (), Path(role) if role else None, host)
    options = parse_options(
        *(duration, capture, capture_max_mb, interface, connect_timeout),
        events=events,
        host=host,
        elsewhere=elsewhere,
    )
    engine = selected_engine()
    targets = find_targets(named, engine.sidecars())
    if check:
        raise Checked(["the targets"])
    for line in observing.announce(targets, options):
        terminal.stderr().print(line, soft_wrap=True)
    folder = observing.observe(targets, options, engine, command_line())
    end_observed(folder, as_json=as_json)


@app.command(
    rich_help_panel=OBSERVE,
    epilog=examples(
        "inspect incident.pcap --nstat before.txt after.txt",
        "inspect incident/                    # a folder with captures, dumps and logs",
        "inspect client.pcap server.pcap --server 10.0.0.7:443",
        "inspect incident.pcap --ss ss.txt --log haproxy=haproxy.log",
    ),
)
def inspect(
    files: Annotated[
        list[str] | None, typer.Argument(help="Captures, dumps, logs, or folders of them, told apart by content.")
    ] = None,
    *,
    nstat: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="BEFORE AFTER", help="Counters before and after: nstat, netstat -s, /proc/net/netstat."),
    ] = None,
    sockets: Annotated[
        list[str] | None, typer.Option("--ss", metavar="FILE", help="Output of ss or netstat -an; repeatable.")
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option("--log", metavar="KIND=FILE", help="A log: nginx-access, nginx-error or haproxy; repeatable."),
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="ADDRESS:PORT", help="Count only connections to this server.")
    ] = None,
    connect_timeout: Annotated[
        str | None, typer.Option(help="How long the clients wait for a connection, if you know it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read captures, dumps and logs from production.

    Gives what observe gives: what became of each connection, and why. No engine is needed.
    """
    from lab.observe.inspect import inspecting
    from lab.observe.inspect.folder import InspectOptions
    from lab.observe.options import parse_connect_timeout

    options = InspectOptions(
        inspecting.parse_server(server) if server else None,
        parse_connect_timeout(connect_timeout) if connect_timeout else None,
    )
    dumps = [Path(each) for each in [*(nstat or ()), *(sockets or ())]]
    named = [Path(each) for each in files or ()]
    if not named and not dumps and not logs:
        raise BadInput(
            Problem("nothing to inspect is named", hint="give a capture, a dump, a log, or a folder of them")
        )
    folder, passed = inspecting.inspect(named, dumps, inspecting.parse_logs(logs or ()), options, command_line())
    for name in passed:
        terminal.problem(f"passed over: {name}")
    end_observed(folder, as_json=as_json)
