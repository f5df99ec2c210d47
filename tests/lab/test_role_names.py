"""A role is a folder: outside it, only the places below name one, each for the reason that stands beside it."""

import io
import re
import tokenize
from collections.abc import Iterator

from lab import paths

# k6 is not among them: it is the one client, and the load's own knobs are its.
_NAMES = re.compile(r"\b(nginx|gateway|haproxy|backend|tomcat)\b", re.IGNORECASE)

# A cause names the scenario whose lesson is about it.
_SCENARIOS = {folder.name for folder in (paths.ROOT / "scenarios").iterdir()}

_FIGURES_OF_DIALS = "the figures of `dials.jsonl`, which one proxy writes"
_MODEL = "the model is of users straight at Tomcat, by its documented rules"
_EXAMPLE = "an example in a text for people"

ALLOWED: dict[str, str] = {
    "analysis/account/identities.py": _FIGURES_OF_DIALS,
    "analysis/causes/answering.py": "what one proxy's log writes of its own queue",
    "analysis/compare/build.py": _MODEL,
    "analysis/compare/comparison_file.py": _MODEL,
    "analysis/evidence/logs/__init__.py": "the adapters of logs, by their formats",
    "analysis/evidence/roles.py": "the roles of earlier versions, whose manifests declare none",
    "analysis/figures/pattern.py": "`<backend>`, the parameter of figures of servers",
    "analysis/figures/gateway.py": _FIGURES_OF_DIALS,
    "analysis/figures/ledger.py": _FIGURES_OF_DIALS,
    "analysis/figures/model.py": _MODEL,
    "analysis/figures/known_names.py": "`<backend>`, as in the catalogue",
    "analysis/figures/observed.py": _FIGURES_OF_DIALS,
    "analysis/figures/reference.py": _EXAMPLE,
    "analysis/figures/scraped.py": "`<backend>`, as in the catalogue",
    "analysis/figures/servers.py": "`Connection` in the answers to clients, which nginx alone logs",
    "analysis/model/outcomes.py": _MODEL,
    "analysis/story/ladders/ladders_file.py": _EXAMPLE,
    "analysis/verdict/verdict_file.py": _EXAMPLE,
    "lab/cli/options.py": _EXAMPLE,
    "lab/cli/run_commands.py": _EXAMPLE,
    "lab/cli/teaching_commands.py": _EXAMPLE,
    "lab/roles/configurations/sections.py": "`backend`, a section's kind in its format",
    "lab/results/matrix_printing.py": "the counter that a table of cells shows, if the path has it",
    "lab/scenario/checks.py": "long polling, and Tomcat's bound of headers",
    "lab/scenario/fields.py": _EXAMPLE,
    "lab/scenario/foreseen.py": "long polling needs the waiting room, which one server has",
    "lab/scenario/overrides.py": _EXAMPLE,
    "lab/series/arm_settings.py": _EXAMPLE,
    "lab/series/foresight.py": _MODEL,
    "lab/teach/drill/drawings.py": "the settings of those programs",
    "lab/teach/drill/evidence.py": "the page that tells of one server's threads",
    "lab/teach/drill/faults.py": "what each fault turns, and in which of the lab's programs it lies",
    "lab/teach/wording.py": "questions in words of their own; any other figure is asked for by its meaning",
}


def _strings_and_names(text: str) -> Iterator[str]:
    """What a program says and does; comments and docstrings may give a program as an example."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begins = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type == tokenize.NAME or (token.type == tokenize.STRING and not begins):
            yield token.string
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def _naming() -> set[str]:
    files = [file for package in ("lab", "analysis") for file in sorted((paths.ROOT / package).rglob("*.py"))]
    named = {
        str(file.relative_to(paths.ROOT))
        for file in files
        if any(
            _NAMES.search(each) for each in _strings_and_names(file.read_text()) if each.strip('"') not in _SCENARIOS
        )
    }
    queries = [file for package in ("lab", "analysis") for file in sorted((paths.ROOT / package).rglob("*.sql"))]
    return named | {
        str(file.relative_to(paths.ROOT)) for file in queries if _NAMES.search(re.sub("--.*", "", file.read_text()))
    }


def test_only_the_places_with_a_reason_name_a_role() -> None:
    assert _naming() - set(ALLOWED) == set(), "declare it in role.yaml, or say here why that cannot be"


def test_each_place_with_a_reason_names_a_role() -> None:
    assert set(ALLOWED) - _naming() == set(), "take it off the list"
