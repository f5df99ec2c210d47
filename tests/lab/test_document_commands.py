"""Every command that a document shows would be taken: its target, its variables or options, its scenario and knobs.

What has a placeholder (`…`, `<run>`, `$R`) is checked without its value. Commands that only compute are carried out.
"""

import re
import shlex
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.diagnosis import causes
from analysis.figures.catalogue import Scope
from lab import paths
from lab.cli import app, build, estimates, make
from lab.cli.options import ALL
from lab.errors import BadInput, ExitCode
from lab.lessons import exercises
from lab.lessons.drill.evidence import MORE
from lab.lessons.drill.faults import CAUSES, LEVELS, PLACES
from lab.roles.declared_roles import ROLES
from lab.scenarios import places
from lab.scenarios.knobs import CATALOGUE
from lab.scenarios.model import OwnLoad
from lab.scenarios.resolve import resolve
from lab.series import matrices, searches
from lab.series.matrices import matrix_names
from tests.lab.test_documents import DOCUMENTS, name

COMMAND = re.compile(r"(?m)^ *\$ ((?:make|(?:\./)?connlab) .*)$|`((?:make|connlab) [^`\n]+)`")
PLACEHOLDER = re.compile(r"[…<>|$\[\]]|\.\.\.?(?=/|$|\d)")
MAKEFILE = (paths.ROOT / "Makefile").read_text()
# Knobs as the documents write them in prose, such as `backend.accept_count`.
KNOB = re.compile(r"`((?:backend|nginx|haproxy|gateway|load|capture)\.[a-z_]+)(?:=[^`]*)?`")
# A figure with all its parts; a shorter name is of a reading, a setting or a file.
FIGURE = re.compile(
    r"`((?:client|kernel|listen|sockets|process|access|flows|ledger|model|gateway|haproxy|nginx|tomcat)\.[\w.]+\.\w+)`"
)
SYSCTL = re.compile(r"kernel\.\w+\.net\.")
HYPHENATED = re.compile(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`")
EXIT_CODE = re.compile(r"\bexit(?:s with| codes?) (\d+)", re.IGNORECASE)
FILES = {"cfg", "conf", "json", "jsonl", "pcap"}
# Keys of a scenario's `load`, which are spelt like knobs.
LOAD = {f"load.{key}" for key in OwnLoad.model_fields}
# It is made from the code, and names figures that are spelt like knobs.
FIGURES = paths.ROOT / "docs" / "figures.md"
# An option of every command, which typer adds when it parses.
HELP = SimpleNamespace(opts=["-h", "--help"])
# What a lesson shows because the lab refuses it.
REFUSED = {'make run SCENARIO=tw-recycle-gone SET="kernel.nginx.net.ipv4.tcp_tw_recycle=1"'}
WORDS = {
    "ENGINE": ("compose", "kubernetes"),
    "LEVEL": tuple(map(str, LEVELS)),
    "MORE": tuple(MORE),
    "CAUSE": tuple(CAUSES),
    "PLACE": tuple(PLACES),
    "RELEASE": ("bookworm", "trixie"),
}


def commands(document: Path) -> list[str]:
    found = (one[1] or one[2] for one in COMMAND.finditer(document.read_text()))
    return sorted({re.split(r"\s#|\|\|", one)[0].strip().removesuffix("\\").strip() for one in found})


def words(command: str) -> list[str]:
    """A command's words; what a shell would work out, and brackets around what may be left out, are placeholders."""
    return shlex.split(re.sub(r"[\[\]]", "", re.sub(r"\$\([^)]*\)", "$X", command)))


@cache
def variables(target: str) -> frozenset[str]:
    """The variables that a target's recipe reads, or that stand for the options of its command."""
    if target in build(app).commands:
        return frozenset(make.variables(target))
    recipe = re.search(rf"(?m)^{re.escape(target)}:.*\n((?:\t.*\n)+)", MAKEFILE)
    assert recipe, f"there is no target {target}"
    return frozenset(re.findall(r"\$\$\{?([A-Z_]+)", recipe[1]))


@cache
def problem(command: str) -> str | None:
    """Why a command would be refused; None if it would not."""
    program, *rest = words(command)
    try:
        return of_make(rest) if program == "make" else of_connlab(rest)
    except BadInput as error:
        return str(error)


def of_connlab(rest: list[str]) -> str | None:
    known = build(app).commands
    if PLACEHOLDER.search(rest[0]) or any(rest[0] in one.opts for one in (*build(app).params, HELP)):
        return None
    if rest[0] not in known:
        return f"connlab has no command {rest[0]}"
    options = {option for each in (*known[rest[0]].params, HELP) for option in each.opts}
    unknown = [one for one in rest[1:] if one.startswith("--") and one.partition("=")[0] not in options]
    return f"connlab {rest[0]} has no {', '.join(unknown)}" if unknown else None


def of_make(rest: list[str]) -> str | None:
    target, *given = rest
    if PLACEHOLDER.search(target) or (re.fullmatch(r"(?:test|check|fmt|bench)-[a-z0-9-]+", target) and not given):
        return None  # of a part or a bench, which tests/lab/test_documents.py knows
    values = dict(one.split("=", 1) for one in given if re.match(r"[A-Z_]+=", one))
    unread = set(values) - variables(target)
    if unread:
        return f"make {target} reads no {', '.join(sorted(unread))}"
    wrong = [f"{key}={value}" for key, value in values.items() if key in WORDS and is_wrong(value, WORDS[key])]
    return ", ".join(wrong) or of_values(target, {k: v for k, v in values.items() if not PLACEHOLDER.search(v)})


def is_wrong(value: str, allowed: tuple[str, ...]) -> bool:
    return not PLACEHOLDER.search(value) and value not in allowed


def of_values(target: str, values: dict[str, str]) -> str | None:
    sets = values.get("SET", "").split()
    scenario = values.get("SCENARIO")
    if "EXERCISE" in values:
        slug, _, number = values["EXERCISE"].partition("/")
        known = exercises.load_exercises(places.find(slug))
        by_hand = int(number) > len(known) or known[int(number) - 1].by_hand
        return f"no run judges {values['EXERCISE']}" if by_hand else None
    if target == "estimate" and {"OVERFLOWS", "CONNECT_TIMEOUT"} <= set(values):
        estimates.estimate_from_counter(
            values["OVERFLOWS"], values["CONNECT_TIMEOUT"], values.get("SYSCTLS", "").split()
        )
    elif target in ("matrix", "compare") and "MATRIX" in values and not values["MATRIX"].startswith("results/"):
        examples = [file.relative_to(paths.ROOT) for file in paths.ROOT.glob("examples/*/*.yaml")]
        named = [*matrix_names(), *places.slugs(), *(name for file in examples for name in (str(file), file.stem))]
        if values["MATRIX"] not in named:
            return f"there is no matrix {values['MATRIX']}"
        if target == "matrix" and sets:
            matrices.plan_matrix(values["MATRIX"], sets)
    elif target == "search" and scenario and {"KNOB", "CONDITION"} <= set(values):
        asked = searches.Asked(
            scenario, values["KNOB"], values["CONDITION"], values.get("FROM"), values.get("TO"), values.get("STEP"), 2
        )
        searches.plan_search(asked, sets)
    elif scenario and target in ("run", "lesson", "show", "plan", "record") and scenario != ALL:
        if places.is_path(scenario) and not (paths.ROOT / scenario).exists():
            return None if scenario.startswith(("path/", "/tmp")) else f"there is no {scenario}"  # noqa: S108 # a reader's
        places.find(scenario)  # the whole catalogue is resolved, and its exercises prepared, by tests of their own
        if sets or "PRESET" in values:
            resolve(scenario, sets, preset=values.get("PRESET"))
    return None


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_command_would_be_taken(document: Path) -> None:
    assert {
        command: why for command in commands(document) if (why := problem(command)) and command not in REFUSED
    } == {}


@pytest.mark.parametrize("command", REFUSED)
def test_what_a_lesson_shows_as_refused_is(command: str) -> None:
    assert problem(command)


@pytest.mark.parametrize(
    "command",
    [
        "make run SCENARIO=no-such-one",
        'make run SCENARIO=slow-clients SET="backend.no_such_knob=1"',
        "make show SCENARIO=slow-clients TOP=1",
        "make matrix MATRIX=no-such-one",
        "make exercise EXERCISE=slow-clients/99",
        "make drill MORE=everything",
        "make estimate OVERFLOWS=many CONNECT_TIMEOUT=5s",
        'make search SCENARIO=slow-clients KNOB=backend.max_connections CONDITION="no.such.figure == 0"',
        "connlab no-such-verb",
        "connlab run slow-clients --no-such-option",
    ],
)
def test_a_command_that_would_be_refused_is_found(command: str) -> None:
    assert problem(command)


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if one != FIGURES], ids=name)
def test_every_knob_that_it_names_is_one(document: Path) -> None:
    named = set(KNOB.findall(document.read_text())) - set(KNOB.findall(FIGURES.read_text()))
    figures = FIGURES.read_text()
    unknown = {one for one in named - set(CATALOGUE) - LOAD if one.partition(".")[2] not in FILES}
    assert sorted(one for one in unknown if f"`{one}." not in figures) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_figure_that_it_names_is_one(document: Path) -> None:
    # The gateway's readings stand in the documents without the statistic that makes figures of them.
    readings = {
        f"{page.figure_prefix or role}.{each}"
        for role in ROLES
        for page in ROLES[role].scrape.values()
        for each in page.values
    }
    scope = Scope(ROLES, {**dict.fromkeys(CATALOGUE), "backend.instances": 2}, frozenset())
    named = {one for one in FIGURE.findall(document.read_text()) if not SYSCTL.match(one)} - readings
    assert sorted(one for one in named if not scope.has(one)) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_exit_code_that_it_names_is_one(document: Path) -> None:
    # A program that a signal ended has 128 and the signal's number.
    named = {int(one) for one in EXIT_CODE.findall(document.read_text())}
    assert {one for one in named if one < 128} <= {int(code) for code in ExitCode}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_no_word_is_nearly_the_name_of_a_cause(document: Path) -> None:
    known = {one.name for one in causes.CAUSES}
    named = set(HYPHENATED.findall(document.read_text())) - known - declared()
    assert {one: near for one in named if (near := get_close_matches(one, known, 1, 0.8))} == {}


@cache
def declared() -> frozenset[str]:
    """Every name of the scenarios and in them: of arms, predictions and levels too."""
    texts = [file.read_text() for file in paths.SCENARIOS.rglob("*.yaml")]
    return frozenset(
        [*places.slugs(), *(one for text in texts for one in re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", text))]
    )
