"""A k6 script of one's own: found, read by k6 before anything starts, and refused with the place and a hint."""

import io
import json
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from rich.console import Console

from analysis.evidence.rawfiles import Places
from lab.console import listing
from lab.engines.compose.run_file import build_run_file
from lab.errors import BadInput
from lab.runs import capacity
from lab.runs.run import run
from lab.scenarios import own_script
from lab.scenarios.topology import topology_of
from lab.series import store
from tests.lab.engine import InMemoryEngine
from tests.lab.support import MINIMAL, Make, resolving

LOAD = 'load: {script: ./checkout.js, environment: {BASE_URL: "{target}/shop"}}\n'
OPTIONS = {
    "maxVUs": 20,
    "totalDuration": "1m30.5s",
    "thresholds": {
        "http_req_duration{name:pay}": ["p(95)<800"],
        "checks": [{"threshold": "rate>=0.99", "abortOnFail": True}],
    },
}
KNOBS = MINIMAL[MINIMAL.index("knobs:") : MINIMAL.index("predictions:")]
OWN = MINIMAL.replace(KNOBS, LOAD).replace("client.requests.ok == load.users", "client.checks.paid.rate == 1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "lib").mkdir(parents=True)
    (folder / "checkout.js").write_text("import './lib/pages.js';\nexport default () => {};\n")
    (folder / "lib" / "pages.js").write_text("import nowhere from './gone.js';\n")
    return folder


@pytest.fixture
def make(home: Path) -> Make:
    """Resolve a scenario with a script, with some of its text changed."""
    return resolving(home, OWN)


def test_a_script_is_the_workload_and_the_knobs_of_others_are_gone(make: Make) -> None:
    effective = make()
    assert effective.scenario.knobs.load.workload == "script"
    knobs = {knob for knob in effective.on_path() if knob.startswith("load.")}
    assert knobs == {f"load.{one}" for one in ("workload", "instances", "connect_timeout", "max_duration", "dashboard")}


@pytest.mark.parametrize(
    ("changes", "overrides", "said"),
    [
        ({"checkout.js": "chekout.js"}, (), r"scenario.yaml:6: there is no script .*did you mean 'checkout.js'"),
        (
            {},
            ("load.users=3",),
            r"load.users is set, but the options of the scenario's own script decide that; leave it",
        ),
        ({}, ("load.workload=spike",), r"load.workload is 'spike', but the scenario has a script of its own"),
        (
            {"BASE_URL": "K6_VUS"},
            (),
            r"scenario.yaml:6: load.environment sets K6_VUS, but the lab uses the names that begin with",
        ),
        (
            {LOAD: ""},
            ("load.workload=script",),
            r"the workload 'script' needs a k6 script of your own.*write load: {script",
        ),
        ({"client.checks.paid.rate == 1": "load.users == 1"}, (), r"there is no figure or knob load.users"),
    ],
)
def test_a_scenario_that_contradicts_its_script_is_refused(
    make: Make, changes: Mapping[str, str], overrides: tuple[str, ...], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        make(*overrides, changes=changes)


def test_k6_finds_the_script_s_folder_and_environment(make: Make, home: Path, tmp_path: Path) -> None:
    effective = make()
    topology = topology_of(effective)
    content = build_run_file(effective, topology, "r", Places(tmp_path), IPv4Network("198.18.0.0/24"))
    client, server = content["services"]["k6-1"], content["services"]["backend-1"]
    assert client["environment"]["BASE_URL"] == "http://backend-1:8080/shop"
    assert client["environment"]["CONNLAB_SCRIPT"] == "/script/checkout.js"
    assert client["volumes"][1]["source"] == str(home)
    assert client["volumes"][1]["read_only"] is True
    assert len(server["volumes"]) == 1


@pytest.mark.parametrize("linked", [False, True])
def test_a_script_outside_the_scenario_s_folder_is_refused(
    make: Make, home: Path, tmp_path: Path, *, linked: bool
) -> None:
    (tmp_path / "k6").mkdir()
    (home / "checkout.js").rename(tmp_path / "k6" / "checkout.js")
    if linked:
        (home / "checkout.js").symlink_to(tmp_path / "k6" / "checkout.js")
    with pytest.raises(BadInput, match=r"scenario.yaml:6: the script .*checkout.js leads out of the scenario's folder"):
        make(changes={} if linked else {"./checkout.js": "../k6/checkout.js"})


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            (
                "could not initialize '/tmp/own.js': could not load JS test 'file:///tmp/own.js': The moduleSpecifier"
                " \"./gone.js\" couldn't be found on local disk. Make sure that you've specified the right path"
            ),
            r"lib/pages.js:1: k6 refuses .*checkout.js: .*gone.js.* couldn't be found.*; k6 sees only",
        ),
        (
            (
                "could not initialize '/tmp/own.js': could not load JS test 'file:///tmp/own.js':"
                " file:///script/checkout.js: Line 2:24 Unexpected identifier (and 3 more errors)"
            ),
            r"checkout.js:2: k6 refuses .*checkout.js: Line 2:24 Unexpected identifier .*; correct the script",
        ),
        (
            (
                "GoError: stat /script/missing.json: no such file or directory\n\tat native\n"
                "\tat file:///script/checkout.js:1:13(12)\n"
            ),
            r"checkout.js:1: k6 refuses .*: stat missing.json: no such file or directory; k6 sees only",
        ),
        (
            (
                "There were problems with the specified script configuration:\n\t- executor default: function 'default'"
                " not found in exports\n"
            ),
            r"scenario.yaml:6: k6 refuses .*: executor default: function 'default' not found",
        ),
        ("open /script/checkout.js: permission denied", r"scenario.yaml:6: .*chmod -R a\+rX"),
        (
            'The moduleSpecifier "https://example.org/x.js" couldn\'t be retrieved from the resolved url',
            r"no way out: put the module beside the script",
        ),
        ("", "k6 said nothing"),
    ],
)
def test_what_k6_refuses_is_one_problem_with_its_place(make: Make, said: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refused:
        capacity.check_capacity(make(), InMemoryEngine(script_refused=said or "\n"))
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("import a from 'https://example.org/x.js';", "checkout.js:3"),
        ("} from 'https://example.org/x.js';", "checkout.js:3"),
        ("const a = require('https://example.org/x.js');", "checkout.js:3"),
        ("import './lib/../lib/pages.js';", "lib/pages.js:2"),
        ("import './lib/typed.ts';", "lib/typed.ts:1"),
        ("// import './other.js';", "scenario.yaml:6"),
    ],
)
def test_an_import_is_looked_for_in_the_script_and_in_what_it_imports(
    make: Make, home: Path, line: str, place: str
) -> None:
    imports = "import a from 'https://example.org/x.js';\n"
    (home / "another.js").write_text(imports)
    (home / "other.js").write_text(imports)
    (home / "lib" / "another.js").write_text(imports)
    (home / "lib" / "typed.ts").write_text(imports + "import '../checkout.js';\n")
    (home / "lib" / "pages.js").write_text(f"// {imports}{imports}")
    (home / "checkout.js").write_text(f"// {imports}// import './lib/pages.js'\n{line}\nexport default () => {{}};\n")
    said = 'The moduleSpecifier "https://example.org/x.js" couldn\'t be retrieved from the resolved url'
    with pytest.raises(BadInput, match=f"{place}: k6 refuses .*checkout.js"):
        capacity.check_capacity(make(), InMemoryEngine(script_refused=said))


