"""Count what an engine has done and holds for `Model.stats`, and why a prompt was not in the cache."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from akunu._core import PAGE

if TYPE_CHECKING:
    from akunu.api.scheduling.prefix import Prefix

__all__ = ["Beginnings", "ModelStats"]

REMEMBERED: Final = 1 << 16
"""Beginnings that are remembered, the latest."""


@dataclass(frozen=True, slots=True)
class ModelStats:
    """Counts of a loaded model. Those of sequences and tokens are since it was loaded.

    Attributes
    ----------
    waiting : int
        Sequences that wait for a slot.
    running : int
        Sequences that have one.
    parallel : int
        Slots.
    pages : int
        Pages of the KV cache.
    pages_held : int
        Those of them that running sequences use, or that are pinned.
    pages_pinned : int
        Those of them that are pinned.
    pages_cached : int
        Those that no sequence uses, kept for prompts that begin like an earlier sequence.
    page_bytes : int
        Size of a page, 32 positions of all layers. Of those with a window only the last pages of a sequence
        are kept.
    steps : int
        Steps of the engine that gave something.
    prompts : int
        Prompts that were begun.
    prompt_tokens : int
        Their tokens.
    cached_tokens : int
        Tokens of them that the cache held.
    hits : int
        Prompts of which the cache held at least a page, as far as any earlier sequence began like it.
    hits_disk : int
        Prompts of which pages were found in files (`cache_dir`).
    misses_new : int
        Prompts that began like no earlier sequence, for a page at least.
    misses_evicted : int
        Prompts that began like an earlier sequence, further than the cache still held it.
    generated_tokens : int
        Tokens that were sampled.
    drafted_tokens : int
        Tokens that were drafted.
    accepted_tokens : int
        Drafted tokens that were accepted: they were sampled, too.
    model_drafted_tokens : int
        Drafted tokens that a smaller model wrote, or the model's own head (`draft`).
    model_accepted_tokens : int
        Those of these that were accepted.
    disk_tokens : int
        Tokens of prompts whose pages were read from files.
    disk_written : int
        Pages that were written to files.
    disk_unwritten : int
        Attempts to write that failed.
    disk_damaged : int
        Files that did not hold what they should, and were deleted.
    disk_vanished : int
        Files that were gone, or could not be read, when their turn came.
    """

    waiting: int = 0
    running: int = 0
    parallel: int = 0
    pages: int = 0
    pages_held: int = 0
    pages_pinned: int = 0
    pages_cached: int = 0
    page_bytes: int = 0
    steps: int = 0
    prompts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    hits: int = 0
    hits_disk: int = 0
    misses_new: int = 0
    misses_evicted: int = 0
    generated_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    model_drafted_tokens: int = 0
    model_accepted_tokens: int = 0
    disk_tokens: int = 0
    disk_written: int = 0
    disk_unwritten: int = 0
    disk_damaged: int = 0
    disk_vanished: int = 0

    def __call__(self) -> Self:
        """Return the same counts: `model.stats()` is the older way to write `model.stats`."""
        return self


class Beginnings:
    """The beginnings that sequences have shared, whether or not the cache still holds them."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, None] = OrderedDict()

    def known(self, prefix: Prefix) -> int:
        """Tokens of the longest beginning, in whole pages, that an earlier sequence had too."""
        found = 0
        for end, key in self._keys(prefix):
            if key not in self._seen:
                break
            found = end
        return found

    def remember(self, prefix: Prefix) -> None:
        """Enter a sequence."""
        for _, key in self._keys(prefix):
            self._seen[key] = None
            self._seen.move_to_end(key)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    @staticmethod
    def _keys(prefix: Prefix) -> list[tuple[int, int]]:
        data, key, keys = prefix.ids.tobytes(), hash(prefix.owner), []
        others = b"" if prefix.contents is None else prefix.contents.tobytes()
        for end in range(PAGE, len(prefix.ids) + 1, PAGE):
            begin = end - PAGE
            key = hash((key, data[4 * begin : 4 * end], others[8 * begin : 8 * end]))
            keys.append((end, key))
        return keys
