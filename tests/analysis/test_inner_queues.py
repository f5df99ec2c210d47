"""What queued inside a container, and what its programs say of it."""

import io

import pytest

from analysis.evidence.inner_queues import read_refusals

NGINX = (
    b"2025/11/21 07:26:40 [error] 7#7: *12 connect() to unix:/run/app.sock failed"
    b" (11: Resource temporarily unavailable)"
)


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
    assert list(read_refusals(io.BytesIO(b"started\n" + line))) == [(2, 1_763_710_000_000_000, "unix:/run/app.sock")]


@pytest.mark.parametrize(
    "line",
    [
        NGINX.replace(b"(11: Resource temporarily unavailable)", b"(111: Connection refused)"),
        NGINX.replace(b"unix:/run/app.sock", b"127.0.0.1:80"),
        NGINX.replace(b"2025/11", b"2025/13"),
    ],
)
def test_other_failures_are_none(line: bytes) -> None:
    assert list(read_refusals(io.BytesIO(line))) == []
