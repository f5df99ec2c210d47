"""The copy of a user's nginx configuration that runs: what the lab changes in it, and what cannot run at all."""

import contextlib
import difflib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from lab.roles.configurations.directives import Block, Copies, Tree, server_names
from lab.roles.configurations.parsed import Adaptation, Change, Entry, Fault, Surroundings, WantedEntry
from lab.roles.configurations.targets import (
    Target,
    is_loopback,
    made_certificate,
    match_targets,
    split_address,
    unknown_hosts,
)

ACCESS_LOG = "access_log /raw/access.jsonl connlab buffer=64k flush=1s;"
ERROR_LOG = "error_log /raw/error.log notice;"
# nginx takes each of these as an unprivileged user without effect, or not at all.
_OF_PROCESS = {
    "user": "it runs as an unprivileged user",
    "daemon": "it stays in the foreground",
    "master_process": "the lab watches master and workers",
}
_PASSES = ("proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass")
_LOGS, _SYSLOG = ("access_log", "error_log"), "syslog:"
_STORES = ("proxy_cache_path", "fastcgi_cache_path", "uwsgi_cache_path", "scgi_cache_path")
_TEMPORARY = ("client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path", "uwsgi_temp_path", "scgi_temp_path")
# Files of TLS that improve it, and that it works without.
_OPTIONAL_FILES = ("ssl_dhparam", "ssl_trusted_certificate", "ssl_session_ticket_key", "ssl_stapling_file")
_CLIENT_CERTIFICATES = ("ssl_client_certificate", "ssl_verify_client", "ssl_crl", "ssl_verify_depth")
# What a machine with Let's Encrypt's client has, beside certificates.
_CERTBOT = "/etc/letsencrypt/"
_EXACT = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_WITHOUT_SERVER = "write server { listen 80; location / { proxy_pass http://…; } } in http { }"
# Where the image has pages of its own.
_OF_IMAGE = ("/usr/share/nginx/", "/var/www/html")
_LAB_PORT, _PLAIN_PORT = 8080, 80


# For servers that name no certificate.
_MADE = made_certificate("any")
# How much alike a name of a host and that of an upstream are where one letter differs.
_NEARLY = 0.8


@dataclass(frozen=True, eq=False)
class _Listen:
    """A listening socket of a server; without a block where no line says it."""

    server: Block
    block: Block | None
    host: str
    port: int

    def has(self, option: str) -> bool:
        return self.block is not None and option in self.block.arguments[1:]

    @property
    def tls(self) -> bool:
        return self.has("ssl") or any(one.arguments == ("on",) for one in self.server.all("ssl"))


def _listens(server: Block) -> list[_Listen]:
    blocks = server.all("listen")
    if not blocks:
        return [_Listen(server, None, "", _PLAIN_PORT)]
    found = []
    for block in blocks:
        address = block.arguments[0] if block.arguments else ""
        host, port = split_address(address)
        if address.isdecimal():
            host, port = "", address
        found.append(_Listen(server, block, host, int(port) if port.isdecimal() else _PLAIN_PORT))
    return found


def _is_socket_file(listen: _Listen) -> bool:
    return listen.host.startswith("unix:")


def _is_ipv6(listen: _Listen) -> bool:
    return listen.host.startswith("[")


def _described(listen: _Listen) -> str:
    where = f" ({listen.block.where})" if listen.block else ""
    address = f"{listen.host}:{listen.port}" if listen.host else str(listen.port)
    return f"{address}{' with TLS' if listen.tls else ''}{where}"


def _reachable(listen: _Listen) -> bool:
    return not (_is_socket_file(listen) or is_loopback(listen.host) or listen.has("quic"))


def _on_loopback(listen: _Listen) -> bool:
    return is_loopback(listen.host) and not listen.has("quic")


