"""Arms: variants of a scenario as one series, and what is wrong with them."""

from pathlib import Path

import pytest

from lab.errors import BadInput
from lab.scenarios.resolve import resolve
from lab.series import arms
from lab.series.plan import Plan
from tests.lab.series_support import FakeRunner, executor, write
from tests.lab.support import MINIMAL

ARMS = """\
arms:
  repetitions: 3
  variants:
    keep-alive:
      load.keep_alive: true
    no-keep-alive:
      load.keep_alive: false
    proxied:
      path: [k6, nginx, backend]
      nginx.keepalive_timeout: 5s
"""
COMPARED = """\
  - id: faster
    description: Kept connections are faster.
    expression: arms.keep_alive.client.latency_ms.mean < arms.no_keep_alive.client.latency_ms.mean
  - id: closed
    description: Each request has its own connection.
    arms: [no-keep-alive]
    expression: client.dials.total == client.requests.total
"""


def plan_of(folder: Path, *overrides: str, text: str = MINIMAL + COMPARED + ARMS) -> Plan:
    write(folder, scenario=text)
    return arms.plan_arms(resolve("one", overrides), overrides)


def test_each_variant_is_an_arm(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "load.users=7")
    assert list(plan.cells) == ["keep-alive", "no-keep-alive", "proxied"]
    assert plan.cells["no-keep-alive"].cell.knobs == {"load.users": 7, "load.keep_alive": False}
    assert plan.cells["proxied"].cell.path == ["k6", "nginx", "backend"]
    assert len(plan.order()) == 9
    assert plan.baseline == "keep-alive"


def test_predictions_are_about_the_series_an_arm_s_runs_or_every_run(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert [one.id for one in plan.predictions] == ["faster"]
    about = {name: [one.prediction.id for one in planned.resolved.predictions] for name, planned in plan.cells.items()}
    assert about == {"keep-alive": ["served"], "no-keep-alive": ["served", "closed"], "proxied": ["served"]}


def test_arms_may_say_what_they_are_about(tmp_path: Path) -> None:
    about = ARMS.replace("  repetitions: 3\n", "  repetitions: 3\n  figures: [client.requests.failed]\n")
    assert plan_of(tmp_path, text=MINIMAL + COMPARED + about).figures == ("client.requests.failed",)
    with pytest.raises(BadInput, match=r"scenario\.yaml:\d+: .*did you mean client\.requests\.failed\?"):
        plan_of(tmp_path, text=MINIMAL + COMPARED + about.replace("requests.failed", "requests.faild"))


def test_the_series_keeps_the_comparisons_and_each_run_its_own(elsewhere: Path) -> None:
    made = executor(plan_of(elsewhere), FakeRunner())
    assert [one.id for one in made.series.predictions] == ["faster"]
    assert made.series.axes[0].name == "arm"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arms.no_keep_alive", "arms.no_keepalive", "there is no arm no_keepalive; did you mean no_keep_alive?"),
        ("arms.keep_alive.client.latency_ms.mean", "client.latency_ms.mean", "of which arm?"),
        ("arms.keep_alive.client.latency_ms.mean", "arms.keep_alive.client.latency.mean", "client.latency"),
        ("[no-keep-alive]", "[closed]", "there is no arm 'closed'"),
        ("repetitions: 3", "baseline: none", "scenario.yaml:24: there is no arm 'none'"),
        ("load.keep_alive: true", "load.keepalive: true", "unknown knob 'load.keepalive'; did you mean"),
        ("load.keep_alive: true", "load.keep_alive: 3", "load.keep_alive takes true or false, not 3"),
        ("load.keep_alive: true", "load.keep_alive: false", "'no-keep-alive' and 'keep-alive' are the same"),
        ("      path: [k6, nginx, backend]\n", "", "nginx.keepalive_timeout is set, but nginx is not on the path"),
        ("    keep-alive:\n", "    Keep_alive:\n", "takes small letters, digits and hyphens"),
        ("repetitions: 3", "repetitions: 0", "arms.repetitions must be at least 1, not 0"),
    ],
)
def test_bad_arms_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (MINIMAL + COMPARED + ARMS).replace(old, new, 1)
    with pytest.raises(BadInput) as refused:
        plan_of(tmp_path, text=text)
    assert message in str(refused.value)
    assert "scenario.yaml:" in str(refused.value)


def test_a_knob_that_the_user_sets_must_be_no_arm_s(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"load\.keep_alive is set by the arm 'keep-alive'"):
        plan_of(tmp_path, "load.keep_alive=false")


def test_a_comparison_is_not_about_some_arms(tmp_path: Path) -> None:
    text = (MINIMAL + COMPARED + ARMS).replace("are faster.\n", "are faster.\n    arms: [proxied]\n")
    with pytest.raises(BadInput, match="compares arms, so it is not about the runs of some"):
        plan_of(tmp_path, text=text)
