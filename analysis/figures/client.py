"""What the client saw. These figures are of all that k6 did: it runs in the phase `measure` and at no other time.

SQL over `raw.records` counts and selects; the statistics of times are those of `figures.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from analysis.database import Row, sql
from analysis.diagnosis.health import CLIENT, Evidence
from analysis.diagnosis.joins import Joined
from analysis.evidence.jsonl import Record, integer, moment
from analysis.evidence.k6_files import Client, ScriptResults, figure_name
from analysis.evidence.records import Records
from analysis.expressions.values import Kind, Unknown, Value, unknown
from analysis.figures.declaration import Compute, Figure, figures_of_times, of_joined
from analysis.figures.run import Run, list_or_statistic, statistic, status_bounds

_REQUESTS = {Evidence.REQUESTS: CLIENT, Evidence.LOAD: ""}
_DIALS = {Evidence.DIALS: CLIENT, Evidence.LOAD: ""}
_EVENTS = {Evidence.EVENTS: CLIENT, Evidence.LOAD: ""}

_REQUESTS_FILE = "k6: requests.jsonl"
_figure = partial(Figure, source=_REQUESTS_FILE)
_DIALS_FILE = "k6: dials.jsonl"
_EVENTS_FILE = "k6: events.jsonl"


def _of_row(
    read: Callable[[Run], Row], evidence: dict[Evidence, str], value: Callable[[Row, Mapping[str, str]], Value]
) -> Compute:
    """Return how to compute a figure from the one row that a query gives over all instances of k6."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        return run.resting_on(run.clients, evidence, lambda _: value(read(run), found))

    return compute


def _requests(run: Run) -> Row:
    return run.raw.records.row(sql(__name__, "requests_of_clients"))


def _dials(run: Run) -> Row:
    return run.raw.records.row(sql(__name__, "dials_of_clients"), instances=run.clients)


_of_requests = partial(_of_row, _requests, _REQUESTS)
_of_dials = partial(_of_row, _dials, _DIALS)


