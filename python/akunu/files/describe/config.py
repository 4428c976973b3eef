"""From the metadata and tensor list of a GGUF file to a checked model specification.

`resolve` interprets one row of `akunu.files.describe.architectures` and trusts nothing: each number has
bounds, each tensor must have the shape that the configuration implies, and a tensor or a feature that no
rule knows is refused, because to leave it out would give wrong text. It reads no weights, except the few
rotary divisors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import (
    Attention,
    Block,
    DraftHead,
    ExpertRouter,
    Experts,
    FeedForward,
    LatentAttention,
    Laurel,
    LayerInput,
    LayerInputs,
    Mixer,
    MixStreams,
    RelativeAttention,
    RopeSet,
    Streams,
    layer_blocks,
)
from akunu.files.describe.config_keys import (
    CONFIG_KEYS,
    ROPE_TENSORS,
)
from akunu.files.describe.config_numbers import (
    DecoderSizes,
    Numbers,
    decoder_sizes,
    shown,
)
from akunu.files.describe.distances import Distances
from akunu.files.describe.expert_rules import stored_rules
from akunu.files.describe.gguf_numbers import GgufNumbers
from akunu.files.describe.gguf_rotary import GgufSource, gguf_rotary
from akunu.files.describe.known_missing import why_missing
from akunu.files.describe.layer_rules import with_fused_qkv
from akunu.files.describe.prediction import PREDICTION, PredictionLayer, noticed, prediction_layer
from akunu.files.describe.quantized import take_factors, with_factors
from akunu.files.describe.recurrent import RecurrentSizes, recurrent_sizes
from akunu.files.describe.rotary import yarn_scale
from akunu.files.describe.routers import expert_keys, gguf_router
from akunu.files.describe.tensor_map import (
    LayerTensors,
    TensorInfo,
    TensorRef,
    by_name,
    map_tensors,
    rows_of,
    warn_of_left_out,
)
from akunu.files.describe.tensor_rules import (
    Activation,
    Architecture,
    Gate,
    LayerKind,
    MixerKind,
    Pooling,
    RopeStyle,
)

__all__ = [
    "EncoderConfig",
    "GgufSource",
    "ModelConfig",
    "ModelSpec",
    "TensorInfo",
    "TensorRef",
    "check_heads",
    "model_config",
    "resolve",
    "rows_of_table",
    "vocabulary_size",
]

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


def model_config(
    arch: str,
    sizes: DecoderSizes,
    numbers: Numbers,
    *,
    vocab_size: int,
    rope_style: RopeStyle,
    rotary: Sequence[tuple[npt.NDArray[np.float64], float]],
    activation: Activation,
    layer_window: tuple[int, ...],
    attn_scale: float,
    kinds: Sequence[LayerKind],
    decoder: Architecture | None = None,
    rotated: Sequence[bool] = (),
    temperature: tuple[float, int] = (0.0, 0),
    bidirectional: bool = False,
    recurrent: RecurrentSizes | None = None,
    value_heads_grouped: bool = True,
    router: ExpertRouter | None = None,
    gate: Gate | None = None,
    norms_whole_rows: bool = False,
    parallel: bool = False,
    layer_input_rows: int = 0,
    positions: int = 0,
    prediction: PredictionLayer | None = None,
    distances: Distances | None = None,
) -> ModelConfig:
    """The configuration, of what each kind of file says its own way and of the numbers that all have.

    `rotary` has a set of frequencies, float64 [rotated elements of a head / 2], and the factor on their cos
    and sin, for all layers, or one more, for those with a window; it is empty where heads are not rotated.
    `decoder` is the row of a model that samples tokens; `rotated` says whose heads are rotated, where not all
    layers' are; queries have the `temperature` of `RopeSet`, if its length is not 0. The table of layer
    inputs has `layer_input_rows`, and that of learned positions `positions`; feed-forwards may be in
    `parallel` with attention.
    """
    if 0 < positions < numbers.integer("context_length"):
        raise ModelFileError(
            f"{numbers.name('context_length')}: found {numbers.integer('context_length')}, "
            f"but the table of positions has {positions} rows"
        )
    frequencies = [inv_freq.astype(np.float32) for inv_freq, _ in rotary]
    for values in frequencies:
        values.flags.writeable = False
    softcap = numbers.real("attn_softcap")
    sets = [
        RopeSet(values, scale, rope_style) for values, (_, scale) in zip(frequencies, rotary, strict=True)
    ]
    n_sets = len(sets)
    deviations = _deviations(decoder, numbers)
    weight, length = temperature
    if length and sizes.latent is None:  # those of queries
        sets += [
            dataclasses.replace(rope, temperature=weight, temperature_length=length) for rope in tuple(sets)
        ]

    def attention_block(layer: int) -> int:
        return sum(len(kind.mixers) for kind in kinds[:layer]) + kinds[layer].mixers.index("attention")

    def attention(n: int) -> Attention:
        window, owner = layer_window[n], sizes.kv_owner(n)
        rope = int(n_sets > 1 and window > 0) if rotary else None
        if rotated and not rotated[n]:
            rope = None
        return Attention(
            n_heads=sizes.n_heads[n],
            n_kv_heads=sizes.n_kv_heads[n],
            head_dim=sizes.layer_head_dim(n),
            scale=attn_scale,
            window=window,
            rope=rope,
            q_rope=n_sets + rope if length and rope is not None else None,
            softcap=softcap,
            bidirectional=bidirectional,
            norms_whole_rows=norms_whole_rows,
            norms_by_head=decoder is not None and decoder.norms_by_head,
            norms_after_rope=decoder is not None and decoder.norms_after_rope,
            norm_values=decoder is not None and decoder.norm_values,
            q_gain=numbers.real("q_gain") if decoder is not None else 0.0,
            kv_owner=None if owner is None else attention_block(owner),
        )

    def latent_attention(n: int) -> LatentAttention:
        assert sizes.latent is not None
        return LatentAttention(
            n_heads=sizes.n_heads[n],
            **dataclasses.asdict(sizes.latent),
            scale=attn_scale,
            temperature=weight,
            temperature_length=length,
        )

    def relative_attention(n: int) -> RelativeAttention:
        assert distances is not None
        return RelativeAttention(
            n_heads=sizes.n_heads[n],
            head_dim=sizes.layer_head_dim(n),
            scale=attn_scale,
            distances=distances.count,
            columns=distances.columns,
            by_query=distances.by_query,
            by_key=distances.by_key,
        )

    def feed_forward(n: int) -> FeedForward:
        cut = deviations[n] if deviations else -math.inf
        return FeedForward(
            sizes.ffn_dim[n],
            activation,
            parallel,
            cut if math.isfinite(cut) else None,
        )

    def experts(n: int) -> Experts:
        assert sizes.experts is not None and router is not None
        own, how = sizes.experts, gate or Gate()
        shared = kinds[n].length("shared_up")
        return Experts(
            own.count,
            own.used,
            own.dim,
            activation,
            router,
            shared_dim=sizes.layer_symbols(n)[shared] if shared else 0,
            latent_dim=own.latent_dim if kinds[n].has("latent_in") else 0,
            limit=how.limit,
            sharpness=how.sharpness,
            up_offset=how.up_offset,
        )

    makers: dict[MixerKind, Callable[[int], Mixer]] = {
        "attention": attention,
        "feed_forward": feed_forward,
        "experts": experts,
        "latent_attention": latent_attention,
        "relative_attention": relative_attention,
        "layer_input": lambda n: LayerInput(n, activation),
        "laurel": lambda _: Laurel(sizes.laurel_rank),
        "predict_streams": lambda _: MixStreams(correct=False),
        "correct_streams": lambda _: MixStreams(correct=True),
    }
    inputs = sizes.layer_input_dim
    if recurrent is not None and recurrent.kind is not None:
        shared = recurrent.mixer(grouped=value_heads_grouped)
        makers[recurrent.kind] = lambda n: shared
    return ModelConfig(
        arch=arch,
        n_layers=sizes.n_layers,
        dim=sizes.dim,
        vocab_size=vocab_size,
        context_length=numbers.integer("context_length"),
        norm_eps=numbers.real("norm_eps"),
        final_softcap=numbers.real("final_softcap"),
        embedding_scale=_embedding_scale(decoder, sizes.dim, numbers),
        residual_scale=_scale(decoder, numbers, "residual_scale"),
        logit_scale=_logit_scale(decoder, numbers),
        branch_norm_eps=_branch_norm_eps(decoder, numbers),
        layer_norm=decoder is not None and decoder.layer_norm,
        norm_embedding=decoder is not None and decoder.norm_embedding,
        layer_inputs=LayerInputs(inputs, sizes.n_layers, layer_input_rows) if inputs else None,
        streams=Streams(sizes.streams, numbers.integer("active_stream")) if sizes.streams else None,
        rope_sets=tuple(sets),
        positions=positions,
        blocks=layer_blocks(kinds, makers),
        drafter=None if prediction is None else prediction.head(makers),
    )


def _deviations(decoder: Architecture | None, numbers: Numbers) -> tuple[float, ...]:
    """Return what is cut off of each layer's gate, -inf: nothing; empty where there is no such thing."""
    if decoder is None or not decoder.sparse_layers:
        return ()
    if numbers.get(numbers.key("deviations")) is None:  # llama.cpp does not read it
        first = min(decoder.sparse_layers, numbers.n_layers)
        return (NormalDist().inv_cdf(0.95),) * first + (-math.inf,) * (numbers.n_layers - first)
    return numbers.layer_reals("deviations", default=-math.inf)


