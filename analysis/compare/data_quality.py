"""The data quality of a series: the order of its runs, whether what they measured drifts over it, and the machine.

A drift is looked for in what is left of the main figure when each cell's mean is taken away: if later runs lie above
their cell's mean and earlier ones below, the machine changed while the series ran. Cells are run in blocks, so that a
drift meets them all alike; it widens their intervals all the same.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from analysis import command_hints
from analysis.compare.comparison_file import PairEntry, TrustEntry
from analysis.compare.intervals import RESAMPLES, SEED, Floats
from analysis.compare.narrative import with_unit
from analysis.compare.replicates import SeriesRuns, figure_values
from analysis.formatting import format_count

# With fewer, any order is one of a few dozen: chance gives each too often.
_RUNS_MIN = 6
_CHANCE_MAX = 0.05
_NEW = "--new"
_REPETITIONS_MAX = 99


def assess(series: SeriesRuns, figure: str | None, pairs: list[PairEntry]) -> TrustEntry:
    """Return what speaks for a series, and what against it."""
    begun = [place for place in series.plan.runs if place.run is not None]
    return TrustEntry(
        order=[str(place.run) for place in begun],
        says=[*_counted(series), *_drift(series, figure), *_noise(pairs, figure), *_machine(series)],
        again=_shell([*_without_new(series.plan.command), _NEW]) if series.plan.command else None,
        more=_more(series, figure, pairs),
        repetitions=series.plan.repetitions,
    )


def _without_new(command: list[str]) -> list[str]:
    return [word for word in command if word != _NEW]


def _more(series: SeriesRuns, figure: str | None, pairs: list[PairEntry]) -> str | None:
    """Return the command that adds repetitions: as many as would tell the differences, else twice as many."""
    words = series.plan.command
    # Another command, such as a lesson's, or one for all scenarios, cannot add to this series alone.
    of_this = words[1:2] in (["run"], ["matrix"]) and any(Path(word).stem == series.plan.name for word in words[2:])
    if not of_this or series.plan.repetitions >= _REPETITIONS_MAX:
        return None
    needed = [effect.repetitions_needed or 0 for pair in pairs for effect in pair.effects if effect.figure == figure]
    times = max([2 * series.plan.repetitions, *needed])
    # Click takes the last of two, and the command may already have one.
    return _shell([*_without_new(words), "--repetitions", str(min(times, _REPETITIONS_MAX))])


def _shell(command: list[str]) -> str:
    """Return a command as it is typed in the lab's folder, where the program is installed."""
    words = [command_hints.PROGRAM, *command[1:]] if command[0] == "connlab" else command
    return " ".join(map(command_hints.quote, words))


def _counted(series: SeriesRuns) -> Iterator[str]:
    """Yield how many runs count; the table of runs says why another does not."""
    used = sum(len(group.used) for group in series.groups.values())
    planned = len(series.plan.runs)
    if used == planned:
        yield f"All {format_count(planned, 'run')} that were planned count."
        return
    lost = format_count(planned - used, "run")
    yield f"{used} of {format_count(planned, 'planned run')} count; {lost} failed, did not run, or are inconclusive."


def _drift(series: SeriesRuns, figure: str | None) -> Iterator[str]:
    if figure is None:
        return
    if all(len(group.used) < 2 for group in series.groups.values()):  # noqa: PLR2004  one run has no spread
        yield "Noise and drift are unknown: no cell ran more than once."
        return
    place = {str(each.run): number for number, each in enumerate(series.plan.runs) if each.run is not None}
    found: list[tuple[int, float]] = []
    for group in series.groups.values():
        known = [(run, value) for run in group.used for value in figure_values([run], figure)]
        if len(known) > 1:
            mean = sum(value for _, value in known) / len(known)
            found += [(place.get(run.name, 0), value - mean) for run, value in known]
    if len(found) < _RUNS_MIN or not any(beyond for _, beyond in found):
        yield f"Drift is unknown: too few runs differ in {figure}."
        return
    beyond = np.array([value for _, value in sorted(found)])
    strength, chance = rank_correlation(beyond)
    if chance > _CHANCE_MAX:
        yield f"No drift: {figure} did not rise or fall over the series by more than chance."
        return
    way = "rose" if strength > 0 else "fell"
    earlier, later = (float(half.mean()) for half in np.array_split(beyond, 2))
    yield (
        f"Drift: {figure} {way} while the series ran. Relative to its cell's mean, the first half of"
        f" the runs is at {earlier:+.3g} and the second at {later:+.3g}; chance alone gives such an order in"
        f" {100 * chance:.2g} % of cases. The machine probably changed. Each block of runs has every cell once, so"
        " this affects the size of a difference more than its sign."
    )


def rank_correlation(values: Floats) -> tuple[float, float]:
    """Return the rank correlation of values with their order, and how often a random order has as strong a one."""
    order = np.arange(len(values)) - (len(values) - 1) / 2
    # Ranks are the same numbers in another order.
    ranks = order[np.argsort(np.argsort(values, kind="stable"), kind="stable")]
    scale = float((order**2).sum())
    strength = float(ranks @ order) / scale
    rng = np.random.default_rng(SEED)
    drawn = np.abs(rng.permuted(np.tile(ranks, (RESAMPLES, 1)), axis=1) @ order) / scale
    return strength, float((1 + np.count_nonzero(drawn >= abs(strength) - 1e-12)) / (1 + RESAMPLES))


def _noise(pairs: list[PairEntry], figure: str | None) -> Iterator[str]:
    effects = [each for pair in pairs for each in pair.effects if each.figure == figure]
    noise = [(each.noise, each.unit) for each in effects if each.noise is not None]
    if noise:
        most, unit = max(noise)
        yield (
            f"Noise: two groups of repetitions of the same cell differ in {figure} by up to"
            f" {with_unit(f'{most:.3g}', unit)}, at the noisiest cell."
        )


def _machine(series: SeriesRuns) -> Iterator[str]:
    hosts = (group.example.manifest.host for group in series.groups.values())
    host = next((each for each in hosts if each.kernel), None)
    if host is not None:
        cpus = format_count(host.cpus, "processor") if host.cpus else "unknown processors"
        memory = f"{round(host.memory_kb / (1 << 20))} GiB" if host.memory_kb is not None else "unknown memory"
        yield f"Machine: {cpus}, {memory}, kernel {host.kernel}, {host.distribution or 'unknown distribution'}."
