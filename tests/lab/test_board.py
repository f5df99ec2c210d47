"""The dashboard of docs/boards, as a file. tests/e2e/test_boards.py puts its queries to a real Prometheus."""

import json
import re
from itertools import combinations
from typing import Any

from lab import paths

FOLDER = paths.ROOT / "docs/boards"
BOARD: dict[str, Any] = json.loads((FOLDER / "connlab.json").read_text())
PANELS: list[dict[str, Any]] = BOARD["panels"]
SERVED = (paths.ROOT / "collector/internal/metrics/families.go").read_text()
README = (FOLDER / "README.md").read_text()


def test_every_panel_asks_the_data_source_that_the_reader_chooses() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    asked = [panel["datasource"] for panel in PANELS]
    asked += [target["datasource"] for panel in PANELS for target in panel["targets"]]
    variables = {one["name"]: one for one in BOARD["templating"]["list"]}
    asked += [one["datasource"] for one in variables.values() if one["type"] == "query"]
    assert all(one == source for one in asked)
    assert variables["datasource"]["type"] == "datasource"
    assert set(variables) == {"datasource", "run", "role", "instance"}


def test_every_query_follows_the_chosen_run_role_and_instance() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            metrics = re.findall(r"connlab_\w+(\{[^}]*\})?", target["expr"])
            assert metrics, target
            assert all(one.startswith('{run=~"$run",role=~"$role",instance=~"$instance"') for one in metrics), target


def test_every_metric_on_the_board_is_one_that_the_collector_serves() -> None:
    asked = {
        name for panel in PANELS for target in panel["targets"] for name in re.findall(r"connlab_\w+", target["expr"])
    }
    assert len(asked) >= 8
    assert {name for name in asked if f'"{name.removesuffix("_total")}"' not in SERVED} == set()


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for one, other in combinations((panel["gridPos"] for panel in PANELS), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


def test_the_readme_says_of_every_panel_what_it_shows() -> None:
    rows = re.findall(r"(?m)^\| ([^|]+) \|", README)
    assert [panel["title"] for panel in PANELS if panel["title"] not in rows] == []
