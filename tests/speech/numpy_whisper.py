"""Whisper in float64 NumPy, with random weights: a model for the tests of what stands around it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from akunu.speech.config import WhisperConfig

from .counting import CountingModel

Array = npt.NDArray[np.float64]
_erf = np.vectorize(math.erf, otypes=[float])


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + _erf(x / math.sqrt(2)))


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sinusoids(length: int, width: int) -> Array:
    scale = np.exp(-math.log(10000) / (width // 2 - 1) * np.arange(width // 2))
    angles = np.arange(length)[:, None] * scale
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def random_weights(config: WhisperConfig, seed: int, gain: float = 2.0) -> dict[str, Array]:
    """Weights by the names that Transformers uses."""
    random = np.random.default_rng(seed)
    width = config.width
    weights: dict[str, Array] = {}

    def add(name: str, *shape: int, scale: float | None = None, base: float = 0.0) -> None:
        spread = gain / math.sqrt(np.prod(shape[1:])) if scale is None else scale
        weights[name] = base + random.standard_normal(shape).astype(np.float32).astype(np.float64) * spread

    def norm(name: str) -> None:
        add(name + ".weight", width, scale=0.1, base=1.0)
        add(name + ".bias", width, scale=0.1)

    def attention(name: str) -> None:
        for part in ("k", "v", "q", "out"):
            add(f"{name}.{part}_proj.weight", width, width)
            if part != "k":
                add(f"{name}.{part}_proj.bias", width, scale=0.1)

    add("encoder.conv1.weight", width, config.mels, 3)
    add("encoder.conv1.bias", width, scale=0.1)
    add("encoder.conv2.weight", width, width, 3)
    add("encoder.conv2.bias", width, scale=0.1)
    weights["encoder.embed_positions.weight"] = sinusoids(config.audio_context, width)
    add("decoder.embed_tokens.weight", config.vocab_size, width, scale=0.5)
    add("decoder.embed_positions.weight", config.text_context, width, scale=1.0)
    for stack, layers in (("encoder", config.audio_layers), ("decoder", config.text_layers)):
        for i in range(layers):
            layer = f"{stack}.layers.{i}."
            attention(layer + "self_attn")
            norm(layer + "self_attn_layer_norm")
            if stack == "decoder":
                attention(layer + "encoder_attn")
                norm(layer + "encoder_attn_layer_norm")
            add(layer + "fc1.weight", 4 * width, width)
            add(layer + "fc1.bias", 4 * width, scale=0.1)
            add(layer + "fc2.weight", width, 4 * width)
            add(layer + "fc2.bias", width, scale=0.1)
            norm(layer + "final_layer_norm")
        norm(stack + ".layer_norm")
    return weights


class NumpyWhisper(CountingModel):
    """A `SpeechModel` that runs everything again for every token, and counts the sequences that are alive."""

    def __init__(self, config: WhisperConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.weights = random_weights(config, seed)

    # What the speech package calls.

    def heard(self, mel: npt.NDArray[np.float32]) -> Array:
        w = self.weights
        x = gelu(self._conv(mel.astype(np.float64), "encoder.conv1", 1))
        x = gelu(self._conv(x, "encoder.conv2", 2)).T + w["encoder.embed_positions.weight"]
        for i in range(self.config.audio_layers):
            layer = f"encoder.layers.{i}."
            y = self._norm(x, layer + "self_attn_layer_norm")
            x = x + self._attention(layer + "self_attn", y, y, self.config.audio_heads)[0]
            x = self._feed_forward(x, layer)
        return self._norm(x, "encoder.layer_norm")

    def rows(
        self, window: Array, tokens: Sequence[int], places: Sequence[int], start: int
    ) -> npt.NDArray[np.float32]:
        return self.logits(window, tokens)[0][list(places)]

    def attend(
        self, states: int, tokens: Sequence[int]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        logits, attention = self.logits(self.windows[states], tokens)
        chosen = [attention[layer][head] for layer, head in self.config.alignment_heads]
        return np.stack(chosen).astype(np.float32), logits

    # The model.

    def logits(self, states: Array, tokens: Sequence[int]) -> tuple[npt.NDArray[np.float32], list[Array]]:
        """Those after each token, and the cross-attention [heads, tokens, positions] of each layer."""
        w = self.weights
        x = (
            w["decoder.embed_tokens.weight"][list(tokens)]
            + w["decoder.embed_positions.weight"][: len(tokens)]
        )
        cross = []
        for i in range(self.config.text_layers):
            layer = f"decoder.layers.{i}."
            y = self._norm(x, layer + "self_attn_layer_norm")
            x = x + self._attention(layer + "self_attn", y, y, self.config.text_heads, causal=True)[0]
            y = self._norm(x, layer + "encoder_attn_layer_norm")
            out, attention = self._attention(layer + "encoder_attn", y, states, self.config.text_heads)
            cross.append(attention)
            x = self._feed_forward(x + out, layer)
        x = self._norm(x, "decoder.layer_norm")
        return (x @ w["decoder.embed_tokens.weight"].T).astype(np.float32), cross

    def _norm(self, x: Array, name: str) -> Array:
        return layer_norm(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def _linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[name + ".weight"].T + self.weights.get(name + ".bias", 0.0)

    def _feed_forward(self, x: Array, layer: str) -> Array:
        y = gelu(self._linear(self._norm(x, layer + "final_layer_norm"), layer + "fc1"))
        return x + self._linear(y, layer + "fc2")

    def _conv(self, x: Array, name: str, stride: int) -> Array:
        padded = np.pad(x, [(0, 0), (1, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
        return (
            np.einsum("itk,oik->ot", windows, self.weights[name + ".weight"])
            + self.weights[name + ".bias"][:, None]
        )

    def _attention(
        self, name: str, x: Array, memory: Array, heads: int, causal: bool = False
    ) -> tuple[Array, Array]:
        def split(y: Array) -> Array:
            return y.reshape(len(y), heads, -1).transpose(1, 0, 2)

        q, k, v = (
            split(self._linear(y, f"{name}.{part}_proj"))
            for part, y in (("q", x), ("k", memory), ("v", memory))
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        if causal:
            scores = scores + np.triu(np.full(scores.shape[1:], -np.inf), 1)
        weights = softmax(scores)
        out = (weights @ v).transpose(1, 0, 2).reshape(len(x), -1)
        return self._linear(out, f"{name}.out_proj"), weights
