"""The manual page, made of the help texts: `connlab man`."""

import inspect
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import typer

_ENVIRONMENT = {
    "CONNLAB_RESULTS": "the folder of results, as --results",
    "CONNLAB_CACHE": "the folder of what can be made again",
    "CONNLAB_IMAGES": "<registry>/<prefix> from which images are pulled",
    "CONNLAB_DEBUG": "1 shows where an internal error happened",
}
_FILES = {
    "./results": "runs and series; in a checkout, its own folder results",
    "~/.cache/connlab": "what can be made again; in a checkout, its own folder .cache",
}
_SHARED = {"results", "help"}


def format_manual(program: typer.Typer) -> str:
    """Return the manual page of a program, for man."""
    from lab.cli import build

    return "\n".join(_lines(build(program))) + "\n"


def _lines(program: Any) -> Iterator[str]:  # noqa: ANN401 # typer gives its groups no type of its own
    yield f'.TH CONNLAB 1 "" "connlab {metadata.version("connlab")}" "connlab"'
    yield ".SH NAME"
    yield rf"connlab \- {_text(program.help.rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield r"\fBconnlab\fR [\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGUMENTS\fR]"
    yield ".SH OPTIONS"
    context = program.context_class(program, info_name="connlab", **program.context_settings)
    yield from _options(program, context, hidden=set())
    yield ".SH COMMANDS"
    yield "Each takes --results and --help, too."
    for name, commands in program.grouped().items():
        yield f".SS {_text(name)}"
        for command in commands:
            yield from _command(command, context)
    yield ".SH EXIT STATUS"
    codes = program.epilog.split("\n\n")[0].removeprefix("Exit codes: ").rstrip(".")
    yield from _table(dict(one.split(" ", 1) for one in codes.split(", ")))
    yield ".SH ENVIRONMENT"
    yield from _table(_ENVIRONMENT)
    yield ".SH FILES"
    yield from _table(_FILES)


def _command(command: Any, above: Any) -> Iterator[str]:  # noqa: ANN401 # as above
    context = command.context_class(command, info_name=command.name, parent=above)
    yield ".TP"
    usage = (rf"\fI{_text(one)}\fR" for one in command.collect_usage_pieces(context))
    yield " ".join([rf"\fBconnlab {command.name}\fR", *usage])
    for number, paragraph in enumerate(inspect.cleandoc(command.help).split("\n\n")):
        if number:
            yield ".IP"
        yield _text(" ".join(paragraph.split()))
    yield ".RS"
    yield from _options(command, context, hidden=_SHARED)
    yield ".PP"
    yield ".nf"
    yield from (_text(line.strip()) for line in command.epilog.splitlines()[2:])
    yield ".fi"
    yield ".RE"


def _options(command: Any, context: Any, hidden: set[str]) -> Iterator[str]:  # noqa: ANN401 # as above
    for one in command.get_params(context):
        if one.name in hidden or not (record := one.get_help_record(context)):
            continue
        yield ".TP"
        yield rf"\fB{_text(record[0])}\fR"
        yield _text(" ".join(record[1].split()))


def _table(rows: dict[str, str]) -> Iterator[str]:
    for name, text in rows.items():
        yield from (".TP", rf"\fB{_text(name)}\fR", _text(text))


def _text(text: str) -> str:
    """Return a text as roff takes it: hyphens to be copied, and no line that begins with a command's character."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("…", "...")
    return re.sub(r"^(?=[.'])", r"\\&", escaped)
