"""Every limit by which an instrument is judged, in one place, with its reason.

What a fault spoils is as narrow as the reason allows. The difference of a counter between two edges is right whatever
happened to the samples between them; the greatest depth of a queue is not. A late tick is not a fault: it carries
the time at which it was taken.
"""

from analysis.evidence.clock import STEP_US

# A hole in the ticks at an edge of the window. A counter read at its far side may hold what happened outside. Five
# periods bear a busy machine; half a second is the least, and shorter than what lies between the warm-up or the stop of
# the servers and the load.
EDGE_GAP_PERIODS = 5
EDGE_GAP_MS_MIN = 500

# A hole in the ticks anywhere in the window. A maximum read from samples misses what rises and falls within one. A
# second is the least: an accept queue that overflows stays full for as long as its clients wait, a second and more.
GAP_PERIODS = 10
GAP_MS_MIN = 1_000

# A hole in what is read once a second (sockets, processes, scrapes): two readings lost in a row are one too many.
SECONDLY_GAP_MS = 3_000

# A step of the wall clock against the monotonic one, between two ticks.
CLOCK_STEP_MS = STEP_US // 1000

# A starved generator: users came late, and latencies hold k6's own waiting. Four signs of it, each enough.
# One: the processors had no time to spare, and k6 itself wanted much. A program that wants little gets it at once,
# however busy others keep the machine; that is what the scheduler is for.
HOST_IDLE_PERCENT_MIN = 2.0
K6_CPU_SHARE_PERCENT_MAX = 25.0
# Two: the sampler beside k6, which sleeps and wakes as a user does, woke up late: by more than half a period, in more
# than one of twenty ticks.
LATE_TICKS_PERCENT_MAX = 5.0

# Three: a hole in its ticks that is longer than GAP_PERIODS and GAP_MS_MIN allow. The whole machine stood still.

# Four, of a spike, whose requests are due at set moments: k6 began fewer in its time. It counts as dropped what finds
# no free user, and not what it was too late for. One in ten is what a busy machine pushes over the edge of a short one.
ARRIVALS_PERCENT_MIN = 90.0

# A collector that takes more than this of one processor disturbs what it measures. A warning that spoils nothing:
# the signs above decide whether that mattered.
SAMPLER_CPU_PERCENT_MAX = 10.0

# A user who met a full queue before the program had accepted all, and another who took the place so soon after: as many
# are served and refused as if they had come in their order, and nobody's times differ by more than this.
TAKEN_SOON_MS = 50

# k6's exit codes that leave its evidence whole: 0, and 99 for a threshold that was crossed.
# https://grafana.com/docs/k6/latest/using-k6/thresholds/ and k6's errext/exitcodes.
K6_EXITS_IN_ORDER = (0, 99)


def edge_gap_ms(rate_hz: int) -> float:
    """Return the longest hole at an edge of the window in ticks taken at this rate, in ms."""
    return max(EDGE_GAP_MS_MIN, EDGE_GAP_PERIODS * 1000 / rate_hz)


def gap_ms(rate_hz: int) -> float:
    """Return the longest hole within the window in ticks taken at this rate, in ms."""
    return max(GAP_MS_MIN, GAP_PERIODS * 1000 / rate_hz)
