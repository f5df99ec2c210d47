import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.diagnosis.syn_ladder import Syn, before, is_certain, syn_ladder, timer_lateness_ms
from analysis.figures.queue_simulation import ACCEPT_LATE_MS, Capacity, Load, UsersOutcome, simulate

EXPONENTIAL = syn_ladder(6, 0)
LINEAR_FIRST = syn_ladder(6, 4)


@pytest.mark.parametrize(
    ("ladder", "earliest_s"),
    [
        pytest.param(EXPONENTIAL, [0, 1, 3, 7, 15, 31, 63], id="the timeout doubles from the first"),
        pytest.param(LINEAR_FIRST, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67], id="linear timeouts add to the retries"),
        pytest.param(syn_ladder(9, 0), [0, 1, 3, 7, 15, 31, 63, 127, 247, 367], id="it grows to its maximum"),
        pytest.param(
            syn_ladder(5, 0, timeout_max_ms=4_000), [0, 1, 3, 7, 11, 15], id="it grows to a maximum that is set"
        ),
    ],
)
def test_syns_come_when_the_kernel_s_timeouts_are_over(ladder: tuple[Syn, ...], earliest_s: list[float]) -> None:
    assert [syn.earliest_ms / 1000 for syn in ladder] == earliest_s


def test_a_kernel_that_was_measured_kept_to_its_ladder() -> None:
    # SYNs to an address that nothing answers, Linux 6.12, tcp_syn_retries 6, tcp_syn_linear_timeouts 4: seconds
    # between them as a capture had them.
    measured_s = (1.03, 1.02, 1.02, 1.02, 1.02, 2.02, 4.19, 8.19, 16.13, 32.26)
    second = 0.0
    for syn, gap_s in zip(LINEAR_FIRST[1:], measured_s, strict=True):
        second += gap_s
        assert syn.earliest_ms <= second * 1000 <= syn.latest_ms


@pytest.mark.parametrize(
    ("ladder", "connect_timeout_ms", "syns"),
    [
        (EXPONENTIAL, 30_000, 5),
        (EXPONENTIAL, 1_000, 1),
        (EXPONENTIAL, 5_000, 3),
        (EXPONENTIAL, 31_000, 5),
        (EXPONENTIAL, 600_000, 7),
        (LINEAR_FIRST, 1_000, 1),
        (LINEAR_FIRST, 5_000, 5),
        (LINEAR_FIRST, 30_000, 9),
    ],
)
def test_a_dial_sends_the_syns_that_are_due_before_its_timeout(
    ladder: tuple[Syn, ...], connect_timeout_ms: int, syns: int
) -> None:
    assert len(before(ladder, connect_timeout_ms)) == syns
    assert is_certain(ladder, connect_timeout_ms)


@pytest.mark.parametrize("connect_timeout_ms", [1_001, 3_100, 7_400, 15_800, 32_000])
def test_a_timeout_that_a_late_timer_may_outlast_is_uncertain(connect_timeout_ms: int) -> None:
    assert not is_certain(EXPONENTIAL, connect_timeout_ms)


def test_a_timer_is_as_late_as_the_coarsest_wheel_that_may_hold_it() -> None:
    # kernel/time/timer.c: 1 s is held to 80 ms at 100 Hz, to 64 ms at 1000 Hz; 16 s to 2048 ms at 250 Hz.
    assert timer_lateness_ms(1_000) == 80
    assert timer_lateness_ms(16_000) == 1707
    assert timer_lateness_ms(32_000) == 2048


@given(st.integers(1, 200_000))
def test_a_timer_is_late_by_an_eighth_at_most(delay_ms: int) -> None:
    assert timer_lateness_ms(delay_ms) <= max(delay_ms / 7, 20)


TOMCAT = Capacity(slots=1, backlog=1, keep_alive_timeout_ms=20_000)


def load(
    users: int, *, gap_ms: int = 10, calls: int = 1, timeout_ms: int = 30_000, ladder: tuple[Syn, ...] = EXPONENTIAL
) -> Load:
    return Load(users, gap_ms, calls, 0, 1_000, timeout_ms, ladder)


def counts(outcome: UsersOutcome) -> tuple[int | None, int | None]:
    return outcome.served, outcome.dropped_syns


def test_calls_are_counted_and_not_kept() -> None:
    """As many as a scenario may ask for: 20,000 users with a million calls each."""
    outcome = simulate(Capacity(20_000, 1, 40_000), load(20_000, gap_ms=1_000, calls=1_000_000))
    assert outcome.served == 20_000
    assert (len(outcome.first_ms), outcome.later) == (20_000, (20_000 * 999_999, 1_000))
    assert outcome.response_ms_max == 1_000 + ACCEPT_LATE_MS


