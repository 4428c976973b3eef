"""A folder of Hugging Face as a folder for MLX: its matrices quantised as `mlx.core.quantize` does.

A group of 64 weights of a row has a scale and a bias in the type of the weights; codes of 2 to 8 bits lie in
little-endian words of 32 bits, the first code in the lowest bits.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.conversion.part_file import PartFile, digest_of, stamps
from akunu.conversion.source_rows import Source
from akunu.errors import UnsupportedError
from akunu.filetypes import BLOCKS
from akunu.folder import MODEL_FILES, ModelFolder
from akunu.model_files import ModelFiles
from akunu.progress import Progress
from akunu.tensor_map import TensorRef

__all__ = ["GROUP", "affine_quantize", "write_mlx"]

GROUP: Final = 64
"""Weights that share a scale and a bias; mlx-lm's default."""

_PIECE: Final = 1 << 22
"""Weights that are made at a time."""

_DTYPES: Final = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
_ALIGNMENT: Final = 8

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Part:
    """A tensor of the new file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True)
class _Planned:
    """A tensor of the old files (None: it is copied), the shape of its values, and what it becomes."""

    ref: TensorRef | None
    shape: tuple[int, ...]
    parts: list[_Part]


def affine_quantize(values: Floats, bits: int) -> tuple[npt.NDArray[np.uint32], Floats, Floats]:
    """Codes, scales and biases of rows: the bits that `mlx.core.quantize` computes.

    Parameters
    ----------
    values
        float32 [rows, cols], cols a multiple of `GROUP`.
    bits
        Of a code: 2, 3, 4, 5, 6 or 8.

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


def write_mlx(model: ModelFiles, path: Path, bits: int, report: Progress | None) -> None:
    """Write the folder `path`, with codes of so many bits."""
    if not isinstance(model, ModelFolder):
        raise UnsupportedError(f"{model.files.paths[0]}: a folder for MLX is made of a folder, not of GGUF")
    source = Source(model.files)
    spec = model.spec()
    if spec.config.encoder is not None:
        raise UnsupportedError(f"{model.path}: makes vectors, of which there are no folders for MLX here")
    plan = _plan(source, {ref.source: ref for ref in spec.tensors.values()}, bits)
    parts = [part for planned in plan for part in planned.parts]
    head = _header(parts)
    folder = path.with_name(f".{path.name}.part")
    folder.mkdir(exist_ok=True)
    ends = [len(head)]
    for planned in plan:
        ends.append(ends[-1] + sum(part.nbytes for part in planned.parts))
    digest = digest_of([head, stamps(model.files.paths)])
    with PartFile(folder / "model.safetensors", digest, ends) as part:
        _remove_finished(folder)
        if part.done == 0:
            part.file.write(head)
        for planned, done in list(zip(plan, ends[1:], strict=True))[max(part.done - 1, 0) :]:
            for piece in _pieces(source, planned, bits):
                part.file.write(piece)
            if planned.ref:
                source.drop(planned.ref)
            if report:
                report(done, ends[-1])
    _copy_rest(model, folder, bits)
    os.rename(folder, path)


def _plan(source: Source, refs: Mapping[str, TensorRef], bits: int) -> list[_Planned]:
    """The tensors of the old files, by those that are read, and what each becomes."""
    planes = {name for ref in refs.values() for name in (ref.scales, ref.biases)}
    found = []
    for name, entry in source.entries.items():
        if name in refs:
            ref = refs[name]
            shape = (entry.shape[0], ref.n_cols) if ref.n_cols else entry.shape
            found.append(_Planned(ref, shape, _parts(ref, shape, _float_dtype(source, ref), bits)))
        elif name not in planes:  # nothing that a model needs: as it is
            found.append(
                _Planned(None, entry.shape, [_Part(name, entry.dtype.upper(), entry.shape, entry.nbytes)])
            )
    return found


def _parts(ref: TensorRef, shape: tuple[int, ...], dtype: str, bits: int) -> list[_Part]:
    """What a tensor becomes: itself, or codes, scales and biases."""
    size, width = int(np.prod(shape)), BLOCKS[dtype.lower()][1]
    if not ref.n_cols or ref.n_cols % GROUP:
        return [_Part(ref.source, dtype, shape, size * width)]
    stem = ref.source.removesuffix(".weight")
    groups, words = (shape[0], shape[1] // GROUP), shape[1] * bits // 32
    return [
        _Part(ref.source, "U32", (shape[0], words), 4 * shape[0] * words),
        _Part(f"{stem}.scales", dtype, groups, size // GROUP * width),
        _Part(f"{stem}.biases", dtype, groups, size // GROUP * width),
    ]


def _float_dtype(source: Source, ref: TensorRef) -> str:
    """The type of the floats: the weights' own, or that of their scales where these belong to groups."""
    dtype = source.entries[ref.scales or ref.source].dtype
    if ref.dtype and (dtype not in _DTYPES or ref.scale_tile):
        dtype = "bf16"
    if dtype not in _DTYPES:
        raise UnsupportedError(
            f"tensor {ref.source}: found type {dtype}, expected floats or a quantized matrix"
        )
    return _DTYPES[dtype]


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


def _pieces(source: Source, planned: _Planned, bits: int) -> Iterator[bytes]:
    from akunu import _core

    if planned.ref is None:
        yield source.raw(planned.parts[0].name)
        return
    rows = source.rows(planned.ref, planned.shape)
    dtype = planned.parts[-1].dtype.lower()
    step = max(1, _PIECE // rows.n_cols)
    starts = range(0, rows.n_rows, step)
    if len(planned.parts) == 1:
        for first in starts:
            yield rows.make(dtype, slice(first, first + step)).tobytes()
        return
    ends: tuple[list[bytes], list[bytes]] = ([], [])
    for first in starts:
        made = rows.make("f32", slice(first, first + step))
        codes, *planes = affine_quantize(made.view("<f4"), bits)
        yield codes.tobytes()
        for kept, plane in zip(ends, planes, strict=True):
            kept.append(_core.quantize(dtype, plane, plane.shape[1]).tobytes())
    for kept in ends:
        yield b"".join(kept)


def _remove_finished(folder: Path) -> None:
    """What an earlier conversion, maybe of another model, finished before it was stopped."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.suffix != ".part":
            entry.unlink()


def _copy_rest(model: ModelFolder, folder: Path, bits: int) -> None:
    """The configuration with what mlx-lm wants to know, and the other files as they are."""
    rule = {"group_size": GROUP, "bits": bits, "mode": "affine"}
    config = model.config | {"quantization": rule, "quantization_config": rule}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    more = model.path.glob("additional_chat_templates/*.jinja")
    names = [*MODEL_FILES, *(str(path.relative_to(model.path)) for path in more)]
    for name in names:
        if name != "config.json" and (model.path / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(model.path / name, folder / name)
