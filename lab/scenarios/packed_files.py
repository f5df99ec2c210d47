"""Files that a container gets in its environment: packed into one value, which both engines carry alike."""

import base64
import gzip
import io
import tarfile
from collections.abc import Mapping


def pack_files(files: Mapping[str, bytes]) -> str:
    """Return files by their paths below a folder, as base64 of a compressed archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return base64.b64encode(gzip.compress(packed.getvalue(), mtime=0)).decode()
