"""What a configuration of the user's own says: in comes its text as the program read it, out go values of knobs.

A role declares the format, and for each knob the place; a format has a reader here. It knows no role, and nothing of a
scenario but where the traffic comes in and which servers stand behind.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from formats.role import Boolean, Default, DurationKnob, Integer, Knob, Role, Words
from lab.roles.configurations import blocks, haproxy_copy, nginx_copy, sections
from lab.roles.configurations.directives import Tree
from lab.roles.configurations.parsed import (
    Adaptation,
    ClientSide,
    Entry,
    ParsedConfiguration,
    Setting,
    Statement,
    Surroundings,
    WantedEntry,
)
from lab.roles.configurations.sources import Sources

_Reader = blocks.Blocks | sections.Sections
_READERS: Mapping[str, type[_Reader]] = {"blocks": blocks.Blocks, "sections": sections.Sections}
_SPOKEN = {"on": True, "off": False}


def parse_configuration(role: Role, text: str, clients: ClientSide) -> ParsedConfiguration:
    """Read a configuration as the program read it, with what the lab added."""
    if role.own is None:
        raise TypeError(f"{role.group} takes no configuration")
    reader = _READERS[role.own.format](text, role.own.folder, clients)
    said = re.search(role.own.version, text, re.MULTILINE)
    version = said[1] if said else None
    settings = {name: _setting(knob, reader, version) for name, knob in role.knobs.items() if knob.counts is None}
    for name, knob in role.knobs.items():
        if knob.configured is not None and knob.configured.absent and settings[name] == Setting():
            settings[name] = settings.get(knob.configured.absent, Setting(why="no line says it"))
    return ParsedConfiguration(
        {name: one if one != Setting() else Setting(role.knobs[name].initial) for name, one in settings.items()},
        reader.faults(),
        reader.added(),
        text,
        reader.called(),
        checks=reader.checks(),
        rules=tuple(reader.rules(role.own.rules)),
        version=version,
    )


def _tree(sources: Sources) -> Tree:
    return Tree(sources.main_file, sources.home, sources.read, sources.find)


def is_whole(role: Role, sources: Sources) -> bool:
    """Return whether the first file is a configuration of its own, and no fragment of one."""
    if role.own is None or role.own.format != "blocks":
        return True
    found = {one.name for one in _tree(sources).root.below}
    return bool(found & {"http", "events", "stream", "mail"}) or not found


def find_entry(role: Role, sources: Sources, wanted: WantedEntry) -> Entry | None:
    """Return where the load enters; None if no client of another machine can come.

    Args:
        role: the program's declaration.
        sources: the configuration.
        wanted: what the scenario says of it.
    """
    if role.own is not None and role.own.format == "blocks":
        return nginx_copy.find_entry(_tree(sources), wanted)[0]
    lines = (sources.read(sources.main_file) or "").splitlines()
    return haproxy_copy.find_entry([*sections.read_sections(lines, sources.main)], wanted)[0]


def adapt(role: Role, sources: Sources, around: Surroundings) -> Adaptation:
    """Return how a user's configuration becomes the copy that runs."""
    if role.own is not None and role.own.format == "blocks":
        tree = _tree(sources)
        texts, found = tree.texts, nginx_copy.NginxCopy(tree, around, sources.exists).make()
    else:
        texts = {sources.main_file: sources.read(sources.main_file) or ""}
        copy = haproxy_copy.HaproxyCopy(texts[sources.main_file], sources.main_file, around, sources.exists)
        found = copy.make()
    filled_in = {name: text for name, text in texts.items() if text != sources.read_as_it_lies(name)}
    return replace(found, files=filled_in | dict(found.files))


def _setting(knob: Knob, reader: _Reader, version: str | None) -> Setting:
    """Return a knob's setting; an empty one where no line says it, and its default holds or what stands for it."""
    if knob.configured is None:
        return Setting(why="the lab does not read it from there")
    said = reader.statements(knob.configured)
    if not said:
        return Setting(why="nothing there has it")
    lines = tuple(dict.fromkeys(line for one in said if one.where is not None for line in (one.where, *one.besides)))
    if knob.configured.absent and all(one.words is None for one in said):
        return Setting()
    # What the program makes by itself has what it had in its older versions.
    initial = None if knob.configured.absent else knob.initial_in(version)
    values = [
        _value(knob, one, reader) if one.words is not None else initial if one.named else knob.initial for one in said
    ]
    if any(value != values[0] for value in values):
        return Setting(where=lines, why="it is not the same everywhere")
    if values[0] is None:
        return Setting(where=lines, why="the lab has no such value")
    return Setting(values[0], lines)


def _value(knob: Knob, said: Statement, reader: _Reader) -> Default | None:
    """Return a value as the lab has it; None if it is not one of the knob's."""
    words = said.words or ()
    text = " ".join(words) if isinstance(knob, Words) else next(iter(words), "")
    if isinstance(knob, Boolean):
        return _SPOKEN.get(text, True)
    if isinstance(knob, DurationKnob):
        return reader.milliseconds(text)
    value: int | str = int(text) if isinstance(knob, Integer) and text.removeprefix("-").isdecimal() else text
    try:
        validated: Default = TypeAdapter(knob.annotation()).validate_python(value, strict=True)
    except ValidationError:
        return None
    return validated
