"""docs/data-format.md has every field of the schemas, and the tests' own run folders follow these."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analysis.derivation import analyse
from tests.analysis.support import RunFolder

# The schemas of files that the document describes; docs/flows.md and docs/compare.md describe others.
DESCRIBED = (
    "access", "capture", "clocks", "connections", "dials", "events", "figures", "haproxy",
    "kernel-events", "ladders", "ledger", "live", "manifest", "requests", "samples", "scrape", "series", "verdict",
)  # fmt: skip


def sections(root: Path) -> list[str]:
    """The document in parts, each from one heading to the next; what stands between fences is not a description."""
    document = (root / "docs" / "data-format.md").read_text()
    return re.split(r"(?m)^(?=#{2,3} )", re.sub(r"(?ms)^```.*?^```$", "", document))


def section(root: Path, says: str) -> str:
    (found,) = [each for each in sections(root) if says in each]
    return found


def names(text: str) -> set[str]:
    """The names in a text: words between backticks."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


def fields(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for part in schema.values():
            yield from fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from fields(part)


def test_the_document_says_where_it_describes_which_schema(pytestconfig: pytest.Config) -> None:
    named = re.findall(r"schemas/([\w-]+)\.schema\.json", "".join(sections(pytestconfig.rootpath)))

    assert sorted(named) == sorted(DESCRIBED)


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_field_of_a_schema_is_described_where_the_document_names_it(
    pytestconfig: pytest.Config, name: str
) -> None:
    root, file = pytestconfig.rootpath, f"schemas/{name}.schema.json"
    schema: dict[str, Any] = json.loads((root / file).read_text())
    # What the lines of all files have, the conventions say once.
    described = names(section(root, file)) | names(section(root, "## Conventions"))

    assert set(fields(schema)) - described == set()


def test_every_figure_of_an_instrument_is_described(proxied_run: RunFolder, pytestconfig: pytest.Config) -> None:
    health = analyse(proxied_run.write()).health
    described = names(section(pytestconfig.rootpath, "schemas/verdict.schema.json"))

    assert {figure for report in health.values() for figure in report.figures} - described == set()
    assert {name.split("/")[0] for name in health} - described == set()


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
