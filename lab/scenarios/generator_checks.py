"""Why a load of the scenario's own cannot be made as its arguments say: names, files, and what no shell reads."""

import re
import shlex
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from analysis.formatting import format_ms
from lab import paths
from lab.errors import Problem
from lab.reading.validation_messages import nearest_beside
from lab.scenarios import generators
from lab.scenarios.generator_programs import PROGRAMS, Options
from lab.scenarios.model import OwnLoad
from lab.scenarios.own_script import read_go_duration
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import PLACES

# A word in braces, but for a shell's variable.
_BRACED = re.compile(r"(?<!\$)\{(\w+)\}")
_ALIKE = 0.8
# What stands for no file.
_STREAMS = frozenset({"-", "stdin", "stdout"})
_RAW = PurePosixPath("/raw")
# What others call the places that the lab fills in; in a command of one's own image they may be the program's.
_CALLED = {
    **dict.fromkeys(("url", "uri", "base_url", "server", "address", "endpoint"), "target"),
    **dict.fromkeys(("hostname", "server_host"), "host"),
}
_BRACED_FIRST = re.compile(r"\{(\w+)\}")
_COUNT = re.compile(r"([0-9]+)([kMG]?)")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+|[0-9]+")
# What a shell makes of a word, in a command line that none reads.
_PIPES, _REDIRECTION = ("|", "||", "&&", "&", ";"), re.compile(r"[0-9]?(>>?|<)(&[0-9])?|[0-9]?>>?\S+")


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
    yield from _command_problems(resolved, load, name)
    if load.results and name in PROGRAMS:
        for _, file in _values_of(generators.words_of(load, name), PROGRAMS[name].results or frozenset()):
            if PurePosixPath(file).parent == _RAW and PurePosixPath(file).name != load.results.file:
                what = f"load.results names {load.results.file}, and {name} writes {file}"
                where = resolved.where("load", "results", "file")
                yield Problem(what, where, f"write file: {PurePosixPath(file).name}")


def _command_problems(resolved: ResolvedScenario, load: OwnLoad, name: str) -> Iterator[Problem]:
    """Yield what is wrong with the command line of a load generator."""
    if name in PROGRAMS:
        text, where = getattr(load, name), resolved.where("load", name)
        # A word in quotation marks is an argument, whatever it is.
        yield from _for_a_shell(name, shlex.split(text, posix=False), where)
        words = generators.words_of(load, name)
        yield from _by_another_name(words, where)
        yield from _elsewhere(resolved, name, words, where)
        yield from _too_long(resolved, name, words, where)
        yield from _too_many(name, words, where)
        yield from _without_file(resolved, load, name, words)
    elif load.command is not None:
        where = resolved.where("load", "command")
        if "-c" not in load.command:
            yield from _for_a_shell(name, load.command, where)
        yield from _elsewhere(resolved, name, load.command, where)


def _values_of(words: list[str], options: Options) -> Iterator[tuple[str, str]]:
    """Yield the value of each of these options: after it, behind '=', or, of a short one, attached."""
    for index, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in options:
            following = words[index + 1 : index + 2]
            yield from ((option, one) for one in ([value] if equals else following))
        elif word[:2] in options:
            yield word[:2], word[2:]


def _for_a_shell(name: str, words: list[str], where: str) -> Iterator[Problem]:
    found = next((word for word in words if word in _PIPES or _REDIRECTION.fullmatch(word)), None)
    if found is None:
        return
    what = f"no shell reads the command, so {name} gets '{found}' as an argument"
    hint = "leave it out: raw/ of the run keeps all that it prints, as container.log"
    if found in _PIPES or "<" in found:
        hint = 'write load: {image: …, command: [sh, -c, "…"]}'
    yield Problem(what, where, hint)


def _by_another_name(words: list[str], where: str) -> Iterator[Problem]:
    """Yield each argument that begins with a place by a name that others use for it."""
    for word in words:
        called = _BRACED_FIRST.match(word)
        if called and (meant := _CALLED.get(called[1].lower())):
            yield Problem(f"the lab does not fill in {{{called[1]}}}", where, f"write {{{meant}}}")


