"""What the processes of one instance used, from the sampler's readings once a second."""

from collections.abc import Collection, Iterable, Sequence

from analysis.evidence import window_readings
from analysis.evidence.jsonl import Record, integer, records
from analysis.evidence.window import Window

# The collector's own, which share the process namespace with the role.
INSTRUMENTS = frozenset({"collector", "tcpdump", "docker-init", "tini"})


def select_role(series: Iterable[Record], names: Collection[str]) -> list[Record]:
    """Return the readings with the role's processes alone: those of these names; without names, all but instruments."""
    return [
        reading
        | {
            "processes": [
                process
                for process in records(reading, "processes")
                if (process.get("comm") in names if names else process.get("comm") not in INSTRUMENTS)
            ]
        }
        for reading in series
    ]


def under_load(series: Sequence[Record], window: Window) -> list[Record]:
    """Return the readings around the phase `measure`."""
    return window_readings.readings_enclosing(series, window.start_us, window.load_end_us)


def cpu_percent(readings: Sequence[Record]) -> float | None:
    """Return the processor time the role used from the first reading to the last, in percent of one processor.

    A process that began in between counts from its start. What one used after its last reading, if it ended in
    between, is not known and not counted.
    """
    if not readings:
        return None
    duration_us: int = readings[-1]["time_us"] - readings[0]["time_us"]
    if duration_us <= 0:
        return None
    before = _cpu_ms(readings[:1])
    after = _cpu_ms(readings)
    used_ms = sum(cpu_ms - before.get(pid, 0) for pid, cpu_ms in after.items())
    return round(100_000 * used_ms / duration_us, 2)


def own_cpu_percent(selves: Sequence[Record]) -> float | None:
    """Return how much of one processor a collector used, in percent, from its own records."""
    used = [(record["time_us"], cpu_ms) for record in selves if (cpu_ms := integer(record, "cpu_ms")) is not None]
    if not used:
        return None
    duration_us: int = used[-1][0] - used[0][0]
    return round(100_000 * (used[-1][1] - used[0][1]) / duration_us, 2) if duration_us > 0 else None


def _cpu_ms(readings: Iterable[Record]) -> dict[int, int]:
    """Return the last known processor time of each process of the role, by its id."""
    latest: dict[int, int] = {}
    for reading in readings:
        for process in records(reading, "processes"):
            pid, cpu_ms = integer(process, "pid"), integer(process, "cpu_ms")
            if pid is not None and cpu_ms is not None:
                latest[pid] = cpu_ms
    return latest


def total(reading: Record, key: str) -> int | None:
    """Return a quantity summed over the role's processes; None if there is no process, or one without it."""
    values = [integer(process, key) for process in records(reading, "processes")]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
