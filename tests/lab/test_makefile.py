"""The Makefile: what the user gives reaches `connlab` as it is, is never carried out, and is checked before set-up."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import paths
from lab.cli.make import arguments, variables
from lab.errors import BadInput

MAKEFILE = (paths.ROOT / "Makefile").read_text()
# All that pass on to `connlab` have one recipe; `run` stands for them.
TARGETS = ["run", *re.findall(r"^([a-z0-9-]+):.*\n\t", MAKEFILE, re.MULTILINE)]
COMMANDS = re.findall(r"^commands := (.*)", MAKEFILE, re.MULTILINE)[0].split()
# Every variable that a target reads, and one that none does.
VARIABLES = {
    "OTHER",
    *re.findall(r"\$\$\{([A-Z_]+)", MAKEFILE),
    *(name for each in COMMANDS for name in variables(each)),
}

Make = Callable[..., tuple[int, list[list[str]]]]
# What make wrote to standard error, call by call.
SAID: list[str] = []


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Run the Makefile in a folder where every program that it starts writes down its arguments instead."""
    tmp_path = tmp_path_factory.mktemp("make")
    log = tmp_path / "calls"
    # Not by bash, which takes twice as long to start: there are some two thousand calls.
    recorder = f"""#!/bin/sh
printf '%s\\0' "${{0##*/}}" "$@" >>{log}; printf '\\n\\0' >>{log}
case " $* " in *" refused "*) exit 2 ;; *" inconclusive "*) exit 3 ;; esac
"""
    passing_on = recorder.replace(
        "#!/bin/sh\n", f'#!/bin/sh\n[ "$2" = lab.cli.make ] && PYTHONPATH={paths.ROOT} exec {sys.executable} "$@"\n'
    )
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    programs = [
        ".venv/bin/connlab",
        *(f".venv/bin/{one}" for one in ("python", "ruff", "mypy", "sqlfluff", "lint-imports")),
    ]
    programs += [".venv/bin/pytest", "setup/ready.sh", "setup/python.sh", "setup/check.sh", "bin/docker"]
    programs += ["setup/bundle.sh", "setup/load.sh", "setup/bare.sh", "setup/push-images.sh"]
    for program in (*programs, "nginx/check-variants", "backend/bench-startup"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).write_text(recorder)
        (tmp_path / program).chmod(0o755)
    (tmp_path / ".venv/bin/python").write_text(passing_on)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["PATH"] = f"{tmp_path}/bin:{environment['PATH']}"

    def run(target: str, *variables: str, **given: str) -> tuple[int, list[list[str]]]:
        log.unlink(missing_ok=True)
        ended = subprocess.run(
            ["make", target, *variables],
            cwd=tmp_path,
            env=environment | given,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        SAID.append(ended.stderr)
        calls = log.read_text().split("\n\0") if log.exists() else []
        return ended.returncode, [call.split("\0")[:-1] for call in calls if call]

    return run


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "hostile", ["$(shell touch {})", "`touch {}`", "$$(touch {})", '"; touch {}; "', "a$(eval x:=$(shell touch {}))"]
)
def test_no_target_carries_out_what_stands_in_a_value(make: Make, tmp_path: Path, target: str, hostile: str) -> None:
    made = tmp_path / "made"
    value = hostile.format(made)
    make(target, *(f"{name}={value}" for name in VARIABLES))
    make(target, **dict.fromkeys(VARIABLES, value))
    assert not made.exists()


@pytest.mark.parametrize("target", ["test", "check", "fmt", "bench"])
@pytest.mark.parametrize("name", ["$(touch made)", "';touch made;'", "`touch made`", "a b", "*", "--help", "'"])
def test_the_name_behind_a_target_arrives_as_it_was_given(make: Make, target: str, name: str) -> None:
    code, calls = make(f"{target}-{name}")
    assert (code, [call[0] for call in calls]) == (0, ["ready.sh", "python"])
    assert calls[-1][-1] == name


@pytest.mark.parametrize("value", ["$(shell date)", "$HOME", "$$", "a b", "--help", "'\"\\", "a\nb", "#x", "ümlaut"])
def test_a_value_arrives_as_it_was_given(make: Make, value: str) -> None:
    for code, calls in (make("show", f"SCENARIO={value}"), make("show", SCENARIO=value)):
        assert (code, calls[-1]) == (0, ["connlab", "show", "--", value])


def test_settings_stand_on_one_line_or_on_several(make: Make) -> None:
    _, calls = make("show", "SCENARIO=one", "SET=load.users=1\n  backend.accept_count=2 load.path=/$(x)\n")
    sets = ["--set=load.users=1", "--set=backend.accept_count=2", "--set=load.path=/$(x)"]
    assert calls[-1] == ["connlab", "show", *sets, "--", "one"]
    assert make("compare", "A=one\ntwo", "B=three")[1][-1] == ["connlab", "compare", "--a=one", "--a=two", "--b=three"]


