"""What one observer counted must equal what another did: the identities of each hop, over the figures of a run.

Both sides of an identity are expressions in the language of predictions, so docs/figures.md says what each figure
means, and what makes it unknown. Where a side is known within bounds only, it has two. The caller gives the
values of the figures: an identity rests on what was observed, and does not know how that was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from analysis.diagnosis.health import Evidence
from analysis.diagnosis.joins import Hop
from analysis.evidence import kernel_events
from analysis.evidence.logs import ACCESS
from analysis.expressions import parse
from analysis.expressions.values import Number, Unknown, Value, is_number, merge, unknown
from analysis.output import Written
from formats.log_format import LogFormat
from formats.manifest import Manifest
from formats.predictions import Truth

# Identities hold for the load that there was, even if it was less or later than asked for.
SET_ASIDE = frozenset({Evidence.LOAD})

_ANSWERS = ("1xx", "2xx", "3xx", "4xx", "5xx")
# A proxy's own status for a client that closed its connection first: no client ever reads it.
_CLIENT_CLOSED = 499
# Its status for a client that sends no whole request in time: HAProxy sends it, and nginx closes without a word.
_CLIENT_TOO_SLOW = 408
# nginx's `return 444` closes the connection, and sends nothing.
_NOT_SENT = 444


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity.

    Attributes:
        right_max: where the right side is known within bounds only, the upper one; `right` is then the lower one.
        if_any: whether it is of no use where both sides are 0, because most runs have none of what it counts.
    """

    id: str
    says: str
    left: str
    right: str
    right_max: str | None = None
    if_any: bool = False


class Side(Written):
    """One side of an identity."""

    name: Annotated[str, Field(description="What it counts: figures, in the language of predictions")]
    value: Annotated[int | float | None, Field(description="null where the evidence does not give one")]
    value_max: Annotated[
        int | float | None,
        Field(description="Where it is known within bounds only, the upper one, `value` being the lower; else null"),
    ] = None


class IdentityEntry(Written):
    """What one observer counted must equal what another did."""

    id: str
    says: str
    left: Side
    right: Side
    difference: Annotated[
        int | float | None, Field(description="left - right, or from the nearest bound; null where a side is unknown")
    ]
    holds: Annotated[Truth, Field(description="Whether the difference is 0")]
    why: Annotated[str | None, Field(description="Why a side is unknown; null where none is")]


def balance(hops: Sequence[Hop], manifest: Manifest, value: Callable[[str], Value]) -> dict[Hop, list[IdentityEntry]]:
    """Balance the identities of each hop, by observed figures; evidence in `SET_ASIDE` is not asked for."""
    found = {
        hop: [
            (one, _balance(value, one))
            for one in (_with_losses(each, manifest, hop) for each in list_identities(manifest, hop))
        ]
        for hop in hops
    }
    return {
        hop: [entry for one, entry in entries if not one.if_any or entry.left.value or entry.right.value]
        for hop, entries in found.items()
    }


def list_identities(manifest: Manifest, hop: Hop) -> Iterator[Identity]:
    """Yield the identities of one hop."""
    if hop.client == "k6":
        yield from _of_users(hop.server)
    elif hop.client == "gateway":
        yield from _of_gateway(hop.server)
    elif manifest.kind_of(hop.client) == "proxy" and _logs_tries(manifest, hop.client):
        yield from _of_proxy(manifest, hop.client, hop.server)
    path = manifest.path
    next_server = path[hop.number + 1] if hop.number + 1 < len(path) else None
    at_edges = sum(_checks_at_edges(manifest, role) for role in (hop.client, hop.server))
    first = manifest.kind_of(hop.client) == "client"
    beside = not manifest.images.keys() <= {"collector", *path}
    scraped = manifest.metrics_port is not None
    of_kernels = [*_of_kernels(hop, next_server, first=first, scraped=scraped, at_edges=at_edges, beside=beside)]
    if kernel_events.are_due(manifest):
        of_kernels += _of_kernels_words(hop.server)
    shared = _is_shared(manifest, hop.server)
    yield from (_with_others(one, hop.server) if shared or beside else one for one in of_kernels)
    if hop.client == "k6" and manifest.kind_of(hop.server) == "proxy" and _logs_answers(manifest, hop.server):
        yield from _of_answers(hop.server)
    # Each instance once: as a server, and the client at the path's beginning.
    roles = (hop.client, hop.server) if manifest.kind_of(hop.client) == "client" else (hop.server,)
    for role in roles:
        for instance in manifest.of_role(role):
            yield _of_time_wait(instance, beside=beside and role == hop.server, shared=_is_shared(manifest, role))


