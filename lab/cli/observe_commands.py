"""The command that watches what already runs."""

from __future__ import annotations

from typing import Annotated

import typer

from lab import terminal
from lab.cli.end import end_observed
from lab.cli.options import CheckOption, ContextOption, JsonOption, RegistryOption
from lab.cli.start import command_line
from lab.errors import BadInput, Problem

app = typer.Typer()


@app.command()
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
    connect_timeout: Annotated[
        str | None, typer.Option(help="How long the clients wait for a connection, if you know it.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="FILE", help="A role.yaml of the program that is observed.")
    ] = None,
    host: Annotated[bool, typer.Option("--host", help="Allow a target in the host's own namespaces.")] = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Watch a container, a Compose project, a process or a pod that already runs; it is not changed.

    The exit code is 0 if the whole time was observed, and 3 if a target ended before.
    """
    from lab.engines.selection import select_engine, selected_engine
    from lab.observe import observing
    from lab.observe.targets import TargetNames, find_targets, parse_options, parse_pod, role_path

    elsewhere = pod is not None
    if pod is not None:
        pod = parse_pod(pod, containers or (), {"--compose": compose, "--pid": pid, "--peer-container": peers})
        containers = None
        select_engine("kubernetes", context=context, registry=registry)
    elif context or registry:
        raise BadInput(Problem("--context and --registry are of a pod's cluster", way_on="name the pod by --pod"))
    named = TargetNames(containers or (), compose, pid, pod, peers or (), role_path(role), host)
    options = parse_options(
        duration, capture, capture_max_mb, interface, connect_timeout, host=host, elsewhere=elsewhere
    )
    engine = selected_engine()
    targets = find_targets(named, engine.sidecars())
    if check:
        raise typer.Exit
    for line in observing.announce(targets, options):
        terminal.stderr().print(line, soft_wrap=True)
    folder = observing.observe(targets, options, engine, command_line())
    end_observed(folder, as_json=as_json)
