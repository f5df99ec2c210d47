"""The machine of its own that setup/faults.sh makes, and one run of the lab in it.

Everything here is the real thing: the engine, the containers, the kernel's signals and the file systems.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lab import paths

HERE = Path(__file__).parent
SCENARIO = HERE / "scenario"
RESULTS = paths.RESULTS / SCENARIO.name
# So long only a hang lasts, on a busy machine too.
HANG_S = 900
_POLL_S = 0.05
_CONNLAB = [sys.executable, "-c", "from lab.cli import main; main()"]
# The command that the lab is about to carry out at a point, as `door` sees it.
_DOORS = {
    "before": "docker version *",
    "start": "docker compose * up *",
    "ending": "docker stop *",
    "analysis": "flows *",
}
_HEEDED = "INT,TERM,HUP"


def wait_until(condition: Callable[[], object], what: str, within_s: float = HANG_S) -> None:
    """Poll until `condition` holds."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {within_s:g} s")
        time.sleep(_POLL_S)


def docker(*arguments: str, check: bool = True) -> str:
    """Run `docker …` and give what it printed."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=HANG_S)
    if check and done.returncode != 0:
        raise RuntimeError(f"docker {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class Engine:
    """The Docker Engine of this machine alone."""

    def __init__(self) -> None:
        self._command = shlex.split(os.environ["CONNLAB_FAULTS_ENGINE"])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, if it does not run, and wait until it answers."""
        if self._process is None or self._process.poll() is not None:
            with Path("/run/dockerd.log").open("ab") as log:
                self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        wait_until(lambda: docker("version", "--format", "{{.Server.Version}}", check=False).strip(), "the engine")

    def end(self) -> None:
        """End it in order, as `systemctl stop docker` does, and all containers with it."""
        assert self._process
        self._process.terminate()
        self._process.wait(HANG_S)


def containers() -> list[str]:
    """Name all containers, running or not."""
    return docker("ps", "--all", "--format", "{{.Names}}").split()


def processes() -> dict[int, str]:
    """Give the command lines of all processes here, by their ids; the kernel has shown none of another machine."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
    return found


def pids(service: str, program: str = "") -> list[int]:
    """Give the processes of a service's container, oldest first; those of one program, if it is named."""
    container = docker("inspect", "--format", "{{.Id}}", f"connlab-run-{service}").strip()
    found = []
    for pid in sorted(processes()):
        try:
            ours = container in Path(f"/proc/{pid}/cgroup").read_text()
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        if ours and (not program or name == program):
            found.append(pid)
    return found


class Run:
    """One `connlab run`, which stops at a point until it may go on."""

    def __init__(self, folder: Path, phase: str = "") -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.phase = phase
        # What a second run beside this one came to: its exit code, and what it said.
        self.second: tuple[int, str] | None = None
        self.door = folder / "door"
        (self.door / "behind").mkdir(parents=True)
        for name, program in (("docker", shutil.which("docker")), ("flows", paths.ROOT / ".cache/bin/flows")):
            shutil.copy(HERE / "door", folder / name)
            (self.door / "behind" / name).symlink_to(str(program))
        self._said = folder / "said"
        self._known = set(folders())
        environment = {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "CONNLAB_FLOWS": str(folder / "flows"),
            "CONNLAB_DOOR": str(self.door),
            "CONNLAB_DOOR_AT": _DOORS.get(phase, "none"),
        }
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                ["env", f"--default-signal={_HEEDED}", *_CONNLAB, "run", str(SCENARIO)],
                cwd=paths.ROOT,
                env=environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What the command has printed."""
        return self._said.read_text(errors="replace")

    @property
    def folder(self) -> Path | None:
        """The run's folder, once there is one."""
        return next(iter(sorted(set(folders()) - self._known)), None)

    def reach(self) -> None:
        """Wait until the run has come to its point."""
        reached = self._sends if self.phase == "load" else (self.door / "reached").exists
        wait_until(lambda: reached() or self.ended, f"the point '{self.phase}'")
        if self.ended:
            raise RuntimeError(f"it ended before it came to its point:\n{self.said}")

    @property
    def ended(self) -> bool:
        """Whether the command has come to its end."""
        return self.process.poll() is not None

    def _sends(self) -> bool:
        dials = self.folder and self.folder / "raw/k6-1/role/dials.jsonl"
        return bool(dials and dials.is_file() and '"kind":"dial"' in dials.read_text())

    def let_go(self) -> None:
        """Let it go on from its point."""
        (self.door / "open").touch()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the lab alone."""
        os.kill(self.process.pid, number)

    def end(self) -> int:
        """Wait for its end, and give the exit code."""
        self.let_go()
        return self.process.wait(HANG_S)

    def kill(self) -> None:
        """End it whatever it does, if a strike went wrong."""
        if not self.ended:
            self.process.kill()
            self.process.wait()


def folders() -> list[Path]:
    """Give the folders of all runs."""
    return sorted(paths.RESULTS.glob("*/2*-r*"))


def status(folder: Path | None) -> str | None:
    """Give the word of a run's manifest; None if it has none."""
    file = folder and folder / "manifest.json"
    return str(json.loads(file.read_text())["status"]) if file and file.is_file() else None
