import math
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.expressions import ExpressionError, parse
from analysis.expressions.values import Kind, Unknown, Value, unknown

VALUES: Mapping[str, Value] = {
    "a": 6,
    "b": 4,
    "yes": True,
    "no": False,
    "mode": "never",
    "missing": unknown("the file is missing"),
    "lost": unknown("the line is cut"),
    "some.list": (3, 1.5, 2),
    "empty.list": (),
    "client.requests.error.1211": 5,
}


def evaluate(text: str) -> Value:
    return parse(text).evaluate(VALUES.__getitem__)


def why(text: str) -> str:
    value = evaluate(text)
    assert isinstance(value, Unknown)
    return value.why


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * 2", 14),
        ("(a + b) * 2", 20),
        ("a - b - 1", 1),
        ("-a + b", -2),
        ("a / b", 1.5),
        ("a // b", 1),
        ("a % b", 2),
        ("2 * -a", -12),
        ("1e3", 1000.0),
        ("0 < b < a", True),
        ("0 < a < b", False),
        ("a == 6 and b == 4", True),
        ("a == 1 or not b == 1", True),
        ("not a == 6 or b == 4", True),
        ("yes == true and no != true", True),
        ("abs(b - a)", 2),
        ("min(a, b, 5)", 4),
        ("max(some.list)", 3),
        ("round(2.5)", 2),
        ("between(a, 6, 7)", True),
        ("between(a, 6.5, 7)", False),
        ("near(a, 6.4, 0.5)", True),
        ("near(a, 6.6, 0.5)", False),
        ("nth(some.list, 1)", 1.5),
        ("nth(some.list, 3)", 3),
        ("count(some.list)", 3),
        ("client.requests.error.1211 == 5", True),
        ('mode == "never" and mode != "always"', True),
        ("mode == 'not (at) all'", False),
    ],
)
def test_an_expression_has_the_value_it_spells(text: str, value: Value) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no and missing == 1", False),
        ("missing == 1 and no", False),
        ("yes or missing == 1", True),
        ("missing == 1 or yes", True),
        ("0 < missing and a < b", False),
        ("1 < 0 < missing", False),
    ],
)
def test_logic_decides_without_what_is_unknown_where_it_can(text: str, *, value: bool) -> None:
    assert evaluate(text) is value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("missing", "the file is missing"),
        ("missing + lost == 1", "the file is missing; the line is cut"),
        ("missing == 1 and missing == 2", "the file is missing"),
        ("yes and missing == 1", "the file is missing"),
        ("not missing == 1", "the file is missing"),
        ("0 < 1 < missing", "the file is missing"),
        ("near(a, missing, 1)", "the file is missing"),
        ("a / (b - 4)", "division by zero"),
        ("a % (b - 4) == 0", "division by zero"),
        ("a // 0", "division by zero"),
        ("1e308 * 10", "a number too large to compute with"),
        ("nth(some.list, 4)", "nth() asked for value 4 of a list of 3"),
        ("nth(some.list, 0)", "nth() counts from 1 in whole steps; there is no value at 0"),
        ("nth(some.list, 1.5)", "nth() counts from 1 in whole steps; there is no value at 1.5"),
        ("max(empty.list)", "an empty list has no least or greatest value"),
    ],
)
def test_what_cannot_be_known_is_unknown_with_its_reasons(text: str, reason: str) -> None:
    assert why(text) == reason


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "the expression is empty"),
        ("  ", 1, "the expression is empty"),
        ("a = b", 3, "= is no part of an expression; write == to compare"),
        ("a == 1 && b == 2", 8, "&& is no part of an expression; write and"),
        ("a == b == ", 11, "a number, a name or a parenthesis is expected, not the end"),
        ("a ** 2", 3, "** is no part of an expression; there is no power operator"),
        ("a == 'x", 6, "' is no part of an expression; a text ends with the quote that it begins with"),
        ("a[0]", 2, "[ is no part of an expression; write nth(list, k) for the k-th smallest value of a list"),
        ("a == €", 6, "€ is no part of an expression"),
        ("a == 20s", 6, "20s is not a number; durations are plain milliseconds, so 20 s is 20000"),
        ("a == 1.2.3", 6, "1.2.3 is not a number; durations are plain milliseconds, so 20 s is 20000"),
        ("a == 1e999", 6, "the number is too large"),
        ("(a == b", 8, ") is expected to close the parenthesis, not the end"),
        ("a == b)", 7, ") is not expected here"),
        ("a b", 3, "b is not expected here"),
        ("a == and", 6, "a number, a name or a parenthesis is expected, not and"),
        ("nht(a, 1)", 1, "there is no function nht; did you mean nth?"),
        ("sqrt(a)", 1, "there is no function sqrt; there are abs, between, count, max, min, near, nth, round"),
        ("1 + near(a, b)", 5, "near() is written near(x, y, tolerance)"),
        ("count()", 1, "count() is written count(list)"),
        ("nth(a 1)", 7, ", is expected between arguments, not 1"),
        ("-" * 50 + "a", 41, "nested deeper than 40 levels"),
        ("+".join(["a"] * 300), 1, "the expression is too long; 400 names, numbers and signs are the most"),
    ],
)
def test_a_wrong_expression_is_refused_where_it_is_wrong(text: str, column: int, message: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse(text)

    assert (refused.value.column, refused.value.message) == (column, message)
    assert str(refused.value) == f"column {column}: {message}"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a", 1, "a prediction must compare something; this is a number"),
        ("a + 1", 1, "a prediction must compare something; this is a number"),
        ("some.list == 3", 1, "== takes a number, not a list; use nth(list, k), count(list), …"),
        ("3 < some.list", 5, "< takes a number, not a list; use nth(list, k), count(list), …"),
        ("a == yes", 6, "== cannot compare a number with a truth value"),
        ("yes < no", 7, "< compares numbers, not truth values"),
        ("mode < 'never'", 8, "< compares numbers, not texts"),
        ("mode == a", 9, "== cannot compare a text with a number"),
        ("mode", 1, "a prediction must compare something; this is a text"),
        ("a and yes", 1, "and takes a truth value, not a number"),
        ("not a", 5, "not takes a truth value, not a number"),
        ("nth(a, 1) == 1", 5, "nth() takes a list, not a number"),
        ("nth(some.list, yes) == 1", 16, "nth() takes a number, not a truth value"),
        ("max(a) == 1", 5, "max() takes a list, not a number"),
        ("max(a, some.list) == 1", 8, "max() takes a number, not a list; use nth(list, k), count(list), …"),
        ("-yes == 1", 2, "- takes a number, not a truth value"),
        ("1 + (a == b) == 2", 6, "+ takes a number, not a truth value"),
    ],
)  # fmt: skip
def test_kinds_that_do_not_fit_are_refused_before_a_run(text: str, column: int, message: str) -> None:
    def kind_of(name: str) -> Kind:
        value = VALUES[name]
        kinds = {bool: Kind.TRUTH, tuple: Kind.LIST, str: Kind.TEXT}
        return kinds.get(type(value), Kind.NUMBER)

    with pytest.raises(ExpressionError) as refused:
        parse(text).check(kind_of)

    assert (refused.value.column, refused.value.message) == (column, message)


