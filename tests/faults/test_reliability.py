"""The table of fault and phase, for real: each run is struck once, and the next one has to be good.

`make test-faults` runs this in a machine of its own (setup/faults.sh).
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lab import paths
from lab.errors import ConnlabError, ExitCode
from lab.runs import run_results
from tests.e2e.conftest import RUNS_MAX
from tests.e2e.conftest import Run as Ended
from tests.faults import world
from tests.faults.reliability import names
from tests.faults.strikes import HELD, STRIKES, foreign, mend
from tests.faults.table import REAL, Cell, End
from tests.faults.world import Engine, Run, docker, wait_until

pytestmark = pytest.mark.faults

RUN = Path("/tmp/connlab-faults")  # noqa: S108 # of the machine of its own
OURS = [RUN, RUN.with_name("second")]
# What the set-up of a machine leaves running, and what reads it.
_OWN = ("dockerd", "containerd", "docker-proxy")


def _share() -> list[Cell]:
    """The cells of the faults that are asked for, all if none is; of these this machine's share."""
    asked = names(os.environ.get("CONNLAB_FAULTS_ONLY", ""))
    number, machines = map(int, os.environ.get("CONNLAB_FAULTS_SHARE", "1/1").split("/"))
    return [cell for cell in REAL if not asked or cell[0] in asked][number - 1 :: machines]


class Seen:
    """What is noted of a cell, and what was wrong with it."""

    def __init__(self, fault: str, phase: str, file: Path) -> None:
        self.noted: dict[str, Any] = {"fault": fault, "phase": phase}
        self.wrong: list[str] = []
        self._file, self._began = file, time.monotonic()

    def check(self, right: object, what: str) -> None:
        if not right:
            self.wrong.append(what)

    def write(self) -> None:
        self.noted |= {"seconds": round(time.monotonic() - self._began), "wrong": self.wrong}
        with self._file.open("a") as stream:
            stream.write(json.dumps(self.noted) + "\n")
        with suppress(OSError), Path("/dev/fd/3").open("a") as progress:
            what = f"{self.noted['fault']}, {self.noted['phase']}"
            progress.write(f"{what}: {'; '.join(self.wrong) or 'ok'} after {self.noted['seconds']} s\n")


def left() -> list[str]:
    """Name what runs or lies about and is nobody else's: containers, networks, volumes, processes, files."""
    networks = docker("network", "ls", "--filter", "type=custom", "--format", "{{.Name}}").split()
    volumes = docker("volume", "ls", "--format", "{{.Name}}").split()
    files = [file.name for file in Path("/tmp").iterdir() if file not in OURS]  # noqa: S108
    return [*world.containers(), *networks, *volumes, *litter(), *files]


def litter() -> list[str]:
    """Name the processes that the lab's end leaves behind."""
    lines = [line for pid, line in world.processes().items() if pid not in BASELINE]
    return [line for line in lines if line and Path(line.split()[0]).name not in _OWN]


def unfinished() -> list[str]:
    """Name the half-written files beside the results, and folders without a manifest."""
    files = [file for file in paths.RESULTS.rglob(".*") if file.is_file()]
    empty = [folder for folder in world.folders() if world.status(folder) is None]
    return [str(file.relative_to(paths.RESULTS)) for file in (*files, *empty)]


BASELINE: set[int] = set()


@pytest.fixture(autouse=True)
def _mended(engine: Engine) -> Iterator[None]:
    """Before a cell: what runs here. After it: a machine as it was, whatever became of the cell."""
    BASELINE.update(world.processes())
    yield
    mend(engine)
    foreign()


def evidence(folder: Path) -> bool:
    """Whether what was recorded until the fault is there, whole up to its last line."""
    files = [*folder.glob("raw/*/collector/samples.jsonl"), *folder.glob("raw/k6-1/role/requests.jsonl")]
    lines = [file.read_bytes().split(b"\n")[:-1] for file in files]
    return bool(lines) and all(each and all(json.loads(line) for line in each) for each in lines)


