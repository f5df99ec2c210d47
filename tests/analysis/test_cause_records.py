"""Each cause is whole: every field of its record says something, and its SQL fits the tables that it is put to."""

from dataclasses import fields
from pathlib import Path

import pytest

from analysis.derivation import judge
from analysis.diagnosis.causes import CAUSES, UNEXPLAINED, Cause, cause_named
from analysis.diagnosis.causes.__main__ import markdown
from analysis.diagnosis.joins import Joined
from analysis.verdicts.parquet_files import REQUESTS
from tests.analysis.support import RunFolder

ROOT = Path(__file__).resolve().parents[2]
# What a cause may do without.
MAY_BE_EMPTY = {"apart", "seen", "knobs", "accept_queue", "lesson"}

each_cause = pytest.mark.parametrize("cause", [*CAUSES, UNEXPLAINED], ids=lambda cause: cause.name)


@pytest.fixture
def no_requests(run: RunFolder) -> Joined:
    """The joined tables of a run in which nobody asked for anything."""
    client = run.clients["k6-1"]
    client.requests, client.dials = [], []
    joined = judge(run.write()).run.joined
    assert isinstance(joined, Joined)
    joined.need("attributed")
    return joined


def types(joined: Joined, table: str, *expressions: str) -> list[str]:
    """The types of what SQL gives over a table."""
    return [row["column_type"] for row in joined.rows(f"DESCRIBE SELECT {', '.join(expressions)} FROM {table}")]  # noqa: S608  our own


@each_cause
def test_every_field_says_something(cause: Cause) -> None:
    empty = {field.name for field in fields(cause) if not getattr(cause, field.name)}
    assert empty <= MAY_BE_EMPTY


@each_cause
def test_texts_name_no_role_but_those_of_the_hop(cause: Cause) -> None:
    ends = {"client": "the client", "server": "the server"}
    told = [text.format(**ends) for text in (cause.because, cause.where, *cause.knobs)]
    assert not any("{" in text for text in told)


def test_sql_fits_the_tables_even_when_they_are_empty(no_requests: Joined) -> None:
    assert no_requests.row("SELECT count(*) AS count FROM known") == {"count": 0}
    decided = "(known JOIN decided USING (instance, id))"
    found = {
        cause.name: types(no_requests, decided, cause.when, cause.says, cause.apart or "NULL::BIGINT")
        for cause in (*CAUSES, UNEXPLAINED)
    }
    assert {name: kinds for name, kinds in found.items() if kinds != ["BOOLEAN", "VARCHAR", "BIGINT"]} == {}


def test_the_rule_of_the_hop_fits_the_records_of_requests(no_requests: Joined) -> None:
    found = {cause.name: types(no_requests, f"({REQUESTS})", cause.hop) for cause in CAUSES}
    assert {name: kinds for name, kinds in found.items() if kinds != ["BOOLEAN"]} == {}


def test_no_two_causes_say_the_same() -> None:
    for text in ("name", "meaning", "proof", "when", "label", "because"):
        assert len({getattr(cause, text) for cause in CAUSES}) == len(CAUSES), text


def test_a_cause_of_another_version_has_its_name_for_all_words() -> None:
    found = cause_named("lost-in-space")
    assert (found.name, found.label, found.because) == (
        "lost-in-space",
        "lost in space",
        "its cause is “lost in space”",
    )


def test_the_documentation_of_the_causes_is_current() -> None:
    assert (ROOT / "docs" / "causes.md").read_text() == markdown(), (
        "python -m analysis.diagnosis.causes > docs/causes.md"
    )
