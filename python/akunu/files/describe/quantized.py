"""Quantized weights of a folder: which tensors belong together, and the type that they make.

MLX stores a quantized matrix `x` as `x.weight` (codes, uint32), `x.scales` and, where codes are no floats,
`x.biases`; the mode, the number of bits and how many elements share a scale are in `config.json`, for the
model and for single modules by name. FP8 checkpoints have `x.weight` (float8 E4M3) and scales of its tiles.
What GPTQ, AWQ and others write, `akunu.files.repacking` has turned into what MLX writes.
NVFP4 is codes with a scale for each 16 and one for the matrix: in GGUF `x.weight` and `x.scale`, in folders
`x.weight`, `x.weight_scale` and `x.weight_scale_2` (ModelOpt), or `x.weight_packed`, `x.weight_scale` and
`x.weight_global_scale`, which is the inverse (compressed-tensors).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.tensor_map import TensorInfo, TensorRef, by_name

if TYPE_CHECKING:
    from akunu._core import TensorEntry

__all__ = [
    "REMEDY",
    "Matrix",
    "Weight",
    "join_planes",
    "quantization",
    "take_factors",
    "weights_of",
    "with_factors",
    "with_planes",
]

_BITS: Final = (2, 3, 4, 5, 6, 8)
_GROUPS: Final = (32, 64, 128)
_SCALES: Final = ("f32", "f16", "bf16")
_FLOAT_MODES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"mxfp4": (4, 32), "nvfp4": (4, 16), "mxfp8": (8, 32)}
)
"""Modes of MLX whose codes are floats: bits, and elements that share a scale."""

_KEYS: Final = ("quantization", "quantization_config", "compression_config")
_REPACKED: Final = ("gptq", "awq", "bitsandbytes")
"""Methods whose matrices have been repacked before they come here."""
_METHODS: Final = ("fp8", "fbgemm_fp8", "compressed-tensors", "modelopt", "mxfp4", *_REPACKED)
REMEDY: Final = "use a checkpoint of F32, F16, BF16, FP8 or NVFP4, one of MLX, or a GGUF file"

_FORMS: Final = (
    *("pack-quantized", "int-quantized", "float-quantized", "naive-quantized"),
    *("nvfp4-pack-quantized", "mxfp4-pack-quantized"),
)
"""The names that compressed-tensors has for its layouts."""

_INTEGERS: Final = ("pack-quantized", "int-quantized")
_FOUR_BITS: Final = ("nvfp4-pack-quantized", "mxfp4-pack-quantized")
_UNUSED: Final = ("input_scale", "input_global_scale", "activation_scale", "k_scale", "v_scale")
"""Scales of FP8 and NVFP4 checkpoints for activations and caches, which are more exact here."""


@dataclasses.dataclass(frozen=True)
class Matrix:
    """A quantized matrix as the tensor that it stands for; `shape` is that of its values.

    `scale_tile`: rows, and elements of a row, that have one scale, where the type does not say it; 0 is all.
    `factor`: the tensor with the number that all is multiplied with, or with its inverse.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    scales: str
    biases: str = ""
    scale_tile: tuple[int, int] | None = None
    factor: str = ""
    inverse: bool = False


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
    key, settings = quantization(config)
    where = f"config.json: {key}"
    method = settings.get("quant_method") if settings is not None else None
    if settings is not None and (method in _REPACKED or settings.get("format") in _INTEGERS):
        raise ModelFileError(
            f"{where}: the weights are quantized by {shown(method)}, but there is no tensor of its codes; "
            "fetch it again"
        )
    if method == "mxfp4":
        return _join_mxfp4(tensors)
    if settings is not None and _is_four_bits(settings):
        return _join_four_bits(settings, tensors)
    if settings is not None and method is not None:
        return _join_fp8(where, settings, tensors)
    out = dict(tensors)
    for name, scales in tensors.items():
        if not name.endswith(".scales"):
            continue
        module = name.removesuffix(".scales")
        if f"{module}.qweight" in tensors:
            raise UnsupportedError(
                f"tensor {module}.qweight: the weights are quantized by GPTQ or AWQ, but config.json has no "
                f"'quantization_config' with that quant_method; {REMEDY}"
            )
        if settings is None:
            raise ModelFileError(
                f"tensor {name}: the weights are quantized, but config.json has no 'quantization' "
                "that says how; fetch it again"
            )
        matrix = _Module(where, settings, module).matrix(tensors, scales)
        out[matrix.name] = matrix
        for plane in (matrix.scales, matrix.biases):
            out.pop(plane, None)
    for tensor in out.values():
        if not tensor.name.endswith(".weight"):
            continue
        if tensor.dtype == "u32":
            raise ModelFileError(
                f"tensor {tensor.name} holds codes, but {tensor.name.removesuffix('weight')}scales is missing"
            )
        if tensor.dtype == "f8_e4m3":
            raise ModelFileError(
                f"tensor {tensor.name}: the weights are FP8, but config.json has no 'quantization_config' "
                "that says which scales they have; fetch it again"
            )
    return out


