"""A whole, healthy run of the accept queue's overflow, to change and write."""

from pathlib import Path

from tests.analysis.packets import make_packets
from tests.analysis.support import (
    RunFolder,
    backend_tick,
    k6_tick,
    knob,
    make_capture,
    make_client,
    make_manifest,
    make_samples,
    role,
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


def made_by(tool: str, run: RunFolder, logs: dict[str, str] | None = None, *, in_turns: bool = True) -> RunFolder:
    """The overflow as a load generator makes it that is not k6: its name, its files, and no record as k6 makes one."""
    old, new, manifest = "k6-1", f"{tool}-1", run.manifest
    declared = role("client", tool, {"instances": knob(1)}, logs=logs or {}, one_at_a_time=in_turns)
    manifest["path"] = [tool, *manifest["path"][1:]]
    manifest["roles"] = {tool: declared} | {name: one for name, one in manifest["roles"].items() if name != "k6"}
    manifest["instances"] = {tool: [new]} | {n: one for n, one in manifest["instances"].items() if n != "k6"}
    manifest["knobs"] = {n: one for n, one in manifest["knobs"].items() if not n.startswith("load.")}
    for key in ("addresses", "sysctls", "exits", "listeners"):
        if old in manifest.get(key, {}):
            manifest[key][new] = manifest[key].pop(old)
    run.samples[new] = run.samples.pop(old)
    run.samples[new].role = new
    run.clients.clear()
    run.texts.pop("k6-1/k6.log")
    return run
