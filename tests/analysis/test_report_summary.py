"""The first section's sentences, and the main cause that the report, the index and the advice share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analysis.derivation import analyse
from analysis.reports import advice, index, run_record, summary
from tests.analysis.support import Record, RunFolder, knob, make_manifest

Tell = Callable[..., summary.Summary]

DROP, WAITED = "accept-queue-drop", "waited-in-accept-queue"
STATUS, RESET = "error-status", "reset-by-peer"
POOL = "waited-for-a-connection"


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Sum up a run of which this was derived."""

    def summed(
        requests: tuple[int, int, int],
        causes: dict[str, int],
        failed: dict[str, int],
        hops: tuple[Record, ...] = (),
        figures: Record | None = None,
        **changes: Any,  # noqa: ANN401  of the manifest
    ) -> summary.Summary:
        total, bad, slow = requests
        ledger = {
            "requests": {"total": total, "ok": total - bad, "failed": bad, "slow": slow},
            "unexplained": causes.get("unexplained", 0),
            "causes": {name: count for name, count in causes.items() if name != "unexplained"},
            "failed_causes": failed,
            "hops": list(hops),
            "lacks": [],
        }
        verdict = {"verdict": "reproduced", "predictions": []}
        manifest = make_manifest() | {"slow_ms": 5000} | changes
        return summary.summarize(run_record.Record(tmp_path, manifest, verdict, ledger, {}, figures or {}, {}))

    return summed


def hop(client: str, server: str, lost: int, recovered: int) -> Record:
    return {"from": client, "to": server, "dropped_syns": {"lost": lost, "recovered": recovered}}


@pytest.mark.parametrize(
    ("requests", "causes", "failed", "begins"),
    [
        ((9, 0, 0), {}, {}, "All 9 requests were answered well."),
        ((1, 0, 0), {}, {}, "The only request was answered well."),
        ((0, 0, 0), {}, {}, "No request was made."),
        ((9, 3, 0), {DROP: 3}, {DROP: 3}, "3 of 9 requests failed, because the backend had no place"),
        ((9, 3, 2), {DROP: 3, WAITED: 2}, {DROP: 3}, "3 of 9 requests failed, because the backend"),
        ((9, 3, 2), {DROP: 4, RESET: 1}, {DROP: 2, RESET: 1}, "3 of 9 requests failed, most of"),
        ((9, 5, 0), {DROP: 2, STATUS: 2, RESET: 1}, {DROP: 2, STATUS: 2, RESET: 1},
         "5 of 9 requests failed, 2 of them because the backend had no place"),
        ((9, 4, 0), {DROP: 2, STATUS: 2}, {DROP: 2, STATUS: 2}, "4 of 9 requests failed, 2 of them because"),
        ((9, 0, 1), {WAITED: 1}, {}, "1 of 9 requests was slow, because the connection waited in the accept queue"),
        ((9, 0, 3), {WAITED: 2, "slow-handler": 1}, {}, "3 of 9 requests were slow, most of them because"),
        ((9, 3, 0), {"unexplained": 3}, {"unexplained": 3}, "3 of 9 requests failed, and nothing on record proves"),
        ((9, 3, 0), {"unexplained": 2, DROP: 1}, {"unexplained": 2, DROP: 1},
         "3 of 9 requests failed, and of most of them nothing on record proves why."),
    ],
)  # fmt: skip
def test_the_sentence_says_how_many_the_main_cause_has(
    tell: Tell, requests: tuple[int, int, int], causes: dict[str, int], failed: dict[str, int], begins: str
) -> None:
    assert tell(requests, causes, failed).sentence.startswith(begins)


@pytest.mark.parametrize(
    ("lost", "recovered", "says"),
    [
        (0, 28, [
            ("The kernel of the backend dropped 28 SYNs (connection requests) of connections that a later SYN made:"
             " seconds of waiting, and no error."),
        ]),
        (5, 1, [
            ("The kernel of the backend dropped 5 SYNs (connection requests), all of one connection in its connect"
             " timeout of 30 s."),
            "It dropped 1 SYN of connections that a later SYN made: seconds of waiting, and no error.",
        ]),
        (1, 0, [
            ("The kernel of the backend dropped 1 SYN (connection request), all of one connection in its connect"
             " timeout of 30 s."),
        ]),
    ],
)  # fmt: skip
def test_the_kernel_that_left_syns_unanswered_is_named_once(
    tell: Tell, lost: int, recovered: int, says: list[str]
) -> None:
    syns = hop("k6", "backend", lost, recovered)
    assert tell((9, 1, 0), {DROP: 1}, {DROP: 1}, (syns,), {"flows.backend.unanswered": 1}).where[1:] == says


