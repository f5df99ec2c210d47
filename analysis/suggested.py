"""The commands that the lab suggests, to be copied into a shell: whatever is in a value stays one word of it.

`make` hands the value of a variable on as it is; the Makefile sees to `$`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from formats.sanitize import visible

# A shell gives none of these a meaning between double quotes, which read better around several settings.
_PLAIN = re.compile(r"[\w.,:=/@%+ -]+", re.ASCII)


def make(target: str, variables: Mapping[str, str], sets: Mapping[str, str] | None = None) -> str:
    """Return a command that calls one of the Makefile's targets.

    Args:
        target: such as `run`.
        variables: what it is given, by the variables' names.
        sets: knobs to set, with their values as a scenario writes them; no value has a blank in it.
    """
    words = [f"{name}={quoted(value)}" for name, value in variables.items()]
    if sets:
        texts = " ".join(f"{name}={value}" for name, value in sets.items())
        words.append(f'SET="{texts}"' if _PLAIN.fullmatch(texts) else f"SET={quoted(texts)}")
    return " ".join(["make", target, *words])


def connlab(verb: str, options: list[str], what: str) -> str:
    """Return the same by the lab's own program, for values that `make` would split."""
    # What begins with a hyphen would be taken for an option.
    words = [*options, "--", what] if what.startswith("-") else [what, *options]
    return " ".join(map(quoted, [".venv/bin/connlab", verb, *words]))


def quoted(word: str) -> str:
    """Return a word as a shell takes it. One that would steer a terminal is spelt: nobody is to run such a name."""
    return shlex.quote(visible(word))
