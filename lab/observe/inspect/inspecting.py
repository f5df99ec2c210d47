"""Inspects files from elsewhere: makes the folder of an observation out of them, and has it analysed."""

import contextlib
import re
import tempfile
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from analysis.evidence.given_logs import READERS
from formats.manifest import EvidenceKind
from lab.errors import BadInput, Problem
from lab.observe.inspect.files import find_files, slug
from lab.observe.inspect.folder import InspectOptions, write_folder
from lab.observe.inspect.hosts import group_files, join_dumps, order_hosts, reduce_captures
from lab.reading.validation_messages import did_you_mean
from lab.runs import run_results
from lab.runs.run_folders import point_latest

_SERVER = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<v4>[0-9.]+)):(?P<port>\d{1,5})")


def parse_server(text: str) -> str:
    """Return a server as captures spell it.

    Raises:
        BadInput: it is no address with a port.
    """
    match = _SERVER.fullmatch(text)
    port = int(match["port"]) if match else 0
    if match is not None and 0 < port < 1 << 16:
        with contextlib.suppress(ValueError):
            return f"{ip_address(match['v6'] or match['v4'])}:{port}"
    raise BadInput(Problem(f"'{text}' is not an address and a port", "--server", "give it as 10.0.0.7:443"))


def parse_logs(named: Sequence[str]) -> dict[EvidenceKind, list[Path]]:
    """Return the files of logs by their kinds.

    Raises:
        BadInput: one has no kind, or one that there is not.
    """
    found: dict[EvidenceKind, list[Path]] = {}
    for each in named:
        kind, equals, path = each.partition("=")
        known = next((one for one in READERS if one == kind), None)
        if known is None or not equals:
            what = f"'{each}' names no kind of log" if not equals else f"'{kind}' is no kind of log"
            hint = did_you_mean(kind, READERS) or f"give it as KIND=FILE, with one of {', '.join(READERS)}"
            if not equals and Path(each).exists():
                hint = f"give the file without --log, or as {next(iter(READERS))}={each}; kinds: {', '.join(READERS)}"
            raise BadInput(Problem(what, "--log", hint))
        found.setdefault(known, []).append(Path(path))
    return found


def inspect(
    named: Sequence[Path],
    dumps_named: Sequence[Path],
    logs: dict[EvidenceKind, list[Path]],
    options: InspectOptions,
    command: Sequence[str],
) -> tuple[Path, list[str]]:
    """Make a run's folder of evidence, analyse it, and return it, with the names of files that are no evidence.

    Raises:
        BadInput: a file is not there, or cannot be read as what it is.
        LabError: the folder cannot be written, or `flows` is missing.
    """
    given, passed = find_files(named, dumps_named, logs)
    hosts = group_files(given)
    with tempfile.TemporaryDirectory(prefix="connlab-inspect-") as scratch:
        reduce_captures(hosts, Path(scratch), options.server_address)
        hosts = order_hosts(join_dumps(hosts))
        name = slug(Path(named[0]).resolve().stem if named else given[0].path.stem, ())
        folder = write_folder(hosts, Path(scratch), name, options, command)
    run_results.analyse_run(folder)
    point_latest(folder)
    return folder, passed
