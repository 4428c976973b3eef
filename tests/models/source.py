"""A GGUF file read by gguf-py, with the attributes of `akunu._core.GgufFile`.

The reference must not depend on the loader that it checks, so it reads its files through this.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

__all__ = ["ReaderSource", "Tensor"]


@dataclass(frozen=True)
class Tensor:
    """One tensor: `dtype` is in lower case, `shape` outermost first."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


class ReaderSource:
    """`metadata`, `tensors` and `tensor_bytes` of a file, and its weights as numbers."""

    def __init__(self, path: str | Path) -> None:
        self._reader = gguf.GGUFReader(str(path))
        self.metadata: dict[str, object] = {
            name: field.contents()
            for name, field in self._reader.fields.items()
            if not name.startswith("GGUF.")
        }
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.tensors = [
            Tensor(
                t.name, t.tensor_type.name.lower(), tuple(int(n) for n in reversed(t.shape)), int(t.n_bytes)
            )
            for t in self._reader.tensors
        ]

    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]:
        """The raw bytes of a tensor."""
        return np.ascontiguousarray(self._tensors[name].data).view(np.uint8).reshape(-1)

    def weights(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor dequantised by gguf-py, with its shape."""
        tensor = self._tensors[name]
        shape = tuple(int(n) for n in reversed(tensor.shape))
        return np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32).reshape(shape)
