"""The arguments of `akunu.load`: their defaults and their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from akunu._core import MAX_PARALLEL, MAX_THREADS
from akunu.base.arguments import Limit
from akunu.base.errors import InvalidArgumentError
from akunu.describe.filetypes import KV_DTYPES

if TYPE_CHECKING:
    pass

__all__ = ["DEFAULT_CACHE_SIZE", "SIZE", "THREADS", "check_settings"]

DEFAULT_CACHE_SIZE: Final = 16 << 30
"""Bytes of pages in files."""


SIZE: Final = Limit(int, 1, (1 << 31) - 1)


THREADS: Final = Limit(int, 1, MAX_THREADS)


_BYTES: Final = Limit(int, 1, (1 << 63) - 1)


_SIZES: Final = {
    "context": SIZE,
    "threads": THREADS,
    "parallel": Limit(int, 1, MAX_PARALLEL),
    "kv_memory": _BYTES,
    "cache_size": _BYTES,
}


_OPTIONAL: Final = ("context", "threads", "kv_memory")
"""None stands for what suits the model."""


def check_settings(
    *,
    kv_dtype: object,
    task: object,
    **sizes: object,
) -> dict[str, Any]:
    """What can be said of arguments of `load` before a model is looked for; gives the sizes as integers.

    Raises
    ------
    InvalidArgumentError
        One is out of range.
    """
    if task not in (None, "embed", "rerank", "transcribe"):
        raise InvalidArgumentError(f"task: found {task!r}, expected 'embed', 'rerank', 'transcribe' or None")
    if kv_dtype not in KV_DTYPES:
        raise InvalidArgumentError(f"kv_dtype: no {kv_dtype!r}; there is {', '.join(KV_DTYPES)}")
    return {
        name: None if size is None and name in _OPTIONAL else _SIZES[name].check(name, size)
        for name, size in sizes.items()
    }
