"""A user's configuration as its program finds it: the user's folder, and files that the lab writes beside it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from lab import paths

# What every image of the lab has elsewhere.
_SHIPPED = ("/etc/ssl/certs/ca-certificates.crt",)
# Where official images have a program's folder; the lab's images have a link there.
_ELSEWHERE = {"/etc/haproxy": "/usr/local/etc/haproxy"}


@dataclass(frozen=True)
class Sources:
    """Where the program finds what.

    Attributes:
        folder: the user's, on this machine.
        home: the program's folder, such as /etc/nginx.
        below: where in it the user's folder lies; empty for the same place.
        main: the file that the program reads first, by its path from `home`.
        written: files that the lab writes, by their paths from `home`.
        environment: variables that are filled in in every file.
    """

    folder: Path
    home: str
    main: str
    below: str = ""
    written: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def main_file(self) -> str:
        """Return the first file as the program names it."""
        return f"{self.home}/{self.main}"

    def read(self, name: str) -> str | None:
        """Return the text of a file; None if there is none."""
        inner = self._inner(name)
        if inner is not None and inner in self.written:
            return self.written[inner]
        text = self.read_as_it_lies(name)
        return None if text is None else fill_in(text, self.environment)

    def read_as_it_lies(self, name: str) -> str | None:
        """Return the text of a file of the user's, with no variable filled in."""
        file = self._real(name)
        try:
            return None if file is None else file.read_bytes().decode(errors="replace")
        except OSError:
            return None

    def find(self, pattern: str) -> list[str]:
        """Return the files of a pattern, in the order in which programs read them."""
        inner = self._inner(pattern)
        if inner is None:
            return []
        found = {f"{self.home}/{one}" for one in self.written if fnmatchcase(one, inner)}
        below = inner.removeprefix(f"{self.below}/") if self.below else inner
        if not self.below or below != inner:
            try:
                for one in self.folder.glob(below):
                    name = f"{self.home}/{PurePosixPath(self.below) / one.relative_to(self.folder)}"
                    found |= {name} if self._real(name) else set()
            except (ValueError, NotImplementedError):
                return sorted(found)
        return sorted(found)

    def exists(self, path: str) -> bool:
        """Return whether the program finds a file; a relative path begins at `home`."""
        inner = self._inner(str(PurePosixPath(self.home) / path))
        return path in _SHIPPED or inner in self.written or self._real(f"{self.home}/{inner}") is not None

    def _inner(self, name: str) -> str | None:
        folders = (self.home, _ELSEWHERE.get(self.home, self.home))
        return next((name.removeprefix(f"{one}/") for one in folders if name.startswith(f"{one}/")), None)

    def _real(self, name: str) -> Path | None:
        """Return a file of the user's on this machine, links followed; None if there is none within the folder."""
        inner = self._inner(name)
        if inner is None or (self.below and not inner.startswith(f"{self.below}/")):
            return None
        file = paths.inside(self.folder, inner.removeprefix(f"{self.below}/") if self.below else inner)
        return file if file is not None and file.exists() else None


def fill_in(text: str, environment: Mapping[str, str]) -> str:
    """Put values in the place of `$NAME` and `${NAME}`, as envsubst does; a name that has no value stays."""
    if not environment:
        return text
    names = "|".join(map(re.escape, environment))
    return re.sub(rf"\$(?:\{{({names})\}}|({names})(?![A-Za-z0-9_]))", lambda one: environment[one[1] or one[2]], text)