def test_each_kernel_has_its_own_name(tell: Tell) -> None:
    hops = hop("k6", "nginx", 0, 2), hop("nginx", "backend", 4, 0)
    found = tell(
        (9, 1, 0), {DROP: 1}, {DROP: 1}, hops, {"flows.backend.unanswered": 2}, path=["k6", "nginx", "backend"]
    )

    assert [text.partition(" dropped ")[0] for text in found.where[1:]] == [
        "The kernel of nginx",
        "The kernel of the backend",
    ]
    assert found.where[2].endswith("(connection requests), 2 for each of 2 connections.")


@pytest.mark.parametrize(
    ("cause", "failed", "says"),
    [
        (DROP, 91, ("Each instance of the backend serves 1 at once (backend.max_connections), and its queue holds 1 + 1"
         " (backend.accept_count): 9 places in all for 100 users, so 91 found none.")),
        (WAITED, 0, ("Each instance of the backend serves 1 at once (backend.max_connections); up to 1 + 1 more wait"
         " in its queue (backend.accept_count) until one of these goes. An idle client keeps its place for 20 s"
         " (backend.keep_alive_timeout).")),
    ],
)  # fmt: skip
def test_the_places_of_several_backends_are_those_of_each(tell: Tell, cause: str, failed: int, says: str) -> None:
    instances = {"k6": ["k6-1"], "backend": ["backend-1", "backend-2", "backend-3"]}
    knobs = make_manifest()["knobs"]
    knobs["load.users"]["value"] = 100
    figures = {"model.accept_capacity": 9, "model.listen_backlog": 1}
    found = tell(
        (100, failed, 91 - failed), {cause: 91}, {cause: failed}, (), figures, instances=instances, knobs=knobs
    )

    assert found.why[-1] == says


@pytest.mark.parametrize(
    ("at_the_gateway_us", "limit", "advised", "because", "where"),
    [
        (900, 4, "103", "the request waited at the gateway until one of its connections to the backend was free",
         "What was slow: at the gateway, before the request went on to the backend."),
        (900, 200, "0", "the request waited at the gateway until", "What was slow: at the gateway, before"),
        (0, 0, None, "the request waited at the client until one of its connections to the gateway was free",
         "What was slow: at the client, before the request went on to the gateway."),
    ],
)  # fmt: skip
def test_who_waited_for_a_connection_waited_where_the_pool_is(  # noqa: PLR0917  a scene
    tell: Tell, tmp_path: Path, at_the_gateway_us: int, limit: int, advised: str | None, because: str, where: str
) -> None:
    (tmp_path / "derived").mkdir()
    row = f"SELECT '{POOL}' AS cause, 100 AS pool_us, {at_the_gateway_us} AS up_pool_us"
    duckdb.execute(f"COPY ({row}) TO '{tmp_path}/derived/requests.parquet'")
    knobs = make_manifest()["knobs"] | {"gateway.max_conns_per_host": knob(limit)}
    found = tell((9, 0, 2), {POOL: 2}, {}, path=["k6", "gateway", "backend"], knobs=knobs)

    assert because in found.sentence
    assert found.where[0].startswith(where)
    assert [turn.knob for turn in found.turns] == ["gateway.max_conns_per_host"] * (advised is not None)
    assert found.advice is not None
    assert found.advice.value == advised


def few_failures(run: RunFolder) -> Path:
    """One request failed; two waited in the queue."""
    run.manifest["slow_ms"] = 5000
    client = run.clients["k6-1"]
    client.requests = client.requests[:4]
    folder = run.write()
    analyse(folder)
    return folder


def index_of(folder: Path) -> str:
    """The index's entry of a run, without its marks."""
    return index.write(folder.parents[1]).read_text().partition("<tbody>")[2]


@pytest.fixture
def listed(run: RunFolder, tmp_path: Path) -> RunFolder:
    """A run below a folder of results."""
    run.folder = tmp_path / "results" / "queue" / "r"
    run.folder.mkdir(parents=True)
    return run


def test_a_cause_of_failures_is_the_main_one_however_many_were_slow(listed: RunFolder) -> None:
    folder = few_failures(listed)
    ledger = json.loads((folder / "derived" / "ledger.json").read_text())
    assert (ledger["causes"], ledger["failed_causes"]) == ({DROP: 1, WAITED: 2}, {DROP: 1})

    found = run_record.load_record(folder)
    assert [(each.cause.name, each.failed) for each in summary.summarize(found).reasons] == [(DROP, 1), (WAITED, 0)]
    assert advice.advise_on_run(found).cause == DROP
    assert "accept queue full" in index_of(folder)


def test_what_nothing_explains_may_be_the_main_cause_in_the_index_too(listed: RunFolder) -> None:
    listed.captures.clear()
    del listed.lines["backend-1/capture.json"]
    folder = listed.write()
    analyse(folder)

    assert summary.summarize(run_record.load_record(folder)).reasons[0].cause.name == "unexplained"
    assert ">unexplained</td>" in index_of(folder)
