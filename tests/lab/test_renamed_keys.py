"""Keys that had another name before: each file that people write is refused with its line and the new name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from formats.manifest import ManifestError, load_manifest
from lab import paths
from lab.errors import BadInput
from lab.roles.declared_roles import load_role
from lab.scenarios.resolve import resolve
from lab.series import matrices
from tests.lab.support import MINIMAL

SCENARIO = f"""{MINIMAL}\
presets:
  small:
    description: Small.
    load.users: 2
published:
  description: All were served.
  here: {{served: client.requests.ok}}
claim:
  supported_by: [served]
  caveat: They were more.
control:
  clean: [served]
"""
SERVICES = SCENARIO.replace(
    "path: [k6, backend]",
    """\
path: [k6, shop]
services:
  shop:
    compose: docker-compose.yml
    service: shop
    ignore: [ports]
    depends_on: [db]
  db: {image: "acme/db:1"}""",
)
MATRIX = """\
schema: 1
title: A title
experiment: workshop
question: A question?
scenarios: [accept-queue-overflow]
axes:
  load.users: [3, 4]
predictions:
  - {id: served, description: All are served., expression: client.requests.failed == 0}
"""
ROLE = """\
schema: 1
kind: proxy
description: A proxy.
display_name: the relay
memory: {base_mb: 1}
scrape:
  status:
    url: http://127.0.0.1/
    format: json
    figure_prefix: relay
    values:
      open:
        at: open
        description: connections
        label: connections held
        limit: backlog
        limit_label: at most
knobs:
  backlog:
    doc: The backlog
    type: integer
    minimum: 1
    maximum: 10
    default: 5
    label: accept queue
    configured:
      at: listen
      directive: listen
"""


def read_scenario(folder: Path, text: str) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "scenario.yaml").write_text(text)
    resolve(str(folder / "mine"))


def read_role(folder: Path, text: str) -> None:
    (folder / "role.yaml").write_text(text)
    load_role(folder / "role.yaml")


def read_matrix(folder: Path, text: str) -> None:
    (folder / "grid.yaml").write_text(text)
    matrices.read_matrix(str(folder / "grid.yaml"))


Read = Callable[[Path, str], None]


@pytest.mark.parametrize(
    ("read", "text", "line", "old"),
    [
        (read_scenario, SCENARIO, "description: All are served.", "says"),
        (read_scenario, SCENARIO, "description: Small.", "says"),
        (read_scenario, SCENARIO, "description: All were served.", "says"),
        (read_scenario, SCENARIO, "supported_by:", "borne_out_by"),
        (read_scenario, SCENARIO, "caveat:", "but"),
        (read_scenario, SCENARIO, "control:", "twin"),
        (read_scenario, SERVICES, "ignore:", "without"),
        (read_scenario, SERVICES, "depends_on:", "needs"),
        (read_matrix, MATRIX, "description:", "says"),
        (read_role, ROLE, "description: A proxy.", "says"),
        (read_role, ROLE, "display_name:", "called"),
        (read_role, ROLE, "figure_prefix:", "called"),
        (read_role, ROLE, "description: connections", "says"),
        (read_role, ROLE, "label: connections held", "shown"),
        (read_role, ROLE, "limit_label:", "limit_shown"),
        (read_role, ROLE, "label: accept queue", "shown"),
        (read_role, ROLE, "directive:", "says"),
    ],
)
def test_an_old_key_is_refused_at_its_line_with_the_new_name(
    tmp_path: Path, read: Read, text: str, line: str, old: str
) -> None:
    new = line.partition(":")[0]
    with pytest.raises(BadInput) as refused:
        read(tmp_path, text.replace(line, line.replace(new, old, 1), 1))
    [problem] = refused.value.problems
    number = text[: text.index(line)].count("\n") + 1
    assert str(problem.where).endswith(f".yaml:{number}")
    assert f"{old}' has a new name" in problem.what
    assert problem.hint == f"write '{new}'"


@pytest.mark.parametrize(("read", "text"), [(read_scenario, SCENARIO), (read_matrix, MATRIX), (read_role, ROLE)])
def test_the_new_names_are_taken(tmp_path: Path, read: Read, text: str) -> None:
    read(tmp_path, text)


def test_a_run_of_an_earlier_version_is_refused_with_the_old_name(tmp_path: Path) -> None:
    text = (paths.ROOT / "docs" / "example" / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"description":', '"says":'))
    with pytest.raises(ManifestError, match=r"description: an earlier version wrote this as 'says'"):
        load_manifest(tmp_path)
