"""From a scenario's name to what will be run, checked as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.errors import BadInput
from lab.scenario import checks, templates
from lab.scenario.effective import AS_WRITTEN, Effective, Variant, unchecked


def resolve(
    name: str,
    overrides: Iterable[str] = (),
    folder: Path | None = None,
    variant: Variant = AS_WRITTEN,
    preset: str | None = None,
) -> Effective:
    """Read a scenario, apply a preset, a variant and overrides (`knob=value`), and check that the whole makes sense.

    Its words are filled in from what is then set.

    The scenario is given by its name, or by the path of its folder. What the user sets goes over what the preset sets,
    and so does what the variant sets.

    Raises:
        BadInput: anything is wrong; all that was found is listed, with file, line and the nearest valid name.
    """
    effective = unchecked(name, overrides, folder, variant, preset)
    problems = list(checks.problems_of(effective))
    if problems:
        raise BadInput(problems)
    return templates.filled(effective)
