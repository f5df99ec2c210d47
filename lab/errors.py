"""The two ways in which a command of the lab stops short, and their exit codes; and how problems are gathered."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What `connlab` says to the shell."""

    REPRODUCED = 0
    NOT_REPRODUCED = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    LAB_FAILED = 4


class ConnlabError(Exception):
    """An end of the command that needs no traceback: the message says what is wrong and a hint."""

    exit_code: ExitCode = ExitCode.LAB_FAILED


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the input.

    Attributes:
        where: `file:line`, or the override that brought it in.
    """

    what: str
    where: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        hint = f"; {self.hint}" if self.hint else ""
        # A key or a value of a file may hold a line break, and then what looks like another problem; lines that belong
        # to this one are indented.
        return re.sub(r"\n(?!  )", r"\\n", f"{where}{self.what}{hint}")


class BadInput(ConnlabError):
    """The user's input is refused before anything starts; all that is wrong with it is listed together."""

    exit_code = ExitCode.BAD_INPUT

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Gathered:
    """As a context it takes in a refusal and lets the work go on; `refuse` raises them all."""

    def __init__(self) -> None:
        self._problems: dict[Problem, None] = {}

    def __enter__(self) -> None:
        """Begin a part that may be refused."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, BadInput):
            self.extend(error.problems)
            return True
        return False

    def extend(self, problems: Iterable[Problem]) -> None:
        """Take in problems; the same one in many cells counts once."""
        self._problems |= dict.fromkeys(problems)

    def refuse(self) -> None:
        """Raise BadInput if there was any problem."""
        if self._problems:
            raise BadInput(self._problems)


def parsed(parse: Callable[[str], int], text: str, option: str, problems: list[Problem]) -> int | None:
    """Return what an option's text means; None, and a problem more, where the parser raises ValueError."""
    try:
        return parse(text)
    except ValueError as error:
        problems.append(Problem(str(error), option))
        return None


class LabError(ConnlabError):
    """The lab or the machine failed; nothing can be said about the experiment."""

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        self.what = what
        self.hint = hint
        super().__init__(f"{what}\nhint: {hint}" if hint else what)


class EngineFailed(LabError):
    """An engine, or a command that it carried out beside an instance, ended with an error of its own."""


class ScriptRefused(EngineFailed):
    """k6 does not take a user's own script; `what` is k6's message."""


class ConfigurationRefused(EngineFailed):
    """A program does not take a user's own configuration; `what` is its message."""


class FilesLost(EngineFailed):
    """What a collector recorded is lost."""


class Interruption(LabError):
    """The user, or a signal, ended the run before its end."""
