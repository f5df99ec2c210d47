"""How each fault is done for real, and how what it broke is mended before the next run."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lab import paths
from tests.faults.world import HANG_S, RESULTS, Engine, Run, containers, docker, pids, wait_until

_FULL = paths.RESULTS / "full"
_MOVED = RESULTS.with_name("moved")
_BACKEND, _CLIENT, _PROXY = "backend-1", "k6-1", "nginx"
_FOREIGN = "connlab-run-backend-1"
_FOREIGN_NETWORK = "connlab-run_lab"
# Room that a container is left with before its memory is filled.
_ROOM_BYTES = 8 << 20
_STILL_S = 3

Strike = Callable[[Run, Engine], None]


def signals(*numbers: signal.Signals) -> Strike:
    """Send the first one, and each other one once the lab has had time to take the one before."""

    def strike(run: Run, _: Engine) -> None:
        for number in numbers:
            run.signal(number)
            time.sleep(0.5)
            if run.process.poll() is not None:
                return

    return strike


def engine_ends(_: Run, engine: Engine) -> None:
    """End it in order."""
    engine.end()


def engine_restarts(_: Run, engine: Engine) -> None:
    """End it and start it again, as an upgrade does."""
    engine.end()
    engine.start()


def killed(service: str, program: str = "") -> Strike:
    """Kill the oldest process of a service, or of its program."""

    def strike(run: Run, _: Engine) -> None:
        wait_until(lambda: run.ended or (f"connlab-run-{service}" in containers() and pids(service, program)), service)
        os.kill(pids(service, program)[0], signal.SIGKILL)

    return strike


def hangs(service: str) -> Strike:
    """Stop every process of a service."""

    def strike(_: Run, __: Engine) -> None:
        for pid in pids(service):
            os.kill(pid, signal.SIGSTOP)

    return strike


def out_of_memory(service: str, program: str) -> Strike:
    """Take what a container has left of memory, until the kernel kills its program's youngest process."""

    def strike(_: Run, __: Engine) -> None:
        container, victim = f"connlab-run-{service}", pids(service, program)[-1]
        # The kernel's first choice; after it comes what fills the memory.
        Path(f"/proc/{victim}/oom_score_adj").write_text("1000")
        limit = str(_used(service) + _ROOM_BYTES)
        docker("update", "--memory", limit, "--memory-swap", limit, container)
        inside = Path(f"/proc/{victim}/status").read_text().split("NSpid:")[1].splitlines()[0].split()[-1]
        fill = "echo 999 >/proc/self/oom_score_adj; "
        fill += f"while [ -d /proc/{inside} ]; do head -c 262144 /dev/zero >>/tmp/full || break; done; rm -f /tmp/full"
        docker("exec", container, "sh", "-c", fill, check=False)
        docker("update", "--memory", "2g", "--memory-swap", "2g", container, check=False)
        docker("exec", container, "rm", "-f", "/tmp/full", check=False)  # noqa: S108 # in the container
        wait_until(lambda: not _lives(victim), f"the end of {program}")

    return strike


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def _used(service: str) -> int:
    """Give the bytes of memory that a service's container uses, by its control group."""
    (pid, *_) = pids(service)
    groups = dict(line.split(":", 2)[1:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    for file in (f"memory{groups.get('memory')}/memory.usage_in_bytes", f"{groups.get('')}/memory.current"):
        found = Path("/sys/fs/cgroup") / file.lstrip("/")
        if found.is_file():
            return int(found.read_text())
    raise RuntimeError(f"no control group says what {service} uses")


def disk_full(_: Run, __: Engine) -> None:
    """Write until there is no byte left."""
    with _FULL.open("wb", buffering=0) as stream:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    stream.write(bytes(size))
            except OSError:
                continue


def read_only(_: Run, __: Engine) -> None:
    """Let nothing be written there any more but what is open: a mount with open files cannot be made read-only."""
    for options in ("bind", "remount,bind,ro"):
        subprocess.run(["mount", "-o", options, str(paths.RESULTS), str(paths.RESULTS)], check=True)


def moved(_: Run, __: Engine) -> None:
    """Rename the folder of the scenario's runs."""
    RESULTS.rename(_MOVED)


def stands_still(run: Run, _: Engine) -> None:
    """Stop the lab and everything that it started for a while, as a machine that sleeps does."""
    still = [pid for name in containers() for pid in pids(name.removeprefix("connlab-run-"))]
    for pid in (run.process.pid, *still):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(_STILL_S)
    for pid in (*still, run.process.pid):
        os.kill(pid, signal.SIGCONT)


def second_run(run: Run, _: Engine) -> None:
    """Start another run, which must not disturb this one."""
    second = Run(run.door.parent.with_name("second"))
    code = second.process.wait(HANG_S)
    run.second = (code, second.said)


def name_taken(_: Run, __: Engine) -> None:
    """Make a container of somebody else's, of the backend's name."""
    docker("create", "--name", _FOREIGN, "connlab/base", "true")


def network_taken(_: Run, __: Engine) -> None:
    """Make a network of somebody else's, of the name of the run's."""
    docker("network", "create", _FOREIGN_NETWORK)


STRIKES: dict[str, Strike] = {
    "INT": signals(signal.SIGINT),
    "INT twice": signals(signal.SIGINT, signal.SIGINT),
    "TERM": signals(signal.SIGTERM),
    "TERM twice": signals(signal.SIGTERM, signal.SIGTERM),
    "HUP": signals(signal.SIGHUP),
    "HUP twice": signals(signal.SIGHUP, signal.SIGHUP),
    "KILL": signals(signal.SIGKILL),
    "engine ends": engine_ends,
    "engine restarts": engine_restarts,
    "server ends": killed(_BACKEND),
    "server out of memory": out_of_memory(_BACKEND, "java"),
    "server hangs": hangs(_BACKEND),
    "proxy ends": killed(_PROXY),
    "proxy worker out of memory": out_of_memory(_PROXY, "nginx"),
    "proxy hangs": hangs(_PROXY),
    "collector ends": killed(f"collector-{_BACKEND}"),
    "capture ends": killed(f"collector-{_PROXY}", "tcpdump"),
    "k6 ends": killed(_CLIENT),
    "k6 hangs": hangs(_CLIENT),
    "disk full": disk_full,
    "results read-only": read_only,
    "results moved": moved,
    "machine stands still": stands_still,
    "second run": second_run,
    "name taken": name_taken,
    "network taken": network_taken,
}
# What must come before the lab goes on from its point; else it goes on first, and containers stand.
HELD = {"disk full", "results read-only", "name taken", "network taken", "engine ends"}


def mend(engine: Engine) -> None:
    """Take back what a fault did to the machine; what it did to the lab stays."""
    if os.statvfs(paths.RESULTS).f_flag & os.ST_RDONLY:
        subprocess.run(["umount", "--lazy", str(paths.RESULTS)], check=True)
    _FULL.unlink(missing_ok=True)
    if _MOVED.is_dir():
        RESULTS.mkdir(exist_ok=True)
        for folder in _MOVED.iterdir():
            if not folder.is_symlink():
                folder.rename(RESULTS / folder.name)
            else:
                folder.unlink()
        _MOVED.rmdir()
    engine.start()


def foreign() -> list[str]:
    """Remove what is somebody else's, and give the names: the lab must have left them."""
    found = [
        name
        for name in containers()
        if docker("inspect", "--format", "{{.Config.Image}}", name).strip() == "connlab/base"
    ]
    labels = docker(
        "network", "ls", "--filter", f"name=^{_FOREIGN_NETWORK}$", "--format", "{{.Labels}}|{{.Name}}"
    ).split()
    networks = [line.removeprefix("|") for line in labels if line.startswith("|")]
    for name in found:
        docker("rm", name)
    for name in networks:
        docker("network", "rm", name)
    return found + networks
