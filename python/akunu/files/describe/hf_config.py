"""From the `config.json` and tensor list of a Hugging Face or MLX folder to a checked model specification.

The counterpart of `akunu.files.describe.gguf_config.resolve`, just as strict. The facts are Transformers'
(its configuration and model classes, `modeling_rope_utils.py`), against which tests/models checks every row.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.config_keys import CONFIG_KEYS
from akunu.files.describe.config_numbers import DecoderSizes, Numbers, decoder_sizes, shown
from akunu.files.describe.decoder_config import check_heads, model_config, rows_of_table
from akunu.files.describe.expert_rules import stored_rules
from akunu.files.describe.gguf_numbers import local_by_period
from akunu.files.describe.hf_dense_models import HF_WRAPPERS
from akunu.files.describe.hf_models import ACTIVATIONS, HF_MODELS, HF_NEUTRAL, HF_SPECIAL
from akunu.files.describe.hf_numbers import FULL, SLIDING, HfNumbers, local_layers
from akunu.files.describe.hf_rotary import HfRotary
from akunu.files.describe.hf_row import HfModel
from akunu.files.describe.known_missing import why_missing
from akunu.files.describe.prediction import (
    PREDICTION,
    PredictionLayer,
    moved_names,
    noticed,
    prediction_layer,
    with_names,
)
from akunu.files.describe.quantized import join_planes, with_planes
from akunu.files.describe.recurrent import recurrent_sizes
from akunu.files.describe.routers import hf_gate, hf_router
from akunu.files.describe.tensor_map import (
    LayerTensors,
    TensorInfo,
    TensorRef,
    by_name,
    map_tensors,
    warn_of_left_out,
)
from akunu.files.describe.tensor_rules import Architecture, LayerKind, TensorRule

__all__ = ["refuse_unknown_features", "resolve_hf", "rotary_parameters"]

_ZERO_IF_NULL: Final = (
    "sliding_window", "attn_logit_softcapping", "final_logit_softcapping", "hidden_size_per_layer_input",
    "q_lora_rank", "n_group", "topk_group",
)  # fmt: skip
"""Keys whose null means that there is no such thing, not that it is as usual."""

_NEUTRAL_IF_ONE: Final = ("routed_scaling_factor", "n_group")


def resolve_hf(
    config: Mapping[str, object],
    tensors: Sequence[TensorInfo],
    *,
    context: int | None = None,
    ignored: Sequence[str] = (),
    drafts: bool | None = False,
    sees: bool = False,
) -> ModelSpec:
    """Check a folder's model and describe it.

    Parameters
    ----------
    config
        The object in `config.json`.
    tensors
        Those of the SafeTensors files.
    context, ignored, drafts
        As in `akunu.files.describe.gguf_config.resolve`.
    sees
        Its tower for images is loaded beside it: nothing is said of the tensors that are for these.

    Returns
    -------
    ModelSpec
        The configuration and the place of every tensor.

    Raises
    ------
    UnsupportedError
        The model type, a feature or a tensor is not known.
    ModelFileError
        A key or a tensor is missing, has another type or shape, or is out of range.
    """
    model_type, row = _row(config)
    config = _spelled(config, row)
    arch = ARCHITECTURES[row.arch]
    normed = any(kind.has("attn_q_norm") for kind in arch.layers.values())
    refuse_unknown_features(
        config,
        {
            key: values
            for key, values in HF_NEUTRAL.items()
            if key not in row.features and (key != "use_qk_norm" or not normed)
        },
    )
    _refuse_foreign_numbers(config, row, model_type)
    numbers = HfNumbers(config, row.defaults, model_type, own=row.keys)
    sizes = decoder_sizes(numbers, shared_by_count=arch.shared_by_count, latent=arch.has_latents)
    layer_window = _layer_windows(config, numbers, row, sizes.n_layers)
    sizes = dataclasses.replace(sizes, windowed=tuple(window > 0 for window in layer_window))
    kinds = arch.kinds_of(numbers, sizes.n_layers)
    check_heads(kinds, sizes, numbers)
    _check_activation(config, row, arch)
    found = join_planes(config, by_name(tensors))
    recurrent = recurrent_sizes(kinds, numbers)
    left_out = dict(row.left_out)
    # Layers behind the others predict a token more.
    for n in range(sizes.n_layers, sizes.n_layers + numbers.integer("nextn_beside")):
        left_out |= {f"*layers.{n}.*": PREDICTION}
    symbols = [sizes.layer_symbols(n) | recurrent.symbols(sizes.dim) for n in range(sizes.n_layers)]
    layer, moved = _prediction(arch, kinds, found) if drafts else (None, {})
    missed = noticed(left_out, layer, drafts)
    missed = {pattern: what for pattern, what in missed.items() if not (sees and what == "images")}
    warn_of_left_out(found, missed, model_type)
    ignored, layers, named = (*left_out, *ignored), kinds, found
    if layer is not None:
        layers, symbols = [*kinds, *layer.kinds], [*symbols, symbols[layer.like]]
        named = {name: t for name, t in found.items() if name not in moved.values()}
        named |= {name: found[real] for name, real in moved.items()}
    refs = _map(config, named, row, arch, layers, sizes, symbols, model_type, ignored)
    refs = with_planes(with_names(refs, moved), found)
    if arch.parallel == "unnormed" and _flag(config, "use_parallel_residual") != arch.in_parallel(refs):
        norm = "no norm" if arch.in_parallel(refs) else "a norm"
        raise ModelFileError(
            f"config.json: use_parallel_residual: found {shown(config.get('use_parallel_residual'))}, "
            f"but the feed-forwards have {norm} of their own"
        )
    if layer is not None and refs[f"{layer.prefix}joined"].scales:
        warnings.warn(
            f"the head of this {model_type} model that drafts is left out: its matrix is quantised in planes",
            RuntimeWarning,
            stacklevel=3,
        )
        refs, layer = {name: r for name, r in refs.items() if not name.startswith(layer.prefix)}, None
    context_length = numbers.integer("context_length")
    rope = HfRotary(
        config,
        numbers,
        sizes.head_dim,
        context_length,
        context or context_length,
        plain_local=arch.plain_local_rope,
        rope_dim=sizes.latent.rope_dim if sizes.latent else 0,
        local_head_dim=sizes.local_head_dim,
    )
    rotary = [rope.frequencies(FULL)] if arch.rotated != "none" else []
    frequencies = rotary[0][0] if rotary else np.zeros(sizes.head_dim // 2)
    if 2 * len(frequencies) != sizes.head_dim and "rope_share" not in row.defaults and sizes.latent is None:
        raise UnsupportedError(
            f"config.json: partial_rotary_factor: makes {2 * len(frequencies)} of a head's {sizes.head_dim} "
            f"elements rotate, but in a {model_type} model all do"
        )
    if rope.has_local and any(layer_window):
        rotary.append(rope.frequencies(SLIDING))
        if rotary[1][0].shape != frequencies.shape and sizes.local_head_dim == sizes.head_dim:
            raise UnsupportedError(
                f"{rope.where}: the layers differ in their share of rotated elements; only equal layers are "
                "supported"
            )
    model = model_config(
        arch.name,
        sizes,
        numbers,
        vocab_size=refs["token_embedding"].n_rows,
        rope_style="half" if config.get("rope_interleave") is False else row.rope_style,
        rotary=rotary,
        activation=arch.activation,
        layer_window=layer_window,
        attn_scale=_attn_scale(numbers, row, sizes.head_dim) * (rope.score_scale() if sizes.latent else 1.0),
        kinds=kinds,
        router=hf_router(arch, row, numbers, _renormalise(config, row)),
        gate=hf_gate(arch, numbers),
        norms_whole_rows=arch.norms_whole_rows,
        parallel=arch.in_parallel(refs),
        decoder=arch,
        rotated=_rotated(config, numbers, arch, layer_window),
        temperature=rope.temperature() if "temperature" in arch.scales else (0.0, 0),
        recurrent=recurrent,
        layer_input_rows=refs["layer_input_table"].n_rows if sizes.layer_input_dim else 0,
        positions=refs["positions"].n_rows if "positions" in refs else 0,
        prediction=layer,
    )
    return ModelSpec(model, refs)


def _prediction(
    arch: Architecture, kinds: Sequence[LayerKind], tensors: Mapping[str, TensorInfo]
) -> tuple[PredictionLayer | None, dict[str, str]]:
    """The layer that predicts a token more, and the names of its tensors, by those of a layer."""
    if arch.prediction is None:
        return None, {}
    prefix = _prefix(tensors, arch.tensors[0].hf)
    moved = moved_names(arch.prediction, list(tensors), prefix, len(kinds))

    def has(rule: TensorRule, n: int) -> bool:
        name = prefix + rule.hf_of(n)
        return name in tensors or name in moved

    return prediction_layer(arch, kinds, has), moved


def _attn_scale(numbers: HfNumbers, row: HfModel, head_dim: int) -> float:
    if "attn_scale" in row.defaults:
        return numbers.real("attn_scale")
    return float(numbers.real("query_scalar", default=head_dim) ** -0.5)


def _rotated(
    config: Mapping[str, object], numbers: HfNumbers, arch: Architecture, layer_window: Sequence[int]
) -> list[bool]:
    """Return whose heads rotate: as the configuration says of each layer, or by its period, or as usual."""
    n_layers = len(layer_window)
    if arch.rope_switch and config.get("position_embedding_type", "rope") != "rope":
        return [False] * n_layers
    if arch.rotated != "period":
        return arch.rotated_layers(layer_window, numbers.integer("window"))
    flags = config.get("no_rope_layers")  # which, whatever its name, are those that are rotated
    if flags is None:
        period = numbers.integer("unrotated_period")
        return [(n + 1) % period != 0 for n in range(n_layers)]
    if not isinstance(flags, list) or len(flags) != n_layers or any(flag not in (0, 1) for flag in flags):
        raise ModelFileError(
            f"config.json: no_rope_layers: found {shown(flags)}, expected 0 or 1 for each of the "
            f"{n_layers} layers"
        )
    return [bool(flag) for flag in flags]


def rotary_parameters(config: Mapping[str, object], *, local: bool = False) -> tuple[str, Numbers]:
    """The kind of rotary scaling of a model that `resolve_hf` takes, and its numbers.

    `local`: those of the windowed layers.
    """
    model_type, row = _row(config)
    config = _spelled(config, row)
    numbers = HfNumbers(config, row.defaults, model_type, own=row.keys)
    arch = ARCHITECTURES[row.arch]
    sizes = decoder_sizes(numbers, latent=arch.has_latents)
    context_length = numbers.integer("context_length")
    rope = HfRotary(
        config,
        numbers,
        sizes.head_dim,
        context_length,
        context_length,
        plain_local=arch.plain_local_rope,
        rope_dim=sizes.latent.rope_dim if sizes.latent else 0,
        local_head_dim=sizes.local_head_dim,
    )
    parameters, kind = rope.read(SLIDING if local else FULL)
    return kind, parameters


def _row(config: Mapping[str, object]) -> tuple[str, HfModel]:
    name = config.get("model_type")
    if name is None:
        raise ModelFileError("config.json: model_type is missing; this is not the configuration of a model")
    text = config.get("text_config")
    beside = HF_WRAPPERS.get(name) if isinstance(name, str) else None
    if beside is not None and isinstance(text, Mapping):
        name = text.get("model_type")
    row = HF_MODELS.get(name) if isinstance(name, str) else None
    if row is not None and beside is not None:
        row = dataclasses.replace(row, left_out={**row.left_out, **beside})
    if row is None:
        from akunu.files.describe.encoder_rows import HF_ENCODERS

        raise UnsupportedError(
            f"config.json: model_type: found {shown(name)}{why_missing(name)}; supported are "
            f"{', '.join(sorted(HF_MODELS))}, "
            f"and of models that make vectors {', '.join(sorted(HF_ENCODERS))}"
        )
    return str(name), row


def _text_config(config: Mapping[str, object]) -> Mapping[str, object]:
    """The text model's part of a configuration that has several, with what a null in it means."""
    text = config.get("text_config")
    if text is not None:
        if not isinstance(text, Mapping):
            raise ModelFileError(f"config.json: text_config: found {shown(text)}, expected an object")
        outer = {key: config[key] for key in ("quantization", "quantization_config") if key in config}
        if "tie_word_embeddings" in config:
            outer["tie_word_embeddings"] = config["tie_word_embeddings"]
        config = outer | dict(text)
    # One head of keys for each head of queries.
    nulls = {key: 0 for key in _ZERO_IF_NULL} | {"num_key_value_heads": config.get("num_attention_heads")}
    return {key: nulls.get(key) if value is None else value for key, value in config.items()}


