"""A Compose project as `docker compose config` reads it: the lab has no rules of its own for these files.

What the lab does itself comes before that: it finds each further file that the project names, because Compose would
read those wherever they lie, and somebody else's project must not bring this machine's files into a container.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from formats.safe_files import open_regular
from lab import paths
from lab.errors import BadInput, LabError, Problem
from lab.reading import document as documents
from lab.reading.document import Document, Location
from lab.reading.validation_messages import nearest_beside

_TIMEOUT_S = 60
_BYTES_MAX = 4 << 20
_DEPTH_MAX = 64
_KEPT = 64
# Where projects keep what a new user copies to `.env`.
_EXAMPLES = (".env.example", "env.example", ".env.sample", ".env.template", ".env.dist", "example.env")
_UNSET = re.compile(r'The \\?"([^"\\]+)\\?" variable is not set')
_NAMED = re.compile(r"\b(?:services|networks|volumes|secrets|configs)\.[\w.-]+")
_YAML_LINE = re.compile(r"yaml: (?:unmarshal errors:\s*)?line (\d+): ")
# What names further files, and from which key of it.
_OF_FILES = frozenset({"env_file", "include", "label_file"})


@dataclass(frozen=True)
class Project:
    """A Compose project.

    Attributes:
        files: of the project, as the scenario names them; the folder of the first is the project's.
        home: the scenario's folder.
        content: what Compose makes of them, with each dollar sign as it is.
        lines: the files as they stand, for the lines of messages; without one that YAML's own tags keep from us.
        notices: what a reader should know of how they were read.
    """

    files: tuple[Path, ...]
    home: Path
    content: Mapping[str, Any]
    lines: tuple[Document, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Return the project's folder."""
        return self.files[0].parent

    @property
    def shown(self) -> str:
        """Return what messages call the file."""
        return paths.shown(self.files[0])

    @property
    def services(self) -> Mapping[str, Any]:
        """Return its services by name."""
        return self.content.get("services") or {}

    def where(self, *location: str | int) -> str:
        """Return `file:line` of a place, in the file that says it last."""
        for length in range(len(location), 0, -1):
            for one in reversed(self.lines):
                if location[:length] in one.lines:
                    return one.where(location)
        return self.shown

    def path_of(self, path: str) -> str | None:
        """Return a path from the scenario's folder; None if it leads out of what the project may name files from."""
        real = paths.real(Path(path))
        return os.path.relpath(real, paths.real(self.home)) if _is_inside(real, self.files, self.home) else None


def _is_inside(path: Path, files: Sequence[Path], home: Path) -> bool:
    """Return whether each file of a project may name a path: it lies beside that file, or in the scenario's folder."""
    return all(path.is_relative_to(paths.real(folder)) for folder in {one.parent for one in files}) or (
        path.is_relative_to(paths.real(home))
    )


def load_project(named: Sequence[str], home: Path, where: str) -> Project:
    """Read a project's files, which are named from the scenario's folder, as `docker compose` does.

    Variables come from `.env` beside the first file alone: a run must not depend on a shell's.

    Raises:
        BadInput: Compose refuses them, or they name a file that lies elsewhere.
        LabError: there is no Docker Compose here.
    """
    files = tuple(_find(one, home, where) for one in named)
    references = _References(files, home)
    references.read_all()
    if references.problems:
        raise BadInput(references.problems)
    env_file, notices = _env_file(files, home)
    read = [*references.seen, *([env_file] if env_file else [])]
    stamps = tuple((one, _stamp(one)) for one in read)
    lines = tuple(_lines(files))
    said = _read(files, env_file, stamps)
    if said.failure is not None:
        raise BadInput(_refusal(said, files, lines))
    if said.unset:
        which = ", ".join(said.unset)
        hint = f"write them into {paths.shown(files[0].parent / '.env')}"
        notices = [*notices, f"{paths.shown(files[0])}: these variables have no value, and are empty: {which}; {hint}"]
    return Project(files, home, said.content, lines, tuple(notices))


def _find(named: str, home: Path, where: str) -> Path:
    file = paths.real(home / named)
    if not file.is_file():
        hint = nearest_beside(file, "*.y*ml") or "its path begins at the scenario's folder"
        raise BadInput(Problem(f"there is no Compose file {named}", where, hint))
    if file.parent != paths.real((home / named).parent):
        raise BadInput(Problem(f"{named} is a link to another folder", where, "name the file itself"))
    return file


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_size


