"""The times that a paste tells, of `date`, of `watch` or in ISO's form; without a zone they are UTC."""

import re
from typing import Final

from analysis.evidence.logs import MONTHS, utc_us

_NAMES: Final = "|".join(MONTHS)
# `date` in its usual form, and what `watch` writes at the right of its first line.
_DATE = re.compile(
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:({_NAMES}) +(\d{{1,2}})|(\d{{1,2}}) ({_NAMES})),?"
    r"(?: (\d{4}))? +(\d\d):(\d\d):(\d\d)(?: ([AP])M)?(?: +([A-Z]{1,5}|[+-]\d{2,4}))?(?: +(\d{4}))?"
)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(?:Z|UTC|([+-])(\d\d):?(\d\d))?")
_EPOCH = re.compile(r"1\d{9}(?:\.\d{1,9})?")
_HALF_DAY: Final = 12
# Hours east of Greenwich; names that mean several zones are left out, and count as UTC.
_ZONES: Final = {
    "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "EST": -5, "EDT": -4,
    "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip


def time_in(line: str) -> int | None:
    """Return the time that a line tells, in microseconds since the Unix epoch; None if it tells none."""
    if _EPOCH.fullmatch(line):
        return round(float(line) * 1_000_000)
    if match := _ISO.search(line):
        time_us = utc_us(*map(int, match.group(1, 2, 3, 4, 5, 6)))
        if time_us is None:
            return None
        if match[8]:
            shift_s = 60 * (60 * int(match[9]) + int(match[10]))
            time_us += 1_000_000 * (-shift_s if match[8] == "+" else shift_s)
        return max(time_us + int((match[7] or "0").ljust(6, "0")[:6]), 0)
    match = _DATE.search(line)
    year = (match[5] or match[11]) if match else None
    if match is None or year is None:
        return None
    hour = int(match[6])
    if match[9]:
        hour = hour % _HALF_DAY + (_HALF_DAY if match[9] == "P" else 0)
    time_us = utc_us(
        int(year), MONTHS[match[1] or match[4]], int(match[2] or match[3]), hour, int(match[7]), int(match[8])
    )
    return None if time_us is None else max(time_us - 1_000_000 * _east_s(match[10] or "UTC"), 0)


def _east_s(zone: str) -> int:
    """Return by how many seconds a zone is ahead of UTC."""
    if zone[0] in "+-":
        digits = zone[1:].ljust(4, "0")
        return (60 * int(digits[:2]) + int(digits[2:])) * (60 if zone[0] == "+" else -60)
    return 3600 * _ZONES.get(zone, 0)
