"""Values that a caller gives: what a number may be, what a path is, and errors that say so."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from akunu.base.errors import InvalidArgumentError

__all__ = ["FLOAT32_MAX", "Limit", "as_model_name", "as_path", "flag"]

FLOAT32_MAX: Final = 3.4028234663852886e38  # what the engine computes with


@dataclass(frozen=True, slots=True)
class Limit:
    """The values that one number may take."""

    kind: type[int] | type[float]
    low: float
    high: float
    open_low: bool = False

    def check(self, name: str, value: object) -> Any:
        """`value` as `kind`, or an `InvalidArgumentError` that states the limits."""
        number = _as_integer(value) if self.kind is int else _as_float(value)
        above = number is not None and (number > self.low if self.open_low else number >= self.low)
        if number is None or not (above and number <= self.high):  # written so that NaN fails
            raise InvalidArgumentError(f"{name}: found {value!r:.80}, expected {self}")
        return number

    def __str__(self) -> str:
        kind = "an integer" if self.kind is int else "a number"
        if self.high == math.inf:
            if self.low == -math.inf:
                return kind
            return f"{kind} {'above' if self.open_low else 'of at least'} {_show(self.low)}"
        return f"{kind} in {'(' if self.open_low else '['}{_show(self.low)}, {_show(self.high)}]"


def as_path(name: str, value: object) -> Path:
    """The file or folder that an argument names.

    Raises
    ------
    InvalidArgumentError
        It is empty, neither a text nor a path, or no file can have that name.
    """
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        raise InvalidArgumentError(f"{name}: expected a path, got {value!r} ({type(value).__name__})")
    try:  # the system's calls would raise errors that are none of theirs
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise InvalidArgumentError(f"{name}: no file can have the name {path!r}")
    return Path(path)


def as_model_name(name: str, value: object) -> str:
    """The name or path of a model that an argument gives.

    Raises
    ------
    InvalidArgumentError
        It is empty, or neither a text nor a path.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(text, str):
        raise InvalidArgumentError(
            f"{name}: expected a text or a path, got {value!r} ({type(value).__name__})"
        )
    if not text:
        raise InvalidArgumentError(f"{name}: expected the name of a model, got an empty text")
    return text


def _show(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def _as_integer(value: object) -> int | None:
    """An int from an int or an integer of NumPy; None for anything else, bool and 3.0 included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(cast(Any, value))
    except TypeError:  # an array has the method too, whatever is in it
        return None


def _as_float(value: object) -> float | None:
    if isinstance(value, bool | str | bytes) or not (
        hasattr(value, "__float__") or hasattr(value, "__index__")
    ):
        return None
    try:
        return float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        return None


def flag(name: str, value: object, *, default: bool) -> bool:
    """`value`, or the default for None; an `InvalidArgumentError` if it is anything but True or False."""
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name}: found {value!r:.80}, expected True or False")
    return value
