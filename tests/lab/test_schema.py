"""The files in schemas/ are what the models say, and the lab's own files keep to them."""

import json

import jsonschema
import pytest
from ruamel.yaml import YAML

from lab import paths
from lab.effective import slugs
from lab.schema import schemas
from tests.lab.support import MINIMAL, yaml_with


def load(text: str | bytes) -> object:
    content: object = YAML(typ="safe", pure=True).load(text)
    return content


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_file_is_current(name: str) -> None:
    current = json.loads((paths.SCHEMAS / name).read_bytes())
    assert current == schemas()[name], "run: .venv/bin/python -m lab.schema"


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_file_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas()[name])


@pytest.mark.parametrize("slug", slugs())
def test_every_scenario_keeps_to_its_schema(slug: str) -> None:
    scenario = load((paths.SCENARIOS / slug / "scenario.yaml").read_bytes())
    jsonschema.validate(scenario, schemas()["scenario.schema.json"])


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
    scenario = load(yaml_with(MINIMAL, replacements))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(scenario, schemas()["scenario.schema.json"])


def test_defaults_of_durations_have_their_unit() -> None:
    load_schema = schemas()["scenario.schema.json"]["$defs"]["Load"]["properties"]
    assert load_schema["connect_timeout"]["default"] == "30s"
