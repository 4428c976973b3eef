"""Sizes of ember-vision, apart from the PyTorch model, so that the export needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.ember.model_config import Config as Stack
from tools.ember_vision.scene import CELL
from tools.ember_vision.tokens import SIZE

MERGE = 2  # patches on the side of a cell
PATCH = CELL // MERGE
VALUES = 3 * PATCH**2
LONGEST = 384  # pixels of a picture's longer side: larger ones are made smaller
MEAN = DEVIATION = 0.5


def _tower() -> Stack:
    return Stack(vocab=0, dim=256, layers=5, heads=4, kv_heads=4, ffn=768)


def _text() -> Stack:
    return Stack(vocab=SIZE, dim=256, layers=6, heads=4, kv_heads=2, ffn=640, context=2048)


@dataclass(frozen=True)
class Config:
    """Pixtral's tower and a Llama; both have the same blocks."""

    tower: Stack = field(default_factory=_tower)
    text: Stack = field(default_factory=_text)

    @classmethod
    def tiny(cls) -> Config:
        """For tests."""
        return cls(
            Stack(vocab=0, dim=64, layers=2, heads=2, kv_heads=2, ffn=128),
            Stack(vocab=SIZE, dim=64, layers=2, heads=2, kv_heads=1, ffn=128, context=2048),
        )
