"""A Compose project that the lab did not start, loaded by plain k6, and watched: its figures beside k6's own."""

import json
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .conftest import HANG_S, ROOT, connlab, docker, folders, interrupt, start, wait_until

# One project; its containers and its image have one name each.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("observed")]

FOLDER = ROOT / "tests/e2e/observed"
PROJECT = "connlab-observed"
SHOP = f"{PROJECT}-shop-1"
SHOP_RESULTS = f"observed-{SHOP}"


def compose(*arguments: str) -> str:
    return docker("compose", "--project-name", PROJECT, "--file", str(FOLDER / "compose.yaml"), *arguments)


@pytest.fixture
def shop() -> Iterator[None]:
    """The project, as its owner starts it."""
    compose("up", "--build", "--detach", "--wait")
    try:
        wait_until(lambda: "8000" in docker("logs", SHOP), "the server listens")
        yield
    finally:
        compose("down", "--timeout", "1", "--volumes", "--rmi", "all")


def inspected() -> dict[str, Any]:
    """What of the shop would show that somebody touched it."""
    (found,) = json.loads(docker("inspect", SHOP))
    state = found["State"]
    sysctls = docker("exec", SHOP, "sh", "-c", "cd /proc/sys/net; grep -s '' core/* ipv4/*; true")
    return {"state": (state["Pid"], state["StartedAt"]), "processes": processes(state["Pid"]), "sysctls": sysctls}


def processes(first: int) -> dict[int, str]:
    """The command lines of all processes in the namespace of one; `docker top` would need ps on this machine."""
    found, namespace = {}, Path(f"/proc/{first}/ns/pid").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may have ended since, or may not let us look.
        with suppress(OSError):
            if (folder / "ns/pid").readlink() == namespace:
                found[int(folder.name)] = (folder / "cmdline").read_text()
    return found


def left_over() -> list[str]:
    return docker("ps", "--all", "--filter", "label=connlab.observe", "--format", "{{.Names}}").split()


def measures(known: set[Path], results: str = SHOP_RESULTS) -> bool:
    """Whether an observation has begun that was not there before."""
    manifests = (folder / "manifest.json" for folder in folders(results) - known)
    return any('"measure"' in manifest.read_text() for manifest in manifests if manifest.is_file())


@pytest.fixture
def generator(shop: None, tmp_path: Path) -> Iterator[str]:  # noqa: ARG001 # its network is the shop's
    """A container on the shop's network in which plain k6 can be run."""
    name = f"{PROJECT}-k6"
    folders_ = ("--volume", f"{FOLDER / 'load.js'}:/load.js:ro", "--volume", f"{tmp_path}:/out")
    docker(
        *("run", "--detach", "--init", "--name", name, "--network", f"{PROJECT}_default", "--user", "0", *folders_),
        *("--label", "connlab.check=observed", "--entrypoint", "sleep", "connlab/k6", "infinity"),
    )
    try:
        yield name
    finally:
        docker("rm", "--force", name)


def load(generator: str, out: Path) -> list[dict[str, Any]]:
    """Let plain k6 load the shop, and give its record of each request."""
    docker("exec", generator, "k6", "run", "--quiet", "--out", "json=/out/k6.json", "/load.js")
    points = [json.loads(line) for line in (out / "k6.json").read_text().splitlines()]
    return [one for one in points if one["type"] == "Point" and one["metric"] == "http_req_failed"]


def test_what_was_observed_holds_against_the_clients_own_log(generator: str, tmp_path: Path) -> None:
    before, known = inspected(), folders(SHOP_RESULTS)
    options = ("--peer-container", generator, "--duration", "30s", "--connect-timeout", "5s")
    watching = start("observe", "--compose", f"{PROJECT}/shop", *options)
    try:
        wait_until(lambda: measures(known), "the observation", watching)
        requests = load(generator, tmp_path)
    finally:
        output, _ = watching.communicate(timeout=HANG_S)
    assert watching.returncode == 0, output
    assert inspected() == before, "nothing of the target has changed"
    assert left_over() == []

    (folder,) = folders(SHOP_RESULTS) - known
    account = json.loads((folder / "derived/connections.json").read_text())
    target, peer = account["targets"]
    assert (target["peer"], peer["peer"]) == (False, True)
    (listener,) = [each for each in target["listeners"] if each["port"] == 8000]
    (server,) = [each for each in target["servers"] if each["server"] == listener["server"]]
    outcomes = server["outcomes"]

    # Each request of this load has a connection of its own.
    served = sum(one["data"]["value"] == 0 for one in requests)
    failed = len(requests) - served
    assert server["connections"] == len(requests)
    assert outcomes.get("answered", 0) + outcomes.get("recovered", 0) == served
    shut_out = outcomes.get("never-answered", 0) + outcomes.get("never-accepted", 0)
    assert shut_out + outcomes.get("given-up", 0) == failed
    assert shut_out > 0

    # Some that gave up had a SYN-ACK, and the full queue dropped all that came after it.
    dropped = server["causes"]["accept-queue-drop"]
    assert shut_out <= dropped <= failed
    assert account["unexplained"] == 0
    assert listener["limit"] == 5
    (behind,) = account["failed"]
    assert behind["failed"] == behind["never_answered"] + behind["never_accepted"] == dropped
    assert behind["failed"] + behind["given_up"] == failed
    assert behind["failed"] <= behind["most"]
    (advice,) = account["advice"]
    assert advice["limit"] == 5
    assert advice["program"] == "Python"
    assert advice["source"].startswith("https://docs.python.org/")

    # Nothing gets lost between the two.
    (crossing,) = account["crossings"]
    assert crossing["both"] == len(requests)
    assert crossing["peer_only"] == crossing["syns_lost_between"] == 0

    assert target["cost"]["packets_dropped"] == 0
    page = (folder / "report.html").read_text()
    assert "accept-queue-drop" in page
    assert b"GET /" not in (folder / f"raw/{SHOP}/collector/capture.pcap").read_bytes(), "no data was kept"
    analysed = connlab("analyse", str(folder))
    assert analysed.returncode == 0, analysed.stderr


