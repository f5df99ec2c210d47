"""Reads what a collector scraped from a server's management port, once a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.jsonl import Damage, JsonLines, Record, integer

if TYPE_CHECKING:
    from pathlib import Path

_OK = 200


@dataclass(slots=True)
class Scrape:
    """All readings of one page.

    Attributes:
        damage: what is wrong with the file.
        times_us: when each good reading was taken, Unix epoch, ascending but for steps of the clock.
        bodies: what each of them read.
        errors_us: when each of those that failed was tried.
    """

    damage: Damage
    times_us: list[int]
    bodies: list[Record]
    errors_us: list[int]


def read(path: Path) -> Scrape:
    """Return what a <scrape>.jsonl holds; it never raises."""
    lines = JsonLines(path)
    scrape = Scrape(lines.damage, [], [], [])
    for number, record in lines:
        time_us = None if record is None else integer(record, "time_us")
        if record is None:
            continue
        if time_us is None:
            lines.damage.add_bad_line(number)
        elif record.get("status") == _OK and isinstance(record.get("body"), dict):
            scrape.times_us.append(time_us)
            scrape.bodies.append(record["body"])
        else:
            scrape.errors_us.append(time_us)
    return scrape
