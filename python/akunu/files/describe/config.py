"""A model as the engine builds it: its numbers, its layers, and where its tensors are in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from akunu.base.errors import UnsupportedError
from akunu.files.describe.blocks import (
    Attention,
    Block,
    DraftHead,
    Experts,
    FeedForward,
    LatentAttention,
    LayerInputs,
    Mixer,
    RopeSet,
    Streams,
)
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.tensor_map import TensorRef
from akunu.files.describe.tensor_rules import Activation, Pooling, RopeStyle

__all__ = ["EncoderConfig", "ModelConfig", "ModelSpec"]

M = TypeVar("M", bound=Mixer)


@dataclass(frozen=True)
class EncoderConfig:
    """The description of an embedding model besides its layers.

    Attributes
    ----------
    pooling
        What becomes of a text's rows: their mean, the first ("cls"), or the last one.
    head
        The layers that the vector goes through: each one's size, and its activation or "".
    task
        The vectors are embeddings, or scores of a text's relevance.
    """

    pooling: Pooling
    head: tuple[tuple[int, str], ...] = ()
    task: Literal["embed", "rank"] = "embed"

    @property
    def n_labels(self) -> int:
        """The number of scores for an input; 0 for a model that makes vectors."""
        return self.head[-1][0] if self.task == "rank" and self.head else 0


@dataclass(frozen=True, eq=False)
class ModelConfig:
    """All numbers of a model, checked, as the engine takes them.

    What a layer has is in its blocks. The properties give what all layers share, for readers of models whose
    layers are equal.

    Attributes
    ----------
    arch
        Name of the row in `akunu.files.describe.architectures.ARCHITECTURES`.
    context_length
        Positions the model was trained for.
    rope_sets
        The sets of rotary frequencies that attention blocks refer to.
    blocks
        The blocks between the embedding and the head, in order.
    final_softcap
        Logits become `cap * tanh(logit / cap)`; 0 = no cap.
    embedding_scale
        Factor on the embedding.
    residual_scale
        Factor on what each block adds to the residual stream.
    logit_scale
        Factor on the logits, ahead of the cap.
    branch_norm_eps
        Epsilon of norms of what a block adds; None: that of the others.
    layer_norm
        Norms are LayerNorm, else RMS.
    norm_embedding
        A token's embedding is normed, without a weight.
    streams
        Residual streams, where there are several; None: there is one.
    layer_inputs
        Embeddings of a token for layers, besides the first one; None: there are none.
    positions, kinds
        Learned vectors of positions, and of kinds of rows (BERT's token types); 0: none.
    encoder
        What a model that makes vectors of texts has besides; None for one that samples tokens.
    drafter
        A head that drafts, where the model has one and it was asked for.
    encoded_parts
        Vectors of a row that an encoder of images may put in the place of a token: its embedding, and what is
        added behind the first layers; 0: there is no such encoder.
    whole_image_rows
        Most rows of an image, where those of some layers see all of it; 0: where none do.
    """

    arch: str
    n_layers: int
    dim: int
    vocab_size: int
    context_length: int
    norm_eps: float
    final_softcap: float
    embedding_scale: float
    rope_sets: tuple[RopeSet, ...]
    blocks: tuple[Block, ...]
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    branch_norm_eps: float | None = None
    layer_norm: bool = False
    norm_embedding: bool = False
    layer_inputs: LayerInputs | None = None
    streams: Streams | None = None
    positions: int = 0
    kinds: int = 0
    encoder: EncoderConfig | None = None
    drafter: DraftHead | None = None
    encoded_parts: int = 0
    whole_image_rows: int = 0

    def numbers(self) -> dict[str, object]:
        """Every number by name, to be shown and compared. What all blocks of a kind share is there once."""
        found: dict[str, object] = {
            field: value for field, value in vars(self).items() if field not in ("blocks", "rope_sets")
        }
        for i, rope in enumerate(self.rope_sets):
            found |= {f"rope_sets[{i}].{field}": value for field, value in vars(rope).items()}
        values: dict[str, list[object]] = {}
        for block in self.blocks:
            values.setdefault("blocks", []).append(block.mixer.kind)
            for field, value in vars(block.mixer).items():
                if field != "kind":
                    values.setdefault(f"{block.mixer.kind}.{field}", []).append(value)
        kinds = values.pop("blocks", [])
        shared = {name: each[0] if len(set(each)) == 1 else tuple(each) for name, each in values.items()}
        return found | {"blocks": tuple(kinds)} | shared

    def mixers(self, kind: type[M]) -> list[M]:
        """The mixers of one class, in order."""
        return [block.mixer for block in self.blocks if isinstance(block.mixer, kind)]

    def _shared(self, kind: type[M], field: str) -> Any:
        values = {getattr(mixer, field) for mixer in self.mixers(kind) or self._unused(kind)}
        if len(values) != 1:
            raise UnsupportedError(
                f"{field}: the layers of this {self.arch} model differ ({shown(sorted(values, key=str))}); "
                "only equal layers are supported here"
            )
        return values.pop()

    def _unused(self, kind: type[object]) -> list[Attention]:
        """Return the numbers of heads where no layer attends: there is one, and all of it would rotate."""
        head_dim = self.rope_dim or 64
        return [Attention(1, 1, head_dim, head_dim**-0.5)] if kind is Attention else []

    @property
    def _attends(self) -> type[Attention | LatentAttention]:
        return LatentAttention if self.mixers(LatentAttention) else Attention

    @property
    def n_heads(self) -> int:
        """Heads of queries."""
        return int(self._shared(self._attends, "n_heads"))

    @property
    def n_kv_heads(self) -> int:
        """Heads of keys and values."""
        return int(self._shared(Attention, "n_kv_heads"))

    @property
    def head_dim(self) -> int:
        """Elements of a head."""
        return int(self._shared(Attention, "head_dim"))

    @property
    def attn_scale(self) -> float:
        """Factor on q·k."""
        return float(self._shared(self._attends, "scale"))

    @property
    def attn_softcap(self) -> float:
        """Cap of attention scores; 0 = none."""
        return float(self._shared(Attention, "softcap")) if self.mixers(Attention) else 0.0

    @property
    def bidirectional(self) -> bool:
        """A query also sees the keys after it; True of a model without attention."""
        if self.mixers(LatentAttention):
            return False
        return not self.mixers(Attention) or bool(self._shared(Attention, "bidirectional"))

    @property
    def ffn_dim(self) -> int:
        """Inner elements of a feed-forward."""
        return int(self._shared(FeedForward, "dim"))

    @property
    def activation(self) -> Activation:
        """The activation of the feed-forwards, or of the experts where there are no others."""
        found: Activation = self._shared(FeedForward if self.mixers(FeedForward) else Experts, "activation")
        return found

    @property
    def layer_window(self) -> tuple[int, ...]:
        """The window of each attention block; 0 = full attention."""
        return tuple(attention.window for attention in self.mixers(Attention))

    @property
    def layer_rope(self) -> tuple[int | None, ...]:
        """The rope set of each attention block; None = heads are not rotated."""
        return tuple(attention.rope for attention in self.mixers(Attention))

    @property
    def rope_dim(self) -> int:
        """The number of leading elements of a head that are rotated, in all sets."""
        dims = {rope.dim for rope in self.rope_sets} or {0}
        if len(dims) != 1:
            raise UnsupportedError(f"the layers of this {self.arch} model rotate different parts of a head")
        return dims.pop()

    @property
    def rope_style(self) -> RopeStyle:
        """The elements of a head that rotate together."""
        return self.rope_sets[0].style if self.rope_sets else "half"


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """A model ready to be built.

    Attributes
    ----------
    config
        Its numbers.
    tensors
        Canonical name to its place in the file: `token_embedding`, `output_norm`, `output`, and with the
        prefix `layers.{n}.`: `attn_norm`, `attn_q|k|v|output`, `attn_q|k|v|output_bias`, `attn_q|k_norm`,
        `post_attn_norm`, `ffn_norm`, `ffn_gate|up|down`, `post_ffn_norm`. What a model lacks is absent.
        Without `output` the output head is tied to `token_embedding`.
    """

    config: ModelConfig
    tensors: Mapping[str, TensorRef]
