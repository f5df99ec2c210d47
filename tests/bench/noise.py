"""Counts how often each way to compare calls noise a difference, and how often it finds one. One JSON line.

    RUNS=<folder of runs> .venv/bin/python -m tests.bench.noise [SPLITS]

The runs of one arm, with the same settings on the same machine, are dealt out at random to two halves, many times:
whoever then sees a difference is wrong. For the other question, all times of the second half count for half as much
again. Who judges:

- `connlab compare`: the figure is `changed`.
- `connlab gate` with WORSE_THAN=10%: the second half is `worse`. It says so of seven runs or more.
- A threshold of k6, as it stands in a script: p(95) below 1.1 times that of the first half (its median). k6 judges each
  run by itself, and a CI job makes one, so the first run of the second half is judged; beside it, the second half's
  median, for people who repeat.
- hyperfine's scripts/welch_ttest.py: Welch's t test on the means of the runs, p < 0.05.
"""

import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.compare.comparison import compare_groups
from analysis.compare.comparison_file import Status
from analysis.compare.gate import GateOutcome, Limit, judge
from analysis.compare.intervals import FEWEST_OF_TWO
from analysis.compare.replicates import CompareError, Group, RunRecord, find_mismatch, load_run

_SPLITS = 100
_SEED = 20_261_128
_P95, _MEAN = "client.latency_ms.p95", "client.latency_ms.mean"
_PLANTED = 1.5
_ALLOWED = 1.1
_SIGNIFICANT = 0.05


class _Judge(NamedTuple):
    """Who says whether the runs of b differ from those of a, by one figure."""

    name: str
    figure: str
    differs: Callable[[Group, Group], bool]


def _changed(figure: str) -> Callable[[Group, Group], bool]:
    return lambda a, b: any(
        effect.figure == figure and effect.status is Status.CHANGED
        for pair in compare_groups(a, b).pairs
        for effect in pair.effects
    )


def _worse(a: Group, b: Group) -> bool:
    return judge(a, b, _P95, Limit(_ALLOWED - 1, relative=True)).outcome is GateOutcome.WORSE


def _values(group: Group, figure: str) -> list[float]:
    return [float(value) for run in group.used if (value := run.number(figure)) is not None]


def _beyond_threshold(of_b: Callable[[Sequence[float]], float]) -> Callable[[Group, Group], bool]:
    return lambda a, b: of_b(_values(b, _P95)) >= _ALLOWED * statistics.median(_values(a, _P95))


def _significant(a: Group, b: Group) -> bool:
    return bool(stats.ttest_ind(_values(a, _MEAN), _values(b, _MEAN), equal_var=False).pvalue < _SIGNIFICANT)


_JUDGES: Mapping[str, _Judge] = {
    "compare_p95": _Judge("`connlab compare`", _P95, _changed(_P95)),
    "compare_mean": _Judge("`connlab compare`", _MEAN, _changed(_MEAN)),
    "gate": _Judge("`connlab gate`, WORSE_THAN=10%", _P95, _worse),
    "k6_one_run": _Judge("k6's threshold, one run", _P95, _beyond_threshold(lambda values: values[0])),
    "k6_median": _Judge("k6's threshold, the median of a half", _P95, _beyond_threshold(statistics.median)),
    "welch": _Judge("hyperfine's Welch t test", _MEAN, _significant),
}


def main() -> int:
    """Judge all splits; the exit code is 2 if no arm has enough runs."""
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else _SPLITS
    arms = _arms(Path(os.environ.get("RUNS", "results")))
    if not arms:
        sys.stderr.write(f"bench: no arm has {2 * FEWEST_OF_TWO} runs; RUNS=<folder> names a folder that has them\n")
        return 2
    rng = np.random.default_rng(_SEED)
    called, found = dict.fromkeys(_JUDGES, 0), dict.fromkeys(_JUDGES, 0)
    for runs in arms:
        for _ in range(splits):
            mixed = [runs[index] for index in rng.permutation(len(runs))]
            a, b = Group("A", tuple(mixed[: len(runs) // 2])), Group("B", tuple(mixed[len(runs) // 2 :]))
            slower = Group("B", tuple(_scaled(run) for run in b.runs))
            for key, judging in _JUDGES.items():
                called[key] += judging.differs(a, b)
                found[key] += judging.differs(a, slower)
        sys.stdout.write(f"{runs[0].scenario}, {runs[0].manifest['cell']}: {len(runs)} runs\n")
        sys.stdout.flush()
    asked = splits * len(arms)
    line = {
        "bench": "noise", "arms": len(arms), "runs": sum(map(len, arms)),
        "runs_of_an_arm": [min(map(len, arms)), max(map(len, arms))], "splits": splits, "asked": asked,
        "planted": _PLANTED, "judges": {
            key: {
                "judge": each.name, "figure": each.figure, "called": called[key], "found": found[key],
                "called_share": round(called[key] / asked, 4), "found_share": round(found[key] / asked, 4),
            }
            for key, each in _JUDGES.items()
        },
    }  # fmt: skip
    sys.stdout.write(json.dumps(line) + "\n")
    return 0


def _arms(folder: Path) -> list[list[RunRecord]]:
    """Return the arms that have enough runs for two halves: usable runs, repetitions of one another, with times."""
    arms: list[list[RunRecord]] = []
    for manifest in sorted(folder.glob("*/*/manifest.json")):
        try:
            run = load_run(manifest.parent)
        except CompareError:
            # It still runs, broke off, or is a copy of a series' folder: no evidence.
            continue
        if manifest.parent.is_symlink() or run.unusable or not all(run.number(figure) for figure in (_P95, _MEAN)):
            continue
        arm = next((arm for arm in arms if _repeats(arm[0], run)), None)
        if arm is None:
            arms.append([_bare(run)])
        else:
            arm.append(_bare(run))
    return [arm for arm in arms if len(arm) >= 2 * FEWEST_OF_TWO]


def _repeats(run: RunRecord, other: RunRecord) -> bool:
    return run.scenario == other.scenario and find_mismatch(run, other) is None


def _bare(run: RunRecord) -> RunRecord:
    """Return a run with no other figures than those that somebody judges: each split compares all that there are."""
    return replace(run, figures={figure: run.figures[figure] for figure in (_P95, _MEAN)})


def _scaled(run: RunRecord) -> RunRecord:
    """Return a run whose times are longer, as the same measurement of a slower program would be."""
    return replace(run, figures={figure: _PLANTED * float(run.number(figure) or 0) for figure in run.figures})


if __name__ == "__main__":
    sys.exit(main())