def _elsewhere(resolved: ResolvedScenario, name: str, words: list[str], where: str) -> Iterator[Problem]:
    """Yield each argument that is a URL of a host that nothing in the run has, and that there is no URL at all."""
    for word in words:
        if re.match(r"https?://[^{]", word) and not _is_here(resolved, urlsplit(word).hostname or ""):
            what = f"{word} leads elsewhere: the run's network has no way out, and no server in it has that name"
            rest = urlsplit(word)._replace(scheme="", netloc="").geturl() or "/"
            yield Problem(what, where, f"write {{target}}{rest}, which is the path's first server")
    if (
        name in PROGRAMS
        and PROGRAMS[name].takes_url
        and not any("://" in word or "{" in word or "/" in word.lstrip("/") for word in words)
    ):
        yield Problem(f"{name} gets no URL", where, "write {target}/ at the end")
    if name == "ab" and "{target}" in words and (resolved.url is None or resolved.url.path in ("", "/")):
        yield Problem("ab refuses a URL without a path", where, "write {target}/")


def _is_here(resolved: ResolvedScenario, host: str) -> bool:
    """Return whether a host may be one of the run's: a role's, an instance's, a service's, or the load's own."""
    if resolved.url is not None:
        return True  # the scenario says where its load goes
    role = re.sub(r"-[0-9]+$", "", host)
    return bool({host, role} & {*resolved.scenario.path, *resolved.registry.services})


def _too_long(resolved: ResolvedScenario, name: str, words: list[str], where: str) -> Iterator[Problem]:
    limit_ms = resolved.scenario.knobs.load.max_duration
    for option, value in _values_of(words, PROGRAMS[name].lasts):
        if not _DURATION.fullmatch(value):
            continue  # the program says what it thinks of it
        lasts_ms = 1000 * int(value) if value.isdecimal() else read_go_duration(value)
        if lasts_ms >= limit_ms:
            what = f"{name} is to run for {format_ms(lasts_ms)} ({option}), and load.max_duration is"
            yield Problem(f"{what} {format_ms(limit_ms)}: the lab would end it then", where, "raise load.max_duration")


def _too_many(name: str, words: list[str], where: str) -> Iterator[Problem]:
    """Yield that a program refuses its numbers: wrk more threads than connections, others more at once than in all."""
    counts, said = [], []
    program = PROGRAMS[name]
    is_bounded = program.at_most and not any(_values_of(words, program.unbounded))
    for bound in (program.at_most or ()) if is_bounded else ():
        option, value = [("its default", str(bound.default)), *_values_of(words, bound.options)][-1]
        count = _COUNT.fullmatch(value)
        if count is None:
            return  # the program says what it thinks of it
        counts.append(int(count[1]) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[count[2]])
        said.append(f"{counts[-1]} {bound.counts} ({option})")
    if counts and counts[0] > counts[1]:
        first, second = said
        yield Problem(f"{name} refuses {first} with {second}", where, "raise the second, or lower the first")


def _without_file(resolved: ResolvedScenario, load: OwnLoad, name: str, words: list[str]) -> Iterator[Problem]:
    """Yield that a program writes no results that the lab reads."""
    if load.results is None:
        return
    where = resolved.where("load", "results")
    options = PROGRAMS[name].results
    if options is None:
        what = f"{name} writes no file that tells of each request, in the format {load.results.format} or another"
        yield Problem(what, where, "leave results out: packets tell of connections, and of requests as far as they can")
    elif options and not any(_values_of(words, options)):
        option = min(options, key=len)
        yield Problem(f"{name} writes no results without {option}", where, f"add {option} /raw/{load.results.file}")


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
    named = ((option, file) for option, value in _values_of(words, PROGRAMS[name].reads) for file in value.split(","))
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
            what = f"there is no {file} in the scenario's folder, which {name} is to read ({option})"
            hint = nearest_beside(home / relative) or "its path begins at the scenario's folder"
            yield Problem(what, where, hint)


def _not_writable(name: str, words: list[str], where: str) -> Iterator[Problem]:
    """Yield each file that a generator is to write where it cannot."""
    for option, file in _values_of(words, PROGRAMS[name].writes):
        below = PurePosixPath(generators.FOLDER, file)
        if file not in _STREAMS and below.is_relative_to(generators.FOLDER):
            what = f"{name} cannot write {file} ({option}): it can only read the scenario's folder"
            yield Problem(what, where, f"write {_RAW / below.name}")
