"""Scenes of one request each, of which many are derived as one run.

A derivation takes its time whatever it holds. So each test tells its scene twice. The first time, up to its question
for the cause, declares the scene. Scenes whose run-wide settings are the same then stand in one run: each with
instances, addresses, samples and a capture of its own. The second time the answer is there, and the test judges it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.derivation import judge
from analysis.diagnosis.health import Evidence
from analysis.diagnosis.joins import Joined
from analysis.verdicts.parquet_files import REQUESTS
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import END_S, RunFolder, at_us, make_capture, make_dial, make_request, raw_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Record = dict[str, Any]
# Cause and evidence, by a test's id.
Found = dict[str, tuple[str, str]]

BACKEND, NGINX, CLIENT = "172.18.0.2:8080", "172.18.0.4:8080", "172.18.0.3:41000"
# When the one request of a scene begins; the accept queue of the tests' run is empty again.
BEGIN_S = 54.0

_NETWORK = "172.18.0."
# What a manifest says of each instance; the rest is run-wide.
_OF_INSTANCES = ("addresses", "sysctls", "listeners", "exits")
_OWN = (*_OF_INSTANCES, "instances", "actions")


class _DeclaredError(Exception):
    """A scene is complete: its test asks for the cause."""


@dataclass
class Scene:
    """One request, slower than a second or failed, and what the observers saw of it."""

    run: RunFolder
    server: str = BACKEND
    observer: str = "backend-1"
    capture: Capture = field(default_factory=Capture)
    is_complete: bool = False
    found: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        client = self.run.clients["k6-1"]
        client.requests, client.dials = [], []
        self.run.manifest["slow_ms"] = 1_000
        self.run.captures = {self.observer: self.capture}

    def with_found(self, found: tuple[str, str] | None) -> Scene:
        self.found = found
        return self

    def dial(self, *, error_kind: str | None = None, lasted_s: float = 0.0002, **changes: object) -> Record:
        dial = make_dial(1, failed=error_kind is not None, duration_ms=1000 * lasted_s)
        dial |= {"time_us": at_us(BEGIN_S), "local": CLIENT, "remote": self.server, "error_kind": error_kind, **changes}
        self.run.clients["k6-1"].dials.append(dial)
        return dial

    def request(self, lasted_s: float, *, status: int = 0, connected: bool = True, **changes: object) -> Record:
        request = make_request(1, 1000 * lasted_s if status else None, BEGIN_S)
        failed = not 200 <= status < 400
        request |= {"end_us": at_us(BEGIN_S + lasted_s), "status": status, "error_code": 1000 if failed else 0}
        request |= {"remote": self.server if connected else None, **changes}
        self.run.clients["k6-1"].requests.append(request)
        return request

    def connection(self, server: str | None = None, client: str = CLIENT) -> Connection:
        return Connection(self.capture, client, server or self.server)

    def cause(self) -> tuple[str, str]:
        """The cause of the request, and the evidence for it, with the names that the scene has for its instances."""
        if self.found is None:
            ended_us = max([at_us(END_S), *(time_us for time_us, _ in self.capture.packets)])
            account = make_capture(len(self.capture.packets)) | {"ended_us": ended_us}
            self.run.lines[f"{self.observer}/capture.json"] = [account]
            self.is_complete = True
            raise _DeclaredError
        return self.found

    def settings(self) -> str:
        """What it shares with all scenes of its run: the run-wide settings, and how busy the machine was."""
        manifest = {key: value for key, value in self.run.manifest.items() if key not in _OWN}
        hosts = [each.get("host") for samples in self.run.samples.values() for each in samples.ticks + samples.slow]
        return json.dumps([manifest, hosts], sort_keys=True)


@pytest.fixture(scope="module")
def kinds(pickled_run: bytes, pickled_proxied_run: bytes) -> dict[str, bytes]:
    """What the scenes begin with, by the fixture that gives it."""
    return {"scene": shortened(pickled_run), "proxied": shortened(pickled_proxied_run)}


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, kinds: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What the analysis finds in the scenes of all tests of a module, by the test's id."""
    own = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    makers = {"scene": lambda: make_scene(kinds), "proxied": lambda: make_proxied(kinds)}
    return find(declared(own, makers), tmp_path_factory)


@pytest.fixture
def scene(request: pytest.FixtureRequest, kinds: dict[str, bytes], found: Found) -> Scene:
    return make_scene(kinds).with_found(found.get(request.node.nodeid))


@pytest.fixture
def proxied(request: pytest.FixtureRequest, kinds: dict[str, bytes], found: Found) -> Scene:
    return make_proxied(kinds).with_found(found.get(request.node.nodeid))


def make_scene(kinds: dict[str, bytes]) -> Scene:
    return Scene(copied(kinds["scene"]))


