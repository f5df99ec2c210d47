import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analysis.compare import CompareError, Comparison, compare_runs, compare_series
from analysis.compare.comparison_file import Effect
from lab.schema import schemas
from tests.analysis.results import Results
from tests.analysis.support import Record, make_manifest

MEAN = "client.latency_ms.mean"
OVERFLOWS = "kernel.backend.TcpExt.ListenOverflows"


def checked(found: Comparison) -> Comparison:
    Draft202012Validator(schemas()["comparison.schema.json"]).validate(json.loads(found.to_json()))
    return found


def effects(found: Comparison) -> dict[str, Effect]:
    return {effect.figure: effect for effect in checked(found).pairs[0].effects}


def group(results: Results, *means: float, knobs: Record | None = None, **figures: Any) -> list[Path]:  # noqa: ANN401
    given = {name.replace("__", "."): value for name, value in figures.items()}
    return [results.run({MEAN: mean, **given}, knobs) for mean in means]


def test_what_differs_unasked_stands_first(results: Results) -> None:
    host = make_manifest()["host"] | {"kernel": "6.13.0"}
    b = results.run(
        knobs={"backend.accept_count": 9, "kernel.backend.net.core.somaxconn": 8},
        host=host,
        sysctls=make_manifest()["sysctls"]
        | {"backend-1": {"net.core.somaxconn": "8", "net.ipv4.tcp_syn_retries": "5"}},
    )
    settings = compare_runs([results.run()], [b]).pairs[0].settings

    asked = {setting.name: setting.asked for setting in settings}
    assert list(asked.values()) == sorted(asked.values())
    assert asked["host.kernel"] is False
    assert asked["sysctl.backend-1.net.ipv4.tcp_syn_retries"] is False
    assert asked["sysctl.backend-1.net.core.somaxconn"] is True
    assert [(each.a, each.b) for each in settings if each.name == "backend.accept_count"] == [(1, 9)]
    assert settings[0].name == "host.kernel"


def test_what_only_one_path_has_differs_by_the_path(results: Results) -> None:
    straight = make_manifest()
    through = results.run(
        knobs={"nginx.worker_processes": 2},
        path=["k6", "nginx", "backend"],
        images=straight["images"] | {"nginx": "sha256:1"},
        sysctls=straight["sysctls"] | {"nginx": {"net.core.somaxconn": "4096"}},
    )
    manifest = json.loads((through / "manifest.json").read_text())
    manifest["knobs"]["nginx.listen_backlog"] = {"value": 511, "default": 511, "source": "default", "read_back": 511}
    (through / "manifest.json").write_text(json.dumps(manifest))

    settings = compare_runs([results.run()], [through]).pairs[0].settings

    assert {setting.name: setting.asked for setting in settings} == {"path": True}


def test_four_runs_of_each_tell_a_change_from_noise(results: Results) -> None:
    a = group(results, 10.0, 12.0, 11.0, 13.0, kernel__backend__TcpExt__ListenOverflows=0)
    found = effects(compare_runs(a, group(results, 21.0, 23.0, 22.0, 24.0)))

    assert found[MEAN].status == "changed"
    assert (found[MEAN].difference, found[MEAN].repetitions_needed) == (11.0, None)
    assert 8 < (found[MEAN].low or 0) < 11
    assert found[MEAN].standardised == pytest.approx(7.41, abs=0.05)
    assert found[OVERFLOWS].status == "changed"
    # What is equal in all runs is counted and not listed.
    assert "client.requests.failed" not in found


def test_a_difference_as_repetitions_have_it_is_noise(results: Results) -> None:
    a, b = group(results, 10.0, 14.0, 11.0, 13.0), group(results, 11.0, 15.0, 12.0, 13.5)
    found = effects(compare_runs(a, b))

    # The same runs give the same bytes.
    assert compare_runs(a, b).to_json() == compare_runs(a, b).to_json()
    assert (found[MEAN].status, found[MEAN].why) == ("noise", None)
    assert 3 < (found[MEAN].noise or 0) < 4
    assert (found[MEAN].repetitions_needed or 0) > 20


def test_further_runs_of_the_same_settings_tell_the_noise_of_single_ones(results: Results) -> None:
    a, b = group(results, 10.0), group(results, 10.5)
    others = [*group(results, 9.0, 11.0, 10.0), *group(results, 500.0, knobs={"load.users": 7}), results.root]
    others.append(results.run({MEAN: 900.0}, predictions={"p": "unknown"}))
    found = compare_runs(a, b, others)

    # That of other knobs and the inconclusive one do not count.
    assert found.pairs[0].references == 3
    assert effects(found)[MEAN].status == "noise"
    assert effects(compare_runs(a, group(results, 30.0), others))[MEAN].status == "unclear"
    assert effects(found)[MEAN].a.values == [10.0]


