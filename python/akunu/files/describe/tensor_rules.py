"""The parts of rows of `akunu.files.describe.architectures`: tensor rules, kinds of layers, choices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

from akunu.base.errors import UnsupportedError

__all__ = [
    "Activation",
    "Architecture",
    "Gate",
    "Gating",
    "LayerKind",
    "LayerNumbers",
    "MixerKind",
    "Parallel",
    "Pooling",
    "Prediction",
    "RopeStyle",
    "Rotated",
    "Router",
    "TensorRule",
    "Turned",
]


RopeStyle = Literal["interleaved", "half"]
"""The elements of a head that rotate together: (2i, 2i+1), or (i, i + rope_dim/2)."""

Pooling = Literal["mean", "cls", "last"]
"""The pooling of a text's rows: their mean, the first, or the last one."""

Activation = Literal["silu", "gelu_tanh", "gelu", "tanh", "relu", "relu2"]

MixerKind = Literal[
    "attention",
    "cross_attention",
    "feed_forward",
    "experts",
    "layer_input",
    "laurel",
    "predict_streams",
    "correct_streams",
    "recurrence",
    "delta_net",
    "latent_attention",
    "relative_attention",
    "mamba2",
    "short_convolution",
]
"""The computation of a block; `akunu.files.describe.blocks` has a class for each."""


Parallel = Literal["never", "always", "unnormed"]
"""Whether attention and feed-forward are side by side: "unnormed" where the latter has no norm of its own."""

Rotated = Literal["all", "none", "period", "windowed", "windowed_or_all"]
"""The layers whose heads are rotated: see `Architecture.rotated`."""

Gating = Literal["softmax", "sigmoid", "softmax_chosen", "sqrt_softplus"]
"""The function of a router's logits: a softmax of all, each one's sigmoid, a softmax of the chosen ones, or
the root of each one's softplus."""


Turned = Literal["never", "always", "maybe"]
"""Whether a tensor of a folder is transposed: "maybe" is told by its shape."""


class LayerNumbers(Protocol):
    """The numbers of layers in a file, as `Architecture.layer_kinds` reads them."""

    def get(self, name: str) -> object: ...
    def integer(self, field: str, *, default: int | None = None) -> int: ...
    def layer_integers(self, field: str, *, default: int | None = None) -> tuple[int, ...]: ...

    def recurrent_layers(self) -> tuple[bool, ...]: ...
    def windowed_layers(self) -> tuple[bool, ...]: ...


@dataclass(frozen=True)
class TensorRule:
    """One tensor of the file and the canonical tensors in it.

    Attributes
    ----------
    source
        Name in a GGUF file; `{n}` stands for the layer.
    hf
        Name in a Hugging Face checkpoint, after the decoder's prefix (mostly "model.", but not for the head).
    parts
        (canonical name without the `layers.{n}.` prefix, symbol of its length), stacked along the rows. More
        than one part means a fused tensor, of which each canonical tensor is a slice of rows.
    cols
        Symbol of the row length, or None for a vector.
    optional
        The tensor may be absent, but then from every layer of its kind.
    count
        Symbol of a first axis, for a tensor of so many matrices or vectors, such as one for each expert. In a
        name, `{e}` stands for one of them, where each is a tensor of its own.
    interleaved
        The parts alternate row by row, instead of following each other.
    flat
        The count's axis is not one of its own: so many times, the parts follow each other along the rows.
    turned
        Whether in a folder the last two axes of its matrices, where these are floats, are exchanged.
    depthwise
        Taps of a convolution of each channel by itself, which in a folder are [channels, 1, taps].
    swapped
        Symbol of so many rows: of each such run, the second quarter and the third are exchanged.
    folder_only
        llama.cpp, which stops at a tensor that it does not know, has none of this name: no GGUF file is made.
    needs, lacks
        A tensor that layers have, or lack, which have this one by this name: its name in a GGUF file, that in
        a checkpoint, and the canonical name of one that is there then.
    """

    source: str
    hf: str
    parts: tuple[tuple[str, str], ...]
    cols: str | None = None
    optional: bool = False
    count: str | None = None
    interleaved: bool = False
    flat: bool = False
    folder_only: bool = False
    needs: tuple[str, str, str] | None = None
    lacks: tuple[str, str, str] | None = None
    turned: Turned = "never"
    depthwise: bool = False
    swapped: str | None = None

    def is_in(self, sizes: Mapping[str, int]) -> bool:
        """Whether a layer of these sizes may have the tensor: of a size of 0 there is none.

        An expert that all rows share may have such a size, for example.
        """
        extents = [symbol for _, symbol in self.parts] + ([self.cols] if self.cols else [])
        return all(sizes[symbol] != 0 for symbol in extents)

    def source_of(self, layer: int) -> str:
        """The name in a GGUF file, of the tensor of a layer."""
        return self.source.replace("{n}", str(layer))

    def hf_of(self, layer: int) -> str:
        """The name in a checkpoint, of the tensor of a layer."""
        return self.hf.replace("{n}", str(layer))


