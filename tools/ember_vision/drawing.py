"""Pictures of all kinds, by the size that they are to have."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tools.ember_vision.fonts import Fonts
from tools.ember_vision.pages import draw_chart, draw_lines, draw_receipt, draw_signs
from tools.ember_vision.scene import CELL, Scene, any_scale
from tools.ember_vision.shapes import draw_shapes

Draw = Callable[[Scene], None]
KINDS: dict[str, tuple[Draw, float, tuple[int, int]]] = {
    "lines": (draw_lines, 3, (2, 2)),
    "shapes": (draw_shapes, 3.5, (2, 2)),
    "signs": (draw_signs, 2.5, (4, 4)),
    "receipt": (draw_receipt, 2.5, (12, 10)),
    "chart": (draw_chart, 4.5, (8, 10)),
}
"""How each kind is drawn, how often, and the fewest rows and columns of cells that it needs."""


def draw(rng: Random, fonts: Fonts, rows: int, columns: int, kind: str | None = None) -> Scene:
    """A picture of so many cells, with at least one question."""
    while True:
        fitting = [k for k, (_, _, (r, c)) in KINDS.items() if rows >= r and columns >= c]
        chosen = kind or rng.choices(fitting, [KINDS[k][1] for k in fitting])[0]
        scene = Scene(rng, fonts, rows * CELL, columns * CELL, any_scale(rng))
        KINDS[chosen][0](scene)
        if scene.asked:
            return scene
