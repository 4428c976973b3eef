"""A tiny model with a recurrence in some layers in attention's place, and what it computes in NumPy float64.

No published model has this block: it stands for those whose state cannot be truncated. The file is that of a
tiny Llama with tensors besides, so no row of `akunu.files.describe.architectures` is needed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import gguf
import numpy as np

from akunu.files.describe.blocks import Attention, Block, Recurrence
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.gguf_rotary import GgufSource
from akunu.files.describe.tensor_map import TensorRef

from . import convert, tiny
from .reference import Array, Layer, Reference, rms_norm

BASE = "llama"
LAYERS = (0, 2)
"""Those with a recurrence; the one between them has attention."""
DIM = 72
"""Channels of a recurrence."""
CONTEXT_LENGTH = 2048
IGNORED = ("blk.*.recur_*",)


def shapes(dim: int) -> dict[str, tuple[int, ...]]:
    """The tensors of a recurrence."""
    return {
        "recur_norm": (dim,),
        "recur_x": (DIM, dim),
        "recur_gate": (DIM, dim),
        "recur_output": (dim, DIM),
    }


def write(path: Path) -> None:
    """Write the model in F32."""
    base, rng = tiny.ALL[BASE], np.random.default_rng(7)
    writer = gguf.GGUFWriter(str(path), base.arch)
    for key, value in convert.metadata(base).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, base.vocab_size)
    arrays = convert.tensors(base, tiny.weights(base))
    for layer in LAYERS:
        for name, shape in shapes(base.dim).items():
            spread = 0.3 if len(shape) == 1 else 3 / shape[-1] ** 0.5
            values = rng.standard_normal(shape) * spread + (len(shape) == 1)
            arrays[f"blk.{layer}.{name}.weight"] = values.astype(np.float32)
    convert.add_tensors(writer, arrays, "F32")
    convert.finish(writer)


def spec(source: GgufSource, *, context: int | None = None, **_: object) -> ModelSpec:
    """What `akunu.files.describe.gguf_config.resolve` would give if the model had an architecture."""
    plain = resolve(source, context=context, ignored=IGNORED)
    dim = plain.config.dim
    tensors = dict(plain.tensors)
    for layer in LAYERS:
        for name, (rows, *cols) in shapes(dim).items():
            file = f"blk.{layer}.{name}.weight"
            tensors[f"layers.{layer}.{name}"] = TensorRef(file, 0, rows, *(cols or [0]))
    blocks = tuple(
        dataclasses.replace(block, mixer=Recurrence(DIM))
        if block.layer in LAYERS and isinstance(block.mixer, Attention)
        else block
        for block in plain.config.blocks
    )
    config = dataclasses.replace(plain.config, blocks=blocks, context_length=CONTEXT_LENGTH)
    return ModelSpec(config, tensors)


class HybridReference(Reference):
    """The model in float64."""

    def __init__(self, path: Path, *, context: int | None = None) -> None:
        super().__init__(path, context=context, resolve=spec)

    def mix(
        self, index: int, block: Block, layer: Layer, x: Array, kept: dict[int, tuple[Array, Array]]
    ) -> Array:
        if not isinstance(block.mixer, Recurrence):
            return super().mix(index, block, layer, x, kept)
        x = rms_norm(x, layer["recur_norm"], self.spec.config.norm_eps)
        inputs, z = x @ layer["recur_x"].T, 1 / (1 + np.exp(-(x @ layer["recur_gate"].T)))
        s, out = np.zeros(DIM), np.empty_like(inputs)
        for t in range(len(x)):
            s = out[t] = s + z[t] * (inputs[t] - s)
        return out @ layer["recur_output"].T