@dataclass(frozen=True)
class Router:
    """The choice of experts, where a model's file does not describe it.

    Attributes
    ----------
    gating
        See the type.
    renormalise
        The weights of the chosen experts are divided by their sum.
    sum_eps, sum_min
        This sum is increased by the one, and is at least the other.
    best_of_group
        Where there are groups of experts, one is as good as the sum of its so many best.
    own_norm
        What it reads comes from a norm of its own, divided by the root of its length.
    """

    gating: Gating = "softmax"
    renormalise: bool = True
    sum_eps: float = 0.0
    sum_min: float = 0.0
    best_of_group: int = 2
    own_norm: bool = False


@dataclass(frozen=True)
class Gate:
    """The function of an expert's two products that gives its inner elements, see `akunu.blocks.Experts`."""

    limit: float = 0.0
    sharpness: float = 1.0
    up_offset: float = 0.0


@dataclass(frozen=True)
class LayerKind:
    """Layers that have the same blocks, and tensors of the same names; their sizes may differ.

    Attributes
    ----------
    tensors
        Every tensor that such a layer may have.
    mixers
        What its blocks compute, in their order.
    unused
        Tensors that files may have for such a layer, and that nothing reads.
    """

    tensors: tuple[TensorRule, ...]
    mixers: tuple[MixerKind, ...] = ("attention", "feed_forward")
    unused: tuple[TensorRule, ...] = ()

    def length(self, name: str) -> str:
        """The symbol of a canonical tensor's length; "" where such a layer does not have it."""
        return next((size for rule in self.tensors for part, size in rule.parts if part == name), "")

    def has(self, name: str) -> bool:
        """Whether such a layer may have a canonical tensor of this name."""
        return bool(self.length(name))


