"""The table of fault and phase: what may strike a run, when, and how the run has to end.

One rule for all: evidence first, then a clean-up that nothing interrupts twice, then the word and the exit code.
tests/lab/test_faults.py tries it on an engine in memory, in every test run; tests/faults/test_reliability.py on real
ones, by `make test-faults`.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from lab.errors import ExitCode
from lab.scenarios.topology import collector_of

GOOD, FAILED, INCONCLUSIVE = ExitCode.REPRODUCED, ExitCode.LAB_FAILED, ExitCode.INCONCLUSIVE
KILLED = -int(signal.SIGKILL)

# When a fault strikes.
PHASES = {
    "before": "before anything is there: the lab asks for the engine's version",
    "start": "containers are being started",
    "load": "the clients send requests",
    "ending": "the containers are about to be stopped",
    "logs": "the containers' logs are about to be kept",
    "removal": "the containers are about to be removed",
    "analysis": "the containers are gone, and the verdict is being derived",
}

FAULTS = {
    "INT": "SIGINT to the lab, as by Ctrl-C",
    "INT twice": "SIGINT, and once more while the lab clears up",
    "TERM": "SIGTERM to the lab, as by `kill`",
    "TERM twice": "SIGTERM, and once more while the lab clears up",
    "HUP": "SIGHUP to the lab, as by a terminal that is closed",
    "HUP twice": "SIGHUP, and once more while the lab clears up",
    "engine ends": "the Docker Engine ends and does not come back during the run",
    "engine restarts": "the Docker Engine ends, all containers with it, and starts again",
    "server ends": "the backend's process is killed",
    "collector ends": "the process of the backend's collector is killed",
    "k6 ends": "k6 is killed",
    "k6 hangs": "k6 is stopped by SIGSTOP",
    "disk full": "the file system of `results/` has no byte left",
    "results read-only": "the file system of `results/` is mounted read-only",
    "results moved": "the folder of the run's results gets another name",
    "clock steps forward": "the wall clock jumps an hour ahead",
    "clock steps back": "the wall clock jumps an hour back",
    "name taken": "another container has the name that the backend's is to have",
}
# What the engine in memory has no parts for.
REAL_FAULTS = {
    **FAULTS,
    "KILL": "SIGKILL to the lab",
    "server out of memory": "the kernel kills the backend's JVM, whose container has no memory left",
    "server hangs": "the backend is stopped by SIGSTOP",
    "proxy ends": "nginx's main process is killed",
    "proxy worker out of memory": "the kernel kills nginx's worker, whose container has no memory left",
    "proxy hangs": "nginx is stopped by SIGSTOP",
    "capture ends": "the tcpdump beside nginx is killed",
    "machine stands still": "the lab and all containers are stopped for three seconds, and go on",
    "second run": "another run is started on the same machine",
    "network taken": "another network has the name that the run's is to have",
}
REAL_PHASES = ("before", "start", "load", "ending", "analysis")


@dataclass(frozen=True)
class End:
    """How a run has ended.

    Attributes:
        status: the manifest's word; None where there is no manifest.
        word: what the command says of it.
        stays: whether parts still run, which the next run removes; None if that is a matter of moments.
    """

    status: str | None
    code: int
    word: str
    stays: bool | None = False


Cell = tuple[str, str]


def _of_signals() -> dict[Cell, End]:
    told = {"INT": "interrupted (Ctrl-C)", "TERM": "terminated (SIGTERM)", "HUP": "the terminal was closed (SIGHUP)"}
    found: dict[Cell, End] = {}
    for name, word in told.items():
        for fault in (name, f"{name} twice"):
            found |= {
                (fault, "before"): End(None, FAILED, word),
                (fault, "start"): End("aborted", FAILED, f"the run was aborted: {word}"),
                (fault, "load"): End("aborted", FAILED, f"the run was aborted: {word}"),
                (fault, "ending"): End("complete", FAILED, f"{word}, after the end of the run, which is complete"),
                (fault, "logs"): End("complete", FAILED, f"{word}, after the end of the run, which is complete"),
                (fault, "removal"): End("complete", FAILED, f"{word}, after the end of the run, which is complete"),
                (fault, "analysis"): End("complete", FAILED, f"{word} during the analysis; what was recorded stays in"),
            }
    return found


_AFTER = "Cannot connect to the engine, after the end of the run, which is complete"
_WITHOUT_VERDICT = End("complete", FAILED, "No space left on device during the analysis; what was recorded stays in")
_WITHOUT_WORD = End("running", FAILED, "Read-only file system")
CELLS: dict[Cell, End] = {
    **_of_signals(),
    ("engine ends", "before"): End(None, FAILED, "Cannot connect"),
    ("engine ends", "start"): End("aborted", FAILED, "its containers could not be removed"),
    ("engine ends", "load"): End("aborted", FAILED, "its containers could not be removed", stays=True),
    ("engine ends", "ending"): End("aborted", FAILED, "its containers could not be removed", stays=True),
    ("engine ends", "logs"): End("complete", FAILED, _AFTER),
    ("engine ends", "removal"): End("complete", FAILED, _AFTER),
    ("engine ends", "analysis"): End("complete", INCONCLUSIVE, ""),
    ("engine restarts", "before"): End(None, FAILED, "Cannot connect"),
    ("engine restarts", "start"): End("aborted", FAILED, "the run was aborted: Cannot connect"),
    ("engine restarts", "load"): End("aborted", FAILED, "the run was aborted: Cannot connect"),
    ("engine restarts", "ending"): End("aborted", FAILED, "the run was aborted: Cannot connect"),
    ("engine restarts", "logs"): End("complete", INCONCLUSIVE, "what the containers said was not kept: Cannot connect"),
    ("engine restarts", "removal"): End("complete", FAILED, _AFTER),
    ("engine restarts", "analysis"): End("complete", INCONCLUSIVE, ""),
    ("server ends", "load"): End("aborted", FAILED, "the run was aborted: backend-1 ended with exit code 137"),
    ("collector ends", "load"): End("aborted", FAILED, f"{collector_of('backend-1')} ended with exit code 137"),
    ("k6 ends", "load"): End("failed", INCONCLUSIVE, ""),
    ("k6 hangs", "load"): End("failed", INCONCLUSIVE, ""),
    ("disk full", "before"): End(None, FAILED, "No space left on device"),
    ("disk full", "start"): End("aborted", FAILED, "No space left on device"),
    ("disk full", "load"): End("aborted", FAILED, "the run was aborted: the disk is full"),
    **{("disk full", phase): _WITHOUT_VERDICT for phase in ("ending", "logs", "removal", "analysis")},
    # The word comes with the next run.
    ("results read-only", "before"): End(None, FAILED, "Read-only file system"),
    **{("results read-only", phase): _WITHOUT_WORD for phase in ("start", "load", "ending", "logs")},
    ("results read-only", "removal"): End("complete", FAILED, "Read-only file system"),
    ("results read-only", "analysis"): End("complete", FAILED, "Read-only file system"),
    ("results moved", "load"): End("running", FAILED, "No such file or directory"),
    ("clock steps forward", "load"): End("complete", INCONCLUSIVE, ""),
    ("clock steps back", "load"): End("complete", INCONCLUSIVE, ""),
    ("name taken", "start"): End("aborted", FAILED, "is already in use"),
}
_PARTS = ("server ends", "collector ends", "k6 ends", "k6 hangs")
_SHIFTS = ("clock steps forward", "clock steps back", "results moved")


def _cannot() -> Iterator[tuple[str, str, str]]:
    """Give fault, phase and the reason."""
    for fault in _PARTS:
        yield from ((fault, phase, "nothing of the run stands") for phase in ("before", "analysis"))
        yield fault, "start", "the engine's start fails, as for a name that is taken"
        yield from ((fault, phase, "the lab is ending it itself") for phase in ("ending", "logs", "removal"))
    for fault in _SHIFTS:
        yield from ((fault, phase, "no phase waits by it; as under load") for phase in PHASES if phase != "load")
    yield from (("name taken", phase, "names are taken at the start") for phase in PHASES if phase != "start")


CANNOT = {(fault, phase): why for fault, phase, why in _cannot()}


REAL: dict[Cell, End] = {
    **{cell: end for cell, end in _of_signals().items() if cell[1] in REAL_PHASES},
    ("KILL", "before"): End(None, KILLED, ""),
    ("KILL", "start"): End("running", KILLED, "", stays=True),
    ("KILL", "load"): End("running", KILLED, "", stays=True),
    ("KILL", "ending"): End("running", KILLED, "", stays=True),
    ("KILL", "analysis"): End("complete", KILLED, ""),
    ("server ends", "start"): End("aborted", FAILED, "backend-1 ended with exit code 137 during its start"),
    ("server ends", "load"): End("aborted", FAILED, "the run was aborted: backend-1 ended with exit code 137"),
    ("server out of memory", "load"): End("aborted", FAILED, "backend-1 ended with exit code 137, out of memory"),
    ("server hangs", "load"): End("complete", INCONCLUSIVE, ""),
    ("proxy ends", "load"): End("aborted", FAILED, "the run was aborted: nginx ended with exit code 137"),
    ("proxy worker out of memory", "load"): End("complete", INCONCLUSIVE, ""),
    ("proxy hangs", "load"): End("complete", INCONCLUSIVE, ""),
    ("collector ends", "start"): End("aborted", FAILED, "collector-backend-1 ended with exit code 137"),
    # Its role ends with it: the collector holds the namespaces of both.
    ("collector ends", "load"): End("aborted", FAILED, "ended with exit code 137 during the run"),
    ("capture ends", "load"): End("complete", INCONCLUSIVE, ""),
    ("k6 ends", "load"): End("failed", INCONCLUSIVE, ""),
    ("k6 hangs", "load"): End("failed", INCONCLUSIVE, ""),
    **{(fault, phase): CELLS[fault, phase] for fault in ("disk full", "results read-only") for phase in REAL_PHASES},
    # The lab looks at what is left each second; the file of the machine's own figures may meet the end first.
    ("disk full", "load"): End("aborted", FAILED, "the run was aborted: the "),
    # Collectors put room by, 256 KiB for each of their files, and give it back: a small run's verdict fits into that.
    ("disk full", "ending"): End("complete", GOOD, ""),
    ("results moved", "load"): End("running", FAILED, "No such file or directory"),
    ("machine stands still", "load"): End("complete", INCONCLUSIVE, ""),
    ("second run", "start"): End("complete", GOOD, ""),
    ("second run", "load"): End("complete", GOOD, ""),
    ("second run", "ending"): End("complete", GOOD, ""),
    ("second run", "analysis"): End("complete", GOOD, ""),
    ("name taken", "start"): End("aborted", FAILED, "is already in use"),
    ("network taken", "start"): End("aborted", FAILED, "connlab-run_lab"),
    ("engine ends", "before"): End(None, FAILED, "Cannot connect"),
    ("engine ends", "start"): End("aborted", FAILED, "its containers could not be removed"),
    ("engine ends", "load"): End("aborted", FAILED, "the run was aborted: the engine ended", stays=True),
    ("engine ends", "ending"): End("aborted", FAILED, "its containers could not be removed", stays=True),
    ("engine ends", "analysis"): End("complete", GOOD, ""),
    ("engine restarts", "before"): End("complete", GOOD, ""),
    # The lab may ask for the removal while the engine is away, or when it is back.
    ("engine restarts", "start"): End("aborted", FAILED, "the run was aborted", stays=None),
    ("engine restarts", "load"): End("aborted", FAILED, "the run was aborted", stays=None),
    # What was to be stopped has ended with the engine.
    ("engine restarts", "ending"): End("complete", GOOD, ""),
    ("engine restarts", "analysis"): End("complete", GOOD, ""),
}
