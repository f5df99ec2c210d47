"""What a user takes where there is no instrument: loop.sh, in the network namespace of one of a run's instances."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.engines.compose.containers import RUN_LABEL, container_name
from lab.engines.compose.docker import docker
from lab.scenarios.topology import collector_of

_SCRIPT = Path(__file__).with_name("loop.sh")
_NAME = container_name("loop")
# It has Debian's ss, nstat and tcpdump.
_IMAGE = "connlab/collector"
_LISTENS_WITHIN_S = 30


@dataclass
class Loop:
    """The loop.

    Attributes:
        rounds_per_second: how often it looked, once it has ended.
    """

    rounds_per_second: float = 0


@contextmanager
def loop_beside(instance: str) -> Iterator[Loop]:
    """Let the loop run beside an instance whose capture listens, and remove it afterwards."""
    docker(
        *("run", "--detach", "--init", "--name", _NAME, "--label", f"{RUN_LABEL}=bench"),
        *("--network", f"container:{container_name(collector_of(instance))}"),
        *("--entrypoint", "bash", _IMAGE, "-c", _SCRIPT.read_text(encoding="utf-8")),
    )
    loop = Loop()
    try:
        _await_capture()
        began_s = time.monotonic()
        before = _rounds()
        yield loop
        loop.rounds_per_second = (_rounds() - before) / (time.monotonic() - began_s)
    finally:
        docker("rm", "--force", _NAME)


def _rounds() -> int:
    return int(docker("exec", _NAME, "grep", "--count", "^round ", "/tmp/rounds.txt"))  # noqa: S108  the container's


def _await_capture() -> None:
    end = time.monotonic() + _LISTENS_WITHIN_S
    while "listening on" not in docker("logs", _NAME):
        if time.monotonic() > end:
            raise TimeoutError(f"tcpdump did not listen within {_LISTENS_WITHIN_S} s: {docker('logs', _NAME)}")
        time.sleep(0.1)
