"""Prints docs/map.md, from the records of causes and roles: `python -m tools.chart > docs/map.md`."""

import re
from collections.abc import Iterator

from analysis.diagnosis.causes import CAUSES
from analysis.diagnosis.causes.cause import Cause
from formats.role import Limits, Role
from lab import terminal
from lab.roles.declared_roles import ROLES
from lab.scenarios.knobs import CATALOGUE, format_knob

_COUNTER = re.compile(r"(?:TcpExt|Tcp)\.([A-Z]\w+)")
_NONE = "-"
_LIMIT = re.compile(r"\{(client|server)\}\.(\w+)")

_INTRODUCTION = """\
# The map: from a symptom to its cause and its knob

<!-- Made by `python -m tools.chart > docs/map.md`;
change the records in analysis/diagnosis/causes/, or a role.yaml. -->

For engineers on call, and for learners: what clients see, where to look first, what may cause it, and which knob to
turn. [causes.md](causes.md) has the proof of each cause, [glossary.md](glossary.md) explains the words. `make advise
RUN=…` computes the value of a knob, and `make drill` lets you practise.

In a knob, `<client>` and `<server>` stand for the name of the role at that end of the connection. Where both ends have
knobs, each is named with its end: a proxy is the server of its clients, and the client of its servers. Where no knob is
named, a setting does not fix it: the story of such a request (`make explain`) and the server's own log lead on.

| symptom | what to look at | cause | limit | knob | kernel's counter | lesson |
|---|---|---|---|---|---|---|
"""

_LADDER = """
## The ladder of limits

A connection passes such limits on its way from the client to the server; the first limit that is too small causes the
symptom. The table has those of the kernels first, and then those of each program. Defaults of the kernel are
those of Linux 6, with the version where one changed; the others are those of nginx, HAProxy, Go and Tomcat in Spring
Boot as the lab runs them, which may differ from yours. Where the lab has a default of its own, the table has both.

| where | what is limited | setting | default |
|---|---|---|---|
"""

_KERNEL_BEFORE = (
    ("client's kernel", "local ports to one server", "net.ipv4.ip_local_port_range", "32768 60999"),
    ("client's kernel", "a port in TIME_WAIT used again", "net.ipv4.tcp_tw_reuse", "2: on loopback only"),
    ("client's kernel", "SYNs of a connection", "net.ipv4.tcp_syn_retries", "6 retransmissions"),
    ("client's kernel", "SYNs before the pauses double", "net.ipv4.tcp_syn_linear_timeouts", "4 from 6.5 on; 0 before"),
    ("server's kernel", "any accept queue", "net.core.somaxconn", "4096 from 5.4 on; 128 before"),
    ("server's kernel", "whether SYN cookies answer when a SYN queue is full", "net.ipv4.tcp_syncookies", "1"),
)


# What comes near to a limit where a program has no such limit: HAProxy closes half of its idle connections to a server
# each time.
_NEAR = {"haproxy.server_idle": "pool_purge_delay"}
# A program's own default where the lab has another, or where the program's versions differ.
OWN_DEFAULTS = {
    "backend.keep_alive_timeout": "1m in Spring Boot; {lab} in the lab, as in Tomcat's own server.xml",
    "haproxy.backlog": "as maxconn; {lab} in the lab",
    "haproxy.maxconn": "as the process's maxconn, which follows from its open files; {lab} in the lab",
    "haproxy.timeout_connect": "no limit; {lab} in the lab",
    "haproxy.timeout_http_keep_alive": "as timeout http-request, or timeout client; {lab} in the lab",
    "haproxy.timeout_server": "no limit; {lab} in the lab",
    "haproxy.timeout_queue": "as timeout connect; {lab} in the lab",
    "nginx.upstream_keepalive": "{lab}; 32 from nginx 1.29.7 on",
}


def markdown() -> str:
    """Return the content of docs/map.md."""
    causes = "".join(f"| {' | '.join(_row(cause))} |\n" for cause in CAUSES)
    rows = [*_KERNEL_BEFORE, *(row for name, role in ROLES.items() for row in _limits(name, role))]
    ladder = "".join(f"| {where} | {what} | `{setting}` | {default} |\n" for where, what, setting, default in rows)
    return f"{_INTRODUCTION}{causes}{_LADDER}{ladder}"


def _row(cause: Cause) -> Iterator[str]:
    yield cause.symptom
    yield cause.look
    yield f"`{cause.name}`: {cause.label}"
    limits = [found for name in cause.knobs if (found := _LIMIT.fullmatch(name))]
    yield ", ".join(dict.fromkeys(found[2].replace("_", " ") for found in limits)) or _NONE
    yield _knobs(cause) or _NONE
    counters = dict.fromkeys(_COUNTER.findall(f"{cause.proof} {cause.explains}"))
    counters |= {"ListenOverflows": None} if cause.accept_queue == "full" else {}
    yield ", ".join(f"`{name}`" for name in counters) or _NONE
    yield f"[{cause.lesson}](../scenarios/{cause.lesson}/README.md)" if cause.lesson else _NONE


def _knobs(cause: Cause) -> str:
    """Name a cause's knobs as the lab's own roles call them; with their ends if limits of both are among them."""
    named = [(found[1] if (found := _LIMIT.fullmatch(name)) else "", [*_of_roles(name)]) for name in cause.knobs]
    ends = dict.fromkeys(end for end, _ in named)
    if not {"client", "server"} <= ends.keys():
        return ", ".join(knob for _, knobs in named for knob in knobs)
    return "; ".join(
        f"{end}: {', '.join(knob for one, knobs in named if one == end for knob in knobs)}" for end in ends
    )


def _of_roles(name: str) -> Iterator[str]:
    """Return the knob of a cause's record, or those that set its limit in the roles that can stand at its end."""
    found = _LIMIT.fullmatch(name)
    if found is None:
        yield f"`{name.replace('{', '<').replace('}', '>')}`"
        return
    kinds = ("proxy", "client") if found[1] == "client" else ("server", "proxy")
    for role_name, role in ROLES.items():
        knob = _limit(role_name, role, found[2])
        if role.kind in kinds and knob:
            yield f"`{'load' if role.kind == 'client' else role_name}.{knob}`"


def _limit(name: str, role: Role, limit: str) -> str | None:
    set_by: str | None = getattr(role.limits, limit)
    return set_by or _NEAR.get(f"{name}.{limit}")


def _limits(name: str, role: Role) -> Iterator[tuple[str, str, str, str]]:
    for what in Limits.model_fields:
        full = f"{name}.{_limit(name, role, what)}"
        if full in CATALOGUE:
            knob = CATALOGUE[full]
            default = format_knob(full, knob.default, CATALOGUE)
            yield role.display_name or name, knob.description, full, OWN_DEFAULTS.get(full, "{lab}").format(lab=default)


if __name__ == "__main__":
    terminal.result(markdown().rstrip("\n").split("\n"))
