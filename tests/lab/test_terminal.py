"""What is printed steers no terminal: one way out for all of it, tried with a run that comes from somebody hostile."""

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from lab import paths, terminal
from tests.analysis.support import role
from tests.lab.support import MINIMAL, connlab
from tests.lab.test_hostile_runs import COMMANDS, GOOD, changes, two_runs

# The window's title, a colour by a C1 control, a direction, and a command for who copies a line.
STEERING = "\x1b]0;owned\x07\u009b31m\u202eevil\x7f"
SHELL = "x; touch /tmp/owned; $(touch owned) `touch owned`"
HOSTILE = f"{STEERING} {SHELL}"


def steers(text: str) -> list[str]:
    return [char for char in text if char not in "\n\u00a0" and not char.isprintable()]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    connlab(*arguments)
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert not steers(text), f"{arguments} prints {steers(text)[0]!r}"
    assert "internal error" not in text, text
    return text


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run all of whose free texts are hostile, and whose derived files are as they came; a good one beside it."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    folder = two_runs(tmp_path / "results")
    file = folder / "manifest.json"
    content = json.loads(file.read_bytes())
    for name in ("title", "question", "reason", "started", "ended", "folder"):
        content[name] = HOSTILE
    content["command"] = [HOSTILE]
    content["git"]["commit"] = content["lab"]["version"] = HOSTILE
    content["host"] |= dict.fromkeys(("kernel", "distribution", "docker"), HOSTILE)
    content["images"] = dict.fromkeys(content["images"], HOSTILE)
    for knob in content["knobs"].values():
        if isinstance(knob["value"], str):
            knob["value"] = HOSTILE
    for one in content["predictions"]:
        one["description"] = HOSTILE
    content["predictions"][-1]["expression"] = HOSTILE
    content["published"]["description"] = HOSTILE
    content["published"]["here"] = {HOSTILE: "client.users.served"}
    content["guesses"] = [
        {"prediction": HOSTILE, "figure": "client.users.served", "asks": HOSTILE, "unit": HOSTILE, "value": 3}
    ]
    content["removed"] = [{"file": HOSTILE, "was": HOSTILE}]
    content["sysctls"]["k6-1"]["net.ipv4.tcp_syn_retries"] = HOSTILE
    file.write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("command", [*COMMANDS, ["open", "{run}"]], ids=lambda command: command[0])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["people", "programs"])
def test_no_word_of_a_hostile_run_steers_the_terminal(
    run: Path, capsys: pytest.CaptureFixture[str], command: list[str], more: tuple[str, ...]
) -> None:
    name, *rest = (each.format(run=run, good=run.with_name(GOOD)) for each in command)
    assert said(capsys, name, *more, *rest)


def test_a_suggested_command_keeps_a_hostile_name_one_word(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder of a scenario elsewhere is what a run's manifest says it is."""
    (line,) = [each for each in said(capsys, "advise", "--", str(run)).splitlines() if each.startswith("test it: ")]
    words = shlex.split(line.removeprefix("test it: "))
    assert words[:2] == ["make", "run"]
    assert all(word.partition("=")[0] in {"SCENARIO", "SET", "PRESET", "ARM"} for word in words[2:])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("scenario", "../../etc"),
        ("scenario", SHELL),
        ("run", f"r{STEERING}"),
        ("run", "-rf"),
        ("series", "20261121T141444Z-arms-../../x"),
        ("cell", SHELL),
        ("preset", SHELL),
        ("path", ["k6", "../backend"]),
        ("instances", {"backend": ["../../../etc"]}),
        ("addresses", {"../x": []}),
        ("roles", {"backend": role("server", "backend", logs={"../../../etc/passwd": "dials"})}),
        ("roles", {"backend": role("server", "backend", scrape={"../x": {"url": "http://x", "format": "json"}})}),
        ("roles", {"backend": role("server", SHELL)}),
        ("knobs", {SHELL: {"value": 1}}),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str], place: str, value: object
) -> None:
    changes(run, **{place: value})
    for command in [*COMMANDS, ["open", "{run}"]]:
        assert connlab(*(each.format(run=run, good=run.with_name(GOOD)) for each in command)) == 2
        captured = capsys.readouterr()
        assert f"manifest.json: {place}" in captured.err
        assert not steers(captured.out + captured.err)


SEARCH = ["search", "--dry-run", "--knob=load.users", "--condition=client.users.failed == 0"]


@pytest.mark.parametrize("command", [["show"], ["run", "--dry-run"], SEARCH])
def test_no_word_of_a_hostile_scenario_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    home = tmp_path / "hostile"
    home.mkdir()
    escaped = json.dumps(HOSTILE)
    lines = [f"title: {escaped}" if line.startswith("title:") else line for line in MINIMAL.splitlines()]
    (home / "scenario.yaml").write_text(
        "\n".join(f"question: {escaped}" if line.startswith("question:") else line for line in lines)
    )
    text = said(capsys, *command, "--", str(home))
    assert "touch" in text or command[0] != "show"


@pytest.mark.usefixtures("fake_docker")
def test_no_word_of_a_hostile_matrix_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hostile.yaml"
    text = (paths.SCENARIOS / "matrices" / "long-polling-border.yaml").read_text()
    hostile = json.dumps(HOSTILE).replace("\\", "\\\\")
    file.write_text(re.sub("^(title): .*$", rf"\1: {hostile}", text, flags=re.MULTILINE))
    assert "touch" in said(capsys, "matrix", "--dry-run", "--", str(file))


def test_a_table_and_a_line_show_what_they_would_have_done(capsys: pytest.CaptureFixture[str]) -> None:
    console = terminal.stdout()
    table = Table(HOSTILE)
    table.add_row(Text(HOSTILE, "red"))
    console.print(table)
    console.print(HOSTILE, soft_wrap=True)
    terminal.result([HOSTILE, "first\nsecond"])
    terminal.problem(HOSTILE)
    captured = capsys.readouterr()
    assert not steers(captured.out + captured.err)
    assert "\\x1b]0;owned\\x07\\x9b31m\\u202eevil\\x7f" in captured.out
    assert "first\\nsecond" in captured.out


def test_json_keeps_every_value(capsys: pytest.CaptureFixture[str]) -> None:
    value = {HOSTILE: [HOSTILE, "\ud800", "\U000e0001", "é → 日本\u00a0語"]}
    terminal.result_json(value)
    out = capsys.readouterr().out
    assert not steers(out)
    assert json.loads(out) == value


def _writes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in {"print", "Console", "typer.echo"} or name.endswith(("stdout.write", "stderr.write")):
                yield f"{name} in line {node.lineno}"


def test_nothing_else_in_the_lab_prints() -> None:
    # A signal's handler must not enter rich, and says a sentence of its own.
    allowed = {"terminal.py", "signals.py"}
    found = {
        str(file.relative_to(paths.ROOT)): writes
        for file in (paths.ROOT / "lab").rglob("*.py")
        if file.name not in allowed and (writes := list(_writes(ast.parse(file.read_text()))))
    }
    assert not found
