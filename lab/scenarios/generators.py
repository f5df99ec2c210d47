"""A load generator of any kind, in a container of its own: wrk, ab, hey and JMeter by name, any other by its image.

It is a service of the scenario's own at the beginning of the path. The lab starts its container when the measurement
begins, and knows of its load what packets and kernels tell, and what results it writes.
"""

import shlex
from difflib import get_close_matches
from typing import Any

from formats.role import Role
from lab.scenarios.generator_programs import PROGRAMS
from lab.scenarios.model import OwnLoad
from lab.scenarios.services import Service

# Where the generator finds the scenario's folder; it begins there.
FOLDER = "/load"
# What the lab's own image has.
IMAGE = "connlab/generators"
# The name of one that only an image names.
ANY = "generator"


def name_of(load: OwnLoad | None) -> str | None:
    """Return the generator's name on the path; None where k6 makes the load."""
    if load is None or not load.is_own or load.script is not None:
        return None
    return next((tool for tool in PROGRAMS if getattr(load, tool) is not None), ANY)


def hint_for(key: str, valid: list[str]) -> str | None:
    """Return how to name a program that the lab has no key for; None for a key that is one of the `valid` misspelt."""
    if get_close_matches(key, valid, n=1, cutoff=0.75):
        return None
    *others, last = PROGRAMS
    known = f"{', '.join(others)} and {last}"
    return (
        f"the lab knows {known} by name; for another program write load: {{image: …, command: […]}} and path:"
        f" [{ANY}, …], for a k6 script load: {{script: …}}"
    )


def service_of(load: OwnLoad) -> Service:
    """Return the service that a generator is."""
    name = name_of(load)
    words = words_of(load, str(name)) if name in PROGRAMS else None
    fields: dict[str, Any] = {
        "image": load.image or IMAGE,
        # Another image may start the program by itself, or not.
        "entrypoint": None if words is None else [name, *_added(str(name), words)],
        "command": load.command if words is None else words,
        "environment": {"HOME": "/tmp", **load.environment},  # noqa: S108 # the container's own
    }
    return Service.model_validate({name: value for name, value in fields.items() if value is not None})


def words_of(load: OwnLoad, name: str) -> list[str]:
    """Return a named generator's arguments, without the program's name that a pasted command line begins with."""
    words = shlex.split(getattr(load, name))
    return words[1:] if words[:1] == [name] else words


def _added(name: str, words: list[str]) -> list[str]:
    """Return the options that the lab adds to a user's: JMeter refuses one that stands there twice."""
    given = {word.partition("=")[0] for word in words}
    return [word for options, added in PROGRAMS[name].adds.items() if not given & {*options} for word in added]


def role_of(name: str, service: Service, load: OwnLoad) -> Role:
    """Return the declaration of a generator's role: a client, of which nothing is asked before it runs."""
    declared = service.role(name) | {"kind": "client", "description": f"The load generator {name}.", "ready": None}
    if name in PROGRAMS and not PROGRAMS[name].pipelines & set(words_of(load, name)):
        declared["one_at_a_time"] = True
    if load.results is not None:
        declared["logs"] = {load.results.file: load.results.format}
    declared["knobs"]["instances"] |= {"doc": f"How many instances of {name} there are; each runs the whole command"}
    return Role.model_validate({key: value for key, value in declared.items() if value is not None})
