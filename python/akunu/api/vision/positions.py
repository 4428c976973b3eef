"""Vectors of positions that were learned for a square of patches, for images of other shapes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from akunu.api.vision.family import Spread
from akunu.base.errors import InvalidArgumentError

__all__ = ["spread_positions"]


def spread_positions(
    table: npt.NDArray[np.float32], height: int, width: int, spread: Spread
) -> npt.NDArray[np.float32]:
    """The vectors of an image's patches, row by row, float32 [height * width, dim].

    Parameters
    ----------
    table
        Those of a square [side * side, dim], or of columns and then of rows.
    height, width
        The size of the image, in patches.
    spread
        How they are spread over the image.
    """
    if spread == "sides":
        columns, rows = np.split(table, 2)
        if height > len(rows) or width > len(columns):
            raise InvalidArgumentError(
                f"an image of {height} x {width} patches, expected at most {len(rows)} on a side"
            )
        return (rows[:height, None] + columns[None, :width]).reshape(height * width, -1)
    side = round(len(table) ** 0.5)
    square = table.reshape(side, side, -1)
    if spread == "smooth":
        resized = np.einsum("hi,wj,ijd->hwd", _resizing(side, height), _resizing(side, width), square)
        return np.asarray(resized.reshape(height * width, -1), np.float32)
    if spread == "parts":
        rows_of_parts = square[_parts(side, height)][:, _parts(side, width)]
        return rows_of_parts.reshape(height * width, -1)
    down, between_down = _places(side, height)
    across, between_across = _places(side, width)
    top, bottom = square[down], square[np.minimum(down + 1, side - 1)]
    rows = top + (bottom - top) * between_down[:, None, None]
    left = rows[:, across]
    found: npt.NDArray[np.float32] = rows[:, np.minimum(across + 1, side - 1)]
    # In place: they are larger than caches, so that each pass counts.
    found -= left
    found *= between_across[None, :, None]
    found += left
    return found.reshape(height * width, -1)


def _resizing(side: int, n: int) -> npt.NDArray[np.float64]:
    """The share that each of `side` places has in each of n, [n, side]."""
    scale = side / n
    centre = (np.arange(n) + 0.5) * scale - 0.5
    shares = np.maximum(0, 1 - np.abs(np.arange(side) - centre[:, None]) / max(scale, 1))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float64)


def _parts(side: int, n: int) -> npt.NDArray[np.int64]:
    """The part, of `side`, in which each of n patches begins."""
    # Transformers rounds them so.
    borders = np.arange(1 / side, 1.0, 1 / side).astype(np.float32)
    begins = np.minimum(np.arange(n, dtype=np.float32) * np.float32(1 / n), np.float32(1 - 1e-6))
    found: npt.NDArray[np.int64] = np.searchsorted(borders, begins, side="right")
    return found


def _places(side: int, n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return where n patches lie on `side` places: the place before each, and how far it is behind that."""
    at = np.linspace(0, side - 1, n, dtype=np.float32)
    before = at.astype(np.int64)
    return before, at - before.astype(np.float32)
