"""A model as a GGUF file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.base.progress import Report
from akunu.files.describe.filetypes import block_of
from akunu.files.gguf_bytes import TensorPlace, header, padded
from akunu.files.importance import ImportanceMatrix
from akunu.files.model_files import ModelFiles
from akunu.loading.conversion.merged import Merged
from akunu.loading.conversion.part_file import PartFile, digest_of, stamps
from akunu.loading.conversion.plan import Plan, plan_gguf
from akunu.loading.conversion.planned import PlannedTensor
from akunu.loading.conversion.source_rows import PlannedRows, Source
from akunu.loading.conversion.tensor_types import TensorTypes, retyped

__all__ = ["write_gguf"]

_PIECE: Final = 1 << 24
"""Weights that are made at a time."""


def write_gguf(
    model: ModelFiles,
    path: Path,
    file_type: str,
    imatrix: ImportanceMatrix | None,
    threads: int,
    report: Report | None,
    choices: TensorTypes = (),
    merged: Merged | None = None,
) -> None:
    """Write `path`; the arguments are those of `akunu.convert`, checked."""
    plan = plan_gguf(model, file_type, imatrix)
    plan = replace(plan, tensors=retyped(plan.tensors, choices))
    places = _places(plan)
    head = header(plan.metadata, places)
    ends = [len(head), *(len(head) + place.offset + padded(place.nbytes) for place in places)]
    weights = imatrix.parts() if imatrix else ()
    source = Source(model.files, merged.additions if merged else None)
    made_of = [head, stamps(model.files.paths), *weights, *([merged.digest] if merged else [])]
    with PartFile(path, digest_of(made_of), ends) as part:
        if part.done == 0:
            part.file.write(head)
        done = ends[max(part.done - 1, 0)]
        for tensor, place in list(zip(plan.tensors, places, strict=True))[max(part.done - 1, 0) :]:
            for piece in _pieces(source, tensor, imatrix, threads):
                part.file.write(piece.data)
                done += piece.nbytes
                if report:
                    report(done, ends[-1])
            source.drop(tensor.sources)
            part.file.write(bytes(padded(place.nbytes) - place.nbytes))
            done += padded(place.nbytes) - place.nbytes


def _places(plan: Plan) -> list[TensorPlace]:
    from akunu import _core

    ids = {row["name"]: row["id"] for row in _core.dtypes()}
    places = []
    offset = 0
    for tensor in plan.tensors:
        elems, nbytes = block_of(tensor.dtype)
        size = int(np.prod(tensor.shape)) // elems * nbytes
        places.append(TensorPlace(tensor.name, tensor.shape, ids[tensor.dtype], offset, size))
        offset += padded(size)
    return places


def _pieces(
    source: Source, tensor: PlannedTensor, imatrix: ImportanceMatrix | None, threads: int
) -> Iterator[npt.NDArray[np.uint8]]:
    """The bytes of a tensor, some rows at a time."""
    if tensor.values is not None:
        yield tensor.values.astype("<f4").view(np.uint8)
        return
    if not tensor.sources:
        raw = source.raw(tensor.name)
        yield from np.array_split(raw, max(1, -(-raw.nbytes // (64 << 20))))
        return
    importance = None
    if imatrix and tensor.matrix:
        importance = imatrix.columns(tensor.name, tensor.shape[-1], tensor.n_matrices)
    rows = PlannedRows(source, tensor)
    yield from rows.pieces(tensor.dtype, _PIECE, importance=importance, threads=threads)