def _times(evidence: dict[Evidence, str], query: str) -> Compute:
    """Return how to compute a figure from the times, in µs, that a query over the records of all instances gives."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        asked = {"instances": run.clients} if "$instances" in query else {}
        return run.resting_on(
            run.clients, evidence, lambda _: list_or_statistic(run.raw.records.integers(query, **asked), found)
        )

    return compute


_TOOK = "SELECT connecting_us + tls_us + duration_us AS us FROM requests WHERE succeeded(error_code, status)"
_DIALLED = "SELECT duration_us FROM dials WHERE list_contains($instances, instance) AND failure_of(error, error_kind)"


def _of_streams(column: str) -> Compute:
    """Return the figure of a column of streams_of_clients.sql, over all instances of k6."""

    def compute(run: Run, _found: Mapping[str, str]) -> Value:
        row = run.raw.records.row(sql(__name__, "streams_of_clients"))
        found = row[column]
        in_doubt = not row["connections"] and _takes_http2(run) is not False and _requests(run)["over_tls"] > 0

        def value(_: object) -> Value:
            if in_doubt:
                return unknown("no record says by which version of HTTP the requests over TLS were sent")
            return unknown("no request was sent by HTTP/2 or gRPC") if found is None else found

        return run.resting_on(run.clients, _REQUESTS, value)

    return compute


def _takes_http2(run: Run) -> bool | None:
    """Return whether the server that clients come to takes HTTP/2; None if no knob says so."""
    manifest = run.raw.manifest
    first = next(iter(manifest.path[1:]), None)
    knob = manifest.roles[first].listener.http2 if first in manifest.roles else None
    value = manifest.knobs.get(f"{first}.{knob}")
    return None if knob is None or value is None else bool(value.value)


def _of_sent_again(column: str) -> Compute:
    @of_joined
    def compute(run: Run, joined: Joined, _found: Mapping[str, str]) -> Value:
        return run.resting_on(
            run.clients, {**_REQUESTS, **_DIALS}, lambda _: int(joined.row(sql(__name__, "sent_again"))[column])
        )

    return compute


def _answered(row: Row, found: Mapping[str, str]) -> int:
    """Return how many requests were answered with a status, or with one of a class such as 4xx."""
    low, high = status_bounds(found["status"])
    return sum(count for status, count in row["statuses"].items() if low <= status <= high)


def _rate(row: Row, _: Mapping[str, str]) -> Value:
    """Return how many requests were answered in each second of the load."""
    lasted_us = row["lasted_us"]
    if not lasted_us:
        return unknown("no time passed between first and last request")
    return float(round(1e6 * row["ok"] / lasted_us, 3))


def _admissions(client: Client) -> list[Record]:
    return [event["data"] for event in client.events.records if event["name"] == "admitted"]


def _admitted(run: Run, _found: Mapping[str, str]) -> Value:
    return run.resting_on(
        run.clients, _EVENTS, lambda _: sum(len(_admissions(run.raw.clients[each])) for each in run.clients)
    )


def _out_of_order(run: Run, _found: Mapping[str, str]) -> Value:
    """Return how many users were admitted although someone before them in the queue got in only later."""

    def compute(_window: object) -> Value:
        admitted = [data for each in run.clients for data in _admissions(run.raw.clients[each])]
        # The server that answers gives them.
        servers = run.raw.manifest.of_role(run.raw.manifest.origin or "")
        of_server = run.raw.clocks.of(servers[0] if servers else "")
        turns = [(moment(data, "turn_us"), integer(data, "number")) for data in admitted]
        known = [
            (of_server.steady(turn_us), number)
            for turn_us, number in turns
            if turn_us is not None and number is not None
        ]
        if len(known) < len(turns):
            return unknown("an admission lacks its number or its turn")
        return _early(sorted(known))

    return run.resting_on(run.clients, {**_EVENTS, Evidence.TIMES: ""}, compute)


def _early(turns: list[tuple[int, int]]) -> int:
    """Return how many of the turns, which are in order of time, have a number above one that comes at a later time."""
    times_us, numbers = np.array(turns, dtype=np.int64).reshape(-1, 2).T
    # The lowest number from each turn on; no number is as high as the last.
    lowest = np.append(np.minimum.accumulate(numbers[::-1])[::-1], np.iinfo(np.int64).max)
    return int(np.count_nonzero(numbers > lowest[np.searchsorted(times_us, times_us, side="right")]))


def _dropped(run: Run, _found: Mapping[str, str]) -> Value:
    """Rests on k6's own account alone: it is what makes other figures unknown."""
    dropped = [one.dropped_iterations for one in run.raw.clients.values()]
    known = [count for count in dropped if count is not None]
    if not known or len(known) < len(dropped):
        return unknown("k6 did not report its dropped iterations")
    return run.resting_on(run.clients, {}, lambda _: sum(known))


# How a name is missed that a script may give, by the parameter of the figures.
_MISSED = {"request": "no request was named", "group": "no request was in a group named"}


def named(records: Records, parameter: str) -> list[Row]:
    """Return the names that a script gave its requests, or their groups: `given`, `total` and `failed`."""
    return records.rows(sql(__name__, "named"), parameter=parameter)


