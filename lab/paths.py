"""Where things lie: the lab's own, and the results of the one who runs it."""

import os
from pathlib import Path

from analysis.installation import CACHE, IS_INSTALLED, PACKAGES, ROOT

__all__ = ["CACHE", "IS_INSTALLED", "PACKAGES", "ROOT"]


def real(path: Path) -> Path:
    """Return the path behind all links; one that leads to itself stays, and cannot be opened."""
    return Path(os.path.realpath(path))


def inside(folder: Path, *parts: str) -> Path | None:
    """Return the path behind all links of what is named from a folder; None if that leads out of the folder."""
    path = real(folder.joinpath(*parts))
    return path if path.is_relative_to(real(folder)) else None


SCENARIOS = ROOT / "scenarios"
# An installed program leaves results where its user stands. The folder may be a link to one on a larger disk. That is
# the user's own; below it the lab follows none. The lab's own tests have it elsewhere.
RESULTS = real(Path(os.environ.get("CONNLAB_RESULTS") or ("results" if IS_INSTALLED else ROOT / "results")))
SCHEMAS = ROOT / "schemas"
COMPOSE_FILE = ROOT / "compose.yaml"
SETUP = ROOT / "setup"
CATALOGUE = SCENARIOS / "catalogue.yaml"
SOURCES = ROOT / "docs" / "sources.yaml"


def shown(path: Path) -> str:
    """Return the path as the user would type it: relative to the working directory where it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
