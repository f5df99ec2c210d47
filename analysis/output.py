"""Writes derived files. The run's folder may come from anybody, and others may write there while the lab does.

No link leads a writer elsewhere: a file is written in a folder of the writer's own, which is entered by its descriptor
and not by a name that somebody could give to another one, and then takes its place.
"""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from formats.field_types import check_numbers

# The context in which a file is read that somebody else may have written.
FROM_ANYBODY = object()
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Written(BaseModel):
    """A part of a JSON file that the analysis writes, or all of it: nothing else stands there, and nothing changes it.

    Attributes:
        indent: by how much the file is indented.
        sorts: whether its keys stand in the order of the alphabet; else in that of the model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)

    indent: ClassVar[int] = 2
    sorts: ClassVar[bool] = False

    @field_validator("*")
    @classmethod
    def _bounded(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a number too large to be shown or compared, in a file that may come from anybody."""
        if info.context is FROM_ANYBODY:
            check_numbers(value)
        return value

    def to_json(self) -> str:
        """Return the content of the file."""
        content = self.model_dump(mode="json", by_alias=True)
        text = json.dumps(content, indent=self.indent, sort_keys=self.sorts, ensure_ascii=False, allow_nan=False)
        return text + "\n"


class DerivedFile(Written):
    """A JSON file of derived/, whole.

    Attributes:
        file: where it lies in the folder of the run, or of the series.
    """

    file: ClassVar[Path]

    def write(self, folder: Path) -> None:
        """Write it into the folder of the run, or of the series, that has a derived/; raise OSError if that fails."""
        write(folder / self.file, self.to_json())


def make_folder(folder: Path) -> None:
    """Make the folder of derived files, if it is not there; a link in its place is removed."""
    if folder.is_symlink():
        folder.unlink()
    folder.mkdir(mode=0o755, exist_ok=True)


def write(path: Path, content: str) -> None:
    """Write a file so that a reader never sees half of it, and an older one stays until the new one is whole."""
    with replacing(path) as partial:
        partial.write_text(content, encoding="utf-8")


def copy_rows(execute: Callable[[str], object], query: str, path: Path) -> None:
    """Write what a query gives as Parquet, in the order in which the query gives it; raise OSError if that fails."""
    with replacing(path) as partial:
        target = str(partial).replace("'", "''")
        execute(f"COPY ({query}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name under which to write a file, which takes its place when it is whole.

    Raises:
        OSError: it cannot be written, or its folder is a link.
    """
    try:
        folder = os.open(path.parent, _FOLDER)
    except NotADirectoryError as error:
        raise NotADirectoryError(error.errno, "is a link or a file, not a folder", str(path.parent)) from None
    own = f".{uuid4()}.partial"
    try:
        try:
            os.mkdir(own, 0o700, dir_fd=folder)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(path)) from None
        inside = os.open(own, _FOLDER, dir_fd=folder)
        try:
            partial = Path(f"/proc/self/fd/{inside}") / path.name
            yield partial
            partial.chmod(0o644)
            try:
                os.replace(path.name, path.name, src_dir_fd=inside, dst_dir_fd=folder)
            except IsADirectoryError:
                raise IsADirectoryError(errno.EISDIR, "a folder stands where this file belongs", str(path)) from None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=inside)
            os.close(inside)
            with suppress(OSError):
                os.rmdir(own, dir_fd=folder)
    finally:
        os.close(folder)
