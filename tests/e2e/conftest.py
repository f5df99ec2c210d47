"""Real runs through the commands that a user types; each ends with a result folder to look into.

Several processes share the tests. One run at a time is on the machine: who makes one takes a turn. What makes none goes
on meanwhile, and so does the analysis of the run before.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.own_results import RESULTS, begin

ROOT = Path(__file__).resolve().parents[2]
CONNLAB = ROOT / ".venv/bin/connlab"
TURN = ROOT / ".cache/tests/turn"
# `connlab` that says on its input, a socket, when it is ready to take the machine's lock, and waits there for a word.
# What comes before goes on beside other runs: the check of the scenario and of the lab's images, and the builds of the
# scenario's own.
# A JVM that starts compiles for seconds, on all processors, what no test is about. By its first compiler alone it is
# done in a third of the time.
WAITING = """
import os, sys
from lab.cli import connlab
from lab.engines import role_containers
from lab.outcomes import run_and_judge
from lab.runs import run
from lab.series import executor
take = run.machine_lock
assert executor.machine_lock is take
def machine_lock(*given, **named):
    os.write(0, b"r")
    if not os.read(0, 1):
        sys.exit("nobody gives it a turn")
    return take(*given, **named)
run.machine_lock = executor.machine_lock = machine_lock
run_once = run_and_judge.run
assert run_once is run.run
def run_built(resolved, engine, *given, **named):
    engine.service_images(resolved)
    return run_once(resolved, engine, *given, **named)
run_and_judge.run = run_built
role_environment = role_containers.role_environment
def by_one_compiler(*given):
    return {**role_environment(*given), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
role_containers.role_environment = by_one_compiler
connlab()
"""
# An analysis leaves the processors to the run that begins beside it.
NICE = 10
# So long only a hang lasts, on a busy machine too.
HANG_S = 1800
# A step of a run takes seconds on a quiet machine; the lab itself waits 300 s for its containers.
WAIT_S = 900
# Ten times what a start takes on a quiet machine. The lab itself gives half an hour more than a run may take.
DEADLINE_S = int(os.environ.get("CONNLAB_TEST_DEADLINE_S", "60"))
SHORTENED = f"""
from lab.cli import main
from lab.engines import container_settings
from lab.engines.compose import run_file
from lab.engines.kubernetes import startup
for module in (container_settings, run_file, startup):
    assert module.compute_deadline_s
    module.compute_deadline_s = lambda effective: {DEADLINE_S}
"""
# A run that a busy machine spoiled is made again, this often in all.
RUNS_MAX = 3
# The instruments that a busy machine spoils: processors that k6 waits for, users who come late and then together,
# connections that k6 gives up, ticks and scrapes that come late, packets that tcpdump has no time for. A clock that the
# machine sets meanwhile is no more the lab's than these are.
SPOILED_BY_A_BUSY_MACHINE = (
    *("host", "clock", "arrivals", "users", "connections", "k6/", "sampler/", "tomcat/", "stub_status/", "gateway/"),
    "capture/",
)
PROVE_A_BUSY_MACHINE = ("host", "clock", "arrivals", "sampler/")

# accept-queue-overflow for tests that are not about how long users wait: the last one served has its answer after about
# 20 s, in time for what a test does meanwhile, on a busy machine too.
SHORTER_OVERFLOW = ("--set=load.connect_timeout=5s", "--set=backend.keep_alive_timeout=8s")


def pytest_sessionstart() -> None:
    begin()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("builds") is None)


@dataclass(frozen=True)
class Run:
    """One finished `connlab run`: its exit code, what it printed and its folder."""

    exit_code: int
    output: str
    folder: Path

    @property
    def verdict(self) -> dict[str, Any]:
        """`derived/verdict.json`."""
        return self.read("derived/verdict")

    @property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`."""
        return self.read("manifest")

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of `derived/figures.json`."""
        figures: dict[str, Any] = self.read("derived/figures")["figures"]
        return figures

    def read(self, name: str) -> dict[str, Any]:
        """The content of a JSON file."""
        loaded: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        return loaded

    def measured(self) -> dict[str, Any]:
        """Every figure that a prediction measured."""
        return {name: value for row in self.verdict["predictions"] for name, value in row["measured"].items()}

    @property
    def busy(self) -> str | None:
        """What the run says of the machine if that was too busy for a verdict; None if it was not, or says nothing.

        The host, its clock, a sampler, or the packets of users who came together must say so: other instruments may
        suffer beside them, but prove nothing by themselves.
        """
        if self.verdict["verdict"] != "inconclusive":
            return None
        problems = {problem["instrument"]: problem["message"] for problem in self.verdict["problems"]}
        if not all(name.startswith(SPOILED_BY_A_BUSY_MACHINE) for name in problems):
            return None
        return next((said for name, said in problems.items() if name.startswith(PROVE_A_BUSY_MACHINE)), None)


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Wait for the machine, and keep it from the runs of other processes."""
    TURN.parent.mkdir(parents=True, exist_ok=True)
    with TURN.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def whole_turn() -> Iterator[None]:
    """The machine for a whole test, which makes its runs by itself."""
    with turn():
        yield


def wait_for_end_of_run(process: subprocess.Popen[str]) -> None:
    """Wait for the end of a command's run, whose containers are gone when the lab lets go of its lock.

    A command whose hold on the lock is not seen is waited for until it ends.
    """
    from lab.runs import lock  # noqa: PLC0415 # it learns the folder of results as it is imported

    def holds_machine() -> bool:
        holder = lock.holder()
        return holder is not None and holder.pid == process.pid

    hangs_s = time.monotonic() + HANG_S
    for held in (False, True):
        while process.poll() is None and holds_machine() == held:
            if time.monotonic() > hangs_s:
                raise subprocess.TimeoutExpired(process.args, HANG_S)
            time.sleep(0.1)
    with contextlib.suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PGRP, process.pid, NICE)


