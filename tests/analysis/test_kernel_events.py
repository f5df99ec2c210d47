"""What the kernels themselves told of a run's connections, beside packets and counters."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analysis import figures
from analysis.derivation import analyse
from analysis.diagnosis.identities import list_identities
from analysis.diagnosis.joins import Joined
from analysis.evidence.kernel_events import SCHEMA
from analysis.evidence.rawfiles import Places
from analysis.evidence.rawrun import RawRun
from analysis.expressions.values import Unknown
from analysis.figures import Run
from formats import manifest
from tests.analysis.support import at_us
from tests.analysis.whole import make_run

Record = dict[str, Any]

CLIENT, SERVER = "172.18.0.3", "172.18.0.2"


def event(kind: str, time_us: int, port: int, **more: object) -> Record:
    """Return an event of the client or, with `of="server"`, of the server."""
    ends = {"local": CLIENT, "local_port": port, "peer": SERVER, "peer_port": 8080}
    if more.pop("of", None) == "server":
        ends = {"local": SERVER, "local_port": 8080, "peer": CLIENT, "peer_port": port}
    return {"kind": kind, "time_us": time_us, **ends, **more}


def told_by_packets(run: Run) -> dict[str, list[Record]]:
    """Return what the kernels of both ends must have told, by the packets."""
    joined = run.joined
    assert isinstance(joined, Joined)
    client: list[Record] = []
    server: list[Record] = []
    for row in joined.rows("SELECT * FROM connections ORDER BY id"):
        begun_us, port = row["first_time_us"], row["client_port"]
        client += [event("retransmitted", at, port, flags="S") for at in row["syn_times_us"][1:]]
        server += [event("synack_retransmitted", at, port, of="server") for at in row["synack_times_us"][1:]]
        resets = {"reason": None, "by": None}
        client += [event("reset_sent", begun_us + 9, port, **resets)] * row["client_rst_count"]
        server += [event("reset_sent", begun_us + 9, port, of="server", **resets)] * row["server_rst_count"]
        if row["entered"]:
            server.append(event("queued", row["queued_us"], port, of="server"))
            server.append(event("accepted", row["queued_us"] + 7_250, port, of="server", wait_us=7_250, by="http"))
    return {"k6-1": client, "backend-1": server}


def write(folder: Path, events: dict[str, list[Record]], *, reason: str = "signal", lost: int = 0) -> Run:
    """Write the events beside a run that has asked for them, and read it."""
    record = json.loads((folder / "manifest.json").read_text())
    record["knobs"]["capture.events"] = {**record["knobs"]["capture.mode"], "value": "kernel"}
    (folder / "manifest.json").write_text(json.dumps(record))
    for instance, lines in events.items():
        header = {"kind": "header", "schema": SCHEMA, "role": instance, "time_us": at_us(0), "tracepoints": []}
        end = {
            "kind": "end",
            "time_us": at_us(50),
            "reason": reason,
            "events": len(lines),
            "lost": lost,
            "missed_max": 0,
        }
        text = "".join(json.dumps(line) + "\n" for line in (header, *lines, end))
        Places(folder).collector(instance, "events.jsonl").write_text(text)
    return read(folder)


def read(folder: Path) -> Run:
    return Run(RawRun(folder, manifest.load_manifest(folder)))


@pytest.fixture
def events(tmp_path: Path) -> dict[str, list[Record]]:
    return told_by_packets(read(make_run(tmp_path).write()))


def test_waits_in_the_accept_queue_are_those_that_the_kernel_measured(
    tmp_path: Path, events: dict[str, list[Record]]
) -> None:
    run = write(tmp_path, events)
    waits = figures.value(run, "events.backend.accept_wait_ms.list")
    assert waits == (7.25,) * sum(one["kind"] == "accepted" for one in events["backend-1"])
    assert waits
    assert figures.value(run, "events.backend.accept_wait_ms.p99") == 7.25


def test_events_and_packets_that_agree_hold_every_identity(tmp_path: Path, events: dict[str, list[Record]]) -> None:
    assert any(one["kind"] == "retransmitted" for one in events["k6-1"])
    run = write(tmp_path, events)
    assert isinstance(run.joined, Joined)
    (hop,) = run.joined.hops
    names = {one.id for one in list_identities(run.raw.manifest, hop)}
    assert {"queue-entries-told", "syns-told", "synacks-told", "resets-told", "accepts-told"} <= names
    assert [figures.value(run, f"events.backend.differing.{name}") for name in ("syns", "synacks", "resets")] == [0] * 3
    assert figures.value(run, "events.backend.queued") == figures.value(run, "flows.backend.entered")


def test_where_the_kernel_told_when_a_connection_was_accepted_nothing_is_inferred(
    tmp_path: Path, events: dict[str, list[Record]]
) -> None:
    run = write(tmp_path, events)
    assert isinstance(run.joined, Joined)
    rows = run.joined.rows(
        "SELECT accepted_after_us - queued_us AS least, accepted_before_us - queued_us AS most"
        " FROM accepted JOIN connections USING (observer, id) WHERE entered"
    )
    assert {(row["least"], row["most"]) for row in rows} == {(7_250, 7_250)}


def test_a_wait_in_the_accept_queue_rests_on_the_kernel_s_event_where_there_is_one(
    tmp_path: Path, events: dict[str, list[Record]]
) -> None:
    *_, last = (one for one in events["backend-1"] if one["kind"] == "accepted")
    last |= {"time_us": last["time_us"] + 41_000_000, "wait_us": last["wait_us"] + 41_000_000}
    write(tmp_path, events)
    record = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(record | {"slow_ms": 5_000}))
    analyse(tmp_path)
    query = "SELECT evidence FROM read_parquet(?) WHERE cause = 'waited-in-accept-queue'"
    ((evidence,),) = duckdb.execute(query, [str(tmp_path / "derived/requests.parquet")]).fetchall()
    assert "s by the kernel's event (41.007 s of 43.211 s)" in evidence


def test_a_syn_that_only_one_of_both_saw_is_a_connection_that_differs(
    tmp_path: Path, events: dict[str, list[Record]]
) -> None:
    first = next(one for one in events["k6-1"] if one["kind"] == "retransmitted")
    events["k6-1"].remove(first)
    assert figures.value(write(tmp_path, events), "events.backend.differing.syns") == 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"reason": "error: the kernel refuses BPF programs here"}, "the kernel refuses BPF programs here"),
        ({"lost": 3}, "3 events found no room"),
    ],
)
def test_what_rests_on_events_is_unknown_where_some_are_missing(
    tmp_path: Path, events: dict[str, list[Record]], changed: dict[str, Any], why: str
) -> None:
    found = figures.value(write(tmp_path, events, **changed), "events.backend.queued")
    assert isinstance(found, Unknown)
    assert why in found.why


@pytest.mark.parametrize("text", ["", "{\n", '{"kind": "queued", "time_us": 1}\n'])
def test_a_damaged_file_proves_nothing(tmp_path: Path, events: dict[str, list[Record]], text: str) -> None:
    write(tmp_path, events)
    Places(tmp_path).collector("backend-1", "events.jsonl").write_text(text)
    assert isinstance(figures.value(read(tmp_path), "events.backend.queued"), Unknown)


def test_a_run_that_did_not_ask_for_events_has_none(tmp_path: Path) -> None:
    found = figures.value(read(make_run(tmp_path).write()), "events.backend.queued")
    assert isinstance(found, Unknown)
    assert "not asked for" in found.why
