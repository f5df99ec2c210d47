"""Whatever stands in a file that a user writes, the lab reads it or says by file and line what is wrong with it."""

import json
import re
import shutil
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.evidence.rawfiles import Places
from formats import role as role_file
from formats import series as series_file
from lab import paths
from lab.cli import comparisons
from lab.engines.compose.run_file import build_run_file, write_run_file
from lab.errors import BadInput
from lab.reading import document
from lab.roles import declared_roles
from lab.scenarios.knobs import CATALOGUE, KnownKnob, environment
from lab.scenarios.resolve import resolve
from lab.scenarios.topology import topology_of
from lab.series import matrices
from tests.analysis.results import Results
from tests.lab.support import MINIMAL
from tests.mutations import files

_SCENARIOS = [
    MINIMAL.encode(),
    *((paths.SCENARIOS / slug / "scenario.yaml").read_bytes() for slug in ("keep-alive-to-servers", "backend-restart")),
]
_MATRIX = b"""schema: 1
title: A title
experiment: B1
question: A question?
scenarios: [one]
axes:
  load.users: [3, 4]
  backend.accept_count: [1, 2]
baseline: {load.users: 3, backend.accept_count: 1}
repetitions: 2
seed: 7
"""
_MATRICES = [_MATRIX, *(file.read_bytes() for file in sorted((paths.SCENARIOS / "matrices").glob("*.yaml")))]


def _short_role(role: str) -> bytes:
    """A role of the lab's with the knobs that it needs, and else one of each type: the file is read many times."""
    content: Any = document.parse((paths.ROOT / role / role_file.FILE).read_bytes(), "f").content
    rest = json.dumps({key: value for key, value in content.items() if key != "knobs"})
    kept: dict[str, Any] = {}
    for name, knob in content["knobs"].items():
        if f'"{name}"' in rest or knob["type"] not in {one["type"] for one in kept.values()}:
            kept[name] = knob
    return json.dumps(content | {"knobs": kept}).encode()


_ROLES = [_short_role(name) for name in ("haproxy", "backend", "k6")]


def _contents(texts: list[bytes]) -> list[object]:
    return [document.parse(text, "f").content for text in texts]


def _refused_with_its_place(refused: BadInput, *files: Path) -> None:
    """The message names a file, and a line unless it is about the whole."""
    names = "|".join(re.escape(file.name) for file in files)
    assert refused.problems
    for problem in refused.problems:
        where = str(problem.where)
        assert re.search(rf"({names})(:\d+)?$", where), str(problem)
        assert not re.search(r"\n(?!  )", str(problem)), str(problem)


@given(files(_contents(_SCENARIOS), _SCENARIOS))
def test_any_scenario_is_read_or_refused_with_its_place(content: bytes) -> None:
    with TemporaryDirectory() as name:
        file = Path(name) / "one" / "scenario.yaml"
        file.parent.mkdir()
        file.write_bytes(content)
        try:
            resolve(str(file.parent))
        except BadInput as refused:
            _refused_with_its_place(refused, file)


_OWN = b"""\
schema: 1
title: A shop
question: Who is served?
path: [k6, web]
services:
  web: {compose: docker-compose.yml, service: web, port: 80, environment: {A: b}, ignore: [ports]}
  other:
    build: {context: ./app, dockerfile: Dockerfile, args: {SLIM: true}}
    ready: [ask, me]
    command: [serve]
    volumes: ["./app:/etc/shop:ro"]
    user: image
    writable: [/var/cache/shop]
    capabilities: [NET_BIND_SERVICE]
    knobs: {places: {env: PLACES, default: 8, limit: connections}, mode: {default: a, values: [a, b]}}
knobs: {load: {path: /}}
predictions: [{id: served, description: All are served., expression: client.requests.failed == 0}]
"""
_COMPOSE = b"""\
services:
  web:
    build: {context: ./app, dockerfile: Dockerfile, target: slim, args: ["A=b"]}
    command: serve --fast
    environment: ["MODE=${MODE:-plain}"]
    volumes: ["./app:/etc/web", "data:/var/lib/web"]
    depends_on: {cache: {condition: service_started}}
    healthcheck: {test: [CMD, check, me]}
    ports: ["80:80"]
  cache:
    image: redis:7
    user: "999"
    environment: {A: 1, B: true}
    cap_add: [CHOWN]
    tmpfs: /run
    networks: [inside]
    healthcheck: {test: [CMD-SHELL, "check me"]}
    depends_on: [store]
  store: {image: "postgres", healthcheck: {test: pg_isready}}
networks: {inside: {}}
volumes: {data: {}}
"""


def _own_services(scenario: bytes, compose: bytes) -> None:
    with TemporaryDirectory() as name:
        home = Path(name) / "shop"
        (home / "app").mkdir(parents=True)
        (home / "scenario.yaml").write_bytes(scenario)
        (home / "docker-compose.yml").write_bytes(compose)
        try:
            found = resolve(str(home))
            content = build_run_file(found, topology_of(found), "r", Places(home), IPv4Network("198.18.0.0/24"))
            write_run_file(content, home / "compose.run.yaml")
        except BadInput as refused:
            _refused_with_its_place(refused, home / "scenario.yaml", home / "docker-compose.yml")


_READ = pytest.mark.skipif(shutil.which("docker") is None, reason="Docker Compose itself reads the file")


