"""Reads what a program tells of its settings, on a page or in a file, by the names of its knobs."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from formats.knob_types import parse_duration
from formats.role import Boolean, Default, DurationKnob, Knob, KnobReadback, Role

Settings = dict[str, Default]

_SPOKEN_OFF = ("", "off", "false")


class MissingSettings(Exception):
    """The program does not report these settings."""

    def __init__(self, knobs: list[str]) -> None:
        super().__init__(", ".join(knobs))
        self.knobs = knobs


def parse_page(role: Role, answer: Any) -> Settings:  # noqa: ANN401 # JSON
    """Return the settings of a page.

    Raises:
        MissingSettings: some are missing.
    """
    content = answer.get("settings") if isinstance(answer, Mapping) else None
    settings = content if isinstance(content, Mapping) else {}
    names = {knob: spec.name for knob, spec in _specs(role) if spec.name is not None}
    found: Settings = {knob: settings[name] for knob, name in names.items() if settings.get(name) is not None}
    return _complete(role, found)


def own_pages(role: Role) -> list[str]:
    """Return the pages of which single knobs say that they stand there."""
    return list(dict.fromkeys(spec.page for _, spec in _specs(role) if spec.page is not None))


def parse_own_pages(role: Role, answers: Mapping[str, Any]) -> Settings:
    """Return the settings of these pages; a program may spell a number as a text.

    Raises:
        MissingSettings: some are missing.
    """
    wanted = {name: spec for name, spec in _specs(role) if spec.page is not None}
    found: Settings = {}
    for name, spec in wanted.items():
        value = answers[str(spec.page)]
        for key in str(spec.at).split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, str) and not isinstance(role.knobs[name].initial, str):
            with contextlib.suppress(ValueError):
                value = json.loads(value)
        if isinstance(value, int | str):
            found[name] = value
    if lost := wanted.keys() - found.keys():
        raise MissingSettings(sorted(lost))
    return found


def parse_file(role: Role, text: str) -> Settings:
    """Return the settings of a file, such as a configuration that the program itself printed.

    Raises:
        MissingSettings: some are missing.
    """
    lines = list(_parts(role, text))
    found: Settings = {}
    for name, spec in _specs(role):
        values = (_value(role.knobs[name], spec, line) for part, line in lines if part == spec.part)
        value = next((value for value in values if value is not None), spec.absent)
        if value is not None:
            found[name] = value
    return _complete(role, found)


def _specs(role: Role) -> Iterator[tuple[str, KnobReadback]]:
    return ((name, knob.read_back) for name, knob in role.knobs.items() if knob.read_back is not None)


def _parts(role: Role, text: str) -> Iterator[tuple[str | None, str]]:
    """Yield each line with the name of its part."""
    part: str | None = None
    heading = role.read_back.part if role.read_back else None
    for line in text.splitlines():
        begins = re.fullmatch(heading, line) if heading else None
        if begins:
            part = begins[1]
        else:
            yield part, line


def _value(knob: Knob, spec: KnobReadback, line: str) -> Default | None:
    """Return what a line tells of a knob; None if it is another line, or tells no such value."""
    match = re.fullmatch(spec.line or "", line.split(" #", maxsplit=1)[0].rstrip())
    if not match:
        return None
    text: str = match[1] or ""
    if isinstance(knob, Boolean):
        return text not in _SPOKEN_OFF
    if isinstance(knob, DurationKnob):
        with contextlib.suppress(ValueError):
            return parse_duration(text)
        return None
    if isinstance(knob.initial, int):
        return int(text) if re.fullmatch("-?[0-9]{1,12}", text) else None
    return text


def _complete(role: Role, found: Settings) -> Settings:
    """Leave out what has no meaning beside other settings, and refuse what lacks any other."""
    without = {name for name, spec in _specs(role) if spec.unless is not None and found.get(spec.unless) is True}
    lost = [name for name, spec in _specs(role) if name not in found and name not in without and not spec.optional]
    if lost:
        raise MissingSettings(lost)
    return {name: value for name, value in found.items() if name not in without}
