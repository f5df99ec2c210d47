"""The commands that the lab suggests, to be copied into a shell: whatever is in a value stays one word of it.

`make` hands the value of a variable on as it is; the Makefile sees to `$`. It has its targets in the lab's own folder
alone, so a command that is printed names that folder where the user stands elsewhere. A page has the command as it
works in the lab's folder.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from formats.sanitize import visible

_ROOT = Path(__file__).resolve().parent.parent
# A shell gives none of these a meaning between double quotes, which read better around several settings.
_PLAIN = re.compile(r"[\w.,:=/@%+ -]+", re.ASCII)


def make_command(target: str, variables: Mapping[str, str], sets: Mapping[str, str] | None = None) -> str:
    """Return a command that calls one of the Makefile's targets.

    Args:
        target: such as `run`.
        variables: what it is given, by the variables' names.
        sets: knobs to set, with their values as a scenario writes them; no value has a blank in it.
    """
    words = [f"{name}={quote(value)}" for name, value in variables.items()]
    if sets:
        texts = " ".join(f"{name}={value}" for name, value in sets.items())
        words.append(f'SET="{texts}"' if _PLAIN.fullmatch(texts) else f"SET={quote(texts)}")
    return " ".join(["make", target, *words])


def make_command_here(target: str, variables: Mapping[str, str], sets: Mapping[str, str] | None = None) -> str:
    """Return the same as it works where the user stands; `name_folder` names a folder in it."""
    return command_here(make_command(target, variables, sets))


def connlab_command(verb: str, options: list[str], what: str) -> str:
    """Return a command of the lab's own program, for values that `make` would split."""
    # What begins with a hyphen would be taken for an option.
    words = [*options, "--", what] if what.startswith("-") else [what, *options]
    return " ".join(map(quote, [".venv/bin/connlab", verb, *words]))


def command_here(command: str) -> str:
    """Return a command that works in the lab's own folder as one that works where the user stands."""
    if _is_at_home():
        return command
    program, rest = command.split(" ", 1)
    if program == "make":
        return f"make -C {quote(str(_ROOT))} {rest}"
    return f"{quote(str(_ROOT / program))} {rest}"


def name_folder(path: Path) -> str:
    """Return a folder as such a command takes it: from the lab's own folder, or from the root."""
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else str(path)


def name_typed(name: str) -> str:
    """Return a path that the user gave as such a command takes it."""
    return name if _is_at_home() else str(Path.cwd() / name)


def quote(word: str) -> str:
    """Return a word as a shell takes it. One that would steer a terminal is spelt: nobody runs such a name."""
    return shlex.quote(visible(word))


def _is_at_home() -> bool:
    try:
        return Path.cwd() == _ROOT
    except FileNotFoundError:  # the folder was removed
        return False