def test_inconclusive_runs_are_shown_and_not_counted(results: Results) -> None:
    spoilt = results.run({MEAN: 900.0}, predictions={"p": "unknown"})
    found = compare_runs([*group(results, 10.0, 11.0), spoilt], group(results, 10.0, 11.0))

    assert [(run.used, run.why) for run in found.groups[0].runs][1:] == [(True, None), (False, "inconclusive; p: lost")]
    assert effects(found)[MEAN].a.values == [10.0, 11.0]
    # Without any evidence there are no effects.
    assert effects(compare_runs([spoilt], [results.run()])) == {}


def test_figures_follow_the_way_from_the_cause_to_the_user(results: Results) -> None:
    changed = {OVERFLOWS: 0, MEAN: 9.0, "model.users_failed": 1, "flows.backend.resets": 3}
    a = [results.run({"flows.backend.resets": 0}) for _ in range(2)]
    found = compare_runs(a, [results.run(changed) for _ in range(2)])

    stages = [effect.stage for effect in found.pairs[0].effects]
    assert [stage.value for stage in dict.fromkeys(stages)] == ["model", "counters", "packets", "users"]
    assert [effect.status for effect in found.pairs[0].effects] == ["changed"] * 4


def test_a_code_that_did_not_occur_counts_zero(results: Results) -> None:
    b = [results.run({"client.requests.error.1220": 40}) for _ in range(2)]
    found = effects(compare_runs([results.run(), results.run()], b))

    assert found["client.requests.error.1220"].a.values == [0, 0]
    assert found["client.requests.error.1220"].status == "changed"


def test_a_figure_that_one_side_lacks_is_unknown_with_its_reason(results: Results) -> None:
    found = effects(compare_runs([results.run({OVERFLOWS: None})], [results.run({"tomcat.backend.requests": 3})]))

    assert (found[OVERFLOWS].status, found[OVERFLOWS].why) == ("unknown", "lost")
    assert found["tomcat.backend.requests"].why == "A has no such figure"


def refused(a: list[Path], b: list[Path]) -> str:
    with pytest.raises(CompareError) as error:
        compare_runs(a, b)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_compared_is_refused_with_what_to_do(results: Results, tmp_path: Path) -> None:
    one, other = results.run(), results.run()
    foreign = results.run(scenario="spike")
    running = results.run(status="running")
    knob = results.run(knobs={"load.users": 7})

    assert refused([], [one]) == "A names no run; give at least one run's folder"
    assert refused([tmp_path / "nothing"], [one]).endswith("no manifest.json here; this is not a run's folder")
    assert "different scenarios" in refused([one], [foreign])
    assert "A mixes the scenarios queue and spike" in refused([one, foreign], [other])
    assert "load.users is 103 in" in refused([one, knob], [other])
    assert "twice; leave one out" in refused([one, one], [other])
    assert "is both A and B" in refused([one], [one])
    copied = shutil.copytree(one, tmp_path / "copied")
    assert "is both A and B" in refused([one], [copied])
    assert "twice; leave one out" in refused([one, copied], [other])
    assert "has not ended" in refused([running], [one])


def test_repetitions_may_differ_in_who_ran_them_and_not_in_what_was_run(results: Results) -> None:
    host = make_manifest()["host"]
    one, other = results.run(), results.run()
    rebooted = results.run(host=host | {"memory_kb": 7_999_996}, lab={"version": "0.1.0", "python": "3.14.0"})
    upgraded = results.run(host=host | {"docker": "29.0.0"})

    assert [len(each.runs) for each in compare_runs([one, rebooted], [other]).groups] == [2, 1]
    assert "not repetitions of each other: host.docker is None in" in refused([one, upgraded], [other])


@pytest.mark.parametrize("file", ["verdict.json", "figures.json"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the run has no"),
        ("[]", "its schema is None"),
        ("{", "this is not JSON"),
        ('{"schema": "\\u001b[2J"}', "its schema is \\x1b[2J, and this version reads connlab."),
        ('{"schema": "connlab.old/7"}', "its schema is connlab.old/7, and this version reads connlab."),
    ],
)
def test_a_run_without_a_usable_verdict_is_refused(
    results: Results, file: str, content: str | None, message: str
) -> None:
    one, other = results.run(), results.run()
    path = one / "derived" / file
    path.unlink() if content is None else path.write_text(content)

    assert message in refused([one], [other])
    assert f"derive it again: make analyse RUN={one}" in refused([one], [other])


