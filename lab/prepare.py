"""From nothing to servers that are ready, with every setting read back."""

from __future__ import annotations

import re

from lab import compose, facts, readback, subnets
from lab.containers import last_words
from lab.docker import DockerFailed
from lab.errors import BadInput, LabError, Problem
from lab.session import Session
from lab.topology import collector_of
from lab.watch import Watch

_WAIT_S = 300
_SYSCTL_FILE = re.compile(r"/proc/sys/(?P<path>net/[a-z0-9_/-]+): (?P<why>[a-z ]+)")


def start(session: Session, watch: Watch) -> None:
    """Start everything but the load and check that each setting took.

    Raises:
        BadInput: the kernel refuses a sysctl.
        LabError: an image, a container or a setting failed.
    """
    session.manifest.images = facts.images(["collector", *session.effective.scenario.path], facts.build_images)
    file = session.folder / compose.FILE_NAME
    subnet = subnets.free() if session.topology.second_names else subnets.FIRST
    content = compose.run_file(session.effective, session.topology, session.manifest.run, session.places, subnet)
    compose.write_run_file(content, file)
    options = ("--detach", "--wait", "--wait-timeout", str(_WAIT_S), "--no-build", "--pull", "never")
    try:
        compose.compose(file, "up", *options, *compose.services_of(session.topology), timeout_s=_WAIT_S + 30)
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
