"""The `docker` command line: what its errors mean, and containers that are no part of a run."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import IO

from lab.engines.container_settings import ONE_OFF_LIMITS, ROLE_UID, supplementary_groups
from lab.engines.programs import CommandLine, ProgramClient, ProgramFailed, StreamingCommand
from lab.errors import ConfigurationRefused, LabError
from lab.scenarios import certificates
from lab.scenarios.own_configuration import MOUNTED, OwnConfiguration

_DOCTOR = "'connlab doctor' (make doctor) says what this machine lacks"


class DockerFailed(ProgramFailed):
    """A docker command ended with an error of its own."""


class NoEngine(DockerFailed):
    """The command did not come as far as an engine."""


class EngineForbidden(NoEngine):
    """An engine runs, and this user may not use it."""


def _failure(command: Sequence[str], exit_code: int, stderr: str) -> DockerFailed:
    if "Cannot connect to the Docker daemon" in stderr:
        what = stderr.strip().splitlines()[-1]
        return NoEngine(command, exit_code, stderr, what, f"start the Docker Engine; {_DOCTOR}")
    if "permission denied while trying to connect to the Docker" in stderr:
        what = "this user may not use the Docker Engine: permission denied at its socket"
        hint = "do it as root, or add the user to the group docker (usermod --append --groups docker <user>)"
        return EngineForbidden(command, exit_code, stderr, what, hint)
    if "No such image" in stderr or "pull access denied" in stderr:
        return DockerFailed(command, exit_code, stderr, hint="build the images: connlab setup (make setup)")
    full = "no space left on device" in stderr
    return DockerFailed(command, exit_code, stderr, hint="free space on the disk" if full else None)


def docker(*arguments: str, timeout_s: float = 60, unless: Callable[[], object] | None = None) -> str:
    """Run `docker …` and return what it printed; `unless` tells when nobody need wait for it any more.

    Raises:
        NoEngine: there is no engine, or none for this user.
        DockerFailed: it ended with an error, or nobody waited for it.
        LabError: there is no docker, or it did not answer in time.
    """
    ended = client.run(arguments, timeout_s=timeout_s, unless=unless)
    if ended.exit_code != 0:
        raise _failure(["docker", *arguments], ended.exit_code, ended.stderr)
    return ended.stdout


def save(into: IO[bytes], *arguments: str, timeout_s: float) -> int:
    """Run `docker …`, write all that it says into a file, and return its exit code; raises LabError as `docker`."""
    return client.run(arguments, timeout_s=timeout_s, into=into).exit_code


def follow(*arguments: str) -> StreamingCommand:
    """Start a `docker …` that prints until it is ended; raises LabError where there is no docker."""
    return client.follow(arguments)


client: ProgramClient = CommandLine("docker", f"see whether the Docker Engine is stuck; {_DOCTOR}", _DOCTOR)


def run_options(*capabilities: str) -> list[str]:
    """Return the options of `docker run` for one of the lab's images, with these capabilities and no others."""
    added = [part for one in capabilities for part in ("--cap-add", one)]
    groups = [part for group in supplementary_groups() for part in ("--group-add", group)]
    files = ["--read-only", "--tmpfs", "/tmp:mode=1777"]  # noqa: S108 # in the container
    kept = ["--cap-drop", "ALL", *added, "--security-opt", "no-new-privileges:true", *groups]
    bounded = ["--memory", f"{ONE_OFF_LIMITS.memory_mb}m", "--pids-limit", str(ONE_OFF_LIMITS.processes)]
    return ["--pull", "never", *files, *bounded, *kept]


def mount_option(source: Path, target: str | Path, *more: str) -> str:
    """Return a folder or a file of the host as `docker run --mount` takes it, with more fields: a line of CSV."""
    fields = ("type=bind", f"source={source}", f"target={target}", *more)
    return ",".join(f'"{one.replace(chr(34), chr(34) * 2)}"' if re.search('[,"\n]', one) else one for one in fields)


def try_folder(
    role: str,
    command: str,
    mounted: tuple[Path, str | Path],
    settings: Mapping[str, str],
    *more: str,
    refused: type[LabError],
    own_image: str | None = None,
) -> str | None:
    """Return what a role's image says of a folder that it reads, without a network.

    Returns:
        What it says; None if there is no such image, or one of another version of the lab that cannot do it.

    Raises:
        LabError: `refused`, with the program's message; or there is no engine, or none for this user.
    """
    folder = ("--mount", mount_option(*mounted, "readonly"))
    environment = [option for name, value in settings.items() for option in ("--env", f"{name}={value}")]
    image = own_image or f"connlab/{role}"
    try:
        return docker(
            *("run", "--rm", "--network", "none", *run_options(), *more, *folder, *environment), image, command
        )
    except NoEngine:
        raise
    except DockerFailed as failed:
        if "No such image" in failed.stderr and own_image:
            raise refused(f"there is no image {own_image} here") from None
        if "No such image" in failed.stderr:
            return None
        # The set-up builds an image of another version anew.
        label = '{{index .Config.Labels "org.opencontainers.image.version"}}'
        version = docker("image", "inspect", "--format", label, image).strip()
        if version not in ("", metadata.version("connlab")):
            return None
        raise refused(failed.stderr) from None


def try_configuration(own: OwnConfiguration) -> str | None:
    """Return a user's own configuration as its role's program read it; None if there is no image of the role.

    Raises:
        ConfigurationRefused: the program does not take it.
        LabError: there is no engine, or none for this user.
    """
    folders = [
        option
        for folder in ("/raw", *own.declared.writable)
        for option in ("--tmpfs", f"{folder}:mode=1777,uid={ROLE_UID}")
    ]
    # A test asks for the addresses of these names, and for nothing that stands there.
    hosts = [option for name in own.hosts for option in ("--add-host", f"{name}:127.0.0.1")]
    mounted, settings = (own.folder, MOUNTED), certificates.settings_of_trial(own)
    image = own.image.made if own.image else None
    options = (*folders, *hosts)
    return try_folder(own.role, "test", mounted, settings, *options, refused=ConfigurationRefused, own_image=image)
