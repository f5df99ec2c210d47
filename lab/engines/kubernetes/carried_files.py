"""Files of this machine in a pod: they travel in ConfigMaps, packed, and a container of the pod's start unpacks them.

A folder of a ConfigMap's own would have other names in it, no programs, no links and no file of more than a mebibyte.
"""

import base64
import gzip
import io
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from lab import paths
from lab.engines.role_containers import RoleContainer

# A ConfigMap holds a mebibyte in all; what is not content is small.
_PIECE_BYTES = 1_000_000
# A cluster keeps all of its objects in one small database.
_PACKED_MAX = 16 * _PIECE_BYTES
# So much is not even packed: it is no folder of configurations.
_READ_MAX = 256 << 20
_UNPACKED, _PACKED = "/files", "/packed"
# A folder that the container has already keeps its rights.
_UNPACK = 'cat "$1"/* | tar --extract --gzip --preserve-permissions --no-same-owner --directory "$2"'
VOLUME = "files"


class TooLarge(Exception):
    """There is more than the lab gives a cluster to keep; the words say of what."""


@dataclass(frozen=True)
class _Carried:
    """One place of a container.

    Attributes:
        alone: the name of the file that is mounted alone; empty for a folder.
    """

    target: str
    volume: str
    alone: str


@dataclass(frozen=True)
class CarriedFiles:
    """What a container reads that is not of its image.

    Attributes:
        packed: an archive with a folder for each place; empty if there is none.
    """

    places: tuple[_Carried, ...]
    packed: bytes

    def config_maps(self, name: str, **metadata: object) -> list[dict[str, Any]]:
        """Return the ConfigMaps that carry the archive, and what besides they have of metadata."""
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": map_name, **metadata},
                "immutable": True,
                "binaryData": {key: base64.b64encode(piece).decode()},
            }
            for map_name, key, piece in self._pieces(name)
        ]

    def _pieces(self, name: str) -> Iterator[tuple[str, str, bytes]]:
        for number, begin in enumerate(range(0, len(self.packed), _PIECE_BYTES)):
            yield f"{name}-files-{number}", f"{number:03}", self.packed[begin : begin + _PIECE_BYTES]

    def volumes(self, name: str) -> list[dict[str, Any]]:
        """Return the volumes of a pod; `name` is that of its ConfigMaps."""
        if not self.places:
            return []
        sources = [{"configMap": {"name": map_name}} for map_name, _, _ in self._pieces(name)]
        unpacked = dict.fromkeys(one.volume for one in self.places)
        return [{"name": VOLUME, "projected": {"sources": sources}}, *({"name": n, "emptyDir": {}} for n in unpacked)]

    def unpacker(self) -> list[dict[str, Any]]:
        """Return what of a container unpacks the files at the pod's start; none if there is nothing to unpack."""
        if not self.places:
            return []
        volumes = dict.fromkeys(one.volume for one in self.places)
        mounts = [{"name": one, "mountPath": f"{_UNPACKED}/{one}"} for one in volumes]
        packed = {"name": VOLUME, "mountPath": _PACKED, "readOnly": True}
        command = ["sh", "-c", _UNPACK, "sh", _PACKED, _UNPACKED]
        return [{"name": VOLUME, "command": command, "volumeMounts": [packed, *mounts]}]

    def mounts(self) -> list[dict[str, Any]]:
        """Return the mounts of the container that reads them."""
        return [
            {
                "name": one.volume,
                "mountPath": one.target,
                "readOnly": True,
                **({"subPath": one.alone} if one.alone else {}),
            }
            for one in self.places
        ]


def carry_files(made: RoleContainer) -> CarriedFiles:
    """Pack what a container reads of this machine, and what of the scenario itself.

    Raises:
        TooLarge: it is more than a cluster should keep.
        OSError: it cannot be read.
    """
    return pack(
        {one.target: one.source for one in made.mounts if one.kind == "host"},
        {target: content.encode() for target, content in made.files.items()},
    )


def pack(sources: Mapping[str, Path], written: Mapping[str, bytes]) -> CarriedFiles:
    """Pack files and folders, and files by their content, each by its place; raises as `carry_files`."""
    places: list[_Carried] = []
    stream, read = io.BytesIO(), 0
    with (
        gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w|", format=tarfile.GNU_FORMAT) as archive,
    ):
        for target, source in sources.items():
            volume, alone = f"{VOLUME}-{len(places)}", "" if source.is_dir() else source.name
            places.append(_Carried(target, volume, alone))
            for file in _below(source) if source.is_dir() else [source]:
                name = alone or file.relative_to(source).as_posix()
                member = archive.gettarinfo(file, f"{volume}/{name}")
                if not (member.isfile() or member.isdir() or member.issym()):
                    continue
                read += member.size
                if read > _READ_MAX or stream.tell() > _PACKED_MAX:
                    raise TooLarge(f"{paths.shown(source)} has more than {_PACKED_MAX >> 20} MiB, packed")
                _anonymous(member)
                if member.isfile():
                    with file.open("rb") as opened:
                        archive.addfile(member, opened)
                else:
                    archive.addfile(member)
        for target, content in written.items():
            volume, alone = f"{VOLUME}-{len(places)}", PurePosixPath(target).name
            places.append(_Carried(target, volume, alone))
            member = tarfile.TarInfo(f"{volume}/{alone}")
            member.size, member.mode = len(content), 0o444
            archive.addfile(member, io.BytesIO(content))
    if len(stream.getvalue()) > _PACKED_MAX:
        named = ", ".join(paths.shown(one) for one in sources.values())
        raise TooLarge(f"{named} has more than {_PACKED_MAX >> 20} MiB, packed")
    return CarriedFiles(tuple(places), stream.getvalue() if places else b"")


def _below(folder: Path) -> Sequence[Path]:
    """Return all that lies below a folder; what lies behind a link is not there."""
    return sorted(Path(base, name) for base, folders, files in os.walk(folder) for name in (*folders, *files))


def _anonymous(member: tarfile.TarInfo) -> None:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
