"""A picture, what can be asked about it, and what stands in each of its cells."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.ember_vision.fonts import Fonts

CELL = 16  # pixels on the side of what becomes one row of the model's input
SLOTS = 3  # characters of a cell that the training names
SHAPES = (
    "circle", "square", "triangle", "star", "rectangle", "diamond", "cross", "heart", "ring", "hexagon",
)  # fmt: skip
COLOURS = {
    "red": (215, 35, 40), "green": (35, 150, 60), "blue": (40, 80, 210), "yellow": (245, 210, 40),
    "orange": (245, 135, 25), "purple": (135, 50, 165), "pink": (245, 130, 180), "brown": (125, 75, 35),
    "black": (20, 20, 20), "white": (250, 250, 250), "grey": (135, 135, 135),
}  # fmt: skip
COLOUR_NAMES = tuple(COLOURS)
Colour = tuple[int, int, int]
Asked = tuple[str, str]


def near(rng: Random, colour: str) -> Colour:
    """A colour by its name, not always the same."""
    red, green, blue = (min(255, max(0, value + rng.randint(-14, 14))) for value in COLOURS[colour])
    return red, green, blue


def luminance(colour: Colour) -> float:
    """How bright it is, from 0 to 255."""
    return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]


@dataclass
class Scene:
    """A picture being drawn, in `scale` times its final size.

    `asked` are questions with their answers. `cells` [rows, columns, SLOTS + 2] has the characters whose
    middles lie in a cell, from left to right, the shape (1 + its number) and the colour (1 + its number).
    """

    rng: Random
    fonts: Fonts
    height: int
    width: int
    scale: float = 1.0
    background: Colour = (255, 255, 255)
    asked: list[Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        from PIL import Image

        self.image = Image.new(
            "RGB", (round(self.width * self.scale), round(self.height * self.scale)), self.background
        )
        self.cells: NDArray[np.uint8] = np.zeros(
            (self.height // CELL, self.width // CELL, SLOTS + 2), np.uint8
        )

    @cached_property
    def pen(self) -> Any:
        from PIL import ImageDraw

        return ImageDraw.Draw(self.image)

    def mark(self, x: float, y: float, shape: str, colour: str) -> None:
        """Say that the middle of a shape is here, in pixels of the final picture."""
        cell = self._cell(x, y)
        if cell is not None:
            cell[SLOTS] = 1 + SHAPES.index(shape) if shape else 0
            cell[SLOTS + 1] = 1 + COLOUR_NAMES.index(colour)

    def _cell(self, x: float, y: float) -> Any:
        row, column = int(y // CELL), int(x // CELL)
        rows, columns = self.cells.shape[:2]
        return self.cells[row, column] if 0 <= row < rows and 0 <= column < columns else None

    def font(self, size: float) -> Any:
        """A font whose letters are about so many pixels high in the final picture, line gap included."""
        return self.fonts.draw(self.rng, max(6, round(size * self.scale)))

    def measure(self, text: str, font: Any) -> tuple[float, float]:
        """Width and height of a line of text, in pixels of the final picture."""
        ascent, descent = font.getmetrics()
        return font.getlength(text) / self.scale, (ascent + descent) / self.scale

    def write(self, x: float, y: float, text: str, font: Any, colour: Colour) -> None:
        """A line of text with its upper left corner here, in pixels of the final picture."""
        self.pen.text((x * self.scale, y * self.scale), text, font=font, fill=colour)
        ascent, _ = font.getmetrics()
        row = y + (0.62 * ascent) / self.scale
        at = x
        for letter in text:
            advance = font.getlength(letter) / self.scale
            if letter != " " and (cell := self._cell(at + advance / 2, row)) is not None:
                free = np.flatnonzero(cell[:SLOTS] == 0)
                if len(free):
                    cell[free[0]] = ord(letter) - 31
            at += advance

    def finished(self) -> NDArray[np.uint8]:
        """The picture at its final size, uint8 [height, width, 3], now and then through a JPEG."""
        from PIL import Image

        image = self.image
        if image.size != (self.width, self.height):
            how = self.rng.choice(
                (Image.Resampling.BICUBIC, Image.Resampling.BICUBIC, Image.Resampling.BILINEAR)
            )
            image = image.resize((self.width, self.height), how)
        if self.rng.random() < 0.12:
            data = io.BytesIO()
            image.save(data, "JPEG", quality=self.rng.randint(45, 92))
            image = Image.open(data).convert("RGB")
        return np.asarray(image)


def any_scale(rng: Random) -> float:
    """How many times larger a picture is drawn than it is shown, as photographs and screenshots are."""
    return rng.choices((1.0, 1.5, 2.0), (6, 1, 3))[0]


def papers(rng: Random) -> tuple[Colour, Colour, str]:
    """A background and a colour to write with, far enough apart; and the name of the latter."""
    if rng.random() < 0.5:
        return (255, 255, 255), near(rng, "black"), "black"
    while True:
        name = rng.choice(COLOUR_NAMES)
        ink = near(rng, name)
        paper = rng.choice(
            (near(rng, rng.choice(COLOUR_NAMES)), (rng.randint(225, 255),) * 3, (rng.randint(5, 50),) * 3)
        )
        if abs(luminance(ink) - luminance(paper)) > 70:
            return paper, ink, name
