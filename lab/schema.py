"""Writes schemas/*.schema.json from the models: for editors, and for readers of a run's files.

`python -m lab.schema` writes them all.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from analysis.compare.comparison_file import Comparison
from analysis.compare.verdict import SeriesVerdict
from analysis.reports.stories.timeline import Ladders
from analysis.verdicts.clocks_file import ClocksFile
from analysis.verdicts.connections_file import Connections
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.ledger_file import Ledger
from analysis.verdicts.verdict_file import Verdict
from formats.knob_types import DURATION_PATTERN, format_duration
from formats.manifest import Manifest
from formats.role import Role
from formats.series import Series
from lab import paths, terminal
from lab.lessons.exercises import Exercises
from lab.scenarios.model import Scenario
from lab.series.matrices import Matrix

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


# What a person writes, and what the lab and the analysis write.
_READ: dict[str, type[BaseModel]] = {"scenario": Scenario, "matrix": Matrix, "exercises": Exercises, "role": Role}
_WRITTEN: dict[str, type[BaseModel]] = {
    "clocks": ClocksFile,
    "comparison": Comparison,
    "connections": Connections,
    "figures": FiguresFile,
    "ladders": Ladders,
    "ledger": Ledger,
    "manifest": Manifest,
    "series": Series,
    "series-verdict": SeriesVerdict,
    "verdict": Verdict,
}


class _WithoutTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from names: they repeat what stands beside them."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002  pydantic's own signature
        return False


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by its file's name; they are made once, and nobody changes them."""
    read = {name: _with_units(_schema(model, "validation")) for name, model in _READ.items()}
    written = {name: _schema(model, "serialization") for name, model in _WRITTEN.items()}
    return {f"{name}.schema.json": {"$schema": _DIALECT, **one} for name, one in (read | written).items()}


def _schema(model: type[BaseModel], mode: JsonSchemaMode) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True, mode=mode, schema_generator=_WithoutTitles)


def _with_units(schema: dict[str, Any]) -> dict[str, Any]:
    """Write the defaults of durations as a user would: inside the lab they are milliseconds.

    The default of a whole group is left out: the defaults inside it say the same, in units.
    """
    for model in (schema, *schema.get("$defs", {}).values()):
        for field in model.get("properties", {}).values():
            if field.get("pattern") == DURATION_PATTERN and "default" in field:
                field["default"] = format_duration(field["default"])
            elif isinstance(field.get("default"), dict):
                field.pop("default")
    return schema


def write(folder: Path = paths.SCHEMAS) -> list[Path]:
    """Write all schemas and return their files."""
    folder.mkdir(exist_ok=True)
    files = []
    for name, schema in schemas().items():
        files.append(folder / name)
        files[-1].write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return files


if __name__ == "__main__":
    for file in write():
        terminal.result([paths.shown(file)])
