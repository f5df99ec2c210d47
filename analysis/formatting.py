"""How numbers, durations, knobs and texts from outside are written for a reader."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from analysis.expressions.values import Number, is_number
from formats.knob_types import format_knob_value
from formats.manifest import Knob
from formats.sanitize import visible

_MS_PER_S = 1000


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one: `1 run`, `1,200 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_races(hop: Mapping[str, Any]) -> str | None:
    """Return how many requests of a ledger's hop met a kept connection at its end without an error, or None."""
    resent, near = hop.get("resent") or 0, hop.get("near_races") or 0
    server = hop["to"]
    parts = []
    if resent:
        parts.append(
            f"{format_count(resent, 'request')} met a kept connection as {server} closed it, and"
            f" {'was' if resent == 1 else 'were'} sent again without an error"
        )
    if near:
        parts.append(f"{format_count(near, 'answered request')} came within 50 ms of such a close")
    return "; ".join(parts) or None


def format_number(value: Number | None, digits: int = 3, *, signed: bool = False) -> str:
    """Return a number with so many digits, or as many as stand before its point, never with an exponent; or unknown."""
    if value is None:
        return "unknown"
    sign = "+" if signed and value > 0 else ""
    if float(value).is_integer() or abs(value) >= 10**digits:
        return f"{sign}{round(value):,}"
    return f"{sign}{Decimal(f'{value:.{digits}g}'):,f}"


def format_ms(ms: Number) -> str:
    """Return a duration in a sentence."""
    return f"{format_number(ms)} ms" if abs(ms) < _MS_PER_S else f"{format_number(ms / _MS_PER_S)} s"


def format_moment(time_us: int | None) -> str | None:
    """Return a time in UTC; None if there is none, or none that a calendar has."""
    if time_us is None:
        return None
    try:
        return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def format_knob(knob: Knob) -> str:
    """Return the value of a manifest's knob as a scenario may write it."""
    return format_knob_value(knob.value, knob.unit)


def format_value(value: object) -> str:
    """Return a number as a reader gets it; other values as they are."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_number(value) if value is None or is_number(value) else str(value)


_LIST_SHOWN = 6


def format_measured(value: object) -> str:
    """Return a measured value: lists by what they have in common, or by their first values."""
    if isinstance(value, list):
        if len(value) > _LIST_SHOWN and len(set(value)) == 1:
            return f"{len(value):,} times {format_value(value[0])}"
        rest = f", … {len(value):,} in all" if len(value) > _LIST_SHOWN else ""
        return f"[{', '.join(map(format_value, value[:_LIST_SHOWN]))}{rest}]"
    if isinstance(value, dict):
        if value.get("min") is not None and value.get("min") == value.get("max"):
            return f"{format_value(value['count'])} times {format_value(value['min'])}"
        return ", ".join(f"{key} {format_value(inner)}" for key, inner in value.items())
    return format_value(value)


# The longest text of a client, a server or a log that is shown whole; a URL may have 8 KiB.
_SHOWN_MAX = 300


def format_us(microseconds: int) -> str:
    """Return a duration, to the tenth of a millisecond; three digits where that would show nothing."""
    milliseconds = microseconds / 1000
    return f"{milliseconds:,.3f} ms" if abs(milliseconds) < 1 else f"{milliseconds:,.1f} ms"


def format_us_range(least_us: int, most_us: int) -> str:
    """Return a duration that is known within bounds."""
    least, most = format_us(least_us), format_us(most_us)
    return most if least == most else f"{least.removesuffix(' ms')} to {most}"


def excerpt(text: str | None) -> str:
    """Return a text from outside, cut if it is long, and such that it cannot steer a terminal."""
    text = text or ""
    rest = f"… ({len(text):,} characters)" if len(text) > _SHOWN_MAX else ""
    return visible(text[:_SHOWN_MAX]) + rest
