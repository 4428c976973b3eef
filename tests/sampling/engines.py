"""Engines for these tests, and how they are driven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from akunu import _core
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.tensor_map import TensorRef
from akunu.tokenizer.breakers import breaker_table
from models import configs, convert, tiny
from one_engine import OneEngine

from .reference import Settings, allowed

__all__ = ["best", "check", "farthest", "open_file", "run", "start", "synthetic", "write_tiny"]

DEVICE = "cpu"  # tests/metal sets another


def write_tiny(path: Path, name: str = "llama", **replaced: npt.NDArray[np.float32]) -> Path:
    """A tiny random model; `replaced` are tensors to write instead, dots written as two underscores."""
    model = tiny.ALL[name]
    weights = {**tiny.weights(model), **{key.replace("__", "."): value for key, value in replaced.items()}}
    writer = gguf.GGUFWriter(str(path), model.arch)
    for key, value in convert.metadata(model).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, model.vocab_size)
    convert.add_tensors(writer, convert.tensors(model, weights), "F32")
    convert.finish(writer)
    return path


def open_file(
    path: Path, *, context: int = 128, chunk: int = 512, threads: int = 1, check_weights: bool = True
) -> OneEngine:
    file = _core.GgufFile(str(path))
    options = {"context": context, "chunk": chunk, "threads": threads, "check_weights": check_weights}
    return OneEngine(_core.Engine(file, resolve(file, context=context), device=DEVICE, **options))


def synthetic(
    vocab: int,
    dim: int,
    *,
    layers: int = 1,
    head_dim: int = 32,
    context: int = 64,
    threads: int = 1,
    group: int = 1,
    weights: str = "f32",
    ffn_dim: int = 0,
    **options: object,
) -> OneEngine:
    """Random weights. Their pattern repeats: with `dim` 32 after 8186 tokens, with 33 hardly ever.

    `group`: query heads of a KV head. The feed-forward has twice `dim` elements where no number is given.
    """
    ffn_dim = ffn_dim or 2 * dim
    n_heads = max(1, dim // head_dim)
    config = configs.plain(
        dim=dim,
        n_layers=layers,
        n_heads=n_heads,
        n_kv_heads=n_heads // group,
        head_dim=head_dim,
        ffn_dim=ffn_dim,
        vocab_size=vocab,
        context_length=4096,
        inv_freq=np.geomspace(1, 1e-4, head_dim // 2, dtype=np.float32),
        rope_style="interleaved",
        scale=head_dim**-0.5,
    )
    shapes: dict[str, tuple[int, int]] = {
        "token_embedding": (vocab, dim), "output": (vocab, dim), "output_norm": (dim, 0)
    }  # fmt: skip
    q_dim = n_heads * head_dim
    for n in range(layers):
        shapes |= {f"layers.{n}.{part}_norm": (dim, 0) for part in ("attn", "ffn")}
        shapes |= {f"layers.{n}.attn_{part}": (q_dim // (1 if part == "q" else group), dim) for part in "qkv"}
        shapes[f"layers.{n}.attn_output"] = (dim, q_dim)
        shapes |= {f"layers.{n}.ffn_{part}": (ffn_dim, dim) for part in ("gate", "up")}
        shapes[f"layers.{n}.ffn_down"] = (dim, ffn_dim)
    tensors = {name: TensorRef(name, 0, rows, cols) for name, (rows, cols) in shapes.items()}
    spec = ModelSpec(config=config, tensors=tensors)
    options = {"device": DEVICE, "context": context, "threads": threads, **options}
    dtypes = {name: "f32" if name.endswith("norm") else weights for name in shapes}
    return OneEngine(_core.Engine(None, spec, synthetic=dtypes, **options))


def start(
    engine: OneEngine, prompt: Sequence[int], settings: Settings, seed: int, **options: object
) -> _core.Chunk:
    """Begin and run the prompt; the chunk holds the first token."""
    given = asdict(settings)
    breakers = given.pop("dry_breakers")
    if breakers:
        given["dry_breakers"] = breaker_table(breakers, max(breakers) + 1)
    engine.begin(prompt, **{**given, "seed": seed, **options})
    left, chunk = engine.prefill()
    while left:
        left, chunk = engine.prefill()
    return chunk


def run(
    engine: OneEngine,
    prompt: Sequence[int],
    n: int,
    settings: Settings,
    seed: int,
    *,
    chain: int = 8,
    **options: object,
) -> list[int]:
    """n tokens (fewer when an end token comes or the context is full), in chains of up to `chain`."""
    chunk = start(engine, prompt, settings, seed, **options)
    ids = list(chunk.ids)
    while len(ids) < n and not chunk.ended:
        chunk = engine.decode(min(chain, n - len(ids)))
        if chunk is None or not chunk.ids:
            break
        ids += chunk.ids
    return ids


def check(
    logits: npt.NDArray[np.float32], prompt: Sequence[int], ids: Sequence[int], settings: Settings, seed: int
) -> int:
    """Assert that the reference draws each of `ids` from `logits`; returns how many hung on a rounding.

    `logits` are those of prompt + ids, [len(prompt) + len(ids), vocab].
    """
    sequence = [*prompt, *ids]
    close = 0
    for position in range(len(prompt), len(sequence)):
        expected = allowed(logits[position - 1], sequence[:position], settings, seed)
        assert sequence[position] in expected, (position, sequence[position], expected, settings, seed)
        close += len(expected) > 1
    return close


def best(engine: _core.Engine, own: Sequence[Mapping[str, object]]) -> list[dict[int, float]]:
    """The best tokens' log p behind a step of a row of each sequence, whose options are in `own`."""
    ids, slots = (np.arange(5) * 7 % 61).astype(np.uint32), [engine.open() for _ in own]
    for i, (slot, options) in enumerate(zip(slots, own, strict=True)):
        engine.begin(
            (ids + i) % 61, slot=slot, temperature=0.0, end_ids=(), logprobs=20, reuse=False, **options
        )
        assert engine.reserve(slot, 4, 1)
        engine.step([(slot, 4, False, 0, [])], 1)
        assert engine.reserve(slot, 1, 1)
    chunks, raised = engine.step([(slot, 1, True, 0, []) for slot in slots], 1)
    assert raised is None
    engine.close()
    return [dict(chunk.top_logprobs[0]) for chunk in chunks]


def farthest(some: Sequence[Mapping[int, float]], others: Sequence[Mapping[int, float]]) -> float:
    """The greatest difference between the log p of a token that both have, in any row."""
    return max(abs(p[t] - q[t]) for p, q in zip(some, others, strict=True) for t in p.keys() & q.keys())