def _of_named(parameter: str, value: Callable[[Records, Row, Mapping[str, str]], Value]) -> Compute:
    """Return a figure of the requests with one name, or in one group; unknown if none is, or two names are alike."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        records = run.raw.records
        meant = [row for row in named(records, parameter) if figure_name(row["given"]) == found[parameter]]
        if len(meant) != 1:
            alike = " and ".join(row["given"] for row in meant)
            return unknown(f"{alike} have this name" if meant else f"{_MISSED[parameter]} {found[parameter]}")
        return run.resting_on(run.clients, _REQUESTS, lambda _: value(records, meant[0], found))

    return compute


def _count_of_named(parameter: str, count: str) -> Compute:
    return _of_named(parameter, lambda _records, row, _found: int(row[count]))


def _latency_of_named(parameter: str) -> Compute:
    def latency(records: Records, row: Row, found: Mapping[str, str]) -> Value:
        query = f"{_TOOK} AND if($parameter = 'group', \"group\", name) = $given"
        return statistic(records.integers(query, parameter=parameter, given=row["given"]), found["statistic"])

    return _of_named(parameter, latency)


def _figures_of_named(prefix: str, parameter: str, meaning: str) -> tuple[Figure, ...]:
    return (
        _figure(f"{prefix}.total", meaning, _count_of_named(parameter, "total")),
        _figure(
            f"{prefix}.failed",
            "Those of them that failed, as in client.requests.failed.",
            _count_of_named(parameter, "failed"),
        ),
        _figure(
            f"{prefix}.latency_ms.<statistic>",
            "A statistic of the times of those that succeeded, as in client.latency_ms.list.",
            _latency_of_named(parameter),
            unit="ms",
        ),
    )


def _judged(run: Run) -> list[ScriptResults] | Unknown:
    found = [one.script_results for one in run.raw.clients.values()]
    whole = [each for each in found if each is not None]
    return whole if len(whole) == len(found) else unknown("k6 left no whole summary.json")


def _checked(count: Callable[[int, int], Value]) -> Compute:
    """Return a figure of a script's check: of how often it passed and how often it failed, over all instances."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        judged, name = _judged(run), found["check"]
        if isinstance(judged, Unknown):
            return judged
        present = [each.checks[name] for each in judged if name in each.checks]
        checks = [each for each in present if each is not None]
        if len(checks) < len(present):
            return unknown(f"two checks of the script would both be named {name}")
        if not checks:
            return unknown(f"k6 made no check named {name}{_named({each for one in judged for each in one.checks})}")
        passes, fails = sum(each.passes for each in checks), sum(each.fails for each in checks)
        return run.resting_on(run.clients, {Evidence.LOAD: ""}, lambda _: count(passes, fails))

    return compute


def _named(names: set[str]) -> str:
    return f"; it made {', '.join(sorted(names))}" if names else ""


def _kept(run: Run, found: Mapping[str, str]) -> Value:
    """Return whether a threshold of the script was kept."""
    judged, name = _judged(run), found["threshold"]
    if isinstance(judged, Unknown):
        return judged
    if len(judged) != 1:
        return unknown("each instance of k6 judged its own share of the load; run with load.instances 1")
    kept = judged[0].thresholds.get(name)
    if kept is None:
        return unknown(f"k6 judged no one threshold {name}{_named(set(judged[0].thresholds))}")
    return run.resting_on(run.clients, {Evidence.LOAD: ""}, lambda _: kept)


