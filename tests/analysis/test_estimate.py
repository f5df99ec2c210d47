from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis import figures
from analysis.diagnosis.syn_ladder import LINEAR_TIMEOUTS, SYN_RETRIES, TIMEOUT_MAX
from analysis.evidence.rawrun import RawRun
from analysis.expressions.values import Unknown
from analysis.figures import estimate
from analysis.figures.estimate import CheckedEstimate, Estimate, SynTimers, plausible_clients
from analysis.figures.queue_simulation import Capacity, Load, simulate
from formats import manifest
from tests.analysis.support import OTHERS, USERS, RunFolder, backend_tick, make_dial, make_samples, quiet_tick

SYSCTLS = st.fixed_dictionaries(
    {},
    optional={
        SYN_RETRIES: st.integers(1, 20),
        LINEAR_TIMEOUTS: st.integers(0, 20),
        TIMEOUT_MAX: st.integers(1_000, 120_000),
    },
)
TIMEOUTS_MS = st.integers(1, 400_000)
OVERFLOWS = st.integers(0, 10**12)


def estimated(overflows: int, connect_timeout_ms: int, **sysctls: int) -> Estimate:
    named = {f"net.ipv4.tcp_{name}": value for name, value in sysctls.items()}
    return Estimate(overflows, plausible_clients(connect_timeout_ms, named))


def bounds(estimate_: Estimate) -> tuple[int, int]:
    return estimate_.bounds.least_if_none_got_in, estimate_.bounds.most


def check(run: RunFolder) -> CheckedEstimate:
    folder = run.write()
    return estimate.estimate_run(figures.Run(RawRun(folder, manifest.load_manifest(folder))))


def test_the_published_range_is_that_of_the_two_ladders_that_linux_has_had() -> None:
    found = estimated(6_568_459, 5_000)

    assert [client.syns_ms for client in found.clients] == [(0, 1000, 3000), (0, 1000, 2000, 3000, 4000)]
    assert bounds(found) == (1_313_692, 2_189_486)  # overflows / 5 and overflows / 3


@pytest.mark.parametrize(
    ("overflows", "timeout_ms", "linear", "found"),
    [
        pytest.param(6_568_459, 5_000, {"syn_linear_timeouts": 0}, 2_189_486, id="known linear timeouts"),
        pytest.param(500, 30_000, {"syn_linear_timeouts": 0}, 100, id="five SYNs within thirty seconds"),
        pytest.param(10_060, 30_000, {"syn_linear_timeouts": 0}, 2_012, id="all overflows are of failures"),
        pytest.param(14, 30_000, {"syn_linear_timeouts": 0}, 2, id="not all overflows are of failures"),
        pytest.param(2, 30_000, {}, 0, id="fewer overflows than a failure has"),
        pytest.param(77, 1_000, {}, 77, id="within one second each overflow is a connection"),
    ],
)
def test_one_ladder_leaves_one_number(overflows: int, timeout_ms: int, linear: dict[str, int], found: int) -> None:
    assert bounds(estimated(overflows, timeout_ms, **linear)) == (found, found)


def test_known_retries_alone_leave_two_kinds_of_clients() -> None:
    assert [client.syns_max for client in estimated(1, 30_000, syn_retries=2).clients] == [3, 6]


def test_a_last_syn_that_the_timer_may_keep_back_widens_the_bounds() -> None:
    found = estimated(1_200, 7_050, syn_linear_timeouts=0)

    assert (found.clients[0].syns_min, found.clients[0].syns_max) == (3, 4)
    assert bounds(found) == (300, 400)


def test_a_kernel_that_gives_up_before_the_timeout_has_no_next_syn() -> None:
    client = plausible_clients(600_000, {LINEAR_TIMEOUTS: 0})[0]

    assert (client.syns_max, client.next_syn_ms) == (7, None)


@given(OVERFLOWS, TIMEOUTS_MS, SYSCTLS)
def test_bounds_are_ordered_and_below_the_overflows(overflows: int, timeout_ms: int, sysctls: dict[str, int]) -> None:
    found = Estimate(overflows, plausible_clients(timeout_ms, sysctls))
    each = [found.bounds, *(found.bounds_of(client) for client in found.clients)]

    assert all(0 <= one.least_if_none_got_in <= one.most <= overflows for one in each)


@given(OVERFLOWS, OVERFLOWS, TIMEOUTS_MS, SYSCTLS)
def test_more_overflows_never_mean_fewer_failures(
    one: int, other: int, timeout_ms: int, sysctls: dict[str, int]
) -> None:
    clients = plausible_clients(timeout_ms, sysctls)
    fewer, more = bounds(Estimate(min(one, other), clients)), bounds(Estimate(max(one, other), clients))

    assert fewer[0] <= more[0]
    assert fewer[1] <= more[1]


@given(OVERFLOWS, TIMEOUTS_MS, TIMEOUTS_MS, SYSCTLS)
def test_more_patience_never_means_more_failures(
    overflows: int, one_ms: int, other_ms: int, sysctls: dict[str, int]
) -> None:
    short, long = (
        Estimate(overflows, plausible_clients(timeout_ms, sysctls)) for timeout_ms in sorted((one_ms, other_ms))
    )

    assert bounds(long)[1] <= bounds(short)[1]
    assert bounds(long)[0] <= bounds(short)[0]