# What others' connections are in, too, as counters of the server's whole namespace, and the figure of these.
_OF_NAMESPACE = {"accepted": "others", "queue-entries-told": "others", "syns-dropped": "others_dropped"}


def _is_shared(manifest: Manifest, role: str) -> bool:
    declared = manifest.roles.get(role)
    return declared is not None and declared.shared


def _with_others(one: Identity, server: str) -> Identity:
    """Return an identity with room for connections of clients that are not on the path."""
    if one.id not in _OF_NAMESPACE:
        return one
    says = f"{one.says} Others may connect to {server}, too: the capture says how often."
    return replace(one, says=says, right_max=f"{one.right_max or one.right} + flows.{server}.{_OF_NAMESPACE[one.id]}")


# The SYNs of a dial or a try may all get lost before a capture has one.
_OF_LOST_SYNS = frozenset({"syns-of-failed-dials", "tries-unanswered"})
# What a packet that got lost before a capture had it may add to one side: a SYN that the client's kernel counted.
_LOST_THERE = frozenset({"opened", "syns-repeated", "dials-unanswered"})
_TIME_WAIT = "time-wait-"


def _with_losses(one: Identity, manifest: Manifest, hop: Hop) -> Identity:
    """Return an identity with room for what the links of the scenario itself lost."""
    there, back = (_lost_by(manifest, role) for role in (hop.client, hop.server))
    lower, upper = one.right, one.right_max
    if one.id in _LOST_THERE:
        room = there + back
        upper = f"{upper or lower} + {room}"
    elif one.id.startswith(_TIME_WAIT):
        # Of a FIN that got lost a capture has a later copy: the other side's may come before that.
        room = sum(_lost_by(manifest, role) for role in manifest.path)
        lower, upper = f"{lower} - {room}", f"{upper} + {room}"
    elif one.id in _OF_LOST_SYNS:
        room = there
        lower = f"{lower} - {room}"
    else:
        # The answer to a SYN got lost, and not the SYN.
        room = back if one.id == "syns-dropped" else 0
        lower = f"{lower} - {room}"
    if not room:
        return one
    says = f"{one.says} Links lost {room} packets, which no capture has."
    return replace(one, says=says, right=lower, right_max=upper)


def _lost_by(manifest: Manifest, role: str) -> int:
    instances = manifest.of_role(role)
    return sum(link.use.lost for link in manifest.links if link.instance in instances and link.use is not None)


def _logs_tries(manifest: Manifest, role: str) -> bool:
    """Return whether a proxy logs its tries; the gateway counts them instead, and HAProxy in TCP mode sees none."""
    declared = manifest.roles.get(role)
    formats = declared.logs.values() if declared else ()
    return declared is None or role == "gateway" or any(isinstance(of, str) and of in ACCESS for of in formats)


def _logs_answers(manifest: Manifest, role: str) -> bool:
    """Return whether a proxy logs its answers."""
    declared = manifest.roles.get(role)
    formats = declared.logs.values() if declared else ()
    return _logs_tries(manifest, role) or any(isinstance(of, LogFormat) for of in formats)


