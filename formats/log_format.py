"""How a line of an access log is read: a well-known format by its name, or a declared one: JSON, or a pattern."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from formats.knob_types import refusal
from formats.predictions import Part, Text

# What a pattern in RE2, which reads the files, cannot: look around, and find again what was found.
BEYOND_RE2 = re.compile(r"\(\?(?:[=!>(]|<[=!]|P=)|\\[1-9]")

FieldName = Literal[
    "time",
    "start",
    "duration",
    "status",
    "request",
    "method",
    "uri",
    "bytes",
    "client",
    "client_port",
    "request_id",
    "upstream",
    "upstream_port",
    "upstream_status",
    "upstream_connect",
    "upstream_header",
    "upstream_duration",
]
FIELD_NAMES: Mapping[FieldName, str] = {
    "time": "when the request was over: a number since 1970, ISO 8601, or as the common log format has it",
    "start": "when it began, in place of `time`",
    "duration": "how long it took; seconds, unless `unit` or the value itself says otherwise",
    "status": "the status of the answer",
    "request": "method and path, as in GET /cart HTTP/1.1",
    "method": "the method",
    "uri": "the path, with its query",
    "bytes": "how many bytes the answer had",
    "client": "the address that the connection came from; it may have the port, too",
    "client_port": "the port that it came from",
    "request_id": "the request's id, as another program's log has it",
    "upstream": "host and port of the server that the proxy asked",
    "upstream_port": "the port that the proxy asked it from",
    "upstream_status": "the status of that server's answer",
    "upstream_connect": "how long the proxy took to connect",
    "upstream_header": "how long it waited for the answer's header",
    "upstream_duration": "how long it waited for the whole answer",
}
_DURATIONS = ("duration", "upstream_connect", "upstream_header", "upstream_duration")
_UNITS_US = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}


class LogField(Part):
    """Where a line has a value."""

    name: Annotated[Text | None, Field(description="The JSON field, or the pattern's group; its own name")] = None
    unit: Annotated[Literal["s", "ms", "us", "ns"] | None, Field(description="The unit of a duration; s")] = None
    layout: Annotated[Text | None, Field(description="How a time is written, as strftime has it: %d/%b/%Y …")] = None

    @property
    def unit_us(self) -> float:
        """The unit of a duration."""
        return _UNITS_US[self.unit or "s"]


def _name_alone(value: object) -> object:
    """Return a field that is written as its name alone, as one."""
    return {"name": value} if isinstance(value, str) else value


def check_pattern(text: str) -> str:
    """Return a regular expression; refuse what is none."""
    try:
        re.compile(text)
    except re.error as error:
        raise refusal(f"'{text}' is not a regular expression: {error}") from None
    return text


def _is_pattern(text: str) -> str:
    if BEYOND_RE2.search(text):
        raise refusal("a log's pattern must look neither ahead nor back: RE2 reads it")
    return check_pattern(text)


LogFields = dict[FieldName, Annotated[LogField, BeforeValidator(_name_alone, json_schema_input_type=Text | LogField)]]


class LogFormat(Part):
    """A format of one's own: where each line has what."""

    model_config = ConfigDict(title="connlab log format")

    pattern: Annotated[
        Annotated[str, Field(min_length=1), AfterValidator(_is_pattern)] | None,
        Field(description="A regular expression with named groups; without it, each line is a JSON object"),
    ] = None
    fields: Annotated[
        LogFields,
        Field(description="Where each value stands: a JSON field (dots lead into objects), or a group of the pattern"),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _tells_time_and_status(self) -> Self:
        groups = set(re.compile(self.pattern).groupindex) if self.pattern else set()
        for name, one in self.fields.items():
            if self.pattern and (one.name or name) not in groups:
                raise refusal(f"the pattern has no group '{one.name or name}'")
            if self.pattern is None and one.name is None:
                raise refusal(f"the field '{name}' lacks the name that it has in the log")
            if one.unit and name not in _DURATIONS:
                raise refusal(f"'{name}' has no unit: a time's unit shows in its size")
            if one.layout and name not in ("time", "start"):
                raise refusal(f"'{name}' is no time, so it has no layout")
        known = self.places
        if "status" not in known or not {"time", "start"} & known.keys():
            raise refusal("a log needs the fields status and time (or start): the lab knows no line without them")
        return self

    @property
    def places(self) -> dict[FieldName, LogField]:
        """Where each value stands: a group that is named as a field is that field."""
        groups = re.compile(self.pattern).groupindex if self.pattern else {}
        found = {name: LogField(name=name) for name in FIELD_NAMES if name in groups}
        return found | {name: one.model_copy(update={"name": one.name or name}) for name, one in self.fields.items()}


_REQUEST = r'"(?P<method>[^ "]+) (?P<uri>[^ "]+)[^"]*"'


def _common(time: Literal["time", "start"]) -> LogFormat:
    pattern = rf"^(?P<client>\S+) \S+ \S+ \[(?P<{time}>[^\]]+)\] {_REQUEST} (?P<status>\d+) (?P<bytes>\S+)"
    return LogFormat(pattern=pattern)


_CADDY = LogFormat.model_validate({
    "fields": {
        "time": "ts",
        "duration": "duration",
        "status": "status",
        "method": "request.method",
        "uri": "request.uri",
        "bytes": "size",
        "client": "request.remote_ip",
        "client_port": "request.remote_port",
    }
})  # fmt: skip
_TRAEFIK = LogFormat.model_validate({
    "fields": {
        "start": "StartUTC",
        "duration": {"name": "Duration", "unit": "ns"},
        "status": "DownstreamStatus",
        "method": "RequestMethod",
        "uri": "RequestPath",
        "bytes": "DownstreamContentSize",
        "client": "ClientHost",
        "client_port": "ClientPort",
        "upstream": "ServiceAddr",
        "upstream_duration": {"name": "OriginDuration", "unit": "ns"},
    }
})  # fmt: skip
# [%START_TIME%] "%REQ(:METHOD)% %REQ(:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED%
# %BYTES_SENT% %DURATION% … "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"
_ENVOY = LogFormat(
    pattern=rf"^\[(?P<start>[^\]]+)\] {_REQUEST} (?P<status>\d+) \S+(?: \S+)*? \d+ (?P<bytes>\d+) (?P<duration>\d+) \S+"
    r' "[^"]*" "[^"]*" "(?P<request_id>[^"]*)" "[^"]*" "(?P<upstream>[^"]*)"',
    fields={"duration": LogField(unit="ms")},
)
# As the programs write them unless told otherwise; Caddy's and Traefik's as JSON.
WELL_KNOWN: Mapping[str, LogFormat] = {
    "apache": _common("start"),
    "caddy": _CADDY,
    "combined": _common("time"),
    "envoy": _ENVOY,
    "gunicorn": _common("time"),
    "spring": _common("time"),
    "traefik": _TRAEFIK,
}
