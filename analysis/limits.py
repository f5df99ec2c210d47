"""Every limit by which an instrument is judged, in one place, with its reason.

What a fault spoils is as narrow as the reason allows. The difference of a counter between two edges is right whatever
happened to the samples between them; the greatest depth of a queue is not. A late tick is no fault at all: it carries
the time at which it was taken.
"""

from __future__ import annotations

# A hole in the ticks. A maximum read from samples misses what rises and falls within a hole, and a counter read at
# the far side of one may hold what happened outside the window. Five periods bear a busy machine; half a second is
# the least, because an accept queue that overflows stays full for as long as its clients wait: a second and more.
GAP_PERIODS = 5
GAP_MS_MIN = 500

# A hole in what is read once a second (sockets, processes, scrapes): two readings lost in a row are one too many.
SECONDLY_GAP_MS = 3_000

# Per-peer TIME_WAIT is read every five seconds and lasts sixty.
TIME_WAIT_GAP_MS = 15_000

# A step of the wall clock against the monotonic one, between two ticks. Slewing is at most 0.5 ms in a second;
# preemption between the two readings of a tick stays well below this. Whatever joins the lab's phases, the samples
# and the server's times by the wall clock is spoilt; durations are monotonic and are not.
CLOCK_STEP_MS = 100

# The share of all processors that must be idle while the load runs. Below it the generator did not get the processor
# when it wanted it: users came late and latencies hold its own waiting.
HOST_IDLE_PERCENT_MIN = 2.0

# A collector that takes more than this of one processor disturbs what it measures. It is told, and spoils nothing:
# the share of idle processors decides whether that mattered.
SAMPLER_CPU_PERCENT_MAX = 10.0

# k6's exit codes that leave its evidence whole: 0, and 99 for a threshold that was crossed.
# https://grafana.com/docs/k6/latest/using-k6/thresholds/ and k6's errext/exitcodes.
K6_EXITS_IN_ORDER = (0, 99)


def gap_ms(rate_hz: int) -> float:
    """The longest hole in ticks taken at this rate, in ms."""
    return max(GAP_MS_MIN, GAP_PERIODS * 1000 / rate_hz)
