"""An engine in memory: it stands behind the lab's door to Docker, answers by rules, and starts no process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import IO

from lab.engine.compose.docker import Ended, Following

# Far more than any wait of a test takes, on a busy machine too.
_LIMIT_S = 300


@dataclass(frozen=True)
class Rule:
    """What is answered to commands whose arguments match a pattern, `*` being anything."""

    pattern: str
    answer: Ended
    after: str = ""
    once_told: bool = False
    stays: bool = False


_NOTHING = Rule("*", Ended(0))


class Told:
    """What a command that is followed tells; one that stays goes on until it is ended."""

    def __init__(self, lines: Sequence[str], *, stays: bool) -> None:
        self._lines = lines
        self._stays = stays
        self._ended = threading.Event()
        self.taken = threading.Event()

    def __iter__(self) -> Iterator[str]:
        yield from self._lines
        self.taken.set()
        if self._stays:
            self._ended.wait()

    @property
    def goes_on(self) -> bool:
        return self._stays and not self._ended.is_set()

    def end(self) -> None:
        self._ended.set()


class InMemoryDocker:
    """Answers by rules, the earlier ones first; what no rule answers succeeds and says nothing.

    Attributes:
        calls: every command's arguments, in order.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._rules: list[Rule] = []
        self._told: list[Told] = []

    def says(
        self,
        pattern: str,
        stdout: str = "",
        *,
        stderr: str = "",
        exit_code: int = 0,
        after: str = "",
        once_told: bool = False,
    ) -> None:
        """Answer commands that match a pattern.

        Args:
            pattern: as Rule has it.
            stdout: what is said, as stderr is.
            stderr: what is said of an error.
            exit_code: how it ends.
            after: only once there was a call with this text in it; before, nothing is said.
            once_told: not before all that is followed has been taken in.
        """
        self._rules.append(Rule(pattern, Ended(exit_code, stdout, stderr), after, once_told))

    def stays(self, pattern: str, stdout: str = "") -> None:
        """Say this and go on until ended, as the command does that tells of events."""
        self._rules.append(Rule(pattern, Ended(0, stdout), stays=True))

    def forget(self) -> None:
        """Have no rules any more."""
        self._rules.clear()

    def run(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: str | None = None, into: IO[bytes] | None = None
    ) -> Ended:
        """Answer a command, as lab.engine.compose.docker.Client does."""
        assert timeout_s > 0
        assert stdin is None or into is None
        rule = self._rule_for(arguments)
        if rule.once_told:
            assert all(told.taken.wait(_LIMIT_S) for told in self._told)
        if into is None:
            return rule.answer
        into.write((rule.answer.stdout + rule.answer.stderr).encode())
        return Ended(rule.answer.exit_code)

    def follow(self, arguments: Sequence[str]) -> Following:
        """Tell what the rule says, line by line, as lab.engine.compose.docker.Client does."""
        rule = self._rule_for(arguments)
        self._told.append(Told(rule.answer.stdout.splitlines(keepends=True), stays=rule.stays))
        return self._told[-1]

    def _rule_for(self, arguments: Sequence[str]) -> Rule:
        command = " ".join(arguments)
        self.calls.append(command)
        rule = next((one for one in self._rules if fnmatchcase(command, one.pattern)), _NOTHING)
        return rule if any(rule.after in call for call in self.calls) else _NOTHING
