"""Inputs in the place of tokens: rows of images, what they are known by, and how they turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from akunu._core import EncodedRows
    from akunu.api.vision.towers import TowerSpec

__all__ = ["Encoded", "Inputs", "Placed", "place"]


@dataclass(frozen=True, eq=False)
class Encoded:
    """The rows that a tower made of an image.

    Attributes
    ----------
    rows
        Its rows, in the core.
    grid
        How many of them there are from top to bottom and from left to right.
    key
        A hash of what they follow from: the image and the tower.
    """

    rows: EncodedRows
    grid: tuple[int, int]
    key: bytes


@dataclass(frozen=True, eq=False)
class Placed:
    """Rows of an image that stand in a prompt, in the places of its tokens from `start` on."""

    start: int
    image: Encoded
    first: int
    count: int


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs that a prompt of n tokens has besides them.

    Attributes
    ----------
    contents : numpy.ndarray
        Hashes of what stands at each position in the place of its token, uint64 [n]; 0 where the token does.
    rows : tuple of Placed
        The rows, in order.
    positions : numpy.ndarray | None
        By what each position turns, uint32 [n, 3]; None: by its index.
    """

    contents: npt.NDArray[np.uint64]
    rows: tuple[Placed, ...]
    positions: npt.NDArray[np.uint32] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `Engine.begin`, besides `contents`."""
        found: dict[str, Any] = {
            "inputs": [(part.start, part.image.rows, part.first, part.count) for part in self.rows]
        }
        if self.positions is not None:
            found["positions"] = self.positions
        return found


def place(n: int, parts: Iterable[Placed], spec: TowerSpec) -> Inputs:
    """The inputs of a prompt of `n` tokens, in which there are these parts, in order.

    Parameters
    ----------
    n
        Its tokens, those in whose place rows stand with them.
    parts
        Where the rows stand.
    spec
        The tower's that made them.
    """
    rows = tuple(parts)
    contents = np.zeros(n, np.uint64)
    for part in rows:
        contents[part.start : part.start + part.count] = _hashes(part)
    return Inputs(contents, rows, _positions(n, rows) if spec.turning is not None else None)


def _hashes(part: Placed) -> npt.NDArray[np.uint64]:
    """Return the hashes that rows are known by: no two of one image, or of two, are alike."""
    seed = int.from_bytes(blake2b(part.image.key, digest_size=8).digest(), "little")
    with np.errstate(over="ignore"):  # SplitMix64 (Steele et al., 2014)
        x = np.uint64(seed) + np.arange(part.first, part.first + part.count, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return np.where(x == 0, np.uint64(1), x)


def _positions(n: int, rows: Iterable[Placed]) -> npt.NDArray[np.uint32]:
    """Time, row and column of each position. A token's are one more than the greatest before it."""
    found = np.empty((n, 3), np.uint32)
    at = following = 0
    for part in rows:
        gap = part.start - at
        found[at : part.start] = (following + np.arange(gap))[:, None]
        following += gap
        height, width = part.image.grid
        numbers = np.arange(part.first, part.first + part.count)
        at = part.start + part.count
        found[part.start : at, 0] = following
        found[part.start : at, 1] = following + numbers // width
        found[part.start : at, 2] = following + numbers % width
        following += max(height, width)
    found[at:] = (following + np.arange(n - at))[:, None]
    return found
