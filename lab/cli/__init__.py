"""The command line: `connlab run|lesson|matrix|search|analyse|explain|compare|list|show|observe|…`.

In: arguments. Out: results on stdout; progress, problems and errors on stderr; an exit code for every end.
It must not know how anything is done. A command loads the modules that it alone needs, so that `--help` is quick.
"""

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from lab import terminal
from lab.cli import lesson_commands, machine_commands, result_commands, run_commands, scenario_commands
from lab.cli.groups import Groups, examples
from lab.errors import BadInput, ConnlabError, ExitCode, LabError, Problem
from lab.signals import interruptible

_OTHERS_WRITE = 0o022
# Options, and variables of the Makefile, that have another name now.
RENAMED = {"worst": "top", "until": "condition", "for": "duration"}
# What is shown of a name that is too long to be one.
_NAME_SHOWN = 40

app = typer.Typer(
    help="A reproducible load-test lab for the connection path: client, proxy, server.",
    epilog=(
        "Exit codes: 0 reproduced, 1 not reproduced, 2 bad input, 3 inconclusive, 4 the lab or the machine failed."
        "\n\n" + examples("lesson accept-queue-turns", "run accept-queue-overflow", "open")
    ),
    cls=Groups,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 # typer's own form
    if asked:
        from importlib import metadata

        terminal.result([f"connlab {metadata.version('connlab')}"])
        raise typer.Exit


def _put_results(folder: Path | None) -> None:
    if folder is not None:
        from lab import paths

        paths.RESULTS = paths.real(folder)
        os.environ["CONNLAB_RESULTS"] = str(paths.RESULTS)  # for what this program starts


@app.callback()
def _every_command(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            callback=_put_results,
            expose_value=False,
            help="The folder of results; by default ./results, in a checkout its own (CONNLAB_RESULTS).",
        ),
    ] = None,
) -> None: ...


# `--help` lists the commands of a group in this order.
for _module in (scenario_commands, run_commands, result_commands, lesson_commands, machine_commands):
    app.add_typer(_module.app)


@cache  # made once, so that a second call of `main`, as in tests, does not wait for it
def build(commands: typer.Typer) -> Any:  # noqa: ANN401 # typer gives its groups no type of its own
    """Return the program as typer makes it; its commands, too, take the options that all of them share."""
    program = typer.main.get_command(commands)
    shared = [one for one in program.params if one.name == "results"]
    for command in getattr(program, "commands", {}).values():
        command.params.extend(shared)
    return program


def connlab() -> None:
    """Run the command line as its user does: before a command runs something, engine and images are made ready."""
    from lab.setup_scripts import make_ready

    main(make_ready=make_ready)


def main(
    arguments: Sequence[str] | None = None,
    commands: typer.Typer = app,
    program: str = "connlab",
    make_ready: Callable[[], None] | None = None,
) -> None:
    """Run the command line; every end has its exit code, and a traceback only with CONNLAB_DEBUG=1."""
    terminal.prepare_streams()
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    debug = os.environ.get("CONNLAB_DEBUG") == "1"
    os.umask(os.umask(0) | _OTHERS_WRITE)  # nothing below results/ may be changed by another user
    try:
        _refuse_renamed(arguments)
        with interruptible(to_the_end=True):
            code = build(commands).main(args=arguments, prog_name=program, standalone_mode=False, obj=make_ready)
    except typer.Exit as end:
        code = end.exit_code
    except typer.TyperException as error:
        code = _say(_usage(error, program), as_json="--json" in arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = _say(LabError("interrupted"), as_json="--json" in arguments)
    except ConnlabError as error:
        if debug:
            terminal.problem(traceback.format_exc())
        code = _say(error, as_json="--json" in arguments)
    except OSError as error:
        if debug:
            terminal.problem(traceback.format_exc())
        code = _say(_failure(error), as_json="--json" in arguments)
    except Exception as error:
        if debug:
            raise
        internal = LabError(f"internal error: {type(error).__name__}: {error}", hint="CONNLAB_DEBUG=1 shows where")
        code = _say(internal, as_json="--json" in arguments)
    sys.exit(_ended(code or 0))


def _usage(error: Any, program: str) -> BadInput:  # noqa: ANN401 # typer gives its usage errors no type of its own
    """Return the refusal of words that are not of the program, or of one of its commands."""
    what, _, meant = error.format_message().rstrip(".").partition(". Did you mean ")
    context = getattr(error, "ctx", None)
    if meant:
        hint = f"did you mean {meant}"
    elif context is not None and context.parent is not None:
        hint = f"'{context.command_path} {context.help_option_names[0]}' shows what it takes"
    else:
        hint = f"'{program} --help' shows the commands"
    return BadInput(Problem(what, hint=hint))


def _refuse_renamed(arguments: Sequence[str]) -> None:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for written in options:
        option, _, value = written.partition("=")
        if option.startswith("--") and (new := RENAMED.get(option[2:])):
            raise BadInput(Problem(f"{option} is --{new} now", hint=f"write --{new}{f'={value}' if value else ''}"))


def _failure(error: OSError) -> ConnlabError:
    named = str(error.filename or "the machine")
    if error.errno == errno.ENAMETOOLONG:
        return BadInput(Problem(f"this name is too long for a file: {named[:_NAME_SHOWN]}…"))
    return LabError(f"{named}: {error.strerror}")


def _ended(code: int) -> int:
    """Write out what was printed. A result that cannot be written, as on a full disk, is none."""
    try:
        terminal.end_streams()
    except OSError as error:
        if code in (ExitCode.BAD_INPUT, ExitCode.LAB_FAILED):
            return code
        return _say(LabError(f"the result cannot be written: {error.strerror}"), as_json=False)
    return code


def _say(error: ConnlabError, *, as_json: bool) -> ExitCode:
    if as_json:
        problems = [asdict(one) for one in error.problems] if isinstance(error, BadInput) else []
        terminal.result_json({"error": str(error), "problems": problems, "exit_code": int(error.exit_code)})
    lines = str(error).splitlines()
    # If nobody can be told, the exit code still can.
    with suppress(OSError):
        terminal.problem("\n".join(f"connlab: {line}" if not line.startswith(" ") else line for line in lines))
    return error.exit_code
