"""Writes schemas/*.schema.json from the models: for editors, and for whoever reads a run's files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import paths
from lab.catalogue import CATALOGUE, show_value
from lab.manifest import Manifest
from lab.scenario import Scenario
from lab.series.record import Series

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Give each schema by its file's name."""
    return {
        "scenario.schema.json": {"$schema": _DIALECT, **_with_units(Scenario.model_json_schema())},
        "manifest.schema.json": {"$schema": _DIALECT, **Manifest.model_json_schema(mode="serialization")},
        "series.schema.json": {"$schema": _DIALECT, **Series.model_json_schema(mode="serialization")},
    }


def _with_units(schema: dict[str, Any]) -> dict[str, Any]:
    """Write the defaults of durations as a scenario would: inside the lab they are milliseconds."""
    groups: Mapping[str, Any] = schema["$defs"]
    for knob in CATALOGUE.values():
        field = groups[knob.group.capitalize()]["properties"][knob.field]
        field["default"] = show_value(knob.name, knob.default) if knob.is_duration else knob.default
    schema["properties"]["drain"]["default"] = show_value("load.duration", schema["properties"]["drain"]["default"])
    for name in ("knobs", "warmup", "tolerance"):
        schema["properties"][name].pop("default")  # the defaults inside say the same, in the units of a scenario
    for group in groups["Knobs"]["properties"].values():
        group.pop("default", None)
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
        print(paths.shown(file))  # noqa: T201 # a command's output
