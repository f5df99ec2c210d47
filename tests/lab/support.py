"""Scenarios as text, manifests, and a `docker` that answers as a test says: for the ways in which it fails."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from formats import manifest
from formats.manifest import SCHEMA, Host, LabVersion, Manifest, utc_now
from lab import paths
from lab.cli import main
from lab.runs.run_context import RunContext
from lab.scenarios import places
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario

Make = Callable[..., ResolvedScenario]
Write = Callable[..., Path]
Open = Callable[..., RunContext]
Go = Callable[..., Manifest]
# Exit code, stdout and stderr of a command.
Run = Callable[..., tuple[int, str, str]]

MINIMAL = """\
schema: 1
title: A title
experiment: B1
question: A question?
path: [k6, backend]
knobs:
  backend:
    accept_count: 1
  load:
    workload: users
    users: 3
predictions:
  - id: served
    description: All are served.
    expression: client.requests.ok == load.users
"""
# What `docker image ls` says where all of the lab's images stand.
IMAGES = "".join(f"connlab/{name} sha256:{name}\n" for name in ("collector", "k6", "backend", "nginx", "gateway"))


def yaml_with(text: str, replacements: Mapping[str, str]) -> str:
    """Replace parts of a scenario's text."""
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new)
    return text


THROUGH_NGINX = yaml_with(MINIMAL, {"[k6, backend]": "[k6, nginx, backend]"})


def resolving(home: Path, text: str) -> Make:
    """Resolve a scenario of one's own in this folder, with some of its text changed."""

    def resolved(*overrides: str, changes: Mapping[str, str] = {}) -> ResolvedScenario:
        (home / places.FILE).write_text(yaml_with(text, changes))
        return resolve(str(home), overrides)

    return resolved


def connlab(*arguments: str) -> int:
    """Give a command line to the lab; return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return int(end.value.code or 0)


def manifest_of(effective: ResolvedScenario, run: str, **more: Any) -> Manifest:  # noqa: ANN401 # any of its fields
    """The manifest of a run of a scenario, without what a test does not read."""
    fields: dict[str, Any] = {
        "contract": SCHEMA,
        "status": "running",
        "command": ["connlab"],
        "started": utc_now(),
        "lab": LabVersion(version="0", python="3"),
        "host": Host(kernel="6.18", distribution="d", cpus=2, memory_kb=1),
        "path": list(effective.scenario.path),
        "roles": {role: effective.registry.roles[role] for role in effective.scenario.path},
        "instances": {},
        "knobs": {},
        "tolerance": effective.scenario.tolerance,
        "predictions": [],
    }
    return Manifest(scenario=effective.slug, run=run, **fields | more)


def the_run(elsewhere: Path) -> Manifest:
    """The manifest of the one run there is."""
    (file,) = elsewhere.glob("results/one/2*/manifest.json")
    return manifest.load_manifest(file.parent)


class FakeDocker:
    """A `docker` on PATH that plays by rules and writes down what it was asked."""

    def __init__(self, folder: Path) -> None:
        self._script = folder / "docker"
        self._log = folder / "docker.log"
        self.rules: list[str] = []
        self.otherwise()

    def says(
        self,
        pattern: str,
        stdout: str = "",
        *,
        stderr: str = "",
        exit_code: int = 0,
        seconds: float = 0,
        after: str = "",
    ) -> None:
        """Answer arguments that match a shell pattern; earlier rules come first.

        `after`: only once there was a call with this text in it; before, nothing is said.
        """
        waits = f"sleep {seconds}; " if seconds else ""
        said = f"{waits}printf '%s' {shlex.quote(stdout)}; printf '%s' {shlex.quote(stderr)} >&2"
        log = shlex.quote(str(self._log))
        awaited = f"grep --quiet --fixed-strings -e {shlex.quote(after)} {log} || exit 0; " if after else ""
        self.does(f"{pattern}) {awaited}{said}; exit {exit_code} ;;")

    def stays(self, pattern: str, stdout: str = "") -> None:
        """Say this and go on until killed, as the command does that tells of events."""
        self.does(f"{pattern}) printf '%s' {shlex.quote(stdout)}; exec sleep infinity ;;")

    def does(self, rule: str) -> None:
        """Go by a rule of the shell's `case`, after all earlier ones."""
        self.rules.append(rule)
        self.otherwise()

    def otherwise(self) -> None:
        """Write the script: what no rule answers succeeds and says nothing."""
        # Not by bash, which takes twice as long to start.
        lines = ["#!/bin/sh", f'printf "%s\\n" "$*" >>{shlex.quote(str(self._log))}', 'case "$*" in']
        self._script.write_text("\n".join([*lines, *self.rules, "esac", ""]))
        self._script.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """Every call's arguments, in order."""
        return self._log.read_text().splitlines() if self._log.exists() else []


def extended(services: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The services of a run's file with what they extend, as Compose puts them together (test_compose.py has it)."""
    base = YAML(typ="safe", pure=True).load(paths.COMPOSE_FILE.read_bytes())["services"]
    made = {}
    for name, service in services.items():
        own = {key: value for key, value in service.items() if key != "extends"}
        common = {key: value for key, value in base[service["extends"]["service"]].items() if key != "profiles"}
        lists = {key: [*common[key], *own[key]] for key in common.keys() & own.keys() if isinstance(own[key], list)}
        maps = {key: {**common[key], **own[key]} for key in common.keys() & own.keys() if isinstance(own[key], dict)}
        made[name] = {**common, **own, **lists, **maps}
    return made
