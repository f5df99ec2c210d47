"""A k6 script of one's own: found, read by k6 before anything starts, and refused with the place and a hint."""

import io
import json
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from rich.console import Console

from analysis.evidence.rawfiles import Places
from lab import paths
from lab.console import listing
from lab.engines.compose.run_file import build_run_file
from lab.errors import BadInput
from lab.runs import capacity, user_files
from lab.runs.run import run
from lab.scenarios import own_script
from lab.scenarios.own_script import OwnScript
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
    knobs = {knob for knob in effective.on_path if knob.startswith("load.")}
    left = ("workload", "instances", "connect_timeout", "tls_resumption", "max_duration", "dashboard")
    assert knobs == {f"load.{one}" for one in left}


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
        ({"{target}": "{tagret}"}, (), r"scenario.yaml:6: the lab does not fill in \{tagret\}; write \{target\}"),
        (
            {"client.checks.paid.rate == 1": "client.users.failed == model.users_failed"},
            (),
            r"unknown: the model is of the lab's own work",
        ),
        ({"client.checks.paid.rate == 1": "load.users == 1"}, (), r"there is no figure or knob load.users"),
    ],
)
def test_a_scenario_that_contradicts_its_script_is_refused(
    make: Make, changes: Mapping[str, str], overrides: tuple[str, ...], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        make(*overrides, changes=changes)


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        (
            "check(answer(), {'is paid': (one) => one.ok });",
            "no check named paid; did you mean client.checks.is_paid.rate?",
        ),
        ("check(answer(), { Paid: (one) => one.ok, 'is paid': true });", None),
        ("check(answer(), {'is paid': true, [`${user} paid`]: true });", None),
        ("const made = {'is paid': true}; check(answer(), made);", None),
        ("check(answer(), {'home is 200': true });", None),
    ],
)
def test_a_check_that_a_script_makes_by_another_name_is_named(
    make: Make, home: Path, checks: str, said: str | None
) -> None:
    (home / "lib" / "pages.js").write_text(f"export default () => {{ {checks} }};\n")
    if said is None:
        make()
        return
    with pytest.raises(BadInput) as error:
        make()
    assert said in str(error.value)


def test_a_threshold_that_a_script_has_not_is_named(make: Make) -> None:
    names = ("client.thresholds.checks_rate_least_0_9", "client.thresholds.checks_rate_at_least_0_99")
    effective = make(changes={"client.checks.paid.rate == 1": " and ".join(names)})
    options = own_script.read_options(json.dumps(OPTIONS))
    (found,) = [one for one in own_script.contradictions(effective, options) if "prediction" in one.what]
    assert (found.hint, names[0] in found.what) == (f"did you mean '{names[1]}'?", True)


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


def test_a_link_that_leads_out_of_what_k6_sees_is_refused(make: Make, home: Path, tmp_path: Path) -> None:
    (tmp_path / "k6").mkdir()
    (home / "checkout.js").rename(tmp_path / "k6" / "checkout.js")
    (home / "checkout.js").symlink_to(tmp_path / "k6" / "checkout.js")
    with pytest.raises(BadInput, match=r"scenario.yaml:6: ./checkout.js leads out of .*shop, the folder .*symbolic"):
        make()


def test_k6_sees_the_nearest_folder_that_holds_all_that_a_script_names(make: Make, home: Path, tmp_path: Path) -> None:
    (tmp_path / "config.js").write_text("export { default } from './lib/other.js';\n")
    (tmp_path / "proto").mkdir()
    (tmp_path / "proto" / "x.proto").touch()
    (home / "k6").mkdir()
    script = home / "k6" / "load.js"
    script.write_text("import config from '../../config.js';\nclient.load(['defs'], '../../../proto/x.proto');\n")
    effective = make(changes={"./checkout.js": "k6/load.js"})
    found = own_script.find_script(effective, topology_of(effective))
    assert found is not None
    assert found.mounts() == {tmp_path: Path("/script")}
    assert found.settings()["CONNLAB_SCRIPT"] == "/script/shop/k6/load.js"
    assert {file.name for file in found.files()} == {"load.js", "config.js", "x.proto"}