def _spelled(config: Mapping[str, object], row: HfModel) -> Mapping[str, object]:
    """The text model's configuration, with what its class makes of it where it says less, or otherwise."""
    config = _text_config(config)
    if row.spelled is not None:
        config = row.spelled(config, row.defaults)
    absent = config.get("rope_parameters") is None and config.get("rope_scaling") is None
    return {**config, "rope_parameters": row.rope} if row.rope and absent else config


def refuse_unknown_features(config: Mapping[str, object], known: Mapping[str, tuple[object, ...]]) -> None:
    """Raise where a key of `known` has a value that it does not list; null means that nothing is said."""
    for key, neutral in known.items():
        value = config.get(key)
        if value is not None and value not in neutral:
            raise UnsupportedError(
                f"config.json: {key}: found {shown(value)}, but this feature is not supported "
                f"(only {neutral[0]} is)"
            )


def _refuse_foreign_numbers(config: Mapping[str, object], row: HfModel, model_type: str) -> None:
    for key in (key for field in HF_SPECIAL if field not in row.defaults for key in CONFIG_KEYS[field].hf):
        # A factor of 1, or one group, is none.
        if config.get(key) and not (key in _NEUTRAL_IF_ONE and config[key] == 1):
            raise UnsupportedError(
                f"config.json: {key}: found {shown(config[key])}, but a {model_type} model has none; "
                "remove the key if the model was trained without it"
            )


