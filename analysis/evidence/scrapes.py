"""Reads what a collector scraped from a server's management port, once a second."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.evidence.jsonl import Damage, JsonLines, integer

if TYPE_CHECKING:
    from pathlib import Path

_OK = 200

# The third number below `server accepts handled requests`.
_NGINX_REQUESTS = re.compile(r"requests\s+\d+ \d+ (\d{1,18})\s", re.ASCII)


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


def read(path: Path, body: type = dict) -> Scrape:
    """Return what a <scrape>.jsonl holds; it never raises.

    Args:
        path: the file.
        body: `dict` or `str`, what a good reading's body is.
    """
    lines = JsonLines(path)
    scrape = Scrape(lines.damage, [], [], [])
    for number, record in lines:
        time_us = None if record is None else integer(record, "time_us")
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


def nginx_requests(body: str) -> int | None:
    """How many requests nginx had begun, as its stub_status page says, this one included; None if it does not."""
    match = _NGINX_REQUESTS.search(body)
    return int(match[1]) if match else None
