"""The prefix of a sequence: what its keys and values follow from, and its pages are known by.

Two sequences share pages where all of it is equal. The engine knows a salt and an adapter as a 64-bit root, a
hash under a secret of this process, so that nobody can choose a salt that meets another's. Files have both in
the hash that names a page.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Prefix"]

_SECRET: Final = os.urandom(32)


@lru_cache(maxsize=1024)
def _root(salt: str | None, adapter: str | None) -> int:
    parts = repr((salt, adapter)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(parts, digest_size=8, key=_SECRET).digest()) or 1


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """A sequence, or the beginning of one.

    Attributes
    ----------
    ids : numpy.ndarray
        Token ids, uint32 [n].
    salt : str | None
        Sequences with another one share nothing with it; None is shared by all that have none.
    contents : numpy.ndarray | None
        Hashes, uint64 [m] with m <= n, of what stands at a position in the place of its token, such as a
        piece of an image; 0 where the token does.
    adapter : str | None
        What the sequence's adapter adds, as a hash with its scale; None: it has none.
    """

    ids: npt.NDArray[np.uint32]
    salt: str | None = None
    contents: npt.NDArray[np.uint64] | None = None
    adapter: str | None = None

    @property
    def owner(self) -> tuple[str | None, str | None]:
        """The owner, on whom all of it depends: sequences of another owner share nothing with it."""
        return self.salt, self.adapter

    @property
    def root(self) -> int:
        """The number by which the engine knows the owner."""
        return 0 if self.owner == (None, None) else _root(*self.owner)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `Engine.begin`, `read_page`, `pin` and `unpin` besides ids; none where ids say all."""
        found: dict[str, Any] = {}
        if self.root:
            found["root"] = self.root
        if self.contents is not None:
            found["contents"] = self.contents
        return found

    def first(self, n: int) -> Prefix:
        """Return the prefix of the first `n` tokens."""
        contents = None if self.contents is None else self.contents[:n]
        return Prefix(self.ids[:n], self.salt, contents, self.adapter)

    def common(self, other: Prefix) -> int:
        """Tokens whose keys and values are equal to the other's."""
        if self.owner != other.owner:
            return 0
        n = min(len(self.ids), len(other.ids))
        differ = self.ids[:n] != other.ids[:n]
        if self.contents is not None or other.contents is not None:
            differ |= self._contents(n) != other._contents(n)
        return int(differ.argmax()) if differ.any() else n

    def _contents(self, n: int) -> npt.NDArray[np.uint64]:
        padded = np.zeros(n, np.uint64)
        if self.contents is not None:
            given = self.contents[:n]
            padded[: len(given)] = given
        return padded