FIGURES: tuple[Figure, ...] = (
    _figure("client.requests.total", "Requests.", _of_requests(lambda row, _: row["total"])),
    _figure(
        "client.requests.ok",
        "Requests answered with a status from 200 to 399.",
        _of_requests(lambda row, _: row["ok"]),
    ),
    _figure(
        "client.requests.ok_per_second",
        "The throughput: requests answered so, per second from the first request's start to the last one's end.",
        _of_requests(_rate),
        unit="requests/s",
    ),
    _figure(
        "client.requests.failed",
        "All other requests: without an answer, or answered with another status.",
        _of_requests(lambda row, _: row["total"] - row["ok"]),
    ),
    _figure(
        "client.requests.cut",
        "Requests whose answer began to come and did not end, so that the client has no status of it.",
        _of_requests(lambda row, _: row["cut"]),
    ),
    _figure(
        "client.requests.error.<code>",
        "Requests that ended with this error code of k6, such as 1211, the timeout of a dial.",
        _of_requests(lambda row, found: row["codes"].get(int(found["code"]), 0)),
    ),
    _figure(
        "client.requests.status.<status>",
        "Requests answered with this status, or with one of this class.",
        _of_requests(_answered),
    ),
    *figures_of_times(
        "client.latency_ms",
        "For each successful request: the time to connect, if it had to, plus the time from sending to the answer.",
        _REQUESTS_FILE,
        _times(_REQUESTS, _TOOK),
    ),
    _figure(
        "client.users.total",
        "Virtual users that sent a request.",
        _of_requests(lambda row, _: row["users"]),
    ),
    _figure(
        "client.users.served",
        "Virtual users without a failed request.",
        _of_requests(lambda row, _: row["users"] - row["users_failed"]),
    ),
    _figure(
        "client.users.failed",
        "Virtual users with a failed request.",
        _of_requests(lambda row, _: row["users_failed"]),
    ),
    Figure("client.dials.total", "Attempts to connect.", _of_dials(lambda row, _: row["total"]), _DIALS_FILE),
    Figure("client.dials.ok", "Attempts that made a connection.", _of_dials(lambda row, _: row["ok"]), _DIALS_FILE),
    Figure(
        "client.dials.failed",
        "Attempts that did not, except those held half open on purpose.",
        _of_dials(lambda row, _: row["failed"]),
        _DIALS_FILE,
    ),
    Figure(
        "client.dials.failed_<kind>",
        "Attempts that failed for this reason.",
        _of_dials(lambda row, found: row["kinds"].get(found["kind"].replace("_", "-"), 0)),
        _DIALS_FILE,
    ),
    *figures_of_times(
        "client.dial_ms",
        "How long each connection took to make.",
        _DIALS_FILE,
        _times(_DIALS, f"{_DIALLED} IS NULL"),
    ),
    *figures_of_times(
        "client.dial_ms.failed",
        "How long each attempt took to fail.",
        _DIALS_FILE,
        _times(_DIALS, f"{_DIALLED} <> 'half-open'"),
    ),
    _figure(
        "client.tls.handshakes",
        "TLS handshakes of connections that were made for a request; those that failed do not count.",
        _of_requests(lambda row, _: row["handshakes"]),
    ),
    *figures_of_times(
        "client.tls_ms",
        "How long each of these handshakes took.",
        _REQUESTS_FILE,
        _times(_REQUESTS, "SELECT tls_us FROM requests WHERE tls_us > 0 AND NOT reused"),
    ),
    _figure(
        "client.streams.connections",
        "Connections that carried requests by HTTP/2 or gRPC; each can carry several at once.",
        _of_streams("connections"),
    ),
    _figure("client.streams.requests", "The requests that they carried.", _of_streams("requests")),
    _figure(
        "client.streams.requests_max",
        "The most requests that one of them carried.",
        _of_streams("requests_max"),
    ),
    _figure(
        "client.streams.at_once_max",
        "The most requests that one of them carried at once.",
        _of_streams("at_once_max"),
    ),
    _figure(
        "client.streams.sent_again",
        "Requests of HTTP/2 that the client sent again by itself: after a GOAWAY, or a refused stream.",
        _of_sent_again("requests"),
    ),
    Figure(
        "client.streams.goaways",
        "Connections whose GOAWAY made the client send requests again.",
        _of_sent_again("goaways"),
        f"{_REQUESTS_FILE}, dials.jsonl",
    ),
    *_figures_of_named(
        "client.named.<request>",
        "request",
        "Requests with this name: a script's tags.name, else the URL. In the figure, all but letters and digits is _.",
    ),
    *_figures_of_named(
        "client.groups.<group>",
        "group",
        "Requests that a script made in this group() and in no group within it: ::shop::pay is shop_pay.",
    ),
    Figure(
        "client.checks.<check>.rate",
        "The share of a script's check() that passed, from 0 to 1, over all groups. The name is the check's in small"
        " letters, with _ for all but letters and digits: 'home is 200' is home_is_200.",
        _checked(lambda passes, fails: passes / (passes + fails) if passes + fails else unknown("it was never made")),
        "k6: summary.json",
    ),
    Figure(
        "client.checks.<check>.failed",
        "How often this check failed.",
        _checked(lambda _, fails: fails),
        "k6: summary.json",
    ),
    Figure(
        "client.thresholds.<threshold>",
        "Whether a threshold of a script was kept, by k6's own judgement: http_req_duration_p_95_below_500 is the"
        " metric http_req_duration with 'p(95)<500'.",
        _kept,
        "k6: summary.json",
        kind=Kind.TRUTH,
    ),
    Figure(
        "client.iterations.dropped",
        "Iterations that k6 could not begin when they were due.",
        _dropped,
        "k6: summary.json, else live.jsonl",
    ),
    Figure("client.admissions.total", "Users that the waiting room admitted.", _admitted, _EVENTS_FILE),
    Figure(
        "client.admissions.out_of_order",
        "Users whose turn came before that of a user with a lower number.",
        _out_of_order,
        _EVENTS_FILE,
    ),
)
