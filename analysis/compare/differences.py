"""What was set or stood differently in two groups of runs, told apart by whether anyone asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.compare.runs import RunRecord

Setting = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting that differs.

    Attributes:
        name: the knob, or where in the manifest it stands, as `host.kernel`.
        a, b: the two values; None where there is none.
        asked: whether a scenario, a matrix or the user set it; else it differs unasked.
    """

    name: str
    a: Setting
    b: Setting
    asked: bool


def changes(a: RunRecord, b: RunRecord) -> list[SettingChange]:
    """Every setting that differs between two runs, those that differ unasked first."""
    settings_a, settings_b = settings(a), settings(b)
    found = [
        SettingChange(name, settings_a.get(name), settings_b.get(name), _asked(name, a, b))
        for name in sorted(settings_a.keys() | settings_b.keys())
        if settings_a.get(name) != settings_b.get(name)
    ]
    one_sided = settings_a.keys() ^ settings_b.keys()
    found = [change for change in found if change.name not in one_sided or not _by_path_alone(change, a, b)]
    return sorted(found, key=lambda change: (change.asked, _is_sysctl(change.name), change.name))


def _by_path_alone(change: SettingChange, a: RunRecord, b: RunRecord) -> bool:
    """Whether a setting stands on one side because only that path has the instance, or the role, that it is of.

    The path says so already, whoever set it: a knob of nginx means nothing where there is no nginx.
    """
    first, _, rest = change.name.partition(".")
    if _is_sysctl(change.name):
        return not all(rest.split(".")[0] in run.manifest.get("sysctls", {}) for run in (a, b))
    role = rest if first == "image" else first
    of_paths = [role in run.manifest.get("path", []) for run in (a, b)]
    return any(of_paths) and not all(of_paths)


def _is_sysctl(name: str) -> bool:
    """Sysctls come after the rest: many differ at once when a kernel does."""
    return name.startswith("sysctl.")


def _asked(name: str, a: RunRecord, b: RunRecord) -> bool:
    """Whether a difference is one that somebody set: a knob beyond its default, the sysctl of one, or the path."""
    if name == "path":
        return True
    if name.startswith("sysctl."):
        _, instance, sysctl = name.split(".", 2)
        role = next((role for role, names in _instances(a, b) if instance in names), instance)
        return any(f"kernel.{role}.{sysctl}" in run.manifest["knobs"] for run in (a, b))
    knobs = [run.manifest["knobs"].get(name) for run in (a, b)]
    return any(knob is not None and knob.get("source") != "default" for knob in knobs)


def _instances(a: RunRecord, b: RunRecord) -> Iterator[tuple[str, list[str]]]:
    for run in (a, b):
        yield from run.manifest.get("instances", {}).items()


def settings(run: RunRecord) -> dict[str, Setting]:
    """Every setting of a run by name: knobs, sysctls of each instance, images, machine, versions."""
    manifest = run.manifest
    found: dict[str, Setting] = {name: knob["value"] for name, knob in manifest["knobs"].items()}
    found["path"] = " ".join(manifest.get("path", []))
    for group in ("host", "git", "lab"):
        found |= _flat(group, manifest.get(group))
    found |= _flat("image", manifest.get("images"))
    for instance, sysctls in manifest.get("sysctls", {}).items():
        found |= _flat(f"sysctl.{instance}", sysctls)
    found["slow_ms"] = manifest.get("slow_ms")
    return found


def _flat(prefix: str, values: Any) -> dict[str, Setting]:  # noqa: ANN401  what a manifest has there
    return {f"{prefix}.{name}": value for name, value in values.items()} if isinstance(values, Mapping) else {}


# What may differ between repetitions of one cell: it says who ran it, not what was run. What a kernel leaves of the
# memory at its start is not the same twice.
_OF_NO_EFFECT = ("git.", "lab.python", "host.memory_kb")


def must_agree(name: str) -> bool:
    """Whether runs in which a setting differs are not repetitions of each other."""
    return not name.startswith(_OF_NO_EFFECT)


def mixed(a: RunRecord, b: RunRecord) -> SettingChange | None:
    """The first setting by which two runs are not repetitions of each other; None if they are."""
    instances_a, instances_b = (run.manifest.get("instances") for run in (a, b))
    found = [change for change in changes(a, b) if must_agree(change.name)]
    if not found and instances_a != instances_b:
        return SettingChange("instances", str(instances_a), str(instances_b), asked=True)
    return found[0] if found else None