def _scale(decoder: Architecture | None, numbers: Numbers, field: str) -> float:
    """One of the scales that few models have; 1 for the rest."""
    return numbers.real(field) if decoder is not None and field in decoder.scales else 1.0


def _branch_norm_eps(decoder: Architecture | None, numbers: Numbers) -> float | None:
    if decoder is None or not decoder.branch_norm_eps:
        return None
    return numbers.real("branch_norm_eps", default=decoder.branch_norm_eps)


def _embedding_scale(decoder: Architecture | None, dim: int, numbers: Numbers) -> float:
    if decoder is not None and decoder.scale_embedding:
        return math.sqrt(dim)
    return _scale(decoder, numbers, "embedding_scale")


def _logit_scale(decoder: Architecture | None, numbers: Numbers) -> float:
    return _scale(decoder, numbers, "logit_scale") / _scale(decoder, numbers, "logit_divisor")


def resolve(
    gguf: GgufSource, *, context: int | None = None, ignored: Sequence[str] = (), drafts: bool | None = False
) -> ModelSpec:
    """Check a model file and describe it.

    Parameters
    ----------
    gguf
        The open file.
    context
        Positions that the engine will hold; decides between LongRoPE's two sets of divisors (the long set
        when it is more than the original training context). None: the model's own context length.
    ignored
        Patterns of names of tensors that are none of the decoder's.
    drafts
        With the head that drafts, where the file has one; else it is left out, with a warning where None.

    Returns
    -------
    ModelSpec
        The configuration and the place of every tensor.

    Raises
    ------
    UnsupportedError
        The architecture, a feature or a tensor is not known.
    ModelFileError
        A key or a tensor is missing, has another type or shape, or is out of range.
    """
    arch = _architecture(gguf.metadata)
    meta = GgufNumbers(gguf.metadata, arch.name, arch.defaults, soft_caps=arch.soft_caps)
    known = (("attention.causal",) if arch.bidirectional else ()) + expert_keys(arch, meta)
    if arch.left_out:
        known = (*known, "nextn_predict_layers")
    if arch.parallel == "unnormed":
        # The tensors say it: llama.cpp's converter writes a wrong key for folders that do not say it.
        known = (*known, "use_parallel_residual")
    fields = arch.scales + arch.fields + (_TEMPERATURE_KEYS if "temperature" in arch.scales else ())
    known = (*known, *(suffix for field in fields for suffix in CONFIG_KEYS[field].suffixes))
    meta.refuse_unknown_features(*known, prefixes=arch.features)
    tensors, factors = take_factors(by_name(gguf.tensors))

    sizes = decoder_sizes(meta, shared_by_count=arch.shared_by_count, latent=arch.has_latents)
    sizes = dataclasses.replace(
        sizes,
        windowed=meta.windowed_layers()[: sizes.n_layers],
        laurel_rank=rows_of_table(tensors, ["blk.0.laurel_l.weight"]),  # there is no key for it
    )
    n_layers, dim, head_dim = sizes.n_layers, sizes.dim, sizes.head_dim
    for field, keys in (("value_dim", head_dim), ("local_value_dim", sizes.local_head_dim)):
        value_dim = meta.integer(field, default=keys)
        if value_dim != keys and sizes.latent is None:
            raise UnsupportedError(
                f"{meta.name(field)}: found {value_dim}, but only the key's {keys} is supported"
            )
    vocab_size = vocabulary_size(tensors, gguf.metadata)
    kinds = arch.kinds_of(meta, n_layers)
    check_heads(kinds, sizes, meta)
    recurrent = recurrent_sizes(kinds, meta)
    left_out = dict(arch.left_out)
    # The layers that predict a token more are counted with the others.
    for n in range(n_layers, meta.n_layers):
        left_out |= {f"blk.{n}.*": PREDICTION}
    layer = prediction_layer(arch, kinds, lambda rule, n: rule.source_of(n) in tensors) if drafts else None
    warn_of_left_out(tensors, noticed(left_out, layer, drafts), arch.name)
    input_rules = arch.layer_inputs if sizes.layer_input_dim else ()
    input_rows = rows_of_table(tensors, [rule.source for rule in input_rules])
    refs = map_tensors(
        (*stored_rules(arch.tensors, tensors.__contains__, 0), *input_rules),
        tensors,
        sizes.symbols(vocab_size, input_rows, rows_of_table(tensors, ["position_embd.weight"])),
        [
            LayerTensors(
                stored_rules(with_fused_qkv(kind.tensors, tensors, n), tensors.__contains__, n),
                sizes.layer_symbols(layer.like if layer and n == n_layers else n) | recurrent.symbols(dim),
            )
            for n, kind in enumerate([*kinds, *layer.kinds] if layer else kinds)
        ],
        owner=arch.name,
        known=ROPE_TENSORS,
        ignored=(
            *arch.ignored,
            *left_out,
            *(r.source.replace("{n}", str(n)) for n, kind in enumerate(kinds) for r in kind.unused),
            *ignored,
        ),
    )
    refs = with_factors(refs, factors)

    window = meta.integer("window")
    layer_window = tuple(window if local else 0 for local in sizes.windowed)
    wide = n_layers in arch.wide_scale_layers
    rotated = arch.rotated_layers(layer_window, window)
    if arch.rope_switch and meta.suffixed("rope.scaling.finetuned") is False:
        rotated = [False] * n_layers
    config = model_config(
        arch.name,
        sizes,
        meta,
        vocab_size=vocab_size,
        rope_style=arch.rope_style,
        rotary=gguf_rotary(
            gguf,
            meta,
            tensors,
            head_dim,
            context,
            windowed=any(layer_window),
            plain_local=arch.plain_local_rope,
            local_head_dim=sizes.local_head_dim,
        )
        if arch.rotated != "none"
        else [],
        activation=arch.activation,
        layer_window=layer_window,
        attn_scale=meta.real("attn_scale", default=(dim / sizes.n_heads[0] if wide else head_dim) ** -0.5)
        * (_latent_scale(meta) if arch.has_latents else 1.0),
        kinds=kinds,
        router=gguf_router(
            arch, meta, meta.suffixes, biased=any(name.endswith("router_choice_bias") for name in refs)
        ),
        norms_whole_rows=arch.norms_whole_rows,
        parallel=arch.in_parallel(refs),
        gate=arch.gate,
        decoder=arch,
        rotated=rotated,
        temperature=_temperature(arch, meta),
        recurrent=recurrent,
        value_heads_grouped=_value_heads_grouped(arch, meta),
        layer_input_rows=input_rows,
        positions=refs["positions"].n_rows if "positions" in refs else 0,
        prediction=layer,
    )
    return ModelSpec(config, refs)


