"""Layers of different sizes: heads, head sizes and feed-forward sizes are a layer's own (`LayerConfig`).

No row of `akunu.describe.architectures` has them yet. The file is that of a tiny Llama, with the tensors of
two layers besides, which take the places of its own.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.describe.config import GgufSource, ModelSpec, TensorRef, resolve

from . import convert, tiny
from .reference import Array, Reference, attention, feed_forward, rms_norm
from .test_engine import greedy, nmse

BASE = tiny.ALL["llama"]
SIZES = {0: (6, 3, 64, 96), 2: (2, 1, 128, 288)}
"""Heads, those of keys, size of a head, and of the feed-forward, in the layers that are not Llama's."""
NAMES = ("n_heads", "n_kv_heads", "head_dim", "ffn_dim")


def shapes(heads: int, kv_heads: int, head_dim: int, ffn_dim: int) -> dict[str, tuple[int, int]]:
    dim = BASE.dim
    return {
        "attn_q": (heads * head_dim, dim),
        "attn_k": (kv_heads * head_dim, dim),
        "attn_v": (kv_heads * head_dim, dim),
        "attn_output": (dim, heads * head_dim),
        "ffn_gate": (ffn_dim, dim),
        "ffn_up": (ffn_dim, dim),
        "ffn_down": (dim, ffn_dim),
    }


def spec(source: GgufSource, *, context: int | None = None, **_: object) -> ModelSpec:
    """What `akunu.describe.config.resolve` would give if the layers of an architecture could differ."""
    plain = resolve(source, context=context, ignored=("blk.*.own_*",))
    tensors = dict(plain.tensors)
    sizes = [[getattr(plain.config, name)] * plain.config.n_layers for name in NAMES]
    for layer, own in SIZES.items():
        for values, size in zip(sizes, own, strict=True):
            values[layer] = size
        for name, (rows, cols) in shapes(*own).items():
            tensors[f"layers.{layer}.{name}"] = TensorRef(f"blk.{layer}.own_{name}.weight", 0, rows, cols)
    changes: dict[str, Any] = dict(zip(NAMES, map(tuple, sizes), strict=True))
    return ModelSpec(dataclasses.replace(plain.config, **changes), tensors)


class LayersReference(Reference):
    """The model in float64."""

    def logits(self, ids: list[int]) -> Array:
        whole, weights = self.spec.config, self.weights
        x = weights["token_embedding"][np.asarray(ids)]
        for n in range(whole.n_layers):
            own: dict[str, Any] = {name: getattr(whole, name)[n] for name in NAMES}
            config, layer = dataclasses.replace(whole, **own), self.layer(n)
            x = x + attention(config, layer, n, rms_norm(x, layer["attn_norm"], config.norm_eps))
            x = x + feed_forward(config, layer, rms_norm(x, layer["ffn_norm"], config.norm_eps))
        return rms_norm(x, weights["output_norm"], whole.norm_eps) @ weights["output"].T


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng = tmp_path_factory.mktemp("layers") / "layers.gguf", np.random.default_rng(5)
    writer = gguf.GGUFWriter(str(path), BASE.arch)
    for key, value in convert.metadata(BASE).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, BASE.vocab_size)
    arrays = convert.tensors(BASE, tiny.weights(BASE))
    for layer, own in SIZES.items():
        for name, shape in shapes(*own).items():
            values = rng.standard_normal(shape) * 2 / shape[1] ** 0.5
            arrays[f"blk.{layer}.own_{name}.weight"] = values.astype(np.float32)
    convert.add_tensors(writer, arrays, "F32")
    convert.finish(writer)
    return path


def open_engine(path: Path, **options: Any) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {"device": "cpu", "context": 128, "kv_dtype": "f32", "threads": 2, **options}
    return _core.Engine(file, spec(file, context=128), **settings)


def test_logits_are_those_of_float64(path: Path) -> None:
    ids = np.random.default_rng(1).integers(3, BASE.vocab_size, 70).tolist()
    reference, engine = LayersReference(path, context=128, resolve=spec), open_engine(path)
    assert nmse(engine.logits(ids), reference.logits(ids)) < 1e-9
    found = greedy(engine, ids, 24)
    assert found == reference.logits([*ids, *found[:-1]])[-24:].argmax(axis=1).tolist()


def test_chunks_change_no_bit(path: Path) -> None:
    ids = np.random.default_rng(2).integers(3, BASE.vocab_size, 100).tolist()
    assert np.array_equal(open_engine(path).logits(ids), open_engine(path, chunk=7, threads=1).logits(ids))


def test_a_list_of_sizes_is_one_for_each_layer(path: Path) -> None:
    file = _core.GgufFile(str(path))
    found = spec(file, context=128)
    wrong: Any = dataclasses.replace(found.config, n_heads=(2, 2))
    with pytest.raises(ValueError, match="the length of n_heads is 2, expected n_layers, 3"):
        _core.Engine(file, ModelSpec(wrong, found.tensors), device="cpu", context=128)
