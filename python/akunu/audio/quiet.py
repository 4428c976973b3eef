"""Silence for a C library that writes to standard error by itself.

libmpg123, which is within libsndfile, prints remarks on frames that players pass over, and nothing of
libsndfile's reaches its switch. Only the variable `stderr` of the C library is turned away, not the
descriptor: what Python and child processes write meanwhile arrives.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["quiet"]

_LOCK: Final = threading.Lock()
_before: list[Any] = []
"""The earlier `stderr`, once for each that wants silence."""


@contextmanager
def quiet(wanted: bool = True) -> Iterator[None]:
    """Nothing that C code writes to `stderr` is seen, in any thread."""
    streams = _streams() if wanted else None
    if streams is None:
        yield
        return
    variable, nowhere = streams
    with _LOCK:
        _before.append(variable.value)
        variable.value = nowhere
    try:
        yield
    finally:
        with _LOCK:
            last = _before.pop()
            if not _before:
                variable.value = last


@functools.cache
def _streams() -> tuple[ctypes.c_void_p, int] | None:
    """The variable, and a stream that nobody reads; None where the variable cannot be set."""
    name = {"linux": "stderr", "darwin": "__stderrp"}.get(sys.platform)
    if name is None or (sys.platform == "linux" and not _is_glibc()):
        return None
    library = ctypes.CDLL(None)
    library.fmemopen.restype = ctypes.c_void_p
    library.fmemopen.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    nowhere = library.fmemopen(None, 1 << 12, b"w")  # full soon, and no file of the system
    return None if nowhere is None else (ctypes.c_void_p.in_dll(library, name), nowhere)


def _is_glibc() -> bool:
    """Whether the C library is glibc: musl declares the variable as a constant."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except ValueError:
        return False
