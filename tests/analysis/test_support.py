"""The tests' own run folders have the formats that the lab's parts write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.analysis.support import RunFolder


def validator(root: Path, name: str) -> Draft202012Validator:
    schema: dict[str, Any] = json.loads((root / "schemas" / f"{name}.schema.json").read_text())
    return Draft202012Validator(schema)


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("k6-1/requests.jsonl", "requests"),
        ("k6-1/dials.jsonl", "dials"),
        ("k6-1/events.jsonl", "events"),
        ("k6-1/live.jsonl", "live"),
        ("nginx/access.jsonl", "access"),
        ("nginx/stub_status.jsonl", "scrape"),
        ("backend-1/tomcat.jsonl", "scrape"),
    ],
)
def test_every_line_follows_the_schema_of_its_file(
    proxied_run: RunFolder, pytestconfig: pytest.Config, file: str, schema: str
) -> None:
    proxied_run.clients["k6-1"].events = [
        {"time_us": 5, "vu": 1, "name": "admitted", "data": {"number": 1, "turn_us": 4}}
    ]
    proxied_run.write()
    check = validator(pytestconfig.rootpath, schema)

    for line in proxied_run.raw(file).read_text().splitlines():
        check.validate(json.loads(line))


def test_the_manifest_follows_its_schema(run: RunFolder, pytestconfig: pytest.Config) -> None:
    folder = run.write()

    validator(pytestconfig.rootpath, "manifest").validate(json.loads((folder / "manifest.json").read_text()))