@st.composite
def truths(draw: st.DrawFn) -> tuple[tuple[SynTimers, ...], int, int, int]:
    """Clients, the overflows that their failed connections cost, those of the others, and how many failed."""
    clients = plausible_clients(draw(TIMEOUTS_MS), draw(SYSCTLS))
    costs = st.sampled_from(clients).flatmap(lambda client: st.integers(client.syns_min, client.syns_max))
    failures = draw(st.lists(costs, max_size=50))
    return clients, sum(failures), draw(st.integers(0, 1_000)), len(failures)


@given(truths())
def test_the_truth_lies_within_the_bounds_whatever_else_was_counted(
    truth: tuple[tuple[SynTimers, ...], int, int, int],
) -> None:
    clients, of_failures, of_others, failed = truth
    none_got_in = Estimate(of_failures, clients).bounds

    assert failed <= Estimate(of_failures + of_others, clients).bounds.most
    assert none_got_in.least_if_none_got_in <= failed <= none_got_in.most


@given(
    st.builds(Capacity, st.integers(1, 3), st.integers(0, 3), st.sampled_from((500, 2_000, 20_000))),
    st.integers(1, 30),
    st.sampled_from((0, 40, 1_500)),
    st.sampled_from((700, 5_000, 30_000)),
    st.sampled_from((0, 4)),
)
def test_simulated_users_fail_within_the_bounds_of_their_overflows(
    server: Capacity, users: int, gap_ms: int, timeout_ms: int, linear: int
) -> None:
    (client,) = plausible_clients(timeout_ms, {LINEAR_TIMEOUTS: linear})
    outcome = simulate(server, Load(users, gap_ms, 1, 0, 100, timeout_ms, client.ladder))
    assume(outcome.served is not None and outcome.dropped_syns is not None)
    assert outcome.served is not None
    assert outcome.dropped_syns is not None

    assert users - outcome.served <= Estimate(outcome.dropped_syns, (client,)).bounds.most


def test_a_runs_failed_dials_lie_within_the_bounds_of_its_own_counter(run: RunFolder) -> None:
    found = check(run)

    assert isinstance(found.estimate, Estimate)
    assert (found.estimate.overflows, found.failed, found.within) == (5 * OTHERS, OTHERS, True)
    assert bounds(found.estimate) == (OTHERS, OTHERS)


def test_more_failed_dials_than_the_counter_allows_are_outside(run: RunFolder) -> None:
    client = run.clients["k6-1"]
    client.dials.insert(0, make_dial(USERS + 1, failed=True, duration_ms=30_000))

    assert check(run).within is False


def test_a_starved_generator_does_not_spoil_a_count_of_what_it_did(run: RunFolder) -> None:
    for reading in run.samples["backend-1"].slow + run.samples["k6-1"].slow:
        if "host" in reading:
            reading["host"]["cpu_idle_ms"] = 0

    assert check(run).within is True


def test_at_a_proxied_path_the_first_hop_is_checked(proxied_run: RunFolder) -> None:
    proxied_run.samples["backend-1"] = make_samples("backend-1", backend_tick, "java")
    found = check(proxied_run)

    assert isinstance(found.estimate, Estimate)
    assert found.estimate.overflows == 0
    assert found.within is False, "the samples of this nginx say that no SYN met a full queue"
    assert found.servers == ("nginx",)
    assert found.elsewhere == {"backend-1": 5 * OTHERS}


def test_what_a_full_syn_queue_dropped_stands_beside_the_overflows(run: RunFolder) -> None:
    assert (check(run).servers, check(run).syn_queue_drops, check(run).elsewhere) == (("backend-1",), 0, {})

    ticks = run.samples["backend-1"].ticks
    for tick in ticks[len(ticks) // 2 :]:
        tick["counters"]["TcpExt.TCPReqQFullDrop"] = 20
    assert check(run).syn_queue_drops == 20


def without_samples(run: RunFolder) -> None:
    run.samples["backend-1"].ticks.clear()


def without_sysctls(run: RunFolder) -> None:
    run.manifest["sysctls"] = {}


def without_an_end(run: RunFolder) -> None:
    run.clients["k6-1"].ended = False


def without_a_server(run: RunFolder) -> None:
    run.manifest["path"] = ["k6"]


@pytest.mark.parametrize("spoil", [without_samples, without_sysctls, without_an_end, without_a_server])
def test_without_its_evidence_a_check_is_unknown(run: RunFolder, spoil: Callable[[RunFolder], None]) -> None:
    spoil(run)
    found = check(run)

    assert isinstance(found.within, Unknown)
    assert found.within.why


def test_a_client_kernel_without_linear_timeouts_backs_off_at_once(run: RunFolder) -> None:
    run.manifest["sysctls"]["k6-1"]["net.ipv4.tcp_syn_linear_timeouts"] = None
    run.manifest["sysctls"]["k6-1"]["net.ipv4.tcp_rto_max_ms"] = None
    run.samples["k6-1"].ticks = [tick | {"counters": quiet_tick(0)[0]} for tick in run.samples["k6-1"].ticks]

    found = check(run).estimate
    assert isinstance(found, Estimate)
    assert found.clients[0].syns_ms == (0, 1000, 3000, 7000, 15_000)
