"""Sizes of published models, as data, for `--synthetic`.

Source: each model's `config.json` at its publisher. Vocabulary sizes are those of the embedding matrix,
padding included, because that is what is multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

__all__ = ["SHAPES", "Shape"]


@dataclass(frozen=True)
class Shape:
    """Sizes of one published model.

    Attributes
    ----------
    arch
        Row of `akunu.files.describe.architectures.ARCHITECTURES`.
    label
        The size in a table's column "model", such as "0.6B".
    tied
        The output head is the embedding matrix.
    llama3_rope
        The file has `rope_freqs.weight`, Llama 3.1's divisors of the rotary frequencies (factor, by the
        scaling rule of its `rope_scaling`); 0 = none.
    proportional_rope
        The file has `rope_freqs.weight`, by which this share of a head rotates; 0 = none.
    keys_are_values
        Layers without a window have no matrix of values.
    biases
        Names of the biases that not all models of the architecture have, but this one.
    extra
        Further metadata, by key without the architecture's prefix.
    """

    arch: str
    label: str
    n_layers: int
    dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    vocab_size: int
    context_length: int
    rope_theta: float
    norm_eps: float = 1e-5
    tied: bool = True
    llama3_rope: float = 0.0
    proportional_rope: float = 0.0
    keys_are_values: bool = False
    biases: tuple[str, ...] = ()
    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


_GEMMA2 = MappingProxyType(
    {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "attention.sliding_window": 4096}
)


def _experts(
    count: int, used: int, dim: int, more: Mapping[str, object] = MappingProxyType({})
) -> Mapping[str, object]:
    sizes = {"expert_count": count, "expert_used_count": used, "expert_feed_forward_length": dim}
    return MappingProxyType(sizes | dict(more))


def _latent(
    q_rank: int, key: int, value: int, experts: int, used: int, dim: int, shared: int
) -> Mapping[str, object]:
    """Latents of 512 elements, rotated keys of 64, a leading dense layer; `key` and `value` are a head's."""
    attention = {"q_lora_rank": q_rank, "kv_lora_rank": 512, "value_length": 512, "key_length_mla": key}
    numbers = {f"attention.{name}": n for name, n in (attention | {"value_length_mla": value}).items()}
    numbers |= {"rope.dimension_count": 64, "expert_shared_count": shared, "leading_dense_block_count": 1}
    return _experts(experts, used, dim, numbers)


def _window(tokens: int) -> Mapping[str, object]:
    return MappingProxyType({"attention.sliding_window": tokens})


_ATTENTION_BIASES: Final = ("attn_q_bias", "attn_k_bias", "attn_v_bias", "attn_output_bias")


def _qwen35(
    key_heads: int, value_heads: int, more: Mapping[str, object] = MappingProxyType({})
) -> Mapping[str, object]:
    sizes = {"group_count": key_heads, "time_step_rank": value_heads, "inner_size": 128 * value_heads}
    numbers: dict[str, object] = {
        f"ssm.{key}": n for key, n in (sizes | {"state_size": 128, "conv_kernel": 4}).items()
    }
    numbers |= {"full_attention_interval": 4, "rope.dimension_count": 64}
    return MappingProxyType({**numbers, "rope.dimension_sections": [11, 11, 10, 0], **more})


_A3B = _experts(256, 8, 512, {"expert_shared_feed_forward_length": 512})


def _gemma4(period: int, n_layers: int, window: int, **more: object) -> Mapping[str, object]:
    """Keys of Gemma 4: windowed layers but for each `period`-th; what `more` names replaces the usual."""
    windowed = [(n + 1) % period != 0 for n in range(n_layers)]
    keys: dict[str, object] = {
        "attention.key_length_swa": 256,
        "attention.value_length_swa": 256,
        "attention.sliding_window": window,
        "attention.sliding_window_pattern": windowed,
        "attention.shared_kv_layers": more.get("shared", 0),
        "embedding_length_per_layer_input": more.get("inputs", 0),
        "final_logit_softcapping": 30.0,
        "rope.dimension_count_swa": 256,
        "rope.freq_base_swa": 1e4,
    }
    if "heads" in more:
        local, full = cast(tuple[int, int], more["heads"])
        keys["attention.head_count_kv"] = [local if w else full for w in windowed]
    if "widths" in more:
        keys["feed_forward_length"] = more["widths"]
    return MappingProxyType(keys | dict(cast(Mapping[str, object], more.get("experts", {}))))


