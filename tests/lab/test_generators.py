"""A load generator in a container of its own, in place of k6: found, refused, and started when the load begins."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, get_args

import pytest

from analysis.evidence import result_files
from analysis.evidence.rawfiles import Places
from formats.role import Role
from lab.engines.compose.run_file import build_run_file
from lab.errors import BadInput
from lab.scenarios.model import Results
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import capture_mode, topology_of
from tests.lab.support import MINIMAL, Make, resolving

LOAD = 'load: {wrk: "-t1 -c9 -d1s {target}/api/delay?ms=5"}\n'
KNOBS = MINIMAL[MINIMAL.index("knobs:") : MINIMAL.index("predictions:")]
PATH = next(line for line in MINIMAL.splitlines() if line.startswith("path:"))
OWN = (
    MINIMAL.replace(KNOBS, LOAD)
    .replace(PATH, "path: [wrk, backend]")
    .replace("client.requests.ok == load.users", "ledger.connections.backend.failed == 0")
)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Resolve a scenario with a generator, with some of its text changed."""
    (tmp_path / "shop").mkdir()
    for file in ("plan.jmx", "a.py"):
        (tmp_path / "shop" / file).touch()
    return resolving(tmp_path / "shop", OWN)


def part(found: ResolvedScenario, instance: str) -> Any:  # noqa: ANN401 # of a run's file
    places = Places(Path("/results/shop/1"))
    content = build_run_file(found, topology_of(found), "1", places, IPv4Network("198.18.0.0/24"))
    return content["services"][instance]


def test_a_generator_is_a_client_in_a_container_of_its_own_with_the_target_filled_in(make: Make) -> None:
    found = make()
    made = part(found, "wrk-1")
    assert made["image"] == "connlab/generators"
    assert made["entrypoint"] == ["wrk"]
    assert made["command"] == ["-t1", "-c9", "-d1s", "http://backend-1:8080/api/delay?ms=5"]
    assert [volume["target"] for volume in made["volumes"]] == ["/raw", "/load"]
    assert made["network_mode"] == "service:collector-wrk-1"
    assert [capture_mode(found, role) for role in found.scenario.path] == ["off", "headers"]
    knobs = {knob for knob in found.on_path if knob.startswith("load.")}
    assert knobs == {"load.workload", "load.max_duration"}


@pytest.mark.parametrize(
    ("typed", "runs"),
    [
        ("-t plan.jmx -Jhost={host}", "jmeter -n -j /raw/jmeter.log -t plan.jmx -Jhost=backend-1"),
        ("-n -t plan.jmx", "jmeter -j /raw/jmeter.log -n -t plan.jmx"),
        ("jmeter --nongui -t plan.jmx -j /raw/own.log", "jmeter --nongui -t plan.jmx -j /raw/own.log"),
    ],
)
def test_a_command_line_is_taken_as_it_is_pasted(make: Make, typed: str, runs: str) -> None:
    made = part(make(changes={LOAD: f"load: {{jmeter: '{typed}'}}\n", "[wrk, ": "[jmeter, "}), "jmeter-1")
    assert " ".join([*made["entrypoint"], *made["command"]]) == runs


def test_any_image_makes_a_load_and_says_which_file_has_its_requests(make: Make) -> None:
    any_load = (
        "load: {image: acme/load:1, command: [run, '{host}', '{port}'],"
        " results: {file: out.csv, format: vegeta}, environment: {URL: '{target}/'}}\n"
    )
    found = make(changes={LOAD: any_load, "[wrk, backend]": "[generator, backend]"})
    made = part(found, "generator-1")
    assert (made["image"], made["command"]) == ("acme/load:1", ["run", "backend-1", "8080"])
    assert made["environment"]["URL"] == "http://backend-1:8080/"
    role: Role = found.roles["generator"]
    assert (role.kind, role.logs) == ("client", {"out.csv": "vegeta"})


