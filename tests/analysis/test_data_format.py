"""docs/data-format.md has every field of the schemas, and every figure of the instruments."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from analysis import analyse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.analysis.support import RunFolder


def words(config: pytest.Config) -> set[str]:
    return set(re.findall(r"\w+", (config.rootpath / "docs" / "data-format.md").read_text()))


def fields(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for part in schema.values():
            yield from fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from fields(part)


@pytest.mark.parametrize("name", ["manifest", "requests", "dials", "events", "live", "verdict", "figures", "series"])
def test_every_field_of_a_schema_is_described(pytestconfig: pytest.Config, name: str) -> None:
    schema: dict[str, Any] = json.loads((pytestconfig.rootpath / "schemas" / f"{name}.schema.json").read_text())

    assert set(fields(schema)) - words(pytestconfig) == set()


def test_every_figure_of_an_instrument_is_described(proxied_run: RunFolder, pytestconfig: pytest.Config) -> None:
    health = analyse(proxied_run.write()).health
    described = words(pytestconfig)

    assert {figure for report in health.values() for figure in report.figures} - described == set()
    assert {name.split("/")[0] for name in health} - described == set()
