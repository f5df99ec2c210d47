"""What cannot be compared."""

from __future__ import annotations


class CompareError(ValueError):
    """Runs that cannot be compared: the text says which, why, and what to do."""
