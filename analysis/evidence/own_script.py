"""What k6's summary says of a user's own script: its checks and its thresholds, by the names that figures have."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPERATORS = {"<=": " at most ", ">=": " at least ", "===": " is ", "==": " is ", "!=": " is not ", "<": " below ",
              ">": " above "}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """What became of the checks of one name, whatever group they stand in."""

    passes: int
    fails: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What a summary says.

    Attributes:
        checks: by their names in figures; None for a name that two different checks would have.
        thresholds: whether each was kept, by its name in figures; None for a name that two would have.
    """

    checks: dict[str, Check | None]
    thresholds: dict[str, bool | None]


def figure_name(text: str) -> str:
    """Give the name in figures of a check: small letters, digits, and _ for all else; `_` if nothing is left."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "_"


def threshold_name(metric: str, expression: str) -> str:
    """Give the name in figures of a threshold, such as http_req_duration_p_95_below_500."""
    words = re.sub("|".join(map(re.escape, _OPERATORS)), lambda match: _OPERATORS[match[0]], expression)
    return figure_name(f"{metric} {words}")


def read(summary: Any) -> Judged | None:  # noqa: ANN401 # JSON
    """Give what k6's summary says; None if it is not a whole summary."""
    try:
        return Judged(_checks(summary["root_group"]), _thresholds(summary["metrics"]))
    except (KeyError, TypeError, AttributeError, RecursionError):
        return None


def _checks(root: Any) -> dict[str, Check | None]:  # noqa: ANN401 # JSON
    by_name: dict[str, Check] = {}
    for check in _in_groups(root):
        before = by_name.get(check["name"], Check(0, 0))
        by_name[check["name"]] = Check(before.passes + check["passes"], before.fails + check["fails"])
    named = Counter(map(figure_name, by_name))
    return {figure_name(name): check if named[figure_name(name)] == 1 else None for name, check in by_name.items()}


def _in_groups(group: Any) -> Iterator[Any]:  # noqa: ANN401 # JSON
    yield from group["checks"]
    for inner in group["groups"]:
        yield from _in_groups(inner)


def _thresholds(metrics: Any) -> dict[str, bool | None]:  # noqa: ANN401 # JSON
    found: dict[str, bool | None] = {}
    for metric, values in metrics.items():
        for expression, outcome in values.get("thresholds", {}).items():
            name = threshold_name(metric, expression)
            found[name] = None if name in found else outcome["ok"] is True
    return found