@dataclass(frozen=True)
class Prediction:
    """A layer behind the others that predicts a token more, by which a model drafts for itself.

    Attributes
    ----------
    tensors
        What it has besides the tensors of a layer with attention.
    normed_state
        See `akunu.files.describe.blocks.DraftHead`.
    places
        Where a checkpoint has the layer elsewhere than behind the others: beginnings of names there, and
        what they stand for.
    """

    tensors: tuple[TensorRule, ...]
    normed_state: bool
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Architecture:
    """A row: one value of `general.architecture`.

    Attributes
    ----------
    name
        The value of `general.architecture`, which also prefixes the configuration keys.
    summary
        Which published models use it.
    rope_style, activation
        See the types.
    tensors
        Every tensor that the file may have outside of layers, besides `ROPE_TENSORS`.
    layers
        The kinds of layers, by name.
    router, gate
        The choice of experts and their gate, in models with experts.
    biased_router
        The router of a GGUF file that has a bias that chooses, where it is another.
    layer_kinds
        Names the kind of each layer; called with what the file says (`akunu.config_numbers.Numbers`) and the
        number of layers. None: there is one kind.
    ignored
        Name patterns (`fnmatch`) of tensors that a file may have and that change nothing.
    defaults
        Replaces the defaults in `CONFIG_KEYS`; by field.
    scale_embedding
        The embedding is multiplied by sqrt(dim).
    window_period
        Which layers a sliding window applies to when the file does not say: 0 = all, n = all but each n-th.
    bidirectional
        A row sees all of its text, in a windowed layer half a window on each side: a model of vectors.
    soft_caps
        Which caps it has, by field. A GGUF file of llama.cpp's may have both keys whatever the architecture.
    wide_scale_layers
        Layer counts whose attention scale is (dim / n_heads)**-0.5 instead of head_dim**-0.5. GGUF files of
        Gemma carry no query scale; their layer count is what identifies the sizes that need another.
    required_keys
        Keys that llama.cpp wants in every GGUF file of it, also where they change nothing.
    features
        Prefixes of keys, of those in `REFUSED_PREFIXES`, whose feature it has.
    left_out
        Name patterns of tensors that a file may have besides the decoder's, and what they are for. They are
        not loaded, which is warned of.
    layer_norm
        Norms are LayerNorm, else RMS.
    parallel
        Whether the feed-forward reads what attention reads, and both are added to the same residual stream:
        see the type.
    norms_after_rope
        The norms of q and of k are of rotated heads.
    rotated
        Whose heads are rotated: those of all layers, of none, of all but each n-th (`unrotated_period`), of
        the windowed ones, or of these where a file has a window, even if no layer has it, else of all.
    scales
        The scales that it has, of `SCALES`.
    plain_local_rope
        The frequencies of windowed layers are not scaled.
    rope_switch
        A file says by `rope.scaling.finetuned` whether heads are rotated at all.
    value_heads_grouped
        In a GGUF file, neighbouring value heads of a delta net share a key head; else those do that are as
        far apart as there are key heads. In a folder they are neighbours.
    scaling
        The kind of rotary scaling of a GGUF file that has a factor of it alone.
    prediction
        How a model of it may draft for itself.
    pre_tokenizer
        How its vocabulary cuts a text, for GGUF files of Ollama's, which do not say it.
    norm_embedding
        A token's embedding is normed, without a weight.
    branch_norm_eps
        Epsilon of norms of what a block adds, where a file does not say it; 0: that of the others.
    norms_whole_rows
        The norms of q and k are over all heads together.
    norms_by_head
        They are LayerNorms of each head, with weights of its own.
    norm_values
        Heads of v are normed, too, without a weight.
    layer_inputs
        The tensors outside of layers that a model has whose layers have inputs of their own.
    fields
        Those of `CONFIG_KEYS` whose keys are refused in files of other architectures.
    sparse_layers
        So many first layers cut off what is below some deviations of a gate's products, where a GGUF file
        does not say which do.
    shared_by_count
        The expert that all rows share is as large as so many of the others, whatever size a file gives it:
        llama.cpp's converter writes another number there.
    """

    name: str
    summary: str
    rope_style: RopeStyle
    activation: Activation
    tensors: tuple[TensorRule, ...]
    layers: Mapping[str, LayerKind]
    layer_kinds: Callable[[LayerNumbers, int], Sequence[str]] | None = None
    ignored: tuple[str, ...] = ()
    defaults: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    scale_embedding: bool = False
    window_period: int = 0
    bidirectional: bool = False
    soft_caps: tuple[str, ...] = ()
    wide_scale_layers: tuple[int, ...] = ()
    required_keys: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    layer_norm: bool = False
    parallel: Parallel = "never"
    norms_after_rope: bool = False
    rotated: Rotated = "all"
    unrotated_period: int = 4
    scales: tuple[str, ...] = ()
    plain_local_rope: bool = False
    rope_switch: bool = False
    value_heads_grouped: bool = True
    norm_embedding: bool = False
    branch_norm_eps: float = 0.0
    norms_whole_rows: bool = False
    norms_by_head: bool = False
    norm_values: bool = False
    layer_inputs: tuple[TensorRule, ...] = ()
    fields: tuple[str, ...] = ()
    sparse_layers: int = 0
    shared_by_count: bool = False
    scaling: str = "linear"
    pre_tokenizer: str = ""
    router: Router | None = None
    biased_router: Router | None = None
    prediction: Prediction | None = None
    gate: Gate = field(default_factory=lambda: Gate())

    @property
    def rules(self) -> tuple[TensorRule, ...]:
        """The rules of all tensors, each once: those outside of layers, then those of every kind of layer."""
        rules = (
            *self.tensors,
            *self.layer_inputs,
            *(r for kind in self.layers.values() for r in kind.tensors),
        )
        # One that some kinds of layers may lack is there as one of theirs.
        return tuple(dict((dataclasses.replace(rule, optional=True), rule) for rule in rules).values())

    @property
    def has_latents(self) -> bool:
        """Whether its attention is multi-head latent attention."""
        return any("latent_attention" in kind.mixers for kind in self.layers.values())

    @property
    def shares_expert(self) -> bool:
        """Whether layers with experts have one that all rows share, of a size of its own."""
        return any(kind.length("shared_up") == "shared_dim" for kind in self.layers.values())

    def in_parallel(self, tensors: Container[str]) -> bool:
        """Whether attention and feed-forward are side by side in a model with these canonical tensors."""
        return self.parallel == "always" or (
            self.parallel == "unnormed" and "layers.0.ffn_norm" not in tensors
        )

    def rotated_layers(self, layer_window: Sequence[int], window: int) -> list[bool]:
        """Return whether heads are rotated, for each layer, given its window; `window` is the file's."""
        if self.rotated == "none":
            return [False] * len(layer_window)
        if self.rotated == "period":
            return [(n + 1) % self.unrotated_period != 0 for n in range(len(layer_window))]
        if self.rotated == "windowed" or (self.rotated == "windowed_or_all" and window > 0):
            return [own > 0 for own in layer_window]
        return [True] * len(layer_window)

    def kinds_of(self, numbers: LayerNumbers, n_layers: int) -> list[LayerKind]:
        """The kind of each layer of a model."""
        if self.layer_kinds is None:
            (kind,) = self.layers.values()
            return [kind] * n_layers
        names = self.layer_kinds(numbers, n_layers)
        unknown = [n for n, name in enumerate(names) if name not in self.layers]
        if unknown:
            raise UnsupportedError(
                f"by its keys, layer {unknown[0]} of this {self.name} model is of {names[unknown[0]]}; "
                f"supported are {' and '.join(f'({name})' for name in self.layers)}"
            )
        return [self.layers[name] for name in names]
