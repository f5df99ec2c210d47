"""Which parts have passed their check, and in which state: one that has not changed since needs no second check."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from setup.loop.parts import Part

_ALL_READ = ("setup", "schemas")
"""What every check reads: the scripts that run it, this package, and what setup/check.sh gives to every room."""


class Stamps:
    """The state in which each part of a work tree last passed its check, a file for each part."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / ".cache" / "checked"

    def states(self, parts: Iterable[Part]) -> Mapping[str, str]:
        """Part → digest of all that its check reads: its files, command, tools and Python, and the kernel.

        A part is missing if its image does, and all are where git knows no work tree.
        """
        files, images = _files(self._root), _images()
        machine = [platform.release(), sys.version, os.environ.get("GOPROXY", "")]
        states = {}
        for part in parts:
            image = images.get(part.image) if part.image else ""
            if files and image is not None:
                read = {name: files.get(name) or _digest(self._root / name) for name in _below(part.reads, files)}
                states[part.name] = hashlib.sha256(json.dumps([part.check, image, machine, read]).encode()).hexdigest()
        return states

    def has_passed(self, part: Part, state: str | None) -> bool:
        """Whether the check of this part has passed in this state."""
        try:
            return self._file(part).read_text() == state
        except FileNotFoundError:
            return False

    def keep(self, part: Part, state: str) -> None:
        """Keep that the check of this part has passed in this state."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file(part).write_text(state)

    def _file(self, part: Part) -> Path:
        return self._folder / part.name


def _files(root: Path) -> Mapping[str, str]:
    """Path → digest, of the files that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return {name: _digest(root / name) for name in listed.stdout.split("\0")[:-1]}


def _images() -> Mapping[str, str]:
    """The lab's images: name → id."""
    command = ["docker", "images", "--no-trunc", "--format", "{{.Repository}} {{.ID}}", "connlab/*:latest"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return dict(line.removeprefix("connlab/").split() for line in listed.stdout.splitlines())


def _below(reads: Iterable[str], files: Iterable[str]) -> list[str]:
    """The files below the named folders, and what is named itself, which git may ignore; `.` is every folder."""
    named = {*_ALL_READ, *reads}
    return sorted(named.union(name for name in files if any(str(folder) in named for folder in Path(name).parents)))


def _digest(file: Path) -> str:
    """Kind, mode and content."""
    try:
        content = bytes(file.readlink()) if file.is_symlink() else file.read_bytes()
        return f"{file.lstat().st_mode:o} {hashlib.sha256(content).hexdigest()}"
    except (FileNotFoundError, IsADirectoryError):
        return "none"