def _lines(files: Sequence[Path]) -> Iterator[Document]:
    for file in files:
        try:
            yield documents.read(file)
        except BadInput:
            continue  # Compose knows tags and more that no other file of the lab has


def _env_file(files: Sequence[Path], home: Path) -> tuple[Path | None, list[str]]:
    """Return where the values of variables stand, and what to say of it."""
    folder = files[0].parent
    for name in (".env", *_EXAMPLES):
        file = folder / name
        if not file.is_file():
            continue
        if not _is_inside(paths.real(file), files, home):
            raise BadInput(Problem(f"{paths.shown(file)} is a link to another folder", hint="put a copy there"))
        said = f"{paths.shown(folder)} has no .env; the values of variables are those of {name}"
        return file, [] if name == ".env" else [said]
    return None, []


class _References:
    """Finds the further files that a project names, and what is wrong with where they lie.

    Attributes:
        seen: all of its files.
    """

    def __init__(self, files: Sequence[Path], home: Path) -> None:
        self._files = files
        self._home = home
        self._bases = {files[0].parent}
        self.seen: dict[Path, None] = dict.fromkeys(files)
        self.problems: list[Problem] = []

    def read_all(self) -> None:
        """Read each file once, with those that it names."""
        waiting = list(self._files)
        while waiting:
            waiting += self._read(waiting.pop())

    def _read(self, file: Path) -> list[Path]:
        found = []
        main = file in self._files
        for node, kind in _references_in(_nodes(file)):
            text, where = node.value, f"{paths.shown(file)}:{node.start_mark.line + 1}"
            if "$" in text:
                if not main:
                    self.problems.append(
                        Problem(f"the lab cannot tell which file '{text}' is", where, "write its path")
                    )
                    continue
                env_file, _ = _env_file(self._files, self._home)
                text = interpolate(text, self._files[0].parent, env_file)
            if kind == "project_directory":
                self._bases.add(paths.real(file.parent / text))
            # Paths of the files that the scenario names begin at the first one's folder.
            own = self._files[0].parent if main else file.parent
            for base in {own, *(self._bases if len(self._bases) > 1 else ())}:
                path = paths.real(base / text)
                if not _is_inside(path, self._files, self._home):
                    what = f"{node.value} leads out of the folder of the Compose file"
                    self.problems.append(Problem(what, where, "copy it there, and name the copy"))
                elif path.is_file() and path not in self.seen:
                    self.seen[path] = None
                    found += [path] if kind in ("include", "extends") else []
        return found


def _nodes(file: Path) -> list[Node]:
    """Return a file's documents as YAML's own nodes: without the lab's rules, because Compose knows more."""
    where = paths.shown(file)
    with open_regular(file) as opened:
        data = opened.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise BadInput(Problem(f"the file has more than {_BYTES_MAX >> 20} MiB", where))
    yaml = YAML(typ="rt", pure=True)
    yaml.max_depth = _DEPTH_MAX
    try:
        return [node for node in yaml.compose_all(data.decode()) if node is not None]
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        said = str(getattr(error, "problem", None) or error).strip().splitlines() or ["unreadable"]
        line = f":{mark.line + 1}" if mark else ""
        raise BadInput(Problem(f"broken YAML: {said[0]}", f"{where}{line}", "correct the file")) from None


def _references_in(nodes: Sequence[Node]) -> Iterator[tuple[ScalarNode, str]]:
    """Yield all that may name a file, wherever it stands: an anchor may put it into a service."""
    seen: set[int] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, SequenceNode):
            waiting += node.value
        elif isinstance(node, MappingNode):
            for key, value in node.value:
                waiting.append(value)
                if key.value in _OF_FILES:
                    yield from _scalars(value, key.value)
                elif key.value == "extends" and isinstance(value, MappingNode):
                    yield from ((one, "extends") for each, one in value.value if each.value == "file")


def _scalars(node: Node, kind: str) -> Iterator[tuple[ScalarNode, str]]:
    if isinstance(node, ScalarNode):
        yield node, kind
    elif isinstance(node, SequenceNode):
        for one in node.value:
            yield from _scalars(one, kind)
    elif isinstance(node, MappingNode):
        for key, one in node.value:
            if key.value in ("path", "env_file", "project_directory"):
                yield from _scalars(one, kind if key.value == "path" else key.value)


@dataclass(frozen=True)
class _Said:
    """What Compose said of a project: its content, or why it refuses it."""

    content: Mapping[str, Any] = field(default_factory=dict)
    failure: str | None = None
    unset: tuple[str, ...] = ()


