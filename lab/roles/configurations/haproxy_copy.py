"""The copy of a user's HAProxy configuration that runs: what the lab changes in it, and what cannot run at all."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.roles.configurations.parsed import Adaptation, Change, Entry, Fault, Surroundings, WantedEntry
from lab.roles.configurations.sections import Line, Section, names_led_to, read_sections
from lab.roles.configurations.targets import (
    Target,
    is_loopback,
    made_certificate,
    match_targets,
    split_address,
    unknown_hosts,
)

_UNPRIVILEGED = "it runs as an unprivileged user"
# In `global`.
_OF_PROCESS = {
    "chroot": _UNPRIVILEGED,
    "user": _UNPRIVILEGED,
    "group": _UNPRIVILEGED,
    "uid": _UNPRIVILEGED,
    "gid": _UNPRIVILEGED,
    "daemon": "it stays in the foreground",
    "master-worker": "it stays one process",
    "nbproc": "it stays one process",
    "pidfile": "nobody reads it",
    "stats socket": "nobody asks there",
    "external-check": "a check's program is not here",
    "default-path": "relative paths begin at /etc/haproxy",
    "zero-warning": "the lab's own lines may earn a warning",
}
# Words of a server line, each with the words that follow it.
_OF_NAMES = {"resolvers": 1, "init-addr": 1}
_OF_CHECKS = {"port": 1, "addr": 1}
# Checks of a program that speaks another protocol than HTTP.
_OTHER_CHECKS = ("redis-check", "mysql-check", "pgsql-check", "smtpchk", "ldap-check", "ssl-hello-chk", "spop-check")
_OF_TLS = {
    **dict.fromkeys(
        ("verify", "ca-file", "crl-file", "crt", "sni", "alpn", "check-sni", "check-alpn", "verifyhost"), 1
    ),
    **dict.fromkeys(("ciphers", "ciphersuites", "ssl-min-ver", "ssl-max-ver"), 1),
    **dict.fromkeys(("ssl", "check-ssl", "no-check-ssl"), 0),
}
_TLS_TO_SERVERS = {"ssl", "check-ssl"}
_OF_PROXY_PROTOCOL = dict.fromkeys(("send-proxy", "send-proxy-v2", "check-send-proxy", "send-proxy-v2-ssl"), 0)
_SERVERS = ("server", "server-template", "default-server")
_HAS_STDOUT = ("stdout", "stderr", "global")
_TOKEN = re.compile(r"""(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s#"'\\])+""")
_LAB_PORT, _PLAIN_PORT = 8080, 80
_EVERY_IPV6 = ("::", "[::]")
# Prefixes of an address that plain TCP comes to; a listener of Multipath TCP takes it, too.
_OF_TCP = re.compile(r"^(?:ip(?:v[46])?|(?:mp)?tcp[46]?)@")


@dataclass(frozen=True)
class _Bind:
    """An address of a bind line."""

    section: Section
    line: Line
    host: str
    port: int

    @property
    def tls(self) -> bool:
        return "ssl" in self.line.words

    @property
    def reachable(self) -> bool:
        return "@" not in self.host and not self.host.startswith("/") and not is_loopback(self.host)

    @property
    def ipv6(self) -> bool:
        return ":" in self.host

    def __str__(self) -> str:
        address = f"{self.host}:{self.port}" if self.host else str(self.port)
        return f"{address}{' with TLS' if self.tls else ''} ({self.line.where})"


def _binds(sections: Sequence[Section]) -> list[_Bind]:
    found = []
    for section in sections:
        for line in section.all("bind") if section.kind in ("frontend", "listen") else ():
            for address in line.words[1].split(",") if len(line.words) > 1 else ():
                prefix = _OF_TCP.match(address)
                host, port = split_address(_OF_TCP.sub("", address))
                if prefix and "6" in prefix[0] and host in ("", "*"):
                    host = "::"
                first = re.match(r"[0-9]+", port)
                found.append(_Bind(section, line, host, int(first[0]) if first else 0))
    return found


def find_entry(sections: Sequence[Section], wanted: WantedEntry) -> tuple[Entry | None, Section | None]:
    """Return where the load enters, and the section there.

    A section that leads to servers goes before another, HTTP before TCP, plain HTTP before TLS unless it redirects
    there, then the lab's own port, and the first in the file.
    """
    every = [one for one in _binds(sections) if one.port and wanted.takes(one.port, tls=one.tls, ipv6=one.ipv6)]
    # What stands behind a program of the same machine takes the load itself here.
    found = [one for one in every if one.reachable] or [one for one in every if is_loopback(one.host)]
    if not found:
        return None, None
    best = max(
        found,
        key=lambda one: (
            _leads_on(one.section),
            _is_http(one.section),
            one.tls or not _redirects_to_tls(one.section),
            not one.tls,
            one.port in (_LAB_PORT, _PLAIN_PORT),
            one.port == _LAB_PORT,
            not one.ipv6,
        ),
    )
    # On Linux, [::] takes clients of both families.
    alone = best.host not in _EVERY_IPV6 or "v6only" in best.line.words
    ipv6 = best.ipv6 and alone and wanted.family != "ipv4"
    return Entry(best.port, best.tls, wanted.host, best.line.where, _is_http(best.section), ipv6), best.section


def _redirects_to_tls(section: Section) -> bool:
    lines = (*section.all("redirect"), *section.all("http-request", "redirect"))
    return any(line.after("scheme") == "https" for line in lines)


def _leads_on(section: Section) -> bool:
    lines = (*section.all("server"), *section.all("server-template"), *section.all("use_backend"))
    return bool(lines) or section.last("default_backend") is not None


def _is_http(section: Section) -> bool:
    mode = section.last("mode")
    return mode is not None and mode.words[1:2] == ["http"]


class HaproxyCopy:
    """Makes the copy."""

    def __init__(self, text: str, file: str, around: Surroundings, exists: Callable[[str], bool]) -> None:
        self._lines = text.splitlines()
        self._file, self._around, self._exists = file, around, exists
        self._sections = list(read_sections(self._lines, file.rpartition("/")[2]))
        self._changes: list[Change] = []
        self._faults: list[Fault] = []
        self._certificates: dict[str, tuple[str, ...]] = {}
        self._touched = False

    def make(self) -> Adaptation:
        """Return how the configuration becomes the copy that runs."""
        entry, section = find_entry(self._sections, self._around.wanted)
        if entry is None or section is None:
            return Adaptation(None, faults=[self._nowhere()])
        if not _is_http(section):
            mode = section.last("mode")
            what = f"{section.kind} {section.name} is in mode tcp: the lab follows its connections, and no requests"
            self._changes.append(Change(what, (mode or section.head).where))
        self._of_process()
        self._listening(entry)
        self._logging()
        if self._around.page is not None:
            self._checks(self._around.page)
        self._proxying(section, entry.port)
        files = {self._file: "\n".join(self._lines) + "\n"} if self._touched else {}
        return Adaptation(entry, files, self._changes, self._faults, self._certificates)

    def _nowhere(self) -> Fault:
        binds = [one for section in self._sections for one in section.all("bind")]
        first = next((one.where for one in (*binds, *(one.head for one in self._sections))), None)
        wanted = self._around.wanted
        if wanted.port is not None or wanted.family == "ipv6":
            named = ", ".join(
                map(str, sorted((one for one in _binds(self._sections) if one.port), key=lambda one: one.port))
            )
            hint = f"it listens on {named}: name one of these" if named else "write bind :80 in a frontend"
            return Fault(f"no frontend in it listens on {wanted}", first, hint)
        named = ", ".join(sorted({one.words[1] for one in binds if len(one.words) > 1}))
        if unset := re.search(r"\$\{?(\w+)", named):
            hint = f"say it in the scenario: haproxy: {{config: …, environment: {{{unset[1]}: …}}}}"
            return Fault(f"bind {named} has a variable without a value", first, hint)
        what = f"it listens on {named} alone, where no client of another machine comes"
        return Fault(what if named else "no frontend in it has a bind line", first, "write bind :80")

    def _leave_out(self, line: Line, why: str) -> None:
        self._set(line, f"# left out: {self._lines[line.where.line - 1].strip()}")
        self._changes.append(Change(f"left out: {' '.join(line.words)}; {why}", line.where))

    def _set(self, line: Line, text: str) -> None:
        self._lines[line.where.line - 1] = text
        self._touched = True

    def _edit(self, line: Line, new: Mapping[int, str | None], why: str) -> None:
        """Write some words of a line anew, by their places from 0; None leaves one out."""
        text = self._lines[line.where.line - 1]
        spans = [match.span() for match in _TOKEN.finditer(text)]
        for place in sorted(new, reverse=True):
            start, end = spans[place]
            value = new[place]
            text = text[:start].rstrip() + text[end:] if value is None else text[:start] + value + text[end:]
        self._set(line, text)
        for place, word in new.items():
            line.words[place] = "" if word is None else word
        self._changes.append(Change(f"{' '.join(filter(None, line.words))}: {why}", line.where))
        line.words[:] = [word for word in line.words if word]

    def _of_process(self) -> None:
        for section in self._sections:
            for line in section.lines:
                first = " ".join(line.words[:2])
                if section.kind == "global":
                    why = _OF_PROCESS.get(line.words[0]) or _OF_PROCESS.get(first)
                    if why:
                        self._leave_out(line, why)
                        continue
                elif first == "option external-check" or line.words[0] == "external-check":
                    self._leave_out(line, _OF_PROCESS["external-check"])
                if line.words[0] == "log" and len(line.words) > 1:
                    target = line.words[1]
                    if target not in _HAS_STDOUT and not target.startswith(("ring@", "fd@", "sample")):
                        self._leave_out(line, "there is no syslog here")

    def _listening(self, entry: Entry) -> None:
        binds = _binds(self._sections)
        inner = entry.port if not any(one.reachable for one in binds) else None
        plain = {(id(one.section), one.port) for one in binds if one.reachable and not one.ipv6}
        lines = {id(one.line): one.line for one in binds}
        for line in lines.values():
            here = [one for one in binds if one.line is line]
            if all("quic" in one.host for one in here):
                self._leave_out(line, "no load here speaks HTTP/3")
            elif not any(one.reachable or is_loopback(one.host) for one in here):
                self._leave_out(line, "no client of another machine comes there")
            elif all(self._is_needless(one, plain) for one in here):
                self._leave_out(line, "the container has no such address, and the section listens there too")
            else:
                self._set_bind(line, here, inner, plain)

    def _is_needless(self, bind: _Bind, plain: Collection[tuple[int, int]]) -> bool:
        """Return whether clients come over IPv4 in place of an IPv6 address that the container lacks."""
        if self._around.ipv6 and (bind.host in _EVERY_IPV6 or self._around.wanted.family == "ipv6"):
            return False
        return bind.ipv6 and (id(bind.section), bind.port) in plain

    def _set_bind(
        self, line: Line, binds: Sequence[_Bind], inner: int | None, plain: Collection[tuple[int, int]]
    ) -> None:
        new = dict[int, str | None]()
        addresses, why = self._addresses(line, binds, inner, plain)
        if ",".join(addresses) != line.words[1]:
            new[1] = ",".join(dict.fromkeys(addresses))
        six = any(":" in split_address(one)[0] or "6@" in one for one in addresses)
        words = line.words
        left = {"accept-proxy": 0, **({} if six else {"v4v6": 0, "v6only": 0})}
        if "accept-proxy" in words:
            why.append("clients here send no PROXY line")
        if "ca-file" in words and not self._exists(words[words.index("ca-file") + 1]):
            left |= {"ca-file": 1, "crl-file": 1, "verify": 1}
            why.append("its ca-file is not here, and clients have no certificate")
        new |= _places(words, left)
        for place in range(1, len(words) - 1):
            path = words[place + 1]
            if words[place] == "crt" and not self._exists(self._based(path)):
                made = made_certificate(path)
                self._certificates[made] = ()
                new[place + 1] = made
                why.append(f"the certificate {path} is not here, and is made for this run")
        if new:
            self._edit(line, new, "; ".join(why) or "it is an IPv4 socket")

    def _addresses(
        self, line: Line, binds: Sequence[_Bind], inner: int | None, plain: Collection[tuple[int, int]]
    ) -> tuple[list[str], list[str]]:
        """Return a line's addresses as the container can have them, and why they differ from the user's."""
        found, why = line.words[1].split(","), []
        for place, one in enumerate(binds):
            if found[place].startswith("mptcp"):
                found[place] = re.sub(r"^mptcp@", "", re.sub(r"^mptcp(?=[46])", "ipv", found[place]))
                why.append("clients here speak TCP, not Multipath TCP")
            port, opened = split_address(found[place])[1], one.reachable or one.port == inner
            beside = "v4v6" in line.words or (id(one.section), one.port) in plain
            if one.ipv6 and self._around.ipv6 and (self._around.wanted.family != "ipv4" or beside):
                if one.host not in _EVERY_IPV6 and opened:
                    found[place] = f"[::]:{port}"
                    why.append("the container has an IPv6 address of its own")
            elif one.host not in ("", "*", "0.0.0.0") and one.reachable:  # noqa: S104 # no address that the lab binds
                found[place] = f"*:{port}"
                why.append("the container has an IPv4 address of its own")
            elif is_loopback(one.host) and opened:
                found[place] = f"*:{inner}"
                why.append("the load comes from another machine")
        return found, list(dict.fromkeys(why))

    def _based(self, path: str) -> str:
        bases = [one.words[1] for part in self._sections for one in part.all("crt-base") if len(one.words) > 1]
        return f"{bases[-1]}/{path}" if bases and not path.startswith("/") else path

    def _logging(self) -> None:
        for section in self._sections:
            for one in (*section.all("http-request"), *section.all("http-response")):
                if one.words[1:2] == ["set-log-level"]:
                    self._leave_out(one, "the lab logs each request")

    def _checks(self, page: str) -> None:
        """Let health checks ask the lab's own role for what it has."""
        role, answers = self._around.role, f"{self._around.role} answers there"
        for line in (one for part in self._sections for one in part.lines):
            words = line.words
            if words[:2] == ["option", "httpchk"]:
                _, _, *asked = words
                if not asked:
                    self._set(line, f"{self._lines[line.where.line - 1].rstrip()} GET {page}")
                    self._changes.append(Change(f"option httpchk GET {page}: {answers}", line.where))
                else:
                    # Without a method, the one word is the page.
                    new: dict[int, str | None] = {2: page}
                    if asked != asked[:1]:
                        new = {2: asked[0] if asked[0] in ("GET", "HEAD") else "GET", 3: page}
                    self._edit(line, new, answers)
            elif words[:2] == ["http-check", "send"] and "uri" in words[:-1]:
                self._edit(line, {words.index("uri") + 1: page}, answers)
            elif words[:2] == ["http-check", "expect"] and words[2:] != ["status", "200"]:
                self._leave_out(line, f"{role} answers 200, with another text")
            elif words[0] == "tcp-check" or (words[0] == "option" and words[1:2] and words[1] in _OTHER_CHECKS):
                self._leave_out(line, f"{role} speaks HTTP; checks connect")

    def _proxying(self, section: Section, port: int) -> None:
        own_ports = {one.port for one in _binds(self._sections)}
        lines = [
            (part, one)
            for part in self._sections
            for one in part.lines
            if part.kind in ("backend", "listen", "defaults") and one.words[0] in _SERVERS
        ]
        reached = [one.where for one in _servers_of(section, self._sections)]
        targets = [
            Target(address, part.name, line.where, line.where in reached)
            for part, line in lines
            if (address := _address(line, port)) is not None
        ]
        found, faults = match_targets(targets, self._around, own_ports, "haproxy")
        self._faults += faults
        self._changes += unknown_hosts(targets, self._around)
        for _, line in lines:
            self._set_server(line, found.get(_address(line, port) or ""))
        chosen = section.last("default_backend")
        # HAProxy itself says that there is no such backend.
        missing = chosen is not None and all(one.name != chosen.words[-1] for one in self._sections)
        if self._around.behind and not missing and not any(_servers_of(section, self._sections)):
            what = f"{section.kind} {section.name} leads to no server line"
            hint = f"write default_backend, and in that backend: server one {self._around.behind[-1]}"
            hint += "; or end the path at haproxy"
            self._faults.append(Fault(what, section.head.where, hint))

    def _set_server(self, line: Line, address: str | None) -> None:
        new, why = dict[int, str | None](), []
        words = line.words
        if address is not None:
            new[_PLACES[words[0]]] = address
            why.append(f"in place of {words[_PLACES[words[0]]]}")
            new |= _places(words, _OF_NAMES)
        if address is not None or words[0] == "default-server":
            checks = _places(words, _OF_CHECKS)
            if checks:
                why.append("checks come to the server's own port")
            new |= checks
        if (
            self._around.role
            and not self._around.tls
            and _TLS_TO_SERVERS & set(words)
            and (found := _places(words, _OF_TLS))
        ):
            new |= found
            why.append(f"{self._around.role} takes plain HTTP")
        if self._around.role and not self._around.own_service and (found := _places(words, _OF_PROXY_PROTOCOL)):
            new |= found
            why.append(f"{self._around.role} knows no PROXY line")
        if new:
            self._edit(line, new, "; ".join(why))


_PLACES = {"server": 2, "server-template": 3}


def _address(line: Line, port: int) -> str | None:
    place = _PLACES.get(line.words[0])
    if place is None or len(line.words) <= place:
        return None
    written = re.sub(r"^unix@(?=/)", "unix:", _OF_TCP.sub("", line.words[place]))
    if written.startswith("/"):
        return f"unix:{written}"
    host, given = split_address(written)
    if not given and is_loopback(host):
        # At the port that the client came to, it would be this very program.
        return host
    return written if given.isdecimal() or written.startswith("unix:") else f"{host.rstrip(':')}:{port}"


def _places(words: Sequence[str], left: Mapping[str, int]) -> dict[int, str | None]:
    """Return the places of words that are left out, with those that follow them."""
    found: dict[int, str | None] = {}
    place = 1
    while place < len(words):
        count = left.get(words[place])
        if count is not None and place > 1:
            found |= dict.fromkeys(range(place, min(place + count, len(words) - 1) + 1))
            place += count
        place += 1
    return found


def _servers_of(section: Section, sections: Sequence[Section]) -> Iterator[Line]:
    """Yield the server lines that a section's traffic may come to."""
    named, any_of_them = names_led_to([section])
    for one in sections:
        if one is section or (one.kind in ("backend", "listen") and (any_of_them or one.name in named)):
            yield from one.all("server")
            yield from one.all("server-template")