# A variable after the port is a part of the path, and so is one of these after the host.
_URL = re.compile(
    r"(?:(?P<scheme>[a-z]+)://)?(?P<host>unix:[^:]+|\[[^]]*\]|[^:/$]*)(?::(?P<port>[0-9]*))?(?P<rest>(?:[:/$].*)?)"
)
_PATHS = re.compile(r"\$\{?(request_)?uri\b")
_VARIABLE = re.compile(r"((?:[a-z]+://)?[^/?$]*)\$(?:\{(\w+)\}|(\w+))")
# nginx's own variables have small letters; these are of an environment.
_OF_ENVIRONMENT = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*)\b)")


def _depends(url: re.Match[str]) -> bool:
    """Return whether a request decides which server a URL names."""
    variable = url["rest"].startswith("$") and not (url["port"] or _PATHS.match(url["rest"]))
    return not url["host"] or variable or url["rest"].startswith(":$")


def find_entry(tree: Tree, wanted: WantedEntry) -> tuple[Entry | None, Block | None]:
    """Return where the load enters, and the server there.

    A server that leads on goes before one that answers itself, and both before one that only redirects or refuses;
    then plain HTTP before TLS, the lab's own port, and the first in the file. A name leads where nginx lets it.
    """
    servers = [one for http in tree.root.all("http") for one in http.all("server")]
    listens = [one for server in servers for one in _listens(server)]
    every = [one for one in listens if wanted.takes(one.port, tls=one.tls, ipv6=_is_ipv6(one))]
    # What stands behind a program of the same machine takes the load itself here.
    found = list(filter(_reachable, every)) or list(filter(_on_loopback, every))
    if not found:
        return None, None
    if wanted.host is not None:
        asked = _asked(found, wanted.host)
        found = [one for one in found if one.server is asked]
    best = max(
        found,
        key=lambda one: (
            *(_use(one.server), not one.tls, one.port in (_LAB_PORT, _PLAIN_PORT), one.port == _LAB_PORT),
            not _is_ipv6(one),
        ),
    )
    host = wanted.host
    if host is None and best.server is not _default(found, best.port):
        host = next(filter(None, map(_name, server_names(best.server))), None)
    place = best.block or best.server
    ipv6 = _is_ipv6(best) and wanted.family != "ipv4" and not best.has("ipv6only=off")
    return Entry(best.port, best.tls, host, place.where, ipv6=ipv6), best.server


def _asked(listens: Sequence[_Listen], host: str) -> Block:
    """Return the server that gets requests for a name: by its name, by the longest pattern, else the default one."""

    def rank(name: str) -> tuple[int, int]:
        plain = name.lower()
        if plain == host or (plain.startswith(".") and host == plain[1:]):
            return 4, 0
        if plain.startswith(("*.", ".")) and host.endswith(plain.lstrip("*")):
            return 3, len(plain)
        if plain.endswith(".*") and host.startswith(plain[:-1]):
            return 2, len(plain)
        return (1, 0) if plain.startswith("~") and _matches(name[1:], host) else (0, 0)

    best = max(listens, key=lambda one: max(map(rank, server_names(one.server)), default=(0, 0)))
    named = any(rank(name)[0] for name in server_names(best.server))
    return best.server if named else _default(listens, best.port)


def _matches(pattern: str, host: str) -> bool:
    # PCRE knows what Python does not; such a pattern stands for no name here.
    with contextlib.suppress(re.error):
        return re.search(pattern.replace("(?<", "(?P<"), host, re.IGNORECASE) is not None
    return False


def _use(server: Block) -> int:
    if next(server.within(*_PASSES), None) is not None:
        return 2
    return 0 if server.all("return", "rewrite") else 1


def _default(listens: Sequence[_Listen], port: int) -> Block:
    """Return the server that gets requests for unknown names."""
    here = [one for one in listens if one.port == port]
    return next((one.server for one in here if one.has("default_server") or one.has("default")), here[0].server)


def _lacks_certificate(server: Block) -> bool:
    """Return whether nginx refuses a server because it has TLS and no certificate."""
    tls = any(one.tls for one in _listens(server))
    return tls and not server.all("ssl_certificate") and not server.all("ssl_reject_handshake")


