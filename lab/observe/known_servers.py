"""The programs of servers that the lab knows: how an image or a command line speaks of each, and its backlog."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from formats.manifest import Program
from lab.reading import document

_PROGRAMS = Path(__file__).with_name("known_servers.yaml")


@cache
def known_programs() -> dict[str, Program]:
    """Return every server of known_servers.yaml by the words that speak of it, in the order in which they are tried."""
    content: Any = document.read(_PROGRAMS).content
    return {each.pop("words"): Program.model_validate(each, extra="forbid") for each in map(dict, content)}


def program_in(words: str) -> Program | None:
    """Find the program that an image's name and command lines speak of."""
    return next((one for spoken, one in known_programs().items() if re.search(spoken, words, re.IGNORECASE)), None)
