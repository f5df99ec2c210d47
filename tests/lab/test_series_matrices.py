"""Matrices: their cells, and everything that is refused before the first one starts."""

from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from lab import paths
from lab.errors import BadInput
from lab.schema import schemas
from lab.series import matrices
from lab.series.matrices import matrix_names
from lab.series.plan import Plan
from tests.lab import series_support
from tests.lab.series_support import MATRIX
from tests.lab.support import MINIMAL, yaml_with

AXES = """\
  backend.accept_count: [1, 2]
  load.users: [3, 4]
"""


def plan_of(folder: Path, *overrides: str, axes: str = AXES, more: str = "") -> Plan:
    scenarios = series_support.write(folder, yaml_with(MATRIX, {AXES: axes}) + more)
    (scenarios / "two").mkdir(exist_ok=True)
    (scenarios / "two" / "scenario.yaml").write_text(MINIMAL)
    return matrices.plan_matrix("grid", overrides)


def refusals(folder: Path, *overrides: str, axes: str = AXES, more: str = "") -> list[str]:
    with pytest.raises(BadInput) as refused:
        plan_of(folder, *overrides, axes=axes, more=more)
    # The folder is the test's own.
    return [str(problem).replace(f"{folder}/scenarios/", "") for problem in refused.value.problems]


def test_a_matrix_may_be_named_by_its_file_wherever_that_lies(tmp_path: Path) -> None:
    planned = plan_of(tmp_path)
    scenarios = tmp_path / "scenarios"
    file = (scenarios / "matrices" / "grid.yaml").rename(tmp_path / "grid.yaml")
    moved = matrices.plan_matrix(str(file))
    assert (moved.name, moved.digest()) == ("grid", planned.digest())
    with pytest.raises(BadInput, match="a matrix's name holds small letters"):
        matrices.plan_matrix(str(file.rename(tmp_path / "The Grid.yaml")))


