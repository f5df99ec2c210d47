"""The drawing of who imports whom: as the code is, and with every arrow downwards."""

from __future__ import annotations

from collections import Counter

from setup.loop import imports


def test_the_drawing_is_as_the_code_is() -> None:
    standing = imports.floors()
    made = imports.drawing(standing, imports.arrows([name for floor in standing for name in floor]))
    assert 'class="up"' not in made
    assert (imports.ROOT / "docs/imports.svg").read_text() == made, "python -m setup.loop.imports > docs/imports.svg"


def test_an_arrow_that_leads_upwards_is_drawn_as_such() -> None:
    made = imports.drawing([["lab.cli"], ["lab.run"]], Counter({("lab.run", "lab.cli"): 1, ("lab.cli", "lab.run"): 2}))
    assert made.count('class="up"') == 1
    assert "2 arrows between them, 1 upwards" in made
