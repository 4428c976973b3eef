"""File types: which tensor of a model gets which type, by the rules of llama.cpp's quantiser.

A file type such as q4_k_m is a mix: most matrices have the type of its name, some sensitive ones have more
bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from akunu.base.errors import InvalidArgumentError

__all__ = [
    "EXACT",
    "FILE_TYPES",
    "FILE_TYPE_NAMES",
    "KV_DTYPES",
    "MLX_TYPES",
    "SYNTHETIC_TYPES",
    "FileType",
    "MlxType",
    "block_of",
    "kv_dtypes",
    "tensor_dtype",
]


@dataclass(frozen=True)
class FileType:
    """One file type: the value of `general.file_type`, the name in tables, and the type of most matrices."""

    id: int
    name: str
    dtype: str


FILE_TYPES: Final[Mapping[str, FileType]] = MappingProxyType(
    {
        "f32": FileType(0, "all F32", "f32"),
        "f16": FileType(1, "F16", "f16"),
        "bf16": FileType(32, "BF16", "bf16"),
        "q4_0": FileType(2, "Q4_0", "q4_0"),
        "q4_1": FileType(3, "Q4_1", "q4_1"),
        "q5_0": FileType(8, "Q5_0", "q5_0"),
        "q5_1": FileType(9, "Q5_1", "q5_1"),
        "q8_0": FileType(7, "Q8_0", "q8_0"),
        "q2_k_s": FileType(21, "Q2_K - Small", "q2_k"),
        "q2_k": FileType(10, "Q2_K - Medium", "q2_k"),
        "q3_k_s": FileType(11, "Q3_K - Small", "q3_k"),
        "q3_k_m": FileType(12, "Q3_K - Medium", "q3_k"),
        "q3_k_l": FileType(13, "Q3_K - Large", "q3_k"),
        "q4_k_s": FileType(14, "Q4_K - Small", "q4_k"),
        "q4_k_m": FileType(15, "Q4_K - Medium", "q4_k"),
        "q5_k_s": FileType(16, "Q5_K - Small", "q5_k"),
        "q5_k_m": FileType(17, "Q5_K - Medium", "q5_k"),
        "q6_k": FileType(18, "Q6_K", "q6_k"),
        "iq4_nl": FileType(25, "IQ4_NL - 4.5 bpw", "iq4_nl"),
        "iq4_xs": FileType(30, "IQ4_XS - 4.25 bpw", "iq4_xs"),
        "mxfp4": FileType(38, "MXFP4 MoE", "mxfp4"),
        "tq1_0": FileType(36, "TQ1_0 - 1.69 bpw ternary", "tq1_0"),
        "tq2_0": FileType(37, "TQ2_0 - 2.06 bpw ternary", "tq2_0"),
        "q1_0": FileType(40, "Q1_0", "q1_0"),
        "q2_0": FileType(41, "Q2_0", "q2_0"),
    }
)
"""The file types, by the name that `akunu convert --type` and `akunu-bench --synthetic` take."""

SYNTHETIC_TYPES: Final[Mapping[str, FileType]] = MappingProxyType(
    {
        **FILE_TYPES,
        "iq1_s": FileType(24, "IQ1_S - 1.5625 bpw", "iq1_s"),
        "iq1_m": FileType(31, "IQ1_M - 1.75 bpw", "iq1_m"),
        "iq2_xxs": FileType(19, "IQ2_XXS - 2.0625 bpw", "iq2_xxs"),
        "iq2_xs": FileType(20, "IQ2_XS - 2.3125 bpw", "iq2_xs"),
        "iq2_s": FileType(28, "IQ2_S - 2.5 bpw", "iq2_s"),
        "iq3_xxs": FileType(23, "IQ3_XXS - 3.0625 bpw", "iq3_xxs"),
        "iq3_s": FileType(26, "IQ3_S - 3.4375 bpw", "iq3_s"),
    }
)
"""`akunu-bench --synthetic` takes these file types: ours, and those that only other tools can write."""


@dataclass(frozen=True)
class MlxType:
    """The weights of a folder: codes of so many bits, or floats of a type, which Transformers loads too."""

    bits: int = 0
    dtype: str = ""


MLX_TYPES: Final[Mapping[str, MlxType]] = MappingProxyType(
    {f"mlx-{bits}bit": MlxType(bits=bits) for bits in (2, 3, 4, 5, 6, 8)}
    | {f"mlx-{dtype}": MlxType(dtype=dtype) for dtype in ("f16", "bf16", "f32")}
)
"""Types of folders, by the name that `akunu convert --type` takes."""

FILE_TYPE_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {row.id: row.name for row in SYNTHETIC_TYPES.values()}
)
"""Names in tables by `general.file_type`, those of llama-bench."""

KV_DTYPES: Final = ("f16", "f32", "q8_0", "q4_0")
"""Types that the cached keys and values can have."""

EXACT: Final = (
    "position_embd",
    "token_types",
    "ssm_conv1d",
    "shortconv.conv",
    "ffn_gate_inp",
    "ffn_gate_inp_shexp",
    "altup_router",
    "altup_predict_coef",
    "altup_correct_coef",
)
"""Matrices that have floats of 32 bits in files of all types: llama.cpp multiplies none of them with rows, or
they choose experts."""

_HALVES: Final = ("per_layer_model_proj", "altup_proj", "altup_unembd_proj", "laurel_l", "laurel_r")
"""Matrices that llama.cpp does not quantise."""

# When a row is not whole blocks of 256, the next type with blocks of 32.
_FALLBACK: Final[Mapping[str, str]] = MappingProxyType(
    {"q2_k": "q4_0", "q3_k": "q4_0", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0", "iq4_xs": "iq4_nl"}
    | dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"), "iq4_nl")
    | dict.fromkeys(("tq1_0", "tq2_0", "q1_0", "q2_0"), "q4_0")
)


@cache
def _blocks() -> Mapping[str, tuple[int, int]]:
    from akunu import _core

    return {row["name"]: (row["block_elems"], row["block_bytes"]) for row in _core.dtypes()}


def block_of(dtype: str) -> tuple[int, int]:
    """Elements and bytes of a block of a type."""
    return _blocks()[dtype]


def tensor_dtype(
    file_type: str,
    tensor: str,
    *,
    layer: int,
    n_layers: int,
    cols: int,
    gqa: int,
    tied: bool,
    weighted: bool = False,
    n_experts: int = 0,
) -> str:
    """Type of one matrix in a file of this type.

    Parameters
    ----------
    file_type
        Key of `SYNTHETIC_TYPES`.
    tensor
        Its name in the file without layer prefix and ".weight": "attn_v", "token_embd", …
    layer, n_layers
        Its layer, and how many there are.
    cols
        Elements of a row.
    gqa
        Query heads that share a key-value head.
    tied
        The embedding is the output head too.
    weighted
        There is an importance matrix.
    n_experts
        How many experts a layer of the model has.
    """
    dtype = "f32" if tensor in EXACT else SYNTHETIC_TYPES[file_type].dtype
    if dtype in ("f32", "f16", "bf16"):
        return dtype
    if tensor in _HALVES:
        return "f16"
    mixed = _mixed_for_experts(file_type, tensor, n_experts) or _mixed(
        file_type, dtype, tensor, layer, n_layers, cols, gqa, tied, weighted
    )
    return _fitting(mixed, cols)


_FEW_BITS: Final = (
    "q2_k", "q3_k_s", "q3_k_m", "q4_k_s", "q4_k_m", "iq4_nl", "iq4_xs", "iq3_xxs", "iq3_s",
)  # fmt: skip
"""File types that give `attn_output` more bits where experts are 8."""


def _mixed_for_experts(file_type: str, tensor: str, n_experts: int) -> str:
    """The type that the mix of a model with experts asks for, where that of others is another; or ""."""
    if n_experts and file_type == "mxfp4":
        return "mxfp4" if tensor.endswith("_exps") else "q8_0"
    if n_experts == 8:  # beside which these are small
        if tensor in ("attn_k", "attn_v"):
            return "q8_0"
        if tensor == "attn_output" and file_type in _FEW_BITS:
            return "q5_k"
    return ""


def _mixed(
    file_type: str,
    dtype: str,
    tensor: str,
    layer: int,
    n_layers: int,
    cols: int,
    gqa: int,
    tied: bool,
    weighted: bool,
) -> str:
    """The type that the mix asks for, whether or not it fits the row."""
    if dtype.startswith(("iq1", "iq2", "iq3")):
        return _mixed_codebooks(dtype, tensor, layer < n_layers // 8, gqa, tied)
    if tensor == "output" or (tied and tensor == "token_embd"):
        whole = cols % block_of(dtype)[0] == 0
        return "q8_0" if dtype in ("q8_0", "mxfp4") or not whole else "q6_k"
    if tensor == "token_embd":
        return {"mxfp4": "q8_0", "tq1_0": "q4_k", "tq2_0": "q4_k", "q2_0": "q4_k"}.get(dtype, dtype)
    first_eighth = layer < n_layers // 8
    if tensor in ("attn_v", "attn_qkv"):
        match file_type:
            case "q2_k":
                return "q4_k" if gqa >= 4 else "q3_k"
            case "q2_k_s" if gqa >= 4:
                return "q4_k"
            case "q3_k_m":
                return "q5_k" if layer < 2 else "q4_k"
            case "q3_k_l":
                return "q5_k"
            case "iq4_nl" | "iq4_xs" if gqa >= 4:
                return "q5_k"
            case "q4_k_m" | "q5_k_m" if _more_bits(layer, n_layers):
                return "q6_k"
            case "q4_k_s" if layer < 4:
                return "q5_k"
    elif tensor in ("ffn_down", "ffn_down_exps", "ffn_down_shexp"):
        match file_type:
            case "q2_k":
                return "q3_k"
            case "q3_k_m":
                return "q5_k" if layer < n_layers // 16 else "q4_k"
            case "q3_k_l":
                return "q5_k"
            case "q4_k_m" | "q5_k_m" if _more_bits(layer, n_layers):
                return "q6_k"
            case "iq4_nl" | "iq4_xs" if first_eighth and not weighted:
                return "q5_k"
            case "q4_k_s" if first_eighth:
                return "q5_k"
            case "q2_k_s" if first_eighth:
                return "q4_k"
            case "q4_0" | "q5_0" if first_eighth and weighted:
                return "q4_1" if file_type == "q4_0" else "q5_1"
    elif tensor == "attn_output":
        match file_type:
            case "q2_k":
                return "q3_k"
            case "q3_k_m":
                return "q4_k"
            case "q3_k_l":
                return "q5_k"
    return dtype


def _mixed_codebooks(dtype: str, tensor: str, first_eighth: bool, gqa: int, tied: bool) -> str:
    """Choose the type of a tensor in a file of a codebook type: those always have an importance matrix."""
    if tensor == "output" or (tied and tensor == "token_embd"):
        return "q6_k" if dtype == "iq3_s" else "q5_k"
    better = {"iq2_s": "iq3_s", "iq3_xxs": "iq3_s", "iq3_s": "iq3_s"}.get(dtype, "q2_k")
    match tensor:
        case "attn_v" | "attn_qkv":
            return "q4_k" if gqa >= 4 else better
        case "token_embd":
            return better
        case "ffn_down" | "ffn_down_exps" | "ffn_down_shexp" if first_eighth:
            return "q4_k" if dtype.startswith("iq3") else better
        case "attn_output" if dtype.startswith("iq1"):
            return "iq2_xxs"
        case "attn_output" if dtype == "iq2_s":
            return better
    return dtype


def _more_bits(layer: int, n_layers: int) -> bool:
    """The first and the last eighth of the layers, and every third between."""
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2


def _fitting(dtype: str, cols: int) -> str:
    """A type whose blocks divide a row; F16 when none does."""
    if cols % block_of(dtype)[0]:
        dtype = _FALLBACK.get(dtype, dtype)
    return dtype if cols % block_of(dtype)[0] == 0 else "f16"


def kv_dtypes(names: object) -> tuple[str, str]:
    """Types of the cached keys and of the cached values: "q8_0" is both, "q8_0,q4_0" one of each.

    Raises
    ------
    InvalidArgumentError
        It is neither.
    """
    words = names.split(",") if isinstance(names, str) else []
    if len(words) not in (1, 2) or any(word not in KV_DTYPES for word in words):
        raise InvalidArgumentError(
            f"kv_dtype: no {names!r}; there is {', '.join(KV_DTYPES)}, "
            "or one of keys and one of values: q8_0,q4_0"
        )
    return words[0], words[-1]
