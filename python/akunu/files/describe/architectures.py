"""The table of model architectures.

An architecture is one row of `ARCHITECTURES`: its tensors (name in the file, canonical name, shape), the
defaults of its configuration, and its flags. `akunu.files.describe.gguf_config.resolve` interprets the
rows; no code branches on an architecture's name. A new Llama-like architecture is a new row
(docs/adding-an-architecture.md).

Facts about names and conventions: gguf-py's `constants.py`, llama.cpp's converter, and the model classes of
Hugging Face Transformers, against which tests/models checks every row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.files.describe.config_keys import SOFT_CAPS
from akunu.files.describe.dense_rows import DENSE_ROWS
from akunu.files.describe.expert_rows import EXPERT_ROWS
from akunu.files.describe.expert_rules import (
    BIASED_EXPERTS,
    OLLAMA_BIASED_EXPERTS,
    expert_rules,
    shared_rules,
)
from akunu.files.describe.gemma3n import GEMMA3N_ROWS
from akunu.files.describe.gemma4 import GEMMA4_ROWS
from akunu.files.describe.gpt_rows import GPT_ROWS
from akunu.files.describe.hybrid_rows import HYBRID_ROWS
from akunu.files.describe.latent_rows import LATENT_ROWS
from akunu.files.describe.layer_rules import (
    ATTN_OUTPUT,
    DEEPSEEK_PREDICTION,
    DELTA_MIXERS,
    DOWN,
    FFN_BIAS,
    FOLDER_BIAS,
    FOUR_NORMS,
    FUSED_GATE_UP,
    FUSED_QKV,
    GATE_UP,
    GATED_SHARED,
    GLOBAL,
    NEXT_DELTA_MIXERS,
    NORMS,
    OUTPUT_BIAS,
    PLAIN_LAYER,
    PREDICTION,
    PROJECTIONS,
    QK_NORM,
    QKV,
    QWEN3_MOE,
    QWEN_PREDICTION,
    SHIFTED_NORMS,
    SINKS,
    TOWERS,
    WHOLE_QK_NORM,
    delta_layers,
    mixed_layers,
    named_layers,
    one_kind,
    qkv_bias,
)
from akunu.files.describe.muse import MUSE_ROWS
from akunu.files.describe.tensor_rules import (
    Architecture,
    Gate,
    Router,
)

__all__ = ["ARCHITECTURES"]

_GPT_OSS_ATTENTION = (
    *SHIFTED_NORMS,
    *QKV,
    *qkv_bias(optional=True),
    *ATTN_OUTPUT,
    *OUTPUT_BIAS,
    *SINKS,
)
_GPT_OSS = Architecture(
    name="gpt-oss",
    summary="gpt-oss: sinks, every second layer windowed, experts with biases and a clamped gate",
    rope_style="half",
    activation="silu",
    tensors=GLOBAL,
    layers=mixed_layers({"attention": _GPT_OSS_ATTENTION}, {"experts": BIASED_EXPERTS}),
    layer_kinds=named_layers,
    defaults=MappingProxyType({"rope_theta": 150000.0}),
    window_period=2,
    required_keys=("attention.sliding_window",),
    router=Router("softmax_chosen", renormalise=False),
    gate=Gate(limit=7.0, sharpness=1.702, up_offset=1.0),
    pre_tokenizer="gpt-4o",
)
# Ollama's own converter names it so.
_OLLAMA_GPT_OSS = dataclasses.replace(
    _GPT_OSS,
    name="gptoss",
    summary="gpt-oss in Ollama's files",
    layers=mixed_layers({"attention": _GPT_OSS_ATTENTION}, {"experts": OLLAMA_BIASED_EXPERTS}),
    scaling="yarn",
)


# Gemma's norms multiply by 1 + w, but the converter has already added the 1 to every norm in a GGUF file. The
# rotary styles are those of GGUF files too. What Hugging Face's files have instead is in
# `akunu.files.describe.hf_models`.
_ROWS = (
    Architecture(
        name="llama",
        summary="Llama 2, 3, 3.1, 3.2, 3.3; Mistral; Mixtral; SmolLM; TinyLlama",
        rope_style="interleaved",  # the converter permutes the rows of Q and K from halves to adjacent pairs
        activation="silu",
        tensors=GLOBAL,
        layers=mixed_layers(
            {"attention": (*NORMS, *QKV, *ATTN_OUTPUT, *qkv_bias(optional=True), *OUTPUT_BIAS)},
            {
                "feed_forward": (*GATE_UP, *DOWN, *FFN_BIAS),
                "experts": expert_rules("block_sparse_moe.", parts=("w1", "w3", "w2")),
            },
        ),
        layer_kinds=named_layers,
        router=Router(),
        left_out=PREDICTION,
        prediction=QWEN_PREDICTION,
        ignored=("blk.*.attn_rot_embd.weight",),
    ),
    Architecture(
        name="qwen2",
        summary="Qwen 1.5, 2 and 2.5",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *qkv_bias(optional=False), *OUTPUT_BIAS),
    ),
    Architecture(
        name="qwen3",
        summary="Qwen 3, dense sizes",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *QK_NORM, *qkv_bias(optional=True), *OUTPUT_BIAS),
    ),
    Architecture(
        name="qwen2moe",
        summary="Qwen 1.5 and 2 with experts, and one that all rows share",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=GLOBAL,
        layers=mixed_layers(
            {"attention": (*NORMS, *QKV, *ATTN_OUTPUT, *qkv_bias(optional=True))},
            {"feed_forward": (*GATE_UP, *DOWN), "experts": GATED_SHARED},
        ),
        layer_kinds=named_layers,
        router=Router(renormalise=False),
    ),
    Architecture(
        name="qwen3moe",
        summary="Qwen 3 with experts: 30B-A3B, 235B-A22B, Coder",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=GLOBAL,
        layers=QWEN3_MOE,
        layer_kinds=named_layers,
        router=Router(),
    ),
    Architecture(
        name="qwen3vlmoe",
        summary="Qwen 3 VL with experts, as a model of text",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=GLOBAL,
        layers=QWEN3_MOE,
        layer_kinds=named_layers,
        router=Router(),
        left_out=TOWERS,
    ),
    Architecture(
        name="glm4moe",
        summary="GLM 4.5, 4.6 and 4.7 with experts",
        rope_style="half",
        activation="silu",
        pre_tokenizer="glm4",
        tensors=GLOBAL,
        layers=mixed_layers(
            {
                "attention": (
                    *SHIFTED_NORMS,
                    *QKV,
                    *qkv_bias(optional=True),
                    *ATTN_OUTPUT,
                    *(dataclasses.replace(rule, optional=True) for rule in QK_NORM),
                )
            },
            {
                "feed_forward": (*GATE_UP, *DOWN),
                "experts": (
                    *expert_rules(choice_bias="gate.e_score_correction_bias"),
                    *shared_rules(),
                ),
            },
        ),
        layer_kinds=named_layers,
        router=Router("sigmoid", sum_eps=1e-20),
        left_out=PREDICTION,
        prediction=DEEPSEEK_PREDICTION,
    ),
    Architecture(
        name="minimax-m2",
        summary="MiniMax M2, M2.1 and M2.5",
        rope_style="half",
        activation="silu",
        pre_tokenizer="minimax-m2",
        tensors=GLOBAL,
        layers=mixed_layers(
            {"attention": (*NORMS, *QKV, *ATTN_OUTPUT, *WHOLE_QK_NORM)},
            {
                "experts": expert_rules(
                    "block_sparse_moe.",
                    parts=("w1", "w3", "w2"),
                    choice_bias="e_score_correction_bias",
                ),
            },
        ),
        layer_kinds=named_layers,
        router=Router("sigmoid"),
        norms_whole_rows=True,
    ),
    _GPT_OSS,
    _OLLAMA_GPT_OSS,
    Architecture(
        name="gemma",
        summary="Gemma 1",
        rope_style="half",
        activation="gelu_tanh",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *FOLDER_BIAS),
        scale_embedding=True,
    ),
    Architecture(
        name="gemma2",
        summary="Gemma 2: soft caps, every second layer windowed, norms after attention and FFN",
        rope_style="half",
        activation="gelu_tanh",
        tensors=GLOBAL,
        layers=one_kind(*FOUR_NORMS, *PROJECTIONS, *FOLDER_BIAS),
        defaults=MappingProxyType({"attn_softcap": 50.0, "final_softcap": 30.0, "window": 4096}),
        scale_embedding=True,
        window_period=2,
        soft_caps=SOFT_CAPS,
        wide_scale_layers=(46,),  # 27B: query_pre_attn_scalar 144 = 4608 / 32 heads, head_dim 128
    ),
    Architecture(
        name="gemma3",
        summary="Gemma 3, text: five windowed layers to one full, two thetas, Q/K norms",
        rope_style="half",
        activation="gelu_tanh",
        tensors=GLOBAL,
        layers=one_kind(*FOUR_NORMS, *PROJECTIONS, *QK_NORM, *FOLDER_BIAS),
        defaults=MappingProxyType({"rope_theta": 1e6, "local_rope_theta": 1e4}),
        scale_embedding=True,
        window_period=6,
        soft_caps=("final_softcap",),
        wide_scale_layers=(62,),  # 27B: query_pre_attn_scalar 168 = 5376 / 32 heads, head_dim 128
    ),
    Architecture(
        name="gemma-embedding",
        summary="EmbeddingGemma: Gemma 3 that sees a whole text, and dense layers behind its mean",
        rope_style="half",
        activation="gelu_tanh",
        tensors=GLOBAL,
        layers=one_kind(*FOUR_NORMS, *PROJECTIONS, *QK_NORM, *FOLDER_BIAS),
        defaults=MappingProxyType({"rope_theta": 1e6, "local_rope_theta": 1e4}),
        scale_embedding=True,
        window_period=6,
        bidirectional=True,
    ),
    Architecture(
        name="phi3",
        summary="Phi-3, Phi-3.5 mini, Phi-4 and Phi-4-mini: fused QKV and gate-up, LongRoPE",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*NORMS, *FUSED_QKV, *ATTN_OUTPUT, *FUSED_GATE_UP, *DOWN),
        required_keys=("attention.sliding_window", "rope.scaling.original_context_length"),
    ),
    Architecture(
        name="qwen35",
        summary="Qwen 3.5, 3.6 and 3.8, dense sizes: three gated delta nets to one gated attention",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen35",
        tensors=GLOBAL,
        layers=mixed_layers(DELTA_MIXERS, {"feed_forward": (*GATE_UP, *DOWN)}),
        layer_kinds=delta_layers,
        features=("ssm.",),
        left_out=PREDICTION | TOWERS,
        prediction=QWEN_PREDICTION,
        value_heads_grouped=False,  # the converter reorders them
    ),
    Architecture(
        name="qwen35moe",
        summary="Qwen 3.5, 3.6 and 3.8 with experts: 35B-A3B, 122B-A10B, 397B-A17B",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen35",
        tensors=GLOBAL,
        layers=mixed_layers(DELTA_MIXERS, {"experts": GATED_SHARED}),
        layer_kinds=delta_layers,
        features=("ssm.",),
        left_out=PREDICTION | TOWERS,
        prediction=QWEN_PREDICTION,
        value_heads_grouped=False,
        router=Router(),
    ),
    Architecture(
        name="qwen3next",
        summary="Qwen 3 Next and Qwen 3 Coder Next",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=GLOBAL,
        layers=mixed_layers(NEXT_DELTA_MIXERS, {"feed_forward": (*GATE_UP, *DOWN), "experts": GATED_SHARED}),
        layer_kinds=delta_layers,
        features=("ssm.",),
        left_out=PREDICTION | TOWERS,
        prediction=QWEN_PREDICTION,
        router=Router(),
    ),
)

ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType(
    {
        row.name: row
        for row in (
            *_ROWS,
            *EXPERT_ROWS,
            *LATENT_ROWS,
            *GEMMA3N_ROWS,
            *GEMMA4_ROWS,
            *HYBRID_ROWS,
            *DENSE_ROWS,
            *GPT_ROWS,
            *MUSE_ROWS,
        )
    }
)
"""The rows, by name."""
