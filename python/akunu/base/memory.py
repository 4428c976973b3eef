"""Tell what a model's memory is used for, and give back what the process does not need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Final

__all__ = ["Memory", "bytes_text", "give_back", "keep_freed"]

_KEEPING: Final = {
    -3: 32 << 20,  # M_MMAP_THRESHOLD: the largest that glibc takes
    -1: 32 << 20,  # M_TRIM_THRESHOLD
}
"""Options of `mallopt` by their numbers in malloc.h."""


def bytes_text(n: float) -> str:
    """Bytes with a binary unit: 1536 is "1.5 KiB"."""
    value = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a model uses, by purpose. `str(memory)` is a line that says so.

    Attributes
    ----------
    weights : int
        Copied or repacked weights.
    weights_mapped : int
        Weights used straight from the file's mapping: the system may drop and re-read these pages.
    kv_cache : int
        Keys and values: all pages. The system gives them when they are first used.
    scratch : int
        Activations, logits, and what a step is told.
    activations : int
        The activations among `scratch`. Those that are never needed at the same time share memory.
    activations_apart : int
        What they would take if none shared memory.
    """

    weights: int
    weights_mapped: int
    kv_cache: int
    scratch: int
    activations: int = 0
    activations_apart: int = 0

    def __add__(self, other: Memory) -> Memory:
        return Memory(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        mapped = f" and {bytes_text(self.weights_mapped)} of the file" if self.weights_mapped else ""
        shared = (
            f", of which {bytes_text(self.activations)} are activations "
            f"({bytes_text(self.activations_apart)} if none shared memory)"
            if self.activations
            else ""
        )
        return (
            f"weights {bytes_text(self.weights)}{mapped}, KV cache {bytes_text(self.kv_cache)}, "
            f"scratch {bytes_text(self.scratch)}{shared}"
        )

    @property
    def total(self) -> int:
        """All bytes that the model takes."""
        return self.weights + self.weights_mapped + self.kv_cache + self.scratch


def keep_freed() -> None:
    """Have the C library keep large blocks that are freed, for the next ones, until `give_back` (glibc).

    By itself it asks the system for each large block anew, and the first use of its pages takes longer than
    what is done with them. Threads have heaps of their own: each keeps up to 32 MiB, and `give_back` reaches
    the free end of the main thread's alone.
    """
    if mallopt := _of_libc("mallopt", "c_int", "c_int"):
        for option, value in _KEEPING.items():
            mallopt(option, value)


def give_back() -> None:
    """Give the system the memory that was freed and that the C library keeps, where it has a way (glibc).

    It returns by itself only what lies at the end of its heap, so a small object can keep a lot.
    """
    if trim := _of_libc("malloc_trim", "c_size_t"):
        trim(0)


def _of_libc(name: str, *types: str) -> Callable[..., int] | None:
    """Return a function of the C library, or None where it has none of this name."""
    import ctypes

    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = [getattr(ctypes, kind) for kind in types]  # type: ignore[attr-defined]
    return function