@dataclasses.dataclass(frozen=True)
class Weight:
    """A tensor as what it stands for, with the bytes of all that it is made of."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


def weights_of(config: Mapping[str, object], tensors: Sequence[TensorEntry]) -> list[Weight]:
    """A folder's tensors, one for each quantized matrix; arguments and errors as of `join_planes`."""
    sizes = {tensor.name: tensor.nbytes for tensor in tensors}
    found = []
    for tensor in join_planes(config, by_name(tensors)).values():
        planes = [tensor.name]
        if isinstance(tensor, Matrix):
            planes += [plane for plane in (tensor.scales, tensor.biases, tensor.factor) if plane]
        found.append(
            Weight(tensor.name, tensor.dtype, tuple(tensor.shape), sum(sizes[name] for name in planes))
        )
    return found


def with_planes(refs: Mapping[str, TensorRef], tensors: Mapping[str, TensorInfo]) -> dict[str, TensorRef]:
    """The places of canonical tensors, with the other planes of those that are quantized."""
    out = {}
    for name, ref in refs.items():
        matrix = tensors[ref.source]
        if isinstance(matrix, Matrix):
            more = [_alike(matrix, tensors[other]) for other in ref.more]
            ref = dataclasses.replace(
                ref,
                source=matrix.name,
                dtype=matrix.dtype,
                scales=matrix.scales,
                biases=matrix.biases,
                scale_tile=matrix.scale_tile,
                more=tuple(other.name for other in more),
                more_planes=tuple((other.scales, other.biases, other.factor) for other in more),
            )
            if matrix.factor:
                ref = _with_factor(name, ref, matrix.factor, inverse=matrix.inverse)
        out[name] = ref
    return out


def _alike(first: Matrix, other: TensorInfo) -> Matrix:
    """The other expert's matrix, which has to be quantized in the same way."""
    if (
        isinstance(other, Matrix)
        and other.dtype == first.dtype
        and other.scale_tile == first.scale_tile
        and bool(other.factor) == bool(first.factor)
    ):
        return other
    raise UnsupportedError(
        f"tensor {other.name}: found type {other.dtype}, and {first.name}, which it follows, "
        f"{first.dtype}; experts of a layer are supported in one type alone"
    )


def take_factors(tensors: Mapping[str, TensorInfo]) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """A GGUF file's tensors without the scales of NVFP4 weights, and those of weights by their names.

    Scales of activations are left out too: activations have more than four bits here.
    """
    out, factors = dict(tensors), {}
    for name, tensor in tensors.items():
        if tensor.dtype != "nvfp4" or not name.endswith(".weight"):
            continue
        stem = name.removesuffix("weight")
        if out.pop(f"{stem}scale", None) is not None:
            factors[name] = f"{stem}scale"
        out.pop(f"{stem}input_scale", None)
    return out, factors


def with_factors(refs: Mapping[str, TensorRef], factors: Mapping[str, str]) -> dict[str, TensorRef]:
    """The places of canonical tensors, with the scales that `take_factors` found."""
    return {
        name: _with_factor(name, ref, factors[ref.source]) if ref.source in factors else ref
        for name, ref in refs.items()
    }


