"""A packet filter between a proxy and its server: real runs, in which each failed request has its cause."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run
from .test_scenarios import assert_reproduced

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("proxy", ["nginx", "haproxy"])
def test_syns_that_a_filter_took_behind_a_proxy_are_told_from_those_that_icmp_refused(
    run: Callable[..., Run], proxy: str
) -> None:
    assert_reproduced(run(str(Path(__file__).parent / "filtered" / proxy)))
