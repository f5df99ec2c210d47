import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import BadInput
from lab.scenarios.knobs import CATALOGUE
from lab.scenarios.overrides import nearest_knob, parse_overrides


@pytest.mark.parametrize(
    ("text", "knob", "value", "location"),
    [
        ("backend.accept_count=10", "backend.accept_count", 10, ("knobs", "backend", "accept_count")),
        ("load.keep_alive=false", "load.keep_alive", False, ("knobs", "load", "keep_alive")),
        ("load.connect_timeout=1s", "load.connect_timeout", "1s", ("knobs", "load", "connect_timeout")),
        ("nginx.proxy_connection=", "nginx.proxy_connection", "", ("knobs", "nginx", "proxy_connection")),
        (
            "kernel.nginx.net.ipv4.tcp_tw_reuse=1",
            "kernel.nginx.net.ipv4.tcp_tw_reuse",
            1,
            ("knobs", "kernel", "nginx", "net.ipv4.tcp_tw_reuse"),
        ),
        (
            'kernel.k6."net.ipv4.ip_local_port_range"=32768 32768',
            "kernel.k6.net.ipv4.ip_local_port_range",
            "32768 32768",
            ("knobs", "kernel", "k6", "net.ipv4.ip_local_port_range"),
        ),
    ],
)
def test_an_override_is_a_knob_and_a_value(text: str, knob: str, value: object, location: tuple[str, ...]) -> None:
    (override,) = parse_overrides([text])
    assert (override.knob, override.value, override.location) == (knob, value, location)


def test_a_knob_is_set_once() -> None:
    with pytest.raises(BadInput) as refused:
        parse_overrides(["load.users=1", "load.users=2"])
    assert (
        str(refused.value)
        == "--set load.users=2: load.users is set twice; leave one of the two out; the other is --set load.users=1"
    )


@pytest.mark.parametrize("text", ["010", "-010", "00", "-0", "0x10", "1_000", "+1", "٣"])
def test_what_could_be_read_in_two_ways_is_no_number(text: str) -> None:
    (override,) = parse_overrides([f"load.users={text}"])
    assert override.value == text


def test_all_that_is_wrong_is_reported_at_once() -> None:
    with pytest.raises(BadInput) as refused:
        parse_overrides(["backend.acceptcount=1", "load.users", "=3"])
    assert [str(problem) for problem in refused.value.problems] == [
        "--set backend.acceptcount=1: unknown knob 'backend.acceptcount'; did you mean 'backend.accept_count'?",
        "--set load.users: a setting needs a knob, '=' and a value; write it as backend.accept_count=10",
        "--set =3: a setting needs a knob, '=' and a value; write it as backend.accept_count=10",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("accept_count", "backend.accept_count"),
        ("load.accept_count", "backend.accept_count"),
        ("load.user", "load.users"),
        ("nginx.worker_conections", "nginx.worker_connections"),
        ("workerprocesses", "nginx.worker_processes"),
    ],
)
def test_the_knob_that_was_meant_is_found(name: str, meant: str) -> None:
    assert nearest_knob(name) == f"did you mean '{meant}'?"


def test_a_group_s_name_alone_is_no_likeness() -> None:
    assert nearest_knob("load.nosuch") == "'connlab show' lists a scenario's knobs"


@pytest.mark.parametrize("name", ["kernel.k6", "kernel.k6.net", "kernel..net.x", "kernel.k6.net..x"])
def test_a_sysctl_needs_a_role_and_a_name(name: str) -> None:
    with pytest.raises(BadInput, match="does not name a role and a sysctl"):
        parse_overrides([f"{name}=1"])


@given(st.sampled_from(sorted(CATALOGUE)), st.integers(min_value=-(10**17), max_value=10**17))
def test_every_knob_takes_every_whole_number_as_one(knob: str, value: int) -> None:
    (override,) = parse_overrides([f"{knob}={value}"])
    assert (override.knob, override.value) == (knob, value)


@given(st.text())
def test_any_text_is_an_override_or_refused(text: str) -> None:
    with contextlib.suppress(BadInput):
        assert parse_overrides([text])[0].knob
