"""Blocks are data: a model that no architecture has, built from Python alone and compared with float64.

It has two kinds of attention with heads and rotary sets of different sizes, heads that are not rotated, norms
over whole rows, over heads of values, and of each head by weights of its own, keys and values of another
block, a window, a layer without a feed-forward, and one with two.
The file is that of a tiny Llama with tensors besides.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.files.describe.blocks import Attention, Block, FeedForward, RopeSet
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.gguf_rotary import GgufSource
from akunu.files.describe.tensor_map import TensorRef

from . import convert, tiny
from .phases import BOUNDS, agree
from .reference import Reference
from .test_engine import greedy, nmse

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")
BASE = tiny.ALL["llama"]
CONTEXT = 256
WINDOW = 40

ROPES = (
    RopeSet((10000.0 ** -(np.arange(0, 64, 2) / 64)).astype(np.float32), 1.0, "interleaved"),
    RopeSet((500.0 ** -(np.arange(0, 16, 2) / 16)).astype(np.float32), 1.25, "half"),
)


def attention(heads: int, kv_heads: int, head_dim: int, **options: Any) -> Attention:
    return Attention(heads, kv_heads, head_dim, head_dim**-0.5, **options)


BLOCKS = (
    Block("mixed.0.", 0, attention(4, 2, 64, rope=0, window=WINDOW)),
    Block("mixed.0.", 0, FeedForward(160, "silu")),
    Block("mixed.1.", 1, attention(6, 3, 32, rope=1, norm_values=True)),
    Block("mixed.2.", 2, attention(3, 1, 48, norms_whole_rows=True, softcap=5.0)),
    Block("mixed.2.", 2, FeedForward(96, "gelu_tanh")),
    Block("mixed.2b.", 2, FeedForward(64, "silu")),
    Block("mixed.3.", 3, attention(8, 2, 64, rope=0, window=WINDOW, kv_owner=0, norm_eps=1e-4)),
    Block("mixed.3.", 3, FeedForward(128, "silu")),
    Block("mixed.4.", 4, attention(2, 1, 128, norm_eps=1e-3)),
    Block("mixed.5.", 4, attention(3, 1, 40, rope=1, norms_by_head=True)),
)
NORMED = {
    "mixed.0.": False,
    "mixed.1.": True,
    "mixed.2.": True,
    "mixed.3.": True,
    "mixed.4.": True,
    "mixed.5.": True,
}
"""Whether the attention blocks have norms of Q and K."""
PLAIN = "mixed.2b."
"""The feed-forward without a gate."""


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of the blocks; a vector has one axis."""
    dim = BASE.dim
    found: dict[str, tuple[int, ...]] = {}
    for block in BLOCKS:
        own: dict[str, tuple[int, ...]]
        if isinstance(block.mixer, FeedForward):
            n = block.mixer.dim
            own = {"ffn_norm": (dim,), "ffn_up": (n, dim), "ffn_down": (dim, n)}
            own |= {} if block.prefix == PLAIN else {"ffn_gate": (n, dim)}
        else:
            assert isinstance(block.mixer, Attention)
            a = block.mixer
            q, kv = a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim
            own = {"attn_norm": (dim,), "attn_q": (q, dim), "attn_output": (dim, q)}
            if a.kv_owner is None:
                own |= {"attn_k": (kv, dim), "attn_v": (kv, dim)}
            if NORMED[block.prefix]:
                wide = a.norms_whole_rows or a.norms_by_head
                own["attn_q_norm"] = (q if wide else a.head_dim,)
                if a.kv_owner is None:
                    own["attn_k_norm"] = (kv if wide else a.head_dim,)
        found |= {block.prefix + name: shape for name, shape in own.items()}
    return found


def spec(source: GgufSource, *, context: int | None = None, **_: object) -> ModelSpec:
    """What `akunu.files.describe.gguf_config.resolve` would give if an architecture had such layers."""
    plain = resolve(source, context=context, ignored=("mixed.*",))
    tensors = {name: ref for name, ref in plain.tensors.items() if not name.startswith("layers.")}
    for name, (rows, *cols) in shapes().items():
        tensors[name] = TensorRef(f"{name}.weight", 0, rows, *(cols or [0]))
    config = dataclasses.replace(plain.config, blocks=BLOCKS, rope_sets=ROPES)
    return ModelSpec(config, tensors)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng = tmp_path_factory.mktemp("layers") / "layers.gguf", np.random.default_rng(5)
    writer = gguf.GGUFWriter(str(path), BASE.arch)
    for key, value in convert.metadata(BASE).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, BASE.vocab_size)
    arrays = convert.tensors(BASE, tiny.weights(BASE))
    for name, shape in shapes().items():
        spread = 0.3 if len(shape) == 1 else 2 / shape[-1] ** 0.5
        values = rng.standard_normal(shape) * spread + (len(shape) == 1)
        arrays[f"{name}.weight"] = values.astype(np.float32)
    convert.add_tensors(writer, arrays, "F32")
    convert.finish(writer)
    return path


def open_engine(path: Path, **options: Any) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2, **options}
    return _core.Engine(file, spec(file, context=CONTEXT), **settings)


