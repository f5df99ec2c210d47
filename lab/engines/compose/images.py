"""The lab's images in Docker's store: their ids, and how those that are missing come to be there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from lab import paths
from lab.engines.compose.docker import docker
from lab.errors import LabError


def image_ids(names: Iterable[str]) -> dict[str, str]:
    """Give the ids of the lab's images by their short names; those that are missing are built first."""
    wanted = list(dict.fromkeys(names))
    present = _present()
    missing = [name for name in wanted if name not in present]
    if missing:
        build_images(missing)
        present = _present()
    lost = [name for name in wanted if name not in present]
    if lost:
        raise LabError(f"there is no image connlab/{lost[0]}", way_on="build the images: setup/images.sh (make setup)")
    return {name: present[name] for name in wanted}


def _present() -> dict[str, str]:
    listed = docker(
        "image", "ls", "--no-trunc", "--filter", "reference=connlab/*:latest", "--format", "{{.Repository}} {{.ID}}"
    )
    return {repository.removeprefix("connlab/"): image for repository, image in map(str.split, listed.splitlines())}


def build_images(names: list[str]) -> None:
    """Build images as the set-up does; what it says goes to this program's stderr.

    Raises:
        LabError: the build failed.
    """
    for script, *arguments in (["base-image.sh"], ["images.sh", *names]):
        command = [str(paths.SETUP / script), *arguments]
        try:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr) as process:
                try:
                    process.wait()
                except BaseException:
                    process.terminate()  # and not killed, as `run` would: it ends what it has started
                    raise
        except OSError as error:
            raise LabError(f"{command[0]}: {error.strerror}") from None
        if process.returncode != 0:
            raise LabError(f"the images were not built: {', '.join(names)}", way_on="read what was printed above")