def test_a_root_of_one_s_own_must_hold_all_that_the_script_names(make: Make, home: Path, tmp_path: Path) -> None:
    (tmp_path / "config.js").touch()
    (home / "checkout.js").write_text("import '../config.js';\n")
    with pytest.raises(BadInput, match=r"checkout.js:1: ../config.js leads out of load.root, .*shop; name a folder"):
        make(changes={"script:": "root: ., script:"})
    make(changes={"script:": "root: .., script:"})


def test_a_script_outside_the_repository_needs_a_root(make: Make, home: Path, tmp_path: Path) -> None:
    (home / ".git").mkdir()
    (tmp_path / "load.js").touch()
    with pytest.raises(BadInput, match=r"lie outside the repository .*shop; write load: \{root: ..\}"):
        make(changes={"./checkout.js": "../load.js"})


def test_the_home_of_a_user_is_never_shown_to_k6(
    make: Make, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "secret").touch()
    (home / "checkout.js").write_text("open('../secret');\n")
    with pytest.raises(BadInput, match=r"scenario.yaml:6: k6 would see all of .*; put the script"):
        make()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import { browser } from 'k6/browser';", r"pages.js:1: the script needs a browser \(k6/browser\)"),
        ("import sql from 'k6/x/sql';", r"pages.js:1: .* extension k6/x/sql, .*; build an image .* load.image"),
    ],
)
def test_what_the_lab_s_k6_lacks_is_refused_by_name(make: Make, home: Path, line: str, said: str) -> None:
    (home / "lib" / "pages.js").write_text(line)
    with pytest.raises(BadInput, match=said):
        make()


def test_an_image_of_one_s_own_may_have_extensions(make: Make, home: Path, tmp_path: Path) -> None:
    (home / "checkout.js").write_text("import sql from 'k6/x/sql';\n")
    effective = make(changes={"script:": "image: our-k6, script:"})
    content = build_run_file(effective, topology_of(effective), "r", Places(tmp_path), IPv4Network("198.18.0.0/24"))
    assert content["services"]["k6-1"]["image"] == "our-k6"


def test_an_image_of_one_s_own_that_is_not_here_is_named(make: Make) -> None:
    effective = make(changes={"script:": "image: our-k6, script:"})
    with pytest.raises(BadInput, match=r"scenario.yaml:6: .* there is no image our-k6 here; build it .* load.image"):
        capacity.check_capacity(effective, InMemoryEngine(script_refused="there is no image our-k6 here"))


REMOTE = "https://example.org/lib/index.js"