def start(
    *arguments: str, program: Sequence[str | Path] = (CONNLAB,), stdin: int | None = None
) -> subprocess.Popen[str]:
    """A `connlab` command in a process group of its own, so that a test can interrupt it as a terminal does.

    Tests that run in the background have Ctrl-C ignored, and would hand that on: a terminal's command has it not.
    """
    return subprocess.Popen(
        ["env", "--default-signal=INT", *program, *arguments],
        cwd=ROOT,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def interrupt(process: subprocess.Popen[str]) -> str:
    """Interrupt a command as a terminal does, and give all that it printed."""
    os.killpg(process.pid, signal.SIGINT)
    return process.communicate(timeout=HANG_S)[0]


def killed_at(condition: Callable[[], bool], *arguments: str) -> None:
    """A lab that is killed once a condition holds; what it started may live for DEADLINE_S."""
    program = SHORTENED + f"main({list(arguments)!r})"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, start_new_session=True)
    try:
        wait_until(lambda: process.poll() is not None or condition(), "the start")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"


def latest(scenario: str) -> Path:
    """The newest result folder of a scenario."""
    return (RESULTS / scenario / "latest").resolve()


def connlab(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A `connlab` command run to its end."""
    return subprocess.run([CONNLAB, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)


def refused(*arguments: str, exit_code: int = 2) -> str:
    """What a command says that ends with this code; a traceback is of a service, whose words are indented."""
    ended = connlab(*arguments)
    assert ended.returncode == exit_code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr.replace("\n  Traceback", "")
    return ended.stderr


def docker(*arguments: str) -> str:
    """What `docker …` prints."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def folders(scenario: str) -> set[Path]:
    """The result folders of a scenario."""
    return set(RESULTS.glob(f"{scenario}/*-r*"))


def load_has_begun(scenario: str, known: set[Path]) -> bool:
    """Whether a user dials in a run that was not there before."""
    dials = (file for folder in folders(scenario) - known for file in folder.glob("raw/k6-1/role/dials.jsonl"))
    return any('"kind":"dial"' in file.read_text() for file in dials)


def run_in_turn(scenario: str, *arguments: str) -> Run:
    """A `connlab run` to its end; its check, its builds and its analysis go on beside the runs of others."""
    ours, its = socket.socketpair()
    with ours, ThreadPoolExecutor(1) as reader:
        with its:
            process = start("run", scenario, *arguments, program=(sys.executable, "-c", WAITING), stdin=its.fileno())
        said = reader.submit(lambda: process.communicate()[0])
        ours.settimeout(HANG_S)
        try:
            # One that is refused ends before it is ready.
            if ours.recv(1):
                with turn():
                    ours.send(b"\n")
                    wait_for_end_of_run(process)
            output = said.result(HANG_S)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
                pytest.fail(f"{scenario} did not end:\n{said.result(HANG_S)}")
            raise
    return Run(process.returncode, output, latest(Path(scenario).name))


def run_until_calm(scenario: str, *arguments: str) -> Run:
    """A `connlab run` to its end, and again if a busy machine spoiled it; one that was refused has no verdict."""
    ended = run_in_turn(scenario, *arguments)
    for _ in range(1, RUNS_MAX):
        if ended.exit_code != 3 or ended.busy is None:
            break
        ended = run_in_turn(scenario, *arguments)
    return ended


@pytest.fixture(scope="session")
def run() -> Callable[..., Run]:
    """Runs a scenario with these settings, as `run_until_calm` does."""

    def _run(scenario: str, *settings: str, arm: str | None = None) -> Run:
        arguments = [f"--set={setting}" for setting in settings] + ([f"--arm={arm}"] if arm else [])
        return run_until_calm(scenario, *arguments)

    return _run


def assert_spoiled_only_by_the_machine(run: Run) -> None:
    """What holds of a run without a verdict, however busy the machine was."""
    assert run.busy is not None, run.output
    assert run.exit_code == 3
    assert run.manifest["status"] == "complete"
    unknown = [row for row in run.verdict["predictions"] if row["status"] != "true"]
    assert unknown, "a run that says nothing against a prediction has a verdict"
    assert all(row["status"] == "unknown" and row["why"] for row in unknown)
    assert run.verdict["ledger"]["unexplained"] == 0
    assert run.verdict["ledger"]["identities"]["false"] == 0


def left_behind(folder: Path | None = None) -> list[str]:
    """The containers that exist now of the run with this folder; of any run, for who has the turn."""
    label = "label=connlab.run" if folder is None else f"label=connlab.run={folder.name}"
    return docker("ps", "--all", "--filter", label, "--format", "{{.Names}}").split()


def wait_until(condition: Callable[[], bool], what: str, of: subprocess.Popen[str] | None = None) -> None:
    """Polls until `condition` holds; a command that it waits for and that has ended will not make it hold."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if of is not None and of.poll() is not None and not condition():
            output, _ = of.communicate(timeout=HANG_S)
            pytest.fail(f"{what}: the command ended before, with exit code {of.returncode}:\n{output}")
        if time.monotonic() > end:
            pytest.fail(f"{what}: not within {WAIT_S} s")
        time.sleep(0.1)