def _with_factor(name: str, ref: TensorRef, factor: str, *, inverse: bool = False) -> TensorRef:
    if name == "token_embedding":
        raise UnsupportedError(
            f"tensor {ref.source}: NVFP4 with a scale of its own is not supported for the embedding"
        )
    return dataclasses.replace(ref, factor=factor, inverse=inverse)


def _is_four_bits(settings: Mapping[str, object]) -> bool:
    method = settings.get("quant_method")
    if method == "modelopt":
        return settings.get("quant_algo") == "NVFP4"
    return method == "compressed-tensors" and settings.get("format") in _FOUR_BITS


def _join_four_bits(
    settings: Mapping[str, object], tensors: Mapping[str, TensorInfo]
) -> dict[str, TensorInfo]:
    """The tensors, with one matrix for codes, two in a byte, scales and, of NVFP4, their factor."""
    packed = settings["quant_method"] == "compressed-tensors"
    end, factor_end = ("weight_packed", "weight_global_scale") if packed else ("weight", "weight_scale_2")
    dtype, group = "mlx_nvfp4", 16
    scale_types: tuple[str, ...] = ("f8_e4m3",)
    if settings.get("format") == "mxfp4-pack-quantized":
        dtype, group, scale_types, factor_end = "mlx_mxfp4", 32, ("u8", "f8_e8m0"), ""
    out = {name: tensor for name, tensor in tensors.items() if name.rpartition(".")[2] not in _UNUSED}
    for name, codes in tensors.items():
        if not name.endswith(f".{end}") or codes.dtype != "u8":
            continue
        module = name.removesuffix(end)
        scales, factor = f"{module}weight_scale", f"{module}{factor_end}" if factor_end else ""
        for part in filter(None, (scales, factor)):
            if part not in tensors:
                raise ModelFileError(f"tensor {part} is missing; {name} belongs to it")
            del out[part]
        *rows, n_bytes = codes.shape or (0,)
        shape = (*rows, 2 * n_bytes // group)
        found = (tensors[scales].dtype, tuple(tensors[scales].shape))
        if len(rows) != 1 or found[0] not in scale_types or found[1] != shape:
            raise ModelFileError(
                f"tensor {scales}: found {found[0]} {found[1]}, expected {' or '.join(scale_types)} {shape}, "
                f"a scale for each {group} codes of {name}"
            )
        if n_bytes % 16:
            raise UnsupportedError(
                f"tensor {name}: found rows of {2 * n_bytes} {dtype.removeprefix('mlx_')} codes; "
                "only multiples of 32 are supported"
            )
        del out[name]
        out[f"{module}weight"] = Matrix(
            name, dtype, (*rows, 2 * n_bytes), scales, factor=factor, inverse=packed
        )
    return out


def quantization(config: Mapping[str, object]) -> tuple[str, Mapping[str, object] | None]:
    """The key of the quantization, and what it says.

    Raises
    ------
    UnsupportedError
        The quantization is not one of those that Akunu knows.
    """
    for key in _KEYS:
        found = config.get(key)
        if found is None:
            continue
        if not isinstance(found, Mapping):
            raise ModelFileError(f"config.json: {key}: found {shown(found)}, expected an object")
        if "quant_method" in found and found["quant_method"] not in _METHODS:
            raise UnsupportedError(
                f"config.json: {key}: the weights are quantized by {shown(found['quant_method'])}, which is "
                f"not supported; {REMEDY}"
            )
        if found.get("transform_config"):
            raise UnsupportedError(
                f"config.json: {key}.transform_config: the weights are rotated, and rows would have to be "
                f"while the model runs, which is not supported; {REMEDY}"
            )
        return key, found
    return "", None


class _Module:
    """The quantization of one module: its own, else the model's."""

    def __init__(self, where: str, settings: Mapping[str, object], name: str) -> None:
        own = settings.get(name)
        self._name = name
        self._where = where
        self._own = isinstance(own, Mapping)
        if isinstance(own, Mapping):
            self._where, settings = f"{where}.{name}", own
        elif own is False:
            raise ModelFileError(
                f"{where}.{name}: found false, but the tensor {name}.scales says that it is quantized"
            )
        self._settings = settings

    def matrix(self, tensors: Mapping[str, TensorInfo], scales: TensorInfo) -> Matrix:
        """The matrix that has these scales."""
        mode = self._settings.get("mode", "affine")
        scale_types: tuple[str, ...]
        if isinstance(mode, str) and mode in _FLOAT_MODES:
            bits, group = _FLOAT_MODES[mode]
            bits, group = self._one_of("bits", (bits,), bits), self._one_of("group_size", (group,), group)
            dtype, scale_types = f"mlx_{mode}", ("u8",)
        elif mode == "affine":
            bits = self._one_of("bits", _BITS, 4, needed=not self._own)
            group = self._one_of("group_size", _GROUPS, 64, needed=not self._own)
            dtype, scale_types = f"mlx_q{bits}_g{group}_{scales.dtype}", _SCALES
        else:
            raise UnsupportedError(
                f"{self._where}.mode: found {shown(mode)}; supported are affine, {', '.join(_FLOAT_MODES)}"
            )
        if scales.dtype not in scale_types:
            raise ModelFileError(
                f"tensor {scales.name}: found type {scales.dtype}, expected {' or '.join(scale_types)}"
            )
        codes = self._plane(tensors, "weight")
        if len(scales.shape) not in (2, 3):
            raise ModelFileError(
                f"tensor {scales.name}: found shape {tuple(scales.shape)}, expected 2 dimensions, or 3 of "
                "experts"
            )
        *rows, n_groups = scales.shape
        if n_groups * group % 32:
            raise UnsupportedError(
                f"tensor {codes.name}: found rows of {n_groups * group} {mode} codes; "
                "only multiples of 32 are supported"
            )
        form = f"{bits} bits in groups of {group}"
        self._expect(codes, "u32", (*rows, n_groups * group * bits // 32), form)
        biases = ""
        if mode == "affine":
            plane = self._plane(tensors, "biases")
            self._expect(plane, scales.dtype, (*rows, n_groups), form)
            biases = plane.name
        return Matrix(codes.name, dtype, (*rows, n_groups * group), scales.name, biases)

    def _one_of(self, key: str, known: Sequence[int], default: int, *, needed: bool = False) -> int:
        value = self._settings.get(key)
        if value is None and (key in self._settings or not needed):  # the recipes of mlx-lm write null
            value = default
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

    def _expect(self, tensor: TensorInfo, dtype: str, shape: tuple[int, ...], form: str) -> None:
        if tensor.dtype == dtype and tuple(tensor.shape) == shape:
            return
        raise ModelFileError(
            f"tensor {tensor.name}: found {tensor.dtype} {tuple(tensor.shape)}, expected {dtype} {shape}, "
            f"as {self._name}.scales and {form} ({self._where}) have it"
        )


def _join_mxfp4(tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """The tensors, with one matrix for `x_blocks`, pairs of codes [..., groups, 16], and `x_scales`."""
    out = dict(tensors)
    for name, codes in tensors.items():
        if not name.endswith("_blocks"):
            continue
        module = name.removesuffix("_blocks")
        scales = tensors.get(f"{module}_scales")
        if scales is None:
            raise ModelFileError(f"tensor {module}_scales is missing; {name} belongs to it")
        *rows, groups, bytes_ = codes.shape if len(codes.shape) > 2 else (0, 0, 0)
        if (codes.dtype, scales.dtype, bytes_) != ("u8", "u8", 16) or tuple(scales.shape) != (*rows, groups):
            raise ModelFileError(
                f"tensor {name}: found {codes.dtype} {tuple(codes.shape)} with scales of {scales.dtype} "
                f"{tuple(scales.shape)}, expected bytes [..., groups, 16] and [..., groups]"
            )
        del out[name], out[scales.name]
        out[module] = Matrix(name, "mlx_mxfp4", (*rows, groups * 32), scales.name)
    return out


def _join_fp8(
    where: str, settings: Mapping[str, object], tensors: Mapping[str, TensorInfo]
) -> dict[str, TensorInfo]:
    """The tensors, with one matrix for codes and scales of FP8."""
    own = settings["quant_method"] == "fp8"
    tile = _fp8_tile(where, settings)
    out = {name: tensor for name, tensor in tensors.items() if name.rpartition(".")[2] not in _UNUSED}
    for name, codes in tensors.items():
        if not name.endswith(".weight") or codes.dtype != "f8_e4m3" or len(codes.shape) != 2:
            continue
        module = name.removesuffix("weight")
        scales = f"{module}weight_scale"
        if own and (scales not in tensors or f"{scales}_inv" in tensors):  # the first is AutoFP8's
            scales += "_inv"
        if scales not in tensors:
            raise ModelFileError(f"tensor {scales} is missing; {name} belongs to it")
        del out[scales]
        if codes.shape[1] % 32:
            raise UnsupportedError(
                f"tensor {name}: found rows of {codes.shape[1]} FP8 codes; only multiples of "
                "32 are supported; take the model's F16 or BF16 checkpoint"
            )
        wide = codes.shape[1] % 128 == 0 and tile[1] % 128 == 0
        dtype = "f8_e4m3_g128" if wide else "f8_e4m3_g32"
        out[name] = Matrix(name, dtype, tuple(codes.shape), scales, "", tile)
    return out


def _fp8_tile(where: str, settings: Mapping[str, object]) -> tuple[int, int]:
    """Rows, and elements of a row, that have one scale; 0 is all."""
    method = settings["quant_method"]
    if method == "fp8":
        return _block_tile(where, settings)
    if method == "fbgemm_fp8":
        return (1, 0)
    if method == "compressed-tensors":
        return _compressed_tile(where, settings)
    if settings.get("quant_algo") != "FP8":
        raise UnsupportedError(
            f"{where}.quant_algo: found {shown(settings.get('quant_algo'))}; supported are FP8 and NVFP4: "
            f"{REMEDY}"
        )
    return (0, 0)


def _block_tile(where: str, settings: Mapping[str, object]) -> tuple[int, int]:
    """The tile of Transformers' FP8."""
    if settings.get("fmt", "e4m3") != "e4m3":
        raise UnsupportedError(f"{where}.fmt: found {shown(settings['fmt'])}; supported is e4m3")
    block = settings.get("weight_block_size")
    return (0, 0) if block is None else _tile(f"{where}.weight_block_size", block)


def _tile(where: str, block: object) -> tuple[int, int]:
    if isinstance(block, list) and len(block) == 2:
        rows, cols = block
        sizes = isinstance(rows, int) and isinstance(cols, int)
        if sizes and 0 < rows < 1 << 31 and 0 < cols < 1 << 31 and cols % 32 == 0:
            return rows, cols
    raise UnsupportedError(f"{where}: found {shown(block)}, expected two sizes, the second a multiple of 32")


def _compressed_tile(where: str, settings: Mapping[str, object]) -> tuple[int, int]:
    """The tile of what compressed-tensors calls float-quantized."""
    if settings.get("format") not in ("float-quantized", "naive-quantized"):
        raise UnsupportedError(
            f"{where}.format: found {shown(settings.get('format'))}; supported are {', '.join(_FORMS)}; "
            f"{REMEDY}"
        )
    groups = settings.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise UnsupportedError(f"{where}.config_groups: found {shown(groups)}, expected groups of modules")
    tiles = {_group_tile(where, group) for group in groups.values()}
    if len(tiles) != 1:
        raise UnsupportedError(f"{where}.config_groups: found {shown(groups)}, expected one strategy of all")
    return tiles.pop()


def _group_tile(where: str, group: object) -> tuple[int, int]:
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping) or (weights.get("num_bits"), weights.get("type")) != (8, "float"):
        raise UnsupportedError(f"{where}: weights: found {shown(weights)}, expected floats of 8 bits")
    strategy = weights.get("strategy")
    if strategy == "block":
        return _tile(f"{where}: block_structure", weights.get("block_structure"))
    tiles = {"channel": (1, 0), "tensor": (0, 0)}
    if not isinstance(strategy, str) or strategy not in tiles:
        raise UnsupportedError(
            f"{where}: strategy: found {shown(strategy)}; supported are block, {', '.join(tiles)}"
        )
    return tiles[strategy]
