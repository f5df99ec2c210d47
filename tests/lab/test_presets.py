"""Presets: other sizes of a scenario, what goes over what, and what is wrong with them."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from formats import manifest
from lab.console import listing
from lab.engines.compose.engine import Compose
from lab.errors import BadInput
from lab.runs import run_context
from lab.scenarios.knobs import CATALOGUE
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.series import arms
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, Write, connlab

PRESETS = """\
presets:
  published:
    description: As published; it needs more memory than most machines have.
    load.users: 103
    backend.heap_mb: 512
    kernel.k6.net.ipv4.tcp_syn_retries: 5
  small: {load.users: 2}
"""
ARMS = """\
arms:
  variants:
    few: {load.users: 5}
    many: {load.users: 6, backend.accept_count: 2}
presets:
  published:
    backend.heap_mb: 512
    arms:
      many: {load.users: 103, load.calls: 2}
"""


def preset_of(
    write_scenario: Write, name: str | None, *overrides: str, text: str = MINIMAL + PRESETS
) -> ResolvedScenario:
    write_scenario(text)
    return resolve("one", overrides, preset=name)


def test_a_preset_stands_in_for_the_scenario_s_own_knobs(write_scenario: Write) -> None:
    resolved = preset_of(write_scenario, "published")
    knobs = ("load.users", "backend.heap_mb", "kernel.k6.net.ipv4.tcp_syn_retries", "backend.accept_count")
    assert [resolved.values[knob] for knob in knobs] == [103, 512, "5", 1]
    assert [resolved.source(knob) for knob in knobs] == ["preset", "preset", "preset", "scenario"]
    assert resolved.where_knob("load.users").endswith("scenario.yaml:19")


def test_without_a_name_none_is_in_force(write_scenario: Write) -> None:
    resolved = preset_of(write_scenario, None)
    assert (resolved.preset, resolved.values["load.users"]) == (None, 3)


def test_what_the_user_sets_goes_over_it(write_scenario: Write) -> None:
    resolved = preset_of(write_scenario, "published", "load.users=9")
    assert (resolved.values["load.users"], resolved.source("load.users")) == (9, "set")
    assert resolved.values["backend.heap_mb"] == 512
    assert [one.knob for one in resolved.overrides].count("load.users") == 1


def test_in_a_series_an_arm_s_own_knobs_go_over_it_unless_it_names_the_arm(write_scenario: Write) -> None:
    write_scenario(MINIMAL + ARMS)
    plan = arms.plan_arms(resolve("one", ["backend.max_connections=7"], preset="published"), ())
    few, many = (plan.cells[arm].resolved for arm in ("few", "many"))
    knobs = ("load.users", "load.calls", "backend.accept_count", "backend.heap_mb")
    assert [few.values[knob] for knob in knobs] == [5, 1, 1, 512]
    assert [many.values[knob] for knob in knobs] == [103, 2, 2, 512]
    assert (many.source("load.users"), few.source("load.users")) == ("preset", "cell")
    assert plan.request == {"preset": "published"}
    assert plan.digest() != arms.plan_arms(resolve("one"), ()).digest()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("load.users: 103", "load.user: 103", "19: unknown knob 'load.user'; did you mean 'load.users'?"),
        ("load.users: 103", "says2: 103", "19: unknown knob 'says2'"),
        ("small: {load.users: 2}", "small: {}", "22: the preset 'small' sets nothing"),
        ("small: {load.users: 2}", "small: {arms: {few: {load.users: 2}}}", "22: there is no arm 'few'"),
        ("small: {load.users: 2}", "Small: {load.users: 2}", "22: presets.Small takes small letters"),
        ("small: {load.users: 2}", "small: 3", "22: presets.small takes a mapping of names to values, not 3"),
    ],
)
def test_a_bad_preset_is_refused_though_nobody_asked_for_it(
    write_scenario: Write, old: str, new: str, message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        preset_of(write_scenario, None, text=(MINIMAL + PRESETS).replace(old, new))
    assert f"scenario.yaml:{message}" in str(refused.value)


def test_an_unknown_preset_is_answered_with_the_nearest(write_scenario: Write) -> None:
    with pytest.raises(BadInput, match=r"has no preset 'publised'; did you mean 'published'\?"):
        preset_of(write_scenario, "publised")
    with pytest.raises(BadInput, match=r"--preset published: the scenario has no preset 'published'; leave it out"):
        preset_of(write_scenario, "published", text=MINIMAL)


def test_its_values_are_judged_as_knobs_are(write_scenario: Write) -> None:
    text = (MINIMAL + PRESETS).replace("load.users: 103", "load.users: many")
    with pytest.raises(BadInput, match=r"scenario.yaml:19: load.users takes a whole number, not 'many'"):
        preset_of(write_scenario, "published", text=text)


def test_a_setting_that_no_arm_would_take_is_refused(write_scenario: Write) -> None:
    text = MINIMAL + ARMS.replace("backend.heap_mb: 512", "load.users: 512")
    with pytest.raises(BadInput, match=r"every arm sets load.users itself.*; set it below presets.published.arms"):
        preset_of(write_scenario, None, text=text)


def test_the_manifest_tells_which_was_in_force(
    write_scenario: Write, elsewhere: Path, fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("*", "1\n")
    opened = run_context.open_run(preset_of(write_scenario, "published"), Compose(), [])
    kept = manifest.load_manifest(opened.folder)
    assert (kept.preset, kept.knobs["load.users"].source) == ("published", "preset")
    assert kept.knobs["load.users"].default == CATALOGUE["load.users"].default
    assert opened.folder.is_relative_to(elsewhere)


def test_show_tells_each_of_them_and_why(write_scenario: Write, capsys: pytest.CaptureFixture[str]) -> None:
    shown = listing.describe(preset_of(write_scenario, "small"))
    assert (shown["preset"], list(shown["presets"])) == ("small", ["published", "small"])
    listing.print_details(Console(width=160), shown)
    said = capsys.readouterr().out
    assert "preset published: load.users = 103, backend.heap_mb = 512" in said
    assert "it needs more memory" in said
    assert "preset small (in force): load.users = 2" in said


def test_the_command_line_takes_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("run", "accept-queue-overflow", "--preset", "nothing", "--json") == 2
    said = json.loads(capsys.readouterr().out)
    assert said["problems"][0]["where"] == "--preset nothing"
