"""Where a scenario lets its load go: `load.url`, and the family of the clients' addresses, `load.ip_family`."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal
from urllib.parse import urlsplit

from formats import knob_types

# These write to their connections themselves.
PLAIN_WORKLOADS = ("tcp", "slow_clients", "half_open")
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*", re.IGNORECASE)
_IPV6 = 6
_FORM = "write it as https://shop.example/ or http://shop.example:8080/cart"


@dataclass(frozen=True)
class LoadUrl:
    """A URL in its parts.

    Attributes:
        host: as clients ask for it; an IPv6 address without brackets.
        port: that of the scheme, if the URL has none.
        path: without a slash at the end; empty for the root.
    """

    written: str
    tls: bool
    host: str
    port: int
    path: str

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """Return the host if it is an address."""
        return parse_address(self.host)

    @property
    def family(self) -> Literal["ipv4", "ipv6"] | None:
        """Return the family of the address that the host is; None for a name."""
        return None if self.address is None else "ipv6" if self.address.version == _IPV6 else "ipv4"

    @property
    def origin(self) -> str:
        """Return the URL without its path, with a port only where it is not the scheme's: so clients send `Host`."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{self.quoted_host}" + ("" if self.port == _PORTS[scheme] else f":{self.port}")

    @property
    def quoted_host(self) -> str:
        """Return the host as it stands before a port."""
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a text is; None for another one, such as a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def parse_url(text: str) -> LoadUrl:
    """Return a URL in its parts.

    Raises:
        PydanticCustomError: no load can go there.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise knob_types.refusal(f"'{text}' is not a URL; {_FORM}") from None
    if parts.scheme not in _PORTS:
        raise knob_types.refusal(f"'{text}' begins with neither http:// nor https://; {_FORM}")
    found = LoadUrl(text, parts.scheme == "https", host, port or _PORTS[parts.scheme], parts.path.rstrip("/"))
    if parts.query or parts.fragment or parts.username is not None or re.search(r"\s", text) or port == 0:
        raise knob_types.refusal(f"'{text}' has more than scheme, host, port and path; {_FORM}")
    if found.address is None and not _HOST.fullmatch(host):
        raise knob_types.refusal(f"'{text}' has no host that a name server could know; {_FORM}")
    if (found.address and found.address.is_loopback) or host == "localhost":
        raise knob_types.refusal(f"'{text}' is the client's own machine; name the host that users ask for")
    return found


def check_url(text: str) -> str:
    """Return a URL that a load can go to."""
    parse_url(text)
    return text
