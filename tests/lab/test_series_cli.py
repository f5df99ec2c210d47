"""The commands of series, as far as they go without containers."""

from __future__ import annotations

import json

import pytest

from lab.cli import main


def connlab(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_a_dry_run_lists_cells_order_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = connlab(capsys, "matrix", "burst-places", "--dry-run", "--json")
    plan = json.loads(out)
    assert (code, len(plan["cells"]), len(plan["order"])) == (0, 8, 8)
    assert plan["expected_s"] > 0
    assert {one["cell"] for one in plan["order"]} == {one["cell"] for one in plan["cells"]}
    text = connlab(capsys, "matrix", "burst-places", "--dry-run")[1]
    assert "order, by the seed 5:" in text
    assert "8 cells x 1 = 8 runs, expected to take" in text


def test_the_border_matrix_has_failing_cells_where_users_exceed_the_places(capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads(connlab(capsys, "matrix", "long-polling-border", "--dry-run", "--json")[1])
    for cell in plan["cells"]:
        places = cell["knobs"]["backend.max_connections"] + 20
        assert cell["model"]["users_failed"] == max(cell["knobs"]["load.users"] - places, 0)


def test_matrices_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(connlab(capsys, "matrix", "--json")[1])
    assert {"burst-places", "long-polling-border"} <= {one["matrix"] for one in listed}
    assert "long-polling-border" in connlab(capsys, "matrix")[1]


def test_arms_are_planned_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads(connlab(capsys, "run", "keep-alive-paths", "--dry-run", "--json")[1])
    assert (plan["kind"], plan["baseline"], len(plan["order"])) == ("arms", "no-keep-alive", 18)
    assert "arm direct: path = [k6, backend]" in connlab(capsys, "show", "keep-alive-paths")[1]


def test_a_search_says_where_it_would_look(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--knob=backend.max_connections", "--until=client.requests.failed == 0", "--dry-run")
    code, out, _ = connlab(capsys, "search", "long-polling-direct", *arguments)
    assert code == 0
    assert "backend.max_connections from 80 to 320, to within 1" in out
    assert "the model says 160" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["matrix", "burst-place"], "did you mean 'burst-places'?"),
        (["run", "accept-queue-healthy", "--new"], "has no arms: there is no series to plan or to begin anew"),
        (["search", "long-polling-direct"], "a search takes a knob and an expression"),
        (["search", "long-polling-direct", "--knob=load.users", "--until=1 +"], "--until '1 +'"),
        (["advise", "nowhere"], "no run at 'nowhere'"),
    ],
)
def test_bad_input_has_code_2(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, out, err = connlab(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
