"""The command line: exit codes, one clear message, and JSON for programs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from analysis.verdicts import derived
from analysis.verdicts.verdict_file import Verdict
from lab import paths
from lab.cli import app, build, main
from lab.errors import LabError
from lab.scenarios import places
from tests.lab.engine import InMemoryDocker
from tests.lab.outcome_support import verdict_of
from tests.lab.support import MINIMAL, Run, Write, yaml_with
from tests.lab.test_series_arms import ARMS, COMPARED


def test_a_command_that_reads_no_run_waits_for_nothing_that_does() -> None:
    loaded = "import sys, lab.cli; print(sorted({'numpy', 'duckdb', 'scipy', 'jinja2'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "accept-queue-overflw"],
            "unknown scenario 'accept-queue-overflw'; did you mean 'accept-queue-overflow'?",
        ),
        (
            ["run", "./etc"],
            "there is no scenario.yaml in etc; 'connlab new ./etc' (make new SCENARIO=./etc) writes one",
        ),
        (
            ["run", "./etc/scenario.yaml"],
            "there is no scenario.yaml in etc; 'connlab new ./etc' (make new SCENARIO=./etc) writes one",
        ),
        *(
            (["run", path], "the lab has one of this name: make run SCENARIO=accept-queue-overflow")
            for path in ("./accept-queue-overflow", "./accept-queue-overflow/scenario.yaml")
        ),
        (["run", ""], "the command names no scenario; 'connlab list'"),
        (
            ["run", "E2"],
            "not of a scenario; its scenarios: gateway-pool-sized, gateway-pool-throughput",
        ),
        (
            ["show", "c2"],
            "'c2' is the name of an experiment, not of a scenario; its scenarios: connection-per-request-four",
        ),
        (["run", "Z9"], "'Z9' cannot be a scenario's name"),
        (
            ["run", "long-polling-border"],
            "'long-polling-border' is a matrix, not a scenario; make matrix MATRIX=long-polling-border",
        ),
        (["run", "accept-queue-overflow", "--set", "backend.acept_count=1"], "did you mean 'backend.accept_count'?"),
        (["show", "accept-queue-overflow", "--set", "load.connect_timeout=5"], "'5' has no unit: write 5s or 5ms"),
        (["analyse", "nowhere"], "no run at 'nowhere'"),
        (["run"], "Missing argument 'scenario'; 'connlab run -h' shows what it takes"),
        (["rn"], "No such command 'rn'; did you mean 'run'?\n"),
        (["walk"], "No such command 'walk'; 'connlab --help' shows the commands"),
        (
            ["show", "accept-queue-overflow", "--set", f"load.users={10**20 - 1}"],
            "load.users must be at most 1000000, not 99999999999999999999",
        ),
        (["show", "accept-queue-overflow", "--set", "load.users=010"], "load.users takes a whole number, not '010'"),
        (["matrix", "nowhere/x.yaml"], "there is no file 'nowhere/x.yaml'"),
        (["run", "accept-queue-overflow", "--sett", "x"], "'connlab run -h' shows what it takes"),
        (["--sett"], "No such option: --sett; 'connlab --help' shows the commands"),
        (["observe", "--pid", "self"], "Invalid value for '--pid'"),
        (["observe", "--container", "x", "--duration", "60"], "'60' is not a duration"),
    ],
)
def test_bad_input_is_refused_with_code_2(connlab: Run, arguments: list[str], message: str) -> None:
    code, out, err = connlab(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_refusal_reaches_a_program_as_json(connlab: Run) -> None:
    code, out, _ = connlab("run", "accept-queue-overflow", "--set", "load.users=x", "--json")
    said = json.loads(out)
    assert (code, said["exit_code"]) == (2, 2)
    assert said["problems"] == [
        {"what": "load.users takes a whole number, not 'x'", "where": "--set load.users=x", "hint": None}
    ]


def test_the_list_has_every_scenario(connlab: Run) -> None:
    code, out, _ = connlab("list", "--json")
    assert code == 0
    assert "accept-queue-overflow" in [one["scenario"] for one in json.loads(out)]
    assert "accept-queue-overflow" in connlab("list")[1]


def test_a_folder_that_cannot_be_a_scenario_s_name_is_named_beside_the_others(
    connlab: Run, write_scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_scenario()
    folder = write_scenario(slug="Scratch")
    for function in ("slugs", "misnamed"):
        monkeypatch.setattr(getattr(places, function), "__defaults__", (folder,))
    monkeypatch.setattr(paths, "SCENARIOS", folder)
    code, out, err = connlab("list")
    assert code == 2
    assert "one " in out
    assert (
        f"connlab: {folder}/Scratch: the name of a scenario's folder can have only small letters, digits and hyphens"
        in err
    )
    assert "'Scratch' cannot be a scenario's name" in connlab("show", "Scratch")[2]


def test_show_tells_which_arms_a_prediction_is_about(connlab: Run) -> None:
    _, out, _ = connlab("show", "abort-on-overflow")
    assert "\nsilence (arms full-0, full-1): With either setting" in out
    assert "\npatience (arm race-0): With 0" in out
    assert "\nunexplained: The ledger" in out


@pytest.mark.parametrize("command", [("show", "one"), ("run", "one", "--dry-run")])
def test_a_scenario_s_own_words_are_shown_as_they_are(
    connlab: Run, write_scenario: Write, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    words = "Who on [k6, backend] asks for [/api/delay] :warning:?"
    text = yaml_with(MINIMAL, {"A question?": f'"{words}"'})
    monkeypatch.setattr(paths, "SCENARIOS", write_scenario(text + COMPARED + ARMS))
    code, out, _ = connlab(*command)
    assert (code, words in out) == (0, True)


def test_show_marks_what_was_asked_for(connlab: Run) -> None:
    code, out, _ = connlab("show", "accept-queue-overflow", "--set", "load.users=9", "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["knobs"]["load.users"] == {
        "value": 9,
        "unit": None,
        "source": "set",
        "meaning": "Users, over all instances",
    }
    assert shown["knobs"]["backend.accept_count"]["source"] == "scenario"
    assert {"value": 30_000, "unit": "ms"}.items() <= shown["knobs"]["load.connect_timeout"].items()
    known = {name: value for one in shown["predictions"] for name, value in one["known"].items()}
    assert known["model.users_failed"] == 6
    assert "model.users_failed = 6" in connlab("show", "accept-queue-overflow", "--set", "load.users=9")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "accept-queue-overflow"],
        ["run", "--check", "accept-queue-overflow"],
        ["matrix", "--check", "burst-places"],
        [
            "search",
            "--check",
            "--knob=load.users",
            "--condition=client.users.failed == 0",
            "--from=1",
            "--to=9",
            "accept-queue-healthy",
        ],
    ],
)
def test_a_sysctl_that_this_kernel_lacks_is_refused_before_a_run(connlab: Run, arguments: list[str]) -> None:
    assert connlab(*arguments)[0] == 0
    code, _, err = connlab(*arguments, "--set", "kernel.k6.net.ipv4.tcp_syn_retires=3")
    assert code == 2
    assert err.count("no sysctl 'net.ipv4.tcp_syn_retires'; did you mean 'net.ipv4.tcp_syn_retries'?") == 1


@pytest.mark.usefixtures("fake_docker")
def test_a_check_names_what_is_valid_and_runs_nothing(
    connlab: Run, fake_docker: InMemoryDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(paths.SCENARIOS / "accept-queue-healthy", tmp_path / "mine")
    for command, said in (
        (["run", "accept-queue-overflow"], "accept-queue-overflow: valid\n"),
        (["run", "abort-on-overflow"], "abort-on-overflow: valid\n"),
        (["run", "accept-queue-overflow", "--json"], ""),
        (["drill"], "the drill: valid\n"),
    ):
        assert connlab(*command, "--check") == (0, said, "")
    assert "burst-places: valid\n" in connlab("matrix", "--check")[1]
    monkeypatch.chdir(tmp_path)
    assert connlab("run", "./mine", "--check") == (0, "./mine: valid\n", "")
    monkeypatch.chdir("mine")
    assert connlab("run", ".", "--check") == (0, ".: valid\n", "")
    assert "--check" in connlab("run", "-h")[1]
    assert connlab("run", "accept-queue-overflow", "--new", "--check")[0] == 2
    assert connlab("matrix", "burst-plces", "--check")[0] == 2
    assert connlab("run", "--check", "--", "--help")[0] == 2
    assert fake_docker.calls == []


@dataclass
class Own:
    """A file of the user's own in a scenario, what its program says of it, and how the lab says that."""

    written: str
    asked: str
    says: str
    refusal: str


