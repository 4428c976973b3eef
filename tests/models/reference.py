"""The oracle: a decoder's forward pass in plain numpy, float64, written to be read.

It takes a `ModelSpec` and the weights as numbers, and nothing else: no cache, no batching, no fast path. It
is checked against Hugging Face Transformers (tests/data/golden) and serves as the reference for whatever
Transformers cannot run: quantised weights, and any mixture of types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from akunu.files.describe.blocks import Attention, Block, Experts, FeedForward, RopeSet
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.tensor_map import TensorRef

from .source import ReaderSource

__all__ = ["Array", "Layer", "Reference", "attention", "feed_forward", "normed", "rms_norm"]

Array = npt.NDArray[np.float64]


class Reference:
    """A model that computes logits, slowly.

    Parameters
    ----------
    path
        A GGUF file.
    context
        As in `akunu.files.describe.gguf_config.resolve`.
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
            self.weights[name] = _rows(ref, source)

    def logits(self, ids: Sequence[int]) -> Array:
        """Logits [len(ids), vocab] of every position."""
        config, weights = self.spec.config, self.weights
        x = weights["token_embedding"][np.asarray(ids)] * config.embedding_scale  # [tokens, dim]
        if config.positions:
            x = x + weights["positions"].reshape(-1, config.dim)[: len(ids)]
        if config.norm_embedding:
            x = rms_norm(x, np.ones(config.dim), config.norm_eps)
        kept: dict[int, tuple[Array, Array]] = {}  # keys and values of attention blocks
        before = x
        for index, block in enumerate(config.blocks):
            parallel = isinstance(block.mixer, FeedForward) and block.mixer.parallel
            y = self.branch(index, block, before if parallel else x, kept)
            before, x = x, x + config.residual_scale * y
        x = normed(config, Layer(weights, ""), "output_norm", x) * config.logit_scale
        return softcap(x @ weights.get("output", weights["token_embedding"]).T, config.final_softcap)

    def branch(self, index: int, block: Block, x: Array, kept: dict[int, tuple[Array, Array]]) -> Array:
        """What a block adds to the residual stream [tokens, dim]."""
        layer = Layer(self.weights, block.prefix)
        y = self.mix(index, block, layer, x, kept)
        norm = "post_ffn_norm" if isinstance(block.mixer, FeedForward | Experts) else "post_attn_norm"
        eps = self.spec.config.branch_norm_eps
        eps = self.spec.config.norm_eps if eps is None else eps
        return rms_norm(y, layer[norm], eps) if norm in layer else y

    def mix(
        self, index: int, block: Block, layer: Layer, x: Array, kept: dict[int, tuple[Array, Array]]
    ) -> Array:
        """What a block's mixer makes of the residual stream [tokens, dim]."""
        config = self.spec.config
        if isinstance(block.mixer, FeedForward):
            norm = "attn_norm" if block.mixer.parallel and "ffn_norm" not in layer else "ffn_norm"
            return feed_forward(block.mixer, layer, normed(config, layer, norm, x))
        if isinstance(block.mixer, Experts):
            return experts(block.mixer, layer, normed(config, layer, "ffn_norm", x))
        assert isinstance(block.mixer, Attention)
        return attention(config, index, block.mixer, layer, normed(config, layer, "attn_norm", x), kept)

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


