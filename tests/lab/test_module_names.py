"""One name of a module means one thing, in `lab` and in `analysis` together."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Several modules may have one name where they are about the same thing: what that is.
SAME = {
    "actions": "what the lab does to a server under load: done by the run, told in a request's story",
    "advice": "the advice on a run: computed by the report, read for the terminal",
    "arms": "the arms of a scenario: planned by a series, compared by the analysis",
    "clocks": "the machines' clocks: looked at in a run, put on one by the analysis",
    "engine": "one engine behind `lab.engine.protocol`",
    "flows": "the records of the program `flows`: read as evidence, and the figures over them",
    "identities": "what two observers must have counted alike: balanced, and the figures about it",
    "k6": "k6's instances: let go together, and examined afterwards",
    "machine": "the machine that runs are made on",
    "manifest": "manifest.json: written by the run, read by the analysis",
    "names": "what an engine calls the parts of a run",
    "own_configuration": "a proxy's configuration of the user's own: as the scenario has it, and in its container",
    "own_script": "a k6 script of the user's own: as the scenario has it, in its container, and what its summary says",
    "printing": "what a command prints",
    "schema": "JSON Schemas, made from the models",
    "starting": "from nothing to instances that are ready",
    "sysctls": "settings of the kernel in a role's network namespace",
    "tables": "makes tables out of raw files: of requests, and of connections alone",
    "watch": "an engine's word of the end of an instance",
}


def test_a_name_means_one_thing() -> None:
    modules = defaultdict(list)
    for package in ("lab", "analysis"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if not file.stem.startswith("__"):
                modules[file.stem].append(str(file.relative_to(ROOT)))
    several = {name: files for name, files in modules.items() if len(files) > 1}
    assert {name: files for name, files in several.items() if name not in SAME} == {}
    assert sorted(SAME.keys() - several.keys()) == [], "no longer the name of several modules"
