"""Checks and thresholds of a user's own script, as figures."""

import json
from typing import Any

import pytest

from analysis import figures
from analysis.evidence import k6_files
from analysis.evidence.rawrun import RawRun
from analysis.expressions.values import Unknown, Value
from analysis.figures import Run, catalogue
from analysis.verdicts import ledger_file
from formats import manifest
from tests.analysis.support import RunFolder


def check(name: str, passes: int, fails: int) -> dict[str, Any]:
    return {"name": name, "path": f"::{name}", "passes": passes, "fails": fails}


SUMMARY = {
    "metrics": {
        "iterations": {"values": {"count": 3}},
        "http_req_duration{name:pay}": {
            "values": {},
            "thresholds": {"p(95)<800": {"ok": True}, "max<=1": {"ok": False}},
        },
    },
    "root_group": {
        "checks": [check("home is 200", 3, 1), check("never made", 0, 0), check("a-b", 1, 0), check("a b", 1, 0)],
        "groups": [{"name": "buy", "checks": [check("home is 200", 4, 0)], "groups": []}],
    },
}


def read(run: RunFolder) -> Run:
    return Run(RawRun(run.write(), manifest.load_manifest(run.folder)))


def summarized(run: RunFolder, summary: object = SUMMARY, *instances: str) -> Run:
    """Read a run whose k6 left this summary, at each of these instances."""
    run.write()
    for instance in instances or ("k6-1",):
        run.raw(f"{instance}/summary.json").write_text(json.dumps(summary))
    return Run(RawRun(run.folder, manifest.load_manifest(run.folder)))


def value(run: RunFolder, name: str, summary: object = SUMMARY) -> Value:
    return figures.value(summarized(run, summary), name)


def why(run: Run, name: str) -> str:
    found = figures.value(run, name)
    assert isinstance(found, Unknown)
    return found.why


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("client.checks.home_is_200.rate", 7 / 8),
        ("client.checks.home_is_200.failed", 1),
        ("client.checks.never_made.failed", 0),
        ("client.thresholds.http_req_duration_name_pay_p_95_below_800", True),
        ("client.thresholds.http_req_duration_name_pay_max_at_most_1", False),
    ],
)
def test_what_k6_s_summary_says_is_a_figure(run: RunFolder, name: str, expected: Value) -> None:
    assert value(run, name) == expected


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("client.checks.paid.rate", "k6 made no check named paid; it made a_b, home_is_200, never_made"),
        ("client.checks.never_made.rate", "it was never made"),
        ("client.checks.a_b.rate", "two checks of the script would both be named a_b"),
        ("client.thresholds.checks_rate_is_1", "k6 judged no one threshold checks_rate_is_1; it made"),
    ],
)
def test_what_it_does_not_say_is_unknown(run: RunFolder, name: str, reason: str) -> None:
    assert reason in why(summarized(run), name)


def test_requests_of_one_name_have_figures_of_their_own(run: RunFolder) -> None:
    for number, request in enumerate(run.clients["k6-1"].requests):
        request["name"] = "GET /pay" if number < 3 else "home"
    run.set_knobs(load__workload="script")
    named = read(run)
    total, pay = (figures.value(named, name) for name in ("client.requests.total", "client.named.get_pay.total"))
    assert pay == 3
    assert figures.value(named, "client.named.home.total") == int(str(total)) - 3
    failed = [figures.value(named, f"client.named.{name}.failed") for name in ("get_pay", "home")]
    assert sum(int(str(each)) for each in failed) == figures.value(named, "client.requests.failed")
    slowest = [figures.value(named, f"client.named.{name}.latency_ms.max") for name in ("get_pay", "home")]
    assert figures.value(named, "client.latency_ms.max") in slowest
    assert "client.named.get_pay.latency_ms.max" in set(catalogue.figure_names(named))


def test_the_times_of_a_group_are_those_of_its_requests(run: RunFolder) -> None:
    for request in run.clients["k6-1"].requests:
        request["group"] = "::cart"
    run.set_knobs(load__workload="script")
    grouped = read(run)
    slowest = [figures.value(grouped, f"client.{prefix}latency_ms.max") for prefix in ("", "groups.cart.")]
    assert slowest[0] == slowest[1]
    assert not isinstance(slowest[0], Unknown)


