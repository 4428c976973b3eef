"""Rows of weights in another type, whatever a model's files have: one tensor, or codes and their scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from akunu._core import TensorFiles
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.describe.tensor_map import TensorRef, rows_of

__all__ = ["Source", "SourceRows"]

Bytes = npt.NDArray[np.uint8]
Which = slice | npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SourceRows:
    """A matrix or vector, as the files hold it.

    Attributes
    ----------
    name
        The tensor with the values, or the codes, as messages name it.
    dtype
        Type of its rows, one with scales for quantized folders.
    data, scales, biases
        Bytes of each row; those that the type does not have are None.
    """

    name: str
    dtype: str
    n_cols: int
    data: Bytes
    scales: Bytes | None = None
    biases: Bytes | None = None

    @property
    def n_rows(self) -> int:
        return len(self.data)

    def make(
        self,
        dtype: str,
        which: Which,
        *,
        importance: npt.NDArray[np.float32] | None = None,
        threads: int = 0,
    ) -> Bytes:
        """Rows as another type, uint8 [rows, row bytes]; see `_core.quantize`."""
        from akunu import _core

        return _core.quantize(
            dtype,
            self.data[which],
            self.n_cols,
            source=self.dtype,
            scales=None if self.scales is None else self.scales[which],
            biases=None if self.biases is None else self.biases[which],
            importance=importance,
            threads=threads,
            tensor=self.name,
            first_row=which.start if isinstance(which, slice) else 0,
        )

    def pieces(
        self,
        dtype: str,
        n_weights: int,
        *,
        order: npt.NDArray[np.intp] | None = None,
        add: float = 0.0,
        importance: npt.NDArray[np.float32] | None = None,
        threads: int = 0,
    ) -> Iterator[Bytes]:
        """`make` of all rows, about so many weights at a time, in another order, `add` added to each."""
        from akunu import _core

        step = max(1, n_weights // self.n_cols)
        for first in range(0, self.n_rows, step):
            which = slice(first, first + step) if order is None else order[first : first + step]
            if not add:
                yield self.make(dtype, which, importance=importance, threads=threads)
                continue
            values = self.make("f32", which, threads=threads).view("<f4") + np.float32(add)
            yield _core.quantize(dtype, values, self.n_cols, importance=importance, threads=threads)


class Source:
    """The tensors of a model's files, by the names in them."""

    def __init__(self, files: TensorFiles) -> None:
        self._files = files
        self.entries = {tensor.name: tensor for tensor in files.tensors}

    def rows(self, ref: TensorRef, shape: tuple[int, ...]) -> SourceRows:
        """Values of this shape, from where `ref` begins; a vector's rows are its elements."""
        n_rows, n_cols = shape if len(shape) == 2 else (shape[0], 1)
        if ref.factor:
            raise UnsupportedError(
                f"tensor {ref.source}: NVFP4 weights with a scale of their own are not converted; "
                "convert from the model's F16 or BF16 weights"
            )

        def plane(name: str) -> Bytes | None:
            return self._files.tensor_bytes(name).reshape(n_rows, -1) if name else None

        entry = self.entries[ref.source]
        height = rows_of(entry) if len(shape) == 2 else entry.shape[0]
        codes = self._files.tensor_bytes(ref.source).reshape(height, -1)
        codes = codes[ref.first_row : ref.first_row + n_rows]
        if not ref.dtype:
            return SourceRows(ref.source, entry.dtype, n_cols, codes)
        scales = plane(ref.scales) if ref.scale_tile is None else self._spread(ref, n_rows)
        return SourceRows(ref.source, ref.dtype, n_cols, codes, scales, plane(ref.biases))

    def raw(self, name: str) -> bytes:
        """Those of a tensor, as they are."""
        return self._files.tensor_bytes(name).tobytes()

    def drop(self, ref: TensorRef) -> None:
        """What `ref` begins in has been read, and need not stay in memory."""
        for name in (ref.source, ref.scales, ref.biases):
            if name:
                self._files.drop(name)

    def _spread(self, ref: TensorRef, rows: int) -> Bytes:
        """The scales of tiles, one for each group of the type and each row."""
        from akunu import _core

        assert ref.scale_tile is not None
        tile_rows, tile_cols = ref.scale_tile[0] or rows, ref.scale_tile[1] or ref.n_cols
        down, across = -(-rows // tile_rows), -(-ref.n_cols // tile_cols)
        entry = self.entries[ref.scales]
        if int(np.prod(entry.shape)) != down * across:
            raise ModelFileError(
                f"tensor {ref.scales}: found shape {tuple(entry.shape)}, expected {down} x {across} scales, "
                f"one for each {tile_rows} x {tile_cols} elements of {ref.source}"
            )
        scales = _core.dequantize(entry.dtype, self._files.tensor_bytes(ref.scales), down * across)
        group = int(ref.dtype.rpartition("_g")[2])
        wide = scales.reshape(down, across)[np.arange(rows) // tile_rows]
        wide = wide[:, np.arange(0, ref.n_cols, group) // tile_cols]
        return np.ascontiguousarray(wide, "<f4").view(np.uint8)