def _name(written: str) -> str | None:
    """Return a host name that a server's name stands for; None if the lab cannot give a machine that name."""
    name = re.sub(r"^\*?\.", lambda mark: "www." if mark[0] == "*." else "", written.lower())
    return name if _EXACT.fullmatch(name) and name not in ("localhost", "_") and not is_loopback(name) else None


def _unset(text: str) -> list[str]:
    """Return the variables of an environment that are left in a text."""
    return [one[1] or one[2] for one in _OF_ENVIRONMENT.finditer(text)]


def _without_value(block: Block, names: Sequence[str]) -> Fault:
    values = ", ".join(f"{one}: …" for one in names)
    hint = f"say it in the scenario: nginx: {{config: …, environment: {{{values}}}}}"
    return Fault(f"{block.text} has a variable without a value", block.where, hint)


class NginxCopy:
    """Makes the copy."""

    def __init__(self, tree: Tree, around: Surroundings, exists: Callable[[str], bool]) -> None:
        self._tree, self._around, self._exists = tree, around, exists
        self._copies = Copies(tree.texts)
        self._changes: list[Change] = []
        self._faults: list[Fault] = []
        self._certificates: dict[str, dict[str, None]] = {}
        self._added: list[str] = []
        self._renamed: dict[str, str] = {}
        self._done: set[tuple[str, object, str]] = set()
        self._https = tree.root.all("http")
        self._servers = [one for http in self._https for one in http.all("server")]

    def make(self) -> Adaptation:
        """Return how the configuration becomes the copy that runs."""
        entry, server = find_entry(self._tree, self._around.wanted)
        if self._tree.unread:
            # nginx itself says it better; if it can read the file, the reader of what it read says it.
            return Adaptation(entry)
        if entry is None:
            # A server of http may stand in a file that is missing: nginx itself says which.
            missing = self._gone() and (self._https or not self._tree.root.all("stream"))
            # Where the file tells of listeners, those are what the scenario's port or URL is held against.
            if self._around.wanted.port is not None and any(one.all("listen") for one in self._servers):
                missing = False
            return Adaptation(None, faults=[] if missing else [self._nowhere()])
        self._of_process()
        self._listening(entry)
        self._logging()
        self._tls()
        self._proxying(server)
        self._files(server)
        return Adaptation(
            entry,
            self._copies.changed,
            self._changes,
            self._faults,
            {path: tuple(names) for path, names in self._certificates.items()},
            "\n".join(self._added),
        )

    def _gone(self) -> bool:
        """Return whether a file of the user's that another one includes is missing."""
        return any(PurePosixPath(one.arguments[0]).name not in _SHIPPED for one in self._tree.missing)

    def _nowhere(self) -> Fault:
        listens = [one for server in self._servers for one in server.all("listen")]
        first = next((one.where for one in (*listens, *self._servers, *self._https)), None)
        if not self._https and (stream := self._tree.root.all("stream")):
            return Fault("it has stream { } alone, and the lab follows HTTP requests", stream[0].where, _WITHOUT_SERVER)
        wanted = self._around.wanted
        if wanted.port is not None or wanted.family == "ipv6":
            every = [one for server in self._servers for one in _listens(server) if not _is_socket_file(one)]
            they = ", ".join(dict.fromkeys(_described(one) for one in sorted(every, key=lambda one: one.port)))
            hint = f"it listens on {they}: name one of these" if they else _WITHOUT_SERVER
            return Fault(f"no server in it listens on {wanted}", first, hint)
        named = ", ".join(sorted({one.arguments[0] for one in listens if one.arguments}))
        what = f"it listens on {named} alone, where no client of another machine comes" if named else "it has no server"
        empty = [one for one in self._tree.empty if one.parent in self._https]
        if not named and empty:
            patterns = ", ".join(dict.fromkeys(one.arguments[0] for one in empty))
            what = f"it has no server, and no file is found for include {patterns}"
            return Fault(what, empty[0].where, "put these files where it looks for them, in its folder")
        return Fault(what, first, "write listen 80;" if named else _WITHOUT_SERVER)

    def _leave_out(self, block: Block, why: str) -> None:
        self._apply(block, self._copies.leave_out, f"left out: {block.text}; {why}")

    def _apply(self, block: Block, change: Callable[[Block], bool], what: str) -> None:
        """Change a directive once, wherever its file is included."""
        if not self._is_new(block, block.text):
            return
        if change(block):
            self._changes.append(Change(what, block.where))
        else:
            what = f"the lab must change {block.text}, and cannot find it there"
            self._faults.append(Fault(what, block.where, "write it on one line, without a comment in it"))

    def _is_new(self, block: Block, change: str) -> bool:
        """Return whether a change comes for the first time, and note it: a file may be included more than once."""
        key = (block.file, block.where, change)
        known = key in self._done
        self._done.add(key)
        return not known

    def _of_process(self) -> None:
        for name, why in _OF_PROCESS.items():
            for one in self._tree.root.all(name):
                self._leave_out(one, why)
        for one in self._tree.root.all("load_module"):
            if not (self._around.own_image or self._exists(one.arguments[0])):
                self._leave_out(one, "the image has no modules of separate packages")
        for one in self._tree.root.all("stream"):
            what = "left out: stream { }; the load comes by HTTP"
            self._apply(one, self._copies.leave_out_block, what)
        for one in self._tree.missing:
            if one.arguments[0].startswith(_CERTBOT):
                self._leave_out(one, "the file is not here")

    def _listening(self, entry: Entry) -> None:
        listens = [one for server in self._servers for one in _listens(server)]
        alone = not any(map(_reachable, listens))
        for server in self._servers:
            here = {one.port for one in _listens(server) if _reachable(one) and not _is_ipv6(one)}
            for one in _listens(server):
                if one.block is not None and (unset := _unset(" ".join(one.block.arguments))):
                    self._faults.append(_without_value(one.block, unset))
                elif one.block is None:
                    text = f"listen {_PLAIN_PORT};"
                    self._apply(server, partial(self._copies.append, text=text), f"added: {text}")
                elif _is_socket_file(one):
                    self._leave_out(one.block, "no client of another machine comes there")
                elif one.has("quic"):
                    self._leave_out(one.block, "no load here speaks HTTP/3")
                elif self._is_needless(one, here):
                    self._leave_out(one.block, "the container has no such address, and the server listens there too")
                else:
                    inner = alone and one.port == entry.port and _on_loopback(one)
                    self._set_listen(one, listens, stays=self._stays(one, here), opens=inner)

    def _is_needless(self, one: _Listen, here: Collection[int]) -> bool:
        """Return whether clients reach the server over IPv4 in place of an IPv6 address that the container lacks."""
        left = _is_ipv6(one) and not is_loopback(one.host) and not self._stays(one, here)
        if left and self._around.wanted.family == "ipv6" and self._around.ipv6:
            return any(each.host == "[::]" and each.port == one.port for each in _listens(one.server))
        return left and one.port in here

    def _stays(self, one: _Listen, here: Collection[int]) -> bool:
        """Return whether a socket of IPv6 can be as it is: beside one of IPv4, for both, or for clients over IPv6."""
        both = one.has("ipv6only=off") or one.port in here or self._around.wanted.family != "ipv4"
        return self._around.ipv6 and one.host == "[::]" and both

    def _set_listen(self, one: _Listen, listens: list[_Listen], *, stays: bool, opens: bool) -> None:
        block = one.block
        if block is None:
            return
        new: dict[int, str | None] = {
            place: None
            for place, word in enumerate(block.arguments)
            if place and (word == "proxy_protocol" or (_is_ipv6(one) and not stays and word.startswith("ipv6only=")))
        }
        why = ["clients here send no PROXY line"] if "proxy_protocol" in block.arguments else []
        everywhere = one.host in ("", "*", "0.0.0.0")  # noqa: S104 # no address that the lab binds
        six = _is_ipv6(one) and self._around.ipv6 and self._around.wanted.family != "ipv4"
        if opens:
            new[0] = f"[::]:{one.port}" if six else str(one.port)
            why.append("the load comes from another machine")
        elif six and one.host != "[::]" and not is_loopback(one.host):
            new[0] = f"[::]:{one.port}"
            why.append("the container has an IPv6 address of its own")
        elif not everywhere and not is_loopback(one.host) and not stays:
            taken = {each.port for each in listens if each.server is one.server and each.block is not block}
            if one.port in taken and not _is_ipv6(one):
                self._leave_out(block, "this address is not the container's, and the server listens on the port anyway")
                return
            new[0] = str(one.port)
            why.append("the container has an IPv4 address of its own")
        if new:
            written = " ".join(
                str(new.get(place, word))
                for place, word in enumerate(block.arguments)
                if new.get(place, word) is not None
            )
            what = f"{block.text} is listen {written}: {'; '.join(why)}"
            self._apply(block, lambda each: self._copies.set_arguments(each, new), what)

    def _logging(self) -> None:
        everything = [self._tree.root, *(one for http in self._https for one in (http, *http.within(*_BLOCKS)))]
        for level in everything:
            for one in level.all(*_LOGS, *_STORES, *_TEMPORARY, "pid"):
                self._place(one)
            if level is self._tree.root:
                continue
            in_http = level in self._https
            self._log_requests(level, in_http=in_http)
            written = [one for one in level.all("error_log") if not one.arguments[0].startswith(_SYSLOG)]
            errors = [] if in_http else written
            if errors:
                self._beside(errors[-1], ERROR_LOG, "errors")
            for one in level.all("limit_rate"):
                self._limit_rate(one, in_http=in_http)

    def _limit_rate(self, block: Block, *, in_http: bool) -> None:
        """Let the rate be a variable, which nginx evaluates when it knows whether it keeps the connection."""
        rate = block.arguments[0]
        if in_http:
            self._added.append(f"map $sent_http_connection $connlab_no_limit {{ default {rate}; }}")
            self._leave_out(block, "the lab's line has this rate")
            return
        name = f"$connlab_rate_{len(self._added) + 1}"
        self._added.append(f"map $sent_http_connection {name} {{ default {rate}; }}")
        what = f"limit_rate {rate} is a variable of this value, by which the log tells which connections are kept"
        self._apply(block, partial(self._copies.set_arguments, arguments={0: name}), what)

    def _log_requests(self, level: Block, *, in_http: bool) -> None:
        logs = level.all("access_log")
        off = [one for one in logs if one.arguments[:1] == ("off",)]
        for one in off:
            if in_http:
                self._leave_out(one, "the lab logs each request")
            else:
                self._apply(
                    one, lambda each: self._copies.replace(each, ACCESS_LOG), "access_log off: the lab logs here"
                )
        written = [one for one in logs if one not in off and not one.arguments[0].startswith(_SYSLOG)]
        if written and not off and not in_http:
            self._beside(written[-1], ACCESS_LOG, "requests")

    def _beside(self, block: Block, line: str, what: str) -> None:
        said = f"beside {block.text}: the lab's log of {what}"
        if not self._is_new(block, said):
            return
        if self._copies.append(block, line):
            self._changes.append(Change(said, block.where))
        else:
            self._faults.append(Fault(f"{block.name} here takes the place of the lab's", block.where, "leave it out"))

    def _place(self, block: Block) -> None:
        """Let a file that nginx writes lie where it may."""
        path = block.arguments[0] if block.arguments else ""
        if path == "off" or "$" in path or path == "stderr" or path.startswith("/dev/"):
            return
        if path.startswith(_SYSLOG):
            self._leave_out(block, "there is no syslog here")
            return
        whole = PurePosixPath("/usr/share/nginx") / path
        may = {"/tmp", *self._around.writable}  # noqa: S108 # in the container
        if str(whole.parent) in may or (str(whole) in may and block.name not in (*_LOGS, "pid")):
            return
        new = f"/tmp/{'-'.join(whole.parts[1:])}"  # noqa: S108 # in the container
        what = f"{block.name} {path} is {new}: the lab's container can write there"
        self._apply(block, lambda each: self._copies.set_arguments(each, {0: new}), what)

    def _tls(self) -> None:
        for level in [*self._https, *(one for http in self._https for one in http.within("server"))]:
            for one in level.all(*_OPTIONAL_FILES):
                if not self._exists(one.arguments[0]):
                    self._leave_out(one, "the file is not here, and TLS works without")
            if any(not self._exists(one.arguments[0]) for one in level.all("ssl_client_certificate")):
                for one in level.all(*_CLIENT_CERTIFICATES):
                    self._leave_out(one, "the file of ssl_client_certificate is not here, and clients have none")
            certificates, keys = level.all("ssl_certificate"), level.all("ssl_certificate_key")
            for one, key in zip(certificates, keys, strict=False):
                self._certify(level, one, key)
        without = [one for one in self._servers if one.parent in self._https and _lacks_certificate(one)]
        if without and not any(one.all("ssl_certificate") for one in self._https):
            self._added.append(f"ssl_certificate {_MADE};\nssl_certificate_key {_MADE}.key;")
            names = self._certificates.setdefault(_MADE, {})
            for one in without:
                names.update(dict.fromkeys(filter(None, map(_name, server_names(one)))))
                what = "made for this run: a certificate for this server, which has TLS and names none"
                self._changes.append(Change(what, one.where))

    def _certify(self, level: Block, certificate: Block, key: Block) -> None:
        """Let a certificate be made where one of its two files is not there."""
        path = certificate.arguments[0]
        if "$" in path or (self._exists(path) and self._exists(key.arguments[0])):
            return
        made = made_certificate(path)
        names = self._certificates.setdefault(made, {})
        servers = [level] if level.name == "server" else self._servers
        names.update(dict.fromkeys(name for one in servers for name in filter(None, map(_name, server_names(one)))))
        what = f"made for this run: the certificate {path} and its key, which are not here"
        self._apply(certificate, lambda each: self._copies.set_arguments(each, {0: made}), what)
        if self._is_new(key, key.text):
            self._copies.set_arguments(key, {0: f"{made}.key"})

    def _files(self, server: Block | None) -> None:
        """Say where the files are not here that nginx itself is to answer with, or to look for before it passes on."""
        if server is None:
            return
        if self._around.behind:
            for location in server.within("location"):
                roots = [one for level in (location, server, *self._https) for one in level.all("root")]
                if location.all(*_PASSES) and roots and self._is_gone(roots[0]):
                    for one in location.all("try_files"):
                        if one.arguments[-1].startswith("="):
                            self._leave_out(one, f"{roots[0].text} is not here; the server behind says what there is")
            return
        for one in server.within("root"):
            what = f"{one.text}: the folder is not here, and nginx answers 404 for what is in it"
            if self._is_gone(one) and not one.arguments[0].startswith(_OF_IMAGE) and self._is_new(one, what):
                self._changes.append(Change(what, one.where))

    def _is_gone(self, root: Block) -> bool:
        """Return whether the folder of a `root` is not here."""
        path = root.arguments[0]
        return path.startswith("/") and "$" not in path and not self._exists(path)

    def _proxying(self, server: Block | None) -> None:
        self._rename_upstreams()
        own_ports = {one.port for each in self._servers for one in _listens(each)}
        targets = [*self._of_upstreams(server), *self._of_passes(server)]
        found, faults = match_targets([one for one, _ in targets], self._around, own_ports, "nginx")
        groups = [one for http in self._https for group in http.all("upstream") for one in group.all("server")]
        unset = [_without_value(one, names) for one in groups if (names := _unset(one.text))]
        self._faults += (unset or faults) if faults else []
        self._changes += unknown_hosts([one for one, _ in targets], self._around)
        for target, change in targets:
            if target.address in found:
                change(found[target.address])
        leads_on = server is None or next(server.within(*_PASSES), None) is not None
        # A file that is missing may lead on: nginx itself says which.
        if server is not None and self._around.behind and not leads_on and not self._gone():
            what = "no location of the server that the load comes to leads on"
            hint = f"write location / {{ proxy_pass http://{self._around.behind[0]}; }}, or end the path at nginx"
            self._faults.append(Fault(what, server.where, hint))

    def _rename_upstreams(self) -> None:
        """Give upstreams names that may be a Host, where the lab's own server gets them as one."""
        if self._around.own_service or not self._around.behind:
            return
        groups = {one.arguments[0]: one for http in self._https for one in http.all("upstream")}
        for one in (each for http in self._https for each in http.within("proxy_pass")):
            name = re.sub(r"^[a-z]+://", "", one.arguments[0]).partition("/")[0]
            new = re.sub(r"[^A-Za-z0-9.-]", "-", name).strip("-")
            if name in groups and new not in (name, *groups, *self._renamed.values()) and not _says_host(one):
                self._renamed[name] = new
                rename = partial(self._copies.set_arguments, arguments={0: new})
                self._apply(
                    groups[name],
                    rename,
                    f"upstream {name} is {new}: nginx sends it as Host, and Tomcat takes none with _",
                )

    def _of_upstreams(self, server: Block | None) -> Iterator[tuple[Target, Callable[[str], None]]]:
        urls = [one.arguments[0] for one in server.within(*_PASSES)] if server else []
        # A variable may name any of them.
        named = {re.sub(r"^[a-z]+://", "", url).partition("/")[0] for url in urls}
        any_of_them = any("$" in one for one in named)
        for group in (one for http in self._https for one in http.all("upstream")):
            for one in group.all("server"):
                written = one.arguments[0]
                address = written if split_address(written)[1] or written.startswith("unix:") else f"{written}:80"
                reached = any_of_them or group.arguments[0] in named
                yield Target(address, group.arguments[0], one.where, reached), self._change_server(one)

    def _change_server(self, block: Block) -> Callable[[str], None]:
        left = {
            place: None
            for place, word in enumerate(block.arguments)
            if place and (word == "resolve" or word.startswith("service="))
        }
        if left:
            what = f"{block.text}: resolved once, since addresses do not change in a run"
            self._apply(block, partial(self._copies.set_arguments, arguments=left), what)

        def change(new: str) -> None:
            if self._is_new(block, f"to {block.text}"):
                self._copies.set_arguments(block, {0: new})
                self._changes.append(Change(f"server {block.arguments[0]} is {new}", block.where))

        return change

    def _of_passes(self, server: Block | None) -> Iterator[tuple[Target, Callable[[str], None]]]:
        here = list(server.within(*_PASSES)) if server else []
        groups = {one.arguments[0] for http in self._https for one in http.all("upstream")}
        for one in (each for http in self._https for each in http.within(*_PASSES)):
            if one.name in ("fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass") and not self._around.own_service:
                what = f"{one.name} speaks another protocol than HTTP"
                hint = f"put a service of your own that speaks it behind nginx, in place of {self._around.role}"
                self._faults.append(Fault(what, one.where, hint))
                continue
            url, substituted = self._without_variables(one.arguments[0])
            if self._names_groups(url, groups):
                continue
            match = _URL.fullmatch(url)
            if match is None or _depends(match):
                self._depending(one, url)
                continue
            host, port, scheme = match["host"], match["port"], match["scheme"]
            wanted = {"http": "https" if self._around.tls else "http", "https": "https" if self._around.tls else "http"}
            new_scheme = wanted.get(str(scheme), scheme)
            prefix = f"{new_scheme}://" if scheme else ""
            change = self._change_pass(one, prefix, match["rest"])
            if host in groups and port is None:
                if new_scheme != scheme or substituted or host in self._renamed:
                    change(self._renamed.get(host, host))
                continue
            default = "443" if scheme in ("https", "grpcs") else "80"
            address = host if host.startswith("unix:") else f"{host}:{port or default}"
            if substituted or (new_scheme != scheme and address in self._around.behind):
                change(address)
            if port is None:
                self._misspelt(one, host, groups)
            if not substituted or address not in self._around.behind:
                yield Target(address, f"{one.name} {url}", one.where, one in here), change

    def _depending(self, block: Block, url: str) -> None:
        """Say why a pass leads to no one place; where a server's answer decides it, nginx asks for it in the run."""
        if unset := _unset(url):
            self._faults.append(_without_value(block, unset))
            return
        variable = re.search(r"\$\{?(\w+)", url)
        values = self._values(variable[1]) or {variable[0]} if variable else set()
        if values and all("$upstream_" in one for one in values):
            what = f"{block.text} stays: a server's answer names the place; nginx answers 502 where it is not here"
            if self._is_new(block, what):
                self._changes.append(Change(what, block.where))
            return
        what = f"{block.text} depends on a request, and the lab follows requests to one place"
        hint = f"give the variable one value: by set, or by environment in the scenario; or write {self._next()}"
        self._faults.append(Fault(what, block.where, hint))

    def _misspelt(self, block: Block, host: str, groups: Collection[str]) -> None:
        """Say that a host is nearly an upstream's name: nginx would ask for its address."""
        near = difflib.get_close_matches(host, groups, n=1, cutoff=_NEARLY)
        if near and "." not in host:
            what = f"{host} in {block.text} is no upstream of the file; did you mean '{near[0]}'?"
            if self._is_new(block, what):
                self._changes.append(Change(what, block.where))

    def _next(self) -> str:
        return f"http://{self._around.behind[0]}" if self._around.behind else "the server"

    def _change_pass(self, block: Block, prefix: str, rest: str) -> Callable[[str], None]:
        def change(new: str) -> None:
            self._done.discard((block.file, block.where, block.text))
            written = f"{prefix}{new}{rest}"
            if written != block.arguments[0]:
                what = f"{block.name} {block.arguments[0]} is {written}"
                # What it was meanwhile tells nobody anything.
                was = f"{block.text} is "
                self._changes = [
                    one for one in self._changes if one.where != block.where or not one.what.startswith(was)
                ]
                self._apply(block, lambda each: self._copies.set_arguments(each, {0: written}), what)

        return change

    def _without_variables(self, url: str) -> tuple[str, bool]:
        """Return a URL with the values of variables that are set once, in the place of host and port."""
        substituted = False
        for _ in range(8):
            with_values = self._with_each_value(url)
            if len(with_values) != 1 or with_values == {url}:
                break
            url, substituted = with_values.pop(), True
        return url, substituted

    def _names_groups(self, url: str, groups: Collection[str]) -> bool:
        """Return whether a URL has a variable, and names an upstream of the file with each of its values."""
        urls = {url}
        for _ in range(8):
            urls = {each for one in urls for each in self._with_each_value(one)}
        matches = [re.fullmatch(r"http://([^/?:$]+)(?:[/?].*|\$\w*uri)?", one) for one in urls]
        return urls != {url} and all(one is not None and one[1] in groups for one in matches)

    def _with_each_value(self, url: str) -> set[str]:
        """Return a URL with each value of the first variable in the place of host and port."""
        match = _VARIABLE.match(url)
        values = self._values(match[2] or match[3]) if match else set()
        return {match[1] + value + url[match.end() :] for value in values} if match and values else {url}

    def _values(self, name: str) -> set[str]:
        sets = [one for http in self._https for one in http.within("set") if one.arguments[:1] == (f"${name}",)]
        blocks = [one for http in self._https for one in http.all("map", "split_clients", "geo")]
        maps = [one for one in blocks if one.arguments[-1:] == (f"${name}",)]
        of_maps = {each.arguments[0] for one in maps for each in one.below if each.arguments}
        return {one.arguments[1] for one in sets} | of_maps


def _says_host(location: Block) -> bool:
    """Return whether a Host of the file's own goes to the server; the innermost block with such lines decides."""
    block: Block | None = location.parent
    while block is not None:
        if said := block.all("proxy_set_header"):
            return any(one.arguments[0].lower() == "host" for one in said)
        block = block.parent
    return False


# What stands beside nginx.conf in every package of nginx.
_SHIPPED = ("mime.types", "fastcgi.conf", "fastcgi_params", "proxy_params", "scgi_params", "uwsgi_params")
_BLOCKS = ("server", "location", "if", "limit_except", "upstream")
