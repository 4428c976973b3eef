"""Vectors of positions that were learned for a square of patches, for images of other shapes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["spread_positions"]


def spread_positions(table: npt.NDArray[np.float32], height: int, width: int) -> npt.NDArray[np.float32]:
    """The vectors of an image's patches, row by row, float32 [height * width, dim].

    The square of `table`, [side * side, dim], lies over the image from corner to corner; each patch has the
    mean of the four vectors around it, by how near they are.
    """
    side = round(len(table) ** 0.5)
    square = table.reshape(side, side, -1)
    down, between_down = _places(side, height)
    across, between_across = _places(side, width)
    top, bottom = square[down], square[np.minimum(down + 1, side - 1)]
    rows = top + (bottom - top) * between_down[:, None, None]
    left, right = rows[:, across], rows[:, np.minimum(across + 1, side - 1)]
    found: npt.NDArray[np.float32] = left + (right - left) * between_across[None, :, None]
    return found.reshape(height * width, -1)


def _places(side: int, n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Where n patches lie on `side` places: the place before each, and how far it is behind that."""
    at = np.linspace(0, side - 1, n, dtype=np.float32)
    before = at.astype(np.int64)
    return before, at - before
