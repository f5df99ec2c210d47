"""Finds, in the files of a service of the user's own, the settings of its program that bound what a run may show."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from formats.manifest import ServiceSetting
from formats.safe_files import read_regular
from lab.reading import document
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

What = Literal["idle", "silence", "backlog", "workers"]
_KNOWN = Path(__file__).with_name("service_settings.yaml")
_WHATS: Final[tuple[What, ...]] = ("idle", "silence", "backlog", "workers")
# Sources of the user's own are small; what is great was made, or is of others.
_FILES_MAX, _BYTES_MAX = 300, 64_000
_TEXT_MAX = 120
_OF_OTHERS = frozenset({".git", "node_modules", "vendor", "target", "build", "dist", "__pycache__"})
_DOCUMENTS = frozenset({".md", ".rst", ".adoc"})


def find_settings(resolved: ResolvedScenario, topology: Topology) -> dict[str, dict[str, ServiceSetting]]:
    """Return by service what its files say of each setting, if they speak of one program that has it."""
    found: dict[str, dict[str, ServiceSetting]] = {}
    for role in topology.instances:
        service = resolved.registry.services.get(role)
        if service is None:
            continue
        files = dict(_texts(resolved.place.home, service.build.context)) if service.build else {}
        spoken = " ".join([*(service.command or []), *(service.entrypoint or []), service.image or ""])
        settings = {what: one for what in _WHATS if (one := _find(what, files, spoken))}
        if settings:
            found[str(role)] = {str(what): one for what, one in settings.items()}
    return found


def _texts(folder: Path, context: str) -> Iterator[tuple[str, str]]:
    """Yield the small text files below a folder, by their names from the scenario's folder."""
    count = 0
    for root, folders, names in os.walk(folder / context):
        folders[:] = sorted(one for one in folders if one not in _OF_OTHERS)
        for name in sorted(names):
            path = Path(root, name)
            count += 1
            if count > _FILES_MAX:
                return
            try:
                if path.suffix in _DOCUMENTS or path.stat().st_size > _BYTES_MAX:
                    continue
                text = read_regular(path).decode()
            except (OSError, UnicodeDecodeError):
                continue
            yield os.path.relpath(path, folder), text


@cache
def _known() -> tuple[dict[str, Any], ...]:
    content: Any = document.read(_KNOWN).content
    return tuple(content)


def _find(what: What, files: dict[str, str], spoken: str) -> ServiceSetting | None:
    """Return the first line that sets it; without one, the program that alone is spoken of."""
    named = []
    for one in _known():
        words = re.compile(one["words"], re.IGNORECASE)
        if what not in one or not any(words.search(text) for text in (spoken, *files.values())):
            continue
        setting, line = one[what]["setting"], re.compile(one[what]["line"], re.IGNORECASE)
        for name, text in files.items():
            for number, written in enumerate(text.splitlines(), start=1):
                if line.search(written):
                    shown = written.strip()[:_TEXT_MAX]
                    return ServiceSetting(program=one["name"], setting=setting, where=f"{name}:{number}", text=shown)
        named.append(ServiceSetting(program=one["name"], setting=setting))
    return named[0] if len(named) == 1 else None
