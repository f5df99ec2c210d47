"""The files of evidence that a user names, told apart by their content."""

import gzip
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from analysis.evidence import given_logs
from formats.manifest import EvidenceKind
from formats.safe_files import names_below, open_below, open_regular
from formats.sanitize import visible
from lab import paths
from lab.errors import BadInput, Problem
from lab.observe.inspect.dumps import Snapshot, parse_dump
from lab.observe.inspect.other_systems import OtherSystemError
from lab.reading.validation_messages import nearest_beside

# https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-05.html, https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html
_CAPTURES: Final = (
    bytes.fromhex("a1b2c3d4"), bytes.fromhex("d4c3b2a1"), bytes.fromhex("a1b23c4d"), bytes.fromhex("4d3cb2a1"),
    bytes.fromhex("0a0d0d0a"), bytes.fromhex("a1b2cd34"), bytes.fromhex("34cdb2a1"), b"snoop\0\0\0",
)  # fmt: skip
# How captures of other programs begin, by libwiretap of Wireshark, which converts them.
_FOREIGN_CAPTURES: Final = {
    b"GMBU": "Network Monitor", b"RTSS": "Network Monitor", b"iptrace ": "AIX iptrace", b"TRSNIFF data": "Sniffer",
}  # fmt: skip
_GZIP: Final = b"\x1f\x8b"
# A paste has some kilobytes, a day of them a second apart some megabytes.
_TEXT_MAX: Final = 64 << 20
_UNPACKED_MAX: Final = 16 << 30
_BLOCK: Final = 1 << 20
_HEAD: Final = 1 << 16
_FILES_MAX: Final = 1000
# The lines by which a log is recognised.
_LINES: Final = 50
# What tcpdump prints when it ends.
_TCPDUMP_END: Final = re.compile(
    r"(\d{1,15}) packets? captured\s+(\d{1,15}) packets? received by filter\s+(\d{1,15}) packets? dropped by kernel"
)
_HINT: Final = (
    "it takes captures (pcap, pcapng, snoop), pasted output of nstat, netstat and ss, and logs of nginx and HAProxy"
)


@dataclass(frozen=True, slots=True)
class Given:
    """One file.

    Attributes:
        group: the folder below the one that was named; files of one group are of one host. Empty for all others.
        snapshots: of a dump.
        tcpdump: what tcpdump printed when it ended: packets captured, received, and dropped by the kernel.
    """

    path: Path
    kind: EvidenceKind
    group: str = ""
    snapshots: list[Snapshot] = field(default_factory=list)
    tcpdump: tuple[int, int, int] | None = None

    @property
    def shown(self) -> str:
        """Its name for messages and pages."""
        return visible(f"{self.group}/{self.path.name}" if self.group else self.path.name)


def find_files(
    named: Sequence[Path], dumps: Sequence[Path] = (), logs: Mapping[EvidenceKind, Sequence[Path]] | None = None
) -> tuple[list[Given], list[str]]:
    """Return the files of evidence, and the names of those in folders that are none.

    Args:
        named: files and folders, told apart by their content.
        dumps: files that must be dumps.
        logs: files that must be logs of a kind.

    Raises:
        BadInput: a file that was named is not there, or is nothing that can be read here.
    """
    problems: list[Problem] = []
    found: list[Given] = []
    passed: list[str] = []
    wanted: list[tuple[Path, EvidenceKind | None]] = [(each, None) for each in named]
    wanted += [(each, "dump") for each in dumps]
    wanted += [(each, kind) for kind, files in (logs or {}).items() for each in files]
    for path, kind in wanted:
        try:
            if path.is_dir():
                _of_folder(path, found, passed)
            else:
                found.append(_one(path.resolve(strict=True), kind, ""))
        except BadInput as error:
            problems += error.problems
        except OSError as error:
            hint = nearest_beside(path) if isinstance(error, FileNotFoundError) else None
            problems.append(Problem(error.strerror or str(error), paths.shown(path), hint))
    if problems:
        raise BadInput(problems)
    if not found:
        names = ", ".join(map(paths.shown, named)) or "nothing"
        raise BadInput(Problem(f"there is no evidence in {names}", hint=_HINT))
    return found, passed


