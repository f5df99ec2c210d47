"""Prints the JSON Schema of a file that the analysis writes.

`python -m analysis.schema verdict > schemas/verdict.schema.json`
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from analysis.compare.comparison_file import Comparison
from analysis.compare.verdict import SeriesVerdict
from analysis.reports.stories.ladders_file import Ladders
from analysis.verdicts.clocks_file import ClocksFile
from analysis.verdicts.connections_file import Connections
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.ledger_file import Ledger
from analysis.verdicts.verdict_file import Verdict

MODELS: dict[str, type[BaseModel]] = {
    "clocks": ClocksFile,
    "comparison": Comparison,
    "connections": Connections,
    "figures": FiguresFile,
    "ladders": Ladders,
    "ledger": Ledger,
    "series-verdict": SeriesVerdict,
    "verdict": Verdict,
}

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _WithoutTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from names: they repeat what stands beside them."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002  pydantic's own signature
        return False


def schema(name: str) -> str:
    """The JSON Schema of one of MODELS, as schemas/<name>.schema.json has it."""
    content = MODELS[name].model_json_schema(by_alias=True, mode="serialization", schema_generator=_WithoutTitles)
    return json.dumps({"$schema": _DIALECT, **content}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema(sys.argv[1]))
