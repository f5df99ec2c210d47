"""From nothing to servers that are ready, with every setting read back."""

from __future__ import annotations

from lab.engines.protocol import Parts, Watch
from lab.run import readback
from lab.run.session import Session


def start(session: Session, watch: Watch) -> None:
    """Start everything but the load and check that each setting took.

    Raises:
        BadInput: the kernel refuses a sysctl.
        LabError: an image, an instance or a setting failed.
    """
    engine, effective, topology = session.engine, session.effective, session.topology
    own = effective.registry.services
    step = session.steps.step
    with step("images"):
        session.manifest.images = {
            **engine.images(["collector", *(role for role in effective.scenario.path if role not in own)]),
            **engine.service_images(effective),
        }
    with step("start"):
        engine.start(Parts(effective, topology, session.manifest.run, session.places), watch)
        session.manifest.nodes = dict(engine.machines(topology))
    with step("read back"):
        readback.read_back(engine, effective, topology, session.manifest, session.places)
        session.save()
