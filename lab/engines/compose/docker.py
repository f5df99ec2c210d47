"""The one door to the `docker` command line, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO

from lab.engines.programs import CommandLine, Following, ProgramClient, ProgramFailed
from lab.errors import LabError

_DOCTOR = "'connlab doctor' (make doctor) says what this machine lacks"


class DockerFailed(ProgramFailed):
    """A docker command ended with an error of its own."""

    def __init__(self, command: Sequence[str], exit_code: int, stderr: str) -> None:
        super().__init__(command, exit_code, stderr, _way_on(stderr))


class NoEngine(DockerFailed):
    """The command did not come as far as an engine."""

    def __init__(self, command: Sequence[str], exit_code: int, stderr: str) -> None:
        super().__init__(command, exit_code, stderr)
        LabError.__init__(self, self.reason, way_on=f"start the Docker Engine; {_DOCTOR}")


class EngineForbidden(NoEngine):
    """An engine runs, and this user may not use it."""

    def __init__(self, command: Sequence[str], exit_code: int, stderr: str) -> None:
        super().__init__(command, exit_code, stderr)
        what = "this user may not use the Docker Engine: permission denied at its socket"
        way_on = "do it as root, or add the user to the group docker (usermod --append --groups docker <user>)"
        LabError.__init__(self, what, way_on=way_on)


_UNREACHED = {
    "Cannot connect to the Docker daemon": NoEngine,
    "permission denied while trying to connect to the Docker": EngineForbidden,
}


def _way_on(stderr: str) -> str | None:
    if "No such image" in stderr or "pull access denied" in stderr:
        return "build the images: setup/images.sh (make setup)"
    if "no space left on device" in stderr:
        return "free space on the disk"
    return None


def docker(*arguments: str, timeout_s: float = 60, unless: Callable[[], object] | None = None) -> str:
    """Run `docker …` and give what it printed; `unless` says when nobody need wait for it any more.

    Raises:
        NoEngine: there is no engine, or none for this user.
        DockerFailed: it ended with an error, or nobody waited for it.
        LabError: there is no docker, or it did not answer in time.
    """
    ended = client.run(arguments, timeout_s=timeout_s, unless=unless)
    if ended.exit_code != 0:
        failed = next((what for said, what in _UNREACHED.items() if said in ended.stderr), DockerFailed)
        raise failed(["docker", *arguments], ended.exit_code, ended.stderr)
    return ended.stdout


def save(into: IO[bytes], *arguments: str, timeout_s: float) -> int:
    """Run `docker …`, write all that it says into a file, and give its exit code; raises LabError as `docker`."""
    return client.run(arguments, timeout_s=timeout_s, into=into).exit_code


def follow(*arguments: str) -> Following:
    """Start a `docker …` that goes on telling; raises LabError where there is no docker."""
    return client.follow(arguments)


client: ProgramClient = CommandLine("docker", f"see whether the Docker Engine is stuck; {_DOCTOR}", _DOCTOR)
