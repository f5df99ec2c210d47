"""How values are written in a story."""

from __future__ import annotations

from formats.sanitize import visible

# The longest text of a client, a server or a log that is shown whole; a URL may have 8 KiB.
_SHOWN_MAX = 300


def ms(microseconds: int) -> str:
    """A duration, to the tenth of a millisecond; three digits where that would show nothing."""
    milliseconds = microseconds / 1000
    return f"{milliseconds:,.3f} ms" if abs(milliseconds) < 1 else f"{milliseconds:,.1f} ms"


def between(least_us: int, most_us: int) -> str:
    """A duration that is known within bounds."""
    least, most = ms(least_us), ms(most_us)
    return most if least == most else f"{least.removesuffix(' ms')} to {most}"


def shown(text: str | None) -> str:
    """A text from outside, cut if it is long, and such that it cannot steer a terminal."""
    text = text or ""
    rest = f"… ({len(text):,} characters)" if len(text) > _SHOWN_MAX else ""
    return visible(text[:_SHOWN_MAX]) + rest
