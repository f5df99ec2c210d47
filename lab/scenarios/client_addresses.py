"""The addresses by which clients come where the engine's own do not do: over IPv6, or to an address in `load.url`.

The collector of an instance adds them to its interface, in a subnet that nothing outside of the run's network knows.
Only the clients know them by name, so what stands behind the first server is reached as ever.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_network

from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

# Of an unspecified site (RFC 4193); a run's network is its own.
_SUBNET = IPv6Network("fd43:6f6e:6e6c::/64")
_BITS = {4: 24, 6: 64}
# From here on in the subnet.
_FIRST = 16
ENABLED = {"net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.default.disable_ipv6": "0"}

Interface = IPv4Interface | IPv6Interface


@dataclass(frozen=True)
class ClientAddresses:
    """What instances get.

    Attributes:
        of_instances: an address with its prefix, by instance.
        hosts: the addresses of each name, for the clients.
    """

    of_instances: dict[str, list[Interface]] = field(default_factory=dict)
    hosts: dict[str, list[str]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return the names with their addresses, as Compose has them in `extra_hosts`."""
        return [f"{name}={address}" for name, addresses in self.hosts.items() for address in addresses]


def client_addresses(resolved: ResolvedScenario, topology: Topology) -> ClientAddresses:
    """Return the addresses that clients and first servers get; none over the engine's own IPv4."""
    found = ClientAddresses()
    literal = topology.url.address if topology.url else None
    if literal is None and resolved.ip_family != "ipv6":
        return found
    subnet = _SUBNET if literal is None else ip_network((literal, _BITS[literal.version]), strict=False)
    free = _free(subnet, str(literal))
    for instance in topology.instances[topology.first]:
        own = str(literal) if literal is not None else next(free)
        found.of_instances[instance] = [_interface(own, subnet)]
        for name in topology.host_names(instance):
            found.hosts.setdefault(name, []).append(own)
        if second := topology.second_names.get(instance):
            other = next(free)
            found.of_instances[instance].append(_interface(other, subnet))
            found.hosts[second] = [other]
    for client in topology.clients:
        found.of_instances[client] = [_interface(next(free), subnet)]
    return found


def _free(subnet: IPv4Network | IPv6Network, taken: str) -> Iterator[str]:
    return (one for place in range(_FIRST, _FIRST + 200) if (one := str(subnet[place])) != taken)


def _interface(address: str, subnet: IPv4Network | IPv6Network) -> Interface:
    written = f"{address}/{subnet.prefixlen}"
    return IPv6Interface(written) if ":" in address else IPv4Interface(written)