@pytest.mark.parametrize(
    ("server", "users", "expected"),
    [
        (TOMCAT, load(1), (1, 0)),
        (TOMCAT, load(3), (3, 0)),
        (TOMCAT, load(103), (3, 500)),
        (Capacity(1, 1, 40_000), load(103, ladder=LINEAR_FIRST), (3, 900)),
        (TOMCAT, load(4, gap_ms=200, timeout_ms=1_000, ladder=LINEAR_FIRST), (3, 1)),
        (Capacity(2, 3, 20_000), load(9), (6, 15)),
        (Capacity(8192, 100, 20_000), load(103), (103, 0)),
    ],
)
def test_as_many_are_served_as_the_server_holds(server: Capacity, users: Load, expected: tuple[int, int]) -> None:
    assert counts(simulate(server, users)) == expected


def test_each_user_waits_for_the_keep_alive_timeouts_before() -> None:
    assert simulate(TOMCAT, load(3, gap_ms=0)).response_ms == (1_000, 22_000, 43_000)
    assert simulate(TOMCAT, load(3, gap_ms=500)).response_ms == (1_000, 21_500, 42_000)


def test_two_calls_of_two_users_take_the_published_times() -> None:
    assert simulate(TOMCAT, load(2, gap_ms=10, calls=2)).response_ms == (1_000, 1_000, 1_000, 22_990)


def test_users_in_the_same_millisecond_race_with_the_acceptor() -> None:
    # With a short timeout the race decides who fails; with a long one a later SYN finds the place that was free.
    assert counts(simulate(TOMCAT, load(4, gap_ms=0, timeout_ms=1_000))) == (None, None)
    assert counts(simulate(TOMCAT, load(103, gap_ms=0))) == (3, None)


def test_users_whose_last_syn_may_meet_a_place_set_free_are_uncertain() -> None:
    # The last of 103 users, 60 ms apart, sends its fifth SYN at 6.12 + 15 s; the first place is free at 1 + 20 s.
    assert simulate(TOMCAT, load(103, gap_ms=60)).served is None


@pytest.mark.parametrize(
    ("server", "users"),
    [
        # The lesson's exercise: a place is free at 1 + 5 s, and SYNs come until 16 s.
        (Capacity(1, 1, 5_000), load(103)),
        (Capacity(1, 1, 0), load(4, gap_ms=100)),
        # The first place is free at 16 s; the last SYN is sent at 1.02 + 15 s at the earliest.
        (Capacity(1, 1, 15_000), load(103)),
    ],
)
def test_which_user_gets_a_place_freed_while_syns_are_sent_is_uncertain(server: Capacity, users: Load) -> None:
    outcome = simulate(server, users)

    assert outcome.contested
    assert counts(outcome) == (None, None)


def test_places_set_free_while_nobody_is_turned_away_are_certain() -> None:
    outcome = simulate(Capacity(1, 1, 0), load(10, gap_ms=3_100))

    assert not outcome.contested
    assert counts(outcome) == (10, 0)


servers = st.builds(Capacity, st.integers(1, 20), st.integers(0, 20), st.sampled_from([0, 100, 20_000]))
loads = st.builds(
    Load,
    st.integers(1, 60),
    st.sampled_from([0, 10, 100]),
    st.integers(1, 3),
    st.sampled_from([0, 50]),
    st.sampled_from([0, 10, 1_000]),
    st.sampled_from([1_000, 5_000, 30_000]),
    st.sampled_from([EXPONENTIAL, LINEAR_FIRST]),
)


@given(servers, loads)
def test_every_user_is_served_or_fails_after_its_syns(server: Capacity, users: Load) -> None:
    outcome = simulate(server, users)
    assume(outcome.served is not None and outcome.dropped_syns is not None)
    assert outcome.served is not None
    assert outcome.dropped_syns is not None

    syns = len(before(users.ladder, users.connect_timeout_ms))
    assert 0 <= outcome.served <= users.users
    assert (users.users - outcome.served) * syns <= outcome.dropped_syns <= users.users * syns
    assert len(outcome.response_ms) == outcome.responses == outcome.served * users.calls
    assert min(outcome.response_ms) >= users.handler_ms


@given(servers, loads)
def test_nobody_fails_and_no_syn_is_dropped_where_there_is_room(server: Capacity, users: Load) -> None:
    assume(users.users <= server.backlog + 1)

    assert counts(simulate(server, users)) == (users.users, 0)