def make_proxied(kinds: dict[str, bytes]) -> Scene:
    run = copied(kinds["proxied"])
    run.lines["nginx/access.jsonl"] = []
    scene = Scene(run, NGINX, "nginx")
    scene.dial()
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001)
    return scene


def shortened(pickled: bytes) -> bytes:
    """A run with the samples of its beginning and from shortly before the scene on: no cause looks between."""
    run: RunFolder = pickle.loads(pickled)  # noqa: S301  our own
    for samples in run.samples.values():
        samples.lose_ticks(1, BEGIN_S - 2)
        for kind in {each["kind"] for each in samples.slow}:
            samples.lose_readings(kind, 1, BEGIN_S - 2)
    return pickle.dumps(run)


def copied(pickled: bytes) -> RunFolder:
    run: RunFolder = pickle.loads(pickled)  # noqa: S301  our own
    # No place to write to: it is written as a part of another.
    run.folder = Path(os.devnull)
    return run


def declared(tests: Iterable[pytest.Function], makers: Mapping[str, Callable[[], Scene]]) -> dict[str, Scene]:
    """The scenes of tests, by their ids. What goes wrong before a scene is complete, does so again in its test."""
    scenes: dict[str, Scene] = {}
    for test in tests:
        maker = next((name for name in makers if name in test.fixturenames), None)
        if maker is None:
            continue
        scene = makers[maker]()
        parameters = test.callspec.params if hasattr(test, "callspec") else {}
        with contextlib.suppress(Exception):
            test.function(**{maker: scene}, **parameters)
        if scene.is_complete:
            scenes[test.nodeid] = scene
    return scenes


def find(scenes: Mapping[str, Scene], folders: pytest.TempPathFactory) -> Found:
    """Derive scenes, those of the same settings as one run."""
    runs: defaultdict[str, dict[str, Scene]] = defaultdict(dict)
    for test, scene in scenes.items():
        runs[scene.settings()][test] = scene
    found: Found = {}
    for together in runs.values():
        found |= _find_together(together, folders.mktemp("scenes"))
    return found


def _find_together(scenes: Mapping[str, Scene], folder: Path) -> Found:
    manifest: Record = {}
    for number, scene in enumerate(scenes.values(), start=1):
        _add(manifest, scene.run, number, folder)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    run = judge(folder).run
    joined = run.joined
    # One bad capture would make all others of its run count for less.
    assert not [each for each in run.health.problems if Evidence.PACKETS in each.spoils]
    assert isinstance(joined, Joined)
    rows = joined.rows(f"SELECT instance, cause, evidence FROM ({REQUESTS})")  # noqa: S608  names of our own
    assert len(rows) == len({row["instance"] for row in rows}) == len(scenes)
    of_client = {row["instance"]: (row["cause"], row["evidence"]) for row in rows}
    found: Found = {}
    for number, test in enumerate(scenes, start=1):
        cause, evidence = of_client[f"k6-{number}"]
        found[test] = (cause, _as_in_scene(evidence, number))
    return found


def _add(manifest: Record, run: RunFolder, number: int, folder: Path) -> None:
    """Write a scene's files into a run, and its instances into the run's manifest."""
    for name, content in run.files().items():
        instance, _, file = name.partition("/")
        own = _own_name(instance, number)
        path = raw_file(folder, f"{own}/{file}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_own_network(content, number).replace(f'"{instance}"', f'"{own}"'))
    for instance, capture in run.captures.items():
        path = raw_file(folder, f"{_own_name(instance, number)}/capture.pcap")
        path.write_bytes(capture.in_network(number).content())
    if not manifest:
        manifest |= {key: value for key, value in run.manifest.items() if key not in _OWN}
        manifest |= {key: {} for key in _OF_INSTANCES} | {"instances": defaultdict(list), "actions": []}
    for role, instances in run.manifest["instances"].items():
        manifest["instances"][role] += [_own_name(instance, number) for instance in instances]
    for action in run.manifest.get("actions", []):
        of = {key: _own_name(action[key], number) for key in ("instance", "was") if action.get(key)}
        manifest["actions"].append(action | of)
    for key in _OF_INSTANCES:
        of_instances = json.loads(_own_network(json.dumps(run.manifest[key]), number))
        manifest[key] |= {_own_name(instance, number): value for instance, value in of_instances.items()}


def _own_name(instance: str, number: int) -> str:
    return f"{instance.removesuffix('-1')}-{number}"


def _own_network(text: str, number: int) -> str:
    return text.replace(_NETWORK, f"172.18.{number}.")


def _as_in_scene(text: str, number: int) -> str:
    """Give the instances and addresses in a text the names that the scene has for them."""
    named = re.sub(rf"\b(k6|backend)-{number}\b", r"\1-1", text)
    return re.sub(rf"\bnginx-{number}\b", "nginx", named).replace(f"172.18.{number}.", _NETWORK)
