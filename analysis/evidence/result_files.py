"""Reads what load generators write of each request: JMeter's JTL (CSV or XML), and vegeta's results as CSV.

A row becomes a request as k6 records one, and, where it says that a connection was made or failed, a dial without a
port of its own: `joins` finds its connection by time. What a format has not is NULL.
"""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from analysis.evidence.jsonl import MOMENT_MAX_US, Damage, why_unreadable
from formats.safe_files import open_regular

# k6's codes for a request without an answer and for an error status.
_FAILED, _STATUS = 1000, 1000
# urllib3, which Locust uses, says the last of these.
_CONNECT_TIMEOUTS = ("connect timed out", "connecttimeout", "connection timed out", "(connect timeout=")
# What the words of an error say of the connection; where they name none of these, packets tell.
_WORDS = (
    ("refused", ("connection refused", "connectionrefused")),
    ("address-not-available", ("cannot assign requested address", "address already in use: connect")),
    ("unreachable", ("no route to host", "network is unreachable")),
    ("timeout", (*_CONNECT_TIMEOUTS, "dial tcp", "connectexception")),
)


@dataclass(slots=True)
class Result:
    """One request; times in µs, and None where the file does not say."""

    thread: str
    name: str
    url: str | None
    method: str | None
    time_us: int
    took_us: int
    connect_us: int | None
    first_byte_us: int | None
    status: int
    succeeded: bool
    error: str | None

    @property
    def error_kind(self) -> str | None:
        """How its connection failed; None if it had one, or the file does not say."""
        if self.status or self.succeeded:
            return None
        said = (self.error or "").lower()
        return next((kind for kind, words in _WORDS if any(word in said for word in words)), None)


def _jmeter(row: Mapping[str, str]) -> Result:
    """Return a sample of a JTL: by the columns of its CSV, or by the attributes of its XML, which have short names."""
    code = row.get("responseCode", row.get("rc", ""))
    message = row.get("responseMessage", row.get("rm", ""))
    succeeded = (row.get("success", row.get("s")) or "").lower() == "true"
    connect, latency = row.get("Connect", row.get("ct")), row.get("Latency", row.get("lt"))
    return Result(
        thread=row.get("threadName", row.get("tn", "")),
        name=row.get("label", row.get("lb", "")),
        url=row.get("URL") or None,
        method=None,
        time_us=1000 * int(row.get("timeStamp", row.get("ts", ""))),
        took_us=1000 * int(row.get("elapsed", row.get("t", ""))),
        connect_us=1000 * int(connect) if connect else None,
        first_byte_us=1000 * int(latency) if latency else None,
        status=int(code) if code.isdecimal() else 0,
        succeeded=succeeded,
        error=None if succeeded else f"{code}: {message}".strip(": ") or None,
    )


# `vegeta encode --to csv` writes no line of names.
_VEGETA = ("timestamp", "code", "latency", "bytes_out", "bytes_in", "error", "body", "attack", "seq", "method", "url")


def _vegeta(row: Mapping[str, str]) -> Result:
    status = int(row["code"])
    return Result(
        thread="",
        name=row["attack"],
        url=row["url"] or None,
        method=row["method"] or None,
        time_us=int(row["timestamp"]) // 1000,
        took_us=int(row["latency"]) // 1000,
        connect_us=None,
        first_byte_us=None,
        status=status,
        succeeded=not row["error"] and 200 <= status < 400,  # noqa: PLR2004 # as k6 counts
        error=row["error"] or None,
    )


def _rows_of_csv(file: BinaryIO, names: tuple[str, ...] | None) -> Iterator[Mapping[str, str]]:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    # Vegeta's bodies may be long; more than that is no field of a result.
    limit = csv.field_size_limit(1 << 24)
    try:
        yield from csv.DictReader(text, names, restkey="more", restval="")
    finally:
        csv.field_size_limit(limit)  # it holds for all that this process reads
        text.detach()  # who opened the file closes it


def _rows_of_jtl(file: BinaryIO) -> Iterator[Mapping[str, str]]:
    begins = file.read(64).lstrip()
    file.seek(0)
    if not begins.startswith(b"<"):
        yield from _rows_of_csv(file, None)
        return
    for _, element in ET.iterparse(file):  # noqa: S314 # the run's own; entities that grow are refused by expat
        if element.tag in ("sample", "httpSample"):
            yield element.attrib
        element.clear()


_READERS: Mapping[str, tuple[Callable[[BinaryIO], Iterator[Mapping[str, str]]], Callable[[Mapping[str, str]], Result]]]
_READERS = {
    "jmeter": (_rows_of_jtl, _jmeter),
    "vegeta": (lambda file: _rows_of_csv(file, _VEGETA), _vegeta),
}
FORMATS = tuple(_READERS)


def read(path: Path, of: str, server: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Damage]:
    """Return the requests and dials of a file of results, as rows of these tables; it never raises.

    Args:
        path: of the file.
        of: its format.
        server: address and port that the load goes to; None if they are not known.
    """
    rows, sample = _READERS[of]
    damage, requests, dials = Damage(), list[dict[str, Any]](), list[dict[str, Any]]()
    threads: dict[str, int] = {}
    try:
        with open_regular(path) as file:
            for number, row in enumerate(rows(file), start=1):
                try:
                    found = sample(row)
                except (KeyError, ValueError, TypeError):
                    damage.add_bad_line(number)
                    continue
                if not (0 <= found.time_us <= MOMENT_MAX_US and 0 <= found.took_us <= MOMENT_MAX_US):
                    damage.add_bad_line(number)
                    continue
                # Without a thread's name, nothing says which requests were one user's: each has one of its own.
                user = threads.setdefault(found.thread or str(number), len(threads) + 1)
                requests.append(_request(number, user, found, server))
                if found.error_kind or found.connect_us or not found.status:
                    dials.append(_dial(number, user, found, server))
                else:
                    requests[-1]["dial"] = None
    except ET.ParseError:
        damage.cut = True
    except (OSError, csv.Error) as error:
        damage.missing = why_unreadable(error) if isinstance(error, OSError) else str(error)
    return requests, dials, damage


def _request(number: int, user: int, found: Result, server: str | None) -> dict[str, Any]:
    connect_us = found.connect_us or 0
    # JMeter notes a latency of 0 where nothing of an answer came: such a request waited until its end.
    nothing_came = found.first_byte_us is None or not (found.first_byte_us or found.status)
    first_us = found.took_us if nothing_came else found.first_byte_us or 0
    code = 0 if found.succeeded else _STATUS + found.status if found.status else _FAILED
    return {
        "id": number, "vu": user, "name": found.name, "method": found.method, "url": found.url,
        "time_us": found.time_us, "end_us": found.time_us + found.took_us, "blocked_us": 0,
        "connecting_us": connect_us, "tls_us": 0, "sending_us": 0, "waiting_us": max(first_us - connect_us, 0),
        "receiving_us": max(found.took_us - first_us, 0), "duration_us": max(found.took_us - connect_us, 0),
        "status": found.status, "error_code": code, "error": found.error,
        "remote": None if found.error_kind else server, "dial": number,
    }  # fmt: skip


def _dial(number: int, user: int, found: Result, server: str | None) -> dict[str, Any]:
    lasted_us = found.took_us if found.error_kind else found.connect_us or 0
    return {
        "id": number, "vu": user, "time_us": found.time_us, "duration_us": lasted_us, "local": None, "remote": server,
        "error": found.error if found.error_kind else None, "error_kind": found.error_kind,
    }  # fmt: skip
