"""Small JSON files that come with a model. They are not trusted: a file is read whole or refused at once."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any, Final, NoReturn

from akunu.base.errors import ModelFileError

__all__ = ["parse_object", "read_list", "read_object", "read_optional", "read_text"]

LIMIT: Final = 16 << 20


def read_text(path: Path, *, limit: int = LIMIT) -> str:
    """The text of a regular file of at most `limit` bytes.

    Raises
    ------
    ModelFileError
        There is no such file, it cannot be read, is longer, or is not UTF-8.
    """
    try:
        # Opening a named pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(f"{path}: is not a regular file")
            if status.st_size > limit:
                raise ModelFileError(f"{path}: has {status.st_size} bytes; at most {limit} are accepted")
            data = file.read(limit)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path}: is not UTF-8 text (at byte {error.start})") from error


def read_object(path: Path, *, limit: int = LIMIT) -> dict[str, Any]:
    """The JSON object in a file; a key that occurs twice in an object is an error, as are NaN and Infinity.

    Raises
    ------
    ModelFileError
        As `read_text`, or it is not valid JSON, or no object.
    """
    return parse_object(read_text(path, limit=limit), path)


def parse_object(text: str, where: object) -> dict[str, Any]:
    """The JSON object that a text is, by the rules of `read_object`; errors begin with `where`."""
    value = _parsed(text, where)
    if not isinstance(value, dict):
        raise ModelFileError(f"{where}: found {type(value).__name__}, expected a JSON object")
    return value


def read_optional(path: Path) -> dict[str, Any]:
    """The JSON object in a file, or an empty one where there is no such file.

    A link that leads nowhere is an error: the file was meant to be there.
    """
    return read_object(path) if os.path.lexists(path) else {}


def read_list(path: Path) -> list[Any]:
    """The JSON array in a file, read as by `read_object`."""
    value = _parsed(read_text(path), path)
    if not isinstance(value, list):
        raise ModelFileError(f"{path}: found {type(value).__name__}, expected a JSON array")
    return value


def _parsed(text: str, path: object) -> object:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            counts = Counter(key for key, _ in items)
            twin = counts.most_common(1)[0][0]
            raise ModelFileError(f"{path}: the key {twin!r} occurs twice in an object")
        return found

    def constant(name: str) -> NoReturn:
        raise ModelFileError(f"{path}: is not valid JSON: {name} is no number")

    try:
        value: object = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:  # also an integer of thousands of digits
        raise ModelFileError(f"{path}: is not valid JSON: {error}") from error
    return value
