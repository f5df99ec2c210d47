"""`connlab estimate`: what it takes, what it refuses, and what it says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.expressions.values import Unknown, unknown
from analysis.figures.estimate import CheckedEstimate, Estimate, plausible_clients
from lab.cli import estimates
from lab.errors import BadInput, ExitCode
from tests.lab.support import connlab

LINEAR = "net.ipv4.tcp_syn_linear_timeouts"


def said(overflows: str, connect_timeout: str, *settings: str) -> str:
    return "\n".join(estimates.format_estimate(estimates.estimate_from_counter(overflows, connect_timeout, settings)))


def test_the_bounds_come_first() -> None:
    first = said("6568459", "5s").splitlines()[0]
    assert first == "6,568,459 overflows: at most 2,189,486 connections failed."


def test_each_assumed_client_is_shown_with_its_ladder_and_its_division() -> None:
    text = said("6568459", "5s")
    assert "Linux before 6.5: tcp_syn_retries = 6, tcp_syn_linear_timeouts = 0" in text
    assert "SYNs at 0, 1, 3 s; the next, at 7 s" in text
    assert "6,568,459 / 3 = 2,189,486 failed connections, 1 left over" in text
    assert "SYNs at 0, 1, 2, 3, 4 s" in text
    assert "6,568,459 / 5 = 1,313,691 failed connections, 4 left over" in text


def test_what_a_division_leaves_over_fits_the_least_number() -> None:
    text = " ".join(said("48,211", "5s").split())
    assert "At least 9,643 did" in text
    assert "48,211 / 5 = 9,642 failed connections, 1 left over: of one more connection, which failed after" in text
    one_kind = " ".join(said("48,211", "5s", f"{LINEAR}=0").split())
    assert "At least 16,070 did" in one_kind
    assert "48,211 / 3 = 16,070 failed connections, 1 left over: of connections that got in" in one_kind


def test_one_is_one() -> None:
    text = said("1", "1s")
    assert text.startswith("1 overflow: at most 1 connection failed.")
    assert "1 / 1 = 1 failed connection\n" in text
    assert "\n  1 failed connection, if none got in" in text
    assert "  1 dial failed at the connect timeout" in checked(5, 1)[0]
    assert "  1 overflow beyond theirs" in checked(6, 1)[0]


def test_that_none_may_have_failed_is_said_wherever_it_can_be() -> None:
    assert "down to 0" in said("500", "30s")
    assert "down to 0" not in said("500", "1s").replace("\n", " ")


def test_given_sysctls_replace_the_assumed_clients() -> None:
    text = said("500", "30s", f"{LINEAR}=0", "net.ipv4.tcp_syn_retries=3")
    assert "Linux" not in text
    assert "500 / 4 = 125 failed connections" in text


@given(st.integers(0, 10**15), st.integers(1, 10**6), st.integers(0, 127))
def test_no_line_is_wider_than_a_terminal(overflows: int, timeout_ms: int, linear: int) -> None:
    text = said(str(overflows), f"{timeout_ms}ms", f"{LINEAR}={linear}")
    assert max(map(len, text.splitlines())) <= estimates.WIDTH


@pytest.mark.parametrize(
    ("overflows", "connect_timeout", "settings", "message"),
    [
        ("", "5s", [], "--overflows: '' is not a count of overflows"),
        ("-5", "5s", [], "--overflows: '-5' is not a count of overflows"),
        ("48,21", "5s", [], "--overflows: '48,21' is not a count of overflows"),
        ("1.5", "5s", [], "--overflows: '1.5' is not a count of overflows"),
        ("9" * 20, "5s", [], "is not a count of overflows"),
        ("5", "5", [], "--connect-timeout: '5' is not a duration: write a number with a unit"),
        ("5", "0s", [], "--connect-timeout: a connect timeout is above 0"),
        ("5", "5s", ["net.ipv4.tcp_syn_retrys=5"], "did you mean 'net.ipv4.tcp_syn_retries'?"),
        ("5", "5s", ["net.core.somaxconn=5"], "'net.core.somaxconn' does not change when a client sends SYNs"),
        ("5", "5s", ["net.ipv4.tcp_syn_retries=0"], "must be a whole number from 1 to 127, not '0'"),
        ("5", "5s", ["net.ipv4.tcp_rto_max_ms=1"], "must be a whole number from 1000 to 120000, not '1'"),
        ("5", "5s", [f"{LINEAR}=4", f"{LINEAR}=0"], f"--sysctl {LINEAR}=0: {LINEAR} is set twice; before, to 4"),
        ("5", "5s", ["net.ipv4.tcp_syn_retries"], "a sysctl has a name, '=' and a value"),
    ],
)
def test_bad_input_is_refused_with_one_line(
    overflows: str, connect_timeout: str, settings: list[str], message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        estimates.estimate_from_counter(overflows, connect_timeout, settings)
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_without_an_overflow_nothing_is_said_of_each() -> None:
    text = "\n".join(estimates.format_check(CheckedEstimate(estimates.estimate_from_counter("0", "5s", []), 0)))
    assert text.startswith("0 overflows: at most 0 connections failed.\nNo SYN met a full accept queue.\n")
    assert "every overflow" not in text


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(BadInput) as refused:
        estimates.estimate_from_counter("x", "y", ["z"])
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--overflows", "5"],
        ["--connect-timeout", "5s"],
        ["--run", "somewhere", "--overflows", "5"],
    ],
)
def test_half_an_estimate_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert connlab("estimate", *arguments) == 2
    assert capsys.readouterr().err == (
        "connlab: an estimate takes both --overflows and --connect-timeout, or --run alone\n"
    )


def test_a_program_gets_the_bounds_and_the_ladder(capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("estimate", "--overflows=500", "--connect-timeout=30s", f"--sysctl={LINEAR}=0", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == {"least": 0, "least_if_none_got_in": 100, "most": 100}
    assert found["clients"][0]["syns_ms"] == [0, 1000, 3000, 7000, 15_000]


def checked(overflows: int, failed: int | Unknown, connect_timeout_ms: int = 30_000) -> tuple[str, ExitCode]:
    estimated = Estimate(overflows, plausible_clients(connect_timeout_ms, {LINEAR: 0}))
    check = CheckedEstimate(estimated, failed)
    return "\n".join(estimates.format_check(check)), estimates.exit_code(check)


def test_a_run_whose_overflows_are_all_of_failed_dials_is_reported_as_such() -> None:
    text, code = checked(500, 100)
    assert text.endswith(
        "  100 dials failed at the connect timeout\n  within the bounds\n  every overflow was of one of them"
    )
    assert code == ExitCode.REPRODUCED


def test_what_failed_dials_leave_over_is_reported() -> None:
    text, code = checked(10_060, 1_705)
    assert "  1,535 overflows beyond theirs" in text
    assert code == ExitCode.REPRODUCED
    assert "  0 to 100 overflows beyond theirs" in checked(400, 100, connect_timeout_ms=7_050)[0]


def told(**more: Any) -> str:  # noqa: ANN401 # any field of a Check
    check = CheckedEstimate(Estimate(0, plausible_clients(30_000, {LINEAR: 0})), 0, **more)
    text = list(estimates.format_check(check))
    assert max(map(len, text)) <= estimates.WIDTH
    return " ".join(text)


def test_the_server_whose_counter_it_is_is_named() -> None:
    assert told(servers=("nginx",)).startswith("0 overflows counted by the kernel of nginx: at most 0 connections")
    several = told(servers=("backend-1", "backend-2", "backend-3"))
    assert several.startswith("0 overflows counted by the kernel of backend-1, backend-2 and backend-3: at most")


def test_overflows_of_another_server_are_reported_with_their_number() -> None:
    text = told(servers=("nginx",), elsewhere={"backend-1": 20, "backend-2": 1})
    assert "Not in this estimate: 20 overflows at backend-1 and 1 overflow at backend-2, of connections that" in text


def test_a_full_syn_queue_is_recognised_by_its_own_counter() -> None:
    text = told(servers=("backend-1",), syn_queue_drops=20)
    assert "No SYN met a full accept queue. The SYN queue there was full for 20 SYNs (TcpExt.TCPReqQFullDrop)" in text
    assert "SYN queue" not in told(servers=("backend-1",))


def test_a_program_gets_whose_counter_it_is_and_what_is_not_in_it() -> None:
    found = estimates.check_as_json(CheckedEstimate(unknown("no samples"), 3, ("nginx",), 2, {"backend-1": 20}))
    assert (found["servers"], found["syn_queue_drops"]) == (["nginx"], 2)
    assert found["overflows_elsewhere"] == {"backend-1": 20}


def test_a_run_outside_the_bounds_is_reported() -> None:
    text, code = checked(500, 101)
    assert text.endswith("more than the bounds allow")
    assert code == ExitCode.NOT_REPRODUCED


def test_a_run_without_the_evidence_is_unknown() -> None:
    text, code = checked(500, unknown("dials.jsonl is missing"))
    assert text.endswith("unknown whether that lies within the bounds: dials.jsonl is missing")
    assert code == ExitCode.INCONCLUSIVE
    assert estimates.check_as_json(CheckedEstimate(unknown("no samples"), 3))["within"] is None
