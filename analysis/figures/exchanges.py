"""Requests that packets tell of, where the client records none and asks one at a time.

A status is in the data, which no capture keeps: how many of them failed is unknown.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from analysis.database import sql
from analysis.diagnosis.joins import Joined
from analysis.expressions.values import Kind, Unknown, Value, unknown
from analysis.figures.declaration import Compute, Figure, figures_of_times, of_connections
from analysis.figures.run import Run, list_or_statistic

PREFIX = "flows.<server>.request"
_SOURCE = "capture.pcap of one end"
_figure = partial(Figure, source=_SOURCE)


def records_requests(run: Run) -> bool:
    """Return whether the client leaves a record of its requests."""
    return bool(run.raw.clients or run.raw.with_results)


def _in_turns(value: Callable[[Joined, list[str], Mapping[str, str]], Value]) -> Compute:
    """Return a value of the requests to a server, where nothing stands in the way of telling them apart."""
    by_packets = of_connections(
        lambda _run, joined, servers, found: _doubt(joined, servers) or value(joined, servers, found)
    )

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        why = None if isinstance(run.joined, Unknown) else _not_in_turns(run, run.instances(found["server"]))
        return by_packets(run, found) if why is None else unknown(why)

    return compute


def _not_in_turns(run: Run, servers: list[str]) -> str | None:
    manifest = run.raw.manifest
    client, first = manifest.client, next(iter(manifest.path[1:]), "")
    if records_requests(run):
        return f"{client} records its requests: see client.requests.total"
    if not set(servers) <= set(manifest.of_role(first)):
        return f"packets tell requests apart between {client} and {first or 'its server'} alone"
    if first in manifest.roles and manifest.roles[first].tls:
        return f"the connections to {first} are by TLS: their packets do not tell of requests"
    if client not in manifest.roles or not manifest.roles[client].one_at_a_time:
        return f"{client} may send a request before the answer to the last, or not speak HTTP/1: packets do not tell"
    return None


def _doubt(joined: Joined, servers: list[str]) -> Unknown | None:
    found = joined.row(sql(__name__, "exchanges_in_doubt"), servers=servers)
    reasons = [found["unread"]] if found["unread"] else []
    if found["torn"]:
        reasons.append(f"the capture has not all data of {found['torn']} connections")
    if found["spoken_first"]:
        reasons.append(f"the server spoke first on {found['spoken_first']} connections, which HTTP/1 does not")
    if found["in_pieces"]:
        reasons.append(
            f"of {found['total']} turns {found['in_pieces']} had data in several pieces: a request with a body, or"
            " another request before the answer"
        )
    return Unknown(tuple(reasons)) if reasons else None


def _count(column: str) -> Compute:
    """Return a count of turns."""
    return _in_turns(
        lambda joined, servers, _: int(joined.row(sql(__name__, "exchanges_in_doubt"), servers=servers)[column])
    )


def _took(joined: Joined, servers: list[str], found: Mapping[str, str]) -> Value:
    query = "SELECT end_us - time_us FROM exchanges WHERE end_us IS NOT NULL AND list_contains($servers, to_instance)"
    return list_or_statistic(joined.integers(query, servers=servers), found)


def _of_connections(joined: Joined, servers: list[str], _: Mapping[str, str]) -> Value:
    query = """SELECT count(*) FROM exchanges WHERE list_contains($servers, to_instance) GROUP BY observer, flow"""
    return tuple(np.sort(joined.integers(query, servers=servers)).tolist())


FIGURES: tuple[Figure, ...] = (
    _figure(
        "flows.<server>.requests.total",
        "Requests of a client that records none, by the packets: its data, then the server's. Over HTTP/1 without TLS,"
        " where the client asks one at a time; unknown if it sent one request in several pieces.",
        _count("total"),
    ),
    _figure(
        "flows.<server>.requests.unanswered",
        "Those of them that no data of the server follows.",
        _count("unanswered"),
    ),
    _figure(
        "flows.<server>.requests.of_connection.list",
        "How many of them each connection carried, of those that carried any.",
        _in_turns(_of_connections),
        kind=Kind.LIST,
    ),
    *figures_of_times(
        "flows.<server>.request_ms",
        "From the first packet of each of them to the last of its answer, where its packets were captured.",
        _SOURCE,
        _in_turns(_took),
    ),
)
