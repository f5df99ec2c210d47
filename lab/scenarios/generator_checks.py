"""Why a load of the scenario's own cannot be made as its arguments say: names, and files that are not there."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath

from lab import paths
from lab.errors import Problem
from lab.reading.validation_messages import nearest
from lab.scenarios import generators
from lab.scenarios.command_checks import command_problems, values_of
from lab.scenarios.generator_programs import PROGRAMS
from lab.scenarios.model import OwnLoad
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import PLACES

# A word in braces, but for a shell's variable.
_BRACED = re.compile(r"(?<!\$)\{(\w+)\}")
_ALIKE = 0.8
# What stands for no file.
_STREAMS = frozenset({"-", "stdin", "stdout"})
_RAW = PurePosixPath("/raw")


def generator_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong with a load of the scenario's own, but for what k6 says of a script."""
    load, path = resolved.scenario.own_load, resolved.scenario.path
    if load is None:
        return
    yield from _misspelt(resolved, load)
    name = generators.name_of(load)
    if name is None:
        return
    if name in resolved.scenario.services:
        what = f"'{name}' is the load generator's name, and a service has it too"
        yield Problem(what, resolved.where("services", name), "give the service another one")
    if path[0] != name:
        what = f"the load is made by {name}, and the path [{', '.join(path)}] begins with {path[0]}"
        yield Problem(what, resolved.where("path"), f"write [{', '.join([name, *path[1:]])}]")
    if name in PROGRAMS:
        words, where = generators.words_of(load, name), resolved.where("load", name)
        yield from _not_there(name, words, where, paths.real(resolved.place.home))
        yield from _not_writable(name, words, where)
    yield from command_problems(resolved, load, name)
    if load.results and name in PROGRAMS:
        for _, file in values_of(generators.words_of(load, name), PROGRAMS[name].results or frozenset()):
            if PurePosixPath(file).parent == _RAW and PurePosixPath(file).name != load.results.file:
                what = f"load.results names {load.results.file}, and {name} writes {file}"
                where = resolved.where("load", "results", "file")
                yield Problem(what, where, f"write file: {PurePosixPath(file).name}")


def _misspelt(resolved: ResolvedScenario, load: OwnLoad) -> Iterator[Problem]:
    """Yield each word in braces that is almost one that the lab fills in; others are the program's own."""
    texts = [(resolved.where("load", "environment", name), text) for name, text in load.environment.items()]
    texts += [(resolved.where("load", "command", index), text) for index, text in enumerate(load.command or [])]
    texts += [(resolved.where("load", tool), getattr(load, tool) or "") for tool in PROGRAMS]
    for where, text in texts:
        for word in dict.fromkeys(_BRACED.findall(text)):
            meant = next((one for one in PLACES if _is_like(word.lower(), one)), None)
            if meant is not None and word not in PLACES:
                yield Problem(f"the lab does not fill in {{{word}}}", where, f"write {{{meant}}}")


def _is_like(word: str, other: str) -> bool:
    """Return whether a word has another's letters in another order, or almost all of them in the same."""
    return sorted(word) == sorted(other) or SequenceMatcher(None, word, other).ratio() >= _ALIKE


def _not_there(name: str, words: list[str], where: str, home: Path) -> Iterator[Problem]:
    """Yield each file of the scenario's folder that a generator is to read, and that is not there."""
    named = ((option, file) for option, value in values_of(words, PROGRAMS[name].reads) for file in value.split(","))
    for option, file in named:
        below = PurePosixPath(generators.FOLDER, file)
        if file in _STREAMS or "{" in file or "://" in file or not below.is_relative_to(generators.FOLDER):
            continue  # a file of the image, or none
        relative = below.relative_to(generators.FOLDER)
        if paths.inside(home, str(relative)) is None:
            if (home / relative).exists():
                what = f"{file} leads out of the scenario's folder, and {name} sees no other"
                yield Problem(what, where, "copy it into the folder")
        elif not (home / relative).exists():
            folder = (home / relative).parent
            beside = [one.name for one in folder.iterdir()] if folder.is_dir() else []
            near = nearest(relative.name, beside)
            what = f"there is no {file} in the scenario's folder, which {name} is to read ({option})"
            yield Problem(
                what, where, f"did you mean '{near}'?" if near else "its path begins at the scenario's folder"
            )


def _not_writable(name: str, words: list[str], where: str) -> Iterator[Problem]:
    """Yield each file that a generator is to write where it cannot."""
    for option, file in values_of(words, PROGRAMS[name].writes):
        below = PurePosixPath(generators.FOLDER, file)
        if file not in _STREAMS and below.is_relative_to(generators.FOLDER):
            what = f"{name} cannot write {file} ({option}): it can only read the scenario's folder"
            yield Problem(what, where, f"write {_RAW / below.name}")