def test_a_named_generator_of_another_image_is_its_program_whatever_that_image_starts(make: Make) -> None:
    changes = {LOAD: "load: {locust: '-f a.py -H {target}', image: acme/locust:2}\n", "[wrk,": "[locust,"}
    made = part(make(changes=changes), "locust-1")
    assert (made["entrypoint"], made["command"]) == (["locust"], ["-f", "a.py", "-H", "http://backend-1:8080"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"[wrk, backend]": "[k6, backend]"}, "begins with k6; write [wrk, backend]"),
        ({LOAD: "load: {vegeta: attack}\n"}, "the lab has no vegeta of its own: name an image that has it"),
        ({LOAD: "load: {wrk: -c1, ab: -n1}\n"}, "a load is one of script, image, wrk"),
        ({LOAD: "load: {environment: {A: b}}\n"}, "a load takes one of script, image, wrk"),
        ({LOAD: "load: {script: ./a.js, command: [b]}\n"}, "leave the other keys out"),
        ({LOAD: "load: {wrk: -c1, command: [b]}\n"}, "'command' goes with 'image' alone"),
        ({"{target}": "{traget}"}, "scenario.yaml:6: the lab does not fill in {traget}; write {target}"),
        ({"{target}": "-s post.lua {target}"}, "scenario.yaml:6: there is no post.lua in the scenario's folder"),
        ({"{target}": "-s ../post.lua {target}"}, "post.lua leads out of the scenario's folder, and wrk sees no"),
        ({"{target}": "'{target}"}, "has a quote or a backslash without its partner"),
        (
            {LOAD: "load: {siege: '-c9 {target}'}\n", "[wrk,": "[siege,"},
            "scenario.yaml:6: unknown key 'load.siege'; the lab knows wrk, ab, hey, jmeter, vegeta, locust and gatling",
        ),
        ({LOAD: "load: {jmetre: '-t a.jmx'}\n", "[wrk,": "[jmetre,"}, "'load.jmetre'; did you mean 'jmeter'?"),
        ({LOAD: "load: {jmeter: '-l r.jtl'}\n", "[wrk,": "[jmeter,"}, "cannot write r.jtl (-l): it can only read"),
        (
            {LOAD: "load: {jmeter: '-l /raw/a.jtl', results: {file: b.jtl, format: jmeter}}\n", "[wrk,": "[jmeter,"},
            "load.results names b.jtl, and jmeter writes /raw/a.jtl; write file: a.jtl",
        ),
        ({"{target}/api": "http://localhost:5000/api"}, "leads elsewhere: the run's network has no way out"),
        ({"{target}/api": "{url}/api"}, "scenario.yaml:6: the lab does not fill in {url}; write {target}"),
        ({"-d1s": "-d10m"}, "wrk is to run for 600 s (-d), and load.max_duration is 600 s: the lab would end it"),
        (
            {"{target}/": "-t200 -c100 {target}/"},
            "scenario.yaml:6: wrk refuses 200 threads (-t) with 100 connections (-c); raise the second, or lower the",
        ),
        ({"{target}/": "-t20 {target}/", "-c9 ": ""}, "20 threads (-t) with 10 connections (its default)"),
        ({LOAD: "load: {ab: '-c 10 {target}/'}\n", "[wrk,": "[ab,"}, "10 requests at once (-c) with 1 requests in"),
        ({LOAD: "load: {hey: '-n20 {target}/'}\n", "[wrk,": "[hey,"}, "50 requests at once (its default) with 20"),
        ({"?ms=5": "?ms=5 > /raw/wrk.txt"}, "no shell reads the command, so wrk gets '>' as an argument; leave it"),
        ({"?ms=5": "?ms=5 | tee x"}, "wrk gets '|' as an argument; write load: {image: …, command: [sh, -c, "),
        ({" {target}/api/delay?ms=5": ""}, "wrk gets no URL; write {target}/ at the end"),
        ({LOAD: "load: {ab: '-n9 {target}'}\n", "[wrk,": "[ab,"}, "a URL without a path; write {target}/"),
        (
            {LOAD: "load: {hey: '-n9 {target}', results: {file: a, format: vegeta}}\n", "[wrk,": "[hey,"},
            "hey writes no file that tells of each request",
        ),
        (
            {LOAD: "load: {jmeter: '-t plan.jmx', results: {file: a, format: jmeter}}\n", "[wrk,": "[jmeter,"},
            "jmeter writes no results without -l; add -l /raw/a",
        ),
        (
            {LOAD: "load: {image: a, command: [b, '>', c]}\n", "[wrk,": "[generator,"},
            "so generator gets '>' as an argument",
        ),
        (
            {LOAD: LOAD + "services: {my-gw: {image: a}}\n", "[wrk, ": "[wrk, my-gw, "},
            "'my-gw' cannot stand on the path: figures and knobs have its name, where a - would subtract; name the",
        ),
        (
            {LOAD: "load: {jmeter: '-l /raw/a', results: {file: /raw/a, format: jmeter}}\n", "[wrk,": "[jmeter,"},
            "load.results.file takes a name of letters, digits, _, . and -, not '/raw/a'; write 'a'",
        ),
        ({LOAD: LOAD + "services: {gw: {image: a, ready: health}}\n"}, "takes a path that begins with /, not 'hea"),
        ({"path:": "services: {wrk: {image: a}}\npath:"}, "'wrk' is the load generator's name, and a service has"),
    ],
)
def test_a_load_that_cannot_be_is_refused(make: Make, tmp_path: Path, changes: dict[str, str], said: str) -> None:
    (tmp_path / "post.lua").touch()  # beside the scenario's folder
    with pytest.raises(BadInput) as error:
        make(changes=changes)
    assert said in str(error.value)
    assert "unknown role" not in str(error.value)


