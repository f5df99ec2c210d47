"""The types that a knob can have: each is read from YAML's values, and says what it takes.

A duration is text with a unit outside (`20s`), whole milliseconds inside.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

DURATION_PATTERN = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$"
_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_DURATION = re.compile(r"(?P<number>[0-9]{1,12}(\.[0-9]{1,6})?)(?P<unit>ms|s|m|h)")

DAY_MS = 86_400_000

# What the values of a knob are in files; one without a unit is a count, a choice or a text.
Unit = Literal["ms", "%", "kbit/s"]

PERCENT_PATTERN = r"^[0-9]+(\.[0-9]+)?%$"
_PERCENT = re.compile(r"(?P<number>[0-9]{1,3}(\.[0-9]{1,6})?)%")
RATE_PATTERN = r"^[0-9]+(\.[0-9]+)?(kbit|mbit|gbit)$"
_KBIT = {"gbit": 1_000_000, "mbit": 1000, "kbit": 1}
_RATE = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,6})?)(?P<unit>kbit|mbit|gbit)")


# What a scenario may write for a knob, a variable or a sysctl.
KnobValue = bool | int | float | str


def parse_duration(text: str) -> int:
    """Read `20s`, `500ms`, `2m`, `1.5h` as whole milliseconds.

    Raises:
        ValueError: there is no unit, or the text is not a whole number of milliseconds.
    """
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"'{text}' is not a duration: write a number with a unit, such as 20s, 500ms or 2m")
    ms = Fraction(match["number"]) * _MS[match["unit"]]
    if ms.denominator != 1:
        raise ValueError(f"'{text}' is not a whole number of milliseconds")
    return int(ms)


def format_duration(ms: int) -> str:
    """Return milliseconds in the largest unit that divides them: 20000 is `20s`, 1500 is `1500ms`, 0 is `0s`."""
    return next(f"{ms // each_ms}{unit}" for unit, each_ms in _MS.items() if ms % each_ms == 0) if ms else "0s"


def refusal(why: str) -> PydanticCustomError:
    """Return the error that says why a value is refused."""
    return PydanticCustomError("refused", "{why}", {"why": why})


def format_knob_value(value: object, unit: str | None) -> str:
    """Return a knob's value as a scenario may write it: `20s` where its unit is `ms`, `true`, `auto`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and unit == "ms":
        return format_duration(value)
    if isinstance(value, int | float) and unit == "%":
        return f"{value:.15g}%"
    if isinstance(value, int) and unit == "kbit/s":
        name, each = next((name, each) for name, each in _KBIT.items() if value % each == 0) if value else ("kbit", 1)
        return f"{value // each}{name}"
    return '""' if value == "" else str(value)


def spoken(value: KnobValue) -> str:
    """Return a value as environments and build arguments spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_duration(value: object) -> int:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise refusal(str(error)) from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise refusal(f"'{value}' has no unit: write {value}s or {value}ms")
    raise refusal("takes a duration, such as 20s, 500ms or 2m")


DURATION_SCHEMA = WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["20s", "500ms", "2m"]})

# A day at most: nginx, Tomcat and k6 take more, a run does not.
Duration = Annotated[int, BeforeValidator(_read_duration), Field(le=DAY_MS), DURATION_SCHEMA]


def _read_percent(value: object) -> float:
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match:
        return float(match["number"])
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise refusal(f"'{value}' has no unit: write {value}%")
    raise refusal(f"'{value}' is not a share: write a number with %, such as 0.5%")


def _read_rate(value: object) -> int:
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    kbit = Fraction(match["number"]) * _KBIT[match["unit"]] if match else None
    if kbit is not None and kbit.denominator == 1:
        return int(kbit)
    raise refusal(f"'{value}' is not a rate: write whole kilobits a second with a unit, such as 512kbit or 10mbit")


PERCENT_SCHEMA = WithJsonSchema({"type": "string", "pattern": PERCENT_PATTERN, "examples": ["1%", "0.1%"]})
RATE_SCHEMA = WithJsonSchema({"type": "string", "pattern": RATE_PATTERN, "examples": ["10mbit", "512kbit"]})

Percent = Annotated[float, BeforeValidator(_read_percent), Field(le=100), PERCENT_SCHEMA]
Rate = Annotated[int, BeforeValidator(_read_rate), Field(ge=1), RATE_SCHEMA]


# What these give is an annotation, and only pydantic knows its kind.


def integer(minimum: int, maximum: int) -> Any:  # noqa: ANN401 # as above
    """Give the type of a whole number."""
    return Annotated[int, Field(ge=minimum, le=maximum)]


def integer_or(also: Mapping[str, str], minimum: int, maximum: int) -> Any:  # noqa: ANN401 # as above
    """Give the type of a whole number, or one of some other values; it is a text where one of these is not a number.

    Args:
        also: what each of these values means, by the value as text.
        minimum: of the number.
        maximum: of the number.
    """
    numeric = all(re.fullmatch(r"-?[0-9]+", text) for text in also)

    def read(value: object) -> int | str:
        is_number = type(value) is int and minimum <= value <= maximum
        if is_number or (not isinstance(value, bool) and str(value) in also):
            return int(str(value)) if numeric else str(value)
        others = ", ".join(f"{text} ({means})" for text, means in also.items())
        raise refusal(f"'{value}' is neither {others} nor a whole number from {minimum} to {maximum}")

    constants: list[dict[str, Any]] = [{"const": int(text) if numeric else text} for text in also]
    schema = {"anyOf": [*constants, {"type": "integer", "minimum": minimum, "maximum": maximum}]}
    return Annotated[int if numeric else str, BeforeValidator(read), WithJsonSchema(schema)]


def duration(minimum_ms: int, maximum_ms: int, step_ms: int) -> Any:  # noqa: ANN401 # as above
    """Give the type of a duration, a whole number of steps: milliseconds inside the lab, with a unit outside."""

    def read(value: object) -> int:
        milliseconds = _read_duration(value)
        if milliseconds % step_ms:
            raise refusal(f"'{value}' is not a multiple of {format_duration(step_ms)}: it takes no finer steps")
        return milliseconds

    return Annotated[int, BeforeValidator(read), Field(ge=minimum_ms, le=maximum_ms), DURATION_SCHEMA]


def choice(values: list[str]) -> Any:  # noqa: ANN401 # as above
    """Give the type of one of these texts."""

    def read(value: object) -> object:
        # YAML reads 1.1 as a number.
        return str(value) if isinstance(value, float) else value

    numbers = [float(value) for value in values if re.fullmatch(r"[0-9]+\.[0-9]+", value)]
    schema: dict[str, Any] = {"enum": [*values, *numbers]} | ({} if numbers else {"type": "string"})
    return Annotated[Literal[tuple(values)], BeforeValidator(read), WithJsonSchema(schema)]


def words(values: list[str], alone: str | None) -> Any:  # noqa: ANN401 # as above
    """Give the type of a list of these words with spaces between them; `alone` allows none beside it."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        given = value.split()
        if not given or not set(given) <= set(values):
            raise refusal(f"'{value}' is not a list of valid words with spaces between them; valid: {' '.join(values)}")
        if alone in given and len(given) > 1:
            raise refusal(f"'{value}' has '{alone}' beside other words; it stands alone")
        return " ".join(given)

    return Annotated[str, BeforeValidator(read)]


def _read_url_path(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(r"/[A-Za-z0-9._~/-]*", value):
        raise refusal(f"'{value}' is not a path: it begins with '/' and holds letters, digits and . _ ~ - /")
    return value


URL_PATH: Any = Annotated[str, BeforeValidator(_read_url_path)]
