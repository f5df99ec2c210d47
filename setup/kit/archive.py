"""The archive: writing it, and taking it in.

archive.py write FOLDER ARCHIVE VERSION COMMIT DEBIAN   packs what bundle.sh has put into the folder
archive.py unpack ARCHIVE FOLDER COMMIT DEBIAN          checks all of it, and unpacks all but the images
archive.py images ARCHIVE                               gives the images out, for `docker load`
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

MANIFEST, IMAGES = "kit.json", "images.tar.gz"
FORMAT = 1
BAD_INPUT = 2
CHUNK = 1 << 20
MANIFEST_BYTES_MAX = 1 << 20
# What `docker load` may have to store: a small archive can unpack to any size.
IMAGES_BYTES_MAX = 16 << 30
JSON_BYTES_MAX, JSON_BYTES_MAX_IN_ALL = 1 << 18, 1 << 24
IMAGE_NAME = "io.containerd.image.name"

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

    def __init__(self, why: str, way_on: str) -> None:
        super().__init__(why)
        self.way_on = way_on


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
    """The machine and the tree that take a kit in; `sources` says what each image is made from over a given base."""

    commit: str
    debian: str
    sources: Callable[[str], dict[str, str]]
    platform: str = sysconfig.get_platform()
    python: str = f"{sys.version_info[0]}.{sys.version_info[1]}"


# --- writing --------------------------------------------------------------------------------------------------


def write(folder: Path, archive: Path, version: str, here: Here) -> None:
    """Pack a folder; the manifest comes first."""
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    if strange := [name for name in names if not PIECES.fullmatch(name)]:
        raise Refused(f"a kit has no place for {strange[0]}", "mend setup/bundle.sh, or PIECES in setup/kit/archive.py")
    pieces = {name: _piece(folder / name) for name in names}
    with (folder / IMAGES).open("rb") as file:
        images = _Images(file)
    sources = here.sources(images.base)
    images.must_be_of(sources)
    facts = {"version": version, "commit": here.commit, "platform": here.platform, "python": here.python}
    manifest = {"kit": FORMAT, **facts, "debian": here.debian, "sources": sources}
    text = json.dumps(manifest | {"pieces": {name: asdict(piece) for name, piece in pieces.items()}}, indent=1)
    with tarfile.open(archive, "w") as tar:
        _add(tar, MANIFEST, len(text.encode()), io.BytesIO(text.encode()))
        for name, piece in pieces.items():
            with (folder / name).open("rb") as file:
                _add(tar, name, piece.size, file)


def _piece(file: Path) -> Piece:
    with file.open("rb") as opened:
        return Piece(file.stat().st_size, hashlib.file_digest(opened, "sha256").hexdigest())


def _add(tar: tarfile.TarFile, name: str, size: int, content: BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    tar.addfile(member, content)


# --- taking in ------------------------------------------------------------------------------------------------


def unpack(archive: Path, folder: Path, here: Here) -> Manifest:
    """Check the whole archive, and unpack all but the images into a new folder; take nothing if anything is wrong."""
    folder.mkdir(parents=True)
    try:
        with _opened(archive) as tar:
            manifest = _manifest(tar)
            _must_fit(manifest, here)
            _must_have_room(manifest, folder)
            images = _pieces(tar, manifest, folder)
        _must_be_made_here(manifest, here.sources(images.base))
        images.must_be_of(manifest.sources)
        (folder / "base").write_text(images.base_label)
        (folder / "flows.source").write_text(f"{manifest.sources['flows']}\n")
        if manifest.debian != here.debian:
            shutil.rmtree(folder / "debian", ignore_errors=True)
    except BaseException as error:
        shutil.rmtree(folder)
        if isinstance(error, (tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError, OSError)):
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
    way_on = "ask for a kit that was made on a machine like this one"
    if len(unlike) == 1 and manifest.commit != here.commit:
        way_on = "clone the repository that the kit holds (docs/kit.md), or make a kit from this commit"
    raise Refused(f"the kit does not fit: {'; '.join(unlike)}", way_on)


def _must_be_made_here(manifest: Manifest, here: dict[str, str]) -> None:
    if others := sorted(name for name in here if manifest.sources.get(name) != here[name]):
        raise Refused(
            f"the kit has {', '.join(others)} made from other sources than those of this folder",
            "undo what was changed here since the commit (`git status` lists it), and load the kit again",
        )


def _must_have_room(manifest: Manifest, folder: Path) -> None:
    needed = sum(piece.size for name, piece in manifest.pieces.items() if name != IMAGES)
    if (free := shutil.disk_usage(folder).free) < needed:
        raise Refused(f"the kit needs {needed >> 20} MiB below .cache, and {free >> 20} MiB are free", "make room")


def _pieces(tar: tarfile.TarFile, manifest: Manifest, folder: Path) -> _Images:
    """Unpack each piece as the manifest states it, once; the images are only looked at."""
    missing = dict(manifest.pieces)
    images = None
    for member, content in itertools.islice(_members(tar), 1, None):
        stated = missing.pop(member.name, None)
        if stated is None:
            raise Refused(f"the kit holds {member.name!a}, which its {MANIFEST} does not name, or twice", ANOTHER)
        read = _Hashed(content)
        if member.name == IMAGES:
            images = _Images(read)
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
    """What `docker save` wrote: the names, the configurations and the base of its images."""

    def __init__(self, file: io.RawIOBase | BinaryIO) -> None:
        texts: dict[str, bytes] = {}
        read = kept = 0
        with tarfile.open(fileobj=file, mode="r|gz") as tar:
            for member in tar:
                read += member.size
                if read > IMAGES_BYTES_MAX:
                    raise Refused(f"the kit's images are larger than {IMAGES_BYTES_MAX >> 30} GiB", ANOTHER)
                if member.isreg() and member.size <= JSON_BYTES_MAX and kept < JSON_BYTES_MAX_IN_ALL:
                    kept += member.size
                    texts[member.name] = tar.extractfile(member).read()  # type: ignore[union-attr] # it is a file
        try:
            images = json.loads(texts["manifest.json"])
            configs = {tag: json.loads(texts[of["Config"]]) for of in images for tag in of["RepoTags"]}
            # An engine with containerd's store takes the names from here.
            index = json.loads(texts["index.json"])["manifests"]
            named = [of["annotations"][IMAGE_NAME] for of in index if IMAGE_NAME in of.get("annotations", {})]
            self._names = {*configs, *(name.removeprefix("docker.io/") for name in named)}
            base = configs.pop("connlab/base:latest")
            self._labels = {tag: config["config"]["Labels"]["connlab.source"] for tag, config in configs.items()}
            self.base_label = str(base["config"]["Labels"]["connlab.base"])
            self._labels["connlab/base:latest"] = self.base_label.partition(".")[0]
            self.base = f"[{' '.join(base['rootfs']['diff_ids'])}] {self.base_label}"
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Refused(f"the kit's images cannot be read: {ascii(error)[:200]}", ANOTHER) from error

    def must_be_of(self, sources: dict[str, str]) -> None:
        """Refuse images that are not made from these sources, and any under a name that is not the lab's."""
        wanted = {f"connlab/{name}:latest": fingerprint for name, fingerprint in sources.items() if name != "flows"}
        if strange := self._names ^ set(wanted):
            raise Refused(f"the kit's images are not those of a run: {min(strange)!a}", ANOTHER)
        if others := [tag for tag, label in self._labels.items() if label != wanted[tag]]:
            raise Refused(f"the image {others[0]} is not made from the sources that the kit names", ANOTHER)


# --- the command line -----------------------------------------------------------------------------------------


def _sources(base: str) -> dict[str, str]:
    """What each image is made from here, over this base: images.sh knows it."""
    script = Path(__file__).parents[1] / "images.sh"
    said = subprocess.run([script, "fingerprints", base], check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(line.split() for line in said.splitlines())


def main(verb: str, *words: str) -> None:
    """Do what the set-up's scripts ask for."""
    if verb == "write":
        folder, archive, version, commit, debian = words
        write(Path(folder), Path(archive), version, Here(commit, debian, _sources))
    elif verb == "unpack":
        archive, folder, commit, debian = words
        unpack(Path(archive), Path(folder), Here(commit, debian, _sources))
    else:
        with _opened(Path(words[0])) as tar:
            shutil.copyfileobj(tar.extractfile(IMAGES), sys.stdout.buffer, CHUNK)  # type: ignore[arg-type] # a kit that was unpacked has it


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refused as refused:
        print(f"connlab set-up: {refused}\nconnlab set-up: way on: {refused.way_on}", file=sys.stderr)  # noqa: T201
        sys.exit(BAD_INPUT)