def _rows(ref: TensorRef, source: ReaderSource) -> Array:
    """The rows of a tensor, or of several, that a canonical one has."""
    found = []
    for name in (ref.source, *ref.more):
        values = source.weights(name).astype(np.float64)
        rows = values.reshape(-1, ref.n_cols) if ref.n_cols else values.reshape(-1)
        n = ref.n_rows // (1 + len(ref.more))
        if ref.group is None:
            found.append(rows[ref.first_row : ref.first_row + n])
        else:
            own, period = ref.group
            first = ref.first_row + np.arange(n // own)[:, None] * period
            found.append(rows[(first + np.arange(own)).reshape(-1)])
    return np.concatenate(found)


class Layer:
    """The weights of one block, by their name without the prefix."""

    def __init__(self, weights: dict[str, Array], prefix: str) -> None:
        self._weights, self._prefix = weights, prefix

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


def project(layer: Layer, name: str, x: Array) -> Array:
    """x Wᵀ, plus the bias where there is one."""
    y = x @ layer[name].T
    return y + layer[f"{name}_bias"] if f"{name}_bias" in layer else y


def normed(config: ModelConfig, layer: Layer, name: str, x: Array) -> Array:
    """The norm of that name of x, or x where the block has none."""
    if name not in layer:
        return x
    if not config.layer_norm:
        return rms_norm(x, layer[name], config.norm_eps)
    y = rms_norm(x - x.mean(axis=-1, keepdims=True), layer[name], config.norm_eps)
    return y + layer[f"{name}_bias"] if f"{name}_bias" in layer else y


def rotated(rope: RopeSet, x: Array) -> Array:
    """Rotate [tokens, heads, head_dim] by the positions 0, 1, …"""
    position = np.arange(x.shape[0])[:, None, None]
    angle = position * rope.inv_freq.astype(np.float64)  # [tokens, 1, dim/2]
    scale = rope.scale * np.ones(position.shape)
    if rope.temperature_length:
        scale *= 1 + rope.temperature * np.log1p(position // rope.temperature_length)
    cos, sin = np.cos(angle) * scale, np.sin(angle) * scale
    half = rope.dim // 2
    if rope.style == "interleaved":
        first, second = slice(0, rope.dim, 2), slice(1, rope.dim, 2)
    else:
        first, second = slice(0, half), slice(half, rope.dim)
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return y


def head_norm(config: ModelConfig, a: Attention, layer: Layer, name: str, x: Array) -> Array:
    """The norm over the heads [tokens, heads, head_dim], or over whole rows of them."""
    if name not in layer:
        return x
    eps = config.norm_eps if a.norm_eps is None else a.norm_eps
    if a.norms_by_head:
        centred = x - x.mean(axis=-1, keepdims=True)
        return rms_norm(centred, layer[name].reshape(x.shape[1:]), eps)
    if a.norms_whole_rows:
        return rms_norm(x.reshape(len(x), -1), layer[name], eps).reshape(x.shape)
    return rms_norm(x, layer[name], eps)


def attention(
    config: ModelConfig,
    index: int,
    a: Attention,
    layer: Layer,
    x: Array,
    kept: dict[int, tuple[Array, Array]],
) -> Array:
    """Causal grouped-query attention, optionally windowed and capped. [tokens, dim]"""
    tokens = x.shape[0]

    def heads(part: str, n: int) -> Array:
        return project(layer, f"attn_{part}", x).reshape(tokens, n, a.head_dim)

    def turned(part: str, rope: int | None, y: Array) -> Array:
        name = f"attn_{part}_norm"
        y = y if a.norms_after_rope else head_norm(config, a, layer, name, y)
        y = y if rope is None else rotated(config.rope_sets[rope], y)
        return head_norm(config, a, layer, name, y) if a.norms_after_rope else y

    q = turned("q", a.rope if a.q_rope is None else a.q_rope, heads("q", a.n_heads))
    if a.kv_owner is None:
        k = turned("k", a.rope, heads("k", a.n_kv_heads))
        v = heads("v", a.n_kv_heads)
        if a.norm_values:
            v = rms_norm(v, np.ones(a.head_dim), config.norm_eps if a.norm_eps is None else a.norm_eps)
        kept[index] = k, v
    k, v = kept[index if a.kv_owner is None else a.kv_owner]
    group = a.n_heads // a.n_kv_heads
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)  # one key head for each query head
    scores = softcap(np.einsum("qhd,khd->hqk", q, k) * a.scale, a.softcap)
    distance = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]  # query position - key position
    visible = distance >= 0
    if a.window:
        visible &= distance < a.window
    scores = np.where(visible, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    if "attn_sinks" in layer:
        total += np.exp(layer["attn_sinks"][:, None, None] - top)
    weights /= total
    y = np.einsum("hqk,khd->qhd", weights, v).reshape(tokens, a.n_heads * a.head_dim)
    if "attn_gate" in layer:
        y /= 1 + np.exp(-project(layer, "attn_gate", x))
    return project(layer, "attn_output", y)


def feed_forward(f: FeedForward, layer: Layer, x: Array) -> Array:
    """down(act(gate(x)) * up(x)), or down(act(up(x))) where there is no gate."""
    activation = {"silu": silu, "gelu_tanh": gelu_tanh, "gelu": gelu, "relu2": relu2}[f.activation]
    up = project(layer, "ffn_up", x)
    inner = activation(project(layer, "ffn_gate", x)) * up if "ffn_gate" in layer else activation(up)
    return project(layer, "ffn_down", inner)


def experts(m: Experts, layer: Layer, x: Array) -> Array:
    """The sum of the chosen experts' outputs, times their weights, and of the shared one's."""
    logits = project(layer, "router", x)
    gates = logits if m.router.gating == "softmax_chosen" else _gates(logits, m.router.gating)
    scores = gates + layer["router_choice_bias"] if "router_choice_bias" in layer else gates
    y = np.zeros_like(x)
    for row, chosen in enumerate(np.argsort(-scores, axis=-1, kind="stable")[:, : m.used]):
        weights = gates[row, chosen]
        if m.router.gating == "softmax_chosen":
            weights = _gates(weights, "softmax")
        if m.router.renormalise:
            weights = weights / max(weights.sum() + m.router.sum_eps, m.router.sum_min)
        for e, weight in zip(chosen, weights * m.router.scale, strict=True):
            y[row] += weight * _expert(m, layer, "experts", m.count, e, x[row])
        if m.shared_dim:
            weight = 1 / (1 + np.exp(-project(layer, "shared_router", x[row])))
            y[row] += weight * _expert(m, layer, "shared", 1, 0, x[row])
    return y


def _gates(logits: Array, gating: str) -> Array:
    if gating == "sigmoid":
        return 1 / (1 + np.exp(-logits))
    if gating == "sqrt_softplus":
        return np.sqrt(np.logaddexp(0, logits))
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def project_expert(layer: Layer, name: str, count: int, e: int, x: Array) -> Array:
    """Return x times one expert's matrix, with its bias where it has one."""
    weight = layer[name]
    y = weight.reshape(count, -1, weight.shape[-1])[e] @ x
    bias = f"{name}_bias"
    return y + layer[bias].reshape(count, -1)[e] if bias in layer else y


def _expert(m: Experts, layer: Layer, name: str, count: int, e: int, x: Array) -> Array:
    def part(kind: str, inner: Array) -> Array:
        return project_expert(layer, f"{name}_{kind}", count, e, inner)

    gate, up = part("gate", x), part("up", x)
    if m.limit:
        gate, up = np.minimum(gate, m.limit), np.clip(up, -m.limit, m.limit)
    if m.sharpness != 1:
        act = gate / (1 + np.exp(-m.sharpness * gate))
    else:
        act = {"silu": silu, "gelu_tanh": gelu_tanh}[m.activation](gate)
    return part("down", act * (up + m.up_offset))


def silu(x: Array) -> Array:
    """x * sigmoid(x)."""
    return x / (1.0 + np.exp(-x))


def gelu(x: Array) -> Array:
    """x * Φ(x)."""
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def relu2(x: Array) -> Array:
    """max(x, 0)²."""
    return np.maximum(x, 0.0) ** 2


def gelu_tanh(x: Array) -> Array:
    """The tanh approximation of GELU."""
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
