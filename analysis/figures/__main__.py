"""Prints docs/figures.md: `python -m analysis.figures > docs/figures.md`."""

from __future__ import annotations

import sys

from analysis.figures.document import markdown

sys.stdout.write(markdown())