SCRIPT = Own(
    "load: {script: ./own.js}\n",
    "run *connlab/k6 inspect",
    "file:///script/own.js: Line 1:9 Unexpected identifier",
    "shop/own.js:1: k6 refuses shop/own.js: own.js: Line 1:9 Unexpected identifier; correct the script",
)
CONFIGURATION = Own(
    "nginx: {config: ./own.conf}\nknobs: {load: {users: 3}}\n",
    "run *connlab/nginx test",
    'nginx: [emerg] unknown directive "lsten" in /etc/nginx/own.conf:1',
    'shop/own.conf:1: nginx refuses it: unknown directive "lsten"; correct it;'
    " if the lab's image of nginx lacks its module or is older, name one that has it by image: …",
)


@pytest.mark.parametrize("own", [SCRIPT, CONFIGURATION])
def test_what_its_program_refuses_is_refused_without_a_run_if_the_program_can_be_asked(
    connlab: Run, fake_docker: InMemoryDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: Own
) -> None:
    monkeypatch.chdir(tmp_path)
    knobs = MINIMAL[MINIMAL.index("knobs:") : MINIMAL.index("predictions:")]
    text = yaml_with(MINIMAL, {knobs: own.written, "backend]": "nginx, backend]", "== load.users": "> 0"})
    (tmp_path / "shop").mkdir()
    proxy = "http { server { listen 80; location / { proxy_pass http://backend:8080; } } }\n"
    for file, content in (("scenario.yaml", text), ("own.js", ""), ("own.conf", proxy)):
        (tmp_path / "shop" / file).write_text(content)

    def ends() -> set[tuple[int, str]]:
        ended = [connlab(*command, "./shop") for command in (["run", "--check"], ["show"], ["plan"])]
        return {(code, err) for code, _, err in ended}

    fake_docker.says(own.asked, stderr=own.says, exit_code=1)
    assert ends() == {(2, f"connlab: {own.refusal}\n")}
    fake_docker.forget()
    fake_docker.says(own.asked, stderr=own.says, exit_code=1)
    fake_docker.says("image inspect *", "0.0.1\n")  # it is built anew before a run
    assert ends() == {(0, "")}
    fake_docker.forget()
    fake_docker.says("run *", stderr="docker: Error response from daemon: No such image", exit_code=125)
    assert ends() == {(0, "")}
    fake_docker.forget()
    fake_docker.says("*", stderr="Cannot connect to the Docker daemon", exit_code=1)
    assert ends() == {(0, "")}


