"""Counts how often each way to compare calls noise a difference, and how often it finds one. One JSON line.

    [RUNS=<folder of runs>] .venv/bin/python -m tests.bench.noise [SPLITS]

Repetitions of one arm, with the same settings on the same machine, are split at random into two halves, many times.
There is no difference between the halves, so a tool that reports one is wrong. To ask whether it finds a real
difference, the times of the second half are multiplied by 1.5. The repetitions are the recordings of
docs/experiments.jsonl, in each of which a figure is the mean of its arm's runs, or with RUNS the runs of a folder. All
judge by the same figure, a time of the client:

- `connlab compare`: it is `changed`.
- `connlab gate` with WORSE_THAN=10%: the second half is `worse`. It says so of seven repetitions or more.
- A threshold as a script of k6 has it: below 1.1 times the first half's median. k6 judges each run by itself, and a CI
  job makes one, so the first one of the second half is judged; beside it, the second half's median, for people who
  repeat.
- hyperfine's scripts/welch_ttest.py: Welch's t test, p < 0.05.
"""

import json
import os
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from analysis.compare.comparison import compare_groups
from analysis.compare.comparison_file import Status
from analysis.compare.gate import GateOutcome, Limit, judge
from analysis.compare.intervals import FEWEST_OF_TWO
from analysis.compare.replicates import CompareError, Group, RunRecord, find_mismatch, load_run
from formats.manifest import SCHEMA, Manifest

_RECORDED = Path(__file__).resolve().parents[2] / "docs/experiments.jsonl"
_SPLITS = 100
_SEED = 20_261_128
_PLANTED = 1.5
_ALLOWED = 1.1
_SIGNIFICANT = 0.05
# Above this share of its mean, the standard deviation of an arm's repetitions makes it a noisy one.
_NOISY_MIN = 0.05
_OF_A_RUN = ("client.latency_ms.mean", "client.latency_ms.p95")
_OF_A_RECORDING = re.compile(r"(?P<arm>arms\.\w+\.)?(?P<figure>client\.(latency|dial)_ms\.[\w.]+)(?P<unit> / 1000)?")


class _Arm(NamedTuple):
    """Repetitions of one arm; each run has a single figure."""

    figure: str
    runs: list[RunRecord]

    @property
    def noisy(self) -> bool:
        values = _values(self.runs, self.figure)
        return statistics.stdev(values) > _NOISY_MIN * statistics.mean(values)


def main() -> int:
    """Judge all splits; the exit code is 2 if no arm has enough repetitions."""
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else _SPLITS
    folder = os.environ.get("RUNS")
    found = _arms_of_runs(Path(folder)) if folder else _arms_of_recordings()
    arms = [arm for arm in found if len(arm.runs) >= 2 * FEWEST_OF_TWO]
    if not arms:
        sys.stderr.write(f"bench: no arm has {2 * FEWEST_OF_TWO} repetitions; RUNS=<folder> names a folder of runs\n")
        return 2
    sizes, noisy = [len(arm.runs) for arm in arms], sum(arm.noisy for arm in arms)
    counts = {name: {"called": 0, "called_noisy": 0, "found": 0} for name in _JUDGES}
    rng = np.random.default_rng(_SEED)
    for arm in arms:
        for _ in range(splits):
            _judge_split(arm, [arm.runs[index] for index in rng.permutation(len(arm.runs))], counts)
    line = {
        "bench": "noise", "source": "runs" if folder else "recordings", "arms": len(arms), "noisy": noisy,
        "repetitions": [min(sizes), max(sizes)], "splits": splits, "planted": _PLANTED,
        "judges": {
            name: {
                **counted,
                "called_share": round(counted["called"] / (splits * len(arms)), 4),
                "called_noisy_share": round(counted["called_noisy"] / (splits * noisy), 4) if noisy else 0,
                "found_share": round(counted["found"] / (splits * len(arms)), 4),
            }
            for name, counted in counts.items()
        },
    }  # fmt: skip
    sys.stdout.write(json.dumps(line) + "\n")
    return 0


