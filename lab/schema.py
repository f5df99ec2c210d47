"""Writes schemas/*.schema.json from the models: for editors, and for readers of a run's files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from formats.durations import DURATION_PATTERN, format_duration
from formats.manifest import Manifest
from formats.role import Role
from formats.series import Series
from lab import paths, terminal
from lab.lessons.exercises import Exercises
from lab.scenarios.model import Scenario
from lab.series.matrix_file import Matrix

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Give each schema by its file's name; they are made once, and nobody changes them."""
    return {
        "scenario.schema.json": {"$schema": _DIALECT, **_with_units(Scenario.model_json_schema())},
        "matrix.schema.json": {"$schema": _DIALECT, **_with_units(Matrix.model_json_schema())},
        "exercises.schema.json": {"$schema": _DIALECT, **Exercises.model_json_schema()},
        "role.schema.json": {"$schema": _DIALECT, **_with_units(Role.model_json_schema())},
        "manifest.schema.json": {"$schema": _DIALECT, **Manifest.model_json_schema(mode="serialization")},
        "series.schema.json": {"$schema": _DIALECT, **Series.model_json_schema(mode="serialization")},
    }


def _with_units(schema: dict[str, Any]) -> dict[str, Any]:
    """Write the defaults of durations as a user would: inside the lab they are milliseconds.

    The default of a whole group is left out: the defaults inside it say the same, in units.
    """
    for model in (schema, *schema["$defs"].values()):
        for field in model.get("properties", {}).values():
            if field.get("pattern") == DURATION_PATTERN and "default" in field:
                field["default"] = format_duration(field["default"])
            elif isinstance(field.get("default"), dict):
                field.pop("default")
    return schema


def write(folder: Path = paths.SCHEMAS) -> list[Path]:
    """Write all schemas and give their files."""
    folder.mkdir(exist_ok=True)
    files = []
    for name, schema in schemas().items():
        files.append(folder / name)
        files[-1].write_text(json.dumps(schema, indent=2) + "\n")
    return files


if __name__ == "__main__":
    for file in write():
        terminal.result([paths.shown(file)])
