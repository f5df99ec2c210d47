"""A load generator of any kind, in a container of its own: wrk, ab, hey and JMeter by name, any other by its image.

It is a service of the scenario's own at the beginning of the path. The lab starts its container when the measurement
begins, and knows of its load what packets and kernels tell, and what results it writes.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from formats.role import Role
from lab.scenarios.model import GENERATORS, OwnLoad
from lab.scenarios.services import Service

# Where the generator finds the scenario's folder; it begins there.
FOLDER = "/load"
# What the lab's own image has. The first words of a command: JMeter without a window, its log where it may write.
IMAGE = "connlab/generators"
_COMMANDS: Mapping[str, list[str]] = {
    "wrk": ["wrk"],
    "ab": ["ab"],
    "hey": ["hey"],
    "jmeter": ["jmeter", "-n", "-j", "/raw/jmeter.log"],
}
# The options by which one sends a request before the answer to the last, or speaks HTTP/2 without TLS.
_MAY_PIPELINE: Mapping[str, set[str]] = {"wrk": {"-s", "--script"}, "vegeta": {"-h2c", "--h2c"}}
# The name of one that only an image names.
ANY = "generator"


def name_of(load: OwnLoad | None) -> str | None:
    """Return the generator's name on the path; None where k6 makes the load."""
    if load is None or not load.is_own or load.script is not None:
        return None
    return next((tool for tool in GENERATORS if getattr(load, tool) is not None), ANY)


def service_of(load: OwnLoad) -> Service:
    """Return the service that a generator is."""
    name = name_of(load)
    words = getattr(load, name) if name in GENERATORS else None
    fields: dict[str, Any] = {
        "image": load.image or IMAGE,
        # Another image may start the program by itself, or not.
        "entrypoint": None if words is None else _COMMANDS.get(str(name), [str(name)]),
        "command": load.command if words is None else shlex.split(words),
        "environment": {"HOME": "/tmp", **load.environment},  # noqa: S108 # the container's own
    }
    return Service.model_validate({name: value for name, value in fields.items() if value is not None})


def role_of(name: str, service: Service, load: OwnLoad) -> Role:
    """Return the declaration of a generator's role: a client, of which nothing is asked before it runs."""
    declared = service.role(name) | {"kind": "client", "description": f"The load generator {name}.", "ready": None}
    if name != ANY and not _MAY_PIPELINE.get(name, set()) & set(shlex.split(getattr(load, name))):
        declared["one_at_a_time"] = True
    if load.results is not None:
        declared["logs"] = {load.results.file: load.results.format}
    declared["knobs"]["instances"] |= {"doc": f"How many instances of {name} there are; each runs the whole command"}
    return Role.model_validate({key: value for key, value in declared.items() if value is not None})