@_READ
def test_the_services_that_are_changed_are_good_ones() -> None:
    _own_services(_OWN, _COMPOSE)


@_READ
@given(files(_contents([_COMPOSE]), [_COMPOSE]))
def test_any_compose_file_is_taken_over_or_refused_with_its_place(content: bytes) -> None:
    _own_services(_OWN, content)


@_READ
@given(files(_contents([_OWN]), [_OWN]))
def test_any_service_of_a_scenario_is_read_or_refused_with_its_place(content: bytes) -> None:
    _own_services(content, _COMPOSE)


@given(files(_contents(_MATRICES), _MATRICES))
def test_any_matrix_is_read_or_refused_with_its_place(content: bytes) -> None:
    with TemporaryDirectory() as name:
        file = Path(name) / "matrices" / "two.yaml"
        file.parent.mkdir()
        file.write_bytes(content)
        one = Path(name) / "one" / "scenario.yaml"
        one.parent.mkdir()
        one.write_text(MINIMAL)
        try:
            paths.SCENARIOS = Path(name)
            matrices.plan_matrix("two")
        except BadInput as refused:
            _refused_with_its_place(refused, file)


@pytest.mark.parametrize("content", _ROLES)
def test_the_roles_that_are_changed_are_good_ones(content: bytes, tmp_path: Path) -> None:
    (tmp_path / role_file.FILE).write_bytes(content)
    declared_roles.load_role(tmp_path / role_file.FILE)


def test_a_scenario_of_a_name_that_no_system_takes_is_unknown(tmp_path: Path) -> None:
    file = tmp_path / "matrices" / "two.yaml"
    file.parent.mkdir()
    file.write_bytes(_MATRIX.replace(b"[one]", b"[" + b"x" * 300 + b"]"))
    paths.SCENARIOS = tmp_path
    with pytest.raises(BadInput, match=r"two\.yaml:5: unknown scenario 'xxx"):
        matrices.plan_matrix("two")


@given(files(_contents(_ROLES), _ROLES))
def test_any_role_is_read_or_refused_with_its_place(content: bytes) -> None:
    with TemporaryDirectory() as name:
        file = Path(name) / role_file.FILE
        file.write_bytes(content)
        try:
            declared_roles.load_role(file)
        except BadInput as refused:
            _refused_with_its_place(refused, file)


_LOAD = [knob for knob in CATALOGUE.values() if knob.group == "load" and knob.env]
_UNITS = ("", "ms", "s", "m", "h", ".5s", "e3", "_0", " ", "\n", "x")
_TEXTS = (
    st.text(max_size=20)
    | st.builds("{}{}".format, st.integers() | st.integers(0, 9_999), st.sampled_from(_UNITS))
    | st.sampled_from(["true", "false", "yes", "GET", "POST", "/", "/a b", "/\x00", "/é", "'/x'", "client", "server"])
)


@given(st.sampled_from(_LOAD), _TEXTS)
def test_whatever_a_knob_of_the_load_takes_k6_reads_as_the_lab_does(knob: KnownKnob, text: str) -> None:
    """k6/lib/knobs.js takes the text of the environment as it is: by Number(), less an `ms`, or as a word."""
    with TemporaryDirectory() as name:
        file = Path(name) / "one" / "scenario.yaml"
        file.parent.mkdir()
        file.write_text(MINIMAL)
        try:
            effective = resolve(str(file.parent), (f"{knob.name}={text}",))
        except BadInput as refused:
            assert all("\n" not in str(problem) for problem in refused.problems)  # noqa: PT017  it may be taken as well
            return
    value = effective.values[knob.name]
    given_to_k6 = environment(effective.scenario.knobs, "load")[str(knob.env)]
    if isinstance(value, bool):
        assert given_to_k6 == str(value).lower()
    elif isinstance(value, int):
        assert given_to_k6 == (f"{value}ms" if knob.is_duration else str(value))
        assert 0 <= value < 2**53
    else:
        assert re.fullmatch("[!-~]+", given_to_k6)
        assert given_to_k6 == value


@cache
def _results() -> tuple[TemporaryDirectory[str], Path, bytes]:
    """Results with a series of two arms: their folder, the series' and what its file says."""
    results = TemporaryDirectory()
    folder = Results(Path(results.name)).series(
        {"few": [{}], "many": [{"figures": {"client.latency_ms.mean": 900.0}}]},
        {"slower": "arms.many.client.latency_ms.mean < arms.few.client.latency_ms.mean"},
        figures=["client.latency_ms.mean"],
    )
    return results, folder, (folder / series_file.FILE).read_bytes()


_SERIES = st.deferred(lambda: files([json.loads(_results()[2])], [_results()[2]]))


@given(_SERIES)
def test_any_series_is_compared_or_refused(content: bytes) -> None:
    _, folder, _ = _results()
    file = folder / series_file.FILE
    file.write_bytes(content)
    with suppress(ValueError):
        series_file.load_series(folder)
    try:
        comparisons.compare_series(str(folder))
    except BadInput as refused:
        assert "\n" not in str(refused)  # noqa: PT017  it may be compared as well


def test_a_series_without_cells_is_refused() -> None:
    _, folder, content = _results()
    (folder / series_file.FILE).write_text(json.dumps(json.loads(content) | {"cells": []}))
    with pytest.raises(BadInput, match=r"series\.json: cells: .* run the series again"):
        comparisons.compare_series(str(folder))
