"""Write the metadata of a GGUF file for a model that comes as a folder: its configuration under GGUF's keys.

The inverse of `akunu.files.describe.gguf_config.resolve`: what that reads here is what
`akunu.files.describe.hf_config.resolve_hf` reads in the folder, and both describe the same model. Names and
conventions are llama.cpp's converter's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import UnsupportedError
from akunu.base.hub_name import model_name
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import (
    Attention,
    DeltaNet,
    Experts,
    FeedForward,
    LatentAttention,
    Mamba2,
    Mixer,
    ShortConvolution,
)
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.config_keys import CONFIG_KEYS, YARN_WHOLE
from akunu.files.describe.encoder_rows import ENCODERS
from akunu.files.describe.gguf_numbers import local_by_period
from akunu.files.describe.hf_config import rotary_parameters
from akunu.files.describe.rotary import UNROTATED_DIVISOR, inverse_frequencies, yarn_scale
from akunu.files.describe.routers import GATINGS
from akunu.files.describe.tensor_rules import Router
from akunu.files.folder import ModelFolder
from akunu.loading.conversion.encoder_metadata import encoder_layers, pooling, whole_window

__all__ = ["SIZES", "gguf_arch", "head_dims", "kv_heads", "model_metadata", "per_layer"]

SIZES: Final = ("n_layers", "context_length", "dim", "n_heads", "norm_eps")
"""Fields of `CONFIG_KEYS` that all files have, whatever the architecture."""


_WITHOUT: Final[Sequence[tuple[str, type[Mixer], str]]] = (
    ("nemotron_h_moe", Experts, "nemotron_h"),
    ("granitehybrid", Mamba2, "granitemoe"),
    ("granitemoe", Experts, "granite"),
)
"""Architectures of GGUF files, and what llama.cpp calls those of them that have no mixer of a kind."""

Tensors = dict[str, npt.NDArray[np.float32]]


def model_metadata(folder: ModelFolder, spec: ModelSpec) -> tuple[dict[str, object], Tensors]:
    """The keys of GGUF, without the tokenizer's, and the tensors of rotary divisors that go with them."""
    config = spec.config
    numbers, tensors = _sizes(config), Tensors()
    forwards = config.mixers(FeedForward)
    given = folder.config.get("text_config") or folder.config
    if len(config.blocks) == config.n_layers:  # a layer is one mixer
        mixers = [block.mixer for block in config.blocks]
        numbers["feed_forward_length"] = per_layer(
            mixer.dim if isinstance(mixer, FeedForward | Experts) else 0 for mixer in mixers
        )
    elif forwards:
        numbers["feed_forward_length"] = per_layer(forward.dim for forward in forwards)
    elif experts := config.mixers(Experts):  # which readers of GGUF may want all the same
        numbers["feed_forward_length"] = given.get("intermediate_size") or experts[0].dim
    numbers |= _experts(given, config) | _delta_net(folder.config, config)
    numbers |= _short_convolution(config) | _mamba2(config)
    if config.arch in ENCODERS:
        numbers |= encoder_layers(folder.config, config)
    else:
        rope, tensors = _rope(folder.config, config)
        numbers |= _attention(config) | rope
    if config.arch in ARCHITECTURES and ARCHITECTURES[config.arch].parallel == "unnormed":
        numbers["use_parallel_residual"] = ARCHITECTURES[config.arch].in_parallel(spec.tensors)
    if config.encoder is not None:
        numbers |= pooling(folder.config, spec)
        if folder.modules.lowercase:
            raise UnsupportedError(
                "sentence_bert_config.json: do_lower_case: found True, which GGUF has no key for"
            )
    general: dict[str, object] = {
        "general.architecture": gguf_arch(config),
        "general.type": "model",
        "general.name": model_name(folder.path),
    }
    if config.arch in ENCODERS:  # llama.cpp asks for it, and knows no second kind
        general["tokenizer.ggml.token_type_count"] = max(1, config.kinds)
    kept = {
        key: value
        for key, value in folder.metadata.items()
        if key.startswith(("general.sampling.", "tokenizer.chat_template"))
    }
    arch = gguf_arch(config)
    return general | {f"{arch}.{key}": value for key, value in numbers.items()} | kept, tensors


