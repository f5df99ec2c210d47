"""Gathers, side by side, what the manifest says about repository, machine and images."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import metadata

from lab import parallel, paths
from lab.engine.compose.docker import docker
from lab.errors import LabError
from lab.run import machine
from lab.run.manifest import Git, Host, LabVersion

_GIT_TIMEOUT_S = 10


def git_state() -> Git:
    """Give the repository's commit and whether the work tree differs from it; nulls where git cannot tell."""
    answers = parallel.each(_git, [("rev-parse", "HEAD"), ("status", "--porcelain")])
    commit, status = answers.values()
    return Git(commit=commit and commit.strip(), dirty=None if status is None else bool(status.strip()))


def _git(arguments: tuple[str, ...]) -> str | None:
    command = ["git", "-C", str(paths.ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def lab_version() -> LabVersion:
    """Give the lab's version and Python's."""
    return LabVersion(version=metadata.version("connlab"), python=platform.python_version())


def host() -> Host:
    """Describe the machine; asks the engine for its versions.

    Raises:
        LabError: no engine answers.
    """
    versions = parallel.each(lambda ask: ask(), (docker_version, compose_version))
    return Host(
        kernel=machine.kernel(),
        distribution=machine.distribution(),
        cpus=machine.cpus(),
        memory_kb=machine.memory_kb("MemTotal"),
        docker=versions[docker_version],
        compose=versions[compose_version],
    )


def docker_version() -> str:
    """Give the engine's version."""
    return docker("version", "--format", "{{.Server.Version}}").strip()


def compose_version() -> str:
    """Give Compose's version."""
    return docker("compose", "version", "--short").strip()


def images(names: Iterable[str], build: Callable[[list[str]], None]) -> dict[str, str]:
    """Give the ids of the lab's images by their short names; those that are missing are built first."""
    wanted = list(dict.fromkeys(names))
    present = _present()
    missing = [name for name in wanted if name not in present]
    if missing:
        build(missing)
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
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr) as build:
                try:
                    build.wait()
                except BaseException:
                    build.terminate()  # and not killed, as `run` would: it ends what it has started
                    raise
        except OSError as error:
            raise LabError(f"{command[0]}: {error.strerror}") from None
        if build.returncode != 0:
            raise LabError(f"the images were not built: {', '.join(names)}", way_on="read what was printed above")
