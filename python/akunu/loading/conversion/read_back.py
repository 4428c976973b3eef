"""Read back what new files say of a model: every number has to be that of the old files."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import is_dataclass

import numpy as np

from akunu.base.errors import UnsupportedError
from akunu.files.describe.config import ModelConfig

__all__ = ["close", "refuse_difference"]


def refuse_difference(
    wanted: ModelConfig, found: ModelConfig, where: object, what: str, *, but: Container[str] = ()
) -> None:
    """Raise unless both are the same, except for the order of rotated rows and heads of values.

    `where` are the old files, and `what` should say in the new ones what it cannot. Fields `but` may differ.
    """
    others = found.numbers()
    for field, value in wanted.numbers().items():
        other = others.get(field)
        if (
            not field.endswith((".style", "delta_net.grouped"))
            and field not in but
            and not close(value, other)
        ):
            raise UnsupportedError(
                f"{where}: {field}: found {_shown(value)}, which {what} cannot say; "
                f"it would be {_shown(other)}"
            )


def close(one: object, other: object) -> bool:
    """Whether values are the same, numbers up to rounding to 32 bits."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-5, atol=0))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-5)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(close(value, getattr(other, field)) for field, value in vars(one).items())
    return one == other


def _shown(value: object) -> str:
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return np.array2string(np.asarray(value).reshape(-1), threshold=6, precision=4)
    return str(value)