def gguf_arch(config: ModelConfig) -> str:
    """The architecture of a GGUF file of a model."""
    arch = config.arch
    for name, mixer, other in _WITHOUT:
        if arch == name and not config.mixers(mixer):
            arch = other
    return arch


def per_layer(values: Iterable[int]) -> int | list[int]:
    """A number that all layers share, or one for each."""
    found = list(values)
    return found[0] if len(set(found)) == 1 else found


def head_dims(config: ModelConfig) -> tuple[int, int]:
    """Elements of a head, in layers without a window and in those with one."""
    sizes = {a.window > 0: a.head_dim for a in config.mixers(Attention)} or {False: config.head_dim}
    return sizes.get(False, sizes.get(True, 0)), sizes.get(True, sizes.get(False, 0))


def kv_heads(config: ModelConfig) -> int | list[int]:
    """Heads of keys, of all layers that attend or of each."""
    return per_layer([a.n_kv_heads for a in config.mixers(Attention)] or [config.n_kv_heads])


def _sizes(config: ModelConfig) -> dict[str, object]:
    found = {CONFIG_KEYS[field].suffixes[0]: getattr(config, field) for field in SIZES}
    if latents := config.mixers(LatentAttention):
        return found | _latent(latents[0]) | {"vocab_size": config.vocab_size}
    full, local = head_dims(config)
    found["attention.head_count_kv"] = kv_heads(config)
    found["attention.key_length"] = found["attention.value_length"] = full
    if local not in (0, full):
        found["attention.key_length_swa"] = found["attention.value_length_swa"] = local
    if config.layer_norm:
        found["attention.layer_norm_epsilon"] = found.pop("attention.layer_norm_rms_epsilon")
    return found | {"vocab_size": config.vocab_size}


def _latent(latent: LatentAttention) -> dict[str, object]:
    """The sizes of latent attention: of heads, and of what is kept of a position."""
    key = latent.nope_dim + latent.rope_dim
    ranks: dict[str, object] = {"attention.q_lora_rank": latent.q_rank} if latent.q_rank else {}
    return ranks | {
        "attention.head_count_kv": 1,
        "attention.kv_lora_rank": latent.latent,
        "attention.key_length": latent.latent + latent.rope_dim,
        "attention.value_length": latent.latent,
        "attention.key_length_mla": key,
        "attention.value_length_mla": latent.value_dim,
    }


def _attention(config: ModelConfig) -> dict[str, object]:
    """Scale, caps and windows, where they are not what the architecture's name says."""
    arch = ARCHITECTURES[config.arch]
    found: dict[str, object] = {}
    if config.mixers(LatentAttention):
        return found
    wide = config.n_layers in arch.wide_scale_layers
    usual = (config.dim / config.n_heads if wide else head_dims(config)[0]) ** -0.5
    usual = arch.defaults.get("attn_scale", usual)
    if not math.isclose(config.attn_scale, usual, rel_tol=1e-6) or "attn_scale" in arch.scales:
        found["attention.scale"] = config.attn_scale
    scales = {
        "embedding_scale": config.embedding_scale,
        "residual_scale": config.residual_scale,
        "logit_scale": config.logit_scale,
        "logit_divisor": 1 / config.logit_scale,
    }
    found |= {CONFIG_KEYS[field].suffixes[0]: scales[field] for field in arch.scales if field in scales}
    if arch.rope_switch and not any(rope is not None for rope in config.layer_rope):
        found["rope.scaling.finetuned"] = False
    for field, key in (("attn_softcap", "attn_logit"), ("final_softcap", "final_logit")):
        cap = float(getattr(config, field))
        if cap or field in arch.defaults:
            found[f"{key}_softcapping"] = cap
    window = whole_window(config)
    key = "attention.sliding_window"
    if window or "window" in arch.defaults or key in arch.required_keys:
        found[key] = window
    local = local_by_period(config.n_layers, arch.window_period)
    key = "attention.sliding_window_pattern"
    if key in arch.required_keys or (window and [bool(w) for w in config.layer_window] != local):
        found[key] = [bool(w) for w in config.layer_window]
    fields = {
        "shared_kv_layers": sum(a.kv_owner is not None for a in config.mixers(Attention)),
        "layer_input_dim": config.layer_inputs.dim if config.layer_inputs else 0,
        "streams": config.streams.count if config.streams else 0,
        "active_stream": config.streams.active if config.streams else 0,
        "deviations": [
            -math.inf if f.deviations is None else f.deviations for f in config.mixers(FeedForward)
        ],
    }
    return found | {CONFIG_KEYS[field].suffixes[0]: fields[field] for field in arch.fields}


