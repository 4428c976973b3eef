"""Folders of GPTQ, AWQ, compressed-tensors and bitsandbytes, as if MLX had written them.

These keep codes and zeros in layouts of their own kernels. A value is always scale * (code - zero), which
MLX's planes say as scale * code + bias, with all bits. What has no groups of neighbours (act order, NF4)
becomes floats, of the type that its own library computes with. `cpp/formats/repacked.h` has the layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.base.json_file import parse_object
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.quantized import REMEDY, quantization

if TYPE_CHECKING:
    from akunu._core import TensorEntry, TensorFiles

__all__ = ["PackedMatrix", "repacked"]

_MLX_GROUPS: Final = (128, 64, 32)
_NF4: Final = ".weight.quant_state.bitsandbytes__"
_STATE_LIMIT: Final = 1 << 16
_SIZE_LIMIT: Final = (1 << 31) - 1
_UNBIASED: Final = ("llama", "mistral", "mixtral")
"""Model types whose folders may have biases of zeros that the model does not have: AutoGPTQ wrote them."""


@dataclass(frozen=True, kw_only=True)
class PackedMatrix:
    """The parts of a matrix and their layout; see `PackedMatrix` in `cpp/formats/repacked.h`."""

    name: str
    layout: str
    bits: int
    rows: int
    cols: int
    group: int
    codes: str
    scales: str
    zeros: str = ""
    zero: int = 0
    symmetric: bool = False
    index: str = ""
    unit: float = 1.0
    table: str = ""
    scale_table: str = ""
    scale_factors: str = ""
    scale_offset: float = 0.0
    floats: str = "f16"

    @property
    def planes(self) -> dict[str, int] | None:
        """The settings by which MLX describes the result; None where it becomes floats."""
        if self.index or self.table:
            return None
        group = next((g for g in _MLX_GROUPS if self.group % g == 0 and self.cols % g == 0), None)
        return None if group is None else {"bits": self.bits, "group_size": group}


def repacked(files: TensorFiles, config: Mapping[str, Any]) -> tuple[TensorFiles, dict[str, Any]]:
    """A folder's files and `config.json`, with matrices of other libraries as MLX has them.

    Raises
    ------
    UnsupportedError
        The layout is not one of those that Akunu knows.
    ModelFileError
        Tensors of a matrix are missing, or do not have the shapes or types that belong together.
    """
    from akunu import _core

    key, settings = quantization(config)
    make = _READERS.get(str((settings or {}).get("quant_method")))
    if settings is None or make is None:
        return files, dict(config)
    folder = _Folder(f"config.json: {key}", settings, files)
    matrices = list(make(folder))
    if not matrices:
        return files, dict(config)
    left_out = [*folder.spare, *_zero_biases(folder, config, matrices)]
    own = {name: value for name, value in config.items() if name != key}
    modules = {m.name.removesuffix("."): planes for m in matrices if (planes := m.planes) is not None}
    if modules:
        own["quantization"] = {"group_size": 64, "bits": 4, **modules}
    made = _core.RepackedFiles(files, matrices, left_out)
    made.stored = files
    return made, own


class _Folder:
    """The tensors of a folder, and what its configuration says of them.

    `spare`: tensors that are not needed any more.
    """

    def __init__(self, where: str, settings: Mapping[str, Any], files: TensorFiles) -> None:
        self.where = where
        self.settings = settings
        self.files = files
        self.tensors: dict[str, TensorEntry] = {tensor.name: tensor for tensor in files.tensors}
        self.spare: list[str] = []

    def ending(self, end: str, dtype: str = "") -> Iterator[tuple[str, TensorEntry]]:
        """The modules that have such a tensor, with the last dot, and this."""
        for name, tensor in self.tensors.items():
            if name.endswith(f".{end}") and dtype in ("", tensor.dtype):
                yield name.removesuffix(end), tensor

    def part(self, name: str, n_axes: int = 2) -> TensorEntry:
        """A tensor that has to be there, with so many axes."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ModelFileError(f"tensor {name} is missing; other tensors of the matrix are there")
        if len(tensor.shape) != n_axes or 0 in tensor.shape:
            raise ModelFileError(
                f"tensor {name}: found shape {tuple(tensor.shape)}, expected {n_axes} axes of some size"
            )
        return tensor

    def numbers(self, name: str, dtype: str, n: int) -> list[int]:
        """A vector of so many integers."""
        tensor = self.part(name, 1)
        if tensor.shape[0] != n:
            raise ModelFileError(f"tensor {name}: found {tensor.shape[0]} numbers, expected {n}")
        if tensor.dtype != dtype:
            raise ModelFileError(f"tensor {name}: found type {tensor.dtype}, expected {dtype}")
        values = self.files.tensor_bytes(name).view(f"<i{int(dtype[1:]) // 8}")
        found: list[int] = values.astype(np.int64).tolist()
        return found

    def refuse(self, key: str, allowed: Sequence[object]) -> None:
        """Raise where the configuration has another value; the first is that of an absent key."""
        found = self.settings.get(key, allowed[0])
        if found not in allowed:
            known = ", ".join(map(shown, allowed))
            raise UnsupportedError(
                f"{self.where}.{key}: found {shown(found)}; supported are {known}; {REMEDY}"
            )

    def integer(self, key: str, default: int | None = None) -> int:
        found = self.settings.get(key, default)
        if not isinstance(found, int) or isinstance(found, bool):
            raise ModelFileError(f"{self.where}.{key}: found {shown(found)}, expected an integer")
        return found

    def float_type(self, name: str) -> str:
        """The type of floats that are made with these scales: theirs, or BF16."""
        dtype = self.tensors[name].dtype
        return dtype if dtype in ("f16", "bf16") else "bf16"

    def index(self, name: str, n_cols: int, group: int) -> str:
        """The name, if there is such a tensor and groups are not runs of columns; else nothing."""
        if name not in self.tensors:
            return ""
        found = self.numbers(name, "i32", n_cols)
        if found == [i // group for i in range(n_cols)] or found == [-1] * n_cols:
            self.spare.append(name)
            return ""
        return name


def _group(name: str, n_cols: int, n_groups: int, said: object) -> int:
    """Columns that share a scale: what is said, where the scales are as many."""
    group = said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else n_cols
    if n_groups == 1:
        group = n_cols
    if -(-n_cols // group) != n_groups:
        raise ModelFileError(
            f"tensor {name}: found {n_groups} scales for a row of {n_cols} weights, "
            f"expected one for each {group}"
        )
    return group


def _bits(name: str, bits: int) -> int:
    """The bits of a code, if there are so many."""
    if not 0 < bits <= 8:
        raise UnsupportedError(f"tensor {name}: found codes of {bits} bits; supported are 1 to 8; {REMEDY}")
    return bits


def _gptq(folder: _Folder) -> Iterator[PackedMatrix]:
    """Yield the matrices of AutoGPTQ, GPTQModel and AutoRound."""
    key = "checkpoint_format" if "checkpoint_format" in folder.settings else "format"
    folder.refuse(key, ("gptq", "gptq_v2"))
    folder.refuse("is_marlin_format", (False,))
    bits = folder.integer("bits")
    # The first form has zeros less one.
    added = 0 if folder.settings.get(key) == "gptq_v2" else 1
    for name, codes in folder.ending("qweight", "i32"):
        words, rows = folder.part(codes.name).shape
        scales = folder.part(f"{name}scales")
        index = f"{name}g_idx"
        if index in folder.tensors:  # single modules may have another number of bits
            cols = folder.part(index, 1).shape[0]
            own = _bits(codes.name, words * 32 // cols)
        else:
            own = _bits(codes.name, bits)
            cols = words * 32 // own
        said = folder.settings.get("group_size")
        group = _group(scales.name, cols, scales.shape[0], said if own == bits else cols // scales.shape[0])
        yield PackedMatrix(
            name=name,
            layout="gptq",
            bits=own,
            rows=rows,
            cols=cols,
            group=group,
            codes=codes.name,
            scales=scales.name,
            zeros=folder.part(f"{name}qzeros").name,
            zero=added,
            symmetric=folder.settings.get("sym") is True,
            index=folder.index(index, cols, group),
            floats=folder.float_type(scales.name),
        )


def _awq(folder: _Folder) -> Iterator[PackedMatrix]:
    """Yield the matrices of AutoAWQ."""
    for form in ("version", "format", "checkpoint_format"):  # the last two are GPTQModel's
        folder.refuse(form, ("gemm", "GEMM"))
    key = "bits" if "bits" in folder.settings else "w_bit"
    folder.refuse(key, (4,))
    said = folder.settings.get("group_size", folder.settings.get("q_group_size"))
    for name, codes in folder.ending("qweight", "i32"):
        cols, words = folder.part(codes.name).shape
        scales = folder.part(f"{name}scales")
        yield PackedMatrix(
            name=name,
            layout="awq",
            bits=4,
            rows=8 * words,
            cols=cols,
            group=_group(scales.name, cols, scales.shape[0], said),
            codes=codes.name,
            scales=scales.name,
            zeros=folder.part(f"{name}qzeros").name,
            floats=folder.float_type(scales.name),
        )


def _compressed(folder: _Folder) -> Iterator[PackedMatrix]:
    """Integers of compressed-tensors, packed (`pack-quantized`) or in bytes (`int-quantized`)."""
    form = folder.settings.get("format")
    if form == "pack-quantized":
        for name, codes in folder.ending("weight_packed", "i32"):
            yield _packed_rows(folder, name, codes)
    if form in ("int-quantized", "naive-quantized"):
        for name, codes in folder.ending("weight", "i8"):
            yield _signed_bytes(folder, name, codes)


def _packed_rows(folder: _Folder, name: str, codes: TensorEntry) -> PackedMatrix:
    shape = folder.numbers(f"{name}weight_shape", "i64", 2)
    height, words = folder.part(codes.name).shape
    if shape[0] != height or not 0 < shape[1] <= 32 * words:
        raise ModelFileError(
            f"tensor {name}weight_shape: found {shape}, expected {height} rows of what {words} words hold"
        )
    rows, cols = shape
    bits = _bits(codes.name, words * 32 // cols)
    if words != -(-cols * bits // 32):
        raise UnsupportedError(
            f"tensor {codes.name}: found {words} words for {cols} codes, which are not packed one behind the "
            f"other; {REMEDY}"
        )
    scales = folder.part(f"{name}weight_scale")
    group = _group(scales.name, cols, scales.shape[1], cols // scales.shape[1])
    zeros = f"{name}weight_zero_point"
    folder.spare += [f"{name}weight_shape", *_unused(folder, name)]
    packed = zeros in folder.tensors and folder.tensors[zeros].dtype == "i32"
    return PackedMatrix(
        name=name,
        layout="rows",
        bits=bits,
        rows=rows,
        cols=cols,
        group=group,
        codes=codes.name,
        scales=scales.name,
        zeros=zeros if packed else "",
        zero=0 if packed else _middle(folder, zeros, bits),
        index=folder.index(f"{name}weight_g_idx", cols, group),
        floats=folder.float_type(scales.name),
    )


def _signed_bytes(folder: _Folder, name: str, codes: TensorEntry) -> PackedMatrix:
    rows, cols = folder.part(codes.name).shape
    scales = f"{name}weight_scale"
    count = int(np.prod(folder.tensors[scales].shape)) if scales in folder.tensors else 0
    if count != rows:
        raise UnsupportedError(
            f"tensor {scales}: found {count} scales for {rows} rows of bytes; supported is one for each row; "
            f"{REMEDY}"
        )
    folder.spare += _unused(folder, name)
    return PackedMatrix(
        name=name,
        layout="bytes",
        bits=8,
        rows=rows,
        cols=cols,
        group=cols,
        codes=codes.name,
        scales=scales,
        zero=_middle(folder, f"{name}weight_zero_point", 8),
        floats=folder.float_type(scales),
    )


def _middle(folder: _Folder, zeros: str, bits: int) -> int:
    """The code of 0 where all scales are symmetric."""
    if zeros in folder.tensors:
        if folder.files.tensor_bytes(zeros).any():
            raise UnsupportedError(
                f"tensor {zeros}: zeros of type {folder.tensors[zeros].dtype} are not supported; {REMEDY}"
            )
        folder.spare.append(zeros)
    return 1 << (bits - 1)


def _unused(folder: _Folder, name: str) -> list[str]:
    """Scales of activations and of the cache, which are more exact here."""
    ends = ("input_scale", "input_zero_point", "input_global_scale", "output_scale", "k_scale", "v_scale")
    return [f"{name}{end}" for end in ends if f"{name}{end}" in folder.tensors]


def _bitsandbytes(folder: _Folder) -> Iterator[PackedMatrix]:
    """NF4 and FP4 in blocks, and bytes of LLM.int8()."""
    for name, codes in folder.ending("weight", "i8"):
        rows, cols = folder.part(codes.name).shape
        scales = folder.part(f"{name}SCB", 1)
        folder.spare += [spare for spare in (f"{name}weight_format",) if spare in folder.tensors]
        yield PackedMatrix(
            name=name,
            layout="bytes",
            bits=8,
            rows=rows,
            cols=cols,
            group=cols,
            codes=codes.name,
            scales=scales.name,
            zero=128,
            unit=1 / 127,
        )
    for state in [name for name in folder.tensors if _NF4 in name]:
        yield _blocks(folder, state)


def _blocks(folder: _Folder, state: str) -> PackedMatrix:
    name, _, _ = state.partition(_NF4)
    codes = f"{name}.weight"
    folder.spare.append(state)
    if folder.tensors[state].nbytes > _STATE_LIMIT:
        raise ModelFileError(
            f"tensor {state}: no state of bitsandbytes: it is longer than {_STATE_LIMIT} bytes"
        )
    try:
        said = parse_object(folder.files.tensor_bytes(state).tobytes().decode(), f"tensor {state}")
        rows, cols = map(int, said["shape"])
        group, dtype = int(said["blocksize"]), str(said["dtype"])
        nested = "nested_blocksize" in said
        offset = float(said["nested_offset"]) if nested else 0.0
        inner = int(said["nested_blocksize"]) if nested else 256
        if not all(0 < size <= _SIZE_LIMIT for size in (rows, cols, group)):
            raise ValueError(f"sizes are {shown(said['shape'])} and {shown(said['blocksize'])}")
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"tensor {state}: no state of bitsandbytes: {error!r}") from error
    if inner != 256:
        raise UnsupportedError(f"tensor {state}: nested_blocksize: found {inner}; supported is 256; {REMEDY}")
    return PackedMatrix(
        name=f"{name}.",
        layout="table",
        bits=4,
        rows=rows,
        cols=cols,
        group=group,
        codes=codes,
        scales=f"{codes}.absmax",
        table=f"{codes}.quant_map",
        scale_table=f"{codes}.nested_quant_map" if nested else "",
        scale_factors=f"{codes}.nested_absmax" if nested else "",
        scale_offset=offset,
        floats={"float16": "f16", "float32": "f32"}.get(dtype, "bf16"),
    )


def _zero_biases(
    folder: _Folder, config: Mapping[str, Any], matrices: Sequence[PackedMatrix]
) -> Iterator[str]:
    """Biases of nothing that a model has not."""
    if config.get("model_type") not in _UNBIASED:
        return
    for matrix in matrices:
        name = f"{matrix.name}bias"
        flag = "mlp_bias" if ".mlp." in name else "attention_bias"
        if name in folder.tensors and not config.get(flag) and not folder.files.tensor_bytes(name).any():
            yield name


_READERS: Final = {
    "gptq": _gptq,
    "awq": _awq,
    "compressed-tensors": _compressed,
    "bitsandbytes": _bitsandbytes,
}
