"""Where the lab's own files lie: in a checkout beside the packages, in an installed program in `lab/shipped/`.

`pyproject.toml` says what a wheel ships.
"""

import os
from pathlib import Path

# The folder of the packages `lab`, `analysis` and `formats`.
PACKAGES = Path(__file__).resolve().parent.parent
_SHIPPED = PACKAGES / "lab" / "shipped"
IS_INSTALLED = _SHIPPED.is_dir()
# Roles, scenarios, documents and set-up, as they lie in the repository. An installed program never writes here.
ROOT = _SHIPPED if IS_INSTALLED else PACKAGES


def _cache() -> Path:
    if given := os.environ.get("CONNLAB_CACHE"):
        return Path(given).absolute()
    if not IS_INSTALLED:
        return ROOT / ".cache"
    # A relative path is invalid there, as the XDG Base Directory Specification has it.
    users = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (users if users.is_absolute() else Path.home() / ".cache") / "connlab"


# What can be made again.
CACHE = _cache()