def rows_of_table(tensors: Mapping[str, TensorInfo], names: Iterable[str]) -> int:
    """Return the rows of the first of these tensors, such as the table of layer inputs; 0: there is none."""
    table = next((tensors[name] for name in names if name in tensors), None)
    return rows_of(table) if table is not None else 0


def _temperature(arch: Architecture, meta: GgufNumbers) -> tuple[float, int]:
    """The temperature of queries, and its length: by default the first context."""
    if "temperature" not in arch.scales or not meta.has("temperature"):
        return 0.0, 0
    first = meta.integer("rope_original_context", default=meta.integer("context_length"))
    return meta.real("temperature"), meta.integer("temperature_length", default=first)


def _latent_scale(meta: GgufNumbers) -> float:
    """Square of YaRN's factor on queries and on keys, which latent attention has on its scores."""
    if meta.suffixed("rope.scaling.type") != "yarn" or not meta.has("yarn_log_multiplier"):
        return 1.0
    # llama.cpp's converter writes a tenth of it for these models.
    return yarn_scale(meta.real("rope_factor"), 10 * meta.real("yarn_log_multiplier")) ** 2


def check_heads(kinds: Sequence[LayerKind], sizes: DecoderSizes, numbers: Numbers) -> None:
    """Raise where a layer with attention has no heads of keys, which those with a recurrence may lack, or one
    with a feed-forward no size of it.
    """
    for n, kind in enumerate(kinds):
        if "feed_forward" in kind.mixers and sizes.ffn_dim[n] == 0:
            raise ModelFileError(
                f"{numbers.name('ffn_dim')}: found 0 for layer {n}, which has a feed-forward; "
                "expected an integer from 1"
            )
        if "attention" in kind.mixers and sizes.n_kv_heads[n] == 0:
            raise ModelFileError(
                f"{numbers.name('n_kv_heads')}: found 0 for layer {n}, which has attention; "
                "expected an integer from 1"
            )


