"""From a run's folder to its verdict: reads manifest.json and raw/, writes derived/, and needs nothing else.

It never reaches the lab or Docker, so a run copied from another machine is analysed as well. Missing or damaged
evidence never raises: it makes what rests on it unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis import manifest, verdict
from analysis.figures import Run
from analysis.manifest import ManifestError
from analysis.rawrun import RawRun
from analysis.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ManifestError", "Verdict", "analyse"]


def analyse(run_dir: Path) -> Verdict:
    """Judge a run and write derived/verdict.json into its folder.

    Args:
        run_dir: the folder with manifest.json and raw/.

    Returns:
        The verdict, as written.

    Raises:
        ManifestError: the folder is not a run's, or its manifest cannot be read.
        OSError: the verdict cannot be written.
    """
    found = verdict.of_run(Run(RawRun(run_dir, manifest.read(run_dir))))
    path = run_dir / verdict.FILE
    path.parent.mkdir(exist_ok=True)
    # A reader never sees half a verdict, and an older one stays until the new one is whole.
    partial = path.with_suffix(".json.partial")
    partial.write_text(found.to_json(), encoding="utf-8")
    partial.replace(path)
    return found
