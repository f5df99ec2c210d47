"""What a server prints of a process that ends."""

import io

import pytest

from analysis.evidence.processes import read_endings

SECOND_US = 1_763_710_000_000_000


@pytest.mark.parametrize(
    "line",
    [
        b"[2025-11-21 08:26:40 +0100] [61] [INFO] Worker exiting (pid: 61)",
        b"[2025-11-21 07:26:40 +0000] [7] [ERROR] Worker (pid:61) was sent SIGKILL! Perhaps out of memory?",
        b"2025/11/21 07:26:40 [alert] 7#7: worker process 61 exited on signal 9",
        b"[21-Nov-2025 07:26:40] WARNING: [pool web] child 61 exited on signal 11 (SIGSEGV) after 8.1 seconds",
        b"[Fri Nov 21 07:26:40.123456 2025] [core:notice] [pid 7:tid 7] AH00052: child pid 61 exit signal Killed (9)",
    ],
)
def test_a_server_says_that_a_process_ends(line: bytes) -> None:
    assert list(read_endings(io.BytesIO(b"started\n" + line))) == [(2, SECOND_US, 61)]


@pytest.mark.parametrize(
    "line",
    [
        b"[2025-11-21 07:26:40 +0000] [61] [INFO] Booting worker with pid: 61",
        b"[2025-11-21 07:26:40 +0000] [7] [CRITICAL] WORKER TIMEOUT (pid:61)",
        b"[2025-13-21 07:26:40 +0000] [61] [INFO] Worker exiting (pid: 61)",
        b"Worker exiting (pid: 61)",
        b"2025/11/21 07:26:40 [notice] 61#61: exiting",
    ],
)
def test_another_line_says_no_such_thing(line: bytes) -> None:
    assert list(read_endings(io.BytesIO(line))) == []
