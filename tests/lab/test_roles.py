"""A role's declaration is valid, or refused with file, line and a hint."""

import re
from pathlib import Path

import jsonschema
import pytest

from analysis.evidence import logs
from lab import paths
from lab.errors import BadInput
from lab.reading import document
from lab.roles.declared_roles import ROLES, load_role, load_roles
from lab.schema import schemas
from tests.lab.support import yaml_with

SCHEMA = jsonschema.Draft202012Validator(schemas()["role.schema.json"])
DECLARED = """\
schema: 1
kind: proxy
description: A proxy.
display_name: the relay
memory: {base_mb: 1}
limits: {backlog: backlog}
knobs:
  backlog:
    doc: The backlog
    type: integer
    minimum: 1
    maximum: 10
    default: 5
    read_back: {part: all, line: 'backlog ([0-9]+)'}
  timeout:
    doc: The timeout
    type: duration
    minimum: 1ms
    step: 1s
    default: 20s
"""


def declared(folder: Path, text: str) -> Path:
    file = folder / "relay" / "role.yaml"
    file.parent.mkdir()
    file.write_text(text)
    return file


@pytest.mark.parametrize("name", ROLES)
def test_an_editor_takes_each_role_of_the_lab(name: str) -> None:
    file = paths.ROOT / name / "role.yaml"
    SCHEMA.validate(document.parse(file.read_bytes(), name).content)


@pytest.mark.parametrize("name", ROLES)
def test_the_analysis_reads_each_log_that_a_role_declares(name: str) -> None:
    assert set(ROLES[name].logs.values()) <= {*logs.ACCESS, *logs.ERRORS, *logs.DIALS}


def test_the_roles_stand_in_the_order_of_a_path() -> None:
    assert [role.kind for role in ROLES.values()] == sorted(role.kind for role in ROLES.values())


def test_a_role_is_called_as_its_folder(tmp_path: Path) -> None:
    declared(tmp_path, DECLARED)
    roles = load_roles(tmp_path)
    assert list(roles) == ["relay"]
    assert roles["relay"].knob("backlog") == "relay.backlog"
    assert roles["relay"].knobs["timeout"].initial == 20_000


@pytest.mark.parametrize(
    ("replacements", "message"),
    [
        ({"kind: proxy": "kind: proxi"}, "2: kind cannot be 'proxi'; did you mean 'proxy'?"),
        ({"description: A proxy.\n": ""}, "1: 'description' is missing"),
        ({"maximum: 10": "maximun: 10"}, "12: unknown key 'knobs.backlog.maximun'"),
        ({"maximum: 10": "maximum: ten"}, "12: knobs.backlog.maximum takes a whole number, not 'ten'"),
        ({"default: 5": "default: 11"}, "8: knobs.backlog: the default is not valid: Input should be less than"),
        (
            {"default: 20s": "default: 20500ms"},
            "15: knobs.timeout: the default is not valid: '20500ms' is not a multiple",
        ),
        ({"type: duration": "type: time"}, "15: knobs.timeout: "),
        ({"{backlog: backlog}": "{backlog: backlogs}"}, "1: the declaration: it names the knob 'backlogs', and has no"),
        ({"([0-9]+)": "([0-9]+"}, "14: knobs.backlog.read_back.line: 'backlog ([0-9]+' is not a regular expression"),
    ],
)
def test_a_fault_is_reported_with_its_line(tmp_path: Path, replacements: dict[str, str], message: str) -> None:
    file = declared(tmp_path, yaml_with(DECLARED, replacements))
    with pytest.raises(BadInput, match=re.escape(f"relay/role.yaml:{message}")):
        load_role(file)


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (r"(?=Active)(\d+)", r"'(?=Active)(\d+)' must look neither ahead nor back"),
        (r"(\d+) \1", r"'(\d+) \1' must look neither ahead nor back"),
        (r"Active: \d+", r"'Active: \d+' must have one group"),
    ],
)
def test_a_pattern_for_a_page_is_one_that_the_analysis_can_search_for(tmp_path: Path, at: str, says: str) -> None:
    page = f"scrape: {{status: {{url: 'http://x', format: text, values: {{open: {{at: '{at}', description: it}}}}}}}}\n"
    with pytest.raises(BadInput, match=re.escape(says)):
        load_role(declared(tmp_path, DECLARED + page))
