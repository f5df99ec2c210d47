"""The cells of a series as tables in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.compare import numbers

if TYPE_CHECKING:
    from analysis.compare.comparison_file import CellEntry, MatrixEntry

_STYLES = {"clean": "green", "failing": "red", "mixed": "yellow", "inconclusive": "yellow", "missing": "dim"}

# Figures that are shown as tables, where a matrix does not say what it is about and they differ between cells; the page
# has all.
_FIGURES = (
    "client.requests.failed",
    "client.users.failed",
    "client.latency_ms.mean",
    "client.latency_ms.p95",
    "kernel.backend.TcpExt.ListenDrops",
)


def print_matrix(console: Console, matrix: MatrixEntry) -> None:
    """Print each cell's state beside the model's, and the figures that tell most."""
    for fixed in _facets(matrix):
        where = "".join(f", {name} = {level}" for name, level in fixed.items())
        _print_grid(console, f"state, and failed users by the model or by capacity alone{where}", matrix, fixed, _state)
        for figure in matrix.about or _FIGURES:
            if figure in matrix.figures:
                _print_grid(console, f"{figure}{where}", matrix, fixed, _figure(figure))
    told = [cell.agrees for cell in matrix.cells if cell.agrees is not None]
    if told:
        agreeing = told.count(True)
        text = f"{agreeing} of {len(told)} cells fail, or do not, as predicted"
        console.print(Text(text, "green" if agreeing == len(told) else "red"))


def _facets(matrix: MatrixEntry) -> Iterator[dict[str, str]]:
    """Each combination of levels of the third axis and those behind it: a table has two."""
    behind = matrix.axes[2:]
    for levels in product(*(axis.levels for axis in behind)):
        yield dict(zip((axis.name for axis in behind), levels, strict=True))


def _print_grid(
    console: Console,
    title: str,
    matrix: MatrixEntry,
    fixed: Mapping[str, str],
    content: Callable[[CellEntry], Text],
) -> None:
    # A title of the table itself would be as narrow as the table.
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(_grid(matrix, fixed, content))


def _grid(matrix: MatrixEntry, fixed: Mapping[str, str], content: Callable[[CellEntry], Text]) -> Table:
    rows, *more = matrix.axes[:2]
    columns = more[0] if more else None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(f"{rows.name} ↓ {columns.name} →" if columns else rows.name, overflow="fold")
    for level in columns.levels if columns else [""]:
        table.add_column(level)
    for row in rows.levels:
        levels = [{**fixed, rows.name: row}]
        if columns:
            levels = [{**levels[0], columns.name: column} for column in columns.levels]
        found = [next((cell for cell in matrix.cells if cell.levels == each), None) for each in levels]
        table.add_row(Text(row), *(content(cell) if cell else Text("no cell", "dim") for cell in found))
    return table


def _state(cell: CellEntry) -> Text:
    predicted = "" if cell.predicted_users_failed is None else f", {cell.predicted_by} {cell.predicted_users_failed}"
    wrong = " ≠" if cell.agrees is False else ""
    return Text(f"{cell.state}{predicted}{wrong}", _STYLES[cell.state])


def _figure(name: str) -> Callable[[CellEntry], Text]:
    def content(cell: CellEntry) -> Text:
        sample = cell.figures.get(name)
        return Text(numbers.sample(sample), _STYLES[cell.state]) if sample and sample.values else Text("unknown", "dim")

    return content
