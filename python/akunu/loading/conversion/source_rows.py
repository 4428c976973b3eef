"""Rows of weights in another type, of one tensor or several, of floats, of blocks, or of codes and scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from akunu._core import TensorFiles
from akunu.base.errors import ModelFileError
from akunu.files.adapters import Addition
from akunu.files.describe.filetypes import block_of
from akunu.files.describe.tensor_map import TensorRef
from akunu.loading.conversion.planned import Change, PlannedTensor

__all__ = ["PlannedRows", "Source", "SourceRows"]

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
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
    ref
        Which rows of the tensors are its own.
    data, scales, biases
        Bytes of each row of each tensor that `ref` names; those that the type does not have are empty.
    factors
        Numbers that the values are multiplied with, each for as many rows; None: there are none.
    paired
        Bytes of MXFP4 hold neighbours, as in Ollama's files.
    added
        What adapters add to rows of the tensor.
    """

    name: str
    dtype: str
    n_rows: int
    n_cols: int
    ref: TensorRef
    data: tuple[Bytes, ...]
    scales: tuple[Bytes, ...] = ()
    biases: tuple[Bytes, ...] = ()
    factors: Floats | None = None
    paired: bool = False
    added: Sequence[Addition] = ()

    def make(
        self,
        dtype: str,
        which: npt.NDArray[np.intp],
        *,
        importance: Floats | None = None,
        threads: int = 0,
    ) -> Bytes:
        """Rows as another type, uint8 [rows, row bytes]; see `_core.quantize`."""
        from akunu import _core

        if (self.factors is not None or self.added) and dtype != "f32":
            values = self.values(which, threads=threads)
            return _core.quantize(dtype, values, self.n_cols, importance=importance, threads=threads)
        tensor, rows = self._places(which)
        scales = self._taken(self.scales, tensor, rows)
        biases = self._taken(self.biases, tensor, rows)
        data, source = self._turned(which) if self.ref.turned else (self.raw(which), self.dtype)
        made = _core.quantize(
            dtype,
            data,
            self.n_cols,
            source=source,
            scales=scales,
            biases=biases,
            importance=importance,
            threads=threads,
            tensor=self.name,
            first_row=int(rows[0]) if _is_run(rows) else 0,
        )
        if self.factors is not None:
            values = made.view("<f4")
            values *= self.factors[which // (self.n_rows // len(self.factors)), np.newaxis]
        for addition in self.added:
            addition.add_to(made.view("<f4"), rows)
        return made

    def values(self, which: npt.NDArray[np.intp], *, threads: int = 0) -> Floats:
        """Rows as floats, [rows, columns]."""
        return self.make("f32", which, threads=threads).view("<f4")

    def raw(self, which: npt.NDArray[np.intp]) -> Bytes:
        """The bytes of rows of a type without scales."""
        found = self._taken(self.data, *self._places(which))
        assert found is not None
        return found

    def _places(self, which: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return which tensor has each row, and which of its rows that is."""
        each = self.n_rows // len(self.data)
        tensor, at = np.divmod(which, each)
        if self.ref.group is None:
            return tensor, self.ref.first_row + at
        n, period = self.ref.group
        group, place = np.divmod(at, n)
        return tensor, self.ref.first_row + group * period + place

    def _taken(
        self, planes: tuple[Bytes, ...], tensor: npt.NDArray[np.intp], rows: npt.NDArray[np.intp]
    ) -> Bytes | None:
        if not planes:
            return None
        if len(planes) > 1 and tensor[0] != tensor[-1]:
            return np.stack([planes[t][r] for t, r in zip(tensor, rows, strict=True)])
        plane = planes[tensor[0]]
        found = plane[rows[0] : rows[-1] + 1] if _is_run(rows) else plane[rows]
        return _unpaired(found) if self.paired else found

    def _turned(self, which: npt.NDArray[np.intp]) -> tuple[Bytes, str]:
        """Rows of matrices that lie on their sides, [matrices, columns, height], and their type."""
        from akunu import _core

        (plane,) = self.data
        in_block, nbytes = block_of(self.dtype)
        height = plane.shape[1] // nbytes * in_block
        sides = plane.reshape(-1, self.n_cols, plane.shape[1])
        _, rows = self._places(which)
        matrix, place = np.divmod(rows, height)
        dtype, found = self.dtype if in_block == 1 else "f32", []
        for number in np.unique(matrix):
            lying = sides[number]
            if in_block > 1:
                lying = _core.quantize("f32", lying, height, source=self.dtype)
            elements = lying.view(f"<u{block_of(dtype)[1]}")
            found.append(elements[:, place[matrix == number]].T)
        return np.concatenate(found).view(np.uint8), dtype


def _unpaired(rows: Bytes) -> Bytes:
    """Blocks of MXFP4 whose low nibbles are the first half, of those whose bytes hold neighbours."""
    blocks = rows.reshape(len(rows), -1, 17).copy()
    codes = np.stack([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], axis=-1).reshape(*blocks.shape[:-1], 32)
    blocks[..., 1:] = codes[..., :16] | codes[..., 16:] << 4
    return blocks.reshape(rows.shape)


def _is_run(rows: npt.NDArray[np.intp]) -> bool:
    """Whether they follow each other."""
    return int(rows[-1]) - int(rows[0]) + 1 == len(rows) and bool((np.diff(rows) == 1).all())


class PlannedRows:
    """The rows that a tensor of the new files is made of."""

    def __init__(self, source: Source, tensor: PlannedTensor) -> None:
        self._tensor = tensor
        self._parts = [source.rows(ref) for ref in tensor.sources]
        self._firsts = np.cumsum([0, *(part.n_rows for part in self._parts)])
        self.n_cols = self._parts[0].n_cols
        self.n_rows = len(tensor.order) if tensor.order is not None else int(self._firsts[-1])
        self._changed = tensor.columns is not None or tensor.change is not Change.NONE or tensor.add != 0

    @property
    def is_copied(self) -> bool:
        """Whether the blocks of its type are those that the files have."""
        return (
            not self._changed
            and not self._tensor.turned
            and block_of(self._tensor.dtype)[0] > 1
            and all(
                part.dtype == self._tensor.dtype and part.factors is None and not part.added
                for part in self._parts
            )
        )

    def pieces(
        self, dtype: str, n_weights: int, *, importance: Floats | None = None, threads: int = 0
    ) -> Iterator[Bytes]:
        """All rows as a type, about so many weights at a time; a turned matrix whole, on its side.

        `importance`: one number a column of the new tensor, for all rows or [matrices, columns] for those of
        each.
        """
        from akunu import _core

        matrices = self._tensor.n_matrices
        each = self.n_rows // matrices
        step = each if self._tensor.turned else max(1, n_weights // self.n_cols)
        columns = each if self._tensor.turned else self.n_cols
        weighed = importance is not None and len(importance) == matrices * columns
        own = None if importance is None or not weighed else importance.reshape(matrices, columns)
        run = each if (own is not None and matrices > 1) or self._tensor.turned else self.n_rows
        for begin in range(0, self.n_rows, run):
            for first in range(begin, begin + run, step):
                rows = np.arange(first, min(first + step, begin + run))
                if self._tensor.order is not None:
                    rows = self._tensor.order[rows]
                weights = importance if own is None else own[begin // each]
                if self._tensor.turned:
                    values = self._make("f32", rows, importance=None, threads=threads).view("<f4")
                    lying = np.ascontiguousarray(values.T)
                    made = _core.quantize(dtype, lying, lying.shape[1], importance=weights, threads=threads)
                else:
                    made = self._make(dtype, rows, importance=weights, threads=threads)
                yield made

    def _make(
        self, dtype: str, rows: npt.NDArray[np.intp], *, importance: Floats | None, threads: int
    ) -> Bytes:
        from akunu import _core

        if not self._changed:
            return self._gather(rows, dtype, importance=importance, threads=threads)
        values = self._gather(rows, "f32", importance=None, threads=threads).view("<f4")
        values = self._tensor.change.apply(values + np.float32(self._tensor.add))
        if self._tensor.columns is not None:
            values = np.ascontiguousarray(values[:, self._tensor.columns])
        return _core.quantize(dtype, values, self.n_cols, importance=importance, threads=threads)

    def _gather(
        self, rows: npt.NDArray[np.intp], dtype: str, *, importance: Floats | None, threads: int
    ) -> Bytes:
        """Rows of the parts, which are numbered through."""
        own = np.searchsorted(self._firsts, rows, side="right") - 1
        copied = self.is_copied and dtype == self._tensor.dtype
        found: Bytes | None = None
        for number in map(int, np.unique(own)):
            mine = np.flatnonzero(own == number)
            part, which = self._parts[number], rows[mine] - self._firsts[number]
            made = (
                part.raw(which) if copied else part.make(dtype, which, importance=importance, threads=threads)
            )
            if found is None:
                found = made if len(mine) == len(rows) else np.empty((len(rows), made.shape[1]), np.uint8)
            if found is not made:
                found[mine] = made
        assert found is not None
        return found


class Source:
    """The tensors of a model's files, by the names in them.

    `additions`: what adapters add to them.
    """

    def __init__(self, files: TensorFiles, additions: Mapping[str, Sequence[Addition]] | None = None) -> None:
        self._files = files
        self._additions = additions or {}
        self.entries = {tensor.name: tensor for tensor in files.tensors}

    def rows(self, ref: TensorRef) -> SourceRows:
        """The rows that `ref` names; those of a vector are its elements."""
        n_cols = max(ref.n_cols, 1)
        entry = self.entries[ref.source]
        names = (ref.source, *ref.more)
        if ref.dtype:
            height = self._planar_height(ref)
            scales = (ref.scales, *(scales for scales, _, _ in ref.more_planes))
            biases = (ref.biases, *(biases for _, biases, _ in ref.more_planes)) if ref.biases else ()
            return SourceRows(
                ref.source,
                ref.dtype,
                ref.n_rows,
                n_cols,
                ref,
                tuple(self._plane(name, height) for name in names),
                tuple(
                    self._plane(name, height) if ref.scale_tile is None else self._spread(ref, name, height)
                    for name in scales
                ),
                tuple(self._plane(name, height) for name in biases),
                self._factors(ref),
                added=self._additions.get(ref.source, ()),
            )
        if ref.turned:
            planes = [self._plane(ref.source, int(np.prod(entry.shape[:-1])))]
        else:
            elements, nbytes = block_of(entry.dtype)
            row_bytes = n_cols // elements * nbytes
            planes = [self._files.tensor_bytes(name).reshape(-1, row_bytes) for name in names]
        return SourceRows(
            ref.source,
            entry.dtype,
            ref.n_rows,
            n_cols,
            ref,
            tuple(planes),
            factors=self._factors(ref),
            paired=entry.paired,
            added=self._additions.get(ref.source, ()),
        )

    def raw(self, name: str) -> Bytes:
        """Return the bytes of a tensor, as they are."""
        return self._files.tensor_bytes(name)

    def drop(self, refs: tuple[TensorRef, ...]) -> None:
        """Give back the memory of what `refs` begin in, which has been read."""
        for ref in refs:
            others = [name for planes in ref.more_planes for name in planes]
            for name in (ref.source, ref.scales, ref.biases, *ref.more, *others):
                if name:
                    self._files.drop(name)

    def _plane(self, name: str, height: int) -> Bytes:
        return self._files.tensor_bytes(name).reshape(height, -1)

    def _planar_height(self, ref: TensorRef) -> int:
        """Rows of all matrices in the tensor with the codes."""
        entry = self.entries[ref.source]
        planes = next(row["planes"] for row in _dtype_rows() if row["name"] == ref.dtype)
        return int(entry.nbytes // (ref.n_cols // block_of(ref.dtype)[0] * planes[0]))

    def _factors(self, ref: TensorRef) -> Floats | None:
        if not ref.factor:
            return None
        names = (ref.factor, *(factor for _, _, factor in ref.more_planes))
        entry = self.entries[ref.factor]
        found: Floats = np.concatenate(
            [self._files.tensor_bytes(name).view("<f4").astype(np.float32).reshape(-1) for name in names]
        )
        if entry.dtype != "f32" or not len(found) or ref.n_rows % len(found):
            raise ModelFileError(
                f"tensor {ref.factor}: found {len(found)} numbers of type {entry.dtype}, expected one of "
                "f32, or one of each expert"
            )
        return np.float32(1) / found if ref.inverse else found

    def _spread(self, ref: TensorRef, name: str, rows: int) -> Bytes:
        """The scales of tiles, one for each group of the type and each row."""
        from akunu import _core

        assert ref.scale_tile is not None
        tile_rows, tile_cols = ref.scale_tile[0] or rows, ref.scale_tile[1] or ref.n_cols
        down, across = -(-rows // tile_rows), -(-ref.n_cols // tile_cols)
        entry = self.entries[name]
        if int(np.prod(entry.shape)) != down * across:
            raise ModelFileError(
                f"tensor {name}: found shape {tuple(entry.shape)}, expected {down} x {across} scales, "
                f"one for each {tile_rows} x {tile_cols} elements of {ref.source}"
            )
        scales = _core.dequantize(entry.dtype, self._files.tensor_bytes(name), down * across)
        group = int(ref.dtype.rpartition("_g")[2])
        wide = scales.reshape(down, across)[np.arange(rows) // tile_rows]
        wide = wide[:, np.arange(0, ref.n_cols, group) // tile_cols]
        return np.ascontiguousarray(wide, "<f4").view(np.uint8)


def _dtype_rows() -> list[dict[str, Any]]:
    from akunu import _core

    return _core.dtypes()
