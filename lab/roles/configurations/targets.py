"""Which address of the next role takes the place of each server that a configuration names."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lab.roles.configurations.parsed import Fault, Position, Surroundings

# Where the entry point makes certificates.
_CERTIFICATES = "/tmp/connlab-tls"  # noqa: S108 # in the container
# The port discard, on which nothing listens.
_NOBODY = "127.0.0.1:9"
_LOOPBACK = ("localhost", "[::1]", "::1")


@dataclass(frozen=True)
class Target:
    """A server that a configuration names.

    Attributes:
        address: `host:port`, or a socket in the file system as `unix:/path`.
        group: the block or section that it stands in; one alone has its own.
        where: the line.
        reached: whether the load may come there.
    """

    address: str
    group: str
    where: Position | None
    reached: bool = True


def made_certificate(path: str) -> str:
    """Return where the certificate is made that stands in place of one that is not there; its key is beside it."""
    return f"{_CERTIFICATES}/{re.sub(r'[^A-Za-z0-9._-]', '-', path.strip('/'))}"


def is_loopback(host: str) -> bool:
    """Return whether a host is the program's own."""
    return host in _LOOPBACK or host.startswith("127.")


def split_address(address: str) -> tuple[str, str]:
    """Return host and port; no port of a socket in the file system."""
    if address.startswith("unix:"):
        return address, ""
    host, colon, port = address.rpartition(":")
    return (host, port) if colon and not address.endswith("]") else (address, "")


def _is_address(address: str) -> bool:
    host, _ = split_address(address)
    return host.startswith(("[", "unix:")) or host.replace(".", "").isdecimal()


def match_targets(
    targets: Sequence[Target], around: Surroundings, own_ports: Collection[int], role: str
) -> tuple[dict[str, str], list[Fault]]:
    """Return the address in the place of each target, by the file's; and why one has none.

    What the scenario maps, by host or by group, goes where it says. Of the others, one alone stands for the next role;
    those of one group stand for its instances, in turn, and so do those that the load does not reach. A loopback
    address whose port the file itself listens on stays. At the path's end, nothing stands for what is not reached.
    """
    found: dict[str, str] = {}
    open_: list[Target] = []
    instances = around.behind[1:] or around.behind
    for one in targets:
        host, port = split_address(one.address)
        mapped = around.hosts.get(one.address) or around.hosts.get(host)
        of_group = around.hosts.get(one.group)
        if mapped:
            found[one.address] = mapped
        elif of_group:
            members = list(dict.fromkeys(each.address for each in targets if each.group == one.group))
            place = members.index(one.address)
            found[one.address] = instances[place % len(instances)] if of_group == around.behind[0] else of_group
        elif one.address in around.behind or (is_loopback(host) and port.isdecimal() and int(port) in own_ports):
            continue
        else:
            open_.append(one)
    if open_ and not around.behind:
        if reached := [one for one in open_ if one.reached]:
            what = f"it proxies to {reached[0].address}, and the path ends at {role}"
            return found, [Fault(what, reached[0].where, "put a server behind it on the path")]
        # The load does not come there. An address can stay; a name that nobody has keeps a proxy from its start.
        return found | {one.address: _NOBODY for one in open_ if not _is_address(one.address)}, []
    addresses = list(dict.fromkeys(one.address for one in open_ if one.reached))
    beside = dict.fromkeys(one.address for one in open_ if one.address not in addresses)
    found |= {one: instances[place % len(instances)] for place, one in enumerate(beside)}
    open_ = [one for one in open_ if one.reached]
    if not addresses:
        return found, []
    if len(addresses) == 1:
        return found | {addresses[0]: around.behind[0]}, []
    if len({one.group for one in open_}) == 1:
        return found | {one: instances[place % len(instances)] for place, one in enumerate(addresses)}, []
    named = ", ".join(f'"{one}": {around.role}' for one in addresses)
    listed = ", ".join(f"{one} ({next(each.where for each in open_ if each.address == one)})" for one in addresses)
    what = f"it proxies to several servers: {listed}; the path does not tell which of them {around.role} stands for"
    return found, [Fault(what, open_[0].where, f"say it in the scenario: {role}: {{config: …, hosts: {{{named}}}}}")]
