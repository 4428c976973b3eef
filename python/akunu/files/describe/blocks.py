"""The blocks of a model, as data: what the engine builds its dispatch tables from.

A model is a list of blocks between an embedding and a head. Each block has a mixer of its own kind and sizes,
and any number of blocks may stand in any order. The C++ side is `core/model.h`, which has the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from akunu.files.describe.tensor_rules import Activation, LayerKind, MixerKind, RopeStyle, Router

__all__ = [
    "Attention",
    "Block",
    "CrossAttention",
    "DeltaNet",
    "DraftHead",
    "ExpertRouter",
    "Experts",
    "FeedForward",
    "LatentAttention",
    "Laurel",
    "LayerInput",
    "LayerInputs",
    "Mamba2",
    "Merge",
    "MixStreams",
    "Mixer",
    "Recurrence",
    "RelativeAttention",
    "RopeSet",
    "ShortConvolution",
    "Streams",
    "layer_blocks",
]


@dataclass(frozen=True, eq=False)
class RopeSet:
    """One set of rotary frequencies, for the heads of some or all attention blocks.

    Attributes
    ----------
    inv_freq
        Radians per position, float32 [rotated elements of a head / 2], scaling applied.
    scale
        Factor on cos and sin (YaRN's and LongRoPE's attention factor), 1 for the rest.
    temperature, temperature_length
        cos and sin are also multiplied by 1 + temperature * log(1 + position // temperature_length); a length
        of 0: they are not. A set of all elements of a head makes so the scale of queries grow with their
        position (Llama 4, Ministral 3).
    style
        Which elements of a head rotate together.
    axes
        For each frequency, which of the three positions of a row it turns by (time, row and column of an
        image); none: by its place in the sequence.
    """

    inv_freq: npt.NDArray[np.float32]
    scale: float
    style: RopeStyle
    temperature: float = 0.0
    temperature_length: int = 0
    axes: tuple[int, ...] = ()

    @property
    def dim(self) -> int:
        """The number of leading elements of a head that are rotated."""
        return 2 * len(self.inv_freq)


@dataclass(frozen=True)
class Attention:
    """Self-attention over the KV cache. Without a tensor `attn_v`, values are keys before their norm.

    Attributes
    ----------
    scale
        Factor on q·k.
    window
        0 = full attention; w = a query at p sees the keys in (p - w, p], or, where `bidirectional`, those in
        (p - w, p + w).
    rope
        Index of its set in `ModelConfig.rope_sets`; None: heads are not rotated.
    q_rope
        The set of q, where it is another than that of k.
    softcap
        Scores become `cap * tanh(score / cap)`; 0 = no cap.
    bidirectional
        A query also sees the keys after it.
    whole_images
        A query of a row of an image also sees the keys of all rows of it.
    image_windows
        In a tower: a query sees the keys of its window of the image alone.
    norms_whole_rows
        The norms of q and of k, where the model has them, are over a whole row instead of over each head.
    norms_by_head
        They are LayerNorms of each head, with weights of its own.
    norms_after_rope
        These norms are of rotated heads.
    norm_values
        Heads of v are normed, too, without a weight.
    q_gain
        Heads of q and of k are normed without weights, and those of q are then so many times as large; 0: the
        tensors say it.
    norm_eps
        Epsilon of these norms; None: the model's.
    kv_owner
        Index of the block whose keys and values it reads; None: it has its own.
    """

    n_heads: int
    n_kv_heads: int
    head_dim: int
    scale: float
    window: int = 0
    rope: int | None = None
    q_rope: int | None = None
    softcap: float = 0.0
    bidirectional: bool = False
    whole_images: bool = False
    image_windows: bool = False
    norms_whole_rows: bool = False
    norms_by_head: bool = False
    norms_after_rope: bool = False
    norm_values: bool = False
    q_gain: float = 0.0
    norm_eps: float | None = None
    kv_owner: int | None = None
    kind: Literal["attention"] = "attention"


@dataclass(frozen=True)
class CrossAttention:
    """Attention of a decoder to an encoder's output of `positions` rows.

    `aligned` are the heads whose weights may be asked for.
    """

    n_heads: int
    n_kv_heads: int
    head_dim: int
    scale: float
    positions: int
    aligned: tuple[int, ...] = ()
    kind: Literal["cross_attention"] = "cross_attention"


@dataclass(frozen=True)
class FeedForward:
    """A feed-forward of `dim` inner elements, gated where it has a tensor `ffn_gate`.

    A `parallel` one reads what the attention block before it has read, or has a norm of its own of the same
    rows. With `deviations`, of a row's products with the gate what exceeds their mean by so many standard
    deviations is kept, less that limit; the others become 0.
    """

    dim: int
    activation: Activation
    parallel: bool = False
    deviations: float | None = None
    kind: Literal["feed_forward"] = "feed_forward"


@dataclass(frozen=True)
class ExpertRouter(Router):
    """The choice of a row's experts by the router's logits.

    Attributes
    ----------
    groups, groups_used, group_top
        Experts are chosen from the `groups_used` best of `groups` groups, by the sum of the `group_top` best
        of each; 0: there are none.
    scale
        Factor on the weights.
    input_scale
        Factor on what a norm of its own makes, where it has one.
    """

    groups: int = 0
    groups_used: int = 0
    group_top: int = 0
    scale: float = 1.0
    input_scale: float = 1.0


@dataclass(frozen=True)
class Experts:
    """A feed-forward of experts, of which a router chooses some for each row.

    Experts are gated where there is a tensor `experts_gate`.

    Attributes
    ----------
    count, used
        How many there are, and how many of them a row has.
    dim
        Inner elements of each.
    shared_dim
        Inner elements of one that every row has, times the sigmoid of a gate where there is a tensor
        `shared_router`; 0: there is none.
    latent_dim
        Elements of what experts read and write, projections of the rows; 0: they read and write rows.
    limit, sharpness, up_offset
        With g the gate's and u the other product, of which g is at most `limit` and u within it, an expert's
        inner elements are activation(g) * (u + up_offset); 0: no limit. A sharpness other than 1 makes the
        activation g * sigmoid(sharpness * g).
    """

    count: int
    used: int
    dim: int
    activation: Activation
    router: ExpertRouter
    shared_dim: int = 0
    latent_dim: int = 0
    limit: float = 0.0
    sharpness: float = 1.0
    up_offset: float = 0.0
    kind: Literal["experts"] = "experts"


@dataclass(frozen=True)
class LayerInputs:
    """Embeddings of a token besides the first one: `count` parts of `dim` elements, each for a layer.

    `vocab_size` is the number of tokens that their table has; further ones have what the first one has.
    """

    dim: int
    count: int
    vocab_size: int


@dataclass(frozen=True)
class LayerInput:
    """The use of part `index` of the layer inputs, times an activated projection of a layer's stream."""

    index: int
    activation: Activation
    kind: Literal["layer_input"] = "layer_input"


@dataclass(frozen=True)
class Streams:
    """The `count` residual streams of AltUp, of which layers read and write the one with number `active`."""

    count: int
    active: int = 0


@dataclass(frozen=True)
class MixStreams:
    """A layer's prediction of all residual streams, or their correction by what it made of the active one."""

    correct: bool
    kind: Literal["mix_streams"] = "mix_streams"


@dataclass(frozen=True)
class Laurel:
    """A learned augmented residual of `rank` elements, of what the attention block before it has read."""

    rank: int
    kind: Literal["laurel"] = "laurel"


@dataclass(frozen=True)
class Recurrence:
    """A gated recurrence (minGRU) of `dim` channels."""

    dim: int
    kind: Literal["recurrence"] = "recurrence"


@dataclass(frozen=True)
class DeltaNet:
    """A gated delta net.

    Attributes
    ----------
    taps
        The taps of the convolution before it.
    grouped
        Neighbouring value heads share a key head; else those do that are `key_heads` apart.
    l2_eps
        Epsilon under the root of the sum of squares of a query and of a key.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    taps: int
    grouped: bool = True
    l2_eps: float = 1e-6
    kind: Literal["delta_net"] = "delta_net"


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention over the KV cache, which keeps one row of each position for all heads.

    Attributes
    ----------
    q_rank
        Elements between the two projections of queries; 0: there is one.
    latent
        Elements that are kept of a position besides those of its rotated key.
    nope_dim, rope_dim, value_dim
        Elements of a head that are not rotated and that are, and those of a value.
    rope, scale
        As in `Attention`.
    norm_eps
        Epsilon of the norms of the latent and of queries.
    temperature, temperature_length
        Those of queries, as in `RopeSet`.
    """

    n_heads: int
    q_rank: int
    latent: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    scale: float
    rope: int = 0
    norm_eps: float = 1e-6
    temperature: float = 0.0
    temperature_length: int = 0
    kind: Literal["latent_attention"] = "latent_attention"


@dataclass(frozen=True)
class RelativeAttention:
    """Attention of an encoder to all of a text, by how far a key is from a query.

    With d the distance's row in tables, a score is scale * (q·k + q·K[d] + k·Q[d]) + b[d, head]; K and Q are
    keys and queries that are made of the model's `distance_embedding`, b is the tensor `distance_bias`.

    Attributes
    ----------
    distances
        Rows of these tables.
    columns
        The row of each distance of a key from a query, an odd number of them, of which the middle one is 0;
        farther ones have those of the ends.
    by_query, by_key
        Whether there is a K, and a Q. They are made by tensors `distance_k` and `distance_q`, where there
        are some, else as the block's own keys and queries are.
    """

    n_heads: int
    head_dim: int
    scale: float
    distances: int
    columns: tuple[int, ...]
    by_query: bool = False
    by_key: bool = False
    kind: Literal["relative_attention"] = "relative_attention"


@dataclass(frozen=True)
class Mamba2:
    """Mamba-2.

    Attributes
    ----------
    groups
        The number of groups of neighbouring heads that share their B and C.
    state_dim
        Elements of the state for each of a head's elements.
    taps
        The taps of the convolution before it.
    """

    groups: int
    heads: int
    state_dim: int
    head_dim: int
    taps: int
    kind: Literal["mamba2"] = "mamba2"


@dataclass(frozen=True)
class ShortConvolution:
    """A gated convolution of `taps` rows, over as many channels as the residual stream has."""

    taps: int
    kind: Literal["short_convolution"] = "short_convolution"


@dataclass(frozen=True)
class Merge:
    """The block that makes a text's rows of an image's patches, so many neighbours of each row.

    Attributes
    ----------
    activation
        Between two products.
    dim
        Elements between them; 0: there is one product.
    mean
        The patches' mean is multiplied, else they stand side by side.
    part
        Which of the vectors of a row it makes: 0 is the embedding.
    normed
        What is multiplied is normed (RMS) before, without a weight.
    norm_eps
        Epsilon of that norm, or of the one with a weight that merged patches have; None: the tower's.
    patch_eps
        Epsilon of a norm (RMS) of patches before they are merged; None: the tower's.
    gain
        Factor on the mean, before its standard (`standard_scale`, `standard_bias`) and that norm.
    """

    activation: Activation
    dim: int = 0
    mean: bool = False
    part: int = 0
    normed: bool = False
    norm_eps: float | None = None
    patch_eps: float | None = None
    gain: float = 1.0
    kind: Literal["merge"] = "merge"


Mixer: TypeAlias = (
    Attention
    | CrossAttention
    | FeedForward
    | Experts
    | LayerInput
    | MixStreams
    | Laurel
    | Recurrence
    | DeltaNet
    | LatentAttention
    | RelativeAttention
    | Mamba2
    | ShortConvolution
    | Merge
)


@dataclass(frozen=True)
class Block:
    """One block: its mixer, the prefix of its tensors' canonical names, and the layer that it belongs to."""

    prefix: str
    layer: int
    mixer: Mixer


@dataclass(frozen=True)
class DraftHead:
    """A head that drafts for a model: its own, by multi-token prediction, or an assistant (Gemma 4).

    Attributes
    ----------
    prefix
        Of the canonical names of its tensors: `joined`, `embedding_norm`, `state_norm`, `output_norm`, and
        those of its blocks.
    blocks
        Attention, which has a cache of its own, then feed-forwards or experts. Those of an assistant keep
        nothing: their attention reads the keys and values of the model's blocks.
    normed_state
        It goes on from what is behind its last norm when it drafts once more; else from what that norm reads.
    dim, norm_eps
        The numbers of an assistant, which has its own; 0: the model's. Its tensors are `joined`,
        `output_norm`, `token_embedding`, `next_state`, and those of its blocks.
    clusters, clusters_used
        Of an assistant's tokens, and of them those that a draft looks at; 0: it looks at all tokens. Its
        tensors are `centroids` and `token_order`, the tokens of the first cluster, the second one, …, too.
    """

    prefix: str
    blocks: tuple[Block, ...]
    normed_state: bool
    dim: int = 0
    norm_eps: float = 0.0
    clusters: int = 0
    clusters_used: int = 0


def layer_blocks(
    kinds: Sequence[LayerKind], makers: Mapping[MixerKind, Callable[[int], Mixer]]
) -> tuple[Block, ...]:
    """The blocks of a model, given the kind of each layer.

    Parameters
    ----------
    kinds
        One for each layer.
    makers
        What makes the mixer of a kind for a layer, whose number it is called with.
    """
    return tuple(
        Block(f"layers.{n}.", n, makers[mixer](n)) for n, kind in enumerate(kinds) for mixer in kind.mixers
    )
