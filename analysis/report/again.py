"""The command that makes a run again, as it was or with something changed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from analysis.report import words

_SET = frozenset({"set", "cell"})


def command(manifest: Mapping[str, Any], changes: Mapping[str, str] | None = None) -> str:
    """Write it.

    Args:
        manifest: the content of manifest.json.
        changes: knobs that are to have another value, as a scenario writes it.
    """
    sets = {
        name: words.knob_value(name, knob["value"])
        for name, knob in manifest.get("knobs", {}).items()
        if knob.get("source") in _SET
    }
    texts = [f"{name}={value}" for name, value in (sets | dict(changes or {})).items()]
    scenario, preset = manifest["scenario"], manifest.get("preset")
    # make splits SET at blanks, so a value that has one needs the program itself.
    if any(" " in text or '"' in text for text in texts):
        options = [*(["--preset", preset] if preset else []), *(part for text in texts for part in ("--set", text))]
        return shlex.join([".venv/bin/connlab", "run", scenario, *options])
    chosen = f" PRESET={preset}" if preset else ""
    return f"make run SCENARIO={scenario}{chosen}" + (f' SET="{" ".join(texts)}"' if texts else "")
