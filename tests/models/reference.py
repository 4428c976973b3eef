"""The oracle: a decoder's forward pass in plain numpy, float64, written to be read.

It takes a `ModelSpec` and the weights as numbers, and nothing else: no cache, no batching, no fast path. It
is checked against Hugging Face Transformers (tests/data/golden) and serves as the reference for whatever
Transformers cannot run: quantised weights, and any mixture of types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from akunu.describe.config import ModelConfig, ModelSpec, resolve

from .source import ReaderSource

__all__ = ["Reference"]

Array = npt.NDArray[np.float64]


class Reference:
    """A model that computes logits, slowly.

    Parameters
    ----------
    path
        A GGUF file.
    context
        As in `akunu.describe.config.resolve`.
    resolve
        Another function in its place.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context: int | None = None,
        resolve: Callable[..., ModelSpec] = resolve,
    ) -> None:
        source = ReaderSource(path)
        self.spec: ModelSpec = resolve(source, context=context)
        self.weights: dict[str, Array] = {}
        for name, ref in self.spec.tensors.items():
            rows = source.weights(ref.source)[ref.first_row : ref.first_row + ref.n_rows]
            self.weights[name] = rows.astype(np.float64)

    def logits(self, ids: Sequence[int]) -> Array:
        """Logits [len(ids), vocab] of every position."""
        config, weights = self.spec.config, self.weights
        x = weights["token_embedding"][np.asarray(ids)] * config.embedding_scale  # [tokens, dim]
        for n in range(config.n_layers):
            layer = self.layer(n)
            y = self.mix(n, x)
            if "post_attn_norm" in layer:
                y = rms_norm(y, layer["post_attn_norm"], config.norm_eps)
            x = x + y
            y = feed_forward(config, layer, rms_norm(x, layer["ffn_norm"], config.norm_eps))
            if "post_ffn_norm" in layer:
                y = rms_norm(y, layer["post_ffn_norm"], config.norm_eps)
            x = x + y
        x = rms_norm(x, weights["output_norm"], config.norm_eps)
        return softcap(x @ weights.get("output", weights["token_embedding"]).T, config.final_softcap)

    def layer(self, n: int) -> _Layer:
        """The weights of a layer."""
        return _Layer(self.weights, n)

    def mix(self, n: int, x: Array) -> Array:
        """What a layer's mixer makes of the residual stream [tokens, dim]."""
        config, layer = self.spec.config, self.layer(n)
        return attention(config, layer, n, rms_norm(x, layer["attn_norm"], config.norm_eps))

    def greedy(self, ids: Sequence[int], n: int) -> tuple[list[int], list[float]]:
        """The `n` ids of greedy decoding after `ids`, and the gap between the two best logits at each."""
        tokens = list(ids)
        gaps = []
        for _ in range(n):
            last = self.logits(tokens)[-1]
            second, first = np.sort(last)[-2:]
            tokens.append(int(np.argmax(last)))
            gaps.append(float(first - second))
        return tokens[len(ids) :], gaps

    def nll(self, ids: Sequence[int]) -> Array:
        """-log p(ids[i] | ids[:i]) for i = 1, 2, …"""
        logits = self.logits(ids)[:-1]
        peak = logits.max(axis=-1, keepdims=True)
        log_sum = np.log(np.exp(logits - peak).sum(axis=-1)) + peak[:, 0]
        return log_sum - logits[np.arange(len(ids) - 1), np.asarray(ids[1:])]


class _Layer:
    """The weights of one layer, by their name without the prefix."""

    def __init__(self, weights: dict[str, Array], n: int) -> None:
        self._weights, self._prefix = weights, f"layers.{n}."

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._weights

    def __getitem__(self, name: str) -> Array:
        return self._weights[self._prefix + name]


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """x / rms(x) * weight, over the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def softcap(x: Array, cap: float) -> Array:
    """cap * tanh(x / cap); x itself when there is no cap."""
    return cap * np.tanh(x / cap) if cap else x


def project(layer: _Layer, name: str, x: Array) -> Array:
    """x Wᵀ, plus the bias where there is one."""
    y = x @ layer[name].T
    return y + layer[f"{name}_bias"] if f"{name}_bias" in layer else y


def rope(config: ModelConfig, n: int, x: Array) -> Array:
    """Rotate [tokens, heads, head_dim] by the positions 0, 1, …"""
    inv_freq = config.inv_freq[config.layer_rope[n]].astype(np.float64)
    scale = config.rope_scale[config.layer_rope[n]]
    angle = np.arange(x.shape[0])[:, None, None] * inv_freq  # [tokens, 1, rope_dim/2]
    cos, sin = np.cos(angle) * scale, np.sin(angle) * scale
    half = config.rope_dim // 2
    if config.rope_style == "interleaved":
        first, second = slice(0, config.rope_dim, 2), slice(1, config.rope_dim, 2)
    else:
        first, second = slice(0, half), slice(half, config.rope_dim)
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return y


def attention(config: ModelConfig, layer: _Layer, n: int, x: Array) -> Array:
    """Causal grouped-query attention of layer `n`, optionally windowed and capped. [tokens, dim]"""
    tokens = x.shape[0]
    q = project(layer, "attn_q", x).reshape(tokens, config.n_heads, config.head_dim)
    k = project(layer, "attn_k", x).reshape(tokens, config.n_kv_heads, config.head_dim)
    v = project(layer, "attn_v", x).reshape(tokens, config.n_kv_heads, config.head_dim)
    if "attn_q_norm" in layer:
        q = rms_norm(q, layer["attn_q_norm"], config.norm_eps)
        k = rms_norm(k, layer["attn_k_norm"], config.norm_eps)
    q, k = rope(config, n, q), rope(config, n, k)
    group = config.n_heads // config.n_kv_heads
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)  # one key head for each query head
    scores = softcap(np.einsum("qhd,khd->hqk", q, k) * config.attn_scale, config.attn_softcap)
    distance = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]  # query position - key position
    visible = distance >= 0
    if config.layer_window[n]:
        visible &= distance < config.layer_window[n]
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    y = np.einsum("hqk,khd->qhd", weights, v).reshape(tokens, config.n_heads * config.head_dim)
    return project(layer, "attn_output", y)


def feed_forward(config: ModelConfig, layer: _Layer, x: Array) -> Array:
    """down(act(gate(x)) * up(x))."""
    gate = project(layer, "ffn_gate", x)
    activations = {"silu": silu, "gelu_tanh": gelu_tanh}
    return project(layer, "ffn_down", activations[config.activation](gate) * project(layer, "ffn_up", x))


def silu(x: Array) -> Array:
    """x * sigmoid(x)."""
    return x / (1.0 + np.exp(-x))


def gelu_tanh(x: Array) -> Array:
    """The tanh approximation of GELU."""
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
