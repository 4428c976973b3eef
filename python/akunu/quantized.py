"""Quantized weights of a folder: which tensors belong together, and the type that they make.

MLX stores a quantized matrix `x` as `x.weight` (codes, uint32), `x.scales` and `x.biases`; the numbers of
bits, and of elements that share a scale, are in `config.json`, for the model and for single modules by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from akunu.config_numbers import shown
from akunu.errors import ModelFileError, UnsupportedError
from akunu.tensor_map import TensorInfo, TensorRef

__all__ = ["Matrix", "join_planes", "with_planes"]

_BITS: Final = (2, 3, 4, 5, 6, 8)
_GROUPS: Final = (32, 64, 128)
_SCALES: Final = ("f32", "f16", "bf16")
_KEYS: Final = ("quantization", "quantization_config")


@dataclasses.dataclass(frozen=True)
class Matrix:
    """A quantized matrix as the tensor that it stands for; `shape` is that of its values."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scales: str
    biases: str


def join_planes(config: Mapping[str, object], tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """A folder's tensors, with one `Matrix` for the tensors of each quantized one.

    Parameters
    ----------
    config
        `config.json`.
    tensors
        Those of the files, by name.

    Returns
    -------
    dict
        The tensors, by name.

    Raises
    ------
    UnsupportedError
        The quantization is not one of those that Akunu knows.
    ModelFileError
        Tensors of a matrix are missing, or do not have the shapes or types that belong together.
    """
    where, settings = _settings(config)
    out = dict(tensors)
    for name, scales in tensors.items():
        if not name.endswith(".scales"):
            continue
        module = name.removesuffix(".scales")
        if settings is None:
            raise ModelFileError(
                f"tensor {name}: the weights are quantized, but config.json has no 'quantization' "
                "that says how; fetch it again"
            )
        matrix = _Module(where, settings, module).matrix(tensors, scales)
        out[matrix.name] = matrix
        for plane in (matrix.scales, matrix.biases):
            del out[plane]
    for tensor in out.values():
        if tensor.name.endswith(".weight") and tensor.dtype == "u32":
            raise ModelFileError(
                f"tensor {tensor.name} holds codes, but {tensor.name.removesuffix('weight')}scales is missing"
            )
    return out


def with_planes(refs: Mapping[str, TensorRef], tensors: Mapping[str, TensorInfo]) -> dict[str, TensorRef]:
    """The places of canonical tensors, with the other planes of those that are quantized."""
    out = {}
    for name, ref in refs.items():
        matrix = tensors[ref.source]
        if isinstance(matrix, Matrix):
            ref = dataclasses.replace(ref, dtype=matrix.dtype, scales=matrix.scales, biases=matrix.biases)
        out[name] = ref
    return out


def _settings(config: Mapping[str, object]) -> tuple[str, Mapping[str, object] | None]:
    """The key of the quantization, and what it says."""
    for key in _KEYS:
        found = config.get(key)
        if found is None:
            continue
        if not isinstance(found, Mapping):
            raise ModelFileError(f"config.json: {key}: found {shown(found)}, expected an object")
        if "quant_method" in found:
            raise UnsupportedError(
                f"config.json: {key}: the weights are quantized by {shown(found['quant_method'])}, "
                "which is not supported; use a checkpoint of F32, F16 or BF16, one of MLX, or a GGUF file"
            )
        return f"config.json: {key}", found
    return "", None


class _Module:
    """How one module is quantized: as it says itself, else as the model."""

    def __init__(self, where: str, settings: Mapping[str, object], name: str) -> None:
        own = settings.get(name)
        self._name = name
        self._where = where
        if isinstance(own, Mapping):
            self._where, settings = f"{where}.{name}", own
        elif own is False:
            raise ModelFileError(
                f"{where}.{name}: found false, but the tensor {name}.scales says that it is quantized"
            )
        self._settings = settings

    def matrix(self, tensors: Mapping[str, TensorInfo], scales: TensorInfo) -> Matrix:
        mode = self._settings.get("mode", "affine")
        if mode != "affine":
            raise UnsupportedError(f"{self._where}.mode: found {shown(mode)}; supported is affine")
        bits = self._one_of("bits", _BITS)
        group = self._one_of("group_size", _GROUPS)
        if scales.dtype not in _SCALES:
            raise ModelFileError(
                f"tensor {scales.name}: found type {scales.dtype}, expected one of {', '.join(_SCALES)}"
            )
        codes = self._plane(tensors, "weight")
        biases = self._plane(tensors, "biases")
        shape = self._shape(scales)
        n_cols = shape[1] * group
        self._expect(codes, "u32", (shape[0], n_cols * bits // 32), bits, group)
        self._expect(biases, scales.dtype, shape, bits, group)
        dtype = f"mlx_q{bits}_g{group}_{scales.dtype}"
        return Matrix(codes.name, dtype, (shape[0], n_cols), scales.name, biases.name)

    def _one_of(self, key: str, known: Sequence[int]) -> int:
        value = self._settings.get(key)
        if not isinstance(value, int) or value not in known:
            raise UnsupportedError(
                f"{self._where}.{key}: found {shown(value)}; supported are {', '.join(map(str, known))}"
            )
        return value

    def _plane(self, tensors: Mapping[str, TensorInfo], part: str) -> TensorInfo:
        name = f"{self._name}.{part}"
        if name not in tensors:
            raise ModelFileError(f"tensor {name} is missing; {self._name}.scales belongs to it")
        return tensors[name]

    def _shape(self, scales: TensorInfo) -> tuple[int, int]:
        if len(scales.shape) != 2:
            raise ModelFileError(
                f"tensor {scales.name}: found shape {tuple(scales.shape)}, expected 2 dimensions"
            )
        return scales.shape[0], scales.shape[1]

    def _expect(self, tensor: TensorInfo, dtype: str, shape: tuple[int, int], bits: int, group: int) -> None:
        if tensor.dtype == dtype and tuple(tensor.shape) == shape:
            return
        raise ModelFileError(
            f"tensor {tensor.name}: found {tensor.dtype} {tuple(tensor.shape)}, expected {dtype} {shape}, "
            f"as {self._name}.scales and {bits} bits in groups of {group} ({self._where}) have it"
        )
