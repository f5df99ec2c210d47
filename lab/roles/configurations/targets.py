"""Which address of the next role takes the place of each server that a configuration names."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from lab.reading.validation_messages import nearest
from lab.roles.configurations.parsed import Change, Fault, Position, Surroundings

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
    those of one group stand for its instances, in turn, and so do those that the load does not reach. Where the next
    role has a server of another group already, or a service beside the path has the server's name and port, and another
    service could be meant, the scenario must say. A loopback address whose port the file itself listens on stays. At
    the path's end, nothing stands for what is not reached.
    """
    found, open_ = _mapped(targets, around, own_ports)
    instances = around.behind[1:] or around.behind
    if misspelt := list(_misspelt(open_, _unknown_hosts(targets, around))):
        return found, misspelt
    if open_ and not around.behind:
        if reached := [one for one in open_ if one.reached]:
            what = f"it proxies to {reached[0].address}, and the path ends at {role}"
            return found, [Fault(what, reached[0].where, "put a server behind it on the path")]
        # The load does not come there. An address can stay; a name that nobody has keeps a proxy from its start.
        return found | {one.address: _NOBODY for one in open_ if not _is_address(one.address)}, []
    addresses = list(dict.fromkeys(one.address for one in open_ if one.reached))
    beside = dict.fromkeys(one.address for one in open_ if one.address not in addresses)
    found |= {one: instances[place % len(instances)] for place, one in enumerate(beside)}
    others = [one for one in around.beside if one not in found.values()]
    # Beside the next role in one group stand more of its kind.
    of_next = {one.group for one in targets if one.reached and found.get(one.address, one.address) in around.behind}
    alike = [one.address for one in open_ if one.reached and one.group in of_next and one.address not in others]
    found |= {one: instances[place % len(instances)] for place, one in enumerate(dict.fromkeys(alike), 1)}
    open_ = [one for one in open_ if one.reached and one.address not in found]
    addresses = list(dict.fromkeys(one.address for one in open_))
    if not addresses:
        return found, []
    taken = any(found.get(one.address, one.address) in around.behind for one in targets if one.reached)
    if not (others and taken) and not any(one in others for one in addresses):
        if len(addresses) == 1:
            return found | {addresses[0]: around.behind[0]}, []
        if len({one.group for one in open_}) == 1:
            return found | {one: instances[place % len(instances)] for place, one in enumerate(addresses)}, []
    return found, [_ask(open_, others, around, role)]


def _mapped(
    targets: Sequence[Target], around: Surroundings, own_ports: Collection[int]
) -> tuple[dict[str, str], list[Target]]:
    """Return the address in the place of each target that the scenario maps, and the targets that are left."""
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
    return found, open_


def _ask(open_: Sequence[Target], others: Sequence[str], around: Surroundings, role: str) -> Fault:
    """Return what the scenario must say, with what the file names and what stands there."""
    places = {one.address: one.where for one in reversed(open_)}
    addresses = list(dict.fromkeys(one.address for one in open_))
    listed = ", ".join(f"{one} ({places[one]})" for one in addresses)
    here = f"; the scenario has {', '.join((around.behind[0], *others))}" if others else ""
    what = f"it proxies to several servers: {listed}; the path does not tell which of them {around.role} stands for"
    if others and (around.hosts or len(addresses) == 1):
        beside = "that hosts does not name" if around.hosts else "with the name of a service beside the path"
        what = f"it proxies to a server {beside}: {listed}" if len(addresses) == 1 else f"hosts does not name {listed}"
    said = [f"{_key(host)}: {address.rpartition(':')[0]}" for host, address in around.hosts.items()]
    said += [f'"{one}": {_likely(one, others) or around.role}' for one in addresses]
    hint = f"say it in the scenario: {role}: {{config: …, hosts: {{{', '.join(said)}}}}}"
    return Fault(what + here, open_[0].where, hint)


def _key(host: str) -> str:
    return host if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", host) else f'"{host}"'


def _likely(address: str, others: Sequence[str]) -> str | None:
    """Return the service beside the path that has the name, or else the port, of a server of the file."""
    host, port = split_address(address)
    alike = [one for one in others if one.rpartition(":")[0] == host] or [
        one for one in others if one.rpartition(":")[2] == port
    ]
    return alike[0].rpartition(":")[0] if len(alike) == 1 else None


def _names(targets: Sequence[Target]) -> list[str]:
    """Return the names by which `hosts` may name these."""
    named = [name for one in targets for name in (one.address, split_address(one.address)[0], one.group)]
    return list(dict.fromkeys(name for name in named if " " not in name))


def _unknown_hosts(targets: Sequence[Target], around: Surroundings) -> list[str]:
    known = {name for one in targets for name in (one.address, split_address(one.address)[0], one.group)}
    return [host for host in around.hosts if host not in known]


def _misspelt(open_: Sequence[Target], unknown: Sequence[str]) -> Iterator[Fault]:
    """Yield the words of `hosts` that name nothing in the file, where one that is left may be meant."""
    for host in unknown:
        meant = nearest(host, _names(open_))
        if meant:
            where = next(one.where for one in open_ if meant in _names([one]))
            yield Fault(f"hosts names '{host}', and the file has '{meant}'", where, f"did you mean '{meant}'?")


def unknown_hosts(targets: Sequence[Target], around: Surroundings) -> list[Change]:
    """Return a line for each word of `hosts` that names nothing in the file."""
    return [Change(f"hosts: {host} names no server of the file") for host in _unknown_hosts(targets, around)]
