"""Gathers everything that is wrong with a series' cells, so that all is reported together, each thing once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from lab.errors import BadInput, Problem
from lab.scenario.effective import Effective
from lab.scenario.overrides import parse_overrides


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


def refuse_user_settings(overrides: Iterable[str], touched: Mapping[str, str], by: str) -> None:
    """Refuse a knob that the user sets for all cells although it is what tells them apart.

    Raises:
        BadInput: there is such a knob.
    """
    problems = [
        Problem(f"{one.knob} is set by {by} ({touched[one.knob]})", one.where, "leave one of the two out")
        for one in parse_overrides(overrides)
        if one.knob in touched
    ]
    if problems:
        raise BadInput(problems)


def same_cells(cells: Mapping[str, Effective], where: Callable[[str], str]) -> Iterator[Problem]:
    """Give a problem for each cell that is the same as an earlier one: both would measure one thing."""
    seen: dict[object, str] = {}
    for name, one in cells.items():
        key = (one.slug, tuple(one.scenario.path), tuple(sorted(one.values.items())))
        if key in seen:
            yield Problem(f"'{name}' and '{seen[key]}' are the same: every knob has the same value", where(name))
        seen.setdefault(key, name)