def _of_folder(folder: Path, found: list[Given], passed: list[str]) -> None:
    """Take what a folder and the folders in it hold; what is no evidence is skipped, and named."""
    folder = folder.resolve()
    names = names_below(folder.parent, folder.name)
    for group in ("", *(each[:-1] for each in names if each.endswith("/"))):
        for name in sorted(names_below(folder, group) if group else names, key=_place):
            if name.endswith("/"):
                continue
            inside = f"{group}/{name}" if group else name
            if len(found) + len(passed) >= _FILES_MAX:
                raise BadInput(
                    Problem(f"has more than {_FILES_MAX} files", paths.shown(folder), "name those that count")
                )
            try:
                # Its name alone is opened: what a folder from somebody else links to is not evidence.
                open_below(folder, inside).close()
                found.append(_one(folder / inside, None, group))
            except OSError as error:
                passed.append(f"{inside}: {error.strerror}")
            except BadInput as error:
                # In a folder, the dump of another system is skipped and named; it does not end the command.
                passed += [f"{inside}: {each.what}" for each in error.problems]


def _place(name: str) -> tuple[int, str]:
    """Return where a file of a folder stands: dumps that tell no time count in this order."""
    return ("after" in name.lower()) - ("before" in name.lower()), name


def _one(path: Path, wanted: EvidenceKind | None, group: str) -> Given:
    with open_regular(path) as file:
        head = file.read(_HEAD)
    if not head:
        raise BadInput(Problem("is empty", paths.shown(path)))
    if head.startswith(_GZIP):
        head = _unpacked_head(head)
    if of := next((program for begins, program in _FOREIGN_CAPTURES.items() if head.startswith(begins)), None):
        what, hint = f"is a capture of {of}", f"convert it: editcap -F pcap {path.name} {path.stem}-converted.pcap"
        raise BadInput(Problem(what, paths.shown(path), hint))
    kind: EvidenceKind | None = None
    if head.startswith(_CAPTURES):
        kind = "capture"
        if wanted is not None:
            raise BadInput(Problem(f"is a capture, and was named as {wanted}", paths.shown(path)))
    elif wanted != "dump":
        kind = wanted or given_logs.kind_of(head.splitlines()[:_LINES])
    return _dump(path, group) if kind is None else Given(path, kind, group)


def _dump(path: Path, group: str) -> Given:
    text = b"".join(read_unpacked(path, _TEXT_MAX)).decode("utf-8", "replace")
    try:
        snapshots = parse_dump(text)
    except OtherSystemError as error:
        raise BadInput(Problem(f"is {error}", paths.shown(path), "the lab reads Linux's")) from None
    ended = _TCPDUMP_END.search(text)
    if not ended and not any(each.tells_of_kernel for each in snapshots):
        raise BadInput(Problem("is no capture, dump or log that the lab knows", paths.shown(path), _HINT))
    return Given(path, "dump", group, snapshots, (int(ended[1]), int(ended[2]), int(ended[3])) if ended else None)


def _unpacked_head(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, _HEAD)
    except zlib.error:
        return head


def read_unpacked(path: Path, most: int = _UNPACKED_MAX) -> Iterable[bytes]:
    """Yield a file's content, unpacked if gzip has packed it.

    Raises:
        BadInput: it has more than `most` bytes, or is damaged.
        OSError: it cannot be read.
    """
    with open_regular(path) as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        source = gzip.GzipFile(fileobj=file) if packed else file
        total = 0
        try:
            while block := source.read(_BLOCK):
                total += len(block)
                if total > most:
                    raise BadInput(Problem(f"has more than {most >> 20:,} MiB", paths.shown(path)))
                yield block
        except (EOFError, zlib.error, gzip.BadGzipFile):
            # What was packed before the damage counts: a capture that is cut is read up to there.
            if not total:
                raise BadInput(Problem("is damaged: gzip cannot unpack it", paths.shown(path))) from None


def slug(text: str, taken: Iterable[str]) -> str:
    """Return a name for an instance out of a file's, different from those that are taken."""
    base = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "capture"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name
