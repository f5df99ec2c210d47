"""Logs whose format is declared: what their lines say, and what they leave open."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from analysis.evidence.declared_logs import DeclaredFormat, Upstreams
from analysis.evidence.records import Records
from formats.log_format import WELL_KNOWN, LogFormat

BACKEND = Upstreams({"backend": "10.0.0.3", "backend-1": "10.0.0.3"}, "10.0.0.3:8080", proxy=True)
CADDY = (
    '{"level":"info","ts":1700000000.125,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":'
    '"10.0.0.9","remote_port":"41342","method":"GET","host":"a","uri":"/a?b=1"},"duration":0.5,"size":9,"status":502}'
)
# As Traefik 3.7.13 wrote it.
TRAEFIK = (
    '{"ClientAddr":"192.168.80.2:50878","ClientHost":"192.168.80.2","ClientPort":"50878","ClientUsername":"-",'
    '"DownstreamContentSize":15,"DownstreamStatus":504,"Duration":2900708802,"OriginContentSize":15,"OriginDuration":'
    '2900604106,"OriginStatus":504,"Overhead":104696,"RequestAddr":"traefik-1:8080","RequestContentSize":0,'
    '"RequestCount":11,"RequestHost":"traefik-1","RequestMethod":"GET","RequestPath":"/api/delay?ms=4000\\u0026bytes=0",'
    '"RequestPort":"8080","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"RouterName":'
    '"everything@file","ServiceAddr":"backend:8080","ServiceName":"backend@file","ServiceURL":"http://backend:8080",'
    '"StartLocal":"2026-11-29T13:45:45.443084862Z","StartUTC":"2026-11-29T13:45:45.443084862Z","entryPointName":"web",'
    '"level":"info","msg":"","time":"2026-11-29T13:45:48Z"}'
)
COMBINED = '10.0.0.9 - - [21/Nov/2025:08:26:40 +0100] "GET /a HTTP/1.1" 200 {} "-" "k6"'
ENVOY = (
    '[2025-11-21T07:26:40.500Z] "GET /a HTTP/1.1" 503 UF upstream_reset_before_response_started - 0 91 250 - "-" "k6"'
    ' "cc21" "shop" "10.0.0.7:80"'
)
MORNING_MS = 1_763_710_000_000


def rows(folder: Path, declared: LogFormat, text: str, upstreams: Upstreams = BACKEND) -> list[dict[str, Any]]:
    file = folder / "access.log"
    file.write_text(text)
    records = Records()
    records.load_access(file, "proxy", DeclaredFormat(declared, upstreams))
    assert records.access["proxy"].damage.messages("access.log") == []
    return records.rows("SELECT * FROM access")


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("caddy", CADDY, {"time_ms": 1_700_000_000_125, "remote_port": 41342, "request_time": 0.5, "status": 502,
                          "upstream_addr": "10.0.0.3:8080", "resolution_us": 1000, "request_uri": "/a?b=1"}),
        ("traefik", TRAEFIK, {"time_ms": 1_795_959_948_343, "remote_addr": "192.168.80.2", "remote_port": 50878,
                              "status": 504, "request_time": 2.900709, "upstream_addr": "10.0.0.3:8080",
                              "upstream_response_time": "2.900604", "request_method": "GET",
                              "request_uri": "/api/delay?ms=4000&bytes=0"}),
        ("combined", COMBINED.format(9), {"time_ms": MORNING_MS, "remote_addr": "10.0.0.9", "remote_port": None,
                                          "status": 200, "bytes_sent": 9, "resolution_us": 1_000_000}),
        ("spring", COMBINED.format("-"), {"bytes_sent": None, "request_method": "GET"}),
        ("envoy", ENVOY, {"time_ms": MORNING_MS + 750, "request_id": "cc21", "upstream_addr": "10.0.0.7:80",
                          "status": 503, "bytes_sent": 91}),
    ],
    ids=["caddy", "traefik", "combined", "spring", "envoy"],
)  # fmt: skip
def test_a_well_known_log_is_read(tmp_path: Path, name: str, line: str, found: dict[str, Any]) -> None:
    (row,) = rows(tmp_path, WELL_KNOWN[name], f"its own words\n{line}\n")
    assert {key: row[key] for key in found} == found
    assert row["guessed"]


@pytest.mark.parametrize(
    ("told", "time_ms", "resolution_us"),
    [
        ("1763710000", MORNING_MS, 1_000_000),
        (1_763_710_000_123, MORNING_MS + 123, 1000),
        (1_763_710_000_123_456_789, MORNING_MS + 123, 1000),
        (1763710000.25, MORNING_MS + 250, 10_000),
        ("2025-11-21 07:26:40,5", MORNING_MS + 500, 100_000),
        ("2025-11-21T08:26:40+01:00", MORNING_MS, 1_000_000),
    ],
)
def test_a_time_shows_its_unit_and_how_exact_it_is(
    tmp_path: Path, told: object, time_ms: int, resolution_us: int
) -> None:
    declared = LogFormat.model_validate({"fields": {"time": "at", "status": "code"}})
    (row,) = rows(tmp_path, declared, f'{{"at": {repr(told).replace(chr(39), chr(34))}, "code": 200}}\n')
    assert (row["time_ms"], row["resolution_us"]) == (time_ms, resolution_us)


@pytest.mark.parametrize(("told", "seconds"), [("12", 0.012), ("3s", 3), ("250us", 0.00025), ("-", None)])
def test_a_duration_has_the_declared_unit_or_its_own(tmp_path: Path, told: str, seconds: float | None) -> None:
    pattern = r"^(?P<time>\S+) (?P<status>\d+) (?P<took>\S+)"
    declared = LogFormat.model_validate({"pattern": pattern, "fields": {"duration": {"name": "took", "unit": "ms"}}})
    (row,) = rows(tmp_path, declared, f"1763710000 200 {told}\n")
    assert row["request_time"] == seconds


@pytest.mark.parametrize(
    ("upstream", "upstreams", "address"),
    [
        ("backend-1:8080", BACKEND, "10.0.0.3:8080"),
        ("http://backend:80/x", BACKEND, "10.0.0.3:80"),
        # A name that nothing resolves is the one server behind it, or one of several.
        ("pool-a", BACKEND, "10.0.0.3:8080"),
        ("pool-a", Upstreams(BACKEND.names, None, proxy=True), ""),
        # It answered by itself.
        ("-", BACKEND, ""),
    ],
)
def test_a_proxy_s_server_is_the_one_that_its_log_names(
    tmp_path: Path, upstream: str, upstreams: Upstreams, address: str
) -> None:
    declared = LogFormat.model_validate({"fields": {"time": "t", "status": "s", "upstream": "to.server"}})
    line = f'{{"t": 1763710000, "s": 200, "to": {{"server": "{upstream}"}}}}'
    assert rows(tmp_path, declared, line, upstreams)[0]["upstream_addr"] == address


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"fields": {"time": "t"}}, "a log needs the fields status and time"),
        ({"fields": {"time": "t", "status": {"unit": "ms"}}}, "the field 'status' lacks the name"),
        ({"pattern": "(?P<time>.+) (?P<status>.+)", "fields": {"bytes": "size"}}, "the pattern has no group 'size'"),
        ({"pattern": "(?P<time>(?=x).+) (?P<status>.+)"}, "must look neither ahead nor back"),
        ({"fields": {"time": {"name": "t", "unit": "ms"}, "status": "s"}}, "'time' has no unit"),
    ],
)
def test_a_format_that_tells_too_little_is_refused(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        LogFormat.model_validate(declared)
