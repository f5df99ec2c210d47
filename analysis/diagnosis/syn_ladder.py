"""When the kernel sends the SYNs of a connection attempt that nothing answers.

From Linux's net/ipv4/tcp_timer.c. The first retransmission comes after TCP_TIMEOUT_INIT, 1 s. `tcp_retransmit_timer()`
doubles the timeout after each retransmission, up to TCP_RTO_MAX, 120 s (from 6.15 on `tcp_rto_max_ms`), but in
SYN_SENT not until more than `tcp_syn_linear_timeouts` have been sent (6.5 and later). `tcp_write_timeout()` gives up
after `tcp_syn_retries` + `tcp_syn_linear_timeouts` retransmissions; or, by `retransmits_timed_out()`, once
`tcp_syn_retries` of them would have taken as long without linear ones: with 2 and 4 that is after 7 s, and the SYNs
leave at 0, 1, 2, 3, 4 and 5 s. With 6 and 4, the defaults, SYNs leave at
0, 1, 2, 3, 4, 5, 7, 11, 19, 35 and 67 s; with 6 and 0 at 0, 1, 3, 7, 15, 31 and 63 s.

These are the earliest times. kernel/time/timer.c keeps timers in a wheel of levels, the further away the coarser, and
rounds up: a timeout of 8 s may be half a second late.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.diagnosis.model_settings import ModelNotApplicable, Settings, require

INITIAL_TIMEOUT_MS = 1_000
TIMEOUT_MAX_MS = 120_000

SYN_RETRIES = "net.ipv4.tcp_syn_retries"
LINEAR_TIMEOUTS = "net.ipv4.tcp_syn_linear_timeouts"
TIMEOUT_MAX = "net.ipv4.tcp_rto_max_ms"
# What the kernel takes for each (net/ipv4/sysctl_net_ipv4.c).
_BOUNDS = {SYN_RETRIES: (1, 127), LINEAR_TIMEOUTS: (0, 127), TIMEOUT_MAX: (INITIAL_TIMEOUT_MS, TIMEOUT_MAX_MS)}
SYSCTLS = tuple(_BOUNDS)

# The tick rates that a kernel can be built with (kernel/Kconfig.hz); a program cannot tell which.
_TICK_RATES_HZ = (100, 250, 300, 1000)

# kernel/time/timer.c: LVL_SIZE, LVL_CLK_SHIFT and LVL_DEPTH.
_WHEEL_BUCKETS = 64
_WHEEL_SHIFT = 3
_WHEEL_LEVELS = 9


@dataclass(frozen=True, slots=True)
class Syn:
    """One SYN, in ms after the first: when it may leave at the earliest and at the latest."""

    earliest_ms: int
    latest_ms: int


def syn_ladder(syn_retries: int, linear_timeouts: int, timeout_max_ms: int = TIMEOUT_MAX_MS) -> tuple[Syn, ...]:
    """Return the SYNs of an attempt that nothing answers and no one ends, by the client's sysctls.

    A kernel that has no net.ipv4.tcp_syn_linear_timeouts behaves as with 0.
    """
    ladder = [Syn(0, 0)]
    timeout_ms = INITIAL_TIMEOUT_MS
    for retransmission in range(1, syn_retries + linear_timeouts + 1):
        last = ladder[-1]
        if last.earliest_ms + timeout_ms >= _model_timeout_ms(syn_retries, timeout_max_ms):
            break
        ladder.append(Syn(last.earliest_ms + timeout_ms, last.latest_ms + timeout_ms + timer_lateness_ms(timeout_ms)))
        if retransmission > linear_timeouts:
            timeout_ms = min(2 * timeout_ms, timeout_max_ms)
    return tuple(ladder)


def _model_timeout_ms(retries: int, timeout_max_ms: int) -> int:
    """Return after how long the kernel gives up, however many it has sent (tcp_model_timeout)."""
    doubled = min(retries, (timeout_max_ms // INITIAL_TIMEOUT_MS).bit_length() - 1)
    return ((2 << doubled) - 1) * INITIAL_TIMEOUT_MS + (retries - doubled) * timeout_max_ms


def before(ladder: tuple[Syn, ...], connect_timeout_ms: int) -> tuple[Syn, ...]:
    """Return the SYNs that leave before the client closes the socket at its connect timeout, which ends the ladder.

    One that is due at that very moment does not: the client's timer began before the kernel's and is finer.
    """
    return tuple(syn for syn in ladder if syn.earliest_ms < connect_timeout_ms)


def is_certain(ladder: tuple[Syn, ...], connect_timeout_ms: int) -> bool:
    """Return whether no SYN may leave on either side of the connect timeout, however late the kernel's timer is."""
    return all(syn.latest_ms < connect_timeout_ms for syn in before(ladder, connect_timeout_ms))


def timer_lateness_ms(delay_ms: int) -> int:
    """Return how late a timer of the kernel may fire at most, whatever its tick rate."""
    return max(_lateness_ms(delay_ms, hz) for hz in _TICK_RATES_HZ)


def _lateness_ms(delay_ms: int, hz: int) -> int:
    delay_ticks = -(-delay_ms * hz // 1000)
    level = 0
    while level < _WHEEL_LEVELS - 1 and delay_ticks >= (_WHEEL_BUCKETS - 1) << (level * _WHEEL_SHIFT):
        level += 1
    granularity_ticks = 1 << (level * _WHEEL_SHIFT)
    return -(-granularity_ticks * 1000 // hz)


def ladder_of_users(settings: Settings) -> tuple[Syn, ...]:
    """Return the SYNs of a user's dial that nothing answers and nothing ends."""
    return ladder_of_role(settings, settings.manifest.client)


def ladder_of_role(settings: Settings, role: str) -> tuple[Syn, ...]:
    """Return the SYNs of a role's dial that nothing answers; all of its instances must have the same ladder."""
    ladders = {syn_ladder(*sysctls_of(settings, instance).values()) for instance in settings.instances(role)}
    require(len(ladders) == 1, f"the instances of {role} have different sysctls")
    return ladders.pop()


def sysctls_of(settings: Settings, instance: str) -> dict[str, int]:
    """Return an instance's SYSCTLS, in their order."""
    values = {name: settings.sysctl(instance, name) for name in SYSCTLS}
    if values[SYN_RETRIES] is None:
        raise ModelNotApplicable(f"the kernel of {instance} has no {SYN_RETRIES}")
    # A kernel without the others behaves as if it had them at these values.
    without = {LINEAR_TIMEOUTS: 0, TIMEOUT_MAX: TIMEOUT_MAX_MS}
    found = {name: without[name] if value is None else value for name, value in values.items()}
    for name, value in found.items():
        low, high = _BOUNDS[name]
        require(low <= value <= high, f"{name} of {instance} is {value:,}, and no kernel takes that")
    return found
