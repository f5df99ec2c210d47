"""A subnet for a run's network that is free on this machine, where a run needs to know its addresses beforehand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path

from lab.engines.compose.docker import docker
from lab.errors import LabError

_ROUTES = Path("/proc/net/route")
# Set aside for measurements of networks (RFC 2544): nobody's hosts live there.
_RANGE = IPv4Network("198.18.0.0/15")
_PREFIX = 24
FIRST_SUBNET = next(_RANGE.subnets(new_prefix=_PREFIX))


def find_free_subnet() -> IPv4Network:
    """Give a subnet of 254 hosts that overlaps no route of this host and no network of the engine's.

    Raises:
        LabError: there is none, or no engine answers.
    """
    taken = [*_routes(), *_networks()]
    for subnet in _RANGE.subnets(new_prefix=_PREFIX):
        if not any(subnet.overlaps(other) for other in taken):
            return subnet
    raise LabError(
        f"no subnet of {_RANGE} is free for the run's network",
        way_on="remove networks that are not needed: 'docker network prune'",
    )


def _routes() -> Iterator[IPv4Network]:
    """Give the destinations of the host's routes but the default one; the kernel prints little-endian words."""
    if not _ROUTES.is_file():
        return
    for line in _ROUTES.read_text().splitlines()[1:]:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[index]), "little") for index in (1, 7))
        if mask:
            yield IPv4Network((destination & mask, mask.bit_count()))


def _networks() -> Iterator[IPv4Network]:
    names = docker("network", "ls", "--quiet").split()
    if not names:
        return
    for line in docker("network", "inspect", "--format", "{{json .IPAM.Config}}", *names).splitlines():
        for one in json.loads(line) or []:
            if ":" not in one.get("Subnet", ":"):
                yield IPv4Network(one["Subnet"])