def matrix(results: Results, failed: dict[str, list[int | None]], predicted: dict[str, int]) -> Comparison:
    """Two axes, users and places; cells as `<users>-<places>`."""
    cells: dict[str, list[Record]] = {
        cell: [
            {"figures": {"client.requests.failed": count, "client.users.failed": count, "model.users_failed": None}}
            for count in counts
        ]
        for cell, counts in failed.items()
    }
    levels = {cell: dict(zip(("users", "places"), cell.split("-"), strict=True)) for cell in failed}
    model = {cell: {"users_failed": count} for cell, count in predicted.items()}
    return checked(compare_series(results.series(cells, kind="matrix", levels=levels, model=model))[0])


def test_a_matrix_says_of_each_cell_whether_it_fails_and_whether_the_model_said_so(results: Results) -> None:
    found = matrix(
        results,
        {"3-1": [0, 0], "9-1": [6, 6], "3-7": [0, 0], "9-7": [0, 2], "20-7": [None], "20-1": []},
        {"3-1": 0, "9-1": 6, "3-7": 1, "9-7": 0, "20-7": 11},
    ).matrix

    assert found is not None
    assert {cell.cell: (cell.state, cell.predicted_users_failed, cell.agrees) for cell in found.cells} == {
        "3-1": ("clean", 0, True),
        "9-1": ("failing", 6, True),
        "3-7": ("clean", 1, False),
        "9-7": ("mixed", 0, None),
        "20-7": ("inconclusive", 11, None),
        "20-1": ("missing", None, None),
    }
    assert [(axis.name, axis.levels) for axis in found.axes] == [
        ("users", ["3", "9", "20"]),
        ("places", ["1", "7"]),
    ]
    assert found.figures[0] == "client.requests.failed"
    assert found.cells[1].figures["client.requests.failed"].mean == 6


def test_a_matrix_shows_first_what_it_is_about(results: Results) -> None:
    cells = {name: [{"figures": {"client.dials.total": dials}}] for name, dials in (("kept", 1), ("closed", 9))}
    found = compare_series(results.series(cells, kind="matrix", figures=["client.dials.total"]))[0].matrix

    assert found is not None
    assert (found.about, found.figures[0]) == (["client.dials.total"], "client.dials.total")


def test_where_the_model_does_not_hold_the_capacity_says_who_fails(results: Results) -> None:
    figures = {"client.requests.failed": 6, "model.users_failed": None, "model.accept_capacity": 4}
    direct = {"figures": figures, "knobs": {"load.users": 10}}
    cells = {
        "direct": [direct] * 2,
        "through-nginx": [direct | {"path": ["k6", "nginx", "backend"]}],
        "spike": [direct | {"knobs": {"load.users": 10, "load.workload": "spike"}}],
    }
    found = checked(compare_series(results.series(cells))[0]).matrix

    assert found is not None
    predicted = {cell.cell: (cell.predicted_users_failed, cell.predicted_by, cell.agrees) for cell in found.cells}
    assert predicted == {
        "direct": (6, "capacity", True),
        "through-nginx": (None, None, None),
        "spike": (None, None, None),
    }


def test_cells_are_compared_with_the_baseline(results: Results) -> None:
    found = matrix(results, {f"{users}-1": [users - 3] * 2 for users in (3, 5, 7, 9, 11)}, {})

    assert [(pair.a, pair.b) for pair in found.pairs] == [("3-1", cell) for cell in ("5-1", "7-1", "9-1", "11-1")]


def test_few_arms_are_compared_each_with_each(results: Results) -> None:
    found = checked(compare_series(results.series({"off": [{}], "on": [{}], "direct": [{}]}, baseline="on"))[0])

    assert [(pair.a, pair.b) for pair in found.pairs] == [("on", "off"), ("on", "direct"), ("off", "direct")]


@pytest.mark.parametrize("name", ["comparison", "series-verdict"])
def test_every_field_is_described(pytestconfig: pytest.Config, name: str) -> None:
    described = set(re.findall(r"\w+", (pytestconfig.rootpath / "docs" / "compare.md").read_text()))
    content: Record = json.loads((pytestconfig.rootpath / "schemas" / f"{name}.schema.json").read_text())
    parts = [content, *content["$defs"].values()]

    assert {field for part in parts for field in part.get("properties", {})} - described == set()