def _value_heads_grouped(arch: Architecture, meta: GgufNumbers) -> bool:
    """Whether neighbouring value heads share a key head: Ollama's files say it, others by their kind."""
    reordered = meta.suffixed("ssm.v_head_reordered")
    return not reordered if isinstance(reordered, bool) else arch.value_heads_grouped


_TEMPERATURE_KEYS: Final = ("temperature_length", "yarn_log_multiplier")
"""Fields of models whose queries have a temperature."""


def _architecture(metadata: Mapping[str, object]) -> Architecture:
    kind = metadata.get("general.type", "model")
    if kind != "model":
        raise UnsupportedError(f"general.type: found {shown(kind)}, expected 'model'")
    name = metadata.get("general.architecture")
    if name is None:
        raise ModelFileError("general.architecture is missing; this is not a model file")
    row = ARCHITECTURES.get(name) if isinstance(name, str) else None
    if row is None:
        raise UnsupportedError(
            f"general.architecture: found {shown(name)}{why_missing(name)}; "
            f"supported are {', '.join(sorted(ARCHITECTURES))}"
        )
    return row


def vocabulary_size(tensors: Mapping[str, TensorInfo], metadata: Mapping[str, object]) -> int:
    """Rows of the embedding, which the tokenizer's list must have too."""
    embedding = tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelFileError("tensor token_embd.weight is missing; a vocabulary-only file cannot be run")
    rows = embedding.shape[0]
    tokens = metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list | tuple | np.ndarray) and len(tokens) != rows:
        raise ModelFileError(
            f"token_embd.weight: found {rows} rows, expected one for each of the {len(tokens)} tokens "
            "in tokenizer.ggml.tokens"
        )
    return rows
