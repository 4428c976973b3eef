"""Pictures of ember-vision's generator in Pillow's own font, which its training does not have."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any

from PIL import ImageFont

from tools.ember_vision.fonts import Fonts

__all__ = ["PillowsFont"]


class PillowsFont(Fonts):
    """One font for all, which needs no files."""

    def __init__(self) -> None:
        super().__init__(())

    def draw(self, rng: Random, size: int) -> Any:
        return _font(size)


@lru_cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size)
