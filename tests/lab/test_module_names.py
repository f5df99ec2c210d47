"""One name of a module, or of a class, means one thing, in `lab` and in `analysis` together."""

from __future__ import annotations

import ast
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
    "own_script": "a k6 script of the user's own: as the scenario has it, and what its summary says",
    "printing": "what a command prints",
    "schema": "JSON Schemas, made from the models",
    "starting": "from nothing to instances that are ready",
    "sysctls": "settings of the kernel in a role's network namespace",
    "tables": "makes tables out of raw files: of requests, and of connections alone",
    "watch": "an engine's word of the end of an instance",
}

# The same for classes: what the lab declares or writes, the analysis reads, and the model needs.
SAME_CLASSES = {
    "a part of a scenario, in its file and in the file of a series or a run": "Action Budget Prediction Published"
    " Series Stop Tolerance",
    "a part of manifest.json, written by the run and read by the analysis": "Guess Host Listener Look Manifest Observed"
    " Phase Program Removed Target",
    "a part of series.json, written by the series and read by the analysis": "Axis Cell Fingerprint Level Plan"
    " PlannedRun Search",
    "a part of a role's declaration, and what of it is read or needed elsewhere": "Knob Limits Page Role Value",
    "a verb's answer in each engine": "Watch",
    "what to change: in a run, and for a system that was watched": "Advice",
    "a line over time: of a run, and of a system that was watched": "Chart",
    "captures: their knobs, and how each went": "Capture",
    "a configuration of the user's own: declared, asked for, and found in its folder": "OwnConfiguration",
    "what is wrong: with the input, and with evidence": "Problem",
    "what is wrong with a server: in its configuration, and drilled": "Fault",
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


def test_a_class_s_name_means_one_thing() -> None:
    classes = defaultdict(list)
    for package in ("lab", "analysis"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes[node.name].append(str(file.relative_to(ROOT)))
    several = {name: files for name, files in classes.items() if len(files) > 1}
    same = " ".join(SAME_CLASSES.values()).split()
    assert {name: files for name, files in several.items() if name not in same} == {}
    assert sorted(set(same) - several.keys()) == [], "no longer the name of several classes"
