"""Rules of the tensors of towers, and their numbers."""

from __future__ import annotations

from typing import Literal

from akunu.api.vision.family import Numbers, Sizes
from akunu.base.errors import ModelFileError
from akunu.files.describe.tensor_rules import TensorRule

__all__ = ["clip_sizes", "linear", "matrix", "norm", "qkv", "vector"]


def linear(
    gguf: str, hf: str, name: str, rows: str, cols: str, *, bias: Literal["needed", "optional"] = "needed"
) -> tuple[TensorRule, TensorRule]:
    """A matrix and its bias."""
    return (
        TensorRule(f"{gguf}.weight", f"{hf}.weight", ((name, rows),), cols),
        TensorRule(f"{gguf}.bias", f"{hf}.bias", ((f"{name}_bias", rows),), optional=bias == "optional"),
    )


def norm(gguf: str, hf: str, name: str, dim: str = "dim") -> tuple[TensorRule, TensorRule]:
    """A LayerNorm: its weight and its bias."""
    return (
        TensorRule(f"{gguf}.weight", f"{hf}.weight", ((name, dim),)),
        TensorRule(f"{gguf}.bias", f"{hf}.bias", ((f"{name}_bias", dim),)),
    )


def qkv(gguf: str, hf: str) -> tuple[TensorRule, TensorRule]:
    """The matrices of q, k and v in one, and their biases."""
    parts = ("attn_q", "attn_k", "attn_v")
    return (
        TensorRule(f"{gguf}.weight", f"{hf}.weight", tuple((name, "dim") for name in parts), "dim"),
        TensorRule(f"{gguf}.bias", f"{hf}.bias", tuple((f"{name}_bias", "dim") for name in parts)),
    )


def matrix(gguf: str, hf: str, name: str, rows: str, cols: str) -> TensorRule:
    """A matrix without a bias."""
    return TensorRule(f"{gguf}.weight", f"{hf}.weight", ((name, rows),), cols)


def clip_sizes(
    numbers: Numbers, *, merge: int, out: int, grid: int, inner: int = 0, turns: bool = False
) -> Sizes:
    """The numbers of a tower by the names of CLIP and its like."""
    dim, heads = numbers.integer("hidden_size"), numbers.integer("num_attention_heads")
    if dim % heads or (turns and dim // heads % 4):
        raise ModelFileError(
            f"vision_config: found {dim} elements and {heads} heads, expected heads of equal sizes"
            + (", multiples of 4" if turns else "")
        )
    return Sizes(
        layers=numbers.integer("num_hidden_layers"),
        dim=dim,
        heads=heads,
        ffn=numbers.integer("intermediate_size"),
        patch_size=numbers.integer("patch_size", 256),
        merge_size=merge,
        frames=1,
        channels=numbers.integer("num_channels", 16),
        grid=grid,
        out=out,
        image_size=numbers.integer("image_size"),
        activation=numbers.activation("hidden_act"),
        norm_eps=numbers.real("layer_norm_eps"),
        inner=inner,
    )


def vector(gguf: str, hf: str, name: str, dim: str = "dim", *, optional: bool = False) -> TensorRule:
    """A vector that is all of its tensor, such as the weight of an RMS norm."""
    return TensorRule(gguf, hf, ((name, dim),), optional=optional)