def test_a_record_is_asked_for_with_its_number_of_runs(make: Make) -> None:
    _, calls = make("record", "SCENARIO=all", "RUNS=10")
    recording = ["python", "-m", "tools.recording", "record"]
    assert [call[0] for call in calls] == ["python.sh", "python", "ready.sh", "python"]
    assert calls[1] == [*recording, "--check", "--runs=10", "--", "all"]
    assert calls[3] == [*recording, "--runs=10", "--", "all"]
    assert make("record", "SCENARIO=one")[1][3] == [*recording, "--", "one"]


def test_what_runs_something_is_connlab_s_own_to_check_and_to_make_ready(make: Make) -> None:
    assert make("run", "SCENARIO=one", "SET=load.users=1", "NEW=1") == (
        0,
        [["python.sh"], ["connlab", "run", "--set=load.users=1", "--new", "--", "one"]],
    )
    exercise = ["connlab", "exercise", "--set=load.users=1", "--", "one/2"]
    assert make("exercise", "EXERCISE=one/2", "SET=load.users=1")[1][-1] == exercise


def test_a_failed_command_says_its_exit_code_which_make_cannot_hand_on(make: Make) -> None:
    assert make("show", "SCENARIO=inconclusive")[0] == 2
    assert "connlab: exit code 3;" in SAID[-1]
    assert make("show", "SCENARIO=refused")[0] == 2
    assert "exit code" not in SAID[-1]


def test_a_kit_is_written_taken_in_and_tried(make: Make) -> None:
    file = "/media/a stick/kit.tar"
    assert make("bundle") == (0, [["bundle.sh", ""]])
    assert make("bundle", f"TO={file}") == (0, [["bundle.sh", file]])
    assert make("load", f"BUNDLE={file}") == (0, [["load.sh", file]])
    assert make("test-bare", f"BUNDLE={file}", "RELEASE=trixie") == (0, [["bare.sh", "--kit", file, "trixie"]])


def test_what_is_to_be_observed_is_named_as_for_connlab(make: Make) -> None:
    code, calls = make("observe", "CONTAINER=shop web", "PEER=k6", "DURATION=5s", "CAPTURE=off")
    options = ["--container=shop", "--container=web", "--peer-container=k6", "--duration=5s", "--capture=off"]
    assert code == 0
    assert calls[1] == ["connlab", "observe", *options]
    assert make("observe", "COMPOSE=acme/web", "ALLOW_HOST=1")[1][1][2:] == ["--compose=acme/web", "--host"]
    assert make("observe", "PID=7")[1][1][2:] == ["--pid=7"]
    _, calls = make("observe", "POD=lab/shop", "CONTAINER=web", "CONTEXT=mine", "REGISTRY=registry.example/lab")
    of_cluster = ["--pod=lab/shop", "--context=mine", "--registry=registry.example/lab"]
    assert calls[1][2:] == ["--container=web", *of_cluster]


def test_a_dry_run_is_none_of_a_record_s(make: Make) -> None:
    assert [call[0] for call in make("record", "SCENARIO=one", "DRY=1")[1]] == [
        *("python.sh", "python", "ready.sh", "python"),
    ]


def test_images_are_pulled_from_where_the_variable_says(make: Make) -> None:
    _, calls = make("run", "SCENARIO=x", "IMAGES=127.0.0.1:5000/lab")
    assert calls[-1] == ["connlab", "run", "--images=127.0.0.1:5000/lab", "--", "x"]


def test_images_are_pushed_to_a_registry(make: Make) -> None:
    assert make("push-images", "REGISTRY=r/a $HOME")[1] == [["push-images.sh", "r/a $HOME"]]


def test_a_preset_is_asked_for_by_its_name(make: Make) -> None:
    for target in ("run", "show"):
        assert make(target, "SCENARIO=one", "PRESET=the published")[1][-1] == [
            *("connlab", target, "--preset=the published", "--", "one"),
        ]


@pytest.mark.parametrize(
    ("target", "given", "told"),
    [
        ("explain", {"WORST": "5"}, "WORST is TOP now; write TOP=5"),
        ("search", {"UNTIL": "load.users == 1"}, "UNTIL is CONDITION now; write CONDITION=load.users == 1"),
        ("observe", {"FOR": "60s"}, "FOR is DURATION now; write DURATION=60s"),
    ],
)
def test_a_variable_of_an_earlier_name_is_refused_with_the_new_one(
    make: Make, target: str, given: dict[str, str], told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        arguments(target, given)
    assert make(target, *(f"{name}={value}" for name, value in given.items())) == (2, [["python.sh"]])
    # It may be another program's, where the command takes none of that name.
    assert arguments("list", given) == ["list"]


@pytest.mark.parametrize("target", COMMANDS)
def test_each_option_of_a_command_has_a_variable(target: str) -> None:
    given = dict.fromkeys(variables(target), "x")
    options = [word.partition("=")[0] for word in arguments(target, given) if word.startswith("--") and word != "--"]
    shown = [one.opts[0] for one in variables(target).values() if one.param_type_name == "option"]
    assert sorted(options) == sorted(shown)
