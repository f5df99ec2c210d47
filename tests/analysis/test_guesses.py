"""A guess beside what was measured: how near it came, and how both are written."""

import pytest

from analysis.verdicts import guesses


@pytest.mark.parametrize(
    ("guess", "measured", "mark", "remark"),
    [
        (1, 0, "off", "there were none"),
        (0, 1, "off", "there were some"),
        (2, 1, "near", "1 too many"),
        (1, 1.5, "near", "0.5 too few"),
        (12_345, 12_345.0, "right", ""),
        (1_000, 2_500_000, "off", "2,500 times your number"),
        (50_000, 48_000, "near", "2,000 too many"),
    ],
)
def test_a_count_is_met_exactly_or_by_one_or_by_a_quarter(
    guess: float, measured: float, mark: str, remark: str
) -> None:
    assert guesses.compare(guess, measured, "", "") == (mark, remark)


def test_a_rate_is_measured_and_right_to_a_tenth() -> None:
    assert guesses.compare(1_000, 1_049.7, "requests/s", "")[0] == "right"


def test_the_middle_of_two_counts_is_written_as_they_are() -> None:
    assert [guesses.written(value, "") for value in (12_345, 12_345.0, 12_345.5)] == ["12,345", "12,345", "12,345.5"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (999.97, "ms", "1,000 ms"),
        (30_000, "ms", "30 s"),
        (-3_600, "ms", "-3.6 s"),
        (2_000_000.0, "ms", "2,000 s"),
        (12.345, "% of one processor", "12.35 % of one processor"),
        (42_659.3, "requests/s", "42,659 requests/s"),
    ],
)
def test_what_is_measured_has_its_unit(value: float, unit: str, text: str) -> None:
    assert guesses.written(value, unit) == text