def _judge_split(arm: _Arm, mixed: Sequence[RunRecord], counts: dict[str, dict[str, int]]) -> None:
    """Ask each judge of one split, and of the same with longer times in the second half."""
    half = len(mixed) // 2
    a, b = Group("A", tuple(mixed[:half])), Group("B", tuple(mixed[half:]))
    slower = Group("B", tuple(_scaled(run) for run in b.runs))
    for name, differs in _JUDGES.items():
        called = differs(a, b, arm.figure)
        counts[name]["called"] += called
        counts[name]["called_noisy"] += called and arm.noisy
        counts[name]["found"] += differs(a, slower, arm.figure)


# --- who judges -----------------------------------------------------------------------------------------------


def _is_changed(a: Group, b: Group, figure: str) -> bool:
    effects = (effect for pair in compare_groups(a, b).pairs for effect in pair.effects)
    return any(effect.figure == figure and effect.status is Status.CHANGED for effect in effects)


def _is_worse(a: Group, b: Group, figure: str) -> bool:
    return judge(a, b, figure, Limit(_ALLOWED - 1, relative=True)).outcome is GateOutcome.WORSE


def _breaks_threshold(a: Group, tried: Sequence[RunRecord], figure: str) -> bool:
    return statistics.median(_values(tried, figure)) >= _ALLOWED * statistics.median(_values(a.runs, figure))


def _is_significant(a: Group, b: Group, figure: str) -> bool:
    test = stats.ttest_ind(_values(a.runs, figure), _values(b.runs, figure), equal_var=False)
    return bool(test.pvalue < _SIGNIFICANT)


_JUDGES: dict[str, Callable[[Group, Group, str], bool]] = {
    "compare": _is_changed,
    "gate": _is_worse,
    "k6": lambda a, b, figure: _breaks_threshold(a, b.runs[:1], figure),
    "k6_repeated": lambda a, b, figure: _breaks_threshold(a, b.runs, figure),
    "hyperfine": _is_significant,
}


# --- the repetitions ------------------------------------------------------------------------------------------


def _arms_of_recordings() -> Iterator[_Arm]:
    """Return what docs/experiments.jsonl has of each figure: of one content of a scenario, on one machine."""
    arms: dict[tuple[Any, ...], _Arm] = {}
    for line in map(json.loads, _RECORDED.read_text(encoding="utf-8").splitlines()):
        for name, value in line["here"].items():
            match = _OF_A_RECORDING.fullmatch(name)
            if match is None or not value:
                continue
            key = (*(line[each] for each in ("scenario", "content", "kernel", "cpus")), name)
            arm = arms.setdefault(key, _Arm(match["figure"], []))
            # As a run's manifest has it, as far as a comparison reads it.
            manifest = Manifest.model_construct(
                contract=SCHEMA, status="complete", scenario=line["scenario"], run=line["run"]
            )
            arm.runs.append(RunRecord(Path(line["run"]), manifest, None, {arm.figure: value}, {}))
    yield from arms.values()


def _arms_of_runs(folder: Path) -> Iterator[_Arm]:
    """Return the runs of a folder that are evidence and repetitions of one another, by their figures."""
    cells: list[list[RunRecord]] = []
    for run in _usable(path.parent for path in sorted(folder.glob("*/*/manifest.json"))):
        cell = next((cell for cell in cells if _repeats(cell[0], run)), None)
        if cell is None:
            cells.append([run])
        else:
            cell.append(run)
    for cell in cells:
        for figure in _OF_A_RUN:
            yield _Arm(figure, [replace(run, figures={figure: run.figures[figure]}) for run in cell])


def _usable(folders: Iterable[Path]) -> Iterator[RunRecord]:
    for folder in folders:
        try:
            run = load_run(folder)
        except CompareError:
            continue  # it still runs, or has no verdict
        # `latest` is a second name of a run.
        if not folder.is_symlink() and not run.unusable and all(run.number(figure) for figure in _OF_A_RUN):
            yield run


def _repeats(run: RunRecord, other: RunRecord) -> bool:
    return run.scenario == other.scenario and find_mismatch(run, other) is None


def _values(runs: Iterable[RunRecord], figure: str) -> list[float]:
    return [float(value) for run in runs if (value := run.number(figure)) is not None]


def _scaled(run: RunRecord) -> RunRecord:
    """Return a run whose times are longer, as the same measurement of a slower program would be."""
    return replace(run, figures={figure: _PLANTED * float(run.number(figure) or 0) for figure in run.figures})


if __name__ == "__main__":
    sys.exit(main())
