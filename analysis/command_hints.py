"""The commands that the lab suggests, to be copied into a shell: whatever is in a value stays one word of it.

A checkout has `make` and `./connlab`. `make` hands the value of a variable on as it is; the Makefile sees to `$`. It
has its targets in the lab's own folder alone, so a command that is printed names that folder where the user stands
elsewhere; a page has the command as it works in the lab's folder. An installed lab has `connlab`, which works anywhere.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from analysis.installation import IS_INSTALLED, ROOT
from formats.sanitize import visible

PROGRAM = "connlab" if IS_INSTALLED else "./connlab"
# A shell gives none of these a meaning between double quotes, which read better around several settings.
_PLAIN = re.compile(r"[\w.,:=/@%+ -]+", re.ASCII)
# The variables whose option has another name than theirs in small letters.
OPTIONS = {"DRY": "--dry-run", "SYSCTLS": "--sysctl", "PEER": "--peer-container", "ALLOW_HOST": "--host"}
# The variable of a command's argument, where it has another name than the argument.
ARGUMENTS = {"exercise": "EXERCISE", "matrix": "MATRIX"}
_WITHOUT_ARGUMENT = ("estimate", "compare")
# Variables that are switches, and those with several values in one.
_SWITCHES = ("DRY", "NEW", "ALLOW_HOST")
_SEVERAL = ("A", "B")


def make_command(target: str, variables: Mapping[str, str], sets: Mapping[str, str] | None = None) -> str:
    """Return a command that calls one of the Makefile's targets; for an installed lab, the same as one of `connlab`.

    Args:
        target: such as `run`.
        variables: what it is given, by the variables' names.
        sets: knobs to set, with their values as a scenario writes them.
    """
    texts = [f"{name}={value}" for name, value in (sets or {}).items()]
    # make splits SET at blanks, so a value that has one needs the program itself.
    if IS_INSTALLED or any(char.isspace() or char == '"' for text in texts for char in text):
        argument, options = _as_options(target, variables)
        options += [word for text in texts for word in ("--set", text)]
        return _connlab_command(target, options, argument)
    words = [f"{name}={quote(value)}" for name, value in variables.items()]
    if texts:
        joined = " ".join(texts)
        words.append(f'SET="{joined}"' if _PLAIN.fullmatch(joined) else f"SET={quote(joined)}")
    return " ".join(["make", target, *words])


def make_command_here(target: str, variables: Mapping[str, str], sets: Mapping[str, str] | None = None) -> str:
    """Return `make_command` for the user's working directory; `name_folder` names a folder in it."""
    return command_here(make_command(target, variables, sets))


def example_command_here(target: str, variables: Mapping[str, str]) -> str:
    """Return an example command, in which `<name>` or `…` stands for what the user fills in."""
    if IS_INSTALLED:
        argument, options = _as_options(target, variables)
        return " ".join([PROGRAM, target, *([argument] if argument else []), *options])
    return command_here(" ".join(["make", target, *(f"{name}={value}" for name, value in variables.items())]))


def _as_options(target: str, variables: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the argument and the options of `connlab` that stand for variables of a target."""
    usual = "RUN" if "RUN" in variables else "SCENARIO"
    argument = "" if target in _WITHOUT_ARGUMENT else ARGUMENTS.get(target, usual)
    options = [word for name, value in variables.items() if name != argument for word in _option(name, value)]
    return variables.get(argument, ""), options


def _option(name: str, value: str) -> Iterator[str]:
    option = OPTIONS.get(name, f"--{name.lower().replace('_', '-')}")
    if name in _SWITCHES:
        yield option
        return
    for each in value.split() if name in _SEVERAL else [value]:
        yield from (option, each)


def _connlab_command(verb: str, options: list[str], what: str) -> str:
    """Return a command of the lab's own program, for values that `make` would split."""
    # What begins with a hyphen would be taken for an option.
    words = [*options, "--", what] if what.startswith("-") else [*([what] if what else []), *options]
    return " ".join(map(quote, [PROGRAM, verb, *words]))


def command_here(command: str) -> str:
    """Return a command that works in the lab's own folder as one that works where the user stands."""
    if IS_INSTALLED or _is_at_home():
        return command
    program, rest = command.split(" ", 1)
    if program == "make":
        return f"make -C {quote(str(ROOT))} {rest}"
    return f"{quote(str(ROOT / program))} {rest}"


def name_folder(path: Path) -> str:
    """Return a folder as such a command takes it: from the lab's own folder, or from the root."""
    home = Path.cwd() if IS_INSTALLED else ROOT
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def name_typed(name: str) -> str:
    """Return a path that the user gave as such a command takes it."""
    return name if IS_INSTALLED or _is_at_home() else str(Path.cwd() / name)


def quote(word: str) -> str:
    """Return a word as a shell takes it. One that would steer a terminal is spelt: nobody runs such a name."""
    return shlex.quote(visible(word))


def _is_at_home() -> bool:
    try:
        return Path.cwd() == ROOT
    except FileNotFoundError:  # the folder was removed
        return False
