"""The types of knobs that need more than a range: each is read from YAML's values, and says what it takes."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lab.scenario.units import DURATION_PATTERN, parse_duration

_DAY_MS = 86_400_000
_WORKERS_MAX = 64
_LIMIT_MAX = 2_000_000_000
_RETRY_CONDITIONS = (
    *("error", "timeout", "invalid_header", "http_500", "http_502", "http_503", "http_504", "http_403", "http_404"),
    *("http_429", "non_idempotent", "off"),
)


def _refuse(why: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{why}", {"why": why})


def _read_duration(value: object) -> int:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise _refuse(str(error)) from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise _refuse(f"'{value}' has no unit: write {value}s or {value}ms")
    raise _refuse("takes a duration, such as 20s, 500ms or 2m")


def _read_seconds(value: object) -> int:
    milliseconds = _read_duration(value)
    if milliseconds % 1000:
        raise _refuse(f"'{value}' is no whole number of seconds, and finer it does not take")
    return milliseconds


def _read_workers(value: object) -> str:
    if value == "auto" or (type(value) is int and 1 <= value <= _WORKERS_MAX):
        return str(value)
    raise _refuse(f"'{value}' is neither 'auto' nor a whole number from 1 to {_WORKERS_MAX}")


def _read_limit(value: object) -> object:
    # Tomcat would take 0 for 1.
    if type(value) is int and (value < -1 or value == 0):
        raise _refuse(f"'{value}' is neither -1 (no limit) nor at least 1")
    return value


def _read_http_version(value: object) -> object:
    # YAML reads 1.1 as a number.
    return str(value) if isinstance(value, float) else value


def _read_retry_conditions(value: object) -> object:
    if isinstance(value, str):
        words = value.split()
        if not words or not set(words) <= set(_RETRY_CONDITIONS):
            raise _refuse(f"'{value}' is no list of nginx's conditions; valid: {' '.join(_RETRY_CONDITIONS)}")
        if "off" in words and len(words) > 1:
            raise _refuse(f"'{value}' has 'off' beside conditions; it stands alone")
        return " ".join(words)
    return value


def _read_url_path(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(r"/[A-Za-z0-9._~/-]*", value):
        raise _refuse(f"'{value}' is no path: it begins with '/' and holds letters, digits and . _ ~ - /")
    return value


def _read_sysctl(value: object) -> object:
    return str(value) if type(value) is int else value


DURATION_SCHEMA = WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["20s", "500ms", "2m"]})

# A day at most: nginx, Tomcat and k6 take more, a run does not.
Duration = Annotated[int, BeforeValidator(_read_duration), Field(le=_DAY_MS), DURATION_SCHEMA]
# Still milliseconds inside the lab; for settings that take whole seconds.
Seconds = Annotated[int, BeforeValidator(_read_seconds), Field(le=_DAY_MS), DURATION_SCHEMA]
Workers = Annotated[
    str,
    BeforeValidator(_read_workers),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": _WORKERS_MAX}]}),
]
RequestLimit = Annotated[
    int,
    BeforeValidator(_read_limit),
    Field(le=_LIMIT_MAX),
    WithJsonSchema({"type": "integer", "minimum": -1, "maximum": _LIMIT_MAX, "not": {"const": 0}}),
]
HttpVersion = Annotated[
    Literal["1.0", "1.1"], BeforeValidator(_read_http_version), WithJsonSchema({"enum": ["1.0", "1.1", 1.0, 1.1]})
]
RetryConditions = Annotated[str, BeforeValidator(_read_retry_conditions)]
UrlPath = Annotated[str, BeforeValidator(_read_url_path)]
SysctlValue = Annotated[str, BeforeValidator(_read_sysctl), WithJsonSchema({"type": ["integer", "string"]})]
