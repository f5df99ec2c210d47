"""A run's folder may come from anybody.

Whatever stands in its files, the analysis reads it, or says what is wrong. What is derived is written there alone.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from analysis.derivation import analyse
from analysis.evidence import k6_files, logs, scrapes
from analysis.evidence.jsonl import Damage
from analysis.evidence.logs import Format
from analysis.evidence.records import Log, Records
from analysis.reports import run_report
from formats import manifest
from formats.manifest import ManifestError
from formats.role import Page
from tests.analysis.support import MEASURE_S, at_us, make_access, stub_status
from tests.analysis.whole import make_run
from tests.mutations import as_json, changed, files, spoiled

_EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
_MANIFESTS = [(_EXAMPLE / "manifest.json").read_bytes()]
_SUMMARIES = [
    json.dumps(
        {
            "root_group": {"checks": [{"name": "status is 200", "passes": 3, "fails": 1}], "groups": []},
            "metrics": {
                "dropped_iterations": {"values": {"count": 2}},
                "http_req_duration": {"values": {"p(95)": 3.5}, "thresholds": {"p(95)<500": {"ok": True}}},
            },
        }
    ).encode()
]
_NGINX = [make_access(MEASURE_S, 200), make_access(MEASURE_S + 1, 504)]
_HAPROXY = [
    {
        "time_ms": at_us(MEASURE_S) // 1000, "accepted_ms": "5", "requests": "1", "client_address": "172.18.0.3",
        "client_port": 40_001, "frontend_address": "172.18.0.4", "method": "GET", "uri": "/", "status": 200,
        "bytes_sent": 150, "request_ms": 0, "queue_ms": 0, "connect_ms": 1, "response_ms": 1000, "active_ms": 1002,
        "termination": termination, "retries": 1, "server_address": "172.18.0.2", "server_port": "8080",
        "local_port": "3",
    }
    for termination in ("----", "sC--")
]  # fmt: skip


def _refused(content: bytes) -> str:
    """What a manifest is refused with: nothing if it is read."""
    with TemporaryDirectory() as name:
        file = Path(name) / manifest.FILE
        file.write_bytes(content)
        try:
            manifest.load_manifest(Path(name))
        except ManifestError as error:
            said = str(error)
            assert said.startswith(str(file))
            assert "\n" not in said
            return said
    return ""


@given(files([json.loads(one) for one in _MANIFESTS], _MANIFESTS))
def test_any_manifest_is_read_or_refused(content: bytes) -> None:
    _refused(content)


def test_a_key_of_two_lines_is_told_in_one() -> None:
    content = json.loads(_MANIFESTS[0])
    assert r"exits.\n: Input" in _refused(json.dumps(content | {"exits": {"\n": "x"}}).encode())


def test_a_knob_of_more_digits_than_a_float_can_have_is_refused() -> None:
    content = json.loads(_MANIFESTS[0])
    name = next(iter(content["knobs"]))
    content["knobs"][name]["value"] = 10**310
    assert "a number of more than 14 digits" in _refused(json.dumps(content).encode())


def _lines(records: list[Any]) -> bytes:
    return b"".join(as_json(one) + b"\n" for one in records)


def _read_access(of: Format, content: bytes) -> None:
    with TemporaryDirectory() as name:
        file = Path(name) / "access.jsonl"
        file.write_bytes(content)
        read = Records()
        read.load_access(file, "proxy-1", of)
        assert read.access["proxy-1"].damage.missing is None


@given(changed([_NGINX]).filter(lambda it: isinstance(it, list)).map(_lines) | spoiled([_lines(_NGINX)]))
def test_any_access_log_of_nginx_is_read(content: bytes) -> None:
    _read_access(logs.NGINX_ACCESS, content)


@given(changed([_HAPROXY]).filter(lambda it: isinstance(it, list)).map(_lines) | spoiled([_lines(_HAPROXY)]))
def test_any_access_log_of_haproxy_is_read(content: bytes) -> None:
    _read_access(logs.HAPROXY_ACCESS, content)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**31 - 1, 10**12])
@pytest.mark.parametrize("field", ["request_ms", "queue_ms", "connect_ms", "response_ms", "active_ms", "retries"])
def test_a_number_that_no_haproxy_writes_is_missing(field: str, number: int) -> None:
    _read_access(logs.HAPROXY_ACCESS, _lines([one | {field: number} for one in _HAPROXY]))


@pytest.mark.parametrize("at", ["(a", "a+", ""])
def test_a_pattern_of_a_foreign_run_that_finds_nothing_is_refused(at: str) -> None:
    with pytest.raises(ValidationError, match=r"regular expression|must have one group|at least 1 character"):
        Page.model_validate({"url": "/", "format": "text", "values": {"open": {"at": at}}})


def test_a_page_with_an_endless_field_has_no_figures() -> None:
    page = Page.model_validate({"url": "/", "format": "csv", "values": {"open": {"at": "traffic/FRONTEND/scur"}}})
    assert scrapes.values(page, [_HAPROXY_PAGE, _HAPROXY_PAGE + "x" * 200_000]) == [{"open": 3}, {}]


_ERRORS = [
    b"2025/11/21 07:26:40 [error] 7#7: *12 connect() failed (111: Connection refused) while connecting to upstream",
    b"2025/11/21 07:26:40 [warn] 7#7: 512 worker_connections are not enough, reusing connections",
    b"2025-11-21T07:26:40.123456+00:00 Connect() failed for backend servers: no free ports.",
]


@pytest.mark.parametrize("form", logs.ERRORS)
@given(line=spoiled(_ERRORS) | st.binary())
def test_any_line_of_an_error_log_is_a_message_or_none(form: str, line: bytes) -> None:
    message = logs.ERRORS[form](line)
    assert message is None or isinstance(message.time_us, int)


_HAPROXY_PAGE = "# pxname,svname,scur,req_tot,qcur\ntraffic,FRONTEND,3,17,\nservers,BACKEND,2,17,1\n"
_PAGES = [
    ("json", "connections.current", {"connections": {"current": 3}}),
    ("text", r"Active connections: (\d+)", stub_status(MEASURE_S, 9)["body"]),
    ("csv", "traffic/FRONTEND/scur", _HAPROXY_PAGE),
]


@given(st.data())
def test_any_scrape_is_read(data: st.DataObject) -> None:
    form, at, body = data.draw(st.sampled_from(_PAGES))
    page = Page.model_validate({"url": "/", "format": form, "values": {"open": {"at": at}}})
    record = {"time_us": at_us(MEASURE_S), "status": 200, "body": body}
    bodies = (
        st.text() | spoiled([body.encode()]).map(lambda it: it.decode("utf-8", "replace"))
        if form != "json"
        else st.nothing()
    )
    lines = data.draw(
        changed([[record, record]]).filter(lambda it: isinstance(it, list))
        | bodies.map(lambda it: [record | {"body": it}])
    )
    with TemporaryDirectory() as name:
        file = Path(name) / "page.jsonl"
        file.write_bytes(data.draw(st.just(_lines(lines)) | spoiled([_lines(lines)])))
        for found in scrapes.values(page, scrapes.read(file, page).bodies):
            assert all(isinstance(value, int) for value in found.values())


@given(files([json.loads(one) for one in _SUMMARIES], _SUMMARIES), st.binary(max_size=40))
def test_anything_that_k6_leaves_is_read(summary: bytes, live: bytes) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "summary.json").write_bytes(summary)
        (folder / "live.jsonl").write_bytes(live)
        read = k6_files.read(folder, "k6-1", Log(Damage()), Log(Damage()))
        assert read.dropped_iterations is None or isinstance(read.dropped_iterations, int)


DERIVED = ("verdict.json", "ledger.json", "figures.json", "ladders.json")
TABLES = ("requests.parquet", "flows.parquet", "timeline.parquet", "readings.parquet")


def test_a_link_in_place_of_derived_leads_nowhere(tmp_path: Path) -> None:
    folder, outside = make_run(tmp_path / "run"), tmp_path / "outside"
    outside.mkdir()
    run = folder.write()
    (run / "derived").symlink_to(outside)
    analyse(run)
    assert list(outside.iterdir()) == []
    assert (run / "derived" / "verdict.json").is_file()


def test_a_link_in_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    run, outside = make_run(tmp_path / "run").write(), tmp_path / "outside"
    outside.write_text("another's")
    (run / "derived").mkdir()
    files = [*(run / "derived" / name for name in (*DERIVED, *TABLES)), run / "report.html"]
    for file in files:
        file.symlink_to(outside)
        file.with_name(f"{file.name}.partial").symlink_to(outside)
    analyse(run)
    run_report.write(run)
    assert outside.read_text() == "another's"
    assert [file for file in files if file.is_symlink() or not file.is_file()] == []