def _check_activation(config: Mapping[str, object], row: HfModel, arch: Architecture) -> None:
    for key in ("hidden_activation", "hidden_act"):
        name = config.get(key)
        if name is None:
            continue
        if not isinstance(name, str) or (
            ACTIVATIONS.get(name) != arch.activation and name not in row.activations
        ):
            known = [name for name, kind in ACTIVATIONS.items() if kind == arch.activation]
            raise UnsupportedError(
                f"config.json: {key}: found {shown(name)}, expected {' or '.join(known)} "
                f"for a {arch.name} model"
            )
        return


def _map(
    config: Mapping[str, object],
    tensors: Mapping[str, TensorInfo],
    row: HfModel,
    arch: Architecture,
    kinds: Sequence[LayerKind],
    sizes: DecoderSizes,
    symbols: Sequence[Mapping[str, int]],
    owner: str,
    ignored: Sequence[str],
) -> dict[str, TensorRef]:
    suffix = arch.tensors[0].hf  # of the embedding
    prefix = _prefix(tensors, suffix)
    embedding = tensors[prefix + suffix]
    vocab_size = embedding.shape[0] if embedding.shape else 0
    announced = config.get("vocab_size")
    if announced is not None and announced != vocab_size:
        raise ModelFileError(
            f"tensor {embedding.name}: found {vocab_size} rows, expected the {shown(announced)} "
            "of config.json's vocab_size"
        )
    head = _head(tensors)
    tied = _flag(config, "tie_word_embeddings", default=row.tied)
    if not tied and head not in tensors:
        raise ModelFileError(
            f"tensor {head} is missing: a model that writes text needs an output head, or "
            "tie_word_embeddings in config.json where it is the embedding; one that makes vectors needs "
            "modules.json, which says how its rows are pooled"
        )
    known = {head} if tied else set()

    def named(rules: Sequence[TensorRule]) -> tuple[TensorRule, ...]:
        """The rules by the checkpoint's names, of what the configuration says that it has."""
        found = []
        for rule in rules:
            is_head = rule.hf == "lm_head.weight"
            if is_head and tied:
                continue
            name = rule.parts[0][0]
            needed = is_head or not rule.optional
            part = name.partition("_")[0]
            projection = name.endswith("_bias") and not name.endswith("_norm_bias")
            source = head if is_head else prefix + rule.hf
            if rule.hf == "lm_head.bias":
                source = head.removesuffix("weight") + "bias"
            said = name in row.bias_keys or (projection and part in ("attn", "ffn", "shared"))
            if said and not needed:
                flag, default = row.bias_key(name)
                if not flag or not _flag(config, flag, default=default):
                    names = [source.replace("{n}", str(n)) for n in range(sizes.n_layers)]
                    _refuse_bias([name for name in names if name in tensors], flag, owner)
                    continue
                needed = True
            if row.turned_experts and name.startswith("experts_") and rule.hf.endswith("_proj"):
                rule = dataclasses.replace(rule, turned="maybe")
            found.append(dataclasses.replace(rule, source=source, optional=not needed))
        return tuple(found)

    def has(name: str) -> bool:
        return prefix + name in tensors

    by_kind = {
        id(kind): named(stored_rules(kind.tensors, has, n, hf=True))
        for n, kind in reversed(list(enumerate(kinds)))
    }
    input_rules = named(arch.layer_inputs if sizes.layer_input_dim else ())
    unused = [prefix + rule.hf.replace("{n}", str(n)) for n, kind in enumerate(kinds) for rule in kind.unused]
    refs = map_tensors(
        (*named(arch.tensors), *input_rules),
        tensors,
        sizes.symbols(
            vocab_size,
            rows_of_table(tensors, [rule.source for rule in input_rules]),
            rows_of_table(tensors, [prefix + r.hf for r in arch.tensors if r.parts[0][0] == "positions"]),
        ),
        [LayerTensors(by_kind[id(kind)], own) for kind, own in zip(kinds, symbols, strict=True)],
        owner=owner,
        known=known,
        ignored=(*row.ignored, *unused, *ignored),
    )
    # A folder has the logarithm of what a GGUF file has.
    for decay, logarithm in (("delta_decay", "delta_a_log"), ("mamba_decay", "mamba_a_log")):
        refs = {name.replace(decay, logarithm): ref for name, ref in refs.items()}
    # MLX has turned the convolutions around, and has added the 1 then.
    turned = any(name.endswith("conv1d.weight") and t.shape[-1] == 1 for name, t in tensors.items())
    if turned:
        return refs
    return {
        name: dataclasses.replace(ref, add=row.norm_add)
        if name.endswith("norm") and not name.endswith(row.plain_norms)
        else ref
        for name, ref in refs.items()
    }