def test_values_that_each_arm_has_of_its_own_are_not_shown_as_known(connlab: Run) -> None:
    shown = json.loads(connlab("show", "abort-on-overflow", "--json")[1])
    assert not any(one["known"] for one in shown["predictions"])


def test_an_arm_with_a_path_of_its_own_takes_the_knobs_of_that(connlab: Run) -> None:
    command = ("run", "slow-clients", "--set", "nginx.worker_processes=2", "--check")
    assert connlab(*command, "--arm", "through-nginx") == (0, "slow-clients: valid\n", "")
    assert "nginx is not on the path" in connlab(*command, "--arm", "direct")[2]


def test_the_schema_is_printed(connlab: Run) -> None:
    assert json.loads(connlab("schema")[1])["title"] == "connlab scenario"


@pytest.mark.usefixtures("elsewhere")
def test_a_failed_engine_is_the_machine_s_failure(connlab: Run, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("*", stderr="Cannot connect to the Docker daemon", exit_code=1)
    code, out, err = connlab("clean")
    assert (code, out) == (4, "")
    assert "connlab: hint: start the Docker Engine" in err


@pytest.mark.usefixtures("fake_docker")
def test_an_error_of_the_lab_s_own_has_no_traceback_unless_asked_for(
    connlab: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("lab.doctor.examine", broken)
    code, _, err = connlab("doctor")
    assert code == 4
    assert err == "connlab: internal error: KeyError: 'x'\nconnlab: hint: CONNLAB_DEBUG=1 shows where\n"
    monkeypatch.setenv("CONNLAB_DEBUG", "1")
    with pytest.raises(KeyError):
        main(["doctor"])


VERDICT = verdict_of({"a": "true", "b": "unknown"}, scenario="one", verdict="reproduced")
VERDICT["predictions"][0] |= {"measured": {"x": 1}}
VERDICT["predictions"][1] |= {"measured": {"y": None}, "why": "gaps"}


@pytest.fixture
def recorded(tmp_path: Path, derived_run: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run's folder whose verdict is already derived; deriving itself is analysis's to test."""
    folder = derived_run(tmp_path / "results" / "one" / "r")
    (folder / Verdict.file).write_text(json.dumps(VERDICT))
    (folder.parent / "latest").symlink_to("r")
    monkeypatch.setattr("analysis.derivation.analyse", lambda run, _: derived.read(run, Verdict))
    monkeypatch.setattr("lab.runs.run_results.write_report", lambda _: None)
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    return folder


@pytest.mark.parametrize(("verdict", "code"), [("reproduced", 0), ("not-reproduced", 1), ("inconclusive", 3)])
def test_the_exit_code_is_the_verdict_s(connlab: Run, recorded: Path, verdict: str, code: int) -> None:
    (recorded / "derived" / "verdict.json").write_text(json.dumps({**VERDICT, "verdict": verdict}))
    ended, out, _ = connlab("analyse", str(recorded))
    assert ended == code
    assert f"verdict: {verdict} (" in out
    assert "true    a: So.\n        x = 1\n" in out
    assert "unknown b: So.\n        y = unknown\n        why: gaps\n" in out


def test_a_folder_that_is_no_run_s_is_distinguished_from_a_missing_one(connlab: Run, recorded: Path) -> None:
    (recorded.parent / "latest").unlink()
    code, _, err = connlab("analyse", "one")
    assert code == 2
    hint = f"give one of the runs in it, such as {recorded}"
    assert err == f"connlab: {recorded.parent} holds no manifest.json; {hint}\n"

    (recorded / "manifest.json").unlink()
    assert f"{recorded} holds no manifest.json; a run's folder does" in connlab("analyse", str(recorded))[2]


@pytest.mark.parametrize("name", ["one", "one/r", "one/latest"])
def test_a_run_is_found_by_its_scenario(connlab: Run, recorded: Path, name: str) -> None:
    code, out, _ = connlab("analyse", name, "--json")
    assert code == 0
    assert json.loads(out)["folder"] == str(recorded)


def test_check_compose_says_of_which_scenarios(
    connlab: Run, fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "slugs", lambda *_: ["accept-queue-healthy", "keep-alive-paths"])
    assert connlab("check-compose") == (
        0,
        "Compose accepts the 5 topologies of 2 scenarios: accept-queue-healthy, keep-alive-paths\n",
        "",
    )
    assert sum(call.endswith("config --quiet") for call in fake_docker.calls) == 5
    assert connlab("check-compose", "--json")[1] == '[\n  "accept-queue-healthy",\n  "keep-alive-paths"\n]\n'


@pytest.mark.parametrize("command", [("analyse",), ("explain", "--top=1"), ("advise",)])
def test_a_name_too_long_for_a_file_is_bad_input(connlab: Run, command: tuple[str, ...]) -> None:
    said = f"connlab: this name is too long for a file: {'x' * 40}…\n"
    assert connlab(*command, "x" * 5000) == (2, "", said)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["explain", "one", "--worst=5"], "--worst is --top now; write --top=5"),
        (["search", "one", "--knob=a", "--until", "x"], "--until is --condition now; write --condition"),
        (["observe", "--for", "60s"], "--for is --duration now; write --duration"),
    ],
)
def test_an_option_of_an_earlier_name_is_refused_with_the_new_one(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert (end.value.code, capsys.readouterr().err) == (2, f"connlab: {told}\n")


# --- what a user meets first ---------------------------------------------------------------------------------


def all_commands() -> dict[str, Any]:
    commands: dict[str, Any] = build(app).commands
    return commands


def test_each_command_stands_in_a_group_with_a_summary_of_one_line(
    connlab: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = connlab("-h")
    assert code == 0
    rows = [line.split(maxsplit=1)[0] for line in out.partition("Scenarios:")[2].splitlines() if line.startswith("  ")]
    # A summary of two lines would begin its second with a word that is no command.
    assert [row for row in rows if row not in ("Exit", "the", "Examples:", "connlab")] == [
        one.name for group in build(app).grouped().values() for one in group
    ]
    assert out.rindex("Set up and maintain:") < out.index("  doctor")


@pytest.mark.parametrize("name", all_commands())
def test_each_command_has_examples_that_it_takes(connlab: Run, name: str) -> None:
    code, out, _ = connlab(name, "-h")
    assert code == 0
    examples = [line.strip() for line in out.partition("Examples:\n")[2].splitlines()]
    assert examples
    for example in examples:
        words = shlex.split(re.split(r"[|>]", example)[0], comments=True)
        assert words[:2] == ["connlab", name]
        all_commands()[name].make_context(name, words[2:])


def test_the_manual_page_is_that_of_the_help_texts(connlab: Run) -> None:
    committed = (paths.ROOT / "docs" / "connlab.1").read_text()
    assert connlab("man")[1] == committed, "run: ./connlab man > docs/connlab.1"


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_manual_page_is_one_that_roff_reads_without_a_warning() -> None:
    command = ["groff", "-man", "-Tutf8", "-ww", "-z", str(paths.ROOT / "docs" / "connlab.1")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run accept-queue-ov", ["accept-queue-overflow"]),
        ("show accept-queue-overflow --set backend.accept_c", ["backend.accept_count="]),
        ("search one --knob backend.max_c", ["backend.max_connections"]),
        ("matrix long-polling-b", ["long-polling-border"]),
        ("exercise accept-queue-overflow/1", ["accept-queue-overflow/1"]),
        ("explain slow-c", ["slow-clients"]),
        ("open slow-clients/2026", ["slow-clients/20260102T030405Z"]),
        ("run ./sho", ["./shop/"]),
        ("estim", ["estimate"]),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes(tmp_path: Path, shell: str, words: str, offered: list[str]) -> None:
    (tmp_path / "shop").mkdir()
    run = tmp_path / "results" / "slow-clients" / "20260102T030405Z"
    run.mkdir(parents=True)
    (run / "manifest.json").touch()
    typed = f"connlab {words}"
    given = {
        "CONNLAB_RESULTS": str(tmp_path / "results"),
        "_CONNLAB_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": typed,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    command = [sys.executable, "-c", "from lab.cli import connlab; connlab()"]
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT)} | given
    asked = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert [one for one in offered if one in asked.stdout] == offered, asked.stderr


# --- what runs something makes the machine ready -------------------------------------------------------------


@pytest.fixture
def two_scenarios(
    elsewhere: Path, write_scenario: Write, fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch
) -> Path:
    fake_docker.says("version *", "26.1.5")
    write_scenario(MINIMAL + COMPARED + ARMS, slug="arms")
    monkeypatch.setattr(paths, "SCENARIOS", write_scenario(slug="one"))
    return elsewhere


@pytest.mark.parametrize(
    ("arguments", "code", "readied"),
    [
        (["run", "one"], 4, True),
        (["lesson", "one"], 4, True),
        (
            ["search", "one", "--knob=load.users", "--condition=client.requests.failed == 0", "--from=1", "--to=9"],
            4,
            True,
        ),
        (["run", "no-such"], 2, False),
        (["run", "one", "--set=no.such=1"], 2, False),
        (["run", "one", "--check"], 0, False),
        (["run", "arms", "--dry-run"], 0, False),
        (["matrix"], 0, False),
        (["show", "one"], 0, False),
        (["run", "one", "-h"], 0, False),
    ],
)
def test_engine_and_images_are_made_ready_after_the_input_is_checked_and_before_anything_runs(
    two_scenarios: Path, arguments: list[str], code: int, *, readied: bool
) -> None:
    called: list[str] = []

    def make_ready() -> None:
        called.append("ready")
        raise LabError("no engine today")

    with pytest.raises(SystemExit) as end:
        main(arguments, make_ready=make_ready)
    assert (end.value.code, called) == (code, ["ready"] if readied else [])
    assert not (two_scenarios / "results" / "one").exists()


def test_results_may_be_named_before_the_command_and_after_it(tmp_path: Path) -> None:
    shown = []
    for arguments in (["--results", "mine", "open"], ["open", "--results=mine"]):
        command = [sys.executable, "-c", "from lab.cli import main; main()", *arguments]
        environment = os.environ | {"PYTHONPATH": str(paths.ROOT)}
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 2
        shown.append(ended.stderr)
    assert shown[0].startswith("connlab: no run below mine")
    assert shown[0] == shown[1]
