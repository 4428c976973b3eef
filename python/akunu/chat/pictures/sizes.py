"""To what size each family of models brings an image, and into how many tiles it cuts it.

The formulas are those of the families' image processors in Transformers, rounding included: another size is
another image to the model. Sizes are (height, width) in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from akunu.base.errors import ImageError

__all__ = [
    "GEMMA4_BUDGETS",
    "best_grid",
    "check_aspect",
    "crops",
    "longest_edge",
    "smart_resize",
    "whole_patches",
    "whole_tiles",
    "within_budget",
]

Size = tuple[int, int]

GEMMA4_BUDGETS: Final = (70, 140, 280, 560, 1120)
"""Tokens that a Gemma 4 model may be given for an image."""
_MOST_ASPECT: Final = 200
_LONGEST: Final = 4096


def smart_resize(size: Size, factor: int, least: int, most: int, *, shortest: int = 0) -> Size:
    """The size in whole multiples of `factor`, from `least` to `most` pixels, for Qwen's models and LFM2-VL.

    Parameters
    ----------
    size, factor, least, most
        As said.
    shortest
        What a side is rounded up to before the pixels are counted.
    """
    height, width = (max(shortest, round(side / factor) * factor) for side in size)
    area = size[0] * size[1]
    if height * width < least:
        grow = math.sqrt(least / area)
        height, width = (math.ceil(side * grow / factor) * factor for side in size)
    if height * width > most:
        shrink = math.sqrt(area / most)
        height, width = (max(factor, math.floor(side / shrink / factor) * factor) for side in size)
        longest = max(most // factor // factor, 1) * factor  # of an image that is one multiple wide
        return min(height, longest), min(width, longest)
    return height, width


def check_aspect(size: Size) -> None:
    """Refuse what Qwen's models cannot be shown.

    Raises
    ------
    ImageError
        The image is more than 200 times as long as wide.
    """
    height, width = size
    if max(size) > _MOST_ASPECT * min(size):
        raise ImageError(
            f"image: it has {width} × {height} pixels; this model takes one that is at most {_MOST_ASPECT} "
            "times as long as wide"
        )


def within_budget(size: Size, factor: int, tokens: int) -> Size:
    """The size for Gemma 4: as large as `tokens` squares of `factor` pixels allow, which it may take up."""
    height, width = size
    grow = math.sqrt(tokens * factor**2 / (height * width))
    rows, columns = math.floor(grow * height / factor), math.floor(grow * width / factor)
    if rows == 0:
        rows, columns = 1, min(max(1, math.floor(width / height)), tokens)
    elif columns == 0:
        rows, columns = min(max(1, math.floor(height / width)), tokens), 1
    return rows * factor, columns * factor


def whole_patches(size: Size, factor: int, longest: int) -> Size:
    """The size for Pixtral: within a square of `longest`, then up to whole multiples of `factor`."""
    height, width = size
    ratio = max(height / longest, width / longest)
    if ratio > 1:
        height, width = math.floor(height / ratio), math.floor(width / ratio)
    # A side can become shorter than a pixel.
    return (max(height - 1, 0) // factor + 1) * factor, (max(width - 1, 0) // factor + 1) * factor


def longest_edge(size: Size, longest: int) -> Size:
    """The size for Idefics 3: the longer side as given, the other in proportion and even."""
    height, width = size
    aspect = width / height
    if width >= height:
        width = longest
        height = int(width / aspect)
        height += height % 2
    else:
        height = longest
        width = int(height * aspect)
        width += width % 2
    height, width = max(height, 1), max(width, 1)
    aspect = width / height
    if width >= height and width > _LONGEST:
        return max(int(_LONGEST / aspect), 1), _LONGEST
    if height > width and height > _LONGEST:
        return _LONGEST, max(int(_LONGEST * aspect), 1)
    return height, width


def whole_tiles(size: Size, tile: int) -> Size:
    """The size of an image that is cut into squares of `tile` pixels, as Idefics 3 has them."""
    height, width = size
    aspect = width / height
    if width >= height:
        width = math.ceil(width / tile) * tile
        height = math.ceil(int(width / aspect) / tile) * tile
    else:
        height = math.ceil(height / tile) * tile
        width = math.ceil(int(height * aspect) / tile) * tile
    return max(height, tile), max(width, tile)


@lru_cache(maxsize=16)
def _grids(least: int, most: int) -> list[tuple[int, int]]:
    """Grids, (columns, rows), of so many tiles, the fewest first; the order among equals is Transformers'."""
    found = {
        (columns, rows)
        for n in range(least, most + 1)
        for columns in range(1, n + 1)
        for rows in range(1, n + 1)
        if least <= columns * rows <= most
    }
    return sorted(found, key=lambda grid: grid[0] * grid[1])


def best_grid(size: Size, tile: int, least: int, most: int) -> tuple[int, int]:
    """The rows and columns of tiles whose shape is nearest to the image's, for LFM2-VL."""
    height, width = size
    best, best_difference = (1, 1), math.inf
    for grid in _grids(least, most):
        difference = abs(width / height - grid[0] / grid[1])
        if difference < best_difference:
            best, best_difference = grid, difference
        elif difference == best_difference and height * width > 0.5 * tile * tile * grid[0] * grid[1]:
            best = grid
    return best[1], best[0]


def crops(size: Size, least: int, most: int, ratio: float) -> Iterator[tuple[slice, slice]]:
    """The parts of a long image, of which Gemma 3 is shown each besides the whole (pan and scan).

    Parameters
    ----------
    size
        The size of the image.
    least
        Shortest side of a part.
    most
        Most parts.
    ratio
        How many times as long as wide an image has to be.
    """
    height, width = size
    long, short = max(size), min(size)
    if long / short < ratio:
        return
    count = min(most, max(2, min(math.floor(long / least), math.floor(long / short + 0.5))))
    step = math.ceil(long / count)
    if min(step, short) < least:
        return
    for i in range(count):
        part, whole = slice(step * i, step * (i + 1)), slice(None)
        yield (whole, part) if width >= height else (part, whole)
