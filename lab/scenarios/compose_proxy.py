"""Which service of a Compose project is a proxy that the lab's own nginx or HAProxy can stand for."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import paths
from lab.roles.configurations.sources import fill_in
from lab.scenarios.compose_file import dockerfile_of
from lab.scenarios.compose_project import Project

_TEXT_MAX = 1 << 20
# Its configuration leads on by one of these.
_LEADS_ON = {
    "nginx": re.compile(r"(?m)^\s*[^#\n]*\b(proxy|fastcgi|uwsgi|scgi|grpc)_pass\s"),
    "haproxy": re.compile(r"(?m)^\s*server\s+\S+\s"),
}
_FROM = re.compile(r"(?im)^\s*FROM\s+(?:--\S+\s+)*(\S+)")
_COPY = re.compile(r"(?im)^\s*(?:COPY|ADD)\s+((?:--\S+\s+)*)(\S+)\s+(\S+)\s*$")
_PAGES = ("/usr/share/nginx/html", "/var/www")


@dataclass(frozen=True)
class Proxy:
    """A service of a project that one of the lab's proxies stands for.

    Attributes:
        role: of the lab.
        config: the service's own configuration, from the scenario's folder.
        text: what it says.
        environment: what is filled in in it.
        inside: whether the configuration lies in the scenario's folder, of which alone the lab's proxy sees files.
    """

    role: str
    config: str
    text: str
    environment: Mapping[str, str]
    inside: bool = True

    def leads_to(self, name: str) -> bool:
        """Return whether the configuration names a host."""
        found = re.search(rf"(?:://|\bserver\s+(?:\S+\s+)?|_pass\s+){re.escape(name)}(?![\w.-])", self.text)
        return found is not None


def find_proxy(project: Project, step: str, home: Path) -> Proxy | None:
    """Return how one of the lab's proxies stands for a service; None if the service must run itself."""
    content = project.services[step]
    dockerfile = dockerfile_of(content)
    bases = _FROM.findall(dockerfile)
    image = bases[-1] if bases else str(content.get("image", ""))
    program = re.sub(r"[:@].*", "", image.rpartition("/")[2])
    role = next((one for one in _LEADS_ON if re.fullmatch(rf"{one}(-unprivileged|-alpine)?", program)), None)
    copied = _copied(content, dockerfile)
    # Pages of its own are in its image alone.
    if role is None or any(target.startswith(_PAGES) for _, target in copied):
        return None
    environment = {key: str(one) for key, one in (content.get("environment") or {}).items() if one is not None}
    for source, _ in [*_mounted(content), *copied]:
        config = paths.real(Path(source))
        if project.path_of(str(source)) is None:
            continue
        files = [config] if config.is_file() else sorted(config.rglob("*"))
        text = "\n".join(one.read_text(errors="replace") for one in files if _is_text(one))
        if _LEADS_ON[role].search(text):
            used = {key: one for key, one in environment.items() if re.search(rf"\$\{{?{re.escape(key)}\b", text)}
            named = os.path.relpath(config, paths.real(home))
            return Proxy(
                role,
                named if named.startswith("..") else f"./{named}",
                fill_in(text, used),
                used,
                paths.inside(home, str(source)) is not None,
            )
    return None


def _is_text(file: Path) -> bool:
    return file.is_file() and file.stat().st_size < _TEXT_MAX


def _mounted(content: Mapping[str, Any]) -> list[tuple[Path, str]]:
    volumes = content.get("volumes") or ()
    return [(Path(one["source"]), one["target"]) for one in volumes if one.get("type") == "bind"]


def _copied(content: Mapping[str, Any], dockerfile: str) -> list[tuple[Path, str]]:
    """Return what a Dockerfile copies into its image from the folder, with the places in the image."""
    context = (content.get("build") or {}).get("context", "/")
    return [
        (Path("/") if "--from" in options else Path(context, source), target)
        for options, source, target in _COPY.findall(dockerfile)
    ]