@pytest.mark.parametrize(("fault", "phase"), _share())
def test_a_fault_leaves_evidence_a_word_and_nothing_else(fault: str, phase: str, engine: Engine, records: Path) -> None:
    due, seen = REAL[fault, phase], Seen(fault, phase, records)
    try:
        for _ in range(RUNS_MAX):
            if struck(due, seen, engine):
                break
    except Exception as error:
        seen.wrong.append(f"{type(error).__name__}: {error}")
        raise
    finally:
        seen.write()
    assert seen.wrong == []


def struck(due: End, seen: Seen, engine: Engine) -> bool:
    """Strike a run and look at what is left; False if it was to be good, and the machine was too busy for that."""
    fault, phase = seen.noted["fault"], seen.noted["phase"]
    run = Run(RUN, phase)
    try:
        strike(run, seen, engine)
        code = run.end()
    finally:
        run.kill()
    if (fault, phase) == ("KILL", "analysis"):
        # Nobody is left to remove its scratch folder, which bears the lab's name.
        OURS.extend(Path("/tmp").glob("connlab-*"))  # noqa: S108 # as above
    mend(engine)
    folder, theirs = run.folder, foreign()
    if due.code == 0 and busy(run, code):
        return False
    if fault.endswith("taken"):
        seen.check(theirs, "the other one's is gone")

    status = world.status(folder)
    said = " ".join(run.said.split())
    seen.noted |= {"code": code, "status": status, "said": tail(run.said)}
    seen.check(code == due.code, f"exit code {code}, not {int(due.code)}")
    seen.check(status == due.status, f"the manifest says {status}, not {due.status}")
    seen.check(due.word in said, f"it does not say '{due.word}'")
    seen.check("Traceback" not in said and "internal error" not in said, "it shows an error of its own")
    if phase not in ("before", "start"):
        seen.noted["evidence"] = folder is not None and evidence(folder)
        seen.check(seen.noted["evidence"], "evidence is missing")
    if run.second:
        refused = phase != "analysis"
        seen.noted["second"] = run.second[0]
        seen.check(
            run.second[0] == (4 if refused else 0), f"the second run ended with {run.second[0]}: {run.second[1]}"
        )
        seen.check(not refused or "is in progress on this machine" in run.second[1], "nobody says who is at work")
    wait_quietly(stays=due.stays is not False)
    seen.noted |= {"left": left(), "stays": bool(world.containers())}
    if due.stays is not None:
        kept = world.containers() if due.stays else left()
        seen.check(bool(kept) == due.stays, f"left behind: {kept}")

    after = Run(RUN)
    next_code = after.end()
    seen.noted["next"] = next_code
    good = next_code == 0 or busy(after, next_code)
    seen.check(good, f"the next run ended with {next_code}: {tail(after.said) or after.said[-800:]}")
    if folder and status:
        seen.noted["status_after"] = world.status(folder)
        seen.check(seen.noted["status_after"] != "running", "the manifest says running after the next run, too")
        seen.check(readable(folder), "it cannot be analysed")
    wait_quietly()
    lies = [*left(), *unfinished()]
    seen.check(not lies, f"left behind after the next run: {lies}")
    for each in world.folders():
        shutil.rmtree(each)
    return True


def busy(run: Run, code: int) -> bool:
    """Whether a run has no verdict because the machine was too busy for one."""
    inconclusive = code == ExitCode.INCONCLUSIVE and run.folder is not None
    return inconclusive and Ended(code, run.said, run.folder or Path()).busy is not None


def strike(run: Run, seen: Seen, engine: Engine) -> None:
    """Bring the run to its point, and strike."""
    fault = seen.noted["fault"]
    run.reach()
    if run.phase == "start" and fault not in HELD:
        run.let_go()
        wait_until(lambda: world.containers() or run.ended, "the first container")
    STRIKES[fault](run, engine)


def readable(folder: Path) -> bool:
    try:
        run_results.derive_run(folder)
    except ConnlabError:
        return False
    return True


def wait_quietly(*, stays: bool = False) -> None:
    """A process that was told to end needs a moment, unless its container stays."""
    end = time.monotonic() + 30
    while litter() and not stays and time.monotonic() < end:
        time.sleep(0.1)


def tail(said: str) -> str:
    """Give the lab's last words on the run, without its progress."""
    return "\n".join(line for line in said.splitlines() if line.startswith(("connlab:", "hint")))[-800:]
