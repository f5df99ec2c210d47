"""What the kernel itself tells of a server that accepts late, beside what server, client and packets tell."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from .conftest import HANG_S, ROOT, docker, folders, interrupt, start, turn, wait_until

# Its image is that of the observed project.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("observed")]

NAME = "connlab-late"
IMAGE = "connlab-observed-shop"
Lines = list[dict[str, Any]]


def refusal() -> str | None:
    """Return why the kernel gives no events here; None if it does."""
    rights = ("--cap-drop", "ALL", "--cap-add", "BPF", "--cap-add", "PERFMON")
    command = ("docker", "run", "--rm", "--network", "none", *rights, "connlab/collector", "events")
    tried = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    return tried.stderr.strip() if tried.returncode else None


@pytest.fixture
def late() -> Iterator[str]:
    """A server that accepts late, and a container for its client; the server's address."""
    if why := refusal():
        pytest.skip(why)
    docker("build", "--tag", IMAGE, str(ROOT / "tests/e2e/observed"))
    docker("network", "create", "--internal", NAME)
    try:
        scripts = ("--network", NAME, "--volume", f"{ROOT}/tests/e2e/late:/late:ro", "--init")
        docker("run", "--detach", "--name", f"{NAME}-server", *scripts, IMAGE, "python3", "/late/server.py")
        docker("run", "--detach", "--name", f"{NAME}-client", *scripts, IMAGE, "sleep", "infinity")
        wait_until(lambda: "listens" in docker("logs", f"{NAME}-server"), "the server listens")
        networks = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        yield docker("inspect", "--format", networks, f"{NAME}-server").strip()
    finally:
        for each in ("server", "client"):
            docker("rm", "--force", f"{NAME}-{each}")
        docker("network", "rm", NAME)


def lines(text: str) -> Lines:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def told(folder: Path, instance: str, kind: str) -> Lines:
    text = (folder / f"raw/{instance}/collector/events.jsonl").read_text()
    return [line for line in lines(text) if line["kind"] == kind]


def is_under_way(made: set[Path]) -> bool:
    return any('"measure"' in file.read_text() for each in made for file in each.glob("manifest.json"))


def count(events: Lines, end: str, port: int) -> int:
    return sum(each[f"{end}_port"] == port for each in events)


def test_what_the_kernel_tells_is_what_both_programs_and_the_packets_tell(
    late: str,
) -> None:
    results = f"observed-{NAME}-server"
    before = folders(results)
    targets = ("--container", f"{NAME}-server", "--peer-container", f"{NAME}-client")
    with turn():  # the kernel lets a program miss an event while it looks at another one's, of any namespace
        observing = start("observe", *targets, "--events", "kernel", "--capture", "handshakes", "--duration", "10m")
        wait_until(lambda: is_under_way(folders(results) - before), "the observation has begun")
        asked = docker("exec", f"{NAME}-client", "python3", "/late/client.py", late)
        most = {each["port"]: each["most_us"] for each in lines(asked)}
        least = {each["port"]: each["least_us"] for each in lines(docker("logs", f"{NAME}-server"))}
        said = interrupt(observing)
    assert observing.returncode == 0, said
    (folder,) = folders(results) - before
    server, client = f"{NAME}-server", f"{NAME}-client"

    waits = {each["peer_port"]: each["wait_us"] for each in told(folder, server, "accepted")}
    assert waits.keys() == least.keys()
    for port, wait_us in waits.items():
        assert least[port] <= wait_us <= most.get(port, wait_us)
    assert {each["by"] for each in told(folder, server, "accepted")} == {"python3"}

    columns = "client_port, syn_count, client_rst_count, server_rst_count, queued_us, in_queue_us"
    query = f"SELECT {columns} FROM read_parquet(?) WHERE observer = ?"  # noqa: S608
    rows = duckdb.execute(query, [str(folder / "derived/connections.parquet"), server]).fetchall()
    again = [each for each in told(folder, client, "retransmitted") if each["flags"] == "S"]
    resets = told(folder, server, "reset_sent")
    by_client = told(folder, client, "reset_sent")
    assert len(again) > 0 < len(resets)
    for port, syns, client_resets, server_resets, queued_us, in_queue_us in rows:
        found = (count(again, "local", port), count(by_client, "local", port), count(resets, "peer", port))
        assert found == (syns - 1, client_resets, server_resets)
        # What the account says of the queue rests on the kernel's word, also without the packets with data.
        assert queued_us is None or in_queue_us >= waits[port]
