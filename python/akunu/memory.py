"""What a model's memory is used for."""

from __future__ import annotations

from dataclasses import astuple, dataclass

__all__ = ["Memory"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a model uses, by purpose.

    Attributes
    ----------
    weights : int
        Copied or repacked weights.
    weights_mapped : int
        Weights used straight from the file's mapping: the system may drop and re-read these pages.
    kv_cache : int
        Keys and values of the whole context.
    scratch : int
        Activations and logits.
    """

    weights: int
    weights_mapped: int
    kv_cache: int
    scratch: int

    def __add__(self, other: Memory) -> Memory:
        return Memory(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.weights_mapped + self.kv_cache + self.scratch
