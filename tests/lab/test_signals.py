import os
import signal
import subprocess
import sys
import time

import pytest

from lab.engines.programs import CommandLine
from lab.errors import Interruption
from lab.signals import LOOK_S, deferred, interruptible, shielded, signal_waits
from tests.lab.waiting import HANG_S

# A signal that comes just before a call of the kernel's does not end that call, so no call here lasts.
PROGRAM = """
import select, signal, sys, time
from lab.errors import Interruption
from lab.signals import interruptible
def wait_for_line():
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        pass
    sys.stdin.readline()
# As it was started, whatever those do who started the tests.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN if str(int(number)) in sys.argv else signal.SIG_DFL)
try:
    with interruptible(to_the_end=True):
        try:
            print("ready", flush=True)
            for _ in range(6000):
                time.sleep(0.1)
        finally:
            print("clearing up", flush=True)
            wait_for_line()
            print("cleared up", flush=True)
except Interruption as reason:
    print(reason, flush=True)
    wait_for_line()
    sys.exit(4)
"""


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, "interrupted (Ctrl-C)"),
        (signal.SIGTERM, "terminated (SIGTERM)"),
        (signal.SIGHUP, "closed (SIGHUP)"),
    ],
)
def test_a_signal_ends_in_order_and_a_second_one_does_not_disturb_that(number: signal.Signals, reason: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        assert child.stdout.readline() == "clearing up\n"
        child.send_signal(number)
        assert child.stderr.readline() == "connlab: still removing what the run started\n"
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "cleared up\n"
        assert reason in child.stdout.readline()
        # Its word is said, and only its exit code is still to come.
        child.send_signal(number)
        _, complaint = child.communicate("\n", timeout=300)
    assert child.returncode == 4
    assert not complaint


def test_a_signal_that_nohup_has_ignored_is_ignored_still() -> None:
    command = [sys.executable, "-c", PROGRAM, str(int(signal.SIGHUP))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGTERM)
        said, _ = child.communicate("\n\n", timeout=300)
    assert said == "clearing up\ncleared up\nterminated (SIGTERM)\n"


def series_that_is_ended_between_two_runs() -> None:
    with interruptible():
        with interruptible():
            pass
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_between_two_runs_of_a_series_ends_the_series() -> None:
    with pytest.raises(Interruption, match="terminated"):
        series_that_is_ended_between_two_runs()


class Finalized:
    """A signal comes while Python removes it, as it may while Python removes a process that has ended."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def drop_and_wait() -> None:
    with interruptible():
        Finalized()
        for _ in range(10 * HANG_S):
            time.sleep(0.1)


def test_a_signal_that_python_drops_in_a_finalizer_comes_again() -> None:
    with pytest.raises(Interruption, match="terminated"):
        drop_and_wait()


def wait_deferred(did: list[bool]) -> None:
    with interruptible(), deferred():
        did.append(signal_waits())
        signal.raise_signal(signal.SIGTERM)
        did.append(signal_waits())
        raise ValueError


def test_a_deferred_signal_waits_and_is_raised_whatever_went_wrong() -> None:
    did: list[bool] = []
    with pytest.raises(Interruption, match="terminated"):
        wait_deferred(did)
    assert did == [False, True]


def end_shielded(did: list[bool]) -> None:
    with interruptible(), shielded():
        with deferred():
            signal.raise_signal(signal.SIGTERM)
            did.append(signal_waits())
        did.append(True)


def test_a_run_s_ending_does_not_break_off_what_it_waits_for() -> None:
    did: list[bool] = []
    with pytest.raises(Interruption, match="terminated"):
        end_shielded(did)
    assert did == [False, True]


def run_in_shell(script: str) -> None:
    with interruptible():
        CommandLine("sh", "", "").run(["-c", script], timeout_s=HANG_S)


def test_a_command_ends_at_a_signal() -> None:
    with pytest.raises(Interruption, match="terminated"):
        run_in_shell(f"kill -TERM {os.getpid()}; sleep {HANG_S}")


def test_a_program_reads_more_than_a_pipe_holds_however_late_it_begins() -> None:
    text = "x" * 200_000
    ended = CommandLine("sh", "", "").run(["-c", f"sleep {3 * LOOK_S}; wc -c"], timeout_s=HANG_S, stdin=text)
    assert ended.stdout.split() == [str(len(text))]
