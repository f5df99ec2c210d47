"""The files in schemas/ are what the models say, and the lab's own files keep to them."""

import json
from pathlib import Path

import jsonschema
import pytest

from lab import paths
from lab.reading import document
from lab.scenarios.places import slugs
from lab.schema import schemas
from tests.lab.support import MINIMAL, yaml_with

SCHEMAS = schemas()
SCENARIO = jsonschema.Draft202012Validator(SCHEMAS["scenario.schema.json"])


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_file_is_current(name: str) -> None:
    current = json.loads((paths.SCHEMAS / name).read_bytes())
    assert current == SCHEMAS[name], "run: .venv/bin/python -m lab.schema"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_file_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize("slug", slugs())
def test_every_scenario_keeps_to_its_schema(slug: str) -> None:
    file = paths.SCENARIOS / slug / "scenario.yaml"
    SCENARIO.validate(document.parse(file.read_bytes(), paths.shown(file)).content)


@pytest.mark.parametrize("file", sorted(paths.SCENARIOS.glob("*/exercises.yaml")), ids=lambda file: file.parent.name)
def test_the_exercises_keep_to_their_schema(file: Path) -> None:
    content = document.parse(file.read_bytes(), paths.shown(file)).content
    jsonschema.Draft202012Validator(SCHEMAS["exercises.schema.json"]).validate(content)


@pytest.mark.parametrize(
    "replacements",
    [
        {"accept_count: 1": "acept_count: 1"},
        {"accept_count: 1": "keep_alive_timeout: 20"},
        {"accept_count: 1": "max_keep_alive_requests: 0"},
        {"[k6, backend]": "[k6, bakend]"},
        {"title: A title\n": ""},
    ],
)
def test_an_editor_sees_what_the_lab_would_refuse(replacements: dict[str, str]) -> None:
    scenario = document.parse(yaml_with(MINIMAL, replacements).encode(), "one").content
    with pytest.raises(jsonschema.ValidationError):
        SCENARIO.validate(scenario)


def test_defaults_of_durations_have_their_unit() -> None:
    load_schema = SCHEMAS["scenario.schema.json"]["$defs"]["Load"]["properties"]
    assert load_schema["connect_timeout"]["default"] == "30s"