@pytest.mark.usefixtures("shop")
def test_a_container_that_ends_leaves_what_was_recorded() -> None:
    known = folders(SHOP_RESULTS)
    watching = start("observe", "--container", SHOP, "--duration", "300s")
    try:
        wait_until(lambda: measures(known), "the observation", watching)
        docker("kill", SHOP)
    finally:
        output, _ = watching.communicate(timeout=HANG_S)
    assert watching.returncode == 3, output
    assert output.count(f"{SHOP} ended while it was observed; what was recorded so far is analysed") == 1
    assert "Traceback" not in output
    assert left_over() == []
    (folder,) = folders(SHOP_RESULTS) - known
    account = json.loads((folder / "derived/connections.json").read_text())
    assert account["lacks"][0] == f"{SHOP} ended while it was observed"
    assert {each["port"] for each in account["targets"][0]["listeners"]} >= {8000}


@pytest.mark.usefixtures("shop")
def test_an_interrupted_observation_is_analysed_and_leaves_nothing() -> None:
    known = folders(SHOP_RESULTS)
    watching = start("observe", "--container", SHOP, "--duration", "300s", "--capture", "off")
    try:
        wait_until(lambda: measures(known), "the observation", watching)
    finally:
        output = interrupt(watching)
    assert watching.returncode == 0, output
    assert "what was recorded so far is analysed" in output
    assert left_over() == []


# What root in a container would do: leave a program for any user of the host to run as root. It prints whom it tried.
PLANT = """
for folder in $(grep -lE '^(collector|tcpdump)' /proc/[0-9]*/cmdline | xargs -n 1 dirname); do
  tr '\\0' '\\n' <"$folder/cmdline" | head -n 1
  cp /bin/cat "$folder/root/raw/planted" 2>/dev/null && chmod 4755 "$folder/root/raw/planted"
done
true
"""


@pytest.fixture
def sees_the_host() -> Iterator[str]:
    """A container with the host's process namespace."""
    name = f"{PROJECT}-sees-the-host"
    labels = ("--label", "connlab.check=observed")
    docker("run", "--detach", "--init", "--pid", "host", "--name", name, *labels, "connlab/base", "sleep", "infinity")
    try:
        yield name
    finally:
        docker("rm", "--force", name)


def planted(container: str) -> tuple[set[str], Path]:
    """Let root in a container plant a program in its observation, which ends then; whom it tried, and the folder."""
    results = f"observed-{container}"
    known = folders(results)
    watching = start("observe", "--container", container, "--duration", "300s")
    try:
        wait_until(lambda: measures(known, results), "the observation", watching)
        (folder,) = folders(results) - known
        modes = stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE((folder / "raw").stat().st_mode)
        tried = set(docker("exec", "--user", "0", container, "sh", "-c", PLANT).split())
        found = [path.name for path in folder.rglob("planted")]
    finally:
        output = interrupt(watching)
    assert watching.returncode == 0, output
    assert found == []
    assert modes == (0o700, 0o755), "nobody else looks in while others write"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    return tried, folder


@pytest.mark.usefixtures("shop")
def test_root_in_an_observed_container_reaches_no_file_of_the_observation() -> None:
    tried, folder = planted(SHOP)
    assert tried == {"collector", "tcpdump"}
    assert "python3" in (folder / f"raw/{SHOP}/collector/samples.jsonl").read_text(), "its processes are sampled"


def test_a_container_with_the_host_s_processes_shows_none_and_reaches_no_file(sees_the_host: str) -> None:
    tried, folder = planted(sees_the_host)
    assert tried >= {"collector", "tcpdump"}
    lines = map(json.loads, (folder / f"raw/{sees_the_host}/collector/samples.jsonl").read_text().splitlines())
    assert [line["processes"] for line in lines if line["kind"] == "processes" and line["processes"]] == []


# Brings the loopback of a new namespace up, as `ip link set lo up` does where there is one.
LOOPBACK_UP = """
import fcntl, os, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))
os.execlp("python3", "python3", "-m", "http.server", "8000")
"""


def test_a_process_in_a_namespace_of_its_own_is_observed() -> None:
    known = folders("observed-process-*")
    server = ["unshare", "--net", "python3", "-c", LOOPBACK_UP]
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            served = Path(f"/proc/{process.pid}/cmdline")
            wait_until(lambda: "http.server" in served.read_text().split("\0"), "the server")
            sockets = Path(f"/proc/{process.pid}/net/tcp")
            wait_until(lambda: ":1F40 00000000:0000 0A" in sockets.read_text(), "the server listens on 8000")
            watched = connlab("observe", "--pid", str(process.pid), "--duration", "3s", "--json")
        finally:
            process.kill()
    assert watched.returncode == 0, watched.stderr
    assert left_over() == []
    (folder,) = folders("observed-process-*") - known
    (target,) = json.loads((folder / "derived/connections.json").read_text())["targets"]
    assert {each["port"]: each["limit"] for each in target["listeners"]} == {8000: 5}
    assert target["program"] == "Python's http.server or socketserver"