@lru_cache(maxsize=_KEPT)
def _read(files: tuple[Path, ...], env_file: Path | None, stamps: object) -> _Said:  # noqa: ARG001 # the files' states
    """Return what Compose makes of files; cells of a series have the same ones."""
    options = [part for one in files for part in ("--file", str(one))]
    return _config(files[0].parent, env_file, *options)


def _config(folder: Path, env_file: Path | None, *options: str, stdin: str = "") -> _Said:
    """Run `docker compose config`, without this shell's environment."""
    docker = shutil.which("docker")
    if docker is None:
        raise _missing("there is no docker client here")
    # Compose looks for the user's plugins in the client's folder.
    client = os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")  # noqa: PTH111 # a text
    given = ("--env-file", str(env_file)) if env_file else ()
    command = [docker, "--config", client, "compose", "--project-name", "connlab-own", "--profile", "*", *given]
    # A home that nothing lies in: nobody's files come in by `~`. Nothing is fetched.
    environment = {"HOME": "/~", "PWD": str(folder)}
    environment |= {f"COMPOSE_EXPERIMENTAL_{one}_REMOTE": "false" for one in ("GIT", "OCI")}
    try:
        done = subprocess.run(
            [*command, "--project-directory", str(folder), *options, "config", "--format", "json"],
            input=stdin.encode(),
            capture_output=True,
            cwd=folder,
            env=environment,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"'docker compose config' did not end within {_TIMEOUT_S} s") from None
    stderr = done.stderr.decode(errors="replace")
    unset = tuple(sorted(set(_UNSET.findall(stderr)) - {"HOME", "PWD"}))
    if done.returncode:
        lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("time=")]
        if any("is not a docker command" in one or "unknown flag" in one or "unknown command" in one for one in lines):
            raise _missing("the docker client here has no Compose of version 2")
        return _Said(failure="\n  ".join(lines) or f"exit code {done.returncode}", unset=unset)
    return _Said(_undoubled(json.loads(done.stdout)), unset=unset)


def _missing(what: str) -> LabError:
    hint = "install Docker's command line with Compose 2.24 or newer (Debian: docker-cli, docker-compose)"
    return LabError(f"{what}, and 'docker compose config' reads a scenario's Compose file", hint=hint)


def interpolate(text: str, folder: Path, env_file: Path | None) -> str:
    """Return a text of a Compose file with its variables filled in, by Compose itself."""
    content = {"services": {"one": {"image": "one", "labels": {"text": text}}}}
    said = _config(folder, env_file, "--file", "-", stdin=json.dumps(content))
    try:
        return str(said.content["services"]["one"]["labels"]["text"])
    except (KeyError, TypeError):
        return text


def exposed_port(image: str) -> int | None:
    """Return the port that an image says it listens on; None if it says none or several, or is not here."""
    command = ["docker", "image", "inspect", "--format", "{{json .Config.ExposedPorts}}", "--", image]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
        found = [one.partition("/")[0] for one in json.loads(done.stdout or "null") or () if one.endswith("/tcp")]
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return int(found[0]) if len(found) == 1 else None


def _undoubled(value: Any) -> Any:  # noqa: ANN401 # JSON
    """Return what Compose says as it means it: it prints each dollar sign twice."""
    if isinstance(value, dict):
        return {key: _undoubled(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_undoubled(one) for one in value]
    return value.replace("$$", "$") if isinstance(value, str) else value


def _refusal(said: _Said, files: Sequence[Path], lines: Sequence[Document]) -> Problem:
    """Return why Compose refuses a project, in its own words, at their place."""
    text, where = said.failure or "", paths.shown(files[0])
    for file in files:
        text = text.replace(f"validating {file}: ", "").replace(f"{file}: ", "")
    if match := _YAML_LINE.search(text):
        where, text = f"{where}:{match[1]}", text.replace(match[0], "")
    elif match := _NAMED.search(text) or re.search(r'service "([^"]+)"', text):
        location: Location = tuple(match[0].split(".")) if match[0].startswith("s") and "." in match[0] else ()
        location = location or ("services", match[match.re.groups])
        for one in reversed(lines):
            if location[:2] in one.lines:
                where = one.where(location)
                break
    hint = "correct the file; 'docker compose config' there says the same"
    if "required variable" in text:
        hint = "write it into .env beside the file"
    elif said.unset:
        hint = f"these variables have no value: {', '.join(said.unset)}; write them into .env beside the file"
    elif "env file" in text or "no such file" in text:
        hint = "put the file there"
    return Problem(f"Docker Compose refuses it: {text.removesuffix(': invalid compose project')}", where, hint)
