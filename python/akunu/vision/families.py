"""The families of towers, as data: their numbers, tensors and blocks.

A tower is a list of blocks, as a model of text is: attention in both directions and feed-forwards over an
image's patches, and blocks that make rows of neighbouring patches. No code asks which family it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.describe.blocks import Attention, Block, FeedForward, Merge, RopeSet
from akunu.describe.config_numbers import shown
from akunu.describe.tensor_rules import Activation, TensorRule

__all__ = ["FAMILIES", "Family", "Numbers", "Sizes", "Turning", "tower_config"]

MOST_PATCHES: Final = 1 << 16
"""Of an image. Processors make fewer."""

_ACTIVATIONS: Final[Mapping[str, Activation]] = MappingProxyType(
    {
        "gelu_pytorch_tanh": "gelu_tanh",
        "gelu_new": "gelu_tanh",
        "gelu": "gelu",
        "quick_gelu": "gelu",
        "silu": "silu",
    }
)


@dataclass(frozen=True)
class Turning:
    """How the rows of an image turn in the text: by their time, row and column.

    Attributes
    ----------
    sections
        How many frequencies turn by each.
    interleaved
        Frequencies of the three take turns; else they are in three runs.
    """

    sections: tuple[int, int, int]
    interleaved: bool

    def axes(self, n: int) -> tuple[int, ...]:
        """By which of the three each of n frequencies turns."""
        if sum(self.sections) != n:
            raise ModelFileError(
                f"mrope_section: found {list(self.sections)}, expected {n} frequencies in all"
            )
        if self.interleaved:
            return tuple(i % 3 if i < 3 * self.sections[i % 3] else 0 for i in range(n))
        return tuple(axis for axis, count in enumerate(self.sections) for _ in range(count))


class Numbers:
    """Numbers of a tower in a file, checked as they are read."""

    def __init__(self, given: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
        self._given, self._defaults, self._where = given, defaults, where

    def raw(self, name: str) -> Any:
        """What the file says, or the family's default."""
        found = self._given.get(name)
        return self._defaults.get(name) if found is None else found

    def integer(self, name: str, most: int = 1 << 20) -> int:
        """A number of 1 to `most`."""
        found = self.raw(name)
        if isinstance(found, list | tuple) and len(set(found)) == 1:  # a side for each of two
            found = found[0]
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= most:
            raise ModelFileError(f"{self._shown(name)}: found {shown(found)}, expected 1 to {most}")
        return found

    def real(self, name: str) -> float:
        """A positive number."""
        found = self.raw(name)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1e9:
            raise ModelFileError(f"{self._shown(name)}: found {shown(found)}, expected a positive number")
        return float(found)

    def integers(self, name: str, below: int) -> tuple[int, ...]:
        """A list of rising numbers."""
        found = self.raw(name)
        if (
            not isinstance(found, list | tuple)
            or not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < below for n in found)
            or list(found) != sorted(set(found))
        ):
            raise ModelFileError(
                f"{self._shown(name)}: found {shown(found)}, expected rising numbers below {below}"
            )
        return tuple(found)

    def activation(self, name: str) -> Activation:
        """An activation by Transformers' name."""
        found = self.raw(name)
        if not isinstance(found, str) or found not in _ACTIVATIONS:
            raise UnsupportedError(
                f"{self._shown(name)}: found {shown(found)}, expected one of {', '.join(_ACTIVATIONS)}"
            )
        return _ACTIVATIONS[found]

    def _shown(self, name: str) -> str:
        return f"{self._where}.{name}"


@dataclass(frozen=True)
class Sizes:
    """A tower's numbers.

    Attributes
    ----------
    out
        Elements of a row: those of the model's embedding.
    grid
        Patches on the side of the square that the vectors of positions are of; 0: there are none.
    deep_layers
        Those behind which rows are made that are added behind the model's first layers.
    """

    layers: int
    dim: int
    heads: int
    ffn: int
    patch_size: int
    merge_size: int
    frames: int
    channels: int
    grid: int
    out: int
    image_size: int
    activation: Activation
    norm_eps: float = 1e-6
    deep_layers: tuple[int, ...] = ()

    @property
    def values(self) -> int:
        """Of a patch, in one frame."""
        return self.channels * self.patch_size**2

    def symbols(self) -> dict[str, int]:
        """What the symbols of rules stand for."""
        merged = self.dim * self.merge_size**2
        return {
            "dim": self.dim,
            "ffn": self.ffn,
            "values": self.values,
            "film": self.values * self.frames,
            "positions": self.grid**2,
            "merged": merged,
            "out": self.out,
        }


Spread = Literal["corners"]
"""How vectors of positions are spread over an image's grid. "corners": the square that they were learned for
lies over it from corner to corner, and the nearest four of each patch are mixed."""