def _by_icmp(client: str, server: str) -> tuple[str, str]:
    """Return how many dials an ICMP message refused: no RST came; and how many found no way, with a SYN or without."""
    refused = f"{client}.dials.failed_refused"
    return f"({refused} - min({refused}, flows.{server}.refused))", f"{client}.dials.failed_unreachable"


def _refused(who: str, client: str, server: str, unanswered: str, waited: str) -> Identity:
    """Return the identity of refused dials: those that waited in vain account for the others without an answer."""
    return Identity(
        "dials-refused",
        f"Each dial of {who} that was refused is a connection that was answered with RST, or an ICMP message refused"
        " it: then nothing answered its SYNs, and it is none of those that timed out.",
        f"{client}.dials.failed_refused",
        f"flows.{server}.refused",
        f"flows.{server}.refused + {unanswered} - min({unanswered}, {waited})",
    )


_ICMP = " A dial that an ICMP message ended is one, too, though no RST came."
# The kernel's schedule has no more in two minutes.
_SYNS_MAX = 7


def _of_users(server: str) -> Iterator[Identity]:
    told, no_way = _by_icmp("client", server)
    yield Identity(
        "dials-made",
        "Each dial that connected, or was reset right after, is an established connection in the capture.",
        "client.dials.ok + client.dials.failed_reset",
        f"flows.{server}.established",
    )
    waited = "client.dials.failed_timeout + client.dials.failed_canceled + client.dials.failed_half_open"
    half_open = f"min(flows.{server}.half_open, client.dials.failed_half_open)"
    unanswered = f"flows.{server}.unanswered"
    yield Identity(
        "dials-unanswered",
        "Each dial that timed out, or that ended with its request or with k6, is a connection whose SYNs nothing"
        " answered, or whose answer got lost on the way back. A connection that was held half open on purpose may be"
        f" one of these, or may have been answered.{_ICMP}",
        waited,
        f"{unanswered} + {half_open} - min({unanswered}, {told} + {no_way})",
        f"{unanswered} + flows.{server}.half_open",
    )
    yield _refused("k6", "client", server, unanswered, waited)
    yield Identity(
        "dials-without-port",
        "When a dial found no port, the capture shows that connections and TIME_WAIT held the whole port range.",
        "client.dials.failed_address_not_available",
        "ledger.dials_without_port",
    )
    yield Identity(
        "syns-of-failed-dials",
        "The unanswered connections have as many SYNs as the client's kernel had to send: its sysctls and"
        " the length of each dial say how many. Those of a dial whose answer got lost on the way back are not among"
        " them.",
        f"flows.{server}.syn_failed",
        f"model.failed_dials_syns.min - {_SYNS_MAX} * flows.{server}.half_open",
        f"model.failed_dials_syns.max + {_SYNS_MAX} * ({told} + {no_way})",
    )


def _of_gateway(server: str) -> Iterator[Identity]:
    told, no_way = _by_icmp("gateway", server)
    yield Identity(
        "connections-opened",
        "Each connection that the gateway opened, or that was reset as soon as it was, is one that was established in"
        " the capture.",
        "gateway.connections.opened + gateway.dials.failed_reset",
        f"flows.{server}.established",
    )
    waited, unanswered = "gateway.dials.failed_timeout + gateway.dials.failed_canceled", f"flows.{server}.unanswered"
    yield Identity(
        "dials-unanswered",
        "Each dial of the gateway that timed out is a connection whose SYNs got no answer, or whose answer got lost on"
        f" the way back.{_ICMP}",
        waited,
        f"{unanswered} - min({unanswered}, {told} + {no_way})",
        f"{unanswered} + flows.{server}.half_open",
    )
    yield _refused("the gateway", "gateway", server, unanswered, waited)
    yield Identity(
        "dials-without-port",
        "When a dial of the gateway found no port, the capture shows that connections and TIME_WAIT held the whole port"
        " range.",
        "gateway.dials.failed_address_not_available",
        "ledger.gateway_dials_without_port",
    )


