"""Write a folder's `config.json` and `generation_config.json` for a model that comes as GGUF.

The inverse of `akunu.files.describe.hf_config.resolve_hf`, by the same tables. What that reads in the new
configuration is compared with what the file says, number by number: what Hugging Face's files cannot say is
refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import (
    DeltaNet,
    Experts,
    FeedForward,
    LatentAttention,
    Mamba2,
    ShortConvolution,
)
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.config_keys import CONFIG_KEYS, ROPE_TENSORS, YARN_WHOLE
from akunu.files.describe.encoder_config import SEEING_ALL, resolve_hf_vectors
from akunu.files.describe.encoder_modules import Modules
from akunu.files.describe.file_tensors import Shape
from akunu.files.describe.gguf_numbers import GgufNumbers
from akunu.files.describe.hf_config import resolve_hf
from akunu.files.describe.hf_models import ACTIVATIONS, HF_MODELS
from akunu.files.describe.hf_row import HfModel
from akunu.files.describe.rotary import inverse_frequencies, longrope_scale, yarn_scale
from akunu.files.describe.sampling import SAMPLING
from akunu.files.describe.tensor_rules import Router
from akunu.files.model_files import GgufModel
from akunu.loading.conversion.encoder_metadata import whole_window
from akunu.loading.conversion.hf_metadata import SIZES, head_dims, kv_heads
from akunu.loading.conversion.read_back import close, refuse_difference
from akunu.tokenizer import Tokenizer

__all__ = ["check_folder_config", "folder_config", "folder_generation", "folder_model_type", "plain"]

_BIASES: Final = (
    *(f"attn_{part}_bias" for part in ("q", "k", "v", "output")),
    *(f"{of}_{part}_bias" for of in ("ffn", "shared") for part in ("gate", "up", "down")),
)
"""The biases of projections, by their canonical names."""


_FOLDER_ARCHS: Final = {"nemotron_h": "nemotron_h_moe", "glm4moelite": "deepseek2"}
"""Architectures of GGUF files that are one with another in folders."""


def _router(row: HfModel) -> Router:
    return row.router or ARCHITECTURES[row.arch].router or Router()


def folder_model_type(spec: ModelSpec) -> tuple[str, HfModel]:
    """The model type of a folder for this model, and its row.

    Raises
    ------
    UnsupportedError
        Hugging Face has none, or none with this model's biases.
    """
    config = spec.config
    arch = next((causal for causal, both in SEEING_ALL.items() if both == config.arch), config.arch)
    arch = _FOLDER_ARCHS.get(arch, arch)
    sparse = bool(config.mixers(Experts))
    shares = any(mixer.shared_dim for mixer in config.mixers(Experts))
    known = [(name, row) for name, row in HF_MODELS.items() if row.arch == arch and row.model_class]
    rows = [
        (name, row)
        for name, row in known
        if row.said is not None or row.dense_too or ("n_experts" in row.defaults) is sparse
    ]
    # Leading layers without experts may be all.
    rows = rows or [pair for pair in known if "dense_lead" in pair[1].defaults]
    if sparse:
        gating = config.mixers(Experts)[0].router.gating
        rows = [pair for pair in rows if _router(pair[1]).gating == gating] or rows
    shared = [
        pair for pair in rows if bool({"shared_dim", "shared_experts"} & pair[1].defaults.keys()) is shares
    ]
    rows = shared or rows
    if not rows:
        raise UnsupportedError(
            f"general.architecture: found {config.arch!r}, which is no model type of Hugging Face's; "
            f"folders are made of {', '.join(sorted({row.arch for row in HF_MODELS.values()}))}"
        )
    # A Llama's width has to be a multiple of its heads, for Transformers 5; a Mistral's need not be.
    uneven = config.dim % config.n_heads != 0 and not any(f"layers.0.{b}" in spec.tensors for b in _BIASES)
    windows = set(config.layer_window)
    windowed = ("layers", "period") if len(windows) > 1 else ("all",) if any(windows) or uneven else ("none",)
    name, row = next((pair for pair in rows if pair[1].windowed in windowed), rows[0])
    _bias_flags(name, row, spec)
    return name, row


def _bias_flags(name: str, row: HfModel, spec: ModelSpec) -> dict[str, bool]:
    """Return what the configuration says of biases; raise where its class has others."""
    rules = ARCHITECTURES[row.arch].rules
    known = {part for rule in rules for part, _ in rule.parts}
    needed = {part for rule in rules if not rule.optional for part, _ in rule.parts}
    flags: dict[str, bool] = {}
    for bias in dict.fromkeys((*_BIASES, *(name for name in row.bias_keys if name in known))):
        places = ["", *(f"layers.{n}." for n in range(spec.config.n_layers))]
        has = any(place + bias in spec.tensors for place in places)
        key, _ = row.bias_key(bias)
        wanted = bias in needed or bool(key and flags.get(key, has))
        if wanted and not any(place + bias.removesuffix("_bias") in spec.tensors for place in places):
            continue  # nothing is there that it could be added to
        if has != wanted and (has or bias in known):
            raise UnsupportedError(
                f"{bias}: {'found' if has else 'absent'}, and no {name} model of Hugging Face's "
                f"{'has it' if has else 'is without it'}"
            )
        if key and bias in known:
            flags[key] = has
    return flags


def folder_config(model: GgufModel, spec: ModelSpec) -> dict[str, object]:
    """The object in `config.json`."""
    config = spec.config
    name, row = folder_model_type(spec)
    activation = next(key for key, kind in ACTIVATIONS.items() if kind == config.activation)
    found: dict[str, object] = {
        "architectures": [row.model_class],
        "model_type": name,
        **{row.keys.get(field, CONFIG_KEYS[field].hf[0]): plain(getattr(config, field)) for field in SIZES},
        **_heads(config),
        "vocab_size": config.vocab_size,
        **(_feed_forwards(model, config, row) if row.said is None else {}),
        **_delta_net(config),
        **_short_convolution(config, row),
        **_mamba2(config, row),
        "hidden_act": activation,
        "hidden_activation": activation,
        "tie_word_embeddings": "output" not in spec.tensors,
    }
    found |= _bias_flags(name, row, spec)
    if ARCHITECTURES[config.arch].parallel == "unnormed":
        found["use_parallel_residual"] = ARCHITECTURES[config.arch].in_parallel(spec.tensors)
    scales = {
        "embedding_scale": config.embedding_scale,
        "residual_scale": config.residual_scale,
        "attn_scale": config.attn_scale,
        "logit_scale": config.logit_scale,
        "logit_divisor": 1 / config.logit_scale,
    }
    found |= {CONFIG_KEYS[f].hf[0]: plain(value) for f, value in scales.items() if f in row.defaults}
    if ARCHITECTURES[config.arch].rotated == "period":
        found["no_rope_layers"] = [int(rope is not None) for rope in config.layer_rope]
    for field in ("attn_softcap", "final_softcap"):
        if field in row.defaults:
            found[CONFIG_KEYS[field].hf[0]] = plain(getattr(config, field)) or None
    if "query_scalar" in row.defaults:
        found["query_pre_attn_scalar"] = _whole(config.attn_scale**-2)
    found |= row.said(spec) if row.said is not None else _windows(config, row) | _rope(model, config, row)
    if not row.whole:
        return found
    # Programs read this text model as a part of one that has others.
    outer = ("architectures", "tie_word_embeddings")
    return {"model_type": row.whole, **{key: found[key] for key in outer}, "text_config": found}


def _feed_forwards(model: GgufModel, config: ModelConfig, row: HfModel) -> dict[str, object]:
    """The sizes of feed-forwards and of experts, and how these are chosen."""
    found: dict[str, object] = {}
    forwards, experts = config.mixers(FeedForward), config.mixers(Experts)

    def say(field: str, value: object) -> None:
        found[row.keys.get(field, CONFIG_KEYS[field].hf[0])] = value

    if forwards:
        found["intermediate_size"] = config.ffn_dim
    if not experts:
        if row.dense_too:
            say("n_experts", 0)
            say("shared_dim", config.ffn_dim)
        elif "dense_lead" in row.defaults:
            say("dense_lead", config.n_layers)
            if "experts_used" not in row.defaults:  # a class that wants a number
                say("experts_used", 1)
        return found
    mixer, router = experts[0], experts[0].router

    if not forwards:
        dense = model.metadata.get(f"{config.arch}.feed_forward_length")
        found["intermediate_size"] = dense if isinstance(dense, int) else mixer.dim
    say("n_experts", mixer.count)
    say("experts_used", mixer.used)
    if "expert_dim" in row.defaults:
        say("expert_dim", mixer.dim)
    elif not forwards:
        found["intermediate_size"] = mixer.dim
    if "shared_dim" in row.defaults:
        say("shared_dim", mixer.shared_dim)
    elif "shared_experts" in row.defaults:
        say("shared_experts", mixer.shared_dim // mixer.dim)
    if row.renormalise is not None:
        found["norm_topk_prob"] = router.renormalise
    if "expert_scale" in row.defaults:
        say("expert_scale", plain(router.scale))
    if "expert_groups" in row.defaults:
        say("expert_groups", max(router.groups, 1))
        say("expert_groups_used", max(router.groups_used, 1))
    if row.topk_method:
        found["topk_method"] = "group_limited_greedy" if router.groups > 1 else "greedy"
    if mixer.latent_dim:
        say("latent_dim", mixer.latent_dim)
    if len(config.blocks) == config.n_layers:  # a layer is one mixer, by its name
        return found
    layers = [block.layer for block in config.blocks if isinstance(block.mixer, Experts)]
    if "expert_step" in row.keys:
        say("expert_step", 1 if layers == list(range(layers[0], config.n_layers)) else layers[0] + 1)
    if "dense_lead" in row.defaults:
        say("dense_lead", layers[0])
    elif forwards:
        dense = [block.layer for block in config.blocks if isinstance(block.mixer, FeedForward)]
        found |= {"mlp_only_layers": dense, "decoder_sparse_step": 1}
    if mixer.limit:
        found |= {"swiglu_limit": plain(mixer.limit), "swiglu_alpha": plain(mixer.sharpness)}
    return found


def _heads(config: ModelConfig) -> dict[str, object]:
    """Heads of keys, and the sizes of heads."""
    if latents := config.mixers(LatentAttention):
        mixer = latents[0]
        return {
            "num_key_value_heads": mixer.n_heads,
            "q_lora_rank": mixer.q_rank or None,
            "kv_lora_rank": mixer.latent,
            "qk_nope_head_dim": mixer.nope_dim,
            "qk_rope_head_dim": mixer.rope_dim,
            "v_head_dim": mixer.value_dim,
        }
    return {"num_key_value_heads": kv_heads(config), "head_dim": head_dims(config)[0]}


def _mamba2(config: ModelConfig, row: HfModel) -> dict[str, object]:
    """The sizes of Mamba-2, and the kind of each layer, as the class names it."""
    mixers = config.mixers(Mamba2)
    if not mixers:
        return {}
    mixer = mixers[0]
    sizes = {
        "delta_key_heads": mixer.groups,
        "delta_value_heads": mixer.heads,
        "delta_key_dim": mixer.state_dim,
        "delta_value_dim": mixer.head_dim,
        "delta_taps": mixer.taps,
    }
    names = {"mamba2": "linear_attention", "attention": "full_attention", "experts": "moe"}
    kinds = [block.mixer.kind for block in config.blocks]
    found: dict[str, object] = {row.keys[field]: value for field, value in sizes.items()}
    if len(kinds) == config.n_layers:  # a layer is one mixer
        found["layers_block_type"] = [names.get(kind, "mlp") for kind in kinds]
        found["mlp_hidden_act"] = "relu2"
        return found
    rotated = any(rope is not None for rope in config.layer_rope)
    return found | {
        "layer_types": [names[kind] for kind in kinds if kind in ("mamba2", "attention")],
        "position_embedding_type": "rope" if rotated else None,
    }


def _short_convolution(config: ModelConfig, row: HfModel) -> dict[str, object]:
    """The width of short convolutions, and which layers have one."""
    if "conv_taps" not in row.defaults:
        return {}
    taps = {mixer.taps for mixer in config.mixers(ShortConvolution)} or {int(row.defaults["conv_taps"])}
    layers = {block.layer for block in config.blocks if isinstance(block.mixer, ShortConvolution)}
    return {
        "conv_L_cache": taps.pop(),
        "layer_types": ["conv" if n in layers else "full_attention" for n in range(config.n_layers)],
        "block_auto_adjust_ff_dim": False,
    }


def _delta_net(config: ModelConfig) -> dict[str, object]:
    """The sizes of delta nets, and which layers have one."""
    nets = config.mixers(DeltaNet)
    if not nets:
        return {}
    recurrent = {block.layer for block in config.blocks if isinstance(block.mixer, DeltaNet)}
    layers = range(config.n_layers)
    net = nets[0]
    return {
        "linear_num_key_heads": net.key_heads,
        "linear_num_value_heads": net.value_heads,
        "linear_key_head_dim": net.key_dim,
        "linear_value_head_dim": net.value_dim,
        "linear_conv_kernel_dim": net.taps,
        "full_attention_interval": next((n + 1 for n in layers if n not in recurrent), config.n_layers + 1),
        "layer_types": ["linear_attention" if n in recurrent else "full_attention" for n in layers],
    }


def check_folder_config(
    model: GgufModel,
    config: Mapping[str, object],
    shapes: Mapping[str, Shape],
    modules: Modules | None = None,
) -> None:
    """Raise unless a folder with this configuration and these tensors is the model, in short and long texts.

    `modules`: of a model that makes vectors.

    Raises
    ------
    UnsupportedError
        Something that the file says is not what the configuration says.
    """
    tensors = [_Tensor(name, shape) for name, shape in shapes.items()]
    for context in (None, 1):
        wanted = model.spec(context).config
        wanted = replace(wanted, arch=_FOLDER_ARCHS.get(wanted.arch, wanted.arch))
        if modules is None:
            found = resolve_hf(config, tensors, context=context).config
        else:
            found = resolve_hf_vectors(config, tensors, modules, context=context).config
        refuse_difference(
            wanted, found, model.files.paths[0], f"config.json of a {config['model_type']} model"
        )


def folder_generation(metadata: Mapping[str, object], tokenizer: Tokenizer | None) -> dict[str, object]:
    """The object in `generation_config.json`."""
    # What is absent has the numbers of the class's first model.
    found: dict[str, object] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    if tokenizer is not None:
        ends = sorted(tokenizer.end_of_generation_ids, key=lambda i: (i != tokenizer.eos_id, i))
        found |= {"bos_token_id": tokenizer.bos_id, "eos_token_id": ends}
    padding = metadata.get("tokenizer.ggml.padding_token_id")
    if tokenizer is not None and isinstance(padding, int) and 0 <= padding < tokenizer.vocab_size:
        found["pad_token_id"] = padding
    sampling = {
        key: plain(metadata[f"general.sampling.{name}"])
        for key, name in SAMPLING.items()
        if f"general.sampling.{name}" in metadata
    }
    if sampling.get("temperature") == 0:  # Transformers' way to say it
        return found | {"do_sample": False}
    return found | ({"do_sample": True} | sampling if sampling else {})


@dataclass(frozen=True)
class _Tensor:
    """A tensor of floats."""

    name: str
    shape: Shape
    dtype: str = "f32"


def _windows(config: ModelConfig, row: HfModel) -> dict[str, object]:
    window = whole_window(config)
    types = ["sliding_attention" if width else "full_attention" for width in config.layer_window]
    match row.windowed:
        case "none":
            return {}
        case "all" | "every":
            return {"sliding_window": window or None}
        case "layers" | "period":  # whose class wants a window, even if no layer has one
            all_rotate = not window and ARCHITECTURES[row.arch].rotated == "windowed_or_all"
            usual = None if all_rotate else row.defaults["window"]
            return {"sliding_window": window or usual, "layer_types": types}
    first = next((n for n, width in enumerate(config.layer_window) if width), config.n_layers)
    return {
        "use_sliding_window": window > 0,
        "sliding_window": window or None,
        "max_window_layers": first,
        "layer_types": types,
    }


def _rope(model: GgufModel, config: ModelConfig, row: HfModel) -> dict[str, object]:
    """The rotary parameters, as all versions of Transformers and mlx-lm read them."""
    numbers = GgufNumbers(model.metadata, config.arch, ARCHITECTURES[config.arch].defaults)
    theta = numbers.real("rope_theta")
    found: dict[str, object] = {"rope_theta": plain(theta)}
    if "rope_share" in row.defaults:
        found["partial_rotary_factor"] = config.rope_dim / config.head_dim
    own = {rope for rope in config.layer_rope if rope is not None}
    if len(own) > 1 and not ARCHITECTURES[config.arch].plain_local_rope:
        found["rope_local_base_freq"] = plain(numbers.real("local_rope_theta"))
    divisors = {
        tensor.name: np.frombuffer(model.files.tensor_bytes(tensor.name).tobytes(), "<f4").astype(np.float64)
        for tensor in model.files.tensors
        if tensor.name in ROPE_TENSORS
    }
    factor = numbers.real("rope_factor")
    original = numbers.integer("rope_original_context", default=config.context_length)
    scaling: dict[str, object] = {}
    if "rope_freqs.weight" in divisors:
        scaling = _llama3(divisors["rope_freqs.weight"], inverse_frequencies(theta, config.rope_dim))
    elif divisors:
        # Phi 3's first readers know no other key for the kind.
        scaling = {"type": "longrope"}
        for length in ("short", "long"):
            values = divisors.get(f"rope_factors_{length}.weight", np.ones(config.rope_dim // 2))
            scaling[f"{length}_factor"] = [plain(np.float32(value)) for value in values]
        found["original_max_position_embeddings"] = original
        if not close(config.rope_sets[0].scale, longrope_scale(config.context_length / original, original)):
            scaling["attention_factor"] = plain(config.rope_sets[0].scale)
    elif numbers.suffixed("rope.scaling.type") == "yarn":
        scaling = {
            "rope_type": "yarn",
            "factor": plain(factor),
            "original_max_position_embeddings": original,
            "beta_fast": plain(numbers.real("yarn_beta_fast")),
            "beta_slow": plain(numbers.real("yarn_beta_slow")),
        }
        if numbers.suffixed(YARN_WHOLE) is False:
            scaling["truncate"] = False
        scale, latents = config.rope_sets[0].scale, config.mixers(LatentAttention)
        if latents and numbers.has("yarn_log_multiplier"):  # a factor on scores, of which GGUF has a tenth
            weight = plain(10 * numbers.real("yarn_log_multiplier"))
            scaling |= {"mscale_all_dim": weight} | ({"mscale": weight} if close(scale, 1.0) else {})
        if not close(scale, yarn_scale(factor)) and "mscale" not in scaling:
            scaling["attention_factor"] = plain(scale)
        temperature = latents[0] if latents else config.rope_sets[-1]
        if temperature.temperature_length:
            scaling["llama_4_scaling_beta"] = plain(temperature.temperature)
    elif factor != 1 and numbers.suffixed("rope.scaling.type") in (None, "linear"):
        scaling = {"rope_type": "linear", "factor": plain(factor)}
    elif row.rope:  # whose class has a scaling where the configuration has none
        scaling = {"rope_type": "default"}
        if config.rope_sets[-1].temperature_length:
            scaling |= {
                "original_max_position_embeddings": config.rope_sets[-1].temperature_length,
                "llama_4_scaling_beta": plain(config.rope_sets[-1].temperature),
            }
    if row.in_one:
        return {"rope_parameters": _in_one(numbers, found, scaling)}
    return found | {"rope_scaling": scaling or None}


def _in_one(
    numbers: GgufNumbers, found: Mapping[str, object], scaling: Mapping[str, object]
) -> dict[str, object]:
    """The rotary parameters in one object, with the shares of an image's axes, which a text does not have."""
    sections = numbers.suffixed("rope.dimension_sections")
    if isinstance(sections, np.ndarray):
        sections = sections.tolist()
    more: dict[str, object] = {}
    if isinstance(sections, list | tuple):
        more = {"mrope_interleaved": True, "mrope_section": [n for n in sections if n]}
    return {"rope_type": "default", **found, **more, **scaling}


