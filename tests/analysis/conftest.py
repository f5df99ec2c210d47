"""A whole run to change and write, direct or through nginx."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import settings

from tests.analysis.packets import Capture
from tests.analysis.support import (
    END_S,
    SYSCTLS,
    RunFolder,
    make_access,
    make_capture,
    make_samples,
    quiet_tick,
    stub_status,
)
from tests.analysis.whole import make_run

# A busy machine is no failure of the code.
settings.register_profile("connlab", deadline=None)
settings.load_profile("connlab")


@pytest.fixture(scope="session")
def whole_run() -> RunFolder:
    """The healthy run, made once; tests take copies."""
    return make_run(Path())


@pytest.fixture
def run(whole_run: RunFolder, tmp_path: Path) -> RunFolder:
    """A run to change and write."""
    copy = deepcopy(whole_run)
    copy.folder = tmp_path / "run"
    copy.folder.mkdir()
    return copy


@pytest.fixture
def proxied_run(run: RunFolder) -> RunFolder:
    """The same through an nginx that answered three requests and refused one with 502, and logged one before."""
    run.manifest["path"] = ["k6", "nginx", "backend"]
    run.manifest["instances"]["nginx"] = ["nginx"]
    run.manifest["sysctls"]["nginx"] = dict(SYSCTLS)
    run.manifest["exits"]["nginx"] = 0
    run.samples["nginx"] = make_samples("nginx", quiet_tick, "nginx")
    statuses = [(5.0, 200), (11.0, 200), (32.0, 200), (53.2, 200), (54.0, 502)]
    run.lines["nginx/access.jsonl"] = [
        make_access(second, status) | {"sent_http_connection": "keep-alive" if status == 200 else "close"}
        for second, status in statuses
    ]
    run.lines["nginx/stub_status.jsonl"] = [
        # It counts the requests for its own page as well.
        stub_status(second, second + sum(ended <= second for ended, _ in statuses))
        for second in range(1, round(END_S))
    ]
    run.texts["nginx/error.log"] = ""
    run.lines["nginx/capture.json"] = [make_capture(0)]
    run.captures["nginx"] = Capture()
    return run