@pytest.fixture
def remote(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a script with a remote module; the folder is where the lab keeps those that it fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (home / "checkout.js").write_text(f"import {{\n  a,\n}} from '{REMOTE}';\n")
    return tmp_path / "cache" / "connlab" / "modules"


def test_a_remote_module_is_a_file_by_the_scenario(make: Make, home: Path, remote: Path) -> None:
    (home / "vendor").mkdir()
    (home / "vendor" / "index.js").write_text("import './deep.js';\n")
    exact = make(changes={"script:": f'modules: {{"{REMOTE}": ./vendor/index.js}}, script:'})
    found = own_script.find_script(exact, topology_of(exact))
    assert found is not None
    # What a remote module imports is remote as well.
    assert found.missing_modules() == {"https://example.org/lib/deep.js": f"{paths.shown(home)}/vendor/index.js:1"}
    (home / "vendor" / "deep.js").touch()
    by_folder = make(changes={"script:": 'modules: {"https://example.org/lib/": ./vendor}, script:'})
    found = own_script.find_script(by_folder, topology_of(by_folder))
    assert found is not None
    assert found.missing_modules() == {}
    assert json.loads(found.settings()["CONNLAB_MODULES"]) == {"https://example.org/lib/": "/script/vendor"}
    assert not remote.exists()


def test_remote_modules_are_fetched_before_the_run(
    make: Make, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {REMOTE: b"import './deep.js';", "https://example.org/lib/deep.js": b"export const a = 1;"}
    monkeypatch.setattr(user_files, "_fetch", texts.pop)
    effective = make()
    capacity.check_capacity(effective, InMemoryEngine())
    assert (remote / "example.org" / "lib" / "deep.js").read_text() == "export const a = 1;"
    content = build_run_file(effective, topology_of(effective), "r", Places(tmp_path), IPv4Network("198.18.0.0/24"))
    client = content["services"]["k6-1"]
    assert json.loads(client["environment"]["CONNLAB_MODULES"]) == {"https://": "/modules"}
    assert [one["target"] for one in client["volumes"]] == ["/raw", "/script", "/modules"]


def test_modules_that_cannot_be_fetched_are_all_named(
    make: Make, home: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not remote.exists()
    (home / "lib" / "pages.js").write_text("import 'https://example.net/b.js';\n")
    with (home / "checkout.js").open("a") as script:
        script.write("import './lib/pages.js';\n")

    def fail(_: str) -> bytes:
        raise OSError("no way out")

    monkeypatch.setattr(user_files, "_fetch", fail)
    said = (
        r"checkout.js:3: .* \(no way out\): https://example.net/b.js, https://example.org/lib/index.js; .* "
        r"load: \{modules: \{\"https://example.net/b.js\": ./vendor/example.net/b.js, .*\}\}"
    )
    with pytest.raises(BadInput, match=said):
        capacity.check_capacity(make(), InMemoryEngine())


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ('{"http://example.org/": ./lib}', "takes modules from https:// alone"),
        ('{"https://example.org/x.js": ./lib}', "there is no file .*lib; "),
        ('{"https://example.org/": ./gone}', "there is no folder .*gone; "),
    ],
)
def test_a_mapping_that_leads_nowhere_is_refused(make: Make, modules: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        make(changes={"script:": f"modules: {modules}, script:"})


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            (
                "could not initialize '-': could not load JS test 'file:///-': The moduleSpecifier"
                " \"./gone.js\" couldn't be found on local disk. Make sure that you've specified the right path"
            ),
            r"lib/pages.js:1: k6 refuses .*checkout.js: .*gone.js.* couldn't be found.*; k6 sees only",
        ),
        (
            (
                "could not initialize '-': could not load JS test 'file:///-':"
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
            r"no way out: keep the module beside the script, and name it in load.modules",
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
    make: Make, home: Path, line: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = "import a from 'https://example.org/x.js';\n"
    (home / "another.js").write_text(imports)
    (home / "other.js").write_text(imports)
    (home / "lib" / "another.js").write_text(imports)
    (home / "lib" / "typed.ts").write_text(imports + "import '../checkout.js';\n")
    (home / "lib" / "pages.js").write_text(f"// {imports}{imports}")
    (home / "checkout.js").write_text(f"// {imports}// import './lib/pages.js'\n{line}\nexport default () => {{}};\n")
    monkeypatch.setattr(OwnScript, "missing_modules", lambda _: {})
    said = 'The moduleSpecifier "https://example.org/x.js" couldn\'t be retrieved from the resolved url'
    with pytest.raises(BadInput, match=f"{place}: k6 refuses .*checkout.js"):
        capacity.check_capacity(make(), InMemoryEngine(script_refused=said))


def test_options_that_contradict_the_scenario_are_refused_before_anything_starts(make: Make) -> None:
    engine = InMemoryEngine(script_options=json.dumps({**OPTIONS, "maxVUs": 1}))
    with pytest.raises(BadInput) as refused:
        capacity.check_capacity(make("load.max_duration=1m", "load.instances=2"), engine)
    said = [str(problem) for problem in refused.value.problems]
    assert "the script's options let it run for 60.5 s, but load.max_duration is 60 s" in said[0]
    assert "the script's 1 users cannot be shared by 2 instances" in said[1]
    assert engine.did == []


def test_the_longest_time_of_k6_s_own_default_fits_into_the_lab_s(make: Make) -> None:
    # Ten minutes, and half a minute to end gracefully: what a script has that names only its iterations.
    engine = InMemoryEngine(script_options=json.dumps({**OPTIONS, "totalDuration": "10m30s"}))
    capacity.check_capacity(make(), engine)


def test_a_script_of_which_less_time_ends_gracefully_may_not_last_longer_for_it(make: Make) -> None:
    options = {**OPTIONS, "totalDuration": "1m18s", "scenarios": {"shop": {"gracefulStop": "10s"}}}
    with pytest.raises(BadInput, match=r"let it run for 68 s, but load\.max_duration is 60 s"):
        capacity.check_capacity(make("load.max_duration=1m"), InMemoryEngine(script_options=json.dumps(options)))


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
