"""The parts of a page besides the keys and values of layers that see all, which only some sequences need of
it.

Part 0 is that of layers without a window. A part for each window follows, which a sequence needs of the pages
that its next token sees through the window. Of models that keep a state there is one more, which is needed of
the last page alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from akunu._core import PAGE

if TYPE_CHECKING:
    from akunu._core import Engine

__all__ = ["PageParts"]

CHECKPOINT_PAGES: Final = 16
"""The engine copies the state of a sequence at the end of every so many pages, and where its prompt ends."""


@dataclass(frozen=True, slots=True)
class PageParts:
    """The parts of an engine's pages.

    Attributes
    ----------
    sizes : tuple of int
        Bytes of each.
    windows : tuple of int
        Positions that a token sees, its own with them.
    """

    sizes: tuple[int, ...]
    windows: tuple[int, ...] = ()

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Return the parts that this engine's pages have."""
        windows = tuple(window["positions"] for window in engine.pages["windows"])
        return cls(tuple(engine.part_bytes), windows)

    @property
    def state(self) -> int | None:
        """The part that is a state."""
        return len(self.windows) + 1 if len(self.sizes) > len(self.windows) + 1 else None

    def first_seen(self, part: int, tokens: int) -> int:
        """The first page that the token behind so many sees through a window."""
        return max(tokens + 1 - self.windows[part - 1], 0) // PAGE

    def needed(self, page: int, pages: int) -> list[int]:
        """The parts of a page, counted from 0, that a sequence needs that goes on behind so many pages."""
        found = [0]
        found += [
            part for part in range(1, len(self.windows) + 1) if page >= self.first_seen(part, pages * PAGE)
        ]
        if self.state is not None and page == pages - 1:
            found.append(self.state)
        return found

    def useful(self, page: int, ends: set[int]) -> set[int]:
        """The parts that sequences may need that go on behind one of these numbers of pages."""
        found = {part for end in ends if page < end for part in self.needed(page, end)}
        if self.state is not None and (page + 1) % CHECKPOINT_PAGES == 0:
            found.add(self.state)
        return found

    def reach(self, first: int, pages: int, has: Callable[[int, int], bool]) -> int:
        """Behind how many of `pages` pages a sequence can go on.

        Parameters
        ----------
        first
            Pages that memory has, with what is needed of them.
        has
            Whether a page behind these has a part.
        """
        while pages > first:
            lacking = (
                page
                for page in range(pages - 1, first - 1, -1)
                if not all(has(page, part) for part in self.needed(page, pages)[1:])
            )
            last = next(lacking, None) if len(self.sizes) > 1 else None
            if last is None:
                return pages
            pages = last
        return first
