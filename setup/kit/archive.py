"""The archive: writing it, and taking it in.

archive.py write FOLDER ARCHIVE VERSION COMMIT DEBIAN   packs what bundle.sh has put into the folder
archive.py unpack ARCHIVE FOLDER COMMIT DEBIAN          checks all of it, and unpacks it; the images are written anew
"""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import json
import posixpath
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

MANIFEST, IMAGES = "kit.json", "images.tar.gz"
# The images as the engine gets them: written anew.
WRITTEN_ANEW = "images.tar"
FORMAT = 2
BAD_INPUT = 2
CHUNK = 1 << 20
MANIFEST_BYTES_MAX = 1 << 20
# What `docker load` may have to store: a small archive can unpack to any size.
IMAGES_BYTES_MAX, IMAGES_FILES_MAX = 16 << 30, 10_000
JSON_BYTES_MAX = 1 << 20
# `docker save` packs to about a third; while they are loaded, the images are there unpacked.
IMAGES_GROW_BY = 3

NEEDED = {IMAGES, "flows", "python/version", "python/requirements.lock"}
PART = r"[A-Za-z0-9][A-Za-z0-9.+~_-]*"
PIECES = re.compile(rf"images\.tar\.gz|flows|repository\.bundle|python/{PART}|debian/(?:dists|pool)(?:/{PART})+")
SHA256 = re.compile(r"[0-9a-f]{64}")
FACTS = {
    "version": re.compile(r"[0-9A-Za-z.+-]{1,40}"),
    "commit": re.compile(r"[0-9a-f]{40}"),
    "platform": re.compile(r"[0-9A-Za-z._-]{1,60}"),
    "python": re.compile(r"\d+\.\d+"),
    "debian": re.compile(r"[a-z]{0,20}"),
}


class Refused(Exception):
    """Why a kit is not taken, and what to do about it."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint


# What reading an archive comes to that is none.
_DAMAGE = (tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError, RecursionError, OSError)
ANOTHER = "ask for the kit again, and compare its SHA-256 with the one that `make bundle` printed"


@dataclass(frozen=True)
class Piece:
    """One file of the archive."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What the archive is for and holds; `debian` is empty if it has no packages of Debian's."""

    version: str
    commit: str
    platform: str
    python: str
    debian: str
    sources: dict[str, str]
    pieces: dict[str, Piece]


@dataclass(frozen=True)
class Here:
    """The machine and the tree that take a kit in; `sources` says what each image is made from."""

    commit: str
    debian: str
    sources: Callable[[], dict[str, str]]
    platform: str = sysconfig.get_platform()
    python: str = f"{sys.version_info[0]}.{sys.version_info[1]}"


# --- writing --------------------------------------------------------------------------------------------------


def write(folder: Path, archive: Path, version: str, here: Here) -> None:
    """Pack a folder; the manifest comes first."""
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    if strange := [name for name in names if not PIECES.fullmatch(name)]:
        raise Refused(f"a kit has no place for {strange[0]}", "mend setup/bundle.sh, or PIECES in setup/kit/archive.py")
    pieces = {name: _piece(folder / name) for name in names}
    with tempfile.TemporaryDirectory(dir=folder.parent) as apart, (folder / IMAGES).open("rb") as file:
        images = _Images(file, Path(apart) / WRITTEN_ANEW)
    sources = here.sources()
    images.must_be_of(sources)
    facts = {"version": version, "commit": here.commit, "platform": here.platform, "python": here.python}
    stated = {"sources": sources, "pieces": {name: asdict(piece) for name, piece in pieces.items()}}
    manifest = {"kit": FORMAT, **facts, "debian": here.debian, **stated}
    text = json.dumps(manifest | {"sha256": checksum(manifest)}, indent=1)
    with tarfile.open(archive, "w") as tar:
        _add(tar, MANIFEST, len(text.encode()), io.BytesIO(text.encode()))
        for name, piece in pieces.items():
            with (folder / name).open("rb") as file:
                _add(tar, name, piece.size, file)


