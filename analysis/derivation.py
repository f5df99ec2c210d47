"""A run's folder is judged, and derived/ written into it."""

from collections.abc import Callable
from pathlib import Path

from analysis.evidence import flows, size
from analysis.evidence.flows import FlowsError
from analysis.evidence.rawrun import RawRun
from analysis.evidence.size import TooLargeError
from analysis.figures import Run
from analysis.output import make_folder
from analysis.reports.stories import ladders
from analysis.steps import Steps
from analysis.verdicts import clocks_file, connections_file, figures_file, parquet_files
from analysis.verdicts.verdict_file import JudgedRun, Verdict
from formats import manifest
from formats.manifest import ManifestError

__all__ = ["FlowsError", "JudgedRun", "ManifestError", "TooLargeError", "Verdict", "analyse", "judge"]


def judge(run_dir: Path) -> JudgedRun:
    """Judge the run in a folder, and write nothing; each part is worked out when it is first asked for.

    Raises:
        ManifestError: the folder is not a run's, or its manifest cannot be read.
        FlowsError: there are captures and nothing that reads them.
        TooLargeError: the machine has not the memory or the disk for it.
    """
    raw = RawRun(run_dir, manifest.load_manifest(run_dir))
    size.require(raw.manifest, raw.places)
    if any(capture.packets for capture in raw.captures.values()):
        flows.require()
    return JudgedRun(Run(raw))


def analyse(run_dir: Path, steps: Steps | None = None) -> Verdict:
    """Judge a run and write derived/ into its folder: verdict, ledger, figures, and the records behind them.

    `steps` gets the steps of the analysis, and how long each took.

    Raises:
        ManifestError: the folder is not a run's, or its manifest cannot be read.
        FlowsError: there are captures and nothing that reads them; a poorer verdict would go over the one before.
        TooLargeError: the machine has not the memory or the disk for it.
        OSError: derived/ cannot be written.
    """
    steps = steps or Steps()
    with steps.step("samples"):
        found = judge(run_dir)
    for name, work_out in _PARTS.items():
        with steps.step(name):
            work_out(found)
    folder = run_dir / "derived"
    with steps.step("tables"):
        make_folder(folder)
        found.account.write(run_dir)
        parquet_files.write(found.run, folder)
        clocks_file.write(found.run, run_dir)
    with steps.step("readings"):
        parquet_files.write_readings(found.run, run_dir)
    with steps.step("ladders"):
        ladders.build_ladders(found.run).write(run_dir)
    with steps.step("figures"):
        if (observed := found.run.raw.manifest.observed) is not None:
            connections_file.write(found.run, observed)
        figures_file.build_figures_file(found.run).write(run_dir)
    # The verdict comes last: where it stands, so do all other derived files.
    found.verdict.write(run_dir)
    return found.verdict


# What is worked out once, and then there for all that rests on it.
_PARTS: dict[str, Callable[[JudgedRun], object]] = {
    "packets": lambda found: found.run.raw.reductions,
    "health": lambda found: found.run.health,
    "joins": lambda found: found.run.joined,
    "ledger": lambda found: found.account,
    "predictions": lambda found: found.verdict,
}
