"""Prints where the time of runs went."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from analysis.formatting import counted, spoken
from formats import manifest

# What a run is for; all else happens around it.
_LOAD = ("measure", "drain")


def print_profile(console: Console, folders: Sequence[Path]) -> None:
    """Print a table with a row for each step; of several runs, the medians of those that had the step.

    Args:
        console: where it is printed.
        folders: of runs; one whose manifest has no profile does not count.
    """
    profiles = [profile for folder in folders if (profile := _profile(folder))]
    if not profiles:
        return
    names = dict.fromkeys(name for each in profiles for name in each)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("step" if len(profiles) == 1 else f"step, medians of {counted(len(profiles), 'run')}")
    table.add_column("ms", justify="right")
    for name in names:
        *above, last = name.split("/")
        ms = median(each[name] for each in profiles if name in each)
        table.add_row(f"{'  ' * len(above)}{last}", f"{ms:,.0f}")
    console.print(table)
    whole, load = (median(_sum_ms(each, only) for each in profiles) for only in ((), _LOAD))
    console.print(f"all of it {spoken(whole)}, of which the load and its drain {spoken(load)}", soft_wrap=True)


def _profile(folder: Path) -> dict[str, float] | None:
    with contextlib.suppress(OSError, ValueError):
        return manifest.load_manifest(folder).profile
    return None


def _sum_ms(profile: dict[str, float], only: Sequence[str]) -> float:
    """The sum of steps that are part of no other one; of some of them, or of all."""
    return sum(ms for name, ms in profile.items() if "/" not in name and (not only or name in only))
