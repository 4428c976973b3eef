"""Writing a model in another type: `akunu.convert`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.conversion.gguf_bytes import TensorPlace, header, padded
from akunu.conversion.part_file import PartFile, digest_of
from akunu.conversion.plan import Plan, PlannedTensor, plan_gguf
from akunu.errors import InvalidArgumentError
from akunu.filetypes import BLOCKS, FILE_TYPES
from akunu.loading import find_model
from akunu.model_files import ModelFiles, open_model
from akunu.options import Limit
from akunu.progress import Progress, reporter

__all__ = ["convert"]

_PIECE: Final = 1 << 24
"""Weights that are made at a time."""


def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    type: str,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: bool | Progress = True,
) -> Path:
    """Write a model as a GGUF file whose weights have another type.

    Parameters
    ----------
    source
        A model, as `load` takes it: a GGUF file, a folder of SafeTensors, `user/repo[:file]`.
    out
        The file to write, `*.gguf`. It is there when it is whole. Beside it lies a hidden file until then,
        from which a conversion that was stopped goes on when it is started again.
    type
        A file type: "q4_k_m", "q8_0", "f16", … (`akunu.filetypes.FILE_TYPES`). Most matrices have the type of
        its name; those that matter more have more bits.
    threads
        CPU threads; None: one for each physical core that this process may use.
    overwrite
        Replace `out` if it exists.
    progress
        As in `load`; counted in bytes of the new file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ModelFileError
        The model is missing or damaged; a weight is NaN or infinite.
    UnsupportedError
        The model is of a kind that Akunu does not know, or that GGUF cannot describe.
    InvalidArgumentError
        There is no such type, or `out` is not a name for a GGUF file, exists, or is the model itself.

    Examples
    --------
    >>> import akunu
    >>> akunu.convert("ember", "ember-q4.gguf", "q4_k_m")  # doctest: +SKIP
    """
    if type not in FILE_TYPES:
        raise InvalidArgumentError(f"type: no {type!r}; there is {', '.join(FILE_TYPES)}")
    n_threads = 0 if threads is None else Limit(int, 1, 1024).check("threads", threads)
    path = _checked_out(Path(out).expanduser(), overwrite)
    found = find_model(source, progress=progress)
    model = open_model(found)
    if path.exists() and any(path.samefile(file) for file in model.files.paths):
        raise InvalidArgumentError(f"out: {path} is the model that is to be converted; give another name")
    plan = plan_gguf(model, type)
    places = _places(plan)
    head = header(plan.metadata, places)
    stamps = [(Path(name).name, *_stamp(Path(name))) for name in model.files.paths]
    ends = [len(head), *(len(head) + place.offset + padded(place.nbytes) for place in places)]
    with PartFile(path, digest_of([head, stamps]), ends) as part, reporter(progress, "Converting") as report:
        if part.done == 0:
            part.file.write(head)
        done = ends[max(part.done - 1, 0)]
        for tensor, place in list(zip(plan.tensors, places, strict=True))[max(part.done - 1, 0) :]:
            for piece in _pieces(model, tensor, n_threads):
                part.file.write(piece.data)
                done += piece.nbytes
                if report:
                    report(done, ends[-1])
            part.file.write(bytes(padded(place.nbytes) - place.nbytes))
            done += padded(place.nbytes) - place.nbytes
    return path


def _checked_out(path: Path, overwrite: bool) -> Path:
    if path.suffix.lower() != ".gguf":
        raise InvalidArgumentError(f"out: found {str(path)!r}, expected a name that ends in .gguf")
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"out: the folder {path.parent} does not exist")
    if path.is_dir():
        raise InvalidArgumentError(f"out: {path} is a folder")
    if path.exists() and not overwrite:
        raise InvalidArgumentError(f"out: {path} exists; overwrite=True (--overwrite) replaces it")
    return path


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _places(plan: Plan) -> list[TensorPlace]:
    from akunu import _core

    ids = {row["name"]: row["id"] for row in _core.dtypes()}
    places = []
    offset = 0
    for tensor in plan.tensors:
        elems, nbytes = BLOCKS[tensor.dtype]
        size = int(np.prod(tensor.shape)) // elems * nbytes
        places.append(TensorPlace(tensor.name, tensor.shape, ids[tensor.dtype], offset, size))
        offset += padded(size)
    return places


def _pieces(model: ModelFiles, tensor: PlannedTensor, threads: int) -> Iterator[npt.NDArray[np.uint8]]:
    """The bytes of a tensor, some rows at a time."""
    from akunu import _core

    if tensor.values is not None:
        yield tensor.values.astype("<f4").view(np.uint8)
        return
    dtype = tensor.source_dtype
    rows = model.files.tensor_bytes(tensor.source)
    n_rows, n_cols = tensor.shape if len(tensor.shape) == 2 else (tensor.shape[0], 1)
    rows = rows.reshape(n_rows, -1)
    order = _pairs(n_rows, tensor.heads) if tensor.heads else None
    if dtype == tensor.dtype and order is None and BLOCKS[dtype][0] > 1:
        yield from np.array_split(rows, -(-rows.nbytes // (64 << 20)))
        return
    step = max(1, _PIECE // n_cols)
    for first in range(0, n_rows, step):
        piece = rows[first : first + step] if order is None else rows[order[first : first + step]]
        made = _core.quantize(
            tensor.dtype,
            piece,
            n_cols,
            source=dtype,
            threads=threads,
            tensor=tensor.source,
            first_row=first,
        )
        if tensor.add:
            made = (made.view("<f4") + np.float32(tensor.add)).view(np.uint8)
        yield made


def _pairs(n_rows: int, heads: int) -> npt.NDArray[np.intp]:
    """Rows of heads whose halves rotate together, reordered so that adjacent rows do."""
    return np.arange(n_rows).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)
