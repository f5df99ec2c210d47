"""Reads, out of the configuration that nginx itself printed (`nginx -T`), what each of the lab's knobs came to."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from lab.scenario.topology import TRAFFIC_PORT

_FILE = re.compile(r"# configuration file (?P<path>.*):")

# Knob → folder of the fragment that has it (one folder for each of nginx's contexts), and directive.
_DIRECTIVES = {
    "worker_processes": ("main.d", "worker_processes"),
    "worker_connections": ("events.d", "worker_connections"),
    "multi_accept": ("events.d", "multi_accept"),
    "keepalive_timeout": ("http.d", "keepalive_timeout"),
    "keepalive_requests": ("http.d", "keepalive_requests"),
    "client_header_timeout": ("http.d", "client_header_timeout"),
    "client_body_timeout": ("http.d", "client_body_timeout"),
    "send_timeout": ("http.d", "send_timeout"),
    "reset_timedout_connection": ("http.d", "reset_timedout_connection"),
    "proxy_http_version": ("http.d", "proxy_http_version"),
    "proxy_connect_timeout": ("http.d", "proxy_connect_timeout"),
    "proxy_read_timeout": ("http.d", "proxy_read_timeout"),
    "proxy_send_timeout": ("http.d", "proxy_send_timeout"),
    "proxy_next_upstream": ("http.d", "proxy_next_upstream"),
    "proxy_next_upstream_tries": ("http.d", "proxy_next_upstream_tries"),
    "upstream_keepalive": ("upstream.d", "keepalive"),
    "upstream_keepalive_timeout": ("upstream.d", "keepalive_timeout"),
    "upstream_keepalive_requests": ("upstream.d", "keepalive_requests"),
}


@dataclass(frozen=True)
class Directive:
    """One directive.

    Attributes:
        folder: of the file that it stands in.
        depth: blocks around it within that file.
    """

    folder: str
    depth: int
    words: tuple[str, ...]


def parse_directives(text: str) -> Iterator[Directive]:
    """Give the directives of `nginx -T`, each with its file's folder; the lab's templates have one on each line."""
    folder, depth = "", 0
    for line in text.splitlines():
        file = _FILE.match(line)
        if file:
            folder, depth = PurePosixPath(file["path"]).parent.name, 0
            continue
        code = line.split(" #")[0].strip()
        if not code.strip(";") or code.startswith("#"):
            continue
        if code == "}":
            depth -= 1
        elif code.endswith("{"):
            depth += 1
        elif code.endswith(";"):
            # What cannot be split is no line of the lab's; whatever it held counts as not told.
            with contextlib.suppress(ValueError):
                yield Directive(folder, depth, tuple(shlex.split(code[:-1])))


def knobs_of(text: str) -> dict[str, int | bool | str]:
    """Give the knobs of nginx (without the group's name) as `nginx -T` has them; one that it leaves out is missing."""
    directives = list(parse_directives(text))
    at_top = {(one.folder, one.words[0]): one.words[1:] for one in directives if one.depth == 0}
    values = {knob: _value(knob, at_top[place]) for knob, place in _DIRECTIVES.items() if place in at_top}
    for one in directives:
        if one.words[:2] == ("proxy_set_header", "Connection"):
            values["proxy_connection"] = one.words[2]
        elif one.words[0] == "listen" and one.words[1].endswith(f":{TRAFFIC_PORT}"):
            values["reuseport"] = "reuseport" in one.words
            backlog = [word.removeprefix("backlog=") for word in one.words if word.startswith("backlog=")]
            values |= {"listen_backlog": int(backlog[0])} if backlog else {}
        elif one.words[0] == "server" and one.depth == 1:
            # All servers of the upstream group have the same.
            settings = dict(word.split("=", 1) for word in one.words[2:] if "=" in word)
            values |= {"max_fails": int(settings["max_fails"])} if "max_fails" in settings else {}
            timeout = re.fullmatch(r"([0-9]+)s", settings.get("fail_timeout", ""))
            values |= {"fail_timeout": 1000 * int(timeout[1])} if timeout else {}
    # No `keepalive` is how nginx is told to keep none.
    return {"upstream_keepalive": 0} | values


def _value(knob: str, words: tuple[str, ...]) -> int | bool | str:
    text = " ".join(words)
    if text in ("on", "off") and knob != "proxy_next_upstream":
        return text == "on"
    number = re.fullmatch(r"([0-9]+)(ms)?", text)
    return int(number[1]) if number and knob != "worker_processes" else text
