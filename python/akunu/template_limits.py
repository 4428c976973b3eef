"""What a chat template may use up, and the count of what is left."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2.utils import Namespace

from akunu.errors import TemplateError

__all__ = ["Budget", "Limits"]


@dataclass(frozen=True)
class Limits:
    """What rendering one chat may take; far above what real templates need."""

    source_chars: int = 1 << 20
    """Length of a template."""
    input_chars: int = 1 << 23
    """Characters in all messages, tools and variables."""
    chars: int = 1 << 25
    """Characters written, and size of any one value."""
    steps: int = 2_000_000
    """Loop passes and calls."""
    depth: int = 48
    """Nesting of lists and mappings."""
    seconds: float = 10.0
    """Time, for what the other limits let through."""


class Budget:
    """What is left of the limits during one rendering."""

    def __init__(self, limits: Limits, now: datetime) -> None:
        self.limits = limits
        self.now = now
        self._chars = limits.chars
        self._steps = limits.steps
        self._deadline = time.monotonic() + limits.seconds

    def step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TemplateError(
                f"the chat template takes more than {self.limits.steps} steps; its loops run away"
            )
        if time.monotonic() > self._deadline:
            raise TemplateError(f"the chat template takes longer than {self.limits.seconds:g} s")

    def write(self, count: int) -> None:
        self._chars -= count
        if self._chars < 0:
            raise TemplateError(f"the chat template writes more than {self.limits.chars} characters")

    def fits(self, size: int) -> None:
        if size > self.limits.chars:
            raise TemplateError(
                f"the chat template makes a value of {size} characters or entries; "
                f"the limit is {self.limits.chars}"
            )

    def measured(self, value: Any) -> Any:
        """`value`, when it is small enough written out in full, as often as it contains each part."""
        if isinstance(value, str):
            self.fits(len(value))
        elif isinstance(value, list | tuple | dict | set | frozenset):
            self.fits(self._size(value, self.limits.depth, {}))
        elif isinstance(value, int) and value.bit_length() > 4096:
            raise TemplateError("the chat template makes a number of more than 4096 bits")
        return value

    def _size(self, value: Any, depth: int, known: dict[int, int]) -> int:
        if isinstance(value, str):
            return len(value) + 1
        if isinstance(value, Namespace):
            raise TemplateError("the chat template puts a namespace into a list or mapping")
        if not isinstance(value, list | tuple | dict | set | frozenset):
            return 1
        if depth == 0:
            raise TemplateError(f"the chat template nests values deeper than {self.limits.depth} levels")
        if id(value) not in known:
            parts: Any = value
            total = 1
            if isinstance(value, dict):
                total += sum(self._size(key, depth - 1, known) for key in value)
                parts = value.values()
            known[id(value)] = total + sum(self._size(part, depth - 1, known) for part in parts)
        return known[id(value)]
