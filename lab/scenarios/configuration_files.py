"""Where a user's own configuration lies, how its program finds it, and where the load enters by it."""

from functools import cache
from pathlib import Path

from formats.role import Role
from lab import paths
from lab.roles.configurations import find_entry, is_whole
from lab.roles.configurations.parsed import Entry, WantedEntry
from lab.roles.configurations.sources import Sources, fill_in
from lab.scenarios.model import ConfigurationFile

_TEMPLATE = ".template"


def find_sources(home: Path, written: ConfigurationFile, role: Role) -> Sources | None:
    """Return how a role's program finds a configuration; None if there is none, or it leads out of the folder.

    A folder has a whole configuration under the name of the program's own, or fragments. A fragment stands in the file
    that the role declares for it. As in nginx's official image, `templates/*.template` become files in `conf.d`; other
    templates become files where they lie.

    Args:
        home: the scenario's folder.
        written: what the scenario says.
        role: the program's declaration.
    """
    own, path = role.own, paths.inside(home, written.config)
    if own is None or path is None or not path.exists():
        return None
    usual = f"{role.group}.{'cfg' if own.around is None else 'conf'}"
    if path.is_dir() and (path / usual).is_file():
        path /= usual
    if path.is_dir():
        if own.around is None:
            return None
        filled = _filled(path, written)
        below, pattern = ("conf.d", "conf.d/*") if filled else (path.name, f"{path.name}/*.conf")
        around = _around(role, f"{own.folder}/{pattern}")
        return Sources(path, own.folder, own.around, below, {own.around: around, **filled}, written.environment)
    filled = {**_filled_in_place(path.parent, written), **_filled(path.parent / "templates", written)}
    found = Sources(path.parent, own.folder, path.name, "", filled, written.environment)
    if own.around is None or is_whole(role, found):
        return found
    name = path.name
    if name.endswith(_TEMPLATE):
        name = f"conf.d/{name.removesuffix(_TEMPLATE)}"
        filled[name] = fill_in(path.read_text(errors="replace"), written.environment)
    around = _around(role, f"{own.folder}/{name}")
    return Sources(path.parent, own.folder, own.around, "", {own.around: around, **filled}, written.environment)


def _filled(folder: Path, written: ConfigurationFile) -> dict[str, str]:
    """Return the files that the templates of a folder make."""
    return {
        f"conf.d/{one.name.removesuffix(_TEMPLATE)}": fill_in(one.read_text(errors="replace"), written.environment)
        for one in sorted(folder.glob(f"*{_TEMPLATE}"))
    }


def _filled_in_place(folder: Path, written: ConfigurationFile) -> dict[str, str]:
    """Return the files beside a configuration that its templates make where they lie, as images of some projects do."""
    if not (written.environment or written.config.endswith(_TEMPLATE)):
        return {}
    return {
        str(one.relative_to(folder).with_suffix("")): fill_in(one.read_text(errors="replace"), written.environment)
        for one in sorted(folder.rglob(f"*{_TEMPLATE}"))
        if paths.inside(folder, str(one.relative_to(folder))) and not one.with_suffix("").exists()
    }


@cache
def _standard(file: Path) -> str:
    return file.read_text()


def _around(role: Role, included: str) -> str:
    return _standard(paths.ROOT / role.group / str(role.own.around if role.own else "")).replace(
        "@fragments@", included
    )


def entry_by_file(home: Path, written: ConfigurationFile, role: Role, wanted: WantedEntry) -> Entry | None:
    """Return where the load enters by a configuration; None if it does not tell."""
    sources = find_sources(home, written, role)
    return None if sources is None else find_entry(role, sources, wanted)
