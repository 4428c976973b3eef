"""A file that is there whole or not at all, whoever else writes it at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["PART", "whole_file", "whole_path"]

PART: Final = ".part"
"""End of the names that files have until they are whole."""

_NAME: Final = 40
"""Characters of a file's name in that of its part, which may not be too long where the file's is not."""


@contextmanager
def whole_path(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes `path` at the end; nothing is left of an unfinished file.

    A file of that name is replaced. What is no file, such as a device or a pipe, is written as it is.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    part = path.with_name(f".{path.name[:_NAME]}.{os.urandom(8).hex()}{PART}")
    try:
        yield part
        os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == os.fspath(part):
            error.filename, error.filename2 = os.fspath(path), None
        raise


@contextmanager
def whole_file(path: Path, *, mode: int = 0o666, synced: bool = True) -> Iterator[BinaryIO]:
    """A file to write, open, as by `whole_path`.

    Parameters
    ----------
    path
        What it becomes.
    mode
        Permissions, less the process's umask.
    synced
        It is on the disk before it has its name, so a power cut leaves no empty file there.
    """
    with whole_path(path) as part:
        if part == path:
            with open(path, "wb") as file:
                yield file
            return
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
