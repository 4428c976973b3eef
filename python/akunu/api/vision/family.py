"""A family of towers, and the blocks that follow from its row.

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
from akunu.files.describe.blocks import Attention, Block, FeedForward, Merge, RopeSet
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.tensor_rules import Activation, TensorRule

__all__ = ["Family", "Numbers", "Sizes", "Spread", "Turning", "tower_config"]

MOST_PATCHES: Final = 1 << 16
"""Patches that an image may have. Processors make fewer."""

_ACTIVATIONS: Final[Mapping[str, Activation]] = MappingProxyType(
    {
        "gelu_pytorch_tanh": "gelu_tanh",
        "gelu_new": "gelu_tanh",
        "gelu": "gelu",
        "silu": "silu",
    }
)


@dataclass(frozen=True)
class Turning:
    """The rotation of an image's rows in the text: by their time, row and column.

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
        """Return by which of the three each of n frequencies turns."""
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

    def renamed(self, names: Mapping[str, str]) -> Numbers:
        """Return these numbers, where what is given by some names is read by others."""
        given = {names.get(name, name): value for name, value in self._given.items()}
        return Numbers(given, self._defaults, self._where)

    def raw(self, name: str) -> Any:
        """Return what the file says, or the family's default."""
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

    def rotary_base(self) -> float | None:
        """The base of frequencies; None: no file says it."""
        found = self.raw("rope_parameters")
        given = {**found} if isinstance(found, Mapping) else {"rope_theta": self.raw("rope_theta")}
        if given.get("rope_theta") is None:
            return None
        return Numbers(given, {}, f"{self._where}.rope_parameters").real("rope_theta")

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
    inner
        Elements between the two products that make rows; 0: there is one.
    sides
        Vectors of positions of each side, where a patch has one for its column and one for its row; 0: it
        has not.
    window
        Rows on the side of a window of the image, which all layers but the `full_layers` see alone; 0: all
        layers see everything.
    most_rows
        The most rows of an image whose rows see each other in the text.
    merge_eps
        Epsilon of a norm without a weight before the last product; None: there is none.
    merged_norm_eps, patch_eps
        Epsilon of a norm with a weight of merged patches, and of one of patches before they are merged; None:
        that of the other norms.
    merge_activation
        Between two products that make rows.
    unused_layers
        In the files behind the last one.
    rotary_base
        The base of the frequencies by which heads turn.
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
    inner: int = 0
    sides: int = 0
    window: int = 0
    full_layers: tuple[int, ...] = ()
    most_rows: int = 0
    merge_eps: float | None = None
    merged_norm_eps: float | None = None
    patch_eps: float | None = None
    merge_activation: Activation = "gelu"
    unused_layers: int = 0
    rotary_base: float = 1e4

    @property
    def values(self) -> int:
        """Values of a patch, in one frame."""
        return self.channels * self.patch_size**2

    @property
    def positions(self) -> int:
        """Vectors of positions."""
        return 2 * self.sides or self.grid**2

    def symbols(self) -> dict[str, int]:
        """Return the values of the rules' symbols."""
        merged = self.dim * self.merge_size**2
        return {
            "one": 1,
            "dim": self.dim,
            "head": self.dim // self.heads,
            "ffn": self.ffn,
            "values": self.values,
            "film": self.values * self.frames,
            "positions": self.positions,
            "merged": merged,
            "inner": self.inner,
            "out": self.out,
        }


Spread = Literal["corners", "parts", "sides", "smooth"]
"""The way in which vectors of positions spread over an image's grid. "corners": the square that they were
learned for lies over it from corner to corner, and the nearest four of each patch are mixed. "parts": the
image is cut into as many parts as the square has, and a patch has the vector of the part in which it begins.
"smooth": the square is resized to the image as a picture is, bilinear, without aliases. "sides": a patch has
the sum of its column's vector, which are the first ones, and its row's."""

Rotary = Literal["alike", "alternating", "columns"]
"""The frequencies by which heads turn, half of them by a patch's row and half by its column: the same, or
in turns by one of a longer row. "columns": both by the same, the first half by the column."""

Whole = Literal["all", "windowed"]
"""The language model's layers that let rows see all of their image: all, or those that have a window."""


