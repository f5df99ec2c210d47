"""Tells a Prometheus where the collectors of the run at work serve their figures (`--metrics`).

The file is of the form that `file_sd_configs` reads. It has one place for all runs, because one runs at a time: a
Prometheus that was told of it once finds every run, and has no target left when there is none.
"""

import contextlib
import json
from ipaddress import IPv6Address, ip_address
from pathlib import Path

from analysis import output
from lab import paths
from lab.errors import LabError
from lab.runs.run_context import RunContext

FILE_NAME = "metrics-targets.json"


def file() -> Path:
    """Return where the file lies."""
    return paths.RESULTS / FILE_NAME


def publish_targets(context: RunContext) -> str | None:
    """Write the targets of a run, and return the line that says where they are; None if the run serves no metrics.

    Raises:
        LabError: the file cannot be written.
    """
    port, topology = context.engine.metrics, context.topology
    if port is None:
        return None
    if not context.engine.on_this_machine:
        # The cluster finds its pods itself.
        return f"metrics: port {port} of each pod with the label connlab.run={context.manifest.run}"
    addresses = {one: _at(context.manifest.addresses[one][0], port) for one in topology.all}
    groups = [
        {
            "targets": [address],
            "labels": {"run": context.manifest.run, "role": topology.role_of(one), "instance": one},
        }
        for one, address in addresses.items()
    ]
    try:
        output.write(file(), json.dumps(groups, indent=2) + "\n")
    except OSError as error:
        hint = f"see that {paths.shown(paths.RESULTS)} is writable"
        raise LabError(f"{file()}: {error.strerror}", hint=hint) from None
    named = ", ".join(f"http://{address}/metrics ({one})" for one, address in addresses.items())
    return f"metrics: {named}; a Prometheus on this machine finds them by {paths.shown(file())}"


def withdraw_targets() -> None:
    """Leave no target in the file, if there is one: what answers at these addresses next is another run's."""
    with contextlib.suppress(OSError):
        if file().is_file():
            output.write(file(), "[]\n")


def _at(address: str, port: int) -> str:
    return f"[{address}]:{port}" if isinstance(ip_address(address), IPv6Address) else f"{address}:{port}"
