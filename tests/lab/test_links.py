"""The links of a path: what a scenario may ask for, and how the lab sees that it got it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from formats.manifest import LinkUse
from lab.engines.compose.run_file import build_run_file
from lab.engines.compose.startup import FIRST_SUBNET
from lab.errors import BadInput, LabError
from lab.runs import links
from lab.runs.run_context import RunContext
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, THROUGH_NGINX, Make, Open

FAR = f"{MINIMAL}network: {{k6: {{backend: {{delay: 25ms, loss: 1%}}}}, backend: {{k6: {{delay: 25ms}}}}}}\n"


def refused(make: Make, network: str) -> list[str]:
    with pytest.raises(BadInput) as refusal:
        make(text=f"{MINIMAL}network: {network}\n")
    return [str(one).rpartition("scenario.yaml:")[2] for one in refusal.value.problems]


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("delay: 5", "delay: '5' has no unit: write 5s or 5ms"),
        ("delay: 11s", "delay must be at most 10s, not '11s'"),
        ("loss: 1", "loss: '1' has no unit: write 1%"),
        ("loss: 101%", "loss must be at most 100%, not '101%'"),
        (
            "rate: 10mbps",
            "rate: '10mbps' is not a rate: write whole kilobits a second with a unit, such as 512kbit or 10mbit",
        ),
        ("delay: 5ms, jitter: 6ms", "jitter (6ms) exceeds its delay (5ms); lower the jitter, or raise the delay"),
        ("reorder: 1%", "reorder lets packets overtake others that are delayed, and its delay is 0s; set a delay"),
        ("loss_burst: 3", "loss_burst is set, but its loss is 0%; set a loss"),
        ("forget: reset", "forget is set, but its forget_idle is 0s; set forget_idle"),
    ],
)
def test_a_link_that_cannot_be_is_refused_with_its_line(effective: Make, link: str, message: str) -> None:
    assert refused(effective, f"{{k6: {{backend: {{{link}}}}}}}") == [f"16: network.k6.backend.{message}"]


@pytest.mark.parametrize(
    ("of_k6", "message"),
    [
        ("{bakend: {delay: 5ms}}", "unknown role 'bakend'; did you mean 'backend'?"),
        ("{backend: {dely: 5ms}}", "unknown key 'network.k6.backend.dely'; did you mean 'delay'?"),
        (
            "{nginx: {delay: 5ms}}",
            (
                "network.k6.nginx is set, but nginx is not on the path [k6, backend]; leave it out, or put nginx on the"
                " path"
            ),
        ),
    ],
)
def test_a_link_that_is_none_is_refused_with_its_line(effective: Make, of_k6: str, message: str) -> None:
    assert refused(effective, f"{{k6: {of_k6}}}") == [f"16: {message}"]


def test_a_link_joins_roles_that_stand_beside_each_other(effective: Make) -> None:
    with pytest.raises(BadInput, match="no packet goes from k6 to backend on the path"):
        effective(text=f"{THROUGH_NGINX}network: {{k6: {{backend: {{delay: 5ms}}}}}}\n")


def test_a_link_is_set_like_any_knob(effective: Make) -> None:
    resolved = effective("network.k6.backend.delay=100ms", "network.backend.k6.rate=1.5mbit", text=FAR)
    assert resolved.values["network.k6.backend.delay"] == 100
    assert resolved.values["network.backend.k6.rate"] == 1500
    assert (resolved.values["network.k6.backend.loss"], resolved.source("network.k6.backend.loss")) == (1.0, "scenario")
    with pytest.raises(BadInput, match=r"a link's knob is network\.<from>\.<to>\.<knob>, such as network\.k6\.nginx\."):
        effective("network.k6.backend.dealy=100ms", text=FAR)


def test_only_a_collector_with_a_link_may_change_its_namespace(opened: Open) -> None:
    context = opened(text=FAR.replace(", backend: {k6: {delay: 25ms}}", ""))
    made = build_run_file(context.resolved, context.topology, "run", context.places, FIRST_SUBNET)["services"]
    assert made["collector-k6-1"]["cap_add"] == ["NET_ADMIN"]
    assert "cap_add" not in made["collector-backend-1"]


@pytest.fixture
def opened(opened: Open) -> Open:
    def make(*overrides: str, text: str = FAR) -> RunContext:
        context = opened(*overrides, text=text)
        context.manifest.addresses |= {"k6-1": ["172.18.0.2"], "backend-1": ["172.18.0.3", "fd00::3"]}
        return context

    return make


def told(*, way: str = "nfqueue", **changed: object) -> str:
    """Return what a collector says of its one link."""
    state = {
        **dict.fromkeys(links.NAMES.values(), 0),
        "delay_ms": 25,
        "loss_burst": 1,
        "queue": 1000,
        "forget_with_reset": False,
        "packets": 7,
        "lost": 1,
    }
    return json.dumps({"way": way, "links": [state | changed]})


def probed(**changed: object) -> str:
    found = {"sent": 1000, "received": 990, "min_us": 50_100.0, "p50_us": 50_300.0, "p99_us": 52_000.0}
    return json.dumps({**found, "max_us": 60_000.0, **changed})


def asked_of(docker: InMemoryDocker, instance: str) -> list[Mapping[str, Any]]:
    (call,) = (one for one in docker.calls if f"collector-{instance} collector link --set" in one)
    return list(json.loads(call.partition("--set ")[2]))


def test_links_are_set_read_back_and_measured(opened: Open, fake_docker: InMemoryDocker) -> None:
    context = opened()
    fake_docker.says("* link --set *loss_percent*1.0*", told(loss_percent=1))
    fake_docker.says("* link --set *", told())
    fake_docker.says("* ping *", probed())
    links.set_links(context)
    (asked,) = asked_of(fake_docker, "k6-1")
    # The load speaks IPv4.
    assert (asked["to"], asked["addresses"], asked["delay_ms"]) == ("backend", ["172.18.0.3"], 25)
    first, second = context.manifest.links
    assert (first.instance, first.to, first.way, first.read_back["loss"]) == ("k6-1", "backend", "nfqueue", 1)
    assert (second.instance, second.to, second.asked["delay"]) == ("backend-1", "k6", 25)
    (trip,) = context.manifest.round_trips
    assert (trip.instance, trip.to, trip.asked_ms, trip.asked_loss_percent) == ("k6-1", "backend-1", 50, 1)
    assert trip.loss_low_percent < 1 < trip.loss_high_percent
    fake_docker.says("* link", told())
    links.record_use(context)
    assert first.use == LinkUse(packets=7, lost=1)


def test_netem_has_a_share_as_near_as_its_bits_allow(opened: Open, fake_docker: InMemoryDocker) -> None:
    context = opened()
    fake_docker.says("* link --set *loss_percent*1.0*", told(way="netem", loss_percent=1.0003))
    fake_docker.says("* link --set *", told(way="netem"))
    fake_docker.says("* ping *", probed())
    links.set_links(context)
    assert [one.way for one in context.manifest.links] == ["netem", "netem"]


@pytest.mark.parametrize(
    ("state", "probes", "message"),
    [
        ({"delay_ms": 20}, {}, "backend-1 to k6: delay: asked 25, found 20"),
        ({}, {"p50_us": 52_000.0}, "k6-1 to backend-1 and back: the median of 990 round trips is 52.00 ms, and 50 ms"),
        ({}, {"received": 1000}, "k6-1 to backend-1 and back: 0 of 1,000 probes were lost, and 1 % was asked for"),
        ({}, {"received": 900}, "k6-1 to backend-1 and back: 100 of 1,000 probes were lost, and 1 % was asked for"),
    ],
)
def test_a_link_that_did_not_take_ends_the_run(
    opened: Open, fake_docker: InMemoryDocker, state: dict[str, Any], probes: dict[str, Any], message: str
) -> None:
    context = opened()
    fake_docker.says("* link --set *loss_percent*1.0*", told(loss_percent=1))
    fake_docker.says("* link --set *", told(**state))
    fake_docker.says("* ping *", probed(**probes))
    with pytest.raises(LabError, match="links are not as asked") as aborted:
        links.set_links(context)
    assert message in str(aborted.value)
    # What was found stays in the manifest.
    assert context.manifest.links


def test_what_holds_packets_is_not_asked_for_more_than_it_carries(opened: Open, fake_docker: InMemoryDocker) -> None:
    knob = "network.k6.backend.rate"
    context = opened(f"{knob}=1gbit")
    fake_docker.says("* link --set *loss_percent*1.0*", told(loss_percent=1, rate_kbit=1_000_000))
    fake_docker.says("* link --set *", told())
    with pytest.raises(BadInput, match=rf"--set {knob}=1gbit: the collector holds .*, and it carries 100mbit"):
        links.set_links(context)
