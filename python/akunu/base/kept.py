"""Values that are kept for the next use, within a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Kept"]

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by their keys, those that were used last. One thread at a time may use it.

    Parameters
    ----------
    most
        Bytes of all values together. The latest one is kept however large it is.
    size
        Returns the bytes of a value, always the same.
    """

    def __init__(self, most: int, size: Callable[[V], int]) -> None:
        self._most = most
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()
        self.bytes = 0
        """Bytes of the values that are kept."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return a value, which counts as used; None where it is not kept."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def keep(self, key: K, value: V) -> None:
        """Keep a value, unless there is one of this key; those that were not used for longest give way."""
        if key not in self._values:
            self._values[key] = value
            self.bytes += self._size(value)
        while self.bytes > self._most and len(self._values) > 1:
            self.bytes -= self._size(self._values.popitem(last=False)[1])

    def forget(self, key: K) -> None:
        """Let go of the value of a key, if it is kept."""
        if key in self._values:
            self.bytes -= self._size(self._values.pop(key))

    def clear(self) -> None:
        """Keep nothing."""
        self._values.clear()
        self.bytes = 0
