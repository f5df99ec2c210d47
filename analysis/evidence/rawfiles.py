"""Where a run's raw files lie.

A run's raw files have several writers, and one of them must not reach what another recorded. So each instance has a
folder for each writer: raw/<instance>/collector/ and raw/<instance>/role/.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from formats.role import CONTAINER_LOG

FOLDER = "raw"
COLLECTOR = "collector"
ROLE = "role"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the raw files of the run in a folder lie."""

    run_dir: Path

    def collector(self, instance: str, file: str = "") -> Path:
        """Return the folder of what an instance's collector recorded, or a file in it."""
        return self._folder(instance, COLLECTOR) / file

    def role(self, instance: str, file: str = "") -> Path:
        """Return the folder of what the instance's own program wrote, or a file in it."""
        return self._folder(instance, ROLE) / file

    def log(self, instance: str, file: str) -> Path:
        """Return a log of an instance's program: a file that it wrote, or what it said on its standard output."""
        return self._folder(instance, file) if file == CONTAINER_LOG else self.role(instance, file)

    def shown(self, path: Path) -> str:
        """Return a raw file's path below the run's folder, as messages and documents spell it."""
        return path.relative_to(self.run_dir).as_posix()

    def _folder(self, instance: str, writer: str) -> Path:
        return self.run_dir / FOLDER / instance / writer


def descriptor_path(file: BinaryIO) -> str:
    """Return the path by which a program that reads by path reads this open file, whatever has its name by then."""
    return f"/dev/fd/{file.fileno()}"