def _gemma3n(n_layers: int, shared: int) -> Mapping[str, object]:
    """Keys of Gemma 3n: every fifth layer has no window, the gates of the first ten are mostly cut off."""
    return MappingProxyType(
        {
            "attention.sliding_window": 512,
            "attention.sliding_window_pattern": [(n + 1) % 5 != 0 for n in range(n_layers)],
            "attention.shared_kv_layers": shared,
            "embedding_length_per_layer_input": 256,
            "altup.num_inputs": 4,
            "altup.active_idx": 0,
            "activation_sparsity_scale": [1.6448536] * 10 + [-math.inf] * (n_layers - 10),
            "final_logit_softcapping": 30.0,
        }
    )


def _hybrid(n_layers: int, attention: Sequence[int], kv_heads: int, **more: object) -> Mapping[str, object]:
    """Layers that attend; the others have another mixer. Of `more`, "__" stands for a dot in a key."""
    heads = [kv_heads if n in attention else 0 for n in range(n_layers)]
    numbers = {key.replace("__", "."): value for key, value in more.items()}
    return MappingProxyType({"attention.head_count_kv": heads, **numbers})


def _mamba2(heads: int, groups: int) -> dict[str, object]:
    """Mamba-2 with heads of 64 and states of 128 for each of their elements."""
    sizes = {"group_count": groups, "time_step_rank": heads, "inner_size": 64 * heads, "state_size": 128}
    return {f"ssm__{key}": n for key, n in (sizes | {"conv_kernel": 4}).items()}


