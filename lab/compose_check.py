"""Has Compose check a scenario's merged files, without an engine starting anything."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lab import compose, subnets
from lab.effective import Effective
from lab.topology import topology_of


def check(effective: Effective) -> str:
    """Check one scenario and give its name.

    Raises:
        DockerFailed: Compose refuses the files; the message holds what it says.
    """
    topology = topology_of(effective)
    with tempfile.TemporaryDirectory(prefix="connlab-") as folder:
        file = Path(folder) / compose.FILE_NAME
        compose.write_run_file(
            compose.run_file(effective, topology, "check", Path(folder) / "raw", subnets.FIRST), file
        )
        compose.compose(file, "--profile", "*", "config", "--quiet")
    return effective.slug
