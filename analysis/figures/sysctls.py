"""Which of the kernel's settings there were, by what was read back in each namespace before the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.figures.catalogue import Figure
from analysis.values import Kind, Value, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.figures.run import Run


def _exists(run: Run, found: Mapping[str, str]) -> Value:
    name, read = found["sysctl"], run.raw.manifest.sysctls
    values = [read.get(instance, {}).get(name, _UNREAD) for instance in run.instances(found["role"])]
    if _UNREAD in values:
        return unknown(f"{name} was not read back")
    return int(None not in values)


_UNREAD = ""


FIGURES: tuple[Figure, ...] = (
    Figure(
        "sysctl.<role>.exists.<sysctl>",
        Kind.NUMBER,
        "",
        "1 if the kernel has this setting in the network namespace of each instance, else 0.",
        "manifest.json: sysctls",
        _exists,
    ),
)
