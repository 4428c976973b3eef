"""Rows of architectures with GPT-2's names in checkpoints: GPT-2, StarCoder, Falcon.

Facts about names and conventions: as in `akunu.files.describe.dense_rows`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from akunu.files.describe.layer_rules import BLK, FUSED_QKV, matrix, one_kind, vector
from akunu.files.describe.tensor_rules import Architecture, TensorRule, Turned

__all__ = ["GPT_ROWS"]

_HF = "h.{n}."
_QKV = (("attn_q", "q_dim"), ("attn_k", "kv_dim"), ("attn_v", "kv_dim"))
_QKV_BIAS = tuple((f"{name}_bias", size) for name, size in _QKV)
_BY_KEY_HEAD = (("attn_q", "group_q_dim"), ("attn_k", "head_dim"), ("attn_v", "head_dim"))


_TWO_NORMS: Final = (f"{BLK}attn_norm_2.weight", f"{_HF}ln_attn.weight", "ffn_norm")
"""The norms of Falcon 40B, whose attention and feed-forward have one each, side by side."""


def _norm(source: str, hf: str, name: str) -> tuple[TensorRule, ...]:
    """A LayerNorm with a bias."""
    return (
        vector(f"{source}.weight", f"{hf}.weight", name, "dim"),
        vector(f"{source}.bias", f"{hf}.bias", f"{name}_bias", "dim"),
    )


def _two_norms() -> Iterator[TensorRule]:
    for rule in _norm(BLK + "attn_norm", _HF + "input_layernorm", "attn_norm"):
        yield dataclasses.replace(rule, lacks=_TWO_NORMS)
    for source, hf, name in (("attn_norm_2", "ln_attn", "attn_norm"), ("attn_norm", "ln_mlp", "ffn_norm")):
        for rule in _norm(BLK + source, _HF + hf, name):
            yield dataclasses.replace(rule, needs=_TWO_NORMS)


def _matrix(
    source: str, hf: str, parts: tuple[tuple[str, str], ...], cols: str, turned: Turned
) -> tuple[TensorRule, ...]:
    """A matrix, which in a checkpoint may stand on its side."""
    if turned == "never":
        return (TensorRule(source, hf, parts, cols),)
    return TensorRule(source, "", parts, cols), TensorRule("", hf, parts, cols, turned=turned)


def _linear(source: str, hf: str, name: str, rows: str, cols: str, turned: Turned) -> tuple[TensorRule, ...]:
    """A product with a bias."""
    return (
        *_matrix(f"{BLK}{source}.weight", f"{_HF}{hf}.weight", ((name, rows),), cols, turned),
        vector(f"{BLK}{source}.bias", f"{_HF}{hf}.bias", f"{name}_bias", rows),
    )


def _embeddings(table: str) -> tuple[TensorRule, ...]:
    return (
        matrix("token_embd.weight", table, "token_embedding", "vocab_size", "dim"),
        *_norm("output_norm", "ln_f", "output_norm"),
        matrix("output.weight", "lm_head.weight", "output", "vocab_size", "dim", optional=True),
    )


def _gpt(turned: Turned) -> tuple[TensorRule, ...]:
    """A layer of GPT-2, whose matrices may stand on their sides in a checkpoint."""
    return (
        *_norm(BLK + "attn_norm", _HF + "ln_1", "attn_norm"),
        *_matrix(BLK + "attn_qkv.weight", _HF + "attn.c_attn.weight", _QKV, "dim", turned),
        TensorRule(BLK + "attn_qkv.bias", _HF + "attn.c_attn.bias", _QKV_BIAS),
        *_linear("attn_output", "attn.c_proj", "attn_output", "dim", "q_dim", turned),
        *_norm(BLK + "ffn_norm", _HF + "ln_2", "ffn_norm"),
        *_linear("ffn_up", "mlp.c_fc", "ffn_up", "ffn_dim", "dim", turned),
        *_linear("ffn_down", "mlp.c_proj", "ffn_down", "dim", "ffn_dim", turned),
    )


_POSITIONS = matrix("position_embd.weight", "wpe.weight", "positions", "positions", "dim")

GPT_ROWS: Final = (
    Architecture(
        name="gpt2",
        summary="GPT-2: learned positions, LayerNorm and biases, a feed-forward without a gate",
        rope_style="half",
        activation="gelu_tanh",
        tensors=(*_embeddings("wte.weight"), _POSITIONS),
        layers=one_kind(*_gpt("always")),
        layer_norm=True,
        rotated="none",
    ),
    Architecture(
        name="starcoder",
        summary="StarCoder, SantaCoder: GPT-2 with one head of keys",
        rope_style="half",
        activation="gelu_tanh",
        tensors=(*_embeddings("wte.weight"), _POSITIONS),
        layers=one_kind(*_gpt("never")),
        layer_norm=True,
        rotated="none",
    ),
    Architecture(
        name="falcon",
        summary="Falcon 7B to 180B, Falcon 2: LayerNorm, attention and an ungated feed-forward side by side",
        rope_style="half",
        activation="gelu",
        tensors=_embeddings("word_embeddings.weight"),
        layers=one_kind(
            *_two_norms(),
            TensorRule(FUSED_QKV[0].source, "", _QKV, "dim"),
            # A checkpoint has, for each head of keys, the heads of queries that read it, and then its own.
            TensorRule(
                "",
                _HF + "self_attention.query_key_value.weight",
                _BY_KEY_HEAD,
                "dim",
                count="n_kv_heads",
                flat=True,
            ),
            matrix(
                BLK + "attn_output.weight",
                _HF + "self_attention.dense.weight",
                "attn_output",
                "dim",
                "q_dim",
            ),
            matrix(BLK + "ffn_up.weight", _HF + "mlp.dense_h_to_4h.weight", "ffn_up", "ffn_dim", "dim"),
            matrix(BLK + "ffn_down.weight", _HF + "mlp.dense_4h_to_h.weight", "ffn_down", "dim", "ffn_dim"),
        ),
        layer_norm=True,
        parallel="always",
    ),
)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""
