import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.evidence.jsonl import Damage, JsonLines, Record, integer, parse
from analysis.evidence.records import Log, Records
from tests.analysis.support import jsonl, make_request

HEADER = b'{"kind":"header","schema":"connlab.requests/1","instance":"k6-1","time_us":1}\n'


def read(content: bytes) -> tuple[list[tuple[int, Record | None]], Damage]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.jsonl"
        path.write_bytes(content)
        lines = JsonLines(path)
        return list(lines), lines.damage


def test_every_line_is_a_record() -> None:
    found, damage = read(b'{"a":1}\n\n{"a":2}\n')

    assert found == [(1, {"a": 1}), (3, {"a": 2})]
    assert damage.messages("f") == []


def test_a_cut_last_line_is_reported_and_the_rest_is_used() -> None:
    found, damage = read(b'{"a":1}\n{"a":')

    assert found == [(1, {"a": 1}), (2, None)]
    assert damage.messages("f") == ["f: the last line is cut off"]


def test_a_last_line_that_lacks_only_its_line_feed_is_whole() -> None:
    found, damage = read(b'{"a":1}\n{"a":2}')

    assert found[-1] == (2, {"a": 2})
    assert damage == Damage()


@pytest.mark.parametrize("bad", [b"[1]", b'"a"', b"\xff\xfe", b"NaN", b'{"a":NaN}', b"[" * 100_000, b"x" * 3_000_000])
def test_a_corrupt_line_is_counted_and_passed_over(bad: bytes) -> None:
    found, damage = read(b'{"a":1}\n' + bad + b'\n{"a":2}\n')

    assert [record for _, record in found if record] == [{"a": 1}, {"a": 2}]
    assert damage.bad_lines >= 1
    assert damage.first_bad_line == 2


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    missing, folder = JsonLines(tmp_path / "none.jsonl"), JsonLines(tmp_path)

    assert (list(missing), list(folder)) == ([], [])
    assert missing.damage.messages("none.jsonl") == ["none.jsonl: missing"]
    assert folder.damage.messages("x") == ["x: is a directory"]


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", None, 2**63, [1]])
def test_only_a_natural_number_of_63_bits_is_an_integer(value: object) -> None:
    assert integer({"a": value}, "a") is None
    assert integer({"a": 2**63 - 1}, "a") == 2**63 - 1


def read_requests(content: bytes) -> Records:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "requests.jsonl"
        path.write_bytes(content)
        records = Records()
        records.load_requests(path, "k6-1")
        return records


def log_of(content: bytes) -> Log:
    return read_requests(content).requests["k6-1"]


def test_requests_are_read_with_header_and_end() -> None:
    lines = [make_request(1, 1000.5), make_request(2, None), {"kind": "end", "time_us": 1, "requests": 2}]
    records = read_requests(HEADER + jsonl(lines).encode())
    requests = records.requests["k6-1"]

    assert (requests.header, requests.announced, requests.damage) == (True, 2, Damage())
    assert records.integers("SELECT connecting_us + duration_us FROM requests").tolist() == [1_000_500, 0]
    assert records.integers("SELECT error_code FROM requests").tolist() == [0, 1211]


@pytest.mark.parametrize("schema", ["connlab.requests/2", "connlab.dials/1", ""])
def test_a_header_of_another_version_is_none(schema: str) -> None:
    header = json.dumps({"kind": "header", "schema": schema, "instance": "k6-1", "time_us": 1}).encode() + b"\n"

    assert not log_of(header).header


def oracle(content: bytes) -> tuple[int, int]:
    """Records and corrupt lines of requests.jsonl, counted in Python."""
    records = corrupt = 0
    for line in content.split(b"\n"):
        record = parse(line)
        if not line.strip():
            continue
        if record is not None and record.get("kind") is not None:
            corrupt += record["kind"] not in ("header", "end", "close")
        elif record is not None and all(0 <= (record.get(key) or 0) <= 2**53 and key in record for key in RECORD):
            records += 1
        else:
            corrupt += 1
    return records, corrupt


def damaged(record: Record) -> st.SearchStrategy[bytes]:
    """A record's line, whole or with some of its bytes gone, doubled, or replaced."""
    line = json.dumps(record).encode()
    place = st.integers(0, len(line) - 1)
    cuts = st.tuples(place, place).map(lambda pair: line[: min(pair)] + line[max(pair) :])
    bytes_ = st.tuples(place, st.sampled_from([b"\n", b'"', b"}", b"\x00", b",", b"9" * 30])).map(
        lambda change: line[: change[0]] + change[1] + line[change[0] :]
    )
    return st.one_of(st.just(line), cuts, bytes_)


RECORD: Record = {
    "id": 7, "vu": 7, "time_us": 7, "end_us": 7, "blocked_us": 7, "connecting_us": 7, "tls_us": 7, "sending_us": 7,
    "waiting_us": 7, "receiving_us": 7, "duration_us": 7, "status": 200, "error_code": 7,
}  # fmt: skip


@pytest.mark.parametrize("field", RECORD)
def test_a_request_that_lacks_a_number_is_corrupt(field: str) -> None:
    lines = [{**make_request(1, 5.0), field: None}, make_request(2, 7.0)]
    requests = log_of(HEADER + jsonl(lines).encode())

    assert (requests.count, requests.damage.bad_lines) == (1, 1)


@given(st.lists(damaged(RECORD), max_size=6))
def test_duckdb_and_python_agree_on_which_lines_are_records(lines: list[bytes]) -> None:
    content = HEADER + b"\n".join(lines) + b"\n"
    # DuckDB lets a comma before the closing brace pass; nothing is lost by it.
    assume(b",}" not in content)
    requests = log_of(content)

    assert (requests.count, requests.damage.bad_lines) == oracle(content)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00" * 5000, b"\x1f\x8b\x08", HEADER[:30], b"x" * 20_000_000])
def test_a_file_that_is_none_of_the_labs_holds_nothing(content: bytes) -> None:
    requests = log_of(content)

    assert (requests.count, requests.header, requests.announced) == (0, False, None)


def test_sums_that_do_not_fit_make_a_line_corrupt_and_not_the_file() -> None:
    huge: dict[str, Any] = {**make_request(1, 5.0), "connecting_us": 2**62, "duration_us": 2**62}
    records = read_requests(HEADER + jsonl([huge, make_request(2, 7.0)]).encode())

    assert records.requests["k6-1"].damage.bad_lines == 1
    assert records.integers("SELECT connecting_us + duration_us FROM requests").tolist() == [7000]