# fmt: off
SHAPES: Final[Mapping[str, Shape]] = MappingProxyType({
    #                       arch      label   layers dim heads kv head   ffn   vocab context theta
    "stories15m":     Shape("llama",  "15M",   6,  288,  6,  6,  48,   768,  32000,    256,  1e4),
    "stories110m":    Shape("llama",  "110M", 12,  768, 12, 12,  64,  2048,  32000,   1024,  1e4),
    "smollm-135m":    Shape("llama",  "135M", 30,  576,  9,  3,  64,  1536,  49152,   2048,  1e4),
    "smollm-360m":    Shape("llama",  "360M", 32,  960, 15,  5,  64,  2560,  49152,   2048,  1e4),
    "smollm2-1.7b":   Shape("llama",  "1.7B", 24, 2048, 32, 32,  64,  8192,  49152,   8192, 1.3e5),
    "tinyllama-1.1b": Shape("llama",  "1B",   22, 2048, 32,  4,  64,  5632,  32000,   2048,  1e4, tied=False),
    "llama3.2-1b":    Shape("llama",  "1B",   16, 2048, 32,  8,  64,  8192, 128256, 131072,  5e5,
                          llama3_rope=32),
    "llama3.2-3b":    Shape("llama",  "3B",   28, 3072, 24,  8, 128,  8192, 128256, 131072,  5e5,
                          llama3_rope=32),
    "llama3.1-8b":    Shape("llama",  "8B",   32, 4096, 32,  8, 128, 14336, 128256, 131072,  5e5,
                          tied=False, llama3_rope=8),
    "mistral-7b":     Shape("llama",  "7B",   32, 4096, 32,  8, 128, 14336,  32768,  32768,  1e6, tied=False),
    "qwen2.5-0.5b":   Shape("qwen2",  "0.5B", 24,  896, 14,  2,  64,  4864, 151936,  32768,  1e6, 1e-6),
    "qwen2.5-1.5b":   Shape("qwen2",  "1.5B", 28, 1536, 12,  2, 128,  8960, 151936,  32768,  1e6, 1e-6),
    "qwen3-0.6b":     Shape("qwen3",  "0.6B", 28, 1024, 16,  8, 128,  3072, 151936,  40960,  1e6, 1e-6),
    "qwen3-1.7b":     Shape("qwen3",  "1.7B", 28, 2048, 16,  8, 128,  6144, 151936,  40960,  1e6, 1e-6),
    "qwen3-4b":       Shape("qwen3",  "4B",   36, 2560, 32,  8, 128,  9728, 151936,  40960,  1e6, 1e-6),
    "qwen3-8b":       Shape("qwen3",  "8B",   36, 4096, 32,  8, 128, 12288, 151936,  40960,  1e6, 1e-6,
                          tied=False),
    "qwen3.5-0.8b":   Shape("qwen35", "0.8B", 24, 1024,  8,  2, 256,  3584, 248320, 262144,  1e7, 1e-6,
                          extra=_qwen35(16, 16)),
    "qwen3.5-4b":     Shape("qwen35", "4B",   32, 2560, 16,  4, 256,  9216, 248320, 262144,  1e7, 1e-6,
                          extra=_qwen35(16, 32)),
    "qwen3-30b-a3b":  Shape("qwen3moe", "30B-A3B", 48, 2048, 32, 4, 128, 6144, 151936, 40960, 1e6, 1e-6,
                          tied=False, extra=_experts(128, 8, 768)),
    "qwen3.6-35b-a3b": Shape("qwen35moe", "35B-A3B", 40, 2048, 16, 2, 256, 512, 248320, 262144, 1e7, 1e-6,
                          tied=False, extra=_qwen35(16, 32, _A3B)),
    "gpt-oss-20b":    Shape("gpt-oss", "20B", 24, 2880, 64, 8, 64, 2880, 201088, 131072, 1.5e5, tied=False,
                          biases=_ATTENTION_BIASES,
                          extra=_experts(32, 4, 2880, {"attention.sliding_window": 128})),
    # So many layers as small memories hold, which cost as much each as those of the whole model.
    "qwen3-30b-a3b-6-layers": Shape("qwen3moe", "30B-A3B, 6 layers", 6, 2048, 32, 4, 128, 6144, 151936, 40960,
                          1e6, 1e-6, tied=False, extra=_experts(128, 8, 768)),
    "qwen3.6-35b-a3b-8-layers": Shape("qwen35moe", "35B-A3B, 8 layers", 8, 2048, 16, 2, 256, 512, 248320,
                          262144, 1e7, 1e-6, tied=False, extra=_qwen35(16, 32, _A3B)),
    "gpt-oss-20b-6-layers": Shape("gpt-oss", "20B, 6 layers", 6, 2880, 64, 8, 64, 2880, 201088, 131072,
                          1.5e5, tied=False, biases=_ATTENTION_BIASES,
                          extra=_experts(32, 4, 2880, {"attention.sliding_window": 128})),
    "deepseek-v2-lite": Shape("deepseek2", "16B-A2.4B", 27, 2048, 16, 1, 576, 10944, 102400, 163840,
                          1e4, 1e-6, tied=False, extra=_latent(0, 192, 128, 64, 6, 1408, 2)),
    "glm-4.7-flash":  Shape("deepseek2", "30B-A3B", 47, 2048, 20, 1, 576, 10240, 154880, 202752, 1e6,
                          tied=False, extra=_latent(768, 256, 256, 64, 4, 1536, 1)),
    "glm-4.7-flash-6-layers": Shape("deepseek2", "30B-A3B, 6 layers", 6, 2048, 20, 1, 576, 10240, 154880,
                          202752, 1e6, tied=False, extra=_latent(768, 256, 256, 64, 4, 1536, 1)),
    "lfm2-350m":      Shape("lfm2",   "350M", 16, 1024, 16,  8,  64,  4608,  65536, 128000,  1e6,
                          extra=_hybrid(16, (2, 5, 8, 10, 12, 14), 8, shortconv__l_cache=3)),
    "lfm2-1.2b":      Shape("lfm2",   "1.2B", 16, 2048, 32,  8,  64,  8192,  65536, 128000,  1e6,
                          extra=_hybrid(16, (2, 5, 8, 10, 12, 14), 8, shortconv__l_cache=3)),
    "granite-4-h-tiny-10-layers": Shape("granitehybrid", "7B-A1B, 10 layers", 10, 1536, 12, 4, 128, 512,
                          100352, 131072, 1e4, biases=("mamba_conv_bias",),
                          extra=_hybrid(10, (5,), 4, **_mamba2(48, 1), expert_count=64,
                          expert_used_count=6, expert_shared_feed_forward_length=1024,
                          embedding_scale=12.0, residual_scale=0.22, attention__scale=0.0078125,
                          logit_scale=6.0, rope__scaling__finetuned=False)),
    "nemotron-3-nano-6-layers": Shape("nemotron_h_moe", "30B-A3B, 6 layers", 6, 2688, 32, 2, 128, 0, 131072,
                          262144, 1e4, tied=False, biases=("mamba_conv_bias",),
                          extra=_hybrid(6, (5,), 2, **_mamba2(64, 8),
                          feed_forward_length=[0, 1856, 0, 1856, 0, 0], expert_count=128, expert_used_count=6,
                          expert_feed_forward_length=1856, expert_shared_feed_forward_length=3712,
                          expert_weights_scale=2.5)),
    "gemma2-2b":      Shape("gemma2", "2B",   26, 2304,  8,  4, 256,  9216, 256000,   8192,  1e4, 1e-6,
                          extra=_GEMMA2),
    "gemma3-270m":    Shape("gemma3", "270M", 18,  640,  4,  1, 256,  2048, 262144,  32768,  1e6, 1e-6,
                          extra=_window(512)),
    "gemma3-1b":      Shape("gemma3", "1B",   26, 1152,  4,  1, 256,  6912, 262144,  32768,  1e6, 1e-6,
                          extra=_window(512)),
    "gemma3n-e2b":    Shape("gemma3n", "E2B", 30, 2048,  8,  2, 256,  8192, 262400,  32768,  1e6, 1e-6,
                          extra=_gemma3n(30, 10)),
    "gemma3n-e4b":    Shape("gemma3n", "E4B", 35, 2048,  8,  2, 256, 16384, 262400,  32768,  1e6, 1e-6,
                          extra=_gemma3n(35, 15)),
    "gemma4-e2b":     Shape("gemma4", "E2B",  35, 1536,  8,  1, 512,  6144, 262144, 131072,  1e6, 1e-6,
                          proportional_rope=0.25,
                          extra=_gemma4(5, 35, 512, shared=20, inputs=256,
                                        widths=[6144] * 15 + [12288] * 20)),
    "gemma4-e4b":     Shape("gemma4", "E4B",  42, 2560,  8,  2, 512, 10240, 262144, 131072,  1e6, 1e-6,
                          proportional_rope=0.25, extra=_gemma4(6, 42, 512, shared=18, inputs=256)),
    "gemma4-12b":     Shape("gemma4", "12B",  48, 3840, 16,  8, 512, 15360, 262144, 262144,  1e6, 1e-6,
                          proportional_rope=0.25, keys_are_values=True,
                          extra=_gemma4(6, 48, 1024, heads=(8, 1))),
    "gemma4-26b-a4b": Shape("gemma4", "26B-A4B", 30, 2816, 16, 8, 512, 2112, 262144, 262144, 1e6, 1e-6,
                          proportional_rope=0.25, keys_are_values=True,
                          extra=_gemma4(6, 30, 1024, heads=(8, 2), experts=_experts(128, 8, 704))),
    "gemma4-26b-a4b-6-layers": Shape("gemma4", "26B-A4B, 6 layers", 6, 2816, 16, 8, 512, 2112, 262144, 262144,
                          1e6, 1e-6, proportional_rope=0.25, keys_are_values=True,
                          extra=_gemma4(6, 6, 1024, heads=(8, 2), experts=_experts(128, 8, 704))),
    "gemma4-31b":     Shape("gemma4", "31B",  60, 5376, 32, 16, 512, 21504, 262144, 262144,  1e6, 1e-6,
                          proportional_rope=0.25, keys_are_values=True,
                          extra=_gemma4(6, 60, 1024, heads=(16, 4))),
    "phi3-mini":      Shape("phi3",   "3B",   32, 3072, 32, 32,  96,  8192,  32064,   4096,  1e4,
                          tied=False, extra=_window(2047)),
})
# fmt: on
"""Shapes by the name that `--synthetic` takes."""
