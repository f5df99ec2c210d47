"""What other kernels do with the same commands: links by netem, and SYNs that nothing answers."""

import functools
import json
import subprocess
from typing import Any

import pytest

from analysis.diagnosis.syn_ladder import syn_ladder

_IMAGE = "connlab/kernels"
_RETRIES = 2
# Of the one kernel that is older than tcp_syn_linear_timeouts, and the one that has it.
_VERSIONS = ("6.1.", "6.12.")


def _run(*arguments: str) -> str:
    command = ["docker", "run", "--rm", "--network", "none", "--label", "connlab.check=kernels", _IMAGE, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=200).stdout


@functools.cache
def told(version: str) -> dict[str, list[str]]:
    """Start a kernel, and return each of its results by its name."""
    name = next(one for one in _run().split() if one.startswith(version))
    found: dict[str, list[str]] = {}
    for line in _run(name).splitlines():
        key, tab, value = line.partition("\t")
        if tab:
            found.setdefault(key, []).append(value.strip())
    return found


def link(version: str, name: str) -> dict[str, Any]:
    report = json.loads(told(version)[name][0])
    assert report["way"] == "netem"
    (state,) = report["links"]
    return dict(state)


@pytest.mark.parametrize("version", _VERSIONS)
def test_netem_is_read_back_as_it_was_asked_for(version: str) -> None:
    there, back = link(version, "there"), link(version, "back")
    asked = {"delay_ms": 50, "jitter_ms": 0, "loss_percent": 10, "loss_burst": 1, "rate_kbit": 10_000, "queue": 1000}
    assert {key: there[key] for key in asked} == asked
    asked = {"delay_ms": 20, "jitter_ms": 5, "loss_burst": 4, "rate_kbit": 0, "queue": 500, "reorder_percent": 10}
    assert {key: back[key] for key in asked} == asked
    assert back["loss_percent"] == pytest.approx(5, abs=0.002)


@pytest.mark.parametrize("version", _VERSIONS)
def test_netem_delays_and_loses_what_goes_to_the_peer(version: str) -> None:
    measured, use = json.loads(told(version)["ping"][0]), link(version, "use")
    # The emulation may be slow, but no clock in it is fast.
    assert measured["min_us"] > 50_000
    assert measured["sent"] == use["packets"] == 300
    assert use["lost"] == 300 - measured["received"]
    # Beyond these there is one run in a million.
    assert 8 <= use["lost"] <= 60


@pytest.mark.parametrize("version", _VERSIONS)
def test_syns_are_sent_as_the_model_says(version: str) -> None:
    found = told(version)
    linear = int(found["linear"][0] or 0)
    assert (linear > 0) == (version == "6.12.")
    ladder = syn_ladder(_RETRIES, linear)
    names, values = (line.split() for line in found["counters"])
    assert int(dict(zip(names, values, strict=True))["TCPSynRetrans"]) == len(ladder) - 1
    begun, ended = map(float, found["gave_up"][0].split())
    # It gives up no sooner than it would have sent the next one.
    following = syn_ladder(_RETRIES + 1, linear)[len(ladder)]
    assert 1000 * (ended - begun) >= following.earliest_ms - 10
