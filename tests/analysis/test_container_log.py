"""What a server prints of a process that ends, and of a unix socket that refused it."""

import io

import pytest

from analysis.evidence.container_log import read

SECOND_US = 1_763_710_000_000_000
NGINX = (
    b"2025/11/21 07:26:40 [error] 7#7: *12 connect() to unix:/run/app.sock failed"
    b" (11: Resource temporarily unavailable)"
)


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
    assert read(io.BytesIO(b"started\n" + line)) == ([(2, SECOND_US, 61)], [])


@pytest.mark.parametrize(
    "line",
    [
        NGINX + b' while connecting to upstream, client: 172.18.0.3, server: , request: "GET / HTTP/1.1"',
        b"app | " + NGINX,
        (
            b"[Fri Nov 21 07:26:40.123456 2025] [proxy:error] [pid 8:tid 12] (11)Resource temporarily unavailable:"
            b" AH02454: HTTP: attempt to connect to Unix domain socket /run/app.sock (localhost:80) failed"
        ),
    ],
)
def test_a_program_says_that_a_unix_socket_refused_it(line: bytes) -> None:
    assert read(io.BytesIO(b"started\n" + line)) == ([], [(2, SECOND_US, "unix:/run/app.sock")])


@pytest.mark.parametrize(
    "line",
    [
        b"[2025-11-21 07:26:40 +0000] [61] [INFO] Booting worker with pid: 61",
        b"[2025-11-21 07:26:40 +0000] [7] [CRITICAL] WORKER TIMEOUT (pid:61)",
        b"[2025-13-21 07:26:40 +0000] [61] [INFO] Worker exiting (pid: 61)",
        b"Worker exiting (pid: 61)",
        b"2025/11/21 07:26:40 [notice] 61#61: exiting",
        NGINX.replace(b"(11: Resource temporarily unavailable)", b"(111: Connection refused)"),
        NGINX.replace(b"unix:/run/app.sock", b"127.0.0.1:80"),
        NGINX.replace(b"2025/11", b"2025/13"),
    ],
)
def test_another_line_says_neither(line: bytes) -> None:
    assert read(io.BytesIO(line)) == ([], [])
