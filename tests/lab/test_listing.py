import re
from typing import Any

import pytest
from rich.console import Console

from lab.console import listing
from lab.scenarios.places import slugs
from lab.scenarios.resolve import resolve


@pytest.fixture(scope="module")
def summaries() -> list[dict[str, Any]]:
    return [listing.summarize(resolve(slug)) for slug in slugs()]


@pytest.mark.parametrize("width", [80, 120, 160])
def test_every_name_can_be_copied_and_every_title_read(
    width: int, summaries: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    listing.print_list(Console(width=width), summaries)
    shown = capsys.readouterr().out
    assert {one["scenario"] for one in summaries} <= set(shown.split())
    for word in {word for one in summaries for word in one["title"].split()}:
        assert word in shown or len(word) > width // 6
    assert not re.search(r"…", shown)
    assert ("k6 → nginx → backend" in shown) == (width >= 140)


def test_experiments_come_in_their_order_and_the_workshops_own_last() -> None:
    ordered = [one.scenario.experiment for one in listing.sort_scenarios(map(resolve, slugs()))]
    assert ordered[0] == "A1"
    assert ordered.index("B5") < ordered.index("C1") < ordered.index("workshop")
    assert set(ordered[ordered.index("workshop") :]) == {"workshop"}
