"""Which of the kernel's settings there were, by what was read back in each namespace before the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.expressions.values import Kind, Value, unknown
from analysis.figures.declaration import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.figures.run import Run


def _exists(run: Run, found: Mapping[str, str]) -> Value:
    name, sysctls = found["sysctl"], run.raw.manifest.sysctls
    read = [sysctls.get(instance, {}) for instance in run.instances(found["role"])]
    if not read:
        return unknown("the manifest names no such instance")
    if not all(name in each for each in read):
        return unknown(f"{name} was not read back")
    return int(all(each[name] is not None for each in read))


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