def test_options_that_contradict_the_scenario_are_refused_before_anything_starts(make: Make) -> None:
    engine = InMemoryEngine(script_options=json.dumps({**OPTIONS, "maxVUs": 1}))
    with pytest.raises(BadInput) as refused:
        capacity.check_capacity(make("load.max_duration=1m", "load.instances=2"), engine)
    said = [str(problem) for problem in refused.value.problems]
    assert "the script's options let it run for 90.5 s, but load.max_duration is 60 s" in said[0]
    assert "the script's 1 users cannot be shared by 2 instances" in said[1]
    assert engine.did == []


def test_options_give_users_time_and_predictions() -> None:
    options = own_script.read_options(json.dumps(OPTIONS))
    assert (options.users_max, options.lasts_ms) == (20, 90_500)
    assert [(one.id, one.expression) for one in options.claims()] == [
        (
            "threshold-http-req-duration-name-pay-p-95-below-800",
            "client.thresholds.http_req_duration_name_pay_p_95_below_800",
        ),
        ("threshold-checks-rate-at-least-0-99", "client.thresholds.checks_rate_at_least_0_99"),
    ]


def test_thresholds_are_predictions_of_the_run(make: Make, elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    engine = InMemoryEngine(script_options=json.dumps(OPTIONS))
    at_once = make(changes={"predictions:": "drain: 0s\npredictions:"})
    folder = run(at_once, engine, ["connlab", "run"], Console(stderr=True))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert [one["id"] for one in manifest["predictions"]] == [
        "served",
        "threshold-http-req-duration-name-pay-p-95-below-800",
        "threshold-checks-rate-at-least-0-99",
    ]
    assert "load.users" not in manifest["knobs"]


def test_a_scenario_is_shown_with_its_script_in_place_of_a_time(make: Make) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    listing.print_details(console, listing.describe(make()))
    shown = console.export_text()
    assert "load by ./checkout.js, warm-up 0 requests" in shown
    assert "load.users" not in shown


@pytest.mark.parametrize(("file", "counts"), [("checkout.js", True), ("lib/pages.js", True), ("README.md", False)])
def test_a_series_knows_a_script_by_all_that_it_may_read(make: Make, home: Path, file: str, *, counts: bool) -> None:
    before = store.add_own_files("plan", [], [make()])
    (home / file).write_text("// changed\n")
    after = store.add_own_files("plan", [], [make()])
    assert before != "plan"
    assert (after != before) == counts
