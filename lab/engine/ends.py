"""The ends of a run's services, as an engine has said them."""

from __future__ import annotations


class Ends:
    """How each service ended, unasked or as expected: what every engine's watch knows."""

    def __init__(self) -> None:
        self._exits: dict[str, int] = {}
        self._expected: dict[str, int | None] = {}
        self._out_of_memory: set[str] = set()

    def end(self, service: str, code: int) -> None:
        """Take in that a service has ended."""
        (self._expected if service in self._expected else self._exits)[service] = code

    def expect(self, service: str, *, end: bool) -> None:
        """Take the next end of a service for one that was asked for, or no longer."""
        if end:
            self._expected[service] = None
        else:
            del self._expected[service]

    def expected_exit_code(self, service: str) -> int | None:
        """Give the exit code of a service whose end is expected; None until it has ended."""
        return self._expected[service]

    def exit_code(self, service: str) -> int | None:
        """Give the exit code of a service that ended unasked; None while it runs."""
        return self._exits.get(service)

    def ended(self, service: str) -> str | None:
        """Say how a service ended unasked, if it has."""
        code = self.exit_code(service)
        memory = ", out of memory" if service in self._out_of_memory else ""
        return None if code is None else f"{service} ended with exit code {code}{memory}"
