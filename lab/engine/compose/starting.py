"""From nothing to containers that are ready, and what lies behind it if they are not."""

from __future__ import annotations

import re

from lab.engine.compose import run_file, subnets
from lab.engine.compose.containers import last_words
from lab.engine.compose.docker import DockerFailed
from lab.engine.protocol import Parts, Watch
from lab.errors import BadInput, LabError, Problem
from lab.scenario.topology import collector_of

_WAIT_S = 300
_SYSCTL_FILE = re.compile(r"/proc/sys/(?P<path>net/[a-z0-9_/-]+): (?P<why>[a-z ]+)")


def start(parts: Parts, watch: Watch) -> None:
    """Start everything and wait for it.

    Raises:
        BadInput: the kernel refuses a sysctl.
        LabError: a container failed.
    """
    file = parts.places.run_dir / run_file.FILE_NAME
    subnet = subnets.free() if parts.topology.second_names else subnets.FIRST
    content = run_file.run_file(parts.effective, parts.topology, parts.run_id, parts.places, subnet)
    run_file.write_run_file(content, file)
    options = ("--detach", "--wait", "--wait-timeout", str(_WAIT_S), "--no-build", "--pull", "never")
    try:
        run_file.compose(file, "up", *options, *run_file.services_of(parts.topology), timeout_s=_WAIT_S + 30)
    except DockerFailed as error:
        raise _explained(error, parts, watch) from None


def _explained(error: DockerFailed, parts: Parts, watch: Watch) -> BadInput | LabError:
    """Say what lies behind Compose's failure: a sysctl that the kernel refused, or a container that ended."""
    refused = _SYSCTL_FILE.search(error.stderr)
    if refused:
        name = refused["path"].replace("/", ".")
        knobs = [knob for knob in parts.effective.asked() if knob.startswith("kernel.") and knob.endswith(f".{name}")]
        where = parts.effective.where_knob(knobs[0]) if knobs else None
        return BadInput(Problem(f"the kernel refuses {name} in a role's namespace: {refused['why'].strip()}", where))
    for instance in parts.topology.all:
        for service in (instance, collector_of(instance)):
            ended = watch.ended(service)
            if ended:
                return LabError(f"{ended} during its start:{last_words(service)}")
    return error
