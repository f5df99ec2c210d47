"""Runs the scripts of the set-up; they say on standard error what they do."""

import os
import subprocess
import sys
from functools import cache

from lab import paths
from lab.errors import LabError


def run(script: str, *arguments: str) -> int:
    """Run a script of the set-up to its end, and return its exit code.

    Raises:
        LabError: it cannot be started.
    """
    command = [str(paths.SETUP / script), *arguments]
    environment = os.environ | {"CONNLAB_CACHE": str(paths.CACHE)}
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment) as process:
            try:
                return process.wait()
            except BaseException:
                process.terminate()  # and not killed, as `subprocess.run` would: it ends what it has started
                raise
    except OSError as error:
        raise LabError(f"{command[0]}: {error.strerror}") from None


@cache
def image_tags() -> dict[str, str]:
    """Return the tag under which `make push-images` pushes each image of a run.

    Raises:
        LabError: the sources of the images cannot be read.
    """
    command = [str(paths.SETUP / "images.sh"), "tags"]
    try:
        told = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LabError(f"the images' sources cannot be read: {error}") from None
    return dict(line.split() for line in told.stdout.splitlines())


def make_ready() -> None:
    """See to it that engine and images stand; quick and silent where they do.

    Raises:
        LabError: they do not, and the script has said why.
    """
    if run("ready.sh", "run"):
        raise LabError("a run's engine and images are not ready", hint="the lines above say what to do")
