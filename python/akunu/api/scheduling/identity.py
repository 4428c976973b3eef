"""The identity of a cached page: what its bytes follow from besides its tokens.

A cache that outlives its process must never give a page of other weights, or one that other code computed.
The identity holds what can change them:

- the model's numbers (`ModelSpec`) and what its weights are turned into;
- its files: size, time of the last change, and of every tensor its place and bytes at its beginning, middle
  and end. Some systems give all files one time, and two tunings of a model have equal sizes; their tensors
  differ. A file that was changed in place, elsewhere than there, and given its old time back is not noticed;
- the device, its instruction set, the type of a page, and the sizes of its parts;
- the compiled core. Its next build may add up in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from akunu import _core
from akunu.base.version import __version__

if TYPE_CHECKING:
    from akunu._core import Engine, TensorFiles
    from akunu.files.describe.config import ModelSpec

__all__ = ["identity"]

SAMPLE: Final = 4096
"""Bytes of a tensor that are read in each place."""


def identity(
    files: TensorFiles, spec: ModelSpec, engine: Engine, quantized: Mapping[str, str] | None
) -> bytes:
    """A hash of all of it.

    Parameters
    ----------
    files, spec
        The model's.
    engine
        Runs it.
    quantized
        Types that its tensors got as they were loaded.
    """
    found = blake2b(digest_size=32)
    parts = [
        __version__,
        engine.device,
        engine.isa,
        engine.kv_dtype,
        engine.part_bytes,
        [window["positions"] for window in engine.pages["windows"]],
        _plain(spec),
        _plain(quantized or {}),
        *(_stamp(path) for path in (_core.__file__, *files.paths)),
    ]
    for part in parts:
        found.update(f"{part!r}\n".encode())
    stored = files.stored if isinstance(files, _core.RepackedFiles) else files
    for tensor in stored.tensors:
        data = stored.tensor_bytes(tensor.name)
        found.update(repr((tensor.name, tensor.dtype, tensor.shape, tensor.nbytes)).encode())
        for start in (0, max(len(data) - SAMPLE, 0) // 2, max(len(data) - SAMPLE, 0)):
            found.update(data[start : start + SAMPLE].tobytes())
    return found.digest()


def _plain(value: object) -> object:
    """Return what has the same `repr` exactly where it is equal: NumPy's leaves digits and elements out."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    if isinstance(value, Mapping):
        return sorted((key, _plain(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return [(field.name, _plain(getattr(value, field.name))) for field in fields(value)]
    return value


def _stamp(path: str) -> tuple[int, int]:
    stat = Path(path).stat()
    return stat.st_size, stat.st_mtime_ns