def _renormalise(config: Mapping[str, object], row: HfModel) -> bool | None:
    if row.renormalise is None:
        return None
    return _flag(config, "norm_topk_prob", default=row.renormalise)


def _flag(config: Mapping[str, object], key: str, *, default: bool = False) -> bool:
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ModelFileError(f"config.json: {key}: found {shown(value)}, expected true or false")
    return value


def _refuse_bias(found: Sequence[str], flag: str, owner: str) -> None:
    """Raise where there are biases or norms that the configuration does not ask for.

    Transformers leaves them out. `flag`: the key that asks for them, if the model type has one.
    """
    if found:
        remedy = f"set {flag} to true" if flag else "give another model_type"
        raise ModelFileError(
            f"tensor {found[0]}: by config.json this {owner} model has no such "
            f"{'bias' if found[0].endswith('bias') else 'norm'}; "
            f"{remedy} if it was trained with it, else remove the tensor"
        )


def _prefix(tensors: Mapping[str, TensorInfo], suffix: str) -> str:
    """Return what stands before the decoder's names, such as `suffix`: "model.", or more where it is a part
    of the model.
    """
    # Layers that predict a token more may have a copy.
    found = sorted(
        name.removesuffix(suffix) for name in tensors if name.endswith(suffix) and ".layers." not in name
    )
    if not found:
        raise ModelFileError(f"tensor model.{suffix} is missing; the checkpoint has no decoder")
    if len(found) > 1:
        raise UnsupportedError(
            f"the checkpoint has several embeddings: {', '.join(prefix + suffix for prefix in found[:4])}"
        )
    return found[0]