def _experts(hf: Mapping[str, object], config: ModelConfig) -> dict[str, object]:
    """Return the keys of experts: their number, sizes, choice, and the layers that have them."""
    layers = [n for n, block in _mixed_blocks(config) if isinstance(block, Experts)]
    if not layers:
        return {}
    arch = ARCHITECTURES[config.arch]
    experts = config.mixers(Experts)[0]
    router, usual = experts.router, arch.router or Router()
    found: dict[str, object] = {
        "expert_count": experts.count,
        "expert_used_count": experts.used,
        "expert_feed_forward_length": experts.dim,
    }
    if experts.shared_dim and arch.shares_expert:
        counted = any(key in hf for key in CONFIG_KEYS["shared_experts"].hf)
        if counted and experts.shared_dim % experts.dim == 0:
            found["expert_shared_count"] = experts.shared_dim // experts.dim
        if "expert_shared_count" not in found or any(key in hf for key in CONFIG_KEYS["shared_dim"].hf):
            found["expert_shared_feed_forward_length"] = experts.shared_dim
    if router.gating != usual.gating or router.gating == "sigmoid":
        found["expert_gating_func"] = GATINGS.index(router.gating) + 1
    if router.renormalise != usual.renormalise or arch.biased_router is not None:
        found["expert_weights_norm"] = router.renormalise
    if router.scale != 1:
        found["expert_weights_scale"] = router.scale
    if router.groups > 1:
        found["expert_group_count"] = router.groups
        found["expert_group_used_count"] = router.groups_used
    if latent := experts.latent_dim:
        found["moe_latent_size"] = latent
    if len(config.blocks) == config.n_layers:  # a layer is one mixer, which its sizes name
        if config.mixers(FeedForward):
            raise UnsupportedError(
                f"experts and other feed-forwards: layers of a {config.arch} model in GGUF have one of them; "
                "convert to a folder (--type mlx-…), or load it as it is"
            )
        return found
    if layers == list(range(layers[0], config.n_layers)):
        return found | ({"leading_dense_block_count": layers[0]} if layers[0] else {})
    step = layers[0] + 1
    found["interleave_moe_layer_step"] = step
    if layers != [n for n in range(config.n_layers) if (n + 1) % step == 0]:
        raise UnsupportedError(
            f"experts of layers {layers}: GGUF has keys for experts of all layers, of those behind the first "
            "ones, and of every so many; convert to a folder (--type mlx-…), or load it as it is"
        )
    return found


def _mixed_blocks(config: ModelConfig) -> list[tuple[int, Mixer]]:
    return [(block.layer, block.mixer) for block in config.blocks]


def _delta_net(hf: Mapping[str, object], config: ModelConfig) -> dict[str, object]:
    """The sizes of delta nets, and which layers have one."""
    nets = config.mixers(DeltaNet)
    if not nets:
        return {}
    net = nets[0]
    recurrent = [False] * config.n_layers
    for layer, mixer in _mixed_blocks(config):
        recurrent[layer] = recurrent[layer] or isinstance(mixer, DeltaNet)
    period = recurrent.index(False) + 1 if False in recurrent else config.n_layers + 1
    found: dict[str, object] = {
        "ssm.conv_kernel": net.taps,
        "ssm.group_count": net.key_heads,
        "ssm.inner_size": net.value_heads * net.value_dim,
        "ssm.state_size": net.key_dim,
        "ssm.time_step_rank": net.value_heads,
    }
    if recurrent == [(n + 1) % period != 0 for n in range(config.n_layers)]:
        found["full_attention_interval"] = period
    else:
        found["attention.recurrent_layers"] = recurrent
    sections = rotary_parameters(hf)[1].get("mrope_section")
    if isinstance(sections, list) and len(sections) < 4:  # of an image's axes; llama.cpp wants four
        found["rope.dimension_sections"] = [*sections, *[0] * (4 - len(sections))]
    return found


