import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.knob_types import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "ms"), [("20s", 20_000), ("500ms", 500), ("2m", 120_000), ("1.5s", 1500), ("1h", 3_600_000), ("0s", 0)]
)
def test_a_duration_is_read_as_milliseconds(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["20", "", "s", "-1s", "1 s", "1e3s", "20S", "20sec", "٣s", "1.s", "20s\n"])
def test_what_has_no_unit_or_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_a_fraction_of_a_millisecond_is_refused() -> None:
    with pytest.raises(ValueError, match="not a whole number of milliseconds"):
        parse_duration("0.5ms")


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0s"), (15, "15ms"), (1_500, "1500ms"), (20_000, "20s"), (600_000, "10m"), (3_600_000, "1h")]
)
def test_a_duration_is_written_as_a_scenario_writes_it(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@given(st.integers(min_value=0, max_value=10**11))
def test_a_duration_that_was_written_reads_the_same(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_duration(text) >= 0
