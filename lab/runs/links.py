"""The links of a run: set by the senders' collectors, read back, and measured before the load."""

import json
import math
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, ip_address
from itertools import pairwise
from typing import Any

from formats.manifest import ActionRecord, LinkRecord, LinkUse, RoundTrip
from lab import parallel
from lab.engines.protocol import ask_collector
from lab.errors import BadInput, LabError, Problem
from lab.runs.run_context import RunContext
from lab.scenarios.network import HELD_KBIT, HELD_PACKETS_PER_SECOND, KEY, Link
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

# A knob, and what the collector calls it.
NAMES = {
    "delay": "delay_ms",
    "jitter": "jitter_ms",
    "loss": "loss_percent",
    "loss_burst": "loss_burst",
    "rate": "rate_kbit",
    "queue": "queue",
    "reorder": "reorder_percent",
    "forget_idle": "forget_idle_ms",
    "drop_syns": "drop_syns",
    "drop_acks": "drop_acks",
    "drop_port": "drop_port",
}
# netem keeps a share in 32 bits, and one in bursts as two chances.
_SHARES = ("loss", "reorder")
_SHARE_OFF = 0.002
_SET_TIMEOUT_S = 30
_PROBES = 1000
_PROBES_LEAST = 50
_EVERY_MS = 2.0
_PROBING_MS = 10_000
# An ICMP echo as the collector sends it, with its IP header.
_PROBE_BITS = 84 * 8
# A busy machine delays probes, too; what is wrong stays wrong.
_TRIES = 3
_OFF_MS = 1.0
# So seldom are as many probes lost by chance, or as few, that the link is not as asked.
_CHANCE = 5e-5
# Of a normal distribution, for 95 %.
_DEVIATIONS = 1.96
# SYN, ACK, request, ACK of the answer, FIN and its ACK.
_PACKETS_OF_CONNECTION = 6


def set_links(context: RunContext) -> None:
    """Set the scenario's links, read them back, and measure each way and back.

    Raises:
        BadInput: the kernel has no netem, and the link's load is more than its replacement carries.
        LabError: a setting did not take.
    """
    resolved, topology, engine = context.resolved, context.topology, context.engine
    links: dict[str, dict[str, Link]] = resolved.scenario.network
    if not links:
        return
    senders = [instance for instance in topology.all if topology.role_of(instance) in links]

    def set_one(instance: str) -> list[LinkRecord]:
        by_role = links[topology.role_of(instance)]
        asked = [_settings(context, to, link) for to, link in by_role.items()]
        way = ("--way", "nfqueue") if _is_changed(resolved, instance) else ()
        told = ask_collector(engine, instance, "link", *way, "--set", json.dumps(asked), timeout_s=_SET_TIMEOUT_S)
        return list(_records(instance, by_role, told))

    for records in parallel.each(set_one, senders).values():
        context.manifest.links += records
    mismatches = [line for one in context.manifest.links for line in _mismatches(one)]
    if mismatches:
        raise _not_taken(mismatches)
    if problems := list(_beyond_replacement(context)):
        raise BadInput(problems)
    context.manifest.round_trips = list(_measure(context))
    if lines := [line for one in context.manifest.round_trips for line in _deviations(resolved, topology, one)]:
        raise _not_taken(lines)


def _is_changed(resolved: ResolvedScenario, instance: str) -> bool:
    """Return whether an action changes a link of this instance; netem cannot undo every change meanwhile."""
    return any(one.do == "link" and one.instance == instance for one in resolved.scenario.actions)


def change_link(context: RunContext, record: ActionRecord, *, back: bool = False) -> None:
    """Give a link other settings for a while, or those of the scenario back, and read back what then stands.

    Raises:
        LabError: a setting did not take.
    """
    by_role = dict(context.resolved.scenario.network[context.topology.role_of(record.instance)])
    if not back:
        by_role[str(record.to)] = by_role[str(record.to)].model_copy(update=record.change)
    asked = json.dumps([_settings(context, to, link) for to, link in by_role.items()])
    told = ask_collector(context.engine, record.instance, "link", "--change", asked, timeout_s=_SET_TIMEOUT_S)
    if lines := [line for one in _records(record.instance, by_role, told) for line in _mismatches(one)]:
        raise LabError("links are not as asked:\n  " + "\n  ".join(lines))


