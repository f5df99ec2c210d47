"""Hints on a container that cannot start, or that ends as it starts, by the words of its runtime.

Docker and the nodes of a cluster start containers by the same runtime, and so use the same words.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lab.errors import LabError
from lab.scenarios.resolved import ResolvedScenario

# Docker's own name server listens in every namespace.
_DNS = "127.0.0.11"
_WAYS_ON = (
    ("exec format error", "its program is for another kind of processor, or a script without #!: build its image here"),
    (r'exec: "[^"]*": permission denied', "let every user execute it: RUN chmod a+rx in its Dockerfile"),
    (r'exec: "', "its image has no such program: correct 'command', or ENTRYPOINT and CMD in its Dockerfile"),
    # What the program of a container says that is a script, or linked to what is not there.
    (r"^\s*exec \S+: no such file", "its image lacks the program, or what runs it: a shell, or a library's loader"),
    ("unable to find (user|group)", "write the user's number, or 'image' for the image's own"),
    ("error mounting|Are you trying to mount", "mount a file onto a file, and a folder onto a folder"),
    ("out of memory", "raise memory_mb of the service, or let its program take less"),
    ("exit code 0$", "let its program stay in the foreground"),
)


def start_failure_hint(*said: str) -> str | None:
    """Return the hint on what a runtime, or a program as it starts, has said; None if nobody knows one."""
    return next((way for words, way in _WAYS_ON for text in said if re.search(words, text, re.MULTILINE)), None)


def ended_during_start(how: str, last_words: str, where: str | None = None) -> LabError:
    """Return the error of a container that ended during its start.

    Args:
        how: as a watch says it.
        last_words: the end of what it said, indented.
        where: the place in the scenario that has it; None for one of the lab's own.
    """
    place = f"{where}: " if where else ""
    what = f"{place}{how} during its start{f':{last_words}' if last_words else ', and said nothing'}"
    return LabError(what, hint=start_failure_hint(how, last_words) if where else None)


def missing_listener(instance: str, port: int, listeners: Iterable[Mapping[str, Any]]) -> str | None:
    """Return that nothing listens on an instance's port, and what is listened on; None where something does."""
    found = sorted({one["port"] for one in listeners if one["address"] != _DNS})
    if port in found:
        return None
    other = f"; it listens on {', '.join(map(str, found))}" if found else ""
    return f"nothing listens on port {port} of {instance}{other}"


def ipv6_hint(port: int, listeners: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the hint on a port that is listened on, and on which nobody is answered; None if that is for IPv4, too."""
    found = sorted({one["address"] for one in listeners if one["port"] == port})
    if not found or not all(":" in each for each in found):
        return None
    return (
        f"it listens on {' and '.join(found)}, perhaps for IPv6 alone, and the lab comes over IPv4: let it listen on"
        " 0.0.0.0, or on :: for both (without IPV6_V6ONLY)"
    )


def where_sysctl(resolved: ResolvedScenario | None, name: str) -> str | None:
    """Return the place at which a scenario asks for a sysctl."""
    asked = resolved.asked() if resolved else ()
    knobs = [one for one in asked if one.startswith("kernel.") and one.endswith(f".{name}")]
    return resolved.where_knob(knobs[0]) if resolved and knobs else None
