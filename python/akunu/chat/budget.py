"""The count of what is left to one rendering."""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from jinja2.utils import Namespace

from akunu.base.errors import TemplateError
from akunu.chat.limits import RenderLimits

__all__ = ["Budget"]

ENTRY: Final = 32
"""Characters that an entry of a list or mapping counts as."""


class Budget:
    """The remainder of the limits during one rendering."""

    def __init__(self, limits: RenderLimits, now: datetime) -> None:
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

    def allow(self, chars: float) -> None:
        """Refuse work that would make more than is left, before it is done."""
        if chars > self._chars:
            raise TemplateError(f"the chat template makes more than {self.limits.chars} characters")

    def spend(self, chars: int) -> None:
        self.allow(chars)
        self._chars -= chars

    def made(self, value: Any) -> Any:
        """`value`, paid for. A list may hold one part many times: written out it must be small as well."""
        if isinstance(value, str):
            self.spend(len(value))
        elif isinstance(value, bytes):
            raise TemplateError("the chat template makes bytes; a template works on texts")
        elif isinstance(value, Collection) and not isinstance(value, range):
            self.spend(8 * len(value))  # a reference each
            self.allow(self.size(value))
        return value

    def size(self, value: Any) -> int:
        """Characters of a value written out in full, roughly."""
        return self._size(value, self.limits.depth, {})

    def _size(self, value: Any, depth: int, known: dict[int, int]) -> int:
        if isinstance(value, str):
            return len(value) + ENTRY
        if isinstance(value, Namespace):
            raise TemplateError("the chat template puts a namespace into another value")
        if isinstance(value, range) or not isinstance(value, Collection):
            return ENTRY
        if depth == 0:
            raise TemplateError(f"the chat template nests values deeper than {self.limits.depth} levels")
        if id(value) not in known:
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            known[id(value)] = ENTRY + sum(self._size(part, depth - 1, known) for part in parts)
        return known[id(value)]