def test_requests_of_one_group_have_figures_of_their_own_and_the_ledger_says_what_became_of_them(
    run: RunFolder,
) -> None:
    requests = run.clients["k6-1"].requests
    for request in requests:
        lost = request["status"] == 0
        request.update({"name": "pay", "group": "::shop::buy"} if lost else {"name": "home", "group": ""})
    run.set_knobs(load__workload="script")
    grouped = read(run)
    failed = figures.value(grouped, "client.requests.failed")
    assert figures.value(grouped, "client.groups.shop_buy.failed") == failed
    assert isinstance(figures.value(grouped, "client.groups.shop_buy.latency_ms.max"), Unknown)
    groups = {name for name in catalogue.figure_names(grouped) if name.startswith("client.groups.")}
    assert "client.groups.shop_buy.total" in groups
    assert all(name.startswith("client.groups.shop_buy.") for name in groups)
    assert why(grouped, "client.groups.shop.total") == "no request was in a group named shop"
    told = ledger_file.build_ledger(grouped)
    first, *others = told.names
    assert (first.name, first.group, first.failed, first.causes) == ("pay", "::shop::buy", failed, told.causes)
    assert [(each.name, each.failed) for each in others] == [("home", 0)]


def test_a_name_that_no_request_has_or_two_have_is_unknown(run: RunFolder) -> None:
    for number, request in enumerate(run.clients["k6-1"].requests):
        request["name"] = "a b" if number < 3 else "a-b"
    named = read(run)
    for name, reason in (("pay", "no request was named pay"), ("a_b", "a b and a-b have this name")):
        assert reason in why(named, f"client.named.{name}.total")


@pytest.mark.parametrize("summary", [{}, [], None, {"root_group": None, "metrics": {}}, {"metrics": {"a": 3}}])
@pytest.mark.parametrize("name", ["client.checks.home_is_200.rate", "client.thresholds.checks_rate_is_1"])
def test_a_summary_that_is_not_whole_makes_them_unknown(run: RunFolder, summary: object, name: str) -> None:
    assert isinstance(value(run, name, summary), Unknown)


def test_a_threshold_that_each_instance_judged_for_itself_is_unknown(run: RunFolder) -> None:
    run.manifest["instances"]["k6"].append("k6-2")
    run.clients["k6-2"] = run.clients["k6-1"]
    judged = summarized(run, SUMMARY, "k6-1", "k6-2")
    name = "client.thresholds.http_req_duration_name_pay_p_95_below_800"
    assert "each instance of k6 judged its own share" in why(judged, name)


def test_requests_of_setup_are_no_user_s(run: RunFolder) -> None:
    users = value(run, "client.users.total")
    first = run.clients["k6-1"].requests[0]
    run.clients["k6-1"].requests.append({**first, "id": len(run.clients["k6-1"].requests) + 1, "vu": 0})
    assert value(run, "client.users.total") == users


@pytest.mark.parametrize(
    ("metric", "expression", "name"),
    [
        ("http_req_duration{name:home}", "p(95)<500", "http_req_duration_name_home_p_95_below_500"),
        ("checks", "rate>=0.99", "checks_rate_at_least_0_99"),
        ("my_gauge", "value===1", "my_gauge_value_is_1"),
        ("my_gauge", "value!=1", "my_gauge_value_is_not_1"),
        ("iterations", "count > 3", "iterations_count_above_3"),
    ],
)
def test_thresholds_have_names_that_tell_them_apart(metric: str, expression: str, name: str) -> None:
    assert k6_files.threshold_name(metric, expression) == name


def test_a_check_without_letters_has_a_name() -> None:
    assert k6_files.figure_name("✓") == "_"


def test_a_run_of_a_script_lists_its_checks_and_thresholds(run: RunFolder) -> None:
    def listed() -> set[str]:
        names = catalogue.figure_names(summarized(run))
        return {name for name in names if name.startswith(("client.checks.", "client.thresholds."))}

    assert listed() == set()
    run.set_knobs(load__workload="script")
    assert "client.checks.home_is_200.rate" in listed()
    assert "client.thresholds.http_req_duration_name_pay_max_at_most_1" in listed()


def test_on_a_connection_by_tls_the_time_of_data_says_nothing_of_a_request(run: RunFolder) -> None:
    """The handshake is data too, and over HTTP/2 a later request shares the connection: only its own tls_us is 0."""
    served = [request for request in run.clients["k6-1"].requests if request["status"] == 200]
    served[0]["tls_us"] = 900
    shared = {**served[0], "id": max(each["id"] for each in run.clients["k6-1"].requests) + 1, "tls_us": 0}
    run.clients["k6-1"].requests.append(shared)
    joined = read(run).joined
    assert not isinstance(joined, Unknown)
    rows = joined.rows("SELECT id, flow_id, flow_established, flow_server_first_data_time_us AS data_us FROM cases")
    told = {row["id"]: row for row in rows}
    for each in (served[0], shared):
        assert told[each["id"]]["flow_established"] is True
        assert told[each["id"]]["data_us"] is None
    assert told[served[1]["id"]]["data_us"] is not None
