"""From nothing to servers that are ready, with every setting read back."""

from __future__ import annotations

import re

from lab.engine.compose import run_file, subnets
from lab.engine.compose.containers import last_words
from lab.engine.compose.docker import DockerFailed
from lab.engine.compose.watch import Watch
from lab.errors import BadInput, LabError, Problem
from lab.run import facts, readback
from lab.run.session import Session
from lab.scenario.topology import collector_of

_WAIT_S = 300
_SYSCTL_FILE = re.compile(r"/proc/sys/(?P<path>net/[a-z0-9_/-]+): (?P<why>[a-z ]+)")


def start(session: Session, watch: Watch) -> None:
    """Start everything but the load and check that each setting took.

    Raises:
        BadInput: the kernel refuses a sysctl.
        LabError: an image, a container or a setting failed.
    """
    session.manifest.images = facts.images(["collector", *session.effective.scenario.path], facts.build_images)
    file = session.folder / run_file.FILE_NAME
    subnet = subnets.free() if session.topology.second_names else subnets.FIRST
    content = run_file.run_file(session.effective, session.topology, session.manifest.run, session.places, subnet)
    run_file.write_run_file(content, file)
    options = ("--detach", "--wait", "--wait-timeout", str(_WAIT_S), "--no-build", "--pull", "never")
    try:
        run_file.compose(file, "up", *options, *run_file.services_of(session.topology), timeout_s=_WAIT_S + 30)
    except DockerFailed as error:
        raise _explained(error, session, watch) from None
    readback.read_back(session.effective, session.topology, session.manifest, session.places)
    session.save()


def _explained(error: DockerFailed, session: Session, watch: Watch) -> BadInput | LabError:
    """Say what lies behind Compose's failure: a sysctl that the kernel refused, or a container that ended."""
    refused = _SYSCTL_FILE.search(error.stderr)
    if refused:
        name = refused["path"].replace("/", ".")
        knobs = [knob for knob in session.effective.asked() if knob.startswith("kernel.") and knob.endswith(f".{name}")]
        where = session.effective.where_knob(knobs[0]) if knobs else None
        return BadInput(Problem(f"the kernel refuses {name} in a role's namespace: {refused['why'].strip()}", where))
    for instance in session.topology.all:
        for service in (instance, collector_of(instance)):
            ended = watch.ended(service)
            if ended:
                return LabError(f"{ended} during its start:{last_words(service)}")
    return error
