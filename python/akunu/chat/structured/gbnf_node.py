"""Expressions of GBNF, and sets of characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
