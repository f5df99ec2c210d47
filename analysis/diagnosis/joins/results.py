"""Finds the connections of requests that a load generator's file of results tells of; it names no ports.

A file says of some requests whether they had a connection: by a status, the time that it took to connect, or the words
of an error. Of others, such as one that ended by a timeout for the whole of it, only packets tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import duckdb

from analysis.database import insert_rows, sql

# A generator notes milliseconds, rounded down, before it opens a connection; a busy one opens it later than this.
_NOTED_US, _OPENED_US = 2_000, 100_000

# What packets tell of dials and requests, once each connection has its request.
_AFTER_LINKS = (
    "dials_of_answers",
    "requests_of_answers",
    "dials_without_connection",
    "requests_on_connections",
    "dials_by_packets",
)


@dataclass(slots=True)
class _Flow:
    """A connection of the client.

    Attributes:
        silent: whether its capture has no data of the server.
        first_data_us: when the server's first data came by; None if there is none.
        server: its address and port.
    """

    observer: str
    id: int
    begins_us: int
    first_data_us: int | None
    stood: bool
    silent: bool
    server: tuple[str, int]
    taken: bool = False


@dataclass(slots=True)
class _Attempt:
    """A request for which a connection may have been opened.

    Attributes:
        first_byte_us: when its answer began to come; None if it had none.
        stood: whether its connection did; None where the file does not say.
        dial: None for a request that was answered, on a connection that may be an older one.
    """

    request: int
    begins_us: int
    ends_us: int
    first_byte_us: int | None
    stood: bool | None
    answered: bool
    dial: int | None
    server: tuple[str, int]
    linked: bool = False


def link_results(database: duckdb.DuckDBPyConnection, results: Collection[str], apart_us: int) -> None:
    """Give each dial of a file of results the connection that began when it did.

    First those whose answer came when the connection's first data did: of requests that began together, that tells
    which is which. Then those of which the file says whether they had one, then the others; of both, those whose
    connections came late are last. Packets say of the others whether there was a connection, and then the tables of
    requests and dials do, too.
    """
    for instance in results:
        flows = [
            _Flow(observer, flow, begins_us, data_us, stood, silent, (address, port))
            for observer, flow, begins_us, data_us, stood, silent, address, port in database.execute(
                "SELECT observer, id, first_time_us, server_first_data_time_us, established,"
                " gave_up_us IS NOT NULL OR NOT handshakes_only AND server_first_data_time_us IS NULL,"
                " server_address, server_port"
                " FROM connections WHERE from_instance = ? ORDER BY first_time_us, observer, id",
                [instance],
            ).fetchall()
        ]
        attempts = [
            _Attempt(request, begins_us, ends_us, first_byte_us, stood, answered, dial, (address, port))
            for request, begins_us, ends_us, first_byte_us, stood, answered, dial, address, port in database.execute(
                sql(__name__, "attempts"), {"instance": instance}
            ).fetchall()
        ]
        for has_dial in (True, False):
            alike_attempts = [one for one in attempts if (one.dial is not None) is has_dial]
            pairs = list(_by_answer(alike_attempts, [one for one in flows if not one.taken], apart_us))
            for attempt, _ in pairs:
                attempt.dial = attempt.dial or attempt.request
            _insert(database, instance, pairs)
        for stood, answered in ((True, True), (True, False), (False, False)):
            decided = [
                one
                for one in attempts
                if (one.stood, one.answered) == (stood, answered) and one.dial is not None and not one.linked
            ]
            alike = [one for one in flows if one.stood is stood and not (one.taken or (answered and one.silent))]
            _insert(database, instance, _in_order(decided, alike, apart_us))
            _insert(database, instance, _one_to_one(decided, alike, apart_us))
        open_ = [one for one in attempts if (one.stood is None or one.dial is None) and not one.linked]
        _insert(database, instance, list(_nearest(open_, [one for one in flows if not one.taken], apart_us)))
        _insert(database, instance, _one_to_one(open_, flows, apart_us))
        for name in _AFTER_LINKS:
            database.execute(sql(__name__, name), {"instance": instance})
        database.execute(sql(__name__, "requests_on_kept"), {"instance": instance, "noted_us": _NOTED_US + apart_us})


def _by_answer(attempts: list[_Attempt], flows: list[_Flow], apart_us: int) -> Iterator[tuple[_Attempt, _Flow]]:
    """Yield pairs that began together, and whose answer came when the connection's first data did.

    Of several that fit a connection, the nearest one by both moments.
    """
    answered = iter(
        sorted((one.first_byte_us, place, one) for place, one in enumerate(attempts) if one.first_byte_us is not None)
    )
    carried = sorted(
        (one.first_data_us, place, one) for place, one in enumerate(flows) if one.first_data_us is not None
    )
    waiting: list[tuple[int, _Attempt]] = []
    upcoming = next(answered, None)
    for data_us, _, flow in carried:
        while upcoming is not None and upcoming[0] <= data_us + _OPENED_US + apart_us:
            waiting.append((upcoming[0], upcoming[2]))
            upcoming = next(answered, None)
        waiting = [one for one in waiting if one[0] >= data_us - _NOTED_US - apart_us]
        near = [
            (abs(came_us - data_us) + abs(flow.begins_us - one.begins_us), place)
            for place, (came_us, one) in enumerate(waiting)
            if one.server == flow.server
            and -_NOTED_US - apart_us <= flow.begins_us - one.begins_us <= _OPENED_US + apart_us
        ]
        if near:
            yield waiting.pop(min(near)[1])[1], flow


def _in_order(attempts: list[_Attempt], flows: list[_Flow], apart_us: int) -> Iterator[tuple[_Attempt, _Flow]]:
    """Yield pairs, both in the order of their beginning.

    Where several began together, which of them it is makes no difference to what is said of it.
    """
    place = 0
    for attempt in attempts:
        while place < len(flows) and flows[place].begins_us < attempt.begins_us - _NOTED_US - apart_us:
            place += 1
        if place == len(flows) or flows[place].begins_us > attempt.begins_us + _OPENED_US + apart_us:
            continue
        if flows[place].server == attempt.server:
            yield attempt, flows[place]
            place += 1


def _one_to_one(attempts: list[_Attempt], flows: list[_Flow], apart_us: int) -> Iterator[tuple[_Attempt, _Flow]]:
    """Yield pairs of what is left for each server, if there are as many of both, and each began within its request."""
    for server in dict.fromkeys(one.server for one in attempts):
        left = [one for one in attempts if one.server == server and one.dial is not None and not one.linked]
        began = [one for one in flows if one.server == server and not one.taken]
        if len(left) == len(began) and all(
            attempt.begins_us - _NOTED_US - apart_us <= flow.begins_us <= attempt.ends_us + apart_us
            for attempt, flow in zip(left, began, strict=True)
        ):
            yield from zip(left, began, strict=True)


def _nearest(attempts: list[_Attempt], flows: list[_Flow], apart_us: int) -> Iterator[tuple[_Attempt, _Flow]]:
    """Yield for each connection the request that began nearest to it, and that has none yet.

    Requests that were answered take theirs away, where they may have opened one: it stood.
    """
    waiting: list[_Attempt] = []
    coming = iter(attempts)
    upcoming = next(coming, None)
    for flow in flows:
        while upcoming is not None and upcoming.begins_us <= flow.begins_us + _NOTED_US + apart_us:
            waiting.append(upcoming)
            upcoming = next(coming, None)
        nearest = None
        for place in range(len(waiting) - 1, -1, -1):
            apart = abs(flow.begins_us - waiting[place].begins_us)
            if flow.begins_us - waiting[place].begins_us > _OPENED_US + apart_us:
                break  # those before it began earlier still
            fits = waiting[place].server == flow.server and (flow.stood or waiting[place].stood is not True)
            if fits and (nearest is None or apart < abs(flow.begins_us - waiting[nearest].begins_us)):
                nearest = place
        if nearest is not None:
            yield waiting.pop(nearest), flow


def _insert(
    database: duckdb.DuckDBPyConnection,
    instance: str,
    pairs: Iterator[tuple[_Attempt, _Flow]] | list[tuple[_Attempt, _Flow]],
) -> None:
    rows: list[tuple[object, ...]] = []
    for attempt, flow in pairs:
        flow.taken = attempt.linked = True
        if attempt.dial is not None:
            rows.append((instance, attempt.dial, flow.observer, flow.id, "begin"))
    insert_rows(database, "dial_links", ["instance", "dial", "observer", "flow", "how"], rows)
