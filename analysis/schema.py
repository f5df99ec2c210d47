"""Prints the JSON Schema of verdict.json: `python -m analysis.schema > schemas/verdict.schema.json`."""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from analysis.verdict import Verdict

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _WithoutTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from names: they repeat what stands beside them."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002  pydantic's own signature
        return False


def schema() -> str:
    """The JSON Schema of verdict.json."""
    content = Verdict.model_json_schema(by_alias=True, mode="serialization", schema_generator=_WithoutTitles)
    return json.dumps({"$schema": _DIALECT, **content}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())
