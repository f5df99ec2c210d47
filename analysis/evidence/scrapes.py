"""Reads what a collector scraped from a server's management port, once a second."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from analysis.database import over_files
from analysis.evidence.jsonl import Damage, JsonLines, integer, moment
from formats.role import Page

Find: TypeAlias = Callable[[str], int | None]

_OK = 200
_DIGITS_MAX = 18


@dataclass(slots=True)
class Scrape:
    """All readings of one page.

    Attributes:
        times_us: when each good reading was taken, Unix epoch, ascending but for steps of the clock.
        bodies: what each of them read: a JSON object, or text.
        errors_us: when each of those that failed was tried.
    """

    damage: Damage
    times_us: list[int]
    bodies: list[Any]
    errors_us: list[int]


def read(path: Path, page: Page) -> Scrape:
    """Return what a <scrape>.jsonl holds; it never raises."""
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


def values(page: Page, bodies: Sequence[Any]) -> list[dict[str, int]]:
    """Return the declared values of each reading of a page, by their names; what a reading lacks is left out."""
    if page.format == "text":
        columns = {at: _in_texts(bodies, at) for at in page.places}
        numbers = [{at: column[place] for at, column in columns.items()} for place in range(len(bodies))]
    else:
        finders = [_FINDERS[page.format](body) for body in bodies]
        numbers = [{at: find(at) for at in page.places} for find in finders]
    return [_of_reading(page, each) for each in numbers]


def _of_reading(page: Page, numbers: Mapping[str, int | None]) -> dict[str, int]:
    found = {}
    for name, value in page.values.items():
        number, less = numbers[value.at], 0 if value.minus is None else numbers[value.minus]
        if number is not None and less is not None:
            found[name] = number - less
    return found


def _in_json(body: Any) -> Find:  # noqa: ANN401  JSON
    def find(at: str) -> int | None:
        *path, key = at.split(".")
        fields = body
        for each in path:
            fields = fields.get(each) if isinstance(fields, dict) else None
        return integer(fields, key) if isinstance(fields, dict) else None

    return find


def _in_texts(bodies: Sequence[str], at: str) -> list[int | None]:
    """Return what a regular expression finds, by RE2: a foreign run's may take Python's longer than anybody waits."""
    query = "SELECT list_transform($bodies, lambda body: regexp_extract(body, $at, 1, 'n'))"
    with over_files() as database:
        try:
            ((found,),) = database.execute(query, {"bodies": list(bodies), "at": at}).fetchall()
        except duckdb.InvalidInputException:
            return [None] * len(bodies)  # more than RE2 can, as to look ahead
    return [_number(each) for each in found]


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


_FINDERS: dict[str, Callable[[Any], Find]] = {"json": _in_json, "csv": _in_csv}
