"""A whole run to change and write, direct or through nginx."""

import pickle
from pathlib import Path

import pytest

from tests.analysis.packets import make_upstream_packets
from tests.analysis.results import Results
from tests.analysis.support import (
    ANSWERED,
    END_S,
    SYSCTLS,
    RunFolder,
    make_access,
    make_capture,
    make_samples,
    quiet_tick,
    stub_status,
    upstream_tick,
)
from tests.analysis.whole import make_run
from tests.remembered import remembered

__all__ = ["remembered"]


@pytest.fixture(scope="session")
def whole_run() -> RunFolder:
    """The healthy run, made once; tests take copies."""
    return make_run(Path())


@pytest.fixture(scope="session")
def pickled_run(whole_run: RunFolder) -> bytes:
    """The healthy run, from which a copy is made in an eighth of the time of a deepcopy."""
    return pickle.dumps(whole_run)


@pytest.fixture(scope="session")
def pickled_proxied_run(pickled_run: bytes) -> bytes:
    """The run of `proxied_run`."""
    run: RunFolder = pickle.loads(pickled_run)  # noqa: S301  our own
    run.manifest["path"] = ["k6", "nginx", "backend"]
    run.manifest["instances"]["nginx"] = ["nginx"]
    run.manifest["sysctls"]["nginx"] = dict(SYSCTLS)
    run.manifest["exits"]["nginx"] = 0
    run.manifest["addresses"]["nginx"] = ["172.18.0.4"]
    run.set_knobs(nginx__upstream_keepalive=0)
    run.samples["nginx"] = make_samples("nginx", quiet_tick, "nginx")
    run.samples["backend-1"] = make_samples("backend-1", upstream_tick, "java")
    run.lines["nginx/access.jsonl"] = [
        make_access(second, status) | {"sent_http_connection": "keep-alive" if status == 200 else "close"}
        for second, status in ANSWERED
    ]
    run.lines["nginx/stub_status.jsonl"] = [
        # It counts the requests for its own page as well.
        stub_status(second, second + sum(ended <= second for ended, _ in ANSWERED))
        for second in range(1, round(END_S))
    ]
    run.texts["nginx/error.log"] = ""
    del run.captures["backend-1"], run.lines["backend-1/capture.json"]
    run.captures["nginx"] = make_upstream_packets()
    run.lines["nginx/capture.json"] = [make_capture(len(run.captures["nginx"].packets))]
    return pickle.dumps(run)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """An empty folder of results, which grows by runs and series."""
    return Results(tmp_path / "results")


@pytest.fixture
def run(pickled_run: bytes, tmp_path: Path) -> RunFolder:
    """A run to change and write."""
    return copied(pickled_run, tmp_path)


@pytest.fixture
def proxied_run(pickled_proxied_run: bytes, tmp_path: Path) -> RunFolder:
    """The same through an nginx that answered three requests and refused one with 502, and logged one before.

    Its connections to the backend are whole; of the clients' there is no packet.
    """
    return copied(pickled_proxied_run, tmp_path)


def copied(pickled: bytes, tmp_path: Path) -> RunFolder:
    copy: RunFolder = pickle.loads(pickled)  # noqa: S301  our own
    copy.folder = tmp_path / "run"
    copy.folder.mkdir(exist_ok=True)
    return copy
