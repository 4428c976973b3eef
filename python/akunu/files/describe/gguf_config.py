"""From the metadata and tensor list of a GGUF file to a checked model specification.

`resolve` interprets one row of `akunu.files.describe.architectures` and trusts nothing: each number has
bounds, each tensor must have the shape that the configuration implies, and a tensor or a feature that no
rule knows is refused, because to leave it out would give wrong text. It reads no weights, except the few
rotary divisors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.config_keys import CONFIG_KEYS, ROPE_TENSORS
from akunu.files.describe.config_numbers import decoder_sizes, shown
from akunu.files.describe.decoder_config import check_heads, model_config, rows_of_table
from akunu.files.describe.expert_rules import stored_rules
from akunu.files.describe.gguf_numbers import GgufNumbers
from akunu.files.describe.gguf_rotary import GgufSource, gguf_rotary
from akunu.files.describe.known_missing import why_missing
from akunu.files.describe.layer_rules import with_fused_qkv
from akunu.files.describe.prediction import PREDICTION, noticed, prediction_layer
from akunu.files.describe.quantized import take_factors, with_factors
from akunu.files.describe.recurrent import recurrent_sizes
from akunu.files.describe.rotary import yarn_scale
from akunu.files.describe.routers import expert_keys, gguf_router
from akunu.files.describe.tensor_map import LayerTensors, TensorInfo, by_name, map_tensors, warn_of_left_out
from akunu.files.describe.tensor_rules import Architecture

__all__ = ["resolve", "vocabulary_size"]


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