@dataclass(frozen=True)
class Family:
    """A row.

    Attributes
    ----------
    name
        What it is known by.
    processor
        The name of its images' processor in `akunu.vision.preprocess`.
    model_types
        Of `config.json`.
    projectors, archs
        Of GGUF files: `clip.projector_type` of the tower, `general.architecture` of the model of text.
    probe
        A tensor that every such tower has, in a folder, behind its prefix.
    rules
        Its tensors: `source` in GGUF files, `hf` in folders, behind the prefix; such files as have no name
        here have no such tensor. `{n}` is a layer, `{k}` one of the `deep_layers`, whose number is `{layer}`.
    sizes
        Makes the numbers, of `vision_config` and of the whole of `config.json`.
    defaults
        Of `vision_config`.
    gguf_keys, gguf_shapes
        Names of `vision_config` by keys of a GGUF file, behind "clip.vision.", or as the rows of a tensor.
    layer_norm
        Norms are LayerNorm, else RMS.
    rotary
        The base of the frequencies by which heads turn, half of them by a patch's row and half by its column;
        None: they do not.
    spread
        See `Spread`.
    turns
        How rows turn in the text: in the order of "interleaved" or of "runs" of frequencies; None: as tokens.
    """

    name: str
    processor: str
    model_types: tuple[str, ...]
    projectors: tuple[str, ...]
    archs: tuple[str, ...]
    probe: str
    rules: tuple[TensorRule, ...]
    sizes: Callable[[Numbers, Mapping[str, Any]], Sizes]
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    gguf_keys: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    gguf_shapes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    layer_norm: bool = True
    rotary: float | None = None
    spread: Spread | None = None
    turns: Literal["interleaved", "runs"] | None = None

    def turning(self, sections: object) -> Turning | None:
        """How rows turn in the text, given what its file says of the three sections."""
        if self.turns is None:
            return None
        if (
            not isinstance(sections, list | tuple)
            or len(sections) < 3
            or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in sections)
        ):
            raise ModelFileError(
                f"the sections of rotary positions: found {shown(sections)}, expected three numbers"
            )
        return Turning((sections[0], sections[1], sections[2]), self.turns == "interleaved")


def tower_config(family: Family, sizes: Sizes) -> dict[str, object]:
    """The tower's numbers, as `akunu._core.ImageEncoder` takes them."""
    head_dim = sizes.dim // sizes.heads
    sets: tuple[RopeSet, ...] = ()
    if family.rotary is not None:
        quarter = head_dim // 4
        inv_freq = 1.0 / family.rotary ** (np.arange(0, 2 * quarter, 2, dtype=np.float64) / (2 * quarter))
        frequencies = np.concatenate([inv_freq, inv_freq]).astype(np.float32)
        sets = (RopeSet(frequencies, 1.0, "half", axes=(1,) * quarter + (2,) * quarter),)
    attention = Attention(
        n_heads=sizes.heads,
        n_kv_heads=sizes.heads,
        head_dim=head_dim,
        scale=head_dim**-0.5,
        rope=0 if sets else None,
        bidirectional=True,
    )
    merged = sizes.dim * sizes.merge_size**2
    blocks: list[Block] = []
    for n in range(sizes.layers):
        blocks.append(Block(f"layers.{n}.", n, attention))
        blocks.append(Block(f"layers.{n}.", n, FeedForward(sizes.ffn, sizes.activation)))
        if n in sizes.deep_layers:
            k = sizes.deep_layers.index(n)
            blocks.append(Block(f"deep.{k}.", n, Merge("gelu", merged, part=k + 1)))
    blocks.append(Block("merger.", sizes.layers, Merge("gelu", merged)))
    return {
        "dim": sizes.dim,
        "vocab_size": 0,
        "context_length": MOST_PATCHES,
        "positions": sizes.grid**2,
        "norm_eps": sizes.norm_eps,
        "layer_norm": family.layer_norm,
        "rope_sets": sets,
        "blocks": tuple(blocks),
        "image": {
            "values": sizes.values,
            "frames": sizes.frames,
            "channels": sizes.channels,
            "patches": sizes.merge_size**2,
            "dim": sizes.out,
            "parts": 1 + len(sizes.deep_layers),
        },
    }


def _linear(gguf: str, hf: str, name: str, rows: str, cols: str) -> tuple[TensorRule, TensorRule]:
    return (
        TensorRule(f"{gguf}.weight", f"{hf}.weight", ((name, rows),), cols),
        TensorRule(f"{gguf}.bias", f"{hf}.bias", ((f"{name}_bias", rows),)),
    )


def _norm(gguf: str, hf: str, name: str, dim: str = "dim") -> tuple[TensorRule, TensorRule]:
    return (
        TensorRule(f"{gguf}.weight", f"{hf}.weight", ((name, dim),)),
        TensorRule(f"{gguf}.bias", f"{hf}.bias", ((f"{name}_bias", dim),)),
    )


def _qkv(gguf: str, hf: str) -> tuple[TensorRule, TensorRule]:
    parts = ("attn_q", "attn_k", "attn_v")
    return (
        TensorRule(f"{gguf}.weight", f"{hf}.weight", tuple((name, "dim") for name in parts), "dim"),
        TensorRule(f"{gguf}.bias", f"{hf}.bias", tuple((f"{name}_bias", "dim") for name in parts)),
    )


