"""Prints a run's ledger: what nothing explains first, then the causes, then what the observers do not agree on."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from analysis.verdicts.ledger_file import FILE, HopEntry, IdentityEntry, Ledger, NamedRequests, Side
from lab.results.lacks import Lacks
from lab.runs import reports

_STYLES = {"false": "red", "unknown": "yellow"}
_EXAMPLES = 3
_NAMES = 10


def print_ledger(console: Console, folder: Path, lacks: Lacks) -> None:
    """Print the ledger of a run.

    Args:
        console: where it is printed.
        folder: the run's.
        lacks: the instruments' problems, which are printed elsewhere.
    """
    ledger = reports.read_derived(folder, FILE, Ledger)
    _print_causes(console, ledger)
    for hop in ledger.hops:
        _print_hop(console, hop, lacks)


def _print_causes(console: Console, ledger: Ledger) -> None:
    requests = ledger.requests
    if requests is None:
        console.print(Text(f"ledger: none: {'; '.join(ledger.lacks)}", "yellow"), soft_wrap=True)
        return
    unexplained = ledger.unexplained
    console.print(
        Text.assemble(
            "ledger: ",
            (f"{unexplained:,} unexplained", "bold red" if unexplained else "bold green"),
            f" of {requests.failed:,} failed and {requests.slow:,} slow; {requests.total:,} requests in all",
        ),
        soft_wrap=True,
    )
    for one in ledger.unexplained_requests[:_EXAMPLES]:
        console.print(Text(f"        {one.request} {one.outcome}: {one.why}", "red"), soft_wrap=True)
    for name, count in ledger.causes.items():
        console.print(f"{count:>8,} {name}", soft_wrap=True)
    if len(ledger.names) > 1:
        _print_names(console, [one for one in ledger.names if one.causes])


def _print_names(console: Console, hurt: list[NamedRequests]) -> None:
    """Say which requests of a script failed or were slow."""
    for one in hurt[:_NAMES]:
        group = f" in {one.group}" if one.group else ""
        causes = ", ".join(f"{name} {count:,}" for name, count in one.causes.items())
        what = f"{one.failed:,} failed and {one.slow:,} slow of {one.total:,} named {one.name}{group}: {causes}"
        console.print(Text(f"        {what}"), soft_wrap=True)
    if len(hurt) > _NAMES:
        console.print(f"        and those of {len(hurt) - _NAMES:,} other names: see the report")


def _print_hop(console: Console, hop: HopEntry, lacks: Lacks) -> None:
    identities = hop.identities
    dropped = hop.dropped_syns
    holding = sum(one.holds == "true" for one in identities)
    syns = (
        "dropped SYNs unknown"
        if dropped.fatal is None
        else f"dropped SYNs: {dropped.fatal:,} fatal, {dropped.healed:,} healed by a later one"
    )
    if hop.dropped_later:
        syns += f"; {hop.dropped_later:,} ACKs and data"
    agreed = f"{holding} of {len(identities)} identities hold"
    console.print(f"        {hop.from_} → {hop.to}: {agreed}; {syns}", soft_wrap=True)
    for one in identities:
        if one.holds == "false":
            console.print(Text(f"{'false':<8}{_identity(one)}", _STYLES["false"]), soft_wrap=True)
    # Several often lack the same.
    unknown: dict[str, list[str]] = {}
    for one in identities:
        if one.holds == "unknown":
            unknown.setdefault(lacks.short(one.why or ""), []).append(one.id)
    for why, ids in unknown.items():
        console.print(Text(f"{'unknown':<8}{', '.join(ids)}: {why}", _STYLES["unknown"]), soft_wrap=True)


def _identity(one: IdentityEntry) -> str:
    """Name an identity with both sides."""
    return f"{one.id}: {_side(one.left)}, {_side(one.right)}: {one.difference:+,}"


def _side(side: Side) -> str:
    most = "" if side.value_max is None else f" to {side.value_max:,}"
    return f"{side.name} = {side.value:,}{most}"