def test_a_setting_of_k6_is_refused_with_another_generator(make: Make) -> None:
    with pytest.raises(BadInput, match=r"load\.users is set, but the load is made by wrk, which does not read it"):
        make("load.users=3")


@pytest.mark.parametrize(
    "load",
    [
        "{ab: '-n9 -p post.json -g /raw/times {target}/'}",
        "{wrk: '-d1s http://backend:8080/'}",
        "{wrk: \"-d9m -H 'Referer: http://a.example/' {target}/?a='|'\"}",
        "{image: acme/load, command: [sh, -c, 'load {target} | tee /raw/a > /raw/b']}",
        "{wrk: '-t8 -c1k {target}/'}",
        "{ab: '-c9 -t2 {target}/'}",
        "{hey: '-n5 -z 2s {target}/'}",
        "{hey: '-n9 -c3 -D ./post.json -o csv -d {\"a\":1} {target}/'}",
        "{vegeta: 'attack -targets=stdin -output /raw/r', image: acme/vegeta}",
        "{locust: '-f post.json,/opt/locustfile.py --html=/raw/a.html', image: acme/locust}",
        "{image: acme/load, command: [a, '{user}', '${HOST}', -s, none.lua]}",
    ],
)
def test_what_may_be_is_left_to_the_program(make: Make, tmp_path: Path, load: str) -> None:
    (tmp_path / "shop" / "post.json").touch()
    name = "generator" if "command" in load else load[1 : load.index(":")]
    make(changes={LOAD: f"load: {load}\n", "[wrk,": f"[{name},"})


PREDICTED = "ledger.connections.backend.failed == 0"
RESULTS = "load: {jmeter: -l /raw/r, results: {file: r, format: jmeter}}\n"


@pytest.mark.parametrize(
    ("changes", "figure", "instead"),
    [
        (
            {},
            "client.requests.failed",
            "use ledger.connections.backend.failed or name a file of its requests by load.re",
        ),
        ({"[wrk,": "[wrk, nginx,"}, "client.requests.status.502", "use access.nginx.status.502 or name a file"),
        ({}, "client.latency_ms.max", "use flows.backend.request_ms.max or name a file of its requests"),
        ({}, "ledger.cause.accept_queue_drop", "use ledger.connections.backend.cause.accept_queue_drop or"),
        ({}, "client.dials.ok", "only k6 records this, and wrk makes the load; use flows.backend.established"),
        ({}, "client.checks.paid.failed", "only k6 records this, and wrk makes the load"),
        ({LOAD: RESULTS, "[wrk,": "[jmeter,"}, "flows.backend.requests.total", "itself; use client.requests.total"),
        ({"{target}": "-s /a.lua {target}", "[wrk,": "[wrk, nginx,"}, "flows.nginx.requests.total", "use access.nginx"),
    ],
)
def test_a_figure_that_the_program_never_gives_is_named_with_what_tells_the_same(
    make: Make, changes: dict[str, str], figure: str, instead: str
) -> None:
    with pytest.raises(
        BadInput, match=rf"scenario.yaml:\d+: prediction 'served': column 1: {figure} would be"
    ) as error:
        make(changes={**changes, PREDICTED: f"{figure} == 0"})
    assert instead in str(error.value)
    make(changes={**changes, PREDICTED: f"{figure} == 0\n    when: load.max_duration > 600000"})


def test_with_results_requests_are_predicted_as_those_of_k6(make: Make) -> None:
    make(
        changes={
            LOAD: RESULTS,
            "[wrk,": "[jmeter,",
            PREDICTED: "client.requests.failed == ledger.cause.accept_queue_drop",
        }
    )


def test_a_scenario_may_name_each_format_of_results_that_is_read() -> None:
    assert get_args(Results.model_fields["format"].annotation) == result_files.FORMATS
