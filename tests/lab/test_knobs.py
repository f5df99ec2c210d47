import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import formatting
from formats.knob_types import KnobValue
from formats.manifest import Knob
from lab import paths
from lab.scenarios.knobs import CATALOGUE, GROUPS, Knobs, KnownKnob, environment, flat_values, format_knob


def test_every_knob_has_a_description() -> None:
    assert [knob.name for knob in CATALOGUE.values() if not knob.description] == []


def test_defaults_are_within_their_own_ranges() -> None:
    asked = {
        group: {knob.field: _as_written(knob.name) for knob in CATALOGUE.values() if knob.group == group}
        for group in ("backend", "nginx", "gateway", "load", "capture", "sampler")
    }
    assert Knobs.model_validate(asked) == Knobs()


def _as_written(name: str) -> object:
    knob = CATALOGUE[name]
    return format_knob(name, knob.default, CATALOGUE) if knob.is_duration else _yaml(knob.default)


def _yaml(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdigit() else value


def test_a_container_gets_every_knob_of_its_role_as_text() -> None:
    knobs = Knobs.model_validate(
        {
            "backend": {"virtual_threads": True},
            "nginx": {"proxy_connection": ""},
            "load": {"connect_timeout": "1s"},
        }
    )
    backend, nginx, load = (environment(knobs, group) for group in ("backend", "nginx", "load"))
    assert backend["CONNLAB_VIRTUAL_THREADS"] == "true"
    assert backend["CONNLAB_KEEP_ALIVE_TIMEOUT"] == "20000ms"
    assert nginx["CONNLAB_PROXY_CONNECTION"] == ""
    assert load["CONNLAB_CONNECT_TIMEOUT"] == "1000ms"
    assert "CONNLAB_INSTANCES" not in {**backend, **load}
    # The lab counts the instances, and makes their key.
    assert len(backend) == len(GROUPS["backend"].model_fields) - 2


# Where each program has its own list of the knobs that it reads.
READ_IN = {
    "backend": ("backend/src/main/resources/application.yaml", "backend/image/start"),
    "nginx": ("nginx/connlab-nginx", "nginx/templates/*.conf", "nginx/templates/*/*.conf"),
    "haproxy": ("haproxy/haproxy.cfg", "haproxy/connlab-haproxy"),
    "gateway": ("gateway/internal/config/*.go",),
    "load": ("k6/lib/*.js", "k6/workloads/*.js", "k6/connlab-k6", "k6/dial/*.go", "k6/module/*.go"),
}


@pytest.mark.parametrize("group", READ_IN)
def test_each_knob_is_read_by_its_program(group: str) -> None:
    text = "".join(file.read_text() for pattern in READ_IN[group] for file in paths.ROOT.glob(pattern))
    # The workloads name a knob as a field of their own: `half_open: count`.
    read = {
        name.upper()
        for names in re.findall(
            r"CONNLAB_(\w+)|\b(\w+)(?:: (?:count|duration|flag|segments|word)\b|,$)", text, re.MULTILINE
        )
        for name in names
    }
    asked = {name.removeprefix("CONNLAB_") for name in environment(Knobs(), group)}
    assert asked - read == set()


def test_sysctls_stand_beside_the_knobs() -> None:
    knobs = Knobs(kernel={"k6": {"net.ipv4.tcp_syn_retries": "6"}})
    assert flat_values(knobs)["kernel.k6.net.ipv4.tcp_syn_retries"] == "6"


@given(st.sampled_from(sorted(CATALOGUE)), st.integers(min_value=0) | st.booleans() | st.text(max_size=20))
def test_every_value_can_be_shown(name: str, value: KnobValue) -> None:
    assert format_knob(name, value, CATALOGUE)


@given(
    st.sampled_from(sorted(CATALOGUE)),
    st.sampled_from([0, 1, 500, 1_500, 20_000, 3_600_000]) | st.integers(0, 10**12) | st.booleans() | st.just(""),
)
def test_a_report_writes_a_knob_as_a_scenario_does(name: str, value: KnobValue) -> None:
    knob = Knob(value=value, unit=CATALOGUE[name].unit)
    assert formatting.format_knob(knob) == format_knob(name, value, CATALOGUE)


def test_the_unit_of_a_knob_is_its_declaration_s_not_its_name_s() -> None:
    declared = [
        KnownKnob("shop", "patience", 0, "", unit="ms"),
        KnownKnob("shop", "timeout", 0, ""),
    ]
    knobs = {knob.name: knob for knob in declared}
    assert [format_knob(name, 60_000, knobs) for name in knobs] == ["1m", "60000"]
