"""Bad input: each is refused before anything starts, with file, line and the nearest valid name."""

import pytest

from lab.errors import BadInput
from lab.scenarios.places import slugs
from lab.scenarios.resolve import resolve
from tests.lab.support import MINIMAL, Make, Write, yaml_with


def refusal(make: Make, *overrides: str, text: str = MINIMAL) -> list[str]:
    with pytest.raises(BadInput) as refused:
        make(*overrides, text=text)
    # The file's folder is the test's own.
    return [str(problem)[str(problem).find("scenario.yaml") :].strip() for problem in refused.value.problems]


def test_a_scenario_is_resolved_with_its_overrides(effective: Make) -> None:
    resolved = effective("backend.accept_count=7", "kernel.k6.net.ipv4.tcp_syn_retries=3")
    assert resolved.values["backend.accept_count"] == 7
    assert resolved.values["kernel.k6.net.ipv4.tcp_syn_retries"] == "3"
    assert resolved.values["backend.keep_alive_timeout"] == 20_000
    assert [resolved.source(f"backend.{name}") for name in ("accept_count", "max_connections")] == ["set", "default"]
    assert resolved.source("load.users") == "scenario"


@pytest.mark.parametrize(
    ("replacements", "message"),
    [
        (
            {"accept_count: 1": "acept_count: 1"},
            "8: unknown knob 'backend.acept_count'; did you mean 'backend.accept_count'?",
        ),
        ({"accept_count: 1": "accept_count: one"}, "8: backend.accept_count takes a whole number, not 'one'"),
        ({"accept_count: 1": "accept_count: 1.5"}, "8: backend.accept_count takes a whole number, not '1.5'"),
        ({"accept_count: 1": "accept_count: true"}, "8: backend.accept_count takes a whole number, not true"),
        ({"accept_count: 1": "accept_count:"}, "8: backend.accept_count takes a whole number, not nothing"),
        ({"accept_count: 1": "accept_count: 0"}, "8: backend.accept_count must be at least 1, not 0"),
        (
            {"accept_count: 1": "keep_alive_timeout: 20"},
            "8: backend.keep_alive_timeout: '20' has no unit: write 20s or 20ms",
        ),
        (
            {"accept_count: 1": "keep_alive_timeout: 20 seconds"},
            "8: backend.keep_alive_timeout: '20 seconds' is not a duration: write a number with a unit,",
        ),
        (
            {"accept_count: 1": "connection_timeout: 25h"},
            "8: backend.connection_timeout must be at most 24h, not '25h'",
        ),
        (
            {"accept_count: 1": "max_keep_alive_requests: 0"},
            "8: backend.max_keep_alive_requests: '0' is neither -1 (no limit) nor a whole number from 1 to 2000000000",
        ),
        ({"workload: users": "workload: user"}, "10: load.workload cannot be 'user'; did you mean 'users'?"),
        ({"  load:": "  laod:"}, "9: unknown group of knobs 'laod'; did you mean 'load'?"),
        ({"[k6, backend]": "[k6, bakend]"}, "5: unknown role 'bakend'; did you mean 'backend'?"),
        ({"[k6, backend]": "k6"}, "5: path takes a list, not 'k6'"),
        ({"schema: 1": "schema: 2"}, "1: schema cannot be 2; valid: 1"),
        ({"title: A title\n": ""}, "1: 'title' is missing"),
        ({"title: A title": "titel: A title"}, "2: unknown key 'titel'; did you mean 'title'?"),
        ({"title: A title": "title: ''"}, "2: title is empty"),
        ({"id: served": "id: Ser ved"}, "13: predictions.1.id takes small letters, digits and hyphens, not 'Ser ved'"),
        ({"knobs:": "drain: 5\nknobs:"}, "6: drain: '5' has no unit: write 5s or 5ms"),
        ({"knobs:": "warmup: {requests: -1}\nknobs:"}, "6: warmup.requests must be at least 0, not -1"),
    ],
)
def test_a_wrong_value_is_refused_where_it_stands(effective: Make, replacements: dict[str, str], message: str) -> None:
    refused = refusal(effective, text=yaml_with(MINIMAL, replacements))
    assert any(line.startswith(f"scenario.yaml:{message}") for line in refused)


def test_all_that_is_wrong_is_reported_at_once(effective: Make) -> None:
    text = yaml_with(MINIMAL, {"accept_count: 1": "accept_count: x", "users: 3": "users: y"})
    assert len(refusal(effective, text=text)) == 2


@pytest.mark.parametrize("text", ["", "[]", "1", "text"])
def test_what_is_no_mapping_is_no_scenario(effective: Make, text: str) -> None:
    assert refusal(effective, text=text) == ["scenario.yaml:1: a scenario must be a mapping of keys to values"]


@pytest.mark.parametrize("slug", ["one.yaml", "One", "$(one)", "one;ls", "-one", "one\n"])
def test_names_that_could_lead_elsewhere_are_refused(write_scenario: Write, slug: str) -> None:
    write_scenario()
    with pytest.raises(BadInput, match=r"cannot be a scenario's name"):
        resolve(slug)


def test_scenarios_are_the_folders_with_a_scenario_file(write_scenario: Write) -> None:
    write_scenario(slug="two")
    folder = write_scenario(slug="one")
    (folder / "matrices").mkdir()
    assert slugs() == ["one", "two"]