def prompt_of(n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(3, BASE.vocab_size, n).tolist()


@pytest.fixture(scope="module")
def reference(path: Path) -> Reference:
    return Reference(path, context=CONTEXT, resolve=spec)


def test_logits_are_those_of_float64(path: Path, reference: Reference) -> None:
    ids = prompt_of(110)
    engine = open_engine(path)
    assert nmse(engine.logits(ids), reference.logits(ids)) < 1e-9
    found = greedy(engine, ids, 24)
    logits = reference.logits([*ids, *found[:-1]])[-24:]
    second, first = np.sort(logits)[:, -2:].T
    assert (first - second).min() > 1e-4
    assert found == logits.argmax(axis=1).tolist()


@pytest.mark.table
@pytest.mark.parametrize(
    ("index", "changes"),
    [
        (0, {"window": 0}),
        (2, {"rope": None}),
        (2, {"norm_values": False}),
        (3, {"rope": 1}),
        (3, {"softcap": 0.0}),
        (6, {"window": 0}),
        (6, {"norm_eps": 0.5}),
    ],
    ids=[
        "window",
        "rope set",
        "norm of values",
        "no rotation",
        "soft cap",
        "window of shared keys",
        "epsilon",
    ],
)
def test_the_reference_would_notice_a_wrong(
    path: Path, reference: Reference, index: int, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = prompt_of(110)
    expected = reference.logits(ids)
    if "rope" in changes and index == 2:
        changes = {"rope": None}
    blocks = list(BLOCKS)
    blocks[index] = dataclasses.replace(
        BLOCKS[index], mixer=dataclasses.replace(BLOCKS[index].mixer, **changes)
    )
    config = dataclasses.replace(reference.spec.config, blocks=tuple(blocks))
    monkeypatch.setattr(reference, "spec", dataclasses.replace(reference.spec, config=config))
    assert nmse(reference.logits(ids), expected) > 1e-5


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (7, 2), (33, 2)])
def test_chunks_change_no_bit(path: Path, rows: int, threads: int) -> None:
    ids = prompt_of(100, seed=2)
    found, whole = open_engine(path, chunk=rows, threads=threads).logits(ids), open_engine(path).logits(ids)
    # On Metal one row's sums go in another order.
    assert nmse(found, whole) < BOUNDS["F32"] if DEVICE == "metal" else agree(found, whole)


def test_drafts_and_cache_hits_change_no_token(path: Path) -> None:
    """A sequence whose drafts are partly right, and one that begins like it, have the plain one's tokens."""
    ids = prompt_of(90, seed=3)
    plain = greedy(open_engine(path), ids, 30)
    engine = open_engine(path, parallel=2)

    def generate(slot: int, drafted: bool) -> list[int]:
        engine.begin(ids, slot=slot)
        while len(ids) - engine.length(slot) > 1:
            n = min(engine.chunk, len(ids) - 1 - engine.length(slot))
            assert engine.reserve(slot, n)
            engine.step([(slot, n, False, 0, [])])
        out: list[int] = []
        while len(out) < len(plain):
            right = plain[len(out) : len(out) + 2] if drafted else []
            drafts = [*right, (plain[-1] + 1) % BASE.vocab_size][: max(0, len(plain) - len(out) - 1)]
            drafts = drafts if drafted else []
            assert engine.reserve(slot, 1, 1, len(drafts))
            (chunk,), _ = engine.step([(slot, 1, True, len(plain) - len(out), drafts)])
            out += chunk.ids
        return out

    first = engine.open()
    assert generate(first, drafted=True) == plain
    second = engine.open()
    assert engine.begin(ids, slot=second) > 0
    assert generate(second, drafted=False) == plain


def test_steps_that_are_cancelled_change_no_token(path: Path) -> None:
    """Before its first command, or behind its body, where the masks are asked for."""
    ids = prompt_of(70, seed=4)
    plain = greedy(open_engine(path), ids, 12)
    engine = open_engine(path, chunk=32)
    slot = engine.open()
    engine.begin(ids, slot=slot)
    out: list[int] = []
    for step in range(100):
        left = len(ids) + len(out) - engine.length(slot)
        rows = min(left, engine.chunk)
        samples = rows == left
        assert engine.reserve(slot, rows)
        if step % 3 == 0:
            engine.cancel()
        masks = engine.cancel if step % 3 == 1 and samples else None
        before = engine.length(slot)
        (chunk,), _ = engine.step([(slot, rows, samples, 1, [])], 1, masks)
        assert engine.length(slot) in (before, before + rows)
        out += chunk.ids
        if len(out) == len(plain):
            break
    assert out == plain


def test_keys_and_values_of_another_block_take_no_memory(path: Path) -> None:
    """Pages have the keys and values of the blocks that own some, in F32."""
    owners = [b.mixer for b in BLOCKS if isinstance(b.mixer, Attention) and b.mixer.kv_owner is None]
    engine = open_engine(path)
    page_bytes = engine.pages["page_bytes"]
    assert page_bytes == 4 * _core.PAGE * sum(2 * a.n_kv_heads * a.head_dim for a in owners)
