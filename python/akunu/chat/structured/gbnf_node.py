"""Expressions of GBNF, and sets of characters."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["LAST", "Node", "Ranges", "complement"]

LAST: Final = 0x10FFFF
"""The last character."""

Ranges = tuple[tuple[int, int], ...]


def complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """All other characters, in order; surrogates are none."""
    found, at = [], 0
    for low, high in sorted([*ranges, (0xD800, 0xDFFF)]):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return (*found, (at, LAST)) if at <= LAST else tuple(found)


@dataclass(frozen=True, eq=False)
class Node:
    """An expression.

    `kind` is "name", "set" (one character of `ranges`), "sequence" or "choice" (of `parts`), or "repeat" (of
    the only part; `text` is the operator).
    """

    kind: str
    text: str = ""
    parts: tuple[Node, ...] = ()
    ranges: Ranges = field(default=())

    def names(self) -> Iterator[str]:
        """The rules that it names."""
        if self.kind == "name":
            yield self.text
        for part in self.parts:
            yield from part.names()

    def ending(self, rules: Container[str]) -> Node | None:
        """Return what of it has texts of finite length, where `rules` have some; None: nothing has."""
        if self.kind in ("name", "set"):
            return self if self.ranges or self.text in rules else None
        parts = [part.ending(rules) for part in self.parts]
        left = tuple(part for part in parts if part is not None)
        if self.kind == "choice":
            return Node("choice", parts=left) if left else None
        if len(left) == len(parts):
            return Node(self.kind, self.text, left)
        return Node("sequence") if self.text.startswith(("*", "?", "{0,")) else None
