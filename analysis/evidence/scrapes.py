"""Reads what a collector scraped from a server's management port, once a second."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from analysis.evidence.jsonl import Damage, JsonLines, integer, moment

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.evidence.roles import Page

Find: TypeAlias = Callable[[str], int | None]

_OK = 200
_DIGITS_MAX = 18


@dataclass(slots=True)
class Scrape:
    """All readings of one page.

    Attributes:
        damage: what is wrong with the file.
        times_us: when each good reading was taken, Unix epoch, ascending but for steps of the clock.
        bodies: what each of them read: a JSON object, or text.
        errors_us: when each of those that failed was tried.
    """

    damage: Damage
    times_us: list[int]
    bodies: list[Any]
    errors_us: list[int]


def read(path: Path, page: Page) -> Scrape:
    """Return what a <scrape>.jsonl holds; it never raises.

    Args:
        path: the file.
        page: its declaration.
    """
    body = dict if page.format == "json" else str
    lines = JsonLines(path)
    scrape = Scrape(lines.damage, [], [], [])
    for number, record in lines:
        time_us = None if record is None else moment(record, "time_us")
        if record is None:
            continue
        if time_us is None:
            lines.damage.add_bad_line(number)
        elif record.get("status") == _OK and isinstance(record.get("body"), body):
            scrape.times_us.append(time_us)
            scrape.bodies.append(record["body"])
        else:
            scrape.errors_us.append(time_us)
    return scrape


def values(page: Page, body: Any) -> dict[str, int]:  # noqa: ANN401  a JSON object, or text
    """The declared values of one reading of a page, by their names; what the page lacks is left out.

    Args:
        page: its declaration.
        body: what was read.
    """
    find = _FINDERS[page.format](body)
    found = {name: find(value.at) for name, value in page.values.items()}
    return {name: value for name, value in found.items() if value is not None}


def _in_json(body: Any) -> Find:  # noqa: ANN401  JSON
    def find(at: str) -> int | None:
        *path, key = at.split(".")
        fields = body
        for each in path:
            fields = fields.get(each) if isinstance(fields, dict) else None
        return integer(fields, key) if isinstance(fields, dict) else None

    return find


def _in_text(body: str) -> Find:
    def find(at: str) -> int | None:
        match = re.search(at, body, re.ASCII)
        return _number(match[1]) if match else None

    return find


def _in_csv(body: str) -> Find:
    try:
        header, *rows = [*csv.reader(body.splitlines())] or [[]]
    except csv.Error:
        header, rows = [], []  # a page with a field of 128 KiB is none that a program wrote
    columns = {name: place for place, name in enumerate(header)}
    of_name = {tuple(row[:2]): row for row in rows}

    def find(at: str) -> int | None:
        *name, column = at.split("/")
        row, place = of_name.get(tuple(name), []), columns.get(column)
        return _number(row[place]) if place is not None and place < len(row) else None

    return find


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None


_FINDERS: dict[str, Callable[[Any], Find]] = {"json": _in_json, "text": _in_text, "csv": _in_csv}
