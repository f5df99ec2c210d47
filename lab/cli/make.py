"""Make's variables as options of `connlab`: `SET="a=1 b=2" DRY=1 python -m lab.cli.make run` is `connlab run …`.

An option's variable is its name in capitals.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from analysis import command_hints
from lab import terminal
from lab.cli import RENAMED, app, build
from lab.errors import BadInput, ExitCode, Problem

CONNLAB = ".venv/bin/connlab"
_NAMED = {option: name for name, option in command_hints.OPTIONS.items()}
_OF_THE_LAB = ("check", "began", "as_json", "results")


def variables(target: str) -> dict[str, Any]:
    """Return the variables that a target takes, each with its parameter of the command."""
    parameters = build(app).commands[target].params
    return {_variable(target, one): one for one in parameters if one.name not in _OF_THE_LAB}


def _variable(target: str, parameter: Any) -> str:  # noqa: ANN401 # typer gives its own kinds no type
    if parameter.param_type_name == "argument":
        return command_hints.ARGUMENTS.get(target, str(parameter.name).upper())
    option = str(parameter.opts[0])
    return _NAMED.get(option, option.removeprefix("--").replace("-", "_").upper())


def arguments(target: str, given: Mapping[str, str]) -> list[str]:
    """Return the arguments of `connlab` that stand for a target with these variables.

    Raises:
        BadInput: a variable has another name now.
    """
    known = variables(target)
    for old, new in ((old.upper(), new.upper()) for old, new in RENAMED.items()):
        if given.get(old) and new in known:
            raise BadInput(Problem(f"{old} is {new} now", hint=f"write {new}={given[old]}"))
    options = [word for name, one in known.items() if given.get(name) for word in _words(one, given[name])]
    places = [given.get(name, "") for name, one in known.items() if one.param_type_name == "argument"]
    return [target, *options, *(["--", *places] if places else [])]


def _words(parameter: Any, value: str) -> Iterator[str]:  # noqa: ANN401 # as above
    if parameter.param_type_name == "argument":
        return
    option = parameter.opts[0]
    if parameter.is_flag:
        yield option
        return
    # Several values in one are parted by spaces or line breaks.
    yield from (f"{option}={each}" for each in (value.split() if parameter.multiple else [value]))


def main() -> None:
    """Become the command of a target."""
    target = sys.argv[1]
    try:
        words = arguments(target, os.environ)
    except BadInput as error:
        terminal.problem(f"connlab: {error}")
        sys.exit(ExitCode.BAD_INPUT)
    os.execv(CONNLAB, [CONNLAB, *words])  # noqa: S606 # as S603


if __name__ == "__main__":
    main()