def record_use(context: RunContext) -> None:
    """Note what each link carried and lost; a collector that does not answer leaves it unknown."""
    for instance in dict.fromkeys(one.instance for one in context.manifest.links):
        try:
            states = ask_collector(context.engine, instance, "link")["links"]
        except LabError:
            continue
        for record, state in zip(
            (one for one in context.manifest.links if one.instance == instance), states, strict=False
        ):
            record.use = LinkUse.model_validate(state)


def _not_taken(lines: list[str]) -> LabError:
    return LabError("the run was stopped before its load, because links are not as asked:\n  " + "\n  ".join(lines))


def _settings(context: RunContext, to: str, link: Link) -> dict[str, Any]:
    """Return a link as the collector takes it."""
    found = [each for one in context.topology.instances[to] for each in context.manifest.addresses[one]]
    values = {name: getattr(link, knob) or 0 for knob, name in NAMES.items()}
    addresses = [each for each in found if isinstance(ip_address(each), IPv4Address)]
    return {"to": to, "addresses": addresses, **values, "forget_with_reset": link.forget == "reset"}


def _records(instance: str, links: Mapping[str, Link], told: Mapping[str, Any]) -> Iterator[LinkRecord]:
    states = told["links"]
    if len(states) != len(links):
        raise LabError(f"collector-{instance} was asked for {len(links)} links, and has {len(states)}")
    for (to, link), state in zip(links.items(), states, strict=True):
        asked = {knob: getattr(link, knob) or 0 for knob in NAMES}
        found = {knob: state[name] for knob, name in NAMES.items()}
        asked["forget"] = link.forget
        found["forget"] = "reset" if state["forget_with_reset"] else "silent"
        yield LinkRecord(instance=instance, to=to, way=told["way"], asked=asked, read_back=found)


def _mismatches(record: LinkRecord) -> Iterator[str]:
    for knob, asked in record.asked.items():
        found = record.read_back[knob]
        near = knob in _SHARES and abs(float(found) - float(asked)) <= _SHARE_OFF
        if found != asked and not near:
            yield f"{record.instance} to {record.to}: {knob}: asked {asked}, found {found}"


def _beyond_replacement(context: RunContext) -> Iterator[Problem]:
    """Yield what is more than a collector carries where the kernel has no netem."""
    resolved, load = context.resolved, context.resolved.scenario.knobs.load
    held = {(context.topology.role_of(one.instance), one.to) for one in context.manifest.links if one.way == "nfqueue"}
    why = "the collector holds the packets itself, because the kernel has no netem or the link must know connections"
    for sender, to in sorted(held):
        link = resolved.scenario.network[sender][to]
        if link.rate is not None and link.rate > HELD_KBIT:
            what = f"{why}, and it carries {HELD_KBIT // 1000}mbit"
            where = resolved.where_knob(f"{KEY}.{sender}.{to}.rate")
            yield Problem(what, where, f"set a rate of {HELD_KBIT // 1000}mbit or less, or none")
    if held and load.workload == "spike" and load.rate_per_second * _PACKETS_OF_CONNECTION > HELD_PACKETS_PER_SECOND:
        most = HELD_PACKETS_PER_SECOND // _PACKETS_OF_CONNECTION
        what = f"{why}, and it carries {HELD_PACKETS_PER_SECOND:,} packets a second: {most:,} connections"
        yield Problem(what, resolved.where_knob("load.rate_per_second"), f"set it to {most} or less")


def _measure(context: RunContext) -> Iterator[RoundTrip]:
    """Measure between neighbours with a link in either direction: from each instance, to the first one behind it."""
    roles = list(context.topology.instances)
    for near, far in pairwise(roles):
        there, back = _link(context.resolved, near, far), _link(context.resolved, far, near)
        if there is None and back is None:
            continue
        to = context.topology.instances[far][0]
        pair = (there or Link(), back or Link())
        measured = parallel.each(
            lambda one, to=to, pair=pair: _probe(context, one, to, *pair),  # type: ignore[misc]
            context.topology.instances[near],
        )
        yield from measured.values()


