"""From the numbers of a decoder and its kinds of layer to its configuration, whatever file they come from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from akunu.base.errors import ModelFileError
from akunu.files.describe.blocks import (
    Attention,
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
from akunu.files.describe.config import ModelConfig
from akunu.files.describe.config_numbers import DecoderSizes, Numbers
from akunu.files.describe.distances import Distances
from akunu.files.describe.prediction import PredictionLayer
from akunu.files.describe.recurrent import RecurrentSizes
from akunu.files.describe.tensor_map import TensorInfo, rows_of
from akunu.files.describe.tensor_rules import Activation, Architecture, Gate, LayerKind, MixerKind, RopeStyle

__all__ = ["check_heads", "model_config", "rows_of_table"]


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


def rows_of_table(tensors: Mapping[str, TensorInfo], names: Iterable[str]) -> int:
    """Return the rows of the first of these tensors, such as the table of layer inputs; 0: there is none."""
    table = next((tensors[name] for name in names if name in tensors), None)
    return rows_of(table) if table is not None else 0


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