def test_the_cells_are_the_cross_product(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert {name: one.cell.knobs for name, one in plan.cells.items()} == {
        f"accept-count-{count}-users-{users}": {"backend.accept_count": count, "load.users": users}
        for count in (1, 2)
        for users in (3, 4)
    }
    assert plan.baseline == "accept-count-1-users-3"
    assert len(plan.order()) == 8


def test_a_cell_s_knobs_say_that_the_cell_set_them(tmp_path: Path) -> None:
    one = plan_of(tmp_path, "backend.max_connections=9").cells["accept-count-2-users-3"].resolved
    assert [one.source(f"backend.{knob}") for knob in ("accept_count", "max_connections", "heap_mb")] == [
        "cell",
        "set",
        "default",
    ]


def test_named_variants_move_several_knobs_and_the_path(tmp_path: Path) -> None:
    axes = """\
  way:
    direct: {}
    proxied: {path: [k6, nginx, backend], nginx.worker_connections: 64}
"""
    plan = plan_of(tmp_path, axes=axes)
    assert {name: one.cell.path for name, one in plan.cells.items()} == {
        "direct": ["k6", "backend"],
        "proxied": ["k6", "nginx", "backend"],
    }
    assert plan.cells["proxied"].resolved.values["nginx.worker_connections"] == 64


def test_several_scenarios_are_an_axis(tmp_path: Path) -> None:
    scenarios = series_support.write(tmp_path, MATRIX.replace("[one]", "[one, two]"))
    (scenarios / "two").mkdir()
    (scenarios / "two" / "scenario.yaml").write_text(MINIMAL)
    plan = matrices.plan_matrix("grid")
    assert len(plan.cells) == 8
    assert plan.axes[0].name == "scenario"
    assert plan.cells["two-accept-count-1-users-4"].resolved.slug == "two"


def test_a_matrix_s_predictions_stand_in_place_of_the_scenario_s(tmp_path: Path) -> None:
    more = "predictions: [{id: mine, description: So., expression: client.requests.failed == 0}]\n"
    plan = plan_of(tmp_path, more=more)
    assert [one.prediction.id for planned in plan.cells.values() for one in planned.resolved.predictions] == [
        "mine"
    ] * 4


def test_durations_texts_and_sysctls_can_be_axes(tmp_path: Path) -> None:
    axes = """\
  backend.keep_alive_timeout: [1s, 500ms]
  backend.max_keep_alive_requests: [-1, 1]
  kernel.backend.net.ipv4.tcp_fin_timeout: [10, 60]
"""
    plan = plan_of(tmp_path, axes=axes)
    assert "keep-alive-timeout-500ms-max-keep-alive-requests-unlimited-tcp-fin-timeout-10" in plan.cells
    assert plan.axes[0].levels[1].knobs == {"backend.keep_alive_timeout": 500}


@pytest.mark.parametrize(
    ("axes", "more", "message"),
    [
        (
            "  load.users: []\n",
            "",
            (
                "matrices/grid.yaml:7: the axis 'load.users' is empty: it has no value to take, and the matrix no cell;"
                " give it values, or leave it out"
            ),
        ),
        (
            "  way: {}\n",
            "",
            (
                "matrices/grid.yaml:7: the axis 'way' is empty: it has no value to take, and the matrix no cell;"
                " give it values, or leave it out"
            ),
        ),
        ("  load.users: [1]\n  load.users: [2]\n", "", "matrices/grid.yaml:8: the key 'load.users' appears twice"),
        ("  load.users: [1, 2, 1]\n", "", "matrices/grid.yaml:7: load.users has the value 1 twice"),
        (
            "  load.users: [1, 2]\n  size:\n    small: {load.users: 1}\n",
            "",
            (
                "matrices/grid.yaml:9: load.users is moved by two axes, 'load.users' and 'size': their cells"
                " contradict; move it by one of them"
            ),
        ),
        (
            "  load.users: [1, 2]\n",
            "knobs: {load.users: 3}\n",
            (
                "matrices/grid.yaml:7: load.users is moved by the axis 'load.users', and fixed at"
                " matrices/grid.yaml:10; leave one of the two out"
            ),
        ),
        (
            "  load.user: [1, 2]\n",
            "",
            (
                "matrices/grid.yaml:7: the axis 'load.user' has a list of values, and is not a knob;"
                " did you mean 'load.users'?"
            ),
        ),
        (
            "  size:\n    small: {load.user: 1}\n",
            "",
            "matrices/grid.yaml:8: unknown knob 'load.user'; did you mean 'load.users'?",
        ),
        (AXES, "budget: {cells: 3}\n", "matrices/grid.yaml:6: the matrix has 2 x 2 = 4 cells, and its budget is 3;"),
        (
            AXES,
            "budget: {duration: 10s}\n",
            "matrices/grid.yaml:6: 8 runs are expected to take 2 min, and the budget is 10s;",
        ),
        (
            "  load.users:\n    - 1\n    - none\n",
            "",
            "matrices/grid.yaml:9: load.users takes a whole number, not 'none'",
        ),
        ("  backend.heap_mb: [64, 1]\n", "", "matrices/grid.yaml:7: backend.heap_mb must be at least 64, not 1"),
        (
            "  nginx.worker_connections: [64, 128]\n",
            "",
            (
                "matrices/grid.yaml:7: nginx.worker_connections is set, but nginx is not on the path [k6, backend];"
                " leave it out, or put nginx on the path"
            ),
        ),
        (
            "  backend.keep_alive_timeout: [1s, 1000ms]\n",
            "",
            "'keep-alive-timeout-1000ms' and 'keep-alive-timeout-1s' are the same: every knob has the same value",
        ),
        (
            AXES,
            "baseline: {load.users: 5}\n",
            "matrices/grid.yaml:11: the axis 'load.users' has no level '5'; it has 3, 4",
        ),
        (AXES, "baseline: {load.user: 3}\n", "the baseline names no axis 'load.user'; did you mean 'load.users'?"),
        (AXES, "repetition: 3\n", "matrices/grid.yaml:11: unknown key 'repetition'; did you mean 'repetitions'?"),
        ("  arm:\n    a: {}\n", "", "an axis of named variants cannot be called 'arm': the lab makes that one"),
        ("  way:\n    a: {path: nginx}\n", "", "path takes a list of roles, such as [k6, backend]"),
        ("  way:\n    a: {path: [k6, bakend]}\n    b: {}\n", "", "grid.yaml:8: unknown role 'bakend'; did you mean"),
        (
            "  way:\n    a/b: {load.users: 1}\n    a.b: {load.users: 2}\n",
            "",
            "two cells would both be called 'a-b'; use named variants, with short names",
        ),
        (
            AXES,
            "predictions: [{id: a, description: b, expression: client.request.failed == 0}]\n",
            "matrices/grid.yaml:11: prediction 'a': ",
        ),
    ],
)
def test_bad_input_is_refused_with_its_place_and_a_hint(tmp_path: Path, axes: str, more: str, message: str) -> None:
    assert message in "\n".join(refusals(tmp_path, axes=axes, more=more))


def test_what_is_wrong_with_many_cells_is_reported_once(tmp_path: Path) -> None:
    assert len(refusals(tmp_path, axes="  backend.accept_count: [0, 1]\n  load.users: [1, 2, 3]\n")) == 1


def test_a_knob_that_the_user_sets_must_be_no_axis(tmp_path: Path) -> None:
    (refusal,) = refusals(tmp_path, "load.users=9")
    assert refusal.startswith("--set load.users=9: load.users is set by the matrix 'grid' (matrices/grid.yaml:8)")


@pytest.mark.parametrize(
    ("name", "message"), [("", "no matrix is named; valid: grid"), ("grdi", "did you mean 'grid'?")]
)
def test_an_unknown_matrix_is_refused(tmp_path: Path, name: str, message: str) -> None:
    series_support.write(tmp_path)
    with pytest.raises(BadInput, match=message.replace("?", r"\?")):
        matrices.plan_matrix(name)


@pytest.mark.parametrize("name", matrix_names())
def test_the_lab_s_own_matrices_plan_and_keep_to_their_schema(name: str) -> None:
    plan = matrices.plan_matrix(name)
    assert plan.expected_s() < 3600
    file = paths.SCENARIOS / "matrices" / f"{name}.yaml"
    jsonschema.validate(YAML(typ="safe", pure=True).load(file), schemas()["matrix.schema.json"])
    assert file.with_suffix(".md").is_file(), "each matrix has a lesson that reads its result"


@pytest.mark.parametrize("name", matrix_names())
def test_no_cell_s_load_is_long(name: str) -> None:
    longest = {cell: one.cell.load_s for cell, one in matrices.plan_matrix(name).cells.items() if one.cell.load_s > 40}
    assert longest == {}


OF_ARMS = (
    yaml_with(MINIMAL, {"    expression: client": "    arms: [few]\n    expression: client"})
    + """\
  - id: compared
    description: More users take longer.
    expression: arms.few.client.latency_ms.mean < arms.many.client.latency_ms.mean
arms:
  variants:
    few: {load.users: 5}
    many: {load.users: 6}
"""
)
OWN_PREDICTION = """\
predictions:
  - {id: own, description: So., expression: client.requests.ok > 0}
"""


def plan_over_arms(folder: Path, more: str) -> Plan:
    series_support.write(folder, MATRIX + more, scenario=OF_ARMS)
    return matrices.plan_matrix("grid")


def test_of_a_scenario_with_arms_a_matrix_says_that_it_leaves_them_out(tmp_path: Path) -> None:
    plan = plan_over_arms(tmp_path, OWN_PREDICTION)
    assert plan.remark == "one has arms: they are left out here, with what is predicted about them"
    assert plan.predictions == ()
    assert plan.cells["accept-count-1-users-3"].resolved.values["load.users"] == 3
    assert plan_of(tmp_path / "without").remark is None


def test_a_matrix_without_any_prediction_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"grid\.yaml:5: all that one predicts is about its arms.*write predictions"):
        plan_over_arms(tmp_path, "")


def test_a_matrix_may_say_what_it_is_about(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, more="figures: [client.latency_ms.max, backend.accept_count]\n")
    assert plan.figures == ("client.latency_ms.max", "backend.accept_count")


def test_one_cell_that_has_the_figure_is_enough(tmp_path: Path) -> None:
    axes = "  way:\n    direct: {}\n    proxied: {path: [k6, nginx, backend]}\n"
    assert plan_of(tmp_path, axes=axes, more="figures: [process.nginx.cpu_percent.mean]\n").figures


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ("client.latency_ms.list", "is a list, and cells are compared by numbers"),
        ("client.latency_ms.man", "did you mean client.latency_ms.mean?"),
        ("process.nginx.cpu_percent.mean", "nginx is not one of k6"),
    ],
)
def test_a_figure_that_no_cell_has_is_refused(tmp_path: Path, figure: str, message: str) -> None:
    (told,) = refusals(tmp_path, more=f"figures: [{figure}]\n")
    assert told.startswith("matrices/grid.yaml:11: ")
    assert message in told