def _head(tensors: Mapping[str, TensorInfo]) -> str:
    """The output head's name: above the decoder, or above some or all of its parts."""
    suffix = "lm_head.weight"
    found = sorted(name for name in tensors if name == suffix or name.endswith(f".{suffix}"))
    if len(found) > 1:
        raise UnsupportedError(f"the checkpoint has several output heads: {', '.join(found[:4])}")
    return found[0] if found else suffix


def _layer_windows(
    config: Mapping[str, object], numbers: HfNumbers, row: HfModel, n_layers: int
) -> tuple[int, ...]:
    """Sliding window of each layer, 0 for full attention."""
    window = numbers.integer("window")
    if row.windowed == "later" and not _flag(config, "use_sliding_window"):
        window = 0
    types = local_layers(config, n_layers) if row.windowed not in ("none", "every") else None
    if row.windowed == "none" or window == 0:
        local = [False] * n_layers
    elif types is not None:
        local = types
    elif row.windowed in ("every", "all", "layers"):
        local = [True] * n_layers
    elif row.windowed == "later":
        first = numbers.integer("window_first")
        local = [n >= first for n in range(n_layers)]
    else:
        period = numbers.integer("window_period", default=row.period)
        local = local_by_period(n_layers, period)
    return tuple(window if flag else 0 for flag in local)
