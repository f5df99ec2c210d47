"""What the scenario made of the path: its links as measured, and what orderly ends and reloads cost."""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.diagnosis.causes import cause_named
from analysis.formatting import format_count, format_ms, format_number, format_us
from analysis.reports.run_record import Record
from formats.field_types import Scalar
from formats.manifest import LinkRecord, LinkUse

_DEEDS = {"drain": "Drain", "stop": "Stop", "restart": "Restart", "reload": "Reload"}
# The knobs of a link that the table names in words, besides delay and loss; their defaults are left out.
_WORDS = {
    "jitter": "jitter ±{:g} ms",
    "loss_burst": "in bursts of {:g}",
    "rate": "{:,g} kbit/s",
    "reorder": "{:g} % overtake others",
    "forget_idle": "forgets after {:g} ms without a packet",
    "drop_syns": "drops {:g} SYNs of each connection",
    "drop_acks": "drops {:g} ACKs of each handshake",
    "drop_port": "drops what goes to port {:g}",
}
_DEFAULTS = {"loss_burst": 1}


def ending_rows(record: Record) -> list[dict[str, Any]]:
    """Return each drain, stop, restart and reload: how many requests it met, how many were lost, where, and why."""
    return [
        {
            "name": f"{_DEEDS[one['do']]} of {one['instance']}",
            "at": f"{record.offset_s(one['start_us']):,.1f} s",
            "lasted": "not done" if one["lasted_us"] is None else format_us(one["lasted_us"]),
            **{key: one[key] for key in ("under_way", "under_way_lost", "came", "came_lost", "elsewhere")},
            "why": [_why(record, one["instance"], name, count) for name, count in one["causes"].items()],
        }
        for one in record.ledger.get("endings", [])
    ]


def _why(record: Record, instance: str, name: str, count: int) -> str:
    """Return where and why requests were lost; the hop is the one that leads to the server that ended."""
    cause, path = cause_named(name), record.manifest.request_path
    place = max(path.index(record.role_of[instance]), 1) if record.role_of.get(instance) in path else len(path) - 1
    hop = {"client": path[place - 1], "server": instance}
    return f"{format_count(count, 'request')}: {cause.label}. {cause.where.format(**hop)}"


def link_rows(record: Record) -> list[dict[str, Any]]:
    """Return each link: what was asked for, and what the echoes over it and its way back measured."""
    return [
        {
            "from": one.instance,
            "to": one.to,
            "delay": format_ms(float(one.asked.get("delay", 0))),
            "loss": f"{one.asked.get('loss', 0):g} %",
            "others": ", ".join(_other_words(one.asked)),
            "way": one.way,
            **_measured(record, one),
            "lost": _carried(one.use),
        }
        for one in record.manifest.links
    ]


def _other_words(asked: Mapping[str, Scalar]) -> Iterator[str]:
    for knob, words in _WORDS.items():
        if asked.get(knob, 0) not in (0, _DEFAULTS.get(knob, 0)):
            yield words.format(asked[knob])


def _measured(record: Record, link: LinkRecord) -> dict[str, str]:
    """Return what echoes measured between a link's ends; those of another instance of the role stand for it, too."""
    ends = {record.role_of.get(link.instance), link.to}
    found = [
        one
        for one in record.manifest.round_trips
        if {record.role_of.get(one.instance), record.role_of.get(one.to)} == ends
    ]
    own = [one for one in found if link.instance in (one.instance, one.to)] or found
    if not own:
        return {"round_trip": "unknown", "echoes": "unknown"}
    trip = "no echo was answered" if own[0].p50_us is None else f"{own[0].p50_us / 1000:,.2f} ms"
    return {"round_trip": trip, "echoes": f"{own[0].sent - own[0].received:,} of {own[0].sent:,}"}


def _carried(use: LinkUse | None) -> str:
    return "unknown" if use is None else f"{format_number(use.lost)} of {format_number(use.packets)}"