def checksum(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of what a manifest says, its own checksum left out."""
    said = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _piece(file: Path) -> Piece:
    with file.open("rb") as opened:
        return Piece(file.stat().st_size, hashlib.file_digest(opened, "sha256").hexdigest())


def _add(tar: tarfile.TarFile, name: str, size: int, content: BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    tar.addfile(member, content)


# --- taking in ------------------------------------------------------------------------------------------------


def unpack(archive: Path, folder: Path, here: Here) -> Manifest:
    """Check the whole archive, and unpack it into a new folder; take nothing if anything is wrong."""
    folder.mkdir(parents=True)
    try:
        with _opened(archive) as tar:
            manifest = _manifest(tar)
            _must_fit(manifest, here)
            _must_have_room(manifest, folder)
            images = _pieces(tar, manifest, folder)
        _must_be_made_here(manifest, here.sources())
        images.must_be_of(manifest.sources)
        (folder / "base").write_text(images.base_label)
        (folder / "flows.source").write_text(f"{manifest.sources['flows']}\n")
        if manifest.debian != here.debian:
            shutil.rmtree(folder / "debian", ignore_errors=True)
    except BaseException as error:
        shutil.rmtree(folder)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise Refused("there is no room for the kit below .cache", "make room") from error
        if isinstance(error, _DAMAGE):
            raise Refused(f"the kit cannot be taken in: {str(error)!a}", ANOTHER) from error
        raise
    return manifest


def _opened(archive: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(archive, "r:")
    except (OSError, tarfile.TarError) as error:
        raise Refused(
            f"{archive} cannot be read as a kit: {error}", "name the file that `make bundle` wrote"
        ) from error


def _members(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, BinaryIO]]:
    """Each file of the archive, and no link, device or folder."""
    for member in tar:
        content = tar.extractfile(member) if member.isreg() and not member.issparse() else None
        if content is None:
            raise Refused(f"the kit holds {member.name!a}, which is not a plain file", ANOTHER)
        yield member, content  # type: ignore[misc] # what `extractfile` gives reads bytes


def _manifest(tar: tarfile.TarFile) -> Manifest:
    first = next(_members(tar), None)
    if first is None or first[0].name != MANIFEST or first[0].size > MANIFEST_BYTES_MAX:
        raise Refused(f"the archive does not begin with {MANIFEST}, so it is not a kit", ANOTHER)
    try:
        known = json.loads(first[1].read())
        if known["kit"] != FORMAT:
            raise Refused(
                f"the kit's format is {known['kit']!a:.20}, and this lab reads {FORMAT}",
                "take the lab's version that wrote it",
            )
        if known["sha256"] != checksum(known):
            raise Refused(f"the kit's {MANIFEST} is damaged: its SHA-256 differs", ANOTHER)
        facts = {name: _text(known[name], pattern) for name, pattern in FACTS.items()}
        sources = {str(name): str(fingerprint) for name, fingerprint in known["sources"].items()}
        pieces = {name: _stated(name, of) for name, of in known["pieces"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(f"the kit's {MANIFEST} cannot be read: {ascii(error)[:200]}", ANOTHER) from error
    return Manifest(**facts, sources=sources, pieces=pieces)


def _text(value: Any, pattern: re.Pattern[str]) -> str:  # noqa: ANN401 # whatever stands in a file
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(value)
    return value


def _stated(name: str, of: dict[str, Any]) -> Piece:
    """Refuse a piece without a place of its own in the folder: one that leads out of it, above all."""
    if not PIECES.fullmatch(name):
        raise Refused(f"the kit would write to {name!a}, which is not a place of a kit", ANOTHER)
    if type(of["size"]) is not int or of["size"] < 0:
        raise ValueError(of["size"])
    return Piece(of["size"], _text(of["sha256"], SHA256))


def _must_fit(manifest: Manifest, here: Here) -> None:
    unlike = []
    if manifest.platform != here.platform:
        unlike.append(f"it is for {manifest.platform}, and this machine is {here.platform}")
    if manifest.python != here.python:
        unlike.append(f"its packages are for Python {manifest.python}, and this machine has {here.python}")
    if manifest.commit != here.commit:
        unlike.append(f"it is of commit {manifest.commit} ({manifest.version}), and this folder is at {here.commit}")
    if not unlike:
        return
    hint = "ask for a kit that was made on a machine like this one"
    if len(unlike) == 1 and manifest.commit != here.commit:
        hint = "clone the repository that the kit holds (docs/kit.md), or make a kit from this commit"
    raise Refused(f"the kit does not fit: {'; '.join(unlike)}", hint)


def _must_be_made_here(manifest: Manifest, here: dict[str, str]) -> None:
    if others := sorted(name for name in here if manifest.sources.get(name) != here[name]):
        raise Refused(
            f"the kit has {', '.join(others)} made from other sources than those of this folder",
            "undo what was changed here since the commit (`git status` lists it), and load the kit again",
        )


def _must_have_room(manifest: Manifest, folder: Path) -> None:
    needed = sum(piece.size * (IMAGES_GROW_BY if name == IMAGES else 1) for name, piece in manifest.pieces.items())
    if (free := shutil.disk_usage(folder).free) < needed:
        raise Refused(f"the kit needs {needed >> 20} MiB below .cache, and {free >> 20} MiB are free", "make room")


def _pieces(tar: tarfile.TarFile, manifest: Manifest, folder: Path) -> _Images:
    """Unpack each piece as the manifest states it, once; the images are written anew."""
    missing = dict(manifest.pieces)
    images = None
    for member, content in itertools.islice(_members(tar), 1, None):
        stated = missing.pop(member.name, None)
        if stated is None:
            raise Refused(f"the kit holds {member.name!a}, which its {MANIFEST} does not name, or twice", ANOTHER)
        read = _Hashed(content)
        if member.name == IMAGES:
            images = _Images(read, folder / WRITTEN_ANEW)
        else:
            target = folder / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                shutil.copyfileobj(read, file, CHUNK)
        if (member.size, read.digest()) != (stated.size, stated.sha256):
            raise Refused(f"{member.name} is not what the kit's {MANIFEST} says: its SHA-256 differs", ANOTHER)
    lacking = {*missing, *(NEEDED - set(manifest.pieces))}
    if images is None or lacking:
        raise Refused(f"the kit lacks {', '.join(sorted(lacking))}", ANOTHER)
    return images


class _Hashed(io.RawIOBase):
    """What is read of a file, and its SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash = file, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        content = self._file.read(size)
        self._hash.update(content)
        return content

    def digest(self) -> str:
        """Give the SHA-256 of the whole file."""
        while self.read(CHUNK):
            pass
        return self._hash.hexdigest()


class _Images:
    """The images that `docker save` wrote, written anew: an archive that engines cannot read in two ways.

    Two members with one name, a second list of images, what stands behind the archive's end: which of it counts
    depends on the program that reads it. So only files are taken, each under a number, with a list of images that is
    made from what was looked at. The engine gets this archive.
    """

    def __init__(self, file: io.RawIOBase | BinaryIO, target: Path) -> None:
        with tarfile.open(target, "w") as written:
            files, links = _copied(file, written)
        try:
            with tarfile.open(target) as written:
                images = _json(written, files["manifest.json"])
                tags = {tag: (files[of["Config"]], of["Layers"]) for of in images for tag in of["RepoTags"]}
                configs = {tag: _json(written, config) for tag, (config, _) in tags.items()}
            # An older engine's `docker save` writes a layer once, and links to it.
            made = [
                {"Config": config, "RepoTags": [tag], "Layers": [files[links.get(layer, layer)] for layer in layers]}
                for tag, (config, layers) in tags.items()
            ]
            base = configs.pop("connlab/base:latest")
            self._labels = {tag: config["config"]["Labels"]["connlab.source"] for tag, config in configs.items()}
            self.base_label = str(base["config"]["Labels"]["connlab.base"])
            self._labels["connlab/base:latest"] = self.base_label.partition(".")[0]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Refused(f"the kit's images cannot be read: {ascii(error)[:200]}", ANOTHER) from error
        text = json.dumps(made).encode()
        with tarfile.open(target, "a") as written:
            _add(written, "manifest.json", len(text), io.BytesIO(text))

    def must_be_of(self, sources: dict[str, str]) -> None:
        """Refuse images that are not made from these sources, and any under a name that is not the lab's."""
        wanted = {f"connlab/{name}:latest": fingerprint for name, fingerprint in sources.items() if name != "flows"}
        if strange := set(self._labels) ^ set(wanted):
            raise Refused(f"the kit's images are not those of a run: {min(strange)!a}", ANOTHER)
        if others := [tag for tag, label in self._labels.items() if label != wanted[tag]]:
            raise Refused(f"the image {others[0]} is not made from the sources that the kit names", ANOTHER)


def _copied(file: io.RawIOBase | BinaryIO, written: tarfile.TarFile) -> tuple[dict[str, str], dict[str, str]]:
    """Copy each file of an archive under a number; return the numbers by names, and where links lead."""
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    size = 0
    with tarfile.open(fileobj=file, mode="r|gz") as tar:
        for member in tar:
            size += member.size
            if size > IMAGES_BYTES_MAX or len(files) + len(links) >= IMAGES_FILES_MAX:
                raise Refused(f"the kit's images are larger than {IMAGES_BYTES_MAX >> 30} GiB", ANOTHER)
            name = posixpath.normpath(member.name)
            if name in files or name in links:
                raise Refused(f"the kit's images hold {member.name!a} twice", ANOTHER)
            if member.issym():
                links[name] = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
            elif member.isreg() and not member.issparse():
                files[name] = f"{len(files)}"
                _add(written, files[name], member.size, tar.extractfile(member))  # type: ignore[arg-type] # a file
    return files, links


def _json(tar: tarfile.TarFile, name: str) -> Any:  # noqa: ANN401 # whatever stands in a file
    member = tar.getmember(name)
    if member.size > JSON_BYTES_MAX:
        raise ValueError(f"{member.size} bytes of JSON")
    return json.loads(tar.extractfile(member).read())  # type: ignore[union-attr] # it is a file


# --- the command line -----------------------------------------------------------------------------------------


def _sources() -> dict[str, str]:
    """What each image is made from here: images.sh knows it."""
    script = Path(__file__).parents[1] / "images.sh"
    said = subprocess.run([script, "fingerprints"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(line.split() for line in said.splitlines())


def main(verb: str, *words: str) -> None:
    """Do what the set-up's scripts ask for."""
    if verb == "write":
        folder, archive, version, commit, debian = words
        write(Path(folder), Path(archive), version, Here(commit, debian, _sources))
    else:
        archive, folder, commit, debian = words
        unpack(Path(archive), Path(folder), Here(commit, debian, _sources))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refused as refused:
        print(f"connlab set-up: {refused}\nconnlab set-up: hint: {refused.hint}", file=sys.stderr)  # noqa: T201
        sys.exit(BAD_INPUT)
