"""Numbers and durations as a reader gets them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.expressions.values import Number
from analysis.formatting import format_count, format_ms, format_number, format_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (12, "12"),
        (1_234_567, "1,234,567"),
        (1_234_567.0, "1,234,567"),
        (0.12345, "0.123"),
        (12.34, "12.3"),
        (999.4, "999"),
        (999.6, "1,000"),
        (42_659.4, "42,659"),
        (-3_600.4, "-3,600"),
        (-999.7, "-1,000"),
        (0.000_012_34, "0.0000123"),
    ],
)
def test_a_number_has_three_digits_or_as_many_as_before_its_point(value: Number, text: str) -> None:
    assert format_number(value) == text
    assert format_value(value) == text


def test_with_more_digits_a_number_has_more() -> None:
    assert [format_number(value, 4) for value in (1.23456, 999.96, 42_659.3)] == ["1.235", "1,000", "42,659"]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.sampled_from([3, 4]))
def test_no_number_has_an_exponent(value: float, digits: int) -> None:
    text = format_number(value, digits)

    assert "e" not in text.lower()
    assert float(text.replace(",", "")) == pytest.approx(value, rel=10 ** (1 - digits) / 2)


def test_a_difference_tells_its_sign() -> None:
    assert [format_number(value, signed=True) for value in (999.7, -999.7, 0.0)] == [
        "+1,000",
        "-1,000",
        "0",
    ]


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.25, "0.25 ms"), (999.7, "1,000 ms"), (1_000, "1 s"), (22_080.4, "22.1 s"), (2_000_000, "2,000 s"),
     (-3_600, "-3.6 s"), (-3.6, "-3.6 ms")],
)  # fmt: skip
def test_a_duration_is_spoken_in_the_unit_that_fits(ms: float, text: str) -> None:
    assert format_ms(ms) == text


def test_one_thing_is_no_plural() -> None:
    assert [format_count(each, "run") for each in (0, 1, 1_200)] == ["0 runs", "1 run", "1,200 runs"]