def _most_checks(manifest: Manifest, client: str) -> int:
    """Return how many connections the health checks of a proxy can have made in the run."""
    role = manifest.roles.get(client)
    if role is None or role.checks is None:
        return 0
    times_us = [time_us for each in manifest.phases for time_us in (each.start_us, each.end_us) if time_us is not None]
    span_ms = (max(times_us) - min(times_us)) // 1000 if times_us else 0
    # A check may begin at either end, and one that failed is followed by the next at once.
    return role.checks.servers * len(manifest.of_role(client)) * (span_ms // role.checks.every_ms + 2)


def _checks_at_edges(manifest: Manifest, proxy: str) -> int:
    """Return how many connections of health checks may be under way as the window begins and as it ends."""
    role = manifest.roles.get(proxy)
    return 0 if role is None or role.checks is None else 2 * role.checks.servers * len(manifest.of_role(proxy))


def _of_proxy(manifest: Manifest, client: str, server: str) -> Iterator[Identity]:
    refused = f"flows.{server}.refused + access.{client}.errors.99"
    at_once = f"access.{client}.tries.connect_failed"
    told = f"({at_once} - min({at_once}, {refused}))"
    aborted = f"access.{client}.tries.aborted"
    checks, checked = _most_checks(manifest, client), ""
    if checks:
        aborted = f"{aborted} + {checks}"
        checked = f" Health checks may have made up to {checks} connections besides."
        yield Identity(
            "health-checks",
            "The established connections that no request used are no more than the health checks of the run, by their"
            " interval. A try that ended because the client closed may have one too.",
            f"flows.{server}.checks",
            "0",
            f"{checks} + access.{client}.tries.aborted",
        )
    yield Identity(
        "tries-unanswered",
        "Each try that timed out before it was connected is a connection whose SYNs got no answer, or whose answer got"
        " lost on the way back. A try that ended because the client closed may be one too, and one that an ICMP message"
        f" ended is.{checked}",
        f"flows.{server}.unanswered",
        f"access.{client}.tries.connect_timeout - flows.{server}.half_open",
        f"access.{client}.tries.connect_timeout + {told} + {aborted}",
    )
    yield Identity(
        "tries-refused",
        "Each try that failed to connect at once is a connection that was answered with RST, or it found no port (99 in"
        f" the error log), or an ICMP message ended it: then nothing answered its SYNs.{checked}",
        at_once,
        f"{refused} - {checks}" if checks else refused,
        f"{refused} + flows.{server}.unanswered"
        f" - min(flows.{server}.unanswered, access.{client}.tries.connect_timeout)",
    )
    role = manifest.roles.get(client)
    if role and role.limits.pool and manifest.value_of(role.knob(role.limits.pool)) == 0:
        yield Identity(
            "tries-connected",
            "Each try that was connected has a connection of its own. A try that ended because the client closed may"
            f" have one.{checked}",
            f"flows.{server}.established",
            f"access.{client}.tries.connected",
            f"access.{client}.tries.connected + {aborted}",
        )


def _of_kernels(
    hop: Hop, next_server: str | None, *, first: bool, scraped: bool, at_edges: int, beside: bool
) -> Iterator[Identity]:
    client, server = hop.client, hop.server
    # Who scrapes the collector's metrics port makes connections that belong to no role.
    without = " Connections to the collector's metrics port are left out." if scraped else ""
    of_client, of_server = (f"metrics.{role}.connections" for role in (client, server))
    # Connections within a namespace, those of the management ports, count once as opened and once as accepted: the
    # difference of the two counters is that of connections with others.
    if first:
        yield Identity(
            "opened",
            "The client's kernel opened the connections that are in the capture. Connections within its own namespace"
            f" are subtracted: it also accepted them.{without}",
            f"kernel.{client}.Tcp.ActiveOpens - kernel.{client}.Tcp.PassiveOpens"
            + (f" + {of_client}" if scraped else ""),
            f"flows.{server}.total",
        )
    checked = " A health check may be under way as the window begins or ends." if at_edges else ""
    beside_path = (
        ""
        if not beside
        else (" The server may have opened connections to services beside the path, which no capture has.")
    )
    cookies = f"kernel.{server}.TcpExt.TCPReqQFullDoCookies"
    onwards = f" - flows.{next_server}.total" if next_server else ""
    yield Identity(
        "accepted",
        "The connections that the server's kernel accepted"
        + (", minus those that it opened, " if next_server else " ")
        + "are those in the capture. Connections within its own namespace count as both and are subtracted, but for"
        " those that a full queue there may have kept out. A capture alone cannot always tell whether the server ever"
        " had a connection by SYN cookie. If ACK and data came at once, one connection in a thousand may count twice. A"
        f" queue that was full when the window ended lets connections in later.{checked}{beside_path}{without}",
        f"kernel.{server}.Tcp.PassiveOpens - kernel.{server}.Tcp.ActiveOpens" + (f" - {of_server}" if scraped else ""),
        f"flows.{server}.entered - min(flows.{server}.perhaps_unknown, {cookies})"
        # Within its namespace, each that a full queue kept out counts as opened alone.
        f" - min(inner.{server}.drops.max, kernel.{server}.Tcp.ActiveOpens)"
        # Whatever it opened may have gone there, or on along the path.
        + (f" - kernel.{server}.Tcp.ActiveOpens" if beside else onwards)
        + (f" - {at_edges}" * bool(at_edges)),
        f"flows.{server}.entered{onwards} + flows.{server}.perhaps_entered"
        f" + min(flows.{server}.made_at_once, 1 + flows.{server}.entered // 1000)"
        + (f" + {at_edges}" * bool(at_edges)),
    )
    # A proxy's kernel counts the SYN-ACKs that it repeats as a server in the same place.
    as_server = f" + flows.{client}.synack_retransmissions" if not first else ""
    yield Identity(
        "syns-repeated",
        "The capture has the SYNs that the client's kernel retransmitted."
        + (" The counter also has the SYN-ACKs that it repeated as a server." if as_server else ""),
        f"kernel.{client}.TcpExt.TCPSynRetrans",
        f"flows.{server}.syn_retransmissions{as_server}",
    )
    yield Identity(
        "syns-dropped",
        "The server's kernel dropped the unanswered SYNs, and the later packets that met a full queue."
        " The ACK of a SYN cookie may be one of these. The last sample need not have what came after the window, and"
        " SYNs that came to no socket may be none. The counter also has what sockets of the namespace on other ports"
        " dropped.",
        f"kernel.{server}.TcpExt.ListenDrops",
        f"flows.{server}.syn_unanswered + flows.{server}.ack_dropped.min - flows.{server}.dropped_late"
        f" - flows.{server}.syns_before_socket + inner.{server}.drops.min",
        f"flows.{server}.syn_unanswered + flows.{server}.ack_dropped.max + kernel.{server}.TcpExt.SyncookiesRecv"
        f" + inner.{server}.drops.max",
    )
    yield Identity(
        "drops-by-overflow",
        "A full accept queue, or a full queue of half-open connections, was the only reason to drop.",
        f"kernel.{server}.TcpExt.ListenDrops",
        f"kernel.{server}.TcpExt.ListenOverflows + kernel.{server}.TcpExt.TCPReqQFullDrop",
    )


def _of_kernels_words(server: str) -> Iterator[Identity]:
    yield Identity(
        "queue-entries-told",
        "The connections that entered the accept queue by the server's kernel are those that did by the packets.",
        f"events.{server}.queued",
        f"flows.{server}.entered - flows.{server}.perhaps_unknown",
        f"flows.{server}.entered + flows.{server}.perhaps_entered",
    )
    for column, what in (
        ("syns", "SYNs that the client's kernel sent again"),
        ("synacks", "SYN-ACKs that the server's kernel sent again"),
        ("resets", "RSTs that both kernels sent"),
    ):
        yield Identity(
            f"{column}-told",
            f"For each connection, the {what} are those in the capture: connections of which this is not so.",
            f"events.{server}.differing.{column}",
            "0",
        )
    yield Identity(
        "accepts-told",
        "Each connection left the accept queue, by the server's kernel, between the samples that say so: connections of"
        " which this is not so.",
        f"events.{server}.differing.accepts",
        "0",
    )


def _of_answers(proxy: str) -> Iterator[Identity]:
    says = f"{proxy} logged as many {{}} answers as the client read"
    for status in _ANSWERS:
        read, logged = f"client.requests.status.{status}", f"access.{proxy}.status.{status}"
        if status != "4xx":
            # An upgrade of the protocol is the one answer of this class that k6 records.
            some = status == "5xx" and proxy == "haproxy"
            sent = f"{logged} - access.{proxy}.unsent" if some else logged
            without = ", without those of 0 bytes, which it did not send" if some else ""
            yield Identity(
                f"answers-{status}",
                f"{says.format(status)}{without}. An answer that began and did not end has a status at {proxy} alone.",
                read,
                f"{sent} - min({sent}, client.requests.cut)",
                sent,
                if_any=status == "1xx",
            )
            continue
        sent = f"{logged} - access.{proxy}.status.{_CLIENT_CLOSED} - access.{proxy}.status.{_NOT_SENT}"
        yield Identity(
            f"answers-{status}",
            f"{says.format(status)}, without {_CLIENT_CLOSED}, its status for a client that closed first, and"
            f" {_NOT_SENT}, with which it closes without an answer. A {_CLIENT_TOO_SLOW}, for one that was too slow,"
            " may have been sent or not.",
            read,
            f"{sent} - access.{proxy}.status.{_CLIENT_TOO_SLOW} - min({sent}, client.requests.cut)",
            sent,
        )


def _of_time_wait(instance: str, *, beside: bool, shared: bool) -> Identity:
    name = instance.replace("-", "_")
    held, most = (
        f"sockets.{name}.time_wait.end",
        f"flows.{name}.time_wait.max + sockets.{name}.time_wait.loopback",
    )
    return Identity(
        f"{_TIME_WAIT}{instance}",
        f"At the end, {instance} holds in TIME_WAIT the connections that it closed first in the last minute, without"
        " those above tcp_max_tw_buckets. The kernel also counts those that still wait for the other side's FIN, if no"
        " process holds them, and those within its own namespace, which no capture sees."
        + (" It may hold more, to services beside the path." if beside else "")
        + (" It may hold more, of others' connections and of those before the run." if shared else ""),
        held,
        f"flows.{name}.time_wait.min",
        f"max({held}, {most})" if beside or shared else most,
    )


def _balance(value: Callable[[str], Value], identity: Identity) -> IdentityEntry:
    sides = [_value(value, text) for text in (identity.left, identity.right, identity.right_max) if text is not None]
    missing = [side for side in sides if isinstance(side, Unknown)]
    left, right, right_max = (*(side if is_number(side) else None for side in sides), None)[:3]
    difference = None
    if left is not None and right is not None and not missing:
        most = right if right_max is None else right_max
        difference = left - min(max(left, right), most)
        # An upper bound that equals the lower one is not shown.
        right_max = None if most == right else most
    return IdentityEntry(
        id=identity.id,
        says=identity.says,
        left=Side(name=identity.left, value=left),
        right=Side(name=identity.right, value=right, value_max=right_max),
        difference=difference,
        holds="unknown" if difference is None else "true" if difference == 0 else "false",
        why=merge(*missing).why if difference is None else None,
    )


def _value(value: Callable[[str], Value], text: str) -> Number | Unknown:
    found = parse(text).evaluate(value)
    return found if is_number(found) or isinstance(found, Unknown) else unknown(f"{text} is not a number")
