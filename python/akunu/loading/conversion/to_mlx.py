"""A model as a folder of SafeTensors: its matrices quantised as `mlx.core.quantize` does, or floats.

A group of 64 weights of a row has a scale and a bias in the type of the weights; codes of 2 to 8 bits lie in
little-endian words of 32 bits, the first code in the lowest bits.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.base.progress import Report
from akunu.files.describe.filetypes import MlxType, block_of
from akunu.files.model_files import ModelFiles
from akunu.loading.conversion.folder_plan import FolderPlan, plan_folder
from akunu.loading.conversion.merged import Merged
from akunu.loading.conversion.part_file import PartFile, digest_of, stamps
from akunu.loading.conversion.planned import PlannedTensor
from akunu.loading.conversion.source_rows import PlannedRows, Source

__all__ = ["GROUP", "affine_quantize", "write_mlx"]

GROUP: Final = 64
"""Weights that share a scale and a bias; mlx-lm's default."""

_PIECE: Final = 1 << 22
"""Weights that are made at a time."""

_ALIGNMENT: Final = 8

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Part:
    """A tensor of the new file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


def affine_quantize(values: Floats, bits: int) -> tuple[npt.NDArray[np.uint32], Floats, Floats]:
    """Codes, scales and biases of rows: the bits that `mlx.core.quantize` computes.

    Parameters
    ----------
    values
        float32 [rows, cols], cols a multiple of `GROUP`.
    bits
        The bits of a code: 2, 3, 4, 5, 6 or 8.

    Returns
    -------
    tuple of arrays
        uint32 [rows, cols * bits / 32], float32 [rows, cols / GROUP] twice; a weight is scale * code + bias.
    """
    rows, cols = values.shape
    groups = values.reshape(rows, cols // GROUP, GROUP)
    high, low = groups.max(axis=2), groups.min(axis=2)
    most = np.float32((1 << bits) - 1)
    # The end that is farther from 0 is met exactly, and 0 too.
    below = np.abs(low) > np.abs(high)
    scale = np.maximum((high - low) / most, np.float32(1e-7))
    scale = np.where(below, scale, -scale)
    edge = np.where(below, low, high)
    steps = np.rint(edge / scale)
    scale = np.where(steps != 0, edge / np.where(steps != 0, steps, 1), scale).astype(np.float32)
    bias = np.where(steps != 0, edge, 0).astype(np.float32)
    codes = np.rint((groups - bias[..., np.newaxis]) / scale[..., np.newaxis])
    codes = np.clip(codes, 0, most).astype(np.uint8).reshape(rows, cols, 1)
    flags = np.unpackbits(codes, axis=2, bitorder="little", count=bits).reshape(rows, -1)
    return np.packbits(flags, axis=1, bitorder="little").view("<u4"), scale, bias


def write_mlx(
    model: ModelFiles, path: Path, kind: MlxType, report: Report | None, merged: Merged | None = None
) -> None:
    """Write the folder `path`."""
    source = Source(model.files, merged.additions if merged else None)
    plan = plan_folder(model, kind)
    parts = [_parts(source, tensor, kind.bits) for tensor in plan.tensors]
    head = _header([part for group in parts for part in group])
    folder = path.with_name(f".{path.name}.part")
    ends = [len(head)]
    for group in parts:
        ends.append(ends[-1] + sum(part.nbytes for part in group))
    digest = digest_of([head, stamps(model.files.paths), *([merged.digest] if merged else [])])
    with _folder_of_remains(folder), PartFile(folder / "model.safetensors", digest, ends) as part:
        _remove_finished(folder)
        if part.done == 0:
            part.file.write(head)
        done = max(part.done - 1, 0)
        for tensor, group, end in list(zip(plan.tensors, parts, ends[1:], strict=True))[done:]:
            for piece in _pieces(source, tensor, kind.bits if len(group) > 1 else 0):
                part.file.write(piece)
            source.drop(tensor.sources)
            if report:
                report(end, ends[-1])
    _write_dense(plan, folder, source)
    _write_rest(plan, folder, kind.bits)
    os.rename(folder, path)


def _parts(source: Source, tensor: PlannedTensor, bits: int) -> list[_Part]:
    """Return what a tensor becomes: itself, or codes, scales and biases."""
    if not tensor.sources:
        nbytes = source.entries[tensor.name].nbytes
        return [_Part(tensor.name, tensor.dtype.upper(), tensor.shape, nbytes)]
    dtype, width = tensor.dtype.upper(), block_of(tensor.dtype)[1]
    size = int(np.prod(tensor.shape))
    if not bits or tensor.exact or not tensor.matrix or tensor.shape[-1] % GROUP:
        return [_Part(tensor.name, dtype, tensor.shape, size * width)]
    *rows, cols = tensor.shape
    stem = tensor.name.removesuffix(".weight")
    groups, words = (*rows, cols // GROUP), cols * bits // 32
    return [
        _Part(tensor.name, "U32", (*rows, words), size // 8 * bits),
        _Part(f"{stem}.scales", dtype, groups, size // GROUP * width),
        _Part(f"{stem}.biases", dtype, groups, size // GROUP * width),
    ]


def _header(parts: list[_Part]) -> bytes:
    """The length and the JSON object that begin a file of SafeTensors."""
    entries: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    at = 0
    for part in parts:
        entries[part.name] = {
            "dtype": part.dtype,
            "shape": part.shape,
            "data_offsets": (at, at + part.nbytes),
        }
        at += part.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // _ALIGNMENT) * _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _pieces(source: Source, tensor: PlannedTensor, bits: int) -> Iterator[bytes]:
    """The bytes of a tensor, or with `bits` of its codes and then of its scales and biases."""
    from akunu import _core

    if not tensor.sources:
        yield source.raw(tensor.name).tobytes()
        return
    rows = PlannedRows(source, tensor)
    made = rows.pieces("f32" if bits else tensor.dtype, _PIECE)
    if not bits:
        yield from (piece.tobytes() for piece in made)
        return
    ends: tuple[list[bytes], list[bytes]] = ([], [])
    for piece in made:
        codes, *planes = affine_quantize(piece.view("<f4"), bits)
        yield codes.tobytes()
        for kept, plane in zip(ends, planes, strict=True):
            kept.append(_core.quantize(tensor.dtype, plane, plane.shape[1]).tobytes())
    for kept in ends:
        yield b"".join(kept)


@contextmanager
def _folder_of_remains(folder: Path) -> Iterator[None]:
    """Yield a folder that stays when it is left by an error, unless nothing was written there."""
    folder.mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            folder.rmdir()
        raise


def _remove_finished(folder: Path) -> None:
    """Remove what an earlier conversion, maybe of another model, finished before it was stopped."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.suffix != ".part":
            entry.unlink()


def _write_dense(plan: FolderPlan, folder: Path, source: Source) -> None:
    """The layers that have files of their own."""
    for name, tensor in plan.dense.items():
        (folder / name).mkdir(exist_ok=True)
        with open(folder / name / "model.safetensors", "wb") as file:
            file.write(_header(_parts(source, tensor, 0)))
            file.writelines(_pieces(source, tensor, 0))


def _write_rest(plan: FolderPlan, folder: Path, bits: int) -> None:
    """The configuration, with what mlx-lm wants to know of codes, and the other files."""
    rule = {"group_size": GROUP, "bits": bits, "mode": "affine"}
    more = {"quantization": rule, "quantization_config": rule} if bits else {}
    text = json.dumps({**plan.config, **more}, indent=2) + "\n"
    for name, content in {"config.json": text, **plan.files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, folder / name)
        else:
            (folder / name).write_text(content, encoding="utf-8")
