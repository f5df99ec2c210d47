"""A k6 script of one's own, of the ordinary kind, through the command that a user types."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.own_results import RESULTS

from .conftest import ROOT, Run, connlab
from .test_scenarios import assert_follows_schemas, assert_reproduced, of_kind

pytestmark = pytest.mark.e2e

CHECKOUT = ROOT / "examples" / "checkout"
PAGES = ("home", "search", "product", "cart", "pay")


@pytest.fixture(scope="module")
def checkout(run: Callable[..., Run]) -> Run:
    ended = run(str(CHECKOUT))
    assert_reproduced(ended)
    return ended


def test_a_script_runs_unchanged_and_every_request_has_its_connection(checkout: Run) -> None:
    assert_follows_schemas(checkout)
    role = checkout.folder / "raw" / "k6-1" / "role"
    requests = [json.loads(line) for line in (role / "requests.jsonl").read_text().splitlines()]
    requests = [request for request in requests if "id" in request]
    dials = {dial["id"]: dial for dial in of_kind("dial", role / "dials.jsonl")}
    assert all(dials[request["dial"]]["vu"] == request["vu"] for request in requests)
    by_name = Counter(request["name"] for request in requests)
    assert set(by_name) == {"open", *PAGES}
    assert by_name["open"] == 1
    summary = json.loads((role / "summary.json").read_text())
    assert summary["metrics"]["http_reqs"]["values"]["count"] == len(requests)
    groups = {"open": "::setup", "cart": "::buy", "pay": "::buy"}
    assert all(request["group"] == groups.get(request["name"], "::browse") for request in requests)


def test_its_thresholds_are_predictions_and_its_checks_are_figures(checkout: Run) -> None:
    judged = {row["id"]: row["status"] for row in checkout.verdict["predictions"] if row["id"].startswith("threshold-")}
    assert len(judged) == 3
    assert set(judged.values()) == {"true"}
    assert checkout.measured()["client.checks.paid.rate"] == 1
    assert checkout.measured()["client.thresholds.http_req_duration_name_pay_p_95_below_800"] is True
    assert checkout.verdict["ledger"]["identities"]["false"] == 0


def test_its_names_and_groups_divide_figures_and_ledger(checkout: Run) -> None:
    found = checkout.figures
    named = {name: found[f"client.named.{name}.total"] for name in ("open", *PAGES)}
    assert found["client.groups.buy.total"] == named["cart"] + named["pay"]
    names = json.loads((checkout.folder / "derived" / "ledger.json").read_text())["names"]
    assert {(one["name"], one["group"]): one["total"] for one in names} == {
        (name, {"open": "::setup", "cart": "::buy", "pay": "::buy"}.get(name, "::browse")): total
        for name, total in named.items()
    }


def test_a_threshold_that_is_crossed_makes_the_run_not_reproduced(run: Callable[..., Run], tmp_path: Path) -> None:
    home = tmp_path / "crossed"
    home.mkdir()
    script = (CHECKOUT / "checkout.js").read_text().replace("p(95)<800", "p(95)<1").replace("'4s'", "'1s'")
    scenario = (CHECKOUT / "scenario.yaml").read_text()
    for name, text in (("checkout.js", script), ("scenario.yaml", scenario)):
        (home / name).write_text(text)
    (home / "lib").mkdir()
    for name in ("lib/pages.js", "customers.json"):
        (home / name).write_text((CHECKOUT / name).read_text())
    crossed = run(str(home))
    false = [row["id"] for row in crossed.verdict["predictions"] if row["status"] == "false"]
    assert false == ["threshold-http-req-duration-name-pay-p-95-below-1"]
    assert crossed.exit_code == 1
    assert crossed.manifest["exits"]["k6-1"] == 99


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import './gone.js';\nexport default () => {};\n", "checkout.js:1: k6 refuses"),
        ("\nexport default functio n() {}\n", "checkout.js:2: k6 refuses"),
        ("export const options = { vus: 1, duration: '20m' };\nexport default () => {};\n", "load.max_duration is 1m"),
    ],
)
def test_a_script_that_cannot_run_is_refused_before_anything_starts(tmp_path: Path, script: str, said: str) -> None:
    home = tmp_path / "refused"
    home.mkdir()
    (home / "scenario.yaml").write_text((CHECKOUT / "scenario.yaml").read_text())
    (home / "checkout.js").write_text(script)
    refused = connlab("run", str(home))
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (RESULTS / "refused").exists()
