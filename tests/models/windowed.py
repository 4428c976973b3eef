"""A model whose layers see a window, five of six: the tensors of a tiny Llama, and blocks of its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import gguf
import numpy as np

from akunu.files.describe.blocks import Attention, Block, FeedForward
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.gguf_rotary import GgufSource
from akunu.files.describe.tensor_map import TensorRef

from . import convert, tiny

BASE = tiny.ALL["llama"]
LAYERS = 6
HEADS, KV_HEADS, HEAD_DIM, INNER = 2, 1, 64, 64
CONTEXT_LENGTH = 32768


def blocks(window: int) -> tuple[Block, ...]:
    """Every sixth layer sees all."""
    found = []
    for i in range(LAYERS):
        mixer = Attention(
            HEADS, KV_HEADS, HEAD_DIM, HEAD_DIM**-0.5, rope=0, window=0 if i % 6 == 5 else window
        )
        found += [Block(f"w.{i}.", i, mixer), Block(f"w.{i}.", i, FeedForward(INNER, "silu"))]
    return tuple(found)


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of the blocks; a vector has one axis."""
    dim, q, kv = BASE.dim, HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    found: dict[str, tuple[int, ...]] = {}
    for i in range(LAYERS):
        own = {"attn_norm": (dim,), "attn_q": (q, dim), "attn_k": (kv, dim), "attn_v": (kv, dim)}
        own |= {"attn_output": (dim, q)}
        own |= {
            "ffn_norm": (dim,),
            "ffn_gate": (INNER, dim),
            "ffn_up": (INNER, dim),
            "ffn_down": (dim, INNER),
        }
        found |= {f"w.{i}.{name}": shape for name, shape in own.items()}
    return found


class Windowed:
    """`resolve` of a model whose windowed layers see `window` positions.

    With `shared` the last of these layers sees as many, or all with 0, of the first one's keys and values.
    """

    def __init__(self, window: int, shared: int | None = None) -> None:
        self._blocks = list(blocks(window))
        self._shared = shared is not None
        if shared is not None:
            mixer = self._blocks[8].mixer
            assert isinstance(mixer, Attention)
            mixer = dataclasses.replace(mixer, window=shared, kv_owner=0)
            self._blocks[8] = dataclasses.replace(self._blocks[8], mixer=mixer)

    def __call__(self, source: GgufSource, *, context: int | None = None, **_: object) -> ModelSpec:
        plain = resolve(source, context=None, ignored=("w.*",))
        tensors = {name: ref for name, ref in plain.tensors.items() if not name.startswith("layers.")}
        for name, (rows, *cols) in shapes().items():
            if self._shared and name in ("w.4.attn_k", "w.4.attn_v"):
                continue
            tensors[name] = TensorRef(f"{name}.weight", 0, rows, *(cols or [0]))
        config = dataclasses.replace(plain.config, blocks=tuple(self._blocks), context_length=CONTEXT_LENGTH)
        return ModelSpec(config, tensors)


def write(path: Path) -> None:
    rng = np.random.default_rng(9)
    writer = gguf.GGUFWriter(str(path), BASE.arch)
    for key, value in convert.metadata(BASE).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, BASE.vocab_size)
    arrays = convert.tensors(BASE, tiny.weights(BASE))
    for name, shape in shapes().items():
        spread = 0.3 if len(shape) == 1 else 2 / shape[-1] ** 0.5
        arrays[f"{name}.weight"] = (rng.standard_normal(shape) * spread + (len(shape) == 1)).astype(
            np.float32
        )
    convert.add_tensors(writer, arrays, "F32")
    convert.finish(writer)