def test_the_names_of_an_expression_are_given_once_and_with_every_column() -> None:
    expression = parse("a.x > 1 and near(b, a.x, 2)")

    assert expression.names == ("a.x", "b")
    assert expression.names_with_columns == (("a.x", 1), ("b", 18), ("a.x", 21))


numbers = st.integers(-1000, 1000)


def arithmetic() -> st.SearchStrategy[str]:
    """Expressions that Python spells and computes alike."""
    leaves = st.one_of(numbers.filter(lambda number: number >= 0).map(str), st.sampled_from(["a", "b"]))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner).map(" ".join),
            inner.map(lambda text: f"({text})"),
            inner.map(lambda text: f"-{text}"),
            st.tuples(inner, inner).map(lambda pair: f"max({pair[0]}, {pair[1]})"),
        ),
        max_leaves=12,
    )


@given(arithmetic())
def test_arithmetic_agrees_with_python(text: str) -> None:
    try:
        expected: object = eval(text, {"max": max, "a": 6, "b": 4})  # noqa: S307  the oracle, on text made here
    except ZeroDivisionError:
        expected = None
    value = evaluate(text)

    if expected is None:
        assert isinstance(value, Unknown)
    else:
        assert value == expected


def logic() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(["yes", "no", "missing == 1"]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda parts: f"({''.join(parts)})"),
            inner.map(lambda text: f"not {text}"),
        ),
        max_leaves=8,
    )


@given(logic())
def test_logic_is_unknown_exactly_where_the_unknown_would_decide(text: str) -> None:
    value = evaluate(text)

    # Putting either truth value in the place of the unknown: if both lead to the same, that is the value of Kleene's
    # logic too, but for what is true or false whatever the unknown is, which Kleene's connectives do not see.
    outcomes = {
        parse(text.replace("missing == 1", outcome)).evaluate(VALUES.__getitem__) for outcome in ("true", "false")
    }
    if isinstance(value, bool):
        assert outcomes == {value}
    elif text.count("missing") == 1:
        assert outcomes == {True, False}


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(ExpressionError):
        parse(text)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.data())
def test_nth_counts_from_the_smallest(values: list[float], data: st.DataObject) -> None:
    position = data.draw(st.integers(1, len(values)))
    found = parse(f"nth(l, {position})").evaluate(lambda _: tuple(values))

    assert found == sorted(values)[position - 1]
    assert isinstance(found, float)
    assert math.isfinite(found)
