"""A whole, healthy run of the accept queue's overflow, to change and write."""

from pathlib import Path

from tests.analysis.packets import make_packets
from tests.analysis.support import (
    RunFolder,
    backend_tick,
    k6_tick,
    make_capture,
    make_client,
    make_manifest,
    make_samples,
    tomcat_scrapes,
)


def make_run(folder: Path) -> RunFolder:
    return RunFolder(
        folder=folder,
        manifest=make_manifest(),
        samples={
            "k6-1": make_samples("k6-1", k6_tick, "k6", port=None),
            "backend-1": make_samples("backend-1", backend_tick, "java"),
        },
        clients={"k6-1": make_client()},
        lines={"backend-1/tomcat.jsonl": tomcat_scrapes(), "backend-1/capture.json": [make_capture()]},
        captures={"backend-1": make_packets()},
        texts={"k6-1/k6.log": 'time="x" level=warning msg="Request Failed"\n'},
    )


def observed(run: RunFolder) -> RunFolder:
    """The overflow as somebody sees it who has the backend alone: no client, no log, no prediction."""
    run.manifest |= {
        "scenario": "observed-shop", "path": [], "roles": {}, "knobs": {}, "predictions": [], "exits": {},
        "title": "Observed: shop",
        "instances": {"backend-1": ["backend-1"]},
        "addresses": {"backend-1": ["172.18.0.2", "127.0.0.1"]},
        "observed": {
            "for_ms": 52_000, "capture": "headers", "capture_max_mb": 256, "interface": "any",
            "connect_timeout_ms": None,
            "targets": [{"instance": "backend-1", "kind": "container", "name": "shop",
                         "program": {"name": "Tomcat", "backlog": 100, "setting": "acceptCount", "how": "in server.xml",
                                     "source": "https://example.org/tomcat"}}],
        },
    }  # fmt: skip
    run.clients.clear()
    run.lines = {name: lines for name, lines in run.lines.items() if name == "backend-1/capture.json"}
    return run