def _sees_whole(_text: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True)
class Family:
    """A row.

    Attributes
    ----------
    name
        What it is known by.
    processor
        The name of its images' processor in `akunu.chat.pictures.preprocess`.
    model_types
        The types in `config.json`.
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
        The defaults of `vision_config`.
    gguf_keys, gguf_shapes
        Names of `vision_config` by keys of a GGUF file, behind "clip.vision." unless they begin with the
        model's own "{arch}", or as the rows of a tensor, or as another of its axes.
    layer_norm
        Norms are LayerNorm, else RMS.
    rotary, rotary_base
        See `Rotary`; None: heads do not turn.
    gguf_pairs
        Elements of a head that turn together are neighbours in GGUF files; else they are half a head apart.
    spread
        See `Spread`.
    mean
        A row is made of its patches' mean; else they stand side by side.
    hf_norms_less_one
        Canonical names of norms whose weights are less by one in folders.
    whole
        In which layers of the model of text rows see all of their image; None: in none.
    sees_whole
        Whether they do there, by the configuration of the model of text, or the metadata of its file.
    norm_values
        Heads of v are normed, too, without a weight.
    attn_scale
        Factor on q·k; None: one over the root of a head's elements.
    centred
        Values of pixels are brought from 0 to 1 to -1 to 1 before they are multiplied.
    mean_gain
        A mean is multiplied with the root of its elements.
    hf_channels_last
        In folders the values of a patch are in the order [y, x, channel], and `hf_sides_paired`: the vectors
        of a column and of the row of the same number stand side by side.
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
    gguf_shapes: Mapping[str, str | tuple[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    layer_norm: bool = True
    rotary: Rotary | None = None
    rotary_base: float = 1e4
    gguf_pairs: bool = False
    spread: Spread | None = None
    mean: bool = False
    hf_norms_less_one: tuple[str, ...] = ()
    whole: Whole | None = None
    sees_whole: Callable[[Mapping[str, Any]], bool] = _sees_whole
    norm_values: bool = False
    attn_scale: float | None = None
    centred: bool = False
    mean_gain: bool = False
    hf_channels_last: bool = False
    hf_sides_paired: bool = False
    turns: Literal["interleaved", "runs"] | None = None

    def turning(self, sections: object) -> Turning | None:
        """Return how rows turn in the text, given what its file says of the three sections."""
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


def tower_config(family: Family, sizes: Sizes, *, gguf: bool, channels_last: bool) -> dict[str, object]:
    """The tower's numbers, as `akunu._core.ImageEncoder` takes them.

    `channels_last`: the values of a patch are in the order of MLX.
    """
    head_dim = sizes.dim // sizes.heads
    sets: tuple[RopeSet, ...] = ()
    if family.rotary is not None:
        sets = (_rotary(family, sizes.rotary_base, head_dim, pairs=gguf and family.gguf_pairs),)
    attention = Attention(
        n_heads=sizes.heads,
        n_kv_heads=sizes.heads,
        head_dim=head_dim,
        scale=head_dim**-0.5 if family.attn_scale is None else family.attn_scale,
        rope=0 if sets else None,
        bidirectional=True,
        norm_values=family.norm_values,
    )
    blocks: list[Block] = []
    for n in range(sizes.layers):
        windowed = sizes.window > 0 and n not in sizes.full_layers
        blocks.append(Block(f"layers.{n}.", n, replace(attention, image_windows=windowed)))
        blocks.append(Block(f"layers.{n}.", n, FeedForward(sizes.ffn, sizes.activation)))
        if n in sizes.deep_layers:
            k = sizes.deep_layers.index(n)
            blocks.append(Block(f"deep.{k}.", n, Merge("gelu", sizes.inner, part=k + 1)))
    last = Merge(
        sizes.merge_activation,
        sizes.inner,
        family.mean,
        normed=sizes.merge_eps is not None,
        norm_eps=sizes.merged_norm_eps if sizes.merge_eps is None else sizes.merge_eps,
        patch_eps=sizes.patch_eps,
        gain=sizes.dim**0.5 if family.mean_gain else 1.0,
    )
    blocks.append(Block("merger.", sizes.layers, last))
    return {
        "dim": sizes.dim,
        "vocab_size": 0,
        "context_length": MOST_PATCHES,
        "positions": sizes.positions,
        "norm_eps": sizes.norm_eps,
        "layer_norm": family.layer_norm,
        "rope_sets": sets,
        "blocks": tuple(blocks),
        "image": {
            "values": sizes.values,
            "frames": sizes.frames,
            "channels": 1 if channels_last else sizes.channels,
            "patches": sizes.merge_size**2,
            "dim": sizes.out,
            "parts": 1 + len(sizes.deep_layers),
        },
    }


def _rotary(family: Family, base: float, head_dim: int, *, pairs: bool) -> RopeSet:
    quarter = head_dim // 4
    if family.rotary != "alternating":
        down = 1.0 / base ** (np.arange(0, 2 * quarter, 2, dtype=np.float64) / (2 * quarter))
        across = down
    else:
        every = 1.0 / base ** (np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
        down, across = every[0::2], every[1::2]
    return RopeSet(
        np.concatenate([down, across]).astype(np.float32),
        1.0,
        "interleaved" if pairs else "half",
        axes=tuple(
            axis for axis in ((2, 1) if family.rotary == "columns" else (1, 2)) for _ in range(quarter)
        ),
    )
