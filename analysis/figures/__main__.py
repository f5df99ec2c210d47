"""Prints docs/figures.md: `python -m analysis.figures > docs/figures.md`."""

from __future__ import annotations

import sys

from analysis.figures.reference import markdown

sys.stdout.write(markdown())
