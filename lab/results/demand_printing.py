"""Prints what a run takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from lab.runs.capacity import Demand


def print_demand(console: Console, demand: Demand) -> None:
    """Print a table with a row for each role, and what the run takes in all."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("role")
    for column in ("instances", "connections", "ports", "open files", "memory", "at most"):
        table.add_column(column, justify="right")
    for one in demand.roles:
        of = f" of {one.ports_max:,}" if one.ports_max else ""
        ports = "-" if one.ports is None else f"{one.ports:,}{of}"
        memory = (f"{one.memory_mb:,} MiB", f"{one.memory_max_mb:,} MiB")
        table.add_row(one.role, str(one.instances), f"{one.connections:,}", ports, f"{one.files:,}", *memory)
    console.print(table)
    records = "" if demand.records_mb is None else f", {demand.records_mb:,} MiB of records"
    instances = sum(one.instances for one in demand.roles)
    console.print(
        f"each row is of one instance; in all {instances} instances with {demand.memory_mb:,} MiB for"
        f" {demand.users:,} connections{records}, and at most {demand.captures_mb:,} MiB of captures",
        soft_wrap=True,
    )
