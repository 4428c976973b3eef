"""A file that is there whole or not at all, whoever else writes it at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["PART", "whole_file"]

PART: Final = ".part"
"""End of the names that files have until they are whole."""


@contextmanager
def whole_file(path: Path, *, mode: int = 0o666, synced: bool = True) -> Iterator[BinaryIO]:
    """A file to write, which becomes `path` at the end; nothing is left of one that is not finished.

    Parameters
    ----------
    path
        A file of that name is replaced. What is no file, such as a device or a pipe, is written as it is.
    mode
        Permissions, less the process's umask.
    synced
        It is on the disk before it has its name, so a power cut leaves no empty file there.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.urandom(8).hex()}{PART}")
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