def _link(resolved: ResolvedScenario, sender: str, to: str) -> Link | None:
    found: Link | None = resolved.scenario.network.get(sender, {}).get(to)
    return found


def _probe(context: RunContext, instance: str, to: str, there: Link, back: Link) -> RoundTrip:
    (address, *_) = (each for each in context.manifest.addresses[to] if isinstance(ip_address(each), IPv4Address))
    takes_ms = sum(_PROBE_BITS / one.rate for one in (there, back) if one.rate)
    delay_ms = there.delay + back.delay
    # Probes do not wait for each other, and find room in the queues.
    every_ms = max(_EVERY_MS, 4 * takes_ms, *(2 * one.delay / one.queue for one in (there, back)))
    count = max(min(_PROBES, int(_PROBING_MS / every_ms)), _PROBES_LEAST)
    patience_ms = delay_ms + there.jitter + back.jitter + takes_ms + 300
    within_s = (count * every_ms + patience_ms) / 1000 + 5
    asked_loss = 1 - (1 - there.loss / 100) * (1 - back.loss / 100)
    arguments = ("--count", str(count), "--every", f"{every_ms:.3f}ms", "--patience", f"{patience_ms:.0f}ms")

    def once() -> RoundTrip:
        asked = ("ping", *arguments, "--within", f"{within_s:.0f}s", address)
        told = ask_collector(context.engine, instance, *asked, timeout_s=within_s + 20)
        lost, sent = told["sent"] - told["received"], told["sent"]
        low, high = _interval(lost, sent, max(there.loss_burst, back.loss_burst))
        return RoundTrip(
            instance=instance,
            to=to,
            **told,
            asked_ms=delay_ms + takes_ms,
            asked_loss_percent=round(100 * asked_loss, 6),
            loss_low_percent=low,
            loss_high_percent=high,
        )

    record = once()
    for _ in range(_TRIES - 1):
        if not any(_deviations(context.resolved, context.topology, record)):
            break
        record = once()
    return record


def _interval(lost: int, sent: int, burst: int) -> tuple[float, float]:
    """Return Wilson's interval of a loss, in percent; a burst of losses is one observation."""
    if not sent:
        return 0.0, 100.0
    count, share, z = sent / (2 * burst - 1), lost / sent, _DEVIATIONS
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return round(100 * max(0.0, middle - half), 4), round(100 * min(1.0, middle + half), 4)


def _is_by_chance(lost: int, sent: int, burst: int, share: float) -> bool:
    """Return whether a link that loses this share may well lose so many (the binomial distribution's tails)."""
    if not 0 < share < 1:
        return lost == (sent if share else 0)
    count, found = round(sent / (2 * burst - 1)), round(lost / (2 * burst - 1))
    chances = [math.comb(count, one) * share**one * (1 - share) ** (count - one) for one in range(found + 1)]
    return min(sum(chances), 1 - sum(chances[:-1])) > _CHANCE


def _deviations(resolved: ResolvedScenario, topology: Topology, found: RoundTrip) -> Iterator[str]:
    near, far = topology.role_of(found.instance), topology.role_of(found.to)
    pair = [_link(resolved, near, far) or Link(), _link(resolved, far, near) or Link()]
    name = f"{found.instance} to {found.to} and back"
    allowed_ms = _OFF_MS + 0.1 * sum(one.jitter for one in pair)
    if found.p50_us is not None and abs(found.p50_us / 1000 - found.asked_ms) > allowed_ms:
        what = (
            f"the median of {found.received:,} round trips is {found.p50_us / 1000:.2f} ms, and {found.asked_ms:g} ms"
        )
        yield f"{name}: {what} was asked for (a busy machine delays packets, too)"
    burst = max(one.loss_burst for one in pair)
    lost = found.sent - found.received
    if not _is_by_chance(lost, found.sent, burst, found.asked_loss_percent / 100):
        what = f"{lost:,} of {found.sent:,} probes were lost"
        yield f"{name}: {what}, and {found.asked_loss_percent:.3g} % was asked for"
