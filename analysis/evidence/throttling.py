"""Whether a processor limit that the lab gave a server held it, by its kernel's counters or by what it used."""

from __future__ import annotations

from analysis.evidence import processes
from analysis.evidence.rawrun import RawRun
from formats.manifest import ActionRecord

# The kernel gives a limited container its share anew in each period.
PERIOD_US = 100_000
# A limit that held its server in fewer of the periods is not the wait of most requests.
_PERIODS_MIN = 0.5
# A reading counts processor time in ticks of 10 ms, one for each process.
_USED_MIN = 0.9


def throttled(raw: RawRun, action: ActionRecord) -> str | None:
    """Return how the evidence shows that a limit held its server for most of its time; None where it shows none."""
    if action.do != "cpu" or action.cpus is None or action.start_us is None or action.end_us is None:
        return None
    if action.throttled_periods is not None:
        periods = (action.end_us - action.start_us) // PERIOD_US
        if action.throttled_periods < _PERIODS_MIN * periods:
            return None
        return f"throttled in {min(action.throttled_periods, periods)} of {periods} periods of 100 ms (nr_throttled)"
    within = [
        reading
        for reading in raw.processes.get(action.instance, ())
        if action.start_us <= reading["time_us"] <= action.end_us
    ]
    percent = processes.cpu_percent(within)
    if percent is None or percent < _USED_MIN * 100 * action.cpus:
        return None
    return f"at its limit: its processes used {percent / 100:.2g} processors"
