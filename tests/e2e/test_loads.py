"""Loads that something else than k6 makes, at a full accept queue: wrk, ab through nginx, JMeter with its results."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run
from .test_scenarios import assert_reproduced

pytestmark = pytest.mark.e2e

LOADS = Path(__file__).parent / "loads"


def test_clients_come_over_ipv6_to_a_file_that_listens_there_alone(run: Callable[..., Run]) -> None:
    found = run(str(LOADS / "ipv6"))
    assert_reproduced(found)
    assert "2001:db8::7" in found.manifest["addresses"]["nginx"]


@pytest.mark.parametrize("tool", ["wrk", "ab", "jmeter"])
def test_a_generator_s_connections_have_causes_that_the_kernel_counted_too(run: Callable[..., Run], tool: str) -> None:
    found = run(str(LOADS / tool))
    assert_reproduced(found)
    assert found.manifest["path"][0] == tool
    # What only a record of requests tells is unknown, and not 0.
    assert (found.figures["client.requests.total"] is None) == (tool != "jmeter")