_QWEN3_RULES: Final = (
    TensorRule("", "patch_embed.proj.weight", (("patches", "dim"),), "film"),
    TensorRule("v.patch_embd.weight", "", (("patches", "dim"),), "values"),
    TensorRule("v.patch_embd.weight.1", "", (("patches.1", "dim"),), "values"),
    TensorRule("v.patch_embd.bias", "patch_embed.proj.bias", (("patches_bias", "dim"),)),
    TensorRule("v.position_embd.weight", "pos_embed.weight", (("positions", "positions"),), "dim"),
    *_norm("v.blk.{n}.ln1", "blocks.{n}.norm1", "attn_norm"),
    *_norm("v.blk.{n}.ln2", "blocks.{n}.norm2", "ffn_norm"),
    *_qkv("v.blk.{n}.attn_qkv", "blocks.{n}.attn.qkv"),
    *_linear("v.blk.{n}.attn_out", "blocks.{n}.attn.proj", "attn_output", "dim", "dim"),
    *_linear("v.blk.{n}.ffn_up", "blocks.{n}.mlp.linear_fc1", "ffn_up", "ffn", "dim"),
    *_linear("v.blk.{n}.ffn_down", "blocks.{n}.mlp.linear_fc2", "ffn_down", "dim", "ffn"),
    *_norm("v.post_ln", "merger.norm", "merger.norm"),
    *_linear("mm.0", "merger.linear_fc1", "merger.first", "merged", "merged"),
    *_linear("mm.2", "merger.linear_fc2", "merger.last", "out", "merged"),
    *_norm("v.deepstack.{layer}.norm", "deepstack_merger_list.{k}.norm", "deep.{k}.merged_norm", "merged"),
    *_linear(
        "v.deepstack.{layer}.fc1",
        "deepstack_merger_list.{k}.linear_fc1",
        "deep.{k}.first",
        "merged",
        "merged",
    ),
    *_linear(
        "v.deepstack.{layer}.fc2", "deepstack_merger_list.{k}.linear_fc2", "deep.{k}.last", "out", "merged"
    ),
)
_QWEN3_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "depth": 27, "hidden_size": 1152, "num_heads": 16, "intermediate_size": 4304, "in_channels": 3,
        "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584,
        "num_position_embeddings": 2304, "hidden_act": "gelu_pytorch_tanh", "deepstack_visual_indexes": [],
    }
)  # fmt: skip
_QWEN_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "depth": "block_count", "hidden_size": "embedding_length", "num_heads": "attention.head_count",
        "intermediate_size": "feed_forward_length", "patch_size": "patch_size",
        "spatial_merge_size": "spatial_merge_size",
    }
)  # fmt: skip
_QWEN3_SHAPES: Final[Mapping[str, str]] = MappingProxyType(
    {"out_hidden_size": "mm.2.weight", "num_position_embeddings": "v.position_embd.weight"}
)


def _qwen3_sizes(numbers: Numbers, _config: Mapping[str, Any]) -> Sizes:
    layers, dim = numbers.integer("depth"), numbers.integer("hidden_size")
    heads = numbers.integer("num_heads")
    positions = numbers.integer("num_position_embeddings")
    grid = int(positions**0.5)
    if dim % heads or dim // heads % 4 or grid**2 != positions:
        raise ModelFileError(
            f"vision_config: found {dim} elements, {heads} heads and {positions} positions, expected "
            "heads of a multiple of 4 elements, and a square of positions"
        )
    patch = numbers.integer("patch_size", 256)
    return Sizes(
        layers=layers,
        dim=dim,
        heads=heads,
        ffn=numbers.integer("intermediate_size"),
        patch_size=patch,
        merge_size=numbers.integer("spatial_merge_size", 16),
        frames=numbers.integer("temporal_patch_size", 16),
        channels=numbers.integer("in_channels", 16),
        grid=grid,
        out=numbers.integer("out_hidden_size"),
        image_size=grid * patch,
        activation=numbers.activation("hidden_act"),
        deep_layers=numbers.integers("deepstack_visual_indexes", layers),
    )


_QWEN3_VL: Final = Family(
    "qwen3_vl",
    "qwen3_vl",
    ("qwen3_vl", "qwen3_vl_moe"),
    ("qwen3vl_merger",),
    ("qwen3vl", "qwen3vlmoe"),
    "pos_embed.weight",
    _QWEN3_RULES,
    _qwen3_sizes,
    defaults={**_QWEN3_DEFAULTS, "deepstack_visual_indexes": [8, 16, 24]},
    gguf_keys=_QWEN_KEYS,
    gguf_shapes=_QWEN3_SHAPES,
    rotary=1e4,
    spread="corners",
    turns="interleaved",
)
_ROWS: Final = (
    _QWEN3_VL,
    replace(
        _QWEN3_VL,
        name="qwen3_5",
        model_types=("qwen3_5", "qwen3_5_moe"),
        archs=("qwen35", "qwen35moe"),
        defaults=_QWEN3_DEFAULTS,
    ),
)
FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({row.name: row for row in _ROWS})
"""The families, by name."""