def _short_convolution(config: ModelConfig) -> dict[str, object]:
    """The width of short convolutions; layers that have one have no heads of keys."""
    convolutions = config.mixers(ShortConvolution)
    if not convolutions:
        return {}
    return {"shortconv.l_cache": convolutions[0].taps, "attention.head_count_kv": _heads_of_layers(config)}


def _heads_of_layers(config: ModelConfig) -> list[int]:
    """Heads of keys of each layer; 0 where there is another mixer in attention's place."""
    heads = [0] * config.n_layers
    for layer, mixer in _mixed_blocks(config):
        if isinstance(mixer, Attention):
            heads[layer] = mixer.n_kv_heads
    return heads


def _mamba2(config: ModelConfig) -> dict[str, object]:
    """The sizes of Mamba-2; layers that have it have no heads of keys."""
    mixers = config.mixers(Mamba2)
    if not mixers:
        return {}
    mixer = mixers[0]
    return {
        "ssm.conv_kernel": mixer.taps,
        "ssm.group_count": mixer.groups,
        "ssm.inner_size": mixer.heads * mixer.head_dim,
        "ssm.state_size": mixer.state_dim,
        "ssm.time_step_rank": mixer.heads,
        "attention.head_count_kv": _heads_of_layers(config),
    }


def _rope(hf: Mapping[str, object], config: ModelConfig) -> tuple[dict[str, object], Tensors]:
    arch = ARCHITECTURES[config.arch]
    if not config.rope_sets:
        return {}, {}
    kind, numbers = rotary_parameters(hf)
    theta = numbers.real("rope_theta")
    rope_dim = config.rope_sets[0].dim
    found: dict[str, object] = {"rope.dimension_count": rope_dim, "rope.freq_base": theta}
    local = {config.rope_sets[a.rope].dim for a in config.mixers(Attention) if a.window and a.rope}
    if local - {rope_dim}:
        found["rope.dimension_count_swa"] = max(local)
    temperature = next(iter(config.mixers(LatentAttention)), config.rope_sets[-1])  # of queries
    if len({rope for rope in config.layer_rope if rope is not None}) > 1 and not arch.plain_local_rope:
        found["rope.freq_base_swa"] = rotary_parameters(hf, local=True)[1].real("rope_theta")
    if temperature.temperature_length:
        found["attention.temperature_scale"] = temperature.temperature
        found["attention.temperature_length"] = temperature.temperature_length
    tensors: Tensors = {}
    if kind in ("linear", "yarn"):
        found["rope.scaling.type"] = kind
        found["rope.scaling.factor"] = numbers.real("rope_factor")
    key = "rope.scaling.original_context_length"
    if kind in ("yarn", "longrope") or key in arch.required_keys:
        found[key] = numbers.integer("rope_original_context", default=config.context_length)
    if kind == "yarn":
        if numbers.get("truncate") is False:
            found[YARN_WHOLE] = False
        usual = yarn_scale(numbers.real("rope_factor"))
        if "temperature" in arch.scales and (weight := numbers.real("yarn_mscale_all")):
            # llama.cpp's converter writes a tenth of it for latent attention, whose scores it is a factor on.
            found["rope.scaling.yarn_log_multiplier"] = weight / 10 if arch.has_latents else weight
            usual = 1.0 if arch.has_latents else usual / yarn_scale(numbers.real("rope_factor"), weight)
        found["rope.scaling.attn_factor"] = config.rope_sets[0].scale / usual
        found["rope.scaling.yarn_beta_fast"] = numbers.real("yarn_beta_fast")
        found["rope.scaling.yarn_beta_slow"] = numbers.real("yarn_beta_slow")
    if kind == "longrope":
        found["rope.scaling.attn_factor"] = config.rope_sets[0].scale
        for length in ("long", "short"):
            divisors = np.asarray(numbers.get(f"{length}_factor"), np.float32)
            tensors[f"rope_factors_{length}.weight"] = divisors
    if kind in ("llama3", "proportional"):
        plain, own = inverse_frequencies(theta, rope_dim), config.rope_sets[0].inv_freq
        divisors = np.where(own > 0, plain / np.where(own > 0, own, 1), UNROTATED_DIVISOR)
        tensors["rope_freqs.weight"] = divisors.astype(np.float32)
    return found, tensors