def _llama3(divisors: npt.NDArray[np.float64], inv_freq: npt.NDArray[np.float64]) -> dict[str, object]:
    """The parameters that give these divisors, with the `low_freq_factor` of 1 that all have.

    A frequency is kept to a share of (original / 2π · frequency - low) / (high - low), a line through those
    that are neither kept whole nor divided whole.
    """
    factor = divisors.max()
    if factor == 1:
        return {}
    kept = (1 / divisors - 1 / factor) / (1 - 1 / factor)
    inside = (kept > 1e-6) & (kept < 1 - 1e-6)
    spread = 3.0  # high - low, as published
    if inside.sum() >= 2:
        slope, offset = np.polyfit(inv_freq[inside], kept[inside], 1)
        spread = -1 / offset
    elif inside.any():
        slope = float(((kept + 1 / spread) / inv_freq)[inside][0])
    else:  # anything between the slowest that is kept and the fastest that is divided
        middle = math.sqrt(inv_freq[kept > 0.5].min() * inv_freq[kept < 0.5].max())
        slope = math.sqrt(1 + spread) / spread / middle
    original = round(slope * spread * 2 * math.pi)
    if spread <= 0 or original < 1:
        raise UnsupportedError(
            "rope_freqs.weight: these divisors are not a Llama 3's; a folder has names for no others"
        )
    return {
        "rope_type": "llama3",
        "factor": plain(np.float32(factor)),
        "low_freq_factor": 1.0,
        "high_freq_factor": round(1 + spread, 4),
        "original_max_position_embeddings": original,
    }


def plain(value: object) -> object:
    """A number as it was before a file kept it with 32 bits: the shortest one that it stands for."""
    return float(str(np.float32(value))) if isinstance(value, float | np.floating) else value


def _whole(value: float) -> float:
    """A number that is whole but for rounding, as an integer."""
    return round(value) if math.isclose(value, round(value), rel_tol=1e-5) else value
